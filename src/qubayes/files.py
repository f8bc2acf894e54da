"""Files that are whole or absent: written beside their place, then renamed into it.

Until then they are private. Who writes one holds a lock on it, which ends with its process: a temporary file without
one was left by a process that was killed, and the next to write the same file removes it.
"""

import gzip
import json
import os
import re
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from .errors import FormatError, QubayesError

try:
    import fcntl
except ImportError:  # Windows, where what a killed process left stays
    fcntl = None  # type: ignore[assignment]

_reading_umask = threading.Lock()


@contextmanager
def replacing(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A file to write to that takes the place of `path` when the block ends well, and vanishes otherwise."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise FormatError(f"cannot write {path}: a folder or a device has that name; choose another")
    try:
        remove_strays(path.parent, path.name)
        handle, temporary = _locked_beside(path)
    except OSError as error:
        raise FormatError(f"cannot write {path}: {error.strerror}; choose another place") from error
    try:
        with os.fdopen(handle, "wb" if binary else "w", encoding=None if binary else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl:
                publish(temporary, path)  # still locked: nobody takes it for a stray one
        if not fcntl:
            publish(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, QubayesError):
            raise FormatError(
                f"cannot write {path}: {error.strerror}; nothing was changed: make room, or choose another place"
            ) from error
        raise


def _locked_beside(path: Path) -> tuple[int, Path]:
    """A new private file in the same folder, open and locked by this process."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        if fcntl:
            with suppress(OSError):  # a file system without locks: there nobody can lock, so nobody removes it
                fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # taken for a stray one in the moment before it was locked


def private(path: str, flags: int) -> int:
    """For `open(..., opener=private)`: a new file can be read and written by its owner alone."""
    return os.open(path, flags, 0o600)


def publish(temporary: Path, path: Path) -> None:
    """Put the finished private file in its place, with the permissions that any new file gets."""
    temporary.chmod(0o666 & ~_umask())
    temporary.replace(path)


def remove_strays(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files of processes that were killed while they wrote the file `name`; None: any file."""
    if not fcntl:
        return
    stray = re.compile(rf"\.{re.escape(name) if name else '.+'}\.[a-z0-9_]{{8}}\.part", re.DOTALL)
    with suppress(OSError), os.scandir(folder) as entries:  # a folder may be written to and yet not be listed
        for entry in entries:
            if stray.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    """Remove the file unless a living process holds a lock on it, or it belongs to somebody else."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            Path(path).unlink()
        finally:
            os.close(handle)


def _umask() -> int:
    """The permissions that this process takes from new files; it can only be read by setting it."""
    with _reading_umask:  # else two threads would set and restore in turns, and leave the wrong one
        mask = os.umask(0o077)  # a file that another thread makes meanwhile is rather too private than too open
        os.umask(mask)
    return mask


def ending(path: str | Path) -> str:
    """The last suffix in lower case, `.gz` not counted: `x.bif.gz` -> `.bif`."""
    path = Path(path)
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def read_bytes(path: str | Path, most: int | None = None) -> bytes:
    """The content of the file, unpacked if its name ends in `.gz`; an error if it is longer than `most` bytes."""
    path = Path(path)
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            content = file.read() if most is None else file.read(most + 1)
    except FileNotFoundError:
        raise FormatError(f"no such file: {path}; give a file that exists") from None
    except IsADirectoryError:
        raise FormatError(f"{path} is a folder; give a file in it") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{path} is not a whole gzip file ({error}); fetch or pack it again") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise FormatError(f"cannot read {path!s}: {getattr(error, 'strerror', None) or error}") from None
    if most is not None and len(content) > most:
        raise FormatError(f"{path} holds more than {most} bytes unpacked; at most {most} are read")
    return content


def read_text(path: str | Path, most: int | None = None) -> str:
    """The text of the file (UTF-8, a byte order mark dropped), unpacked if its name ends in `.gz`."""
    content = read_bytes(path, most)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{path}, line {line}: byte {content[error.start]:#04x} is not UTF-8 text; save the file as UTF-8"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FormatError(f"{path}, line {line}: a NUL byte; this is no text file")
    return text


def json_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object that the text holds."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise FormatError("a JSON object is expected")
    return value
