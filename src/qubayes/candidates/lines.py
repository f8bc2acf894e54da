"""Text files of local scores: read line by line in bounded memory, and gathered into flat arrays."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from ..foundation.errors import FormatError
from ..foundation.families import Families
from ..foundation.files import opened as opened_file
from .candidates import Candidates, Stamp
from .prune import prune_families

_BLOCK = 1 << 20  # bytes read at once
_LONGEST_LINE = 1 << 24  # bytes; a file without line ends is refused before it fills the memory


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """The bytes of the file, unpacked if they are gzip's, whatever its name."""
    with opened_file(path, packed=False) as file:
        packed = file.read(2) == b"\x1f\x8b"
    with opened_file(path, packed=packed) as file:
        yield file


def shown(word: str) -> str:
    """The word in quotes, cut if it is long."""
    return repr(word if len(word) <= 40 else word[:37] + "...")


class Lines:
    """The lines of a text file that are neither blank nor comments, as lists of words."""

    def __init__(self, file: BinaryIO, on_comment: Callable[[str], None] = lambda text: None) -> None:
        self.number = 0  # of the line given last, from 1
        self.text = ""  # that line
        self.whole = True  # False once the last line has been seen to lack its line end
        self._file = file
        self._on_comment = on_comment
        self._words = self._read()

    def __iter__(self) -> Iterator[list[str]]:
        return self._words

    def next(self, expected: str) -> list[str]:
        """The words of the next line; an error that says what was expected if the file ends here."""
        words = next(self._words, None)
        if words is None:
            raise FormatError(f"the file ends after line {self.number}; expected {expected}: it was cut short")
        return words

    def error(self, message: str) -> FormatError:
        """The error to raise about the line given last."""
        return FormatError(f"line {self.number}: {message}")

    def score(self, word: str) -> float:
        """The word as a score."""
        try:
            if "_" not in word:  # Python would read 1_0 as ten
                return float(word)
        except ValueError:
            pass
        raise self.error(f"the score is {shown(word)}; expected a number")

    def count(self, word: str, what: str) -> int:
        """The word as a number of things."""
        if not (word.isascii() and word.isdigit() and len(word) <= 18):
            raise self.error(f"{shown(word)} is given as {what}; expected a whole number")
        return int(word)

    def _read(self) -> Iterator[list[str]]:
        for lines in self._blocks():
            for text in lines:
                self.number += 1
                words = text.split()
                if not words:
                    continue
                self.text = text
                if words[0][0] == "#":
                    self._on_comment(text)
                else:
                    yield words

    def _blocks(self) -> Iterator[list[str]]:
        """The file in lists of whole lines."""
        parts: list[bytes] = []
        kept = 0
        while block := self._file.read(_BLOCK):
            cut = block.rfind(b"\n") + 1
            if cut:
                yield self._decoded(b"".join([*parts, block[: cut - 1]])).split("\n")
                parts, kept = [], 0
            parts.append(block[cut:])
            kept += len(block) - cut
            if kept > _LONGEST_LINE:
                raise FormatError(f"line {self.number + 1} is longer than {_LONGEST_LINE} bytes; not a file of scores")
        if kept:
            self.whole = False
            yield [self._decoded(b"".join(parts))]

    def _decoded(self, lines: bytes) -> str:
        try:
            text = lines.decode("utf-8")
        except UnicodeDecodeError as error:
            number = self.number + 1 + lines.count(b"\n", 0, error.start)
            raise FormatError(f"line {number}: not UTF-8 text; give a text file of scores") from error
        return text.removeprefix("\ufeff") if self.number == 0 else text


class _Numbers(dict[str, int]):
    """A number for each word, in order of appearance, and the line where it appeared."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self.seen_at = array("q")
        self._lines = lines

    def __missing__(self, word: str) -> int:
        self.seen_at.append(self._lines.number)
        self[word] = number = len(self)
        return number


class Listing:
    """Parent sets as they come from a file: parents may be named before their own section."""

    def __init__(self, lines: Lines) -> None:
        self.names: dict[str, None] = {}
        self._lines = lines
        self._numbers = _Numbers(lines)
        self._number_of = self._numbers.__getitem__
        self._vertex_start = array("q")
        self._scores = array("d")
        self._sizes = array("q")
        self._members = array("i")

    @property
    def sets(self) -> int:
        """Number of parent sets so far."""
        return len(self._scores)

    def begin(self, name: str) -> None:
        """Open the section of a variable."""
        if name in self.names:
            raise self._lines.error(f"variable {shown(name)} comes a second time; each may come once")
        self.names[name] = None
        self._vertex_start.append(self.sets)

    def add(self, score: float, parents: list[str]) -> None:
        """Add a parent set to the open section."""
        self._scores.append(score)
        self._sizes.append(len(parents))
        self._members.extend(map(self._number_of, parents))

    def finish(self, stamp: Stamp) -> Candidates:
        """The candidate sets among all that were added."""
        vertices = np.full(len(self._numbers), -1, dtype=np.int32)
        for vertex, name in enumerate(self.names):
            if name in self._numbers:
                vertices[self._numbers[name]] = vertex
        self._check_known(vertices)
        families = Families(
            np.append(np.array(self._vertex_start, dtype=np.int64), self.sets),
            np.concatenate([[0], np.cumsum(np.array(self._sizes, dtype=np.int64))]),
            vertices[np.array(self._members, dtype=np.int32)],
        )
        return prune_families(tuple(self.names), families, np.array(self._scores, dtype=np.float64), stamp)

    def _check_known(self, vertices: np.ndarray[tuple[int], np.dtype[np.int32]]) -> None:
        unknown = np.flatnonzero(vertices < 0)
        if len(unknown):
            number = int(unknown[0])
            word = next(islice(self._numbers, number, None))
            line = self._numbers.seen_at[number]
            raise FormatError(
                f"line {line}: parent {shown(word)} is no variable of the file; each needs its own section"
            )


def check_words(names: Sequence[str], kind: str) -> None:
    """Raise unless every name is one word that a text file gives back as it was."""
    for name in names:
        if name.split() != [name] or name.startswith("#") or not _is_text(name):
            raise FormatError(
                f"{kind} files cannot hold the name {shown(name)} (white space, a leading '#', nothing at all or no "
                f"Unicode text); rename the variable, or write a .qbc file"
            )


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def write_sections(
    file: IO[str], candidates: Candidates, head: Callable[[str, int], str], line: Callable[[str, list[str]], str]
) -> None:
    """Write head(name, number of sets) and line(score, parents) for every set, variable by variable."""
    names = candidates.names
    for vertex, name in enumerate(names):
        file.write(head(name, int(candidates.families.sizes[vertex])))
        file.writelines(
            line(repr(score), [names[parent] for parent in parents]) for parents, score in candidates.of(vertex)
        )
