"""`write_model`, `read_model`: models to files and back; `to_ommx`: models to instances of OMMX.

The ending of the file's name chooses the format. A new format is a line in `_WRITERS`: ending ->
writer of a QUBO, and one in `_READERS` if it is read, too. OMMX is a format that several modelling
tools and annealing services share."""

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias, Union

from ..foundation.environment import dimod, optional
from ..foundation.errors import FormatError
from ..foundation.files import ending, opened, replacing
from .binary_files import (
    read_bqm,
    read_cqm,
    read_npz,
    write_bqm,
    write_cqm,
    write_cqm_of_qubo,
    write_npz,
)
from .digital_annealer import AnnealerProblem, digital_annealer_json, problem_of, read_annealer_json
from .program_files import (
    read_lp,
    read_qplib,
    write_lp,
    write_lp_of_qubo,
    write_qplib,
    write_qplib_of_qubo,
)
from .qubo import ModelSize, ModelTerms, Qubo, check_labels, coefficient_range, from_bqm
from .text_files import read_coo, write_coo, write_matrix_market, write_qbsolv

MachineModel: TypeAlias = Union[
    "dimod.BinaryQuadraticModel", "dimod.ConstrainedQuadraticModel", AnnealerProblem
]
Writer: TypeAlias = Callable[[Qubo, Sequence[str] | None, IO[bytes]], None]

_WRITERS: dict[str, Writer] = {
    ".bqm": write_bqm,
    ".npz": write_npz,
    ".cqm": write_cqm_of_qubo,
    ".coo": write_coo,
    ".qubo": write_qbsolv,
    ".mtx": write_matrix_market,
    ".lp": write_lp_of_qubo,
    ".qplib": write_qplib_of_qubo,
    ".json": lambda qubo, labels, file: file.writelines(
        digital_annealer_json(problem_of(qubo, labels))
    ),
}
_READERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".bqm": read_bqm,
    ".npz": read_npz,
    ".cqm": read_cqm,
    ".coo": read_coo,
    ".lp": read_lp,
    ".qplib": read_qplib,
    ".json": read_annealer_json,
}
_CONSTRAINED = {".cqm": write_cqm, ".lp": write_lp, ".qplib": write_qplib}
ENDINGS = tuple(_WRITERS)
READABLE_ENDINGS = tuple(_READERS)
CONSTRAINED_ENDINGS = tuple(_CONSTRAINED)


def write_qubo(qubo: Qubo, labels: Sequence[str] | None, path: str | Path) -> ModelSize:
    """Write the QUBO, streamed from its arrays, and return its size. Without labels the bits are 0..n-1."""
    write = _WRITERS[_ending(path)]
    if labels is not None:
        check_labels(labels, qubo.bits)
    with _writing(path) as file:
        write(qubo, labels, file)
    return ModelSize(qubo.bits, qubo.couplers, 0, coefficient_range(qubo))


def write_model(model: "MachineModel | Qubo", path: str | Path) -> ModelSize:
    """Write dimod's model, a QUBO or a problem for the Digital Annealer, and return the size of what was written.

    Spins become bits, except in `.bqm`.
    """
    kind, name = _ending(path), Path(path).name
    if isinstance(model, Qubo):
        return write_qubo(model, None, path)
    if isinstance(model, AnnealerProblem):
        if kind != ".json":
            raise FormatError(f"{name} cannot hold a problem for the Digital Annealer; write .json")
        with _writing(path) as file:
            file.writelines(digital_annealer_json(model))
        parts = model.objective, model.penalty
        couplers, rows = sum(part.couplers for part in parts), len(model.inequalities.constants)
        return ModelSize(model.objective.bits, couplers, rows, coefficient_range(*parts))
    if isinstance(model, dimod.ConstrainedQuadraticModel):
        if kind not in _CONSTRAINED:
            raise FormatError(
                f"{name} cannot hold a constrained model; write {' or '.join(_CONSTRAINED)}"
            )
        with _writing(path) as file:
            _CONSTRAINED[kind](model, file)
        return _size_of(model.objective, len(model.variables), len(model.constraints))
    if not isinstance(model, dimod.BinaryQuadraticModel):
        raise FormatError(
            f"a {type(model).__name__}; a dimod model, a Qubo or an AnnealerProblem can be written"
        )
    if kind == ".bqm":
        with _writing(path) as file, model.to_file() as content:
            while part := content.read(1 << 20):
                file.write(part)
        return _size_of(model, len(model.variables), 0)
    numbered = list(model.variables) == list(range(len(model.variables)))
    if not numbered and not all(isinstance(label, str) for label in model.variables):
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


def read_model(path: str | Path) -> MachineModel:
    """Return the model in the file: quadratic from `.bqm .npz .coo`, constrained from `.cqm .lp`, one or the
    other from `.qplib`, and a problem for the Digital Annealer from `.json`."""
    model = _read(path)
    return model.bqm() if isinstance(model, ModelTerms) else model


