"""Made-up candidate sets, to compile or load kernels with before a clock starts."""

from itertools import combinations
from math import inf

import numpy as np

from ..foundation.arrays import frozen
from ..foundation.families import Families
from .candidates import Candidates

SETS = 32  # about so many for each vertex


def example(vertices: int = 8) -> Candidates:
    """Candidate sets that are hard enough for every kernel to be called, made without one."""
    random = np.random.default_rng(0)
    lists, scores = [], []
    for vertex in range(vertices):
        others = [other for other in range(vertices) if other != vertex]
        every = [chosen for size in range(1, 4) for chosen in combinations(others, size)]
        best: dict[tuple[int, ...], float] = {(): -10.0}
        for chosen in (chosen for chosen in every if random.random() < SETS / len(every)):
            below = max((score for known, score in best.items() if set(known) < set(chosen)), default=-inf)
            best[chosen] = below + float(random.random())
        ordered = sorted(best.items(), key=lambda item: (-item[1], len(item[0]), item[0]))
        lists.append([chosen for chosen, _ in ordered])
        scores += [score for _, score in ordered]
    names = tuple(f"v{vertex}" for vertex in range(vertices))
    return Candidates(names, Families.of(lists), frozen(np.array(scores)))
