"""`ChildSearch`: the sets of one child, of any size, as words of bits; a kernel finds them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import Floats, Ints, SmallInts, Words
from ..foundation.families import VertexSet
from ..foundation.jit import inner
from .scanning import Block

DONE, PAUSED, FULL = range(3)  # how a kernel ends
DEPTH, FOUND, VISITED = range(3)  # places in the state of a walk
_ROOM = 256  # sets that there is room for at first


class Sets(NamedTuple):
    """The sets that were found: bit k is the k-th variable of the search."""

    masks: Words  # (room, words)
    scores: Floats  # (room,)


class KnownSets(NamedTuple):
    """All candidate sets of a child of at most `most` parents."""

    n: int  # variables
    child: int
    most: int
    required: VertexSet
    sets: Sequence[VertexSet]
    scores: Floats

    @property
    def base(self) -> float:
        """Score of the required parents alone: of the smallest set, which comes last."""
        return float(self.scores[-1])


class ChildSearch:
    """The search for the larger sets of one child; `done` once there are no more.

    `kernel(problem, walk, sets, budget)` continues it; `walk.state` and `walk.masks` are its
    memory. The variable at place k of the `order` is bit k of a set; required parents are none."""

    def __init__(
        self, kernel: Callable[..., int], problem: Any, walk: Any, known: KnownSets, order: Ints
    ) -> None:
        self.child = known.child
        self.done = False
        self._kernel = kernel
        self._problem = problem
        self._walk = walk
        self._known = known
        self._order = order
        self._sets = self._known_masks()
        walk.state[FOUND] = len(known.sets)

    def _known_masks(self) -> Sets:
        """Return the known sets as words, with room for more."""
        known = self._known
        place = {variable: bit for bit, variable in enumerate(self._order.tolist())}
        optional = place.keys() - set(known.required)
        inside = np.zeros((len(known.sets) + _ROOM, self._walk.masks.shape[1] * 64), np.bool_)
        for row, members in zip(inside, known.sets, strict=False):
            row[[place[member] for member in members if member in optional]] = True
        masks = np.packbits(inside, axis=1, bitorder="little").view(np.uint64)
        return Sets(masks, np.concatenate([known.scores, np.zeros(_ROOM)]))

    @property
    def visited(self) -> int:
        """Number of sets that were scored."""
        return int(self._walk.state[VISITED])

    def advance(self, budget: int) -> None:
        """Visit about this number of further sets."""
        end = self.visited + budget
        while not self.done:
            left = max(end - self.visited, 0)
            ending = self._kernel(self._problem, self._walk, self._sets, left)
            self.done = ending == DONE
            if ending == PAUSED:
                return
            if ending == FULL:
                masks, scores = self._sets
                self._sets = Sets(
                    np.concatenate([masks, np.zeros_like(masks)]),
                    np.concatenate([scores, np.zeros_like(scores)]),
                )

    def blocks(self) -> list[Block]:
        """Return the sets that were found, by size."""
        first, end = len(self._known.sets), int(self._walk.state[FOUND])
        masks, scores = self._sets.masks[first:end], self._sets.scores[first:end]
        bits = np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little")
        inside = np.zeros((len(masks), self._known.n), np.bool_)
        inside[:, self._order] = bits[:, : len(self._order)]
        inside[:, list(self._known.required)] = True
        sizes = inside.sum(axis=1)
        found = []
        for size in np.unique(sizes).tolist():
            which = np.flatnonzero(sizes == size)
            members = np.nonzero(inside[which])[1].reshape(len(which), size)
            children = np.full((len(which), 1), self.child)
            families: SmallInts = np.hstack([children, members]).astype(np.int32)
            found.append(Block(families, scores[which]))
        return found


def words_of(n: int) -> int:
    """Return the number of words for sets of n variables."""
    return -(-n // 64)


@inner
def copy_words(source: Any, target: Any) -> None:
    """Copy a set."""
    for word in range(len(source)):
        target[word] = source[word]


@inner
def include(member: int, mask: Any) -> None:
    """Add a member to the set."""
    mask[member >> 6] |= np.uint64(1) << np.uint64(member & 63)


@inner
def best_inside(mask: Any, least: float, sets: Sets, found: int) -> float:
    """Return the best score of a known set inside this one, or `least` if that is more."""
    best = least
    for other in range(found):
        if sets.scores[other] > best and _contains(mask, sets.masks[other]):
            best = sets.scores[other]
    return best


@inner
def _contains(larger: Any, smaller: Any) -> bool:
    """Return whether the one set contains the other."""
    for word in range(len(larger)):  # noqa: SIM110 - numba has no generators
        if smaller[word] & ~larger[word] != 0:
            return False
    return True


@inner
def keep(mask: Any, score: float, sets: Sets, state: Ints) -> None:
    """Append a set; there must be room for it."""
    copy_words(mask, sets.masks[state[FOUND]])
    sets.scores[state[FOUND]] = score
    state[FOUND] += 1
