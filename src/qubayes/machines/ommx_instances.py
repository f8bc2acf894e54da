"""Instances of OMMX, a format that several modelling tools and annealing services share, from dimod's models."""

from typing import Any

from ..foundation.environment import dimod, optional
from ..foundation.errors import FormatError


def to_ommx(model: "dimod.BinaryQuadraticModel | dimod.ConstrainedQuadraticModel") -> Any:
    """Return the `ommx.v1.Instance` of a model: variables and constraints in its order, with their labels as names.

    Spins become bits. Soft constraints are refused.
    """
    ommx = optional("ommx.v1", "an OMMX instance", "ommx")
    if isinstance(model, dimod.BinaryQuadraticModel):
        model = dimod.ConstrainedQuadraticModel.from_bqm(model.change_vartype(dimod.BINARY, inplace=False))
    kinds = {"BINARY": ommx.DecisionVariable.binary, "INTEGER": ommx.DecisionVariable.integer}
    kinds["REAL"] = ommx.DecisionVariable.continuous
    numbers = {v: number for number, v in enumerate(model.variables)}
    variables = []
    for v, number in numbers.items():
        kind = model.vartype(v).name
        if kind not in kinds:
            raise FormatError(f"the variable {str(v)[:40]!r} is a spin; change the model to bits first")
        bounds = {} if kind == "BINARY" else {"lower": model.lower_bound(v), "upper": model.upper_bound(v)}
        variables.append(kinds[kind](number, name=str(v), **bounds))

    def function(expression: Any, sign: float = 1.0, constant: float = 0.0) -> Any:
        """Return sign (expression - constant)."""
        linear = {numbers[v]: sign * weight for v, weight in expression.iter_linear()}
        linear_part = ommx.Linear(terms=linear, constant=sign * (float(expression.offset) - constant))
        pairs = [(numbers[u], numbers[v], sign * weight) for u, v, weight in expression.iter_quadratic()]
        rows, columns, weights = zip(*pairs, strict=True) if pairs else ((), (), ())
        return ommx.Quadratic(rows=rows, columns=columns, values=weights, linear=linear_part)

    constraints = []
    for number, (label, row) in enumerate(model.constraints.items()):
        if row.lhs.is_soft():
            raise FormatError(f"the constraint {str(label)[:40]!r} is soft; OMMX has hard constraints only")
        sense = row.sense.value
        equality = ommx.Constraint.EQUAL_TO_ZERO if sense == "==" else ommx.Constraint.LESS_THAN_OR_EQUAL_TO_ZERO
        left = function(row.lhs, -1.0 if sense == ">=" else 1.0, float(row.rhs))
        constraints.append(ommx.Constraint(function=left, equality=equality, id=number, name=str(label)))
    return ommx.Instance.from_components(
        decision_variables=variables,
        objective=function(model.objective),
        constraints=constraints,
        sense=ommx.Instance.MINIMIZE,
    )


def ommx_values(answer: Any) -> list[dict[str, float]]:
    """Return the values by label of an `ommx.v1.Solution`, or of each sample of an `ommx.v1.SampleSet`."""
    ommx = optional("ommx.v1", "an OMMX answer", "ommx")
    if isinstance(answer, ommx.SampleSet):
        return [values for number in sorted(answer.sample_ids) for values in ommx_values(answer.get(number))]
    return [{variable.name: variable.value for variable in answer.decision_variables}]
