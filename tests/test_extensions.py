"""Scores of one-parent extensions and of pairs against the definition of a local score."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes.data import Dataset
from qubayes.scores import NAMES, Score
from reference import scores as reference
from strategies import datasets


def defined(dataset, score, child, parents):
    rows = [tuple(row) for row in dataset.codes.T.tolist()]
    arities = dataset.arities.tolist()
    return reference.local_score(rows, arities, child, parents, score.name, score.ess)


def padded(sets):
    rows = np.full((len(sets), max(map(len, sets))), -1, np.int32)
    for row, members in zip(rows, sets, strict=True):
        row[: len(members)] = members
    return rows


@given(datasets(max_rows=40), st.sampled_from(NAMES), st.floats(0.1, 50), st.data())
def test_extensions_are_local_scores(dataset, name, ess, data):
    score = Score(name, ess)
    child = data.draw(st.integers(0, dataset.n - 1))
    possible = [v for v in range(dataset.n) if v != child]
    sets = data.draw(st.lists(st.lists(st.sampled_from(possible), unique=True), min_size=1))
    others = data.draw(st.lists(st.sampled_from(range(dataset.n)), unique=True))
    found = score.engine(dataset).extensions(child, padded(sets), np.array(others, np.int64))
    assert found.shape == (len(sets), len(others) + 1)
    for row, members in zip(found, sets, strict=True):
        alone = defined(dataset, score, child, members)
        assert row[-1] == pytest.approx(alone, rel=1e-9, abs=1e-8)
        for other, value in zip(others, row, strict=False):
            if other == child:
                assert value == -np.inf
            else:
                larger = dict.fromkeys([*members, other])
                expected = defined(dataset, score, child, list(larger))
                assert value == pytest.approx(expected, rel=1e-9, abs=1e-8)


@given(datasets(max_rows=40), st.sampled_from(NAMES), st.floats(0.1, 50))
def test_pairs_are_local_scores(dataset, name, ess):
    score = Score(name, ess)
    found = score.engine(dataset).pairs(np.arange(dataset.n))
    for child in range(dataset.n):
        for parent in range(dataset.n):
            members = [] if parent == child else [parent]
            expected = defined(dataset, score, child, members)
            assert found[child, parent] == pytest.approx(expected, rel=1e-9, abs=1e-8)


def drawn(n, rows, states, seed=0):
    random = np.random.default_rng(seed)
    codes = random.integers(0, states, (n, rows))
    codes[1] = np.where(random.random(rows) < 0.9, codes[0], codes[1])
    names = tuple(f"x{v}" for v in range(n))
    return Dataset(names, (tuple(map(str, range(states))),) * n, codes.astype(np.uint8))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("n", "rows", "states"),
    [
        (4, 300, 2),  # cells of more than 255 rows
        (3, 70_000, 2),  # counts that have no table
        (4, 500, 64),
        (14, 200, 2),  # sets of twelve parents
        (400, 50, 3),  # more variables than are scored in one block
    ],
)
def test_extensions_of_large_tables(name, n, rows, states):
    dataset = drawn(n, rows, states)
    engine = Score(name).engine(dataset)
    child = n - 1
    sets = [[], [0], list(range(min(12, n - 2)))]
    found = engine.extensions(child, padded(sets), None)
    for row, members in zip(found, sets, strict=True):
        assert row[-1] == pytest.approx(engine.local(child, members), rel=1e-9)
        for other in {0, 1, n // 2, n - 2}:
            larger = list(dict.fromkeys([*members, other]))
            assert row[other] == pytest.approx(engine.local(child, larger), rel=1e-9)


def test_an_engine_is_sent_to_another_process():
    engine = Score("bds").engine(drawn(5, 50, 3))
    again = pickle.loads(pickle.dumps(engine))
    assert np.array_equal(again.pairs(np.arange(5)), engine.pairs(np.arange(5)))


def test_threads_share_an_engine():
    from concurrent.futures import ThreadPoolExecutor

    dataset = drawn(12, 400, 3)
    engine = Score("bdeu").engine(dataset)
    sets = padded([[], [3], [3, 4]])

    def scan(child):
        return engine.extensions(child, sets[:2] if child in (3, 4) else sets, None)

    alone = [scan(child) for child in range(12)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(scan, list(range(12)) * 5))
    for place, found in enumerate(together):
        assert np.array_equal(found, alone[place % 12])
