"""A scikit-learn estimator around `learn` (in a clone: `pip install '.[sklearn]'`)."""

from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from os import PathLike
from typing import Any, Literal, Self, cast

import numpy as np
from scipy.sparse import issparse

from ..candidates import Knowledge
from ..data import Dataset, ReadSettings, make_frame, read
from ..data.dataset import MISSING_STATE
from ..data.intervals import Intervals
from ..foundation.arrays import AnyArray, Bools
from ..foundation.environment import how_to_install
from ..foundation.errors import DataError, MissingPackageError, SettingError
from ..foundation.workers import Workers
from ..network import Network, log_likelihood, sample_dataset
from ..settings import Bins, Missing, Prior
from . import Learned, LearnSettings, learn_with
from .densities import Density, density_of

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils import check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingPackageError(
        f"the estimator needs scikit-learn; {how_to_install('sklearn')}"
    ) from None

Randomness = int | np.random.RandomState | np.random.Generator | None


def _has_target(estimator: "BayesianNetworkEstimator") -> bool:
    """Return whether a column is to be predicted."""
    return estimator.target is not None


class BayesianNetworkEstimator(BaseEstimator):  # type: ignore[misc]
    """The best network for a table of discrete values, or of numbers.

    `fit` takes a data frame; or an array or a list of rows, whose columns are then named x0, x1,
    ... Afterwards `network_` is the network with its parameters, `score_` its score, `gap_` how far
    from optimal it can be at most (0 if proved) and `result_` everything else; `score(X)` is the
    mean log-likelihood of rows. Where numbers were cut into intervals it is the density of the
    numbers, so that numbers of intervals can be compared, also with none. With a `target`,
    `predict(X)` predicts this column from the others.

    Parameters
    ----------
    max_parents : int, "all" or None
        The largest number of parents of a variable; "all" for any number, where bounds on scores
        allow it. None: 3, or what fits the time limit.
    score_name : str
        The score to be maximised, such as "bdeu" or "bic"; "auto" is "bdeu" for discrete columns
        and "bge" for continuous ones. Without a prior, as in "bic", what `fit`
        has not seen has probability 0, and the log-likelihood of new rows may be -inf.
    ess : float
        The equivalent sample size of the prior of "bdeu" and "bds": more of it makes probabilities
        more equal.
    penalty : float
        "bic" and "aic" subtract this many times their penalty.
    knowledge : Knowledge or None
        Edges that must or may not be, tiers, and limits on the parents of single variables, by name
        of column.
    target : str or None
        The column that `predict` and `predict_proba` are about.
    bins : int, mapping or None
        Cut numbers into this many intervals, as `qubayes.read` does. Intervals are those of `fit`.
    missing : str
        What to do with missing values: "error", "drop" their rows, or another of `ReadSettings`.
    reading : ReadSettings or None
        All of how columns are read, in place of `bins` and `missing`. Declare the states
        (`arities`) where a rare one may be absent from a training fold.
    solver : str
        Which solver looks for the best network; "auto" proves what it can and anneals the rest.
    time_limit : float or None
        Seconds for candidate sets and solver together; the solver has a tenth of it in any case.
        `math.inf` for no limit. None: no limit for candidate sets; for the solver 10 seconds, or as
        long as its `moves` take.
    moves : int or None
        The most moves of the annealing. Without a time limit these and a seed give the same network
        on any machine.
    patience : float or None
        Annealing ends once it found nothing better for this many times as long as the best network
        took. None: 3 for "auto", no end for "anneal".
    bootstrap : int
        How many resamples to learn from for the confidence in each edge (`result_.confidence`); 0
        for none.
    posterior : float or None
        Seconds to sample networks, for the probability of each edge (`result_.posterior`).
    prior : {"uniform", "fair"}
        Prior over networks for these probabilities.
    impute_rounds : int
        With missing="impute" in `reading`, how often missing cells are drawn and the network is
        learned again.
    completions : int
        With missing="impute", the number of completed tables from which the support of each edge is
        estimated (`result_.completions`).
    possible_parents : int or None
        Consider only this number of parents of each variable, the best single ones and their best
        partners; for many variables. None: all.
    max_table : int
        Grow no parent set whose table of probabilities would have more cells.
    memory : float, str or None
        Memory that is used for parent sets, such as "4GB"; a number is in GB. None: three quarters
        of what is free.
    workers : Workers or None
        Threads, or the address of a Dask cluster; all cores if None. In a search that itself runs
        in parallel (`n_jobs`) give `Workers(threads=1)`.
    random_state : int, RandomState, Generator or None
        The seed, or what draws one in each `fit`; None draws from numpy's global state.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> table = np.array([[0, 0], [1, 1], [0, 0], [1, 1]] * 10)
    >>> estimator = clone(BayesianNetworkEstimator(max_parents=1)).fit(table)
    >>> len(estimator.network_.edges), estimator.gap_
    (1, 0.0)
    """

    network_: Network
    result_: Learned
    _densities: dict[str, Density]  # of columns that were cut into intervals

    def __init__(
        self,
        max_parents: int | Literal["all"] | None = None,
        *,
        score_name: str = "auto",
        ess: float = 1.0,
        penalty: float = 1.0,
        knowledge: Knowledge | None = None,
        target: str | None = None,
        bins: Bins | None = None,
        missing: Missing = "error",
        reading: ReadSettings | None = None,
        solver: str = "auto",
        time_limit: float | None = 10.0,
        moves: int | None = None,
        patience: float | None = None,
        bootstrap: int = 0,
        posterior: float | None = None,
        prior: Prior = "uniform",
        impute_rounds: int = 8,
        completions: int = 5,
        possible_parents: int | None = None,
        max_table: int = 10**6,
        memory: float | str | None = None,
        workers: Workers | None = None,
        random_state: Randomness = 0,
    ) -> None:
        given = locals()
        for name in self._get_param_names():
            setattr(self, name, given[name])

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the rows of X; y is not used. `sample_weight` says how often each row counts.

        These are whole numbers."""
        reading = self._reading
        table = _table(X, reading)
        if isinstance(table, np.ndarray) and table.ndim == 2:
            _check_size(table)
        dataset = read(table, _weighted(reading, sample_weight))
        given = self.get_params(deep=False)
        shared = {
            each.name: given[each.name] for each in fields(LearnSettings) if each.name in given
        }
        shared |= {
            "score": self.score_name,
            "seed": _seed(self.random_state),
            "reading": None,
        }  # X is read already
        self.result_, _ = learn_with(LearnSettings(**shared), dataset, workers=self.workers)
        self.network_ = self.result_.network
        self.score_, self.gap_ = self.result_.solution.score, self.result_.solution.gap
        self.n_features_in_ = dataset.n
        self.feature_names_in_ = np.array(dataset.names, dtype=object)
        cut = {}
        for name, states in zip(self.network_.names, self.network_.states or (), strict=True):
            if Intervals.of(states) and _has_numbers(table, name, dataset.names):
                cut[name] = states
        self._densities = {}
        if cut and not isinstance(X, Dataset):
            uncut = _uncut(table, reading, self.network_, cut)
            for name, states in cut.items():
                numbers = uncut.numbers[name][_known(uncut, name)]
                self._densities[name] = density_of(states, numbers)
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of the rows of X; `states` must declare their states."""
        check_is_fitted(self, "network_")
        table = _table(X, self._reading)
        self._check_columns(table)
        dataset = read(table, _weighted(self._reading, sample_weight), like=self.network_)
        _check_states(self.network_, dataset)
        total = log_likelihood(self.network_, dataset)
        if self._densities and not isinstance(X, Dataset):
            weighted = _weighted(self._reading, sample_weight)
            empty = _without_values(dataset)
            uncut = _uncut(table, weighted, self.network_, self._densities, empty)
            for name, density in self._densities.items():
                if name in empty:
                    continue
                known = _known(uncut, name)
                logarithms = density.logarithms(uncut.numbers[name][known])
                weights = 1.0 if uncut.weights is None else uncut.weights[known]
                total += float((logarithms * weights).sum())
        return total / max(1, dataset.rows)

    @available_if(_has_target)
    def predict(self, X: Any) -> Any:
        """Return the most probable value of the target in each row of X; of numbers the mean."""
        check_is_fitted(self, "network_")
        return self.network_.predict(self._without_target(X), self.target)

    @available_if(_has_target)
    def predict_proba(self, X: Any) -> Any:
        """Return (rows, states) the probabilities of the target's states in each row of X."""
        check_is_fitted(self, "network_")
        return self.network_.predict_proba(self._without_target(X), self.target)

    @property
    def _reading(self) -> ReadSettings | None:
        """How X is read; None for the usual way."""
        if self.bins is None and self.missing == "error":
            return cast(ReadSettings | None, self.reading)
        if self.reading is not None:
            raise SettingError("reading was given with bins or missing; give one: it has both")
        return ReadSettings(bins=self.bins, missing=self.missing)

    def _check_columns(self, table: Any) -> None:
        """Raise if an array has not as many columns as that of `fit`; frames are read by name."""
        if isinstance(table, np.ndarray) and table.shape[1] != self.n_features_in_:
            raise DataError(
                f"X has {table.shape[1]} features, but {type(self).__name__} is expecting"
                f" {self.n_features_in_} features as input; give the columns of fit"
            )

    def _without_target(self, X: Any) -> Any:
        """Return X, an array of all other columns as a frame with their names."""
        table = _table(X, self._reading)
        if not isinstance(table, np.ndarray) or table.shape[1] == self.n_features_in_:
            self._check_columns(table)
            return table
        if table.shape[1] != self.n_features_in_ - 1:
            self._check_columns(table)
        others = [name for name in self.feature_names_in_ if name != self.target]
        columns: dict[str, Any] = {name: table[:, v] for v, name in enumerate(others)}
        return make_frame(columns)

    def sample(self, rows: int, seed: int = 0) -> Dataset:
        """Return rows drawn from the network."""
        check_is_fitted(self, "network_")
        return sample_dataset(self.network_, rows, seed)


