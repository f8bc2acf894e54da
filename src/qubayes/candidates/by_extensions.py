"""All candidate sets of a child by any engine: every set is one smaller set and a larger member.

The sets of one size stand in colexicographic order: by their largest member, then by the rest. So
the sets whose largest member is the v-th possible parent stand together, and the set Q + {x} with
x beyond all members of Q has the place C(x, size) + place of Q."""

from itertools import combinations
from math import comb

import numpy as np

from ..foundation.arrays import Floats, Ints, SmallInts
from ..foundation.families import VertexSet
from ..scores.engine import Engine
from .candidates import tolerance
from .knowledge import Allowed
from .scanning import Block

FAMILY_SECONDS = 3e-9  # for a family and a row
_SETS_AT_ONCE = 1024


def families_of(n: int, most: int) -> int:
    """Return how many parent sets of at most this size n variables have in all."""
    return n * sum(comb(n - 1, size) for size in range(most + 1))


def bytes_of_child(n: int, most: int) -> int:
    """Return the bytes that the sets of this size of one child take."""
    return 8 * (3 * most + 4) * comb(n - 1, most)


def blocks_of_child(shared: tuple[Engine, Allowed], child: int) -> list[Block]:
    """Return the candidate sets of one child, among all sets that are allowed."""
    engine, allowed = shared
    required = allowed.required[child]
    pool = np.array(allowed.allowed[child], np.int64)
    most = min(allowed.limits[child] - len(required), len(pool))
    priors = allowed.prior_of(child)
    base = np.array([required], np.int32).reshape(1, -1)
    alone = engine.extensions(child, base, pool[:0])[0, -1] + priors[list(required)].sum()
    margin = tolerance(float(alone), engine.rows)
    found = [_block(child, base, np.array([alone]))]
    best = np.array([alone])  # of each set of the size before: its score, or a subset's if better
    for size in range(1, most + 1):
        scores = _scores(engine, child, required, pool, size)
        places = _subsets(len(pool), size)
        sets = pool[_members(len(pool), size)]
        scores += priors[list(required)].sum() + priors[sets].sum(axis=1)
        of_subsets = best[places].max(axis=1)
        kept = scores > of_subsets + margin
        found.append(_block(child, np.sort(_with(required, sets[kept]), axis=1), scores[kept]))
        best = np.maximum(scores, of_subsets)
    return found


def _with(required: VertexSet, sets: Ints) -> SmallInts:
    """Return (sets, members) the sets with the required parents."""
    more = np.tile(np.array(required, np.int32), (len(sets), 1))
    return np.concatenate([more, sets.astype(np.int32)], axis=1)


def _block(child: int, parents: SmallInts, scores: Floats) -> Block:
    """Return sets of one child as a block."""
    children = np.full((len(parents), 1), child)
    return Block(np.concatenate([children, parents], axis=1).astype(np.int32), scores)


def _members(n: int, size: int) -> Ints:
    """(sets, size) ascending places of the members of all sets of n, in colexicographic order."""
    sets = np.array([*combinations(range(n - 1, -1, -1), size)], np.int64).reshape(
        comb(n, size), size
    )
    return sets[::-1, ::-1]


def _subsets(n: int, size: int) -> Ints:
    """(sets, size) places of the subsets that lack one member, among the sets of one less."""
    members = _members(n, size)
    binomials = np.array([[comb(v, s) for s in range(size + 1)] for v in range(n + 1)])
    found = np.zeros_like(members)
    for left_out in range(size):
        rest = np.delete(members, left_out, axis=1)
        for place in range(size - 1):
            found[:, left_out] += binomials[rest[:, place], place + 1]
    return found


def _scores(engine: Engine, child: int, required: VertexSet, pool: Ints, size: int) -> Floats:
    """Return the scores of all sets of this size with the required parents."""
    n = len(pool)
    smaller = _members(n, size - 1)
    largest = smaller[:, -1] if size > 1 else np.array([-1])
    first_places = np.array([comb(x, size) for x in range(n)])
    scores = np.empty(comb(n, size))
    for member in range(size - 2, n - 1):
        others = np.arange(member + 1, n)
        all_places = np.flatnonzero(largest == member)
        for start in range(0, len(all_places), _SETS_AT_ONCE):
            places = all_places[start : start + _SETS_AT_ONCE]
            sets = _with(required, pool[smaller[places]])
            found = engine.extensions(child, sets, pool[others])
            scores[first_places[others] + places[:, None]] = found[:, :-1]
    return scores
