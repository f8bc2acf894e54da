"""One strongly connected component under proof: what is known of it, and rounds of pricing, cutting and rounding."""

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Floats, Ints, frozen
from ...foundation.families import VertexSet
from ..components import Part
from ..orders.insertions import Ordered, improve
from ..orders.order_problem import OrderProblem, order_problem
from ..ready import make_ready
from ..run import Run
from .clusters import Support, support_of, violated_clusters
from .cut_rows import Cuts, Sets, chosen_cuts, joined
from .halves import zero_half_cuts
from .relaxation import Bounded, Point, Relaxation

FIRST_SETS = 10  # of each vertex in the first program
NEW_SETS = 5  # of each vertex in a round
IDLE = 8  # rounds after which a cut that does nothing leaves
FEW = 50  # cuts with k = 1 below which others are looked for
LEAST = 1e-3  # violation of a cut that is worth its place
QUICK = 30_000  # sets up to which a move is cheap; it takes time in proportion to them
EASY = 30  # rounds in which easy proofs end, mostly: orders are not searched until then
EASY_VERTICES = 100  # at most
EASY_TIME = 0.1  # of the time limit, at most
FAR = 1e6  # more than the values of a vertex's sets add up to
POSITIVE = 1e-7  # values above this are taken for more than 0


class Effort(NamedTuple):
    """How long one relaxation is worked on."""

    rounds: int
    patience: int  # rounds in which the bound may stand still: rise by less than 0.5 % of the gap
    moves: int  # of the search over orders, for each vertex, from the order that each solution suggests
    lightly: bool = False  # whether proofs that look easy are tried without that search


ROOT = Effort(1_000_000, 8, 100, lightly=True)
THOROUGH = Effort(1_000_000, 40, 100)  # where no branching follows, and sets are excluded
NODE = Effort(6, 2, 0)


class Relaxed(NamedTuple):
    """What the rounds came to: networks of the allowed sets lose at least `loss`."""

    loss: float
    point: Point | None  # the last solution; None if there is none
    allowed: Bools  # (sets,) without those that reduced costs exclude
    finished: bool  # False: the time was over


