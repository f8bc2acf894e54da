"""The same work on threads and on a real Dask cluster of two worker processes."""

import json
import operator
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

from candidate_cases import assert_one_line, data_file, dependent_data, run
from qubayes import MissingPackageError, QubayesError, SettingError, learn
from qubayes.candidates import (
    CandidateSearch,
    Knowledge,
    identify,
    write_candidates,
)
from qubayes.data import Dataset
from qubayes.foundation.stop import Interrupt
from qubayes.foundation.workers import Stopped, Workers
from qubayes.foundation.workers import run as run_tasks
from qubayes.learning import bootstrap
from qubayes.scores import Score

DATASET, SEARCH = dependent_data(25, 200, seed=5), CandidateSearch(3, Score("bds"))


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(
        processes=True, n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)  # one that died in the test before is back
        yield client


def assert_same(found, expected) -> None:
    assert found.names == expected.names and found.stamp == expected.stamp
    assert np.array_equal(found.scores.view(np.uint64), expected.scores.view(np.uint64))
    for ours, theirs in zip(found.families, expected.families, strict=True):
        assert np.array_equal(ours, theirs)


@pytest.fixture(scope="module")
def expected():
    return identify(DATASET, SEARCH, workers=Workers(threads=1))


def test_cluster_finds_the_same_bits(client, cluster, expected, tmp_path):
    assert_same(
        identify(DATASET, SEARCH, workers=Workers(cluster=cluster.scheduler_address)), expected
    )
    checkpoint = tmp_path / "x.blocks"
    assert_same(
        identify(DATASET, SEARCH, workers=Workers(cluster=client), checkpoint=checkpoint), expected
    )
    assert client.status == "running", "a client of the caller stays open"


def test_a_search_survives_a_killed_worker(client, expected):
    pids = list(client.run(os.getpid).values())
    assert os.getpid() not in pids and len(set(pids)) == 2
    reports = []

    def kill_one(progress):
        reports.append(progress.done)
        if len(reports) == SEARCH.max_parents + 2:  # the second block of the last level
            os.kill(pids[0], signal.SIGKILL)

    assert_same(
        identify(DATASET, SEARCH, workers=Workers(cluster=client), on_progress=kill_one), expected
    )
    assert len(reports) > SEARCH.max_parents + 5 and sorted(set(reports)) == reports


class Recorded(Client):
    """A client that keeps the name of the task of each shared input that it sends."""

    @property
    def names(self) -> list[str]:
        return list(self.__dict__.get("sent", {}).values())

    def submit(self, task, shared, item, **more):
        self.__dict__.setdefault("sent", {})[shared.key] = task.__name__
        return super().submit(task, shared, item, **more)


@pytest.fixture
def recorded(cluster, client):
    with Recorded(cluster) as recorded:
        yield recorded


@pytest.mark.parametrize(
    ("dataset", "score", "known"),
    [
        (dependent_data(8, 150, seed=1), "bdeu", Knowledge()),
        (
            dependent_data(8, 150, seed=2),
            "k2",
            Knowledge(required=[("v0", "v3")], forbidden=[("v1", "v2")]),
        ),
        (dependent_data(8, 150, seed=3, states=2), "bds", Knowledge()),  # rows as bits
    ],
)
def test_lower_levels_are_tasks_as_well(recorded, monkeypatch, dataset, score, known):
    search = CandidateSearch(3, Score(score), known)
    expected = identify(dataset, search, workers=Workers(threads=1))
    module = sys.modules["qubayes.candidates.identify"]  # the function has the module's name
    monkeypatch.setattr(module, "_LEAST_FOR_CLUSTER", 1)
    assert_same(identify(dataset, search, workers=Workers(cluster=recorded)), expected)
    assert recorded.names == [
        "scan_block_elsewhere",
        "scan_block_elsewhere",
        "scan_block",
    ]  # levels 2, 3 and 4; level 1 is scanned here


def test_pairs_are_screened_on_the_cluster(recorded):
    """Variables of three numbers of states make three blocks of children."""
    states = [tuple("abcd"[: 2 + v % 3]) for v in range(DATASET.n)]
    codes = DATASET.codes % np.array([[len(names)] for names in states], np.uint8)
    dataset = Dataset(DATASET.names, tuple(states), codes)
    search = CandidateSearch(2, Score("bds"), possible_parents=4)
    expected = identify(dataset, search, workers=Workers(threads=1))
    assert_same(identify(dataset, search, workers=Workers(cluster=recorded)), expected)
    assert recorded.names == ["best_parents", "with_partners", "candidates_of_child"]


