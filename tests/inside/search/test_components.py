"""Components of the candidate graph, and networks as choices of candidate sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes.candidates import Candidates, prune
from qubayes.foundation.families import Families
from qubayes.search.reduction import Components, split
from solve_cases import best_score, random_candidates, sparse_candidates


@given(st.integers(1, 8), st.integers(0, 10_000))
def test_the_best_of_the_components_is_the_best_of_all(n, seed):
    candidates = sparse_candidates(n, seed)
    components = split(candidates)
    total = 0.0
    for component in components:
        names = tuple(candidates.names[v] for v in component.vertices)
        total += best_score(Candidates(names, component.families, component.scores))
    alone = np.setdiff1d(
        np.arange(n),
        np.concatenate([[], *(component.vertices for component in components)]).astype(int),
    )
    total += candidates.scores[candidates.families.vertex_start[:-1][alone]].sum()
    assert total == pytest.approx(best_score(candidates))


@given(st.integers(1, 8), st.integers(0, 10_000))
def test_sets_of_a_component_are_in_order_and_stand_for_candidate_sets(n, seed):
    candidates = sparse_candidates(n, seed)
    for component in split(candidates):
        assert (component.scores == candidates.scores[component.numbers]).all()
        for local, vertex in enumerate(component.vertices.tolist()):
            sets = list(component.families.sets_of(local))
            first, last = component.families.vertex_start[local : local + 2]
            assert (np.diff(component.scores[first:last]) <= 0).all()
            assert len(set(sets)) == len(sets) and all(
                set(sets[-1]) <= set(members) for members in sets
            )
            for members, number in zip(sets, component.numbers[first:last].tolist(), strict=True):
                (whole,) = candidates.families.sets_at([number])
                assert {component.vertices[m] for m in members} == set(whole) & set(
                    component.vertices.tolist()
                )
                assert vertex not in whole


def test_vertices_in_no_component_take_their_best_set():
    candidates = prune(
        ["a", "b", "c"], [[((), -3.0)], [((), -3.0), ((0,), -1.0)], [((), -3.0), ((0, 1), -2.0)]]
    )
    assert split(candidates) == []
    assert candidates.families.sets_at(Components(candidates, []).invert([])) == ((), (0,), (0, 1))


def test_best_of_an_order_and_inside():
    candidates = random_candidates(5, 0)
    order = [3, 1, 4, 0, 2]
    chosen = candidates.families.sets_at(candidates.families.best_of_order(order))
    inside = candidates.families.sets_at(
        candidates.families.best_inside(
            np.array([[u in order[: order.index(v)] for u in range(5)] for v in range(5)])
        )
    )
    assert chosen == inside
    for vertex, members in enumerate(chosen):
        scores = {
            s: score
            for s, score in candidates.of(vertex)
            if set(s) <= set(order[: order.index(vertex)])
        }
        assert scores[members] == max(scores.values())


def test_no_vertices():
    assert split(Candidates((), Families.of([]), np.zeros(0))) == []
