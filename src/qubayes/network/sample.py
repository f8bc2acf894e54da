"""Rows drawn from a network."""

import numpy as np

from ..data import Dataset
from ..data.dataset import code_type
from ..foundation.arrays import AnyArray, Floats, Ints, frozen
from ..foundation.errors import QubayesError, SettingError
from .network import Network

_BLOCK = 1 << 16  # rows at once, so that a table with many states needs little memory


def sample(network: Network, rows: int, seed: int = 0) -> Dataset:
    """`rows` independent draws from the joint distribution, each vertex after its parents.

    Every vertex has its own random stream, so the first rows of a longer sample are the shorter sample. The states are
    all those that the network declares, drawn or not.

    >>> from qubayes.network import fit
    >>> from qubayes.data import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> dataset = read(polars.DataFrame({"rain": rain, "wet": rain, "coin": [0, 1, 0, 1, 0, 0, 1, 1] * 20}))
    >>> drawn = sample(fit(Network(dataset.names, ((), (0,), ())), dataset, "ml"), rows=1000, seed=1)
    >>> drawn.rows, bool((drawn.codes[0] == drawn.codes[1]).all())
    (1000, True)
    """
    if rows < 1 or seed < 0:
        raise SettingError(f"rows = {rows}, seed = {seed}; give one row or more and a seed of 0 or more")
    if network.states is None or network.tables is None:
        raise QubayesError("this network has no probabilities to sample from; read it from a file with tables")
    codes: AnyArray = np.zeros((network.n, rows), dtype=code_type(network.states))
    streams = np.random.SeedSequence(seed).spawn(network.n)
    for vertex in network.order:
        uniforms = np.random.default_rng(streams[vertex]).random(rows)
        cumulative = _cumulative(network.tables[vertex])
        parents = codes[list(network.parents[vertex])]
        for start in range(0, rows, _BLOCK):
            block = slice(start, start + _BLOCK)
            codes[vertex, block] = _draw(cumulative, parents[:, block], uniforms[block])
    return Dataset(network.names, network.states, frozen(codes), f"network {network.name}".strip())


def _cumulative(table: Floats) -> Floats:
    """Along the last axis the probability of this state or an earlier one; exactly 1 at the end."""
    cumulative = np.cumsum(table, axis=-1)
    return np.asarray(cumulative / cumulative[..., -1:])


def _draw(cumulative: Floats, parents: AnyArray, uniforms: Floats) -> Ints:
    """The state of each row: how many of the cumulative probabilities given its parents the uniform number reaches."""
    given = cumulative[tuple(parents)] if len(parents) else cumulative[None, :]
    return np.asarray((uniforms[:, None] >= given[:, :-1]).sum(axis=1))
