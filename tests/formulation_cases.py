"""Small random problems for the tests of the formulation."""

from itertools import combinations

import numpy as np

from qubayes.candidates import Candidates
from qubayes.foundation.families import Families
from qubayes.machines import upper_triangle
from qubayes.qubo import Qubo, formulate
from qubayes.qubo.subsets import Subsets
from reference import energies as reference

Set = frozenset[int]
MODES = [("chordal", "tight"), ("scc", "paper"), ("scc", "tight"), ("chordal", "paper")]
MOST_BITS = 18


def s(*members: int) -> frozenset[int]:
    return frozenset(members)


# (scores, subsets or None) in which a penalty of that kind is needed up to its bound
TIGHT = {
    "edges": ([{s(): -20.0, s(1): -10.0}, {s(): -20.0, s(0): -12.0}], None),
    "triangles": (
        [{s(): -20.0, s(2): -10.0}, {s(): -20.0, s(0): -10.0}, {s(): -20.0, s(1): -10.0}],
        None,
    ),
    "required": ([{s(): -20.0, s(1): -10.0}, {s(0): -20.0}], None),
    "at_most_two, a z bit": (
        [
            {s(): -20.0, s(1, 2): -10.0, s(1, 3): -10.0, s(2, 3): -10.0},
            {s(): 0.0},
            {s(): 0.0},
            {s(): 0.0},
        ],
        [[(1,), (2,), (3,)], [], [], []],
    ),
    "at_most_two, unused pairs": (
        [{s(): -20.0, s(1, 2): -10.0, s(2, 3): -10.0}, {s(): 0.0}, {s(): 0.0}, {s(): 0.0}],
        [[(1,), (2,), (3,)], [], [], []],
    ),
}


def random_scores(
    random: np.random.Generator, n: int, largest: int, density: float = 0.3, required: int = 0
) -> list[dict[Set, float]]:
    """By vertex the log score of each candidate set: every set beats all its subsets (`CPS` in the paper)."""
    order = random.permutation(n)
    bases = [set() for _ in range(n)]
    for _ in range(required):
        first, second = sorted(random.choice(n, 2, replace=False))
        bases[order[second]].add(int(order[first]))
    return [
        _vertex_scores(
            random, [v for v in range(n) if v != i], frozenset(bases[i]), largest, density
        )
        for i in range(n)
    ]


def _vertex_scores(
    random: np.random.Generator, others: list[int], base: Set, largest: int, density: float
) -> dict[Set, float]:
    free = [v for v in others if v not in base]
    scores = {base: -10.0 - float(random.exponential(10))}
    scale = float(random.choice([0.3, 3.0, 30.0]))
    for size in range(1, largest - len(base) + 1):
        for members in combinations(free, size):
            if random.random() < density:
                parents = base | frozenset(members)
                inside = max(score for known, score in scores.items() if known < parents)
                scores[parents] = inside + 0.01 + float(random.exponential(scale))
    return scores


def candidates_of(scores: list[dict[Set, float]]) -> Candidates:
    """The same as flat arrays, best first."""
    lists, flat = [], []
    for known in scores:
        ordered = sorted(
            known, key=lambda parents: (-known[parents], len(parents), sorted(parents))
        )
        lists.append([tuple(sorted(parents)) for parents in ordered])
        flat += [known[parents] for parents in ordered]
    return Candidates(
        tuple(f"v{i}" for i in range(len(scores))), Families.of(lists), np.array(flat)
    )


def whole_subsets(candidates: Candidates) -> Subsets:
    """Every candidate set is its own subset."""
    lists = []
    for vertex in range(candidates.n):
        base = set(candidates.base(vertex))
        sets = (
            tuple(v for v in parents if v not in base)
            for parents in candidates.families.sets_of(vertex)
        )
        lists.append([parents for parents in sets if parents])
    return subsets_of(candidates, lists)


def split_subsets(random: np.random.Generator, candidates: Candidates) -> Subsets:
    """A random family that covers: each candidate set not yet a union of two is added, whole or as two parts."""
    lists = []
    for vertex in range(candidates.n):
        base = frozenset(candidates.base(vertex))
        family: list[Set] = []
        for parents in sorted(candidates.families.sets_of(vertex), key=len):
            wanted = frozenset(parents) - base
            if wanted and not any(a | b == wanted for a in family for b in family):
                family += _parts(random, wanted, family)
        lists.append([tuple(sorted(s)) for s in dict.fromkeys(family)])
    return subsets_of(candidates, lists)


def _parts(random: np.random.Generator, wanted: Set, family: list[Set]) -> list[Set]:
    inside = [known for known in family if known < wanted]
    if inside and random.random() < 0.7:
        return [wanted - inside[int(random.integers(len(inside)))]]
    if len(wanted) > 1 and random.random() < 0.3:
        cut = int(random.integers(1, len(wanted)))
        return [
            part
            for part in (frozenset(sorted(wanted)[:cut]), frozenset(sorted(wanted)[cut:]))
            if part not in family
        ]
    return [wanted]


def subsets_of(candidates: Candidates, lists: list[list[tuple[int, ...]]]) -> Subsets:
    return Subsets(
        candidates.names, Families.of(lists), np.zeros(candidates.n, np.int64), "test", 0.0
    )


def crowded_scores(random: np.random.Generator, n: int, largest: int) -> list[dict[Set, float]]:
    """One vertex with many candidate sets, the others with few: what keeps it at two subsets is put to the test."""
    scores = random_scores(random, n, 2, 0.08)
    scores[0] = _vertex_scores(random, list(range(1, n)), frozenset(), largest, 0.6)
    return scores


def state_of(index: int, bits: int) -> np.ndarray:
    """The state whose bit b is bit b of the index."""
    return (index >> np.arange(bits)) & 1 == 1


def all_energies(qubo: Qubo) -> np.ndarray:
    rows, cols, weights = upper_triangle(qubo)
    couplers = dict(
        zip(zip(rows.tolist(), cols.tolist(), strict=True), weights.tolist(), strict=True)
    )
    return reference.all_energies(qubo.h, couplers, qubo.offset)


def problems(seed: int):
    """(scores, candidates, subsets) of random problems without end: plain, with required edges, crowded."""
    random = np.random.default_rng(seed)
    while True:
        n, largest = int(random.integers(1, 6)), int(random.integers(1, 4))
        kind = random.integers(3)
        if kind == 2:
            scores = crowded_scores(random, max(n, 4), max(largest, 2))
        else:
            required = int(random.integers(1, 3)) if kind and n > 1 else 0
            scores = random_scores(
                random, n, largest, float(random.choice([0.1, 0.2, 0.3])), required
            )
        candidates = candidates_of(scores)
        yield (
            scores,
            candidates,
            whole_subsets(candidates)
            if random.random() < 0.2
            else split_subsets(random, candidates),
        )


def formulations(seed: int, count: int, order: str, penalty: str):
    """The first problems that are small enough to try every state."""
    for scores, candidates, subsets in problems(seed):
        formulation = formulate(candidates, subsets, order=order, penalty=penalty)
        if formulation.qubo.bits <= MOST_BITS:
            yield scores, formulation
            count -= 1
            if not count:
                return
