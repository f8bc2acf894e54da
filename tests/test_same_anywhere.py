"""One thread, four threads and a cluster of processes: the same bytes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import qubayes
from candidate_cases import dependent_data
from qubayes.candidates import CandidateSearch, identify, write_candidates
from qubayes.foundation.workers import Workers
from qubayes.qubo import encode_sets, formulate
from qubayes.qubo.subsets import Subsets, cover, write_subsets
from qubayes.scores import Score

SCORES = ("bdeu", "bds", "bic", "k2")


@pytest.fixture(scope="module")
def places():
    """The same work on one thread, on four, and on two processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        2, processes=True, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        yield Workers(1), Workers(4), Workers(2, cluster=cluster.scheduler_address)


def without_clock(subsets: Subsets, path: Path) -> bytes:
    """The bytes of the subsets' file but for the seconds that they took."""
    write_subsets(replace(subsets, seconds=0.0), path)
    return path.read_bytes()


@pytest.mark.parametrize("score", SCORES)
def test_candidates_and_subsets_are_the_same_bytes(places, score, tmp_path):
    data = dependent_data(9, 300, seed=5)
    found = []
    for number, workers in enumerate(places):
        candidates = identify(data, CandidateSearch(3, Score(score, 2.0)), workers=workers)
        write_candidates(candidates, tmp_path / f"{number}.qbc")
        subsets = without_clock(cover(candidates, workers=workers), tmp_path / f"{number}.qbs")
        found.append([(tmp_path / f"{number}.qbc").read_bytes(), subsets])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("penalty", ["tight", "paper"])
def test_formulations_are_the_same_bytes(penalty):
    candidates = identify(dependent_data(9, 300, seed=6), CandidateSearch(3), workers=Workers(1))
    subsets = cover(candidates, workers=Workers(1))
    one, four = (
        formulate(candidates, subsets, penalty=penalty, workers=Workers(threads)).qubo
        for threads in (1, 4)
    )
    for ours, theirs in zip(one, four, strict=True):
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


def test_a_run_of_moves_leaves_the_same_files(places, tmp_path):
    data = dependent_data(9, 300, seed=7)
    found = []
    for number, workers in enumerate(places):
        folder = tmp_path / str(number)
        learned = qubayes.learn(
            data,
            3,
            solver="anneal",
            time_limit=None,
            moves=5000,
            seed=4,
            run_dir=folder,
            workers=workers,
        )
        solution = json.loads((folder / "solution.json").read_text())
        for timed in ("seconds", "trace"):  # what the clock said
            solution.pop(timed, None)
        files = [(folder / name).read_bytes() for name in ("candidates.qbc", "run.json")]
        files.append(without_clock(learned.subsets, tmp_path / f"{number}.qbs"))
        tables = [table.tobytes() for table in learned.network.tables]
        state = encode_sets(learned.formulation, learned.solution.choice)
        found.append([files, solution, tables, state.tobytes()])
    assert found[0] == found[1] == found[2]
