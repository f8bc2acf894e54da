"""Candidate parent subsets: the sets that the u bits stand for."""

from dataclasses import dataclass
from typing import Any

from ...foundation.arrays import Bools, Ints
from ...foundation.families import Families


@dataclass(frozen=True, slots=True)
class Subsets:
    """For each vertex a family U such that every candidate set is base | A | B for some A, B in U or empty.

    The sets do not contain the vertex's base (its required parents); none is empty.
    """

    names: tuple[str, ...]
    families: Families
    lower_bounds: Ints  # (n,) no smaller family exists than this
    method: str  # "auto", "search", "ilp", "ilp-only"
    seconds: float  # wall clock
    status: str = "finished"  # or why it stopped early; every family is a cover all the same
    preparing: float = (
        0.0  # seconds of reducing and of setting up programs, summed over the families; not kept in files
    )
    solving: float = 0.0  # seconds of what follows that, summed likewise

    @property
    def total(self) -> int:
        """Number of u bits."""
        return int(self.families.sizes.sum())

    @property
    def lower_bound(self) -> int:
        """No choice of families has fewer u bits than this."""
        return int(self.lower_bounds.sum())

    @property
    def proved(self) -> Bools:
        """(n,) whether the vertex's family is proved smallest."""
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
