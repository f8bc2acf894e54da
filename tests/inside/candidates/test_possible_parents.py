"""Scores of pairs and partners, and the possible parents that are kept."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candidate_cases import dependent_data
from qubayes.candidates import (
    CandidateSearch,
    Knowledge,
    identify,
    partners,
    screening,
)
from qubayes.data import Dataset
from qubayes.scores import NAMES, Score
from reference import scores
from reference.candidates import partner_score
from strategies import datasets
from test_candidates import by_vertex
from test_screening import assert_is_definition


@given(datasets(min_variables=2), st.sampled_from(NAMES), st.sampled_from([0.01, 1.0, 100.0]))
def test_all_pairs_are_scored_exactly(dataset, name, ess):
    rows, arities = [tuple(row) for row in dataset.codes.T.tolist()], dataset.arities.tolist()
    pairs, children = screening.prepare_pairs(dataset, Score(name, ess).formula(dataset.rows)), []
    for block in screening.blocks_of_children(pairs.kinds):
        children += block.tolist()
        for child, found in zip(block.tolist(), screening.pair_scores(pairs, block), strict=True):
            for parent in set(range(dataset.n)) - {child}:
                wanted = scores.local_score(rows, arities, child, (parent,), name, ess)
                assert found[parent] == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert sorted(children) == list(range(dataset.n))


@pytest.mark.parametrize("name", NAMES)
def test_larger_data(name, monkeypatch):
    """Several blocks of children, several of rows, and counts beyond the table."""
    dataset = dependent_data(12, 500, seed=5, states=4)
    search = CandidateSearch(2, Score(name), possible_parents=5)
    assert len(assert_is_definition(dataset, search)) > 9
    usual = by_vertex(identify(dataset, search))
    monkeypatch.setattr(partners, "_BLOCK_COUNTS", 5000)
    monkeypatch.setattr(screening, "_ROWS", 64)
    monkeypatch.setattr(screening, "_CELLS", 100)
    monkeypatch.setattr(screening, "_LONGEST_TABLE", 100)
    assert by_vertex(identify(dataset, search)) == usual


@given(datasets(min_variables=3), st.sampled_from(NAMES), st.sampled_from([0.01, 1.0, 100.0]))
def test_partners_are_scored_to_first_order(dataset, name, ess):
    rows, arities = [tuple(row) for row in dataset.codes.T.tolist()], dataset.arities.tolist()
    pairs = screening.prepare_pairs(dataset, Score(name, ess).formula(dataset.rows))
    equal, n = (
        name not in ("bds", "bdeu") or (name == "bdeu" and len(set(arities)) == 1),
        dataset.n,
    )
    for block in screening.blocks_of_children(pairs.kinds):
        singles = np.array([[j for j in range(n) if j != child] for child in block.tolist()])
        found = partners.partner_scores(pairs, block, singles)
        for (i, child), j in product(enumerate(block.tolist()), range(n - 1)):
            for other in set(range(n)) - {child, int(singles[i, j])}:
                family = child, (int(singles[i, j]), other), name, ess
                assert found[i, j, other] == pytest.approx(
                    partner_score(rows, arities, *family), rel=1e-9, abs=1e-9
                )
                if equal:  # exact where all families have the same prior
                    wanted = scores.local_score(rows, arities, *family)
                    assert found[i, j, other] == pytest.approx(wanted, rel=1e-9, abs=1e-8)


def test_a_partner_that_says_nothing_alone_is_kept():
    """a is b where c is 0, and random where c is 1: c alone says nothing of a, while others say a little."""
    random = np.random.default_rng(3)
    codes = random.integers(0, 2, (9, 400)).astype(np.uint8)
    codes[0] = np.where(codes[2] == 0, codes[1], codes[0])
    codes[3:] = np.where(random.random((6, 400)) < 0.2, codes[0], codes[3:])
    dataset = Dataset(tuple("abcdefghi"), (("x", "y"),) * 9, codes)
    allowed, pairs = (
        Knowledge().resolve(dataset.names, 2),
        screening.prepare_pairs(dataset, Score().formula(400)),
    )
    assert screening.best_parents((pairs, allowed, 8), np.array([0]))[0][0] == 1
    assert 2 not in screening.best_parents((pairs, allowed, 4), np.array([0]))[0]
    assert 2 in screening.possible_parents(dataset, Score(), allowed, 2)[0]
    single = Knowledge(max_parents={"a": 1}).resolve(dataset.names, 2)
    assert 2 not in screening.possible_parents(dataset, Score(), single, 4)[0]


def test_partners_are_ranked_on_a_sample_of_the_rows():
    dataset = dependent_data(9, 90, seed=7)
    pairs = screening.prepare_pairs(dataset, Score("bic").formula(90))
    sample = pairs.sample_of(40)
    numbers = [row.tolist() for row in dataset.codes.T]
    assert sample.codes.shape == (9, 40) and sample.weight == 90 / 40
    assert all(row.tolist() in numbers for row in sample.codes.T)
    assert pairs.sample_of(90) is pairs and pairs.sample is pairs
    children, singles = np.array([0]), np.array([[1]])
    found, plain = (
        partners.partner_scores(each._replace(formula=formula), children, singles)[0, 0, 2:]
        for each, formula in (
            (sample, pairs.formula),
            (sample._replace(weight=1.0), Score("loglik").formula(90)),
        )
    )
    price = pairs.formula.penalty * (pairs.kinds[0, 0] - 1) * pairs.kinds[1, 0] * pairs.kinds[2:, 0]
    assert found == pytest.approx(90 / 40 * plain - price)


def every_other_row(rows):
    """v0 is v1 in even rows, and v1 and v2 in odd ones; v3 to v8 are copies of v0 with errors."""
    random = np.random.default_rng(1)
    codes = random.integers(0, 2, (9, rows)).astype(np.uint8)
    codes[0] = np.where(np.arange(rows) % 2, codes[1] & codes[2], codes[1])
    codes[3:] = np.where(random.random((6, rows)) < 0.3, codes[0], codes[3:])
    return Dataset(tuple(f"v{i}" for i in range(9)), (("x", "y"),) * 9, codes)


@pytest.mark.parametrize(
    ("nats", "kept"), [(0.0, True), (-250.0, True), (-1000.0, True), (-30_000.0, False)]
)
def test_a_sample_of_rows_hides_neither_periods_nor_the_weight_of_priors(nats, kept):
    dataset = every_other_row(4 * partners.MOST_SAMPLED_ROWS)
    known = Knowledge(priors=[("v2", "v0", nats)]).resolve(dataset.names, 2)
    assert (2 in screening.possible_parents(dataset, Score(), known, 2)[0]) == kept


def test_blocks_are_smaller_where_there_are_many_states():
    kinds = np.array([[2, 2]] * 300 + [[300, 300]] * 30)
    pairs = partners.Pairs(np.zeros((330, 100), np.uint16), kinds, Score().formula(100))
    blocks = screening.blocks_with_singles(pairs, {child: [0] for child in range(330)}, 30)
    seen = [(int(kinds[block[0][0], 1]), len(block)) for block in blocks]
    assert sorted(child for block in blocks for child, _ in block) == list(range(330))
    assert all(10 * 300 * states * children <= screening._CELLS for states, children in seen)


def test_of_equal_parents_the_first_are_kept():
    codes = np.array([[0, 1, 1, 0, 1, 0]] * 6 + [[0, 0, 1, 1, 1, 0]], np.uint8)
    dataset = Dataset(tuple("abcdefg"), (("x", "y"),) * 7, codes)
    allowed = Knowledge(forbidden=[("b", "f")], required=[("d", "f")]).resolve(dataset.names, 2)
    kept = screening.possible_parents(dataset, Score(), allowed, 2)
    assert kept == ((1, 2), (0, 2), (0, 1), (0, 1), (0, 1), (0, 2, 3), (0, 1))
