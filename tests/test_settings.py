"""Settings are declared once, and what is kept is found again only by the settings that it was made with."""

import inspect
import json
import math
import os
import re
import signal
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import typer

import qubayes
from candidate_cases import dependent_data
from qubayes.candidates import CandidateSearch, Knowledge, fingerprint
from qubayes.cli import app
from qubayes.data import ReadSettings, read
from qubayes.foundation.settings import Option, facts
from qubayes.learning import (
    FormulateSettings,
    LearnSettings,
    SolveSettings,
    bootstrap,
    judge,
    learn,
)
from qubayes.scores import Score
from qubayes.search import SOLVERS, Limits, solver_named

DATA = dependent_data(5, 100, seed=1)

# Other values of fields whose default is not a number, a truth value or None.
OTHERS = {
    (Score, "name"): "bds",
    (CandidateSearch, "score"): Score("bic"),
    (LearnSettings, "score"): "bic",
    (LearnSettings, "knowledge"): Knowledge(forbidden=[("v0", "v1")]),
    (LearnSettings, "solver"): "anneal",
    (LearnSettings, "prior"): "fair",
    (LearnSettings, "reading"): ReadSettings(missing="drop"),
    (CandidateSearch, "knowledge"): Knowledge(forbidden=[("v0", "v1")]),
    (Knowledge, "tiers"): [["v0"], ["v1"]],
    (Knowledge, "max_parents"): {"v0": 0},
    (Knowledge, "priors"): [("v0", "v1", 2.0)],
}

# Fields of LearnSettings that change nothing that is kept under a key of its own.
NOT_IN_KEYS = {
    "memory": "with a number of parents it only refuses a search",
    "reading": "the key has the checksum of the data as they were read",
    "bootstrap": "more samples are added to those in the file, which are the same for any number of them",
    "impute_rounds": "the key has the checksum of the completed table",
    "completions": "the key has the checksum of the completed table",
    "best": "the list of networks is not kept",
    "within": "the list of networks is not kept",
    "posterior": "probabilities of edges are kept under a key of their own",
    "prior": "it is the prior of the probabilities of edges alone",
    "max_table": "no set is grown where a number of parents is given",
}


def others(settings):
    """The settings with another value of each field in turn, by name of the field."""
    for each in fields(settings):
        value = getattr(settings, each.name)
        if each.name == "penalty":  # only some scores take one: a test of its own
            continue
        if (type(settings), each.name) in OTHERS:
            other = OTHERS[type(settings), each.name]
        elif value == ():
            other = [("v0", "v1")]
        elif isinstance(value, bool):
            other = not value
        else:
            other = 1 if value is None else value + 1
        yield each.name, replace(settings, **{each.name: other})


def kept(folder: Path, settings: LearnSettings) -> set[str]:
    """Names and keys of what a run keeps."""
    options = {each.name: getattr(settings, each.name) for each in fields(settings)}
    learn(DATA, run_dir=folder, **options)
    keys = json.loads((folder / "run.json").read_text()).items()
    return {f"{name} {key}" for name, key in keys} | {
        path.name for path in folder.glob("bootstrap-*")
    }


def test_every_field_that_changes_a_result_changes_the_key_of_the_run_folder(tmp_path):
    plain = LearnSettings(max_parents=1, bootstrap=1)
    first = kept(tmp_path, plain)
    assert {name.split("-")[0].split()[0] for name in first} == {
        "bootstrap",
        "candidates.qbc",
        "search_inputs",
        "solution.json",
    }
    for name, settings in others(plain):
        same = first & kept(tmp_path / name, settings)
        if name in NOT_IN_KEYS:
            assert same == first, name
        elif settings.search != plain.search:
            assert not same, name
        else:
            assert not any(each.startswith("solution") for each in same), name
    assert NOT_IN_KEYS.keys() <= {each.name for each in fields(LearnSettings)}


@pytest.mark.parametrize("place", ["", "score", "knowledge"])
def test_every_field_of_a_search_changes_the_key_of_a_checkpoint(place):
    search = CandidateSearch(1)
    for name, other in others(getattr(search, place) if place else search):
        changed = replace(search, **{place: other}) if place else other
        assert json.dumps(fingerprint(DATA, changed)) != json.dumps(fingerprint(DATA, search)), name


def test_a_penalty_changes_the_keys_and_one_of_1_does_not(tmp_path):
    keys = {
        penalty: json.dumps(fingerprint(DATA, CandidateSearch(1, Score("bic", penalty=penalty))))
        for penalty in (1.0, 2.0)
    }
    assert keys[1.0] != keys[2.0] and "penalty" not in keys[1.0]
    plain = LearnSettings(max_parents=1, score="bic")
    assert "penalty" not in plain.as_json()
    other = replace(plain, penalty=2.0)
    assert other.as_json()["penalty"] == 2.0
    assert not kept(tmp_path, plain) & kept(tmp_path / "other", other)


def test_other_data_change_the_key_of_a_checkpoint():
    other = replace(DATA, codes=DATA.codes[:, ::-1])
    assert fingerprint(other, CandidateSearch(1)) != fingerprint(DATA, CandidateSearch(1))