class Component:
    """The sets of a part that may still be used, the best network of it so far, and the relaxation."""

    def __init__(self, part: Part, order: Ints, tolerance: float, changed: Callable[[], None]) -> None:
        self.part, self.tolerance, self._changed = part, tolerance, changed
        self.numbers = np.arange(len(part.scores))  # of `sets` in the part
        self.sets = sets_of(part)
        self._losses = self.sets.losses  # of all sets of the part
        best_scores = part.scores[part.families.vertex_start[:-1]]
        self.top, self._scale = math.fsum(best_scores.tolist()), float(np.abs(best_scores).sum())
        self.alive = np.ones(len(self.numbers), np.bool_)  # may be in a network better than the best so far
        self.relaxation = Relaxation(self.sets, self._scale)
        self.relaxation.add_sets(_first_sets(self.sets))
        self._required = [(*part.families.sets_of(vertex),)[-1] for vertex in range(len(part.vertices))]
        self._idle = np.zeros(0, np.int64)  # rounds for which each cut has done nothing
        self.best: Ordered = self.ordered(order)
        self.loss = 0.0  # every network loses at least this
        self.rounds = self.found_cuts = 0
        self._search_begun = False

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.part.vertices)

    def needs_search(self, run: Run, effort: Effort) -> bool:
        """Whether there is more to do than to take the networks that solutions of the relaxation suggest."""
        small = self.n <= EASY_VERTICES and len(self.part.scores) <= QUICK
        soon = self.rounds < EASY and run.elapsed <= EASY_TIME * (run.limits.seconds or math.inf)
        return not (effort.lightly and small and soon) or self._search_begun

    @cached_property
    def problem(self) -> OrderProblem:
        """The sets, prepared for the search over orders."""
        return order_problem(self.part.families, self.part.scores)

    def ordered(self, order: Ints) -> Ordered:
        """The best network of this order."""
        choice = self.part.families.best_of_order(order)
        return Ordered(order, choice, math.fsum(self.part.scores[choice].tolist()))

    @property
    def cutoff(self) -> float:
        """The loss of the best network so far."""
        return self.loss_of(self.best)

    def loss_of(self, found: Ordered) -> float:
        """By how much the network falls short of the best set for each vertex."""
        return math.fsum(self._losses[found.choice].tolist())

    def loss_of_point(self, point: Point) -> float:
        """The same for a solution of the relaxation."""
        return float(point.values @ self.sets.losses[self.relaxation.columns[: len(point.values)]])

    @property
    def bound(self) -> float:
        """No network of the component scores more."""
        return self.top - self.loss

    @property
    def proved(self) -> bool:
        """Whether the best network so far is optimal."""
        return self.closes(self.loss)

    def closes(self, loss: float) -> bool:
        """Whether networks that lose so much need not be looked for."""
        return loss >= self.cutoff - self.tolerance

    def raise_loss(self, loss: float) -> None:
        """Every network loses at least this."""
        if loss > self.loss:
            self.loss = loss
            self._changed()

    def begin_search(self, run: Run) -> None:
        """Look for a better network from the best one on, once; its kernels are compiled outside the time limit."""
        if not self._search_begun:
            self._search_begun = True
            with run.paused():
                make_ready("search")
            self._walk(self.best.order, 2000, run.seed, 10.0)

    def search(self, run: Run, order: Ints, moves: int, seed: int) -> None:
        """Look for a better network from this order on, with so many moves for each vertex, fewer among many sets."""
        self.begin_search(run)
        self._walk(order, moves, seed, 1.0)

    def _walk(self, order: Ints, moves: int, seed: int, hot: float) -> None:
        moves = int(moves * self.n * min(1.0, QUICK / len(self.problem.scores)))
        self._offer(improve(self.problem, order, moves, seed=seed, hot=hot))

    def _offer(self, found: Ordered) -> None:
        if found.score > self.best.score:
            self.best = found
            self._changed()

    def relax(self, run: Run, allowed: Bools, effort: Effort) -> Relaxed:
        """Rounds of pricing and cutting until nothing is found, the bound stands still, or nothing better is left."""
        loss, stalled, point, whole = -math.inf, 0, None, allowed is self.alive
        self.relaxation.allow(allowed)
        for _ in range(effort.rounds):
            point = self.relaxation.solve(run.left, run.stop)
            if point is None or not point.optimal:
                return Relaxed(loss, None, allowed, False)
            bounded = self.relaxation.bounded(point.weights, allowed)
            stalled = stalled + 1 if bounded.loss < loss + 5e-3 * (self.cutoff - loss) else 0
            loss = max(loss, bounded.loss)
            if whole:
                self.raise_loss(loss)
            if effort.moves and not run.over:
                if self.needs_search(run, effort):
                    self.search(run, self.order_of(point), effort.moves, self.rounds)
                else:
                    self._offer(self.ordered(self.order_of(point)))
            allowed &= bounded.with_set <= self.cutoff + self.tolerance
            self.rounds += 1
            if self.closes(loss) or run.over:
                break
            if stalled > effort.patience or not self._extend(point, bounded, allowed):
                if self.needs_search(run, effort):
                    break
                self.begin_search(run)  # and a last look with what it finds
                stalled = 0
        return Relaxed(loss, point, allowed, not run.over)

    def shrink(self) -> None:
        """Forget the sets that are not alive."""
        keep = np.flatnonzero(self.alive)
        columns = self.relaxation.is_in[keep]
        cuts = self.relaxation.cuts
        self.numbers, self.sets = self.numbers[keep], _chosen_sets(self.sets, keep)
        self.alive = np.ones(len(keep), np.bool_)
        self.relaxation = Relaxation(self.sets, self._scale)
        self.relaxation.add_sets(np.flatnonzero(columns))
        self.relaxation.add_cuts(cuts)

    def _extend(self, point: Point, bounded: Bounded, allowed: Bools) -> bool:
        """Whether sets or cuts were added that the solution lacks."""
        fresh = self._cheaper(point, bounded)
        cuts = self._violated(point)
        self._drop_idle(point)
        if len(fresh):
            self.relaxation.add_sets(fresh)
        if cuts.total:
            self.relaxation.add_cuts(cuts)
            self._idle = np.concatenate([self._idle, np.zeros(cuts.total, np.int64)])
            self.found_cuts += cuts.total
        self.relaxation.allow(allowed)
        return bool(len(fresh) or cuts.total)

    def _cheaper(self, point: Point, bounded: Bounded) -> Ints:
        """The sets with the lowest reduced costs, if negative, of each vertex."""
        owners, columns = self.sets.owners, self.relaxation.columns
        paid = np.zeros(self.n)
        used = point.values > POSITIVE
        np.maximum.at(paid, owners[columns[used]], np.minimum(bounded.prices[columns[used]], 1e300))
        reduced = bounded.prices - paid[owners]
        fresh = np.flatnonzero((reduced < -1e-7) & ~self.relaxation.is_in)
        fresh = fresh[np.lexsort((reduced[fresh], owners[fresh]))]
        places = np.arange(len(fresh)) - np.searchsorted(owners[fresh], owners[fresh])
        return np.sort(fresh[places < NEW_SETS])

    def _violated(self, point: Point) -> Cuts:
        """Cuts that the solution violates."""
        numbers, values = self._used(point)
        support = support_of(self.sets, numbers, values)
        cuts, _ = violated_clusters(support, 1, LEAST)
        most = max(30, self.n)
        if cuts.total < FEW:
            pairs, _ = violated_clusters(support, 2, 10 * LEAST)
            cuts = joined(cuts, chosen_cuts(pairs, slice(most)))
        if cuts.total < FEW:
            halves, _ = zero_half_cuts(self.sets, numbers, values, self.relaxation.cuts, 10 * LEAST)
            cuts = joined(cuts, chosen_cuts(halves, slice(most)))
        return chosen_cuts(cuts, slice(most))

    def _used(self, point: Point) -> tuple[Ints, Floats]:
        """The sets with a positive value, ascending, and their values; columns come after `point` was found."""
        used = np.flatnonzero(point.values > POSITIVE)
        used = used[np.argsort(self.relaxation.columns[used])]
        return self.relaxation.columns[used], point.values[used]

    def support(self, point: Point) -> Support:
        """The sets with a positive value."""
        return support_of(self.sets, *self._used(point))

    def _drop_idle(self, point: Point) -> None:
        """Drop the cuts that have had no weight for some rounds."""
        self._idle = np.where(point.weights > 0.0, 0, self._idle + 1)
        idle = self._idle >= IDLE
        if idle.any():
            self.relaxation.drop_cuts(idle)
            self._idle = self._idle[~idle]

    def order_of(self, point: Point) -> Ints:
        """An order read off the solution: next comes the vertex with most of its sets' values among those before."""
        return _greedy_order(self.support(point), self._required)


