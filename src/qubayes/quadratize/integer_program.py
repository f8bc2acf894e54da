"""Integer programs on HiGHS: smallest family, fewest couplers (paper, Appendices C.1 and C.2).

Smallest family, with Assumption 2 in its compact form. Columns: v_V for each set that may be in the
family; rho for each pair of them whose union is a term or a candidate; w_{V,e} for "V is the
closure of e". Only v must be integer: a positive rho needs both its sets, and a positive w_{V,e}
excludes every set that holds e without V."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ..foundation.arrays import Floats
from ..foundation.highs import Highs, LinearModel
from .decomposition import (
    Assumptions,
    Decomposition,
    Mask,
    Pair,
    Penalty,
    SearchSpace,
    closed_sets,
    closures,
    couplers,
    in_order,
    ordered_pair,
    proper_subsets,
    singletons,
)


class MixedProgram:
    """A mixed-integer program with columns in [0, 1], collected by rows and solved by HiGHS."""

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.integer: list[bool] = []
        self.lower: list[float] = []
        self.rhs: list[float] = []
        self.rows: list[dict[int, float]] = []  # column -> value

    def column(self, *, cost: float = 0.0, integer: bool = False, at_least: float = 0.0) -> int:
        """Add a column; return its number."""
        self.costs.append(cost)
        self.integer.append(integer)
        self.lower.append(at_least)
        return len(self.costs) - 1

    def at_least(self, rhs: float, plus: Iterable[int], minus: Iterable[int] = ()) -> None:
        """Add the row: sum of `plus` - sum of `minus` >= rhs. A repeated column counts as often."""
        values: dict[int, float] = defaultdict(float)
        for column in plus:
            values[column] += 1.0
        for column in minus:
            values[column] -= 1.0
        self.rhs.append(rhs)
        self.rows.append(values)

    def solve(
        self, time_limit: float, start: Collection[int] | None
    ) -> tuple[Floats | None, int, bool]:
        """Return values of the columns (or None), a lower bound of the cost, and "it is optimal".

        `start` names the integer columns that are 1 in a known solution. Costs are whole numbers.
        """
        highs = Highs(mip_rel_gap=0.0, mip_abs_gap=0.99, mip_feasibility_tolerance=1e-7)
        begins = np.cumsum([0, *map(len, self.rows)])
        columns = np.fromiter(chain.from_iterable(self.rows), dtype=np.int32)
        values = np.fromiter(chain.from_iterable(row.values() for row in self.rows), np.float64)
        matrix = csr_array((values, columns, begins), shape=(len(self.rows), len(self.costs)))
        integer = np.array(self.integer, np.bool_)
        model = LinearModel(
            np.array(self.costs),
            matrix,
            row_lower=np.array(self.rhs),
            lower=np.array(self.lower),
            upper=1.0,
            integer=integer,
        )
        highs.load(model)
        if start is not None:
            places = np.flatnonzero(integer)
            highs.start_from(places, np.isin(places, sorted(start)))
        solved = highs.solve(max(time_limit, 0.0))
        bound = int(np.ceil(solved.bound - 1e-6)) if np.isfinite(solved.bound) else 0
        return solved.values if solved.feasible else None, bound, solved.optimal and solved.feasible


class Representations(NamedTuple):
    """The representations of a set by two other sets."""

    single: tuple[Mask, ...]  # sets that suffice because a closed set adds the rest
    pairs: tuple[Pair, ...]  # pairs of candidates neither of which suffices


def representations(
    mask: Mask, closed: Collection[Mask], inside: Iterable[Mask]
) -> Representations:
    """Return the representations of a set by two inside it; no pair has a sufficient set."""
    inside = list(inside)
    enough = {mask ^ single for single in singletons([mask]).intersection(closed)}
    others = [s for s in inside if s not in enough]
    pairs = tuple((a, b) for a, b in combinations(others, 2) if a | b == mask)
    return Representations(tuple(sorted(enough.intersection(inside))), pairs)


class ProvedFamily(NamedTuple):
    """A family from the integer program with its lower bound."""

    sets: tuple[Mask, ...] | None  # closed sets included; None if none was found in time
    bound: int  # proved lower bound on the number of sets
    proved: bool


def smallest_family(
    space: SearchSpace, time_limit: float, start: Collection[Mask] | None = None
) -> ProvedFamily:
    """Return the family with the fewest sets; `start` is a known family."""
    if not space.candidates:
        return ProvedFamily(tuple(space.closed), len(space.closed), True)
    program = MixedProgram()
    columns = {mask: program.column(cost=1.0, integer=True) for mask in space.candidates}
    _add_representations(program, columns, space)
    if start is not None and not set(start) <= set(columns) | space.closed:
        start = None
    known = None if start is None else {columns[s] for s in start if s in columns}
    values, bound, proved = program.solve(time_limit, known)
    bound += len(space.closed)
    if values is None:
        return ProvedFamily(None, bound, False)
    sets = (*space.closed, *(mask for mask, column in columns.items() if values[column] > 0.5))
    return ProvedFamily(sets, len(sets) if proved else min(bound, len(sets)), proved)


def _add_representations(
    program: MixedProgram, columns: dict[Mask, int], space: SearchSpace
) -> None:
    """Add the rows of Assumption 1 and, unless terms are exclusive, of Assumption 2.

    A set of k closed elements that is represented has at least k - 2 products inside (see
    `simple_bound`): a cut."""
    open_terms = set(space.open_terms)
    splitting = space.assumptions != "terms-exclusive"
    witnesses = _witnesses(program, columns, space) if splitting else {}
    masks = {**dict.fromkeys(space.open_terms), **columns} if splitting else space.open_terms
    for mask in masks:
        if mask.bit_count() == 1:
            if mask in open_terms:
                program.at_least(1, [columns[mask]])
            continue
        inside = [s for s in proper_subsets(mask) if s in columns]
        options = _add_options(program, columns, representations(mask, space.closed, inside))
        if mask in open_terms:
            program.at_least(1, [columns[mask], *options])
        on_closed = singletons([mask]) <= space.closed
        if splitting and not (on_closed and mask.bit_count() == 2):
            program.at_least(0, [*options, *witnesses.get(mask, ())], [columns[mask]])
        if splitting and on_closed and mask.bit_count() >= 4:
            products = [columns[s] for s in inside]
            _add_cut(program, columns[mask], products, mask, needed=mask in open_terms)


def _add_cut(
    program: MixedProgram, chosen: int, products: list[int], mask: Mask, *, needed: bool
) -> None:
    """Add the row that a set of k closed elements has k - 2 products inside.

    It holds if the set is chosen; for a term (`needed`) always."""
    least = mask.bit_count() - 2
    if needed:
        program.at_least(least, products)
    else:
        program.at_least(0, products, [chosen] * least)


def _witnesses(
    program: MixedProgram, columns: dict[Mask, int], space: SearchSpace
) -> dict[Mask, list[int]]:
    """Return V -> columns w_{V,e}: V is the closure of e, so a root."""
    witnesses: dict[Mask, list[int]] = defaultdict(list)
    for element, core in space.cores.items():
        if 1 << element not in space.closed and core != 1 << element:
            larger = (s for s in (core, *proper_subsets(core)) if s.bit_count() > 1)
            allowed = [s for s in larger if s in columns]
            for mask, column in _closure_columns(program, columns, element, allowed).items():
                witnesses[mask].append(column)
    return witnesses


def _add_options(
    program: MixedProgram, columns: dict[Mask, int], found: Representations
) -> list[int]:
    """Add a column for each pair; return the columns of which one is 1 if the set is represented.

    Each set serves one pair at most: stronger than one row for each pair."""
    options = [columns[s] for s in found.single]
    partners: dict[Mask, list[int]] = defaultdict(list)
    for pair in found.pairs:
        column = program.column()
        options.append(column)
        for part in pair:
            partners[part].append(column)
    for part, used in partners.items():
        program.at_least(0, [columns[part]], used)
    return options


def _closure_columns(
    program: MixedProgram, columns: dict[Mask, int], element: int, allowed: Iterable[Mask]
) -> dict[Mask, int]:
    """Return set -> column "the set is the closure of the element", for allowed sets that hold it.

    Each term with e has a chosen set with e inside it, so a closure of e lies in its core; and e
    has at most one closure. Therefore v_A + sum of w_{V,e} over V not inside A <= 1 for each A with
    e."""
    roots = {s: program.column() for s in allowed if s >> element & 1}
    for other, column in columns.items():
        if other >> element & 1:
            excluded = [w for mask, w in roots.items() if mask & ~other]
            if excluded:
                program.at_least(-1, [], [column, *excluded])
    return roots


class FewestCouplers(NamedTuple):
    """A decomposition with the lower bound on the number of its couplers."""

    decomposition: Decomposition
    bound: int
    proved: bool

    @property
    def status(self) -> str:
        """What was proved, in words."""
        if self.proved:
            return "couplers proved fewest"
        return f"at least {self.bound} couplers needed, time limit reached"


def fewest_couplers(
    terms: Sequence[Mask],
    assumptions: Assumptions,
    penalty: Penalty,
    start: Decomposition,
    extra_sets: int,
    time_limit: float,
) -> FewestCouplers:
    """Return the decomposition with the fewest couplers, of at most `extra_sets` more than `start`.

    For Assumptions 1 and 2. Couplers are those that `decomposition.couplers` returns for the
    penalty."""
    if not terms:
        return FewestCouplers(start, 0, True)
    task = _CouplerProgram(terms, assumptions, penalty)
    task.program.at_least(-(len(start.sets) + extra_sets), [], task.sets.values())
    values, bound, proved = task.program.solve(time_limit, task.columns_of(start))
    found = start if values is None else task.decomposition(values)
    best = min(start, found, key=lambda d: (len(couplers(d, penalty)), d is start))
    number = len(couplers(best, penalty))
    return FewestCouplers(best, number if proved else min(number, max(0, bound)), proved)


class _CouplerProgram:
    """Columns: sets; roots; splits; pairs of terms; couplers, the only ones with a cost."""

    def __init__(self, terms: Sequence[Mask], assumptions: Assumptions, penalty: Penalty) -> None:
        self.program = MixedProgram()
        self.terms = terms
        closed = closed_sets(terms, assumptions)
        inside = set(terms).union(*map(proper_subsets, terms))
        self.sets = {
            s: self.program.column(integer=True, at_least=float(s in closed))
            for s in in_order(inside)
        }
        self.roots: dict[Mask, int] = {}
        self.splits: dict[tuple[Mask, Pair], int] = {}  # (union, pair)
        self.pairs: dict[tuple[Mask, Pair], int] = {}  # (term, pair)
        self.couplers: dict[Pair, int] = {}
        self._add_roots()
        for mask in self.sets:  # a chosen set is a root or has a split
            roles = [self.roots[mask]] if mask in self.roots else []
            roles += self._add_unions(self.splits, mask)
            self.program.at_least(0, roles, [self.sets[mask]])
        for term in terms:
            self.program.at_least(1, [self.sets[term], *self._add_unions(self.pairs, term)])
        if penalty == "paper":
            for mask in self.sets:
                self._add_paper_couplers(mask)

    def _add_paper_couplers(self, mask: Mask) -> None:
        """Couple the set with its parts, and two of them if it is their union."""
        chosen = self.sets[mask]
        parts = in_order(proper_subsets(mask))
        for number, a in enumerate(parts):
            self.program.at_least(-1, [self._coupler(a, mask)], [self.sets[a], chosen])
            for b in parts[number + 1 :]:
                if a | b == mask:
                    both = [self.sets[a], self.sets[b], chosen]
                    self.program.at_least(-2, [self._coupler(a, b)], both)

    def _coupler(self, a: Mask, b: Mask) -> int:
        """Return the column of the coupler of two sets."""
        pair = ordered_pair(a, b)
        if pair not in self.couplers:
            self.couplers[pair] = self.program.column(cost=1.0)
        return self.couplers[pair]

    def _add_unions(self, kind: dict[tuple[Mask, Pair], int], mask: Mask) -> list[int]:
        """Add columns for the pairs whose union is the set; each needs its sets and couplers."""
        parts = in_order(proper_subsets(mask))
        used: dict[Mask, list[int]] = defaultdict(list)
        result = []
        for a, b in combinations(parts, 2):
            if a | b == mask:
                column = self.program.column(integer=True)
                self.program.at_least(0, [self._coupler(a, b)], [column])
                kind[mask, (a, b)] = column
                used[a].append(column)
                used[b].append(column)
                result.append(column)
        for part, columns in used.items():
            self.program.at_least(0, [self.sets[part]], columns)
            if kind is self.splits:
                self.program.at_least(0, [self._coupler(part, mask)], columns)
        return result

    def _add_roots(self) -> None:
        """Add roots, closures of their elements; couple nested roots with no root between them."""
        witnesses: dict[Mask, list[int]] = defaultdict(list)
        for element, core in closures(self.terms).items():
            allowed = (core, *proper_subsets(core))
            for mask, column in _closure_columns(self.program, self.sets, element, allowed).items():
                witnesses[mask].append(column)
        for mask in in_order(witnesses):
            self.roots[mask] = self.program.column(integer=True)
            self.program.at_least(0, [self.sets[mask]], [self.roots[mask]])
            self.program.at_least(0, witnesses[mask], [self.roots[mask]])
        for outer in self.roots:
            inside = [s for s in proper_subsets(outer) if s in self.roots]
            for inner in inside:
                between = [self.roots[s] for s in inside if inner & ~s == 0 and s != inner]
                coupler = self._coupler(inner, outer)
                nested = [self.roots[inner], self.roots[outer]]
                self.program.at_least(-1, [coupler, *between], nested)

    def columns_of(self, start: Decomposition) -> set[int]:
        """Return the integer columns that are 1 in a decomposition."""
        roots = {self.roots[s] for s in start.roots}
        splits = {self.splits[s, pair] for s, pair in start.splits.items()}
        pairs = {self.pairs[t, pair] for t, pair in start.pairs.items() if pair[0] != pair[1]}
        return {self.sets[s] for s in start.sets} | roots | splits | pairs

    def decomposition(self, values: Floats) -> Decomposition:
        """Return the decomposition of a solution."""
        family = {s for s, column in self.sets.items() if values[column] > 0.5}
        roots = {s for s in family if s in self.roots and values[self.roots[s]] > 0.5}
        used = [key for key, column in self.splits.items() if values[column] > 0.5]
        splits = {s: pair for s, pair in used if s in family - roots}
        pairs = {t: p for (t, p), column in self.pairs.items() if values[column] > 0.5}
        pairs |= {t: (t, t) for t in self.terms if t in family}
        return Decomposition(in_order(family), splits, {t: pairs[t] for t in in_order(self.terms)})
