"""The QUBO of a learned problem. `learn` imports this module only where a QUBO, its bits or its solvers are needed."""

from pathlib import Path

from ..candidates import Candidates
from ..foundation.errors import FormatError
from ..foundation.files import ending
from ..foundation.graph import strong_components
from ..foundation.progress import OnProgress, silent
from ..foundation.workers import Workers
from ..machines import ENDINGS
from ..qubo import Formulation, count_bits, formulate
from ..qubo.subsets import Budget, Subsets, cover

# A tenth of the search for subsets costs a few bits in a thousand and saves most of its time (connect, m = 3).
QUICK = Budget(effort=0.1, rounds=0)


def subsets_of(candidates: Candidates, workers: Workers | None = None, on_progress: OnProgress = silent) -> Subsets:
    """Return subsets whose unions of two give every candidate set, found in little time."""
    found = cover(candidates, budget=QUICK, workers=workers, on_progress=on_progress)
    if found.status != "finished":
        raise KeyboardInterrupt  # no result exists yet
    return found


def formulation_of(
    candidates: Candidates, workers: Workers | None = None, on_progress: OnProgress = silent
) -> Formulation:
    """Return the QUBO whose least energy is minus the best score."""
    return formulate(candidates, subsets_of(candidates, workers, on_progress), workers=workers)


def bits_of(candidates: Candidates, subsets: Subsets, workers: Workers | None = None) -> dict[str, int]:
    """Return the numbers of u, r and z bits of the QUBO, and their total, without making it."""
    return count_bits(candidates, subsets, workers=workers)


def paper_bits(candidates: Candidates, subsets: Subsets) -> dict[str, int]:
    """Return the bits of the paper's formulation: all pairs in a strongly connected component, a z for each vertex."""
    sizes = map(len, strong_components(candidates.families.arcs()))
    r = sum(size * (size - 1) // 2 for size in sizes)
    return {"u": subsets.total, "r": r, "z": candidates.n, "total": subsets.total + r + candidates.n}


def check_model_path(path: Path) -> None:
    """Raise if the ending of the path is not one of a model file."""
    if ending(path) not in ENDINGS:
        raise FormatError(f"{path} does not have the ending of a model; give one of {', '.join(ENDINGS)}")
