"""Files of candidate sets, by their ending: `.jkl` or `.scores`, `.pss`, `.qbc`."""

import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from ..foundation.errors import FormatError
from ..foundation.files import check_places, ending, replacing
from .candidates import Candidates
from .jkl import read_jkl, write_jkl
from .lines import check_words, opened
from .pss import read_pss, write_pss
from .qbc import read_native, write_native

_TEXT = {".jkl": (read_jkl, write_jkl), ".scores": (read_jkl, write_jkl), ".pss": (read_pss, write_pss)}
_NATIVE = ".qbc"
_ALLOWED = f"{', '.join(_TEXT)} (with or without .gz), {_NATIVE}"


def read_candidates(path: str | Path) -> Candidates:
    """The candidate sets of the file; files that list other parent sets too are pruned.

    A file with another ending (`.BDeu.gz`, say) is told by how it begins.
    """
    path = Path(path)
    kind = ending(path)
    try:
        if kind == _NATIVE:
            return read_native(path)
        with opened(path) as file:
            return _TEXT[kind if kind in _TEXT else _guessed(path)][0](file)
    except FormatError as error:
        raise FormatError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def _guessed(path: Path) -> str:
    """The ending that the file should have: `.jkl` begins with a number, `.pss` with META or VAR."""
    with opened(path) as file:
        for line in io.BytesIO(file.read(1 << 16)):
            words = line.split()
            if words and not words[0].startswith(b"#"):
                if words[0].isdigit() and len(words) == 1:
                    return ".jkl"
                if words[0] in (b"META", b"VAR"):
                    return ".pss"
                break
    raise FormatError(f"{path} is not a known file of scores; allowed endings are {_ALLOWED}")


def check_output(path: str | Path, names: Sequence[str] = ()) -> None:
    """Raise if candidate sets of variables with these names cannot be written there.

    Asked before a long search, not after it.
    """
    path = Path(path)
    if ending(path) not in _TEXT and path.suffix.lower() != _NATIVE:
        raise FormatError(f"cannot write candidate sets to {path}; allowed endings are {_ALLOWED}")
    check_places([path])
    if ending(path) in _TEXT:
        check_words(names, ending(path))


def write_candidates(candidates: Candidates, path: str | Path) -> None:
    """Write the candidate sets in the format that the ending names; the file is whole or absent."""
    path = Path(path)
    check_output(path)
    kind = ending(path)
    packed = path.suffix.lower() == ".gz"
    if not np.isfinite(candidates.scores).all():
        raise FormatError(f"cannot write {path}: a score is not finite; leave out the sets that may not be used")
    with replacing(path, binary=True) as file:
        if kind == _NATIVE:
            write_native(candidates, file)
        else:
            with _text(file, packed) as text:
                _TEXT[kind][1](candidates, text)


@contextmanager
def _text(file: IO[bytes], packed: bool) -> Iterator[IO[str]]:
    """A text file over the open one, which stays open."""
    inner = (
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) if packed else file
    )  # no name, no time: same result, same bytes
    text = io.TextIOWrapper(inner, encoding="utf-8", newline="\n", write_through=False)
    try:
        yield text
        text.flush()
    finally:
        text.detach()
        if packed:
            inner.close()
