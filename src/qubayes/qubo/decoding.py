"""From bits to networks and back (paper: D(u)); what is wrong with a state is named, and mended on request."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..foundation.arrays import Bools, Ints
from ..foundation.errors import QubayesError
from ..foundation.families import Families, VertexSet
from ..foundation.graph import find_cycle, topological_order
from ..foundation.jit import kernel
from ..machines.qubo import energy
from .score_part import union_gain

if TYPE_CHECKING:
    from .formulation import Formulation

TOLERANCE = 1e-9  # of energy + score of a feasible state, relative to the largest sum that enters it


class Violation(NamedTuple):
    """A constraint that a state breaks: `subsets`, `slack`, `edge`, `required` or `triangle`, and whom it concerns."""

    constraint: str
    vertices: tuple[str, ...]  # the vertex; parent and child; the three in the order of the cycle

    def __str__(self) -> str:
        return SENTENCES[self.constraint].format(*self.vertices)


SENTENCES = {
    "subsets": "{0} has active subsets that no candidate set combines",
    "slack": "z[{0}] does not say whether two subsets of {0} are active",
    "edge": "{0} is a parent of {1} but comes after it",
    "required": "{0} is a required parent of {1} but comes after it",
    "triangle": "{0} comes before {1}, {1} before {2} and {2} before {0}",
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """A state read as a network: a DAG with energy = -score if nothing is violated or it was repaired."""

    parents: tuple[VertexSet, ...]
    violations: tuple[Violation, ...]  # of the state as it was given
    energy: float  # of the state as it was given, or as repaired
    score: float  # of `parents`
    repaired: bool
    bits: Bools  # (bits,) the state that `energy` belongs to

    @property
    def feasible(self) -> bool:
        """Whether the state as it was given satisfies every constraint."""
        return not self.violations


def decode(formulation: "Formulation", bits: npt.ArrayLike, *, repair: bool = False) -> Decoded:
    """The network that a state stands for, and every constraint that it breaks.

    With `repair` a state that breaks one is replaced by the best network of the order that its r bits imply.

    >>> from qubayes.candidates.example import example
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
    state = np.asarray(bits) != 0
    if state.shape != (formulation.qubo.bits,):
        raise QubayesError(f"a state of shape {state.shape}; this formulation has {formulation.qubo.bits} bits")
    violations = tuple(_violations(formulation, state))
    if violations and repair:
        chosen = best_sets(formulation, implied_order(formulation, state))
        mended = decode(formulation, encode_sets(formulation, chosen))
        return replace(mended, violations=violations, repaired=True)
    parents, score = _network(formulation, state)
    total = float(energy(formulation.qubo, state))
    if not violations:
        _assert_exact(formulation, parents, total, score)
    return Decoded(parents, violations, total, score, False, state)


def _assert_exact(formulation: "Formulation", parents: tuple[VertexSet, ...], total: float, score: float) -> None:
    scale = abs(formulation.qubo.offset) + float(np.abs(formulation.qubo.h).max(initial=1.0))
    if not abs(total + score) <= TOLERANCE * scale:
        raise AssertionError(f"a feasible state has energy {total!r} but score {score!r}")
    if find_cycle(parents):
        raise AssertionError("a feasible state has a directed cycle")


def _network(formulation: "Formulation", state: Bools) -> tuple[tuple[VertexSet, ...], float]:
    """The parents of every vertex and their score: the best candidate set inside the union of the active subsets."""
    problem, n = formulation.problem, formulation.candidates.n
    if problem.union_scores is not None:
        return _true_network(formulation, state)
    families = formulation.subsets.families
    inside = np.zeros((n, n), np.bool_)
    for vertex, subset in _active(formulation, state):
        inside[vertex, families.members[families.set_start[subset] : families.set_start[subset + 1]]] = True
    inside[problem.relative.required.children, problem.relative.required.vertices] = True
    chosen = _first_inside(formulation.candidates.families, inside)
    return formulation.candidates.families.sets_at(chosen), float(formulation.candidates.scores[chosen].sum())


def _true_network(formulation: "Formulation", state: Bools) -> tuple[tuple[VertexSet, ...], float]:
    """The same where unions have scores of their own: the union itself, or the base where the union is too large."""
    problem, families = formulation.problem, formulation.subsets.families
    members: list[set[int]] = [set() for _ in range(formulation.candidates.n)]
    for vertex, subset in _active(formulation, state):
        members[vertex].update(families.members[families.set_start[subset] : families.set_start[subset + 1]].tolist())
    parents, score = [], float(formulation.candidates.base_scores.sum())
    for vertex, union in enumerate(members):
        base = formulation.candidates.base(vertex)
        whole = tuple(sorted({*union, *base}))
        parents.append(whole if len(whole) <= problem.largest_set else base)
        score += union_gain(problem, vertex, tuple(union)) if union else 0.0
    return tuple(parents), score


