"""Networks close to the best: the k best, or all within a Bayes factor (docs/alternatives.md)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Bools, Floats, Ints
from ...foundation.errors import SettingError, option
from ...foundation.families import VertexSet
from ...foundation.graph import strong_components
from ...foundation.progress import OnProgress, silent
from ...foundation.settings import is_number, is_whole
from ...foundation.stop import Interrupt
from ...foundation.workers import Workers
from ...network import Cpdag, Network, cpdag
from ..reduction import without_twins
from ..run import Limits, Run, check
from .cuts import ScoredSets, no_cuts
from .enumeration import list_networks
from .exact import Exact
from .plan import PLAN, Plan
from .proof import Proof
from .relaxation import Bounded, lagrangian_bounds
from .sums import MOST_SUMMED_VERTICES, NetworkSums, consensus, sum_networks

MOST_NETWORKS = 100_000  # that are listed
_SPARE = 5.0  # distance from the best up to which sets are kept for the multipliers
# The first distance from the best in which the k best are looked for; it doubles.
_FIRST_DISTANCE = 0.25
# An edge with a probability above this, and below 1 minus this, is in doubt.
_DOUBT = 1e-3


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
    # Of all networks of the candidate sets, if summed.
    posterior: NetworkSums | None = field(default=None, repr=False)
    # (n, n) pairs whose direction the data or the model tell, as in `cpdag`
    told: Bools | None = field(default=None, repr=False, compare=False)

    def bayes_factors(self) -> list[float]:
        """Return how many times more probable the best network is than each (uniform prior)."""
        return [math.exp(self.scores[0] - score) for score in self.scores]

    @property
    def left_out(self) -> float | None:
        """Posterior mass of the networks that are not listed; None where it is not bounded."""
        if self.posterior is None:
            return None
        log_mass = self.posterior.log_mass
        return max(0.0, 1.0 - math.fsum(math.exp(score - log_mass) for score in self.scores))

    @property
    def known_edges(self) -> Floats:
        """(n, n) probabilities of edges: over all networks if summed, else over those listed."""
        return self.edge_shares() if self.posterior is None else self.posterior.edges

    def network(self, number: int) -> Network:
        """Return a listed network."""
        return Network(self.names, self.networks[number])

    def edge_shares(self, by_class: bool = False) -> Floats:
        """Return (n, n), by parent and child, the posterior share of listed networks with the edge.

        With `by_class` each equivalence class counts once, and an edge that may go either way
        counts half each way."""
        numbers = list(range(len(self.networks)))
        if by_class:
            numbers = [members[0] for members in self.classes()]
        weights = np.exp(np.array(self.scores) - self.scores[0])[numbers]
        shares = np.zeros((len(self.names), len(self.names)))
        for number, weight in zip(numbers, (weights / weights.sum()).tolist(), strict=True):
            if by_class:
                _add_pattern(shares, self._class_of(number), weight)
            else:
                # edge by edge: an index by a list of few parents takes ten times as long
                for child, parents in enumerate(self.networks[number]):
                    for parent in parents:
                        shares[parent, child] += weight
        return shares

    def edge_probabilities(self, by_class: bool = False) -> dict[tuple[str, str], float]:
        """Return {(parent, child): share} of `edge_shares`, the largest first."""
        return _by_name(self.names, self.edge_shares(by_class))

    def consensus(self) -> Network:
        """Return the network expected to be right for the most pairs of variables (`consensus`).

        It uses `known_edges`."""
        return consensus(self.names, self.known_edges)

    def classes(self) -> list[list[int]]:
        """Return the listed networks by equivalence class: a class has the same independencies."""
        found: dict[Any, list[int]] = {}
        for number in range(len(self.networks)):
            found.setdefault(self._class_of(number), []).append(number)
        return list(found.values())

    def _class_of(self, number: int) -> Cpdag:
        """Return the equivalence class of a listed network."""
        return cpdag(self.network(number), self.told)

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        known = None
        if self.posterior is not None:
            known = _edge_list(_by_name(self.names, self.posterior.edges))
        consensus = self.consensus().parent_names().items()
        return {
            "networks": self._networks_as_json(),
            "equivalence_classes": self.classes(),
            "edges": _edge_list(self.edge_probabilities()),
            "posterior_edges": known,
            "left_out": self.left_out,
            "consensus": {name: list(parents) for name, parents in consensus},
            "complete": self.complete,
            "floor": self.floor,
            "status": self.status,
            "statistics": self.statistics,
            "seconds": round(self.seconds, 3),
        }

    def _networks_as_json(self) -> list[dict[str, Any]]:
        found = []
        factors = self.bayes_factors()
        for number, (score, factor) in enumerate(zip(self.scores, factors, strict=True)):
            parents = self.network(number).parent_names().items()
            network = {name: list(members) for name, members in parents}
            found.append({"score": score, "bayes_factor": factor, "network": network})
        return found

    def describe(self, most: int = 10) -> list[str]:
        """Return the first networks and the least certain edges, as lines for people."""
        classes = self.classes()
        lines = [self._count(len(classes)), *self._describe_networks(most, classes), self._mass()]
        doubtful = self.doubtful_edges()
        shown = list(doubtful.items())[: 2 * most]
        if doubtful:
            lines.append(f"the {len(shown)} likeliest of {len(doubtful)} edges in doubt:")
        for (a, b), share in shown:
            lines.append(f"  {self.names[a]} -> {self.names[b]} {share:.3f}")
        return lines

    def _describe_networks(self, most: int, classes: list[list[int]]) -> Iterator[str]:
        class_of = {}
        for place, members in enumerate(classes, 1):
            class_of.update(dict.fromkeys(members, place))
        best = set(self.network(0).edges)
        factors = self.bayes_factors()
        for number, score in enumerate(self.scores[:most]):
            edges = set(self.network(number).edges)
            facts = f"Bayes factor {factors[number]:.3g}, class {class_of[number]}"
            if number:
                facts += f", edges: {len(edges - best)} added, {len(best - edges)} removed"
            yield f"{number + 1}. score {score:,.6f}, {facts}"

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
                "the posterior mass of networks that are not listed is not bounded; probabilities "
                "of edges are their shares among the listed networks, by posterior weight"
            )
        share = 100.0 * (1.0 - self.left_out)
        return (
            f"certified among candidate sets: the listed networks have {share:.4g} % of the "
            "posterior mass of all networks of the candidate sets, over which probabilities of "
            "edges are summed; `posterior` sums over all parent sets"
        )

    def doubtful_edges(self) -> dict[tuple[int, int], float]:
        """Return {(parent, child): probability} of the edges in doubt, by `known_edges`."""
        shares = self.known_edges
        edges = np.argwhere((shares > _DOUBT) & (shares < 1.0 - _DOUBT)).tolist()
        edges.sort(key=lambda edge: -shares[tuple(edge)])
        return {(parent, child): float(shares[parent, child]) for parent, child in edges}


def _add_pattern(shares: Floats, pattern: Cpdag, weight: float) -> None:
    """Add the weight of an equivalence class to its edges."""
    for parent, child in pattern.directed:
        shares[parent, child] += weight
    for a, b in pattern.undirected:
        shares[a, b] += weight / 2.0
        shares[b, a] += weight / 2.0


def _edge_list(probabilities: dict[tuple[str, str], float]) -> list[list[Any]]:
    return [[parent, child, share] for (parent, child), share in probabilities.items()]


def _by_name(names: tuple[str, ...], shares: Floats) -> dict[tuple[str, str], float]:
    """Return {(parent, child): share}, the largest first."""
    edges = np.argwhere(shares > 0.0).tolist()
    named = {(names[a], names[b]): float(shares[a, b]) for a, b in edges}
    return dict(sorted(named.items(), key=lambda item: (-item[1], item[0])))


def alternatives(
    candidates: Candidates,
    best: int | None = None,
    *,
    within: float | None = None,
    classes: bool = False,
    told: Bools | None = None,
    limits: Limits | None = None,
    on_progress: OnProgress = silent,
    interrupt: Interrupt | None = None,
) -> Alternatives:
    """Return the `best` networks, or all `within` a Bayes factor of the best one.

    With both, the fewer of the two. With `classes`, `best` counts equivalence classes, and all
    networks of these that score more than the rest are listed. `told` are pairs of variables whose
    direction the data or the model tell, as in `cpdag`: `score.told(dataset)` of a table with
    experiments, or of one with numbers and states. Where no component has more than 20 variables,
    all networks are summed for their posterior probabilities.

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
    # Of two networks that differ in a variable before another one only the better one is listed.
    if candidates.plain is not None:
        raise SettingError(
            "a list of networks takes no order of variables (before, not_ancestors); leave it out"
        )
    check(candidates)
    Exact().prepare()
    limits = limits or Limits(None)
    run = Run(candidates, limits, Workers(1), None, on_progress, "alternatives", interrupt)
    wanted = Wanted(best, math.inf if within is None else math.log(within), classes, told)
    with run.interrupt.listening():
        return list_alternatives(candidates, run, wanted)


