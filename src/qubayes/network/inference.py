"""Exact inference: the distribution of some vertices given others, by variable elimination.

A factor is an array over free (unobserved) vertices; its first axis counts the rows of evidence, or
has length 1 where the factor is the same for all rows. So one elimination answers a question for
many rows at once."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints
from ..foundation.errors import TooLargeError

if TYPE_CHECKING:
    from .network import Network

MOST_INFERENCE_NUMBERS = 50_000_000  # numbers: 400 MB
_BLOCK = 1_000_000  # numbers of a factor that is made for several rows at once


class _Factor(NamedTuple):
    vertices: tuple[int, ...]  # free vertices, ascending
    values: Floats  # (rows or 1, arity of each vertex...)


def marginals_given(
    network: "Network",
    query: int,
    evidence: Mapping[int, Ints],
    block_size: int = _BLOCK,
    largest: int = MOST_INFERENCE_NUMBERS,
) -> Floats:
    """Return (rows, states of the query) the probabilities of `query` given each row of evidence.

    `evidence[v]` is the state of vertex v in every row. A row of evidence that the network holds
    impossible gives NaN. Vertices that are neither the query nor in the evidence are summed out;
    those that are not ancestors of either are left out, since they sum to 1."""
    rows = max((len(codes) for codes in evidence.values()), default=1)
    arities = network.arities.tolist()
    families = {v: (*network.parents[v], v) for v in relevant(network, query, evidence)}
    free_sizes = [
        prod(arities[u] for u in family if u not in evidence) for family in families.values()
    ]
    step = max(1, block_size // max(free_sizes))
    blocks: list[Floats] = []
    start = 0
    while start < rows:
        block = {v: codes[start : start + step] for v, codes in evidence.items()}
        factors, possible = _factors(network, families, block, min(step, rows - start))
        try:
            blocks.append(_eliminated(factors, {query}, possible, arities, largest))
        except TooLargeError:
            if step == 1:
                raise
            step = max(1, step // 16)
        else:
            start += step
    return np.concatenate(blocks)


def joint_given(
    network: "Network",
    kept: Collection[int],
    evidence: Mapping[int, Ints],
    largest: int = MOST_INFERENCE_NUMBERS,
) -> Floats:
    """Return the joint probabilities of the states of several vertices, given one row of evidence.

    There is one axis for each of these vertices, in ascending order. NaN if the network holds the
    evidence impossible."""
    needed = relevant(network, min(kept), [*kept, *evidence])
    families = {v: (*network.parents[v], v) for v in needed}
    factors, possible = _factors(network, families, evidence, 1)
    found: Floats = _eliminated(factors, kept, possible, network.arities.tolist(), largest)[0]
    return found


def relevant(network: "Network", query: int, evidence: Iterable[int]) -> list[int]:
    """Return the query, the evidence and their ancestors, ascending."""
    found: set[int] = set()
    stack = [query, *evidence]
    while stack:
        vertex = stack.pop()
        if vertex not in found:
            found.add(vertex)
            stack += network.parents[vertex]
    return sorted(found)


def _factors(
    network: "Network",
    families: Mapping[int, tuple[int, ...]],
    evidence: Mapping[int, Ints],
    rows: int,
) -> tuple[list[_Factor], Bools]:
    """Return the tables given the evidence, and which rows are possible.

    A row is impossible if a table without free vertices is 0 there."""
    _, tables = network.parameters
    factors: list[_Factor] = []
    possible = np.ones(rows, np.bool_)
    for vertex, family in families.items():
        factor = _restricted(tables[vertex], family, evidence)
        if factor.vertices:
            factors.append(factor)
        else:
            possible &= factor.values > 0
    return factors, possible


def _restricted(table: Floats, family: tuple[int, ...], evidence: Mapping[int, Ints]) -> _Factor:
    """Return the table with the states of the evidence chosen, its free vertices ascending."""
    free = sorted(v for v in family if v not in evidence)
    given = [v for v in family if v in evidence]
    ordered = table.transpose([family.index(v) for v in (*given, *free)])
    if not given:
        return _Factor(tuple(free), ordered[None])
    return _Factor(tuple(free), ordered[tuple(evidence[v] for v in given)])


def _eliminated(
    factors: list[_Factor],
    kept: Collection[int],
    possible: Bools,
    arities: list[int],
    largest: int,
) -> Floats:
    """Return (rows, states of the kept vertices...), with all other free vertices summed out.

    The vertex with the smallest joint table comes first."""

    def cost(vertex: int) -> tuple[int, int]:
        joined = [factor.vertices for factor in factors if vertex in factor.vertices]
        return prod(arities[u] for u in set().union(*joined)), vertex

    free = set().union(*(factor.vertices for factor in factors)) - {*kept}
    while free:
        vertex = min(free, key=cost)
        joined = _product(
            [factor for factor in factors if vertex in factor.vertices], arities, largest
        )
        summed = joined.values.sum(axis=1 + joined.vertices.index(vertex))
        rest = tuple(u for u in joined.vertices if u != vertex)
        factors = [factor for factor in factors if vertex not in factor.vertices]
        free.remove(vertex)
        # Scaled, so that long products do not vanish; every row is scaled to 1 at the end.
        highest = summed.reshape(len(summed), -1).max(axis=1)
        possible &= highest > 0
        if rest:
            scale = np.where(highest > 0, highest, 1.0)
            factors.append(_Factor(rest, summed / scale.reshape(-1, *[1] * len(rest))))
    values = _product(factors, arities, largest).values
    totals = values.sum(axis=tuple(range(1, values.ndim)), keepdims=True)
    fine = possible.reshape(-1, *[1] * (values.ndim - 1)) & (totals > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(fine, values / totals, np.nan)


def _product(factors: Sequence[_Factor], arities: list[int], largest: int) -> _Factor:
    """Return the product over all vertices of the factors; raise if it has too many numbers."""
    vertices = tuple(sorted(set().union(*(factor.vertices for factor in factors))))
    size = max(len(factor.values) for factor in factors) * prod(arities[v] for v in vertices)
    if size > largest:
        raise TooLargeError(
            f"exact inference needs a table of {size:,} numbers, at most {largest:,}; give "
            "more evidence, or"
            " use approximate inference: `qubayes.network.to_pyagrum`, `to_pgmpy`"
        )
    result = np.ones((1,) * (1 + len(vertices)))
    for factor in factors:
        sizes = [arities[v] if v in factor.vertices else 1 for v in vertices]
        result = result * factor.values.reshape(-1, *sizes)
    return _Factor(vertices, result)
