"""The score that data have unless one is given, scores for the other kind of data, and penalties."""

from math import log

import numpy as np
import pandas as pd
import pytest

from candidate_cases import dependent_data
from qubayes import Network, SettingError, judge, learn, score
from qubayes.candidates import CandidateSearch, identify
from qubayes.data import read
from qubayes.learning import LearnSettings
from qubayes.scores import AUTO, Score, local_score

RANDOM = np.random.default_rng(3)
CELLS = RANDOM.normal(size=(80, 3))
CELLS[:, 2] += CELLS[:, 0]
NUMBERS = read(pd.DataFrame(CELLS, columns=["a", "b", "c"]))
STATES = dependent_data(3, 80, seed=1)
MIXED = read(pd.DataFrame({"a": CELLS[:, 0], "b": CELLS[:, 1], "town": ["A", "B"] * 40}))
GRAPH = Network(("a", "b", "c"), ((), (), (0,)))


def test_auto_is_the_score_of_the_kind():
    assert Score(AUTO).on(STATES) == Score("bdeu")
    assert Score(AUTO, 7.0).on(STATES) == Score("bdeu", 7.0)
    assert Score(AUTO).on(NUMBERS) == Score("bge")
    assert Score("bic", penalty=2.0).on(NUMBERS) == Score("bic", penalty=2.0)
    assert local_score(NUMBERS, 2, (0,), Score(AUTO)) == local_score(NUMBERS, 2, (0,), Score("bge"))
    assert local_score(STATES, 2, (0,), Score(AUTO)) == local_score(STATES, 2, (0,), Score("bdeu"))


def test_results_name_the_score_and_never_auto():
    assert LearnSettings().chosen_score == Score(AUTO) and CandidateSearch().score == Score(AUTO)
    assert identify(STATES).stamp.score == "bdeu"
    found = score(GRAPH, NUMBERS)
    assert found.score == Score("bge") and "(BGe)" in str(found)
    learned = learn(STATES, 1)
    assert learned.settings.score == "bdeu" and learned.solution.stamp.score == "bdeu"
    assert learned.settings.as_json()["score"] == "bdeu"


@pytest.mark.parametrize(
    "use",
    [
        lambda data, score: learn(data, 1, score=score),
        lambda data, score: learn(data, score=score),
        lambda data, score: identify(data, CandidateSearch(1, score)),
        lambda data, score: judge(data, Network(data.names, ((),) * 3), 1, score=score),
        lambda data, chosen: score(Network(data.names, ((),) * 3), data, chosen),
    ],
)
def test_scores_of_the_other_kind_are_refused_with_the_remedy(use):
    with pytest.raises(SettingError, match="'bge' is for continuous columns; use bdeu"):
        use(STATES, Score("bge"))
    with pytest.raises(SettingError, match=r"'bdeu' is for discrete .* score='bge', .* bins=3"):
        use(NUMBERS, Score("bdeu"))
    with pytest.raises(SettingError, match="ess=10 has no effect on score 'bge'; leave it out"):
        use(NUMBERS, Score(AUTO, 10))
    for name in ("bge", "bdeu"):
        with pytest.raises(SettingError, match=r"'a' is continuous and 'town' discrete; .* bins=3"):
            use(MIXED, Score(name))


def test_columns_that_are_no_vertices_may_be_of_another_kind():
    found = score(Network(("a", "b"), ((), (0,))), MIXED, "bic")
    alone = read(pd.DataFrame(CELLS[:, :2], columns=["a", "b"]))
    assert found.total == score(Network(("a", "b"), ((), (0,))), alone, "bic").total
    assert found.other_columns == 1


@pytest.mark.parametrize(("data", "parameters"), [(NUMBERS, 3), (STATES, None)])
@pytest.mark.parametrize(("name", "cost"), [("bic", 0.5 * log(80)), ("aic", 1.0)])
def test_a_penalty_is_multiplied(data, parameters, name, cost):
    if parameters is None:  # free parameters of a table
        parameters = (int(data.arities[2]) - 1) * int(data.arities[0])
    plain = local_score(data, 2, (0,), Score("loglik"))
    for factor in (0.5, 1.0, 2.0):
        found = local_score(data, 2, (0,), Score(name, penalty=factor))
        assert found == pytest.approx(plain - factor * cost * parameters, rel=1e-12)


def test_a_penalty_is_in_the_stamp_unless_it_is_1():
    found = identify(STATES, CandidateSearch(2, Score("bic", penalty=2.0)))
    assert found.stamp.penalty == 2.0 and '"penalty": 2.0' in found.stamp.as_json()
    assert found.as_json()["penalty"] == 2.0
    plain = identify(STATES, CandidateSearch(2, Score("bic")))
    assert plain.stamp.penalty is None and "penalty" not in plain.stamp.as_json()
    assert "penalty" not in plain.as_json()
    assert found.total < plain.total
    learned = learn(STATES, 2, score="bic", penalty=2.0)
    assert learned.solution.stamp.penalty == 2.0
    assert "BIC, 2 times the penalty" in str(learned.solution)
    assert score(GRAPH, NUMBERS, "bic", penalty=2.0).as_json()["penalty"] == 2.0


def test_penalties_that_have_no_effect_are_refused():
    for name in ("bdeu", "bge", "loglik", "k2", AUTO):
        with pytest.raises(SettingError, match=f"penalty=2.0 has no effect on score '{name}'"):
            Score(name, penalty=2.0)
    for factor in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(SettingError, match="give a positive number"):
            Score("bic", penalty=factor)
