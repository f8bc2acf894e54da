"""Every engine of `ENGINES` gives the scores that the definitions give."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import Knowledge, Workers
from qubayes.candidates import Stamp
from qubayes.network import fit
from qubayes.scores import ENGINES, Score, local_score
from qubayes.search import Growth
from reference.scores import defined
from strategies import datasets, mixed_tables, tables_of_numbers

# random tables of each kind of columns
TABLES = {
    "discrete": datasets(max_rows=40),
    "continuous": tables_of_numbers(),
    "mixed": mixed_tables(),
}
PAIRS = [(entry.kind, name) for entry in ENGINES for name in entry.names]
EXACT = {"rel": 1e-9, "abs": 1e-8}
every_score = pytest.mark.parametrize(("kind", "name"), PAIRS, ids=" ".join)


def padded(sets):
    rows = np.full((len(sets), max(map(len, sets))), -1, np.int32)
    for row, members in zip(rows, sets, strict=True):
        row[: len(members)] = members
    return rows


@every_score
@given(st.data(), st.floats(0.1, 50))
def test_extensions_are_local_scores(kind, name, data, ess):
    dataset = data.draw(TABLES[kind])
    score = Score(name, 1.0 if name == "bge" else ess)
    child = data.draw(st.integers(0, dataset.n - 1))
    possible = [v for v in range(dataset.n) if v != child]
    sets = data.draw(st.lists(st.lists(st.sampled_from(possible), unique=True), min_size=1))
    others = data.draw(st.none() | st.lists(st.sampled_from(range(dataset.n)), unique=True))
    numbers = None if others is None else np.array(others, np.int64)
    found = score.engine(dataset).extensions(child, padded(sets), numbers)
    others = range(dataset.n) if others is None else others
    assert found.shape == (len(sets), len(others) + 1)
    for row, members in zip(found, sets, strict=True):
        alone = defined(dataset, child, members, name, ess)
        assert row[-1] == pytest.approx(alone, **EXACT)
        assert local_score(dataset, child, members, score) == pytest.approx(alone, **EXACT)
        for other, value in zip(others, row, strict=False):
            if other == child:
                assert value == -np.inf
            else:
                larger = list(dict.fromkeys([*members, other]))
                assert value == pytest.approx(defined(dataset, child, larger, name, ess), **EXACT)


@every_score
@given(st.data(), st.floats(0.1, 50))
def test_pairs_are_local_scores(kind, name, data, ess):
    dataset = data.draw(TABLES[kind])
    engine = Score(name, 1.0 if name == "bge" else ess).engine(dataset)
    assert (engine.n, engine.rows) == (dataset.n, dataset.rows)
    found = engine.pairs(np.arange(dataset.n))
    for child in range(dataset.n):
        for parent in range(dataset.n):
            members = [] if parent == child else [parent]
            expected = defined(dataset, child, members, name, ess)
            assert found[child, parent] == pytest.approx(expected, **EXACT)
            assert engine.local(child, members) == pytest.approx(expected, **EXACT)


@every_score
@given(st.data())
def test_an_engine_is_sent_to_another_process(kind, name, data):
    dataset = data.draw(TABLES[kind])
    engine = Score(name).engine(dataset)
    again = pickle.loads(pickle.dumps(engine))
    children = np.arange(dataset.n)
    assert np.array_equal(again.pairs(children), engine.pairs(children))


@every_score
@given(st.data())
def test_parent_sets_grow_by_the_scores_of_any_engine(kind, name, data):
    dataset = data.draw(TABLES[kind])
    allowed = Knowledge().resolve(dataset.names, min(2, dataset.n - 1))
    engine = Score(name).engine(dataset)
    growth = Growth(engine, dataset.names, allowed, Stamp(name), width=1, workers=Workers(1))
    growth.run()
    parts = [engine.local(child, its) for child, its in enumerate(growth.network.parents)]
    assert growth.score == pytest.approx(sum(parts), **EXACT)
    fitted = fit(growth.network, dataset, Score(name))
    assert fitted.parents == growth.network.parents
