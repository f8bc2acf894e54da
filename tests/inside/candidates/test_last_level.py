"""The last level with bounds against the definition, and against the same search without bounds."""

import math
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from level_searches import search_levels

from candidate_cases import dependent_data
from qubayes import Workers
from qubayes.candidates import CandidateSearch, write_candidates
from qubayes.candidates.bound_tables import MOST_BOUNDED_ROWS, make_bounds, pay
from qubayes.candidates.counting import Rows
from qubayes.candidates.identify import first_level
from qubayes.candidates.levels import bounds_pay
from qubayes.candidates.scanning import CHILD, Rule
from qubayes.data import Dataset
from qubayes.foundation.errors import ConstraintError
from qubayes.foundation.jit import kernel
from qubayes.foundation.words import LANES
from qubayes.scores import NAMES, Score
from strategies import datasets
from test_candidates import assert_same, by_vertex, expected, knowledge, weighted_rows

PRICED = [name for name in NAMES if name != "loglik"]  # with loglik every set is a candidate set


@given(
    datasets(min_variables=3),
    st.sampled_from(PRICED),
    st.sampled_from([0.01, 1.0, 10.0, 1e9]),
    st.integers(2, 4),
)
def test_candidates_are_the_definition(dataset, name, ess, max_parents):
    search = CandidateSearch(min(max_parents, dataset.n - 1), Score(name, ess))
    found, passed = search_levels(dataset, search)
    assert_same(by_vertex(found), expected(dataset, search))
    assert passed or dataset.rows == 1  # log 1 = 0: then bic prices nothing


@given(
    datasets(min_variables=3, max_arity=2), st.sampled_from(PRICED), st.sampled_from([1.0, 100.0])
)
def test_bits_are_the_definition(dataset, name, ess):
    search = CandidateSearch(min(3, dataset.n - 1), Score(name, ess))
    assert_same(by_vertex(search_levels(dataset, search)[0]), expected(dataset, search))


@given(datasets(min_variables=3, max_variables=5, max_arity=3), st.sampled_from(PRICED), st.data())
def test_knowledge_is_kept(dataset, name, data):
    search = CandidateSearch(2, Score(name), data.draw(knowledge(dataset.names)))
    try:
        assert_same(by_vertex(search_levels(dataset, search)[0]), expected(dataset, search))
    except ConstraintError:
        with pytest.raises(ConstraintError):
            search.knowledge.resolve(dataset.names, 2)


@pytest.mark.parametrize("name", PRICED)
@pytest.mark.parametrize("states", [2, 3, 7])
@pytest.mark.parametrize("max_parents", [2, 3, 4])
def test_the_result_is_the_same_bit_for_bit(name, states, max_parents, tmp_path):
    """Many rows a group (packs of 4, 3, 2 and 1 counts), many blocks, two threads.

    Few sets are judged exactly.
    """
    dataset = dependent_data(14, 700, seed=states + max_parents, states=states)
    search = CandidateSearch(max_parents, Score(name))
    exact, _ = search_levels(dataset, search, bounded=False)
    write_candidates(exact, tmp_path / "without.qbc")
    for workers in (Workers(1), Workers(2)):
        found, passed = search_levels(dataset, search, workers)
        write_candidates(found, tmp_path / "with.qbc")
        assert (tmp_path / "with.qbc").read_bytes() == (tmp_path / "without.qbc").read_bytes()
        assert len(passed.kept) <= passed.counted <= passed.sets
        most = {"bdeu": 0.5, "bds": 0.5, "bic": 0.5, "k2": 0.7, "aic": 0.9}
        assert len(passed.kept) < most.get(name, 1.0) * passed.sets


@pytest.mark.parametrize("name", PRICED)
def test_merged_rows_and_large_counts(name):
    for dataset in (
        weighted_rows((2, 2, 2), (2,), [1023, 4097, 5, 1, 1, 3000, 17, 2]),
        weighted_rows((9, 9), (3, 2), [*range(1, 60), 4095, 15, 16, 17]),
    ):
        search = CandidateSearch(2, Score(name))
        found, passed = search_levels(dataset, search)
        assert_same(by_vertex(found), expected(dataset, search))
        assert passed


def test_too_many_rows_are_counted_exactly():
    codes = np.random.default_rng(0).integers(0, 3, (4, MOST_BOUNDED_ROWS + 1)).astype(np.uint8)
    dataset = Dataset(tuple("abcd"), (("x", "y", "z"),) * 4, codes)
    _, passed = search_levels(dataset, CandidateSearch(2))
    assert passed is None


