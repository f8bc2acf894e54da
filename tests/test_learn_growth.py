"""`learn` without a number of parents: a network at once, better while parent sets grow."""

import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest

from qubayes import Knowledge, LearnSettings, SettingError, TooLargeError, learn, read, score
from qubayes.data import Dataset
from qubayes.foundation.environment import peak_memory


def table(n=20, rows=200, seed=0):
    """A table in which each variable depends on up to three earlier ones."""
    random = np.random.default_rng(seed)
    codes = np.zeros((n, rows), np.uint8)
    for v in range(n):
        sources = random.choice(v, min(v, 3), replace=False) if v else []
        noise = random.random(rows) < 0.15
        codes[v] = (codes[sources].sum(axis=0) if v else random.integers(0, 2, rows)) % 2
        codes[v] = np.where(noise, random.integers(0, 2, rows), codes[v])
    return Dataset(tuple(f"v{v}" for v in range(n)), (("0", "1"),) * n, codes)


@pytest.fixture
def slow(monkeypatch, set_clock):
    """Let the forecasts say that no search of all sets fits the time."""
    clock = SimpleNamespace(
        perf_counter=lambda: 1e6 * time.perf_counter(),
        process_time=lambda: 1e6 * time.process_time(),
    )
    set_clock(clock, "qubayes.candidates.forecast")
    monkeypatch.setattr("qubayes.learning.grown.is_large", lambda *_: True)
    monkeypatch.setattr("qubayes.candidates.budget.is_large", lambda *_: True)


def test_a_small_table_is_proved_and_no_worse_than_with_three_parents():
    dataset = table()
    found = learn(dataset)
    given = learn(dataset, 3)
    assert found.solution.proved and given.solution.proved
    assert found.solution.score >= given.solution.score - 1e-6
    assert found.candidates.stamp.max_parents == 3
    assert "at most 3 parents" in str(found)


def test_all_sets_of_three_parents_are_among_the_candidates():
    dataset = table(8)
    found, given = learn(dataset).candidates, learn(dataset, 3).candidates
    for vertex in range(8):
        assert set(given.of(vertex)) <= set(found.of(vertex))


def test_where_no_search_of_all_sets_fits_the_sets_are_grown(slow, caplog):
    dataset = table()
    found = learn(dataset, time_limit=2)
    assert "no number of parents can be searched" in caplog.text
    assert found.candidates.stamp.max_parents is None
    assert found.candidates.stamp.grown == found.candidates.total
    assert found.solution.score >= learn(dataset, 2).solution.score - 1e-6
    said = found.describe()[0]
    assert found.solution.only_grown and "parent sets" in said and "were grown" in said


def test_the_trace_begins_with_the_first_network():
    found = learn(table())
    seconds, scores = zip(*found.solution.trace, strict=True)
    assert list(scores) == sorted(set(scores))
    assert list(seconds) == sorted(seconds)
    assert scores[-1] == pytest.approx(found.solution.score)


def test_knowledge_holds():
    known = Knowledge(required=[("v0", "v5")], forbidden=[("v1", "v2")], max_parents={"v3": 1})
    found = learn(table(), knowledge=known)
    assert ("v0", "v5") in found.network.edges
    assert ("v1", "v2") not in found.network.edges
    assert len(found.network["v3"].parents) <= 1


def pressing(stage):
    """Press Ctrl-C at the first report of a stage."""
    pressed = []

    def report(progress):
        if progress.stage == stage and not pressed:
            pressed.append(stage)
            os.kill(os.getpid(), signal.SIGINT)

    return report, pressed


@pytest.mark.parametrize("stage", ["network", "candidates", "auto"])
def test_an_interrupt_keeps_the_best_network(stage):
    dataset = read("examples/alarm.csv")
    report, pressed = pressing(stage)
    found = learn(dataset, on_progress=report)
    assert pressed and found.interrupted
    assert found.network.tables is not None
    assert not found.solution.proved or stage == "auto"
    assert np.isfinite(found.solution.score)


def test_a_run_folder_keeps_the_network_of_a_run_that_was_killed(slow, tmp_path):
    dataset = table()
    learn(dataset, time_limit=1, run_dir=tmp_path)
    kept = score(tmp_path / "first.json", dataset).total
    for name in ("candidates.qbc", "run.json", "solution.json"):
        (tmp_path / name).unlink()
    again = learn(dataset, time_limit=1, run_dir=tmp_path)
    assert again.solution.trace[0][1] >= kept - 1e-6
    (tmp_path / "first.json").write_text("{")
    for name in ("candidates.qbc", "run.json", "solution.json"):
        (tmp_path / name).unlink()
    assert learn(dataset, time_limit=1, run_dir=tmp_path).solution.score < 0


