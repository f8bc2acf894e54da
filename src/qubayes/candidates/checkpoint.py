"""Files of the finished blocks of a long search, so that a killed run can be resumed.

One file: a line that says what the search is of, then a record per finished block. A record that
was cut off by a kill fails its checksum; it and what follows are forgotten."""

import json
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from .. import __version__
from ..foundation.errors import FormatError, QubayesError, option
from ..foundation.files import lock, private
from .scanning import Block

_HEAD = struct.Struct("<IIQ")  # number of the block, variables per set, sets
_CHECK = struct.Struct("<I")  # crc32 of the head and the two arrays
_FORMAT = 4


class Checkpoint:
    """The blocks that are done, as a context manager. The file stays, for its owner to remove."""

    def __init__(self, path: Path, search: dict[str, object], *, resume: bool) -> None:
        self.path = path
        self.done: dict[int, Block] = {}
        # Another version may cut the search into other blocks, or round scores in another way.
        facts = {"qubayes": "blocks", "format": _FORMAT, "version": __version__, **search}
        self._header = json.dumps(facts, sort_keys=True).encode() + b"\n"
        try:
            self._file = self._reopen() if resume and path.exists() else self._create()
        except OSError as error:
            raise FormatError(
                f"cannot write {path}: {error.strerror}; choose another place with -o"
            ) from error

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # `add` has reported a full disk; closing tries to write again
            self._file.close()

    def add(self, index: int, block: Block) -> None:
        """Keep a finished block: after this it survives a kill of the process."""
        sets, k = block.families.shape
        record = _HEAD.pack(index, k, sets) + block.families.tobytes() + block.scores.tobytes()
        try:
            self._file.write(record + _CHECK.pack(zlib.crc32(record)))
            self._file.flush()
        except OSError as error:
            raise QubayesError(
                f"cannot write {self.path}: {error.strerror}; "
                f"make room and run again with {option('resume')}"
            ) from error

    def _create(self) -> IO[bytes]:
        # Closed by __exit__.
        file = self._locked(open(self.path, "ab", opener=private))  # noqa: SIM115
        try:
            file.truncate(0)  # not before it is ours
            file.write(self._header)
            file.flush()
        except OSError:
            with suppress(OSError):
                file.close()
            self.path.unlink()
            raise
        return file

    def _locked(self, file: IO[bytes]) -> IO[bytes]:
        """Return the file with a lock; raise if another process writes to it."""
        if not lock(file.fileno()):
            file.close()
            raise FormatError(
                f"another search writes to {self.path} now; "
                "wait for its end, or choose another place"
            )
        return file

    def _reopen(self) -> IO[bytes]:
        file = self._locked(open(self.path, "r+b"))  # noqa: SIM115, PTH123 -- closed by __exit__
        header = file.readline(1 << 20)
        if header != self._header:
            file.close()
            if self._header.startswith(header):  # killed before the first line was whole
                return self._create()
            raise FormatError(
                f"{self.path} belongs to a search of other data or settings, or by another "
                f"version; repeat that one, or leave out {option('resume')} to start again"
            )
        end = file.tell()
        for index, block in _records(file, self.path.stat().st_size):
            self.done[index] = block
            end = file.tell()
        file.seek(end)
        file.truncate()
        return file


def _records(file: IO[bytes], size: int) -> Iterator[tuple[int, Block]]:
    """Yield (number, block) of each record up to the first that is not whole."""
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        index, k, sets = _HEAD.unpack(head)
        wanted = sets * (4 * k + 8)
        if wanted + _CHECK.size > size - file.tell():
            return
        payload = file.read(wanted)
        if file.read(_CHECK.size) != _CHECK.pack(zlib.crc32(payload, zlib.crc32(head))):
            return
        families = np.frombuffer(payload, np.int32, sets * k).reshape(sets, k)
        yield index, Block(families, np.frombuffer(payload, np.float64, sets, 4 * sets * k))
