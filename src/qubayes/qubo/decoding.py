"""Decoding of states into networks (paper: D(u)) and encoding of networks into states.

A violated constraint is named; a state that violates one is repaired on request, beside what it
was."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from ..foundation.arrays import Bools, Ints
from ..foundation.errors import QubayesError
from ..foundation.families import VertexSet
from ..foundation.graph import find_cycle, topological_order
from ..machines.qubo import energy
from .answers import Samples, State, states_of
from .assembly import ConstrainedForm, constrain
from .gains import Parents, union_gains

if TYPE_CHECKING:
    from .formulation import Formulation

# error of energy + score of a feasible state, relative to the largest sum that enters it
TOLERANCE = 1e-9
SENTENCES = {
    "subsets": "{0} has active subsets that no candidate set combines",
    "slack": "z[{0}] does not say whether two subsets of {0} are active",
    "edge": "{0} is a parent of {1} but comes after it",
    "required": "{0} is a required parent of {1} but comes after it",
    "triangle": "{0} comes before {1}, {1} before {2} and {2} before {0}",
}


class Violation(NamedTuple):
    """A constraint that a state violates: `subsets`, `slack`, `edge`, `required`, `triangle` or `cycle`."""

    constraint: str
    vertices: tuple[str, ...]  # the vertex; parent and child; those of the cycle, in its order

    def __str__(self) -> str:
        if self.constraint == "cycle":
            return f"{' -> '.join((*self.vertices, self.vertices[0]))} is a directed cycle"
        return SENTENCES[self.constraint].format(*self.vertices)


@dataclass(frozen=True, slots=True)
class Decoded:
    """The network of a state: a DAG with energy = -score if nothing is violated.

    If the formulation's scores are rounded, the energy is minus the rounded score.
    """

    parents: tuple[VertexSet, ...]
    violations: tuple[Violation, ...]
    energy: float  # of the QUBO, or of the objective of the constrained form
    score: float  # of `parents`
    bits: Bools  # (bits,)
    # a network in the place of a state that violates a constraint
    repaired: "Decoded | None" = None

    @property
    def feasible(self) -> bool:
        """Whether the state satisfies every constraint."""
        return not self.violations

    @property
    def final(self) -> "Decoded":
        """The repaired network where there is one, else this."""
        return self.repaired or self

    def as_json(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return what `qubayes decode --json` prints for a sample."""
        parents = {
            name: [names[p] for p in members]
            for name, members in zip(names, self.parents, strict=True)
        }
        found = {
            "score": self.score,
            "energy": self.energy,
            "feasible": self.feasible,
            "parents": parents,
        }
        found["violations"] = [str(violation) for violation in self.violations]
        found["repaired"] = self.repaired.as_json(names) if self.repaired else None
        return found


