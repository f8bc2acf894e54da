"""Identification of candidate sets against the definition."""

import os
import subprocess
import sys
from ast import literal_eval
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import ConstraintError, DataError, SettingError, Workers
from qubayes.candidates import CandidateSearch, Knowledge, identify
from qubayes.data import Dataset
from qubayes.scores import NAMES, Score, local_score
from reference import scores
from strategies import datasets


def by_vertex(candidates):
    return [dict(candidates.of(i)) for i in range(candidates.n)]


def expected(dataset, search):
    rows = [tuple(row) for row in dataset.codes.T.tolist()]
    arities = dataset.arities.tolist()
    score = search.score
    known = {}

    def local(child, parents):
        if (child, parents) not in known:
            known[child, parents] = scores.local_score(
                rows, arities, child, parents, score.name, score.ess
            )
        return known[child, parents]

    allowed = search.knowledge.resolve(dataset.names, search.max_parents)
    found = []
    for i in range(dataset.n):
        base = allowed.required[i]
        sets = {
            tuple(sorted(base + more)): local(i, tuple(sorted(base + more)))
            for size in range(allowed.limits[i] - len(base) + 1)
            for more in combinations(allowed.allowed[i], size)
        }
        tolerance = 1e-10 + 2**-46 * abs(sets[base])
        best = {w: max((sets[v] for v in sets if set(v) < set(w)), default=-np.inf) for w in sets}
        found.append({w: s for w, s in sets.items() if s > best[w] + tolerance})
    return found


def assert_same(got, want):
    assert [set(family) for family in got] == [set(family) for family in want]
    for family, other in zip(got, want, strict=True):
        for parents, score in family.items():
            assert score == pytest.approx(other[parents], rel=1e-11, abs=1e-9)


@given(
    datasets(), st.sampled_from(NAMES), st.sampled_from([0.01, 1.0, 10.0, 300.0]), st.integers(0, 4)
)
def test_candidates_are_the_definition(dataset, name, ess, max_parents):
    search = CandidateSearch(min(max_parents, dataset.n - 1), Score(name, ess))
    assert_same(by_vertex(identify(dataset, search)), expected(dataset, search))


@st.composite
def knowledge(draw, names):
    pairs = [(a, b) for a in names for b in names if a != b]
    forbidden = draw(st.lists(st.sampled_from(pairs), max_size=4, unique=True))
    required = draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True))
    tiers = draw(st.sampled_from([(), (names[:2], names[2:])]))
    limits = draw(st.dictionaries(st.sampled_from(names), st.integers(0, 3), max_size=2))
    return Knowledge(forbidden, required, tiers, draw(st.booleans()), limits)


@given(
    datasets(min_variables=3, max_variables=5, max_arity=3),
    st.sampled_from(["bdeu", "bds", "bic"]),
    st.data(),
)
def test_knowledge_is_kept_and_dominance_stays_sound(dataset, name, data):
    known = data.draw(knowledge(dataset.names))
    search = CandidateSearch(2, Score(name), known)
    try:
        known.resolve(dataset.names, 2)
    except ConstraintError:
        with pytest.raises(ConstraintError):
            identify(dataset, search)
        return
    found = identify(dataset, search)
    assert_same(by_vertex(found), expected(dataset, search))
    assert [found.base(i) for i in range(found.n)] == list(known.resolve(dataset.names, 2).required)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arity", [2, 3])
