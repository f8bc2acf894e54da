"""A run that is killed while the solver searches: the next one in its folder begins there."""

import sys
import time

import numpy as np
import pytest

from candidate_cases import dependent_data
from qubayes import learn, score
from qubayes.foundation.workers import Workers
from qubayes.network import Network, write_network
from qubayes.search import Limits, solve
from qubayes.search.run import Run
from solve_cases import random_candidates

DATA = dependent_data(25, 200, seed=2)
EMPTY = Network(DATA.names, ((),) * DATA.n)
OPTIONS = {"solver": "anneal", "time_limit": 4.0}


class KilledError(Exception):
    """Ends a run at once, as a signal does."""


def kill_after(seconds, error=KilledError):
    """A receiver of progress that ends the run this long after the solver began."""
    began = []

    def receive(progress):
        if progress.stage == "anneal" and progress.done < progress.total:
            began.append(time.perf_counter())
            if began[-1] - began[0] > seconds:
                raise error

    return receive


def only_kept(folder):
    (found,) = folder.glob("solution-*.json")
    return found


@pytest.mark.parametrize("most", [2, None])
def test_the_next_run_begins_with_the_network_that_the_killed_one_found(tmp_path, calls_of, most):
    with pytest.raises(KilledError):
        learn(DATA, most, run_dir=tmp_path, on_progress=kill_after(1.3), **OPTIONS)
    kept = only_kept(tmp_path)
    found = score(kept, DATA).total
    if most is None:
        assert found >= score(tmp_path / "first.json", DATA).total - 1e-6
    else:
        assert found > score(EMPTY, DATA).total + 1.0
    mark = Network(DATA.names, ((), (0,), *[()] * 23))  # which no search would find
    write_network(mark, kept)
    calls = calls_of(sys.modules["qubayes.learning.pipeline"], "solve")
    with pytest.raises(KilledError):
        learn(DATA, most, run_dir=tmp_path, on_progress=kill_after(0.0), **OPTIONS)
    ((_, more),) = calls
    assert more["start"].parents == mark.parents
    kept.write_text("{")  # damaged: begun without it
    with pytest.raises(KilledError):
        learn(DATA, most, run_dir=tmp_path, on_progress=kill_after(0.0), **OPTIONS)
    assert score(only_kept(tmp_path), DATA).total < 0.0


def test_a_run_that_grew_sets_and_was_interrupted_goes_on_where_it_ended(tmp_path, calls_of):
    press = kill_after(0.0, KeyboardInterrupt)
    first = learn(DATA, run_dir=tmp_path, on_progress=press, **OPTIONS)
    assert first.interrupted and not [*tmp_path.glob("solution-*.json")]
    (tmp_path / "first.json").unlink()  # the start must come from solution.json
    calls = calls_of(sys.modules["qubayes.learning.pipeline"], "solve")
    with pytest.raises(KilledError):
        learn(DATA, run_dir=tmp_path, on_progress=kill_after(0.0), **OPTIONS)
    assert calls[0][1]["start"].parents == first.solution.parents


def test_a_finished_solver_leaves_its_solution_only(tmp_path):
    learn(dependent_data(5, 100, seed=2), 2, run_dir=tmp_path)
    assert not [*tmp_path.glob("solution-*.json")] and (tmp_path / "solution.json").exists()


def test_moves_and_seed_alone_decide_after_a_kill(tmp_path):
    options = {"solver": "anneal", "moves": 10**9, "time_limit": 4.0}
    with pytest.raises(KilledError):
        learn(DATA, 2, run_dir=tmp_path, on_progress=kill_after(0.3), **options)
    assert not [*tmp_path.glob("solution-*.json")]


def test_better_networks_are_handed_on_once_a_second():
    candidates = random_candidates(6, 0)
    best = solve(candidates, "exact")
    handed = []
    run = Run(candidates, Limits(None), Workers(1), on_network=handed.append)
    assert run.offer(best.choice) and len(handed) == 1  # at once
    choice = np.array(best.choice)
    first = candidates.families.vertex_start[1:] - 1
    run = Run(candidates, Limits(None), Workers(1), on_network=handed.append)
    time.sleep(0.11)
    run.report()
    assert handed[1].parents == candidates.parents_at(first)
    assert run.offer(choice) and len(handed) == 2  # too early
    time.sleep(1.05)
    run.report()
    assert handed[2].parents == best.parents
    time.sleep(1.05)
    run.report()
    assert len(handed) == 3  # nothing new
