"""Rows as bits and merged rows; blocks of sets that are scanned again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes.candidates import CandidateSearch, identify, levels
from qubayes.candidates.counting import merge_rows, prepare_rows
from qubayes.data import Dataset
from qubayes.scores import NAMES, Score
from strategies import datasets
from test_candidates import assert_same, by_vertex, expected


@given(datasets(max_arity=2), st.sampled_from(NAMES), st.sampled_from([1.0, 100.0]))
def test_bits_count_as_rows_do(dataset, name, ess):
    search = CandidateSearch(min(3, dataset.n - 1), Score(name, ess))
    assert prepare_rows(dataset).bits.shape[1] > 0
    assert_same(by_vertex(identify(dataset, search)), expected(dataset, search))


@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("capacity", [1, 7, 10_000])
def test_a_block_with_many_candidates_is_scanned_again(capacity, states, monkeypatch):
    """Each level of the search is one block and finds 8, 56, 168 and 280 candidates: loglik keeps every set."""
    monkeypatch.setattr(levels, "_FIRST_CAPACITY", capacity)
    codes = np.random.default_rng(6).integers(0, states, (8, 101)).astype(np.uint8)
    dataset = Dataset(tuple("abcdefgh"), (tuple("xyz"[:states]),) * 8, codes)
    search = CandidateSearch(3, Score("loglik"))
    found = identify(dataset, search)
    assert found.total == 8 * (7 + 21 + 35)
    assert_same(by_vertex(found), expected(dataset, search))


def test_merged_rows_are_the_same_multiset():
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 3, (4, 500)).astype(np.uint8)
    distinct, weights = merge_rows(codes)
    assert weights.sum() == 500 and distinct.shape[1] == len({tuple(r) for r in codes.T.tolist()})
    again = np.repeat(distinct, weights, axis=1)
    assert sorted(map(tuple, again.T.tolist())) == sorted(map(tuple, codes.T.tolist()))
