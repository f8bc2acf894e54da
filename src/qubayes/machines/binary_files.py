"""Binary formats: dimod's `.bqm`, and the `.npz` of numpy and scipy.sparse. Lossless, streamed both ways.

The bytes of a file are checked here before any library of compiled code sees them.
"""

import json
import os
import struct
import warnings
import zipfile
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.errors import FormatError
from ..foundation.files import LIMIT_VARIABLE, shown, unpacked_limit
from .qubo import Qubo
from .terms import Terms, checked, checked_bits, coupler_chunks, parsed_json, read_exactly

_MAGIC = b"DIMODBQM"
_ALIGNMENT = 64


def write_bqm(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """dimod's version 2.0: header, offset, (start, h) per bit, (j, J_ij) of both triangles, labels.

    These are our arrays themselves, interleaved: no `BinaryQuadraticModel` (74 bytes a coupler) is built.
    """
    if len(qubo.indices) > np.iinfo(np.int32).max:
        raise FormatError(f"{qubo.couplers:,} couplers; a .bqm file holds at most 2^30: write an .npz file")
    header: dict[str, Any] = {
        "shape": [qubo.bits, qubo.couplers],
        "dtype": "float64",
        "itype": "int32",
        "ntype": "int32",
    }
    header |= {"vartype": "BINARY", "type": "BinaryQuadraticModel", "variables": labels is not None}
    file.write(_padded(_MAGIC + bytes((2, 0)), json.dumps(header, sort_keys=True).encode("ascii") + b"\n"))
    file.write(struct.pack("<d", qubo.offset))
    file.write(_interleaved(qubo.indptr[:-1], qubo.h))
    for start in range(0, len(qubo.indices), 1 << 20):
        part = slice(start, start + (1 << 20))
        file.write(_interleaved(qubo.indices[part], qubo.weights[part]))
    if labels is not None:
        file.write(_padded(b"VARS", json.dumps(list(labels)).encode("ascii")))


def read_bqm(file: IO[bytes]) -> Terms:
    """The terms of a file of dimod's versions 1.0 and 2.0, in its vartype and precision."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise FormatError("no .bqm file: it does not begin with DIMODBQM")
    version = tuple(read_exactly(file, 2, "header"))
    if version not in {(1, 0), (2, 0)}:
        raise FormatError(f"version {version[0]}.{version[1]} of the .bqm format; 1.0 and 2.0 can be read")
    header = _header(file)
    bits, couplers = header["shape"]
    value = np.dtype(header["dtype"]).newbyteorder("<")
    start, index = (np.dtype(header[key]).newbyteorder("<") for key in ("ntype", "itype"))
    offset = float(np.frombuffer(read_exactly(file, value.itemsize, "offset"), value)[0])
    linear = _records(file, bits, start, value)
    edges = _records(file, 2 * couplers, index, value)
    rows = _rows(linear["i"].astype(np.int64), 2 * couplers)
    lower = edges["i"] < rows
    if lower.sum() != couplers:
        raise FormatError("the two triangles of the couplers do not mirror each other")
    labels = _labels(file, header["variables"], version)
    h = np.ascontiguousarray(linear["w"])
    weights = np.ascontiguousarray(edges["w"][lower])
    return checked(Terms(h, rows[lower], edges["i"][lower], weights, offset, labels, header["vartype"]))


def write_npz(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """What `scipy.sparse.load_npz` reads as upper triangular Q with x'Qx + offset = E(x); offset, labels beside."""
    upper = np.zeros(qubo.bits + 1, np.int64)
    for rows, _, _ in coupler_chunks(qubo):
        np.add.at(upper, rows + 1, 1)
    indptr = np.cumsum(upper) + np.arange(qubo.bits + 1)  # one more in each row: the diagonal
    size = int(indptr[-1])
    index = np.dtype(np.int32 if size <= np.iinfo(np.int32).max else np.int64)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, "format", np.array(b"csr"))
        _add(archive, "shape", np.array([qubo.bits, qubo.bits]))
        _add(archive, "offset", np.array(qubo.offset))
        if labels is not None:  # as JSON: numpy's text arrays drop trailing zero bytes
            _add(archive, "labels", np.frombuffer(json.dumps(list(labels)).encode("ascii"), np.uint8))
        _add(archive, "indptr", indptr.astype(index))
        for name, dtype, column in (("indices", index, 1), ("data", np.dtype(np.float64), 2)):
            with archive.open(_entry(name), "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(
                    member, {"descr": dtype.str, "fortran_order": False, "shape": (size,)}
                )
                for chunk in _with_diagonal(qubo):
                    member.write(chunk[column].astype(dtype).tobytes())


