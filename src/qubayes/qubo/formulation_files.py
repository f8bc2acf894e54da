"""Files of formulations (`.qbf`), written beside a model so that answers to it can be decoded.

An archive (zip) of the candidate sets (`.qbc`), the subsets (`.qbs`), the order bits, the settings,
and, where they were given, the scores of unions. The QUBO is assembled again when it is read, and
its checksum compared."""

import io
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..candidates import Candidates, read_candidates, write_candidates
from ..foundation.arrays import AnyArray, frozen
from ..foundation.errors import FormatError, QubayesError
from ..foundation.families import VertexSet
from ..foundation.files import check_archive, json_object, opened, replacing, shown
from .gains import RelativeSets, UnionScores, relate
from .order_bits import OrderBits, OrderStatus, well_formed
from .penalties import KINDS, PENALTIES
from .subsets import Subsets, read_subsets, write_subsets

if TYPE_CHECKING:
    from .formulation import Formulation

T = TypeVar("T")

ENDING = ".qbf"
# parts of the archive
CANDIDATES = "candidates.qbc"
SUBSETS = "subsets.qbs"
SETTINGS = "settings.json"
ORDER_PAIRS = "pairs.npy"
TRIANGLES = "triangles.npy"
COUPLED = "coupled.npy"
UNIONS = "unions.npy"
LARGEST_PENALTY_FACTOR = 1e100  # of a penalty, and the largest step
_ARRAY = re.compile(  # the header that numpy writes, which it would read as a Python expression
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<kind>[<|>a-z0-9]+)', 'fortran_order': False, "
    rb"'shape': \((?P<shape>[0-9]{1,15},(?: [0-9]{1,15})?)\), \} *\n",
    re.DOTALL,
)


class AssemblyInput(NamedTuple):
    """The input of the assembly of a QUBO."""

    candidates: Candidates
    subsets: Subsets
    order: OrderBits
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
        "order_status": asdict(formulation.order_status),
        "penalty": formulation.penalty_kind,
        "scale": dict(formulation.scale),
        "step": formulation.step,
        "checksum": formulation.checksum,
    }
    arrays: dict[str, AnyArray] = {
        ORDER_PAIRS: np.sort(order.pairs, axis=1),
        TRIANGLES: order.triangles,
        COUPLED: order.coupled,
    }
    if relative.union_scores is not None:
        scores = [relative.union_scores(vertex, sets) for vertex, sets in _unions(relative)]
        arrays[UNIONS] = np.concatenate([np.empty(0), *map(np.asarray, scores)])
    contents = {SETTINGS: json.dumps(settings).encode()}
    contents |= {name: _array_file(array) for name, array in arrays.items()}
    candidates = replace(formulation.candidates, scores=formulation.scores)
    with tempfile.TemporaryDirectory() as folder:
        write_candidates(candidates, Path(folder, CANDIDATES))
        write_subsets(replace(formulation.subsets, seconds=0.0), Path(folder, SUBSETS))
        contents |= {name: Path(folder, name).read_bytes() for name in (CANDIDATES, SUBSETS)}
    with replacing(path, binary=True) as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def _array_file(array: AnyArray) -> bytes:
    """Return the array as the content of a `.npy` file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def model_companion(path: str | Path) -> Path:
    """Return the path of a formulation: the given one, or the file beside a model."""
    place = Path(path) if Path(path).suffix == ENDING else companion_of(path)
    if not place.exists():
        raise FormatError(
            f"{path} has no file {place.name} beside it; "
            "give the candidate sets that were formulated"
        )
    return place


def read_problem(path: Path) -> tuple[AssemblyInput, dict[str, Any]]:
    """Return the input from which the formulation in the file is assembled, and its settings."""
    try:
        contents = _contents(path)
        candidates = _part(contents, CANDIDATES, read_candidates)
        subsets = _part(contents, SUBSETS, read_subsets)
        relative = relate(candidates, subsets)
        order = OrderBits(
            *(_array(contents[name], "<i4") for name in (ORDER_PAIRS, TRIANGLES, COUPLED))
        )
        _check_order(order, relative)
        settings = _settings(contents[SETTINGS])
        unions: UnionScores | None = None
        if UNIONS in contents:
            unions = _union_scores(relative, _array(contents[UNIONS], "<f8"))
    except QubayesError as error:
        if str(path) in str(error):
            raise
        raise FormatError(f"{path} is not a formulation, or is damaged: {error}") from error
    except (KeyError, ValueError) as error:
        raise FormatError(f"{path} is not a formulation, or is damaged; formulate again") from error
    problem = AssemblyInput(
        candidates, subsets, order, settings["penalty"], settings["scale"], unions
    )
    return problem, settings


def _contents(path: Path) -> dict[str, bytes]:
    """Return the parts of the archive."""
    with opened(path, packed=False) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                check_archive(archive, file)
                return {name: archive.read(name) for name in archive.namelist()}
        except QubayesError:
            raise
        except Exception as error:  # zipfile and what unpacks raise errors of many kinds
            raise FormatError(
                f"no whole archive ({type(error).__name__}); formulate again"
            ) from error


def _part(contents: Mapping[str, bytes], name: str, read: Callable[[Path], T]) -> T:
    """Return the part of the archive, read by a reader of files."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, name)
        place.write_bytes(contents[name])
        try:
            return read(place)
        except FormatError as error:
            raise FormatError(str(error).replace(str(place), name)) from None


