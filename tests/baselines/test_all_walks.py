"""What `order-sa`, `asobs` and `hillclimb` share: slices of walks, how walks end, and kernels compiled beforehand."""

import json
import subprocess
import sys
import threading

import numpy as np
import pytest

from qubayes.foundation.workers import Workers
from qubayes.search import Limits
from qubayes.search.run import Run
from qubayes_baselines import walks
from qubayes_baselines.walks import WALKS, walk_all
from solve_cases import random_candidates


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self, monkeypatch) -> None:
        self.now = 50.0
        monkeypatch.setattr("time.perf_counter", lambda: self.now)


def walked(clock, limits, each, threads=1):
    """Walk with moves that take `each` seconds; returns the ending and (moves, pace) of the slices of each walk."""
    slices = {}

    def make(number, seed):
        slices[number] = []

        def advance(moves, pace):
            slices[number].append((moves, *pace))
            clock.now += each * moves

        return advance

    return walk_all(Run(random_candidates(4, 0), limits, Workers(threads)), make), slices


def test_moves_are_shared_by_the_walks(monkeypatch):
    ending, slices = walked(Clock(monkeypatch), Limits(None, moves=4 * 1000 + 2), 0.001)
    assert ending.statistics == {"moves": 4002, "walks": WALKS, "moves_per_second": 1000}
    assert ending.status == "all moves made; best so far returned"
    for number in range(WALKS):
        share, made = 1001 if number < 2 else 1000, 0
        assert [moves for moves, _, _ in slices[number][:5]] == [1, 2, 4, 8, 16]
        for moves, done, per_move in slices[number]:
            assert done == pytest.approx(made / share) and per_move == pytest.approx(1 / share)
            made += moves
        assert made == share


def test_slices_grow_and_end_in_time(monkeypatch):
    """A look at the limits every SLICE seconds, and none behind them."""
    clock = Clock(monkeypatch)
    ending, slices = walked(clock, Limits(0.999), 0.001)
    assert ending.status == "time limit reached; best so far returned"
    assert clock.now == pytest.approx(50.999, abs=0.002)
    sizes = [moves for moves, _, _ in slices[0]]
    assert sizes[:5] == [1, 2, 4, 8, 16] and max(sizes) == pytest.approx(walks.SLICE / 0.001, abs=1)
    assert sum(size >= max(sizes) - 1 for size in sizes) > 40
    assert [done for _, done, _ in slices[0]] == pytest.approx(
        0.001 / 0.999 * (np.cumsum(sizes) - sizes)
    )
    assert [per_move for _, _, per_move in slices[0][1:]] == pytest.approx(
        [0.001 / 0.999] * (len(sizes) - 1)
    )


def test_slow_moves_are_made_one_by_one(monkeypatch):
    _, slices = walked(Clock(monkeypatch), Limits(10.0), 1.0)
    assert [moves for moves, _, _ in slices[0]] == [1] * 10


@pytest.mark.parametrize("threads", [1, 2])
def test_walks_use_no_more_threads_than_given(threads):
    used, ready = set(), threading.Barrier(threads)

    def make(number, seed):
        used.add(threading.get_ident())
        if number < threads:
            ready.wait(10)  # the first ones are on threads of their own
        return lambda moves, pace: None

    walk_all(Run(random_candidates(4, 0), Limits(None, moves=400), Workers(threads)), make)
    assert len(used) == threads


def test_an_error_ends_all_walks():
    def make(number, seed):
        def advance(moves, pace):
            if number == 1:
                raise ValueError("walk 1")

        return advance

    with pytest.raises(ValueError, match="walk 1"):
        walk_all(Run(random_candidates(4, 0), Limits(None, moves=2**50), Workers(2)), make)


def test_a_proof_ends_all_walks():
    run = Run(random_candidates(4, 0), Limits(None, moves=2**50), Workers(2))
    ending = walk_all(run, lambda number, seed: lambda moves, pace: run.tighten(run.score))
    assert ending.status == "the bound was reached: proved optimal"


LOOK_FOR_KERNELS = """
import gc, json
import numpy as np
from numba.core.dispatcher import Dispatcher
from qubayes.candidates import Candidates
from qubayes.foundation.families import Families
from qubayes.search import Limits, solve, solver_named

def loaded():
    kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    return {(each.__module__, each.__name__, str(types)) for each in kernels for types in each.overloads}

def candidates(edges):
    lists = [[()]] + [[(0,), ()] if child <= edges else [()] for child in (1, 2)]
    scores = [-1.0] + [score for its in lists[1:] for score in range(-1, -1 - len(its), -1)]
    return Candidates(("a", "b", "c"), Families.of(lists), np.array(scores, float))

late = {}
for name in ("hillclimb", "asobs", "order-sa"):
    solver_named(name).prepare()
    before = loaded()
    for edges in range(3):
        solve(candidates(edges), name, limits=Limits(None, moves=50))
        late[f"{name} {edges}"] = sorted(name for module, name, types in loaded() - before)
print(json.dumps(late))
"""


def test_hardly_any_edges_need_no_other_kernels():
    done = subprocess.run(
        [sys.executable, "-c", LOOK_FOR_KERNELS], capture_output=True, text=True, check=True
    )
    late = json.loads(done.stdout)
    assert len(late) == 9 and not any(late.values()), late
