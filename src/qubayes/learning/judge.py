"""`judge`: how good a given network is, beside the optimum and on rows that were held out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ..candidates import Knowledge
from ..candidates.knowledge import Allowed
from ..data import Dataset, ReadSettings, read
from ..foundation.arrays import Bools
from ..foundation.errors import DataError, SettingError, some
from ..foundation.graph import edges_of, reachable
from ..foundation.progress import OnProgress, silent
from ..foundation.summary import aligned, counted
from ..foundation.workers import Workers
from ..network import (
    Cpdag,
    Network,
    compare,
    cpdag,
    fit,
    in_states_of,
    log_likelihood,
    read_network,
    vertex_scores,
)
from ..scores import LocalScore, Score, ScoreFunction, local_score
from ..settings import (
    Arities,
    BinMethod,
    Bins,
    DataFormat,
    LearnSettings,
    Missing,
    Numbers,
    Prior,
)
from .learned import Learned
from .pipeline import learn_with

_ROUNDING = 1e-9  # relative: scores that differ by no more are equal
LARGEST_EXPONENT = 23.0  # logarithm of the largest Bayes factor that is printed as a number: 10^10


class EdgeSupport(NamedTuple):
    """An edge and the score that its child loses without it; negative if the edge costs score."""

    parent: str
    child: str
    nats: float


class Replacement(NamedTuple):
    """Better parents of one variable, the others unchanged, and the score that they gain."""

    child: str
    parents: tuple[str, ...]
    nats: float


class HeldOut(NamedTuple):
    """Log-likelihood of held-out rows; the probabilities are fitted by bdeu to the other rows."""

    rows: int
    network: float
    best: float
    empty: float  # of the graph without edges


@dataclass(frozen=True, slots=True)
class Judgement:
    """A network beside the best one for the same rows, with the same score and states."""

    network: Network = field(repr=False)
    # the best network; its bound holds for the sets that were searched
    learned: Learned = field(repr=False)
    score: float
    edges: tuple[EdgeSupport, ...] = field(repr=False)  # the least support first
    replacements: tuple[Replacement, ...] = field(repr=False)  # the largest gain first
    # variables whose parents were not searched: too many, or against prior knowledge
    outside: tuple[str, ...]
    held_out: HeldOut | None = None

    @property
    def below(self) -> float:
        """Score of the best network found less the score of this one, in nats."""
        return self._below(self.learned.solution.score)

    @property
    def below_at_most(self) -> float:
        """Bound on the score of the searched networks less the score of this one, in nats."""
        return self._below(self.learned.solution.bound)

    @property
    def optimal(self) -> bool:
        """True if no searched network scores more, up to rounding, and this one was searched."""
        searched = not self.outside and not self.learned.solution.only_grown
        return searched and self.below_at_most <= 0.0

    @property
    def bayes_factor(self) -> float | None:
        """How many times as probable the best network is, with equal priors; None for aic, loglik.

        With bic it is an approximation.
        """
        rows = self.learned.dataset.rows
        if not self.learned.settings.chosen_score.is_evidence(rows):
            return None
        return math.exp(self.below) if self.below < 700.0 else math.inf

    @property
    def equivalence_class(self) -> Cpdag | None:
        """The equivalence class, as far as the data tell directions.

        None for a score that may differ inside it."""
        learned = self.learned
        if not learned.settings.chosen_score.is_equivalent:
            return None
        return cpdag(self.network, learned.settings.chosen_score.told(learned.dataset))

    def _below(self, score: float) -> float:
        """Return how far this network is below a score; 0 for a difference that is rounding."""
        difference = score - self.score
        return difference if abs(difference) > _ROUNDING * max(1.0, abs(self.score)) else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes judge --json` prints."""
        solution = self.learned.solution
        graph = self.equivalence_class
        factor = self.bayes_factor
        return {
            "score": self.score,
            "score_name": solution.stamp.score,
            "ess": solution.stamp.ess,
            "rows": self.learned.dataset.rows,
            "n": self.network.n,
            "max_parents": self.learned.settings.search.max_parents,
            "best": solution.as_json(),
            "below": self.below,
            "below_at_most": self.below_at_most,
            "bayes_factor": factor if factor is None or factor < math.inf else None,
            "log_bayes_factor": None if factor is None else self.below,
            "optimal": self.optimal,
            "outside": list(self.outside),
            "edges": [support._asdict() for support in self.edges],
            "replacements": [replacement._asdict() for replacement in self.replacements],
            "equivalence_class": graph
            and {"compelled": len(graph.directed), "reversible": len(graph.undirected)},
            "compared_with_best": compare(self.network, self.learned.network).as_json(),
            "joined": [[*edge, share] for edge, share in self._probabilities.items()],
            "held_out": self.held_out and self.held_out._asdict(),
            "interrupted": self.learned.interrupted,
        }

    def describe(self, most: int = 5) -> list[str]:
        """Return the judgement in lines for people, with `most` edges and replacements."""
        lines = [f"{self._distance()}.", "", *aligned(self._rows())]
        if self.outside:
            largest = self.learned.settings.search.max_parents
            lines += [
                "",
                f"The parents of {some(self.outside)} were not searched: "
                f"more than {largest}, or against the prior knowledge.",
            ]
        if self.edges:
            lines += ["", "Edges of the least support, and the nats that the score loses without:"]
            lines += aligned(
                [(f"{e.parent} -> {e.child}", f"{e.nats:,.2f}") for e in self.edges[:most]]
            )
        if self.learned.posterior is not None:
            lines += ["", "Edges that are least probable, in either direction:"]
            shares = sorted(self._probabilities.items(), key=lambda pair: pair[1])
            lines += aligned([(f"{a} -> {b}", f"{share:.3f}") for (a, b), share in shares[:most]])
        if self.replacements:
            lines += ["", "Better parents of one variable, and the nats that the score gains:"]
            lines += aligned(
                [
                    (f"{each.child} <- {', '.join(each.parents) or 'nothing'}", f"{each.nats:,.2f}")
                    for each in self.replacements[:most]
                ]
            )
        return lines

    @property
    def _probabilities(self) -> dict[tuple[str, str], float]:
        """The posterior probability that each edge of the network is there, in any direction."""
        known = self.learned.posterior
        if known is None:
            return {}
        index = {name: vertex for vertex, name in enumerate(known.names)}
        joined = known.joined
        return {(a, b): float(joined[index[a], index[b]]) for a, b in self.network.edges}

    def _rows(self) -> list[tuple[str, str]]:
        """Return scores, counts of edges and held-out likelihood: names and values."""
        solution, graph = self.learned.solution, self.equivalence_class
        edges = f"{len(self.edges):,}"
        if graph is not None:
            edges += (
                f"; in the equivalence class {len(graph.directed):,} compelled "
                f"and {len(graph.undirected):,} reversible"
            )
        distance = compare(self.network, self.learned.network)
        known = solution.describe_gap()
        if not solution.proved and not solution.only_grown:
            known = f"not proved; at most {solution.bound:,.2f} is possible{solution.scope}"
        rows = [
            ("score", f"{self.score:,.2f}   ({solution.stamp.title})"),
            ("best network", f"{solution.score:,.2f}   {known}"),
            ("data", counted(self.learned.dataset.rows, "row")),
            ("edges", edges),
            (
                "distance",
                f"{distance.distance} to the best network (structural Hamming distance), "
                f"{distance.cpdag_distance} between the classes",
            ),
        ]
        if self.held_out:
            number, *values = self.held_out
            this, best, empty = (f"{value / number:,.2f}" for value in values)
            words = f"{this}; best network {best}; no edges {empty}"
            rows.append(("likelihood", f"log per row on {number:,} held-out rows: {words}"))
        return rows

    def _distance(self) -> str:
        """Return how far the network is from the optimum, in words."""
        low = self.below
        high = self.below_at_most
        if self.learned.solution.only_grown:
            where = "below" if low >= 0 else "above"
            found = f"{abs(low):,.2f} nats {where} the best network that was found"
            return f"{found}; nothing is proved of other parent sets"
        if self.optimal:
            return "Optimal: no network that was searched scores higher"
        if low < 0:
            rest = ", and than any that was searched"
            if high > 0:
                rest = f"; at most {high:,.2f} nats below the optimum"
            return f"{-low:,.2f} nats more than the best network that was found{rest}"
        text = f"{low:,.2f} to {high:,.2f} nats below the optimum"
        if self.learned.solution.proved:
            text = f"{low:,.2f} nats below the optimum"
        factor = self.bayes_factor
        if factor is None:
            return text
        shown = f"{factor:.3g}" if low <= LARGEST_EXPONENT else f"e^{low:,.1f}"
        about = "" if self.learned.settings.chosen_score.is_exact_evidence else "about "
        return f"{text}; Bayes factor of the best network against this one {about}{shown}"


