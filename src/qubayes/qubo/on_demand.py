"""Order bits on demand: r bits for pairs that a state below the best known network needs.

With order bits for some pairs only, the QUBO is a relaxation (docs/theory.md §10): every DAG keeps
its energy, and if no state lies below the energy of a known DAG, that DAG is optimal and the QUBO
is exact. The search starts with bits for the adjacent pairs. A state below the known DAG has
directed cycles; their sides, and chords of the default elimination, get order bits, which makes
these cycles impossible. There are never more bits than by default.

The search proves nothing unless it ends with all default pairs: it says how many walks, each with
random numbers of its own, found no state below since the last one (`OrderStatus`).

For given r bits the least energy over u and z is known: each vertex has the best set that r allows.
So a walk anneals the r bits alone. A move flips one r bit, or moves a vertex past all others up to
a chosen one.
"""

import time
from collections import deque
from dataclasses import dataclass, replace
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
from .gains import RelativeSets
from .order_bits import PROVED, Order, OrderStatus, eliminations
from .penalties import MARGIN, order_bounds

DEMAND = ("adjacent",)
MOVES = 10_000  # moves of `anneal` for each vertex, for the known network
TOLERANCE = 1e-6  # difference of scores that counts as none
HOTS = 4.0, 7.0, 15.0, 30.0  # first temperatures of walks, taken in turn
COLD = 0.2  # the last temperature
STEPS = 400  # temperatures of a walk
DESCENT = 20  # further steps at temperature 0, which leave no penalty that a flip can avoid
FLIPS = 5  # flips for each move of a vertex, times the triangles of a pair: the same time for both
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Demand:
    """Settings of the search for order bits.

    The same seed gives the same bits anywhere, unless the time limit ends the search.
    """

    network: Network | None = None  # a good DAG to start from; found by `anneal` unless given
    walks: int = 1000  # that find no state below the best network, after which the search ends
    sweeps: int = 1000  # of a walk; a sweep tries each order bit once
    seed: int = 0
    seconds: float = 60.0  # time limit of the search; the one for the known network is not counted

    def __post_init__(self) -> None:
        """Raise for what is not allowed."""
        if not (self.sweeps >= 1 and self.walks >= 1):
            raise SettingError(f"sweeps = {self.sweeps}, walks = {self.walks}; give 1 or more")
        if not 0 <= self.seconds < np.inf:
            raise SettingError(f"a time limit of {self.seconds} s; give 0 or more")


class DefaultPairs(NamedTuple):
    """Pairs that have an order bit by default, and the elimination that they come from."""

    all: set[Pair]
    near: set[Pair]  # adjacent in the candidate graph
    both: set[Pair]  # adjacent, and each may be a parent of the other
    fixed: set[Pair]  # of required edges
    place: Ints  # (n,) of a vertex in the elimination of its component


