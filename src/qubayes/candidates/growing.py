"""`Growing`: parent sets grown by one parent at a time from promising sets, by any score engine.

Each child has a *pool* of at most 63 possible parents, so that a set is one word of 64 bits. A set
is kept if it scores more than every known subset. Sets grow in three ways:

- `beam`: from the set without optional parents, with the best few sets of each size;
- `around`: the sets of a network with one parent more or less;
- `find_partners`: variables outside the pool that score well beside the members of some set, which
  also finds parents that matter only together.

Nothing here proves that no set was missed. Only numbers from an `Engine` are used, so this works
for every kind of data."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints, SmallInts, Words
from ..foundation.families import VertexSet
from ..foundation.jit import inner, kernel
from ..foundation.words import popcount, slot_of, table_slots
from ..foundation.workers import Workers, run
from ..scores.engine import Engine
from .candidates import Candidates, Stamp, in_order, tolerance
from .knowledge import Allowed
from .prune import with_order

MOST_POSSIBLE = 63  # possible parents of a child: a set of them is a positive number of 64 bits
JOINING_PARTNERS = 2  # partners of a set that join the pool
_CHILDREN = 16  # of a task
_LEAST_FOR_CLUSTER = 10_000_000  # cells of the table: tasks of fewer are done here sooner than sent
_ROOM = 64  # sets of a child that there is room for at first
_NOTHING = np.zeros(1, np.uint64)  # the set without optional parents
_ONE = np.uint64(1)


def never() -> bool:
    """Return False: nothing asks for a stop."""
    return False


@dataclass
class GrownSets:
    """The known parent sets of one child, as words: bit k is the k-th variable of the pool."""

    child: int
    required: VertexSet  # parents that every set has beside those of its word
    most: int  # parents beside the required ones
    barred: VertexSet  # the child, required and excluded parents: not optional
    priors: Floats | None  # (n,) what the edge from each variable adds to the score, if anything
    pool: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    margin: float = 0.0  # by which a set must beat its subsets
    masks: Words = field(default_factory=lambda: np.zeros(_ROOM, np.uint64))
    scores: Floats = field(default_factory=lambda: np.zeros(_ROOM))
    count: int = 0

    def members(self, mask: int) -> list[int]:
        """Return the optional parents of a set."""
        return [int(self.pool[place]) for place in _places(mask)]

    def mask_of(self, parents: Sequence[int]) -> int:
        """Return the set of these parents, without those that are not in the pool."""
        found = np.flatnonzero(np.isin(self.pool, parents))
        return sum(1 << int(place) for place in found)

    def scan(self, engine: Engine, masks: Words, others: Ints | None) -> Floats:
        """Return (masks, others + 1) scores with one more parent; the last column is the set alone.

        `others` are all variables where it is None."""
        lists = [[*self.required, *self.members(mask)] for mask in masks.tolist()]
        sets = np.full((len(lists), max(map(len, lists))), -1, np.int32)
        for row, its in zip(sets, lists, strict=True):
            row[: len(its)] = its
        found = engine.extensions(self.child, sets, others)
        if self.priors is not None:
            of_sets = np.array([self.priors[its].sum() for its in lists])
            found = found + of_sets[:, None]
            found[:, :-1] += self.priors if others is None else self.priors[others]
        return found

    def add(self, level: Words, found: Floats, width: int) -> Words:
        """Keep the sets that beat all known subsets; return the `width` best ones to extend.

        `found` are the scores of `level` with one more parent, as `scan` returns them."""
        table = np.zeros(table_slots(found.size), np.int64)
        following = np.zeros(width, np.uint64)
        best = np.full(width, -np.inf)
        while True:
            known = self.masks, self.scores
            self.count, full = _add_sets(
                level, found, self.most, self.margin, *known, self.count, table, following, best
            )
            if not full:
                return following[best > -np.inf]
            self.masks = np.concatenate([self.masks, np.zeros_like(self.masks)])
            self.scores = np.concatenate([self.scores, np.zeros_like(self.scores)])
            table[:] = 0
            best[:] = -np.inf

    def widen(
        self, variables: Sequence[int], kept: Sequence[int] = (), leaving: int = MOST_POSSIBLE
    ) -> None:
        """Put these variables into the pool; a full one loses others, but none of those `kept`.

        It loses those that no known set has, and then at most `leaving` others: those whose best
        set scores least, with all sets that have them."""
        room = MOST_POSSIBLE - len(self.pool)
        self.pool = np.concatenate([self.pool, np.array(variables[:room], np.int64)])
        more = variables[room:]
        if not len(more):
            return
        values = self._values()
        values[np.isin(self.pool, [*kept, *variables])] = np.inf
        places = np.lexsort((-np.arange(len(values)), values))[: len(more)]
        places = places[values[places] < np.inf]
        unused = int((values == -np.inf).sum())
        places = places[: unused + leaving]
        lost = np.bitwise_or.reduce(_ONE << places.astype(np.uint64), initial=np.uint64(0))
        left = np.flatnonzero(self.masks[: self.count] & lost == 0)
        self.count = len(left)
        self.masks[: self.count] = self.masks[left]
        self.scores[: self.count] = self.scores[left]
        self.pool[places] = more[: len(places)]

    def _values(self) -> Floats:
        """Return the score of the best known set with each variable of the pool."""
        masks, scores = self.masks[: self.count], self.scores[: self.count]
        places = np.arange(len(self.pool), dtype=np.uint64)
        has = (masks >> places[:, None] & _ONE).astype(np.bool_)
        best: Floats = np.where(has, scores, -np.inf).max(axis=1, initial=-np.inf)
        return best


class Growing:
    """Parent sets of all children of a table, grown by the `workers`.

    Partners from outside a full pool take the places of at most `leaving` variables that known sets
    have.

    `stop` is asked between children, and between sizes of sets: once it returns True, the children
    that are left keep the sets that they have. Steps return whether all children are done; one that
    was stopped goes on with the children that were left. Nothing grows once `most_sets` are known.
    `on_done` is called after each block."""

    def __init__(
        self,
        engine: Engine,
        allowed: Allowed,
        *,
        seed: int = 0,
        workers: Workers | None = None,
        leaving: int = 0,
        stop: Callable[[], bool] = never,
        most_sets: float = np.inf,
        on_done: Callable[[], None] = lambda: None,
    ) -> None:
        self.engine = engine
        self._leaving = leaving
        self.workers = workers or Workers()
        if engine.n * engine.rows < _LEAST_FOR_CLUSTER:
            self.workers = self.workers.here
        self.stop = stop
        self._most_sets = most_sets
        self._on_done = on_done
        self._begins: dict[Callable[..., None], int] = {}  # the children left of a step
        # Columns are looked at in a random order, so that ties do not depend on theirs.
        self._shuffled = np.random.default_rng(seed).permutation(engine.n)
        self._before = allowed.before
        self.children = [_without_sets(child, allowed) for child in range(engine.n)]
        self._counts = np.zeros(engine.n, np.int64)  # known sets of each child

    @property
    def total(self) -> int:
        """Number of known sets."""
        return int(self._counts.sum())

    @property
    def full(self) -> bool:
        """Whether there is no memory for more sets."""
        return self.total >= self._most_sets

    def start(self) -> bool:
        """Choose the pools by the scores of all pairs; keep sets of at most one optional parent.

        Children that `stop` leaves have no pool, and only the set without optional parents, until
        another call."""
        finished = self._each(_start, (self._shuffled,))
        for its in self.children:
            if not its.count:
                its.add(_NOTHING, its.scan(self.engine, _NOTHING, its.pool), 1)
                self._counts[its.child] = its.count
        return finished

    def include(self, parents: Sequence[Sequence[int]]) -> None:
        """Make the sets of a network known, as far as they are allowed, and their neighbours.

        This does not ask `stop`: a network that is given is not to be lost."""
        for its, given in zip(self.children, parents, strict=True):
            optional = [v for v in given if v not in its.barred]
            its.widen([v for v in optional if v not in its.pool], optional)
        self._each(_around, (parents,), stops=False)

    def beam(self, width: int, patience: int = 1) -> bool:
        """Add parents one by one, with the best `width` sets of each size.

        It ends after `patience` sizes beyond single parents that bring no new set."""
        return self._each(_beam, (width, patience))

    def around(self, parents: Sequence[Sequence[int]]) -> bool:
        """Score the neighbours of a network's sets: one parent more, less, or another one."""
        return self._each(_around, (parents,))

    def find_partners(self, parents: Sequence[Sequence[int]], singles: int) -> bool:
        """Search all variables for partners of a network's sets and of the best single parents."""
        return self._each(_find_partners, (parents, singles, self._leaving))

    def candidates(self, names: tuple[str, ...], stamp: Stamp) -> Candidates:
        """Return the known sets that beat all known subsets."""
        parts = [_flat(its) for its in self.children]
        owners = [np.full(len(sizes), child) for child, (sizes, _, _) in enumerate(parts)]
        sizes, members, scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        found = in_order(names, np.concatenate(owners), sizes, members, scores, stamp)
        return with_order(found, self._before)

    def _each(
        self, task: Callable[..., None], details: tuple[Any, ...], *, stops: bool = True
    ) -> bool:
        """Do a task for each child, in blocks; return whether all are done."""
        begin = self._begins.pop(task, 0)
        firsts = range(begin, len(self.children), _CHILDREN)
        blocks = [self.children[first : first + _CHILDREN] for first in firsts]
        # A function that asks for a stop is not sent to other processes.
        stop = self.stop if stops and self.workers.cluster is None else never
        done = np.zeros(len(self.children), np.bool_)
        done[:begin] = True
        finished = run(_grow, (self.engine, task, details, stop), blocks, self.workers)
        for block, grown in finished:
            first = begin + block * _CHILDREN
            self.children[first : first + len(grown)] = grown
            self._counts[first : first + len(grown)] = [its.count for its in grown]
            done[first : first + len(grown)] = True
            self._on_done()
            if stops and (self.stop() or self.full):
                finished.close()
                break
        if not done.all():
            self._begins[task] = int(np.argmin(done))
        return bool(done.all())


