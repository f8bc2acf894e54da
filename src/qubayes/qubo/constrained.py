"""Constrained form of the QUBO (paper, Appendix D.4): inequalities in place of penalties."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..foundation.errors import SettingError
from ..foundation.workers import Workers
from ..machines import AnnealerProblem, inequalities_of
from ..machines.qubo import Qubo, to_bqm
from .assembly import coupled_terms, order_terms, score_terms, summed
from .penalties import MARGIN, excess_bound, vertex_gains

if TYPE_CHECKING:
    from dimod import ConstrainedQuadraticModel

    from .formulation import Formulation

ORDERINGS = ("penalties", "inequalities")


class Row(NamedTuple):
    """A linear constraint: the sum of weights times binary variables is <=, >= or == the bound."""

    weights: dict[int, float]  # by index of the variable
    sense: str
    bound: float
    label: str


@dataclass(frozen=True, slots=True)
class ConstrainedForm:
    """Minimise score + cycles with at most two active subsets in each group, over u and r."""

    score: Qubo = field(repr=False)  # minus the score of the network
    cycles: Qubo = field(repr=False)  # the ordering part; 0 for a DAG with an order of it
    # (first, last + 1) u variables of each vertex with more than two
    groups: tuple[tuple[int, int], ...]
    names: tuple[str, ...]  # the vertex of each group
    # a sound penalty of each active subset beyond two in a group (docs/theory.md, Lemma 4)
    lambdas: tuple[int, ...]
    labels: tuple[str, ...] = field(repr=False)


def constrain(formulation: "Formulation", workers: Workers | None = None) -> ConstrainedForm:
    """Return the constrained form of the problem, with the same order bits and their penalties."""
    relative, order = formulation.relative, formulation.order
    penalties = formulation.penalties
    families = formulation.subsets.families
    starts = families.vertex_start.tolist()
    bits = formulation.first_z
    gains = vertex_gains(relative, workers or Workers())
    limited = np.flatnonzero(families.sizes > 2).tolist()
    bounds = [excess_bound(gains[vertex].singles, gains[vertex].pairs) for vertex in limited]
    return ConstrainedForm(
        score=summed(score_terms(bits, relative, gains, None)),
        cycles=summed(
            *order_terms(bits, formulation.first_r, relative, order, penalties),
            coupled_terms(bits, relative, order, penalties),
        ),
        groups=tuple((starts[vertex], starts[vertex + 1]) for vertex in limited),
        names=tuple(formulation.candidates.names[vertex] for vertex in limited),
        lambdas=tuple(1 + int(MARGIN * bound) for bound in bounds),
        labels=formulation.labels[:bits],
    )


def to_cqm(
    formulation: "Formulation", *, ordering: str = "penalties"
) -> "ConstrainedQuadraticModel":
    """Return the constrained form as a model of dimod; `ordering` is one of ORDERINGS."""
    from dimod import ConstrainedQuadraticModel

    if ordering not in ORDERINGS:
        raise SettingError(f"ordering = {ordering!r}; choose one of {', '.join(ORDERINGS)}")
    if ordering == "inequalities" and len(formulation.order.coupled):
        raise SettingError(
            f"order {formulation.order_kind} couples subsets directly; give ordering = penalties"
        )
    form = constrain(formulation)
    objective = to_bqm(form.score, form.labels)
    if ordering == "penalties":
        objective.update(to_bqm(form.cycles, form.labels))
    model = ConstrainedQuadraticModel.from_bqm(objective)
    rows = [*subset_rows(form)]
    if ordering == "inequalities":
        rows += order_rows(formulation)
    for row in rows:
        terms = [(form.labels[bit], weight) for bit, weight in row.weights.items()]
        model.add_constraint_from_iterable(terms, row.sense, row.bound, label=row.label)
    return model


def subset_rows(form: ConstrainedForm) -> Iterator[Row]:
    """Yield the rows: at most two active subsets of each vertex that has more."""
    for name, (first, last) in zip(form.names, form.groups, strict=True):
        yield Row(dict.fromkeys(range(first, last), 1.0), "<=", 2.0, f"subsets[{name}]")


def order_rows(formulation: "Formulation") -> Iterator[Row]:
    """Yield the rows of the order (paper, Appendix D.4).

    0 <= r_ij + r_jk - r_ik <= 1; subsets of i with j <= 2 - 2 r_ij, subsets of j with i <= 2 r_ij.
    A pair that is written descending has 1 - r in the place of r.
    """
    yield from _triangle_rows(formulation)
    yield from _edge_rows(formulation)
    yield from _required_rows(formulation)


def _triangle_rows(formulation: "Formulation") -> Iterator[Row]:
    names, first_r = formulation.candidates.names, formulation.first_r
    order = formulation.order
    signs = np.where(order.ascending, 1.0, -1.0)[order.triangles] * [1.0, 1.0, -1.0]
    constants = (~order.ascending[order.triangles] * [1.0, 1.0, -1.0]).sum(axis=1)
    for sides, weights, constant, corner in zip(
        (first_r + order.triangles).tolist(),
        signs.tolist(),
        constants.tolist(),
        order.corners().tolist(),
        strict=True,
    ):
        terms = dict(zip(sides, weights, strict=True))
        label = ",".join(names[vertex] for vertex in corner)
        yield Row(terms, ">=", 0.0 - constant, f"backward[{label}]")
        yield Row(terms, "<=", 1.0 - constant, f"forward[{label}]")


def _edge_rows(formulation: "Formulation") -> Iterator[Row]:
    names, order = formulation.candidates.names, formulation.order
    families = formulation.subsets.families
    for child, (first, last) in enumerate(pairwise(families.vertex_start.tolist())):
        holders: dict[int, list[int]] = {}
        for u, subset in zip(range(first, last), families.sets_of(child), strict=True):
            for parent in subset:
                holders.setdefault(parent, []).append(u)
        parents = np.array(sorted(holders), dtype=np.int64)
        pairs = order.pair_of(parents, np.full(len(parents), child))
        for parent, pair in zip(parents.tolist(), pairs.tolist(), strict=True):
            if pair < 0:
                continue
            against = order.pairs[pair, 0] == child  # r = 1 puts the child first
            weights = dict.fromkeys(holders[parent], 1.0)
            weights[formulation.first_r + pair] = 2.0 if against else -2.0
            label = f"edge[{names[parent]}->{names[child]}]"
            yield Row(weights, "<=", 2.0 if against else 0.0, label)


def _required_rows(formulation: "Formulation") -> Iterator[Row]:
    names, required = formulation.candidates.names, formulation.relative.required
    bits, parent_first = formulation.order.of_edges(required)
    for edge in np.flatnonzero(bits >= 0).tolist():
        parent, child = required.vertices[edge], required.children[edge]
        label = f"required[{names[parent]}->{names[child]}]"
        weights = {formulation.first_r + int(bits[edge]): 1.0}
        yield Row(weights, "==", float(parent_first[edge]), label)


def annealer_problem(formulation: "Formulation") -> AnnealerProblem:
    """Return the constrained form for the Digital Annealer: score, cycles and inequalities."""
    form = constrain(formulation)
    rows = [
        (range(first, last), [1.0] * (last - first), -2.0, weight)
        for (first, last), weight in zip(form.groups, form.lambdas, strict=True)
    ]
    return AnnealerProblem(form.score, form.cycles, inequalities_of(rows), form.labels)
