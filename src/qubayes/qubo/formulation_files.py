"""Files of formulations (`.qbf`), written beside a model so that answers to it can be decoded.

An archive (zip) of the candidate sets (`.qbc`), the subsets (`.qbs`), the order bits, the settings, and, where they
were given, the scores of unions. The QUBO is assembled again when it is read, and its checksum compared.
"""

import io
import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..candidates import Candidates, read_candidates, write_candidates
from ..foundation.arrays import AnyArray, frozen
from ..foundation.errors import FormatError, QubayesError
from ..foundation.families import VertexSet
from ..foundation.files import json_object, opened, replacing, unpacked_limit
from .gains import RelativeSets, UnionScores, relate
from .order_bits import Order
from .subsets import Subsets, read_subsets, write_subsets

if TYPE_CHECKING:
    from .formulation import Formulation

ENDING = ".qbf"
CANDIDATES, SUBSETS, SETTINGS = "candidates.qbc", "subsets.qbs", "settings.json"
PAIRS, TRIANGLES, COUPLED, UNIONS = "pairs.npy", "triangles.npy", "coupled.npy", "unions.npy"


class Problem(NamedTuple):
    """What a QUBO is assembled from."""

    candidates: Candidates
    subsets: Subsets
    order: Order
    penalty: str
    scale: Mapping[str, float]
    union_scores: UnionScores | None


def companion_of(path: str | Path) -> Path:
    """Return the path of the formulation that belongs to a model file."""
    return Path(f"{path}{ENDING}")


def write_formulation(formulation: "Formulation", path: str | Path) -> None:
    """Write the formulation; the same formulation gives the same bytes."""
    relative, order = formulation.relative, formulation.order
    settings = {
        "order": formulation.order_kind,
        "order_status": formulation.order_status,
        "penalty": formulation.penalty_kind,
        "scale": dict(formulation.scale),
        "step": formulation.step,
        "checksum": formulation.checksum,
    }
    arrays: dict[str, AnyArray] = {
        PAIRS: np.sort(order.pairs, axis=1),
        TRIANGLES: order.triangles,
        COUPLED: order.coupled,
    }
    if relative.union_scores is not None:
        scores = [relative.union_scores(vertex, sets) for vertex, sets in _unions(relative)]
        arrays[UNIONS] = np.concatenate([np.empty(0), *map(np.asarray, scores)])
    contents = {SETTINGS: json.dumps(settings).encode()}
    for name, array in arrays.items():
        stream = io.BytesIO()
        np.lib.format.write_array(stream, array, allow_pickle=False)
        contents[name] = stream.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        write_candidates(replace(formulation.candidates, scores=formulation.scores), Path(folder, CANDIDATES))
        write_subsets(replace(formulation.subsets, seconds=0.0), Path(folder, SUBSETS))
        contents |= {name: Path(folder, name).read_bytes() for name in (CANDIDATES, SUBSETS)}
    with replacing(path, binary=True) as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def model_companion(path: str | Path) -> Path:
    """Return the file of the formulation itself, or the one beside a model file; raise if it is absent."""
    place = Path(path) if Path(path).suffix == ENDING else companion_of(path)
    if not place.exists():
        raise FormatError(f"{path} has no file {place.name} beside it; give the candidate sets that were formulated")
    return place


def read_problem(path: Path) -> tuple[Problem, dict[str, Any]]:
    """Return what the formulation in the file is assembled from, and its settings."""
    try:
        with opened(path, packed=False) as file, zipfile.ZipFile(file) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
            if sum(sizes.values()) > unpacked_limit(path.stat().st_size):
                raise FormatError(f"{path} would unpack to {sum(sizes.values()):,} bytes; formulate again")
            contents = {name: archive.read(name) for name in sizes}
        with tempfile.TemporaryDirectory() as folder:
            for name in (CANDIDATES, SUBSETS):
                Path(folder, name).write_bytes(contents[name])
            candidates, subsets = read_candidates(Path(folder, CANDIDATES)), read_subsets(Path(folder, SUBSETS))
        arrays = {
            name: np.lib.format.read_array(io.BytesIO(contents[name]), allow_pickle=False)
            for name in (PAIRS, TRIANGLES, COUPLED, UNIONS)
            if name in sizes
        }
        order = Order(*(frozen(arrays[name].astype(np.int32)) for name in (PAIRS, TRIANGLES, COUPLED)))
        found = json_object(contents[SETTINGS])
        settings = {key: found[key] for key in ("order", "order_status", "step", "checksum", "penalty", "scale")}
        unions: UnionScores | None = None
        if UNIONS in arrays:
            listed = [(vertex, one) for vertex, sets in _unions(relate(candidates, subsets)) for one in sets]
            table = dict(zip(listed, arrays[UNIONS].tolist(), strict=True))

            def unions(vertex: int, sets: Sequence[VertexSet]) -> list[float]:
                return [table[vertex, members] for members in sets]

        return Problem(candidates, subsets, order, settings["penalty"], settings["scale"], unions), settings
    except QubayesError:
        raise
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError) as error:
        raise FormatError(f"{path} is not a formulation, or is damaged; formulate again") from error


def _unions(relative: RelativeSets) -> Iterator[tuple[int, list[VertexSet]]]:
    """Yield for each vertex the different parent sets that one or two of its subsets give with its base."""
    for vertex in range(relative.candidates.n):
        base, sets = relative.candidates.base(vertex), list(relative.subsets.families.sets_of(vertex))
        unions = {tuple(sorted({*base, *first, *second})) for first, second in combinations([(), *sets], 2)}
        yield vertex, sorted(union for union in unions if len(union) <= relative.largest_set)
