"""H(u, r, z) term by term from the paper's formulas, all DAGs, the energies of all states. No kernel of ours."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations, product

import numpy as np

Set = frozenset[int]
# by vertex: log score of each candidate set, the base among them
Scores = Sequence[dict[Set, float]]


def base_of(scores: dict[Set, float]) -> Set:
    return min(scores, key=len)


def closure(scores: dict[Set, float], parents: Set) -> float:
    """Score of the best candidate set inside the parents and the base."""
    return max(score for known, score in scores.items() if known <= parents | base_of(scores))


@cache
def all_dags(n: int) -> tuple[tuple[Set, ...], ...]:
    """The parents of each vertex of every DAG on n vertices."""
    choices = [
        [frozenset(s) for k in range(n) for s in combinations([v for v in range(n) if v != i], k)]
        for i in range(n)
    ]
    return (
        tuple(dag for dag in product(*choices) if is_acyclic(dag))
        if n < 5
        else tuple(_dags_by_sinks(n))
    )


def _dags_by_sinks(n: int) -> Iterator[tuple[Set, ...]]:
    """Every DAG on n vertices, once: those on n - 1 with a last vertex put in anywhere that closes no cycle."""
    new = n - 1
    some = [frozenset(chosen) for size in range(n) for chosen in combinations(range(new), size)]
    for dag, into, out in product(all_dags(new), some, some):
        grown = (*(parents | {new} if v in out else parents for v, parents in enumerate(dag)), into)
        if is_acyclic(grown):
            yield grown


def is_acyclic(parents: Sequence[Set]) -> bool:
    left = set(range(len(parents)))
    while left:
        roots = {v for v in left if not parents[v] & left}
        if not roots:
            return False
        left -= roots
    return True


def best_score_of_dags(scores: Scores) -> float:
    """The best score over all DAGs that contain every base, a parent set scored by the best candidate set inside it."""
    dags = all_dags(len(scores))
    legal = (dag for dag in dags if all(base_of(s) <= p for s, p in zip(scores, dag, strict=True)))
    return max(sum(closure(s, p) for s, p in zip(scores, dag, strict=True)) for dag in legal)


def best_score_of_orders(scores: Scores) -> float:
    """The same by all orders of the vertices."""
    best = -np.inf
    for order in permutations(range(len(scores))):
        before: set[int] = set()
        total = 0.0
        for v in order:
            allowed = [score for known, score in scores[v].items() if known <= before]
            total += max(allowed, default=-np.inf)
            before.add(v)
        best = max(best, total)
    return best


@dataclass(frozen=True)
class PaperProblem:
    """The paper's H: subsets by vertex, E as pairs i < j, and the three penalties."""

    scores: Scores
    subsets: Sequence[Sequence[Set]]
    pairs: Sequence[tuple[int, int]]
    delta1: float
    delta2: float
    xi: float
    union_score: Callable[[int, Set], float]  # log S_i(W)


def strongly_connected_pairs(scores: Scores) -> list[tuple[int, int]]:
    """The paper's E: pairs i < j that lie on directed walks to each other in the graph of possible parents."""
    n = len(scores)
    reach = [[False] * n for _ in range(n)]
    for child, known in enumerate(scores):
        for parents in known:
            for parent in parents:
                reach[parent][child] = True
    for k, i, j in product(range(n), repeat=3):
        reach[i][j] = reach[i][j] or (reach[i][k] and reach[k][j])
    return [(i, j) for i in range(n) for j in range(i + 1, n) if reach[i][j] and reach[j][i]]


def paper_energy(
    p: PaperProblem, u: Sequence[Sequence[int]], r: dict[tuple[int, int], int], z: Sequence[int]
) -> float:
    """H bar(u, r, z) less the score of the empty graph, summed as printed (Sections 2.3 and 4)."""
    empty: Set = frozenset()
    total = 0.0
    for i, subsets in enumerate(p.subsets):
        score = lambda parents, i=i: p.union_score(i, parents)  # noqa: E731
        total -= score(empty)
        for j, U in enumerate(subsets):
            for k in range(j, len(subsets)):
                V = subsets[k]
                sign = (-1) ** (1 + len({U, V}))
                total += (
                    sign * (score(U | V) - score(U) - score(V) + score(empty)) * u[i][j] * u[i][k]
                )
        count = sum(u[i])
        total += p.xi * (z[i] - z[i] * count + sum(a * b for a, b in combinations(u[i], 2)))
    total += sum(p.delta1 * _cyclic(r[i, j], r[j, k], r[i, k]) for i, j, k in triangles(p.pairs))
    for i, j in p.pairs:
        d_ij = sum(bit for bit, U in zip(u[i], p.subsets[i], strict=True) if j in U)
        d_ji = sum(bit for bit, U in zip(u[j], p.subsets[j], strict=True) if i in U)
        total += p.delta2 * (d_ij * r[i, j] + d_ji * (1 - r[i, j]))
    return total


def _cyclic(r_ij: int, r_jk: int, r_ik: int) -> int:
    return r_ik + r_ij * r_jk - r_ij * r_ik - r_jk * r_ik


def triangles(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    known = set(pairs)
    vertices = sorted({v for pair in pairs for v in pair})
    return [(i, j, k) for i, j, k in combinations(vertices, 3) if {(i, j), (j, k), (i, k)} <= known]


def all_energies(
    h: np.ndarray, couplers: dict[tuple[int, int], float], offset: float
) -> np.ndarray:
    """The energy of every state; bit b of the index is bit b of the state."""
    energies = np.array([offset])
    for b in range(len(h)):
        field = np.array([h[b]])
        for a in range(b):
            field = np.concatenate([field, field + couplers.get((a, b), 0.0)])
        energies = np.concatenate([energies, energies + field])
    return energies