def _array(content: bytes, kind: str) -> AnyArray:
    """Return an array that `write_formulation` wrote; no more is allocated than the content has."""
    header = _ARRAY.match(content)
    if not header or header["kind"].decode() != kind:
        raise FormatError("an array is not one that qubayes wrote; formulate again")
    shape = [int(size) for size in header["shape"].split(b",") if size.strip()]
    return frozen(np.frombuffer(content, kind, offset=header.end()).reshape(shape))


def _check_order(order: OrderBits, relative: RelativeSets) -> None:
    """Raise unless the pairs are of these vertices, coupled ones possible parents of each other."""
    n, keys = relative.candidates.n, relative.parents.keys
    if well_formed(order, n):
        first, second = order.coupled.astype(np.int64).T
        if np.isin(first * n + second, keys).all() and np.isin(second * n + first, keys).all():
            return
    raise FormatError("the order bits are not those of its candidate sets; formulate again")


def _settings(content: bytes) -> dict[str, Any]:
    """Return the settings, each of its kind."""
    found = json_object(content)
    keys = ("order", "order_status", "step", "checksum", "penalty", "scale")
    settings = {key: found[key] for key in keys}
    scale, step = settings["scale"], settings["step"]
    if not all(isinstance(settings[key], str) for key in ("order", "checksum")):
        raise FormatError("the settings order and checksum are not texts")
    settings["order_status"] = _order_status(settings["order_status"])
    if settings["penalty"] not in PENALTIES:
        raise FormatError(
            f"the penalty is {shown(settings['penalty'])}; known are {', '.join(PENALTIES)}"
        )
    if not isinstance(scale, dict) or not scale.keys() <= KINDS.keys():
        raise FormatError(f"the scale is {shown(scale)}; give factors of {', '.join(KINDS)}")
    steps = [] if step is None else [step]
    for factor in (*scale.values(), *steps):
        if type(factor) not in (int, float) or not 0.0 < factor <= LARGEST_PENALTY_FACTOR:
            raise FormatError(f"a scale or a step is {shown(factor)}; give a positive number")
    return settings


def _order_status(value: Any) -> OrderStatus:
    """Return the status; version 0.1.0 wrote a sentence, "exact" where the order is proved."""
    if isinstance(value, str):
        return OrderStatus(value == "exact")
    kinds = {field.name: type(field.default) for field in fields(OrderStatus)} | {"proved": bool}
    if isinstance(value, dict):
        value = {"certified": False, **value}  # older files do not have it
    if not isinstance(value, dict) or {name: type(each) for name, each in value.items()} != kinds:
        raise FormatError(f"the order status is {shown(value)}; formulate again")
    return OrderStatus(**value)


def _union_scores(relative: RelativeSets, scores: AnyArray) -> UnionScores:
    """Return the function that looks up these scores of unions, one for each union."""
    if not np.isfinite(scores).all():
        raise FormatError("a score of a union is not finite; formulate again")
    listed: list[tuple[int, VertexSet]] = []
    for vertex, sets in _unions(relative):
        listed += [(vertex, union) for union in sets]
    table = dict(zip(listed, scores.tolist(), strict=True))

    def unions(vertex: int, sets: Sequence[VertexSet]) -> list[float]:
        return [table[vertex, members] for members in sets]

    return unions


def _unions(relative: RelativeSets) -> Iterator[tuple[int, list[VertexSet]]]:
    """Yield for each vertex the unions of its base with one or two of its subsets."""
    for vertex in range(relative.candidates.n):
        base = relative.candidates.base(vertex)
        unions = set()
        for first, second in combinations([(), *relative.subsets.families.sets_of(vertex)], 2):
            union = tuple(sorted({*base, *first, *second}))
            if len(union) <= relative.largest_set:
                unions.add(union)
        yield vertex, sorted(unions)
