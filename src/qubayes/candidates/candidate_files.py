"""Files of candidate sets, by their ending: `.jkl` or `.scores`, `.pss`, `.qbc`.

`.qbc` is our own format: exact, checked and quick, for results of any size and names of any kind.
Its container is that of `foundation.arrays`; the facts are names, stamp, number of sets and number
of members; the arrays are vertex_start, set_start, scores (8 bytes each) and members (4 bytes
each)."""

import gzip
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..foundation.arrays import AnyArray, Facts, Format, Layout, read_arrays, sizes_of, write_arrays
from ..foundation.errors import FormatError
from ..foundation.families import Families, neighbours, well_formed
from ..foundation.files import check_places, ending, opened, read_text, replacing
from ..network import NETWORK_ENDINGS, read_network
from .candidates import Candidates, Stamp
from .score_files import check_words, read_jkl, read_pss, write_jkl, write_pss

_TEXT = {
    ".jkl": (read_jkl, write_jkl),
    ".scores": (read_jkl, write_jkl),
    ".pss": (read_pss, write_pss),
}
_BINARY = ".qbc"
ENDINGS = (*_TEXT, _BINARY)
_ALLOWED = f"{', '.join(_TEXT)} (with or without .gz), {_BINARY}"


def read_candidates(path: str | Path) -> Candidates:
    """Return the candidate sets of the file; files that list other parent sets too are pruned.

    The format of a file with another ending (`.BDeu.gz`, say) is recognized by its first line.
    """
    path = Path(path)
    kind = ending(path)
    try:
        if kind == _BINARY:
            return _read_binary(path)
        if kind not in _TEXT:
            kind = _recognized(path)
        with _opened_text(path) as text:
            return _TEXT[kind][0](text)
    except FormatError as error:
        raise FormatError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def rename(candidates: Candidates, path: str | Path) -> Candidates:
    """Return the candidate sets with the names in the file: a network, or a text of one a line.

    A file of scores often numbers its variables. Numbers from 0 or from 1 choose the name of that
    place; other names are replaced in their order."""
    if ending(path) in NETWORK_ENDINGS and ending(path) != ".csv":
        names = read_network(path).names
    else:
        names = tuple(line.strip() for line in read_text(path).splitlines() if line.strip())
    if len(names) != candidates.n or len(set(names)) != len(names):
        raise FormatError(
            f"{path} has {len(set(names))} different names for {candidates.n} variables; "
            "give a network, or a text with one name on each line"
        )
    numbers = [int(name) if name.isascii() and name.isdigit() else -1 for name in candidates.names]
    first = min(numbers)
    if sorted(numbers) == list(range(first, first + len(names))) and first in (0, 1):
        names = tuple(names[number - first] for number in numbers)
    return replace(candidates, names=names)


@contextmanager
def _opened_text(path: Path) -> Iterator[IO[str]]:
    """Yield the text of the file, unpacked if it begins as gzip does.

    Bytes that are not UTF-8 become surrogates.
    """
    with opened(path, packed=False) as file:
        packed = file.read(2) == b"\x1f\x8b"
    with opened(path, packed=packed) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="\n")
        try:
            yield text
        finally:
            text.detach()  # `opened` closes the file


def _recognized(path: Path) -> str:
    """Return the ending that fits: `.jkl` begins with a number, `.pss` with META or VAR."""
    with _opened_text(path) as text:
        for line in io.StringIO(text.read(1 << 16)):
            words = line.split()
            if words and not words[0].startswith("#"):
                if words[0].isdigit() and len(words) == 1:
                    return ".jkl"
                if words[0] in ("META", "VAR"):
                    return ".pss"
                break
    raise FormatError(f"{path} is not a known file of scores; allowed endings are {_ALLOWED}")


def check_output(path: str | Path, names: Sequence[str] = ()) -> None:
    """Raise if candidate sets of variables with these names cannot be written there.

    Called before a long search, not after it.
    """
    path = Path(path)
    if ending(path) not in _TEXT and path.suffix.lower() != _BINARY:
        raise FormatError(f"cannot write candidate sets to {path}; allowed endings are {_ALLOWED}")
    check_places([path])
    if ending(path) in _TEXT:
        check_words(names, ending(path))


