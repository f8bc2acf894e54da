"""Forecasts of the search for candidate sets."""

import json
from itertools import count, pairwise
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from qubayes.candidates import Search, identify
from qubayes.candidates.screening import candidates_of_child
from qubayes.cli import app
from qubayes.data import Dataset, write
from qubayes.foundation.errors import SettingError
from qubayes.foundation.workers import Workers
from qubayes.learning import Forecast, largest_that_fits, plan
from qubayes.learning.forecast import seconds_among
from qubayes.qubo import formulate
from qubayes.qubo.subsets import cover
from qubayes.scores import Score


@pytest.fixture(scope="module")
def dataset():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (12, 200)).astype(np.uint8)
    codes[5] = np.where(rng.random(200) < 0.3, codes[5], codes[2])
    return Dataset(tuple(f"v{i}" for i in range(12)), (("a", "b", "c"),) * 12, codes)


def test_what_is_measured_is_what_the_search_finds(dataset):
    forecasts = plan(dataset, Search(3, Score("bds")))
    assert [f.max_parents for f in forecasts] == [1, 2, 3]
    for forecast in forecasts:
        found = identify(dataset, Search(forecast.max_parents, Score("bds")))
        assert forecast.how == "measured"
        assert forecast.candidates == found.total
        assert forecast.families == 12 * sum(comb(11, s) for s in range(forecast.max_parents + 1))
        assert forecast.bits == formulate(found, cover(found)).bits["total"]


def test_progress_is_shown_level_by_level(dataset):
    seen = []
    plan(dataset, Search(2), count_bits=False, on_progress=seen.append)
    assert [(part.stage, part.done, part.total) for part in seen] == [("plan", done, 3) for done in range(4)]


def test_costs_grow_with_the_number_of_parents(dataset):
    forecasts = plan(dataset, Search(6))
    for fewer, more in pairwise(forecasts):
        assert fewer.families < more.families
        assert fewer.seconds < more.seconds
        assert fewer.memory <= more.memory


def test_levels_beyond_reach_are_extrapolated(dataset):
    forecasts = plan(dataset, Search(3), longest=0.0)
    assert [f.how for f in forecasts] == ["extrapolated"] * 3
    assert [f.bits for f in forecasts] == [None] * 3
    assert forecasts[2].seconds > forecasts[1].seconds > 0


def test_the_largest_that_fits():
    forecasts = [Forecast(m, 10**m, 10.0**m, 10**m * 1000, 0.0, None, "sampled") for m in (1, 2, 3)]
    assert largest_that_fits(forecasts, 150, 1e9) == 2
    assert largest_that_fits(forecasts, 1e9, 20_000) == 1
    assert largest_that_fits(forecasts, 1, 1e9) == 0


def test_a_search_among_possible_parents_is_predicted(monkeypatch, dataset):
    """With a clock that ticks once a reading: one tick for a block of pairs, one for each batch of variables."""
    ticks = count()
    monkeypatch.setattr("qubayes.learning.forecast.time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    monkeypatch.setattr(
        "qubayes.candidates.screening._CELLS", 4 * 3 * int(dataset.arities.sum())
    )  # 4 variables a block
    searched = []

    def watched(shared, child):
        searched.append(child)
        return candidates_of_child(shared, child)

    monkeypatch.setattr("qubayes.learning.forecast.candidates_of_child", watched)
    seconds = seconds_among(dataset, Search(2, possible_parents=4), Workers(1))
    assert len(searched) == 3 and searched[0] == searched[1]  # compiled first, out of the clock
    assert seconds == 1.0 * 12 / 4 + 1.0 * 12 / 2 + 1.0 * 12 / 2


def test_command(tmp_path, dataset):
    write(dataset, tmp_path / "x.csv")
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "x.csv"), "-m", "2", "--json"])
    answer = json.loads(result.stdout)
    assert [row["m"] for row in answer["plans"]] == [1, 2] and answer["fits"] == 2
    text = CliRunner().invoke(app, ["plan", str(tmp_path / "x.csv"), "-m", "2", "--seconds", "0"]).stdout
    assert "no search fits in 0 s" in text


def test_no_plan_for_a_cluster(dataset):
    with pytest.raises(SettingError, match="leave out cluster"):
        plan(dataset, Search(1), workers=Workers(cluster="tcp://127.0.0.1:1"))
