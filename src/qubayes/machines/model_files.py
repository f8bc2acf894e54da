"""`write_model`, `read_model`: models to files and back. The ending of the file's name chooses the format.

Each module of formats has a table `FORMATS`: ending -> (writer of a QUBO, reader). A new format is a line there.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np

from ..foundation.errors import FormatError
from ..foundation.files import ending, opened, replacing
from . import binary_files, digital_annealer, lp_files, text_files
from .binary_files import write_cqm
from .digital_annealer import AnnealerProblem, write_annealer_json
from .lp_files import write_lp
from .model_terms import ModelTerms
from .qubo import Qubo, from_bqm, qubo_from_couplers

if TYPE_CHECKING:
    from dimod import BinaryQuadraticModel, ConstrainedQuadraticModel

MachineModel: TypeAlias = Union["BinaryQuadraticModel", "ConstrainedQuadraticModel", AnnealerProblem]
Writer: TypeAlias = Callable[[Qubo, Sequence[str] | None, IO[bytes]], None]

_FORMATS: dict[str, tuple[Writer, Callable[[IO[bytes]], Any]]] = {
    **binary_files.FORMATS,
    **text_files.FORMATS,
    **lp_files.FORMATS,
    **digital_annealer.FORMATS,
}
ENDINGS = tuple(_FORMATS)


def write_qubo(qubo: Qubo, labels: Sequence[str] | None, path: str | Path) -> None:
    """Write the QUBO, streamed from its arrays. Without labels the bits are 0..n-1."""
    write, _ = _FORMATS[_ending(path)]
    if labels is not None and (len(labels) != qubo.bits or len(set(labels)) != qubo.bits):
        raise FormatError(f"{len(labels)} labels, {len(set(labels))} of them distinct, for {qubo.bits} bits")
    with _writing(path) as file:
        write(qubo, labels, file)


def write_model(model: "MachineModel | Qubo", path: str | Path) -> None:
    """Write dimod's model, a QUBO or a problem for the Digital Annealer. Spins become bits, except in `.bqm`."""
    from dimod import BinaryQuadraticModel, ConstrainedQuadraticModel

    kind = _ending(path)
    if isinstance(model, Qubo):
        write_qubo(model, None, path)
    elif isinstance(model, AnnealerProblem):
        if kind != ".json":
            raise FormatError(f"{Path(path).name}: a problem for the Digital Annealer is written as .json")
        with _writing(path) as file:
            write_annealer_json(model, file)
    elif isinstance(model, ConstrainedQuadraticModel):
        if kind not in (".cqm", ".lp"):
            raise FormatError(f"{Path(path).name} cannot hold a constrained model; write .cqm or .lp")
        with _writing(path) as file:
            (write_cqm if kind == ".cqm" else write_lp)(model, file)
    elif not isinstance(model, BinaryQuadraticModel):
        raise FormatError(f"a {type(model).__name__}; a dimod model, a Qubo or an AnnealerProblem can be written")
    elif kind == ".bqm":
        with _writing(path) as file, model.to_file() as content:
            while part := content.read(1 << 20):
                file.write(part)
    else:
        qubo, labels = from_bqm(model)
        write_qubo(qubo, labels if _has_text_labels(model) else None, path)


def read_model(path: str | Path) -> MachineModel:
    """Return the model in the file: quadratic from `.bqm .npz .coo .qubo .mtx`, constrained from `.cqm .lp`, and a
    problem for the Digital Annealer from `.json`."""
    model = _read(path)
    return model.bqm() if isinstance(model, ModelTerms) else model


def read_qubo(path: str | Path) -> tuple[Qubo, tuple[str, ...]]:
    """Return (QUBO, labels) of a file of any format; raise if it has constraints."""
    model = _read(path)
    if isinstance(model, ModelTerms):
        return model.qubo()
    if not isinstance(model, AnnealerProblem):
        return _unconstrained(model, path)
    if len(model.inequalities.constants) or model.penalty.couplers or model.penalty.h.any():
        raise FormatError(f"{path} has a penalty polynomial or inequalities; read it with read_model")
    return model.objective, model.labels


def _read(path: str | Path) -> Any:
    """Return what the reader of the format returns; every error of a damaged file names the file."""
    kind = _ending(path)
    _, read = _FORMATS[kind]
    with opened(path) as file:
        try:
            return read(file)
        except Exception as error:  # numpy, scipy and dimod raise errors of many kinds for damaged files
            if isinstance(error, OSError) or (isinstance(error, EOFError | zlib.error) and _is_packed(path)):
                raise  # `opened` names the file
            message = " ".join(str(error).split())
            if not isinstance(error, FormatError):
                message = f"a damaged {kind} file ({type(error).__name__}: {message[:200]})"
            raise FormatError(message if str(path) in message else f"{path}: {message}") from error


def _unconstrained(model: "ConstrainedQuadraticModel", path: str | Path) -> tuple[Qubo, tuple[str, ...]]:
    from dimod import Vartype

    if model.constraints or any(model.vartype(v) is not Vartype.BINARY for v in model.variables):
        raise FormatError(f"{path} has constraints, or variables that are not bits; read it with read_model")
    bit_of = {v: bit for bit, v in enumerate(model.variables)}
    h = [model.objective.get_linear(v) for v in model.variables]
    pairs = [(bit_of[u], bit_of[v], w) for u, v, w in model.objective.iter_quadratic()]
    rows, cols, weights = np.array(pairs, np.float64).reshape(-1, 3).T
    qubo = qubo_from_couplers(h, rows.astype(int), cols.astype(int), weights, float(model.objective.offset))
    return qubo, tuple(str(v) for v in model.variables)


def _ending(path: str | Path) -> str:
    kind = ending(path)
    if kind not in ENDINGS:
        raise FormatError(f"{Path(path).name} ends in none of {' '.join(ENDINGS)}; the ending chooses the format")
    if kind == ".npz" and _is_packed(path):
        raise FormatError(f"{Path(path).name}: an .npz file is an archive itself; leave out .gz")
    return kind


def _is_packed(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".gz"


@contextmanager
def _writing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for bytes that appears at `path` once it is complete; packed if its name ends in `.gz`."""
    with replacing(path, binary=True) as file:
        if not _is_packed(path):
            yield file
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:  # no clock: same bytes each time
            yield packed  # type: ignore[misc]


def _has_text_labels(model: "BinaryQuadraticModel") -> bool:
    """Return False for labels 0..n-1; raise for others than these and texts, which would come back changed."""
    if all(isinstance(label, str) for label in model.variables):
        return len(model.variables) > 0
    if list(model.variables) != list(range(len(model.variables))):
        raise FormatError("labels that are neither texts nor 0..n-1; relabel the variables, or write a .bqm file")
    return False