def _greedy_order(support: Support, required: list[VertexSet]) -> Ints:
    """Next comes the vertex whose sets hold most value among those before, but none before its required parents."""
    missing, ready = np.diff(support.start), np.zeros(len(required))
    np.add.at(ready, support.owners[missing == 0], support.values[missing == 0])
    waiting = {vertex for vertex, parents in enumerate(required) if parents}
    ready[list(waiting)] -= FAR
    order: list[int] = []
    for _ in range(len(required)):
        vertex = int(np.argmax(ready))
        order.append(vertex)
        ready[vertex] = -np.inf
        holding = support.children[support.child_start[vertex] : support.child_start[vertex + 1]]
        missing[holding] -= 1
        whole = holding[missing[holding] == 0]
        np.add.at(ready, support.owners[whole], support.values[whole])
        for other in [other for other in waiting if vertex in required[other] and {*required[other]} <= {*order}]:
            waiting.remove(other)
            ready[other] += FAR
    return np.array(order, np.int64)


def sets_of(part: Part) -> Sets:
    """The part's sets with their losses."""
    families = part.families
    owners = np.repeat(np.arange(families.n, dtype=np.int32), families.sizes)
    losses = part.scores[families.vertex_start[:-1]][owners] - part.scores
    return Sets(families.vertex_start, frozen(owners), families.set_start, families.members, frozen(losses))


def _chosen_sets(sets: Sets, which: Ints) -> Sets:
    sizes = np.diff(sets.start)[which]
    start = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(start[-1]) + np.repeat(sets.start[which] - start[:-1], sizes)
    owners = sets.owners[which]
    vertex_start = np.searchsorted(owners, np.arange(len(sets.vertex_start)))
    losses = frozen(sets.losses[which])
    return Sets(frozen(vertex_start), frozen(owners), frozen(start), frozen(sets.members[places]), losses)


def _first_sets(sets: Sets) -> Ints:
    """The best sets of each vertex, and its base."""
    last = sets.vertex_start[1:] - 1
    place = np.arange(len(sets.owners)) - sets.vertex_start[sets.owners]
    return np.flatnonzero((place < FIRST_SETS) | (np.arange(len(place)) == last[sets.owners]))
