"""Order bits on demand: only for pairs that a sample below the best known network needs.

With order bits for some pairs only, the QUBO is a relaxation (docs/theory.md §10): every DAG keeps
its energy, and if no sample lies below the energy of a known DAG, that DAG is optimal and the QUBO
is exact. The search starts with bits for the adjacent pairs. A sample below the known DAG has
directed cycles; their sides, and chords of the default elimination, get order bits, which makes
these cycles impossible. There are never more bits than by default.

The search proves nothing unless it ends with all default pairs: it says how many walks
(`OrderBitWalk`), each with random numbers of its own, found no sample below since the last one
(`OrderStatus`)."""

import time
from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..candidates import Candidates
from ..foundation.arrays import Ints, SmallInts, Words, frozen
from ..foundation.errors import SettingError
from ..foundation.graph import find_cycle, strong_components, topological_order
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.random import random_stream
from ..foundation.workers import Workers
from ..network import Network
from ..search import Limits, solve
from .gains import RelativeSets
from .order_bits import PROVED_ORDER, OrderBits, OrderStatus, eliminations, order_bits_of
from .order_walk import OrderBitWalk, Pair

DEMAND = ("adjacent",)
ANNEAL_MOVES_PER_VERTEX = 10_000  # for the known network
EQUAL_SCORES = 1e-6  # difference of scores that counts as none
FIRST_TEMPERATURES = 4.0, 7.0, 15.0, 30.0  # of walks, taken in turn
# The first walks have this many times fewer sweeps: short walks find most samples below, which are
# many at first.
SHORT_WALKS = 64


