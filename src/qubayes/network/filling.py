"""Missing cells given a network: draws of them, and for numbers their expectations.

The distribution of the missing cells of a row is the network's, given the row's other cells. States
are drawn by Gibbs sampling: one variable after the other, given all others. Numbers are jointly
normal, so their distribution is known exactly: with the precision matrix K of the network and the
missing cells M it has the covariance (K_MM)^-1."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..data import Dataset, MissingCells
from ..foundation.arrays import AnyArray, Bools, Floats, frozen
from .network import Network
from .parameters import fit

_NUMBERS = 1 << 22  # of the matrices that are held at once: 32 MB
_CLOSE = 1e-8  # EM ends once no parameter changes by more than this part


def with_states(dataset: Dataset, codes: AnyArray) -> Dataset:
    """Return the table with these states in its missing cells."""
    assert dataset.missing is not None
    mask = dataset.missing.mask
    filled = np.where(mask, codes, dataset.codes).astype(dataset.codes.dtype)
    return replace(dataset, codes=frozen(filled), missing=MissingCells(mask, "filled"))


def joined(tables: Sequence[Dataset]) -> Dataset:
    """Return one table that holds several completions of the same table."""
    first = tables[0]
    assert first.missing is not None
    codes = tuple(table.codes for table in tables)
    return replace(first, missing=first.missing._replace(tables=codes))


def with_numbers(dataset: Dataset, cells: Floats, spread: Floats | None = None) -> Dataset:
    """Return the table with these numbers (n, rows) in its missing cells."""
    assert dataset.missing is not None
    mask = dataset.missing.mask
    numbers = {}
    for variable, name in enumerate(dataset.names):
        own = np.where(mask[variable], cells[variable], dataset.numbers[name])
        numbers[name] = frozen(own)
    missing = MissingCells(mask, "filled", None if spread is None else frozen(spread))
    return replace(dataset, numbers=numbers, missing=missing)


def draw_from_columns(dataset: Dataset, random: np.random.Generator) -> Dataset:
    """Return the table with missing states drawn from the other cells of their columns."""
    assert dataset.missing is not None
    codes = dataset.codes.copy()
    for variable, lacking in enumerate(dataset.missing.mask):
        known = dataset.codes[variable, ~lacking]
        codes[variable, lacking] = random.choice(known, int(lacking.sum()))
    return with_states(dataset, codes)


def draw_states(
    network: Network, dataset: Dataset, sweeps: int, random: np.random.Generator
) -> Dataset:
    """Return the filled table after this number of sweeps of Gibbs sampling.

    Its missing cells hold the states to begin with. The network has the variables of the table in
    their order, and no probability is 0."""
    assert dataset.missing is not None
    codes = dataset.codes.copy()
    factors = _factors(network)
    for _ in range(sweeps):
        for variable, lacking in enumerate(dataset.missing.mask):
            rows = np.flatnonzero(lacking)
            if len(rows):
                logs = _log_weights(factors[variable], codes, rows, dataset.interventions)
                codes[variable, rows] = _drawn(logs, random)
    return with_states(dataset, codes)


class _Factor(NamedTuple):
    """The table of a child as a function of one of its family's variables."""

    child: int
    others: list[int]  # the rest of the family, in the order of the axes
    logs: Floats  # logarithms; the last axis is that of the variable


def _factors(network: Network) -> list[list[_Factor]]:
    """Return for each variable the tables that it occurs in."""
    _, tables = network.parameters
    found: list[list[_Factor]] = [[] for _ in network.names]
    for child, parents in enumerate(network.parents):
        family = [*parents, child]
        logs = np.log(tables[child])
        for axis, variable in enumerate(family):
            others = family[:axis] + family[axis + 1 :]
            found[variable].append(_Factor(child, others, np.moveaxis(logs, axis, -1)))
    return found


def _log_weights(
    factors: Sequence[_Factor], codes: AnyArray, rows: AnyArray, marks: Bools | None
) -> Floats:
    """(rows, states) logarithms of what the probabilities of a variable are proportional to."""
    total = np.zeros((len(rows), factors[0].logs.shape[-1]))
    for child, others, logs in factors:
        part = np.broadcast_to(logs[tuple(codes[v, rows] for v in others)], total.shape)
        if marks is not None:  # where the child was set, its table says nothing
            part = np.where(marks[child, rows, None], 0.0, part)
        total += part
    return total


