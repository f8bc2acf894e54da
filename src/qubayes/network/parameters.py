"""Probabilities of a network from data, and how probable it makes other data."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..data import Dataset
from ..foundation.arrays import AnyArray, Floats, Ints, frozen
from ..foundation.errors import DataError, QubayesError, SettingError
from ..scores import DECLARED, EACH, Score, local_score
from .network import Network

States = tuple[tuple[str, ...], ...]

# 800 MB of probabilities. Asked before anything is allocated: ten parents of ten states already make 10^10 rows.
LARGEST_TABLES = 100_000_000

_BDEU = Score()


def fit(network: Network, dataset: Dataset, score: Score | str = _BDEU) -> Network:
    """The network with a table for every vertex, estimated from the data.

    With a Bayesian score the posterior mean under its prior: `bdeu` adds ess/(r q) to each of the r q cells, `k2` adds
    1, `bds` adds ess/(r' q') to the cells of the q' observed parent states and r' observed states of the child. With
    "ml", `loglik`, `aic` and `bic` relative frequencies. Where both data and prior are silent (a parent state that was
    never seen) the states are equally likely. States are the network's, or the data's if it declares none.

    >>> from qubayes.data import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> dataset = read(polars.DataFrame({"rain": rain, "wet": rain, "coin": [0, 1, 0, 1, 0, 0, 1, 1] * 20}))
    >>> fitted = fit(Network(dataset.names, ((), (0,), ())), dataset, "ml")
    >>> fitted.tables[1].tolist()  # of "wet", by "rain"
    [[1.0, 0.0], [0.0, 1.0]]
    """
    score = _estimator(score)
    states = _states(network, dataset)
    check_sizes(network, states)
    columns = _columns(network, dataset, states)
    tables = (_estimate(_count(columns, its, vertex, states), score) for vertex, its in enumerate(network.parents))
    return Network(network.names, network.parents, states, tuple(tables), network.name)


def log_likelihood(network: Network, dataset: Dataset) -> float:
    """The log probability of the data's rows under the network; -inf if it holds one of them impossible.

    Columns and states are matched by name; columns that are no vertices are passed over.

    >>> from qubayes.data import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> dataset = read(polars.DataFrame({"rain": rain, "wet": rain, "coin": [0, 1, 0, 1, 0, 0, 1, 1] * 20}))
    >>> round(log_likelihood(fit(Network(dataset.names, ((), (0,), ())), dataset, "ml"), dataset), 3)
    -221.807
    """
    if network.states is None or network.tables is None:
        raise QubayesError(
            "this network has no probabilities; fit it to data first, or read it from a file with tables"
        )
    columns = _columns(network, dataset, network.states)
    total = 0.0
    for vertex, (its, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        probabilities = table[tuple(columns[v] for v in (*its, vertex))]
        with np.errstate(divide="ignore"):
            total += float(np.log(probabilities).sum())
    return total


def vertex_scores(network: Network, dataset: Dataset, score: Score = _BDEU) -> Floats:
    """(n,) the local score of every vertex given its parents; their sum is the score of the network."""
    place = _places(network, dataset)
    scores = [
        local_score(dataset, place[vertex], [place[p] for p in its], score)
        for vertex, its in enumerate(network.parents)
    ]
    return frozen(np.array(scores, dtype=np.float64))


def check_sizes(network: Network, states: States) -> None:
    """Raise if the tables of the network, all together, would be too large to make."""
    sizes = [math.prod(len(states[v]) for v in (*its, vertex)) for vertex, its in enumerate(network.parents)]
    if sum(sizes) > LARGEST_TABLES:
        largest = max(range(network.n), key=sizes.__getitem__)
        raise QubayesError(
            f"the tables need {sum(sizes)} numbers, {sizes[largest]} of them for {network.names[largest]!r} and its"
            f" {len(network.parents[largest])} parents; at most {LARGEST_TABLES}: remove parents or merge states"
        )


def _estimator(score: Score | str) -> Score:
    """The score whose prior is meant; a name is a score with its usual settings."""
    if isinstance(score, Score):
        return score
    if score == "ml":
        return Score("loglik")
    try:
        return Score(score)
    except SettingError:
        raise SettingError(f"parameters by {score!r}; give 'ml' or a score such as 'bdeu'") from None


def _states(network: Network, dataset: Dataset) -> States:
    if network.states is not None:
        return network.states
    return tuple(dataset.states[place] for place in _places(network, dataset))


def _places(network: Network, dataset: Dataset) -> list[int]:
    """The column of each vertex."""
    columns = {name: column for column, name in enumerate(dataset.names)}
    missing = [name for name in network.names if name not in columns]
    if missing:
        raise DataError(
            f"the data have no column {some(missing)}; columns are {some(dataset.names)}: give the data of this network"
        )
    return [columns[name] for name in network.names]


def _columns(network: Network, dataset: Dataset, states: States) -> list[AnyArray]:
    """For each vertex the state of every row, as an index into `states`; the data themselves where they agree."""
    return [_translated(dataset, place, its) for place, its in zip(_places(network, dataset), states, strict=True)]


def _translated(dataset: Dataset, place: int, states: tuple[str, ...]) -> AnyArray:
    codes: AnyArray = dataset.codes[place]
    if dataset.states[place] == states:
        return codes
    known = {state: code for code, state in enumerate(states)}
    lookup = np.array([known.get(state, -1) for state in dataset.states[place]], dtype=np.int32)
    column: AnyArray = lookup.take(codes)
    if (column < 0).any():
        row = int(np.argmax(column < 0))
        raise DataError(
            f"column {dataset.names[place]!r}, row {row + 1}: {dataset.states[place][codes[row]]!r} is no state of the"
            f" network; its states are {some(states)}"
        )
    return column


class _Counts(NamedTuple):
    """How often each cell of a family occurs; `table` has the shape of the vertex's table."""

    table: Ints
    observed: Ints  # (arity,) how often each state of the child occurs


def _count(columns: list[AnyArray], parents: tuple[int, ...], vertex: int, states: States) -> _Counts:
    shape = tuple(len(states[v]) for v in (*parents, vertex))
    cells = np.zeros(len(columns[vertex]), dtype=np.int64)
    for v, arity in zip((*parents, vertex), shape, strict=True):
        cells = cells * arity + columns[v]
    table = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
    return _Counts(table, table.reshape(-1, shape[-1]).sum(axis=0))


def _estimate(counts: _Counts, score: Score) -> Floats:
    """The counts and the prior counts of the score, each row scaled to 1; uniform where both are 0."""
    weights = counts.table + _prior(counts, score)
    totals = weights.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(totals > 0, weights / totals, 1.0 / weights.shape[-1]))


def _prior(counts: _Counts, score: Score) -> Floats:
    """Return the prior counts, of a shape that fits the table's (Appendix D.1 of the paper)."""
    table, formula = counts.table, score.formula(int(counts.observed.sum()))
    if formula.spread == EACH:
        return np.full(1, formula.prior)
    if formula.spread == DECLARED:
        return np.full(1, formula.prior / table.size)
    seen = (table.sum(axis=-1, keepdims=True) > 0) & (counts.observed > 0)
    return np.where(seen, formula.prior / max(1, int(seen.sum())), 0.0)


def some(names: Iterable[str], most: int = 5) -> str:
    """The first few names, for a message."""
    names = list(names)
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