def test_many_rows(name, arity):
    """Counts beyond the tables (1024) and the histogram (4096), with and without merged rows."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, arity, (5, 20_000)).astype(np.uint8)
    codes[1] = np.where(rng.random(20_000) < 0.02, codes[1], codes[0])
    codes[3] = np.where(rng.random(20_000) < 0.02, codes[3], (codes[0] + codes[2]) % arity)
    dataset = Dataset(tuple("abcde"), (tuple("012"[:arity]),) * 5, codes)
    search = CandidateSearch(3, Score(name))
    for i, family in enumerate(by_vertex(identify(dataset, search))):
        for parents, score in family.items():
            assert score == pytest.approx(local_score(dataset, i, parents, search.score), rel=1e-12)
    assert_same(
        by_vertex(identify(dataset, CandidateSearch(2, Score(name)))),
        expected(dataset, CandidateSearch(2, Score(name))),
    )


# cell counts about TABLE_WIDTH and the width of the histogram
EDGES = (1023, 1024, 1025, 4095, 4096, 4097)


def weighted_rows(distinct, more, weights):
    """Rows as often as the weights say: no two agree in the variables of the arities `distinct`."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(list(product(*map(range, distinct))))[: len(weights)]
    rows = np.hstack([rows, *(rng.integers(0, r, (len(weights), 1)) for r in more)])
    states = tuple(tuple(map(str, range(r))) for r in (*distinct, *more))
    return Dataset(tuple("abcd"), states, np.repeat(rows, weights, axis=0).T.astype(np.uint8))


def edge_data():
    """Cells of 1023 to 1025 and of 4095 to 4097 rows, each count more than once; two sets have more than 64 cells."""
    binary = weighted_rows((2, 2, 2), (2,), [*EDGES, 1, 1024])
    return binary, weighted_rows((9, 9), (3, 2), [*EDGES, *EDGES[:5], *range(1, 60)])


@pytest.mark.parametrize(
    ("name", "ess"),
    [
        *product(["bdeu", "bds"], [0.01, 1.0, 100.0, 1e9]),
        ("k2", 1.0),
        ("bic", 1.0),
        ("loglik", 1.0),
    ],
)
def test_counts_at_the_edges_of_the_tables(name, ess):
    for dataset in edge_data():
        search = CandidateSearch(2, Score(name, ess))
        assert_same(by_vertex(identify(dataset, search)), expected(dataset, search))


INTERPRETED = """
from test_candidates import CandidateSearch, Score, edge_data, identify
for name in ("bdeu", "bic"):
    found = identify(edge_data()[1], CandidateSearch(2, Score(name)))
    print([list(found.of(i)) for i in range(found.n)])
"""


def test_kernels_stay_inside_their_arrays():
    """Compiled code reads and writes past the end of an array unnoticed; the same code in Python does not."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for name, line in zip(("bdeu", "bic"), done.stdout.splitlines(), strict=True):
        found = identify(edge_data()[1], CandidateSearch(2, Score(name)))
        assert_same([dict(family) for family in literal_eval(line)], by_vertex(found))


def test_large_arities_and_few_rows():
    rng = np.random.default_rng(2)
    codes = np.array([rng.integers(0, r, 300) for r in (70, 40, 3, 300, 2)], dtype=np.uint16)
    states = tuple(tuple(map(str, range(r))) for r in (70, 40, 3, 300, 2))
    dataset = Dataset(tuple("abcde"), states, codes)
    for name in NAMES:
        search = CandidateSearch(3, Score(name))
        assert_same(by_vertex(identify(dataset, search)), expected(dataset, search))


def test_equal_columns_tie_and_make_no_candidates():
    """A set that only equals a subset is no candidate: constants and copies add nothing."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, 3, 500).astype(np.uint8)
    codes = np.array(
        [first, (first + 1) % 3, np.zeros(500), rng.integers(0, 3, 500)], dtype=np.uint8
    )
    dataset = Dataset(tuple("abcd"), (("x", "y", "z"),) * 4, codes)
    for name in ("bds", "loglik"):
        found = by_vertex(identify(dataset, CandidateSearch(3, Score(name))))
        assert [w for w in found[0] if 1 in w] == [(1,)]
        assert set(found[2]) == {()}
        assert not any(2 in w for family in found for w in family)