def _without_sets(child: int, allowed: Allowed) -> GrownSets:
    """Return what is known of a child before anything is scored."""
    required = allowed.required[child]
    barred = tuple({child, *allowed.excluded[child], *required})
    most = allowed.limits[child] - len(required)
    priors = allowed.prior_of(child) if allowed.priors else None
    return GrownSets(child, required, most, barred, priors)


def _grow(
    shared: tuple[Engine, Callable[..., None], tuple[Any, ...], Callable[[], bool]],
    block: list[GrownSets],
) -> list[GrownSets]:
    """Do a task for the children of a block, one at least; return those that are done."""
    engine, task, details, stop = shared
    for number, its in enumerate(block):
        if number and stop():
            return block[:number]
        task(its, engine, stop, *details)
    return block


def _start(its: GrownSets, engine: Engine, stop: Callable[[], bool], shuffled: Ints) -> None:
    """Choose the pool: the best single parents, beside the required ones and those it has."""
    if its.required:
        found = its.scan(engine, _NOTHING, None)
    else:
        pairs = engine.pairs(np.array([its.child]))[0]
        alone = pairs[its.child]
        if its.priors is not None:
            pairs = pairs + its.priors
        found = np.append(pairs, alone)[None]
    scores = found[0, :-1].copy()
    scores[list(its.barred)] = -np.inf
    scores = scores[shuffled]
    size = min(MOST_POSSIBLE, int((scores > -np.inf).sum()))
    ranked = np.argpartition(-scores, max(size - 1, 0))[:size] if len(scores) else shuffled[:0]
    ranked = ranked[np.argsort(-scores[ranked], kind="stable")]
    others = shuffled[ranked]
    others = others[~np.isin(others, its.pool)]  # places of the first ones stay: sets refer to them
    its.pool = np.concatenate([its.pool, others])[:MOST_POSSIBLE]
    its.margin = tolerance(float(found[0, -1]), engine.rows)
    its.add(_NOTHING, found[:, [*its.pool, -1]], 1)