@overload
def decode(formulation: "Formulation", answer: State, *, repair: bool = False) -> Decoded: ...
@overload
def decode(
    formulation: "Formulation", answer: Samples, *, repair: bool = False
) -> tuple[Decoded, ...]: ...
def decode(
    formulation: "Formulation", answer: State | Samples, *, repair: bool = False
) -> Decoded | tuple[Decoded, ...]:
    """Return the network of a state, or of each sample of an answer, and every constraint that it violates.

    One state is a mapping from labels to 0 and 1, or an array in the order of `formulation.labels`.
    Several are a `dimod.SampleSet`, a list of mappings, (rows, labels), or the answer of a Digital
    Annealer. States without z bits are those of the constrained form. With `repair` a state that
    violates a constraint also gets the network that `repaired_sets` makes of it.

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


def _decoded(
    formulation: "Formulation", state: Bools, form: ConstrainedForm | None, repair: bool
) -> Decoded:
    """Return the network of a state of the QUBO, or of its constrained form."""
    violations = [
        *_subset_violations(formulation, state, form is not None),
        *_order_violations(formulation, state),
    ]
    relative, candidates = formulation.relative, formulation.candidates
    if relative.union_scores is None:
        chosen = closure_sets(formulation, state)
        parents = candidates.families.sets_at(chosen)
        score, rounded = (
            float(scores[chosen].sum()) for scores in (formulation.scores, candidates.scores)
        )
    else:
        unions = [tuple(np.flatnonzero(row).tolist()) for row in active_members(formulation, state)]
        gains = [union_gains(relative, vertex, [union])[0] for vertex, union in enumerate(unions)]
        score = rounded = float(candidates.base_scores.sum() + sum(gains))
        bases = [candidates.base(vertex) for vertex in range(candidates.n)]
        both = [tuple(sorted({*union, *base})) for union, base in zip(unions, bases, strict=True)]
        parents = tuple(
            w if len(w) <= relative.largest_set else bases[v] for v, w in enumerate(both)
        )
    if form is None:
        total = float(energy(formulation.qubo, state))
    else:
        plain = state[: len(form.labels)]
        total = float(energy(form.score, plain)) + float(energy(form.cycles, plain))
    if not violations:
        if not abs(total + rounded) <= energy_tolerance(formulation):
            raise AssertionError(f"a feasible state has energy {total!r} but score {rounded!r}")
        if cycle := find_cycle(parents):
            if formulation.exact:
                raise AssertionError("a feasible state has a directed cycle")
            violations.append(
                Violation("cycle", tuple(formulation.candidates.names[v] for v in cycle))
            )
    decoded = Decoded(parents, tuple(violations), total, score, state)
    if relative.union_scores is None:
        decoded = replace(decoded, parents=candidates.parents_at(chosen))
    if violations and repair:
        mended = encode_sets(formulation, repaired_sets(formulation, state))
        return replace(decoded, repaired=_decoded(formulation, mended, None, False))
    return decoded


def energy_tolerance(formulation: "Formulation") -> float:
    """Return the largest |energy + score| of a feasible state that rounding can cause."""
    return TOLERANCE * (
        abs(formulation.qubo.offset) + float(np.abs(formulation.qubo.h).max(initial=1.0))
    )


def closure_sets(formulation: "Formulation", state: Bools) -> Ints:
    """Return for each vertex the best candidate set inside its base and the union of its active subsets."""
    inside, required = active_members(formulation, state), formulation.relative.required
    inside[required.children, required.vertices] = True
    return formulation.candidates.families.best_inside(inside)


def active_members(formulation: "Formulation", state: Bools) -> Bools:
    """Return (n, n) whether an active subset of the row's vertex holds the column's vertex."""
    families = formulation.subsets.families
    active = np.repeat(state[: formulation.subsets.total], np.diff(families.set_start))
    inside = np.zeros((families.n, families.n), np.bool_)
    inside[families.member_owners[active], families.members[active]] = True
    return inside


def _subset_violations(
    formulation: "Formulation", state: Bools, constrained: bool
) -> list[Violation]:
    """Name each vertex whose active subsets, or whose z bit, cost energy; constrained: those with more than two."""
    subsets, names, penalties = (
        formulation.subsets.families,
        formulation.candidates.names,
        formulation.penalties,
    )
    sums = np.concatenate([[0], np.cumsum(state[: formulation.subsets.total])])
    active = np.diff(sums[subsets.vertex_start])
    wrong = active > 2
    if constrained:
        return [Violation("subsets", (names[vertex],)) for vertex in np.flatnonzero(wrong).tolist()]
    for vertex in np.flatnonzero(
        (active == 2) & ~penalties.has_slack & (penalties.at_most_two > 0)
    ).tolist():
        first, last = subsets.vertex_start[vertex : vertex + 2]
        own = slice(*formulation.candidates.families.vertex_start[vertex : vertex + 2])
        pair = first + np.flatnonzero(state[first:last])
        wrong[vertex] = not (formulation.representations[own] == pair).all(axis=1).any()
    z = np.append(state, False)[formulation.z_bits]
    slack = ((active == 0) & z) | ((active == 2) & ~z)  # with one active subset z is free
    slack &= penalties.has_slack & (penalties.at_most_two > 0)
    return [
        Violation(constraint, (names[vertex],))
        for constraint, vertices in (("subsets", wrong), ("slack", slack))
        for vertex in np.flatnonzero(vertices).tolist()
    ]


def _order_violations(formulation: "Formulation", state: Bools) -> list[Violation]:
    """Name each active or required edge against the order, and each cyclic triangle."""
    names, relative, order = formulation.candidates.names, formulation.relative, formulation.order
    r, subsets, found = _order_state(formulation, state), relative.subset_sets, []
    active = np.repeat(state[: formulation.subsets.total], np.diff(subsets.set_start))
    edges = np.unique((relative.parents.start[subsets.member_owners] + subsets.members - 1)[active])
    for constraint, parents, present in (
        ("edge", relative.parents, edges),
        ("required", relative.required, np.arange(len(relative.required.vertices))),
    ):
        wrong = present[~_agrees(formulation, r, parents)[present]]
        ends = zip(parents.vertices[wrong].tolist(), parents.children[wrong].tolist(), strict=True)
        found += [Violation(constraint, (names[parent], names[child])) for parent, child in ends]
    ab, bc, ac = (r == order.ascending)[order.triangles].T
    cyclic = (ab == bc) & (ab != ac)
    for (a, b, c), forward in zip(
        order.corners()[cyclic].tolist(), ab[cyclic].tolist(), strict=True
    ):
        cycle = (a, b, c) if forward else (c, b, a)
        found.append(Violation("triangle", tuple(names[vertex] for vertex in cycle)))
    return found


def _order_state(formulation: "Formulation", state: Bools) -> Bools:
    """Return the r bits of a state."""
    first_r = formulation.subsets.total
    return state[first_r : first_r + len(formulation.order.pairs)]


def _agrees(formulation: "Formulation", r: Bools, parents: Parents) -> Bools:
    """Return whether each edge parent -> child has no r bit, or one that puts the parent first."""
    pair = formulation.order.pair_of(parents.vertices, parents.children)
    first = np.append(formulation.order.pairs[:, 0], -1)[pair]
    agrees: Bools = (pair < 0) | (np.append(r, False)[pair] == (first == parents.vertices))
    return agrees


def implied_order(formulation: "Formulation", bits: npt.ArrayLike) -> list[int]:
    """Return an order of all vertices in which each edge that the r bits allow goes forward, if they allow no cycle.

    Where they allow one, the vertex with the fewest open predecessors, all its required ones
    placed, comes next."""
    state, relative, n = np.asarray(bits) != 0, formulation.relative, formulation.candidates.n
    before, must = np.zeros((n, n), np.bool_), np.zeros((n, n), np.bool_)
    allowed = _agrees(formulation, _order_state(formulation, state), relative.parents)
    before[relative.parents.children[allowed], relative.parents.vertices[allowed]] = True
    must[relative.required.children, relative.required.vertices] = True
    order: list[int] = []
    open_before = before.sum(axis=1) + n * must.sum(axis=1)
    for _ in range(n):
        order.append(vertex := int(np.argmin(open_before)))
        open_before -= before[:, vertex] + n * must[:, vertex]
        # placed: above all others, though the rest still subtract up to n (n + 1)
        open_before[vertex] = 4 * n * n
    return order


def weighted_order(formulation: "Formulation", bits: npt.ArrayLike) -> list[int]:
    """Return an order of all vertices that loses little of the sets that the state chooses.

    A greedy feedback arc order (Eades, Lin and Smyth): next comes a vertex without open parents, or
    the one with the largest difference of outgoing and incoming weight. An arc weighs what the
    child loses without the parent."""
    candidates, n = formulation.candidates, formulation.candidates.n
    chosen = closure_sets(formulation, np.asarray(bits) != 0)
    weights, must = np.zeros((n, n)), np.zeros((n, n), np.bool_)  # [child, parent]
    must[formulation.relative.required.children, formulation.relative.required.vertices] = True
    for child, members in enumerate(candidates.families.sets_at(chosen)):
        allowed = np.zeros(n, np.bool_)
        allowed[list(members)] = True
        for parent in members:
            if not must[child, parent]:
                allowed[parent] = False
                without = candidates.families.first_inside(child, allowed)
                weights[child, parent] = (
                    candidates.scores[chosen[child]] - candidates.scores[without]
                )
                allowed[parent] = True
    huge = 1.0 + 2.0 * float(weights.sum())
    incoming, outgoing, waiting = weights.sum(axis=1), weights.sum(axis=0), must.sum(axis=1)
    arcs_in = (weights > 0).sum(axis=1)
    order: list[int] = []
    for _ in range(n):
        rank = np.where(arcs_in > 0, outgoing - incoming, huge) - 2.0 * huge * waiting
        rank[order] = -np.inf
        order.append(vertex := int(np.argmax(rank)))
        incoming -= weights[:, vertex]
        outgoing -= weights[vertex]
        arcs_in -= weights[:, vertex] > 0
        waiting -= must[:, vertex]
    return order


def repaired_sets(formulation: "Formulation", bits: npt.ArrayLike) -> Ints:
    """Return the better of the best networks of `implied_order` and `weighted_order`, as numbers of candidate sets."""
    orders = (implied_order(formulation, bits), weighted_order(formulation, bits))
    choices = [best_sets(formulation, order) for order in orders]
    return max(choices, key=lambda choice: float(formulation.candidates.scores[choice].sum()))


def best_sets(formulation: "Formulation", order: list[int]) -> Ints:
    """Return the number of the best candidate set of each vertex whose members all come before it."""
    chosen = formulation.candidates.families.best_of_order(order)
    if (chosen < 0).any():
        name = formulation.candidates.names[int(np.argmin(chosen))]
        raise QubayesError(
            f"the order puts {name} before a required parent of it; give an order that does not"
        )
    return chosen


def encode_sets(
    formulation: "Formulation", chosen: npt.ArrayLike, order: list[int] | None = None
) -> Bools:
    """Return the state of the DAG that gives each vertex the candidate set of this number; its energy is -score.

    `order` (all vertices, parents first) decides the r bits; by default a topological order of the
    DAG."""
    numbers, pairs = np.asarray(chosen, dtype=np.int64), formulation.order.pairs
    order = order or list(topological_order(formulation.candidates.families.sets_at(numbers)))
    if len(order) < formulation.candidates.n:
        raise QubayesError("the parent sets form a directed cycle; give those of a DAG")
    state, position, first_r = (
        active_state(formulation, numbers),
        np.argsort(order),
        formulation.subsets.total,
    )
    state[first_r : first_r + len(pairs)] = position[pairs[:, 0]] < position[pairs[:, 1]]
    return state


def active_state(formulation: "Formulation", chosen: Ints) -> Bools:
    """Return a state whose u and z bits represent the candidate sets of these numbers; its r bits are 0."""
    state, z = np.zeros(formulation.qubo.bits, np.bool_), formulation.z_bits
    subsets = formulation.representations[chosen]
    state[subsets[subsets >= 0]] = True
    state[z[(z >= 0) & (subsets[:, 0] != subsets[:, 1])]] = True
    return state


def encode(formulation: "Formulation", parents: tuple[VertexSet, ...]) -> Bools:
    """Return the state of a DAG given by the parents of each vertex, all candidate sets; its energy is -score.

    Members of candidate sets that only express an order of variables do not count as parents.
    """
    candidates, wanted = formulation.candidates, [tuple(sorted(its)) for its in parents]
    chosen = candidates.families.vertex_start[1:] - 1
    for vertex, its in enumerate(wanted):
        members = (
            its if candidates.plain is None else tuple(sorted({*its, *candidates.base(vertex)}))
        )
        with suppress(ValueError):  # not found: refused below
            place = list(candidates.families.sets_of(vertex)).index(members)
            chosen[vertex] = candidates.families.vertex_start[vertex] + place
    for vertex, its in enumerate(candidates.parents_at(chosen)):
        if its != wanted[vertex]:
            names = ", ".join(candidates.names[parent] for parent in wanted[vertex]) or "no parents"
            raise QubayesError(
                f"{candidates.names[vertex]} with {names} is not a candidate set; encode candidate sets"
            )
    return encode_sets(formulation, chosen)
