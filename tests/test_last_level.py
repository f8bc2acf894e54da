"""The last level with bounds against the definition, and against the same search without bounds."""

import math
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from candidate_cases import dependent_data
from qubayes import ConstraintError, Workers
from qubayes.candidates import CandidateSearch, identify, levels, write_candidates
from qubayes.data import Dataset
from qubayes.foundation.jit import kernel
from qubayes.scores import NAMES, Score
from strategies import datasets
from test_candidates import assert_same, by_vertex, expected, knowledge, weighted_rows

# with loglik every set is a candidate: there are no bounds
PRICED = [name for name in NAMES if name != "loglik"]


@pytest.fixture
def calls(monkeypatch):
    """Bounds are used however few sets there are; the list holds (sets, counted, kept) of each block."""
    monkeypatch.setattr(levels, "_TO_LOAD", -1.0)
    monkeypatch.setattr(levels, "_TO_COMPILE", -1.0)
    blocks, kernel = [], levels.find_sets

    def watched(prefixes, *more):
        counted = kernel(prefixes, *more)
        blocks.append((len(more[-1]), counted, int(more[-2][-1])))
        return counted

    watched.signatures = kernel.signatures
    monkeypatch.setattr(levels, "find_sets", watched)
    return blocks


def without_bounds(dataset, search, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(levels, "_TO_LOAD", np.inf)
        return identify(dataset, search)


@given(
    datasets(min_variables=3),
    st.sampled_from(PRICED),
    st.sampled_from([0.01, 1.0, 10.0, 1e9]),
    st.integers(2, 4),
)
def test_candidates_are_the_definition(calls, dataset, name, ess, max_parents):
    search = CandidateSearch(min(max_parents, dataset.n - 1), Score(name, ess))
    calls.clear()
    assert_same(by_vertex(identify(dataset, search)), expected(dataset, search))
    assert calls or dataset.rows == 1  # log 1 = 0: then bic prices nothing


@given(
    datasets(min_variables=3, max_arity=2), st.sampled_from(PRICED), st.sampled_from([1.0, 100.0])
)
def test_bits_are_the_definition(calls, dataset, name, ess):
    search = CandidateSearch(min(3, dataset.n - 1), Score(name, ess))
    assert_same(by_vertex(identify(dataset, search)), expected(dataset, search))


@given(datasets(min_variables=3, max_variables=5, max_arity=3), st.sampled_from(PRICED), st.data())
def test_knowledge_is_kept(calls, dataset, name, data):
    search = CandidateSearch(2, Score(name), data.draw(knowledge(dataset.names)))
    try:
        assert_same(by_vertex(identify(dataset, search)), expected(dataset, search))
    except ConstraintError:
        with pytest.raises(ConstraintError):
            search.knowledge.resolve(dataset.names, 2)


@pytest.mark.parametrize("name", PRICED)
@pytest.mark.parametrize("states", [2, 3, 7])
@pytest.mark.parametrize("max_parents", [2, 3, 4])
def test_the_result_is_the_same_bit_for_bit(
    name, states, max_parents, calls, monkeypatch, tmp_path
):
    """Many rows a group (packs of 4, 3, 2 and 1 counts), many blocks, two threads; few sets are judged exactly."""
    dataset = dependent_data(14, 700, seed=states + max_parents, states=states)
    search = CandidateSearch(max_parents, Score(name))
    write_candidates(without_bounds(dataset, search, monkeypatch), tmp_path / "without.qbc")
    for threads in (1, 2):
        calls.clear()
        write_candidates(identify(dataset, search, workers=Workers(threads)), tmp_path / "with.qbc")
        assert (tmp_path / "with.qbc").read_bytes() == (tmp_path / "without.qbc").read_bytes()
    sets, counted, kept = np.sum(calls, axis=0)
    assert kept <= counted <= sets
    assert kept < {"aic": 0.9, "k2": 0.7}.get(name, 0.5) * sets


@pytest.mark.parametrize("name", PRICED)
def test_merged_rows_and_large_counts(name, calls, monkeypatch):
    for dataset in (
        weighted_rows((2, 2, 2), (2,), [1023, 4097, 5, 1, 1, 3000, 17, 2]),
        weighted_rows((9, 9), (3, 2), [*range(1, 60), 4095, 15, 16, 17]),
    ):
        search = CandidateSearch(2, Score(name))
        assert_same(by_vertex(identify(dataset, search)), expected(dataset, search))
        assert calls


def test_too_many_rows_are_counted_exactly(calls):
    codes = (
        np.random.default_rng(0).integers(0, 3, (4, levels.MOST_BOUNDED_ROWS + 1)).astype(np.uint8)
    )
    identify(Dataset(tuple("abcd"), (("x", "y", "z"),) * 4, codes), CandidateSearch(2))
    assert not calls


@pytest.mark.parametrize("name", ["bic", "aic", "bdeu", "k2"])
def test_no_set_beats_its_bounds(name, calls, monkeypatch):
    """Brute force over the kernel's tables: the terms of V are below bound B and below the bound by its counts."""
    judged = []
    kernel = levels.find_sets

    def watched(prefixes, wide, bits, rule, bounds, constraints, below, scratch, x_start, xs):
        counted = kernel(
            prefixes, wide, bits, rule, bounds, constraints, below, scratch, x_start, xs
        )
        judged.extend(
            (*prefixes[p].tolist(), x)
            for p in range(len(prefixes))
            for x in xs[x_start[p] : x_start[p + 1]]
        )
        return counted

    monkeypatch.setattr(levels, "find_sets", watched)
    dataset = dependent_data(8, 60, seed=3, states=3)
    search = CandidateSearch(2, Score(name))
    scores = expected(dataset, CandidateSearch(2, Score(name)))
    identify(dataset, search)
    winners = {tuple(sorted((i, *w))) for i in range(8) for w in scores[i] if len(w) == 2}
    assert winners <= set(judged)
    assert len(judged) < len(list(combinations(range(8), 3)))


def test_bound_b_leaves_sets_uncounted(calls):
    """bic: most sets of noisy data are ruled out by the terms of their subsets, before any row is counted."""
    identify(dependent_data(16, 200, seed=1, states=4), CandidateSearch(3, Score("bic")))
    sets, counted, _ = np.sum(calls, axis=0)
    assert counted < sets / 2


def test_every_cell_has_its_row_of_sums_whatever_the_order():
    """Few states in P and many in y make more cells than the other way round: each group has an empty row more."""
    states = [2, 2, 67, 3, 2]
    rows = levels.Rows(
        np.zeros((5, 1000), np.uint8),
        np.array(states),
        np.zeros(0, np.int32),
        np.zeros((5, 0)),
        1000,
    )
    rule = levels.Rule(Score("bdeu").formula(1000), np.ones(5, levels.CHILD), np.ones(1))
    groups, pairs, _ = levels.make_bounds(4, rows, rule, np.zeros((5, 10))).groups
    for p, q, y in permutations(states, 3):
        assert groups >= p * q
        assert pairs >= (p * q + 1) * y


@pytest.mark.parametrize("total", [7, 8, 300])
def test_packed_moments_are_rounded_up(total):
    """M1 of a count c is 1 + 1/2 + ... + 1/(c - 1), and M0 is log (c - 1)!; at most a unit more than that."""
    rows = levels.Rows(
        np.zeros((5, 3), np.uint8), np.full(5, 2), np.zeros(0, np.int32), np.zeros((5, 0)), total
    )
    rule = levels.Rule(Score("bdeu").formula(total), np.ones(5, levels.CHILD), np.ones(1))
    bounds = levels.make_bounds(3, rows, rule, np.zeros((5, 5)))[1]
    (n_bits, m1_bits), (unit, m1_unit) = bounds.widths.tolist(), bounds.units.tolist()
    for count in range(total + 1):
        packed = int(bounds.table[count])
        m1 = sum(Fraction(1, i) for i in range(1, count))
        m0 = math.lgamma(count) if count else 0.0
        assert packed & ((1 << n_bits) - 1) == (count > 0)
        assert m1 <= ((packed >> n_bits) & ((1 << m1_bits) - 1)) * m1_unit < m1 + m1_unit * 1.001
        assert m0 - 1e-9 <= (packed >> (n_bits + m1_bits)) * unit <= m0 + unit + 1e-9


def test_no_bounds_where_they_take_too_much_memory(monkeypatch):
    states = [2, 2, 67, 3, 2]
    rows = levels.Rows(
        np.zeros((5, 1000), np.uint8),
        np.array(states),
        np.zeros(0, np.int32),
        np.zeros((5, 0)),
        1000,
    )
    rule = levels.Rule(Score("bdeu").formula(1000), np.ones(5, levels.CHILD), np.ones(1))
    groups, pairs, _ = levels.make_bounds(4, rows, rule, np.zeros((5, 10))).groups
    counts = sum(states) + 1 + 2 * levels.LANES  # of two bytes in each row
    needed = 2 * counts * max(1000, 4 * (groups + 1), pairs + 1)
    for most, found in ((needed, True), (needed - 1, False)):
        monkeypatch.setattr(levels, "_MOST_BYTES", most)
        assert (levels.make_bounds(4, rows, rule, np.zeros((5, 10))) is not None) == found


def test_small_problems_do_not_load_the_kernel(monkeypatch):
    monkeypatch.setattr(levels, "find_sets", None)
    identify(dependent_data(8, 100, seed=0), CandidateSearch(3))


def test_the_kernel_is_compiled_only_where_it_pays(monkeypatch, tmp_path):
    rows = levels.Rows(
        np.zeros((5, 1000), np.uint8), np.full(5, 3), np.zeros(0, np.int32), np.zeros((5, 0)), 1000
    )
    formula = Score("bdeu").formula(1000)

    @kernel
    def anew(x):
        return x

    compiled = kernel(anew.py_func)
    compiled(1)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    for find_sets, sets in product([compiled, anew], [10**3, 10**6, 10**8]):
        monkeypatch.setattr(levels, "find_sets", find_sets)
        pays = levels.pays(4, sets, rows, formula)
        assert pays == (sets == 10**8 or (sets == 10**6 and find_sets is compiled)), (
            find_sets,
            sets,
        )
