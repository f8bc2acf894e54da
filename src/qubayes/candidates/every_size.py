"""`with_every_size`: candidate sets of any size, for as many variables as bounds and time allow."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from ..data.dataset import Dataset
from ..foundation.errors import SettingError, option
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.workers import Workers, run
from ..scores.gaussian import moments_for
from ..scores.score import Score
from . import every_size_counts, every_size_moments
from .candidates import Candidates, in_order
from .child_search import ChildSearch, KnownSets
from .knowledge import Allowed, Knowledge
from .prune import with_order
from .scanning import Block

if TYPE_CHECKING:
    from .identify import CandidateSearch

# Rows times sets of variables that are searched at once before larger ones: a second or two.
_SMALL_WORK = 4 * 10**9
_SMALL_SIZES = 3, 4  # numbers of parents of these
_FIRST_SETS = 20_000  # of a child in the first round, and as many more in the next ones
_MOST_SETS = 500_000  # of a child in a round: about 0.3 s


def has_bounds(dataset: Dataset, score: Score) -> bool:
    """Return whether there are bounds on the scores of all larger sets."""
    if not dataset.is_plain or score.function is not None or dataset.kind == "mixed":
        return False
    if dataset.kind == "continuous":
        return score.name != "loglik" and dataset.rows > dataset.n
    return every_size_counts.has_bounds(score.formula(dataset.rows))


def check_bounds(dataset: Dataset, score: Score) -> None:
    """Raise if sets of every size cannot be searched."""
    if has_bounds(dataset, score):
        return
    if dataset.kind == "continuous" and dataset.rows <= dataset.n:
        why = f"needs more rows than variables ({dataset.rows} rows, {dataset.n} variables)"
    elif not dataset.is_plain:
        why = "is for tables without missing cells and experiments"
    else:
        why = f"has no bounds for the score '{score.name}'"
    raise SettingError(f"{option('max_parents', 'all')} {why}; give a number of parents")


def small_size(dataset: Dataset, search: "CandidateSearch") -> int:
    """Return the number of parents up to which all sets are searched first."""
    n = dataset.n
    most, larger = _SMALL_SIZES
    if dataset.kind == "discrete" and comb(n, larger + 1) * dataset.rows <= _SMALL_WORK:
        most = larger
    limits = search.knowledge.resolve(dataset.names, max(n - 1, 0))
    required = max(map(len, limits.required), default=0)
    return max(0, min(max(most, required), n - 1))


def with_every_size(
    candidates: Candidates,
    dataset: Dataset,
    search: "CandidateSearch",
    *,
    workers: Workers | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_progress: OnProgress = silent,
) -> Candidates:
    """Return the candidate sets, which have at most m parents, with all larger ones.

    `stop` is asked again and again; once it returns True, the variables whose search has not ended
    keep their sets of at most m parents. The stamp says how many variables have sets of every
    size."""
    searches = list(_searches(candidates, dataset, search))
    finished = 0
    here = (workers or Workers()).here
    budget = _FIRST_SETS
    waiting = searches
    while waiting and not stop():
        with closing(run(_advance, budget, waiting, here)) as parts:
            for _ in parts:
                if stop():
                    break
        waiting = [each for each in waiting if not each.done]
        budget = min(2 * budget, _MOST_SETS)
        finished = len(searches) - len(waiting)
        note = f"sets of every size: {finished:,} of {len(searches):,} variables"
        on_progress(Progress("candidates", finished, len(searches), note))
    return _joined(candidates, dataset, search, [each for each in searches if each.done])


def _advance(budget: int, search: ChildSearch) -> None:
    search.advance(budget)


def _searches(
    candidates: Candidates, dataset: Dataset, search: "CandidateSearch"
) -> Iterator[ChildSearch]:
    """Yield the search of each variable."""
    own = candidates.plain or candidates
    allowed = search.knowledge.resolve(dataset.names, dataset.n - 1)
    search_of = _search_of(dataset, search.score.on(dataset), allowed)
    most = candidates.stamp.max_parents or 0
    starts = own.families.vertex_start
    for vertex in range(dataset.n):
        known = KnownSets(
            dataset.n,
            vertex,
            most,
            allowed.required[vertex],
            tuple(own.families.sets_of(vertex)),
            own.scores[starts[vertex] : starts[vertex + 1]],
        )
        yield search_of(known)


def _search_of(
    dataset: Dataset, score: Score, allowed: Allowed
) -> Callable[[KnownSets], ChildSearch]:
    """Return what begins the search of a variable."""
    if dataset.kind == "continuous":
        moments = moments_for(dataset, score)
        return lambda known: every_size_moments.search_of(moments, dataset.rows, allowed, known)
    columns = every_size_counts.prepare_columns(dataset.repeated())
    return lambda known: every_size_counts.search_of(columns, score, allowed, known)


def _restricts(knowledge: Knowledge) -> bool:
    """Return whether prior knowledge excludes parent sets."""
    lists = (knowledge.forbidden, knowledge.required, knowledge.tiers, knowledge.max_parents)
    return any(len(its) for its in (*lists, knowledge.before, knowledge.not_ancestors))


def _joined(
    candidates: Candidates,
    dataset: Dataset,
    search: "CandidateSearch",
    finished: Sequence[ChildSearch],
) -> Candidates:
    """Return the candidate sets with those of the finished searches."""
    own = candidates.plain or candidates
    n = dataset.n
    blocks: list[Block] = [block for each in finished for block in each.blocks()]
    families = own.families
    found = in_order(
        own.names,
        np.concatenate([families.owners, *(block.children for block in blocks)]),
        np.concatenate(
            [families.set_sizes]
            + [np.full(len(block.scores), block.parents.shape[1]) for block in blocks]
        ),
        np.concatenate([families.members, *(block.parents.reshape(-1) for block in blocks)]),
        np.concatenate([own.scores, *(block.scores for block in blocks)]),
        replace(
            own.stamp,
            max_parents=n - 1 if len(finished) == n else own.stamp.max_parents,
            every_size=len(finished),
            restricted=_restricts(search.knowledge) or None,
        ),
    )
    return with_order(found, search.knowledge.resolve(dataset.names, n - 1).before)
