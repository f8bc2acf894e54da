"""Networks and data: estimated probabilities, log-likelihood, score, samples."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, ReadSettings, read, values_of
from ..data.dataset import code_type
from ..data.spelling import plain_spelling
from ..foundation.arrays import AnyArray, Floats, Ints, frozen
from ..foundation.errors import DataError, SettingError, TooLargeError, option, some
from ..scores import DECLARED, EACH, Score, local_score
from .network import Network
from .network_files import read_network

# 800 MB of probabilities. Checked before anything is allocated: ten parents of ten states already
# make 10^10 rows.
LARGEST_TABLES = 100_000_000
_BLOCK = 1 << 16  # rows drawn at once, so that a table with many states needs little memory


def fit(
    network: Network | str | Path,
    data: Any,
    score: Score | str = "bdeu",
    *,
    reading: ReadSettings | None = None,
    **options: Any,
) -> Network:
    """Return the network with a table for every vertex, estimated from the data.

    The data are a file, a data frame or a `Dataset`.

    With a Bayesian score the posterior mean under its prior: `bdeu` adds ess/(r q) to each of the r
    q cells, `k2` adds 1, `bds` adds ess/(r' q') to the cells of the q' observed parent states and
    r' observed states of the child. With "ml", `loglik`, `aic` and `bic` relative frequencies.
    Where both data and prior are silent (a parent state that was never seen) the states are equally
    likely. States are the network's, or the data's if it declares none. How the data are read is
    said by `reading`, or by its fields by name (`missing="drop"`).

    >>> from qubayes.data import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> coin = [0, 1, 0, 1, 0, 0, 1, 1] * 20
    >>> dataset = read(polars.DataFrame({"rain": rain, "wet": rain, "coin": coin}))
    >>> fitted = fit(Network(dataset.names, ((), (0,), ())), dataset, "ml")
    >>> fitted.tables[1].tolist()  # of "wet", by "rain"
    [[1.0, 0.0], [0.0, 1.0]]
    """
    network = network if isinstance(network, Network) else read_network(network)
    dataset = read(data, reading, like=network, **options)
    if dataset.numbers:
        raise TooLargeError(
            f"column {next(iter(dataset.numbers))!r} is continuous; cut it into intervals with"
            f" {option('bins', 3)}"
        )
    if isinstance(score, str):
        try:
            score = Score("loglik" if score == "ml" else score)
        except SettingError:
            raise SettingError(
                f"parameters by {score!r}; give 'ml' or a score such as 'bdeu'"
            ) from None
    if network.states is None:
        network = replace(
            network, states=tuple(dataset.states[i] for i in _columns(network, dataset))
        )
    arities = network.arities.tolist()
    sizes = [
        math.prod(arities[v] for v in (*its, vertex)) for vertex, its in enumerate(network.parents)
    ]
    if sum(sizes) > LARGEST_TABLES:
        largest = max(range(network.n), key=sizes.__getitem__)
        raise TooLargeError(
            f"the tables need {sum(sizes)} numbers, {sizes[largest]} of them for "
            f"{network.names[largest]!r} and its"
            f" {len(network.parents[largest])} parents; at most {LARGEST_TABLES}: remove parents "
            "or merge states"
        )
    codes = _codes(network, dataset)
    tables = []
    for vertex, its in enumerate(network.parents):
        shape = network.table_shape(vertex)
        cells = np.ravel_multi_index([codes[v] for v in (*its, vertex)], shape)
        tables.append(_estimate(np.bincount(cells, minlength=sizes[vertex]).reshape(shape), score))
    return replace(network, tables=tuple(tables), values=_values(network, dataset))


def log_likelihood(network: Network, dataset: Dataset) -> float:
    """Return the log probability of the data's rows; -inf if one of them is impossible.

    Columns and states are matched by name; columns that are not vertices are ignored.

    >>> from qubayes.data import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> coin = [0, 1, 0, 1, 0, 0, 1, 1] * 20
    >>> dataset = read(polars.DataFrame({"rain": rain, "wet": rain, "coin": coin}))
    >>> fitted = fit(Network(dataset.names, ((), (0,), ())), dataset, "ml")
    >>> round(log_likelihood(fitted, dataset), 3)
    -221.807
    """
    _, tables = network.parameters
    codes = _codes(network, dataset)
    total = 0.0
    for vertex, (its, table) in enumerate(zip(network.parents, tables, strict=True)):
        probabilities = table[tuple(codes[v] for v in (*its, vertex))]
        with np.errstate(divide="ignore"):
            total += float(np.log(probabilities).sum())
    return total


def _columns(network: Network, dataset: Dataset) -> list[int]:
    """Return the column of each vertex."""
    columns = {name: column for column, name in enumerate(dataset.names)}
    if missing := [name for name in network.names if name not in columns]:
        raise DataError(
            f"the data have no column {some(missing)}; columns are {some(dataset.names)}: give the "
            "data of this network"
        )
    return [columns[name] for name in network.names]


def _codes(network: Network, dataset: Dataset) -> list[AnyArray]:
    """Return for each vertex the state of every row, as an index into the network's states."""
    codes: list[AnyArray] = []
    for column, states in zip(_columns(network, dataset), network.states or (), strict=True):
        found: AnyArray = dataset.codes[column]
        if dataset.states[column] != states:
            index = {plain_spelling(state): code for code, state in enumerate(states)}
            index |= {state: code for code, state in enumerate(states)}
            places = [
                index.get(state, index.get(plain_spelling(state), -1))
                for state in dataset.states[column]
            ]
            translated = np.array(places, np.int32).take(found)
            if (translated < 0).any():
                row = int(np.argmax(translated < 0))
                raise DataError(
                    f"column {dataset.names[column]!r}, row {row + 1}: "
                    f"{dataset.states[column][found[row]]!r} is not a"
                    f" state of the network; its states are {some(states)}"
                )
            found = translated
        codes.append(found)
    return codes


