"""The constrained form (Appendix D.4): at most two subsets per vertex by inequalities, no z bits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..foundation.errors import SettingError
from ..foundation.workers import Workers
from ..machines import AnnealerProblem, inequalities_of
from ..machines.qubo import Qubo, to_bqm
from .score_part import score_parts
from .terms import Block, cycle_terms, score_terms, summed

if TYPE_CHECKING:
    from dimod import ConstrainedQuadraticModel

    from .formulation import Formulation

ORDERINGS = ("penalties", "inequalities")


class Row(NamedTuple):
    """A linear constraint: the sum of weights times bits is <=, >= or == the bound."""

    weights: dict[int, float]  # by bit
    sense: str
    bound: float
    label: str


@dataclass(frozen=True, slots=True)
class ConstrainedForm:
    """Minimise score + cycles such that at most two of each group of u bits are active. Bits: u, then r."""

    score: Qubo = field(repr=False)  # minus the score of the network
    cycles: Qubo = field(repr=False)  # the ordering part; 0 for a DAG with an order of it
    groups: tuple[tuple[int, int], ...]  # (first, last + 1) u bits of each vertex with more than two
    lambdas: tuple[int, ...]  # what a bit too many in a group is worth
    labels: tuple[str, ...] = field(repr=False)


def constrain(formulation: "Formulation", workers: Workers | None = None) -> ConstrainedForm:
    """The constrained form of the same problem, with the same order bits and ordering penalties."""
    problem, families = formulation.problem, formulation.subsets.families
    first_r = formulation.subsets.total
    bits = first_r + len(formulation.order.pairs)
    parts = score_parts(problem, workers or Workers())
    none = np.empty((0, 2), np.int32)
    starts = families.vertex_start.tolist()
    blocks = [
        Block(first, part.singles, part.pairs, 0.0, False, none) for first, part in zip(starts, parts, strict=False)
    ]
    crowded = [vertex for vertex, size in enumerate(families.sizes.tolist()) if size > 2]
    return ConstrainedForm(
        summed(score_terms(bits, blocks, -float(formulation.candidates.base_scores.sum()))),
        summed(cycle_terms(bits, first_r, problem.relative, formulation.order, formulation.penalties)),
        tuple((starts[vertex], starts[vertex + 1]) for vertex in crowded),
        tuple(max(1, ceil(formulation.penalties.crowds[vertex])) for vertex in crowded),
        tuple(label for label in formulation.labels if not label.startswith("z[")),
    )


def to_cqm(formulation: "Formulation", *, ordering: str = "penalties") -> "ConstrainedQuadraticModel":
    """The constrained form as a model of dimod, the order kept by penalties or by the appendix's inequalities."""
    from dimod import ConstrainedQuadraticModel

    if ordering not in ORDERINGS:
        raise SettingError(f"ordering = {ordering!r}; choose one of {', '.join(ORDERINGS)}")
    form = constrain(formulation)
    objective = to_bqm(form.score, form.labels)
    if ordering == "penalties":
        objective.update(to_bqm(form.cycles, form.labels))
    model = ConstrainedQuadraticModel.from_bqm(objective)
    for number, (first, last) in enumerate(form.groups):
        _add(model, dict.fromkeys(form.labels[first:last], 1.0), "<=", 2.0, f"subsets[{number}]")
    if ordering == "inequalities":
        _add_order(model, formulation, form.labels)
    return model


def _add(model: Any, linear: dict[str, float], sense: str, bound: float, label: str) -> None:
    from dimod import BinaryQuadraticModel

    model.add_constraint(BinaryQuadraticModel(linear, {}, 0.0, "BINARY"), sense, bound, label=label)


def _add_order(model: Any, formulation: "Formulation", labels: tuple[str, ...]) -> None:
    for row in order_rows(formulation):
        _add(model, {labels[bit]: weight for bit, weight in row.weights.items()}, row.sense, row.bound, row.label)


def order_rows(formulation: "Formulation") -> Iterator[Row]:
    """0 <= r_ij + r_jk - r_ik <= 1; subsets of i with j <= 2 - 2 r_ij, subsets of j with i <= 2 r_ij (Appendix D.4).

    A pair that is written descending has 1 - r in the place of r.
    """
    names, first_r = formulation.candidates.names, formulation.subsets.total
    up, first = formulation.order.ascending.tolist(), formulation.order.pairs[:, 0].tolist()
    for number, (ab, bc, ac) in enumerate(formulation.order.triangles.tolist()):
        signed = [(pair, weight if up[pair] else -weight) for pair, weight in ((ab, 1.0), (bc, 1.0), (ac, -1.0))]
        constant = sum(weight for pair, weight in ((ab, 1.0), (bc, 1.0), (ac, -1.0)) if not up[pair])
        weights = {first_r + pair: weight for pair, weight in signed}
        yield Row(weights, ">=", 0.0 - constant, f"backward[{number}]")
        yield Row(weights, "<=", 1.0 - constant, f"forward[{number}]")
    for child, parent, pair, holders in _holders(formulation):
        against = first[pair] == child  # r = 1 puts the child first
        weights = dict.fromkeys(holders, 1.0) | {first_r + pair: 2.0 if against else -2.0}
        yield Row(weights, "<=", 2.0 if against else 0.0, f"edge[{names[parent]}->{names[child]}]")
    required = formulation.problem.relative.required
    pairs = formulation.order.pair_of(required.vertices, required.children).tolist()
    for parent, child, pair in zip(required.vertices.tolist(), required.children.tolist(), pairs, strict=True):
        if pair >= 0:
            label = f"required[{names[parent]}->{names[child]}]"
            yield Row({first_r + pair: 1.0}, "==", float(first[pair] == parent), label)


def _holders(formulation: "Formulation") -> list[tuple[int, int, int, list[int]]]:
    """(child, parent, r bit, u bits of the child that hold the parent) of each possible edge with an r bit."""
    families, found = formulation.subsets.families, []
    for child, (first, last) in enumerate(pairwise(families.vertex_start.tolist())):
        holders: dict[int, list[int]] = {}
        for bit, subset in zip(range(first, last), families.sets_of(child), strict=True):
            for parent in subset:
                holders.setdefault(parent, []).append(bit)
        parents = np.array(sorted(holders), dtype=np.int64)
        pairs = formulation.order.pair_of(parents, np.full(len(parents), child)).tolist()
        found += [(child, v, pair, holders[v]) for v, pair in zip(parents.tolist(), pairs, strict=True) if pair >= 0]
    return found


def annealer_problem(formulation: "Formulation") -> AnnealerProblem:
    """The constrained form for Fujitsu's Digital Annealer: score, cycles and inequalities apart."""
    form = constrain(formulation)
    rows = [
        (range(first, last), [1.0] * (last - first), -2.0, weight)
        for (first, last), weight in zip(form.groups, form.lambdas, strict=True)
    ]
    return AnnealerProblem(form.score, form.cycles, inequalities_of(rows), form.labels)
