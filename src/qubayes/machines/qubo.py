"""`Qubo`, a quadratic function of bits as flat arrays: construction, energies, models of dimod."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, pairwise
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts, frozen
from ..foundation.environment import dimod
from ..foundation.errors import FormatError, QubayesError
from ..foundation.jit import inner, kernel

MOST_BITS = 2**31 - 1  # bits are numbered by 32-bit integers
COUPLERS_AT_ONCE = 1 << 20  # written at once: a few dozen megabytes


class Qubo(NamedTuple):
    """E(x) = offset + h.x + sum_{i<j} J_ij x_i x_j of n bits x."""

    h: Floats  # (n,)
    indptr: Ints  # (n + 1,) rows of J, both triangles
    indices: SmallInts  # (nnz,) ascending inside a row
    weights: Floats  # (nnz,)
    offset: float

    @property
    def bits(self) -> int:
        """Number of bits n."""
        return len(self.h)

    @property
    def couplers(self) -> int:
        """Number of pairs i < j with J_ij != 0."""
        return len(self.indices) // 2


class ModelSize(NamedTuple):
    """The size of a model that was written."""

    bits: int  # all variables, of any kind
    couplers: int  # products of two variables in the objective and in penalties
    constraints: int
    # least and largest absolute value in the objective and in penalties
    coefficient_range: tuple[float, float]


def qubo_from_couplers(
    h: npt.ArrayLike,
    rows: npt.ArrayLike,
    cols: npt.ArrayLike,
    weights: npt.ArrayLike,
    offset: float = 0.0,
) -> Qubo:
    """Return the QUBO offset + h.x + sum_k weights_k x_rows_k x_cols_k, without zero couplers.

    Repeated pairs, in either order of their bits, are summed in the given order. A pair of a bit
    with itself is linear (x x = x). Two counting sorts: linear time."""
    check_bits(np.size(h))
    linear = np.array(h, dtype=np.float64)
    first, second = _indices(rows, len(linear)), _indices(cols, len(linear))
    values = np.ascontiguousarray(weights, dtype=np.float64)
    if linear.ndim != 1 or first.ndim != 1 or not first.shape == second.shape == values.shape:
        shapes = f"{linear.shape}, {first.shape}, {second.shape}, {values.shape}"
        raise QubayesError(
            f"h, rows, cols, weights have shapes {shapes}; "
            "h and three equally long vectors are needed"
        )
    if not (np.isfinite(linear).all() and np.isfinite(values).all() and np.isfinite(offset)):
        raise QubayesError(
            "a coefficient of the QUBO is infinite or not a number; all must be finite"
        )
    diagonal = first == second
    if diagonal.any():
        np.add.at(linear, first[diagonal], values[diagonal])
        first = first[~diagonal]
        second = second[~diagonal]
        values = values[~diagonal]
    low = np.minimum(first, second)
    high = np.maximum(first, second)
    return _symmetric(linear, _summed(low, high, values, len(linear)), float(offset))


def _summed(
    low: SmallInts, high: SmallInts, weights: Floats, bits: int
) -> tuple[SmallInts, SmallInts, Floats]:
    """Return the pairs in ascending order, equal ones summed in the given order, without zeros."""
    by_high = np.empty(len(low), np.int64)
    order = np.empty(len(low), np.int64)
    _sort_by(high, np.arange(len(low)), np.zeros(bits + 1, np.int64), by_high)
    _sort_by(low, by_high, np.zeros(bits + 1, np.int64), order)
    rows = np.empty_like(low)
    cols = np.empty_like(high)
    sums = np.empty_like(weights)
    kept = int(_merge(order, low, high, weights, rows, cols, sums))
    return rows[:kept], cols[:kept], sums[:kept]


def _symmetric(linear: Floats, pairs: tuple[SmallInts, SmallInts, Floats], offset: float) -> Qubo:
    """Return the QUBO of pairs (i, j, weight), i < j, in ascending order."""
    low, high, weights = pairs
    bits = len(linear)
    left = np.bincount(high, minlength=bits)  # entries of each row left of the diagonal
    indptr = np.concatenate([[0], np.cumsum(left + np.bincount(low, minlength=bits))])
    indices = np.empty(2 * len(low), np.int32)
    both = np.empty(2 * len(low), np.float64)
    _mirror(low, high, weights, indptr[:-1].copy(), indptr[:-1] + left, indices, both)
    return Qubo(frozen(linear), frozen(indptr), frozen(indices), frozen(both), offset)


def check_bits(bits: int) -> None:
    """Raise if a QUBO has more bits than can be numbered; call it before allocation."""
    if bits > MOST_BITS:
        raise QubayesError(
            f"a QUBO of {bits} bits; at most {MOST_BITS} can be numbered: allow fewer parents"
        )


def upper_triangle(
    qubo: Qubo, start: int = 0, stop: int | None = None
) -> tuple[Ints, SmallInts, Floats]:
    """Return (i, j, J_ij) of the couplers i < j with i in [start, stop), in ascending (i, j)."""
    stop = qubo.bits if stop is None else stop
    first, last = qubo.indptr[start], qubo.indptr[stop]
    rows = np.repeat(np.arange(start, stop), np.diff(qubo.indptr[start : stop + 1]))
    columns = qubo.indices[first:last]
    upper = columns > rows
    return rows[upper], columns[upper], qubo.weights[first:last][upper]


def coupler_chunks(qubo: Qubo) -> Iterator[tuple[AnyArray, AnyArray, Floats]]:
    """Yield (i, j, J_ij) with i < j in ascending order, in chunks of bounded size."""
    entries = np.arange(0, len(qubo.indices), 2 * COUPLERS_AT_ONCE)
    rows = np.searchsorted(qubo.indptr, entries, side="right") - 1
    for start, stop in pairwise([*dict.fromkeys(rows.tolist()), qubo.bits]):
        yield upper_triangle(qubo, start, stop)


def energy(qubo: Qubo, states: npt.ArrayLike) -> Floats:
    """Return E(x) of one state (n,), or of each state in an array (..., n)."""
    bits: AnyArray = np.asarray(states)
    if bits.ndim == 0 or bits.shape[-1] != qubo.bits:
        raise QubayesError(
            f"states of shape {bits.shape} do not fit a QUBO of {qubo.bits} bits; "
            f"give (..., {qubo.bits})"
        )
    flat = np.ascontiguousarray(bits.reshape(int(np.prod(bits.shape[:-1])), qubo.bits) != 0)
    energies = np.empty(len(flat))
    _energies(qubo.h, qubo.indptr, qubo.indices, qubo.weights, flat, energies)
    result: Floats = (energies + qubo.offset).reshape(bits.shape[:-1])[()]
    return result


def coefficient_range(*qubos: Qubo) -> tuple[float, float]:
    """Return the (least, largest) absolute value of the non-zero coefficients h and J.

    (0, 0) if there are none."""
    least = inf
    largest = 0.0
    for array in chain.from_iterable((qubo.h, qubo.weights) for qubo in qubos):
        sizes = np.abs(array[array != 0])
        if sizes.size:
            least = min(least, float(sizes.min()))
            largest = max(largest, float(sizes.max()))
    return (least, largest) if largest else (0.0, 0.0)


def check_labels(labels: Sequence[Hashable], bits: int) -> None:
    """Raise unless there is one label for each bit, all distinct."""
    if len(labels) != bits or len(set(labels)) != bits:
        raise FormatError(
            f"{len(labels)} labels, {len(set(labels))} of them distinct, for {bits} bits"
        )


def to_bqm(qubo: Qubo, labels: Sequence[Hashable] | None = None) -> "dimod.BinaryQuadraticModel":
    """Return the QUBO as a `dimod.BinaryQuadraticModel` with these labels (0..n-1 by default)."""
    names = range(qubo.bits) if labels is None else labels
    check_labels(names, qubo.bits)
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        qubo.h, upper_triangle(qubo), qubo.offset, dimod.BINARY, variable_order=list(names)
    )


def from_bqm(bqm: "dimod.BinaryQuadraticModel") -> tuple[Qubo, tuple[str, ...]]:
    """Return (QUBO, labels as text) of a model, bits in the model's order.

    Spins s become bits x: s = 2 x - 1."""
    labels = tuple(str(label) for label in bqm.variables)
    if len(set(labels)) != len(labels):
        raise QubayesError(
            "two variables of the model have the same label once written as text; relabel them"
        )
    return qubo_from_couplers(*bqm_vectors(bqm)), labels


def bqm_vectors(
    bqm: "dimod.BinaryQuadraticModel",
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray, float]:
    """Return (h, rows, columns, weights, offset) of the model over bits, in the model's order."""
    binary = bqm if bqm.vartype is dimod.BINARY else bqm.change_vartype(dimod.BINARY, inplace=False)
    vectors = binary.to_numpy_vectors(variable_order=list(bqm.variables))
    return vectors.linear_biases, *vectors.quadratic, float(vectors.offset)