def read_qubo(path: str | Path) -> tuple[Qubo, tuple[str, ...]]:
    """Return (QUBO, labels) of a file of any format; raise if it has constraints."""
    model = _read(path)
    if isinstance(model, ModelTerms):
        return model.qubo()
    if isinstance(model, AnnealerProblem):
        if len(model.inequalities.constants) or model.penalty.couplers or model.penalty.h.any():
            raise FormatError(
                f"{path} has a penalty polynomial or inequalities; read it with read_model"
            )
        return model.objective, model.labels
    if model.constraints or any(model.vartype(v) is not dimod.BINARY for v in model.variables):
        raise FormatError(
            f"{path} has constraints, or variables that are not bits; read it with read_model"
        )
    linear = {v: model.objective.get_linear(v) for v in model.variables}
    bqm = dimod.BinaryQuadraticModel(linear, {}, model.objective.offset, "BINARY")
    bqm.add_quadratic_from(model.objective.iter_quadratic())
    return from_bqm(bqm)


def _read(path: str | Path) -> Any:
    """Return what the reader of the format returns; every error of a damaged file names the file."""
    kind = _ending(path)
    read = _READERS.get(kind)
    if read is None:
        raise FormatError(
            f"{path}: {kind} files are written, not read. Give one of {' '.join(READABLE_ENDINGS)}."
        )
    with opened(path) as file:
        try:
            return read(file)
        # numpy, scipy and dimod raise errors of many kinds for damaged files
        except Exception as error:
            if isinstance(error, OSError) or (
                isinstance(error, EOFError | zlib.error) and _is_packed(path)
            ):
                raise  # `opened` names the file
            message = " ".join(str(error).split())
            if not isinstance(error, FormatError):
                message = f"a damaged {kind} file ({type(error).__name__}: {message[:200]})"
            raise FormatError(message if str(path) in message else f"{path}: {message}") from error


def _ending(path: str | Path) -> str:
    kind = ending(path)
    if kind not in ENDINGS:
        raise FormatError(
            f"{Path(path).name} ends in none of {' '.join(ENDINGS)}; the ending chooses the format"
        )
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
        # no clock: same bytes each time
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]


def to_ommx(model: "dimod.BinaryQuadraticModel | dimod.ConstrainedQuadraticModel") -> Any:
    """Return the `ommx.v1.Instance` of a model: variables and constraints in its order, with their labels as names.

    Spins become bits. Soft constraints are refused.
    """
    ommx = optional("ommx.v1", "an OMMX instance", "ommx")
    if isinstance(model, dimod.BinaryQuadraticModel):
        model = dimod.ConstrainedQuadraticModel.from_bqm(
            model.change_vartype(dimod.BINARY, inplace=False)
        )
    kinds = {"BINARY": ommx.DecisionVariable.binary, "INTEGER": ommx.DecisionVariable.integer}
    kinds["REAL"] = ommx.DecisionVariable.continuous
    numbers = {v: number for number, v in enumerate(model.variables)}
    variables = []
    for v, number in numbers.items():
        kind = model.vartype(v).name
        if kind not in kinds:
            raise FormatError(
                f"the variable {str(v)[:40]!r} is a spin; change the model to bits first"
            )
        bounds = (
            {}
            if kind == "BINARY"
            else {"lower": model.lower_bound(v), "upper": model.upper_bound(v)}
        )
        variables.append(kinds[kind](number, name=str(v), **bounds))

    def function(expression: Any, sign: float = 1.0, constant: float = 0.0) -> Any:
        """Return sign (expression - constant)."""
        linear = {numbers[v]: sign * weight for v, weight in expression.iter_linear()}
        linear_part = ommx.Linear(
            terms=linear, constant=sign * (float(expression.offset) - constant)
        )
        pairs = [
            (numbers[u], numbers[v], sign * weight) for u, v, weight in expression.iter_quadratic()
        ]
        rows, columns, weights = zip(*pairs, strict=True) if pairs else ((), (), ())
        return ommx.Quadratic(rows=rows, columns=columns, values=weights, linear=linear_part)

    constraints = []
    for number, (label, row) in enumerate(model.constraints.items()):
        if row.lhs.is_soft():
            raise FormatError(
                f"the constraint {str(label)[:40]!r} is soft; OMMX has hard constraints only"
            )
        sense = row.sense.value
        equality = (
            ommx.Constraint.EQUAL_TO_ZERO
            if sense == "=="
            else ommx.Constraint.LESS_THAN_OR_EQUAL_TO_ZERO
        )
        left = function(row.lhs, -1.0 if sense == ">=" else 1.0, float(row.rhs))
        constraints.append(
            ommx.Constraint(function=left, equality=equality, id=number, name=str(label))
        )
    return ommx.Instance.from_components(
        decision_variables=variables,
        objective=function(model.objective),
        constraints=constraints,
        sense=ommx.Instance.MINIMIZE,
    )


def ommx_values(answer: Any) -> list[dict[str, float]]:
    """Return the values by label of an `ommx.v1.Solution`, or of each sample of an `ommx.v1.SampleSet`.

    Variables that an adapter added to the instance, such as `ommx.slack`, are left out.
    """
    if hasattr(answer, "sample_ids"):
        return [
            values
            for number in sorted(answer.sample_ids)
            for values in ommx_values(answer.get(number))
        ]
    named = [(str(variable.name), variable.value) for variable in answer.decision_variables]
    return [{name: value for name, value in named if not name.startswith("ommx.")}]
