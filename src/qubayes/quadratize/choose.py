"""Which family: the integer program where it fits, a fast search where it does not."""

import time
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, TypeAlias

from .family import Assumptions, Mask, holds
from .greedy import quick_family, searched_family
from .program import smallest_family
from .reduction import Twins, merge_twins, pairs_estimate, reduce_space, simple_bound

Mode: TypeAlias = Literal["auto", "optimal", "greedy"]

COMFORTABLE = 20_000  # pairs up to which "auto" tries for a proof; 40 terms of degree 2-4 have about 2,000
FEASIBLE = 1_500_000  # pairs past which even "optimal" does not build the program: memory


class Choice(NamedTuple):
    """A family and what is known about the smallest one."""

    sets: tuple[Mask, ...]
    bound: int  # no family that satisfies the assumptions has fewer sets
    proved: bool
    status: str


def choose_family(terms: Sequence[Mask], assumptions: Assumptions, mode: Mode, deadline: float) -> Choice:
    """A family for the terms, proved smallest where the mode, the size and the time allow it."""
    twins = merge_twins(terms, assumptions)
    bound = simple_bound(twins.terms, assumptions)
    pairs = pairs_estimate(twins.terms)
    if mode == "greedy" or (mode == "auto" and pairs > COMFORTABLE):
        return _choice(twins, searched_family(twins.terms, assumptions), bound, "fast search, no proof sought")
    if pairs > FEASIBLE:
        sets = searched_family(twins.terms, assumptions)
        return _choice(twins, sets, bound, "fast search: the terms are too long for the integer program")
    start = quick_family(twins.terms, assumptions)
    outcome = smallest_family(reduce_space(twins.terms, assumptions), deadline - time.monotonic(), start)
    if outcome.proved and outcome.sets is not None and holds(outcome.sets, twins.terms, assumptions):
        return _choice(twins, outcome.sets, outcome.bound, "")
    found = [start, searched_family(twins.terms, assumptions), outcome.sets or start]
    valid = [sets for sets in found if holds(sets, twins.terms, assumptions)]  # the solver works with tolerances
    return _choice(twins, min(valid, key=len), max(bound, outcome.bound), "time limit reached, best so far returned")


def _choice(twins: Twins, sets: Collection[Mask], bound: int, why: str) -> Choice:
    bound = min(bound, len(sets))
    number = f"{len(sets)} set{'s' * (len(sets) != 1)}"
    proved = bound == len(sets)
    status = f"{number}, proved minimal" if proved else f"{number}, at least {bound} needed; {why}"
    return Choice(tuple(twins.expand(s) for s in sets), bound, proved, status)
