"""Problems for Fujitsu's Digital Annealer (v3c and v4): the body of a request, written and read as a stream."""

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import IO, Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts, frozen
from ..foundation.errors import FormatError, SettingError
from ..foundation.files import shown
from .json_stream import JsonStream
from .qubo import Qubo, qubo_from_couplers
from .terms import coupler_chunks

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
    """minimise objective + (coefficient chosen by the machine) x penalty, subject to the inequalities.

    For the paper's constrained form: the score in the objective, the cycles in the penalty, and for each vertex
    the inequality sum of u - 2 <= 0; no z bits (Appendix D.4).
    """

    objective: Qubo
    penalty: Qubo
    inequalities: Inequalities
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what the machine would refuse."""
        _check_problem(self)


@dataclass(frozen=True, slots=True)
class AnnealerParameters:
    """Settings of the machine's search; None leaves its default. The configurations map a bit to its value."""

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
        """Refuse values outside the documented ranges."""
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not least <= value <= most):
                raise SettingError(f"{name} = {value!r}; an integer from {least} to {most} is allowed")


def no_inequalities() -> Inequalities:
    """Inequalities without a row."""
    return inequalities_of([])


def inequalities_of(rows: Sequence[tuple[Sequence[int], Sequence[float], float, int]]) -> Inequalities:
    """Rows (bits, weights, constant, lambda) as flat arrays."""
    sizes = [len(bits) for bits, _, _, _ in rows]
    return Inequalities(
        frozen(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)),
        frozen(np.array([bit for bits, _, _, _ in rows for bit in bits], np.int32)),
        frozen(np.array([weight for _, weights, _, _ in rows for weight in weights], np.float64)),
        frozen(np.array([constant for _, _, constant, _ in rows], np.float64)),
        frozen(np.array([weight for _, _, _, weight in rows], np.int64)),
    )


def problem_of(qubo: Qubo, labels: Sequence[str] | None = None) -> AnnealerProblem:
    """The QUBO as an objective without penalty and inequalities."""
    names = tuple(labels) if labels is not None else tuple(str(i) for i in range(qubo.bits))
    return AnnealerProblem(qubo, _empty(qubo.bits), no_inequalities(), names)


def digital_annealer_json(problem: AnnealerProblem, parameters: AnnealerParameters | None = None) -> Iterator[bytes]:
    """The body of a request, in pieces. Labels have no place in it: bit i of the problem is index i.

    Every bit stands in some term of `binary_polynomial`, with c = 0.0 if need be: others would not come back.
    """
    settings = json.dumps(_settings(parameters or AnnealerParameters(), problem.objective.bits))
    yield f'{{"fujitsuDA3": {settings},\n"binary_polynomial": {{"terms": [\n'.encode()
    yield from _polynomial(problem.objective, every_bit=True)
    yield b"\n]}"
    if problem.penalty.couplers or problem.penalty.h.any() or problem.penalty.offset:
        yield b',\n"penalty_binary_polynomial": {"terms": [\n'
        yield from _polynomial(problem.penalty, every_bit=False)
        yield b"\n]}"
    yield b',\n"inequalities": ['
    for row in range(len(problem.inequalities.constants)):
        yield (",\n" if row else "\n").encode() + _inequality(problem.inequalities, row)
    yield b"]}\n"


def write_annealer_json(
    problem: AnnealerProblem, file: IO[bytes], parameters: AnnealerParameters | None = None
) -> None:
    """Write the body of a request."""
    for piece in digital_annealer_json(problem, parameters):
        file.write(piece)


def read_annealer_json(file: IO[bytes]) -> AnnealerProblem:
    """The problem in the body of a request; its bits are called 0..n-1."""
    stream = JsonStream(file)
    polynomials = {name: _Polynomial() for name in ("binary_polynomial", "penalty_binary_polynomial")}
    rows: list[tuple[list[int], list[float], float, int]] = []
    seen = set()
    for key in stream.members():
        if key in seen:
            raise FormatError(f"{key[:40]!r} stands twice")
        seen.add(key)
        if key in polynomials:
            for _ in (member for member in stream.members() if _only(member, "terms")):
                for term in stream.items():
                    polynomials[key].add(*_term(term))
        elif key == "inequalities":
            rows.extend(_row(inequality) for inequality in stream.items())
        else:
            stream.value()
    stream.end()
    if "binary_polynomial" not in seen:
        raise FormatError("no request of the Digital Annealer: binary_polynomial is missing")
    bits = 1 + max(chain((p.largest for p in polynomials.values()), (max(r[0], default=-1) for r in rows)))
    objective, penalty = (polynomial.qubo(bits) for polynomial in polynomials.values())
    return AnnealerProblem(objective, penalty, inequalities_of(rows), tuple(str(i) for i in range(bits)))


def _empty(bits: int) -> Qubo:
    return qubo_from_couplers(np.zeros(bits), *(np.empty(0, np.int32),) * 2, np.empty(0))


