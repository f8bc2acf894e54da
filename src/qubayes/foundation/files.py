"""Reading and writing of files, with errors that name the file.

A file is written under a temporary name beside its place and then renamed: it is whole or absent.
Its writer holds a lock on the temporary file, which ends with the process. So one without a lock
was left by a process that was killed, and the next writer of the same file removes it."""

import gzip
import io
import json
import math
import os
import re
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from filelock import FileLock, Timeout

from .errors import FormatError, QubayesError, SettingError

LIMIT_VARIABLE = "QUBAYES_MAX_UNPACKED"  # bytes that a packed file may unpack to
_BLOCK = 1 << 17

try:
    import fcntl
except ImportError:  # Windows, where a file that is open can neither be removed nor renamed
    fcntl = None  # type: ignore[assignment]

_reading_umask = threading.Lock()


@contextmanager
def replacing(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Yield a file that takes the place of `path` when the block ends without an error.

    Otherwise it is removed. A link is followed, and a file that exists keeps its permissions."""
    place = _resolved(Path(path))
    if place.exists() and not place.is_file():
        raise FormatError(
            f"cannot write {path}: a folder or a device has that name; choose another"
        )
    try:
        remove_strays(place.parent, place.name)
        handle, temporary = _locked_temporary(place)
    except OSError as error:
        raise FormatError(f"cannot write {path}: {error.strerror}; choose another place") from error
    mode, encoding = ("wb", None) if binary else ("w", "utf-8")
    try:
        with os.fdopen(handle, mode, encoding=encoding) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl:
                publish(temporary, place)  # while it is locked: no other process removes it
        if not fcntl:
            publish(temporary, place)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, QubayesError):
            raise FormatError(
                f"cannot write {path}: {error.strerror};"
                " nothing was changed: make room, or choose another place"
            ) from error
        raise


def _locked_temporary(place: Path) -> tuple[int, Path]:
    """Return the handle and the name of a new file beside `place` that no other writer removes."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{place.name}.", suffix=".part", dir=place.parent)
        if fcntl:
            # a file system without locks: there no other process removes it
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # another writer removed it before it was locked


