"""Networks close to the best: the k best, or all within a Bayes factor (docs/alternatives.md).

Multipliers w >= 0 of cuts give every candidate set a reduced cost: its price (loss plus w of the cuts that it crosses)
minus the least price of its vertex. A network loses exactly

    L(w) + the sum of its reduced costs + the sum over cuts of w * slack,      slack >= 0,

so all networks that lose at most T are among the acyclic choices of one set for each vertex for which the last two
sums are at most T - L(w). These are enumerated vertex by vertex, each network once; the vertices decided so far bound
the slack of each cut. With the multipliers of a proof at the root, T - L(w) is hardly more than the distance from the
optimum.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array

from ...candidates import Candidates, example
from ...foundation.arrays import Bools, Floats, Ints, SmallInts, Words
from ...foundation.errors import SettingError
from ...foundation.families import VertexSet
from ...foundation.jit import kernel
from ...foundation.progress import OnProgress, silent, stopping
from ...foundation.workers import Workers
from ...network import Network, cpdag
from ..reduction import without_twins
from ..run import Limits, Run, check, is_number, is_whole
from .cuts import ClusterCuts, ScoredSets, coefficients, no_cuts
from .exact import Exact
from .proof import QUICK, ROOT, Proof
from .relaxation import Bounded, lagrangian

MOST = 100_000  # networks that are listed
SPARE = 5.0  # distance from the best up to which sets are kept for the multipliers
STEP = 0.25  # the first distance from the best in which the k best are looked for; it doubles
SLICE = 1_000_000  # sets tried between two looks at the clock
WORK = 3_000_000_000  # sets tried in one enumeration, at most


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The best networks of the candidate sets, best first.

    If `complete`, no network of these candidate sets that is not listed scores more than `floor`.
    """

    names: tuple[str, ...]
    networks: tuple[tuple[VertexSet, ...], ...] = field(repr=False)  # parents of each vertex
    scores: tuple[float, ...]
    floor: float
    complete: bool
    status: str  # a sentence: how the enumeration ended
    statistics: dict[str, int]
    seconds: float
    interrupted: bool = False

    def bayes_factors(self) -> list[float]:
        """Return how many times more probable the best network is than each, given a uniform prior."""
        return [math.exp(self.scores[0] - score) for score in self.scores]

    def edge_probabilities(self) -> dict[tuple[str, str], float]:
        """Return {(parent, child): share} among the listed networks, each weighted by its posterior probability."""
        weights = np.array([1.0 / factor for factor in self.bayes_factors()])
        shares: Counter[tuple[str, str]] = Counter()
        for parents, weight in zip(self.networks, (weights / weights.sum()).tolist(), strict=True):
            for child, members in enumerate(parents):
                for parent in members:
                    shares[self.names[parent], self.names[child]] += weight
        return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))

    def classes(self) -> list[list[int]]:
        """Return the listed networks by equivalence class: networks of a class have the same independencies."""
        found: dict[Any, list[int]] = {}
        for number, parents in enumerate(self.networks):
            found.setdefault(cpdag(Network(self.names, parents)), []).append(number)
        return list(found.values())

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {
            "networks": [
                {
                    "score": score,
                    "bayes_factor": factor,
                    "network": {
                        name: [self.names[parent] for parent in members]
                        for name, members in zip(self.names, parents, strict=True)
                    },
                }
                for score, factor, parents in zip(self.scores, self.bayes_factors(), self.networks, strict=True)
            ],
            "equivalence_classes": self.classes(),
            "edges": [[parent, child, share] for (parent, child), share in self.edge_probabilities().items()],
            "complete": self.complete,
            "floor": self.floor,
            "status": self.status,
            "statistics": self.statistics,
            "seconds": round(self.seconds, 3),
        }

    def describe(self, most: int = 10) -> list[str]:
        """Return the first networks and the least certain edges, as lines for people."""
        best = {(p, child) for child, members in enumerate(self.networks[0]) for p in members}
        classes = self.classes()
        class_of = {number: place for place, its in enumerate(classes, 1) for number in its}
        count = len(self.networks)
        lines = [f"{count:,} network{'s' * (count != 1)} in {len(classes):,} equivalence classes: {self.status}"]
        for number, (score, factor) in enumerate(zip(self.scores[:most], self.bayes_factors(), strict=False)):
            edges = {(p, child) for child, members in enumerate(self.networks[number]) for p in members}
            changed = f", {len(edges - best)} edges more and {len(best - edges)} fewer" if number else ""
            lines.append(
                f"{number + 1}. score {score:,.6f}, Bayes factor {factor:.3g}, class {class_of[number]}{changed}"
            )
        doubtful = [(edge, share) for edge, share in self.edge_probabilities().items() if share < 1.0 - 1e-9]
        if doubtful:
            lines.append("edges that not all of them have, and their share by posterior weight among these networks:")
            lines += [f"  {parent} -> {child} {share:.3f}" for (parent, child), share in doubtful[: 2 * most]]
        return lines


