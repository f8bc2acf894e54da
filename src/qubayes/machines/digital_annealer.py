"""Problems for Fujitsu's Digital Annealer (v3c and v4), and the body of a request: JSON, written as a stream."""

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import IO, Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts, frozen
from ..foundation.errors import FormatError, SettingError
from ..foundation.files import parse_json, shown
from .qubo import Qubo, coupler_chunks, qubo_from_couplers

MAX_BITS = 100_000
LARGEST_COEFFICIENT = float(2**52)
LARGEST_LAMBDA = 10**9

_RANGES = {  # inclusive
    "time_limit_sec": (1, 3600),
    "num_run": (1, 1024),
    "num_group": (1, 16),
    "num_output_solution": (1, 1024),
    "gs_level": (0, 100),
    "gs_cutoff": (0, 1_000_000),
    "penalty_auto_mode": (0, 10_000),
    "penalty_coef": (1, 2**63 - 1),
    "penalty_inc_rate": (100, 200),
}


class Inequalities(NamedTuple):
    """Linear inequalities sum_j weights_j x_indices_j + constant <= 0 of bits, one row each."""

    indptr: Ints  # (rows + 1,)
    indices: SmallInts  # (terms,)
    weights: Floats  # (terms,)
    constants: Floats  # (rows,)
    lambdas: Ints  # (rows,) weight of a violation, 1 to 10^9