def check_places(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Raise if an output cannot be written, or is also an input or another output.

    For use before long work."""
    taken = {_resolved(path): "an input" for path in inputs if path is not None}
    for path in outputs:
        if path is None:
            continue
        place = _resolved(path)
        folder = place.parent
        if not folder.is_dir():
            missing = folder if path.is_symlink() else path.parent
            raise FormatError(
                f"cannot write {path}: there is no folder {missing}; make it, or choose another"
            )
        if not os.access(folder, os.W_OK):
            raise FormatError(
                f"cannot write {path}: nothing may be written to {folder}; choose another place"
            )
        if path.exists() and not path.is_file():
            raise FormatError(
                f"cannot write {path}: a folder or a device has that name; choose another"
            )
        if place in taken:
            raise FormatError(
                f"cannot write {path}: it is also {taken[place]}; choose another name"
            )
        taken[place] = "another output"


def _resolved(path: Path) -> Path:
    """Return the absolute path with all links followed."""
    if not _is_name(path):
        raise FormatError(
            f"cannot write {str(path)!r}: no name of a file has a NUL byte or a lone surrogate"
        )
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise FormatError(f"{path} is a circle of links; choose another ({error})") from error


def _is_name(path: Path) -> bool:
    """Return whether the system can have a file of that name."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def lock(handle: int) -> bool:
    """Lock the open file until the handle is closed; return False if another process has locked it.

    Return True also where files cannot be locked (Windows, some file systems): there two writers
    are not noticed."""
    if fcntl:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            pass
    return True


def lock_folder(folder: Path) -> FileLock | None:
    """Return a lock of the folder (its file run.lock), or None if it is locked already.

    It ends with its `release()` or with this process; run.lock stays. A file system without locks
    gives a lock that keeps nobody out."""
    held = FileLock(folder / "run.lock", thread_local=False)
    try:
        held.acquire(blocking=False)
    except Timeout:
        return None
    except PermissionError as error:
        raise FormatError(
            f"cannot write to {folder}: {error.strerror}; choose another folder"
        ) from error
    except OSError:  # a file system without locks
        pass
    return held


def private(path: str, flags: int) -> int:
    """Open a file that only its owner can read and write, for `open(..., opener=private)`."""
    return os.open(path, flags, 0o600)


def publish(temporary: Path, path: Path) -> None:
    """Put the finished private file in its place.

    It gets the permissions of the file there, or else those of a new file."""
    try:
        mode = path.stat().st_mode & 0o777
    except FileNotFoundError:
        # it can only be read by setting it: two threads could leave the wrong one
        with _reading_umask:
            mask = os.umask(0o077)  # a file of another thread is rather too private than too open
            os.umask(mask)
        mode = 0o666 & ~mask
    temporary.chmod(mode)
    temporary.replace(path)


def remove_strays(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files of killed writers of the file `name`, or of any file."""
    stray = re.compile(rf"\.{re.escape(name) if name else '.+'}\.[a-z0-9_]{{8}}\.part", re.DOTALL)
    # a folder may allow writing and not listing
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if stray.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_unlocked(Path(entry.path))


def _remove_unlocked(path: Path) -> None:
    """Remove the file, unless it is locked by its writer, or of another user."""
    with suppress(OSError), ExitStack() as closing:
        if fcntl:
            handle = os.open(path, os.O_RDONLY)
            closing.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


def ending(path: str | Path) -> str:
    """Return the last suffix but `.gz`, in lower case: `.bif` of `x.bif.gz`."""
    path = Path(path)
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


@contextmanager
def opened(path: str | Path, *, packed: bool | None = None) -> Iterator[BinaryIO]:
    """Yield the bytes of the file, unpacked if its name ends in `.gz`, or if `packed` says so.

    Errors name the file. Raise FormatError also if the file becomes shorter meanwhile: what was
    read is then not what it was or is."""
    path = Path(path)
    packed = path.suffix.lower() == ".gz" if packed is None else packed
    if not _is_name(path):
        raise FormatError(
            f"cannot read {str(path)!r}: no name of a file has a NUL byte or a lone surrogate"
        )
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            try:
                if packed:
                    with gzip.GzipFile(fileobj=file) as content:
                        yield io.BufferedReader(
                            _Bounded(content, path, unpacked_limit(size)), _BLOCK
                        )
                else:
                    yield file
            except (QubayesError, EOFError, zlib.error):
                _check_size(path, file, size)
                raise
            _check_size(path, file, size)
    except FileNotFoundError:
        raise FormatError(f"cannot read {path}: no such file; give one that exists") from None
    except IsADirectoryError:
        raise FormatError(f"cannot read {path}: it is a folder; give a file in it") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(
            f"{path} is not a whole gzip file ({error}); fetch or pack it again"
        ) from None
    except OSError as error:
        raise FormatError(f"cannot read {path!s}: {error.strerror or error}") from None


def _check_size(path: Path, file: BinaryIO, size: int) -> None:
    if os.fstat(file.fileno()).st_size < size:
        raise FormatError(
            f"{path} became shorter while it was read; read it again when its writer has finished"
        )


def unpacked_limit(packed: int) -> int:
    """Return the bytes that a packed file of this size may unpack to.

    That is 100 times its size and at least 1 GiB, unless the environment says otherwise. Text packs
    3 to 30 times, tables of few states up to 100 times; a bomb packs 1000 times."""
    limit = os.environ.get(LIMIT_VARIABLE, "")
    if not limit:
        return max(1 << 30, 100 * packed)
    if not (limit.isascii() and limit.isdigit() and len(limit) <= 18):
        raise SettingError(
            f"{LIMIT_VARIABLE} = {limit[:40]!r}; give a number of bytes, such as 20000000000"
        )
    return int(limit)


def check_archive(archive: zipfile.ZipFile, file: IO[bytes]) -> None:
    """Raise if the parts of the archive unpack to too many bytes, claim too many, or overlap."""
    size = file.seek(0, os.SEEK_END)
    for info in archive.infolist():
        if info.file_size > 1100 * info.compress_size + 4096:  # deflate packs at most 1032 : 1
            name = repr(info.filename[:40])
            raise FormatError(f"the part {name} claims more bytes than can be packed in its place")
    packed = sum(info.compress_size for info in archive.infolist())
    unpacked = sum(info.file_size for info in archive.infolist())
    if packed > size:
        raise FormatError("the parts of the file overlap, or it was cut short")
    if unpacked > unpacked_limit(size):
        raise FormatError(
            f"it unpacks to {unpacked:,} bytes; set {LIMIT_VARIABLE} to as many if you trust it"
        )


class _Bounded(io.RawIOBase):
    """The content of a packed file, with an error where it exceeds a limit."""

    def __init__(self, content: gzip.GzipFile, path: Path, most: int) -> None:
        self._content = content
        self._path = path
        self._most = most
        self._left = most

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer and return the number of bytes."""
        count = self._content.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise FormatError(
                f"{self._path} unpacks to more than {self._most:,} bytes; if you trust it,"
                f" unpack it first, or set {LIMIT_VARIABLE} to the bytes that you allow"
            )
        return count


def read_bytes(path: str | Path, most: int | None = None) -> bytes:
    """Return the content of the file, unpacked if its name ends in `.gz`; at most `most` bytes."""
    with opened(path) as file:
        content = file.read() if most is None else file.read(most + 1)
    if most is not None and len(content) > most:
        raise FormatError(f"{path} holds more than {most} bytes unpacked; at most {most} are read")
    return content


def read_text(path: str | Path, most: int | None = None) -> str:
    """Return the text of a UTF-8 file, unpacked if its name ends in `.gz`.

    A byte order mark is dropped."""
    content = read_bytes(path, most)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{path}, line {line}: byte {content[error.start]:#04x} is not UTF-8 text;"
            " save the file as UTF-8"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FormatError(f"{path}, line {line}: a NUL byte; this is not a text file")
    return text


def parse_json(text: str | bytes) -> Any:
    """Return the JSON value of the text; raise for NaN and infinities."""
    try:
        return json.loads(text, parse_constant=_finite, parse_float=_finite)
    except QubayesError:
        raise
    except RecursionError:
        raise FormatError("not JSON: it is nested too deeply") from None
    # also for bytes that are not UTF-8, and for numbers with thousands of digits
    except ValueError as error:
        raise FormatError(f"not JSON: {str(error)[:120]}") from None


def json_object(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object of the text."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise FormatError("a JSON object is expected")
    return value


def shown(value: object, most: int = 60) -> str:
    """Return any value for an error message: on one line, cut where it is long."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply; a number with thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else text[: most - 3] + "..."


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is not finite, or too large")
    return value
