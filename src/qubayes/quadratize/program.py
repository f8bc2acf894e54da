"""The smallest family as an integer program on HiGHS (Appendices C.1 and C.2), Assumption 2 in its compact form.

Columns: v_V for each set that may be in the family; rho for each pair of them whose union is a term or a
candidate; w_{V,e} for "V is the closure of e". Only v must be integer: a positive rho needs both its sets, a
positive w_{V,e} bars every set that holds e without V.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ..foundation.highs import Highs, LinearModel
from .family import Mask, Pair, bits, proper_subsets
from .reduction import Space


class Outcome(NamedTuple):
    """What the solver found and proved."""

    sets: tuple[Mask, ...] | None  # the whole family, closed sets included; None where nothing was found in time
    bound: int  # proved lower bound on the number of sets
    proved: bool


class Model:
    """A mixed-integer program with columns in [0, 1], gathered row by row and handed to HiGHS at once."""

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.integer: list[bool] = []
        self.lower: list[float] = []
        self.rows: list[tuple[float, list[int], list[float]]] = []  # lower bound, columns, values

    def column(self, *, cost: float = 0.0, integer: bool = False, at_least: float = 0.0) -> int:
        """A new column; its number."""
        self.costs.append(cost)
        self.integer.append(integer)
        self.lower.append(at_least)
        return len(self.costs) - 1

    def at_least(self, bound: float, plus: Iterable[int], minus: Iterable[int] = ()) -> None:
        """Row: sum of `plus` - sum of `minus` >= bound. A column that repeats counts as often."""
        values: dict[int, float] = defaultdict(float)
        for column in plus:
            values[column] += 1.0
        for column in minus:
            values[column] -= 1.0
        self.rows.append((bound, list(values), list(values.values())))

    def solve(self, time_limit: float, start: Collection[int] | None = None) -> tuple[list[float] | None, float, bool]:
        """Values of the columns (None if none were found), proved lower bound, whether they are optimal. One thread,
        fixed seed.
        """
        highs = Highs(mip_rel_gap=0.0, mip_abs_gap=0.99, mip_feasibility_tolerance=1e-7)
        start_of_row = np.cumsum([0, *(len(row[1]) for row in self.rows)])
        columns = np.array([column for row in self.rows for column in row[1]], dtype=np.int32)
        values = np.array([value for row in self.rows for value in row[2]])
        matrix = csr_array((values, columns, start_of_row), shape=(len(self.rows), len(self.costs)))
        bounds, integer = np.array([row[0] for row in self.rows]), np.array(self.integer, np.bool_)
        costs, lower = np.array(self.costs), np.array(self.lower)
        highs.load(LinearModel(costs, matrix, row_lower=bounds, lower=lower, upper=1.0, integer=integer))
        if start is not None:
            chosen = np.flatnonzero(integer)
            highs.start_from(chosen, np.isin(chosen, sorted(start)))
        solved = highs.solve(max(time_limit, 0.0))
        bound = solved.bound if np.isfinite(solved.bound) else 0.0
        return solved.values.tolist() if solved.feasible else None, bound, solved.optimal and solved.feasible


class Ways(NamedTuple):
    """How a set can be the union of two others."""

    with_closed: tuple[Mask, ...]  # sets that suffice, because a closed set adds the rest
    pairs: tuple[Pair, ...]  # pairs of candidates neither of which suffices


def ways(mask: Mask, closed: Collection[Mask], inside: Iterable[Mask]) -> Ways:
    """The ways to represent a set by two of the sets inside it; a pair with a set that suffices without its partner
    is left out.
    """
    enough = {mask ^ (1 << e) for e in bits(mask) if 1 << e in closed}
    candidates = list(inside)
    parts = [s for s in candidates if s not in enough]
    pairs = tuple((a, b) for i, a in enumerate(parts) for b in parts[i + 1 :] if a | b == mask)
    return Ways(tuple(sorted(enough.intersection(candidates))), pairs)


def smallest_family(space: Space, time_limit: float, start: Collection[Mask] | None = None) -> Outcome:
    """The family with the fewest sets; `start` is a family to begin with."""
    if not space.candidates:
        return Outcome(tuple(space.closed), len(space.closed), True)
    model = Model()
    columns = {mask: model.column(cost=1.0, integer=True) for mask in space.candidates}
    _represent(model, columns, space)
    begin = (
        None
        if start is None or not set(start) <= set(columns) | space.closed
        else {columns[s] for s in start if s in columns}
    )
    values, bound, proved = model.solve(time_limit, begin)
    least = len(space.closed) + int(np.ceil(bound - 1e-6))
    if values is None:
        return Outcome(None, least, False)
    sets = (*space.closed, *(mask for mask, column in columns.items() if values[column] > 0.5))
    return Outcome(sets, len(sets) if proved else min(least, len(sets)), proved)


def _represent(model: Model, columns: dict[Mask, int], space: Space) -> None:
    """Rows for Assumption 1 and, unless terms are exclusive, Assumption 2."""
    open_terms = set(space.open_terms)
    splitting = space.assumptions != "terms-exclusive"
    witnesses = _witnesses(model, columns, space) if splitting else {}
    for mask in {**dict.fromkeys(space.open_terms), **columns} if splitting else space.open_terms:
        if mask.bit_count() == 1:
            if mask in open_terms:
                model.at_least(1, [columns[mask]])
            continue
        found = _union_columns(
            model, columns, ways(mask, space.closed, [s for s in proper_subsets(mask) if s in columns])
        )
        if mask in open_terms:
            model.at_least(1, [columns[mask], *found])
        free = mask.bit_count() == 2 and all(1 << e in space.closed for e in bits(mask))
        if splitting and not free:
            model.at_least(0, [*found, *witnesses.get(mask, ())], [columns[mask]])
        if splitting and mask.bit_count() >= 4 and all(1 << e in space.closed for e in bits(mask)):
            _count_products(model, columns, mask, mask in open_terms)


def _union_columns(model: Model, columns: dict[Mask, int], found: Ways) -> list[int]:
    """Columns whose sum is at least 1 only if the set is a union; each set lends itself to one pair (stronger than
    one by one).
    """
    result = [columns[s] for s in found.with_closed]
    partners: dict[Mask, list[int]] = defaultdict(list)
    for pair in found.pairs:
        result.append(model.column())
        for part in pair:
            partners[part].append(result[-1])
    for part, used in partners.items():
        model.at_least(0, [columns[part]], used)
    return result


def _count_products(model: Model, columns: dict[Mask, int], mask: Mask, term: bool) -> None:
    """Cut: a set of k closed elements that is represented has at least k - 2 products inside (see `simple_bound`)."""
    inside = [columns[s] for s in proper_subsets(mask) if s in columns]
    products = mask.bit_count() - 2
    if term:
        model.at_least(products, inside)
    else:
        model.at_least(0, inside, [columns[mask]] * products)


def _witnesses(model: Model, columns: dict[Mask, int], space: Space) -> dict[Mask, list[int]]:
    """Set -> columns w_{V,e}, e in V: V is the closure of e, so Assumption 2 asks nothing of V.

    Each term with e has a chosen set with e inside it, so a closure of e lies in e's core; and e has one closure
    at most, which makes the rows v_A + sum of w_{V,e} over V not inside A <= 1, for A with e, valid.
    """
    result: dict[Mask, list[int]] = defaultdict(list)
    for element, core in space.cores.items():
        if 1 << element in space.closed or core == 1 << element:
            continue
        roots = {
            s: model.column()
            for s in (core, *proper_subsets(core))
            if s >> element & 1 and s.bit_count() > 1 and s in columns
        }
        for mask, column in roots.items():
            result[mask].append(column)
        for other, column in columns.items():
            if other >> element & 1:
                barred = [w for mask, w in roots.items() if mask & ~other]
                if barred:
                    model.at_least(-1, [], [column, *barred])
    return result