def _values(network: Network, dataset: Dataset) -> dict[str, AnyArray]:
    """Return by name the value of each of the network's states as the source of the data has it."""
    values = {}
    for name, column, states in zip(
        network.names, _columns(network, dataset), network.states or (), strict=True
    ):
        if name in dataset.values:
            own = dataset.values[name]
            values[name] = values_of(
                states, dict(zip(dataset.states[column], own.tolist(), strict=True)), own.dtype
            )
    return values


def in_states_of(network: Network, dataset: Dataset) -> Dataset:
    """Return the columns of the network's vertices, with the states that it declares."""
    if network.states is None:
        return dataset.select(np.array(_columns(network, dataset)))
    codes: AnyArray = np.array(_codes(network, dataset)).astype(code_type(network.states))
    source = f"network {network.name}".strip()
    values = _values(network, dataset)
    return Dataset(network.names, network.states, frozen(codes), source, dataset.dropped, values)


def _estimate(counts: Ints, score: Score) -> Floats:
    """Return counts plus prior counts of the score (paper, Appendix D.1), each row scaled to 1.

    A row where both are 0 is uniform.
    """
    formula = score.formula(int(counts.sum()))
    prior: float | Floats
    if formula.spread == EACH:
        prior = formula.prior
    elif formula.spread == DECLARED:
        prior = formula.prior / counts.size
    else:
        occurs = counts.reshape(-1, counts.shape[-1]).any(axis=0)
        seen = counts.any(axis=-1, keepdims=True) & occurs
        prior = np.where(seen, formula.prior / max(1, int(seen.sum())), 0.0)
    weights = counts + prior
    totals = weights.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(totals > 0, weights / totals, 1.0 / weights.shape[-1]))