def _active(formulation: "Formulation", state: Bools) -> list[tuple[int, int]]:
    """(vertex, subset) of the active u bits."""
    families = formulation.subsets.families
    active = np.flatnonzero(state[: formulation.subsets.total])
    return list(
        zip((np.searchsorted(families.vertex_start, active, "right") - 1).tolist(), active.tolist(), strict=True)
    )


def _first_inside(families: Families, inside: Bools) -> Ints:
    """The first (best) set of each vertex all of whose members are inside its row; -1 if none is."""
    chosen = np.full(len(inside), -1, np.int64)
    _choose_inside(families, inside, chosen)
    return chosen


@kernel
def _choose_inside(families: Families, inside: Bools, chosen: Ints) -> None:
    for vertex in range(len(inside)):
        for number in range(families.vertex_start[vertex], families.vertex_start[vertex + 1]):
            fits = True
            for i in range(families.set_start[number], families.set_start[number + 1]):
                fits = fits and inside[vertex, families.members[i]]
            if fits:
                chosen[vertex] = number
                break


def _violations(formulation: "Formulation", state: Bools) -> list[Violation]:
    names = formulation.candidates.names
    found: list[Violation] = []
    counts = _active_counts(formulation, state)
    for vertex in np.flatnonzero(_crowded(formulation, state, counts)).tolist():
        found.append(Violation("subsets", (names[vertex],)))
    found += [Violation("slack", (names[vertex],)) for vertex in _slack_wrong(formulation, state, counts)]
    found += _order_violations(formulation, state)
    return found


def _active_counts(formulation: "Formulation", state: Bools) -> Ints:
    sums = np.concatenate([[0], np.cumsum(state[: formulation.subsets.total])])
    return np.diff(sums[formulation.subsets.families.vertex_start])


def _slack_wrong(formulation: "Formulation", state: Bools, counts: Ints) -> list[int]:
    """Vertices whose z bit costs energy though at most two subsets are active; with one active it is free."""
    vertices = formulation.slack_vertices[formulation.penalties.crowds[formulation.slack_vertices] > 0]
    z, active = state[formulation.z_bits[vertices]], counts[vertices]
    wrong: list[int] = vertices[((active == 0) & z) | ((active == 2) & ~z)].tolist()
    return wrong


def _crowded(formulation: "Formulation", state: Bools, counts: Ints) -> Bools:
    """Vertices with three active subsets or more, or (without z, with a penalty on pairs) two that nothing combines."""
    crowded = counts > 2
    penalties, families = formulation.penalties, formulation.candidates.families
    for vertex in np.flatnonzero((counts == 2) & ~penalties.has_slack & (penalties.crowds > 0)).tolist():
        first, last = formulation.subsets.families.vertex_start[vertex : vertex + 2]
        pair = first + np.flatnonzero(state[first:last])
        ways = formulation.ways[families.vertex_start[vertex] : families.vertex_start[vertex + 1]]
        crowded[vertex] = not (ways == pair).all(axis=1).any()
    return crowded


def _order_violations(formulation: "Formulation", state: Bools) -> list[Violation]:
    names, relative, order = formulation.candidates.names, formulation.problem.relative, formulation.order
    r = state[formulation.subsets.total :][: len(order.pairs)]
    found: list[Violation] = []
    against = ~_agrees(formulation, r, relative.parents.vertices, relative.parents.children)
    chosen = np.unique(_chosen_edges(formulation, state))
    pairs = [("edge", relative.parents, chosen[against[chosen]])]
    required = relative.required
    pairs.append(("required", required, np.flatnonzero(~_agrees(formulation, r, required.vertices, required.children))))
    for constraint, parents, edges in pairs:
        ends = zip(parents.vertices[edges].tolist(), parents.children[edges].tolist(), strict=True)
        found += [Violation(constraint, (names[parent], names[child])) for parent, child in ends]
    ab, bc, ac = (r == order.ascending)[order.triangles].T
    cyclic = (ab == bc) & (ab != ac)
    for (a, b, c), forward in zip(order.corners()[cyclic].tolist(), ab[cyclic].tolist(), strict=True):
        cycle = (a, b, c) if forward else (c, b, a)
        found.append(Violation("triangle", tuple(names[vertex] for vertex in cycle)))
    return found