def test_bootstrap_samples_are_tasks(recorded, client, tmp_path):
    data, search, kept = dependent_data(16, 100, seed=3), CandidateSearch(2), tmp_path / "kept.json"
    expected = bootstrap(data, search, 4, seed=3, workers=Workers(threads=1))
    found = bootstrap(data, search, 4, seed=3, workers=Workers(cluster=recorded), keep=kept)
    assert recorded.names == ["parents_of_sample"] and found.samples == 4
    assert (
        np.array_equal(found.frequencies, expected.frequencies)
        and found.consensus == expected.consensus
    )
    networks = json.loads(kept.read_text())["networks"]
    # as it was when the third one came first
    kept.write_text(json.dumps({"networks": [None, *networks[1:3]]}))
    again = bootstrap(data, search, 4, seed=3, workers=Workers(cluster=client), keep=kept)
    assert np.array_equal(again.frequencies, expected.frequencies)
    assert json.loads(kept.read_text())["networks"] == networks


def test_command_line(client, cluster, expected, tmp_path, capsys):
    output = tmp_path / "x.jkl"
    arguments = [
        "candidates",
        data_file(tmp_path, DATASET),
        "-m",
        3,
        "--score",
        "bds",
        "-o",
        output,
    ]
    code, _, err = run(capsys, *arguments, "--cluster", cluster.scheduler_address)
    assert code == 0, err
    found = output.read_bytes()
    output.unlink()
    assert run(capsys, *arguments)[0] == 0 and output.read_bytes() == found
    write_candidates(expected, tmp_path / "expected.jkl")
    assert (tmp_path / "expected.jkl").read_bytes() == found


def count_and_die(folder: str, item: int) -> int:
    """Leave a trace of the call; the first to come to item 5 dies of it."""
    Path(folder, f"{item}-{uuid.uuid4()}").touch()
    if item == 5:
        try:
            Path(folder, "died").touch(exist_ok=False)
        except FileExistsError:
            return item * item
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def test_a_worker_that_dies_costs_only_its_tasks(client, tmp_path):
    found = dict(run_tasks(count_and_die, str(tmp_path), range(40), Workers(cluster=client)))
    assert found == {item: item * item for item in range(40)}
    calls = [int(path.name.partition("-")[0]) for path in tmp_path.glob("*-*")]
    assert calls.count(5) == 2 and set(calls) == set(range(40))
    assert len(calls) <= 40 + 4  # what it had in hand: at most the four tasks that are in flight


def measure(shared: dict[str, int], item: int) -> tuple[int, int]:
    return len(shared), item