@dataclass(frozen=True, slots=True)
class Demand:
    """Settings of the search for order bits.

    The same seed gives the same bits anywhere, unless the time limit ends the search.
    """

    network: Network | None = None  # a good DAG to start from; found by `anneal` unless given
    walks: int = 1000  # that find no sample below the best network, after which the search ends
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
) -> tuple[OrderBits, OrderStatus]:
    """Return the order bits that the search found necessary, and a summary of the search."""
    pairs = default_pairs(relative)
    search = _Search(relative, pairs, known_network(relative.candidates, demand, workers))
    deadline = time.monotonic() + demand.seconds
    sweeps = max(1, demand.sweeps // SHORT_WALKS)
    number = 0  # of walks
    quiet = 0  # walks of full length since the last sample below
    found = 0  # samples below
    while search.bits != pairs.all and quiet < demand.walks and time.monotonic() < deadline:
        stream = random_stream(np.random.SeedSequence([demand.seed, number]))
        below_known = search.walk(number, sweeps, stream, deadline)
        number += 1
        if below_known:
            found += 1
            quiet = 0
        elif time.monotonic() < deadline:
            quiet += sweeps == demand.sweeps
            sweeps = min(4 * sweeps, demand.sweeps)
        on_progress(Progress("order", quiet, demand.walks, f"{len(search.bits):,} order bits"))
    if search.bits == pairs.all:
        status = replace(PROVED_ORDER, found=found)
    else:
        status = OrderStatus(False, quiet, search.order_walk.moves_of(demand.sweeps), found)
    return without_free_pairs(pairs, search.bits), status


class _Search:
    """The best known network, the order bits so far, and the last sample below the network."""

    def __init__(self, relative: RelativeSets, pairs: DefaultPairs, choice: Ints) -> None:
        self._relative, self._pairs = relative, pairs
        self._choice = choice
        self._last: dict[Pair, bool] = {}  # whether the pair is ascending in the last sample below
        self.bits = pairs.near
        self.order_walk = self._order_walk()

    def _order_walk(self) -> OrderBitWalk:
        return OrderBitWalk(self._relative, relaxed_order(self._pairs.near | self.bits, self.bits))

    def walk(self, number: int, sweeps: int, stream: Words, deadline: float) -> bool:
        """Return whether a walk found a sample below the network; forbid its shortest cycles."""
        turn, kind = divmod(number, len(FIRST_TEMPERATURES))
        known_directions = self._last if turn % 2 else {}
        start = self.order_walk.order_of(self._choice, known_directions)
        hot = FIRST_TEMPERATURES[kind]
        r = self.order_walk.anneal(start, sweeps, hot, stream, deadline)
        score = float(self._relative.candidates.scores[self._choice].sum())
        if self.order_walk.energy_of(r) >= -score - EQUAL_SCORES:
            return False
        self._last = self.order_walk.directions(r)
        chosen = self.order_walk.choice_of(r)
        cycles = shortest_cycles(self._relative.candidates.families.sets_at(chosen))
        if not cycles:
            self._choice = chosen
        more = missing_chords(cycles, self._pairs.place, self.bits)
        if more:
            self.bits = self.bits | more
            self.order_walk = self._order_walk()
        return True


def default_pairs(relative: RelativeSets) -> DefaultPairs:
    """Return the pairs of the default order bits."""
    arcs = relative.candidates.families.arcs()
    place = np.zeros(len(arcs), np.int64)
    pairs: set[Pair] = set()
    for component, filled in eliminations(relative.candidates, "chordal"):
        place[component[filled.sequence]] = np.arange(len(component))
        joined = component[np.argwhere(np.triu(filled.useful | filled.useful.T))]
        pairs |= {(a, b) for a, b in joined.tolist()}
    near = {pair for pair in pairs if arcs[pair] or arcs[pair[::-1]]}
    both = {pair for pair in pairs if arcs[pair] and arcs[pair[::-1]]}
    required = relative.required
    edges = zip(required.vertices.tolist(), required.children.tolist(), strict=True)
    return DefaultPairs(pairs, near, both, near & {_pair(*edge) for edge in edges}, place)


def without_free_pairs(pairs: DefaultPairs, bits: set[Pair]) -> OrderBits:
    """Return order bits only for pairs in triangles and pairs of required edges.

    Other bits would be free (docs/theory.md, Theorem D). The u variables of both arcs of an
    adjacent pair without a bit are coupled instead.
    """
    order = relaxed_order(bits, bits)
    in_triangles = {_pair(*order.pairs[side].tolist()) for side in np.unique(order.triangles)}
    needed = in_triangles | (bits & pairs.fixed)
    coupled = frozen(_array_of(pairs.both - needed))
    return relaxed_order(needed, needed)._replace(coupled=coupled)


def _pair(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)


def _array_of(pairs: set[Pair]) -> SmallInts:
    """Return (p, 2) the pairs, ascending."""
    return np.array(sorted(pairs), np.int32).reshape(-1, 2)


def known_network(candidates: Candidates, demand: Demand, workers: Workers) -> Ints:
    """Return the best network of an order of the given one, or that of `anneal`, as set numbers."""
    if demand.network is None:
        limits = Limits(None, ANNEAL_MOVES_PER_VERTEX * max(candidates.n, 1), demand.seed)
        return np.asarray(solve(candidates, "anneal", limits=limits, workers=workers).choice)
    if demand.network.names != candidates.names:
        raise SettingError(
            "the known network has other variables than the candidate sets; give one of theirs"
        )
    return candidates.families.best_of_order(order_with_required(candidates, demand.network))


def order_with_required(candidates: Candidates, network: Network) -> list[int]:
    """Return an order with required parents first, and otherwise that of the network.

    The network may lack required edges.
    """
    sequence = topological_order(network.parents)
    place = np.argsort(sequence)
    bases = [place[list(candidates.base(vertex))].tolist() for vertex in sequence]
    return [sequence[position] for position in topological_order(bases)]


def relaxed_order(pairs: set[Pair], bits: set[Pair]) -> OrderBits:
    """Return order bits for `pairs`, and all triangles of pairs in `bits`."""
    near: dict[int, set[int]] = {}
    for a, b in bits:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    corners = []
    for a, b in sorted(bits):
        corners += [(a, b, c) for c in sorted(near[a] & near[b]) if c > b]
    return order_bits_of(_array_of(pairs), np.array(corners, np.int32).reshape(-1, 3))


def shortest_cycles(parents: tuple[tuple[int, ...], ...]) -> list[list[int]]:
    """Return the shortest directed cycle through each vertex that is on one, shortest first."""
    if not find_cycle(parents):
        return []
    arcs = np.zeros((len(parents), len(parents)), np.bool_)
    for child, members in enumerate(parents):
        arcs[list(members), child] = True
    found: dict[frozenset[int], list[int]] = {}
    for component in strong_components(arcs):
        if len(component) == 1:
            continue
        for start in component.tolist():
            cycle = _shortest_cycle(parents, start)
            found[frozenset(cycle)] = cycle
    return sorted(found.values(), key=len)


def _shortest_cycle(parents: tuple[tuple[int, ...], ...], start: int) -> list[int]:
    """Return the shortest cycle through a vertex that is on one (breadth-first search)."""
    before = {start: -1}
    queue = deque([start])
    while start not in parents[queue[0]]:
        vertex = queue.popleft()
        for parent in parents[vertex]:
            if parent not in before:
                before[parent] = vertex
                queue.append(parent)
    cycle = [queue[0]]
    while before[cycle[-1]] >= 0:
        cycle.append(before[cycle[-1]])
    return cycle


def missing_chords(cycles: list[list[int]], place: Ints, bits: set[Pair]) -> set[Pair]:
    """Return the sides and chords without an order bit of the shortest cycles that lack one.

    Others may end with them. A cycle whose sides and chords all have bits is there because the
    sample pays a penalty."""
    missing: dict[int, set[Pair]] = {}
    for cycle in cycles:
        missing.setdefault(len(cycle), set()).update(chords(cycle, place) - bits)
    return next((pairs for _, pairs in sorted(missing.items()) if pairs), set())


def chords(cycle: list[int], place: Ints) -> set[Pair]:
    """Return the sides of the cycle, and the pairs that are joined when its vertices leave."""
    rest = list(cycle)
    made = {_pair(cycle[i - 1], cycle[i]) for i in range(len(cycle))}
    while len(rest) > 3:
        i = min(range(len(rest)), key=lambda t: int(place[rest[t]]))
        made.add(_pair(rest[i - 1], rest[(i + 1) % len(rest)]))
        del rest[i]
    return made
