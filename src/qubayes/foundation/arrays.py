"""Names of the array types that kernels take; our own binary files of facts and arrays.

A file is, all numbers little endian: the magic (16 bytes), version and length of the header (4
bytes each); the header (JSON, the facts); the arrays one after the other, as the format lays them
out; crc32 of all bytes before."""

import json
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import FormatError
from .files import json_object, opened

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
SmallInts: TypeAlias = npt.NDArray[np.int32]
Words: TypeAlias = npt.NDArray[np.uint64]
Bools: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]
Records: TypeAlias = npt.NDArray[np.void]
Facts: TypeAlias = dict[str, Any]
Layout: TypeAlias = tuple[tuple[str, int], ...]  # type and length of each array

_VERSION = 1
_START = struct.Struct("<16sII")  # magic, version, length of the header
_END = struct.Struct("<I")  # crc32
_BLOCK = 1 << 22  # bytes


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array read-only and contiguous, as every result of a stage is."""
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


class Format(NamedTuple):
    """A kind of file: its magic, its content, and the arrays that follow the facts."""

    magic: bytes  # 16 of them
    content: str  # "candidate sets"
    advice: str  # where to get such a file
    # raises FormatError where facts are missing or are not what they should be
    layout: Callable[[Facts], Layout]


def write_arrays(file: IO[bytes], kind: Format, facts: Facts, arrays: Sequence[AnyArray]) -> None:
    """Write the facts and the arrays."""
    try:
        header = json.dumps(facts, allow_nan=False).encode("ascii")
    except ValueError as error:
        raise FormatError(f"cannot write {kind.content}: {error}; give finite numbers") from error
    layout = kind.layout(facts)
    if [len(array) for array in arrays] != [length for _, length in layout]:
        raise FormatError(
            f"cannot write {kind.content}: the arrays do not have the lengths that belong together"
        )
    parts: list[Any] = [_START.pack(kind.magic, _VERSION, len(header)), header]
    for array, (number, _) in zip(arrays, layout, strict=True):
        parts.append(np.ascontiguousarray(array, dtype=number).view(np.uint8).data)
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
        file.write(part)
    file.write(_END.pack(checksum))


def read_arrays(path: Path, kind: Format) -> tuple[Facts, list[AnyArray]]:
    """Return the facts and the arrays that `write_arrays` wrote; the caller checks the values.

    Nothing is allocated before the sizes agree with that of the file.
    """
    with opened(path, packed=False) as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(_START.size)
        if len(start) < _START.size or not start.startswith(kind.magic):
            raise FormatError(f"not a file of {kind.content} made by qubayes; {kind.advice}")
        _, version, length = _START.unpack(start)
        if version != _VERSION:
            raise FormatError(
                f"the file has version {version}; this qubayes reads version {_VERSION}"
            )
        if length > size - _START.size:
            raise FormatError(
                f"the file has {size} bytes and promises a header of {length}; it was cut short"
            )
        header = file.read(length)
        facts = json_object(header)
        layout = kind.layout(facts)
        body = sum(length * np.dtype(number).itemsize for number, length in layout)
        if size != len(start) + len(header) + body + _END.size:
            raise FormatError(
                f"the file has {size} bytes and its header promises {body} in arrays;"
                " it was cut short"
            )
        checksum = zlib.crc32(header, zlib.crc32(start))
        arrays = [np.empty(length, dtype=number) for number, length in layout]
        for array in arrays:
            view: Any = array.view(np.uint8).data
            for begin in range(0, len(view), _BLOCK):
                part = view[begin : begin + _BLOCK]
                if file.readinto(part) != len(part):  # type: ignore[attr-defined]
                    raise FormatError(
                        "the file became shorter while it was read;"
                        " read it again when it is finished"
                    )
                checksum = zlib.crc32(part, checksum)
        if file.read(_END.size) != _END.pack(checksum):
            raise FormatError("the checksum does not agree; the file was damaged: make it again")
    return facts, [frozen(array) for array in arrays]


def sizes_of(facts: Facts) -> tuple[int, int, int]:
    """Return the numbers of vertices, sets and members of the named families in the facts."""
    names, sets, members = (facts.get(key) for key in ("names", "sets", "members"))
    named = (
        isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and len(set(names)) == len(names)
    )
    if not named or not all(type(count) is int and 0 <= count < 2**60 for count in (sets, members)):
        raise FormatError(
            "the header does not hold different names and the numbers of sets and members"
        )
    return len(facts["names"]), facts["sets"], facts["members"]