def order_on_demand(
    relative: RelativeSets, demand: Demand, workers: Workers, on_progress: OnProgress = silent
) -> tuple[Order, OrderStatus]:
    """Return the order bits that the search found necessary, and what it did."""
    pairs = default_pairs(relative)
    search = _Search(relative, pairs, known_network(relative.candidates, demand, workers))
    deadline = time.monotonic() + demand.seconds
    # short walks find most states below, which are many at first
    sweeps = max(1, demand.sweeps // 64)
    number = quiet = found = 0
    while search.bits != pairs.all and quiet < demand.walks and time.monotonic() < deadline:
        stream = random_stream(np.random.SeedSequence([demand.seed, number]))
        below_known = search.walk(number, sweeps, stream, deadline)
        number += 1
        if below_known:
            found, quiet = found + 1, 0
        elif time.monotonic() < deadline:
            quiet += sweeps == demand.sweeps
            sweeps = min(4 * sweeps, demand.sweeps)
        on_progress(Progress("order", quiet, demand.walks, f"{len(search.bits):,} order bits"))
    moves = search.space.moves_of(demand.sweeps)
    proved = search.bits == pairs.all
    status = OrderStatus(False, quiet, moves, found) if not proved else replace(PROVED, found=found)
    return without_free_pairs(pairs, search.bits), status


class _Search:
    """The best known network, the order bits so far, and the last state below the network that they made impossible."""

    def __init__(self, relative: RelativeSets, pairs: DefaultPairs, choice: Ints) -> None:
        self._relative, self._pairs, self._choice = relative, pairs, choice
        self._last: dict[Pair, bool] = {}  # whether the pair is ascending in the last state below
        self.bits = pairs.near
        self.space = self._space()

    def _space(self) -> "BitWalk":
        return BitWalk(self._relative, relaxed_order(self._pairs.near | self.bits, self.bits))

    def walk(self, number: int, sweeps: int, stream: Words, deadline: float) -> bool:
        """Return whether the walk found a state below the known network; make its shortest cycles impossible."""
        hot, turn = HOTS[number % len(HOTS)], number // len(HOTS) % 2
        start = self.space.order_of(self._choice, self._last if turn else {})
        r = self.space.anneal(start, sweeps, hot, stream, deadline)
        score = float(self._relative.candidates.scores[self._choice].sum())
        if self.space.energy_of(r) >= -score - TOLERANCE:
            return False
        self._last, chosen = self.space.directions(r), self.space.choice_of(r)
        cycles = shortest_cycles(self._relative.candidates.families.sets_at(chosen))
        if not cycles:
            self._choice = chosen
        more = missing_chords(cycles, self._pairs.place, self.bits)
        if more:
            self.bits = self.bits | more
            self.space = self._space()
        return True


def default_pairs(relative: RelativeSets) -> DefaultPairs:
    """Return the pairs of the default order bits."""
    arcs, pairs = relative.candidates.families.arcs(), set()
    place = np.zeros(len(arcs), np.int64)
    for component, filled in eliminations(relative.candidates, "chordal"):
        place[component[filled.sequence]] = np.arange(len(component))
        pairs |= {
            tuple(pair)
            for pair in component[np.argwhere(np.triu(filled.useful | filled.useful.T))].tolist()
        }
    near, both = (
        {pair for pair in pairs if graph[pair]} for graph in (arcs | arcs.T, arcs & arcs.T)
    )
    required = zip(
        relative.required.vertices.tolist(), relative.required.children.tolist(), strict=True
    )
    return DefaultPairs(pairs, near, both, near & {_pair(*edge) for edge in required}, place)


def without_free_pairs(pairs: DefaultPairs, bits: set[Pair]) -> Order:
    """Return the order bits without pairs that are in no triangle: r would be free there (docs/theory.md, Theorem D).

    The u bits of both arcs of an adjacent pair without a bit are coupled instead.
    """
    order = relaxed_order(bits, bits)
    needed = {_pair(*order.pairs[side].tolist()) for side in np.unique(order.triangles)} | (
        bits & pairs.fixed
    )
    coupled = frozen(np.array(sorted(pairs.both - needed), np.int32).reshape(-1, 2))
    return relaxed_order(needed, needed)._replace(coupled=coupled)


def _pair(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)


def known_network(candidates: Candidates, demand: Demand, workers: Workers) -> Ints:
    """Return the best network of an order of the given one, as numbers of candidate sets, or what `anneal` finds."""
    if demand.network is None:
        moves = MOVES * max(candidates.n, 1)
        found = solve(
            candidates, "anneal", limits=Limits(None, moves, demand.seed), workers=workers
        )
        return np.asarray(found.choice)
    if demand.network.names != candidates.names:
        raise SettingError(
            "the known network has other variables than the candidate sets; give one of theirs"
        )
    return candidates.families.best_of_order(order_with_required(candidates, demand.network))


def order_with_required(candidates: Candidates, network: Network) -> list[int]:
    """Return an order with required parents first; otherwise that of the network, which may lack required edges."""
    sequence = topological_order(network.parents)
    place = np.argsort(sequence)
    bases = [place[list(candidates.base(vertex))].tolist() for vertex in sequence]
    return [sequence[position] for position in topological_order(bases)]


def relaxed_order(pairs: set[Pair], bits: set[Pair]) -> Order:
    """Return r bits for `pairs` and all triangles of pairs in `bits`."""
    near: dict[int, set[int]] = {}
    for a, b in bits:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    corners = [(a, b, c) for a, b in sorted(bits) for c in sorted(near[a] & near[b]) if c > b]
    low, middle, high = np.array(corners, np.int32).reshape(-1, 3).T
    order = Order(
        frozen(np.array(sorted(pairs), np.int32).reshape(-1, 2)), np.empty((0, 3), np.int32)
    )
    sides = [order.pair_of(low, middle), order.pair_of(middle, high), order.pair_of(low, high)]
    triangles = np.column_stack(sides)
    return order._replace(triangles=frozen(triangles.astype(np.int32)))


def shortest_cycles(parents: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    """Return the shortest directed cycle through each vertex that is on one, shortest first."""
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
    return sorted(found.values(), key=len)


def missing_chords(cycles: list[list[int]], place: Ints, bits: set[Pair]) -> set[Pair]:
    """Return the sides and chords without an order bit of the shortest cycles that lack one.

    Others may end with them. A cycle whose sides and chords all have bits is there because the
    state pays a penalty."""
    missing: dict[int, set[Pair]] = {}
    for cycle in cycles:
        missing.setdefault(len(cycle), set()).update(chords(cycle, place) - bits)
    return next((pairs for _, pairs in sorted(missing.items()) if pairs), set())


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
    """Candidate sets as bit sets of possible parents, best first; possible parents are numbered as edges."""

    masks: Words  # (sets, words)
    start: Ints  # (n + 1,) sets of each vertex
    gains: Floats  # (sets,)
    first: Ints  # (n + 1,) edges of each vertex
    begin: Ints  # (edges + 1,) into holders
    holders: Ints  # sets that hold the parent of the edge, best first


class _Pairs(NamedTuple):
    """Pairs with r bits, and the triangles of each."""

    ends: Ints  # (p, 2)
    edges: Ints  # (p, 2) from the second to the first, and the other way; -1: impossible
    movable: Ints  # pairs that no required edge fixes
    fixed: Bools  # (p,) whether a required edge fixes the pair
    begin: Ints  # (p + 1,) triangles of each pair
    sides: SmallInts  # (3 t, 2) the two other pairs
    senses: Bools  # (3 t, 3) of the pair and the two others, around the triangle
    deltas: Floats  # (3 t,)


class _State(NamedTuple):
    """A state of the walk."""

    r: Bools  # (p,)
    fields: Floats  # (p,) change of the penalties on triangles when the bit flips
    allowed: Words  # (n, words) possible parents that r allows
    choice: Ints  # (n,) the best allowed set
    best: Bools  # (p,) the r bits of least energy
    energies: Floats  # (2,) now, and the least, relative to the start
    flipped: Ints  # (p,) room for the pairs that the move of a vertex flips


class BitWalk:
    """Annealing of the energy over its order bits, u and z minimised out."""

    def __init__(self, relative: RelativeSets, order: Order) -> None:
        self.relative, self.order = relative, order
        parents, sets, required = relative.parents, relative.candidate_sets, relative.required
        self._words = max(1, -(-int(np.diff(parents.start).max(initial=0)) // 64))
        owner = np.repeat(np.arange(len(sets.set_start) - 1), np.diff(sets.set_start))
        edge = parents.start[sets.member_owners] + sets.members - 1
        masks = _bit_sets(len(sets.set_start) - 1, self._words, owner, sets.members - 1)
        holders = owner[np.argsort(edge, kind="stable")]
        starts = np.asarray(sets.vertex_start), relative.gains, np.asarray(parents.start)
        self._sets = _SetMasks(masks, *starts, _offsets(edge, len(parents.vertices)), holders)
        self.deltas = MARGIN * order_bounds(relative, order)[2]
        pair, edges = (
            order.pair_of(parents.vertices, parents.children),
            np.full((len(order.pairs), 2), -1),
        )
        here = np.flatnonzero(pair >= 0)
        edges[
            pair[here], (order.pairs[pair[here], 0] != parents.children[here]).astype(np.int64)
        ] = here
        fixed = np.zeros(len(edges), np.bool_)
        bound = order.pair_of(required.vertices, required.children)
        fixed[bound[bound >= 0]] = True
        movable = np.flatnonzero(~fixed)
        around = np.array([True, True, False])  # a -> b -> c -> a; all pairs are written ascending
        rounds = ([0, 1, 2], [1, 2, 0], [2, 0, 1])  # each side with the two others
        rows = np.concatenate([order.triangles[:, turn] for turn in rounds])
        senses = np.repeat([around[turn] for turn in rounds], len(order.triangles), axis=0)
        rank = np.argsort(rows[:, 0], kind="stable")
        begin, others = _offsets(rows[:, 0], len(edges)), np.ascontiguousarray(rows[rank, 1:])
        deltas = np.tile(self.deltas, 3)[rank]
        ends = order.pairs.astype(np.int64)
        self._pairs = _Pairs(ends, edges, movable, fixed, begin, others, senses[rank], deltas)

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
        parents, required, n = (
            self.relative.parents,
            self.relative.required,
            self.relative.candidates.n,
        )
        inside, free = np.zeros((n, n), np.bool_), self.allowed_edges(r)
        inside[parents.children[free], parents.vertices[free]] = True
        inside[required.children, required.vertices] = True
        return self.relative.candidates.families.best_inside(inside)

    def energy_of(self, r: Bools) -> float:
        """Return the least energy of the relaxed QUBO for these r bits."""
        ab, bc, ac = r[self.order.triangles].T
        cyclic = (ab == bc) & (ab != ac)
        return float(
            self.deltas[cyclic].sum() - self.relative.candidates.scores[self.choice_of(r)].sum()
        )

    def anneal(
        self, r: Bools, sweeps: int, hot: float, stream: Words, deadline: float = np.inf
    ) -> Bools:
        """Return the r bits of least energy met on a walk that starts from these at the temperature `hot`."""
        if not len(self._pairs.movable):
            return r
        state, (flips, vertex_moves) = self.start(r), self._tries(sweeps)
        temperatures = [*np.geomspace(hot, COLD, STEPS).tolist(), *[0.0] * DESCENT]
        for temperature in temperatures:
            self.step(state, temperature, flips, stream)
            self.move_vertices(state, temperature, vertex_moves, stream)
            if time.monotonic() > deadline:
                break
        return state.best

    def _tries(self, sweeps: int) -> tuple[int, int]:
        """Return the flips, and the moves of vertices, at one temperature of a walk of so many sweeps."""
        pairs, flips = len(self.order.pairs), max(1, sweeps * len(self._pairs.movable) // STEPS)
        return flips, 1 + flips * pairs // (FLIPS * (pairs + 3 * len(self.order.triangles)))

    def moves_of(self, sweeps: int) -> int:
        """Return the moves, flips and those of vertices, of a walk of so many sweeps."""
        return (STEPS + DESCENT) * sum(self._tries(sweeps)) if len(self._pairs.movable) else 0

    def start(self, r: Bools) -> _State:
        """Return the state of a walk with these r bits."""
        parents, free, n = self.relative.parents, self.allowed_edges(r), self.relative.candidates.n
        number = np.arange(len(free)) - parents.start[parents.children]
        allowed = _bit_sets(n, self._words, parents.children[free], number[free])
        fields, flipped = np.zeros(len(r)), np.zeros(len(r), np.int64)
        state = _State(r.copy(), fields, allowed, self.choice_of(r), r.copy(), np.zeros(2), flipped)
        sense = r[self.order.triangles] == [True, True, False]
        for side, other, third in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            same = np.where(sense[:, side] == sense[:, other], -self.deltas, self.deltas)
            np.add.at(
                state.fields,
                self.order.triangles[:, side],
                (sense[:, other] == sense[:, third]) * same,
            )
        return state

    def step(self, state: _State, temperature: float, tries: int, stream: Words) -> None:
        """Try this many flips at one temperature; keep the state if its energy is the least so far."""
        _walk(self._sets, self._pairs, state, temperature, tries, stream)

    def move_vertices(self, state: _State, temperature: float, tries: int, stream: Words) -> None:
        """Try this many moves of a vertex at one temperature; keep the state if its energy is the least so far."""
        _move_vertices(self._sets, self._pairs, state, temperature, tries, stream)


def _offsets(values: Any, n: int) -> Ints:
    """Return (n + 1,) where each of 0 .. n - 1 begins when the values are sorted."""
    return np.concatenate([[0], np.cumsum(np.bincount(values, minlength=n))])


def _bit_sets(rows: int, words: int, owners: Ints, members: Any) -> Words:
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


@inner
def _turn_pair(p: int, pairs: _Pairs, state: _State) -> None:
    """Flip the r bit p, and update the fields of the pairs that share a triangle with it."""
    r, fields = state.r, state.fields
    for e in range(pairs.begin[p], pairs.begin[p + 1]):
        q, s = pairs.sides[e, 0], pairs.sides[e, 1]
        own, first, second = (
            r[p] == pairs.senses[e, 0],
            r[q] == pairs.senses[e, 1],
            r[s] == pairs.senses[e, 2],
        )
        delta = -pairs.deltas[e] if first == second else pairs.deltas[e]
        fields[q] += -delta if own == second else delta
        fields[s] += -delta if own == first else delta
    fields[p] = -fields[p]
    r[p] = not r[p]


@inner
def _flip_pair(p: int, sets: _SetMasks, pairs: _Pairs, state: _State) -> Any:
    """Flip the r bit p, give both ends the best sets that r allows now, and return the change of energy."""
    gains, choice = sets.gains, state.choice
    side = 0 if state.r[p] else 1
    later, earlier = pairs.ends[p, side], pairs.ends[p, 1 - side]
    new, old = pairs.edges[p, side], pairs.edges[p, 1 - side]
    change = state.fields[p]
    if new >= 0:
        _flip(state.allowed[later], new - sets.first[later])
        before = choice[later]
        for h in range(sets.begin[new], sets.begin[new + 1]):
            if sets.holders[h] >= before:
                break
            if _fits(sets.masks[sets.holders[h]], state.allowed[later]):
                choice[later] = sets.holders[h]
                break
        change += gains[before] - gains[choice[later]]
    if old >= 0:
        _flip(state.allowed[earlier], old - sets.first[earlier])
        before = choice[earlier]
        # the base always fits
        while not _fits(sets.masks[choice[earlier]], state.allowed[earlier]):
            choice[earlier] += 1
        change += gains[before] - gains[choice[earlier]]
    _turn_pair(p, pairs, state)
    return change


@kernel
def _move_vertices(
    sets: _SetMasks, pairs: _Pairs, state: _State, temperature: float, tries: int, words: Words
) -> None:
    """Move vertices by Metropolis' rule: flip an r bit, and let one of its ends pass all vertices in between."""
    flipped = state.flipped
    for _ in range(tries):
        p = pairs.movable[below(words, len(pairs.movable))]
        mover = pairs.ends[p, below(words, 2)]
        limit = -np.log(uniform(words)) * temperature
        change = _flip_pair(p, sets, pairs, state)
        flipped[0], count = p, 1
        for e in range(pairs.begin[p], pairs.begin[p + 1]):
            q, s = pairs.sides[e, 0], pairs.sides[e, 1]
            turn = state.r[p] == pairs.senses[e, 0]
            if turn == (state.r[q] == pairs.senses[e, 1]) and turn == (
                state.r[s] == pairs.senses[e, 2]
            ):
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
def _note_best(state: _State) -> None:
    """Keep the state if its energy is the least so far."""
    if state.energies[0] < state.energies[1] - 1e-9:
        state.energies[1] = state.energies[0]
        for p in range(len(state.r)):
            state.best[p] = state.r[p]


@kernel
def _walk(
    sets: _SetMasks, pairs: _Pairs, state: _State, temperature: float, tries: int, words: Words
) -> None:
    """Flip single r bits by Metropolis' rule; each vertex always has its best allowed set."""
    gains, choice, energies = sets.gains, state.choice, state.energies
    for _ in range(tries):
        p = pairs.movable[below(words, len(pairs.movable))]
        limit = -np.log(uniform(words)) * temperature
        # ends[p, side] comes first now, and may have the other as a parent afterwards
        side = 0 if state.r[p] else 1
        later, earlier = pairs.ends[p, side], pairs.ends[p, 1 - side]
        new, old = pairs.edges[p, side], pairs.edges[p, 1 - side]
        change, won, lost = state.fields[p], choice[later], choice[earlier]
        if new >= 0:
            allowed = state.allowed[later]
            _flip(allowed, new - sets.first[later])
            least = max(gains[won], gains[won] + change - limit)  # what a better set must gain
            for h in range(sets.begin[new], sets.begin[new + 1]):
                if gains[sets.holders[h]] < least or sets.holders[h] >= won:
                    break
                if _fits(sets.masks[sets.holders[h]], allowed):
                    won = sets.holders[h]
                    break
            change -= gains[won] - gains[choice[later]]
        if change <= limit and old >= 0:
            allowed = state.allowed[earlier]
            _flip(allowed, old - sets.first[earlier])
            while not _fits(sets.masks[lost], allowed):  # the base always fits
                lost += 1
            change += gains[choice[earlier]] - gains[lost]
            if change > limit:
                _flip(allowed, old - sets.first[earlier])
        if change <= limit:
            _turn_pair(p, pairs, state)
            energies[0] += change
            choice[later], choice[earlier] = won, lost
        elif new >= 0:
            _flip(state.allowed[later], new - sets.first[later])
    _note_best(state)
