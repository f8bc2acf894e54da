"""`write_model`, `write_qubo`: models to files; `read_model`, `read_qubo`: models of `.bqm` files.

The ending of the file's name chooses the format. A new format is a line in `_WRITERS`: ending ->
writer of a QUBO."""

import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias, Union

from ..foundation.environment import dimod
from ..foundation.errors import FormatError
from ..foundation.files import ending, opened, replacing
from .binary_files import BqmTerms, read_bqm, write_bqm, write_cqm, write_cqm_of_qubo, write_npz
from .digital_annealer import AnnealerProblem, digital_annealer_json, problem_of
from .program_files import write_lp, write_lp_of_qubo, write_qplib, write_qplib_of_qubo
from .qubo import ModelSize, Qubo, check_labels, coefficient_range, from_bqm
from .text_files import write_coo, write_matrix_market, write_qbsolv

MachineModel: TypeAlias = Union[
    "dimod.BinaryQuadraticModel", "dimod.ConstrainedQuadraticModel", AnnealerProblem, Qubo
]
Writer: TypeAlias = Callable[[Qubo, Sequence[str] | None, IO[bytes]], None]


def _write_request(qubo: Qubo, labels: Sequence[str] | None, file: IO[bytes]) -> None:
    """Write the body of a request to the Digital Annealer."""
    file.writelines(digital_annealer_json(problem_of(qubo, labels)))


_WRITERS: dict[str, Writer] = {
    ".bqm": write_bqm,
    ".npz": write_npz,
    ".cqm": write_cqm_of_qubo,
    ".coo": write_coo,
    ".qubo": write_qbsolv,
    ".mtx": write_matrix_market,
    ".lp": write_lp_of_qubo,
    ".qplib": write_qplib_of_qubo,
    ".json": _write_request,
}
_CONSTRAINED = {".cqm": write_cqm, ".lp": write_lp, ".qplib": write_qplib}
_OTHER_READERS = {
    ".npz": "scipy.sparse.load_npz",
    ".cqm": "dimod.ConstrainedQuadraticModel.from_file",
    ".coo": "dimod.serialization.coo.load",
    ".mtx": "scipy.io.mmread",
    ".lp": "dimod.lp.load",
    ".qplib": "ommx.v1.Instance.load_qplib",
}
MODEL_ENDINGS = tuple(_WRITERS)
CONSTRAINED_ENDINGS = tuple(_CONSTRAINED)


def write_qubo(qubo: Qubo, labels: Sequence[str] | None, path: str | Path) -> ModelSize:
    """Write the QUBO, streamed from its arrays, and return its size.

    Without labels the bits are 0..n-1."""
    write = _WRITERS[_ending(path)]
    if labels is not None:
        check_labels(labels, qubo.bits)
    with _writing(path) as file:
        write(qubo, labels, file)
    return ModelSize(qubo.bits, qubo.couplers, 0, coefficient_range(qubo))


def write_model(model: MachineModel, path: str | Path) -> ModelSize:
    """Write a model of dimod, a QUBO or a problem for the Digital Annealer; return its size.

    Spins become bits, except in `.bqm`.
    """
    if isinstance(model, Qubo):
        return write_qubo(model, None, path)
    if isinstance(model, AnnealerProblem):
        return _write_problem(model, path)
    if isinstance(model, dimod.ConstrainedQuadraticModel):
        return _write_constrained(model, path)
    if isinstance(model, dimod.BinaryQuadraticModel):
        return _write_quadratic(model, path)
    raise FormatError(
        f"a {type(model).__name__}; a dimod model, a Qubo or an AnnealerProblem can be written"
    )


def _write_problem(problem: AnnealerProblem, path: str | Path) -> ModelSize:
    if _ending(path) != ".json":
        name = Path(path).name
        raise FormatError(f"{name} cannot hold a problem for the Digital Annealer; write .json")
    with _writing(path) as file:
        file.writelines(digital_annealer_json(problem))
    bits = problem.objective.bits
    couplers = problem.objective.couplers + problem.penalty.couplers
    rows = len(problem.inequalities.constants)
    sizes = coefficient_range(problem.objective, problem.penalty)
    return ModelSize(bits, couplers, rows, sizes)


def _write_constrained(model: "dimod.ConstrainedQuadraticModel", path: str | Path) -> ModelSize:
    write = _CONSTRAINED.get(_ending(path))
    if write is None:
        endings = " or ".join(_CONSTRAINED)
        raise FormatError(f"{Path(path).name} cannot hold a constrained model; write {endings}")
    with _writing(path) as file:
        write(model, file)
    return _size_of(model.objective, len(model.variables), len(model.constraints))


def _write_quadratic(model: "dimod.BinaryQuadraticModel", path: str | Path) -> ModelSize:
    variables = list(model.variables)
    if _ending(path) == ".bqm":
        with _writing(path) as file, model.to_file() as content:
            while part := content.read(1 << 20):
                file.write(part)
        return _size_of(model, len(variables), 0)
    numbered = variables == list(range(len(variables)))
    if not numbered and not all(isinstance(label, str) for label in variables):
        raise FormatError(
            "labels that are neither texts nor 0..n-1; relabel the variables, or write a .bqm file"
        )
    qubo, labels = from_bqm(model)
    return write_qubo(qubo, None if numbered else labels, path)


def _size_of(objective: Any, bits: int, constraints: int) -> ModelSize:
    """Return the size of a model with an objective of dimod."""
    weights = [abs(float(weight)) for _, weight in objective.iter_linear()]
    weights += [abs(float(weight)) for _, _, weight in objective.iter_quadratic()]
    weights = [weight for weight in weights if weight] or [0.0]
    return ModelSize(bits, objective.num_interactions, constraints, (min(weights), max(weights)))


def read_model(path: str | Path) -> "dimod.BinaryQuadraticModel":
    """Return dimod's model in a `.bqm` file, in its vartype and precision."""
    return _read_terms(path).bqm()


def read_qubo(path: str | Path) -> tuple[Qubo, tuple[str, ...]]:
    """Return (QUBO, labels) of a `.bqm` file."""
    return _read_terms(path).qubo()


def _read_terms(path: str | Path) -> BqmTerms:
    """Return the contents of a `.bqm` file; every error of a damaged file names the file."""
    kind = _ending(path)
    if kind != ".bqm":
        reader = _OTHER_READERS.get(kind)
        remedy = f"read it with {reader}, or " if reader else ""
        raise FormatError(f"{path}: {kind} files are written, not read; {remedy}write a .bqm file")
    with opened(path) as file:
        try:
            return read_bqm(file)
        except (FormatError, RecursionError) as error:  # labels may be lists of lists of lists
            message = " ".join(str(error).split())
            raise FormatError(message if str(path) in message else f"{path}: {message}") from error


def _ending(path: str | Path) -> str:
    kind = ending(path)
    if kind not in MODEL_ENDINGS:
        endings = " ".join(MODEL_ENDINGS)
        raise FormatError(
            f"{Path(path).name} ends in none of {endings}; the ending chooses the format"
        )
    if kind == ".npz" and _is_packed(path):
        raise FormatError(f"{Path(path).name}: an .npz file is an archive itself; leave out .gz")
    return kind


def _is_packed(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".gz"


@contextmanager
def _writing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file that appears at `path` once it is complete; packed if its name ends in `.gz`."""
    with replacing(path, binary=True) as file:
        if not _is_packed(path):
            yield file
            return
        # Without the time: the same model gives the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]