def _check_problem(problem: AnnealerProblem) -> None:
    bits = problem.objective.bits
    rows = problem.inequalities
    if problem.penalty.bits != bits or len(problem.labels) != bits:
        raise SettingError(
            f"objective, penalty and labels have {bits}, {problem.penalty.bits}, {len(problem.labels)} bits"
        )
    if bits > MAX_BITS:
        raise SettingError(f"{bits:,} bits; the Digital Annealer takes at most {MAX_BITS:,}: use fewer candidate sets")
    count = len(rows.constants)
    if len(rows.indptr) != count + 1 or len(rows.lambdas) != count or len(rows.indices) != len(rows.weights):
        raise SettingError("the arrays of the inequalities do not fit each other")
    if len(rows.indices) and not 0 <= rows.indices.min() <= rows.indices.max() < bits:
        raise SettingError(f"an inequality names a bit outside 0 to {bits - 1}")
    if count and not 1 <= rows.lambdas.min() <= rows.lambdas.max() <= LARGEST_LAMBDA:
        raise SettingError(f"lambda of an inequality is outside 1 to {LARGEST_LAMBDA:,}")
    for name, part in (("objective", problem.objective), ("penalty", problem.penalty)):
        _check_size(name, part.h, part.weights, np.array([part.offset]))
    _check_size("inequalities", rows.weights, rows.constants)


def _check_size(name: str, *coefficients: AnyArray) -> None:
    for values in coefficients:
        largest = float(np.abs(values).max(initial=0.0))
        if not largest <= LARGEST_COEFFICIENT:  # also refuses what is not a number
            raise SettingError(f"a coefficient {largest!r} in the {name}; at most 2^52 is allowed: scale the scores")


def _settings(parameters: AnnealerParameters, bits: int) -> dict[str, Any]:
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


def _polynomial(qubo: Qubo, *, every_bit: bool) -> Iterator[bytes]:
    """The terms, joined by commas: couplers, linear terms, the constant."""
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
    """`{"c":w,"p":[i,j]}` of each row, joined by commas, with the shortest digits that come back bit for bit."""
    import polars as pl

    columns = {"c": coefficients} | {str(k): array for k, array in enumerate(indices)}
    parts = [pl.lit('{"c":'), pl.col("c"), pl.lit(',"p":['), pl.col("0")]
    parts += [part for k in range(1, len(indices)) for part in (pl.lit(","), pl.col(str(k)))]
    lines = pl.DataFrame(columns).select(pl.concat_str([*parts, pl.lit("]}")]))
    return lines.write_csv(include_header=False, quote_style="never", line_terminator=",\n").encode("ascii")[:-2]


def _inequality(rows: Inequalities, row: int) -> bytes:
    part = slice(*rows.indptr[row : row + 2])
    terms = [{"c": c, "p": [p]} for c, p in zip(rows.weights[part].tolist(), rows.indices[part].tolist(), strict=True)]
    terms.append({"c": float(rows.constants[row]), "p": []})
    return json.dumps({"terms": terms, "lambda": int(rows.lambdas[row])}).encode()


class _Polynomial:
    """Terms as they come, then a QUBO."""

    def __init__(self) -> None:
        self._i, self._j, self._w = array("i"), array("i"), array("d")
        self._offset = 0.0

    def add(self, coefficient: float, bits: list[int]) -> None:
        """One term of degree 0, 1 or 2."""
        if not bits:
            self._offset += coefficient
            return
        self._i.append(bits[0])
        self._j.append(bits[-1])
        self._w.append(coefficient)

    @property
    def largest(self) -> int:
        """The largest bit in a term; -1 if there is none."""
        return int(max(np.array(part).max(initial=-1) for part in (self._i, self._j)))

    def qubo(self, bits: int) -> Qubo:
        """The sum of the terms over so many bits."""
        i, j, w = np.array(self._i, np.int32), np.array(self._j, np.int32), np.array(self._w)
        h = np.zeros(bits)
        linear = i == j
        np.add.at(h, i[linear], w[linear])
        return qubo_from_couplers(h, i[~linear], j[~linear], w[~linear], self._offset)


def _only(member: str, allowed: str) -> bool:
    if member != allowed:
        raise FormatError(f"{member[:40]!r} where only {allowed!r} is allowed")
    return True


def _term(term: Any) -> tuple[float, list[int]]:
    """(coefficient, bits) of one term, checked."""
    if not isinstance(term, dict) or term.keys() != {"c", "p"}:
        raise FormatError(f'{shown(term, 60)} is no term {{"c": number, "p": [bits]}}')
    c, p = term["c"], term["p"]
    if type(c) not in (int, float) or not abs(c) <= LARGEST_COEFFICIENT:
        raise FormatError(f"the coefficient {shown(c, 40)} is no number of at most 2^52")
    if not isinstance(p, list) or len(p) > 2 or not all(type(bit) is int and 0 <= bit < MAX_BITS for bit in p):
        raise FormatError(f"the term of {shown(p, 60)} is not of at most two bits from 0 to {MAX_BITS - 1}")
    return float(c), p


def _row(inequality: Any) -> tuple[list[int], list[float], float, int]:
    """(bits, weights, constant, lambda) of one inequality, checked."""
    if not isinstance(inequality, dict) or not isinstance(inequality.get("terms"), list):
        raise FormatError("an inequality without a list of terms")
    weight = inequality.get("lambda", 1)
    if type(weight) is not int or not 1 <= weight <= LARGEST_LAMBDA:
        raise FormatError(f"lambda {shown(weight, 40)} of an inequality is no integer from 1 to {LARGEST_LAMBDA:,}")
    terms = [_term(term) for term in inequality["terms"]]
    if any(len(bits) > 1 for _, bits in terms):
        raise FormatError("an inequality with a quadratic term; only linear ones are allowed")
    linear = [(bits[0], c) for c, bits in terms if bits]
    constant = sum((c for c, bits in terms if not bits), 0.0)
    return [bit for bit, _ in linear], [c for _, c in linear], constant, weight