def check_wanted(best: int | None, within: float | None) -> None:
    """Raise unless these are a number of networks and a Bayes factor, or None."""
    if best is not None and not (is_whole(best) and 1 <= best <= MOST_NETWORKS):
        raise SettingError(f"{option('best', best)}; give a whole number from 1 to {MOST_NETWORKS}")
    if within is not None and not (is_number(within) and 1 <= within < math.inf):
        raise SettingError(f"{option('within', within)}; give a Bayes factor, 1 or more")


class Wanted(NamedTuple):
    """Which networks are listed."""

    best: int | None  # at most this number
    farthest: float  # at most this far from the best
    classes: bool  # whether `best` counts equivalence classes
    told: Bools | None = None  # pairs whose direction is known, as in `cpdag`

    def enough(self, found: Alternatives) -> bool:
        """Return whether at least `best` networks (or classes) are listed."""
        if self.best is None:
            return False
        return len(found.classes() if self.classes else found.networks) >= self.best

    def cut(self, found: Alternatives) -> Alternatives:
        """Return the list without what is beyond the number."""
        if self.best is None:
            return found
        count = min(self.best, len(found.networks))
        if self.classes:
            rest = found.classes()[self.best :]
            count = min((members[0] for members in rest), default=len(found.networks))
        floor = found.scores[count] if count < len(found.scores) else found.floor
        return replace(
            found, networks=found.networks[:count], scores=found.scores[:count], floor=floor
        )


