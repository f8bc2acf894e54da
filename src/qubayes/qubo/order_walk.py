"""Annealing of the order bits alone, the other variables of the QUBO minimised out.

For given order bits r the least energy over u and z is known: each vertex has the best candidate
set that r allows. A move flips one order bit, or moves a vertex past all others up to a chosen one.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts, Words
from ..foundation.graph import topological_order
from ..foundation.jit import inlined, inner, kernel
from ..foundation.random import below, uniform
from .gains import RelativeSets
from .order_bits import OrderBits
from .penalties import MARGIN, order_bounds

LAST_TEMPERATURE = 0.2
WALK_TEMPERATURES = 400
DESCENTS = 20  # further steps at temperature 0, which leave no penalty that a flip can avoid
FLIPS_PER_MOVE = 5  # of a vertex, times the triangles of a pair: the same time for both
LEAST_IMPROVEMENT = 1e-9  # of the energy, for a sample to be kept as the best
AROUND = np.array([True, True, False])  # a -> b -> c -> a; all pairs are written ascending
Pair = tuple[int, int]


class _SetMasks(NamedTuple):
    """Candidate sets, best first, as bit sets of possible parents, which are numbered as edges."""

    masks: Words  # (sets, words)
    gains: Floats  # (sets,)
    first: Ints  # (n + 1,) edges of each vertex
    begin: Ints  # (edges + 1,) into holders
    holders: Ints  # sets that hold the parent of the edge, best first


class _Pairs(NamedTuple):
    """Pairs with order bits, and the triangles of each."""

    ends: Ints  # (p, 2)
    edges: Ints  # (p, 2) from the second to the first, and the other way; -1: impossible
    movable: Ints  # pairs that no required edge fixes
    fixed: Bools  # (p,) whether a required edge fixes the pair
    begin: Ints  # (p + 1,) triangles of each pair
    sides: SmallInts  # (3 t, 2) the two other pairs
    senses: Bools  # (3 t, 3) of the pair and the two others, around the triangle
    deltas: Floats  # (3 t,)


class WalkState(NamedTuple):
    """State of a walk."""

    r: Bools  # (p,)
    fields: Floats  # (p,) change of the penalties on triangles when the bit flips
    allowed: Words  # (n, words) possible parents that r allows
    choice: Ints  # (n,) the best allowed set
    best: Bools  # (p,) the order bits of least energy
    energies: Floats  # (2,) now, and the least, relative to the start
    flipped: Ints  # (p,) room for the pairs that the move of a vertex flips


class OrderBitWalk:
    """Annealing of the energy over its order bits, u and z minimised out."""

    def __init__(self, relative: RelativeSets, order: OrderBits) -> None:
        self.relative, self.order = relative, order
        self.deltas = MARGIN * order_bounds(relative, order)[2]
        most_parents = int(np.diff(relative.parents.start).max(initial=0))
        self._words = max(1, -(-most_parents // 64))
        self._sets = _set_masks(relative, self._words)
        self._pairs = _pairs_of(relative, order, self.deltas)

    def order_of(self, choice: Ints, directions: dict[Pair, bool]) -> Bools:
        """Return the order bits by `directions`, and by an order of the DAG for other pairs."""
        place = np.argsort(topological_order(self.relative.candidates.families.sets_at(choice)))
        ascending = place[self.order.pairs[:, 0]] < place[self.order.pairs[:, 1]]
        pairs = zip(self.order.pairs.tolist(), ascending.tolist(), strict=True)
        return np.array([directions.get((a, b), now) for (a, b), now in pairs], dtype=np.bool_)

    def directions(self, r: Bools) -> dict[Pair, bool]:
        """Return the order bits by pair."""
        return {(a, b): bool(bit) for (a, b), bit in zip(self.order.pairs.tolist(), r, strict=True)}

    def choice_of(self, r: Bools) -> Ints:
        """Return the best candidate set of each vertex that r allows."""
        parents, required = self.relative.parents, self.relative.required
        n = self.relative.candidates.n
        inside = np.zeros((n, n), np.bool_)
        free = self.order.allows(r, parents)
        inside[parents.children[free], parents.vertices[free]] = True
        inside[required.children, required.vertices] = True
        return self.relative.candidates.families.best_inside(inside)

    def energy_of(self, r: Bools) -> float:
        """Return the least energy of the relaxed QUBO for these order bits."""
        penalties = self.deltas[self.order.cyclic(r)].sum()
        return float(penalties - self.relative.candidates.scores[self.choice_of(r)].sum())

    def anneal(
        self, r: Bools, sweeps: int, hot: float, stream: Words, deadline: float = np.inf
    ) -> Bools:
        """Return the order bits of least energy of a walk from r at the temperature `hot`."""
        if not len(self._pairs.movable):
            return r
        state = self.start(r)
        flips, vertex_moves = self._tries(sweeps)
        cooling = np.geomspace(hot, LAST_TEMPERATURE, WALK_TEMPERATURES).tolist()
        for temperature in (*cooling, *[0.0] * DESCENTS):
            self.step(state, temperature, flips, stream)
            self.move_vertices(state, temperature, vertex_moves, stream)
            if time.monotonic() > deadline:
                break
        return state.best

    def _tries(self, sweeps: int) -> tuple[int, int]:
        """Return the numbers of flips and of moves of vertices at one temperature of a walk."""
        pairs = len(self.order.pairs)
        flips = max(1, sweeps * len(self._pairs.movable) // WALK_TEMPERATURES)
        work = FLIPS_PER_MOVE * (pairs + 3 * len(self.order.triangles))
        return flips, 1 + flips * pairs // work

    def moves_of(self, sweeps: int) -> int:
        """Return the number of flips and moves of vertices in a walk of these sweeps."""
        if not len(self._pairs.movable):
            return 0
        return (WALK_TEMPERATURES + DESCENTS) * sum(self._tries(sweeps))

    def start(self, r: Bools) -> WalkState:
        """Return the state of a walk that starts from these order bits."""
        parents = self.relative.parents
        free = self.order.allows(r, parents)
        number = np.arange(len(free)) - parents.start[parents.children]
        n = self.relative.candidates.n
        return WalkState(
            r=r.copy(),
            fields=self._fields(r),
            allowed=_bit_sets(n, self._words, parents.children[free], number[free]),
            choice=self.choice_of(r),
            best=r.copy(),
            energies=np.zeros(2),
            flipped=np.zeros(len(r), np.int64),
        )

    def _fields(self, r: Bools) -> Floats:
        """Return (p,) the change of the penalties on triangles when each order bit flips."""
        fields = np.zeros(len(r))
        sense = r[self.order.triangles] == AROUND
        for side, other, third in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            same = np.where(sense[:, side] == sense[:, other], -self.deltas, self.deltas)
            change = (sense[:, other] == sense[:, third]) * same
            np.add.at(fields, self.order.triangles[:, side], change)
        return fields

    def step(self, state: WalkState, temperature: float, tries: int, stream: Words) -> None:
        """Try flips at one temperature; note the state if its energy is the least so far."""
        _flip_bits(self._sets, self._pairs, state, temperature, tries, stream)

    def move_vertices(
        self, state: WalkState, temperature: float, tries: int, stream: Words
    ) -> None:
        """Try moves of a vertex; note the state if its energy is the least so far."""
        _move_vertices(self._sets, self._pairs, state, temperature, tries, stream)


def _set_masks(relative: RelativeSets, words: int) -> _SetMasks:
    """Return the candidate sets of all vertices for the kernels."""
    sets = relative.candidate_sets
    number = sets.sets_of_members.astype(np.int64)
    edges = relative.edges_in(sets)
    return _SetMasks(
        masks=_bit_sets(len(relative.gains), words, number, sets.members - 1),
        gains=relative.gains,
        first=np.asarray(relative.parents.start),
        begin=_offsets(edges, len(relative.parents.vertices)),
        holders=number[np.argsort(edges, kind="stable")],
    )


def _pairs_of(relative: RelativeSets, order: OrderBits, deltas: Floats) -> _Pairs:
    """Return the pairs and their triangles for the kernels; `deltas` are penalties of triangles."""
    bits, parent_first = order.of_edges(relative.parents)
    here = np.flatnonzero(bits >= 0)
    edges = np.full((len(order.pairs), 2), -1)
    edges[bits[here], parent_first[here].astype(np.int64)] = here
    bound, _ = order.of_edges(relative.required)
    fixed = np.zeros(len(edges), np.bool_)
    fixed[bound[bound >= 0]] = True
    turns = ([0, 1, 2], [1, 2, 0], [2, 0, 1])  # each side with the two others
    sides = np.concatenate([order.triangles[:, turn] for turn in turns])
    senses = np.repeat([AROUND[turn] for turn in turns], len(order.triangles), axis=0)
    rank = np.argsort(sides[:, 0], kind="stable")
    return _Pairs(
        ends=order.pairs.astype(np.int64),
        edges=edges,
        movable=np.flatnonzero(~fixed),
        fixed=fixed,
        begin=_offsets(sides[:, 0], len(edges)),
        sides=np.ascontiguousarray(sides[rank, 1:]),
        senses=senses[rank],
        deltas=np.tile(deltas, 3)[rank],
    )


def _offsets(values: AnyArray, n: int) -> Ints:
    """Return (n + 1,) where each of 0 .. n - 1 begins when the values are sorted."""
    return np.concatenate([[0], np.cumsum(np.bincount(values, minlength=n))])


def _bit_sets(rows: int, words: int, owners: Ints, members: AnyArray) -> Words:
    """Return (rows, words): bit `member` of the row `owner` is 1."""
    sets = np.zeros((rows, words), np.uint64)
    np.bitwise_or.at(sets, (owners, members >> 6), np.uint64(1) << (members & 63).astype(np.uint64))
    return sets


@inner
def _flip(row: Words, member: int) -> None:
    row[member >> 6] ^= np.uint64(1) << np.uint64(member & 63)


@inner
def _fits(mask: Words, allowed: Words) -> Any:
    misses = np.uint64(0)
    for w in range(len(allowed)):
        misses |= mask[w] & ~allowed[w]
    return misses == np.uint64(0)


@inlined
def _best_with(edge: int, chosen: int, least: float, allowed: Words, sets: _SetMasks) -> Any:
    """Return the best allowed set with the edge's parent that gains `least` or more.

    The chosen one if that is better.
    """
    for h in range(sets.begin[edge], sets.begin[edge + 1]):
        number = sets.holders[h]
        if sets.gains[number] < least or number >= chosen:
            break
        if _fits(sets.masks[number], allowed):
            return number
    return chosen


@inlined
def _best_without(chosen: int, allowed: Words, sets: _SetMasks) -> Any:
    """Return the best allowed set that is the chosen one or worse."""
    while not _fits(sets.masks[chosen], allowed):  # the base always fits
        chosen += 1
    return chosen


@inner
def _turn_pair(p: int, pairs: _Pairs, state: WalkState) -> None:
    """Flip the order bit p, and update the fields of the pairs that share a triangle with it."""
    r, fields = state.r, state.fields
    for e in range(pairs.begin[p], pairs.begin[p + 1]):
        q, s = pairs.sides[e, 0], pairs.sides[e, 1]
        own = r[p] == pairs.senses[e, 0]
        first = r[q] == pairs.senses[e, 1]
        second = r[s] == pairs.senses[e, 2]
        delta = -pairs.deltas[e] if first == second else pairs.deltas[e]
        fields[q] += -delta if own == second else delta
        fields[s] += -delta if own == first else delta
    fields[p] = -fields[p]
    r[p] = not r[p]


@inner
def _flip_pair(p: int, sets: _SetMasks, pairs: _Pairs, state: WalkState) -> Any:
    """Flip the order bit p, choose the best sets of both ends, return the change of energy."""
    gains, choice = sets.gains, state.choice
    side = 0 if state.r[p] else 1
    later, earlier = pairs.ends[p, side], pairs.ends[p, 1 - side]
    new, old = pairs.edges[p, side], pairs.edges[p, 1 - side]
    change = state.fields[p]
    if new >= 0:
        _flip(state.allowed[later], new - sets.first[later])
        before = choice[later]
        choice[later] = _best_with(new, before, -np.inf, state.allowed[later], sets)
        change += gains[before] - gains[choice[later]]
    if old >= 0:
        _flip(state.allowed[earlier], old - sets.first[earlier])
        before = choice[earlier]
        choice[earlier] = _best_without(before, state.allowed[earlier], sets)
        change += gains[before] - gains[choice[earlier]]
    _turn_pair(p, pairs, state)
    return change


@inlined
def _is_cyclic(e: int, p: int, pairs: _Pairs, r: Bools) -> Any:
    """Return whether triangle e of the pair p is a directed cycle."""
    turn = r[p] == pairs.senses[e, 0]
    first = r[pairs.sides[e, 0]] == pairs.senses[e, 1]
    second = r[pairs.sides[e, 1]] == pairs.senses[e, 2]
    return turn == first and turn == second


@kernel
def _move_vertices(
    sets: _SetMasks, pairs: _Pairs, state: WalkState, temperature: float, tries: int, words: Words
) -> None:
    """Move vertices by Metropolis' rule: flip an order bit, one end passes all in between."""
    flipped = state.flipped
    for _ in range(tries):
        p = pairs.movable[below(words, len(pairs.movable))]
        mover = pairs.ends[p, below(words, 2)]
        limit = -np.log(uniform(words)) * temperature
        change = _flip_pair(p, sets, pairs, state)
        flipped[0], count = p, 1
        for e in range(pairs.begin[p], pairs.begin[p + 1]):
            if _is_cyclic(e, p, pairs, state.r):
                q, s = pairs.sides[e, 0], pairs.sides[e, 1]
                passed = q if pairs.ends[q, 0] == mover or pairs.ends[q, 1] == mover else s
                if not pairs.fixed[passed]:
                    change += _flip_pair(passed, sets, pairs, state)
                    flipped[count] = passed
                    count += 1
        if change <= limit:
            state.energies[0] += change
        else:
            for k in range(count - 1, -1, -1):
                _flip_pair(flipped[k], sets, pairs, state)
    _note_best(state)


