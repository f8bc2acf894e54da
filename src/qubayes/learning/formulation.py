"""The QUBO of a learned problem. `learn` imports this module only where a QUBO, its bits or its solvers are needed."""

from pathlib import Path

from ..candidates import Candidates
from ..foundation.errors import FormatError
from ..foundation.files import ending
from ..foundation.graph import strong_components
from ..foundation.progress import OnProgress, silent
from ..foundation.workers import Workers
from ..machines import ENDINGS
from ..qubo import Formulation, formulate
from ..qubo.subsets import Budget, Subsets, cover

# A tenth of the search for subsets costs a few bits in a thousand and saves most of its time (connect, m = 3).
QUICK = Budget(effort=0.1, rounds=0)


def quick_formulation(
    candidates: Candidates,
    order: str = "chordal",
    penalty: str = "tight",
    method: str = "auto",
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Formulation | None:
    """Return the QUBO of subsets that are found in little time; None if that was interrupted."""
    subsets = cover(candidates, method=method, budget=QUICK, workers=workers, on_progress=on_progress)
    if subsets.status != "finished":
        return None
    return formulate(candidates, subsets, order=order, penalty=penalty, workers=workers)


def quick_subsets(candidates: Candidates) -> Subsets:
    """Return subsets whose unions of two give every candidate set, found in little time."""
    return cover(candidates, budget=QUICK)


def paper_bits(candidates: Candidates, subsets: Subsets) -> dict[str, int]:
    """Return the bits of the paper's formulation: all pairs in a strongly connected component, a z for each vertex."""
    sizes = map(len, strong_components(candidates.families.arcs()))
    r = sum(size * (size - 1) // 2 for size in sizes)
    return {"u": subsets.total, "r": r, "z": candidates.n, "total": subsets.total + r + candidates.n}


def check_model_path(path: Path) -> None:
    """Raise if the ending of the path is not one of a model file."""
    if ending(path) not in ENDINGS:
        raise FormatError(f"{path} does not have the ending of a model; give one of {', '.join(ENDINGS)}")
