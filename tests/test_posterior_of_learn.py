"""Probabilities of edges from `learn`: results, files and the run folder."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import qubayes as qb
from candidate_cases import dependent_data
from qubayes import SettingError
from qubayes.cli import app
from qubayes.learning import Outputs
from qubayes.search.posterior import read_draws

DATA = dependent_data(5, 100, seed=1)
SECONDS = 0.4


def test_learn_has_the_probabilities_and_the_draws(tmp_path):
    learned = qb.learn(DATA, 2, posterior=SECONDS, prior="fair", draws=tmp_path / "d.jsonl")
    found = learned.posterior
    assert found.prior == "fair" and "2 parents" in found.among
    assert len(read_draws(tmp_path / "d.jsonl")) == len(found.draws) > 0
    assert learned.as_json()["posterior"]["prior"] == "fair"
    assert "fair prior" in "\n".join(learned.describe())
    assert qb.learn(DATA, 2).posterior is None


def test_the_run_folder_keeps_the_probabilities(tmp_path):
    options = {"posterior": SECONDS, "run_dir": tmp_path}
    first = qb.learn(DATA, 2, **options).posterior
    second = qb.learn(DATA, 2, **options).posterior
    assert first.sampled.seconds == second.sampled.seconds
    assert np.array_equal(first.edges, second.edges) and list(first.draws) == list(second.draws)
    assert second.as_json() == first.as_json()
    other = qb.learn(DATA, 2, prior="fair", **options).posterior
    assert other.prior == "fair"
    (tmp_path / "posterior.draws").write_bytes(b"damaged")
    assert qb.learn(DATA, 2, prior="fair", **options).posterior.prior == "fair"


def test_without_a_number_of_parents_all_of_few_variables_are_summed():
    found = qb.learn(DATA, posterior=SECONDS, time_limit=5.0).posterior
    assert found.sampled.exact.all() and "4 parents" in found.among


def test_judge_says_how_probable_the_edges_are():
    network = qb.Network(DATA.names, ((), (0,), (), (2,), ()))
    found = qb.judge(DATA, network, 2, posterior=SECONDS)
    shares = {(a, b): share for a, b, share in found.as_json()["joined"]}
    assert list(shares) == network.edges
    assert shares["v0", "v1"] == pytest.approx(found.learned.posterior.joined[0, 1])
    assert "least probable" in "\n".join(found.describe())


@pytest.mark.parametrize(
    "wrong", [{"prior": "flat"}, {"posterior": -1.0}, {"posterior": 0.0}, {"draws": "d.jsonl"}]
)
def test_wrong_settings(wrong):
    with pytest.raises(SettingError):
        qb.learn(DATA, 2, **wrong)


def test_the_command(tmp_path):
    path = tmp_path / "data.csv"
    DATA.to_polars().write_csv(path)
    draws = tmp_path / "d.jsonl"
    command = ["learn", str(path), "-m", "2", "--posterior", str(SECONDS), "--draws", str(draws)]
    result = CliRunner().invoke(app, [*command, "--json"])
    assert result.exit_code == 0
    value = json.loads(result.stdout)["posterior"]
    assert value["edges"] and value["draws"] == len(read_draws(draws))
    result = CliRunner().invoke(app, ["feature", str(draws), "v0 -> v1", "v0 -- v1", "--json"])
    shares = json.loads(result.stdout)["features"]
    assert result.exit_code == 0 and list(shares) == ["v0 -> v1", "v0 -- v1"]
    assert shares["v0 -> v1"] == read_draws(draws).probability("v0 -> v1")
    result = CliRunner().invoke(app, ["feature", str(draws), "v0 ~> v1"])
    assert result.exit_code == 0 and "v0 ~> v1" in result.stdout


def test_the_report_has_the_probable_edges():
    learned = qb.learn(DATA, 2, posterior=SECONDS, bootstrap=3)
    found = learned.report_contents().posterior
    assert "uniform prior" in found.facts
    for (a, b), shares in found.edges.items():
        assert shares.probability == learned.posterior.edges[a, b] > 0.01
        assert shares.bootstrap == learned.confidence.of(a, b)
    assert qb.learn(DATA, 2).report_contents().posterior is None


def test_draws_that_there_are_none_of_leave_out_no_other_file(tmp_path):
    model, draws = tmp_path / "x.bqm", tmp_path / "d.jsonl"
    written = Outputs(qubo=model, draws=draws).write(qb.learn(DATA, 2))
    assert model.exists() and not draws.exists()
    assert written[2] == "no networks were drawn"
