"""Candidate sets of tables of numbers and states, and networks learned from them."""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qubayes as qb
from qubayes import ConstraintError, Knowledge, Score, Workers
from qubayes.candidates import CandidateSearch, forecasts, identify
from qubayes.data import Dataset
from reference.scores import defined
from strategies import mixed_tables


def sets_of(others, most):
    return chain.from_iterable(combinations(others, size) for size in range(most + 1))


def listed(dataset, name, most, knowledge=Knowledge()):  # noqa: B008
    """By definition: the allowed sets that beat all their allowed subsets."""
    allowed = knowledge.resolve(dataset.names, most)
    found = []
    for child in range(dataset.n):
        own = {}
        base = set(allowed.required[child])
        possible = sorted({*allowed.allowed[child], *base})
        for members in sets_of(possible, min(most, allowed.limits[child])):
            if base <= set(members):
                score = defined(dataset, child, members, name)
                score += sum(allowed.prior_of(child)[list(members)])
                if all(score > own[each] + 1e-7 for each in own if set(each) < set(members)):
                    own[members] = score
        found.append({members: score for members, score in own.items() if score > -np.inf})
    return found


def assert_same(candidates, expected):
    for child, own in enumerate(expected):
        found = dict(candidates.of(child))
        assert found.keys() == own.keys()
        assert found == pytest.approx(own, rel=1e-9, abs=1e-8)


@given(mixed_tables(), st.sampled_from(["bic", "aic", "loglik"]), st.integers(0, 4))
def test_candidate_sets_are_those_of_the_definition(dataset, name, most):
    found = identify(dataset, CandidateSearch(most, Score(name)), workers=Workers(1))
    assert_same(found, listed(dataset, name, min(most, dataset.n - 1)))


@given(mixed_tables(), st.data())
def test_candidate_sets_under_prior_knowledge(dataset, data):
    numbers = [v for v in range(dataset.n) if not dataset.states[v]]
    pairs = list(combinations(range(dataset.n), 2))  # no cycles
    some = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=4))
    kinds = data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))
    name = dataset.names.__getitem__
    required, forbidden, priors = [], [], []
    for (parent, child), kind in zip(some, kinds, strict=False):
        if kind == 0 and (child in numbers or parent not in numbers):
            required.append((name(parent), name(child)))
        elif kind == 1:
            forbidden.append((name(parent), name(child)))
        elif kind == 2:
            priors.append((name(parent), name(child), 3.0))
    knowledge = Knowledge(
        forbidden=forbidden, required=required, priors=priors, max_parents={name(0): 2}
    )
    most = min(max(2, dataset.n - 1), 3)
    found = identify(dataset, CandidateSearch(most, Score("bic"), knowledge))
    assert_same(found, listed(dataset, "bic", min(most, dataset.n - 1), knowledge))


@pytest.mark.parametrize("seed", range(6))
def test_the_best_of_all_graphs_is_learned_and_proved(seed):
    dataset = table(seed, 4 + seed % 2)
    every = [
        [
            (each, defined(dataset, v, each, "bic"))
            for each in sets_of(set(range(dataset.n)) - {v}, 4)
        ]
        for v in range(dataset.n)
    ]
    expected = best_of_lists(every)
    learned = qb.learn(dataset, max_parents=4)
    assert learned.solution.proved
    assert learned.solution.score == pytest.approx(expected, rel=1e-9)
    grown = qb.learn(dataset, seed=seed)
    assert grown.solution.proved and grown.solution.score == pytest.approx(expected, rel=1e-9)


def best_of_lists(every):
    """The best score over all orders of the variables: each takes its best set of earlier ones."""
    n = len(every)
    best = {frozenset(): 0.0}
    for size in range(1, n + 1):
        for chosen in map(frozenset, combinations(range(n), size)):
            best[chosen] = max(
                best[chosen - {last}]
                + max(score for each, score in every[last] if set(each) <= chosen - {last})
                for last in chosen
            )
    return best[frozenset(range(n))]


def table(seed, n):
    """States first, then numbers that depend on them."""
    random = np.random.default_rng(seed)
    names = tuple("abcde"[:n])
    codes = np.zeros((n, 200), np.uint8)
    codes[0] = random.integers(0, 2, 200)
    codes[1] = np.where(random.random(200) < 0.4, random.integers(0, 3, 200), codes[0])
    numbers = {}
    numbers["c"] = random.normal(size=200) * (1 + codes[0]) + codes[1]
    numbers["d"] = random.normal(size=200) + (codes[1] - 1.0) * numbers["c"]
    if n == 5:
        numbers["e"] = 5.0 * random.normal(size=200) + numbers["d"] + 3.0 * codes[0]
    states = (("0", "1"), ("0", "1", "2"), *((),) * (n - 2))
    return Dataset(names, states, codes, numbers=numbers)


def test_a_number_cannot_be_required_as_parent_of_states():
    dataset = table(0, 4)
    knowledge = Knowledge(required=[("c", "a")])
    words = "the edge c -> a is required, and no number can be a parent of states"
    for call in (
        lambda: identify(dataset, CandidateSearch(2, knowledge=knowledge)),
        lambda: qb.learn(dataset, knowledge=knowledge),
        lambda: qb.learn(dataset, max_parents=2, knowledge=knowledge),
    ):
        with pytest.raises(ConstraintError, match=words) as raised:
            call()
        assert "\n" not in str(raised.value) and "require a -> c" in str(raised.value)
    fine = Knowledge(required=[("a", "d")], forbidden=[("b", "d")])
    learned = qb.learn(dataset, knowledge=fine)
    assert "a" in learned.network["d"].parents and "b" not in learned.network["d"].parents


def test_forecasts_of_mixed_tables():
    found = forecasts(table(1, 5), CandidateSearch(3), workers=Workers(1))
    assert [each.max_parents for each in found] == [1, 2, 3]
    assert all(each.how == "measured" for each in found)
    late = forecasts(table(1, 5), CandidateSearch(3), workers=Workers(1), longest=0.0)
    assert all(each.how == "extrapolated" and each.seconds > 0 for each in late)