def list_alternatives(
    candidates: Candidates,
    run: Run,
    wanted: Wanted,
    *,
    most: int = MOST_NETWORKS,
    plan: Plan = PLAN,
) -> Alternatives:
    """Return the wanted networks: a proof for its multipliers, the enumeration, then the sums."""
    bounded, statistics = _bounded(candidates, run, min(wanted.farthest, _SPARE), plan)
    found = _enumerated(candidates, bounded, run, wanted, most)
    components = strong_components(candidates.families.arcs())
    small = max(map(len, components), default=0) <= MOST_SUMMED_VERTICES
    return replace(
        found,
        posterior=sum_networks(candidates, run) if small else None,
        statistics={**found.statistics, **statistics},
        seconds=run.elapsed,
        interrupted=bool(run.stop[0]),
    )


def _bounded(
    candidates: Candidates, run: Run, spare: float, plan: Plan
) -> tuple[Bounded, dict[str, int]]:
    """Return multipliers over all candidate sets, and the statistics of the proof."""
    proof = Proof(without_twins(candidates, False), run, plan)
    for each in proof.components:
        each.spare = spare
    proof.prove()
    cuts = no_cuts(candidates.n)
    weights = [np.zeros(0)]
    for each in proof.components:
        # Multipliers as good as the relaxation allows make the enumeration short.
        closed = each.bounded is not None and each.closes(each.bounded.cost)
        if not (run.over or closed or len(each.sets.costs) > plan.cheap_sets):
            each.relax(run, plan.root)
        if each.bounded is not None:
            cuts = cuts.join(each.bounded.cuts.among(each.component.vertices, candidates.n))
            weights.append(each.bounded.weights)
    sets = ScoredSets.of(candidates.families, candidates.scores)
    allowed: Bools = np.ones(len(sets.costs), np.bool_)
    scale = sum(each.scale for each in proof.components)
    bounded = lagrangian_bounds(sets, cuts, np.concatenate(weights), allowed, scale)
    return bounded, proof.statistics


def _enumerated(
    candidates: Candidates, bounded: Bounded, run: Run, wanted: Wanted, most: int
) -> Alternatives:
    """Enumerate in distances that double until there are enough networks, or all are listed."""
    sets = ScoredSets.of(candidates.families, candidates.scores)
    best = math.fsum(sets.costs[run.choice].tolist())
    margin = 1e-9 * max(1.0, abs(run.score))
    farthest = float(sets.costs.sum())  # no network is farther from the best
    status = "all networks within the Bayes factor"
    distance = wanted.farthest
    if wanted.best is not None:
        status = "the best ones"
        distance = min(_FIRST_DISTANCE, wanted.farthest)
    tried = 0
    while True:
        listed = list_networks(sets, bounded, best + distance + margin, most, run)
        tried += listed.tried
        if not listed.finished:
            reason = "time limit reached" if run.over else "too many to enumerate"
            status = f"{reason}; others may be missing"
        choices = listed.choices if len(listed.choices) else run.choice[None]
        found = _ranked(candidates, choices, run.score - distance, wanted, margin)
        everything = distance >= wanted.farthest or distance > farthest
        if not listed.finished or everything or wanted.enough(found):
            found = replace(
                found, complete=listed.finished, status=status, statistics={"tried": tried}
            )
            return wanted.cut(found)
        distance = min(2.0 * distance, wanted.farthest)


def _ranked(
    candidates: Candidates, choices: Ints, floor: float, wanted: Wanted, margin: float
) -> Alternatives:
    """Return the networks that score `floor` or more and are no farther from the best one."""
    scores = [math.fsum(candidates.scores[choice].tolist()) for choice in choices]
    ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    floor = max(floor, scores[ranked[0]] - wanted.farthest)
    ranked = [i for i in ranked if scores[i] >= floor - margin]
    return Alternatives(
        names=candidates.names,
        networks=tuple(candidates.families.sets_at(choices[i]) for i in ranked),
        scores=tuple(scores[i] for i in ranked),
        floor=floor,
        complete=False,
        status="",
        statistics={},
        seconds=0.0,
        told=wanted.told,
    )
