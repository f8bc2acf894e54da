"""Decoding of samples into networks (paper: D(u)), and repair of infeasible samples."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from ..foundation.arrays import Bools, Floats, Ints
from ..foundation.errors import QubayesError
from ..foundation.families import VertexSet
from ..foundation.graph import find_cycle
from ..machines.qubo import energy
from .answers import Samples, State, states_of
from .constrained import ConstrainedForm, constrain
from .encoding import encode_sets
from .gains import union_gains
from .violations import Violation, order_violations, subset_violations

if TYPE_CHECKING:
    from .formulation import Formulation

# of energy + score of a feasible sample, relative to the largest sum that enters it
ENERGY_ERROR = 1e-9


@dataclass(frozen=True, slots=True)
class Decoded:
    """The network of a sample: a DAG with energy = -score if the sample is feasible.

    If the formulation's scores are rounded, the energy is minus the rounded score.
    """

    parents: tuple[VertexSet, ...]
    violations: tuple[Violation, ...]
    energy: float  # of the QUBO, or of the objective of the constrained form
    score: float  # of `parents`
    bits: Bools  # (bits,)
    repaired: "Decoded | None" = None  # a network in place of an infeasible sample

    @property
    def feasible(self) -> bool:
        """Whether the sample satisfies every constraint."""
        return not self.violations

    @property
    def final(self) -> "Decoded":
        """The repaired network where there is one, else this."""
        return self.repaired or self

    def as_json(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return what `qubayes decode --json` prints for a sample."""
        parents = {}
        for name, members in zip(names, self.parents, strict=True):
            parents[name] = [names[parent] for parent in members]
        return {
            "score": self.score,
            "energy": self.energy,
            "feasible": self.feasible,
            "parents": parents,
            "violations": [str(violation) for violation in self.violations],
            "repaired": self.repaired.as_json(names) if self.repaired else None,
        }


@overload
def decode(formulation: "Formulation", answer: State, *, repair: bool = False) -> Decoded: ...
@overload
def decode(
    formulation: "Formulation", answer: Samples, *, repair: bool = False
) -> tuple[Decoded, ...]: ...
def decode(
    formulation: "Formulation", answer: State | Samples, *, repair: bool = False
) -> Decoded | tuple[Decoded, ...]:
    """Return the network of a sample, or of each of several, with its violated constraints.

    One sample is a mapping from labels to 0 and 1, or an array in the order of
    `formulation.labels`. Several are a `dimod.SampleSet`, a list of mappings, (rows, labels), or
    the answer of a Digital Annealer. Samples without slack variables z are those of the constrained
    form. With `repair` an infeasible sample also gets the network that `repaired_sets` makes of it.

    >>> from qubayes.candidates import example
    >>> from qubayes.qubo import formulate
    >>> from qubayes.search import solve
    >>> from qubayes.qubo.subsets import cover
    >>> candidates = example()
    >>> formulation = formulate(candidates, cover(candidates))
    >>> best = solve(formulation, "exact")
    >>> decoded = decode(formulation, best.bits)
    >>> decoded.parents == best.parents, decoded.violations, round(decoded.energy + best.score, 6)
    (True, (), 0.0)
    """
    states = states_of(formulation, answer)
    form = constrain(formulation) if states.constrained else None
    found = tuple(_decoded(formulation, state, form, repair) for state in states.rows)
    return found if states.several else found[0]


class _Network(NamedTuple):
    """The network of a sample, which may have a cycle."""

    sets: tuple[VertexSet, ...]  # with members that only express an order of variables
    parents: tuple[VertexSet, ...]
    score: float
    rounded: float  # by the scores that were formulated


def _decoded(
    formulation: "Formulation", state: Bools, form: ConstrainedForm | None, repair: bool
) -> Decoded:
    """Return the network of a sample of the QUBO, or of its constrained form."""
    violations = [
        *subset_violations(formulation, state, form is not None),
        *order_violations(formulation, state),
    ]
    network = _network_of(formulation, state)
    if form is None:
        total = float(energy(formulation.qubo, state))
    else:
        plain = state[: len(form.labels)]
        total = float(energy(form.score, plain)) + float(energy(form.cycles, plain))
    if not violations:
        violations = _check_feasible(formulation, network, total)
    decoded = Decoded(network.parents, tuple(violations), total, network.score, state)
    if violations and repair:
        mended = encode_sets(formulation, repaired_sets(formulation, state))
        return replace(decoded, repaired=_decoded(formulation, mended, None, False))
    return decoded


def _network_of(formulation: "Formulation", state: Bools) -> _Network:
    """Return the network of the active subsets: closures, or unions if these have scores."""
    relative, candidates = formulation.relative, formulation.candidates
    if relative.union_scores is None:
        chosen = closure_sets(formulation, state)
        return _Network(
            candidates.families.sets_at(chosen),
            candidates.parents_at(chosen),
            float(formulation.scores[chosen].sum()),
            float(candidates.scores[chosen].sum()),
        )
    unions = [tuple(np.flatnonzero(row).tolist()) for row in active_members(formulation, state)]
    gains = [union_gains(relative, vertex, [union])[0] for vertex, union in enumerate(unions)]
    parents = []
    for vertex, union in enumerate(unions):
        base = candidates.base(vertex)
        both = tuple(sorted({*union, *base}))
        parents.append(both if len(both) <= relative.largest_set else base)
    score = float(candidates.base_scores.sum() + sum(gains))
    return _Network(tuple(parents), tuple(parents), score, score)


