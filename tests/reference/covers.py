"""Smallest covers by exhaustion: slow, obvious, and without any of the package's code."""

from collections.abc import Collection, Iterable
from itertools import combinations

Set = frozenset[int]


def subsets_of(family: Iterable[Set]) -> list[Set]:
    """Every non-empty subset of a set of the family, smaller first."""
    found = {
        frozenset(part)
        for whole in family
        for k in range(1, len(whole) + 1)
        for part in combinations(sorted(whole), k)
    }
    return sorted(found, key=lambda part: (len(part), sorted(part)))


def covers(family: Iterable[Set], members: Collection[Set]) -> bool:
    """Whether every non-empty set of the family is a member or the union of two members."""
    unions = {a | b for a in members for b in members}
    return all(whole in unions for whole in family if whole)


def optimum(
    family: Iterable[Set], columns: Iterable[Set] | None = None, given: Iterable[Set] = ()
) -> int:
    """The size of the smallest cover from `columns` (default: every subset) that contains `given`.

    Depth first: some set is not covered; it must be covered by one more column or by two. Deepens
    one by one."""
    family = [whole for whole in set(family) if whole]
    space = set(subsets_of(family) if columns is None else columns)
    given = frozenset(given)
    size = len(given)
    while not _within(family, space, given, size):
        size += 1
        assert size <= len(given) + len(space), "no cover in this space"
    return size


def _within(family: list[Set], space: set[Set], members: frozenset[Set], size: int) -> bool:
    unions = {a | b for a in members for b in members}
    open_sets = [whole for whole in family if whole not in unions]
    if not open_sets:
        return True
    if len(members) >= size:
        return False
    return any(
        _within(family, space, members | way, size)
        for way in _ways(open_sets[0], space, members)
        if len(members | way) <= size
    )


def _ways(whole: Set, space: set[Set], members: frozenset[Set]) -> list[frozenset[Set]]:
    inside = sorted((part for part in space if part <= whole), key=sorted)
    single = [frozenset({a}) for a in inside if a == whole or any(a | b == whole for b in members)]
    double = [frozenset({a, b}) for a, b in combinations(inside, 2) if a | b == whole]
    return single + double