def _indices(values: npt.ArrayLike, bits: int) -> AnyArray:
    array: AnyArray = np.asarray(values)
    if array.size and (array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= bits):
        raise QubayesError(f"couplers must name bits 0 to {bits - 1} by integers")
    return np.ascontiguousarray(array, dtype=np.int32)


@kernel
def _sort_by(keys: SmallInts, order: Ints, start: Ints, result: Ints) -> None:
    """Sort `order` by keys[order] into `result`, stably.

    `start` holds zeros: one more than there are keys."""
    for i in range(len(keys)):
        start[keys[i] + 1] += 1
    for key in range(len(start) - 1):
        start[key + 1] += start[key]
    for i in range(len(order)):
        position = order[i]
        key = keys[position]
        result[start[key]] = position
        start[key] += 1


@kernel
def _merge(
    order: Ints,
    low: SmallInts,
    high: SmallInts,
    weights: Floats,
    rows: SmallInts,
    cols: SmallInts,
    sums: Floats,
) -> int:
    """Sum equal neighbours in the order, drop zero sums, and return how many are left."""
    kept = 0
    k = 0
    while k < len(order):
        i = low[order[k]]
        j = high[order[k]]
        total = 0.0
        while k < len(order) and low[order[k]] == i and high[order[k]] == j:
            total += weights[order[k]]
            k += 1
        if total != 0.0:
            rows[kept] = i
            cols[kept] = j
            sums[kept] = total
            kept += 1
    return kept