def _beam(
    its: GrownSets, engine: Engine, stop: Callable[[], bool], width: int, patience: int
) -> None:
    """Add parents one by one, with the best sets of each size, until a stop is asked for."""
    level = _NOTHING
    barren = 0
    for size in range(min(its.most, len(its.pool))):
        before = its.count
        found = its.scan(engine, level, its.pool)
        level = its.add(level, found, width if size else 2 * width)
        if size and its.count == before:
            barren += 1
        if not len(level) or barren == patience or stop():
            return


def _around(
    its: GrownSets, engine: Engine, stop: Callable[[], bool], parents: Sequence[Sequence[int]]
) -> None:
    """Score the set of a network, and this set without one of its members, each with one more."""
    mask = its.mask_of(parents[its.child])
    masks = np.array([mask, *_smaller(mask)], np.uint64)
    its.add(masks, its.scan(engine, masks, its.pool), 1)


def _find_partners(
    its: GrownSets,
    engine: Engine,
    stop: Callable[[], bool],
    parents: Sequence[Sequence[int]],
    singles: int,
    leaving: int,
) -> None:
    """Put into the pool the variables that add most to some set."""
    mask = its.mask_of(parents[its.child])
    alone = [1 << place for place in range(min(singles, len(its.pool)))]
    masks = np.array(list(dict.fromkeys([mask, *_smaller(mask), *alone])), np.uint64)
    masks = masks[np.bitwise_count(masks) < its.most]
    if not len(masks):
        return
    found = its.scan(engine, masks, None)
    gains = found[:, :-1] - found[:, -1:]
    gains[:, list(its.barred)] = -np.inf
    gains[:, its.pool] = -np.inf
    best = np.argsort(-gains, axis=1)[:, :JOINING_PARTNERS]
    values = np.take_along_axis(gains, best, axis=1)
    order = np.argsort(-values, axis=None)
    promising = best.reshape(-1)[order][values.reshape(-1)[order] > its.margin]
    its.widen(list(dict.fromkeys(promising.tolist())), parents[its.child], leaving)


