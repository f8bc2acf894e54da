"""Forecasts of the search for candidate sets, and the choice of one that fits."""

import json
import time
from functools import partial
from itertools import pairwise
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from candidate_cases import Clock, dependent_data
from qubayes import SettingError, TooLargeError
from qubayes.candidates import (
    CandidateSearch,
    Forecast,
    affordable,
    forecasts,
    identify,
    largest_that_fits,
    sizes,
    warn_of_most,
)
from qubayes.cli import app
from qubayes.data import Dataset, write
from qubayes.foundation.environment import peak_memory
from qubayes.foundation.workers import Workers
from qubayes.learning import plan
from qubayes.qubo import formulate
from qubayes.qubo.subsets import cover
from qubayes.scores import Score

# a search of discrete data, as what is chosen names its score
OfStates = partial(CandidateSearch, score=Score("bdeu"))
# so many that a search of m = 3 is predicted before it is run
MANY = dependent_data(300, 10, seed=0)


@pytest.fixture(scope="module")
def dataset():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (12, 200)).astype(np.uint8)
    codes[5] = np.where(rng.random(200) < 0.3, codes[5], codes[2])
    return Dataset(tuple(f"v{i}" for i in range(12)), (("a", "b", "c"),) * 12, codes)


def test_what_is_measured_is_what_the_search_finds(dataset):
    forecasts = plan(dataset, CandidateSearch(3, Score("bds")))
    assert [f.max_parents for f in forecasts] == [1, 2, 3]
    for forecast in forecasts:
        found = identify(dataset, CandidateSearch(forecast.max_parents, Score("bds")))
        assert forecast.how == "measured"
        assert forecast.candidates == found.total
        assert forecast.families == 12 * sum(comb(11, s) for s in range(forecast.max_parents + 1))
        assert forecast.bits == formulate(found, cover(found)).bits["total"]


def test_progress_is_shown_level_by_level(dataset):
    seen = []
    plan(dataset, CandidateSearch(2), on_progress=seen.append)
    assert [(part.stage, part.done, part.total) for part in seen] == [
        ("plan", done, 3) for done in range(1, 4)
    ]


def test_costs_grow_with_the_number_of_parents(dataset):
    forecasts = plan(dataset, CandidateSearch(6))
    for fewer, more in pairwise(forecasts):
        assert fewer.families < more.families
        assert fewer.seconds < more.seconds
        assert fewer.memory <= more.memory


def test_levels_beyond_reach_are_extrapolated(dataset):
    found = forecasts(dataset, CandidateSearch(3), longest=0.0)
    assert [f.how for f in found] == ["extrapolated"] * 3
    assert [f.bits for f in found] == [None] * 3
    assert found[2].seconds > found[1].seconds > 0


def test_the_pace_of_many_variables_is_that_of_their_search(set_clock):
    """Single ranges of a few sets would pay for the counts of a prefix that neighbours share: 40 times as much."""
    clock = SimpleNamespace(perf_counter=time.process_time, process_time=time.process_time)
    set_clock(clock, "qubayes.candidates.forecast")
    data = dependent_data(250, 300, seed=0)
    identify(data, CandidateSearch(2), workers=Workers(1))  # compiles the kernels
    began = time.process_time()
    identify(data, CandidateSearch(2), workers=Workers(1))
    spent = time.process_time() - began
    predicted = forecasts(data, CandidateSearch(2), workers=Workers(1), longest=0.1)[1]
    assert predicted.how == "sampled"
    assert spent / 4 < predicted.seconds < 4 * spent


def test_the_largest_that_fits():
    forecasts = [Forecast(m, 10**m, 10.0**m, 10**m * 1000, 0.0, None, "sampled") for m in (1, 2, 3)]
    assert largest_that_fits(forecasts, 150, 1e9) == 2
    assert largest_that_fits(forecasts, 1e9, 20_000) == 1
    assert largest_that_fits(forecasts, 1, 1e9) == 0


def test_what_is_measured_among_possible_parents_is_what_the_search_finds(dataset):
    found = forecasts(dataset, CandidateSearch(3, possible_parents=4), longest=60.0)
    for forecast in found:
        search = CandidateSearch(forecast.max_parents, possible_parents=4)
        assert forecast.how == "measured" and forecast.possible_parents == 4
        assert forecast.families == 12 * sum(comb(4, s) for s in range(forecast.max_parents + 1))
    assert round(found[2].candidates) == identify(dataset, search).total


