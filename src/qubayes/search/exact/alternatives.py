"""Networks close to the best: the k best, or all within a Bayes factor (docs/alternatives.md).

Multipliers w >= 0 of cuts give every candidate set a reduced cost: its price (loss plus w of the
cuts that it crosses) minus the least price of its vertex. A network loses exactly

    L(w) + the sum of its reduced costs + the sum over cuts of w * slack,      slack >= 0,

so all networks that lose at most T are among the acyclic choices of one set for each vertex for
which the last two sums are at most T - L(w). These are enumerated vertex by vertex, each network
once; the vertices decided so far bound the slack of each cut. With the multipliers of a proof at
the root, T - L(w) is hardly more than the distance from the optimum."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Bools, Floats, Ints, SmallInts, Words
from ...foundation.environment import sparse
from ...foundation.errors import SettingError, option
from ...foundation.families import VertexSet
from ...foundation.graph import strong_components
from ...foundation.jit import inner, kernel
from ...foundation.progress import OnProgress, silent, stopping
from ...foundation.workers import Workers
from ...network import Network, cpdag
from ..reduction import without_twins
from ..run import Limits, Run, check, is_number, is_whole
from .cuts import ClusterCuts, ScoredSets, coefficients, no_cuts
from .exact import Exact
from .posterior import LARGEST, Posterior, consensus, posterior
from .proof import QUICK, ROOT, Proof
from .relaxation import Bounded, lagrangian

MOST = 100_000  # networks that are listed
SPARE = 5.0  # distance from the best up to which sets are kept for the multipliers
STEP = 0.25  # the first distance from the best in which the k best are looked for; it doubles
# probability of an edge from which on it is in doubt, and up to which it is not certain
DOUBT = 1e-3
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
    # of all networks of the candidate sets, if summed
    posterior: Posterior | None = field(default=None, repr=False)

    def bayes_factors(self) -> list[float]:
        """Return how many times more probable the best network is than each, given a uniform prior."""
        return [math.exp(self.scores[0] - score) for score in self.scores]

    @property
    def left_out(self) -> float | None:
        """Posterior mass of the networks of the candidate sets that are not listed; None where it is not bounded."""
        if self.posterior is None:
            return None
        return max(
            0.0, 1.0 - math.fsum(math.exp(score - self.posterior.log_mass) for score in self.scores)
        )

    def edge_shares(self, by_class: bool = False) -> Floats:
        """Return (n, n) [parent, child] the share of each edge among the listed networks, by posterior weight.

        With `by_class` each equivalence class counts once, and an edge that may go either way
        counts half each way."""
        numbers = [its[0] for its in self.classes()] if by_class else range(len(self.networks))
        weights = np.exp(np.array(self.scores) - self.scores[0])[numbers]
        shares = np.zeros((len(self.names), len(self.names)))
        for number, weight in zip(numbers, (weights / weights.sum()).tolist(), strict=True):
            network = Network(self.names, self.networks[number])
            pattern = cpdag(network) if by_class else None
            directed = (
                pattern.directed
                if pattern
                else [(p, v) for v, its in enumerate(network.parents) for p in its]
            )
            for parent, child in directed:
                shares[parent, child] += weight
            for a, b in pattern.undirected if pattern else ():
                shares[[a, b], [b, a]] += weight / 2.0
        return shares

    def edge_probabilities(self, by_class: bool = False) -> dict[tuple[str, str], float]:
        """Return {(parent, child): share} of `edge_shares`, the largest first."""
        return _by_name(self.names, self.edge_shares(by_class))

    def consensus(self) -> Network:
        """Return the network that is expected to be right for the most pairs of variables (`consensus`).

        The probabilities of edges are those of all networks of the candidate sets if known, else of
        the listed ones."""
        return consensus(self.names, self.posterior.edges if self.posterior else self.edge_shares())

    def classes(self) -> list[list[int]]:
        """Return the listed networks by equivalence class: networks of a class have the same independencies."""
        found: dict[Any, list[int]] = {}
        for number, parents in enumerate(self.networks):
            found.setdefault(cpdag(Network(self.names, parents)), []).append(number)
        return list(found.values())

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        probabilities = _by_name(self.names, self.posterior.edges) if self.posterior else None
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
                for score, factor, parents in zip(
                    self.scores, self.bayes_factors(), self.networks, strict=True
                )
            ],
            "equivalence_classes": self.classes(),
            "edges": [
                [parent, child, share]
                for (parent, child), share in self.edge_probabilities().items()
            ],
            "posterior_edges": probabilities
            and [[*edge, share] for edge, share in probabilities.items()],
            "left_out": self.left_out,
            "consensus": {
                name: list(found) for name, found in self.consensus().parent_names().items()
            },
            "complete": self.complete,
            "floor": self.floor,
            "status": self.status,
            "statistics": self.statistics,
            "seconds": round(self.seconds, 3),
        }

    def describe(self, most: int = 10) -> list[str]:
        """Return the first networks and the least certain edges, as lines for people."""
        best, classes = set(Network(self.names, self.networks[0]).edges), self.classes()
        class_of = {number: place for place, its in enumerate(classes, 1) for number in its}
        lines = [self._count(len(classes))]
        for number, (score, factor) in enumerate(
            zip(self.scores[:most], self.bayes_factors(), strict=False)
        ):
            edges = set(Network(self.names, self.networks[number]).edges)
            changed = (
                f", edges: {len(edges - best)} added, {len(best - edges)} removed" if number else ""
            )
            lines.append(
                f"{number + 1}. score {score:,.6f}, Bayes factor {factor:.3g}, class {class_of[number]}{changed}"
            )
        lines.append(self._mass())
        if doubtful := self.doubtful_edges():
            lines.append(
                f"the {min(2 * most, len(doubtful))} likeliest of {len(doubtful)} edges in doubt:"
            )
            edges_shown = list(doubtful.items())[: 2 * most]
            lines += [
                f"  {self.names[a]} -> {self.names[b]} {share:.3f}" for (a, b), share in edges_shown
            ]
        return lines

    def summary(self) -> str:
        """Return what is listed, and what is known about the rest, in two sentences."""
        first, second = self._count(len(self.classes())), self._mass()
        return f"{first}. {second[0].upper()}{second[1:]}."

    def _count(self, classes: int) -> str:
        many = "s" * (len(self.networks) != 1)
        kinds = f"{classes:,} equivalence class{'es' * (classes != 1)}"
        return f"{len(self.networks):,} network{many} in {kinds}: {self.status}"

    def _mass(self) -> str:
        if self.left_out is None:
            return (
                "the posterior mass of networks that are not listed is not bounded; "
                "probabilities of edges are their shares among the listed networks, by posterior weight"
            )
        return (
            f"certified: the listed networks have {100.0 * (1.0 - self.left_out):.4g} % of the posterior mass of all "
            "networks of the candidate sets, over which probabilities of edges are summed"
        )

    def doubtful_edges(self) -> dict[tuple[int, int], float]:
        """Return {(parent, child): probability} of the edges that are neither certain nor excluded.

        The probabilities are those of all networks of the candidate sets if known, else shares
        among the listed ones."""
        shares = self.posterior.edges if self.posterior else self.edge_shares()
        places = np.argwhere((shares > DOUBT) & (shares < 1.0 - DOUBT)).tolist()
        return {
            (a, b): float(shares[a, b])
            for a, b in sorted(places, key=lambda edge: -shares[tuple(edge)])
        }


def _by_name(names: tuple[str, ...], shares: Floats) -> dict[tuple[str, str], float]:
    """Return {(parent, child): share}, the largest first."""
    edges = {
        (names[a], names[b]): float(shares[a, b]) for a, b in np.argwhere(shares > 0.0).tolist()
    }
    return dict(sorted(edges.items(), key=lambda item: (-item[1], item[0])))


def alternatives(
    candidates: Candidates,
    best: int | None = None,
    *,
    within: float | None = None,
    classes: bool = False,
    limits: Limits | None = None,
    on_progress: OnProgress = silent,
) -> Alternatives:
    """Return the `best` networks, or all `within` a Bayes factor of the best one; with both, the fewer of the two.

    With `classes`, `best` counts equivalence classes, and all networks of these that score more
    than the rest are listed. Where no component has more than 20 variables, all networks are summed
    for their posterior probabilities.

    >>> from qubayes.candidates import example
    >>> found = alternatives(example(), 3)
    >>> len(found.networks), found.complete, found.left_out is not None
    (3, True, True)
    """
    if best is None and within is None:
        raise SettingError(
            "alternatives of what kind? give best, a number of networks, or within, a Bayes factor"
        )
    check_wanted(best, within)
    # of two networks that differ in such a member only the better one is listed
    if candidates.plain is not None:
        raise SettingError(
            "a list of networks takes no order of variables (before, not_ancestors); leave it out"
        )
    check(candidates)
    Exact().prepare()
    run = Run(candidates, limits or Limits(None), Workers(1), None, on_progress, "alternatives")
    wanted = Wanted(best, math.inf if within is None else math.log(within), classes)
    with stopping(run.stop):
        bounded, statistics = _bounded(candidates, run, min(wanted.farthest, SPARE))
        found = _enumerated(candidates, bounded, run, wanted)
        small = max(map(len, strong_components(candidates.families.arcs())), default=0) <= LARGEST
        summed = posterior(candidates, run) if small else None
    statistics = {**found.statistics, **statistics}
    return replace(
        found,
        posterior=summed,
        statistics=statistics,
        seconds=run.elapsed,
        interrupted=bool(run.stop[0]),
    )


def check_wanted(best: int | None, within: float | None) -> None:
    """Raise unless these are a number of networks and a Bayes factor, or None."""
    if best is not None and not (is_whole(best) and 1 <= best <= MOST):
        raise SettingError(f"{option('best', best)}; give a whole number from 1 to {MOST}")
    if within is not None and not (is_number(within) and 1 <= within < math.inf):
        raise SettingError(f"{option('within', within)}; give a Bayes factor, 1 or more")


class Wanted(NamedTuple):
    """Which networks are listed."""

    best: int | None  # at most this number
    farthest: float  # at most this far from the best
    classes: bool  # whether `best` counts equivalence classes

    def enough(self, found: Alternatives) -> bool:
        """Return whether at least `best` networks (or classes) are listed."""
        return (
            self.best is not None
            and len(found.classes() if self.classes else found.networks) >= self.best
        )

    def cut(self, found: Alternatives) -> Alternatives:
        """Return the list without what is beyond the number."""
        count = len(found.networks)
        if self.classes and self.best is not None:
            count = min((its[0] for its in found.classes()[self.best :]), default=count)
        elif self.best is not None:
            count = min(self.best, count)
        floor = found.scores[count] if count < len(found.scores) else found.floor
        return replace(
            found, networks=found.networks[:count], scores=found.scores[:count], floor=floor
        )


def _bounded(candidates: Candidates, run: Run, spare: float) -> tuple[Bounded, dict[str, int]]:
    """Return multipliers of all components together, over all candidate sets, and the statistics of the proof."""
    proof = Proof(without_twins(candidates, False), run)
    for each in proof.components:
        each.spare = spare
    proof.prove()
    cuts, weights = no_cuts(candidates.n), [np.zeros(0)]
    # multipliers as good as the relaxation allows make the enumeration short
    for each in proof.components:
        if not (
            run.over
            or (each.bounded and each.closes(each.bounded.loss))
            or len(each.sets.losses) > QUICK
        ):
            each.relax(run, ROOT)
        if each.bounded is not None:
            its = each.bounded.cuts
            inside, odd = (
                np.zeros((len(rows), candidates.n), np.uint8) for rows in (its.inside, its.odd)
            )
            inside[:, each.component.vertices], odd[:, each.component.vertices] = (
                its.inside,
                its.odd,
            )
            cuts = cuts.join(ClusterCuts(its.start, inside, its.needs, odd, its.divisors))
            weights.append(each.bounded.weights)
    sets = ScoredSets.of(candidates.families, candidates.scores)
    allowed: Bools = np.ones(len(sets.losses), np.bool_)
    scale = sum(each.scale for each in proof.components)
    return lagrangian(sets, cuts, np.concatenate(weights), allowed, scale), proof.statistics


def _enumerated(candidates: Candidates, bounded: Bounded, run: Run, wanted: Wanted) -> Alternatives:
    """Enumerate in distances that double until there are enough networks, or all within the farthest."""
    sets = ScoredSets.of(candidates.families, candidates.scores)
    least, tried = math.fsum(sets.losses[run.choice].tolist()), 0
    # of any network
    margin, farthest_loss = 1e-9 * max(1.0, abs(run.score)), float(sets.losses.sum())
    distance, status = wanted.farthest, "all networks within the Bayes factor"
    if wanted.best is not None:
        distance, status = min(STEP, wanted.farthest), "the best ones"
    while True:
        walk, finished = _walk(sets, bounded, least + distance + margin, run)
        tried += int(walk.counts[2])
        choices = walk.found[: walk.counts[1]] if walk.counts[1] else run.choice[None]
        scores = [math.fsum(candidates.scores[choice].tolist()) for choice in choices]
        ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        floor = max(run.score - distance, scores[ranked[0]] - wanted.farthest)
        ranked = [i for i in ranked if scores[i] >= floor - margin]
        if not finished:
            status = f"{'time limit reached' if run.over else 'too many to enumerate'}; others may be missing"
        found = Alternatives(
            candidates.names,
            tuple(candidates.families.sets_at(choices[i]) for i in ranked),
            tuple(scores[i] for i in ranked),
            floor,
            finished,
            status,
            {"tried": tried},
            run.elapsed,
        )
        if (
            not finished
            or distance >= wanted.farthest
            or wanted.enough(found)
            or distance > farthest_loss
        ):
            return wanted.cut(found)
        distance = min(2.0 * distance, wanted.farthest)


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

    @classmethod
    def of(cls, sets: ScoredSets, bounded: Bounded, limit: float) -> "Options":
        """Return the sets of networks that lose at most `limit`.

        Each vertex shares much weight of clusters with those before it: slack shows early.
        """
        n, cuts = sets.families.n, bounded.cuts
        least = (
            np.minimum.reduceat(bounded.prices, sets.families.vertex_start[:-1])
            if n
            else np.zeros(0)
        )
        costs = bounded.prices - least[sets.owners]
        usable = np.flatnonzero((costs <= limit - bounded.loss) & (sets.losses <= limit))
        weights = np.repeat(bounded.weights, np.diff(cuts.start)) / np.maximum(
            cuts.inside.sum(axis=1), 1
        )
        shared = (cuts.inside.T * weights) @ cuts.inside
        nearness, vertices = shared.sum(axis=1), list[int]()
        for _ in range(n):
            vertices.append(int(np.argmax(nearness)))
            nearness = shared[vertices].sum(axis=0)
            nearness[vertices] = -np.inf
        rank = np.argsort(vertices)[sets.owners] if n else sets.owners
        usable = usable[np.lexsort((costs[usable], rank[usable]))]
        start = np.searchsorted(rank[usable], np.arange(n + 1))
        added = coefficients(sets, usable, cuts)
        most = np.maximum.reduceat(added, start[:-1], axis=1) if n else added
        short = sparse.csc_array(most[:, rank[usable]] - added)
        return cls(
            start,
            np.array(vertices, np.int64),
            usable,
            costs[usable],
            sets.losses[usable],
            sets.families.set_start,
            sets.families.members,
            short.indptr.astype(np.int64),
            short.indices.astype(np.int32),
            short.data.astype(np.int32),
            most.sum(axis=1) - cuts.rhs,
            bounded.weights,
        )


class Walk(NamedTuple):
    """State of the enumeration; level d has the first d vertices decided."""

    place: Ints  # (n + 1,) the next option of each level
    cost: Floats  # (n + 1,) of the options taken so far
    loss: Floats  # (n + 1,)
    above: Words  # (n + 1, n, words) ancestors of each vertex at each level
    short: Ints  # (cuts,) how much less the options taken so far add to each cut
    counts: Ints  # level; networks found; sets tried
    found: Ints  # (most, n) numbers of candidate sets by vertex


def _walk(sets: ScoredSets, bounded: Bounded, limit: float, run: Run) -> tuple[Walk, bool]:
    """Enumerate the networks that lose at most `limit`; return them, and whether these are all."""
    n, budget, options = sets.families.n, limit - bounded.loss, Options.of(sets, bounded, limit)
    walk = Walk(
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1),
        np.zeros(n + 1),
        np.zeros((n + 1, n, (n + 63) // 64), np.uint64),
        np.zeros(bounded.cuts.total, np.int64),
        np.zeros(3, np.int64),
        np.zeros((MOST, n), np.int64),
    )
    walk.cost[0] = bounded.weights @ np.maximum(-options.spare, 0)
    with run.paused():
        going = _list_networks(options, walk, budget, limit, 0)  # compiles
    while going == 1 and walk.counts[2] < WORK and not run.over:
        going = _list_networks(options, walk, budget, limit, SLICE)
        run.report(f"{int(walk.counts[1]):,} networks")
    return walk, going == 0


@inner
def _take(options: Options, vertex: int, number: int, above: Words, here: Words) -> bool:
    """Set the ancestors of each vertex once `vertex` has the set; return False if the set would close a cycle."""
    one = np.uint64(1)
    word, bit = vertex >> 6, one << np.uint64(vertex & 63)
    parents = range(options.set_start[number], options.set_start[number + 1])
    for k in parents:
        if above[options.members[k], word] & bit:
            return False
    for x in range(len(above)):
        for w in range(here.shape[1]):
            here[x, w] = above[x, w]
        if x == vertex or above[x, word] & bit:
            for k in parents:
                parent = options.members[k]
                here[x, parent >> 6] |= one << np.uint64(parent & 63)
                for w in range(here.shape[1]):
                    here[x, w] |= above[parent, w]
    return True


@kernel
def _list_networks(options: Options, walk: Walk, budget: float, limit: float, work: int) -> int:
    """Continue the enumeration; return 0 at its end, 1 after `work` sets, 2 if there is no place for a network."""
    n = len(options.vertices)
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
            count += 1
        i = walk.place[level]
        if (
            level == n
            or i == options.start[level + 1]
            or walk.cost[level] + options.costs[i] > budget
        ):
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
        if not _take(
            options,
            options.vertices[level],
            options.numbers[i],
            walk.above[level],
            walk.above[level + 1],
        ):
            continue
        for k in range(options.short_start[i], options.short_start[i + 1]):
            walk.short[options.short_cuts[k]] += options.short_by[k]
        level += 1
        walk.cost[level], walk.loss[level] = cost, loss
        walk.place[level] = options.start[level] if level < n else 0
    walk.counts[0], walk.counts[1] = level, count
    walk.counts[2] += work - left
    return going
