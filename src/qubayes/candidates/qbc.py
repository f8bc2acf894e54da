"""The native file of candidate sets (`.qbc`): exact, checked and quick, for results of any size and names of any kind.

The container is that of `qubayes.foundation.array_files`; the facts are names, stamp, number of sets and members; the
arrays are
vertex_start, set_start, scores (8 bytes each) and members (4 bytes each).
"""

import json
from pathlib import Path
from typing import IO

import numpy as np

from ..foundation.array_files import Facts, Format, Layout, read_arrays, sizes_of, write_arrays
from ..foundation.errors import FormatError
from ..foundation.families import Families, neighbours, well_formed
from .candidates import Candidates
from .stamps import stamp_as_json, stamp_of


def _layout(facts: Facts) -> Layout:
    """Type and length of vertex_start, set_start, scores and members."""
    vertices, sets, members = sizes_of(facts)
    if not isinstance(facts.get("stamp"), dict):
        raise FormatError("the header does not hold a stamp")
    return ("<i8", vertices + 1), ("<i8", sets + 1), ("<f8", sets), ("<i4", members)


_FORMAT = Format(b"\x93qubayes-candida", "candidate sets", "other programs' files end in .jkl or .pss", _layout)


def write_native(candidates: Candidates, file: IO[bytes]) -> None:
    """Write the candidate sets."""
    families = candidates.families
    facts = {
        "names": list(candidates.names),
        "stamp": json.loads(stamp_as_json(candidates.stamp)),
        "sets": len(candidates.scores),
        "members": len(families.members),
    }
    arrays = families.vertex_start, families.set_start, candidates.scores, families.members
    write_arrays(file, _FORMAT, facts, arrays)


def read_native(path: Path) -> Candidates:
    """The candidate sets that `write_native` wrote."""
    facts, (vertex_start, set_start, scores, members) = read_arrays(path, _FORMAT)
    families = Families(vertex_start, set_start, members)
    found = Candidates(tuple(facts["names"]), families, scores, stamp_of(facts["stamp"]))
    if not _is_fine(found):
        raise FormatError("the arrays do not describe sets of parents, best first; the file was not made by qubayes")
    return found


def _is_fine(found: Candidates) -> bool:
    """Whether the arrays are sets of other vertices, best first, above a base."""
    families, scores = found.families, found.scores
    return (
        well_formed(families)
        and bool((families.sizes >= 1).all())
        and bool(np.isfinite(scores).all())
        and bool((np.diff(scores) <= 0)[neighbours(families.vertex_start)].all())
        and all(_has_base(found, vertex) for vertex in range(found.n))
    )


def _has_base(found: Candidates, vertex: int) -> bool:
    """Whether every set of the vertex contains its last one."""
    last = int(found.families.vertex_start[vertex + 1])
    if found.families.set_start[last] == found.families.set_start[last - 1]:
        return True  # nothing is required: the usual case, told without a look at the sets
    base = set(found.base(vertex))
    return all(base.issubset(parents) for parents in found.families.sets_of(vertex))
