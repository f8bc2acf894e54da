"""Files of local scores in Jaakkola's format (`.jkl`, `.scores`), as GOBNILP, blip and MINOBS read and write them.

Line 1: number of variables. Per variable `name count`, then `count` lines `score k parent1 ... parentk`. Lines that
begin with `#` are comments; one of them keeps the stamp of our own files.
"""

from typing import IO, BinaryIO

from ..foundation.files import json_object
from .candidates import Candidates, Stamp
from .lines import Lines, Listing, check_words, shown, write_sections
from .stamps import stamp_as_json, stamp_of

_STAMP = "# qubayes "


def read_jkl(file: BinaryIO) -> Candidates:
    """The candidate sets among the parent sets of the file."""
    stamps: list[Stamp] = []
    lines = Lines(file, lambda text: stamps.extend(_stamps(text)))
    listing = Listing(lines)
    words = lines.next("the number of variables")
    if len(words) != 1:
        raise lines.error(f"it holds {len(words)} words; expected the number of variables alone")
    variables = lines.count(words[0], "the number of variables")
    for number in range(variables):
        _read_section(lines, listing, f"'name count' of variable {number + 1} of {variables}")
    for _ in lines:
        raise lines.error(f"{shown(lines.text)} comes after the last of {variables} variables; expected the end")
    if stamps and not lines.whole:
        raise lines.error("the line end is missing: the file was cut short")
    return listing.finish(stamps[0] if stamps else Stamp())


def _read_section(lines: Lines, listing: Listing, expected: str) -> None:
    words = lines.next(expected)
    if len(words) != 2:
        raise lines.error(f"it holds {len(words)} words; expected {expected}")
    name = words[0]
    sets = lines.count(words[1], f"the number of parent sets of {shown(name)}")
    listing.begin(name)
    for number in range(sets):
        words = lines.next(f"parent set {number + 1} of {sets} of {shown(name)}")
        score = lines.score(words[0])
        size = len(words) - 2
        if size < 0 or (words[1] != str(size) and lines.count(words[1], "the number of parents") != size):
            raise lines.error(f"{shown(lines.text)} is not 'score k parent1 ... parentk' with k parents")
        listing.add(score, words[2:])


def _stamps(comment: str) -> list[Stamp]:
    """The stamp, if the comment is one."""
    return [stamp_of(json_object(comment[len(_STAMP) :]))] if comment.startswith(_STAMP + "{") else []


def write_jkl(candidates: Candidates, file: IO[str]) -> None:
    """Write the candidate sets; scores have as many digits as give them back exactly."""
    check_words(candidates.names, ".jkl")
    file.write(f"{candidates.n}\n{_STAMP}{stamp_as_json(candidates.stamp)}\n")
    write_sections(
        file,
        candidates,
        lambda name, sets: f"{name} {sets}\n",
        lambda score, parents: " ".join([score, str(len(parents)), *parents]) + "\n",
    )