def test_a_search_among_possible_parents_is_sampled_and_extrapolated():
    found = forecasts(
        dependent_data(60, 100, seed=0), CandidateSearch(40, possible_parents=40), longest=0.01
    )
    how = [forecast.how for forecast in found]
    assert how[0] == "sampled" and how[-1] == "extrapolated"
    assert found[1].seconds < found[3].seconds < found[-1].seconds


def test_command(tmp_path, dataset):
    write(dataset, tmp_path / "x.csv")
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "x.csv"), "-m", "2", "--json"])
    answer = json.loads(result.stdout)
    assert [row["m"] for row in answer["plans"]] == [1, 2] and answer["fits"] == 2
    text = (
        CliRunner()
        .invoke(app, ["plan", str(tmp_path / "x.csv"), "-m", "2", "--seconds", "0"])
        .stdout
    )
    assert "no search fits in 0 s" in text


def test_no_plan_for_a_cluster(dataset):
    with pytest.raises(SettingError, match="leave out cluster"):
        plan(dataset, CandidateSearch(1), workers=Workers(cluster="tcp://127.0.0.1:1"))


def test_command_with_possible_parents(tmp_path, dataset):
    write(dataset, tmp_path / "x.csv")
    arguments = ["plan", str(tmp_path / "x.csv"), "-m", "2", "--possible-parents", "3", "--json"]
    answer = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert [row["sets"] for row in answer["plans"]] == [12 * 4, 12 * 7]


# Which search is taken


def costing(seconds):
    """Forecasts: m parents take seconds * 10^(m-2) s, and 10^m bytes; among K possible parents K s for each parent."""

    def predict(dataset, search, **_):
        kept = search.possible_parents
        return [
            Forecast(
                m,
                10,
                float(kept * m) if kept else seconds * 10.0 ** (m - 2),
                10**m,
                1.0,
                None,
                "sampled",
                kept,
            )
            for m in range(1, search.max_parents + 1)
        ]

    return predict


def choose(seconds, search, limit=None, *, smaller=False, data=MANY):
    return affordable(data, search, Workers(1), limit, smaller=smaller, predict=costing(seconds))


def test_a_search_that_takes_long_is_announced(caplog):
    assert choose(462.0, OfStates(3)).max_parents == 3
    assert caplog.messages == [
        "max_parents=3 would take about 77 minutes for the candidate sets; max_parents=3 possible_parents=30 takes "
        "about 90 s and is optimal only among these parents"
    ]
    caplog.clear()
    assert choose(20.0, OfStates(3)).max_parents == 3 and not caplog.messages


def test_a_time_limit_chooses_the_number_of_parents(caplog):
    assert choose(300.0, OfStates(3), 2000, smaller=True) == OfStates(3, possible_parents=30)
    assert caplog.messages == [
        "max_parents=3 would take about 50 minutes for the candidate sets; the limit is 2000 s: "
        "max_parents=3 possible_parents=30 is taken, about 90 s"
    ]


@pytest.mark.parametrize(
    ("limit", "kept", "chosen"),
    [
        (10_000, None, (3, None)),
        (1000, None, (3, 30)),  # a few possible parents rather than one parent less
        (100, None, (3, 20)),
        (71, None, (2, 20)),
        (45, None, (3, 10)),
        (15, None, (1, 10)),
        (200, 30, (3, 30)),
        (100, 30, (2, 30)),  # the given number of possible parents stays
    ],
)
def test_many_variables_are_restricted_to_possible_parents(limit, kept, chosen):
    search = choose(300.0, OfStates(3, possible_parents=kept), limit, smaller=True)
    assert (search.max_parents, search.possible_parents) == chosen


def test_two_parents_among_all_come_before_two_among_some():
    # 300 s, 60 s among 20; 30 s, 60 s among 30
    search = choose(30.0, OfStates(3), 71, smaller=True)
    assert (search.max_parents, search.possible_parents) == (2, None)


def test_a_given_number_of_parents_comes_before_fewer():
    assert list(sizes(OfStates(2), 40)) == [(2, 30), (2, 20), (2, 10), (1, 10), (1, None)]
    assert list(sizes(OfStates(3), 12)) == [(2, None), (3, 10), (2, 10), (1, 10), (1, None)]
    assert list(sizes(OfStates(1), 8)) == []


@pytest.mark.parametrize(
    ("limit", "offer"),
    [
        (
            1000,
            "max_parents=3 possible_parents=30 takes about 90 s and .*; the limit is 1000 s: choose that, or give",
        ),
        (
            70,
            "max_parents=3 possible_parents=20 takes about 60 s and .*; the limit is 70 s: choose that, or give",
        ),
        (
            25,
            "max_parents=2 possible_parents=10 takes about 20 s and .*; the limit is 25 s: choose that, or give",
        ),
        # the last one that was predicted
        (3, "max_parents=1 takes about 30 s; the limit is 3 s: give more time"),
    ],
)
def test_a_refusal_names_what_fits(limit, offer):
    with pytest.raises(
        SettingError, match=f"max_parents=3 would take about 50 minutes .*; {offer}"
    ):
        choose(300.0, OfStates(3), limit)


