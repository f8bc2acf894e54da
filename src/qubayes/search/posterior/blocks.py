"""Kernel: block Gibbs steps over acyclic networks (Goudie and Mukherjee, JMLR 2016).

A step chooses a block of b <= 4 vertices without looking at the network, takes all their parents
away, and draws their parent sets anew, jointly and exactly from their conditional distribution.
There is no rejection. Vertices that now descend from block member k are marked with the bit k; a
member descends from itself. A parent set of a member *hits* the members that its elements are
marked with: the network is acyclic iff the graph "j -> k where the set of k hits j" on the block
is. So only the sums W_k(h) of exp(score) over the sets of k that hit exactly h matter, and with
A_k(U) the sum of W_k(h) over h inside U, the networks are summed layer by layer, each once:

    F(U, T) = sum over non-empty L outside U of F(U + L, L) times
              the product over k in L of A_k(U) - A_k(U - T)

where U is placed, T is its last layer, and F(everything, T) = 1. All terms are positive. Layers are
drawn by their terms, and then a set for each member.

Weights differ by more than the range of floating point numbers. A_k(U) is therefore kept relative
to its largest term, and F(U, T) relative to exp(potential of U), the largest product of A_k over
orders that place the rest after U. F(0, 0) is at least exp(potential of 0), up to rounding, so a
value F(U, T) that underflows belongs to networks whose share is below 1e-300.

Sets are scanned best first. A scan ends once all sets that are left, together, weigh less than
NEGLIGIBLE times a set that hits nothing, which may replace any of them."""

from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Floats, Ints, SmallInts, Words
from ...foundation.jit import inlined, inner, kernel
from ...foundation.random import below, random_stream, uniform
from ...foundation.words import lowest_bit

BLOCK_VERTICES = 4  # vertices of a block
_CLASSES = 1 << BLOCK_VERTICES
_NEGLIGIBLE = -20.7  # logarithm of 1e-9
_SAFE = 1e-200  # weights above this may be divided by
_ROUNDING = 1e-13  # a difference of sums below this share of them is rounding
_TRIES = 20  # to find further members of a block


class Table(NamedTuple):
    """The parent sets of all vertices at one temperature, best first for each vertex."""

    start: Ints  # (n + 1,) sets start[v] .. start[v + 1] - 1 belong to v
    members: SmallInts  # (sets, largest size) filled up with n
    scores: Floats  # (sets,)
    weights: Floats  # (sets,) exp(score - best score of the vertex), maybe 0
    tails: Floats  # (sets,) logarithm of the sum of exp(score) of this set and those behind it


class State(NamedTuple):
    """A network, and how often each edge was there."""

    choice: Ints  # (n,) number of the set of each vertex
    children: Words  # (n, words) children of each vertex as bits
    since: Ints  # (n,) step from which on the vertex has its set
    counts: Ints  # (n, n) steps with the edge, at [parent, child]
    step: Ints  # (1,) number of the next step
    words: Words  # random stream


class Scratch(NamedTuple):
    """Memory of one thread."""

    marks: Ints  # (n + 1,) bits of the block members that each vertex descends from
    touched: Ints  # (n + 1,) vertices with marks; the last one is their number
    stack: Ints  # (n + 1,)
    block: Ints  # (BLOCK_VERTICES,)
    found: SmallInts  # (BLOCK_VERTICES, longest list) sets that may be drawn
    hits: AnyArray  # (BLOCK_VERTICES, longest list) uint8: which members each of them hits
    weights: Floats  # (BLOCK_VERTICES, longest list) relative to the first set that hits the same
    many: Ints  # (BLOCK_VERTICES,) number of these sets
    firsts: Floats  # (BLOCK_VERTICES, classes) score of the first set that hits exactly these
    of_first: Floats  # (classes,) its weight in the table
    sums: Floats  # (BLOCK_VERTICES, classes) sum of the weights of the sets that hit exactly these
    tops: Floats  # (BLOCK_VERTICES, classes) largest score of a set that hits some of these
    inside: Floats  # (BLOCK_VERTICES, classes) A_k(U) / exp(top)
    potential: Floats  # (classes,)
    rest: Floats  # (classes, classes) F(U, T) / exp(potential of U)
    scales: Floats  # (classes, classes) by U and the next layer
    gains: Floats  # (BLOCK_VERTICES,)
    placed: Ints  # (2, BLOCK_VERTICES) what is placed before each member, and its last layer