def judge(
    data: Any,
    network: Network | str | PathLike[str],
    max_parents: int | Literal["all"] | None = None,
    *,
    score: str | Score | LocalScore | ScoreFunction = "auto",
    ess: float = 1.0,
    penalty: float = 1.0,
    knowledge: Knowledge | str | PathLike[str] | None = None,
    possible_parents: int | None = None,
    max_table: int = 10**6,
    memory: float | str | None = None,
    solver: str = "auto",
    time_limit: float | None = None,
    moves: int | None = None,
    patience: float | None = None,
    seed: int = 0,
    bootstrap: int = 0,
    posterior: float | None = None,
    prior: Prior = "uniform",
    impute_rounds: int = 8,
    completions: int = 5,
    best: int | None = None,
    within: float | None = None,
    reading: ReadSettings | None = None,
    missing: Missing = "error",
    numbers: Numbers = "gaussian",
    bins: Bins | None = None,
    bin_method: BinMethod = "quantile",
    arities: str | Path | Arities | None = None,
    ignore: Sequence[str] = (),
    weights: str | Sequence[int] | None = None,
    format: DataFormat | None = None,
    interventions: Any = None,
    holdout: Any = None,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Judgement:
    """Return how good the network is for the data: a file, a data frame or a `Dataset`.

    The best network is learned with these options of `learn` among the variables and states of the
    network. `holdout` is other data of the same columns, or the share of the rows that are held out
    (drawn by the seed): then everything else is computed from the other rows.

    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> table = polars.DataFrame({"rain": rain, "wet": rain, "coin": [0, 1, 0, 1, 0, 0, 1, 1] * 20})
    >>> found = judge(table, Network(("rain", "wet", "coin"), ((), (), (0,))))
    >>> edges = [(edge.parent, edge.child, edge.nats < 0) for edge in found.edges]
    >>> found.optimal, edges, found.replacements[0].parents
    (False, [('rain', 'coin', True)], ('wet',))
    """
    settings = LearnSettings.of(locals())
    network = replace(
        network if isinstance(network, Network) else read_network(Path(network)), tables=None
    )
    network, rows = _in_one_spelling(
        network, read(data, settings.reading, like=network), settings.reading
    )
    held: Any = holdout
    if isinstance(holdout, int | float):
        rows, held = _split(rows, float(holdout), settings.seed)
    learned, _ = learn_with(settings, rows, workers=workers, on_progress=on_progress)
    rows = learned.dataset  # with values in missing cells, if these were imputed
    score = learned.settings.chosen_score
    known = settings.knowledge or Knowledge()
    allowed = known.resolve(network.names, learned.settings.search.most(len(network.names)))
    priors = allowed.prior_matrix()
    bonuses = [
        float(priors[child, list(parents)].sum()) for child, parents in enumerate(network.parents)
    ]
    own = vertex_scores(network, rows, score) + bonuses
    edges = []
    for parent, child in edges_of(network.parents):
        others = [other for other in network.parents[child] if other != parent]
        with_edge = float(own[child] - bonuses[child] + priors[child, parent])
        support = with_edge - local_score(rows, child, others, score)
        edges.append(EdgeSupport(network.names[parent], network.names[child], support))
    return Judgement(
        network,
        learned,
        math.fsum(own.tolist()),
        tuple(sorted(edges, key=lambda edge: edge.nats)),
        _replacements(network, learned, own.tolist()),
        _outside(network, allowed),
        None
        if held is None
        else _held_out(network, learned, read(held, _reading_of_other_rows(settings), like=rows)),
    )


def _reading_of_other_rows(settings: LearnSettings) -> ReadSettings | None:
    """Return how held-out rows are read: weights that were given row by row are not theirs."""
    reading = settings.reading
    if reading is None or reading.weights is None or isinstance(reading.weights, str):
        return reading
    return replace(reading, weights=None)


def _in_one_spelling(
    network: Network, dataset: Dataset, reading: ReadSettings | None
) -> tuple[Network, Dataset]:
    """Return both with the same columns and states: declared, the network's or the data's."""
    plain = replace(network, states=None)
    if network.states is None or (reading is not None and reading.arities is not None):
        return plain, in_states_of(plain, dataset)
    try:
        return network, in_states_of(network, dataset)
    except DataError:
        return plain, in_states_of(plain, dataset)


def _split(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, Dataset]:
    """Return the rows to learn from and those to hold out, a random share."""
    count = round(share * dataset.rows)
    if not 0 < count < dataset.rows:
        raise SettingError(
            f"a share of {share:g} of {dataset.rows} rows is held out; "
            "give a number between 0 and 1 that leaves at "
            "least one row on both sides, or other data"
        )
    order = np.random.default_rng(seed).permutation(dataset.rows)
    learned, held = np.sort(order[count:]), np.sort(order[:count])
    return dataset.take(learned), dataset.take(held)


def _replacements(network: Network, learned: Learned, own: list[float]) -> tuple[Replacement, ...]:
    """Return for each variable the best set without its descendants, where that gains score."""
    candidates, names = learned.candidates, network.names
    arcs = _arcs(network)
    for child in range(network.n):
        # required parents, and what comes before the child
        arcs[list(candidates.base(child)), child] = True
    best = candidates.families.best_inside(~reachable(arcs))
    parents = candidates.parents_at(np.where(best < 0, candidates.families.vertex_start[:-1], best))
    gains = [
        float(candidates.scores[number]) - own[child] for child, number in enumerate(best.tolist())
    ]
    found = [
        Replacement(names[child], tuple(names[p] for p in parents[child]), gain)
        for child, gain in enumerate(gains)
        if best[child] >= 0 and gain > _ROUNDING * max(1.0, abs(own[child]))
    ]
    return tuple(sorted(found, key=lambda each: -each.nats))


def _outside(network: Network, allowed: Allowed) -> tuple[str, ...]:
    """Return the variables whose parents no searched network has."""
    reached = reachable(_arcs(network))
    barred = {first for first, second in allowed.before if reached[second, first]}
    barred |= {second for first, second in allowed.ancestors if not reached[first, second]}
    families = zip(network.parents, allowed.required, allowed.excluded, allowed.limits, strict=True)
    return tuple(
        network.names[child]
        for child, (parents, required, excluded, limit) in enumerate(families)
        if len(parents) > limit
        or set(required) - set(parents)
        or set(excluded) & set(parents)
        or child in barred
    )


def _arcs(network: Network) -> Bools:
    """Return (n, n) whether a is a parent of b, at [a, b]."""
    arcs: Bools = np.zeros((network.n, network.n), np.bool_)
    for child, parents in enumerate(network.parents):
        arcs[list(parents), child] = True
    return arcs


def _held_out(network: Network, learned: Learned, held: Dataset) -> HeldOut:
    """Return the log-likelihoods of the rows; with the prior of bdeu no row is impossible."""
    prior = Score("bdeu", learned.settings.chosen_score.ess)
    graphs = network.parents, learned.network.parents, ((),) * network.n
    fitted = [fit(Network(network.names, parents), learned.dataset, prior) for parents in graphs]
    return HeldOut(held.rows, *(log_likelihood(each, held) for each in fitted))
