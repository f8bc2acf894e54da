"""Measurements of edge probabilities; calibration of scores, prior, sets and kernel together."""

import sys

import numpy as np
import pytest

from benchmarks import calibration
from benchmarks import posterior as errors
from qubayes.candidates import CandidateSearch
from qubayes.network import Network, write_network
from qubayes.scores import Score


def test_probabilities_are_calibrated_where_the_truth_is_drawn_from_the_prior():
    """Networks are drawn by the sampler, tables from the prior of the score, then rows."""
    random = np.random.default_rng(3)
    search = CandidateSearch(3, Score("bdeu", 4.0))
    truths = calibration.prior_networks(4, 3, 80, 1)
    shares, there = [], []
    for truth in truths:
        dataset = calibration.data_of(truth, 60, 4.0, random)
        edges = calibration.edges_by("uniform", dataset, search, 0)
        found = calibration.adjacency(truth)
        off = ~np.eye(4, dtype=bool)
        shares.append(edges[off])
        there.append(found[off])
    share, truth = np.concatenate(shares), np.concatenate(there)
    assert 0.2 < truth.mean() < 0.4  # of the 543 networks, each edge is in 0.317
    for low, high in ((0.0, 0.15), (0.15, 0.4), (0.4, 1.01)):
        inside = (share >= low) & (share < high)
        spread = np.sqrt((share * (1.0 - share))[inside].sum())
        assert inside.sum() > 30
        # edges of one network are correlated, which about doubles the spread of a sum
        assert abs((truth - share)[inside].sum()) < 6.0 * spread


def test_groups_and_losses():
    said = calibration.Said(np.array([0.0, 0.05, 0.95, 1.0]), np.array([0.0, 1.0, 1.0, 1.0]))
    assert calibration.groups(said) == [
        (0.0, 0.0, 1),
        (0.05, 1.0, 1),
        (0.95, 1.0, 1),
        (1.0, 1.0, 1),
    ]
    loss, squared = calibration.losses(said)
    expected = -np.log([0.999, 0.05, 0.95, 0.999]).mean()
    assert loss == pytest.approx(expected) and squared == pytest.approx((0.95**2 + 0.05**2) / 4)
    assert "<svg" in calibration.picture({"uniform": said}, "title")


def test_a_row_of_the_table_of_errors(tmp_path, monkeypatch, capsys):
    tables = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.2, 0.8]])
    network = Network(("a", "b"), ((), (0,)), (("0", "1"), ("0", "1")), tables)
    write_network(network, tmp_path / "pair.bif")
    page = tmp_path / "page.md"
    page.write_text(f"before {errors.MARK} old {errors.MARK} after")
    row = errors.measured(tmp_path, "pair:0.2", 100)
    assert row[:3] == ["pair", "2", "uniform"] and float(row[6]) < 0.1
    command = [
        "posterior",
        str(tmp_path),
        "--runs",
        "pair:0.1",
        "--rows",
        "50",
        "--page",
        str(page),
    ]
    monkeypatch.setattr(sys, "argv", command)
    errors.main()
    assert "| pair | 2 |" in capsys.readouterr().out
    assert page.read_text().startswith("before") and "| pair |" in page.read_text()
