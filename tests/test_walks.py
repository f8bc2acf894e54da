"""What the searches over orders share: limits of the table of sets, slices of walks, and how walks end."""

import threading
from itertools import combinations

import numpy as np
import pytest

from qubayes.foundation.errors import SettingError
from qubayes.foundation.families import Families
from qubayes.foundation.workers import Workers
from qubayes.search import Limits
from qubayes.search.orders import walks
from qubayes.search.orders.walks import WALKS, order_problem, walk_all
from qubayes.search.run import Run
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
    assert [done for _, done, _ in slices[0]] == pytest.approx(0.001 / 0.999 * (np.cumsum(sizes) - sizes))
    assert [per_move for _, _, per_move in slices[0][1:]] == pytest.approx([0.001 / 0.999] * (len(sizes) - 1))


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


def test_the_largest_number_of_vertices(monkeypatch):
    monkeypatch.setattr(walks, "_LARGEST", 5)
    assert order_problem(Families.of([[()]] * 5), np.zeros(5)).n == 5
    with pytest.raises(SettingError, match=r"6 variables in one component; .* at most 5"):
        order_problem(Families.of([[()]] * 6), np.zeros(6))


def test_members_up_to_16_bits():
    families = Families.of([[()]] * (walks._LARGEST - 1) + [[(walks._LARGEST - 2,), ()]])
    problem = order_problem(families, np.zeros(walks._LARGEST + 1))
    assert problem.members[-2:, 0].tolist() == [walks._LARGEST - 2, walks._LARGEST]


def test_long_runs_of_sets_with_one_member():
    """A step over them fits in 16 bits too: the next one follows."""
    n = 370
    pairs = [(1, *pair) for pair in combinations(range(2, n), 2)]
    assert len(pairs) > 65_535 + 100
    problem = order_problem(Families.of([[*pairs, ()]] + [[()]] * (n - 1)), np.zeros(len(pairs) + n))
    left = len(pairs) - np.arange(len(pairs))
    assert problem.skip[: len(pairs), 0].tolist() == np.minimum(left, 65_535).tolist()