def test_threads_do_not_matter():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 3, (14, 200)).astype(np.uint8)
    dataset = Dataset(tuple(map(str, range(14))), (("x", "y", "z"),) * 14, codes)
    one, two = (
        identify(dataset, CandidateSearch(3, Score("loglik")), workers=Workers(t)) for t in (1, 2)
    )
    assert all(np.array_equal(a, b) for a, b in zip(one.families, two.families, strict=True))
    assert np.array_equal(one.scores, two.scores)


def test_progress_ends_at_the_total():
    dataset = Dataset(tuple("abc"), (("x", "y"),) * 3, np.eye(3, 7, dtype=np.uint8))
    reports = []
    identify(dataset, CandidateSearch(2), on_progress=reports.append)
    assert reports[-1].done == reports[-1].total == 7
    assert [r.done for r in reports] == sorted(r.done for r in reports)


def test_no_superset_beats_the_bound_that_prunes():
    """Every Bayesian score of a superset is at most −(observed cells of the family) · log(arity of the child)."""
    rng = np.random.default_rng(8)
    for trial in range(40):
        arities = rng.integers(2, 4, 5).tolist()
        codes = [rng.integers(0, r, 30).tolist() for r in arities]
        codes[1] = [
            a % arities[1] if rng.random() < 0.9 else b
            for a, b in zip(codes[0], codes[1], strict=True)
        ]
        rows = list(zip(*codes, strict=True))
        name = ("bdeu", "bds", "k2")[trial % 3]
        ess = (0.5, 1.0, 20.0)[trial % 3]
        for size in range(3):
            for parents in combinations(range(1, 5), size):
                cells = len({tuple(row[p] for p in (0, *parents)) for row in rows})
                states = len({row[0] for row in rows}) if name == "bds" else arities[0]
                bound = -cells * np.log(states)
                for more in range(size, 5):
                    for superset in combinations(range(1, 5), more):
                        if set(parents) <= set(superset):
                            assert (
                                scores.local_score(rows, arities, 0, superset, name, ess)
                                <= bound + 1e-9
                            )


@pytest.mark.parametrize("name", ["bic", "aic"])
@pytest.mark.parametrize("states", [2, 3])
def test_parents_that_help_only_together_are_found(name, states):
    """c = a + b: neither parent alone is worth its price, both are, and the bound on the supersets is close."""
    together = 0
    for rows in range(states, 40):
        a, b = np.arange(rows) % states, np.arange(rows) // states % states
        codes = np.array([a, b, (a + b) % states], dtype=np.uint8)
        dataset = Dataset(tuple("abc"), (tuple("xyz"[:states]),) * 3, codes)
        search = CandidateSearch(2, Score(name))
        found = by_vertex(identify(dataset, search))
        assert_same(found, expected(dataset, search))
        together += set(found[2]) == {(), (0, 1)}
    assert together > 3


def test_a_negative_number_of_parents():
    dataset = Dataset(tuple("abc"), (("x", "y"),) * 3, np.zeros((3, 4), np.uint8))
    with pytest.raises(SettingError, match="allowed are 0 and more"):
        identify(dataset, CandidateSearch(-1))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_more_parents_than_variables_change_nothing(n):
    rows = np.array([[0, 0, 1, 1] * 9, [0, 1, 0, 1] * 9, [0, 1, 1, 0] * 9], np.uint8)[:n]
    dataset = Dataset(tuple("abc"[:n]), (("x", "y"),) * n, rows)
    most, more = identify(dataset, CandidateSearch(n - 1)), identify(dataset, CandidateSearch(100))
    assert by_vertex(more) == by_vertex(most) and more.stamp == most.stamp
    assert more.stamp.max_parents == n - 1


def test_no_rows():
    with pytest.raises(DataError, match="no rows"):
        identify(
            Dataset(tuple("ab"), (("x", "y"),) * 2, np.zeros((2, 0), np.uint8)), CandidateSearch(1)
        )
