"""The scikit-learn estimator."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars
import pytest

from candidate_cases import dependent_data

pytest.importorskip("sklearn")

from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

import qubayes
from qubayes import DataError
from qubayes.candidates import Knowledge
from qubayes.data import ReadSettings
from qubayes.foundation.workers import Workers
from qubayes.learning import learn

BayesianNetworkEstimator = qubayes.BayesianNetworkEstimator
DATA = dependent_data(5, 200, seed=1)
TABLE = np.ascontiguousarray(DATA.codes.T.astype(np.int64))


def test_possible_parents_are_passed_on():
    table = np.random.default_rng(0).integers(0, 2, (60, 5))
    estimator = BayesianNetworkEstimator(max_parents=2, possible_parents=2).fit(table)
    assert estimator.result_.candidates.stamp.possible_parents == 2


def test_learns_what_learn_learns():
    estimator = BayesianNetworkEstimator(2).fit(TABLE)
    assert estimator.score_ == pytest.approx(learn(DATA, 2).solution.score)
    assert estimator.gap_ == 0.0
    assert estimator.n_features_in_ == 5 and estimator.feature_names_in_.tolist() == [
        "x0",
        "x1",
        "x2",
        "x3",
        "x4",
    ]


def test_takes_data_frames():
    table = polars.DataFrame({name: TABLE[:, i] for i, name in enumerate("abcde")})
    assert BayesianNetworkEstimator(2).fit(table).network_.names == tuple("abcde")


def test_parameters_can_be_asked_set_and_cloned():
    estimator = BayesianNetworkEstimator(2, ess=3.0)
    assert estimator.get_params()["ess"] == 3.0
    copy = clone(estimator).set_params(max_parents=1)
    assert copy.max_parents == 1 and copy.ess == 3.0 and estimator.max_parents == 2


def test_works_in_a_pipeline_and_a_grid_search():
    values = np.random.default_rng(0).normal(size=(120, 3)).cumsum(axis=1)
    # quantiles ask for an argument since 1.7
    bins = KBinsDiscretizer(3, encode="ordinal", strategy="uniform")
    pipeline = make_pipeline(bins, BayesianNetworkEstimator(1))
    assert pipeline.fit(values)[-1].network_.n == 3
    assert np.isfinite(pipeline.score(values))
    grid = GridSearchCV(BayesianNetworkEstimator(), {"max_parents": [0, 1]}, cv=2).fit(TABLE)
    assert grid.best_params_["max_parents"] == 1


def test_samples_are_rows_of_the_network():
    drawn = BayesianNetworkEstimator(1).fit(TABLE).sample(7, seed=1)
    assert drawn.rows == 7 and drawn.names == ("x0", "x1", "x2", "x3", "x4")


def test_unfitted_and_wrong_input():
    with pytest.raises(NotFittedError):
        BayesianNetworkEstimator().score(TABLE)
    with pytest.raises(DataError, match=r"NaN or infinities; .*missing='impute'.*missing='drop'"):
        BayesianNetworkEstimator().fit(TABLE + np.nan)
    with pytest.raises(DataError, match="shape"):
        BayesianNetworkEstimator().fit(TABLE[0])
    with pytest.raises(DataError, match=r"sparse matrix.*toarray"):
        BayesianNetworkEstimator().fit(csr_array(TABLE))
    for rows in ([[1, 2], [3]], [np.zeros(2), np.zeros(3)], [1, 2], [], [[[1], [2]]], ["ab", "cd"]):
        with pytest.raises(DataError, match="rows of equal length"):
            BayesianNetworkEstimator().fit(rows)
    with pytest.raises(ValueError, match="cannot be used to seed"):
        BayesianNetworkEstimator(random_state="x").fit(TABLE)


def seed_of(random_state):
    return BayesianNetworkEstimator(0, random_state=random_state).fit(TABLE).result_.settings.seed


def test_a_random_state_is_a_seed_or_draws_one():
    assert seed_of(7) == seed_of(np.int64(7)) == 7
    for source in (np.random.RandomState, np.random.default_rng):
        state = source(1)
        first, second = seed_of(state), seed_of(state)
        assert first != second
        assert first == seed_of(source(1))
    assert seed_of(None) != seed_of(None)


def test_settings_reach_learn():
    known = Knowledge(required=[("x4", "x0")])
    given = {
        "knowledge": known,
        "time_limit": None,
        "moves": 500,
        "solver": "anneal",
        "workers": Workers(1),
    }
    estimator = pickle.loads(pickle.dumps(clone(BayesianNetworkEstimator(1, **given)))).fit(TABLE)
    assert estimator.network_.parent_names()["x0"] == ("x4",)
    settings = estimator.result_.settings
    assert settings.knowledge == known and settings.solver == "anneal"
    assert (settings.limits.seconds, settings.limits.moves) == (None, 500)


RARE = np.array([["a", "b"][i % 2] for i in range(29)] + ["c"], dtype=object)
WITH_RARE = np.column_stack([RARE, np.arange(30) % 3])


def test_a_declared_state_may_be_absent_from_a_fold():
    told = ReadSettings(arities={"x0": ["a", "b", "c"]})
    scores = cross_val_score(BayesianNetworkEstimator(1, reading=told), WITH_RARE, cv=KFold(3))
    assert np.isfinite(scores).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(
            cross_val_score(BayesianNetworkEstimator(1), WITH_RARE, cv=KFold(3))
        ).tolist() == [0, 0, 1]
    frame = pd.DataFrame({"rare": pd.Categorical(RARE), "number": np.arange(30) % 3})
    assert (
        cross_val_score(BayesianNetworkEstimator(1), frame, cv=KFold(3)).tolist() == scores.tolist()
    )


def test_a_state_that_fit_has_not_seen():
    estimator = BayesianNetworkEstimator(1).fit(WITH_RARE[:20])
    with pytest.raises(
        DataError,
        match=r"'x0' holds 'c', which fit has not seen; .*arities=\{'x0': \['c', \.\.\.\]\}",
    ):
        estimator.score(WITH_RARE)
    full, holes = WITH_RARE[:20], WITH_RARE[:20].copy()
    holes[3, 1] = None
    estimator = BayesianNetworkEstimator(1, reading=ReadSettings(missing="state"))
    assert np.isfinite(estimator.fit(holes).score(full))
    with pytest.raises(
        DataError, match=r"'x1' holds 'missing', which fit has not seen; drop such rows"
    ):
        estimator.fit(full).score(holes)


def test_rows_with_missing_values_are_dropped():
    holes = TABLE.astype(float)
    holes[::7, 2] = np.nan
    estimator = BayesianNetworkEstimator(1, reading=ReadSettings(missing="drop")).fit(holes)
    assert estimator.result_.dataset.rows == 200 - 29
    whole = np.delete(TABLE, np.s_[::7], axis=0)
    assert estimator.score(holes) == BayesianNetworkEstimator(1).fit(whole).score(whole)


@pytest.mark.parametrize("missing", ["drop", "state"])
@pytest.mark.parametrize("bins", [3, {"x0": 3, "x1": 2}])
def test_new_rows_go_into_the_intervals_of_fit(bins, missing):
    values = np.random.default_rng(0).normal(size=(120, 3)).cumsum(axis=1)
    values[:, 2] = values[:, 2] > 0
    values[5, 1] = np.nan
    estimator = BayesianNetworkEstimator(2, reading=ReadSettings(bins=bins, missing=missing)).fit(
        values
    )
    rows = [estimator.score(values[i : i + 1]) for i in range(120) if i != 5 or missing == "state"]
    assert np.mean(rows) == pytest.approx(estimator.score(values))
    texts = np.array([["NA" if np.isnan(x) else repr(float(x)) for x in row] for row in values])
    for table in (
        texts,
        values.tolist(),
        pd.DataFrame(values, columns=["x0", "x1", "x2"], index=range(120, 0, -1)),
    ):
        assert estimator.score(table) == estimator.score(values)
    assert np.isfinite(estimator.score(values * [100, -100, 1]))
    assert np.isfinite(cross_val_score(estimator, np.delete(values, 5, axis=0), cv=4)).all()


def test_a_file_of_new_rows_goes_into_the_intervals_of_fit(tmp_path):
    values = np.random.default_rng(1).normal(size=(60, 3)).cumsum(axis=1)
    frame = pd.DataFrame(values, columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "new.csv", index=False)
    estimator = BayesianNetworkEstimator(1, reading=ReadSettings(bins=3)).fit(frame[:40])
    assert estimator.score(tmp_path / "new.csv") == estimator.score(frame)


def test_intervals_win_over_what_is_declared_elsewhere(tmp_path):
    frame = pd.DataFrame({"a": np.linspace(0, 1, 40), "b": ["x", "y"] * 20})
    (tmp_path / "s.json").write_text('{"b": ["x", "y", "z"]}')
    for bins, arities in (
        (3, str(tmp_path / "s.json")),
        ({"a": 3}, {"a": 5, "b": ["x", "y", "z"]}),
    ):
        estimator = BayesianNetworkEstimator(
            1, reading=ReadSettings(bins=bins, arities=arities)
        ).fit(frame[:30])
        assert [len(states) for states in estimator.network_.states] == [3, 3]
        rows = [estimator.score(frame[i : i + 1]) for i in range(40)]
        assert np.mean(rows) == pytest.approx(estimator.score(frame))


def test_intervals_leave_other_columns_alone():
    frame = pd.DataFrame(
        {
            "size": pd.Categorical(["<5", ">=5", "<5", ">=5"], ["<5", ">=5"]),
            "mark": pd.Categorical(["x", "y", "y", "x"], ["y", "x", "z"]),
            "many": [1.5, 2.5, 3.5, 4.5],
            "few": [2, 1, 1, 2],
        }
    )
    estimator = BayesianNetworkEstimator(0, reading=ReadSettings(bins=2)).fit(frame)
    assert estimator.network_.states == (
        ("<5", ">=5"),
        ("y", "x", "z"),
        ("<3.5", ">=3.5"),
        ("1", "2"),
    )
    assert estimator.score(frame) == pytest.approx(
        np.mean([estimator.score(frame[i : i + 1]) for i in range(4)])
    )


def test_lists_of_rows_and_arrays_of_objects():
    frame = pd.DataFrame(
        {"x0": ["a", "b", "a"] * 9, "x1": [True, False, True] * 9, "x2": [10, 9, 9] * 9}
    )
    expected = BayesianNetworkEstimator(1).fit(frame)
    rows = frame.to_numpy().tolist()
    for table in (frame.to_numpy(), rows, tuple(map(tuple, rows)), list(frame.to_numpy())):
        estimator = BayesianNetworkEstimator(1).fit(table)
        assert estimator.network_.states == (("a", "b"), ("false", "true"), ("9", "10"))
        assert estimator.result_.dataset.checksum == expected.result_.dataset.checksum
        assert expected.score(table) == expected.score(frame)
    assert (
        BayesianNetworkEstimator(2).fit(TABLE.tolist()).score_
        == BayesianNetworkEstimator(2).fit(TABLE).score_
    )


EXPECTED = {
    "check_dtype_object": "columns may hold any values; a mixture is a DataError, not a TypeError",
}


def test_it_passes_the_checks_of_scikit_learn():
    from sklearn.utils.estimator_checks import check_estimator

    estimator = BayesianNetworkEstimator(1, moves=100, time_limit=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that are skipped
        results = check_estimator(estimator, on_fail=None, expected_failed_checks=EXPECTED)
    wrong = [
        (each["check_name"], each["exception"]) for each in results if each["status"] == "failed"
    ]
    assert not wrong
    assert len(results) > 40


def curve(rows=400, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=rows)
    return pd.DataFrame(
        {"x": x, "y": 2.0 * x + 0.3 * random.normal(size=rows), "z": random.normal(size=rows)}
    )


def test_the_score_does_not_reward_coarse_bins():
    table = curve()
    given = {"max_parents": 1, "moves": 100, "time_limit": None}
    grid = GridSearchCV(BayesianNetworkEstimator(**given), {"bins": [2, 4, 8, None]}, cv=3)
    scores = grid.fit(table).cv_results_["mean_test_score"]
    assert scores[0] < scores[1] < scores[2] < scores[3]  # the table is linear Gaussian
    plain = cross_val_score(BayesianNetworkEstimator(**given), table, cv=3)
    assert plain.mean() == pytest.approx(scores[3])


def test_densities_of_intervals_are_densities():
    estimator = BayesianNetworkEstimator(0, bins=3).fit(curve(60))
    [density, *_] = estimator._densities.values()
    numbers = np.linspace(-60, 60, 400_001)
    inside = np.exp(density.logarithms(numbers))
    step = numbers[1] - numbers[0]
    assert inside.sum() * step == pytest.approx(3.0, abs=1e-3)  # 1 in each interval


def test_it_predicts_a_column_from_the_others():
    table = curve()
    estimator = BayesianNetworkEstimator(1, target="y", moves=100, time_limit=None)
    found = estimator.fit(table).predict(table.drop(columns="y"))
    assert np.abs(found - table["y"]).mean() < 0.3
    binned = clone(estimator).set_params(bins=3).fit(table)
    assert binned.predict_proba(table).shape == (400, 3)
    array = clone(estimator).set_params(target="x1").fit(table.to_numpy())
    others = table.drop(columns="y").to_numpy()
    assert np.allclose(array.predict(others), found)
    assert np.allclose(array.predict(table.to_numpy()), found)
    assert not hasattr(BayesianNetworkEstimator(), "predict")


def test_missing_values_are_dropped_if_asked():
    table = curve(100).to_numpy(copy=True)
    table[3, 1] = np.nan
    with pytest.raises(DataError, match="missing='drop'"):
        BayesianNetworkEstimator(1).fit(table)
    assert BayesianNetworkEstimator(1, missing="drop").fit(table).result_.dataset.rows == 99
    with pytest.raises(qubayes.SettingError, match="give one"):
        BayesianNetworkEstimator(missing="drop", reading=ReadSettings(bins=3)).fit(table)
