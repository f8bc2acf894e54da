"""Scores that the user writes as functions."""

import math
import os
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qubayes as qb
from qubayes import CandidateSearch, Knowledge, Score, SettingError
from qubayes.candidates import forecasts, is_large
from qubayes.data import Dataset, write
from qubayes.scores import LocalScore
from strategies import datasets, tables_of_numbers

BDEU = Score("bdeu", 1.0)


def bdeu(dataset, child, parents):
    """Return the score that the package has, too."""
    return qb.local_score(dataset, child, parents, BDEU)


def noisy_sums(n=6, rows=120, seed=0):
    """Binary columns that are noisy sums of two earlier ones."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 2, (n, rows)).astype(np.uint8)
    for v in range(2, n):
        sums = codes[v - 2] ^ codes[v - 1]
        codes[v] = np.where(random.random(rows) < 0.9, sums, codes[v])
    return Dataset(tuple(f"v{v}" for v in range(n)), (("0", "1"),) * n, codes)


def searched(score, most, knowledge=None):
    return CandidateSearch(most, Score.of(score), knowledge or Knowledge())


@given(st.data())
def test_all_sets_by_a_function_are_those_of_the_score_itself(data):
    dataset = data.draw(datasets(max_variables=5, max_rows=30))
    most = data.draw(st.integers(0, 3))
    last = dataset.names[-1]
    known = data.draw(
        st.sampled_from(
            [
                Knowledge(),
                Knowledge(required=[("a", last)], max_parents={last: 2}),
                Knowledge(forbidden=[("a", "b")], priors=[("b", "a", 1.5)]),
                Knowledge(before=[("b", "a")]),
            ]
        )
    )
    if known.required and most < 1:
        return
    found = qb.identify(dataset, searched(bdeu, most, known))
    expected = qb.identify(dataset, searched("bdeu", most, known))
    for child in range(dataset.n):
        own, theirs = dict(found.of(child)), dict(expected.of(child))
        for parents in own.keys() ^ theirs.keys():  # ties that rounding decides
            assert qb.local_score(dataset, child, parents, BDEU) < max(own.values()) + 1e-6
        for parents in own.keys() & theirs.keys():
            assert own[parents] == pytest.approx(theirs[parents], rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("most", [2, 3])
def test_the_network_and_the_proof_are_those_of_the_score_itself(most):
    dataset = noisy_sums()
    found = qb.learn(dataset, most, score=bdeu, time_limit=5)
    expected = qb.learn(dataset, most, score="bdeu", time_limit=5)
    assert found.solution.proved and expected.solution.proved
    assert found.solution.score == pytest.approx(expected.solution.score, rel=1e-9)
    assert found.network.parents == expected.network.parents
    assert found.candidates.stamp.score == "own:bdeu"
    assert found.candidates.stamp.title == "own score bdeu"
    assert found.formulation.qubo.bits == expected.formulation.qubo.bits


def test_growing_asks_for_each_set_once():
    dataset, calls = noisy_sums(), []

    def counted(table, child, parents):
        calls.append((child, parents))
        return bdeu(table, child, parents)

    qb.learn(dataset, score=LocalScore(counted), time_limit=0.5)
    first = [each for each in calls if len(each[1]) <= 1]
    assert len(set(first)) == dataset.n**2
    assert all(parents == tuple(sorted(set(parents))) for _, parents in calls)


@pytest.mark.parametrize("parallel", [False, True])
def test_one_thread_calls_unless_more_are_declared_safe(parallel):
    dataset, threads = noisy_sums(20, 10), set()

    def noted(table, child, parents):
        threads.add(threading.current_thread())
        return bdeu(table, child, parents)

    score = LocalScore(noted, parallel=parallel)
    qb.learn(dataset, score=score, time_limit=0.2, threads=2)
    if parallel:
        assert len(threads) > 1
    else:
        assert threads == {threading.main_thread()}


@given(tables_of_numbers())
def test_columns_of_numbers_can_have_an_own_score(dataset):
    score = Score("bic")
    own = LocalScore(lambda data, child, parents: qb.local_score(data, child, parents, score))
    found = qb.identify(dataset, searched(own, 2))
    expected = qb.identify(dataset, searched("bic", 2))
    assert found.base_scores == pytest.approx(expected.base_scores, rel=1e-9)
    best, theirs = qb.solve(found, "anneal"), qb.solve(expected, "anneal")
    assert best.score == pytest.approx(theirs.score, rel=1e-8, abs=1e-6)


def test_everything_behind_learn_takes_a_function(tmp_path):
    dataset = noisy_sums()
    page = tmp_path / "report.html"
    found = qb.learn(dataset, 2, score=bdeu, bootstrap=3, best=2, report=page, run_dir=tmp_path)
    assert found.confidence.samples == 3 and page.stat().st_size > 0
    assert len(found.alternatives.networks) == 2
    assert qb.score(found.network, dataset, bdeu).total == pytest.approx(found.solution.score)
    judged = qb.judge(dataset, found.network, 2, score=bdeu, holdout=0.2)
    assert judged.bayes_factor is None and judged.equivalence_class is None
    assert "compelled" not in "\n".join(judged.describe())
    assert judged.as_json()["equivalence_class"] is None
    frequencies = found.confidence.frequencies
    assert set(np.unique(frequencies * 3 % 1)) == {0.0}  # no edge counts half


def test_a_score_that_is_declared_equivalent_leaves_directions_open():
    dataset = noisy_sums(3)
    score = LocalScore(bdeu, equivalent=True)
    judged = qb.judge(dataset, qb.Network(dataset.names, ((), (0,), ())), 2, score=score)
    assert len(judged.equivalence_class.undirected) == 1


def test_the_cost_of_calls_is_predicted():
    dataset = noisy_sums(8, 30)
    search = searched(bdeu, 3)
    found = forecasts(dataset, search)
    assert [each.max_parents for each in found] == [1, 2, 3]
    assert found[2].families == 8 * (1 + 7 + 21 + 35)
    assert found[0].seconds < found[1].seconds < found[2].seconds
    assert not is_large(dataset, search, math.inf)
    assert is_large(noisy_sums(30, 5), search, math.inf)


def failing(value, at=(1,)):
    """Return a function that returns or raises a value for one parent set."""

    def function(dataset, child, parents):
        if parents != at:
            return 0.0
        if isinstance(value, Exception):
            raise value
        return value

    return function


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.nan, "is nan"),
        (math.inf, "is inf"),
        (None, "is None"),
        (KeyError("x\ny"), "raises KeyError: 'x\\ny'"),
    ],
)
def test_a_function_that_fails_is_refused_in_one_line(value, words, most):
    with pytest.raises(SettingError) as error:
        qb.learn(noisy_sums(3), most, score=failing(value), time_limit=1)
    message = str(error.value)
    assert message.startswith("score 'failing.<locals>.function' of 'v0' with parents 'v1' ")
    assert words in message and "\n" not in message


def test_minus_infinity_means_no_parent_set():
    def only_earlier(dataset, child, parents):
        return bdeu(dataset, child, parents) if all(p < child for p in parents) else -math.inf

    for most in (None, 2):
        found = qb.learn(noisy_sums(), most, score=only_earlier, time_limit=2)
        assert found.network.edges
        assert all(p < child for child, its in enumerate(found.network.parents) for p in its)
    with pytest.raises(SettingError, match="'v2' without parents is -inf; return a finite"):
        score = failing(-math.inf, ())
        qb.learn(noisy_sums(3), 1, score=lambda d, c, p: score(d, c, p) if c == 2 else 0.0)


def test_the_run_folder_knows_the_function_by_its_source(tmp_path):
    def weighted(factor):
        return lambda dataset, child, parents: bdeu(dataset, child, parents) * factor

    keys = {LocalScore(weighted(factor)).checksum for factor in (1.0, 2.0, 1.0)}
    assert len(keys) == 2
    assert LocalScore(partial(bdeu)).checksum != LocalScore(partial(bdeu, child=1)).checksum
    assert LocalScore(bdeu).checksum == LocalScore(bdeu).checksum != LocalScore(failing).checksum
    dataset = noisy_sums(3)
    for factor in (1.0, 2.0, 1.0):
        found = qb.learn(dataset, 1, score=weighted(factor), run_dir=tmp_path)
        plain = qb.learn(dataset, 1, score=bdeu)
        assert found.solution.score == pytest.approx(factor * plain.solution.score)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"score": 3}, "score = 3; give the name of a score"),
        ({"score": bdeu, "ess": 2.0}, "ess=2.0 has no effect on score 'own:bdeu'"),
        ({"score": bdeu, "penalty": 2.0}, "penalty=2.0 has no effect on score 'own:bdeu'"),
        ({"score": bdeu, "possible_parents": 2}, "possible_parents=2 is for scores of this"),
        ({"score": "own:bdeu"}, "give the function itself, in Python"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options, words):
    with pytest.raises(SettingError, match=words):
        qb.learn(noisy_sums(5), 2, **options)


def test_the_command_line_takes_the_name_of_an_entry_point(tmp_path):
    code = "import qubayes as qb\ndef mine(dataset, child, parents):\n    return qb.local_score("
    code += "dataset, child, parents, qb.Score('k2'))\n"
    (tmp_path / "my_scores.py").write_text(code)
    facts = tmp_path / "my_scores-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: my_scores\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[qubayes.local_scores]\nmine = my_scores:mine\n")
    dataset = noisy_sums()
    write(dataset, tmp_path / "table.csv")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-m", "qubayes", "learn", "table.csv", "-m", "2"]
    done = subprocess.run(
        [*command, "--score", "mine", "-o", "x.json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "mine" in done.stdout
    expected = qb.learn(dataset, 2, score="k2")
    assert qb.read_network(tmp_path / "x.json").edges == expected.network.edges
    done = subprocess.run(
        [*command, "--score", "others"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "mine" in done.stderr