def _check_feasible(formulation: "Formulation", network: _Network, total: float) -> list[Violation]:
    """Return the violation of a network with a cycle; raise if it is proved that there is none."""
    if not abs(total + network.rounded) <= energy_tolerance(formulation):
        raise AssertionError(f"a feasible state has energy {total!r} but score {network.rounded!r}")
    cycle = find_cycle(network.sets)
    if not cycle:
        return []
    if formulation.exact:
        raise AssertionError("a feasible state has a directed cycle")
    return [Violation("cycle", tuple(formulation.candidates.names[v] for v in cycle))]


def energy_tolerance(formulation: "Formulation") -> float:
    """Return the largest |energy + score| of a feasible sample that rounding can cause."""
    largest = float(np.abs(formulation.qubo.h).max(initial=1.0))
    return ENERGY_ERROR * (abs(formulation.qubo.offset) + largest)


def closure_sets(formulation: "Formulation", state: Bools) -> Ints:
    """Return for each vertex the best candidate set inside its base and active subsets."""
    inside, required = active_members(formulation, state), formulation.relative.required
    inside[required.children, required.vertices] = True
    return formulation.candidates.families.best_inside(inside)


def active_members(formulation: "Formulation", state: Bools) -> Bools:
    """Return (n, n) whether an active subset of the row's vertex holds the column's vertex."""
    families = formulation.subsets.families
    active = state[families.sets_of_members]
    inside = np.zeros((families.n, families.n), np.bool_)
    inside[families.member_owners[active], families.members[active]] = True
    return inside


def repaired_sets(formulation: "Formulation", bits: npt.ArrayLike) -> Ints:
    """Return the better of the networks of `implied_order` and `weighted_order`, as set numbers."""
    orders = (implied_order(formulation, bits), weighted_order(formulation, bits))
    choices = [best_sets(formulation, order) for order in orders]
    return max(choices, key=lambda choice: float(formulation.candidates.scores[choice].sum()))


def best_sets(formulation: "Formulation", order: list[int]) -> Ints:
    """Return for each vertex its best candidate set with all members before it, by number."""
    chosen = formulation.candidates.families.best_of_order(order)
    if (chosen < 0).any():
        name = formulation.candidates.names[int(np.argmin(chosen))]
        raise QubayesError(
            f"the order puts {name} before a required parent of it; give an order that does not"
        )
    return chosen


def implied_order(formulation: "Formulation", bits: npt.ArrayLike) -> list[int]:
    """Return an order in which edges that the order bits allow go forward, without a cycle of them.

    Where they allow one, the vertex with the fewest open predecessors, all its required ones
    placed, comes next."""
    n, parents = formulation.candidates.n, formulation.relative.parents
    r = (np.asarray(bits) != 0)[formulation.first_r : formulation.first_z]
    allowed = formulation.order.allows(r, parents)
    before = np.zeros((n, n), np.bool_)
    before[parents.children[allowed], parents.vertices[allowed]] = True
    weights = before + n * _required(formulation)  # [child, parent]
    open_before = weights.sum(axis=1)
    order: list[int] = []
    for _ in range(n):
        vertex = int(np.argmin(open_before))
        order.append(vertex)
        open_before -= weights[:, vertex]
        # placed: above all others, though the rest still subtract up to n (n + 1)
        open_before[vertex] = 4 * n * n
    return order


def weighted_order(formulation: "Formulation", bits: npt.ArrayLike) -> list[int]:
    """Return an order of all vertices that loses little of the sets that the sample chooses.

    A greedy feedback arc order (Eades, Lin and Smyth): next comes a vertex without open parents, or
    the one with the largest difference of outgoing and incoming weight. An arc weighs what the
    child loses without the parent."""
    must = _required(formulation)
    weights = _losses_of_arcs(formulation, closure_sets(formulation, np.asarray(bits) != 0), must)
    huge = 1.0 + 2.0 * float(weights.sum())
    incoming, outgoing = weights.sum(axis=1), weights.sum(axis=0)
    waiting = must.sum(axis=1)
    arcs_in = (weights > 0).sum(axis=1)
    order: list[int] = []
    for _ in range(len(weights)):
        rank = np.where(arcs_in > 0, outgoing - incoming, huge) - 2.0 * huge * waiting
        rank[order] = -np.inf
        vertex = int(np.argmax(rank))
        order.append(vertex)
        incoming -= weights[:, vertex]
        outgoing -= weights[vertex]
        arcs_in -= weights[:, vertex] > 0
        waiting -= must[:, vertex]
    return order


def _required(formulation: "Formulation") -> Bools:
    """Return (n, n) whether the column's vertex is a required parent of the row's."""
    n, required = formulation.candidates.n, formulation.relative.required
    must = np.zeros((n, n), np.bool_)
    must[required.children, required.vertices] = True
    return must


def _losses_of_arcs(formulation: "Formulation", chosen: Ints, must: Bools) -> Floats:
    """Return (n, n), [child, parent], the loss of the child's score without an optional parent."""
    candidates = formulation.candidates
    losses = np.zeros(must.shape)
    for child, members in enumerate(candidates.families.sets_at(chosen)):
        allowed = np.zeros(candidates.n, np.bool_)
        allowed[list(members)] = True
        for parent in members:
            if must[child, parent]:
                continue
            allowed[parent] = False
            without = candidates.families.first_inside(child, allowed)
            losses[child, parent] = candidates.scores[chosen[child]] - candidates.scores[without]
            allowed[parent] = True
    return losses
