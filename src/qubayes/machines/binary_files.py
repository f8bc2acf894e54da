"""Binary formats: dimod's `.bqm` and `.cqm`, and the `.npz` of scipy.sparse. Lossless.

The arrays of a `.bqm` file are those of a `Qubo`: writing streams them without a
`BinaryQuadraticModel`, which takes 74 bytes a coupler. `.bqm` is also read here:
`BinaryQuadraticModel.from_file` crashes the interpreter on damaged files, and takes twice as long.
"""

import copy
import json
import shutil
import struct
import zipfile
from collections.abc import Hashable, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Ints
from ..foundation.environment import dimod
from ..foundation.errors import FormatError
from ..foundation.files import json_object, parse_json, shown
from .qubo import Qubo, check_labels, from_bqm, qubo_from_couplers, to_bqm, upper_triangle

_ALIGNMENT = 64  # bytes, of the sections of dimod's files
_RECORDS_AT_ONCE = 1 << 20
# No machine takes more bits (the largest hybrid service: 5,000,000). The header of a damaged file
# may claim any number.
_MOST_BITS_OF_FILE = 10_000_000
_HEADER_VALUES = {
    "dtype": ("float64", "float32"),
    "itype": ("int32", "int64"),
    "ntype": ("int32", "int64"),
    "vartype": ("BINARY", "SPIN"),
}


