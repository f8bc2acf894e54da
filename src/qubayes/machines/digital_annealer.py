"""Problems for Fujitsu's Digital Annealer (v3c and v4), and requests as a stream of JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts, frozen
from ..foundation.errors import SettingError
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

    def check(self, bits: int) -> None:
        """Raise unless the rows are well-formed and name only these bits."""
        count = len(self.constants)
        ends = len(self.indptr) == count + 1 and len(self.lambdas) == count
        if not ends or len(self.indices) != len(self.weights):
            raise SettingError(
                "the arrays of the inequalities differ in length; give a constant and a lambda for "
                "each row of indptr, and a weight for each index"
            )
        if len(self.indices) and not 0 <= self.indices.min() <= self.indices.max() < bits:
            raise SettingError(f"an inequality names a bit outside 0 to {bits - 1}")
        if count and not 1 <= self.lambdas.min() <= self.lambdas.max() <= LARGEST_LAMBDA:
            raise SettingError(f"lambda of an inequality is outside 1 to {LARGEST_LAMBDA:,}")
        _check_coefficients("inequalities", self.weights, self.constants)


@dataclass(frozen=True, slots=True)
class AnnealerProblem:
    """Minimise objective + coefficient x penalty, subject to the inequalities.

    The machine chooses the coefficient.

    For the paper's constrained form: the score in the objective, the cycles in the penalty, and for
    each vertex the inequality sum of u - 2 <= 0; no z bits (paper, Appendix D.4)."""

    objective: Qubo
    penalty: Qubo
    inequalities: Inequalities
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise for what the machine would refuse."""
        bits = self.objective.bits
        if self.penalty.bits != bits or len(self.labels) != bits:
            sizes = f"{bits}, {self.penalty.bits}, {len(self.labels)}"
            raise SettingError(
                f"objective, penalty and labels have {sizes} bits; all three must be equal"
            )
        if bits > MAX_BITS:
            raise SettingError(
                f"{bits:,} bits; the Digital Annealer takes at most {MAX_BITS:,}: "
                "use fewer candidates"
            )
        self.inequalities.check(bits)
        for name, part in (("objective", self.objective), ("penalty", self.penalty)):
            _check_coefficients(name, part.h, part.weights, np.array([part.offset]))


@dataclass(frozen=True, slots=True)
class AnnealerParameters:
    """Settings of the machine's search; None: the machine's default.

    The configurations map a bit to its value."""

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
    sizes = [len(bits) for bits, *_ in rows]
    indices = list(chain.from_iterable(bits for bits, *_ in rows))
    weights = list(chain.from_iterable(weights for _, weights, *_ in rows))
    return Inequalities(
        frozen(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)),
        frozen(np.array(indices, np.int32)),
        frozen(np.array(weights, np.float64)),
        frozen(np.array([constant for *_, constant, _ in rows], np.float64)),
        frozen(np.array([violation for *_, violation in rows], np.int64)),
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
    settings = _settings_of(parameters or AnnealerParameters(), problem.objective.bits)
    yield f'{{"fujitsuDA3": {json.dumps(settings)},\n"binary_polynomial": {{"terms": [\n'.encode()
    yield from _polynomial(problem.objective, every_bit=True)
    yield b"\n]}"
    if problem.penalty.couplers or problem.penalty.h.any() or problem.penalty.offset:
        yield b',\n"penalty_binary_polynomial": {"terms": [\n'
        yield from _polynomial(problem.penalty, every_bit=False)
        yield b"\n]}"
    yield b',\n"inequalities": ['
    yield from _inequalities(problem.inequalities)
    yield b"]}\n"


def _inequalities(rows: Inequalities) -> Iterator[bytes]:
    """Yield each inequality on a line of its own, with commas between them."""
    for row, constant in enumerate(rows.constants.tolist()):
        part = slice(*rows.indptr[row : row + 2])
        linear = zip(rows.weights[part].tolist(), rows.indices[part].tolist(), strict=True)
        terms = [{"c": weight, "p": [bit]} for weight, bit in linear]
        terms.append({"c": constant, "p": []})
        inequality = json.dumps({"terms": terms, "lambda": int(rows.lambdas[row])})
        yield (",\n" if row else "\n").encode() + inequality.encode()


def _settings_of(parameters: AnnealerParameters, bits: int) -> dict[str, Any]:
    """Return the parameters that are given, as JSON has them; raise if one names another bit."""
    settings: dict[str, Any] = {}
    for field in fields(parameters):
        value = getattr(parameters, field.name)
        if isinstance(value, Mapping):
            if not all(0 <= bit < bits for bit in value):
                raise SettingError(f"{field.name} names a bit outside 0 to {bits - 1}")
            value = {str(int(bit)): bool(state) for bit, state in sorted(value.items())}
        if value is not None:
            settings[field.name] = value
    return settings


def _check_coefficients(name: str, *coefficients: AnyArray) -> None:
    for values in coefficients:
        largest = float(np.abs(values).max(initial=0.0))
        if not largest <= LARGEST_COEFFICIENT:  # also refuses NaN
            raise SettingError(
                f"a coefficient {largest!r} in the {name}; at most 2^52 is allowed: scale the "
                "scores"
            )


def _polynomial(qubo: Qubo, *, every_bit: bool) -> Iterator[bytes]:
    """Yield the terms, joined by commas: couplers, linear terms, the constant."""
    linear = qubo.h != 0
    if every_bit:
        linear |= np.diff(qubo.indptr) == 0
    bits = np.flatnonzero(linear)
    comma = b""
    for rows, cols, weights in coupler_chunks(qubo):
        if len(rows):
            yield comma + _terms(weights, rows, cols)
            comma = b",\n"
    if len(bits):
        yield comma + _terms(qubo.h[bits], bits)
        comma = b",\n"
    if qubo.offset:
        yield comma + f'{{"c":{qubo.offset!r},"p":[]}}'.encode()


def _terms(coefficients: AnyArray, *indices: AnyArray) -> bytes:
    """Return `{"c":w,"p":[i,j]}` of each row, joined by commas.

    Weights have the shortest digits that come back bit for bit. polars is 10 times as fast."""
    try:
        import polars as pl
    except ImportError:
        columns = [array.tolist() for array in indices]
        bits = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
        rows = zip(coefficients.tolist(), bits, strict=True)
        return ",\n".join(f'{{"c":{c!r},"p":[{p}]}}' for c, p in rows).encode("ascii")
    parts = [pl.lit('{"c":'), pl.col("c"), pl.lit(',"p":[')]
    for k in range(len(indices)):
        parts += [pl.lit(","), pl.col(str(k))] if k else [pl.col("0")]
    frame = pl.DataFrame({"c": coefficients} | {str(k): array for k, array in enumerate(indices)})
    lines = frame.select(pl.concat_str([*parts, pl.lit("]}")]))
    text = lines.write_csv(include_header=False, quote_style="never", line_terminator=",\n")
    return text.removesuffix(",\n").encode("ascii")
