"""Text files of scores: Jaakkola's format (`.jkl`, `.scores`) and that of URLearning (`.pss`).

`.jkl`, as GOBNILP, blip and MINOBS read and write it: the number of variables; for each variable a
line `name count` and `count` lines `score k parent1 ... parentk`. Lines that begin with `#` are
comments; in our own files one of them holds the stamp.

`.pss`, as URLearning and GOBNILP read and write it: lines `META key = value`; for each variable a
line `VAR name`, its own `META` lines and lines `score parent1 parent2 ...`. The format has no
counts. Our own files hold them in the stamp, so that a file that was cut short is noticed.

Files are read line by line in bounded memory; bytes that are not UTF-8 come as surrogates, so that
an error names their line. Scores have as many digits as give them back exactly."""

from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Any

import numpy as np

from ..foundation.errors import FormatError
from ..foundation.families import Families
from ..foundation.files import json_object, shown
from .candidates import Candidates, Stamp
from .prune import prune_families

# characters; a file without line ends is refused before it fills the memory
_LONGEST_LINE = 1 << 24
_JKL_STAMP, _PSS_STAMP = "# qubayes ", "qubayes"


class _Lines:
    """The lines of a text file that are neither blank nor comments, as lists of words."""

    def __init__(self, file: IO[str]) -> None:
        self.number = 0  # of the current line, from 1
        self.text = ""  # the current line
        self.comments: list[str] = []  # those that begin as our stamp does
        self._file = file
        self._words = self._read()

    def __iter__(self) -> Iterator[list[str]]:
        return self._words

    @property
    def whole(self) -> bool:
        """False if the current line lacks its line end."""
        return self.text.endswith("\n")

    def next(self, expected: str) -> list[str]:
        """Return the words of the next line; raise if the file ends here."""
        words = next(self._words, None)
        if words is None:
            raise FormatError(
                f"the file ends after line {self.number}; expected {expected}: it was cut short"
            )
        return words

    def error(self, message: str) -> FormatError:
        """Return the error to raise about the current line."""
        return FormatError(f"line {self.number}: {message}")

    def score(self, word: str) -> float:
        """Return the word as a score."""
        try:
            if "_" not in word:  # Python would read 1_0 as ten
                return float(word)
        except ValueError:
            pass
        raise self.error(f"the score is {shown(word)}; expected a number")

    def count(self, word: str, what: str) -> int:
        """Return the word as a number of things."""
        if not (word.isascii() and word.isdigit() and len(word) <= 18):
            raise self.error(f"{shown(word)} is given as {what}; expected a whole number")
        return int(word)

    def _read(self) -> Iterator[list[str]]:
        while text := self._file.readline(_LONGEST_LINE):
            self.number += 1
            if len(text) == _LONGEST_LINE and text[-1] != "\n":
                raise self.error(f"it is longer than {_LONGEST_LINE} bytes; not a file of scores")
            if not (text.isascii() or _is_unicode(text)):
                raise self.error("not UTF-8 text; give a text file of scores")
            self.text = text
            words = text.split()
            if words and words[0][0] != "#":
                yield words
            elif text.startswith(_JKL_STAMP + "{"):
                self.comments.append(text)


class _Numbers(dict[str, int]):
    """A number for each word, in order of appearance, and the line where it appeared."""

    def __init__(self, lines: _Lines) -> None:
        super().__init__()
        self.seen_at = array("q")
        self._lines = lines

    def __missing__(self, word: str) -> int:
        self.seen_at.append(self._lines.number)
        self[word] = number = len(self)
        return number


class _Listing:
    """Parent sets as they come from a file: parents may be named before their own section."""

    def __init__(self, lines: _Lines) -> None:
        self.names: dict[str, None] = {}
        self.sets = 0
        self._lines = lines
        self._numbers = _Numbers(lines)
        self._number_of = self._numbers.__getitem__
        self._vertex_start = array("q")
        self._scores = array("d")
        self._set_start = array("q", [0])
        self._members = array("i")

    def begin(self, name: str) -> None:
        """Open the section of a variable."""
        if name in self.names:
            raise self._lines.error(
                f"variable {shown(name)} comes a second time; each may come once"
            )
        self.names[name] = None
        self._vertex_start.append(self.sets)

    def add(self, score: float, parents: list[str]) -> None:
        """Add a parent set to the open section."""
        self.sets += 1
        self._scores.append(score)
        self._members.extend(map(self._number_of, parents))
        self._set_start.append(len(self._members))

    def finish(self, stamp: Stamp) -> Candidates:
        """Return the candidate sets among all that were added."""
        vertices = np.full(len(self._numbers), -1, dtype=np.int32)
        for vertex, name in enumerate(self.names):
            if name in self._numbers:
                vertices[self._numbers[name]] = vertex
        for number in np.flatnonzero(vertices < 0).tolist():
            word = next(islice(self._numbers, number, None))
            raise FormatError(
                f"line {self._numbers.seen_at[number]}: parent {shown(word)} is not a variable of "
                "the file; each needs its own section"
            )
        families = Families(
            np.append(np.array(self._vertex_start, dtype=np.int64), self.sets),
            np.array(self._set_start, dtype=np.int64),
            vertices[np.array(self._members, dtype=np.int32)],
        )
        return prune_families(
            tuple(self.names), families, np.array(self._scores, dtype=np.float64), stamp
        )


