"""The engine of discrete columns on large tables, and shared by threads (see also test_engines.py)."""

from dataclasses import replace

import numpy as np
import pytest

from qubayes.data import Dataset
from qubayes.scores import NAMES, LimitedTables, Score


def padded(sets):
    rows = np.full((len(sets), max(map(len, sets))), -1, np.int32)
    for row, members in zip(rows, sets, strict=True):
        row[: len(members)] = members
    return rows


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
        (3, 70_000, 2),  # equal rows are merged
        (5, 70_000, 16),  # counts that have no table
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("n", "rows", "states", "heaviest"),
    [
        (14, 200, 2, 3),  # sets of twelve parents
        (4, 300, 2, 1_000),  # cells of more than 65,535 rows
        (4, 500, 64, 9),
        (210, 60, 3, 4),  # more variables than pairs are counted as bits for
    ],
)
def test_extensions_of_weighted_rows(name, n, rows, states, heaviest):
    weights = np.random.default_rng(1).integers(1, heaviest + 1, rows)
    dataset = replace(drawn(n, rows, states), weights=weights)
    engine = Score(name).engine(dataset)
    repeated = Score(name).engine(dataset.repeated())
    assert engine.rows == repeated.rows == weights.sum()
    child = n - 1
    sets = [[], [0], list(range(min(12, n - 2)))]
    found = engine.extensions(child, padded(sets), None)
    for row, members in zip(found, sets, strict=True):
        assert row[-1] == pytest.approx(repeated.local(child, members), rel=1e-9)
        for other in {0, 1, n // 2, n - 2}:
            larger = list(dict.fromkeys([*members, other]))
            assert row[other] == pytest.approx(repeated.local(child, larger), rel=1e-9)
            assert engine.local(child, larger) == pytest.approx(row[other], rel=1e-9)
    pairs = engine.pairs(np.array([0, child]))
    assert pairs == pytest.approx(repeated.pairs(np.array([0, child])), rel=1e-9)


def test_equal_rows_of_a_long_table_are_merged():
    few = drawn(5, 20_000, 2)
    assert Score("bdeu").engine(few).stored_rows == len(np.unique(few.codes, axis=1).T)
    many = drawn(40, 20_000, 2)
    assert Score("bdeu").engine(many).stored_rows == 20_000


@pytest.mark.parametrize("name", NAMES)
def test_pairs_of_many_variables(name):
    dataset = drawn(230, 70, 3)
    engine = Score(name).engine(dataset)
    found = engine.pairs(np.array([0, 229]))
    for row, child in zip(found, (0, 229), strict=True):
        for parent in range(0, 230, 7):
            members = [] if parent == child else [parent]
            assert row[parent] == pytest.approx(engine.local(child, members), rel=1e-9)
        assert row[child] == pytest.approx(engine.local(child, []), rel=1e-9)


def test_no_set_grows_beyond_the_largest_table():
    dataset = drawn(6, 80, 3)
    sets = padded([[], [0], [0, 1], [0, 1, 2]])
    plain = Score("bdeu").engine(dataset).extensions(5, sets, None)
    limited = LimitedTables(Score("bdeu").engine(dataset), dataset.arities, 100)
    found = limited.extensions(5, sets, None)
    kept = np.isfinite(found)
    assert kept.sum(axis=1).tolist() == [6, 6, 6, 4]
    assert np.flatnonzero(kept[3]).tolist() == [0, 1, 2, 6]
    assert np.array_equal(found[kept], plain[kept])


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
