"""Models to files and back, the format chosen by the ending of the name."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias, Union

from ..foundation.errors import FormatError
from ..foundation.files import ending, opened
from . import binary_files, constrained_files, text_files
from .digital_annealer import AnnealerProblem, problem_of, read_annealer_json, write_annealer_json
from .qubo import Qubo, from_bqm
from .terms import Terms, bqm_of, qubo_of, writing

if TYPE_CHECKING:
    from dimod import BinaryQuadraticModel, ConstrainedQuadraticModel

Model: TypeAlias = Union["BinaryQuadraticModel", "ConstrainedQuadraticModel", AnnealerProblem]


class _Format(NamedTuple):
    """How a quadratic format is written from flat arrays and read into terms."""

    write: Callable[[Qubo, Sequence[str] | None, IO[bytes]], None]
    read: Callable[[IO[bytes]], Terms]


_QUADRATIC = {
    ".bqm": _Format(binary_files.write_bqm, binary_files.read_bqm),
    ".coo": _Format(text_files.write_coo, text_files.read_coo),
    ".qubo": _Format(text_files.write_qbsolv, text_files.read_qbsolv),
    ".mtx": _Format(text_files.write_matrix_market, text_files.read_matrix_market),
    ".npz": _Format(binary_files.write_npz, binary_files.read_npz),
}
_CONSTRAINED = (".cqm", ".lp")
ENDINGS = (*_QUADRATIC, *_CONSTRAINED, ".json")


def write_qubo(qubo: Qubo, labels: Sequence[str] | None, path: str | Path) -> None:
    """Write the QUBO, streamed from its arrays. Without labels the bits are 0..n-1."""
    kind = _kind(path)
    if labels is not None and (len(labels) != qubo.bits or len(set(labels)) != qubo.bits):
        raise FormatError(f"{len(labels)} labels, {len(set(labels))} of them distinct, for {qubo.bits} bits")
    with writing(path) as file:
        if kind == ".json":
            write_annealer_json(problem_of(qubo, labels), file)
        elif kind in _CONSTRAINED:
            constrained_files.write_qubo(qubo, labels, file, kind)
        else:
            _QUADRATIC[kind].write(qubo, labels, file)


def write_model(model: "Model | Qubo", path: str | Path) -> None:
    """Write a model of dimod, a QUBO or a problem for the Digital Annealer. Spins become bits, except in `.bqm`."""
    from dimod import BinaryQuadraticModel, ConstrainedQuadraticModel

    if isinstance(model, Qubo):
        write_qubo(model, None, path)
    elif isinstance(model, AnnealerProblem):
        _write_problem(model, path)
    elif isinstance(model, ConstrainedQuadraticModel):
        _write_constrained(model, path)
    elif not isinstance(model, BinaryQuadraticModel):
        raise FormatError(f"a {type(model).__name__}; a model of dimod, a Qubo or an AnnealerProblem can be written")
    elif _kind(path) == ".bqm":
        with writing(path) as file, model.to_file() as whole:
            while part := whole.read(1 << 20):
                file.write(part)
    else:
        qubo, labels = from_bqm(model)
        write_qubo(qubo, labels if _texts(model) else None, path)


def read_model(path: str | Path) -> Model:
    """The model in the file: quadratic from `.bqm .coo .qubo .mtx .npz`, constrained from `.cqm .lp`, and from
    `.json` a problem for the Digital Annealer."""
    kind = _kind(path)
    with opened(path) as file:
        try:
            if kind == ".json":
                return read_annealer_json(file)
            if kind in _CONSTRAINED:
                return constrained_files.read_constrained(file, kind)
            return bqm_of(_QUADRATIC[kind].read(file))
        except (FormatError, UnicodeDecodeError) as error:
            raise FormatError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def read_qubo(path: str | Path) -> tuple[Qubo, tuple[str, ...]]:
    """(QUBO, labels) in a file of any format, without a detour through dimod; an error if it has constraints."""
    kind = _kind(path)
    with opened(path) as file:
        try:
            if kind in _QUADRATIC:
                return qubo_of(_QUADRATIC[kind].read(file))
            if kind == ".json":
                problem = read_annealer_json(file)
                if len(problem.inequalities.constants) or problem.penalty.couplers or problem.penalty.h.any():
                    raise FormatError("the problem has a penalty polynomial or inequalities; read it with read_model")
                return problem.objective, problem.labels
            return constrained_files.read_unconstrained(file, kind)
        except (FormatError, UnicodeDecodeError) as error:
            raise FormatError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


def _kind(path: str | Path) -> str:
    kind = ending(path)
    if kind not in ENDINGS:
        raise FormatError(f"{Path(path).name} ends in none of {' '.join(ENDINGS)}; the ending chooses the format")
    if kind == ".npz" and Path(path).suffix.lower() == ".gz":
        raise FormatError(f"{Path(path).name}: an .npz file is an archive itself; leave out .gz")
    return kind


def _texts(model: "BinaryQuadraticModel") -> bool:
    """Whether the labels are texts; False if they are 0..n-1; an error for others, which would come back changed."""
    if all(isinstance(label, str) for label in model.variables):
        return len(model.variables) > 0
    if list(model.variables) != list(range(len(model.variables))):
        raise FormatError("labels that are neither texts nor 0..n-1; relabel the variables, or write a .bqm file")
    return False


def _write_problem(problem: AnnealerProblem, path: str | Path) -> None:
    if _kind(path) != ".json":
        raise FormatError(f"{Path(path).name}: a problem for the Digital Annealer is written as .json")
    with writing(path) as file:
        write_annealer_json(problem, file)


def _write_constrained(model: "ConstrainedQuadraticModel", path: str | Path) -> None:
    kind = _kind(path)
    if kind not in _CONSTRAINED:
        raise FormatError(f"{Path(path).name} cannot hold a constrained model; write .cqm or .lp")
    with writing(path) as file:
        constrained_files.write_constrained(model, file, kind)
