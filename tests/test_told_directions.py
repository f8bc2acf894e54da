"""Equivalence classes with known directions: networks of one class are those of equal scores."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import qubayes
from candidate_cases import assert_one_line, run
from qubayes.candidates import Candidates
from qubayes.data import Dataset, read
from qubayes.foundation.families import Families
from qubayes.network import Network, told_by, write_cpdag, write_network
from qubayes.scores import Score, local_score
from qubayes.search.exact import alternatives

STATES = ("0", "1", "2")
GAIN = 50.0  # of each parent: larger sets come first, and networks of a class have equal gains


def experiments(*targets):
    """A discrete table of 4 variables; in some rows each target's variables were set."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (4, 153)).astype(np.uint8)
    codes[1] = np.maximum(codes[0], codes[1])
    codes[2] = (codes[2] * codes[1] + codes[3]) % 3
    marks = np.zeros(codes.shape, np.bool_)
    for number, target in enumerate(targets):
        marks[list(target), 9 * number : 9 * number + 9] = True
    return Dataset(tuple("abcd"), (STATES,) * 4, codes, interventions=marks)


def mixed(*targets):
    """A table of two discrete and two continuous variables, with such experiments."""
    rng = np.random.default_rng(4)
    told = experiments(*targets)
    numbers = {"b": rng.normal(size=153) + told.codes[0]}
    numbers["d"] = rng.normal(size=153) + numbers["b"] * told.codes[2]
    codes = told.codes.copy()
    codes[[1, 3]] = 0
    states = (STATES, (), STATES, ())
    marks = told.interventions if targets else None
    return Dataset(tuple("abcd"), states, codes, numbers=numbers, interventions=marks)


def all_candidates(dataset):
    """All parent sets that the model allows; no number is a parent of states."""
    score = Score("auto").on(dataset)
    lists, scores = [], []
    for child in range(4):
        others = [v for v in range(4) if v != child]
        if dataset.states[child]:
            others = [v for v in others if dataset.states[v]]
        sets = [its for size in range(4) for its in itertools.combinations(others, size)]
        scored = [(local_score(dataset, child, its, score) + GAIN * len(its), its) for its in sets]
        scored.sort(reverse=True)
        lists.append([its for _, its in scored])
        scores += [each for each, _ in scored]
        assert lists[-1][-1] == ()
    return Candidates(dataset.names, Families.of(lists), np.array(scores))


DATASETS = [experiments((0,)), experiments((1, 2)), experiments((0,), (3,)), mixed(), mixed((1,))]


@pytest.mark.parametrize("dataset", DATASETS)
def test_networks_of_one_class_are_those_that_the_score_cannot_tell_apart(dataset):
    candidates = all_candidates(dataset)
    found = alternatives(candidates, within=1e300, told=Score("auto").told(dataset))
    assert found.complete and len(found.networks) > 50
    by_score = []
    for number, score in enumerate(found.scores):
        if number and math.isclose(score, found.scores[number - 1], rel_tol=1e-10):
            by_score[-1].append(number)
        else:
            by_score.append([number])
    assert found.classes() == by_score
    plain = replace(found, told=None)
    shares = [each.edge_shares(by_class=True) for each in (plain, found)]
    assert np.abs(shares[0] - shares[1]).max() > 1e-3


@pytest.mark.parametrize("dataset", DATASETS)
def test_shares_by_class_are_means_over_the_directions_that_equal_scores_leave_open(dataset):
    found = alternatives(all_candidates(dataset), within=1e300, told=Score("auto").told(dataset))
    expected, weights = np.zeros((4, 4)), 0.0
    for members in found.classes():
        weight = math.exp(found.scores[members[0]] - found.scores[0])
        ways = np.zeros((4, 4), np.bool_)  # directions that some member has
        for number in members:
            for child, its in enumerate(found.networks[number]):
                ways[list(its), child] = True
        expected += weight * ways / np.maximum(ways + 1.0 * ways.T, 1.0)
        weights += weight
    assert found.edge_shares(by_class=True) == pytest.approx(expected / weights, abs=1e-12)


def test_learn_tells_the_directions():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, 200)
    frame = pd.DataFrame(
        {"state": np.where(state, "u", "v"), "number": state + rng.normal(size=200)}
    )
    found = qubayes.learn(frame, 1, best=2).alternatives
    assert found.networks[0] == ((), (0,))
    shares = found.edge_shares(by_class=True)
    assert shares[1, 0] == 0.0 and shares[0, 1] > 0.99


def test_files_of_the_class_keep_the_directions_that_a_table_tells(tmp_path, capsys):
    frame = pd.DataFrame({"c": [0, 1, 0, 1], "b": [0, 1, 1, 1], "a": [0, 0, 1, 1]})
    frame["set"] = ["", "b", "b", ""]
    frame.to_csv(tmp_path / "table.csv", index=False)
    chain = Network(("a", "b", "c"), ((), (0,), (1,)))
    write_network(chain, tmp_path / "chain.bnlearn")
    asked = ["convert", tmp_path / "chain.bnlearn", tmp_path / "class.csv"]
    data = ["--data", tmp_path / "table.csv"]

    def matrix():
        return pd.read_csv(tmp_path / "class.csv").to_numpy().tolist()

    assert run(capsys, *asked, "--cpdag")[0] == 0
    assert matrix() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert run(capsys, *asked, "--cpdag", *data, "--interventions", "set")[0] == 0
    assert matrix() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert told_by(chain, read(frame.drop(columns="set"))) is None
    frame = frame.assign(c=["u", "v", "u", "v"], b=[0.1, 1.2, 0.4, 1.1]).drop(columns="set")
    fork = Network(("a", "b", "c"), ((), (0, 2), (0,)))  # b holds numbers
    told = told_by(fork, read(frame.assign(a=["x", "y", "y", "x"])))
    write_cpdag(fork, tmp_path / "class.csv", told)
    assert matrix() == [[0, 1, 1], [0, 0, 0], [1, 1, 0]]
    code, _, err = run(capsys, *asked, *data)
    assert_one_line(code, err, "--data has no effect without --cpdag")
    code, _, err = run(capsys, *asked, "--cpdag", "--interventions", "set")
    assert_one_line(code, err, "--interventions has no effect without --data")
