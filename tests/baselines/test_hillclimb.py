"""`hillclimb`: every step against a search that tries everything."""

import numpy as np
import pytest
from typer.testing import CliRunner

from qubayes import CandidateSearch, FormatError, QubayesError, Score, SettingError, identify
from qubayes.candidates import Candidates, Stamp, read_candidates, write_candidates
from qubayes.cli import app
from qubayes.data import Dataset, read, write
from qubayes.foundation.families import Families
from qubayes.foundation.graph import find_cycle
from qubayes.foundation.random import random_stream
from qubayes.foundation.workers import Workers
from qubayes.search import Limits, solve, solver_named
from qubayes.search.run import Run
from qubayes_baselines import hillclimb
from qubayes_baselines.hillclimb import (
    Climber,
    data_of,
    most_parents,
    new_climb,
    possible_edges,
    sets_of,
)
from qubayes_baselines.hillclimb_kernels import (
    ANCESTORS,
    CLIMBS,
    FIRST,
    KICK,
    KICKS,
    POSSIBLE,
    SIZE,
    STALL,
    STEPS,
    TABU,
    TOTAL,
    TRIES,
)
from qubayes_baselines.walks import Pace
from reference import searches
from reference.annealing import Draws
from reference.scores import local_score as reference_score
from solve_cases import best_score, dataset_of, random_candidates, with_required_edge

PACE = Pace(0.0, 0.0)


def climber(
    candidates: Candidates, dataset: Dataset | None = None, seed: int = 0, **more: int
) -> Climber:
    base = candidates.families.vertex_start[1:] - 1
    run = Run(
        candidates, Limits(None, moves=1), Workers(1), base, lambda progress: None, "hillclimb"
    )
    sets = sets_of(candidates) if dataset is None else None
    data = data_of(dataset, candidates) if dataset is not None else None
    edges, hashed = possible_edges(candidates), dataset is not None
    climb = new_climb(run, edges, random_stream(seed), hashed=hashed, kick=0, **more)
    return Climber(run, sets, data, climb)


def families_of(candidates: Candidates):
    return [
        {frozenset(members): score for members, score in candidates.of(v)}
        for v in range(candidates.n)
    ]


def graph_of(walk: Climber, plane: int = 0) -> list[frozenset[int]]:
    """The parents in the graph, or in the best one."""
    return [frozenset(row[FIRST : FIRST + row[SIZE]].tolist()) for row in walk.climb.lists[plane]]


def assert_steps_are_best(
    walk: Climber, toggled_of, draws: Draws, kicked, steps: int
) -> tuple[int, int]:
    """Make steps one by one; returns how many were changes for the better and how many were kicks.

    `toggled_of` gives the scores of a vertex with each edge toggled, `kicked` the change that a
    kick makes."""
    walk.advance(0, PACE)
    climb, best, most, climb_best, stall, climbs = (
        walk.climb,
        graph_of(walk),
        walk.climb.totals[TOTAL],
        -np.inf,
        0,
        0,
    )
    n, free_from = len(best), {}
    gained = kicks = 0
    for step in range(1, steps + 1):
        parents, kick, total = graph_of(walk), int(climb.counts[KICK]), climb.totals[TOTAL]
        climb_best, stall = (
            (-np.inf, 0)
            if kick
            else (total, 0)
            if total > climb_best + 1e-9
            else (climb_best, stall)
        )
        if total > most + 1e-9:
            most, best = total, parents
        assert climb.counts[[STEPS, STALL, CLIMBS]].tolist() == [step - 1, stall, climbs]
        assert climb.totals.tolist() == pytest.approx([total, climb_best, most], abs=1e-9)
        assert graph_of(walk, 1) == best
        assert not find_cycle([tuple(its) for its in parents])
        for vertex in range(n):
            row = climb.bits[ANCESTORS, vertex]
            assert {v for v in range(n) if int(row[v >> 6]) >> (v & 63) & 1} == searches.ancestors(
                parents, vertex
            )
        toggled = [toggled_of(vertex, parents[vertex]) for vertex in range(n)]
        np.testing.assert_allclose(climb.scores[:n], toggled, rtol=1e-10)
        wanted = climb_best - total
        gains = [
            gain
            for gain, child, parent in searches.changes(parents, toggled)
            if free_from.get(frozenset((child, parent)), 0) <= step or gain > wanted + 1e-9
        ]
        walk.advance(1, PACE)
        after, stall = graph_of(walk), stall + 1
        if kick:
            kicks += 1
            change = kicked(draws, parents)
            assert climb.counts[KICK] == kick - 1
            assert after == [
                change[2] if change and v == change[0] else its for v, its in enumerate(parents)
            ]
            if change:
                free_from[frozenset(change[:2])] = step + TABU + 1
        elif stall > TABU or not gains:
            climbs += 1
            assert climb.counts[KICK] == KICKS and after == best
        else:
            assert (
                climb.totals[TOTAL] - total == pytest.approx(max(gains), abs=1e-8)
                and not climb.counts[KICK]
            )
            gained += max(gains) > 0
            ((i, j),) = [
                (i, j) for i, j in np.argwhere(climb.tabu == step + TABU + 1).tolist() if i < j
            ]
            assert (j in parents[i]) != (j in after[i]) or (i in parents[j]) != (i in after[j])
            free_from[frozenset((i, j))] = step + TABU + 1
        tabu = [[free_from.get(frozenset((i, j)), 0) for j in range(n)] for i in range(n)]
        assert climb.tabu.tolist() == tabu
    return gained, kicks


