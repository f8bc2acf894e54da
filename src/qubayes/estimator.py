"""A scikit-learn estimator around `learn` (extra: `pip install 'qubayes[sklearn]'`)."""

from typing import Any, Self

import numpy as np

from .data import Dataset, ReadSettings, read
from .errors import DataError, MissingPackageError
from .learning import Learned, learn
from .network import Network, log_likelihood, sample

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingPackageError("the estimator needs scikit-learn; run: pip install 'qubayes[sklearn]'") from None


class BayesianNetworkEstimator(BaseEstimator):  # type: ignore[misc]
    """The best network for a table of discrete values.

    `fit` takes a data frame, or an array whose columns are then named x0, x1, ... Afterwards `network_` is the network
    with its parameters, `score_` its score, `gap_` how far from optimal it can be at most (0 if proved) and `result_`
    everything else; `score(X)` is the mean log-likelihood of rows.

    >>> from sklearn.base import clone
    >>> table = np.array([[0, 0], [1, 1], [0, 0], [1, 1]] * 10)
    >>> estimator = clone(BayesianNetworkEstimator(max_parents=1)).fit(table)
    >>> estimator.network_.edges, estimator.gap_
    (1, 0.0)
    """

    network_: Network
    result_: Learned

    def __init__(
        self,
        max_parents: int = 3,
        *,
        score_name: str = "bdeu",
        ess: float = 1.0,
        solver: str = "auto",
        time_limit: float = 10.0,
        bootstrap: int = 0,
        random_state: int = 0,
    ) -> None:
        self.max_parents = max_parents
        self.score_name = score_name
        self.ess = ess
        self.solver = solver
        self.time_limit = time_limit
        self.bootstrap = bootstrap
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the rows of X; y is not used."""
        dataset = _dataset(X)
        self.result_ = learn(
            dataset,
            self.max_parents,
            score=self.score_name,
            ess=self.ess,
            solver=self.solver,
            time_limit=self.time_limit,
            bootstrap=self.bootstrap,
            seed=self.random_state,
        )
        self.network_ = self.result_.network
        self.score_, self.gap_ = self.result_.solution.score, self.result_.solution.gap
        self.n_features_in_, self.feature_names_in_ = dataset.n, np.array(dataset.names, dtype=object)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of the rows of X."""
        check_is_fitted(self, "network_")
        dataset = _dataset(X)
        return log_likelihood(self.network_, dataset) / max(1, dataset.rows)

    def sample(self, rows: int, seed: int = 0) -> Dataset:
        """Rows drawn from the network."""
        check_is_fitted(self, "network_")
        return sample(self.network_, rows, seed)


def _dataset(X: Any) -> Dataset:
    """The rows as a Dataset; whole numbers that came as floats, as transformers give them, are states."""
    if not isinstance(X, np.ndarray):
        return read(X, ReadSettings())
    if X.ndim != 2:
        raise DataError(f"an array of shape {X.shape}; give rows and columns")
    if X.dtype.kind == "f":
        if not (np.isfinite(X).all() and (np.round(X) == X).all()):
            raise DataError("an array with fractions or missing values; bin it first, as with KBinsDiscretizer")
        X = X.astype(np.int64)
    import polars

    return read(polars.DataFrame({f"x{column}": X[:, column] for column in range(X.shape[1])}))