def _chosen_edges(formulation: "Formulation", state: Bools) -> Ints:
    """The possible parents that lie in active subsets, by their place in the list of all."""
    relative = formulation.problem.relative
    families = relative.subsets
    active = np.repeat(state[: formulation.subsets.total], np.diff(families.set_start))
    owners = np.repeat(np.arange(families.n), np.diff(families.set_start[families.vertex_start]))
    edges: Ints = (relative.parents.start[owners] + families.members - 1)[active]
    return edges


def _agrees(formulation: "Formulation", r: Bools, parents: Any, children: Any) -> Bools:
    """Whether each edge parent -> child has no r bit, or one that puts the parent first."""
    pair = formulation.order.pair_of(parents, children)
    first = np.append(formulation.order.pairs[:, 0], -1)[pair]
    agrees: Bools = (pair < 0) | (np.append(r, False)[pair] == (first == parents))
    return agrees


def implied_order(formulation: "Formulation", bits: npt.ArrayLike) -> list[int]:
    """An order of all vertices in which each edge that the r bits allow goes forward, if they allow no cycle.

    Where they do, the vertex with the fewest open predecessors, all its required ones placed, comes next.
    """
    state, relative = np.asarray(bits) != 0, formulation.problem.relative
    n, r = formulation.candidates.n, state[formulation.subsets.total :][: len(formulation.order.pairs)]
    before, must = np.zeros((n, n), np.bool_), np.zeros((n, n), np.bool_)
    parents, children = relative.parents.vertices, relative.parents.children
    allowed = _agrees(formulation, r, parents, children)
    before[children[allowed], parents[allowed]] = True
    must[relative.required.children, relative.required.vertices] = True
    order: list[int] = []
    open_before = before.sum(axis=1) + n * must.sum(axis=1)
    for _ in range(n):
        order.append(vertex := int(np.argmin(open_before)))
        open_before -= before[:, vertex] + n * must[:, vertex]
        open_before[vertex] = 4 * n * n  # placed: above all others, though the rest still take off up to n (n + 1)
    return order


def best_sets(formulation: "Formulation", order: list[int]) -> Ints:
    """The number of the best candidate set of each vertex among those whose members all come before it."""
    n = formulation.candidates.n
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    chosen: Ints = _first_inside(formulation.candidates.families, position[None, :] < position[:, None])
    if (chosen < 0).any():
        name = formulation.candidates.names[int(np.argmin(chosen))]
        raise QubayesError(f"the order puts {name} before a required parent of it; give an order that does not")
    return chosen


def encode_sets(formulation: "Formulation", chosen: npt.ArrayLike, order: list[int] | None = None) -> Bools:
    """The state of the network that gives each vertex the candidate set of this number; its energy is -score.

    `order` (all vertices, parents first) decides the r bits; a topological order of the network if it is left out.
    """
    numbers = np.asarray(chosen, dtype=np.int64)
    order = order or list(topological_order(formulation.candidates.families.sets_at(numbers)))
    if len(order) < formulation.candidates.n:
        raise QubayesError("the parent sets form a directed cycle; give those of a DAG")
    state = np.zeros(formulation.qubo.bits, np.bool_)
    ways = formulation.ways[numbers]
    state[ways[ways >= 0]] = True
    z = formulation.z_bits
    state[z[(z >= 0) & (ways[:, 0] != ways[:, 1])]] = True
    position = np.empty(formulation.candidates.n, np.int64)
    position[order] = np.arange(len(order))
    first_r, pairs = formulation.subsets.total, formulation.order.pairs
    state[first_r : first_r + len(pairs)] = position[pairs[:, 0]] < position[pairs[:, 1]]
    return state


def encode(formulation: "Formulation", parents: tuple[VertexSet, ...]) -> Bools:
    """The state of a DAG given by the parents of each vertex, all of them candidate sets; its energy is -score."""
    candidates = formulation.candidates
    chosen = np.empty(candidates.n, np.int64)
    for vertex, wanted in enumerate(parents):
        first = int(candidates.families.vertex_start[vertex])
        numbers = (
            first + t for t, known in enumerate(candidates.families.sets_of(vertex)) if known == tuple(sorted(wanted))
        )
        chosen[vertex] = next(numbers, -1)
        if chosen[vertex] < 0:
            names = ", ".join(candidates.names[parent] for parent in wanted) or "no parents"
            raise QubayesError(f"{candidates.names[vertex]} with {names} is no candidate set; encode candidate sets")
    return encode_sets(formulation, chosen)