def _drawn(logs: Floats, random: np.random.Generator) -> AnyArray:
    """(rows,) a state for each row."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    ends = np.cumsum(weights, axis=1)
    uniforms = random.random(len(logs)) * ends[:, -1]
    states: AnyArray = (uniforms[:, None] >= ends[:, :-1]).sum(axis=1)
    return states


class _Conditional(NamedTuple):
    """The normal distribution of the missing cells of some rows; 0 for other cells."""

    rows: slice
    means: Floats  # (rows, n)
    covariances: Floats  # (rows, n, n)


def expected_numbers(network: Network, dataset: Dataset) -> Dataset:
    """Return the table with expected numbers in its missing cells, and their covariances."""
    cells = np.zeros((dataset.n, dataset.rows))
    spread = np.zeros((dataset.n, dataset.n))
    for part in _conditionals(network, dataset):
        cells[:, part.rows] = part.means.T
        spread += part.covariances.sum(axis=0)
    return with_numbers(dataset, cells, spread)


def draw_numbers(network: Network, dataset: Dataset, random: np.random.Generator) -> Dataset:
    """Return the table with numbers drawn for its missing cells."""
    cells = np.zeros((dataset.n, dataset.rows))
    for part in _conditionals(network, dataset):
        noise = random.standard_normal(part.means.shape)
        values, vectors = np.linalg.eigh(part.covariances)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        cells[:, part.rows] = (part.means + (roots @ noise[:, :, None])[:, :, 0]).T
    return with_numbers(dataset, cells)


class _Noises(NamedTuple):
    """The noise of each variable: a row of `noises` times all variables, less the intercept."""

    noises: Floats  # (n, n)
    intercepts: Floats  # (n,)
    precisions: Floats  # (n,) inverse variances


def _noises_of(network: Network) -> _Noises:
    """Return the noises of a network of numbers."""
    noises = np.eye(network.n)
    intercepts = np.zeros(network.n)
    precisions = np.zeros(network.n)
    for variable, linear in enumerate(network.linears):
        noises[variable, list(network.parents[variable])] = -np.array(linear.weights)
        intercepts[variable] = linear.intercept
        precisions[variable] = linear.deviation**-2
    return _Noises(noises, intercepts, precisions)


def _conditionals(network: Network, dataset: Dataset) -> Iterator[_Conditional]:
    """Yield the distributions of missing cells, for blocks of rows."""
    assert dataset.missing is not None
    n = dataset.n
    mask = dataset.missing.mask.T
    cells = np.array([dataset.numbers[name] for name in dataset.names]).T
    known = np.where(mask, 0.0, cells)
    model = _noises_of(network)
    counts: Bools = np.ones_like(mask)
    if dataset.interventions is not None:  # where a variable was set, it is no noise of others
        counts = ~dataset.interventions.T | mask
    step = max(1, _NUMBERS // (n * n))
    for start in range(0, dataset.rows, step):
        rows = slice(start, start + step)
        lacks = mask[rows]
        weights = counts[rows] * model.precisions
        precision = (model.noises.T * weights[:, None, :]) @ model.noises
        linear_part = (weights * model.intercepts) @ model.noises
        linear_part -= (precision @ known[rows, :, None])[:, :, 0]
        both = lacks[:, :, None] & lacks[:, None, :]
        matrix = np.where(both, precision, np.eye(n))
        covariances = np.where(both, np.linalg.inv(matrix), 0.0)
        means = (covariances @ linear_part[:, :, None])[:, :, 0]
        yield _Conditional(rows, means, covariances)


def fit_with_gaps(graph: Network, dataset: Dataset, steps: int) -> tuple[Network, Dataset]:
    """Return the network with parameters of maximum likelihood, and the table that it expects.

    These are steps of the EM algorithm for numbers with missing cells."""
    means = [np.nanmean(dataset.numbers[name]) for name in dataset.names]
    variances = [np.nanvar(dataset.numbers[name]) for name in dataset.names]
    assert dataset.missing is not None
    unknown = np.diag(dataset.missing.mask.sum(axis=1) * np.array(variances))
    table = with_numbers(dataset, np.array(means)[:, None] * np.ones(dataset.rows), unknown)
    bare = Network(graph.names, graph.parents)
    network = fit(bare, table)
    for _ in range(steps):
        table = expected_numbers(network, dataset)
        before = _parameters(network)
        network = fit(bare, table)
        after = _parameters(network)
        if np.abs(after - before).max() <= _CLOSE * np.abs(after).max():
            break
    return network, table


def _parameters(network: Network) -> Floats:
    """Return all parameters of a network of numbers."""
    found: list[float] = []
    for linear in network.linears:
        found += [linear.intercept, *linear.weights, linear.deviation]
    return np.array(found)