def test_a_finished_run_is_read_back(tmp_path):
    dataset = table()
    first = learn(dataset, run_dir=tmp_path)
    again = learn(dataset, run_dir=tmp_path)
    assert again.network == first.network
    assert again.candidates.stamp == first.candidates.stamp
    assert again.seconds["candidates"] < first.seconds["candidates"]


def test_a_long_table_of_few_variables_is_searched_whole():
    dataset = table(6, rows=200_000)
    states = (tuple(map(str, range(16))),) * 6
    codes = dataset.codes + 2 * np.random.default_rng(0).integers(0, 8, (6, 200_000), np.uint8)
    different = Dataset(dataset.names, states, codes)
    found = learn(different)
    assert found.solution.proved
    assert found.candidates.stamp.grown is None
    assert found.network == learn(different, 3).network


def test_sets_of_a_long_table_of_few_different_rows_are_grown():
    dataset = table(6, rows=200_000)
    found = learn(dataset)
    assert found.solution.proved
    assert found.candidates.stamp.grown is not None
    assert found.solution.score >= learn(dataset, 3).solution.score - 1e-6


@pytest.mark.parametrize("large", [False, True])
def test_moves_decide_alone(large, request):
    if large:  # no search of all sets fits
        request.getfixturevalue("slow")
    dataset = table(30)
    one, other = (learn(dataset, moves=4000, seed=3, threads=threads) for threads in (1, 3))
    assert one.network == other.network
    assert one.candidates.total == other.candidates.total
    assert [each for _, each in one.solution.trace] == [s for _, s in other.solution.trace]
    assert one.candidates.stamp.grown
    assert one.candidates.stamp.max_parents == (None if large else 3)
    more = learn(dataset, moves=40_000, seed=3)
    assert more.solution.score >= one.solution.score


def test_moves_decide_alone_after_a_run_that_was_killed(tmp_path):
    dataset = table(30)
    first = learn(dataset, moves=2000, run_dir=tmp_path)
    for name in ("candidates.qbc", "run.json", "solution.json"):
        (tmp_path / name).unlink()
    again = learn(dataset, moves=2000, run_dir=tmp_path)
    assert again.network == first.network
    assert again.candidates.total == first.candidates.total


def test_progress_runs_with_the_time_limit(slow):
    shown = []
    learn(table(40), time_limit=2, on_progress=shown.append)
    shares = [each.done / each.total for each in shown if each.stage == "network"]
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] < shares[-1] <= 1.0
    assert all(each.note for each in shown if each.stage == "network")


def test_progress_without_a_limit_counts_rounds():
    shown = []
    learn(table(12), on_progress=shown.append)
    rounds = [each for each in shown if each.stage == "network"]
    assert all(each.total == 0.0 for each in rounds)
    assert rounds[-1].done >= 3
    assert "scoring all pairs" in rounds[0].note
    assert rounds[-1].note.startswith(f"round {rounds[-1].done + 1:.0f}, score -")


def test_the_memory_ends_growing(slow, caplog):
    dataset = table(40)
    free = learn(dataset, moves=2000)
    caplog.clear()
    found = learn(dataset, moves=2000, memory="1MB")
    assert found.candidates.total < free.candidates.total
    assert [each for each in caplog.messages if "memory" in each] == [
        "growing parent sets ended, as the memory of 0.001 GB is used up; give more with"
        " memory='0.002GB'"
    ]
    assert found.network.tables is not None


def test_a_search_of_all_sets_keeps_the_memory():
    with pytest.raises(TooLargeError, match="may be used"):
        learn(table(400, rows=10), 3, memory=peak_memory() / 1e9)


@pytest.mark.parametrize("size", ["4GB", 4, "4000 mb", "4G"])
def test_sizes_of_memory(size):
    assert LearnSettings(memory=size).memory_in_bytes == 4e9


@pytest.mark.parametrize("size", ["", "much", 0, -1, "inf", "nan"])
def test_sizes_of_memory_that_are_refused(size):
    with pytest.raises(SettingError, match="give a size such as 4GB"):
        LearnSettings(memory=size)