def read_jkl(file: IO[str]) -> Candidates:
    """Return the candidate sets among the parent sets of a `.jkl` file."""
    lines = _Lines(file)
    listing = _Listing(lines)
    words = lines.next("the number of variables")
    if len(words) != 1:
        raise lines.error(f"it holds {len(words)} words; expected the number of variables alone")
    variables = lines.count(words[0], "the number of variables")
    for number in range(1, variables + 1):
        expected = f"'name count' of variable {number} of {variables}"
        words = lines.next(expected)
        if len(words) != 2:
            raise lines.error(f"it holds {len(words)} words; expected {expected}")
        name = words[0]
        sets = lines.count(words[1], f"the number of parent sets of {shown(name)}")
        listing.begin(name)
        for place in range(1, sets + 1):
            words = lines.next(f"parent set {place} of {sets} of {shown(name)}")
            score = lines.score(words[0])
            size = len(words) - 2
            if size < 0 or (
                words[1] != str(size) and lines.count(words[1], "the number of parents") != size
            ):
                raise lines.error(
                    f"{shown(lines.text.strip())} is not 'score k parent1 ... parentk' "
                    "with k parents"
                )
            listing.add(score, words[2:])
    for words in lines:
        raise lines.error(
            f"{shown(' '.join(words))} comes after the last of {variables} variables; "
            "expected the end"
        )
    if not lines.comments:
        return listing.finish(Stamp())
    if not lines.whole:
        raise lines.error("the line end is missing: the file was cut short")
    return listing.finish(Stamp.of(json_object(lines.comments[0].removeprefix(_JKL_STAMP))))


def read_pss(file: IO[str]) -> Candidates:
    """Return the candidate sets among the parent sets of a `.pss` file."""
    lines = _Lines(file)
    listing = _Listing(lines)
    facts: dict[str, Any] | None = None
    for words in lines:
        if words[0] == "META":
            key, _, value = lines.text.split(maxsplit=1)[-1].partition("=")
            if facts is None and key.strip() == _PSS_STAMP:
                facts = json_object(value)
        elif words[0] == "VAR":
            if len(words) != 2:
                raise lines.error(
                    f"{shown(lines.text.strip())} is not 'VAR name' with a name of one word"
                )
            listing.begin(words[1])
        elif not listing.names:
            raise lines.error(
                f"{shown(lines.text.strip())} comes before the first variable; "
                "expected 'META key = value' or 'VAR name'"
            )
        else:
            listing.add(lines.score(words[0]), words[1:])
    if facts is None:
        if not listing.names:
            lines.next("'VAR name'")
        return listing.finish(Stamp())
    expected = facts.pop("variables", None), facts.pop("sets", None)
    if expected != (len(listing.names), listing.sets) or not lines.whole:
        raise lines.error(
            f"the file ends with {len(listing.names)} variables and {listing.sets} parent sets; "
            f"expected {expected[0]} and {expected[1]}: it was cut short or changed"
        )
    return listing.finish(Stamp.of(facts))


def check_words(names: Sequence[str], kind: str) -> None:
    """Raise unless every name is one word that a text file gives back as it was."""
    for name in names:
        if name.split() != [name] or name.startswith("#") or not _is_unicode(name):
            raise FormatError(
                f"{kind} files cannot hold the name {shown(name)} (white space, a leading '#', "
                f"nothing at all or no Unicode text); rename the variable, or write a .qbc file"
            )


def _is_unicode(text: str) -> bool:
    """Return whether the text has no surrogates."""
    return text.encode("utf-8", "replace").decode() == text


def write_jkl(candidates: Candidates) -> Iterator[str]:
    """Yield the lines of a `.jkl` file."""
    names = candidates.names
    yield f"{candidates.n}\n{_JKL_STAMP}{candidates.stamp.as_json()}\n"
    for vertex, name in enumerate(names):
        yield f"{name} {candidates.families.sizes[vertex]}\n"
        for parents, score in candidates.of(vertex):
            yield (
                " ".join([repr(score), str(len(parents)), *(names[parent] for parent in parents)])
                + "\n"
            )


def write_pss(candidates: Candidates) -> Iterator[str]:
    """Yield the lines of a `.pss` file."""
    names = candidates.names
    facts = candidates.stamp.as_json(variables=candidates.n, sets=len(candidates.scores))
    yield f"META {_PSS_STAMP} = {facts}\n"
    for vertex, name in enumerate(names):
        yield f"\nVAR {name}\n"
        for parents, score in candidates.of(vertex):
            yield " ".join([repr(score), *(names[parent] for parent in parents)]) + "\n"
