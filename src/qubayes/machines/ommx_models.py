"""Models as instances of OMMX (`to_ommx`), and the answers of its adapters (`ommx_values`).

OMMX is a format that modelling tools and annealing services share."""

from collections.abc import Hashable, Mapping
from typing import Any

from ..foundation.environment import dimod, optional
from ..foundation.errors import FormatError


def to_ommx(model: "dimod.BinaryQuadraticModel | dimod.ConstrainedQuadraticModel") -> Any:
    """Return the `ommx.v1.Instance` of a model.

    Variables and constraints are in its order, with their labels as names.

    Spins become bits. Soft constraints are refused.
    """
    ommx = optional("ommx.v1", "an OMMX instance", "ommx")
    if isinstance(model, dimod.BinaryQuadraticModel):
        bits = model.change_vartype(dimod.BINARY, inplace=False)
        model = dimod.ConstrainedQuadraticModel.from_bqm(bits)
    numbers = {v: number for number, v in enumerate(model.variables)}
    variables = [_variable(ommx, model, v, number) for v, number in numbers.items()]
    constraints = [
        _constraint(ommx, row, label, number, numbers)
        for number, (label, row) in enumerate(model.constraints.items())
    ]
    return ommx.Instance.from_components(
        decision_variables=variables,
        objective=_polynomial(ommx, model.objective, numbers),
        constraints=constraints,
        sense=ommx.Instance.MINIMIZE,
    )


def _variable(ommx: Any, model: "dimod.ConstrainedQuadraticModel", v: Hashable, number: int) -> Any:
    """Return the decision variable of this number."""
    kind = model.vartype(v).name
    if kind == "BINARY":
        return ommx.DecisionVariable.binary(number, name=str(v))
    if kind == "SPIN":
        raise FormatError(f"the variable {str(v)[:40]!r} is a spin; change the model to bits first")
    variable = ommx.DecisionVariable
    make = variable.integer if kind == "INTEGER" else variable.continuous
    return make(number, name=str(v), lower=model.lower_bound(v), upper=model.upper_bound(v))


def _constraint(
    ommx: Any, row: Any, label: Hashable, number: int, numbers: Mapping[Hashable, int]
) -> Any:
    """Return the constraint as `function = 0` or `function <= 0`."""
    if row.lhs.is_soft():
        raise FormatError(
            f"the constraint {str(label)[:40]!r} is soft; OMMX has hard constraints only"
        )
    sense = row.sense.value
    kinds = ommx.Constraint
    kind = kinds.EQUAL_TO_ZERO if sense == "==" else kinds.LESS_THAN_OR_EQUAL_TO_ZERO
    sign = -1.0 if sense == ">=" else 1.0
    left = _polynomial(ommx, row.lhs, numbers, sign, float(row.rhs))
    return kinds(function=left, equality=kind, id=number, name=str(label))


def _polynomial(
    ommx: Any,
    expression: Any,
    numbers: Mapping[Hashable, int],
    sign: float = 1.0,
    subtracted: float = 0.0,
) -> Any:
    """Return sign (expression - subtracted)."""
    weights = {numbers[v]: sign * weight for v, weight in expression.iter_linear()}
    constant = sign * (float(expression.offset) - subtracted)
    linear = ommx.Linear(terms=weights, constant=constant)
    products = list(expression.iter_quadratic())
    return ommx.Quadratic(
        rows=tuple(numbers[u] for u, _, _ in products),
        columns=tuple(numbers[v] for _, v, _ in products),
        values=tuple(sign * weight for _, _, weight in products),
        linear=linear,
    )


def ommx_values(answer: Any) -> list[dict[str, float]]:
    """Return the values by label of an `ommx.v1.Solution`, or of each sample of a `SampleSet`.

    Variables that an adapter added to the instance, such as `ommx.slack`, are left out.
    """
    if hasattr(answer, "sample_ids"):
        found = [ommx_values(answer.get(number)) for number in sorted(answer.sample_ids)]
        return [values for (values,) in found]
    named = [(str(variable.name), variable.value) for variable in answer.decision_variables]
    return [{name: value for name, value in named if not name.startswith("ommx.")}]
