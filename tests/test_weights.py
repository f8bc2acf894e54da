"""A table with weights gives what the table with repeated rows gives."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import qubayes
from qubayes import (
    CandidateSearch,
    QubayesError,
    bootstrap,
    fit,
    identify,
    judge,
    learn,
    log_likelihood,
    read,
    score,
)
from qubayes.cli import app
from qubayes.data import write

NUMBER = 60  # rows


def make_table(*, numbers=False):
    """Return a table of five columns with a column of counts."""
    random = np.random.default_rng(3)
    if numbers:
        columns = random.standard_normal((5, NUMBER))
        columns[2] += columns[0] - columns[1]
        columns[4] += 0.5 * columns[2]
    else:
        columns = random.integers(0, 3, (5, NUMBER))
        columns[2] = np.where(random.random(NUMBER) < 0.8, columns[0], columns[2])
        columns[4] = (columns[2] + columns[1]) % 3
    table = pl.DataFrame({f"x{v}": column for v, column in enumerate(columns)})
    return table.with_columns(times=random.integers(0, 6, NUMBER))


@pytest.fixture(params=[False, True], ids=["states", "numbers"])
def tables(request):
    """The data with weights, and with repeated rows."""
    table = make_table(numbers=request.param)
    times = table["times"].to_numpy()
    plain = table.drop("times")
    repeated = plain[np.repeat(np.arange(NUMBER), times).tolist()]
    return read(table, weights="times"), read(repeated)


def test_read_takes_a_column_or_numbers(tables):
    weighted, repeated = tables
    assert weighted.names == repeated.names
    assert weighted.rows == repeated.rows > weighted.stored_rows
    assert np.array_equal(weighted.repeated().codes, repeated.codes)
    assert weighted.checksum != replace(weighted, weights=None).checksum
    table = make_table(numbers=bool(weighted.numbers))
    again = read(table.drop("times"), weights=table["times"].to_numpy())
    assert again.checksum == weighted.checksum


def test_same_candidate_sets(tables):
    weighted, repeated = tables
    for possible in (None, 3):
        if possible and weighted.numbers:
            continue
        search = CandidateSearch(2, possible_parents=possible)
        ours, theirs = identify(weighted, search), identify(repeated, search)
        every = np.arange(theirs.total)
        assert ours.parents_at(every) == theirs.parents_at(every)
        assert ours.scores == pytest.approx(theirs.scores, rel=1e-9)
        assert ours.stamp.rows == repeated.rows


@pytest.mark.parametrize("options", [{}, {"max_parents": 2}, {"score": "bic"}])
def test_same_network(tables, options):
    ours, theirs = (learn(data, time_limit=10, **options) for data in tables)
    assert ours.solution.score == pytest.approx(theirs.solution.score, rel=1e-9)
    assert ours.network.parents == theirs.network.parents
    for one, other in zip(ours.network.tables, theirs.network.tables, strict=True):
        if tables[0].numbers:
            assert one.deviation == pytest.approx(other.deviation)
            assert one.weights == pytest.approx(other.weights)
        else:
            assert one == pytest.approx(other)


def test_same_probabilities_and_scores(tables):
    weighted, repeated = tables
    graph = learn(repeated, max_parents=2).network
    ours, theirs = fit(graph, weighted), fit(graph, repeated)
    expected = log_likelihood(theirs, repeated)
    assert log_likelihood(ours, weighted) == pytest.approx(expected, rel=1e-9)
    found = score(ours, weighted, "bic")
    assert found.total == pytest.approx(score(theirs, repeated, "bic").total, rel=1e-9)
    assert (found.rows, found.log_likelihood) == (repeated.rows, pytest.approx(expected))


def test_same_judgement_and_bootstrap(tables):
    weighted, repeated = tables
    graph = learn(repeated, max_parents=1).network
    ours, theirs = (judge(data, graph, 2, holdout=0.3) for data in tables)
    assert ours.score == pytest.approx(theirs.score, rel=1e-9)
    assert ours.held_out == pytest.approx(theirs.held_out, rel=1e-9)
    search = CandidateSearch(1)
    seen = [bootstrap(data, search, 3, seed=1).frequencies for data in (weighted, repeated)]
    assert np.array_equal(*seen)


def test_rows_with_missing_values_are_dropped_with_their_weights():
    table = pl.DataFrame({"a": ["x", "y", None, "x"], "b": ["u", "v", "u", "v"], "n": [2, 3, 4, 0]})
    found = read(table, weights="n", missing="drop")
    assert (found.rows, found.dropped, found.weights.tolist()) == (5, 4, [2, 3])
    assert read(table, weights="n", missing="state").rows == 9
    kept = read(table, weights="n", missing="rows")  # rows with missing cells are repeated
    assert (kept.rows, kept.weights, int(kept.missing.mask.sum())) == (9, None, 4)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([1, 2, -3], "-3.0 in row 3; give whole numbers from 0"),
        ([1.5, 2, 3], "1.5 in row 1"),
        ([1, None, 3], "missing values"),
        (["a", "b", "c"], "no column of numbers"),
        ([0, 0, 0], "all weights are 0"),
        ([2**31, 1, 1], "divide"),
    ],
)
def test_weights_that_are_refused(cells, message):
    table = pl.DataFrame({"a": [0, 1, 0], "b": [1, 1, 0], "n": cells})
    with pytest.raises(QubayesError, match=message):
        read(table, weights="n")


def test_weights_of_another_shape_are_refused():
    table = pl.DataFrame({"a": [0, 1, 0], "b": [1, 1, 0]})
    with pytest.raises(QubayesError, match="2 weights and 3 rows"):
        read(table, weights=[1, 2])
    with pytest.raises(QubayesError, match="no column is named 'n'"):
        read(table, weights="n")
    for wrong in ([0.5, 1, 1], [-1, 1, 1], [[1], [1], [1]], ["a"], 3):
        with pytest.raises(QubayesError, match="how often"):
            read(table, weights=wrong)


def test_a_file_has_each_row_as_often_as_its_weight_says(tmp_path):
    weighted = read(make_table(), weights="times")
    write(weighted, tmp_path / "data.csv")
    assert read(tmp_path / "data.csv").rows == weighted.rows
    assert len(weighted.to_frame()) == weighted.rows


def run(*arguments):
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_weights_on_the_command_line(tmp_path):
    make_table().write_csv(tmp_path / "data.csv")
    network = tmp_path / "network.bif"
    found = run("learn", tmp_path / "data.csv", "--weights", "times", "-o", network)
    weighted = read(make_table(), weights="times")
    assert f"{weighted.rows} rows" in found
    found = run("score", tmp_path / "data.csv", network, "--weights", "times")
    assert f"{weighted.rows} rows" in found


def test_weights_of_the_estimator():
    table = make_table()
    plain, times = table.drop("times"), table["times"].to_numpy()
    estimator = qubayes.BayesianNetworkEstimator(max_parents=2).fit(plain, sample_weight=times)
    repeated = plain[np.repeat(np.arange(NUMBER), times).tolist()]
    other = qubayes.BayesianNetworkEstimator(max_parents=2).fit(repeated)
    assert estimator.score_ == pytest.approx(other.score_, rel=1e-9)
    assert estimator.score(plain, sample_weight=times) == pytest.approx(other.score(repeated))
