"""What the kernels need, made from a data set, a score and prior knowledge."""

from collections.abc import Sequence

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts, Words
from ..foundation.errors import DataError
from ..foundation.families import VertexSet
from ..scores import Score, local_score
from .candidates import tolerance
from .knowledge import Allowed
from .tables import BDEU, BDS, K2, LIKELIHOOD, Constraints, Rows, Rule

MOST_ROWS = 2**31 - 1  # counts are 32-bit integers

_KINDS = {"bdeu": BDEU, "bds": BDS, "k2": K2, "bic": LIKELIHOOD, "aic": LIKELIHOOD, "loglik": LIKELIHOOD}


def check_rows(dataset: Dataset) -> None:
    """Raise if a count of rows may not fit into its integer."""
    if dataset.rows > MOST_ROWS:
        raise DataError(f"the data have {dataset.rows} rows; at most {MOST_ROWS} can be counted: take a sample of them")


def prepare_rows(dataset: Dataset) -> Rows:
    """The data with observed states only: as bits where every variable has at most two, else as distinct rows."""
    codes, observed = _observed(dataset)
    binary = bool(np.all(observed <= 2))
    bits = _bits(codes) if binary else np.zeros((dataset.n, 0), np.uint64)
    if binary:
        codes, weights = codes[:, :0], np.zeros(0, np.int32)
    else:
        codes, weights = merge_rows(codes)
    return Rows(codes, observed, weights, bool(np.any(weights > 1)), bits, dataset.rows)


def _observed(dataset: Dataset) -> tuple[AnyArray, Ints]:
    """Codes renumbered over the states that occur, and how many occur."""
    check_rows(dataset)
    codes = np.empty_like(dataset.codes)
    observed = np.ones(dataset.n, dtype=np.int64)
    for i, column in enumerate(dataset.codes):
        present = np.bincount(column, minlength=1) > 0
        codes[i] = (np.cumsum(present) - 1)[column]
        observed[i] = max(1, int(present.sum()))
    return codes, observed


def _bits(codes: AnyArray) -> Words:
    n, rows = codes.shape
    padded = np.zeros((n, -(-rows // 64) * 64), dtype=np.uint8)
    padded[:, :rows] = codes
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def merge_rows(codes: AnyArray) -> tuple[AnyArray, SmallInts]:
    """Distinct rows (as columns of the result) and how often each occurs.

    Rows are sorted by a hash; only neighbours that are truly equal are merged, so a collision costs nothing but space.
    """
    n, rows = codes.shape
    if rows == 0:
        return codes, np.zeros(0, np.int32)
    keys = np.asarray(np.random.default_rng(0).integers(1, 2**63, size=n, dtype=np.int64), dtype=np.uint64)
    hashed: Words = np.zeros(rows, dtype=np.uint64)
    for i in range(n):
        hashed = (hashed ^ codes[i].astype(np.uint64)) * keys[i]
        hashed ^= hashed >> np.uint64(29)
    order = np.argsort(hashed, kind="stable")
    first = np.zeros(rows, dtype=bool)
    first[0] = True
    for column in codes:
        ordered = column[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    if len(starts) > 0.9 * rows:  # not worth the weights
        return np.ascontiguousarray(codes), np.ones(rows, np.int32)
    weights = np.diff(np.append(starts, rows)).astype(np.int32)
    return np.ascontiguousarray(codes[:, order[starts]]), weights


def prepare_rule(dataset: Dataset, rows: Rows, score: Score, permitted: Allowed) -> Rule:
    """The score in numbers."""
    declared = dataset.arities.astype(float)
    arities = rows.observed.astype(float) if score.name == "bds" else declared
    kind = _KINDS[score.name]
    class_arity, arity_class = np.unique(declared, return_inverse=True) if kind == K2 else (np.ones(1), None)
    return Rule(
        kind=kind,
        ess=score.ess,
        price=_price(score.name, dataset.rows),
        arities=arities,
        declared=declared,
        arity_class=np.zeros(dataset.n, np.int64) if arity_class is None else arity_class.astype(np.int64),
        class_arity=class_arity,
        tolerance=_tolerances(dataset, score, permitted.required),
    )


def prepare_constraints(permitted: Allowed) -> Constraints | None:
    """The prior knowledge in numbers; None if every set is allowed."""
    if not _constrained(permitted):
        return None
    required, allowed = _matrix(permitted.required), _matrix(permitted.allowed)
    return Constraints(
        allowed=allowed | required,
        required=required,
        required_count=required.sum(axis=1).astype(np.int64),
        limits=np.array(permitted.limits, dtype=np.int64),
    )


def _constrained(permitted: Allowed) -> bool:
    n = len(permitted.limits)
    return any(permitted.required) or any(len(a) < n - 1 for a in permitted.allowed) or len(set(permitted.limits)) > 1


def _price(name: str, rows: int) -> float:
    return {"bic": 0.5 * float(np.log(max(rows, 1))), "aic": 1.0}.get(name, 0.0)


def _matrix(parents: Sequence[VertexSet]) -> AnyArray:
    matrix = np.zeros((len(parents), len(parents)), dtype=np.bool_)
    for i, members in enumerate(parents):
        matrix[i, list(members)] = True
    return matrix


def _tolerances(dataset: Dataset, score: Score, required: Sequence[VertexSet]) -> Floats:
    bases = [local_score(dataset, i, required[i], score) for i in range(dataset.n)]
    return np.array([tolerance(base, dataset.rows) for base in bases])
