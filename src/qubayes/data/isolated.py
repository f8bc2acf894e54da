"""Parquet and Arrow files, read in a process of their own.

What reads them (polars) ends its process on some broken files and never comes back from others. So a child reads, and
sends one column after the other: the length of a JSON header, the header, its arrays.
"""

import json
import os
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.errors import DataError, FormatError, QubayesError
from ..foundation.files import opened
from .columns import Column

_LENGTH = struct.Struct("<Q")
_ERRORS = {kind.__name__: kind for kind in (DataError, FormatError)}
_SECONDS, _SLOWEST = 60.0, 1_000_000  # a file may take so long, and a second more for so many bytes


def read_isolated(path: Path, kind: str) -> list[Column]:
    """The columns of a Parquet or Arrow file; a FormatError if its reader died or did not come back."""
    with opened(path, packed=False) as file:
        size = os.fstat(file.fileno()).st_size
    command = [sys.executable, "-P", "-m", "qubayes.data.isolated", kind, str(path)]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing) as child:
        timer = threading.Timer(_SECONDS + size / _SLOWEST, child.kill)
        timer.start()
        try:
            assert child.stdout is not None
            return _received(child.stdout)
        except EOFError:
            raise FormatError(f"{path} is not a whole {kind} file: its reader failed; write it again") from None
        finally:
            timer.cancel()
            child.kill()


def _received(stream: IO[bytes]) -> list[Column]:
    columns: list[Column] = []
    while True:
        header = json.loads(_exactly(stream, _LENGTH.unpack(_exactly(stream, _LENGTH.size))[0]))
        if "error" in header:
            raise _ERRORS.get(header["error"], QubayesError)(header["message"])
        if "columns" in header:
            return columns
        declared = header["declared"]
        distinct = header["distinct"]
        if isinstance(distinct, int):
            distinct = _array(stream, header["numbers"], distinct)
        codes = _array(stream, header["codes"], header["rows"])
        columns.append(Column(header["name"], distinct, codes, tuple(declared) if declared is not None else None))


def _array(stream: IO[bytes], kind: str, length: int) -> AnyArray:
    return np.frombuffer(_exactly(stream, length * np.dtype(kind).itemsize), kind)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _send(stream: IO[bytes], header: dict[str, Any], *arrays: AnyArray) -> None:
    content = json.dumps(header).encode()
    stream.write(_LENGTH.pack(len(content)) + content)
    for array in arrays:
        stream.write(np.ascontiguousarray(array).data)


def _send_column(stream: IO[bytes], column: Column) -> None:
    numeric = isinstance(column.distinct, np.ndarray)
    header = {
        "name": column.name,
        "declared": column.declared,
        "distinct": len(column.distinct) if numeric else list(column.distinct),
        "numbers": column.distinct.dtype.str if isinstance(column.distinct, np.ndarray) else None,
        "codes": column.codes.dtype.str,
        "rows": len(column.codes),
    }
    _send(stream, header, *([column.distinct] if isinstance(column.distinct, np.ndarray) else []), column.codes)


def _limit_memory() -> None:
    """Let no damaged size ask for far more than the machine has: libraries reserve more than they use."""
    with suppress(ImportError, OSError, ValueError):  # Windows; a lower limit that was there before
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if soft == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_AS, (2 * have + (4 << 30), hard))


def main(kind: str, path: str) -> None:
    """The child: read the file and send its columns, or what is wrong with it."""
    from .frames import arrow_columns, parquet_columns

    _limit_memory()
    stream = sys.stdout.buffer
    count = 0
    try:
        for column in (parquet_columns if kind == "Parquet" else arrow_columns)(Path(path)):
            _send_column(stream, column)
            count += 1
        _send(stream, {"columns": count})
    except QubayesError as error:
        _send(stream, {"error": type(error).__name__, "message": str(error)})
    stream.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