@inner
def _note_best(state: WalkState) -> None:
    """Keep the state if its energy is the least so far."""
    if state.energies[0] < state.energies[1] - LEAST_IMPROVEMENT:
        state.energies[1] = state.energies[0]
        for p in range(len(state.r)):
            state.best[p] = state.r[p]


@kernel
def _flip_bits(
    sets: _SetMasks, pairs: _Pairs, state: WalkState, temperature: float, tries: int, words: Words
) -> None:
    """Flip single order bits by Metropolis' rule; each vertex always has its best allowed set."""
    gains, choice = sets.gains, state.choice
    for _ in range(tries):
        p = pairs.movable[below(words, len(pairs.movable))]
        limit = -np.log(uniform(words)) * temperature
        # ends[p, side] comes first now, and may have the other as a parent afterwards
        side = 0 if state.r[p] else 1
        later, earlier = pairs.ends[p, side], pairs.ends[p, 1 - side]
        new, old = pairs.edges[p, side], pairs.edges[p, 1 - side]
        won, lost = choice[later], choice[earlier]
        change = state.fields[p]
        if new >= 0:
            _flip(state.allowed[later], new - sets.first[later])
            # a set must gain this much to be better and to let the flip be accepted
            least = max(gains[won], gains[won] + change - limit)
            won = _best_with(new, won, least, state.allowed[later], sets)
            change -= gains[won] - gains[choice[later]]
        if change <= limit and old >= 0:
            _flip(state.allowed[earlier], old - sets.first[earlier])
            lost = _best_without(lost, state.allowed[earlier], sets)
            change += gains[choice[earlier]] - gains[lost]
            if change > limit:
                _flip(state.allowed[earlier], old - sets.first[earlier])
        if change <= limit:
            _turn_pair(p, pairs, state)
            state.energies[0] += change
            choice[later] = won
            choice[earlier] = lost
        elif new >= 0:
            _flip(state.allowed[later], new - sets.first[later])
    _note_best(state)