def die(shared: object, item: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_kills_its_workers_is_an_error(client):
    with pytest.raises(QubayesError, match="workers of the cluster died, perhaps for want of mem"):
        list(run_tasks(die, (), range(1), Workers(cluster=client)))


def tasks_known_to(client: Client) -> int:
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def wait_until_idle(client: Client) -> None:
    deadline = time.monotonic() + 20
    while tasks_known_to(client):
        assert time.monotonic() < deadline, "tasks are left on the cluster"
        time.sleep(0.02)


def test_few_tasks_are_in_flight_and_closing_calls_them_off(client):
    assert tasks_known_to(client) == 0
    results = run_tasks(measure, {}, range(1000), Workers(cluster=client))
    for _ in range(10):
        next(results)
        # two for each thread, the shared input, the one just taken
        assert 0 < tasks_known_to(client) <= 2 * 2 + 2
    results.close()
    wait_until_idle(client)


def wait_briefly(shared: object, item: int) -> int:
    time.sleep(1.0)
    return item


@pytest.mark.parametrize("where", ["cluster", "one thread", "two threads"])
def test_work_that_is_stopped_raises_and_calls_its_tasks_off(where, client):
    workers = {"cluster": Workers(cluster=client), "one thread": Workers(1)}.get(where, Workers(2))
    began = time.monotonic()
    with pytest.raises(Stopped):
        list(
            run_tasks(
                wait_briefly, (), range(100), workers.until(lambda: time.monotonic() > began + 0.5)
            )
        )
    assert time.monotonic() - began < 30.0, "it waits for the tasks in hand at most"
    wait_until_idle(client)


def test_an_interrupted_bootstrap_on_the_cluster_keeps_its_samples(client, tmp_path):
    data, search, kept = dependent_data(16, 100, seed=3), CandidateSearch(2), tmp_path / "kept.json"
    interrupt = Interrupt()

    def press(progress):
        if progress.done == 2:
            interrupt.press()

    there = Workers(cluster=client)
    found = bootstrap(
        data, search, 50, workers=there, keep=kept, on_progress=press, interrupt=interrupt
    )
    assert found.samples == 2
    assert sum(each is not None for each in json.loads(kept.read_text())["networks"]) == 2
    wait_until_idle(client)


def refuse(shared: object, item: int) -> None:
    raise SettingError(f"item {item} is refused")


@pytest.mark.parametrize("where", ["cluster", "one thread", "two threads"])
def test_errors_of_a_task_reach_the_caller(where, client):
    workers = {
        "cluster": Workers(cluster=client),
        "one thread": Workers(1),
        "two threads": Workers(2),
    }[where]
    with pytest.raises(SettingError, match=r"item \d is refused"):
        list(run_tasks(refuse, (), range(3), workers))


def test_no_work_at_all(client):
    for workers in (Workers(cluster=client), Workers(1), Workers(2)):
        assert list(run_tasks(measure, {}, [], workers)) == []


@pytest.fixture
def clients(monkeypatch):
    """The clients that are made."""
    made = []

    class Recorded(Client):
        def __init__(self, *arguments, **options):
            made.append(self)
            super().__init__(*arguments, **options)

    monkeypatch.setattr("distributed.Client", Recorded)
    return made


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere", "carrier-pigeon://x:1"])
def test_nobody_answers(address, clients, tmp_path, capsys):
    """A bad address fails before anything is read (the data do not exist), and Dask does not try it again and again."""
    data, output = tmp_path / "missing.csv", tmp_path / "x.jkl"
    sets = tmp_path / "missing.jkl"
    for command in (
        ["candidates", data, "-o", output],
        ["learn", data],
        ["subsets", sets],
        ["formulate", sets],
    ):
        code, _, err = run(capsys, *command, "--cluster", address)
        assert_one_line(
            code, err, f"no Dask scheduler answers at {address}", "start one", "--cluster"
        )
    assert not output.exists()
    assert bool(clients) == (address == "carrier-pigeon://x:1")


def test_one_connection_for_all_stages(cluster, clients):
    there = Workers(cluster=cluster.scheduler_address)
    options = {"solver": "anneal", "moves": 500, "bootstrap": 2, "possible_parents": 5}
    found = learn(DATASET, 2, **options, workers=there)
    assert len(clients) == 1 and clients[0].status == "closed"
    expected = learn(DATASET, 2, **options, threads=1)
    assert found.solution.choice.tolist() == expected.solution.choice.tolist()
    assert np.array_equal(found.confidence.frequencies, expected.confidence.frequencies)


def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr("qubayes.foundation.workers._PATIENCE_FOR_WORKERS", 0.5)
    with (
        LocalCluster(processes=True, n_workers=0, dashboard_address=":0") as empty,
        pytest.raises(QubayesError, match="no worker"),
    ):
        list(run_tasks(measure, {}, [1], Workers(cluster=empty.scheduler_address)))


def test_the_scheduler_dies():
    code = """
from distributed import LocalCluster
cluster = LocalCluster(processes=False, protocol="tcp", n_workers=1, threads_per_worker=2, dashboard_address=":0")
print(cluster.scheduler_address, flush=True)
input()
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            address = process.stdout.readline().strip()
            results = run_tasks(operator.add, 1, range(20), Workers(cluster=address))
            index, result = next(results)
            assert result == index + 1
        finally:
            process.kill()
        with pytest.raises(
            QubayesError, match=r"the connection to the Dask scheduler was lost.*resume.*run_dir"
        ):
            list(results)


def test_a_cluster_with_another_version(client, monkeypatch):
    monkeypatch.setattr("qubayes.foundation.workers.__version__", "99.0")
    with pytest.raises(
        QubayesError, match=r"has qubayes .*; install qubayes 99\.0 on the whole cluster"
    ):
        list(run_tasks(measure, {}, [1], Workers(cluster=client)))


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingPackageError, match=r"pip install '\.\[dask\]'"):
        list(run_tasks(measure, {}, [1], Workers(cluster="tcp://127.0.0.1:9")))