def _uncut(
    table: Any,
    reading: ReadSettings | None,
    network: Network,
    cut: Collection[str],
    ignored: Sequence[str] = (),
) -> Dataset:
    """Return the data with numbers in the columns that were cut."""
    reading = reading or ReadSettings()
    missing: Missing = "rows" if reading.missing == "state" else reading.missing
    states = zip(network.names, network.states or (), strict=True)
    numbers = tuple(() if name in cut else its for name, its in states)
    like = Network(network.names, ((),) * network.n, numbers)
    settings = replace(reading, bins=None, numbers="gaussian", missing=missing, arities=None)
    settings = replace(settings, ignore=(*settings.ignore, *ignored))
    return read(table, settings, like=like)


def _without_values(dataset: Dataset) -> list[str]:
    """Return the columns in which every row is missing, and has that as its state."""
    columns = zip(dataset.names, dataset.states, dataset.codes, strict=True)
    found = []
    for name, states, codes in columns:
        if MISSING_STATE in states and (codes == states.index(MISSING_STATE)).all():
            found.append(name)
    return found


def _known(dataset: Dataset, name: str) -> Bools:
    """Return which cells of a column are not missing."""
    if dataset.missing is None:
        return np.ones(dataset.stored_rows, np.bool_)
    known: Bools = ~dataset.missing.mask[dataset.names.index(name)]
    return known