@pytest.mark.parametrize("seed", range(4))
def test_steps_on_candidate_sets(seed):
    candidates = (
        with_required_edge(7, seed, child=6) if seed == 3 else random_candidates(7, seed, sets=20)
    )
    families, edges = families_of(candidates), possible_edges(candidates).tolist()
    gained, kicks = assert_steps_are_best(
        climber(candidates, seed=seed),
        lambda vertex, its: searches.toggled_by_sets(families[vertex], its, vertex, candidates.n),
        Draws(*random_stream(seed).tolist()),
        lambda draws, parents: searches.kicked_by_sets(families, edges, parents, draws, TRIES),
        150,
    )
    assert gained > 10 and kicks > 20


def test_steps_on_more_than_64_vertices():
    candidates = random_candidates(66, 1, sets=40, most=2)
    families = families_of(candidates)
    gained, _ = assert_steps_are_best(
        climber(candidates),
        lambda vertex, its: searches.toggled_by_sets(families[vertex], its, vertex, candidates.n),
        Draws(*random_stream(0).tolist()),
        None,
        12,
    )
    assert gained == 12


def test_possible_edges():
    """Those of some candidate set but the required ones; kernels read them as bits."""
    candidates = with_required_edge(70, 1, most=1)
    edges = possible_edges(candidates)
    arcs = {
        (v, p)
        for v, family in enumerate(families_of(candidates))
        for p in frozenset().union(*family)
    } - {(1, 0)}
    assert sorted(map(tuple, edges.tolist())) == sorted(arcs)
    run = Run(candidates, Limits(None, moves=1), Workers(1))
    row = new_climb(run, edges, random_stream(0), hashed=True, kick=0).bits[POSSIBLE]
    assert {
        (v, p) for v in range(70) for p in range(70) if int(row[v, p >> 6]) >> (p & 63) & 1
    } == arcs


@pytest.mark.parametrize("megabytes", [0, 1])
def test_memory_for_scored_rows(megabytes):
    climb = climber(random_candidates(9, 1), memory=megabytes << 20).climb
    kept = climb.scores[9:].nbytes + climb.entries[9:].nbytes
    assert (
        len(climb.scores) == 2 * 9 if not megabytes else megabytes << 19 < kept <= megabytes << 20
    )


def test_only_the_first_walk_begins_at_the_start(calls_of):
    solver_named("hillclimb").prepare()
    calls = calls_of(hillclimb, "new_climb")
    solve(random_candidates(5, 0), "hillclimb", limits=Limits(None, moves=8), workers=Workers(1))
    assert [more["kick"] for _, more in calls] == [0, KICKS, KICKS, KICKS]


@pytest.mark.parametrize(
    ("given", "largest", "most"), [(None, 0, 1), (None, 2, 2), (1, 2, 2), (3, 2, 3)]
)
def test_most_parents(given, largest, most):
    lists = [[()], [()], [tuple(range(largest)), ()] if largest else [()]]
    families = Families.of(lists)
    stamp = Stamp(max_parents=given)
    assert (
        most_parents(
            Candidates(("a", "b", "c"), families, np.zeros(int(families.sizes.sum())), stamp)
        )
        == most
    )