def alternatives(
    candidates: Candidates,
    best: int | None = None,
    *,
    within: float | None = None,
    limits: Limits | None = None,
    on_progress: OnProgress = silent,
) -> Alternatives:
    """Return the `best` networks, or all `within` a Bayes factor of the best one; with both, the fewer of the two.

    >>> from qubayes.candidates import example
    >>> found = alternatives(example(), 3)
    >>> len(found.networks), found.complete
    (3, True)
    """
    if best is None and within is None:
        raise SettingError("alternatives of what kind? give best, a number of networks, or within, a Bayes factor")
    if best is not None and not (is_whole(best) and 1 <= best <= MOST):
        raise SettingError(f"best = {best!r}; give a whole number from 1 to {MOST}")
    if within is not None and not (is_number(within) and 1 <= within < math.inf):
        raise SettingError(f"within = {within!r}; give a Bayes factor, 1 or more")
    check(candidates)
    Exact().prepare()
    _compile()
    run = Run(candidates, limits or Limits(None), Workers(1), None, on_progress, "alternatives")
    farthest = math.inf if within is None else math.log(within)
    with stopping(run.stop):
        proof = Proof(without_twins(candidates, False), run)
        for each in proof.components:
            each.spare = min(farthest, SPARE)
        proof.prove()
        for each in proof.components:  # multipliers as good as the relaxation allows make the enumeration short
            known = each.bounded
            if not (run.over or (known is not None and each.closes(known.loss)) or len(each.sets.losses) > QUICK):
                each.relax(run, each.alive, ROOT)
        return _enumerated(candidates, proof, run, best, farthest)


@cache
def _compile() -> None:
    """Compile the kernel."""
    candidates = example(3)
    sets = ScoredSets.of(candidates.families, candidates.scores)
    nothing = lagrangian(sets, no_cuts(3), np.zeros(0), np.ones(len(sets.losses), np.bool_), 0.0)
    _walk(sets, nothing, 0.0, Run(candidates, Limits(None), Workers(1)))


class Options(NamedTuple):
    """The sets that may be taken, by vertex in the order of the enumeration and by rising reduced cost."""

    start: Ints  # (n + 1,)
    vertices: Ints  # (n,)
    numbers: Ints  # (options,) of the candidate sets
    costs: Floats  # (options,) reduced
    losses: Floats  # (options,)
    set_start: Ints  # of all candidate sets
    members: SmallInts
    short_start: Ints  # (options + 1,)
    short_cuts: SmallInts  # cuts to which an option adds less than another set of its vertex could
    short_by: SmallInts  # and how much less
    spare: Ints  # (cuts,) how much less in all leaves no slack
    weights: Floats  # (cuts,)


class Walk(NamedTuple):
    """State of the enumeration; level d has the first d vertices decided."""

    place: Ints  # (n + 1,) the next option of each level
    cost: Floats  # (n + 1,) of the options taken so far
    loss: Floats  # (n + 1,)
    above: Words  # (n + 1, n, words) ancestors of each vertex at each level
    short: Ints  # (cuts,) how much less the options taken so far add to each cut
    counts: Ints  # level; networks found; sets tried
    found: Ints  # (most, n) numbers of candidate sets by vertex
    found_losses: Floats  # (most,)


