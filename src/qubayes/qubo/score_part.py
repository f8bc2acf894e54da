"""The score part of H, one vertex at a time: what each subset and each union of two gains over the base."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..candidates import Candidates
from ..foundation.arrays import Floats, Ints, SmallInts, frozen
from ..foundation.errors import QubayesError
from ..foundation.families import VertexSet
from ..foundation.workers import Workers, run
from .closure import Sets, pair_gains, parent_losses, representations, single_gains
from .crowding import Chosen, Crowding, choose_pairs, crowding
from .order import Order
from .parents import Relative, key_widths, relate
from .penalties import Losses
from .subsets import Subsets

UnionScores = Callable[[int, Sequence[VertexSet]], Sequence[float]]
"""Log scores of a vertex with each of these parent sets, where the true scores of unions are wanted."""


MOST_SETS = 2**31 - 1


class Problem(NamedTuple):
    """What the work on one vertex starts from."""

    candidates: Candidates
    subsets: Subsets | None  # None: O'Gorman's formulation has none
    relative: Relative
    gains: Floats  # (sets,) score of each candidate set less that of its base
    widths: Ints  # (n,) bits of a member in packed keys
    union_scores: UnionScores | None = None

    @staticmethod
    def of(
        candidates: Candidates, subsets: Subsets | None = None, union_scores: UnionScores | None = None
    ) -> "Problem":
        """Everything relative to the bases."""
        check_sets(len(candidates.scores))
        relative = relate(candidates, subsets)
        gains = candidates.scores - np.repeat(candidates.base_scores, candidates.families.sizes)
        return Problem(candidates, subsets, relative, frozen(gains), key_widths(relative), union_scores)

    def sets_of(self, vertex: int) -> tuple[Sets, Sets]:
        """The candidate sets and the subsets of a vertex."""
        width = int(self.widths[vertex])
        return Sets.of(self.relative.candidates, vertex, width), Sets.of(self.relative.subsets, vertex, width)

    def gains_of(self, vertex: int) -> Floats:
        """The gains of the candidate sets of a vertex."""
        start = self.relative.candidates.vertex_start
        return self.gains[start[vertex] : start[vertex + 1]]

    @property
    def largest_set(self) -> int:
        """The most parents a vertex may have; where that is unknown, the size of the largest candidate set."""
        sizes = np.diff(self.candidates.families.set_start)
        return self.candidates.stamp.max_parents or int(sizes.max(initial=0))


def check_sets(sets: int) -> None:
    """Raise if so many candidate sets cannot be numbered by the 32-bit integers that stand for them."""
    if sets > MOST_SETS:
        raise QubayesError(f"{sets} candidate sets; at most {MOST_SETS} can be formulated: allow fewer parents")


class ScorePart(NamedTuple):
    """The score part of one vertex."""

    singles: Floats  # (mu,) gain of each subset
    pairs: Floats  # (mu (mu - 1) / 2,) gain of each union
    crowd: Crowding
    ways: SmallInts  # (candidates of the vertex, 3) set, subset, subset


def score_parts(problem: Problem, workers: Workers) -> list[ScorePart]:
    """The score part of every vertex, on all cores."""
    n = problem.candidates.n
    parts: dict[int, ScorePart] = dict(run(_score_part, problem, range(n), workers))
    return [parts[vertex] for vertex in range(n)]


def count_slack(problem: Problem, workers: Workers) -> int:
    """How many vertices need a z bit with tight penalties; the rest of a score part is let go at once."""
    return sum(slack for _, slack in run(_has_slack, problem, range(problem.candidates.n), workers))


def _has_slack(problem: Problem, vertex: int) -> bool:
    chosen = _ways(problem, vertex)[1]
    return chosen.has_triangle and crowding(*subset_gains(problem, vertex), chosen).slack


def _ways(problem: Problem, vertex: int) -> tuple[SmallInts, Chosen]:
    """The ways to write the candidate sets of the vertex, and one of them for each."""
    candidates, subsets = problem.sets_of(vertex)
    ways = representations(candidates, subsets)
    if len(ways) and ways[:, 1].min() < 0:
        name = problem.candidates.names[vertex]
        raise QubayesError(f"a candidate set of {name} is no union of two of its subsets; cover the candidates again")
    return ways, choose_pairs(ways, len(subsets.start) - 1)


def subset_gains(problem: Problem, vertex: int) -> tuple[Floats, Floats]:
    """The gains of the subsets of the vertex and of the unions of two."""
    if problem.union_scores is not None:
        return _true_gains(problem, vertex)
    (candidates, subsets), gains = problem.sets_of(vertex), problem.gains_of(vertex)
    singles = single_gains(candidates, gains, subsets)
    return singles, pair_gains(candidates, gains, subsets, singles)


def _score_part(problem: Problem, vertex: int) -> ScorePart:
    ways, chosen = _ways(problem, vertex)
    singles, pairs = subset_gains(problem, vertex)
    set_number, subset_number = (families.vertex_start[vertex] for families in problem.relative[1:3])
    numbers = np.array([set_number, subset_number, subset_number], np.int32)
    return ScorePart(singles, pairs, crowding(singles, pairs, chosen), ways[chosen.rows] + numbers)


def _true_gains(problem: Problem, vertex: int) -> tuple[Floats, Floats]:
    """Gains of subsets and unions by the scores given; none beyond the largest allowed size (paper, Section 2.1)."""
    assert problem.subsets is not None
    sets = list(problem.subsets.families.sets_of(vertex))
    unions = [*sets, *(tuple(sorted({*first, *second})) for first, second in combinations(sets, 2))]
    gains = np.array([union_gain(problem, vertex, union) for union in unions])
    return gains[: len(sets)], gains[len(sets) :]


def union_gain(problem: Problem, vertex: int, union: VertexSet) -> float:
    """log S(base | union) - log S(base) as given; 0 where the set is too large."""
    assert problem.union_scores is not None
    base = problem.candidates.base(vertex)
    parents = tuple(sorted({*base, *union}))
    if len(parents) > problem.largest_set:
        return 0.0
    return float(problem.union_scores(vertex, [parents])[0] - problem.candidates.base_scores[vertex])


def losses(problem: Problem, order: Order) -> Losses:
    """What each vertex can lose at most with each possible parent, and with all that share an r bit with it."""
    parents = problem.relative.parents
    ordered = order.pair_of(parents.vertices, parents.children) >= 0
    edges, vertices = np.zeros(len(ordered)), np.zeros(problem.candidates.n)
    for vertex in range(problem.candidates.n):
        mine = slice(parents.start[vertex], parents.start[vertex + 1])
        edges[mine], vertices[vertex] = parent_losses(
            problem.sets_of(vertex)[0], problem.gains_of(vertex), ordered[mine]
        )
    return Losses(edges, vertices)
