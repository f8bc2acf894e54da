"""Samples: the right distribution, the same for the same seed, and the command."""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from qubayes import QubayesError
from qubayes.data import read
from qubayes.network import Network, read_network, sample_dataset
from reference.data import all_rows, joint_probability
from test_bif import SPRINKLER


@pytest.fixture
def network(tmp_path):
    path = tmp_path / "sprinkler.bif"
    path.write_text(SPRINKLER)
    return read_network(path)


def test_frequencies_match_the_joint_distribution(network):
    rows = 200_000
    data = sample_dataset(network, rows, seed=1)
    counts = Counter(map(tuple, data.codes.T.tolist()))
    total = 0.0
    for row in all_rows(network.arities.tolist()):
        probability = joint_probability(network, row)
        total += probability
        spread = 5 * (rows * probability * (1 - probability)) ** 0.5
        assert abs(counts[row] - rows * probability) <= spread
    assert abs(total - 1) < 1e-12


def test_impossible_states_are_declared_and_never_drawn(network):
    data = sample_dataset(network, 100_000, seed=2)
    assert data.states == network.states
    assert data.arities_from == "network sprinkler.bif"
    rain, sprinkler, grass = data.codes
    assert not ((rain == 0) & (sprinkler == 2)).any()
    assert not ((sprinkler == 0) & (rain == 1) & (grass == 0)).any()


def test_last_state_with_probability_zero_is_never_drawn():
    table = np.array([0.1] * 10 + [0.0])
    network = Network(("a",), ((),), (tuple("abcdefghijk"),), (table,))
    assert sample_dataset(network, 100_000, seed=0).codes.max() == 9


def test_same_seed_same_rows_and_longer_samples_begin_alike(network):
    data = sample_dataset(network, 100_000, seed=3)
    assert data.checksum == sample_dataset(network, 100_000, seed=3).checksum
    assert data.checksum != sample_dataset(network, 100_000, seed=4).checksum
    assert np.array_equal(sample_dataset(network, 70_000, seed=3).codes, data.codes[:, :70_000])


def test_the_sample_of_a_seed_is_fixed_for_ever(network):
    # Written down once: a change of these rows changes what every seed means.
    expected = [[1, 1, 1, 0, 1, 1, 0, 1], [1, 0, 1, 0, 2, 2, 0, 1], [1, 1, 0, 0, 0, 0, 0, 1]]
    assert sample_dataset(network, 8, seed=0).codes.tolist() == expected


def test_codes_take_the_smallest_type_and_cannot_be_written(network):
    data = sample_dataset(network, 10, seed=0)
    assert data.codes.dtype == np.uint8
    assert not data.codes.flags.writeable
    wide = Network(("a",), ((),), (tuple(map(str, range(300))),), (np.full(300, 1 / 300),))
    assert sample_dataset(wide, 10, seed=0).codes.dtype == np.uint16


def test_what_cannot_be_sampled_is_refused(network):
    with pytest.raises(QubayesError, match="rows = 0"):
        sample_dataset(network, 0, seed=0)
    with pytest.raises(QubayesError, match="seed = -1"):
        sample_dataset(network, 1, seed=-1)
    with pytest.raises(QubayesError, match="no probabilities"):
        sample_dataset(Network(("a", "b"), ((), (0,))), 1, seed=0)


def test_tables_of_a_wrong_shape_are_refused():
    states = (("x", "y"), ("x", "y", "z"))
    fine = (np.array([0.5, 0.5]), np.full((2, 3), 1 / 3))
    assert Network(("a", "b"), ((), (0,)), states, fine).n == 2
    with pytest.raises(QubayesError, match=r"shape \(3, 2\)"):
        Network(("a", "b"), ((), (0,)), states, (fine[0], np.full((3, 2), 0.5)))
    with pytest.raises(QubayesError, match="two vertices are named 'a'"):
        Network(("a", "a"), ((), ()))
    with pytest.raises(QubayesError, match="indices from 0 to 1"):
        Network(("a", "b"), ((), (2,)))
    with pytest.raises(QubayesError, match="tables need states"):
        Network(("a", "b"), ((), (0,)), None, fine)


def test_command(tmp_path):
    path = tmp_path / "sprinkler.bif"
    path.write_text(SPRINKLER)
    expected = sample_dataset(read_network(path), 50, seed=7)
    printed = qubayes("sample", path, "-n", 50, "--seed", 7)
    assert printed.returncode == 0
    lines = printed.stdout.splitlines()
    assert lines[0] == "rain,sprinkler,grass"
    assert len(lines) == 51
    for name in ("x.csv", "x.tsv", "x.parquet", "x.dat"):
        done = qubayes("sample", path, "-n", 50, "--seed", 7, "-o", tmp_path / name, "--json")
        assert json.loads(done.stdout)["checksum"] == expected.checksum
    assert (tmp_path / "x.csv").read_text() == printed.stdout
    again = read(tmp_path / "x.parquet")
    assert again.checksum == expected.checksum
    assert again.arities_from == "declared types"
    for wrong in (["-o", tmp_path / "x.xls"], ["-n", "0"], ["--json"]):
        failed = qubayes("sample", path, *wrong)
        assert failed.returncode == 1
        assert failed.stderr.startswith("qubayes: ")
        assert failed.stderr.count("\n") == 1


def qubayes(*arguments):
    code = "from qubayes.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True
    )
