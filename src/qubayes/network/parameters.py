"""Networks and data: estimated parameters, log-likelihood, samples."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, ReadSettings, numbers_of, read, values_of
from ..data.dataset import code_type
from ..data.spelling import plain_spelling
from ..foundation.arrays import AnyArray, Bools, Floats, Ints, frozen
from ..foundation.errors import DataError, SettingError, TooLargeError, option, some
from ..scores import DECLARED, EACH, Score
from .by_state import ByState, fit_by_state
from .linear import Linear, fit_linear, linear_of_moments
from .network import Network, Parameters
from .network_files import read_network

# 800 MB of probabilities. Checked before anything is allocated: ten parents of ten states already
# make 10^10 rows.
LARGEST_TABLES = 100_000_000
_BLOCK = 1 << 16  # rows drawn at once, so that a table with many states needs little memory


def fit(
    network: Network | str | Path,
    data: Any,
    score: Score | str = "auto",
    *,
    reading: ReadSettings | None = None,
    **options: Any,
) -> Network:
    """Return the network with parameters for every vertex, estimated from the data.

    The data are a file, a data frame or a `Dataset`.

    A discrete variable has a table. With a Bayesian score it is the posterior mean under its prior:
    `bdeu`, the default, adds ess/(r q) to each of the r q cells, `k2` adds 1, `bds` adds ess/(r'
    q') to the cells of the q' observed parent states and r' observed states of the child. With
    "ml", `loglik`, `aic` and `bic` relative frequencies. Where both data and prior are silent (a
    parent state that was never seen) the states are equally likely. A continuous variable has a
    `Linear`, by least squares with every score; its deviation is the one of maximum likelihood,
    which divides by the number of rows. With discrete parents it has a `ByState`: a `Linear` for
    each of their states, with a row of prior in each. States are the network's, or the data's if
    it declares none. How the data are read is said by `reading`, or by its fields by name
    (`missing="drop"`).

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
    if dataset.completions:
        return _mean_of([fit(network, table, score) for table in dataset.completions])
    estimator = _estimator(score)
    columns = columns_of(network, dataset)
    if network.states is None:
        network = replace(network, states=tuple(dataset.states[column] for column in columns))
    network.check_parents_of_states()
    if network.is_continuous:
        return _fit_linears(network, dataset)
    if estimator.is_for("discrete") and not estimator.is_formula:
        estimator = Score("loglik")  # frequencies: the score has no prior
    if network.is_mixed:
        return _fit_mixed(network, dataset, estimator)
    return _fit_tables(network, dataset, estimator)


def _mean_of(networks: Sequence[Network]) -> Network:
    """Return the network with the mean probabilities of networks with the same graph."""
    tables = []
    for its in zip(*(network.parameters[1] for network in networks), strict=True):
        tables.append(np.mean(its, axis=0))
    mean: Network = replace(networks[0], tables=tuple(tables))
    return mean


def _estimator(score: Score | str) -> Score:
    """Return the score whose prior counts are used."""
    if not isinstance(score, str):
        return score
    try:
        return Score("loglik" if score == "ml" else score)
    except SettingError:
        raise SettingError(
            f"parameters by {score!r}; give 'ml' or a score such as 'bdeu'"
        ) from None


def _fit_linears(network: Network, dataset: Dataset) -> Network:
    """Return the network with the maximum likelihood parameters of continuous variables."""
    numbers = _numbers(network, dataset)
    spread = None if dataset.missing is None else dataset.missing.spread
    if spread is not None:
        columns = columns_of(network, dataset)
        return _fit_to_moments(network, numbers, spread[np.ix_(columns, columns)])
    linears = []
    for vertex, its in enumerate(network.parents):
        cells = numbers[:, _rows_of(network, dataset, vertex)]
        linears.append(fit_linear(cells, vertex, its, network.names, dataset.weights))
    return replace(network, tables=tuple(linears), values={})


def _fit_to_moments(network: Network, numbers: Floats, spread: Floats) -> Network:
    """Return the network fitted to expected cells, with the covariances that they leave out."""
    means = numbers.mean(axis=1)
    centred = numbers - means[:, None]
    covariance = (centred @ centred.T + spread) / numbers.shape[1]
    linears = []
    for vertex, its in enumerate(network.parents):
        linears.append(linear_of_moments(means, covariance, vertex, its))
    return replace(network, tables=tuple(linears), values={})


def _rows_of(network: Network, dataset: Dataset, vertex: int) -> Bools | slice:
    """Return the rows that count for a vertex and its parents."""
    if dataset.is_plain:
        return slice(None)
    columns = columns_of(network, dataset)
    return dataset.rows_of(columns[vertex], [columns[p] for p in network.parents[vertex]])


def _fit_mixed(network: Network, dataset: Dataset, score: Score) -> Network:
    """Return the network with parameters of discrete and continuous variables."""
    states = network.states or ()
    tables = _fit_tables(replace(network, tables=None).discrete_part, dataset, score)
    found = dict(zip(tables.names, tables.parameters[1], strict=True))
    codes = _codes(network, dataset)
    numbers = _numbers(network, dataset)
    parameters: list[Parameters] = []
    for vertex, name in enumerate(network.names):
        discrete, continuous = network.split_parents(vertex)
        if states[vertex]:
            parameters.append(found[name])
            continue
        family = [*continuous, vertex]
        names = [network.names[v] for v in family]
        rows = _rows_of(network, dataset, vertex)
        cells = numbers[family][:, rows]
        if not discrete:
            parents = range(len(continuous))
            parameters.append(fit_linear(cells, len(continuous), parents, names, dataset.weights))
            continue
        arities = [len(states[parent]) for parent in discrete]
        given = [codes[parent][rows] for parent in discrete]
        parameters.append(fit_by_state(cells, given, arities, names, dataset.weights))
    return replace(network, tables=tuple(parameters), values=tables.values)


def _fit_tables(network: Network, dataset: Dataset, score: Score) -> Network:
    """Return the network with a table for every discrete variable."""
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
        cells = cells[_rows_of(network, dataset, vertex)]
        counts = _count_cells(cells, sizes[vertex], dataset.weights)
        tables.append(_estimate(counts.reshape(shape), score))
    return replace(network, tables=tuple(tables), values=_values(network, dataset))


def _count_cells(cells: Ints, size: int, weights: Ints | None) -> Ints:
    """Return the number of rows in each cell of a table."""
    if weights is None:
        return np.bincount(cells, minlength=size)
    counts = np.zeros(size, np.int64)
    np.add.at(counts, cells, weights)
    return counts


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
    if dataset.completions:
        return float(np.mean([log_likelihood(network, each) for each in dataset.completions]))
    _, parameters = network.all_parameters
    if dataset.has_gaps:
        raise DataError(
            "no log-likelihood is computed for rows with missing cells;"
            f" leave them out with {option('missing', 'drop')}"
        )
    codes = _codes(network, dataset)
    numbers = _numbers(network, dataset)
    parts = []
    for vertex, its in enumerate(parameters):
        discrete, continuous = network.split_parents(vertex)
        rows = _rows_of(network, dataset, vertex)
        states = [codes[parent][rows] for parent in discrete]
        if isinstance(its, np.ndarray):
            with np.errstate(divide="ignore"):
                part = _sum_of_rows(np.log(its[(*states, codes[vertex][rows])]), dataset)
        else:
            own = numbers[vertex, rows]
            cells = numbers[list(continuous)][:, rows]
            if isinstance(its, Linear):
                part = its.log_likelihood(own, cells, dataset.weights)
            else:
                part = its.log_likelihood(own, states, cells, dataset.weights)
        parts.append(part)
    return sum(parts)


def _sum_of_rows(values: Floats, dataset: Dataset) -> float:
    """Return the sum over all rows."""
    return float(values.sum() if dataset.weights is None else values @ dataset.weights)


def _numbers(network: Network, dataset: Dataset) -> Floats:
    """Return (n, rows) the cells of continuous vertices; 0 for discrete ones."""
    columns_of(network, dataset)  # names what is missing
    numbers = np.zeros((network.n, dataset.stored_rows if () in (network.states or ()) else 0))
    for vertex, (name, states) in enumerate(zip(network.names, network.states or (), strict=True)):
        if not states:
            numbers[vertex] = numbers_of(dataset, name)
    return numbers


def columns_of(network: Network, dataset: Dataset) -> list[int]:
    """Return the column of each vertex."""
    columns = {name: column for column, name in enumerate(dataset.names)}
    if missing := [name for name in network.names if name not in columns]:
        raise DataError(
            f"the data have no column {some(missing)}; columns are {some(dataset.names)}: give the "
            "data of this network"
        )
    return [columns[name] for name in network.names]


def _codes(network: Network, dataset: Dataset) -> list[AnyArray]:
    """Return for each vertex the state of every row, as an index into the network's states.

    Those of continuous vertices are 0."""
    codes: list[AnyArray] = []
    for column, states in zip(columns_of(network, dataset), network.states or (), strict=True):
        found: AnyArray = dataset.codes[column]
        if not states:
            codes.append(np.zeros(dataset.stored_rows, np.uint8))
            continue
        if dataset.names[column] in dataset.numbers:
            raise DataError(
                f"column {dataset.names[column]!r} holds numbers, and the network has states for "
                f"it; read the data with like=network, or cut the column with {option('bins', 3)}"
            )
        if dataset.states[column] != states:
            index = {plain_spelling(state): code for code, state in enumerate(states)}
            index |= {state: code for code, state in enumerate(states)}
            places = [
                index.get(state, index.get(plain_spelling(state), -1))
                for state in dataset.states[column]
            ]
            translated = np.array(places, np.int32).take(found)
            if dataset.has_gaps:
                translated[dataset.lacking(column)] = 0
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
        network.names, columns_of(network, dataset), network.states or (), strict=True
    ):
        if name in dataset.values:
            own = dataset.values[name]
            values[name] = values_of(
                states, dict(zip(dataset.states[column], own.tolist(), strict=True)), own.dtype
            )
    return values