def test_the_fastest_search_is_taken_where_forecasts_took_the_time(set_clock):
    """Forecasts of 2 s each leave less than any search takes."""
    clock = Clock()
    set_clock(clock, "qubayes.candidates.budget")

    def predict(dataset, search, **_):
        clock.now += 2.0
        return costing(300.0)(dataset, search)

    search = affordable(MANY, OfStates(3), Workers(1), 11, smaller=True, predict=predict)
    assert (search.max_parents, search.possible_parents) == (1, 10)


def test_possible_parents_that_the_time_limit_does_not_allow_are_refused():
    search = OfStates(3, possible_parents=30)
    message = "max_parents=3 possible_parents=30 would take about 90 s .*; max_parents=2 possible_parents=30 takes"
    with pytest.raises(
        SettingError, match=message + " about 60 s and .*; the limit is 70 s: choose that, or give"
    ):
        choose(300.0, search, 70)
    assert choose(300.0, search, 100).max_parents == 3


def test_more_sets_than_can_be_numbered_are_restricted_too(caplog):
    data = dependent_data(3000, 4, seed=0)
    assert choose(1e9, OfStates(3), 200, smaller=True, data=data) == OfStates(
        3, possible_parents=30
    )
    assert "would take years" in caplog.text
    with pytest.raises(SettingError, match="possible_parents=30"):
        choose(1e9, OfStates(3), 200, data=data)


def test_as_many_possible_parents_as_variables_are_all():
    data = dependent_data(3000, 4, seed=0)
    search = choose(1e9, OfStates(3, possible_parents=2999), 200, smaller=True, data=data)
    assert search == OfStates(3, possible_parents=30)


@pytest.mark.parametrize("kept", [0, -2])
def test_possible_parents_are_checked_before_they_are_predicted(kept):
    with pytest.raises(SettingError, match=f"possible_parents = {kept}; give 1 or more"):
        choose(1.0, OfStates(3, possible_parents=kept), 3, smaller=True)


def test_the_memory_restricts_the_choice_too(set_memory):
    # bytes; m parents take 10^m
    set_memory(100)
    assert choose(1.0, OfStates(3), 60, smaller=True) == OfStates(2)
    with pytest.raises(
        SettingError,
        match=r"max_parents=3 needs .* may be used; max_parents=2 takes about 1 s; the",
    ):
        choose(1.0, OfStates(3), 60)


def test_a_search_that_the_memory_does_not_hold_is_refused(set_memory):
    here = int(peak_memory() + 100e6)
    set_memory(here)
    message = "max_parents=3 needs .* GB may be used: take max_parents=2, or possible_parents=30"
    many = dependent_data(1000, 4, seed=0)
    with pytest.raises(TooLargeError, match=message):
        choose(1.0, OfStates(3), data=many)
    search = OfStates(3, possible_parents=30)
    assert choose(1.0, search, data=many) == search


def test_small_searches_are_not_predicted(dataset):
    search = OfStates(3)
    assert affordable(dataset, search, Workers(1), 60, smaller=True, predict=None) == search
    assert affordable(dataset, search, Workers(1), 0, predict=None) == search


def test_a_search_of_nearly_all_parents_is_refused_in_time():
    """Its last level has a few sets only, those in the middle are too many."""
    data = dependent_data(37, 100, seed=0)
    began = time.perf_counter()
    with pytest.raises(
        SettingError, match=r"max_parents=36 needs .*; max_parents=.* takes about .* choose that"
    ):
        affordable(data, OfStates(36), Workers(1), 1)
    assert time.perf_counter() - began < 30  # on a busy machine; it took hours
    with pytest.raises(TooLargeError, match="max_parents=36 needs"):
        affordable(data, OfStates(36), Workers(1))


def test_more_parents_than_other_variables_are_named(caplog, dataset):
    warn_of_most(CandidateSearch(12), dataset.n)
    assert caplog.messages == [
        "max_parents=12 is the same as max_parents=11: there are 12 variables"
    ]
    warn_of_most(CandidateSearch(11), dataset.n)
    warn_of_most(CandidateSearch(), 2)  # the default is lowered without a word
    assert len(caplog.messages) == 1
