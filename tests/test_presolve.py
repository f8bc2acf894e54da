"""Presolve keeps the optimum: by exhaustion, with twins and without, and through every solver's eyes."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import ConstraintError
from qubayes.candidates import (
    Candidates,
    CandidateSearch,
    identify,
    prune,
    read_candidates,
    write_candidates,
)
from qubayes.data import read
from qubayes.foundation.families import Families, well_formed
from qubayes.foundation.progress import Progress
from qubayes.qubo import formulate
from qubayes.qubo.subsets import cover
from qubayes.scores import Score
from qubayes.search import Limits, solve
from qubayes.search.exact import presolve
from solve_cases import best_score, data_with_twins, random_candidates, with_required_edge


def assert_kept(candidates: Candidates, seconds: float = 5.0, *, twins: bool = True) -> None:
    """The best score stays, and the best network found is one of the original sets."""
    presolved = presolve(candidates, seconds, twins=twins)
    reduced, best = presolved.candidates, best_score(candidates)
    assert well_formed(reduced.families) and reduced.names == candidates.names
    assert best_score(reduced) == pytest.approx(best, abs=1e-9)
    assert presolved.score - 1e-9 <= best <= presolved.bound + 1e-9
    for vertex in range(reduced.n):
        original = dict(candidates.of(vertex))
        *others, (base, base_score) = reduced.of(vertex)
        for members, score in others:
            assert original[members] == score and set(base) < set(members) and score > base_score
        assert base_score == max(
            score for members, score in original.items() if set(members) <= set(base)
        )
    solution = presolved.restore(solve(reduced, "exact", limits=Limits(20.0)))
    families = [dict(candidates.of(vertex)) for vertex in range(candidates.n)]
    assert solution.score == pytest.approx(best, abs=1e-9)
    assert solution.score == pytest.approx(
        sum(families[v][p] for v, p in enumerate(solution.parents))
    )
    assert solution.proved


@given(seed=st.integers(0, 10_000), n=st.integers(1, 8), ties=st.booleans(), twins=st.booleans())
def test_the_optimum_is_kept(seed, n, ties, twins):
    assert_kept(random_candidates(n, seed, sets=12, ties=ties), twins=twins)


@pytest.mark.parametrize("seed", range(5))
def test_required_edges_stay(seed):
    candidates = with_required_edge(7, seed)
    assert_kept(candidates)
    assert 0 in presolve(candidates, 5.0).candidates.base(1)


@pytest.mark.parametrize("seed", range(3))
def test_sets_leave(seed):
    candidates = random_candidates(9, seed, sets=40)
    presolved = presolve(candidates, 20.0)
    assert presolved.candidates.total < candidates.total / 3


def test_without_time_nothing_leaves_that_could_matter():
    candidates = random_candidates(8, 1, sets=20)
    assert_kept(candidates, 0.0)


def test_what_all_sets_share_is_required():
    """Sets with b lose so much less than the empty one that only they are left; two of them are equally good."""
    lists = [
        [((1, 2), -1.0), ((1, 3), -1.0), ((), -100.0)],
        [((0,), -49.0), ((), -50.0)],
        [((0,), -9.0), ((), -10.0)],
        [((0,), -9.0), ((), -10.0)],
    ]
    presolved = presolve(prune("abcd", lists), 5.0, twins=False)
    assert presolved.candidates.base(0) == (1,)
    assert dict(presolved.candidates.of(0))[(1,)] == -100.0
    # a follows b in every network that is left
    assert list(presolved.candidates.of(1)) == [((), -50.0)]
    assert_kept(prune("abcd", lists), twins=False)


def test_a_restored_bound_covers_what_twins_lose():
    unit, empty = 2.0**-24, ((), -1e6)
    child = [((1,), -1e6 + 3 + unit), ((0,), -1e6 + 3), empty]
    own = [((3,), -1e6 + 1), empty]
    candidates = prune("abcd", [own, own, child, [empty]])
    presolved = presolve(candidates, 5.0)
    assert presolved.twins == ((1, 0),)
    solution = presolved.restore(solve(presolved.candidates, "exact"))
    assert solution.score == best_score(candidates) - unit
    assert solution.bound >= best_score(candidates)


def test_a_restored_bound_is_that_of_the_better_proof():
    """Presolved without time, solved without time, or both with time: no bound is below the optimum."""
    candidates = random_candidates(8, 1, sets=20)
    best = best_score(candidates)
    for seconds in (0.0, 20.0):
        presolved = presolve(candidates, seconds)
        for limit in (1e-9, 20.0):
            solution = presolved.restore(solve(presolved.candidates, "exact", limits=Limits(limit)))
            assert solution.bound >= best - 1e-9
            assert solution.bound <= presolved.bound or solution.bound == solution.score
            assert limit < 20.0 or solution.bound == pytest.approx(best)


def test_twins_can_stay():
    candidates = identify(
        read(data_with_twins(0)), CandidateSearch(max_parents=2, score=Score("bdeu"))
    )
    assert presolve(candidates, 5.0, twins=False).twins == ()
    assert_kept(candidates, twins=False)


def test_the_qubo_of_what_is_left_has_the_same_minimum():
    candidates = random_candidates(6, 3, sets=12)
    presolved = presolve(candidates, 5.0)
    formulation = formulate(presolved.candidates, cover(presolved.candidates))
    assert sum(formulation.bits.values()) < sum(
        formulate(candidates, cover(candidates)).bits.values()
    )
    solution = presolved.restore(solve(formulation, "anneal", limits=Limits(1.0)))
    assert solution.score == pytest.approx(best_score(candidates), abs=1e-9)
    assert solution.energy == pytest.approx(-solution.score)
    assert solution.empty_score == pytest.approx(candidates.base_scores.sum())


def test_cycles_of_required_edges_are_refused():
    families = Families.of([[(1,)], [(0,)]])
    with pytest.raises(ConstraintError, match="cycle"):
        presolve(Candidates(("a", "b"), families, np.array([-1.0, -1.0])))


@pytest.mark.parametrize("n", [0, 1])
def test_few_vertices(n):
    presolved = presolve(random_candidates(n, 0), 1.0)
    assert presolved.candidates.n == n and presolved.fixed == n


def test_an_interrupt_keeps_what_was_shown():
    candidates = random_candidates(40, 0, sets=300)
    told: list[float] = []

    def interrupt(progress: Progress) -> None:
        told.append(progress.done)
        os.kill(os.getpid(), signal.SIGINT)

    presolved = presolve(candidates, 600.0, on_progress=interrupt)
    assert presolved.interrupted and told
    assert presolved.candidates.n == 40 and presolved.score <= presolved.bound


@pytest.fixture
def run(tmp_path):
    write_candidates(random_candidates(7, 1, sets=20), tmp_path / "x.jkl")

    def call(*arguments):
        command = [sys.executable, "-c", "from qubayes.cli import main; main()", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    return call


def test_the_command(run, tmp_path):
    done = run("presolve", "x.jkl", "--time-limit", "20", "-o", "y.jkl", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    before, after = (read_candidates(tmp_path / name) for name in ("x.jkl", "y.jkl"))
    assert facts["sets"] == {"before": before.total, "after": after.total}
    assert facts["bits"]["after"]["total"] < facts["bits"]["before"]["total"]
    assert best_score(after) == pytest.approx(best_score(before), abs=1e-6)
    assert facts["score"] - 1e-6 <= best_score(before) <= facts["bound"] + 1e-6


def test_the_command_tells_it_in_words(run):
    done = run("presolve", "x.jkl", "--time-limit", "20", "--no-bits", "--no-twins")
    assert done.returncode == 0, done.stderr
    assert "candidate sets are left" in done.stdout and "bits" not in done.stdout


def test_a_wrong_output_is_told_before_the_work(run):
    done = run("presolve", "x.jkl", "-o", "y.txt")
    assert (
        done.returncode == 1 and done.stderr.count("\n") == 1 and "allowed endings" in done.stderr
    )


def test_formulate_takes_presolve(run):
    bits = [
        json.loads(run("formulate", "x.jkl", "--json", *more).stdout)["bits"]
        for more in ([], ["--presolve", "5"])
    ]
    assert bits[1]["total"] < bits[0]["total"]
    done = run("formulate", "x.jkl", "--presolve", "5", "--subsets", "x.qbs")
    assert done.returncode == 1 and "give one" in done.stderr