def _enumerated(candidates: Candidates, proof: Proof, run: Run, best: int | None, farthest: float) -> Alternatives:
    """Enumerate in distances that double until there are enough networks, or all within the farthest."""
    sets = ScoredSets.of(candidates.families, candidates.scores)
    bounded = _joined(candidates, sets, proof)
    least, tried = math.fsum(sets.losses[run.choice].tolist()), 0
    margin, farthest_loss = 1e-9 * max(1.0, abs(run.score)), float(sets.losses.sum())  # of any network
    distance = farthest if best is None else min(STEP, farthest)
    while True:
        walk, finished = _walk(sets, bounded, least + distance + margin, run)
        count, tried = int(walk.counts[1]), tried + int(walk.counts[2])
        if not finished or distance >= farthest or (best is not None and count >= best) or distance > farthest_loss:
            break
        distance = min(2.0 * distance, farthest)
    scores = [math.fsum(candidates.scores[choice].tolist()) for choice in walk.found[:count]] or [run.score]
    ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    floor = max(run.score - distance, scores[ranked[0]] - farthest)
    ranked = [i for i in ranked if scores[i] >= floor - margin]
    status = "all networks within the Bayes factor" if best is None else "the best ones"
    if best is not None and len(ranked) > best:
        ranked, floor = ranked[:best], scores[ranked[best]]
    if not finished:
        status = f"{'time limit reached' if run.over else 'too many to enumerate'}; others may be missing"
    choices = walk.found[ranked] if count else run.choice[None]
    return Alternatives(
        candidates.names,
        tuple(candidates.families.sets_at(choice) for choice in choices),
        tuple(scores[i] for i in ranked),
        floor,
        finished,
        status,
        {"tried": tried, **proof.statistics},
        run.elapsed,
        bool(run.stop[0]),
    )


def _joined(candidates: Candidates, sets: ScoredSets, proof: Proof) -> Bounded:
    """Return the multipliers of all components together, over all candidate sets."""
    cuts, weights = no_cuts(candidates.n), [np.zeros(0)]
    for each in proof.components:
        if each.bounded is not None:
            its = each.bounded.cuts
            inside, odd = (np.zeros((len(rows), candidates.n), np.uint8) for rows in (its.inside, its.odd))
            inside[:, each.component.vertices], odd[:, each.component.vertices] = its.inside, its.odd
            cuts = cuts.join(ClusterCuts(its.start, inside, its.needs, odd, its.divisors))
            weights.append(each.bounded.weights)
    allowed: Bools = np.ones(len(sets.losses), np.bool_)
    scale = sum(each.scale for each in proof.components)
    return lagrangian(sets, cuts, np.concatenate(weights), allowed, scale)


