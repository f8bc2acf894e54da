"""Scores of unions of subsets, computed from the data: with them `formulate` gives the paper's H to the coefficient."""

import math
from collections.abc import Sequence

from ..candidates import Candidates
from ..data import Dataset
from ..foundation.errors import SettingError
from ..foundation.families import VertexSet
from ..scores import Score, local_score
from .relative_sets import UnionScores

AGREEMENT = 1e-6  # relative: score files of other programs have seven digits


def data_scores(candidates: Candidates, dataset: Dataset, score: Score | None = None) -> UnionScores:
    """Return the local scores on the data, by the score of the candidate sets unless another is given.

    Raise if the best set of a vertex does not have the score that its file says.
    """
    stamp, known = candidates.stamp, set(dataset.names)
    if score is None and stamp.score == "unknown":
        raise SettingError("the candidate sets do not say by which score they were found; give it with --score")
    chosen = score or Score(stamp.score, stamp.ess or 1.0)
    if missing := [name for name in candidates.names if name not in known]:
        raise SettingError(f"the data have no column {missing[0]!r}; give the data that the candidate sets come from")
    place = [dataset.names.index(name) for name in candidates.names]
    found: dict[tuple[int, VertexSet], float] = {}

    def scores(vertex: int, sets: Sequence[VertexSet]) -> list[float]:
        for members in sets:
            if (vertex, members) not in found:
                parents = [place[parent] for parent in members]
                found[vertex, members] = local_score(dataset, place[vertex], parents, chosen)
        return [found[vertex, members] for members in sets]

    for vertex, first in enumerate(candidates.families.vertex_start[:-1].tolist()):
        true, given = scores(vertex, [candidates.families.set_at(first)])[0], float(candidates.scores[first])
        if not math.isclose(true, given, rel_tol=AGREEMENT, abs_tol=AGREEMENT):
            raise SettingError(
                f"the best set of {candidates.names[vertex]} scores {true:.6f} on these data by {chosen.name} and "
                f"{given:.6f} in the candidate sets; give the data, states and score that they come from"
            )
    return scores