def write_bqm(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write dimod's version 2.0 of the format.

    It has a header, the offset, (start, h) of each bit, (j, J_ij) of both triangles, and the
    labels."""
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
    text = json.dumps(header, sort_keys=True) + "\n"
    file.write(_padded(b"DIMODBQM\x02\x00", text.encode("ascii")))
    file.write(struct.pack("<d", qubo.offset))
    file.write(_interleaved(qubo.indptr[:-1], qubo.h))
    for start in range(0, len(qubo.indices), _RECORDS_AT_ONCE):
        part = slice(start, start + _RECORDS_AT_ONCE)
        file.write(_interleaved(qubo.indices[part], qubo.weights[part]))
    if labels is not None:
        file.write(_padded(b"VARS", json.dumps(list(labels)).encode("ascii")))


class BqmTerms(NamedTuple):
    """The contents of a `.bqm` file: a quadratic function of bits or spins."""

    h: AnyArray  # (n,) in the precision of the file
    rows: Ints  # (couplers,)
    cols: AnyArray  # (couplers,)
    weights: AnyArray  # (couplers,) in the precision of the file
    offset: float
    labels: Sequence[Hashable]
    vartype: str  # "BINARY" or "SPIN"

    def bqm(self) -> "dimod.BinaryQuadraticModel":
        """Return the function as dimod's model, of the same vartype and precision."""
        return dimod.BinaryQuadraticModel.from_numpy_vectors(
            self.h,
            (self.rows, self.cols, self.weights),
            self.offset,
            dimod.Vartype[self.vartype],
            variable_order=list(self.labels),
            dtype=self.h.dtype,
        )

    def qubo(self) -> tuple[Qubo, tuple[str, ...]]:
        """Return (QUBO, labels as text)."""
        if self.vartype == "SPIN":
            return from_bqm(self.bqm())
        qubo = qubo_from_couplers(self.h, self.rows, self.cols, self.weights, self.offset)
        return qubo, tuple(str(label) for label in self.labels)


class _BqmHeader(NamedTuple):
    """Sizes and types in the header of a `.bqm` file."""

    bits: int
    couplers: int
    value_type: np.dtype[Any]
    bit_type: np.dtype[Any]  # of the bits that couplers name
    start_type: np.dtype[Any]  # of the places where rows of couplers begin
    vartype: str
    variables: object  # labels (version 1.0), or whether there is a section of labels (2.0)


def read_bqm(file: IO[bytes]) -> BqmTerms:
    """Return the contents of a file of dimod's version 1.0 or 2.0, in its vartype and precision."""
    if file.read(8) != b"DIMODBQM":
        raise FormatError("not a .bqm file: it does not begin with DIMODBQM")
    version = tuple(_read_exactly(file, 2, "header"))
    if version not in {(1, 0), (2, 0)}:
        raise FormatError(
            f"version {version[0]}.{version[1]} of the .bqm format; 1.0 and 2.0 can be read"
        )
    header = _read_bqm_header(file)
    value_type = header.value_type
    offset = np.frombuffer(_read_exactly(file, value_type.itemsize, "offset"), value_type)
    linear = _records(file, header.bits, header.start_type, value_type)
    edges = _records(file, 2 * header.couplers, header.bit_type, value_type)
    rows = _rows_of_edges(linear["i"], len(edges))
    _check_mirrored(rows, edges, header.bits)
    labels = header.variables
    if version == (2, 0):
        labels = _read_labels(file) if header.variables else list(range(header.bits))
    lower = edges["i"] < rows
    terms = BqmTerms(
        np.ascontiguousarray(linear["w"]),
        rows[lower],
        edges["i"][lower],
        np.ascontiguousarray(edges["w"][lower]),
        float(offset[0]),
        _hashable_labels(labels),
        header.vartype,
    )
    _check_terms(terms)
    return terms


def _read_bqm_header(file: IO[bytes]) -> _BqmHeader:
    """Return the header; raise for sizes that no model has and for unknown types."""
    (length,) = struct.unpack("<I", _read_exactly(file, 4, "header"))
    facts = json_object(_read_exactly(file, length, "header"))
    for key, values in _HEADER_VALUES.items():
        if facts.get(key) not in values:
            raise FormatError(
                f"{key} in the header of the .bqm file is not one of {', '.join(values)}"
            )
    shape = facts.get("shape")
    if not isinstance(shape, list) or [type(size) for size in shape] != [int, int]:
        raise FormatError("shape in the header of the .bqm file is not [bits, couplers]")
    bits, couplers = shape
    if not 0 <= bits <= _MOST_BITS_OF_FILE:
        raise FormatError(f"{bits} bits; 0 to {_MOST_BITS_OF_FILE:,} are allowed")
    if not 0 <= couplers <= bits * (bits - 1) // 2 or "variables" not in facts:
        raise FormatError(
            f"the header of the .bqm file has {couplers} couplers of {bits} bits, or no `variables`"
        )
    return _BqmHeader(
        bits,
        couplers,
        np.dtype(facts["dtype"]).newbyteorder("<"),
        np.dtype(facts["itype"]).newbyteorder("<"),
        np.dtype(facts["ntype"]).newbyteorder("<"),
        facts["vartype"],
        facts["variables"],
    )


def _rows_of_edges(first: AnyArray, edges: int) -> Ints:
    """Return the row of each edge from the first edge of each row."""
    starts = np.append(first.astype(np.int64), edges)
    if starts[0] != 0 or (np.diff(starts) < 0).any():
        raise FormatError("the rows of the couplers do not follow each other")
    return np.repeat(np.arange(len(first)), np.diff(starts))


def _check_mirrored(rows: Ints, edges: AnyArray, bits: int) -> None:
    """Raise unless both triangles have the same couplers with the same weights."""
    lower = edges["i"] < rows
    upper = edges["i"] > rows
    below = rows[lower] * bits + edges["i"][lower]
    above = edges["i"][upper].astype(np.int64) * bits + rows[upper]
    first = np.argsort(below, kind="stable")
    second = np.argsort(above, kind="stable")
    weights = edges["w"][lower][first]
    mirrored = edges["w"][upper][second]
    same = len(below) + len(above) == len(edges) and np.array_equal(below[first], above[second])
    if not (same and np.array_equal(weights, mirrored, equal_nan=True)):
        raise FormatError(
            "the two triangles of the couplers do not mirror each other; write the model again"
        )


def _check_terms(terms: BqmTerms) -> None:
    """Raise unless coefficients are finite, couplers name bits and labels are distinct."""
    n = len(terms.h)
    finite = np.isfinite(terms.h).all() and np.isfinite(terms.weights).all()
    if not (finite and np.isfinite(terms.offset)):
        raise FormatError("a coefficient is infinite or not a number")
    if len(terms.cols) and not 0 <= terms.cols.min() <= terms.cols.max() < n:
        raise FormatError(f"a coupler names a bit outside 0 to {n - 1}")
    check_labels(terms.labels, n)


def _records(file: IO[bytes], count: int, index: np.dtype[Any], value: np.dtype[Any]) -> AnyArray:
    dtype = np.dtype([("i", index), ("w", value)])
    return np.frombuffer(_read_exactly(file, count * dtype.itemsize, "coefficients"), dtype)


def _read_labels(file: IO[bytes]) -> object:
    """Return the JSON value of the section of labels."""
    if _read_exactly(file, 4, "labels") != b"VARS":
        raise FormatError("no labels where the header of the .bqm file promises them")
    (length,) = struct.unpack("<I", _read_exactly(file, 4, "labels"))
    return parse_json(_read_exactly(file, length, "labels"))


def _hashable_labels(labels: object) -> list[Hashable]:
    """Return the labels, lists as tuples."""
    if not isinstance(labels, list):
        raise FormatError("the labels of the .bqm file are not a list")
    return [_hashable(label) for label in labels]


def _hashable(label: object) -> Hashable:
    if isinstance(label, list):
        return tuple(_hashable(part) for part in label)
    if isinstance(label, str | int | float):
        return label
    raise FormatError(f"the label {shown(label, 40)}; text, numbers and lists of them are allowed")


def write_npz(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write an upper triangular Q with x'Qx + offset = E(x) for `scipy.sparse.load_npz`.

    The offset and the labels are arrays beside it.

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


def write_cqm_of_qubo(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the QUBO as a model without constraints. Not streamed: dimod holds it."""
    write_cqm(dimod.ConstrainedQuadraticModel.from_bqm(to_bqm(qubo, labels)), file)


def write_cqm(model: "dimod.ConstrainedQuadraticModel", file: IO[bytes]) -> None:
    """Write dimod's constrained model; / and % in names of constraints become %2F and %25.

    dimod cannot read back a /."""
    escaped: dict[Hashable, Hashable] = {}
    for label in model.constraints:
        if isinstance(label, str) and ("/" in label or "%" in label):
            escaped[label] = label.replace("%", "%25").replace("/", "%2F")
    if escaped:
        model = copy.deepcopy(model)
        model.relabel_constraints(escaped)
    with model.to_file() as content:
        shutil.copyfileobj(content, file)


def _padded(magic: bytes, data: bytes) -> bytes:
    """Return magic, length, data and spaces up to a multiple of the alignment."""
    data += b" " * (-(len(magic) + 4 + len(data)) % _ALIGNMENT)
    return magic + struct.pack("<I", len(data)) + data


def _interleaved(indices: AnyArray, values: AnyArray) -> bytes:
    records = np.empty(len(indices), np.dtype([("i", "<i4"), ("w", "<f8")]))
    records["i"] = indices
    records["w"] = values
    return records.tobytes()


def _read_exactly(file: IO[bytes], size: int, what: str) -> bytes:
    """Return the next `size` bytes; raise if the file ends earlier.

    Memory grows with the file, not with `size`."""
    parts: list[bytes] = []
    while size > 0:
        part = file.read(min(size, 1 << 24))
        if not part:
            raise FormatError(f"the file ends inside its {what}")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
