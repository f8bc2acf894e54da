"""The scikit-learn estimator."""

import numpy as np
import polars
import pytest

from candidate_cases import dependent_data

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from qubayes.errors import DataError
from qubayes.estimator import BayesianNetworkEstimator
from qubayes.learning import learn

DATA = dependent_data(5, 200, seed=1)
TABLE = np.ascontiguousarray(DATA.codes.T.astype(np.int64))


def test_learns_what_learn_learns():
    estimator = BayesianNetworkEstimator(2).fit(TABLE)
    assert estimator.score_ == pytest.approx(learn(DATA, 2).solution.score)
    assert estimator.gap_ == 0.0
    assert estimator.n_features_in_ == 5 and estimator.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3", "x4"]


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
    bins = KBinsDiscretizer(3, encode="ordinal", strategy="uniform")  # quantiles ask for an argument since 1.7
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
    with pytest.raises(DataError, match="bin it first"):
        BayesianNetworkEstimator().fit(TABLE + 0.5)
    with pytest.raises(DataError, match="shape"):
        BayesianNetworkEstimator().fit(TABLE[0])