def write_candidates(candidates: Candidates, path: str | Path) -> None:
    """Write the candidate sets in the format that the ending names; the file is whole or absent."""
    path, plain = Path(path), candidates.plain
    check_output(path, candidates.names)
    if plain is not None and ending(path) != _BINARY:
        raise FormatError(
            f"cannot write {path}: the format holds no order of variables (before, not_ancestors); "
            "write .qbc, or give the knowledge to `qubayes solve`"
        )
    if not np.isfinite(candidates.scores).all():
        raise FormatError(
            f"cannot write {path}: a score is not finite; leave out the sets that may not be used"
        )
    with replacing(path, binary=True) as file:
        if ending(path) == _BINARY:
            families = candidates.families
            facts: dict[str, Any] = {
                "names": list(candidates.names),
                "stamp": json.loads(candidates.stamp.as_json()),
                "sets": len(candidates.scores),
                "members": len(families.members),
            }
            arrays: list[AnyArray] = [
                families.vertex_start,
                families.set_start,
                candidates.scores,
                families.members,
            ]
            if plain is not None:
                facts["plain"] = {"sets": len(plain.scores), "members": len(plain.families.members)}
                arrays += [
                    plain.families.vertex_start,
                    plain.families.set_start,
                    plain.scores,
                    plain.families.members,
                ]
            write_arrays(file, _FORMAT, facts, arrays)
            return
        # Without a name and a time in it, the same result gives the same packed file.
        is_packed = path.suffix.lower() == ".gz"
        with (
            gzip.GzipFile("", "wb", fileobj=file, mtime=0)
            if is_packed
            else nullcontext(file) as packed
        ):
            packed.writelines(line.encode() for line in _TEXT[ending(path)][1](candidates))


def _layout(facts: Facts) -> Layout:
    """Return type and length of vertex_start, set_start, scores and members.

    They come twice where an order is expressed.
    """
    vertices, sets, members = sizes_of(facts)
    if not isinstance(facts.get("stamp"), dict):
        raise FormatError("the header does not hold a stamp")
    found: Layout = (("<i8", vertices + 1), ("<i8", sets + 1), ("<f8", sets), ("<i4", members))
    if isinstance(plain := facts.get("plain"), dict):
        found += _layout({**plain, "names": facts["names"], "stamp": facts["stamp"], "plain": None})
    return found


_FORMAT = Format(
    b"\x93qubayes-candida", "candidate sets", "other programs' files end in .jkl or .pss", _layout
)


def _read_binary(path: Path) -> Candidates:
    """Return the candidate sets of a `.qbc` file; raise unless they are sets above a base."""
    facts, arrays = read_arrays(path, _FORMAT)
    names = tuple(facts["names"])
    stamp = Stamp.of(facts["stamp"])
    found: list[Candidates] = []
    for first in range(0, len(arrays), 4):
        vertex_start, set_start, scores, members = arrays[first : first + 4]
        families = Families(vertex_start, set_start, members)
        each = Candidates(names, families, scores, stamp)
        if not _is_ordered(each) or not all(_has_base(each, v) for v in range(each.n)):
            raise FormatError(
                "the arrays do not describe sets of parents, best first; "
                "qubayes did not make the file"
            )
        found.append(each)
    if len(found) == 1:
        return found[0]
    whole, plain = found
    if not all(set(plain.base(vertex)) <= set(whole.base(vertex)) for vertex in range(whole.n)):
        raise FormatError(
            "the arrays do not describe an order of variables; qubayes did not make the file"
        )
    return replace(whole, plain=plain)


def _is_ordered(candidates: Candidates) -> bool:
    """Return whether every vertex has sets of parents with finite scores, best first."""
    families = candidates.families
    if not well_formed(families) or not bool((families.sizes >= 1).all()):
        return False
    descending = (np.diff(candidates.scores) <= 0)[neighbours(families.vertex_start)]
    return bool(np.isfinite(candidates.scores).all() and descending.all())


def _has_base(candidates: Candidates, vertex: int) -> bool:
    """Return whether every set of the vertex contains the last one."""
    base = set(candidates.base(vertex))
    return not base or all(map(base.issubset, candidates.families.sets_of(vertex)))