def _flat(its: GrownSets) -> tuple[Ints, SmallInts, Floats]:
    """Return (sizes, members, scores) of the sets that beat all known subsets."""
    masks, scores = its.masks[: its.count], its.scores[: its.count]
    kept = np.zeros(its.count, np.bool_)
    _mark_best(masks, scores, its.margin, kept)
    masks = masks[kept]
    bits = masks[:, None] >> np.arange(len(its.pool), dtype=np.uint64) & _ONE
    rows, places = np.nonzero(bits)
    numbers = np.concatenate([rows, np.repeat(np.arange(len(masks)), len(its.required))])
    required = np.tile(np.array(its.required, np.int64), len(masks))
    members = np.concatenate([its.pool[places], required])
    order = np.lexsort((members, numbers))
    sizes = np.bincount(numbers, minlength=len(masks)).astype(np.int64)
    return sizes, members[order].astype(np.int32), scores[kept]


def _places(mask: int) -> Iterator[int]:
    """Yield the places of the ones in a word."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _smaller(mask: int) -> list[int]:
    """Return the sets that lack one member of a set."""
    return [mask & ~(1 << place) for place in _places(mask)]


@kernel
def _add_sets(
    level: Words,
    found: Floats,
    most: int,
    margin: float,
    masks: Words,
    scores: Floats,
    count: int,
    table: Ints,
    following: Words,
    best: Floats,
) -> tuple[int, bool]:
    """Append the sets that beat every known subset; return how many there are, and "no room left".

    The best sets of one parent more go to `following`, best first. `table` is an empty hash
    table."""
    pool = found.shape[1] - 1
    for row in range(len(level)):
        base = found[row, pool]
        if _beats(level[row], base, margin, masks, scores, count):
            if count == len(masks):
                return count, True
            masks[count] = level[row]
            scores[count] = base
            count += 1
        if popcount(level[row]) >= most:
            continue
        for place in range(pool):
            larger = level[row] | np.uint64(1) << np.uint64(place)
            score = found[row, place]
            if larger == level[row] or score == -np.inf:
                continue
            slot = slot_of(table, np.int64(larger))
            if table[slot] != 0:
                continue
            table[slot] = np.int64(larger)
            _insert(larger, score, following, best)
            if score > base + margin and _beats(larger, score, margin, masks, scores, count):
                if count == len(masks):
                    return count, True
                masks[count] = larger
                scores[count] = score
                count += 1
    return count, False


@inner
def _beats(
    mask: int, score: float, margin: float, masks: Words, scores: Floats, count: int
) -> bool:
    """Return whether the set scores more than every known subset, itself included."""
    for other in range(count):
        inside = masks[other] & ~mask == 0
        if inside and scores[other] >= score - margin:
            return False
    return True


@inner
def _insert(mask: int, score: float, following: Words, best: Floats) -> None:
    """Put the set into the list of the best ones, if it belongs there."""
    place = len(best) - 1
    if not score > best[place]:
        return
    while place > 0 and best[place - 1] < score:
        best[place] = best[place - 1]
        following[place] = following[place - 1]
        place -= 1
    best[place] = score
    following[place] = mask


@kernel
def _mark_best(masks: Words, scores: Floats, margin: float, kept: Bools) -> None:
    """Set whether each set beats all of its known subsets."""
    for which in range(len(masks)):
        kept[which] = True
        for other in range(len(masks)):
            inside = other != which and masks[other] & ~masks[which] == 0
            if inside and scores[other] >= scores[which] - margin:
                kept[which] = False
                break