@dataclass(frozen=True, slots=True)
class AnnealerProblem:
    """Minimise objective + (coefficient chosen by the machine) x penalty, subject to the inequalities.

    For the paper's constrained form: the score in the objective, the cycles in the penalty, and for
    each vertex the inequality sum of u - 2 <= 0; no z bits (paper, Appendix D.4)."""

    objective: Qubo
    penalty: Qubo
    inequalities: Inequalities
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise for what the machine would refuse."""
        bits, rows = self.objective.bits, self.inequalities
        if self.penalty.bits != bits or len(self.labels) != bits:
            sizes = f"{bits}, {self.penalty.bits}, {len(self.labels)}"
            raise SettingError(
                f"objective, penalty and labels have {sizes} bits; all three must be equal"
            )
        if bits > MAX_BITS:
            raise SettingError(
                f"{bits:,} bits; the Digital Annealer takes at most {MAX_BITS:,}: use fewer candidates"
            )
        count = len(rows.constants)
        if (
            len(rows.indptr) != count + 1
            or len(rows.lambdas) != count
            or len(rows.indices) != len(rows.weights)
        ):
            raise SettingError(
                "the arrays of the inequalities differ in length; give a constant and a lambda for each row "
                "of indptr, and a weight for each index"
            )
        if len(rows.indices) and not 0 <= rows.indices.min() <= rows.indices.max() < bits:
            raise SettingError(f"an inequality names a bit outside 0 to {bits - 1}")
        if count and not 1 <= rows.lambdas.min() <= rows.lambdas.max() <= LARGEST_LAMBDA:
            raise SettingError(f"lambda of an inequality is outside 1 to {LARGEST_LAMBDA:,}")
        for name, part in (("objective", self.objective), ("penalty", self.penalty)):
            _check_coefficients(name, part.h, part.weights, np.array([part.offset]))
        _check_coefficients("inequalities", rows.weights, rows.constants)


@dataclass(frozen=True, slots=True)
class AnnealerParameters:
    """Settings of the machine's search; None: the machine's default. The configurations map a bit to its value."""

    time_limit_sec: int | None = 10
    num_run: int | None = None
    num_group: int | None = None
    num_output_solution: int | None = None
    gs_level: int | None = None
    gs_cutoff: int | None = None
    penalty_auto_mode: int | None = None
    penalty_coef: int | None = None
    penalty_inc_rate: int | None = None
    guidance_config: Mapping[int, bool] | None = None  # where the search starts
    fixed_config: Mapping[int, bool] | None = None  # bits that do not change

    def __post_init__(self) -> None:
        """Raise for values outside the documented ranges."""
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not least <= value <= most):
                raise SettingError(
                    f"{name} = {value!r}; an integer from {least} to {most} is allowed"
                )


def inequalities_of(
    rows: Sequence[tuple[Sequence[int], Sequence[float], float, int]],
) -> Inequalities:
    """Return rows (bits, weights, constant, lambda) as flat arrays."""
    sizes = [len(bits) for bits, _, _, _ in rows]
    return Inequalities(
        frozen(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)),
        frozen(np.array([bit for bits, _, _, _ in rows for bit in bits], np.int32)),
        frozen(np.array([weight for _, weights, _, _ in rows for weight in weights], np.float64)),
        frozen(np.array([constant for _, _, constant, _ in rows], np.float64)),
        frozen(np.array([weight for _, _, _, weight in rows], np.int64)),
    )


def problem_of(qubo: Qubo, labels: Sequence[str] | None = None) -> AnnealerProblem:
    """Return the QUBO as an objective without penalty and inequalities."""
    names = tuple(labels) if labels is not None else tuple(str(i) for i in range(qubo.bits))
    no_penalty = qubo_from_couplers(np.zeros(qubo.bits), [], [], [])
    return AnnealerProblem(qubo, no_penalty, inequalities_of([]), names)


def digital_annealer_json(
    problem: AnnealerProblem, parameters: AnnealerParameters | None = None
) -> Iterator[bytes]:
    """Yield the body of a request in pieces. It has no labels: bit i of the problem is index i.

    Every bit is in a term of `binary_polynomial`, if need be with c = 0.0: the service returns no
    other bits. Streamed, since a body may take gigabytes."""
    given, settings = parameters or AnnealerParameters(), {}
    for field in fields(given):
        value = getattr(given, field.name)
        if isinstance(value, Mapping):
            if not all(0 <= bit < problem.objective.bits for bit in value):
                raise SettingError(
                    f"{field.name} names a bit outside 0 to {problem.objective.bits - 1}"
                )
            value = {str(int(bit)): bool(state) for bit, state in sorted(value.items())}
        if value is not None:
            settings[field.name] = value
    yield f'{{"fujitsuDA3": {json.dumps(settings)},\n"binary_polynomial": {{"terms": [\n'.encode()
    yield from _polynomial(problem.objective, every_bit=True)
    yield b"\n]}"
    if problem.penalty.couplers or problem.penalty.h.any() or problem.penalty.offset:
        yield b',\n"penalty_binary_polynomial": {"terms": [\n'
        yield from _polynomial(problem.penalty, every_bit=False)
        yield b"\n]}"
    yield b',\n"inequalities": ['
    rows = problem.inequalities
    for row, constant in enumerate(rows.constants.tolist()):
        part = slice(*rows.indptr[row : row + 2])
        linear = zip(rows.weights[part].tolist(), rows.indices[part].tolist(), strict=True)
        terms = [*({"c": c, "p": [bit]} for c, bit in linear), {"c": constant, "p": []}]
        inequality = json.dumps({"terms": terms, "lambda": int(rows.lambdas[row])})
        yield (",\n" if row else "\n").encode() + inequality.encode()
    yield b"]}\n"


def read_annealer_json(file: IO[bytes]) -> AnnealerProblem:
    """Return the problem in the body of a request; its bits are called 0..n-1."""
    document = parse_json(file.read(), _TermParser().parse)
    parts = document if isinstance(document, dict) else {}
    objective, penalty = (
        parts.get(key, _Polynomial()) for key in ("binary_polynomial", "penalty_binary_polynomial")
    )
    rows = parts.get("inequalities", [])
    if "binary_polynomial" not in parts:
        raise FormatError("not a request of the Digital Annealer: binary_polynomial is missing")
    if not isinstance(rows, list) or not all(
        isinstance(part, _Polynomial) for part in (objective, penalty, *rows)
    ):
        raise FormatError('a polynomial or an inequality is not {"terms": [...]}')
    if objective.weight is not None or penalty.weight is not None:
        raise FormatError("a polynomial with lambda; only inequalities have one")
    bits = 1 + max(int(part.bits.max(initial=-1)) for part in (objective, penalty, *rows))
    inequalities = inequalities_of([part.inequality() for part in rows])
    return AnnealerProblem(
        objective.qubo(bits), penalty.qubo(bits), inequalities, tuple(map(str, range(bits)))
    )


class _Polynomial(NamedTuple):
    """Terms weights_k x_bits_k0 x_bits_k1 of an object {"terms": [...]}."""

    # (terms, 2) equal in a linear term, -1 in a constant
    bits: AnyArray = np.empty((0, 2), np.int32)
    weights: AnyArray = np.empty(0)  # (terms,)
    weight: int | None = None  # lambda of an inequality

    def qubo(self, bits: int) -> Qubo:
        """Return the sum of the terms over this many bits."""
        constant = self.bits[:, 0] < 0
        first, second = self.bits[~constant].T
        offset = sum(self.weights[constant].tolist(), 0.0)
        return qubo_from_couplers(np.zeros(bits), first, second, self.weights[~constant], offset)

    def inequality(self) -> tuple[list[int], list[float], float, int]:
        """Return (bits, weights, constant, lambda) of linear terms."""
        if (self.bits[:, 0] != self.bits[:, 1]).any():
            raise FormatError("an inequality with a quadratic term; only linear ones are allowed")
        constant = self.bits[:, 0] < 0
        linear = self.bits[~constant, 0].tolist(), self.weights[~constant].tolist()
        return (
            *linear,
            sum(self.weights[constant].tolist(), 0.0),
            1 if self.weight is None else self.weight,
        )


_TERM = object()  # stands for a term that was moved to the arrays


class _TermParser:
    """Turns the objects of a request into arrays while json reads them: 24 bytes a term, not 400 for its dictionary.

    json parses inner objects first: the terms of an object {"terms": [...]} are the last that were
    parsed."""

    def __init__(self) -> None:
        self._bits, self._weights = array("i"), array("d")

    def parse(self, pairs: list[tuple[str, Any]]) -> Any:
        """Return `_TERM` for a term, a `_Polynomial` for a list of terms, a dictionary for another object."""
        value = dict(pairs)
        if len(value) != len(pairs):
            raise FormatError(f"{shown([key for key, _ in pairs], 60)}: a key twice")
        if value.keys() == {"c", "p"}:
            c, p = value["c"], value["p"]
            if type(c) not in (int, float) or not abs(c) <= LARGEST_COEFFICIENT:
                raise FormatError(
                    f"the coefficient {shown(c, 40)}; a number of at most 2^52 is allowed"
                )
            if (
                not isinstance(p, list)
                or len(p) > 2
                or not all(type(bit) is int and 0 <= bit < MAX_BITS for bit in p)
            ):
                raise FormatError(
                    f"the term of {shown(p, 60)} is not of at most two bits from 0 to {MAX_BITS - 1}"
                )
            self._bits.extend((p[0], p[-1]) if p else (-1, -1))
            self._weights.append(c)
            return _TERM
        if "terms" not in value:
            return value
        terms, weight = value["terms"], value.get("lambda")
        if (
            not value.keys() <= {"terms", "lambda"}
            or not isinstance(terms, list)
            or any(t is not _TERM for t in terms)
        ):
            raise FormatError(
                f'{shown(list(value), 60)}; give {{"terms": [{{"c": number, "p": [bits]}}, ...]}}'
            )
        if weight is not None and (type(weight) is not int or not 1 <= weight <= LARGEST_LAMBDA):
            raise FormatError(
                f"lambda {shown(weight, 40)}; an integer from 1 to {LARGEST_LAMBDA:,} is allowed"
            )
        first = len(self._weights) - len(terms)
        bits, weights = np.array(self._bits[2 * first :], np.int32), np.array(self._weights[first:])
        del self._bits[2 * first :], self._weights[first:]
        return _Polynomial(bits.reshape(-1, 2), weights, weight)


def _check_coefficients(name: str, *coefficients: AnyArray) -> None:
    for values in coefficients:
        largest = float(np.abs(values).max(initial=0.0))
        if not largest <= LARGEST_COEFFICIENT:  # also refuses NaN
            raise SettingError(
                f"a coefficient {largest!r} in the {name}; at most 2^52 is allowed: scale the scores"
            )


def _polynomial(qubo: Qubo, *, every_bit: bool) -> Iterator[bytes]:
    """Yield the terms, joined by commas: couplers, linear terms, the constant."""
    linear = qubo.h != 0
    if every_bit:
        linear |= np.diff(qubo.indptr) == 0
    bits = np.flatnonzero(linear)
    pieces = chain(
        (_terms(weights, rows, cols) for rows, cols, weights in coupler_chunks(qubo) if len(rows)),
        (_terms(qubo.h[bits], bits) for _ in range(1) if len(bits)),
        (f'{{"c":{qubo.offset!r},"p":[]}}'.encode() for _ in range(1) if qubo.offset),
    )
    for count, piece in enumerate(pieces):
        yield (b",\n" if count else b"") + piece


def _terms(coefficients: AnyArray, *indices: AnyArray) -> bytes:
    """Return `{"c":w,"p":[i,j]}` of each row, joined by commas; the shortest digits that come back bit for bit."""
    try:
        import polars as pl
    except ImportError:  # 10 times slower
        rows = zip(coefficients.tolist(), *(array.tolist() for array in indices), strict=True)
        return ",\n".join(f'{{"c":{c!r},"p":[{",".join(map(str, p))}]}}' for c, *p in rows).encode(
            "ascii"
        )
    columns = {"c": coefficients} | {str(k): array for k, array in enumerate(indices)}
    parts = [pl.lit('{"c":'), pl.col("c"), pl.lit(',"p":['), pl.col("0")]
    parts += [part for k in range(1, len(indices)) for part in (pl.lit(","), pl.col(str(k)))]
    lines = pl.DataFrame(columns).select(pl.concat_str([*parts, pl.lit("]}")]))
    return lines.write_csv(include_header=False, quote_style="never", line_terminator=",\n").encode(
        "ascii"
    )[:-2]
