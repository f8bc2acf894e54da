"""All candidate sets of continuous columns: against an oracle, with knowledge, and what is refused."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import DataError, SettingError, learn
from qubayes.candidates import CandidateSearch, Knowledge, forecasts, identify
from qubayes.data import read
from qubayes.foundation.workers import Workers
from qubayes.scores import GAUSSIAN_NAMES, Score, local_score


def numbers(seed, n, rows=80):
    """A table of n columns that depend on each other, in different units."""
    random = np.random.default_rng(seed)
    cells = random.normal(size=(rows, n))
    for v in range(1, n):
        for u in random.integers(0, v, 2):
            cells[:, v] += random.normal() * cells[:, u]
    cells = cells * 10.0 ** random.integers(-3, 4, n) + random.normal(size=n)
    return read(pd.DataFrame(cells, columns=[f"x{v}" for v in range(n)]))


def oracle(dataset, search):
    """{(child, set): score} by scoring each set and comparing it with all its subsets."""
    allowed = search.knowledge.resolve(dataset.names, search.max_parents)
    priors = allowed.prior_matrix()
    score = search.score.on(dataset)
    found = {}
    for child in range(dataset.n):
        required = set(allowed.required[child])
        possible = sorted(required | set(allowed.allowed[child]))
        known = {}
        for size in range(len(required), allowed.limits[child] + 1):
            for members in combinations(possible, size):
                if required <= set(members):
                    value = local_score(dataset, child, members, score)
                    value += float(priors[child, list(members)].sum())
                    below = [its for other, its in known.items() if other < set(members)]
                    if not below or value > max(below) + 1e-9:
                        found[child, members] = value
                    known[frozenset(members)] = value
    return found


def listed(candidates):
    return {
        (child, members): score
        for child in range(candidates.n)
        for members, score in candidates.of(child)
    }


def check(dataset, search, workers=None):
    found = listed(identify(dataset, search, workers=workers))
    expected = oracle(dataset, search)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-9)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 7),
    st.integers(0, 6),
    st.sampled_from(GAUSSIAN_NAMES),
)
def test_candidate_sets_are_those_of_the_oracle(seed, n, most, name):
    dataset = numbers(seed, n)
    check(dataset, CandidateSearch(min(most, n - 1), Score(name)))


@st.composite
def knowledge(draw, n):
    names = [f"x{v}" for v in range(n)]
    order = draw(st.permutations(names))
    forward = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    edges = draw(st.lists(st.sampled_from(forward), unique=True, max_size=6))
    cut = draw(st.integers(0, len(edges)))
    required = edges[: min(cut, 3)]
    limits = draw(st.dictionaries(st.sampled_from(names), st.integers(0, 3), max_size=2))
    limits = {name: most for name, most in limits.items() if name not in {b for _, b in required}}
    nats = st.floats(-30, 30)
    priors = draw(st.lists(st.tuples(st.sampled_from(forward), nats), max_size=3))
    return Knowledge(
        forbidden=edges[len(required) :],
        required=required,
        max_parents=limits,
        priors=[(a, b, value) for (a, b), value in dict(priors).items()],
    )


@given(st.data(), st.integers(0, 2**32 - 1), st.integers(3, 6), st.sampled_from(["bge", "bic"]))
def test_knowledge_is_respected(data, seed, n, name):
    known = data.draw(knowledge(n))
    most = data.draw(st.integers(3, 5))
    check(numbers(seed, n), CandidateSearch(min(most, n - 1), Score(name), known))


def test_progress_and_more_sets_than_a_block_has_memory_for():
    dataset = numbers(5, 16, rows=500)
    reports = []
    found = identify(dataset, CandidateSearch(4, Score("loglik")), on_progress=reports.append)
    assert found.total == 16 * (15 + 105 + 455 + 1365)  # each parent raises the likelihood
    done = [report.done for report in reports]
    assert done == sorted(done) and done[-1] == reports[-1].total == sum((16, 120, 560, 1820))


def test_strongly_correlated_columns_have_exact_scores():
    random = np.random.default_rng(2)
    cells = random.normal(size=(300, 6))
    for v in range(1, 6):
        cells[:, v] = cells[:, v - 1] + 1e-3 * cells[:, v]
    dataset = read(pd.DataFrame(cells, columns=list("abcdef")))
    found = identify(dataset, CandidateSearch(4, Score("bic")))
    for (child, members), score in listed(found).items():
        expected = local_score(dataset, child, members, Score("bic"))
        assert score == pytest.approx(expected, rel=1e-9)


def test_learn_proves_the_best_network_of_numbers():
    dataset = numbers(8, 6, rows=300)
    whole = learn(dataset, 5)
    assert whole.solution.proved and whole.solution.stamp.score == "bge"
    grown = learn(dataset, time_limit=20)
    assert grown.solution.score == pytest.approx(whole.solution.score, rel=1e-12)
    assert grown.solution.stamp.max_parents == 5  # all others: the proof is about every network
    assert grown.solution.proved and not grown.solution.scope
    few = learn(dataset.take(np.arange(6)), time_limit=20)
    assert few.solution.stamp.max_parents == 3
    limited = learn(dataset, 3, score="bic", knowledge=Knowledge(forbidden=[("x0", "x1")]))
    assert limited.solution.proved and ("x0", "x1") not in limited.network.edges


def test_forecasts_are_what_is_found():
    dataset = numbers(1, 12)
    made = forecasts(dataset, CandidateSearch(3), workers=Workers(1))
    for m, forecast in enumerate(made, 1):
        found = identify(dataset, CandidateSearch(m))
        assert forecast.how == "measured" and round(forecast.candidates) == found.total
    guessed = forecasts(dataset, CandidateSearch(3), workers=Workers(1), longest=0.0)
    assert {each.how for each in guessed} == {"extrapolated"}
    assert all(each.seconds > 0 and each.memory > 0 for each in guessed)


def test_what_cannot_be_searched_is_refused():
    dataset = numbers(1, 6)
    with pytest.raises(SettingError, match="possible_parents=3 is for discrete columns"):
        identify(dataset, CandidateSearch(2, possible_parents=3))
    few = dataset.take(np.arange(4))
    with pytest.raises(
        DataError, match=r"4 rows determine no variable by 3 parents.*max_parents=2"
    ):
        identify(few, CandidateSearch(3))
    assert identify(few, CandidateSearch(2)).n == 6
    with pytest.raises(DataError, match=r"'x0' is constant .*ignore"):
        identify(dataset.take(np.zeros(9, np.int64)), CandidateSearch(1))
    cells = {name: its.copy() for name, its in dataset.numbers.items()}
    cells["total"] = cells["x1"] - 2.5 * cells["x3"] + 1.0
    same = read(pd.DataFrame(cells))
    for use in (identify, learn):
        with pytest.raises(DataError, match="'total' is an exact linear function of 'x1', 'x3';"):
            use(same)