def test_a_run_folder_of_another_version_is_not_used(tmp_path, monkeypatch):
    first = kept(tmp_path, LearnSettings(max_parents=1, bootstrap=1))
    monkeypatch.setattr("qubayes.learning.learned.__version__", "99.0")
    assert not first & kept(tmp_path / "other", LearnSettings(max_parents=1, bootstrap=1))


def test_bootstrap_samples_of_another_seed_are_not_used(tmp_path):
    expected = [bootstrap(DATA, CandidateSearch(1), 3, seed=seed).frequencies for seed in (0, 1)]
    found = [
        learn(DATA, 1, bootstrap=3, seed=seed, run_dir=tmp_path).confidence.frequencies
        for seed in (0, 1)
    ]
    assert not np.array_equal(*expected)
    assert np.array_equal(found, expected)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_search_is_repeated(tmp_path):
    def press(progress) -> None:
        if progress.stage == "anneal":
            os.kill(os.getpid(), signal.SIGINT)

    data = dependent_data(20, 300, seed=1)
    options = {"solver": "anneal", "moves": 1_000_000, "run_dir": tmp_path}
    first = learn(data, 2, on_progress=press, **options)
    assert first.interrupted and first.solution.interrupted
    again = learn(data, 2, **options)
    assert not again.interrupted and not again.solution.interrupted


@pytest.mark.parametrize(
    "settings", [Limits(), Knowledge(), Score(), CandidateSearch(), ReadSettings(), LearnSettings()]
)
def test_settings_as_json_have_every_field(settings):
    told = facts(settings)
    assert list(told) == [each.name for each in fields(settings) if "plain" not in each.metadata]
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize("name", SOLVERS)
def test_settings_of_solvers_as_json_have_every_field(name):
    solver = solver_named(name)
    assert is_dataclass(solver) and list(json.loads(json.dumps(facts(solver)))) == [
        f.name for f in fields(solver)
    ]


def test_values_that_differ_stay_apart_in_json():
    values = [
        None,
        math.inf,
        -math.inf,
        0,
        0.5,
        "",
        [],
        {},
        [None],
        np.array([1, 2]),
        np.array([1, 3]),
        Path("x"),
    ]
    told = [json.dumps(facts(value), allow_nan=False) for value in values]
    assert len(set(told)) == len(values)
    assert facts(np.int64(3)) == 3 and type(facts(np.float64(0.5))) is float
    assert facts((1, (Path("a") / "b",))) == [1, [os.path.join("a", "b")]]  # noqa: PTH118


# One declaration for Python and the command line


def defaults(function):
    return {name: each.default for name, each in inspect.signature(function).parameters.items()}


@pytest.mark.parametrize(
    ("verb", "kinds"),
    [
        (read, [ReadSettings]),
        (learn, [LearnSettings, ReadSettings]),
        (judge, [LearnSettings, ReadSettings]),
    ],
)
def test_verbs_have_every_setting_by_its_name_with_the_same_default(verb, kinds):
    expected = {each.name: each.default for kind in kinds for each in fields(kind)}
    assert defaults(verb).items() >= expected.items()
    assert not any(
        each.kind == each.VAR_KEYWORD for each in inspect.signature(verb).parameters.values()
    )


def test_the_estimator_has_every_setting_of_one_network():
    BayesianNetworkEstimator = qubayes.BayesianNetworkEstimator

    # `score` is a method, and scikit-learn names seeds
    ours = {"score": "score_name", "seed": "random_state"}
    expected = {
        ours.get(name, name) for name in defaults(LearnSettings) if name not in ("best", "within")
    }
    given = {"max_parents": 1, "score_name": "bic", "moves": 500, "random_state": 3}
    estimator = BayesianNetworkEstimator(**given)
    assert set(estimator.get_params()) == expected | {"workers", "target", "bins", "missing"}
    assert estimator.get_params() == {**BayesianNetworkEstimator().get_params(), **given}
    settings = estimator.fit(np.arange(40).reshape(20, 2) % 3).result_.settings
    assert (settings.max_parents, settings.score, settings.moves, settings.seed) == (
        1,
        "bic",
        500,
        3,
    )


@pytest.mark.parametrize("kind", [ReadSettings, LearnSettings, SolveSettings, FormulateSettings])
def test_every_setting_has_an_option_and_an_explanation(kind):
    for each in fields(kind):
        options = [item for item in get_args(each.type) if isinstance(item, Option)]
        assert options or any(map(is_dataclass, get_args(each.type))), each.name
        assert re.search(rf"^    (\w+, )*{each.name}(, \w+)* : ", kind.__doc__, re.M), each.name


COMMANDS = {
    "score": ReadSettings,
    "learn": LearnSettings,
    "solve": SolveSettings,
    "formulate": FormulateSettings,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_have_every_setting_as_an_option(command):
    kind = COMMANDS[command]
    options = {each.name: each for each in typer.main.get_command(app).commands[command].params}
    for each in fields(kind):
        if not any(map(is_dataclass, get_args(each.type))):
            assert options[each.name].default in (each.default, None)
