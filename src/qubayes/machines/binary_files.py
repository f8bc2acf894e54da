"""Binary formats: dimod's `.bqm` and `.cqm`, and the `.npz` of scipy.sparse. Lossless.

`.bqm` is written and read here. Its arrays are those of a `Qubo`: writing streams them without a
`BinaryQuadraticModel`, which takes 74 bytes a coupler. `BinaryQuadraticModel.from_file` crashes the
interpreter on damaged files, and takes twice as long. `.cqm` is read by dimod once its sections
were checked: dimod trusts the sizes and indices in the file."""

import copy
import json
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Hashable, Sequence
from typing import IO, Any

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Ints
from ..foundation.environment import dimod
from ..foundation.errors import FormatError
from ..foundation.files import check_archive, json_object, parse_json, shown
from .qubo import MOST_BITS_OF_FILE, ModelTerms, Qubo, check_size, to_bqm, upper_triangle

_ALIGNMENT = 64  # bytes, of the sections of dimod's files


def write_bqm(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write dimod's version 2.0: header, offset, (start, h) of each bit, (j, J_ij) of both triangles, labels."""
    if len(qubo.indices) > np.iinfo(np.int32).max:
        raise FormatError(
            f"{qubo.couplers:,} couplers; a .bqm file holds at most 2^30: write an .npz file"
        )
    header = {
        "shape": [qubo.bits, qubo.couplers],
        "dtype": "float64",
        "itype": "int32",
        "ntype": "int32",
        "vartype": "BINARY",
        "type": "BinaryQuadraticModel",
        "variables": labels is not None,
    }
    file.write(
        _padded(b"DIMODBQM\x02\x00", json.dumps(header, sort_keys=True).encode("ascii") + b"\n")
    )
    file.write(struct.pack("<d", qubo.offset))
    file.write(_interleaved(qubo.indptr[:-1], qubo.h))
    for start in range(0, len(qubo.indices), 1 << 20):
        part = slice(start, start + (1 << 20))
        file.write(_interleaved(qubo.indices[part], qubo.weights[part]))
    if labels is not None:
        file.write(_padded(b"VARS", json.dumps(list(labels)).encode("ascii")))


def read_bqm(file: IO[bytes]) -> ModelTerms:
    """Return the terms of a file of dimod's version 1.0 or 2.0, in its vartype and precision."""
    if file.read(8) != b"DIMODBQM":
        raise FormatError("not a .bqm file: it does not begin with DIMODBQM")
    version = tuple(_read_exactly(file, 2, "header"))
    if version not in {(1, 0), (2, 0)}:
        raise FormatError(
            f"version {version[0]}.{version[1]} of the .bqm format; 1.0 and 2.0 can be read"
        )
    header = _json_header(file)
    allowed = {
        "dtype": ("float64", "float32"),
        "itype": ("int32", "int64"),
        "ntype": ("int32", "int64"),
    }
    for key, values in (allowed | {"vartype": ("BINARY", "SPIN")}).items():
        if header.get(key) not in values:
            raise FormatError(
                f"{key} in the header of the .bqm file is not one of {', '.join(values)}"
            )
    shape = header.get("shape")
    if not (
        isinstance(shape, list) and len(shape) == 2 and all(type(size) is int for size in shape)
    ):
        raise FormatError("shape in the header of the .bqm file is not [bits, couplers]")
    bits, couplers = shape
    check_size(bits)
    if not 0 <= couplers <= bits * (bits - 1) // 2 or "variables" not in header:
        raise FormatError(
            f"the header of the .bqm file has {couplers} couplers of {bits} bits, or no `variables`"
        )
    value, index, start = (
        np.dtype(header[key]).newbyteorder("<") for key in ("dtype", "itype", "ntype")
    )
    offset = float(np.frombuffer(_read_exactly(file, value.itemsize, "offset"), value)[0])
    linear, edges = _records(file, bits, start, value), _records(file, 2 * couplers, index, value)
    starts = np.append(linear["i"].astype(np.int64), 2 * couplers)
    if starts[0] != 0 or (np.diff(starts) < 0).any():
        raise FormatError("the rows of the couplers do not follow each other")
    rows = np.repeat(np.arange(bits), np.diff(starts))
    lower = edges["i"] < rows
    _check_mirrored(rows, edges, lower, bits)
    labels = _bqm_labels(file, version, header["variables"])
    h, weights = np.ascontiguousarray(linear["w"]), np.ascontiguousarray(edges["w"][lower])
    return ModelTerms(
        h, rows[lower], edges["i"][lower], weights, offset, labels, header["vartype"]
    ).checked()


def _check_mirrored(rows: Ints, edges: AnyArray, lower: Bools, bits: int) -> None:
    """Raise unless every coupler of the lower triangle is in the upper one, with the same weight, and vice versa."""
    upper = edges["i"] > rows
    below = rows[lower] * bits + edges["i"][lower]
    above = edges["i"][upper].astype(np.int64) * bits + rows[upper]
    first = np.argsort(below, kind="stable")
    second = np.argsort(above, kind="stable")
    weights, mirrored = edges["w"][lower][first], edges["w"][upper][second]
    same = len(below) + len(above) == len(edges) and np.array_equal(below[first], above[second])
    if not (same and np.array_equal(weights, mirrored, equal_nan=True)):
        raise FormatError(
            "the two triangles of the couplers do not mirror each other; write the model again"
        )


def _records(file: IO[bytes], count: int, index: np.dtype[Any], value: np.dtype[Any]) -> AnyArray:
    dtype = np.dtype([("i", index), ("w", value)])
    return np.frombuffer(_read_exactly(file, count * dtype.itemsize, "coefficients"), dtype)


def _bqm_labels(
    file: IO[bytes], version: tuple[int, ...], variables: object
) -> list[Hashable] | None:
    """Return the labels of the header (1.0) or of their section (2.0), lists as tuples; None if there are none."""
    if version == (2, 0):
        if not variables:
            return None
        if _read_exactly(file, 4, "labels") != b"VARS":
            raise FormatError("no labels where the header of the .bqm file promises them")
        (length,) = struct.unpack("<I", _read_exactly(file, 4, "labels"))
        variables = parse_json(_read_exactly(file, length, "labels"))

    def hashable(label: object) -> Hashable:
        if isinstance(label, list):
            return tuple(hashable(part) for part in label)
        if isinstance(label, str | int | float):
            return label
        raise FormatError(
            f"the label {shown(label, 40)}; text, numbers and lists of them are allowed"
        )

    if not isinstance(variables, list):
        raise FormatError("the labels of the .bqm file are not a list")
    return [hashable(label) for label in variables]


def write_npz(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write an upper triangular Q with x'Qx + offset = E(x) for `scipy.sparse.load_npz`, with offset and labels.

    `scipy.sparse.save_npz` stamps the archive with the time and drops what it does not know.
    """
    rows, cols, weights = upper_triangle(qubo)
    bits = np.arange(qubo.bits)
    places = np.searchsorted(rows, bits)  # each row begins with its diagonal
    size = qubo.bits + len(rows)
    index = np.int32 if size <= np.iinfo(np.int32).max else np.int64
    arrays = {
        "format": np.array(b"csr"),
        "shape": np.array([qubo.bits] * 2),
        "offset": np.array(qubo.offset),
    }
    if labels is not None:  # as JSON: numpy's text arrays drop trailing zero bytes
        arrays["labels"] = np.frombuffer(json.dumps(list(labels)).encode("ascii"), np.uint8)
    arrays["indptr"] = np.append(places + bits, size).astype(index)
    arrays["indices"] = np.insert(cols, places, bits).astype(index)
    arrays["data"] = np.insert(weights, places, qubo.h)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_npz(file: IO[bytes]) -> ModelTerms:
    """Return the terms of x'Qx for a square matrix of scipy.sparse, with our offset and labels if present.

    numpy reads the arrays: the compiled code of scipy.sparse trusts their sizes and indices.
    """
    names = "format", "shape", "data", "indptr", "indices", "row", "col", "offset", "labels"
    arrays: dict[str, AnyArray] = {}
    with zipfile.ZipFile(file) as archive:
        check_archive(archive, file)
        for name in names:
            if f"{name}.npy" in archive.namelist():
                with archive.open(f"{name}.npy") as member:
                    arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
    if (
        "shape" not in arrays
        or arrays["shape"].shape != (2,)
        or arrays["shape"][0] != arrays["shape"][1]
    ):
        raise FormatError("not a square matrix as of scipy.sparse.save_npz")
    labels = parse_json(arrays["labels"].tobytes()) if "labels" in arrays else None
    if labels is not None and not (
        isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    ):
        raise FormatError("the labels of the .npz file are not a list of texts")
    bits = int(arrays["shape"][0])
    check_size(bits, arrays["data"].size + len(labels or ()))
    kind = str(arrays["format"].astype("U"))
    if kind not in ("csr", "csc", "coo"):
        raise FormatError(f"a sparse matrix of format {kind[:20]!r}; csr, csc and coo can be read")
    weights, parts = arrays["data"], ("row", "col") if kind == "coo" else ("indptr", "indices")
    if any(arrays[name].dtype.kind not in "iu" or arrays[name].ndim != 1 for name in parts):
        raise FormatError("the indices of the matrix are not vectors of integers")
    rows, cols = (arrays[name].astype(np.int64) for name in parts)
    if kind != "coo":
        if (
            len(rows) != bits + 1
            or rows[0] != 0
            or rows[-1] != len(cols)
            or (np.diff(rows) < 0).any()
        ):
            raise FormatError("indptr of the sparse matrix does not fit its shape and indices")
        # columns of a csc matrix: x'Qx is the same for Q transposed
        rows = np.repeat(np.arange(bits), np.diff(rows))
    if (
        weights.dtype.kind not in "iuf"
        or weights.ndim != 1
        or not rows.shape == cols.shape == weights.shape
    ):
        raise FormatError("indices and data of the matrix are not equally long vectors of numbers")
    entries = rows, cols, weights.astype(np.float64)
    return ModelTerms.of_entries(bits, entries, float(arrays.get("offset", 0.0)), labels)


def write_cqm_of_qubo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the QUBO as a model without constraints. Not streamed: dimod holds it."""
    write_cqm(dimod.ConstrainedQuadraticModel.from_bqm(to_bqm(qubo, labels)), file)


def write_cqm(model: "dimod.ConstrainedQuadraticModel", file: IO[bytes]) -> None:
    """Write dimod's constrained model. dimod cannot read back a / in the name of a constraint: it becomes %2F."""
    names = [
        label
        for label in model.constraints
        if isinstance(label, str) and ("/" in label or "%" in label)
    ]
    if names:
        model = copy.deepcopy(model)
        model.relabel_constraints(
            {name: name.replace("%", "%25").replace("/", "%2F") for name in names}
        )
    with model.to_file() as content:
        shutil.copyfileobj(content, file)


def read_cqm(file: IO[bytes]) -> "dimod.ConstrainedQuadraticModel":
    """Return the constrained model of a .cqm file; raise where dimod would read past the end of its arrays."""
    with tempfile.SpooledTemporaryFile(max_size=1 << 28) as content:
        shutil.copyfileobj(file, content)
        content.seek(0)
        if _read_exactly(content, 10, "header") != b"DIMODCQM\x02\x00":
            raise FormatError("not a .cqm file of version 2.0")
        variables = _json_header(content).get("num_variables")
        if type(variables) is not int or not 0 <= variables <= MOST_BITS_OF_FILE:
            raise FormatError("no number of variables in the header of the .cqm file")
        with zipfile.ZipFile(content) as archive:
            check_archive(archive, content)
            damaged = archive.testzip()
            if damaged is not None:
                raise FormatError(f"the part {damaged[:40]!r} of the .cqm file is damaged")
            with archive.open("varinfo") as part:
                bounds = np.dtype([("vartype", "i1"), ("lower", "<f8"), ("upper", "<f8")])
                _section(part, b"VTYP", 4, bounds, variables)
            for name in archive.namelist():
                if name == "objective" or name.endswith("/lhs"):
                    with archive.open(name) as part:
                        _check_expression(part, variables)
        content.seek(0)
        model = dimod.ConstrainedQuadraticModel.from_file(content)  # type: ignore[arg-type]
    names = [label for label in model.constraints if isinstance(label, str) and "%" in label]
    model.relabel_constraints(
        {name: name.replace("%2F", "/").replace("%25", "%") for name in names}
    )
    return model


def _check_expression(part: IO[bytes], variables: int) -> None:
    if _read_exactly(part, 11, "expression")[:9] != b"DIMODEXPR":
        raise FormatError("a part of the .cqm file is not an expression")
    header = _json_header(part)
    shape = header.get("shape")
    if (header.get("dtype"), header.get("itype")) != ("float64", "int32") or not isinstance(
        shape, list
    ):
        raise FormatError("an expression of the .cqm file with an unknown header")
    if len(shape) != 2 or not all(type(size) is int and 0 <= size <= 2**40 for size in shape):
        raise FormatError("an expression of the .cqm file with an impossible shape")
    indices = _section(part, b"INDX", 4, np.dtype("<i4"), shape[0])
    _section(part, b"OFFS", 4, np.dtype("<f8"), 1)
    _section(part, b"LINB", 4, np.dtype("<f8"), shape[0])
    pairs = _section(
        part, b"QUAD", 8, np.dtype([("u", "<i4"), ("v", "<i4"), ("bias", "<f8")]), shape[1]
    )
    if len(indices) and not 0 <= indices.min() <= indices.max() < variables:
        raise FormatError("an expression of the .cqm file names a variable that the model lacks")
    first, second = pairs["u"].astype(np.int64), pairs["v"].astype(np.int64)
    places = first * max(shape[0], 1) + second
    inside = (second >= 0).all() and (second <= first).all() and (first < shape[0]).all()
    if len(set(indices.tolist())) != len(indices) or not inside or not (np.diff(places) > 0).all():
        raise FormatError("an expression of the .cqm file is not in order")


def _section(
    part: IO[bytes], magic: bytes, width: int, dtype: np.dtype[Any], count: int
) -> AnyArray:
    """Return the `count` numbers of a section; raise if it is shorter."""
    if _read_exactly(part, 4, "section") != magic:
        raise FormatError(f"no section {magic.decode()} in the .cqm file")
    length = int.from_bytes(_read_exactly(part, width, "section"), "little")
    if length < count * dtype.itemsize:
        raise FormatError(f"the section {magic.decode()} of the .cqm file is too short")
    return np.frombuffer(_read_exactly(part, length, "section")[: count * dtype.itemsize], dtype)


def _padded(magic: bytes, data: bytes) -> bytes:
    """Return magic, length, data and spaces up to a multiple of the alignment."""
    data += b" " * (-(len(magic) + 4 + len(data)) % _ALIGNMENT)
    return magic + struct.pack("<I", len(data)) + data


def _interleaved(indices: AnyArray, values: AnyArray) -> bytes:
    records = np.empty(len(indices), np.dtype([("i", "<i4"), ("w", "<f8")]))
    records["i"], records["w"] = indices, values
    return records.tobytes()


def _read_exactly(file: IO[bytes], size: int, what: str) -> bytes:
    """Return the next `size` bytes; raise if the file ends earlier. Memory grows with the file, not with `size`."""
    parts: list[bytes] = []
    while size > 0:
        part = file.read(min(size, 1 << 24))
        if not part:
            raise FormatError(f"the file ends inside its {what}")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _json_header(file: IO[bytes]) -> dict[str, Any]:
    (length,) = struct.unpack("<I", _read_exactly(file, 4, "header"))
    return json_object(_read_exactly(file, length, "header"))
