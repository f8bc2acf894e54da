"""Files that are whole or absent: written beside their place, then renamed into it."""

import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import FormatError, QubayesError


@contextmanager
def replacing(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A file to write to that takes the place of `path` when the block ends well, and vanishes otherwise."""
    path = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise FormatError(f"cannot write {path}: {error.strerror}; choose another place") from error
    try:
        with os.fdopen(handle, "wb" if binary else "w", encoding=None if binary else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())  # mkstemp makes private files; a result is as any other file
        Path(temporary).replace(path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, QubayesError):
            raise FormatError(f"cannot write {path}: {error.strerror}; nothing was changed") from error
        raise


def _umask() -> int:
    mask = os.umask(0)
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
