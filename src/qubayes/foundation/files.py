"""Files that are whole or absent: written beside their place, then renamed into it.

Until then they are private. Who writes one holds a lock on it, which ends with its process: a temporary file without
one was left by a process that was killed, and the next to write the same file removes it.
"""

import gzip
import io
import json
import math
import os
import re
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from .errors import FormatError, QubayesError, SettingError

LIMIT_VARIABLE = "QUBAYES_MAX_UNPACKED"  # bytes that a packed file may unpack to
_BLOCK = 1 << 17

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


def check_places(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Raise if one of the files cannot be written, or would take the place of another one or of what is read.

    Asked before long work, not after it.
    """
    taken = {_place(path): "read" for path in inputs if path is not None}
    for path in outputs:
        if path is None:
            continue
        folder, place = path.absolute().parent, _place(path)
        if not folder.is_dir():
            raise FormatError(f"cannot write {path}: there is no folder {path.parent}; make it, or choose another")
        if not os.access(folder, os.W_OK):
            raise FormatError(f"cannot write {path}: nothing may be written to {folder}; choose another place")
        if path.exists() and not path.is_file():
            raise FormatError(f"cannot write {path}: a folder or a device has that name; choose another")
        if place in taken:
            raise FormatError(f"cannot write {path}: it is to be {taken[place]} as well; choose another name")
        taken[place] = "written for something else"


def _place(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise FormatError(f"{path} leads in a circle of links; choose another ({error})") from error


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


def lock(handle: int) -> bool:
    """Whether this process now has the open file or folder for itself, until the handle is closed.

    True also where locks are unknown: there two runs at once are not told apart.
    """
    if fcntl:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            pass
    return True


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


@contextmanager
def opened(path: str | Path, *, packed: bool | None = None) -> Iterator[BinaryIO]:
    """The bytes of the file, unpacked if its name ends in `.gz` (or if `packed` says so); errors name the file."""
    path = Path(path)
    if "\0" in str(path):
        raise FormatError(f"cannot read {str(path)!r}: no name of a file has a NUL byte")
    try:
        with path.open("rb") as file:
            if path.suffix.lower() == ".gz" if packed is None else packed:
                with gzip.GzipFile(fileobj=file) as content:
                    yield io.BufferedReader(_Bounded(content, path, unpacked_limit(path.stat().st_size)), _BLOCK)
            else:
                yield file
    except FileNotFoundError:
        raise FormatError(f"cannot read {path}: no such file; give one that exists") from None
    except IsADirectoryError:
        raise FormatError(f"cannot read {path}: it is a folder; give a file in it") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{path} is not a whole gzip file ({error}); fetch or pack it again") from None
    except OSError as error:
        raise FormatError(f"cannot read {path!s}: {error.strerror or error}") from None


def unpacked_limit(packed: int) -> int:
    """Bytes that a packed file of this size may unpack to: 100 times as many, 1 GiB at least, or what the environment
    says.

    Text packs 3 to 30 times, tables of few states up to 100 times; a bomb packs 1000 times.
    """
    told = os.environ.get(LIMIT_VARIABLE, "")
    if not told:
        return max(1 << 30, 100 * packed)
    if not (told.isascii() and told.isdigit() and len(told) <= 18):
        raise SettingError(f"{LIMIT_VARIABLE} = {told[:40]!r}; give a number of bytes, such as 20000000000")
    return int(told)


class _Bounded(io.RawIOBase):
    """What is read from a packed file, until it is more than is allowed."""

    def __init__(self, content: gzip.GzipFile, path: Path, most: int) -> None:
        self._content, self._path, self._most, self._left = content, path, most, most

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The number of bytes that were put into the buffer."""
        count = self._content.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise FormatError(
                f"{self._path} unpacks to more than {self._most:,} bytes; if you trust it, unpack it first, or set "
                f"{LIMIT_VARIABLE} to the bytes that you allow"
            )
        return count


def read_bytes(path: str | Path, most: int | None = None) -> bytes:
    """The content of the file, unpacked if its name ends in `.gz`; an error if it is longer than `most` bytes."""
    with opened(path) as file:
        content = file.read() if most is None else file.read(most + 1)
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


def lines_of(file: IO[bytes], longest: int = 1 << 26) -> Iterator[str]:
    """The lines of a text file, each with its end; an error for one that is longer than so many bytes."""
    while line := file.readline(longest + 1):
        if len(line) > longest:
            raise FormatError(f"a line of more than {longest:,} bytes; this is no text file")
        yield line.decode("utf-8")


def parse_json(text: str | bytes, objects: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Return the JSON value of the text; raise for NaN and infinities. `objects` makes values of (key, value) pairs."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=objects)
    except QubayesError:
        raise
    except RecursionError:
        raise FormatError("not JSON: it is nested too deeply") from None
    except ValueError as error:  # also of bytes that are no UTF-8, and of numbers with thousands of digits
        raise FormatError(f"not JSON: {str(error)[:120]}") from None


def json_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object that the text holds."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise FormatError("a JSON object is expected")
    return value


def shown(value: object, most: int = 60) -> str:
    """The value for an error message: on one line, cut where it is long, whatever it is."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply; a number with thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else text[: most - 3] + "..."


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value
