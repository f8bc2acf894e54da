"""The proof of an optimal network: for each component, rounds of pricing, cutting and rounding of its relaxation."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from ...candidates import example
from ...foundation.arrays import Bools, Floats, Ints, frozen
from ...foundation.graph import topological_order
from ..orders.insertions import Ordered, improve
from ..orders.walks import OrderProblem, order_problem
from ..reduction import Component, Components, Reduced, split
from ..run import Run
from .cuts import ScoredSets, Support, no_cuts, support_of, violated_clusters, zero_half_cuts
from .ideals import LARGEST, SLOWER, STAGES, compile_ideals, greedy_duals, search_ideals
from .relaxation import Bounded, LinearRelaxation, Point, lagrangian

FIRST_SETS = 10  # sets of each vertex in the first program
NEW_SETS = 5  # sets of each vertex that a round adds
IDLE = 8  # rounds after which a cut without weight is removed
FEW = 50  # cuts with k = 1 below which others are searched for
LEAST = 1e-3  # violation of a cut that is worth adding
# sets up to which a move of the order search is cheap; it takes time in proportion to them
QUICK = 30_000
LIGHT = 5_000  # sets up to which rounds of the relaxation come before a search over order ideals
EASY = 30  # rounds in which easy proofs end, mostly: orders are not searched until then
# vertices of the largest component that is tried without searching orders first
EASY_VERTICES = 100
# of a component with a relaxation: separating cuts takes memory as n^2, time as n^3
MOST_VERTICES = 2_000
ASCENTS = 6  # greedy dual ascents; the best one counts
FIRST_ROUNDS = 20  # rounds of the relaxation before its first search over order ideals
GROWTH = 1.3  # factor of the number of rounds from one such search to the next
STATES = 12_000  # states of such a search, for each round so far
# states of a search after greedy duals, and of the last one after rounds: 190 MB
MOST_STATES = 6_000_000
# the first stage may have this fraction of the states: after a longer one the next is never begun
FIRST_STAGE = 8
FOREVER = 2**40  # rounds
FAR = 1e6  # keeps a vertex behind its required parents; LP values of a vertex sum to 1
POSITIVE = 1e-7  # values above this count as positive
NOTHING = frozen(np.zeros(0))


class Effort(NamedTuple):
    """How long one relaxation is worked on."""

    rounds: int
    patience: int  # rounds in which the bound may stall: rise by less than 0.5 % of the gap
    # of the search over orders, for each vertex, from the order that each solution suggests
    moves: int
    lightly: bool = False  # try proofs that look easy without that search


ROOT = Effort(1_000_000, 8, 100, lightly=True)
THOROUGH = Effort(1_000_000, 40, 100)  # for bounds and presolve, which no branching follows
NODE = Effort(6, 2, 0)


class Relaxed(NamedTuple):
    """The result of the rounds: networks of the allowed sets lose at least `loss`."""

    loss: float
    point: Point | None  # the last solution; None if there is none
    allowed: Bools  # (sets,) without those that reduced costs exclude
    complete: bool  # no set or cut is left to add: the point is optimal


@dataclass(slots=True)
class BranchNode:
    """What a certificate tells of a node of the branching: its bounds in turn, and its two sides, if it has them."""

    history: list[Bounded] = field(default_factory=list)
    edge: tuple[int, int] = (0, 0)  # parent, child
    sides: list["BranchNode"] = field(default_factory=list)  # with the edge, and without it

    def note(self, bounded: Bounded) -> None:
        """Remember the multipliers; what they say of each set is computed again when a certificate is written."""
        self.history.append(bounded._replace(with_set=NOTHING, prices=NOTHING))

    def branch(self, edge: tuple[int, int], bounds: list[Bounded | None]) -> list["BranchNode"]:
        """Return the two sides, for which there may be bounds already."""
        self.edge, self.sides = edge, [BranchNode() for _ in bounds]
        for side, bounded in zip(self.sides, bounds, strict=True):
            if bounded is not None:
                side.note(bounded)
        return self.sides


class Proof:
    """The proofs of all components of the candidates; better networks and bounds go to the run."""

    def __init__(self, reduced: Reduced, run: Run) -> None:
        self.reduced, self._run = reduced, run
        self._components = Components(reduced.candidates, split(reduced.candidates)[::-1])
        order = np.array(topological_order(run.candidates.families.sets_at(run.choice)), np.int64)
        tolerance = 0.5e-9 * max(1.0, abs(run.score)) / max(1, len(self._components.parts))
        self.components: list[ComponentProof] = []
        alone = np.ones(reduced.candidates.n, np.bool_)
        for component in self._components.parts:
            local_order = np.searchsorted(
                component.vertices, order[np.isin(order, component.vertices)]
            )
            self.components.append(ComponentProof(component, local_order, tolerance, self._changed))
            alone[component.vertices] = False
        self._best_alone = reduced.candidates.families.vertex_start[:-1][alone]
        self._changed()

    @property
    def statistics(self) -> dict[str, int]:
        """Counts of the search."""
        return {
            "rounds": sum(each.rounds for each in self.components),
            "cuts": sum(each.found_cuts for each in self.components),
            "states": sum(each.states for each in self.components),
            "sets_left": sum(int(each.alive.sum()) for each in self.components),
        }

    @property
    def bound(self) -> float:
        """No network scores more."""
        alone = self.reduced.candidates.scores[self._best_alone].tolist()
        return math.fsum([*alone, *(each.bound for each in self.components), self.reduced.rounding])

    @property
    def kept(self) -> Ints:
        """The sets of the reduced candidates that a best network can use, ascending."""
        alive = [each.component.numbers[each.numbers[each.alive]] for each in self.components]
        return np.sort(np.concatenate([self._best_alone, *alive]))

    def prove(self) -> None:
        """Prove every component without branching as far as possible, the smallest first."""
        for each in self.components:
            if not self._run.over:
                each.prove(self._run)

    def relax(self) -> None:
        """Solve the relaxation of every component thoroughly, the smallest first."""
        for each in self.components:
            if not (self._run.over or each.too_large):
                each.begin_search(self._run)
                each.relax(self._run, THOROUGH)

    def _changed(self) -> None:
        """Report a better network or bound to the run."""
        choices = [each.best.choice for each in self.components]
        self._run.offer(self.reduced.invert(self._components.invert(choices)))
        self._run.tighten(self.bound)
        self._run.report(f"score {self._run.score:,.3f}, bound {self._run.bound:,.3f}")


class ComponentProof:
    """One component under proof: its sets that may still be used, its best network so far, and its relaxation.

    The loss of a network is the sum over its vertices of the best score minus the score of the
    chosen set."""

    def __init__(
        self, component: Component, order: Ints, tolerance: float, changed: Callable[[], None]
    ) -> None:
        self.component, self.tolerance, self._changed = component, tolerance, changed
        self.numbers = np.arange(len(component.scores))  # of `sets` in the component
        self.sets = ScoredSets.of(component.families, component.scores)
        self._losses = self.sets.losses  # of all sets of the component
        best_scores = component.scores[component.families.vertex_start[:-1]]
        self._top, self.scale = math.fsum(best_scores.tolist()), float(np.abs(best_scores).sum())
        # may be in a network better than the best so far
        self.alive = np.ones(len(self.numbers), np.bool_)
        self.relaxation = LinearRelaxation(self.sets, self.scale)
        first, last = component.families.vertex_start[:-1], component.families.vertex_start[1:] - 1
        owners = self.sets.owners
        early = self.numbers - first[owners] < FIRST_SETS
        self.relaxation.add_sets(np.flatnonzero(early | (self.numbers == last[owners])))
        self._required = list(component.families.sets_at(last))
        self._idle = np.zeros(0, np.int64)  # rounds since each cut had weight
        self.best: Ordered = self.best_of_order(order)
        self.loss = 0.0  # every network loses at least this
        self.bounded: Bounded | None = None  # the multipliers with the best bound so far
        self.spare = 0.0  # sets of networks that lose so much more than the best one are kept
        self.tree: BranchNode | None = None  # of the branching, if a certificate is wanted
        self.node: BranchNode | None = None  # of the tree, which is worked on
        self.rounds = self.found_cuts = self.states = 0
        self._search_begun = False

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.component.vertices)

    @property
    def cutoff(self) -> float:
        """The loss of the best network so far."""
        return self.loss_of(self.best)

    @property
    def bound(self) -> float:
        """No network of the component scores more."""
        return self._top - self.loss

    @property
    def proved(self) -> bool:
        """True if the best network so far is optimal."""
        return self.closes(self.loss)

    def closes(self, loss: float) -> bool:
        """True if networks with at least this loss need not be searched."""
        return loss >= self.cutoff - self.tolerance

    def best_of_order(self, order: Ints) -> Ordered:
        """Return the best network of this order."""
        choice = self.component.families.best_of_order(order)
        return Ordered(order, choice, math.fsum(self.component.scores[choice].tolist()))

    def loss_of(self, found: Ordered) -> float:
        """Return the loss of a network."""
        return math.fsum(self._losses[found.choice].tolist())

    def raise_loss(self, loss: float) -> None:
        """Record that every network loses at least this."""
        if loss > self.loss:
            self.loss = loss
            self._changed()

    def keep_bound(self, bounded: Bounded) -> None:
        """Keep these multipliers for all sets that are alive if they are the best so far."""
        if self.bounded is None or bounded.loss > self.bounded.loss:
            self.bounded = bounded
        if self.node is not None:
            self.node.note(bounded)
        self.raise_loss(bounded.loss)

    def needs_search(self, effort: Effort) -> bool:
        """True if orders are to be searched, beyond rounding the solutions of the relaxation."""
        few = LIGHT if self.n <= LARGEST else QUICK
        small = self.n <= EASY_VERTICES and len(self.component.scores) <= few
        return not (effort.lightly and small and self.rounds < EASY) or self._search_begun

    @cached_property
    def _problem(self) -> OrderProblem:
        """The sets, prepared for the search over orders."""
        return order_problem(self.component.families, self.component.scores)

    @property
    def too_large(self) -> bool:
        """Whether the component has too many vertices for a relaxation."""
        return self.n > MOST_VERTICES

    def begin_search(self, run: Run) -> None:
        """Search orders from the best network on, once; the kernels are compiled outside the time limit."""
        if not self._search_begun:
            self._search_begun = True
            with run.paused():
                compile_order_search()
            self._improve(run, self.best.order, 2000, run.seed, 10.0)

    def search(self, run: Run, order: Ints, moves: int, seed: int) -> None:
        """Search orders from this one on, with this many moves for each vertex, fewer if there are many sets."""
        self.begin_search(run)
        self._improve(run, order, moves, seed, 1.0)

    def _improve(self, run: Run, order: Ints, moves: int, seed: int, hot: float) -> None:
        moves = int(moves * self.n * min(1.0, QUICK / len(self._problem.scores)))
        self._offer(improve(self._problem, order, moves, seed=seed, hot=hot, over=lambda: run.over))

    def _offer(self, found: Ordered) -> None:
        if found.score > self.best.score:
            self.best = found
            self._changed()

    def prove(self, run: Run) -> None:
        """Work on the root until it is proved or stuck: rounds of the relaxation, and searches over order ideals.

        Orders are searched from the start, except in components that look easy:

            vertices    sets            first                               then, if not proved up
            to 63    up to 5,000     30 rounds without order search      order search; ideals and
            rounds in turn up to 63    more            order search, greedy duals          ideals
            and rounds in turn 64 to 100   up to 30,000    30 rounds without order search
            rounds with order search up to 2,000 otherwise       order search
            rounds with order search more                        order search
            nothing

        Everything is decided by counts, so that neither the time limit nor the load of the machine
        changes the path."""
        if self.n > LARGEST:
            if self.needs_search(ROOT):
                self.begin_search(run)
            if not self.too_large:
                self.relax(run, ROOT)
            return
        if not self.needs_search(ROOT):
            self.relax(run, ROOT._replace(rounds=EASY))
        if self.proved or run.over:
            return
        self.begin_search(run)
        with run.paused():
            compile_ideals()
        if self.bounded is None:  # many sets: greedy duals take a fraction of the time of rounds
            nothing = lagrangian(self.sets, no_cuts(self.n), np.zeros(0), self.alive, self.scale)
            for seed in range(ASCENTS):
                if not run.over:
                    self.keep_bound(greedy_duals(self.sets, nothing, self.alive, self.scale, seed))
        self.search_ideals(run, STATES * self.rounds if self.rounds else MOST_STATES)
        rounds = FIRST_ROUNDS
        while not (self.proved or run.over):
            rounds = max(int(GROWTH * rounds), self.rounds + 1)
            self.relax(run, THOROUGH._replace(rounds=rounds - self.rounds))
            stuck = self.rounds < rounds
            self.search_ideals(run, MOST_STATES if stuck else min(MOST_STATES, STATES * rounds))
            if stuck:
                break

    def search_ideals(self, run: Run, most: int) -> None:
        """Raise the bound as far as this many order ideals allow.

        Thresholds rise in stages, each of which gives a bound; the growth from stage to stage tells
        whether the next one is worth beginning."""
        counts = [1, 100]
        for part in STAGES:
            bounded, goal = self.bounded, self.cutoff - self.tolerance / 2
            if (
                self.proved
                or run.over
                or bounded is None
                or counts[-1] * SLOWER * counts[-1] / counts[-2] > most
            ):
                return
            usable = self.alive & (bounded.with_set <= self.cutoff + self.tolerance)
            threshold = bounded.loss + part * (goal - bounded.loss)
            allowed = most // FIRST_STAGE if part == STAGES[0] else most
            found = search_ideals(self.sets, bounded, usable, threshold, allowed, self.scale, run)
            self.states += found.states
            counts.append(found.states)
            if not found.finished:
                return
            if found.best < goal:
                self._offer(self.best_of_order(found.order))
            self.raise_loss(min(found.loss, self.cutoff))

    def relax(self, run: Run, effort: Effort, among: Bools | None = None) -> Relaxed:
        """Repeat pricing and cutting until nothing is found, the bound stalls, or nothing better is left.

        At the root, without `among`, bounds hold for the component, and sets that reduced costs
        exclude are no longer alive. At a node only the sets `among` are allowed."""
        allowed = self.alive if among is None else among.copy()
        loss, stalled, point, complete = -math.inf, 0, None, False
        self.relaxation.allow(allowed)
        for _ in range(effort.rounds):
            point = self.relaxation.solve(run.left, run.stop)
            if point is None or not point.optimal:
                return Relaxed(loss, None, allowed, False)
            bounded = self.relaxation.bounded(point.weights, allowed)
            stalled = stalled + 1 if bounded.loss < loss + 5e-3 * (self.cutoff - loss) else 0
            loss = max(loss, bounded.loss)
            if among is None:
                self.keep_bound(bounded)
            elif self.node is not None:
                self.node.note(bounded)
            if effort.moves and not run.over:
                if self.needs_search(effort):
                    self.search(run, self.order_of(point), effort.moves, self.rounds)
                else:
                    self._offer(self.best_of_order(self.order_of(point)))
            allowed &= bounded.with_set <= self.cutoff + self.tolerance + self.spare
            self.rounds += 1
            if self.closes(loss) or run.over:
                break
            complete = stalled <= effort.patience and not self._extend(point, bounded, allowed)
            if complete or stalled > effort.patience:
                if self.needs_search(effort):
                    break
                self.begin_search(run)  # a better network may exclude more sets: one more round
                stalled = 0
        return Relaxed(loss, point, allowed, complete)

    def shrink(self) -> None:
        """Remove the sets that are not alive."""
        keep = np.flatnonzero(self.alive)
        columns, cuts = self.relaxation.is_in[keep], self.relaxation.cuts
        self.numbers, self.sets = self.numbers[keep], self.sets.select(keep)
        self.alive = np.ones(len(keep), np.bool_)
        self.relaxation = LinearRelaxation(self.sets, self.scale)
        self.relaxation.add_sets(np.flatnonzero(columns))
        self.relaxation.add_cuts(cuts)
        # The root's last cuts stay. Open nodes are far apart: without these cuts they would be
        # weaker than the root.
        self._idle = np.full(cuts.total, -FOREVER)
        self.bounded = None

    def _extend(self, point: Point, bounded: Bounded, allowed: Bools) -> bool:
        """Add violated cuts and the cheapest sets with negative reduced costs, remove idle cuts; True if any came."""
        owners, columns = self.sets.owners, self.relaxation.columns
        paid, used = np.zeros(self.n), point.values > POSITIVE
        np.maximum.at(paid, owners[columns[used]], np.minimum(bounded.prices[columns[used]], 1e300))
        reduced = bounded.prices - paid[owners]
        fresh = np.flatnonzero((reduced < -1e-7) & ~self.relaxation.is_in)
        fresh = fresh[np.lexsort((reduced[fresh], owners[fresh]))]
        places = np.arange(len(fresh)) - np.searchsorted(owners[fresh], owners[fresh])
        fresh = np.sort(fresh[places < NEW_SETS])
        support = self.support(point)
        cuts, most = violated_clusters(support, 1, LEAST), max(30, self.n)
        if cuts.total < FEW:
            cuts = cuts.join(violated_clusters(support, 2, 10 * LEAST).select(slice(most)))
        if cuts.total < FEW:
            halves = zero_half_cuts(self.sets, *self._used(point), self.relaxation.cuts, 10 * LEAST)
            cuts = cuts.join(halves.select(slice(most)))
        cuts = cuts.select(slice(most))
        self._idle = np.where(point.weights > 0.0, np.minimum(self._idle, 0), self._idle + 1)
        idle = self._idle >= IDLE
        if idle.any():
            self.relaxation.drop_cuts(idle)
            self._idle = self._idle[~idle]
        if len(fresh):
            self.relaxation.add_sets(fresh)
        if cuts.total:
            self.relaxation.add_cuts(cuts)
            self._idle = np.concatenate([self._idle, np.zeros(cuts.total, np.int64)])
            self.found_cuts += cuts.total
        self.relaxation.allow(allowed)
        return bool(len(fresh) or cuts.total)

    def _used(self, point: Point) -> tuple[Ints, Floats]:
        """Return the sets with a positive value, ascending, and their values."""
        used = np.flatnonzero(point.values > POSITIVE)
        used = used[np.argsort(self.relaxation.columns[used])]
        return self.relaxation.columns[used], point.values[used]

    def support(self, point: Point) -> Support:
        """Return the support of the solution."""
        return support_of(self.sets, *self._used(point))

    def order_of(self, point: Point) -> Ints:
        """Return the greedy order of the solution.

        Next comes the vertex with most value on sets of earlier vertices, but never before its
        required parents."""
        support = self.support(point)
        missing, ready = np.diff(support.families.set_start), np.zeros(self.n)
        np.add.at(ready, support.owners[missing == 0], support.values[missing == 0])
        waiting = {vertex for vertex, parents in enumerate(self._required) if parents}
        ready[list(waiting)] -= FAR
        order: list[int] = []
        for _ in range(self.n):
            vertex = int(np.argmax(ready))
            order.append(vertex)
            ready[vertex] = -np.inf
            containing = support.children[
                support.child_start[vertex] : support.child_start[vertex + 1]
            ]
            missing[containing] -= 1
            complete = containing[missing[containing] == 0]
            np.add.at(ready, support.owners[complete], support.values[complete])
            freed = {
                other
                for other in waiting
                if vertex in self._required[other] and {*self._required[other]} <= {*order}
            }
            ready[list(freed)] += FAR
            waiting -= freed
        return np.array(order, np.int64)


@cache
def compile_order_search() -> None:
    """Compile the kernels of the search over orders."""
    candidates = example()
    improve(order_problem(candidates.families, candidates.scores), range(candidates.n), 1)
