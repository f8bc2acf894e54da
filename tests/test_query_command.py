"""`qubayes query`: probabilities on a terminal, equal to those of `Network.probability`."""

import json

import numpy as np
import pytest

from candidate_cases import assert_one_line, run
from qubayes.network import Network, parsed_states, query, read_network, write_network

COIN = Network(
    ("rain", "a=b", "wet, or not"),
    ((), (0,), (0, 1)),
    (("no", "yes"), ("1", "2,5"), ("dry", "damp", "wet")),
    (
        np.array([0.75, 0.25]),
        np.array([[0.5, 0.5], [0.25, 0.75]]),
        np.array([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], [[0.0, 0.00001, 0.99999], [0.0, 0.5, 0.5]]]),
    ),
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "coin.json"
    write_network(COIN, path)
    return path


def test_the_table(file, capsys):
    code, out, _ = run(capsys, "query", file, "--given", "rain=yes,a=b=1")
    assert code == 0
    assert out == (
        "Given rain = yes, a=b = 1 (probability 0.0625):\n\n"
        "variable      state   probability\n"
        "wet, or not   dry          0.0000\n"
        "              damp       < 0.0001\n"
        "              wet          1.0000\n"
    )


def test_one_variable_without_evidence(file, capsys):
    code, out, _ = run(capsys, "query", file, "--of", "rain")
    assert code == 0
    assert (
        out
        == "variable   state   probability\nrain       no           0.7500\n           yes          0.2500\n"
    )


def test_json_has_what_the_library_says(file, capsys):
    code, out, _ = run(capsys, "query", file, "--given", "a=b=2,5", "--json")
    found, network = json.loads(out), read_network(file)
    assert code == 0 and found["given"] == {"a=b": "2,5"}
    assert found["probability_of_given"] == network.probability({"a=b": "2,5"})
    assert set(found["probabilities"]) == {"rain", "wet, or not"}
    for name, each in found["probabilities"].items():
        assert each == network.probability(name, given={"a=b": "2,5"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--given", "snow=yes"), "no vertex 'snow'"),
        (("--given", "rain=perhaps"), "perhaps"),
        (("--given", "yes"), "give VARIABLE=STATE"),
        (("--given", "rain=yes,rain=no"), "twice"),
        (("--given", "rain=yes", "--of", "rain"), "leave it out"),
        (("--of", "snow"), "no vertex 'snow'"),
        (("--given", "rain=no,a=b=1,wet=dry"), "no vertex 'wet'"),
    ],
)
def test_bad_input_is_one_line(file, capsys, options, words):
    code, _, error = run(capsys, "query", file, *options)
    assert_one_line(code, error, words)


def test_a_network_without_probabilities_and_impossible_evidence(tmp_path, file, capsys):
    (tmp_path / "g.bnlearn").write_text("[a][b|a]")
    code, _, error = run(capsys, "query", tmp_path / "g.bnlearn")
    assert_one_line(code, error, "probabilities")
    code, _, error = run(capsys, "query", file, "--given", "rain=no,wet, or not=wet")
    assert_one_line(code, error, "impossible")


def test_states_and_names_may_hold_signs():
    names = COIN.names
    assert parsed_states(["rain=yes", "a=b=2,5"], names) == {"rain": "yes", "a=b": "2,5"}
    every = {"rain": "no", "a=b": "1"}
    assert query(COIN, every).probabilities["wet, or not"]["dry"] == 1.0


def test_the_help_lists_every_command_in_a_group_and_whole(capsys):
    _, out, _ = run(capsys, "--help")
    groups = [line for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    assert groups == ["Options:", "Learn:", "Networks:", "Steps of learn:", "QUBO:"]
    assert "..." not in out.split("Learn:")[1] and max(map(len, out.splitlines())) <= 80
    assert "  query    Compute probabilities, given what is known.\n" in out
