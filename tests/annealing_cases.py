"""Candidate sets for the tests of searches over orders."""

import numpy as np
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from formulation_cases import candidates_of, random_scores
from qubayes.candidates import Candidates
from solve_cases import random_candidates


def lists_of(candidates: Candidates) -> list[list[tuple[tuple[int, ...], float]]]:
    return [list(candidates.of(vertex)) for vertex in range(candidates.n)]


@st.composite
def problems(draw, smallest=2, largest=7):
    """Candidate sets with and without ties, with and without required parents."""
    n, seed = draw(st.integers(smallest, largest)), draw(st.integers(0, 10**6))
    if draw(st.booleans()):
        return random_candidates(n, seed, sets=draw(st.integers(1, 12)), ties=draw(st.booleans()))
    random = np.random.default_rng(seed)
    return candidates_of(
        random_scores(random, n, 3, draw(st.sampled_from([0.2, 0.6])), draw(st.integers(0, 2)))
    )


def large(n: int = 30, seed: int = 0, **more) -> Candidates:
    """One component, too large to be solved by dynamic programming."""
    candidates = random_candidates(n, seed, sets=20, **more)
    assert connected_components(candidates.families.arcs(), connection="strong")[0] == 1
    return candidates
