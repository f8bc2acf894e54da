"""Candidate sets for the tests of the solvers, and a slow way to their best network."""

from functools import cache
from itertools import combinations

import numpy as np
import polars as pl

from qubayes.candidates import Candidates, prune
from qubayes.data import Dataset
from qubayes.qubo import Formulation, formulate
from qubayes.qubo.subsets import cover


def random_candidates(
    n: int, seed: int, sets: int = 6, most: int = 3, ties: bool = False
) -> Candidates:
    """Random parent sets with random scores; with `ties` the scores are small whole numbers."""
    random = np.random.default_rng(seed)
    lists = []
    for vertex in range(n):
        others = [v for v in range(n) if v != vertex]
        every = [s for size in range(1, most + 1) for s in combinations(others, size)]
        picked = random.permutation(len(every))[:sets]
        score = (
            (lambda size: float(random.integers(1, 4) * size))
            if ties
            else (lambda size: 5 * size * random.random())
        )
        lists.append(
            [((), -20.0), *((every[p], -20.0 + score(len(every[p]))) for p in sorted(picked))]
        )
    return prune([f"v{v}" for v in range(n)], lists)


def with_required_edge(
    n: int, seed: int, parent: int = 0, child: int = 1, most: int = 3
) -> Candidates:
    """The same with the edge parent -> child in every set of the child."""
    free = random_candidates(n, seed, most=most)
    lists = [list(free.of(vertex)) for vertex in range(n)]
    lists[child] = list(
        {tuple(sorted({parent, *members})): score for members, score in lists[child]}.items()
    )
    lists[parent] = [(members, score) for members, score in lists[parent] if child not in members]
    return prune(free.names, lists)


def sparse_candidates(n: int, seed: int) -> Candidates:
    """Few sets, mostly of earlier vertices: many components."""
    random = np.random.default_rng(seed)
    lists = []
    for vertex in range(n):
        near = [v for v in range(max(0, vertex - 3), min(n, vertex + 2)) if v != vertex]
        sets = {(): -10.0}
        for _ in range(4):
            members = tuple(sorted(random.permutation(near)[: random.integers(1, 3)].tolist()))
            sets.setdefault(members, -10.0 + 9.0 * random.random())
        lists.append(list(sets.items()))
    return prune([f"v{v}" for v in range(n)], lists)


def symmetric(n: int, seed: int) -> Candidates:
    """Random candidates made symmetric under the exchange of vertices 0 and 1, none with a set that holds both."""
    random = random_candidates(n, seed, sets=10)
    swap = {0: 1, 1: 0}
    lists: list[dict[tuple[int, ...], float]] = [{} for _ in range(n)]
    for vertex in range(n):
        for members, score in random.of(vertex):
            if (
                not {0, 1} <= {*members} | ({vertex} if vertex > 1 else set())
                or len({0, 1} & {*members}) < 2
            ):
                other = tuple(sorted(swap.get(member, member) for member in members))
                score = lists[vertex].get(members, score)
                lists[vertex][members] = lists[swap.get(vertex, vertex)][other] = score
    return prune([f"v{v}" for v in range(n)], [list(family.items()) for family in lists])


def small_candidates(seed: int) -> list[Candidates]:
    """Candidates of few networks, with ties, required edges and several components."""
    return [
        random_candidates(5, seed, sets=6),
        random_candidates(4, seed, sets=7, ties=True),
        random_candidates(6, seed, sets=4),
        with_required_edge(5, seed),
        sparse_candidates(6, seed),
    ]


def data_with_twins(seed: int, rows: int = 60) -> pl.DataFrame:
    """a, b, c of two or three states; A and Aa are a renamed, B is b renamed."""
    random = np.random.default_rng(seed)
    a = random.integers(0, 2, rows)
    b = np.where(random.random(rows) < 0.8, a, random.integers(0, 3, rows))
    c = np.where(random.random(rows) < 0.7, (a + b) % 2, random.integers(0, 2, rows))
    return pl.DataFrame({"a": a, "b": b, "A": 1 - a, "c": c, "B": (b + 1) % 3, "Aa": a + 7})


class TickingClock:
    """A clock that advances by `tick` seconds at each look: a search under it makes a limited number of looks."""

    def __init__(self, tick: float) -> None:
        self.tick, self.looks = tick, 0

    def __call__(self) -> float:
        self.looks += 1
        return self.looks * self.tick

    @property
    def seconds(self) -> float:
        """Seconds that have passed on this clock."""
        return self.looks * self.tick


def formulated(candidates: Candidates) -> Formulation:
    """The QUBO of the candidates."""
    return formulate(candidates, cover(candidates))


def best_score(candidates: Candidates) -> float:
    """The score of the best network, by dynamic programming over the set of vertices that come first."""
    families = [
        [(frozenset(members), score) for members, score in candidates.of(v)]
        for v in range(candidates.n)
    ]

    @cache
    def best(first: frozenset[int]) -> float:
        if not first:
            return 0.0
        return max(best(first - {v}) + within(v, first - {v}) for v in first)

    @cache
    def within(vertex: int, allowed: frozenset[int]) -> float:
        return max(
            (score for members, score in families[vertex] if members <= allowed), default=-np.inf
        )

    return best(frozenset(range(candidates.n)))


def dataset_of(n: int, rows: int, seed: int, states: int = 3) -> Dataset:
    """A chain with noise: each column repeats the one before it more often than not."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, states, (n, rows))
    for column in range(1, n):
        same = random.random(rows) < 0.7
        codes[column, same] = (codes[column - 1, same] + codes[max(0, column - 2), same]) % states
    names = tuple(f"x{v}" for v in range(n))
    return Dataset(names, (tuple("abcd"[: states + 1]),) * n, codes.astype(np.uint8))
