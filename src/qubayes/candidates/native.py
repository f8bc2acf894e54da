"""The native file of candidate sets (`.qbc`): exact, checked and quick, for results of any size and names of any kind.

All numbers are little endian: the magic, version and length of the header (24 bytes); the header (JSON: names, stamp,
number of sets and members); vertex_start, set_start, scores (8 bytes each), members (4 bytes each); crc32 of all that
came before.
"""

import json
import struct
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeGuard

import numpy as np

from ..arrays import AnyArray, Floats, Ints, frozen
from ..errors import FormatError
from ..families import Families
from .candidates import Candidates, Stamp
from .stamps import json_object, stamp_as_json, stamp_of

_MAGIC = b"\x93qubayes-candidates"[:16]
_VERSION = 1
_START = struct.Struct("<16sII")  # magic, version, length of the header
_END = struct.Struct("<I")  # crc32
_BLOCK = 1 << 22  # bytes


class _Header(NamedTuple):
    names: tuple[str, ...]
    stamp: Stamp
    sets: int
    members: int

    @property
    def arrays(self) -> tuple[tuple[str, int], ...]:
        """Type and length of vertex_start, set_start, scores and members."""
        return ("<i8", len(self.names) + 1), ("<i8", self.sets + 1), ("<f8", self.sets), ("<i4", self.members)


def write_native(candidates: Candidates, file: IO[bytes]) -> None:
    """Write the candidate sets."""
    families = candidates.families
    facts = {
        "names": list(candidates.names),
        "stamp": json.loads(stamp_as_json(candidates.stamp)),
        "sets": len(candidates.scores),
        "members": len(families.members),
    }
    header = json.dumps(facts).encode("ascii")
    checksum = 0
    for part in (_START.pack(_MAGIC, _VERSION, len(header)), header, *_arrays(candidates)):
        checksum = zlib.crc32(part, checksum)
        file.write(part)
    file.write(_END.pack(checksum))


def _arrays(candidates: Candidates) -> tuple[Any, ...]:
    families = candidates.families
    arrays = families.vertex_start, families.set_start, candidates.scores, families.members
    kinds = "<i8", "<i8", "<f8", "<i4"
    return tuple(_bytes_of(np.ascontiguousarray(array, dtype=kind)) for array, kind in zip(arrays, kinds, strict=True))


def _bytes_of(array: AnyArray) -> Any:
    """The memory of the array, byte by byte."""
    return array.view(np.uint8).data


def read_native(path: Path) -> Candidates:
    """The candidate sets that `write_native` wrote. Nothing is allocated before the sizes agree with the file's."""
    with path.open("rb") as file:
        size = path.stat().st_size
        start = file.read(_START.size)
        header_length = _header_length(start, size)
        header_bytes = file.read(header_length)
        header = _header(header_bytes)
        body = sum(length * np.dtype(kind).itemsize for kind, length in header.arrays)
        if size != _START.size + header_length + body + _END.size:
            raise FormatError(f"the file has {size} bytes and its header speaks of {body} in arrays; it was cut short")
        checksum = zlib.crc32(header_bytes, zlib.crc32(start))
        arrays = []
        for kind, length in header.arrays:
            array = np.empty(length, dtype=kind)
            checksum = _fill(array, file, checksum)
            arrays.append(array)
        if file.read(_END.size) != _END.pack(checksum):
            raise FormatError("the checksum does not agree; the file was damaged: make it again")
    return _checked(header, *arrays)


def _header_length(start: bytes, size: int) -> int:
    if len(start) < _START.size or not start.startswith(_MAGIC):
        raise FormatError("not a file of candidate sets made by qubayes; other programs' files end in .jkl or .pss")
    _, version, length = _START.unpack(start)
    if version != _VERSION:
        raise FormatError(f"the file has version {version}; this qubayes reads version {_VERSION}")
    if length > size - _START.size:
        raise FormatError(f"the file has {size} bytes and speaks of a header of {length}; it was cut short")
    return int(length)


def _header(text: bytes) -> _Header:
    facts = json_object(text)
    names, stamp, sets, members = (facts.get(key) for key in ("names", "stamp", "sets", "members"))
    if not _are_names(names) or not isinstance(stamp, dict) or not _is_count(sets) or not _is_count(members):
        raise FormatError("the header does not hold different names, a stamp and the numbers of sets and members")
    return _Header(tuple(names), stamp_of(stamp), sets, members)


def _are_names(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(name, str) for name in value) and len(set(value)) == len(value)


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**60


def _fill(array: AnyArray, file: IO[bytes], checksum: int) -> int:
    """Fill the array from the file; the checksum goes on over its bytes."""
    view = _bytes_of(array)
    for begin in range(0, len(view), _BLOCK):
        part = view[begin : begin + _BLOCK]
        if file.readinto(part) != len(part):  # type: ignore[attr-defined]
            raise FormatError("the file ended while it was read; nothing was kept")
        checksum = zlib.crc32(part, checksum)
    return checksum


def _checked(header: _Header, vertex_start: Ints, set_start: Ints, scores: Floats, members: AnyArray) -> Candidates:
    """The arrays as candidates, once they are known to be sets of other vertices, best first, above a base."""
    arrays: list[Any] = [frozen(array) for array in (vertex_start, set_start, members)]
    found = Candidates(header.names, Families(*arrays), frozen(scores), header.stamp)
    fine = (
        _rises(vertex_start, header.sets, 1)
        and _rises(set_start, header.members, 0)
        and bool(np.isfinite(scores).all())
        and bool((np.diff(scores) <= 0)[_inside(vertex_start, header.sets)].all())
        and bool(((members >= 0) & (members < found.n)).all())
        and bool((np.diff(members) > 0)[_inside(set_start, header.members)].all())
        and not bool((members == np.repeat(_owners(vertex_start), np.diff(set_start))).any())
        and all(_has_base(found, vertex) for vertex in range(found.n))
    )
    if not fine:
        raise FormatError("the arrays do not describe sets of parents, best first; the file was not made by qubayes")
    return found


def _owners(vertex_start: Ints) -> Ints:
    """(sets,) the vertex of each set."""
    return np.repeat(np.arange(len(vertex_start) - 1), np.diff(vertex_start))


def _has_base(found: Candidates, vertex: int) -> bool:
    """Whether every set of the vertex contains its last one."""
    last = int(found.families.vertex_start[vertex + 1])
    if found.families.set_start[last] == found.families.set_start[last - 1]:
        return True  # nothing is required: the usual case, told without a look at the sets
    base = set(found.base(vertex))
    return all(base.issubset(parents) for parents in found.families.sets_of(vertex))


def _rises(start: Ints, last: int, step: int) -> bool:
    return bool(start[0] == 0 and start[-1] == last and (np.diff(start) >= step).all())


def _inside(start: Ints, total: int) -> AnyArray:
    """(total - 1,) whether neighbours k and k + 1 are in the same group."""
    inside = np.ones(max(total - 1, 0), dtype=np.bool_)
    borders = start[1:-1]
    inside[borders[(borders > 0) & (borders < total)] - 1] = False
    return inside
