"""`hillclimb`: every step against a search that tries everything."""

import numpy as np
import pytest

from qubayes import Score, Search, identify
from qubayes.candidates import Candidates
from qubayes.data import Dataset
from qubayes.foundation.errors import QubayesError, SettingError
from qubayes.foundation.graph import find_cycle
from qubayes.foundation.random import random_stream
from qubayes.foundation.workers import Workers
from qubayes.search import Limits, solve, solver_named
from qubayes.search.orders.hillclimb import Climber, data_of, most_parents, new_climb, possible_edges, sets_of
from qubayes.search.orders.hillclimb_kernels import ANCESTORS, CLIMB_BEST, FIRST, KICK, SIZE, STALL, STEPS, TABU, TOTAL
from qubayes.search.orders.walks import Pace
from qubayes.search.run import Run
from reference import searches
from reference.scores import local_score as reference_score
from solve_cases import best_score, random_candidates, with_required_edge

PACE = Pace(0.0, 0.0)


def climber(candidates: Candidates, dataset: Dataset | None = None, seed: int = 0) -> Climber:
    base = candidates.families.vertex_start[1:] - 1
    run = Run(candidates, Limits(None, moves=1), Workers(1), base, lambda progress: None, "hillclimb")
    sets = sets_of(candidates) if dataset is None else None
    data = data_of(dataset, candidates) if dataset is not None else None
    climb = new_climb(run, possible_edges(candidates), random_stream(seed), hashed=dataset is not None)
    return Climber(run, sets, data, climb)


def families_of(candidates: Candidates):
    return [{frozenset(members): score for members, score in candidates.of(v)} for v in range(candidates.n)]


def graph_of(walk: Climber) -> list[frozenset[int]]:
    return [frozenset(row[FIRST : FIRST + row[SIZE]].tolist()) for row in walk.climb.lists[0]]


def assert_steps_are_best(walk: Climber, toggled_of, steps: int) -> tuple[int, int]:
    """Make steps one by one; returns how many were changes for the better and how many were kicks."""
    walk.advance(0, PACE)
    climb, free_from = walk.climb, {}
    gained = kicked = 0
    for _ in range(steps):
        parents, counts, totals = graph_of(walk), climb.counts.copy(), climb.totals.copy()
        n = len(parents)
        assert not find_cycle([tuple(its) for its in parents])
        for vertex in range(n):
            row = climb.bits[ANCESTORS, vertex]
            assert {v for v in range(n) if int(row[v >> 6]) >> (v & 63) & 1} == searches.ancestors(parents, vertex)
        toggled = [toggled_of(vertex, parents[vertex]) for vertex in range(n)]
        np.testing.assert_allclose(climb.scores[:n], toggled, rtol=1e-10)
        walk.advance(1, PACE)
        after = graph_of(walk)
        if counts[KICK] or climb.counts[KICK]:
            kicked += 1
        else:
            wanted = totals[CLIMB_BEST] - totals[TOTAL]
            step = counts[STEPS] + 1
            allowed = [
                gain
                for gain, child, parent in searches.changes(parents, toggled)
                if free_from.get(frozenset((child, parent)), 0) <= step or gain > wanted + 1e-9
            ]
            assert counts[STALL] < TABU
            assert climb.totals[TOTAL] - totals[TOTAL] == pytest.approx(max(allowed), abs=1e-8)
            gained += max(allowed) > 0
            ((i, j),) = [(i, j) for i, j in np.argwhere(climb.tabu == step + TABU + 1).tolist() if i < j]
            assert (j in parents[i]) != (j in after[i]) or (i in parents[j]) != (i in after[j])
        np.testing.assert_array_equal(climb.tabu, climb.tabu.T)
        free_from = {
            frozenset((i, j)): climb.tabu[i, j] for i in range(n) for j in range(n) if i != j and climb.tabu[i, j]
        }
        assert sum(a != b for a, b in zip(parents, after, strict=True)) <= 2 or climb.counts[KICK] == 10
    return gained, kicked


