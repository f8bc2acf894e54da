"""The proof of one component: column generation, cuts, order search, order graph."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from ...candidates import example
from ...foundation.arrays import Bools, Floats, Ints, frozen
from ..orders.insertions import Ordered, improve
from ..orders.walks import OrderProblem, order_problem
from ..reduction import Component
from ..run import Run
from .cuts import (
    ClusterCuts,
    ScoredSets,
    Support,
    no_cuts,
    support_of,
    violated_clusters,
    zero_half_cuts,
)
from .ideals import IdealSearch, compile_ideals, greedy_duals, search_ideals
from .plan import PLAN, Effort, Plan
from .relaxation import Bounded, LinearRelaxation, Point, lagrangian_bounds
from .rounding import greedy_order

_PROGRESS = 5e-3  # share of the gap by which the bound has to rise, or the round counts as stalled
_POSITIVE_VALUE = 1e-7  # values of the relaxation above this count as positive
_REDUCED_COST = -1e-7  # a set below this is added to the program
_LARGEST_COST = 1e300  # instead of infinity, of sets that are not allowed
_NEVER_IDLE = -(2**40)  # rounds: a cut with this count is not removed
_FIRST_TEMPERATURE = 10.0  # of the first search over orders; of later ones 1
NOTHING = frozen(np.zeros(0))


class Relaxed(NamedTuple):
    """The result of the rounds: networks of the allowed sets cost at least `cost`."""

    cost: float
    point: Point | None  # the last solution; None if there is none
    allowed: Bools  # (sets,) without those that reduced costs exclude
    complete: bool  # no set or cut is left to add: the point is optimal


@dataclass(slots=True)
class BranchNode:
    """A node of the branching for a certificate: its bounds in turn, and its two sides, if any."""

    history: list[Bounded] = field(default_factory=list)
    edge: tuple[int, int] = (0, 0)  # parent, child
    sides: list["BranchNode"] = field(default_factory=list)  # with the edge, and without it

    def note(self, bounded: Bounded) -> None:
        """Remember the multipliers; a certificate computes their bounds of single sets again."""
        self.history.append(bounded._replace(with_set=NOTHING, lagrangian=NOTHING))

    def branch(self, edge: tuple[int, int], bounds: list[Bounded | None]) -> list["BranchNode"]:
        """Return the two sides, for which there may be bounds already."""
        self.edge = edge
        self.sides = [BranchNode() for _ in bounds]
        for side, bounded in zip(self.sides, bounds, strict=True):
            if bounded is not None:
                side.note(bounded)
        return self.sides


def _ignore() -> None:
    """Ignore a change."""


class ComponentProof:
    """The proof of one component: the sets that are still needed, the best network, and the bound.

    The cost of a network is the sum over its vertices of the best score minus the score of the
    chosen set."""

    def __init__(
        self,
        component: Component,
        order: Ints,
        tolerance: float,
        changed: Callable[[], None] = _ignore,
        plan: Plan = PLAN,
    ) -> None:
        self.component = component
        self.tolerance = tolerance
        self.plan = plan
        self._changed = changed  # called after every better network or bound
        self.sets = ScoredSets.of(component.families, component.scores)
        self.numbers = np.arange(len(component.scores))  # of `sets` in the component
        self.alive = np.ones(len(self.numbers), np.bool_)  # in a network better than the best one?
        self._costs = self.sets.costs  # of all sets of the component
        best_scores = component.scores[component.families.vertex_start[:-1]]
        self._top = math.fsum(best_scores.tolist())
        self.scale = float(np.abs(best_scores).sum())
        bases = component.families.vertex_start[1:] - 1
        self._required = component.families.sets_at(bases)
        self.relaxation = LinearRelaxation(self.sets, self.scale)
        self.relaxation.add_sets(self._first_columns(bases))
        self._idle = np.zeros(0, np.int64)  # rounds since each cut had weight
        self.best: Ordered = self.best_of_order(order)
        self.cost = 0.0  # every network costs at least this
        self.bounded: Bounded | None = None  # the multipliers with the best bound so far
        self.spare = 0.0  # sets of networks that cost so much more than the best one are kept
        self.tree: BranchNode | None = None  # of the branching, if a certificate is wanted
        self.node: BranchNode | None = None  # of the tree, which is worked on
        self.rounds = 0
        self.found_cuts = 0
        self.states = 0
        self._search_begun = False

    def _first_columns(self, bases: Ints) -> Ints:
        """Return the best sets of each vertex, and its base."""
        owners = self.sets.owners
        ranks = self.numbers - self.sets.families.vertex_start[owners]
        first = ranks < self.plan.first_sets
        return np.flatnonzero(first | (self.numbers == bases[owners]))

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.component.vertices)

    @property
    def cutoff(self) -> float:
        """The cost of the best network so far."""
        return self.cost_of(self.best)

    @property
    def bound(self) -> float:
        """No network of the component scores more."""
        return self._top - self.cost

    @property
    def proved(self) -> bool:
        """True if the best network so far is optimal."""
        return self.closes(self.cost)

    @property
    def too_large(self) -> bool:
        """True if the component has too many vertices for a relaxation."""
        return self.n > self.plan.most_vertices

    def closes(self, cost: float) -> bool:
        """True if networks with at least this cost need not be searched."""
        return cost >= self.cutoff - self.tolerance

    def usable(self, bounded: Bounded) -> Bools:
        """Return (sets,) whether a network with the set may cost less than the best one."""
        return bounded.with_set <= self.cutoff + self.tolerance

    def best_of_order(self, order: Ints) -> Ordered:
        """Return the best network of this order."""
        choice = self.component.families.best_of_order(order)
        return Ordered(order, choice, math.fsum(self.component.scores[choice].tolist()))

    def cost_of(self, found: Ordered) -> float:
        """Return the cost of a network."""
        return math.fsum(self._costs[found.choice].tolist())

    def raise_cost(self, cost: float) -> None:
        """Record that every network costs at least this."""
        if cost > self.cost:
            self.cost = cost
            self._changed()

    def keep_bound(self, bounded: Bounded) -> None:
        """Keep these multipliers for all sets that are alive if they are the best so far."""
        if self.bounded is None or bounded.cost > self.bounded.cost:
            self.bounded = bounded
        if self.node is not None:
            self.node.note(bounded)
        self.raise_cost(bounded.cost)

    # Search over orders

    @cached_property
    def _problem(self) -> OrderProblem:
        """The sets, prepared for the search over orders."""
        return order_problem(self.component.families, self.component.scores)

    def needs_search(self, effort: Effort) -> bool:
        """True if orders are to be searched, beyond rounding the solutions of the relaxation."""
        if self._search_begun or not effort.lightly or self.rounds >= self.plan.easy_rounds:
            return True
        large = self.n > self.plan.order_graph_vertices
        few = self.plan.easy_sets_of_large if large else self.plan.easy_sets
        return self.n > self.plan.easy_vertices or len(self.component.scores) > few

    def begin_search(self, run: Run) -> None:
        """Search orders from the best network on, once; kernels are compiled before."""
        if not self._search_begun:
            self._search_begun = True
            with run.paused():
                compile_order_search()
            moves = self.plan.first_moves
            self._improve(run, self.best.order, moves, run.seed, _FIRST_TEMPERATURE)

    def search(self, run: Run, order: Ints, moves: int, seed: int) -> None:
        """Search orders from this one on; moves are per vertex, fewer if there are many sets."""
        self.begin_search(run)
        self._improve(run, order, moves, seed, 1.0)

    def _improve(self, run: Run, order: Ints, moves: int, seed: int, hot: float) -> None:
        share = min(1.0, self.plan.cheap_sets / len(self._problem.scores))
        moves = int(moves * self.n * share)
        self._offer(improve(self._problem, order, moves, seed=seed, hot=hot, over=lambda: run.over))

    def _offer(self, found: Ordered) -> None:
        if found.score > self.best.score:
            self.best = found
            self._changed()

    # The root

    def prove(self, run: Run) -> None:
        """Work on the root until it is proved, or no method of the plan is left.

        | vertices  | sets         | first                             | then, in turn             |
        |-----------|--------------|-----------------------------------|---------------------------|
        | up to 63  | up to 5,000  | 30 rounds without order search    | order graph and rounds    |
        | up to 63  | more         | order search, greedy dual ascents | order graph and rounds    |
        | 64 to 100 | up to 30,000 | 30 rounds without order search    | rounds with order search  |
        | to 2,000  | any other    | order search                      | rounds with order search  |
        | more      |              | order search                      | nothing                   |

        "Rounds" are those of the relaxation; an order search comes before the first search in the
        order graph in any case."""
        plan = self.plan
        if self.n > plan.order_graph_vertices:
            if self.needs_search(plan.root):
                self.begin_search(run)
            if not self.too_large:
                self.relax(run, plan.root)
            return
        if not self.needs_search(plan.root):
            self.relax(run, plan.root._replace(rounds=plan.easy_rounds))
        if not (self.proved or run.over):
            self.begin_search(run)
            self._prove_in_order_graph(run)

    def relax_thoroughly(self, run: Run) -> None:
        """Raise the bound of the root as far as the relaxation allows."""
        if not self.too_large:
            self.begin_search(run)
            self.relax(run, self.plan.thorough)

    def _prove_in_order_graph(self, run: Run) -> None:
        """Search the order graph and relax in turn, with more states and rounds each time."""
        plan = self.plan
        with run.paused():
            compile_ideals()
        if self.bounded is None:  # many sets: greedy duals take a fraction of the time of rounds
            self._ascend(run)
        most = plan.states_per_round * self.rounds if self.rounds else plan.most_states
        self.search_ideals(run, most)
        rounds = plan.rounds_before_search
        while not (self.proved or run.over):
            rounds = max(int(plan.round_growth * rounds), self.rounds + 1)
            self.relax(run, plan.thorough._replace(rounds=rounds - self.rounds))
            if self.rounds < rounds:
                self.search_ideals(run, plan.most_states)
                return
            self.search_ideals(run, min(plan.most_states, plan.states_per_round * rounds))

    def _ascend(self, run: Run) -> None:
        """Keep the best bound of a few greedy dual ascents."""
        no_weights = np.zeros(0)
        start = lagrangian_bounds(self.sets, no_cuts(self.n), no_weights, self.alive, self.scale)
        for seed in range(self.plan.ascents):
            if not run.over:
                self.keep_bound(greedy_duals(self.sets, start, self.alive, self.scale, seed))

    def search_ideals(self, run: Run, most: int) -> None:
        """Raise the bound as far as this many states of the order graph allow.

        Thresholds rise in stages, each of which gives a bound; the growth from stage to stage tells
        whether the next one is worth beginning."""
        before, last = 1, 100  # states of the last two stages
        for number, part in enumerate(self.plan.stages):
            bounded = self.bounded
            expected = last * self.plan.stage_slowdown * last / before
            if self.proved or run.over or bounded is None or expected > most:
                return
            allowed = most if number else most // self.plan.first_stage_share
            goal = self.cutoff - self.tolerance / 2
            threshold = bounded.cost + part * (goal - bounded.cost)
            found = self.search_stage(run, bounded, threshold, allowed)
            self.states += found.states
            before, last = last, found.states
            if not found.finished:
                return
            if found.best < goal:
                self._offer(self.best_of_order(found.order))
            self.raise_cost(min(found.cost, self.cutoff))

    def search_stage(self, run: Run, bounded: Bounded, threshold: float, most: int) -> IdealSearch:
        """Search the states up to this threshold."""
        usable = self.alive & self.usable(bounded)
        return search_ideals(self.sets, bounded, usable, threshold, most, self.scale, run)

    # Rounds of the relaxation

    def relax(self, run: Run, effort: Effort, among: Bools | None = None) -> Relaxed:
        """Repeat pricing and cutting until no set or cut is added, the bound stalls, or it closes.

        At the root, without `among`, bounds hold for the component, and sets that reduced costs
        exclude are removed from `alive`. At a node only the sets `among` are allowed."""
        allowed = self.alive if among is None else among.copy()
        cost = -math.inf
        point = None
        stalled = 0  # rounds in a row
        self.relaxation.allow(allowed)
        for _ in range(effort.rounds):
            point = self.relaxation.solve(run.left, run.stop)
            if point is None or not point.optimal:
                return Relaxed(cost, None, allowed, False)
            bounded = self.relaxation.bounded(point.weights, allowed)
            stalls = bounded.cost < cost + _PROGRESS * (self.cutoff - cost)  # NaN in round 1: False
            stalled = stalled + 1 if stalls else 0
            cost = max(cost, bounded.cost)
            self._note(bounded, at_root=among is None)
            if effort.moves and not run.over:
                self._round(run, effort, point)
            allowed &= bounded.with_set <= self.cutoff + self.tolerance + self.spare
            self.rounds += 1
            if self.closes(cost) or run.over:
                return Relaxed(cost, point, allowed, False)
            complete = False
            if stalled <= effort.patience:
                complete = not self._extend(point, bounded, allowed)
                if not complete:
                    continue
            if self.needs_search(effort):
                return Relaxed(cost, point, allowed, complete)
            self.begin_search(run)  # a better network may exclude more sets: one more round
            stalled = 0
        return Relaxed(cost, point, allowed, False)

    def _note(self, bounded: Bounded, *, at_root: bool) -> None:
        """Keep a bound: for the component, or for the node of branch and bound."""
        if at_root:
            self.keep_bound(bounded)
        elif self.node is not None:
            self.node.note(bounded)

    def _round(self, run: Run, effort: Effort, point: Point) -> None:
        """Offer the network of the order that the solution suggests, or the best near it."""
        order = self.order_of(point)
        if self.needs_search(effort):
            self.search(run, order, effort.moves, self.rounds)
        else:
            self._offer(self.best_of_order(order))

    def _extend(self, point: Point, bounded: Bounded, allowed: Bools) -> bool:
        """Add violated cuts and sets with negative reduced cost; return whether there were any.

        Idle cuts are removed."""
        sets = self._negative_sets(point, bounded)
        cuts = self._violated_cuts(point)
        self._idle = np.where(point.weights > 0.0, np.minimum(self._idle, 0), self._idle + 1)
        idle = self._idle >= self.plan.idle_rounds
        if idle.any():
            self.relaxation.drop_cuts(idle)
            self._idle = self._idle[~idle]
        if len(sets):
            self.relaxation.add_sets(sets)
        if cuts.total:
            self.relaxation.add_cuts(cuts)
            self._idle = np.concatenate([self._idle, np.zeros(cuts.total, np.int64)])
            self.found_cuts += cuts.total
        self.relaxation.allow(allowed)
        return bool(len(sets) or cuts.total)

    def _negative_sets(self, point: Point, bounded: Bounded) -> Ints:
        """Return sets with negative reduced cost outside the program, the least of each vertex."""
        owners = self.sets.owners
        used = self.relaxation.columns[point.values > _POSITIVE_VALUE]
        duals = np.zeros(self.n)  # of the rows "one set for each vertex"
        np.maximum.at(duals, owners[used], np.minimum(bounded.lagrangian[used], _LARGEST_COST))
        reduced = bounded.lagrangian - duals[owners]
        fresh = np.flatnonzero((reduced < _REDUCED_COST) & ~self.relaxation.is_in)
        fresh = fresh[np.lexsort((reduced[fresh], owners[fresh]))]
        ranks = np.arange(len(fresh)) - np.searchsorted(owners[fresh], owners[fresh])
        return np.sort(fresh[ranks < self.plan.new_sets])

    def _violated_cuts(self, point: Point) -> ClusterCuts:
        """Return violated cuts: k = 1; if these are few, also k = 2 and zero-half cuts."""
        least, few = self.plan.least_violation, self.plan.few_cuts
        most = slice(max(30, self.n))
        support = self.support(point)
        cuts = violated_clusters(support, 1, least)
        if cuts.total < few:
            cuts = cuts.join(violated_clusters(support, 2, 10 * least).select(most))
        if cuts.total < few:
            used, values = self._used(point)
            halves = zero_half_cuts(self.sets, used, values, self.relaxation.cuts, 10 * least)
            cuts = cuts.join(halves.select(most))
        return cuts.select(most)

    def _used(self, point: Point) -> tuple[Ints, Floats]:
        """Return the sets with a positive value, ascending, and their values."""
        used = np.flatnonzero(point.values > _POSITIVE_VALUE)
        used = used[np.argsort(self.relaxation.columns[used])]
        return self.relaxation.columns[used], point.values[used]

    def support(self, point: Point) -> Support:
        """Return the support of the solution."""
        used, values = self._used(point)
        return support_of(self.sets, used, values)

    def order_of(self, point: Point) -> Ints:
        """Return the greedy order of the solution."""
        return greedy_order(self.support(point), self._required)

    def shrink(self) -> None:
        """Remove the sets that are not alive, before the branching."""
        keep = np.flatnonzero(self.alive)
        columns = self.relaxation.is_in[keep]
        cuts = self.relaxation.cuts
        self.numbers = self.numbers[keep]
        self.sets = self.sets.select(keep)
        self.alive = np.ones(len(keep), np.bool_)
        self.relaxation = LinearRelaxation(self.sets, self.scale)
        self.relaxation.add_sets(np.flatnonzero(columns))
        self.relaxation.add_cuts(cuts)
        # The root's last cuts stay. Open nodes are far apart: without these cuts they would be
        # weaker than the root.
        self._idle = np.full(cuts.total, _NEVER_IDLE)
        self.bounded = None


@cache
def compile_order_search() -> None:
    """Compile the kernels of the search over orders."""
    candidates = example()
    improve(order_problem(candidates.families, candidates.scores), range(candidates.n), 1)