@kernel
def _mirror(
    low: SmallInts,
    high: SmallInts,
    weights: Floats,
    left: Ints,
    right: Ints,
    indices: SmallInts,
    both: Floats,
) -> None:
    """Write each pair into the rows of both its bits.

    `left` and `right` are the next free places of each row."""
    for k in range(len(low)):
        i, j = low[k], high[k]
        indices[right[i]] = j
        indices[left[j]] = i
        both[right[i]] = weights[k]
        both[left[j]] = weights[k]
        right[i] += 1
        left[j] += 1


@kernel
def _energies(
    h: Floats, indptr: Ints, indices: SmallInts, weights: Floats, states: Bools, energies: Floats
) -> None:
    """Set energies[s] to h.x + sum_{i<j} J_ij x_i x_j for the state in row s.

    Compensated summation: millions of the paper's penalties cancel in a feasible state, and plain
    sums are off by 0.002 on andes.
    """
    for s in range(len(states)):
        state = states[s]
        total, lost = 0.0, 0.0
        for i in range(len(h)):
            if not state[i]:
                continue
            total, lost = _added(total, lost, h[i])
            for k in range(indptr[i], indptr[i + 1]):
                if indices[k] > i:
                    break
                if state[indices[k]]:
                    total, lost = _added(total, lost, weights[k])
        energies[s] = total + lost


@inner
def _added(total: float, lost: float, term: float) -> tuple[float, float]:
    """Return (total + term rounded, lost + the rounding error), exactly (Knuth's two-sum)."""
    new = total + term
    part = new - total
    return new, lost + ((total - (new - part)) + (term - part))
