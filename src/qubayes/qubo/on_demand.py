"""Order bits on demand: fewer r bits, for pairs that a state below the best known network shows to be needed.

With order bits for some pairs only, the QUBO is a relaxation (docs/theory.md §10): every DAG keeps its energy, and if
no state lies below the energy of a known DAG, that DAG is optimal and the QUBO is exact. So the search for states below
the known DAG decides: the sides of their cycles, and chords of the default elimination, get order bits. `adjacent`
starts with bits for adjacent pairs, `minimal` without any; neither ends with more bits than the default.

For given r bits the least energy over u and z is known: each vertex has the best set that r allows. So the search
anneals the r bits alone, a million and more per second.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..candidates import Candidates
from ..foundation.arrays import Bools, Floats, Ints, SmallInts, Words, frozen
from ..foundation.errors import SettingError
from ..foundation.graph import find_cycle, strong_components, topological_order
from ..foundation.jit import inner, kernel
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.random import below, random_stream, uniform
from ..foundation.workers import Workers
from ..network import Network
from ..search import Limits, solve
from .order_bits import EXACT, Order, eliminations
from .penalties import MARGIN, order_bounds
from .relative_sets import RelativeSets

DEMAND = ("adjacent", "minimal")
SETTLED = "settled: no state below the best known network was found"
OPEN = "not settled: a state below the best known network was found in the last round"
MOVES = 10_000  # of `anneal` for each vertex, for the known network
TOLERANCE = 1e-6  # of scores
HOTS, COLD = (15.0, 7.0), 0.2  # temperatures of the walks from the known network and from the last state below it
STEPS = 400  # temperatures of a walk
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Demand:
    """Settings of the search for order bits."""

    network: Network | None = None  # the known DAG; found by `anneal` unless given
    sweeps: int = 8000  # of the longest walks; a sweep tries each order bit once
    rounds: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise for what is not allowed."""
        if not (self.sweeps >= 1 and self.rounds >= 1):
            raise SettingError(f"sweeps = {self.sweeps}, rounds = {self.rounds}; give 1 or more")


class Demanded(NamedTuple):
    """Order bits, what is known of them, and the best known network."""

    order: Order
    status: str
    choice: Ints  # (n,) the candidate set of each vertex in the best known network
    rounds: int


