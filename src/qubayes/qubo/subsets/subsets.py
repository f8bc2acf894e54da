"""Candidate parent subsets, the sets that the u bits stand for, and their files (`.qbs`).

The container of a file is that of `qubayes.foundation.array_files`; its header holds the facts of `Subsets` and the
number of sets and members; the arrays are vertex_start, set_start, lower_bounds (8 bytes each) and members (4 bytes).
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...foundation.array_files import Facts, Format, Layout, read_arrays, sizes_of, write_arrays
from ...foundation.arrays import Bools, Ints
from ...foundation.errors import FormatError
from ...foundation.families import Families, well_formed
from ...foundation.files import replacing


@dataclass(frozen=True, slots=True)
class Subsets:
    """For each vertex subsets U such that every candidate set is base | A | B for some A, B in U or empty.

    The sets do not contain the vertex's base (its required parents); none is empty.
    """

    names: tuple[str, ...]
    families: Families
    lower_bounds: Ints  # (n,) the least number of subsets that any cover of the vertex has
    method: str  # "auto", "search", "ilp", "ilp-only"
    seconds: float  # wall clock
    status: str = "finished"  # or why it stopped early; the subsets cover all candidate sets in any case
    preparing: float = 0.0  # seconds of reductions and of setting up programs, summed over vertices; not in files
    solving: float = 0.0  # seconds of what follows that, summed likewise

    @property
    def total(self) -> int:
        """Number of u bits."""
        return int(self.families.sizes.sum())

    @property
    def lower_bound(self) -> int:
        """Lower bound on the number of u bits of any cover."""
        return int(self.lower_bounds.sum())

    @property
    def proved(self) -> Bools:
        """(n,) whether the vertex's subsets are proved to be the fewest."""
        proved: Bools = self.families.sizes == self.lower_bounds
        return proved

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes subsets --json` prints."""
        return {
            "n": len(self.names),
            "bits": self.total,
            "lower_bound": self.lower_bound,
            "mu": self.families.sizes.tolist(),
            "lower_bounds": self.lower_bounds.tolist(),
            "proved_optimal_vertices": int(self.proved.sum()),
            "method": self.method,
            "seconds": round(self.seconds, 3),
            "status": self.status,
            "subsets": {
                name: [[self.names[parent] for parent in members] for members in self.families.sets_of(vertex)]
                for vertex, name in enumerate(self.names)
            },
        }

    def describe(self) -> list[str]:
        """Return the result in a few lines for people."""
        proved = int(self.proved.sum())
        return [
            f"{self.total} subsets for {len(self.names)} vertices; at least {self.lower_bound} are needed",
            f"proved smallest for {proved} vertices; {self.method}, {self.seconds:.2f} s, {self.status}",
        ]


def _layout(facts: Facts) -> Layout:
    """Return type and length of vertex_start, set_start, lower_bounds and members."""
    vertices, sets, members = sizes_of(facts)
    method, seconds, status = (facts.get(key) for key in ("method", "seconds", "status"))
    timed = type(seconds) is float and math.isfinite(seconds) and seconds >= 0
    if not (isinstance(method, str) and timed and isinstance(status, str)):
        raise FormatError("the header does not hold the method, its seconds and its status")
    return ("<i8", vertices + 1), ("<i8", sets + 1), ("<i8", vertices), ("<i4", members)


_FORMAT = Format(b"\x93qubayes-subsets", "subsets", "`qubayes subsets FILE -o x.qbs` makes one", _layout)


def check_output(path: str | Path) -> None:
    """Raise if subsets cannot be written there; called before a long search."""
    path = Path(path)
    if path.suffix.lower() != ".qbs":
        raise FormatError(f"cannot write subsets to {path}; the ending must be .qbs")
    if not path.absolute().parent.is_dir():
        raise FormatError(f"cannot write {path}: there is no folder {path.parent}; make it, or choose another place")


def write_subsets(subsets: Subsets, path: str | Path) -> None:
    """Write the subsets; the file is complete or absent."""
    check_output(path)
    families = subsets.families
    facts = {
        "names": list(subsets.names),
        "method": subsets.method,
        "seconds": float(subsets.seconds),
        "status": subsets.status,
        "sets": len(families.set_start) - 1,
        "members": len(families.members),
    }
    arrays = families.vertex_start, families.set_start, subsets.lower_bounds, families.members
    _check(subsets)
    with replacing(path, binary=True) as file:
        write_arrays(file, _FORMAT, facts, arrays)


def read_subsets(path: str | Path) -> Subsets:
    """Return the subsets that `write_subsets` wrote."""
    path = Path(path)
    try:
        facts, (vertex_start, set_start, lower_bounds, members) = read_arrays(path, _FORMAT)
        families = Families(vertex_start, set_start, members)
        found = Subsets(
            tuple(facts["names"]), families, lower_bounds, facts["method"], facts["seconds"], facts["status"]
        )
        _check(found)
        return found
    except FormatError as error:
        raise FormatError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def _check(found: Subsets) -> None:
    """Raise unless the arrays hold sets and bounds; whether they cover the candidates is checked by `formulate`."""
    families, bounds = found.families, found.lower_bounds
    if not well_formed(families) or not (np.diff(families.set_start) >= 1).all():
        raise FormatError("the arrays do not describe ascending sets of one parent or more; find the subsets again")
    if not ((bounds >= 0) & (bounds <= families.sizes)).all():
        raise FormatError("a lower bound exceeds the number of subsets, or is negative; find the subsets again")
