"""The constrained form (Appendix D.4): at most two subsets per vertex by inequalities, no z bits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..foundation.errors import SettingError
from ..foundation.workers import Workers
from ..machines import AnnealerProblem, inequalities_of
from ..machines.qubo import Qubo, to_bqm
from .assembly import order_terms, score_terms, summed
from .closure import vertex_gains

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
    lambdas: tuple[int, ...]  # penalty of each bit beyond two in a group
    labels: tuple[str, ...] = field(repr=False)


def constrain(formulation: "Formulation", workers: Workers | None = None) -> ConstrainedForm:
    """Return the constrained form of the same problem, with the same order bits and ordering penalties."""
    relative, starts = formulation.relative, formulation.subsets.families.vertex_start.tolist()
    first_r = formulation.subsets.total
    bits = first_r + len(formulation.order.pairs)
    gains = vertex_gains(relative, workers or Workers())
    limited = np.flatnonzero(formulation.subsets.families.sizes > 2).tolist()
    return ConstrainedForm(
        summed(score_terms(bits, relative, gains, None)),
        summed(order_terms(bits, first_r, relative, formulation.order, formulation.penalties)),
        tuple((starts[vertex], starts[vertex + 1]) for vertex in limited),
        tuple(max(1, ceil(formulation.penalties.at_most_two[vertex])) for vertex in limited),
        formulation.labels[:bits],
    )


def to_cqm(formulation: "Formulation", *, ordering: str = "penalties") -> "ConstrainedQuadraticModel":
    """Return the constrained form as a model of dimod, the order kept by penalties or by inequalities."""
    from dimod import ConstrainedQuadraticModel

    if ordering not in ORDERINGS:
        raise SettingError(f"ordering = {ordering!r}; choose one of {', '.join(ORDERINGS)}")
    form = constrain(formulation)
    objective = to_bqm(form.score, form.labels)
    if ordering == "penalties":
        objective.update(to_bqm(form.cycles, form.labels))
    model = ConstrainedQuadraticModel.from_bqm(objective)
    for row in [*subset_rows(form), *(order_rows(formulation) if ordering == "inequalities" else ())]:
        terms = [(form.labels[bit], weight) for bit, weight in row.weights.items()]
        model.add_constraint_from_iterable(terms, row.sense, row.bound, label=row.label)
    return model


def subset_rows(form: ConstrainedForm) -> Iterator[Row]:
    """At most two active subsets of each vertex that has more."""
    for number, (first, last) in enumerate(form.groups):
        yield Row(dict.fromkeys(range(first, last), 1.0), "<=", 2.0, f"subsets[{number}]")


def order_rows(formulation: "Formulation") -> Iterator[Row]:
    """Rows of Appendix D.4.

    0 <= r_ij + r_jk - r_ik <= 1; subsets of i with j <= 2 - 2 r_ij, subsets of j with i <= 2 r_ij.
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
    required = formulation.relative.required
    pairs = formulation.order.pair_of(required.vertices, required.children).tolist()
    for parent, child, pair in zip(required.vertices.tolist(), required.children.tolist(), pairs, strict=True):
        if pair >= 0:
            label = f"required[{names[parent]}->{names[child]}]"
            yield Row({first_r + pair: 1.0}, "==", float(first[pair] == parent), label)


def _holders(formulation: "Formulation") -> list[tuple[int, int, int, list[int]]]:
    """Return (child, parent, r bit, u bits of the child that hold the parent) of each possible edge with an r bit."""
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
    """Return the constrained form for Fujitsu's Digital Annealer: score, cycles and inequalities apart."""
    form = constrain(formulation)
    rows = [
        (range(first, last), [1.0] * (last - first), -2.0, weight)
        for (first, last), weight in zip(form.groups, form.lambdas, strict=True)
    ]
    return AnnealerProblem(form.score, form.cycles, inequalities_of(rows), form.labels)