def new_state(table: Table, choice: Ints, seed: np.random.SeedSequence) -> State:
    """Return the state of the network of these sets."""
    n = len(choice)
    state = State(
        np.array(choice, np.int64),
        np.zeros((n, (n + 63) // 64), np.uint64),
        np.zeros(n, np.int64),
        np.zeros((n, n), np.int64),
        np.zeros(1, np.int64),
        random_stream(seed),
    )
    for child, members in enumerate(table.members[choice]):
        for parent in members[members < n].tolist():
            state.children[parent, child >> 6] |= np.uint64(1) << np.uint64(child & 63)
    return state


def new_scratch(table: Table) -> Scratch:
    """Return memory for a thread."""
    n = len(table.start) - 1
    longest = int(np.diff(table.start).max())
    return Scratch(
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(BLOCK_VERTICES, np.int64),
        np.zeros((BLOCK_VERTICES, longest), np.int32),
        np.zeros((BLOCK_VERTICES, longest), np.uint8),
        np.zeros((BLOCK_VERTICES, longest)),
        np.zeros(BLOCK_VERTICES, np.int64),
        np.zeros((BLOCK_VERTICES, _CLASSES)),
        np.zeros(_CLASSES),
        np.zeros((BLOCK_VERTICES, _CLASSES)),
        np.zeros((BLOCK_VERTICES, _CLASSES)),
        np.zeros((BLOCK_VERTICES, _CLASSES)),
        np.zeros(_CLASSES),
        np.zeros((_CLASSES, _CLASSES)),
        np.zeros((_CLASSES, _CLASSES)),
        np.zeros(BLOCK_VERTICES),
        np.zeros((2, BLOCK_VERTICES), np.int64),
    )


@kernel
def run_steps(
    table: Table,
    partners: Floats,
    active: Ints,
    sizes: Floats,
    state: State,
    scratch: Scratch,
    steps: int,
) -> None:
    """Make steps; blocks begin at an `active` vertex.

    `partners` (n, n) are cumulated weights with which others join its block, and `sizes` cumulated
    probabilities of blocks of 1, 2, ... vertices."""
    for _ in range(steps):
        size = _choose_block(partners, active, sizes, state.words, scratch.block)
        state.step[0] += 1
        for k in range(size):
            vertex = scratch.block[k]
            _set_edges(table.members[state.choice[vertex]], vertex, False, state.children)
        scratch.touched[-1] = 0
        for k in range(size):
            _mark_descendants(scratch.block[k], 1 << k, state.children, scratch)
        for k in range(size):
            _scan(table, k, 1 << size, scratch)
            _sum_inside(k, size, scratch)
        _set_potential(size, scratch)
        _sum_layers(size, scratch)
        _draw_layers(size, state.words, scratch)
        for k in range(size):
            _replace(table, scratch.block[k], _draw_set(k, 1 << size, state.words, scratch), state)
        for place in range(scratch.touched[-1]):
            scratch.marks[scratch.touched[place]] = 0
    for vertex in range(len(state.choice)):
        _count_edges(table, vertex, state)


@inner
def _choose_block(partners: Any, active: Any, sizes: Any, words: Any, block: Any) -> int:
    """Choose the vertices of a block; return their number."""
    wanted = 1
    draw = uniform(words)
    while wanted < len(sizes) and draw > sizes[wanted - 1]:
        wanted += 1
    block[0] = active[below(words, len(active))]
    n = len(partners)
    size = 1
    for _ in range(_TRIES):
        if size == wanted:
            break
        row = partners[block[below(words, size)]]
        if row[n - 1] == 0.0:
            continue
        vertex = _first_above(row, uniform(words) * row[n - 1])
        fresh = True
        for k in range(size):
            fresh = fresh and block[k] != vertex
        if fresh:
            block[size] = vertex
            size += 1
    return size


@inlined
def _first_above(row: Any, goal: float) -> int:
    """Return the first place whose cumulated weight is at least the goal."""
    low = 0
    high = len(row) - 1
    while low < high:
        middle = (low + high) >> 1
        if row[middle] >= goal:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _set_edges(members: Any, child: int, there: bool, children: Any) -> None:
    """Add the edges from these parents to the child, or take them away."""
    word = child >> 6
    bit = np.uint64(1) << np.uint64(child & 63)
    for parent in members:
        if parent == len(children):
            break
        if there:
            children[parent, word] |= bit
        else:
            children[parent, word] &= ~bit


@inlined
def _mark(vertex: int, bit: int, scratch: Scratch) -> None:
    """Mark a vertex with the bit."""
    if scratch.marks[vertex] == 0:
        scratch.touched[scratch.touched[-1]] = vertex
        scratch.touched[-1] += 1
    scratch.marks[vertex] |= bit


@inner
def _mark_descendants(vertex: int, bit: int, children: Any, scratch: Scratch) -> None:
    """Mark the vertex and all its descendants with the bit."""
    stack = scratch.stack
    stack[0] = vertex
    waiting = 1
    _mark(vertex, bit, scratch)
    while waiting > 0:
        waiting -= 1
        row = children[stack[waiting]]
        for word in range(len(row)):
            bits = row[word]
            while bits != 0:
                child = (word << 6) + lowest_bit(bits)
                bits &= bits - np.uint64(1)
                if scratch.marks[child] & bit == 0:
                    _mark(child, bit, scratch)
                    stack[waiting] = child
                    waiting += 1


@inner
def _scan(table: Table, k: int, classes: int, scratch: Scratch) -> None:
    """Find the sets that member k may get, and sum their weights by what they hit."""
    firsts, of_first = scratch.firsts[k], scratch.of_first
    sums, weights = scratch.sums[k], scratch.weights[k]
    found, hits = scratch.found[k], scratch.hits[k]
    sums[:classes] = 0.0
    vertex = scratch.block[k]
    count = 0
    least = -np.inf  # tails below this are negligible
    for number in range(table.start[vertex], table.start[vertex + 1]):
        if table.tails[number] < least:
            break
        hit = _hit(table.members, number, scratch.marks)
        if hit >> k & 1:
            continue
        score = table.scores[number]
        weight = 1.0
        if sums[hit] == 0.0:
            firsts[hit] = score
            of_first[hit] = table.weights[number]
            if hit == 0:
                least = score + _NEGLIGIBLE
        elif of_first[hit] > _SAFE:
            weight = table.weights[number] / of_first[hit]
        else:
            weight = np.exp(score - firsts[hit])
        sums[hit] += weight
        found[count] = number
        hits[count] = hit
        weights[count] = weight
        count += 1
    scratch.many[k] = count


@inlined
def _hit(members: Any, number: int, marks: Any) -> Any:
    """Return which block members a set hits; members are filled up with a vertex without marks."""
    hit = 0
    for place in range(members.shape[1]):
        hit |= marks[members[number, place]]
    return hit


@inner
def _sum_inside(k: int, size: int, scratch: Scratch) -> None:
    """Set A_k(U) of all U, relative to its largest term."""
    tops, inside = scratch.tops[k], scratch.inside[k]
    for hit in range(1 << size):
        inside[hit] = scratch.sums[k, hit]
        tops[hit] = scratch.firsts[k, hit] if inside[hit] > 0.0 else -np.inf
    for member in range(size):
        for hit in range(1 << size):
            other = hit ^ 1 << member
            if other > hit or inside[other] == 0.0:
                continue
            if tops[other] > tops[hit]:
                scale = np.exp(tops[hit] - tops[other]) if inside[hit] > 0.0 else 0.0
                inside[hit] = inside[hit] * scale + inside[other]
                tops[hit] = tops[other]
            else:
                inside[hit] += inside[other] * np.exp(tops[other] - tops[hit])


@inner
def _set_potential(size: int, scratch: Scratch) -> None:
    """Set the largest product of A_k over orders that place the rest after U."""
    full = (1 << size) - 1
    potential = scratch.potential
    potential[full] = 0.0
    for placed in range(full - 1, -1, -1):
        potential[placed] = -np.inf
        for k in range(size):
            if not placed >> k & 1 and scratch.inside[k, placed] > 0.0:
                log = scratch.tops[k, placed] + np.log(scratch.inside[k, placed])
                potential[placed] = max(potential[placed], log + potential[placed | 1 << k])


@inner
def _set_gains(size: int, placed: int, last: int, scratch: Scratch) -> None:
    """Set (A_k(U) - A_k(U - T)) / exp(top of k and U) for each member that is not placed."""
    for k in range(size):
        if placed >> k & 1:
            continue
        whole = scratch.inside[k, placed]
        before = placed ^ last
        if last == 0 or scratch.inside[k, before] == 0.0:
            scratch.gains[k] = whole
            continue
        part = scratch.inside[k, before]
        fall = scratch.tops[k, before] - scratch.tops[k, placed]
        if fall < 0.0:
            part *= np.exp(fall)
        gain = whole - part
        scratch.gains[k] = gain if gain > _ROUNDING * whole else 0.0


@inlined
def _term(size: int, placed: int, layer: int, scratch: Scratch) -> Any:
    """Return the term of F(U, T) for the next layer; `gains` are set."""
    value = scratch.scales[placed, layer] * scratch.rest[placed | layer, layer]
    for k in range(size):
        if layer >> k & 1:
            value *= scratch.gains[k]
    return value


@inner
def _set_scales(size: int, placed: int, scratch: Scratch) -> None:
    """Set what turns products of scaled numbers into terms of F(U, T) / exp(potential of U)."""
    outside = (1 << size) - 1 ^ placed
    layer = outside
    while layer > 0:
        log = scratch.potential[placed | layer] - scratch.potential[placed]
        for k in range(size):
            if layer >> k & 1:
                log += scratch.tops[k, placed]
        scratch.scales[placed, layer] = np.exp(log) if log > -np.inf else 0.0
        layer = (layer - 1) & outside


@inner
def _sum_layers(size: int, scratch: Scratch) -> None:
    """Set F(U, T) for all T inside U."""
    full = (1 << size) - 1
    for last in range(full + 1):
        scratch.rest[full, last] = 1.0
    for placed in range(full - 1, -1, -1):
        _set_scales(size, placed, scratch)
        last = placed
        while True:
            _set_gains(size, placed, last, scratch)
            total = 0.0
            layer = full ^ placed
            while layer > 0:
                total += _term(size, placed, layer, scratch)
                layer = (layer - 1) & (full ^ placed)
            scratch.rest[placed, last] = total
            if last == 0:
                break
            last = (last - 1) & placed


@inner
def _draw_layers(size: int, words: Any, scratch: Scratch) -> None:
    """Draw the layers of the block's members."""
    full = (1 << size) - 1
    placed = 0
    last = 0
    while placed != full:
        _set_gains(size, placed, last, scratch)
        goal = uniform(words) * scratch.rest[placed, last]
        chosen = 0
        layer = full ^ placed
        while layer > 0:
            value = _term(size, placed, layer, scratch)
            if value > 0.0:
                chosen = layer
                goal -= value
                if goal <= 0.0:
                    break
            layer = (layer - 1) & (full ^ placed)
        for k in range(size):
            if chosen >> k & 1:
                scratch.placed[0, k] = placed
                scratch.placed[1, k] = last
        placed |= chosen
        last = chosen


@inner
def _draw_set(k: int, classes: int, words: Any, scratch: Scratch) -> int:
    """Draw the set of member k: it hits only what is placed, and something of the last layer."""
    placed, last = scratch.placed[0, k], scratch.placed[1, k]
    top = scratch.tops[k, placed]
    total = 0.0
    for hit in range(classes):
        if _fits(hit, placed, last) and scratch.sums[k, hit] > 0.0:
            total += scratch.sums[k, hit] * np.exp(scratch.firsts[k, hit] - top)
    goal = uniform(words) * total
    chosen = -1
    for hit in range(classes):
        if _fits(hit, placed, last) and scratch.sums[k, hit] > 0.0:
            chosen = hit
            goal -= scratch.sums[k, hit] * np.exp(scratch.firsts[k, hit] - top)
            if goal <= 0.0:
                break
    goal = uniform(words) * scratch.sums[k, chosen]
    number = -1
    for place in range(scratch.many[k]):
        if scratch.hits[k, place] == chosen:
            number = scratch.found[k, place]
            goal -= scratch.weights[k, place]
            if goal <= 0.0:
                break
    return number


@inlined
def _fits(hit: int, placed: int, last: int) -> bool:
    """Return whether a set that hits these may follow these layers."""
    return hit & ~placed == 0 and (last == 0 or hit & last != 0)


@inner
def _replace(table: Table, vertex: int, number: int, state: State) -> None:
    """Give the vertex this set."""
    if number != state.choice[vertex]:
        _count_edges(table, vertex, state)
        state.choice[vertex] = number
    _set_edges(table.members[number], vertex, True, state.children)


@inner
def _count_edges(table: Table, vertex: int, state: State) -> None:
    """Count the steps that the vertex has had its set."""
    held = state.step[0] - state.since[vertex]
    for parent in table.members[state.choice[vertex]]:
        if parent == len(state.choice):
            break
        state.counts[parent, vertex] += held
    state.since[vertex] = state.step[0]


@kernel
def exchange(table: Table, vertices: Ints, first: State, second: State) -> None:
    """Exchange the parent sets of these vertices between two networks."""
    for vertex in vertices:
        one = first.choice[vertex]
        other = second.choice[vertex]
        if one == other:
            continue
        _set_edges(table.members[one], vertex, False, first.children)
        _set_edges(table.members[other], vertex, False, second.children)
        _replace(table, vertex, other, first)
        _replace(table, vertex, one, second)
