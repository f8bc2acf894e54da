"""Small problems for the tests of order bits on demand."""

from itertools import combinations, product

import numpy as np

from formulation_cases import candidates_of, random_scores, split_subsets, whole_subsets
from qubayes.qubo import formulate
from reference import energies as reference

RING = [
    {frozenset(): -3.0, frozenset([(v - 1) % 4]): -1.0, frozenset([(v + 1) % 4]): -2.5}
    for v in range(4)
]


def pairs_of(candidates) -> tuple[set, set]:
    """(the pairs of the default order bits, those of them that are adjacent)."""
    made = formulate(candidates, whole_subsets(candidates))
    default = {(min(pair), max(pair)) for pair in made.order.pairs.tolist()}
    arcs = candidates.families.arcs()
    return default, {pair for pair in default if arcs[pair] or arcs[pair[::-1]]}


def best_relaxed_score(scores, bits, near) -> float:
    """Theorem A (iii) by definition: over all directions of all pairs in which no triangle of `bits` is cyclic."""
    pairs = sorted(bits | near)
    number = {pair: place for place, pair in enumerate(pairs)}
    corners = [
        c
        for c in combinations(range(len(scores)), 3)
        if all(pair in bits for pair in combinations(c, 2))
    ]
    best = -np.inf
    for r in product((False, True), repeat=len(pairs)):  # True: the smaller vertex comes first
        if any(r[number[a, b]] == r[number[b, c]] != r[number[a, c]] for a, b, c in corners):
            continue
        total = 0.0
        for child, known in enumerate(scores):
            allowed = {
                p
                for p in range(len(scores))
                if (pair := (min(p, child), max(p, child))) not in number
                or r[number[pair]] == (p < child)
            }
            total += max(
                (score for parents, score in known.items() if parents <= allowed), default=-np.inf
            )
        best = max(best, total)
    return best


def problems(seed: int, count: int, required: bool = False, most: int = 15):
    random = np.random.default_rng(seed)
    while count:
        scores = random_scores(random, int(random.integers(4, 6)), 2, 0.2, required=int(required))
        candidates = candidates_of(scores)
        subsets = split_subsets(random, candidates)
        default, near = pairs_of(candidates)
        if subsets.total + len(default) <= most and len(near) > 3:
            yield random, scores, candidates, subsets, default, near
            count -= 1


def forward(scores) -> list[int]:
    """An order in which every required parent comes first."""
    order: list[int] = []
    while len(order) < len(scores):
        order.append(
            next(
                v
                for v, k in enumerate(scores)
                if v not in order and reference.base_of(k) <= set(order)
            )
        )
    return order


def rings(seed: int, count: int):
    """Problems on a ring, whose chords have order bits by default: some states with the ring are below, some not."""
    random = np.random.default_rng(seed)
    while count:
        n = int(random.integers(4, 6))
        sides = [
            [frozenset([(v + step) % n]) for step in (-1, 1) if random.random() < 0.8]
            for v in range(n)
        ]
        scores = [
            {frozenset(): -3.0} | {side: float(random.uniform(-2.9, 0.0)) for side in own}
            for own in sides
        ]
        candidates = candidates_of(scores)
        default, near = pairs_of(candidates)
        if near < default:
            yield random, scores, candidates, whole_subsets(candidates), default, near
            count -= 1


# the ring 0 -> 1 -> 2 -> 3 -> 0 scores less than the best network, so it needs no chord
HARMLESS = [
    {frozenset(): -3.0, frozenset([3]): -2.9, frozenset([1]): -0.5},
    {frozenset(): -3.0, frozenset([0]): -1.0, frozenset([2]): -0.9},
    {frozenset(): -3.0, frozenset([1]): -1.0, frozenset([3]): -1.0},
    {frozenset(): -3.0, frozenset([2]): -1.0},
]