@pytest.mark.parametrize("name", ["bic", "aic", "bdeu", "k2"])
def test_no_set_beats_its_bounds(name):
    """Every set of a candidate set and its child passes; some sets do not."""
    dataset = dependent_data(8, 60, seed=3, states=3)
    search = CandidateSearch(2, Score(name))
    scores = expected(dataset, search)
    _, passed = search_levels(dataset, search)
    winners = {tuple(sorted((i, *w))) for i in range(8) for w in scores[i] if len(w) == 2}
    assert winners <= set(passed.kept)
    assert len(passed.kept) < len(list(combinations(range(8), 3)))


def test_bound_b_leaves_sets_uncounted():
    """bic: most sets of noisy data are ruled out by their subsets, before any row is counted."""
    dataset = dependent_data(16, 200, seed=1, states=4)
    _, passed = search_levels(dataset, CandidateSearch(3, Score("bic")))
    assert passed.counted < passed.sets / 2


def rows_without_data(states, total):
    """Return rows of variables with these numbers of observed states; all codes are 0."""
    n = len(states)
    codes = np.zeros((n, total), np.uint8)
    return Rows(codes, np.array(states), np.zeros(0, np.int32), np.zeros((n, 0)), total)


def bounds_of(rows, k, **limits):
    """Return the bounds at level k for `bdeu`; the best score of every set is 0."""
    n = len(rows.observed)
    rule = Rule(Score("bdeu").formula(rows.total), np.ones(n, CHILD), np.ones(1))
    return make_bounds(k, rows, rule, np.zeros((n, math.comb(n, k - 2))), **limits)


def test_every_cell_has_its_row_of_sums_whatever_the_order():
    """Few states in P and many in y make the most cells: each group has an empty row more."""
    states = [2, 2, 67, 3, 2]
    sizes = bounds_of(rows_without_data(states, 1000), 4).sizes
    for p, q, y in permutations(states, 3):
        assert sizes.groups >= p * q
        assert sizes.pairs >= (p * q + 1) * y


@pytest.mark.parametrize("total", [7, 8, 300])
def test_packed_moments_are_rounded_up(total):
    """M1 of a count c is 1 + 1/2 + ... + 1/(c - 1), and M0 is log (c - 1)!; at most a unit more than that."""
    rows = rows_without_data([2] * 5, 3)._replace(total=total)
    bounds = bounds_of(rows, 3).terms
    (n_bits, m1_bits), (unit, m1_unit) = bounds.widths.tolist(), bounds.units.tolist()
    for count in range(total + 1):
        packed = int(bounds.table[count])
        m1 = sum(Fraction(1, i) for i in range(1, count))
        m0 = math.lgamma(count) if count else 0.0
        assert packed & ((1 << n_bits) - 1) == (count > 0)
        assert m1 <= ((packed >> n_bits) & ((1 << m1_bits) - 1)) * m1_unit < m1 + m1_unit * 1.001
        assert m0 - 1e-9 <= (packed >> (n_bits + m1_bits)) * unit <= m0 + unit + 1e-9


def test_no_bounds_where_they_take_too_much_memory():
    states = [2, 2, 67, 3, 2]
    rows = rows_without_data(states, 1000)
    sizes = bounds_of(rows, 4).sizes
    counts = sum(states) + 1 + 2 * LANES  # of two bytes in each row
    needed = 2 * counts * max(1000, 4 * (sizes.groups + 1), sizes.pairs + 1)
    assert bounds_of(rows, 4, largest_array=needed) is not None
    assert bounds_of(rows, 4, largest_array=needed - 1) is None


def test_small_problems_do_not_load_the_kernel():
    level = first_level(dependent_data(8, 100, seed=0), CandidateSearch(3))
    assert not bounds_pay(level, 4)


def test_the_kernel_is_compiled_only_where_it_pays(request):
    rows = rows_without_data([3] * 5, 1000)

    @kernel
    def fresh(x):
        return x

    compiled = kernel(fresh.py_func)
    compiled(1)
    request.getfixturevalue("empty_cache")  # now `fresh`, of the same code, is not compiled
    assert [pay(sets, rows, compiled) for sets in (10**3, 10**6, 10**8)] == [False, True, True]
    assert [pay(sets, rows, fresh) for sets in (10**3, 10**6, 10**8)] == [False, False, True]
