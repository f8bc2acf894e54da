"""Encoding of networks as samples of the QUBO whose energy is minus the score."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..foundation.arrays import Bools, Ints
from ..foundation.errors import QubayesError
from ..foundation.families import VertexSet
from ..foundation.graph import topological_order

if TYPE_CHECKING:
    from .formulation import Formulation


def encode(formulation: "Formulation", parents: tuple[VertexSet, ...]) -> Bools:
    """Return the sample of a DAG given by the parents of each vertex, all candidate sets.

    Its energy is -score. Members of candidate sets that only express an order of variables do not
    count as parents.
    """
    candidates = formulation.candidates
    chosen = candidates.families.vertex_start[1:] - 1
    for vertex, given in enumerate(parents):
        members = set(given)
        if candidates.plain is not None:
            members |= set(candidates.base(vertex))
        sets = list(candidates.families.sets_of(vertex))
        if tuple(sorted(members)) in sets:
            place = sets.index(tuple(sorted(members)))
            chosen[vertex] = candidates.families.vertex_start[vertex] + place
    for vertex, found in enumerate(candidates.parents_at(chosen)):
        wanted = tuple(sorted(parents[vertex]))
        if found != wanted:
            names = ", ".join(candidates.names[parent] for parent in wanted) or "no parents"
            raise QubayesError(
                f"{candidates.names[vertex]} with {names} is not a candidate set; "
                "encode candidate sets"
            )
    return encode_sets(formulation, chosen)


def encode_sets(
    formulation: "Formulation", chosen: npt.ArrayLike, order: list[int] | None = None
) -> Bools:
    """Return the sample of the DAG that gives each vertex the candidate set of this number.

    Its energy is -score. `order` (all vertices, parents first) decides the order bits; by default a
    topological order of the DAG."""
    numbers = np.asarray(chosen, dtype=np.int64)
    order = order or list(topological_order(formulation.candidates.families.sets_at(numbers)))
    if len(order) < formulation.candidates.n:
        raise QubayesError("the parent sets form a directed cycle; give those of a DAG")
    position = np.argsort(order)
    first, second = formulation.order.pairs.T
    state = active_state(formulation, numbers)
    state[formulation.first_r : formulation.first_z] = position[first] < position[second]
    return state


def active_state(formulation: "Formulation", chosen: Ints) -> Bools:
    """Return a sample whose u and z bits represent the chosen candidate sets; its r bits are 0."""
    state = np.zeros(formulation.qubo.bits, np.bool_)
    z = formulation.z_bits
    subsets = formulation.representations[chosen]
    state[subsets[subsets >= 0]] = True
    state[z[(z >= 0) & (subsets[:, 0] != subsets[:, 1])]] = True
    return state