def vertex_scores(network: Network, dataset: Dataset, score: Score | None = None) -> Floats:
    """Return (n,) the local score of every vertex given its parents.

    Their sum is the score of the network."""
    columns, chosen = _columns(network, dataset), score or Score()
    scores = [
        local_score(dataset, columns[vertex], [columns[p] for p in its], chosen)
        for vertex, its in enumerate(network.parents)
    ]
    return frozen(np.array(scores, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class NetworkScore:
    """The score of a network on data, and the log-likelihood if it has probabilities."""

    score: Score
    per_vertex: Mapping[str, float]
    edges: int
    rows: int
    dropped: int  # rows with missing values
    arities_from: str
    other_columns: int  # of the data, which are not vertices
    log_likelihood: float | None
    log_likelihood_note: str | None  # why there is none

    @property
    def total(self) -> float:
        """The sum of the local scores."""
        return math.fsum(self.per_vertex.values())

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes score --json` prints, without the scores of single vertices."""
        likelihood = self.log_likelihood
        return {
            "score": self.total,
            "name": self.score.name,
            "ess": self.score.stamped_ess,
            "arities": self.arities_from,
            "n": len(self.per_vertex),
            "edges": self.edges,
            "rows": self.rows,
            "dropped_rows": self.dropped,
            "other_columns": self.other_columns,
            "log_likelihood": likelihood,
            "log_likelihood_per_row": likelihood / self.rows
            if likelihood is not None and self.rows
            else None,
            "log_likelihood_note": self.log_likelihood_note,
        }

    def __str__(self) -> str:
        return "\n".join(self.describe())

    def describe(self) -> list[str]:
        """Return the result in a few lines for people."""
        ess = (
            ""
            if self.score.stamped_ess is None
            else f", equivalent sample size {self.score.stamped_ess:g}"
        )
        lines = [
            f"{self.score.name} score {self.total:.6f}{ess}, arities from {self.arities_from}",
            f"{len(self.per_vertex)} vertices, {self.edges} edges, {self.rows} rows",
        ]
        if self.dropped:
            lines.append(f"{self.dropped} rows with missing values were dropped")
        if self.other_columns:
            lines.append(
                f"{self.other_columns} columns of the data are not vertices and were ignored"
            )
        if self.log_likelihood is None:
            return [*lines, f"log-likelihood: {self.log_likelihood_note}"]
        return [
            *lines,
            f"log-likelihood {self.log_likelihood:.6f}, {self.log_likelihood / self.rows:.6f} per "
            "row",
        ]


def score(
    network: Network | str | Path,
    data: Any,
    score: str | Score = "bdeu",
    ess: float = 1.0,
    *,
    reading: ReadSettings | None = None,
    **options: Any,
) -> NetworkScore:
    """Return the score of the network on the data: a file, a data frame or a `Dataset`.

    Columns are matched by name. Where the states of the network are intervals, numbers are put into
    them; where it has the state `missing`, missing values are this state. How the data are read is
    said by `reading`, or by its fields by name (`missing="drop"`). Arities are those that the
    network declares, unless it declares none, `arities` are given, or the data hold a state that it
    does not have.

    >>> from qubayes.data import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> dataset = read(polars.DataFrame({"rain": rain, "wet": rain}))
    >>> graph, empty = Network(("rain", "wet"), ((), (0,))), Network(("rain", "wet"), ((), ()))
    >>> from qubayes import score
    >>> score(graph, dataset).total > score(empty, dataset, "bic").total
    True
    """
    graph = network if isinstance(network, Network) else read_network(network)
    dataset = read(data, reading, like=graph, **options)
    declared = options.get("arities") if reading is None else reading.arities
    chosen = score if isinstance(score, Score) else Score(score, ess)
    found: float | None = None
    note: str | None = None
    scored = dataset
    if graph.states is not None:
        try:
            scored = in_states_of(graph, dataset) if declared is None else dataset
            found = log_likelihood(graph, dataset) if graph.tables is not None else None
        except DataError as error:
            note = str(error)
    if graph.tables is None:
        note = "the network has no probabilities"
    elif found == -math.inf:
        found, note = None, "minus infinity: some row is impossible in the network"
    return NetworkScore(
        chosen,
        dict(zip(graph.names, vertex_scores(graph, scored, chosen).tolist(), strict=True)),
        len(graph.edges),
        dataset.rows,
        dataset.dropped,
        scored.arities_from,
        dataset.n - graph.n,
        found,
        note,
    )


def sample(network: Network, rows: int, seed: int = 0) -> Any:
    """Return `rows` draws from the network as a data frame; see `sample_dataset`."""
    return sample_dataset(network, rows, seed).to_frame()


def sample_dataset(network: Network, rows: int, seed: int = 0) -> Dataset:
    """Return `rows` independent draws, each vertex drawn after its parents.

    Every vertex has its own random stream, so the first rows of a longer sample are the shorter
    sample. The states are all those that the network declares, drawn or not.

    >>> from qubayes.network import fit
    >>> from qubayes.data import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> coin = [0, 1, 0, 1, 0, 0, 1, 1] * 20
    >>> dataset = read(polars.DataFrame({"rain": rain, "wet": rain, "coin": coin}))
    >>> fitted = fit(Network(dataset.names, ((), (0,), ())), dataset, "ml")
    >>> drawn = sample_dataset(fitted, rows=1000, seed=1)
    >>> drawn.rows, bool((drawn.codes[0] == drawn.codes[1]).all())
    (1000, True)
    """
    if rows < 1 or seed < 0:
        raise SettingError(
            f"rows = {rows}, seed = {seed}; give one row or more and a seed of 0 or more"
        )
    states, tables = network.parameters
    codes: AnyArray = np.zeros((network.n, rows), dtype=code_type(states))
    streams = np.random.SeedSequence(seed).spawn(network.n)
    for vertex in network.order:
        uniforms = np.random.default_rng(streams[vertex]).random(rows)
        cumulative = np.cumsum(tables[vertex], axis=-1)
        cumulative /= cumulative[..., -1:]  # exactly 1 at the end
        parents = codes[list(network.parents[vertex])]
        for start in range(0, rows, _BLOCK):
            block = slice(start, start + _BLOCK)
            given = cumulative[tuple(parents[:, block])] if len(parents) else cumulative[None, :]
            # The state: the number of cumulative probabilities given the parents that the uniform
            # number reaches.
            codes[vertex, block] = (uniforms[block, None] >= given[:, :-1]).sum(axis=1)
    return Dataset(network.names, states, frozen(codes), f"network {network.name}".strip())