@pytest.mark.parametrize("name", ["bdeu", "bds", "k2", "bic", "aic", "loglik"])
def test_steps_on_data(name):
    data, most = dataset_of(5, 60, 1), 2
    candidates = identify(data, CandidateSearch(most, Score(name, 2.0)))
    rows, arities = list(zip(*data.codes.tolist(), strict=True)), data.arities.tolist()
    possible, edges = (
        [frozenset().union(*family) for family in families_of(candidates)],
        possible_edges(candidates),
    )

    def toggled(vertex, its):
        scores = []
        for other in range(5):
            new = its ^ {other} if other != vertex else its
            fits = other == vertex or (
                other in possible[vertex] and len(new) <= most_parents(candidates)
            )
            scores.append(
                reference_score(rows, arities, vertex, sorted(new), name, 2.0) if fits else -np.inf
            )
        return scores

    gained, kicks = assert_steps_are_best(
        climber(candidates, data),
        toggled,
        Draws(*random_stream(0).tolist()),
        lambda draws, parents: searches.kicked(
            edges, parents, draws, TRIES, most_parents(candidates)
        ),
        60,
    )
    assert gained > 2 and kicks > 5


def test_an_equivalent_sample_size_of_1_unless_it_is_given():
    data = dataset_of(4, 30, 0)
    free = random_candidates(4, 0)
    for ess in (None, 1.0):
        candidates = Candidates(
            data.names, free.families, free.scores, Stamp(score="bdeu", ess=ess)
        )
        assert data_of(data, candidates).formula == Score("bdeu", 1.0).formula(30)
    assert "dataset" not in repr(solver_named("hillclimb", dataset=data))  # it is long


def test_the_optimum_from_data():
    data = dataset_of(6, 200, 5, states=2)
    candidates = identify(data, CandidateSearch(3, Score("bds")))
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
    candidates = identify(data, CandidateSearch(2, Score("bic")))
    walk = climber(candidates, data)
    walk.advance(500, PACE)
    assert walk.run.score >= walk.climb.totals[2] - 1e-9
    found = [frozenset(row[FIRST : FIRST + row[SIZE]].tolist()) for row in walk.climb.lists[1]]
    assert all(
        set(its) <= wide
        for its, wide in zip(candidates.families.sets_at(walk.run.choice), found, strict=True)
    )


def test_a_row_is_scored_once_while_memory_lasts():
    candidates = random_candidates(8, 3, sets=20)
    whole, small = climber(candidates), climber(candidates)
    # one slot
    small.climb = small.climb._replace(
        scores=small.climb.scores[:9], entries=small.climb.entries[:9]
    )
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


@pytest.fixture
def files(tmp_path):
    """Candidate sets and the data that they come from."""
    data = dataset_of(6, 200, 5, states=2)
    write(data, tmp_path / "data.csv")
    write_candidates(
        identify(read(tmp_path / "data.csv"), CandidateSearch(3, Score("bds"))), tmp_path / "x.qbc"
    )
    return tmp_path


def test_hillclimb_reads_the_data_that_it_climbs_on(files):
    candidates, limits = read_candidates(files / "x.qbc"), Limits(None, moves=500, seed=2)
    given = [read(files / "data.csv"), files / "data.csv", str(files / "data.csv")]
    found = [
        solve(candidates, solver_named("hillclimb", dataset=each), limits=limits) for each in given
    ]
    assert len({each.choice.tobytes() for each in found}) == 1
    assert len({each.statistics["climbs"] for each in found}) == 1
    with pytest.raises(FormatError, match="ends in 'nothing'"):
        solve(candidates, solver_named("hillclimb", dataset="x"), limits=limits)


def test_hillclimb_on_data_from_the_command_line(files):
    command = ["solve", str(files / "x.qbc"), "--solver", "hillclimb", "--moves", "500"]
    done = CliRunner().invoke(app, [*command, "--set", f"dataset={files / 'data.csv'}"])
    assert done.exit_code == 0, done.output
    assert "score  " in done.output and "hillclimb: all moves made" in done.output
