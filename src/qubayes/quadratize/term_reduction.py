"""The plan with the fewest couplers for a given number of sets, as an integer program (Appendix C.2).

Differs from the appendix where our penalty does: one split per set and roots inside roots are coupled, not every
split and every inclusion. Couplers are counted as `family.couplers` counts them.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .family import Assumptions, Mask, Pair, Plan, couplers, in_order, proper_subsets
from .program import Model
from .reduction import closed_sets, intersections


class Thrift(NamedTuple):
    """A plan and what is proved about the number of its couplers."""

    plan: Plan
    bound: int
    proved: bool


def fewest_couplers(
    terms: Sequence[Mask], assumptions: Assumptions, start: Plan, extra_sets: int, time_limit: float
) -> Thrift:
    """The plan with the fewest couplers among those with at most `extra_sets` more sets than `start`, for Assumptions
    1 and 2.
    """
    if not terms:
        return Thrift(start, 0, True)
    program = _Program(terms, assumptions)
    program.model.at_least(-(len(start.sets) + extra_sets), [], program.sets.values())
    values, bound, proved = program.model.solve(time_limit, program.columns_of(start))
    plan = start if values is None else program.plan(values)
    if len(couplers(plan)) > len(couplers(start)):
        plan = start
    number = len(couplers(plan))
    return Thrift(plan, number if proved else min(number, max(0, int(np.ceil(bound - 1e-6)))), proved)


class _Program:
    """Columns: sets; roots; (union, pair) of a split; (term, pair); couplers, which alone cost."""

    def __init__(self, terms: Sequence[Mask], assumptions: Assumptions) -> None:
        self.model = Model()
        self.terms = terms
        closed = closed_sets(terms, assumptions)
        inside = {s for term in terms for s in (term, *proper_subsets(term))}
        self.sets = {s: self.model.column(integer=True, at_least=float(s in closed)) for s in in_order(inside)}
        self.roots: dict[Mask, int] = {}
        self.splits: dict[tuple[Mask, Pair], int] = {}
        self.pairs: dict[tuple[Mask, Pair], int] = {}
        self.couplers: dict[Pair, int] = {}
        self._add_roots(intersections(terms))
        for mask in self.sets:
            self._add_split(mask)
        for term in terms:
            chosen = self._union(self.pairs, term)
            self.model.at_least(1, [self.sets[term], *chosen])

    def coupler(self, a: Mask, b: Mask) -> int:
        """The column of the coupler of two sets; they are ordered as `family.couplers` orders them."""
        pair = (a, b) if (a.bit_count(), a) <= (b.bit_count(), b) else (b, a)
        if pair not in self.couplers:
            self.couplers[pair] = self.model.column(cost=1.0)
        return self.couplers[pair]

    def _union(self, kind: dict[tuple[Mask, Pair], int], mask: Mask) -> list[int]:
        """New columns for the pairs whose union is the set; a pair that is used needs its sets and their coupler."""
        parts = in_order(proper_subsets(mask))
        used: dict[Mask, list[int]] = defaultdict(list)
        result = []
        for number, a in enumerate(parts):
            for b in parts[number + 1 :]:
                if a | b == mask:
                    column = kind[mask, (a, b)] = self.model.column(integer=True)
                    self.model.at_least(0, [self.coupler(a, b)], [column])
                    used[a].append(column)
                    used[b].append(column)
                    result.append(column)
        for part, columns in used.items():
            self.model.at_least(0, [self.sets[part]], columns)
            if kind is self.splits:
                self.model.at_least(0, [self.coupler(part, mask)], columns)
        return result

    def _add_split(self, mask: Mask) -> None:
        """A chosen set is a root or has a split."""
        split = self._union(self.splits, mask)
        root = [self.roots[mask]] if mask in self.roots else []
        self.model.at_least(0, [*root, *split], [self.sets[mask]])

    def _add_roots(self, cores: dict[Mask, Mask]) -> None:
        """A root is the closure of one of its elements; nested roots without a root between them are coupled."""
        witnesses: dict[Mask, list[int]] = defaultdict(list)
        for element, core in cores.items():
            closures = {s: self.model.column() for s in (core, *proper_subsets(core)) if s >> element & 1}
            for mask, column in closures.items():
                witnesses[mask].append(column)
            for other, column in self.sets.items():
                barred = [w for mask, w in closures.items() if mask & ~other] if other >> element & 1 else []
                if barred:
                    self.model.at_least(-1, [], [column, *barred])
        for mask in in_order(witnesses):
            self.roots[mask] = self.model.column(integer=True)
            self.model.at_least(0, [self.sets[mask]], [self.roots[mask]])
            self.model.at_least(0, witnesses[mask], [self.roots[mask]])
        for outer in self.roots:
            for inner in (s for s in proper_subsets(outer) if s in self.roots):
                between = [
                    self.roots[s] for s in proper_subsets(outer) if s in self.roots and inner & ~s == 0 and s != inner
                ]
                self.model.at_least(-1, [self.coupler(inner, outer), *between], [self.roots[inner], self.roots[outer]])

    def columns_of(self, plan: Plan) -> set[int]:
        """The integer columns that are 1 in a plan."""
        roots = {self.roots[s] for s in plan.roots}
        splits = {self.splits[s, pair] for s, pair in plan.splits.items()}
        pairs = {self.pairs[t, pair] for t, pair in plan.pairs.items() if pair[0] != pair[1]}
        return {self.sets[s] for s in plan.sets} | roots | splits | pairs

    def plan(self, values: Sequence[float]) -> Plan:
        """The plan that a solution means."""
        family = [s for s, column in self.sets.items() if values[column] > 0.5]
        roots = {s for s in family if s in self.roots and values[self.roots[s]] > 0.5}
        splits = {
            s: pair
            for (s, pair), column in self.splits.items()
            if values[column] > 0.5 and s in family and s not in roots
        }
        pairs = {t: pair for (t, pair), column in self.pairs.items() if values[column] > 0.5}
        pairs |= {t: (t, t) for t in self.terms if t in family}
        return Plan(in_order(family), splits, {t: pairs[t] for t in in_order(self.terms)})