def _walk(sets: ScoredSets, bounded: Bounded, limit: float, run: Run) -> tuple[Walk, bool]:
    """Enumerate the networks that lose at most `limit`; return them, and whether these are all."""
    n, budget = sets.families.n, limit - bounded.loss
    least = np.minimum.reduceat(bounded.prices, sets.families.vertex_start[:-1]) if n else np.zeros(0)
    costs = bounded.prices - least[sets.owners]
    usable = np.flatnonzero((costs <= budget) & (sets.losses <= limit))
    vertices = _order(bounded, n)
    rank = np.argsort(vertices)
    usable = usable[np.lexsort((costs[usable], rank[sets.owners[usable]]))]
    start = np.searchsorted(rank[sets.owners[usable]], np.arange(n + 1))
    added = coefficients(sets, usable, bounded.cuts)
    most = np.maximum.reduceat(added, start[:-1], axis=1) if n else added
    short = csc_array(most[:, rank[sets.owners[usable]]] - added)
    options = Options(
        start,
        vertices,
        usable,
        costs[usable],
        sets.losses[usable],
        sets.families.set_start,
        sets.families.members,
        short.indptr.astype(np.int64),
        short.indices.astype(np.int32),
        short.data.astype(np.int32),
        most.sum(axis=1) - bounded.cuts.rhs,
        bounded.weights,
    )
    levels = n + 1
    walk = Walk(
        np.zeros(levels, np.int64),
        np.zeros(levels),
        np.zeros(levels),
        np.zeros((levels, n, (n + 63) // 64), np.uint64),
        np.zeros(bounded.cuts.total, np.int64),
        np.zeros(3, np.int64),
        np.zeros((MOST, n), np.int64),
        np.zeros(MOST),
    )
    walk.cost[0] = bounded.weights @ np.maximum(-options.spare, 0)
    going = 1
    while going == 1 and walk.counts[2] < WORK and not run.over:
        going = _list_networks(options, walk, budget, limit, SLICE)
        run.report(f"{int(walk.counts[1]):,} networks")
    return walk, going == 0


def _order(bounded: Bounded, n: int) -> Ints:
    """Return the vertices so that each shares much weight of clusters with those before it: slack shows early."""
    cuts = bounded.cuts
    weights = np.repeat(bounded.weights, np.diff(cuts.start)) / np.maximum(cuts.inside.sum(axis=1), 1)
    shared = (cuts.inside.T * weights) @ cuts.inside
    nearness, order = shared.sum(axis=1), list[int]()
    for _ in range(n):
        order.append(int(np.argmax(nearness)))
        nearness = np.where(nearness == -np.inf, -np.inf, shared[order].sum(axis=0))
        nearness[order] = -np.inf
    return np.array(order, np.int64)


@kernel
def _list_networks(options: Options, walk: Walk, budget: float, limit: float, work: int) -> int:
    """Continue the enumeration; return 0 at its end, 1 after `work` sets, 2 if there is no place for a network."""
    n, one = len(options.vertices), np.uint64(1)
    level, count = walk.counts[0], walk.counts[1]
    going = 1
    left = work
    while left > 0:
        if level == n:
            if count == len(walk.found):
                going = 2
                break
            for d in range(n):
                walk.found[count, options.vertices[d]] = options.numbers[walk.place[d] - 1]
            walk.found_losses[count] = walk.loss[n]
            count += 1
        i = walk.place[level]
        if level == n or i == options.start[level + 1] or walk.cost[level] + options.costs[i] > budget:
            level -= 1
            if level < 0:
                going = 0
                break
            taken = walk.place[level] - 1
            for k in range(options.short_start[taken], options.short_start[taken + 1]):
                walk.short[options.short_cuts[k]] -= options.short_by[k]
            continue
        walk.place[level] = i + 1
        left -= 1
        cost, loss = walk.cost[level] + options.costs[i], walk.loss[level] + options.losses[i]
        for k in range(options.short_start[i], options.short_start[i + 1]):
            cut = options.short_cuts[k]
            over = walk.short[cut] - options.spare[cut]
            cost += options.weights[cut] * (max(0, over + options.short_by[k]) - max(0, over))
        if loss > limit or cost > budget:
            continue
        vertex, number = options.vertices[level], options.numbers[i]
        above, here = walk.above[level], walk.above[level + 1]
        word, bit = vertex >> 6, one << np.uint64(vertex & 63)
        cyclic = False
        for k in range(options.set_start[number], options.set_start[number + 1]):
            if above[options.members[k], word] & bit:
                cyclic = True
        if cyclic:
            continue
        for x in range(n):
            for w in range(here.shape[1]):
                here[x, w] = above[x, w]
        for x in range(n):
            if x == vertex or above[x, word] & bit:
                for k in range(options.set_start[number], options.set_start[number + 1]):
                    parent = options.members[k]
                    here[x, parent >> 6] |= one << np.uint64(parent & 63)
                    for w in range(here.shape[1]):
                        here[x, w] |= above[parent, w]
        for k in range(options.short_start[i], options.short_start[i + 1]):
            walk.short[options.short_cuts[k]] += options.short_by[k]
        level += 1
        walk.cost[level], walk.loss[level] = cost, loss
        walk.place[level] = options.start[level] if level < n else 0
    walk.counts[0], walk.counts[1] = level, count
    walk.counts[2] += work - left
    return going