def _has_numbers(table: Any, name: str, names: tuple[str, ...]) -> bool:
    """Return whether a cell of the column is a number; True for a file."""
    if isinstance(table, str | PathLike):
        return True
    for cell in table[:, names.index(name)] if isinstance(table, np.ndarray) else table[name]:
        try:
            float(cell)
        except (TypeError, ValueError):
            continue
        return True
    return False


def _weighted(reading: ReadSettings | None, weights: Any) -> ReadSettings | None:
    """Return how data with these weights are read."""
    if weights is None:
        return reading
    counts: Any = np.asarray(weights)
    return replace(reading or ReadSettings(), weights=counts)


def _seed(random_state: Randomness) -> int:
    """Return the seed that scikit-learn's convention means."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(check_random_state(random_state).randint(2**31 - 1))


def _table(X: Any, reading: ReadSettings | None) -> Any:
    """Return X as something that `read` takes: lists of rows as an array."""
    if issparse(X):
        raise DataError(
            "a sparse matrix; give a dense one with X.toarray(): a zero is a state like any other"
        )
    if isinstance(X, list | tuple):
        kind = type(X).__name__
        try:
            X = np.array(X, dtype=object)  # numbers, truth values and text stay what they are
        except ValueError:
            X = np.empty(0)
        if X.ndim != 2:
            raise DataError(
                f"a {kind} is not a table; give rows of equal length, with one value per column"
            )
    if hasattr(X, "__array__") and not hasattr(X, "columns") and not isinstance(X, np.ndarray):
        X = np.asarray(X)
    holes = isinstance(X, np.ndarray) and X.dtype.kind == "f" and not np.isfinite(X).all()
    if reading is None and holes:
        raise DataError(
            "an array with NaN or infinities; replace infinities, and say what to do with missing"
            " values: missing='impute' draws them from the network, missing='drop' leaves out"
            " their rows"
        )
    return X


def _check_size(X: AnyArray) -> None:
    """Raise if an array has too few rows or columns to learn from, or complex numbers."""
    rows, columns = X.shape
    if X.dtype.kind == "c":
        raise DataError("Complex data not supported; give real numbers or states")
    if not columns:
        raise DataError(
            f"0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required; give two or more"
        )
    if columns == 1:
        raise DataError("n_features = 1; a network needs two columns or more")
    if rows == 1:
        raise DataError("n_samples = 1; give two rows or more")


def _check_states(network: Network, dataset: Dataset) -> None:
    """Raise if a row has a state that the network does not know."""
    assert network.states is not None  # `learn` fits every network
    known = dict(zip(network.names, network.states, strict=True))
    for name, states, codes in zip(dataset.names, dataset.states, dataset.codes, strict=True):
        unknown = set(states).difference(known.get(name, states))
        found = (
            [states[code] for code in np.unique(codes) if states[code] in unknown]
            if unknown
            else []
        )
        if found:
            arities = f"{{{name!r}: [{found[0]!r}, ...]}}"
            remedy = f"fit with all its states declared: reading=ReadSettings(arities={arities})"
            if found[0] == MISSING_STATE:  # which `read` makes and nobody can declare
                remedy = (
                    "drop such rows with reading=ReadSettings(missing='drop'), "
                    "or fill the cells with a state"
                )
            raise DataError(f"column {name!r} holds {found[0]!r}, which fit has not seen; {remedy}")