def read_npz(file: IO[bytes]) -> Terms:
    """The terms of x'Qx for a matrix of scipy.sparse (csr, csc or coo), with our offset and labels if present."""
    try:
        with zipfile.ZipFile(file) as archive:
            check_archive(archive, file)
            names = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            arrays = {name: _array(archive, names[name]) for name in _FIELDS if name in names}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, KeyError) as error:
        raise FormatError(f"a damaged .npz file: {error}") from error
    bits = checked_bits(_square(arrays), max(len(array) for array in arrays.values() if array.ndim))
    rows, cols = _coordinates(arrays, bits)
    weights = arrays["data"].astype(np.float64)
    if not (rows.shape == cols.shape == weights.shape) or weights.ndim != 1:
        raise FormatError("indices and data of the matrix are not equally long")
    if len(rows) and (min(rows.min(), cols.min()) < 0 or max(rows.max(), cols.max()) >= bits):
        raise FormatError(f"an entry outside the {bits} x {bits} matrix")
    linear = rows == cols
    h = np.zeros(bits)
    h[rows[linear]] = -0.0  # the one start for which a sum of one term is that term, the sign of zero included
    np.add.at(h, rows[linear], weights[linear])
    pairs = ~linear
    offset = float(arrays["offset"]) if "offset" in arrays and arrays["offset"].shape == () else 0.0
    return checked(Terms(h, rows[pairs], cols[pairs], weights[pairs], offset, _text_labels(arrays.get("labels"))))


_FIELDS = {  # the arrays that may stand in a file, and the kinds of numbers that they may hold
    "format": "SU",
    "shape": "iu",
    "data": "iuf",
    "indices": "iu",
    "indptr": "iu",
    "row": "iu",
    "col": "iu",
    "offset": "iuf",
    "labels": "u",
}


def _padded(magic: bytes, data: bytes) -> bytes:
    """magic, length, data and spaces up to a multiple of 64 bytes."""
    total = len(magic) + 4 + len(data)
    data += b" " * (-total % _ALIGNMENT)
    return magic + struct.pack("<I", len(data)) + data


def _interleaved(indices: AnyArray, values: AnyArray) -> bytes:
    records = np.empty(len(indices), np.dtype([("i", "<i4"), ("w", "<f8")]))
    records["i"], records["w"] = indices, values
    return records.tobytes()


def _header(file: IO[bytes]) -> dict[str, Any]:
    (length,) = struct.unpack("<I", read_exactly(file, 4, "header"))
    header = parsed_json(read_exactly(file, length, "header"), "header of the .bqm file")
    allowed = {"dtype": ("float64", "float32"), "itype": ("int32", "int64"), "ntype": ("int32", "int64")}
    allowed |= {"vartype": ("BINARY", "SPIN")}
    if not isinstance(header, dict) or "variables" not in header:
        raise FormatError("the header of the .bqm file lacks `variables`")
    for key, values in allowed.items():
        if header.get(key) not in values:
            raise FormatError(f"{key} in the header of the .bqm file is not one of {', '.join(values)}")
    shape = header.get("shape")
    if not (isinstance(shape, list) and len(shape) == 2 and all(type(size) is int for size in shape)):
        raise FormatError("shape in the header of the .bqm file is not [bits, couplers]")
    bits, couplers = checked_bits(shape[0]), shape[1]
    if not 0 <= couplers <= bits * (bits - 1) // 2:
        raise FormatError(f"{couplers} couplers between {bits} bits")
    return header


def _records(file: IO[bytes], count: int, index: Any, value: Any) -> AnyArray:
    dtype = np.dtype([("i", index), ("w", value)])
    return np.frombuffer(read_exactly(file, count * dtype.itemsize, "coefficients"), dtype)


def _rows(starts: AnyArray, total: int) -> AnyArray:
    """The row of each entry of a CSR matrix from the starts of its rows."""
    lengths = np.diff(np.append(starts, total))
    if (len(starts) and starts[0] != 0) or (lengths < 0).any():
        raise FormatError("the rows of the couplers do not follow each other")
    return np.repeat(np.arange(len(starts)), lengths)


def _labels(file: IO[bytes], variables: Any, version: tuple[int, ...]) -> list[Any] | None:
    if version == (2, 0):
        if not variables:
            return None
        if read_exactly(file, 4, "labels") != b"VARS":
            raise FormatError("no labels where the header of the .bqm file promises them")
        (length,) = struct.unpack("<I", read_exactly(file, 4, "labels"))
        variables = parsed_json(read_exactly(file, length, "labels"), "list of labels")
    if not isinstance(variables, list):
        raise FormatError("the labels of the .bqm file are no list")
    return [_hashable(label) for label in variables]


def _hashable(label: Any) -> Any:
    """dimod writes tuples as lists."""
    if isinstance(label, list):
        return tuple(_hashable(part) for part in label)
    if isinstance(label, (str, int, float)):
        return label
    raise FormatError(f"{shown(label, 40)} is no label; text, numbers and tuples of them are")


