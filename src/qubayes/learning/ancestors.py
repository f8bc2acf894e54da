"""Search for the best network with required ancestors: edges are required until it has them."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from ..candidates import Candidates, identify
from ..data import Dataset
from ..foundation.arrays import Bools
from ..foundation.errors import ConstraintError, NoResultError, QubayesError
from ..foundation.graph import reachable
from ..foundation.progress import OnProgress, Progress
from ..foundation.stop import Interrupt, Reason, Stop
from ..foundation.workers import Workers
from ..search import Limits, Solution, solve
from ..settings import LearnSettings

Edge = tuple[str, str]  # parent, child


class Extended(NamedTuple):
    """Required edges, the candidate sets with them, and the best network of these sets."""

    required: tuple[Edge, ...]
    candidates: Candidates
    solution: Solution


class AncestorSearch:
    """Best first over sets of required edges.

    If the best network for such a set lacks a path from a to b, let S be b and its ancestors, or
    all but a and its descendants: in every network with the path some edge leads from outside into
    S, so each such edge is required in turn, for the S with fewer edges. The first network in order
    of bounds that has all paths is the best; its bound holds for all others."""

    def __init__(
        self,
        dataset: Dataset,
        settings: LearnSettings,
        limits_left: Callable[[], Limits],
        stop: Stop,
        interrupt: Interrupt,
        *,
        workers: Workers,
        on_progress: OnProgress,
    ) -> None:
        self.dataset = dataset
        self.settings = settings
        self.limits_left = limits_left
        self.stop = stop
        self.interrupt = interrupt  # one of the criteria of `stop`
        self.workers = workers
        self.on_progress = on_progress
        index = dataset.names.index
        self.pairs = [(index(a), index(b)) for a, b in settings.ancestors]
        self._waiting: list[tuple[float, int, Extended]] = []  # -bound, number of the entry
        self._seen: set[frozenset[Edge]] = set()
        self._complete: list[Extended] = []  # those whose network has all paths

    def run(self, candidates: Candidates, solution: Solution) -> tuple[Candidates, Solution]:
        """Return the best network with all paths, and its candidate sets.

        The arguments are those without a required path. At the time limit or an interrupt, the best
        network with all paths so far is returned, with the largest bound that is left."""
        known = tuple(self.settings.search.knowledge.required)
        self._seen.add(frozenset(known))
        self._waiting = [(-solution.bound, 0, Extended(known, candidates, solution))]
        while self._waiting:
            negative, _, best = heappop(self._waiting)
            reached = paths(best.solution)
            missing = self._missing(reached)
            if not missing:
                return best.candidates, best.solution
            for edge in self._edges_for(missing[0], reached):
                if self.stop():
                    return self._best_so_far(-negative)
                self._require((*best.required, edge))
            done = f"{len(self._seen):,} sets of required edges"
            self.on_progress(Progress("ancestors", 0.0, 1.0, done))
        raise ConstraintError(
            f"no network of at most {self.settings.search.max_parents} parents has the ancestors "
            f"{list(self.settings.ancestors)} and obeys the other knowledge; "
            "allow more parents or edges"
        )

    def _missing(self, reached: Bools) -> list[tuple[int, int]]:
        """Return the pairs without a path."""
        return [(a, b) for a, b in self.pairs if not reached[a, b]]

    def _edges_for(self, pair: tuple[int, int], reached: Bools) -> Iterator[Edge]:
        """Yield edges of which every network with a path between the pair has one."""
        first, last = pair
        inside = min(reached[:, last], ~reached[first], key=_edges_into)
        names = self.dataset.names
        for parent in np.flatnonzero(~inside).tolist():
            for child in np.flatnonzero(inside).tolist():
                yield names[parent], names[child]

    def _require(self, edges: tuple[Edge, ...]) -> None:
        """Search the best network with these edges, unless they were tried; let it wait."""
        if frozenset(edges) in self._seen:
            return
        self._seen.add(frozenset(edges))
        search = self.settings.search
        knowledge = replace(search.knowledge, required=edges)
        with suppress(ConstraintError):  # such an edge is forbidden, or closes a cycle
            candidates = identify(
                self.dataset, replace(search, knowledge=knowledge), workers=self.workers
            )
            solution = solve(
                candidates,
                self.settings.solver_name,
                limits=self.limits_left(),
                workers=self.workers.here,
                interrupt=self.interrupt,
            )
            found = Extended(edges, candidates, solution)
            heappush(self._waiting, (-solution.bound, len(self._seen), found))
            if not self._missing(paths(solution)):
                self._complete.append(found)

    def _best_so_far(self, bound: float) -> tuple[Candidates, Solution]:
        """Return the best network with all paths that was found before the search ended."""
        interrupted = self.stop.reason is Reason.INTERRUPTED
        if not self._complete:
            raise _nothing_found(interrupted)
        best = max(self._complete, key=lambda found: found.solution.score)
        ended = "interrupted" if interrupted else "time limit reached"
        solution = replace(
            best.solution,
            bound=max(bound, best.solution.bound),
            status=f"{ended}; best network with all required ancestors so far returned",
            reason=Reason.INTERRUPTED if interrupted else Reason.TIME,
        )
        return best.candidates, solution


def paths(solution: Solution) -> Bools:
    """Return (n, n) whether the network has a path from a to b; a reaches itself."""
    n = len(solution.parents)
    edges = np.zeros((n, n), np.bool_)
    for child, parents in enumerate(solution.parents):
        edges[list(parents), child] = True
    return reachable(edges)


def _edges_into(inside: Bools) -> int:
    """Return the number of pairs of a variable outside and one inside."""
    count = int(inside.sum())
    return count * (len(inside) - count)


def _nothing_found(interrupted: bool) -> QubayesError:
    if interrupted:
        return NoResultError("interrupted before a network with all required ancestors was found")
    return QubayesError(
        "time limit reached before a network with all required ancestors was found; allow more time"
    )