@pytest.mark.parametrize("seed", range(4))
def test_steps_on_candidate_sets(seed):
    candidates = with_required_edge(7, seed) if seed == 3 else random_candidates(7, seed, sets=20)
    families = families_of(candidates)
    walk = climber(candidates, seed=seed)
    gained, kicked = assert_steps_are_best(
        walk, lambda vertex, its: searches.toggled_by_sets(families[vertex], its, vertex, candidates.n), 120
    )
    assert gained > 10 and kicked > 10


def dataset_of(n: int, rows: int, seed: int, states: int = 3) -> Dataset:
    """A chain with noise: each column repeats the one before it more often than not."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, states, (n, rows))
    for column in range(1, n):
        same = random.random(rows) < 0.7
        codes[column, same] = (codes[column - 1, same] + codes[max(0, column - 2), same]) % states
    names = tuple(f"x{v}" for v in range(n))
    return Dataset(names, (tuple("abcd"[: states + 1]),) * n, codes.astype(np.uint8))


@pytest.mark.parametrize("name", ["bdeu", "bds", "k2", "bic", "aic", "loglik"])
def test_steps_on_data(name):
    data, most = dataset_of(5, 60, 1), 2
    candidates = identify(data, Search(most, Score(name, 2.0)))
    rows, arities = list(zip(*data.codes.tolist(), strict=True)), data.arities.tolist()
    possible = [frozenset().union(*family) for family in families_of(candidates)]

    def toggled(vertex, its):
        scores = []
        for other in range(5):
            new = its ^ {other} if other != vertex else its
            fits = other == vertex or (other in possible[vertex] and len(new) <= most_parents(candidates))
            scores.append(reference_score(rows, arities, vertex, sorted(new), name, 2.0) if fits else -np.inf)
        return scores

    walk = climber(candidates, data)
    gained, _ = assert_steps_are_best(walk, toggled, 60)
    assert gained > 2


def test_the_optimum_from_data():
    data = dataset_of(6, 200, 5, states=2)
    candidates = identify(data, Search(3, Score("bds")))
    for threads in (1, 2):
        solution = solve(
            candidates,
            solver_named("hillclimb", dataset=data),
            limits=Limits(None, moves=3000, seed=2),
            workers=Workers(threads),
        )
        assert solution.score == pytest.approx(best_score(candidates), abs=1e-9)
        assert solution.statistics["climbs"] > 20


def test_what_is_offered_from_data_is_never_worse_than_what_was_found():
    data = dataset_of(6, 80, 7)
    candidates = identify(data, Search(2, Score("bic")))
    walk = climber(candidates, data)
    walk.advance(500, PACE)
    assert walk.run.score >= walk.climb.totals[2] - 1e-9
    found = [frozenset(row[FIRST : FIRST + row[SIZE]].tolist()) for row in walk.climb.lists[1]]
    assert all(set(its) <= wide for its, wide in zip(candidates.families.sets_at(walk.run.choice), found, strict=True))


def test_a_row_is_scored_once_while_memory_lasts():
    candidates = random_candidates(8, 3, sets=20)
    whole, small = climber(candidates), climber(candidates)
    small.climb = small.climb._replace(scores=small.climb.scores[:9], entries=small.climb.entries[:9])  # one slot
    for walk in (whole, small):
        walk.advance(2000, PACE)
    assert whole.climb.totals.tolist() == small.climb.totals.tolist()
    assert (whole.climb.lists == small.climb.lists).all()


def test_slices_do_not_matter():
    candidates = random_candidates(8, 3, sets=20)
    whole, sliced = climber(candidates), climber(candidates)
    whole.advance(600, PACE)
    for _ in range(60):
        sliced.advance(10, PACE)
    assert (whole.climb.lists == sliced.climb.lists).all()


def test_data_that_do_not_fit_are_refused():
    data = dataset_of(4, 30, 0)
    with pytest.raises(QubayesError, match="give the data that they come from"):
        solve(random_candidates(4, 0), solver_named("hillclimb", dataset=data))
    nameless = random_candidates(4, 0)
    same = Candidates(data.names, nameless.families, nameless.scores)
    with pytest.raises(SettingError, match="must be one of bdeu"):
        solve(same, solver_named("hillclimb", dataset=data))