def check_archive(archive: zipfile.ZipFile, file: IO[bytes]) -> None:
    """Raise if the members of the archive claim more bytes than there are, share them, or unpack to too many."""
    size = file.seek(0, os.SEEK_END)
    for info in archive.infolist():
        if info.file_size > 1100 * info.compress_size + 4096:  # deflate packs at most 1032 : 1
            raise FormatError(f"the part {info.filename[:40]!r} claims more bytes than can be packed in its place")
    packed, unpacked = (sum(getattr(i, key) for i in archive.infolist()) for key in ("compress_size", "file_size"))
    if packed > size:
        raise FormatError("the parts of the file overlap, or it was cut short")
    if unpacked > unpacked_limit(size):
        raise FormatError(f"it unpacks to {unpacked:,} bytes; set {LIMIT_VARIABLE} to as many if you trust it")


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(f"{name}.npy")  # its date is fixed: the same model gives the same bytes


def _add(archive: zipfile.ZipFile, name: str, array: AnyArray) -> None:
    with archive.open(_entry(name), "w", force_zip64=True) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)


def _with_diagonal(qubo: Qubo) -> Any:
    """(rows, columns, values) of Q in CSR order, in chunks: h on the diagonal, then the couplers of the row."""
    done = 0
    for rows, cols, weights in coupler_chunks(qubo):
        stop = int(rows[-1]) + 1 if len(rows) else done
        yield _merge_diagonal(qubo, done, stop, rows, cols, weights)
        done = stop
    yield _merge_diagonal(qubo, done, qubo.bits, *(np.empty(0, np.int64),) * 2, np.empty(0))


def _merge_diagonal(qubo: Qubo, start: int, stop: int, rows: AnyArray, cols: AnyArray, weights: AnyArray) -> Any:
    bits = np.arange(start, stop)
    places = np.searchsorted(rows, bits)
    return np.insert(rows, places, bits), np.insert(cols, places, bits), np.insert(weights, places, qubo.h[start:stop])


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> AnyArray:
    """One array, its size in the header checked against the bytes that are there."""
    name = info.filename.removesuffix(".npy")
    with archive.open(info) as member, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's of headers that look like those of Python 2
        try:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(member)
        except Exception as error:  # numpy evaluates the header as Python literals: many kinds of errors
            raise FormatError(f"the array {name} of the .npz file has a damaged header") from error
        if dtype.kind not in _FIELDS[name] or dtype.itemsize == 0:
            raise FormatError(f"the array {name} of the .npz file holds {dtype}")
        count = int(np.prod([int(size) for size in shape], dtype=object)) if shape else 1
        if any(size < 0 for size in shape) or count * dtype.itemsize > info.file_size:
            raise FormatError(f"the array {name} of the .npz file is shorter than its shape {shape}")
        return np.frombuffer(read_exactly(member, count * dtype.itemsize, f"array {name}"), dtype).reshape(shape)


def _square(arrays: dict[str, AnyArray]) -> int:
    if "shape" not in arrays or "data" not in arrays or "format" not in arrays:
        raise FormatError("no sparse matrix: `format`, `shape` and `data` as of scipy.sparse.save_npz are needed")
    shape = arrays["shape"].ravel().tolist()
    if len(shape) != 2 or shape[0] != shape[1]:
        raise FormatError(f"a matrix of shape {tuple(shape[:4])}; a square matrix is needed")
    return int(shape[0])


def _coordinates(arrays: dict[str, AnyArray], bits: int) -> tuple[AnyArray, AnyArray]:
    """(rows, columns) of the entries, whichever of the formats holds them."""
    kind = str(arrays["format"].astype("U").ravel()[0]) if arrays["format"].size else ""
    needed = {"csr": ("indptr", "indices"), "csc": ("indptr", "indices"), "coo": ("row", "col")}.get(kind)
    if needed is None or not all(name in arrays and arrays[name].ndim == 1 for name in needed):
        raise FormatError(f"a sparse matrix of format {kind[:20]!r} without its arrays; csr, csc and coo can be read")
    first, second = (arrays[name].astype(np.int64) for name in needed)
    if kind == "coo":
        return first, second
    if len(first) != bits + 1 or first[-1] != len(second):
        raise FormatError("indptr of the sparse matrix does not fit its shape and indices")
    major = _rows(first[:-1], len(second))
    return (major, second) if kind == "csr" else (second, major)


def _text_labels(array: AnyArray | None) -> list[str] | None:
    if array is None:
        return None
    labels = parsed_json(array.tobytes(), "list of labels")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise FormatError("the labels of the .npz file are no list of texts")
    return labels
