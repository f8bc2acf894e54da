"""Formats that know constraints: dimod's `.cqm` and the LP format of the solvers (`.lp`)."""

import shutil
import struct
import tempfile
import zipfile
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.errors import FormatError
from .binary_files import check_archive
from .lp_files import read_lp, unconstrained_terms, write_lp, write_lp_qubo
from .qubo import Qubo, from_bqm, to_bqm
from .terms import MAX_BITS, parsed_json, qubo_of, read_exactly

if TYPE_CHECKING:
    from dimod import ConstrainedQuadraticModel

_VARIABLE = np.dtype([("vartype", "i1"), ("lower", "<f8"), ("upper", "<f8")])
_PAIR = np.dtype([("u", "<i4"), ("v", "<i4"), ("bias", "<f8")])


def write_qubo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes], kind: str) -> None:
    """Write the QUBO as a model without constraints. `.cqm` is not streamed: dimod must hold it."""
    from dimod import ConstrainedQuadraticModel

    if kind == ".lp":
        write_lp_qubo(qubo, labels, file)
    else:
        write_constrained(ConstrainedQuadraticModel.from_bqm(to_bqm(qubo, labels)), file, kind)


def write_constrained(model: "ConstrainedQuadraticModel", file: IO[bytes], kind: str) -> None:
    """Write a constrained model."""
    if kind == ".lp":
        write_lp(model, file)
        return
    for label in model.constraints:
        if isinstance(label, str) and "/" in label:
            raise FormatError(f"the constraint {label!r} has a / in its name, which dimod cannot read back; rename it")
    with model.to_file() as whole:
        shutil.copyfileobj(whole, file)


def read_constrained(file: IO[bytes], kind: str) -> "ConstrainedQuadraticModel":
    """The constrained model in the file."""
    return read_lp(file) if kind == ".lp" else _read_cqm(file)


def read_unconstrained(file: IO[bytes], kind: str) -> tuple[Qubo, tuple[str, ...]]:
    """(QUBO, labels) in the file; an error if it has constraints or variables that are no bits."""
    if kind == ".lp":
        return qubo_of(unconstrained_terms(file))
    from dimod import BinaryQuadraticModel, Vartype

    model = _read_cqm(file)
    if model.constraints or any(model.vartype(v) is not Vartype.BINARY for v in model.variables):
        raise FormatError("the model has constraints, or variables that are no bits; read it with read_model")
    bqm = BinaryQuadraticModel(Vartype.BINARY)
    bqm.add_linear_from((v, model.objective.get_linear(v)) for v in model.variables)
    bqm.add_quadratic_from(model.objective.iter_quadratic())
    bqm.offset = model.objective.offset
    return from_bqm(bqm)


def _read_cqm(file: IO[bytes]) -> "ConstrainedQuadraticModel":
    """dimod's own reader on bytes that were looked through first: it trusts the numbers in the file."""
    from dimod import ConstrainedQuadraticModel

    with tempfile.SpooledTemporaryFile(max_size=1 << 28) as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        try:
            _look_through(copy)
            copy.seek(0)
            return ConstrainedQuadraticModel.from_file(copy)  # type: ignore[arg-type]
        except FormatError:
            raise
        except Exception as error:  # dimod lets through whatever its parts raise
            raise FormatError(f"a damaged .cqm file: {type(error).__name__}: {error}") from error


def _look_through(file: IO[bytes]) -> None:
    """An error where dimod would read past the end of its arrays."""
    if read_exactly(file, 10, "header") != b"DIMODCQM\x02\x00":
        raise FormatError("no .cqm file of version 2.0")
    variables = _header(file).get("num_variables")
    if type(variables) is not int or not 0 <= variables <= MAX_BITS:
        raise FormatError("no number of variables in the header of the .cqm file")
    with zipfile.ZipFile(file) as archive:
        check_archive(archive, file)
        damaged = archive.testzip()
        if damaged is not None:
            raise FormatError(f"the part {damaged[:40]!r} of the .cqm file is damaged")
        with archive.open("varinfo") as part:
            _section(part, b"VTYP", 4, _VARIABLE, variables)
        for name in archive.namelist():
            if name == "objective" or name.endswith("/lhs"):
                with archive.open(name) as part:
                    _look_through_expression(part, variables)


def _look_through_expression(part: IO[bytes], variables: int) -> None:
    if read_exactly(part, 11, "expression")[:9] != b"DIMODEXPR":
        raise FormatError("a part of the .cqm file is no expression")
    header = _header(part)
    shape = header.get("shape")
    if (header.get("dtype"), header.get("itype")) != ("float64", "int32") or not isinstance(shape, list):
        raise FormatError("an expression of the .cqm file with an unknown header")
    if len(shape) != 2 or not all(type(size) is int and 0 <= size <= 2**40 for size in shape):
        raise FormatError("an expression of the .cqm file with an impossible shape")
    indices = _section(part, b"INDX", 4, np.dtype("<i4"), shape[0])
    _section(part, b"OFFS", 4, np.dtype("<f8"), 1)
    _section(part, b"LINB", 4, np.dtype("<f8"), shape[0])
    pairs = _section(part, b"QUAD", 8, _PAIR, shape[1])
    if len(indices) and not (indices.min() >= 0 and indices.max() < variables):
        raise FormatError("an expression of the .cqm file names a variable that the model lacks")
    first, second = pairs["u"].astype(np.int64), pairs["v"].astype(np.int64)
    places = first * max(shape[0], 1) + second
    inside = (second >= 0).all() and (second <= first).all() and (first < shape[0]).all()
    if len(set(indices.tolist())) != len(indices) or not inside or not (np.diff(places) > 0).all():
        raise FormatError("an expression of the .cqm file is not in order")


def _header(file: IO[bytes]) -> dict[str, Any]:
    (length,) = struct.unpack("<I", read_exactly(file, 4, "header"))
    header = parsed_json(read_exactly(file, length, "header"), "header of the .cqm file")
    if not isinstance(header, dict):
        raise FormatError("the header of the .cqm file is no object")
    return header


def _section(part: IO[bytes], magic: bytes, width: int, dtype: np.dtype[Any], count: int) -> AnyArray:
    """The `count` numbers of a section; an error if it is shorter."""
    if read_exactly(part, 4, "section") != magic:
        raise FormatError(f"no section {magic.decode()} in the .cqm file")
    length = int.from_bytes(read_exactly(part, width, "section"), "little")
    if length < count * dtype.itemsize:
        raise FormatError(f"the section {magic.decode()} of the .cqm file is too short")
    data = read_exactly(part, length, "section")
    return np.frombuffer(data[: count * dtype.itemsize], dtype)