def order_on_demand(
    relative: RelativeSets, kind: str, demand: Demand, workers: Workers, on_progress: OnProgress = silent
) -> Demanded:
    """Return order bits that no state below the best known network was found to pass.

    A pair in no triangle needs no bit: r would be free, and the u bits of both arcs are coupled instead.
    """
    candidates = relative.candidates
    default: set[Pair] = set()
    place = np.zeros(candidates.n, np.int64)  # in the default elimination
    for component, filled in eliminations(candidates, "chordal"):
        place[component[filled.sequence]] = np.arange(len(component))
        default |= {tuple(pair) for pair in component[np.argwhere(np.triu(filled.useful | filled.useful.T))].tolist()}
    arcs = candidates.families.arcs()
    near = {pair for pair in default if arcs[pair] or arcs[pair[::-1]]}
    required = zip(relative.required.vertices.tolist(), relative.required.children.tolist(), strict=True)
    fixed = near & {_pair(*edge) for edge in required}
    bits = near if kind == "adjacent" else fixed
    status = SETTLED
    choice = known_network(candidates, demand, workers)
    last: dict[Pair, bool] = {}  # whether the pair is ascending in the last state below the known network
    sweeps, rounds = max(1, demand.sweeps // 64), 0
    while rounds < demand.rounds and bits != default:
        rounds += 1
        walk = BitWalk(relative, relaxed_order(near | bits, bits))
        more: set[Pair] = set()
        found = False
        for number, hot in enumerate(HOTS):
            r = walk.order_of(choice, last if number else {})
            stream = random_stream(np.random.SeedSequence([demand.seed, rounds, number]))
            r = walk.anneal(r, sweeps, hot, stream)
            chosen, lowest = walk.choice_of(r), walk.energy_of(r)
            if lowest >= -float(candidates.scores[choice].sum()) - TOLERANCE:
                continue
            found, last = True, walk.directions(r)
            cycles = shortest_cycles(candidates.families.sets_at(chosen))
            shortest = min(map(len, cycles), default=0)  # longer ones may be gone once these are
            cycles = [cycle for cycle in cycles if len(cycle) == shortest]
            if not cycles and candidates.scores[chosen].sum() > candidates.scores[choice].sum():
                choice = chosen
            more |= {pair for cycle in cycles for pair in chords(cycle, place)}
        on_progress(Progress("order", rounds, demand.rounds, f"{len(bits):,} order bits"))
        if more:
            bits = bits | more
        elif not found and sweeps == demand.sweeps:
            break
        elif not found:
            sweeps = min(4 * sweeps, demand.sweeps)
    else:
        status = EXACT if bits == default else OPEN
    order = relaxed_order(bits, bits)
    needed = {_pair(*order.pairs[side].tolist()) for side in np.unique(order.triangles)} | (bits & fixed)
    both = sorted(pair for pair in near - needed if arcs[pair] and arcs[pair[::-1]])
    coupled = frozen(np.array(both, np.int32).reshape(-1, 2))
    return Demanded(relaxed_order(needed, needed)._replace(coupled=coupled), status, choice, rounds)


def _pair(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)


def known_network(candidates: Candidates, demand: Demand, workers: Workers) -> Ints:
    """Return the given network, each set made the best candidate set inside it, or the one that `anneal` finds."""
    if demand.network is None:
        moves = MOVES * max(candidates.n, 1)
        found = solve(candidates, "anneal", limits=Limits(None, moves, demand.seed), workers=workers)
        return np.asarray(found.choice)
    if demand.network.names != candidates.names:
        raise SettingError("the known network has other variables than the candidate sets; give one of theirs")
    inside = np.zeros((candidates.n, candidates.n), np.bool_)
    for child, parents in enumerate(demand.network.parents):
        inside[child, list(parents)] = True
    chosen = candidates.families.best_inside(inside)
    if (chosen < 0).any():
        name = candidates.names[int(np.argmin(chosen))]
        raise SettingError(f"the known network lacks a required parent of {name}; give one that has it")
    return chosen


def relaxed_order(pairs: set[Pair], bits: set[Pair]) -> Order:
    """Return r bits for `pairs` and all triangles of pairs in `bits`."""
    near: dict[int, set[int]] = {}
    for a, b in bits:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    corners = [(a, b, c) for a, b in sorted(bits) for c in sorted(near[a] & near[b]) if c > b]
    low, middle, high = np.array(corners, np.int32).reshape(-1, 3).T
    order = Order(frozen(np.array(sorted(pairs), np.int32).reshape(-1, 2)), np.empty((0, 3), np.int32))
    sides = [order.pair_of(low, middle), order.pair_of(middle, high), order.pair_of(low, high)]
    triangles = np.column_stack(sides)
    return order._replace(triangles=frozen(triangles.astype(np.int32)))


def shortest_cycles(parents: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    """Return a shortest directed cycle through each vertex that lies on one, none twice."""
    if not find_cycle(parents):
        return []
    arcs = np.zeros((len(parents), len(parents)), np.bool_)
    for child, members in enumerate(parents):
        arcs[list(members), child] = True
    found: dict[frozenset[int], list[int]] = {}
    for component in strong_components(arcs):
        for start in component.tolist() if len(component) > 1 else ():
            before, queue = {start: -1}, deque([start])
            while queue and start not in parents[queue[0]]:  # breadth first, from child to parent
                vertex = queue.popleft()
                for parent in parents[vertex]:
                    if parent not in before:
                        before[parent] = vertex
                        queue.append(parent)
            cycle = [queue[0]]
            while before[cycle[-1]] >= 0:
                cycle.append(before[cycle[-1]])
            found[frozenset(cycle)] = cycle
    return list(found.values())


def chords(cycle: list[int], place: Ints) -> set[Pair]:
    """Return the sides of the cycle, and the pairs that its vertices join when they leave in the elimination."""
    rest = list(cycle)
    made = {_pair(cycle[i - 1], cycle[i]) for i in range(len(cycle))}
    while len(rest) > 3:
        i = min(range(len(rest)), key=lambda t: int(place[rest[t]]))
        made.add(_pair(rest[i - 1], rest[(i + 1) % len(rest)]))
        del rest[i]
    return made


class _SetMasks(NamedTuple):
    """Candidate sets as bit sets of possible parents, best first."""

    masks: Words  # (sets, words)
    start: Ints  # (n + 1,)
    gains: Floats  # (sets,)


class _Pairs(NamedTuple):
    """Pairs with r bits, and the triangles of each."""

    ends: Ints  # (p, 2)
    places: Ints  # (p, 2) of the second among the possible parents of the first, and the other way; -1: impossible
    movable: Ints  # pairs that no required edge fixes
    begin: Ints  # (p + 1,) triangles of each pair
    sides: SmallInts  # (3 t, 2) the two other pairs
    senses: Bools  # (3 t, 3) of the pair and the two others, around the triangle
    deltas: Floats  # (3 t,)


class _State(NamedTuple):
    """A state of the walk."""

    r: Bools  # (p,)
    allowed: Words  # (n, words) possible parents that r allows
    choice: Ints  # (n,) the best allowed set
    spare: Words  # (words,)
    best: Bools  # (p,) the r bits of least energy


class BitWalk:
    """Annealing of the energy over its order bits, u and z minimised out."""

    def __init__(self, relative: RelativeSets, order: Order) -> None:
        self.relative, self.order = relative, order
        parents, sets = relative.parents, relative.candidate_sets
        self._words = max(1, -(-int(np.diff(parents.start).max(initial=0)) // 64))
        owner = np.repeat(np.arange(len(sets.set_start) - 1), np.diff(sets.set_start))
        masks = _bit_sets(len(sets.set_start) - 1, self._words, owner, sets.members - 1)
        self._sets = _SetMasks(masks, np.asarray(sets.vertex_start), np.asarray(relative.gains))
        self.deltas = MARGIN * order_bounds(relative, order)[2]
        ends, required = order.pairs.astype(np.int64), relative.required
        pair, places = order.pair_of(parents.vertices, parents.children), np.full((len(ends), 2), -1)
        here = np.flatnonzero(pair >= 0)
        side = (order.pairs[pair[here], 0] != parents.children[here]).astype(np.int64)
        places[pair[here], side] = here - parents.start[parents.children[here]]
        movable = np.setdiff1d(np.arange(len(ends)), order.pair_of(required.vertices, required.children))
        around = np.array([True, True, False])  # a -> b -> c -> a; all pairs are written ascending
        rounds = ([0, 1, 2], [1, 2, 0], [2, 0, 1])  # each side with the two others
        rows = np.concatenate([order.triangles[:, turn] for turn in rounds])
        senses = np.repeat([around[turn] for turn in rounds], len(order.triangles), axis=0)
        rank = np.argsort(rows[:, 0], kind="stable")
        begin = np.concatenate([[0], np.cumsum(np.bincount(rows[:, 0], minlength=len(ends)))])
        others = np.ascontiguousarray(rows[rank, 1:])
        self._pairs = _Pairs(ends, places, movable, begin, others, senses[rank], np.tile(self.deltas, 3)[rank])

    def order_of(self, choice: Ints, directions: dict[Pair, bool]) -> Bools:
        """Return the r bits of an order of the DAG, or of `directions` where they know the pair."""
        place = np.argsort(topological_order(self.relative.candidates.families.sets_at(choice)))
        ascending = place[self.order.pairs[:, 0]] < place[self.order.pairs[:, 1]]
        pairs = zip(self.order.pairs.tolist(), ascending.tolist(), strict=True)
        return np.array([directions.get((a, b), now) for (a, b), now in pairs], dtype=np.bool_)

    def directions(self, r: Bools) -> dict[Pair, bool]:
        """Return the r bits by pair."""
        return {(a, b): bool(bit) for (a, b), bit in zip(self.order.pairs.tolist(), r, strict=True)}

    def allowed_edges(self, r: Bools) -> Bools:
        """Return whether r allows each possible edge."""
        parents = self.relative.parents
        pair = self.order.pair_of(parents.vertices, parents.children)
        first = np.append(self.order.pairs[:, 0], -1)[pair] == parents.vertices
        allowed: Bools = (pair < 0) | (np.append(r, False)[pair] == first)
        return allowed

    def choice_of(self, r: Bools) -> Ints:
        """Return the best candidate set of each vertex that r allows."""
        parents, required, n = self.relative.parents, self.relative.required, self.relative.candidates.n
        inside, free = np.zeros((n, n), np.bool_), self.allowed_edges(r)
        inside[parents.children[free], parents.vertices[free]] = True
        inside[required.children, required.vertices] = True
        return self.relative.candidates.families.best_inside(inside)

    def energy_of(self, r: Bools) -> float:
        """Return the least energy of the relaxed QUBO for these r bits."""
        ab, bc, ac = r[self.order.triangles].T
        cyclic = (ab == bc) & (ab != ac)
        return float(self.deltas[cyclic].sum() - self.relative.candidates.scores[self.choice_of(r)].sum())

    def anneal(self, r: Bools, sweeps: int, hot: float, stream: Words) -> Bools:
        """Return the r bits of least energy met on a walk that starts from these at the temperature `hot`."""
        if not len(self._pairs.movable):
            return r
        parents, free, n = self.relative.parents, self.allowed_edges(r), self.relative.candidates.n
        number = np.arange(len(free)) - parents.start[parents.children]
        allowed = _bit_sets(n, self._words, parents.children[free], number[free])
        state = _State(r.copy(), allowed, self.choice_of(r), np.zeros(self._words, np.uint64), r.copy())
        tries = max(1, sweeps * len(self._pairs.movable) // STEPS)
        _walk(self._sets, self._pairs, state, np.geomspace(hot, COLD, STEPS), tries, stream)
        return state.best


def _bit_sets(rows: int, words: int, owners: Ints, members: Any) -> Words:
    """Return (rows, words): bit `member` of the row `owner` is 1."""
    sets = np.zeros((rows, words), np.uint64)
    np.bitwise_or.at(sets, (owners, members >> 6), np.uint64(1) << (members & 63).astype(np.uint64))
    return sets


@inner
def _has(row: Words, member: int) -> Any:
    return (row[member >> 6] >> np.uint64(member & 63)) & np.uint64(1) != np.uint64(0)


@inner
def _flip(row: Words, member: int) -> None:
    row[member >> 6] ^= np.uint64(1) << np.uint64(member & 63)


@inner
def _first_fit(masks: Words, first: int, last: int, allowed: Words) -> int:
    """Return the first of these sets that is allowed; the last one, the base, always is."""
    for number in range(first, last - 1):
        misses = np.uint64(0)
        for w in range(len(allowed)):
            misses |= masks[number, w] & ~allowed[w]
        if misses == np.uint64(0):
            return number
    return last - 1


@inner
def _triangle_change(p: int, pairs: _Pairs, r: Bools) -> float:
    """Return the change of the penalties on triangles when the r bit p flips."""
    change = 0.0
    for e in range(pairs.begin[p], pairs.begin[p + 1]):
        first, second = r[pairs.sides[e, 0]] == pairs.senses[e, 1], r[pairs.sides[e, 1]] == pairs.senses[e, 2]
        if first == second:
            cyclic = first == (r[p] == pairs.senses[e, 0])
            change += -pairs.deltas[e] if cyclic else pairs.deltas[e]
    return change


@kernel
def _walk(sets: _SetMasks, pairs: _Pairs, state: _State, temperatures: Floats, tries: int, words: Words) -> None:
    """Flip single r bits by Metropolis' rule; each vertex always has its best allowed set."""
    r, allowed, choice, best = state.r, state.allowed, state.choice, state.best
    now, least = 0.0, 0.0
    for temperature in temperatures:
        for _ in range(tries):
            p = pairs.movable[below(words, len(pairs.movable))]
            limit = -np.log(uniform(words)) * temperature
            change = _triangle_change(p, pairs, r)
            side = 0 if r[p] else 1  # ends[p, side] comes first now, and may have the other as a parent afterwards
            later, earlier = pairs.ends[p, side], pairs.ends[p, 1 - side]
            new, old = pairs.places[p, side], pairs.places[p, 1 - side]
            won, lost = choice[later], choice[earlier]
            if new >= 0:
                _flip(allowed[later], new)
                won = _first_fit(sets.masks, sets.start[later], won + 1, allowed[later])
                change -= sets.gains[won] - sets.gains[choice[later]]
            if old >= 0:
                _flip(allowed[earlier], old)
                if change <= limit and _has(sets.masks[lost], old):
                    lost = _first_fit(sets.masks, lost + 1, sets.start[earlier + 1], allowed[earlier])
                    change += sets.gains[choice[earlier]] - sets.gains[lost]
            if change <= limit:
                r[p] = not r[p]
                now += change
                choice[later], choice[earlier] = won, lost
            else:
                if new >= 0:
                    _flip(allowed[later], new)
                if old >= 0:
                    _flip(allowed[earlier], old)
        if now < least - 1e-9:
            least = now
            for p in range(len(r)):
                best[p] = r[p]
