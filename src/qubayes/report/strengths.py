"""How much each edge of a network is worth."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..foundation.errors import QubayesError
from .layers import Edge

if TYPE_CHECKING:  # a picture alone needs no kernels
    from ..candidates import Candidates


def edge_strengths(candidates: "Candidates", parents: Sequence[Sequence[int]]) -> dict[Edge, float]:
    """For each edge (parent, child) the score that is lost when it is dropped: best set inside the parents of the
    child, less the best one without that parent.

    Infinite where no candidate set is left without the parent, that is where the edge is required.
    """
    if len(parents) != candidates.n:
        raise QubayesError(
            f"parents of {len(parents)} vertices but candidates of {candidates.n}; give those of one run"
        )
    return {
        (parent, child): loss
        for child, chosen in enumerate(parents)
        for parent, loss in _losses(candidates, child, chosen).items()
    }


def _losses(candidates: "Candidates", child: int, chosen: Sequence[int]) -> dict[int, float]:
    inside = _sets_inside(candidates, child, chosen)
    best = max((score for _, score in inside), default=-math.inf)
    if best == -math.inf:
        required = ", ".join(candidates.names[v] for v in candidates.base(child))
        raise QubayesError(
            f"no candidate set of {candidates.names[child]!r} lies inside its parents; they must hold all of {required}"
        )
    return {
        parent: best - max((score for members, score in inside if parent not in members), default=-math.inf)
        for parent in chosen
    }


def _sets_inside(candidates: "Candidates", child: int, chosen: Sequence[int]) -> list[tuple[frozenset[int], float]]:
    """(set, score) of the candidate sets of the child that are subsets of the chosen one."""
    vertex_start, set_start, members = candidates.families
    first, last = vertex_start[child : child + 2]
    bounds = set_start[first : last + 1]
    allowed = np.isin(members[bounds[0] : bounds[-1]], np.asarray(chosen, dtype=members.dtype))
    count = np.concatenate([[0], np.cumsum(allowed)])[bounds - bounds[0]]
    hits = first + np.flatnonzero(np.diff(count) == np.diff(bounds))
    return [(frozenset(members[set_start[k] : set_start[k + 1]].tolist()), float(candidates.scores[k])) for k in hits]