def in_states_of(network: Network, dataset: Dataset) -> Dataset:
    """Return the columns of the network's vertices, with the states that it declares."""
    own = dataset.select(np.array(columns_of(network, dataset), np.int64))
    if network.states is None:
        return own
    source = f"network {network.name}".strip()
    continuous = [v for v, states in enumerate(network.states) if not states]
    cells = _numbers(network, dataset)
    numbers = {network.names[vertex]: frozen(cells[vertex]) for vertex in continuous}
    codes = np.array(_codes(network, dataset)).astype(code_type(network.states))
    values = _values(network, dataset)
    return replace(
        own,
        states=network.states,
        codes=frozen(codes),
        arities_from=source,
        values=values,
        numbers=numbers,
    )


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


def sample(network: Network, rows: int, seed: int = 0) -> Any:
    """Return `rows` draws from the network as a data frame; see `sample_dataset`."""
    return sample_dataset(network, rows, seed).to_frame()


def sample_dataset(network: Network, rows: int, seed: int = 0) -> Dataset:
    """Return `rows` independent draws, each vertex drawn after its parents.

    Every vertex has its own random stream, so the first rows of a longer sample are the shorter
    sample. The states are all those that the network declares, drawn or not. Of continuous
    variables the draws are in `numbers`.

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
    streams = np.random.SeedSequence(seed).spawn(network.n)
    states, parameters = network.all_parameters
    codes: AnyArray = np.zeros((network.n, rows), dtype=code_type(states))
    numbers = np.zeros((network.n, rows if () in states else 0))
    for vertex in network.order:
        random = np.random.default_rng(streams[vertex])
        discrete, continuous = network.split_parents(vertex)
        given = codes[list(discrete)]
        its = parameters[vertex]
        if isinstance(its, np.ndarray):
            codes[vertex] = _draw_states(its, given, random.random(rows))
        else:
            cells = numbers[list(continuous)]
            numbers[vertex] = _draw_numbers(its, given, cells, random.standard_normal(rows))
    return Dataset(
        network.names,
        states,
        frozen(codes),
        f"network {network.name}".strip(),
        numbers={
            name: frozen(cells)
            for name, its, cells in zip(network.names, states, numbers, strict=True)
            if not its
        },
    )


def _draw_states(table: Floats, parents: AnyArray, uniforms: Floats) -> AnyArray:
    """Return the state of each row given those of its parents."""
    cumulative = np.cumsum(table, axis=-1)
    cumulative /= cumulative[..., -1:]  # exactly 1 at the end
    drawn = np.empty(len(uniforms), np.int64)
    for start in range(0, len(uniforms), _BLOCK):
        block = slice(start, start + _BLOCK)
        given = cumulative[tuple(parents[:, block])] if len(parents) else cumulative[None, :]
        # The state: the number of cumulative probabilities given the parents that the uniform
        # number reaches.
        drawn[block] = (uniforms[block, None] >= given[:, :-1]).sum(axis=1)
    return drawn


def _draw_numbers(its: Linear | ByState, codes: AnyArray, cells: Floats, noise: Floats) -> Floats:
    """Return the number of each row given the states and the numbers of its parents."""
    if isinstance(its, Linear):
        return its.mean(cells) + its.deviation * noise
    found: Floats = its.mean(list(codes), cells) + its.deviations[tuple(codes)] * noise
    return found
