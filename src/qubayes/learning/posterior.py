"""`posterior`: how probable each edge and each feature of a network is, given the data."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ..candidates import (
    Candidates,
    CandidateSearch,
    SlackSets,
    slack_sets,
    stamp_of,
)
from ..data import Dataset
from ..data.dataset import make_frame
from ..foundation.arrays import (
    Bools,
    Facts,
    Floats,
    Format,
    Ints,
    Layout,
    read_arrays,
    write_arrays,
)
from ..foundation.errors import FormatError, NoResultError, SettingError, option
from ..foundation.families import Families, VertexSet
from ..foundation.files import replacing
from ..foundation.progress import OnProgress, silent
from ..foundation.stop import Interrupt, TimeLimit
from ..foundation.summary import counted
from ..foundation.workers import Workers
from ..network import Network, fit
from ..scores import Engine, LimitedTables, Score
from ..search import Growth, Limits, solve
from ..search.exact import consensus
from ..search.posterior import OPEN_ERROR, Draws, Sampled, sample_networks
from ..settings import Prior, ReadSettings
from .confidence import Confidence
from .stages import read_for_search

POSTERIOR_SECONDS = 20.0
# Scores of parent sets, each of 1,000 rows: up to the first number the sets may have more than
# DEFAULT_PARENTS parents, up to the second all sets are scored, else only some of the variables are
# possible parents. The second takes some ten seconds.
_FEW_SCORES, _MOST_SCORES = 200_000, 10_000_000
_PARENTS = 3
_MOST_POOL = 24  # best single parents of a variable that are its possible parents
_LEAST_POOL = 8
_MOVES = 1000  # of the annealer, for each variable
_DOUBT = 0.05  # an edge with a probability between this and one less this is in doubt


@dataclass(frozen=True)
class Posterior:
    """Posterior probabilities of edges and features, with the error of their computation.

    They hold for the score, the prior over networks and the parent sets that `title` and `among`
    name. Another equivalent sample size or prior gives other probabilities."""

    names: tuple[str, ...]
    sampled: Sampled = field(repr=False)
    title: str  # the score and the prior over networks
    among: str  # the parent sets
    prior: Prior = "uniform"
    ess: float | None = None  # equivalent sample size

    @property
    def edges(self) -> Floats:
        """(n, n) probability of each edge, at [parent, child]."""
        return self.sampled.edges

    @property
    def joined(self) -> Floats:
        """(n, n) probability that two variables are joined by an edge, in either direction."""
        return np.minimum(self.edges + self.edges.T, 1.0)

    @property
    def errors(self) -> Floats:
        """(n, n) two standard errors of `edges` from the sampling; 0 where sums are exact."""
        return self.sampled.errors

    @property
    def draws(self) -> Draws:
        """Networks drawn from the posterior."""
        return self.sampled.draws

    @property
    def lost(self) -> float:
        """Bound of the posterior mass of networks that were left out, as the draws estimate it."""
        return self.sampled.lost

    @property
    def rhat(self) -> float:
        """The largest R-hat of an edge: near 1 if the chains agree."""
        return float(self.sampled.rhat.max(initial=1.0))

    @property
    def effective(self) -> float:
        """The least number of independent networks that give an edge as small an error."""
        return float(self.sampled.effective.min(initial=math.inf))

    @property
    def open_edges(self) -> list[tuple[str, str]]:
        """The edges (parent, child) whose probability is not known within 0.02."""
        places = np.argwhere(self.sampled.open).tolist()
        return [(self.names[parent], self.names[child]) for parent, child in places]

    @property
    def converged(self) -> bool:
        """Whether the probabilities of all edges are known within 0.02, as far as chains tell."""
        return not self.sampled.open.any()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the sampling."""
        return self.sampled.interrupted

    def edge_probabilities(self, least: float = 0.0) -> dict[tuple[str, str], float]:
        """Return {(parent, child): probability}, the largest first, of those above `least`."""
        order = np.argsort(-self.edges, axis=None, kind="stable")
        found = {}
        for place in order.tolist():
            parent, child = divmod(place, len(self.names))
            if not self.edges[parent, child] > least:
                break
            found[self.names[parent], self.names[child]] = float(self.edges[parent, child])
        return found

    def to_frame(self, least: float = 0.001) -> Any:
        """Return a data frame of the edges above `least` (pandas, else polars).

        Its columns are parent, child, probability, error, joined (in either direction), rhat and
        effective."""
        index = {name: vertex for vertex, name in enumerate(self.names)}
        probabilities = self.edge_probabilities(least)
        places = [(index[parent], index[child]) for parent, child in probabilities]
        joined = self.joined
        return make_frame(
            {
                "parent": [parent for parent, _ in probabilities],
                "child": [child for _, child in probabilities],
                "probability": list(probabilities.values()),
                "error": [float(self.errors[place]) for place in places],
                "joined": [float(joined[place]) for place in places],
                "rhat": [float(self.sampled.rhat[place]) for place in places],
                "effective": [float(self.sampled.effective[place]) for place in places],
            }
        )

    def probability(self, feature: str | Callable[[Network], bool]) -> float:
        """Return the probability of a feature: a function of a network, or words.

        Words are an edge "a -> b", two joined variables "a -- b", a directed path "a ~> b", or a
        v-structure "a -> b <- c". It is the share of the draws that have the feature."""
        return self.draws.probability(feature)

    def paths(self) -> Floats:
        """Return (n, n) the probability of a directed path from a to b, at [a, b]."""
        return self.draws.paths()

    def markov_blankets(self) -> Floats:
        """Return (n, n) the probability that a is in the Markov blanket of b."""
        return self.draws.markov_blankets()

    def consensus(self) -> Network:
        """Return the network expected to be right for the most pairs of variables."""
        return consensus(self.names, self.edges)

    def average(
        self,
        data: Any,
        query: str | Mapping[str, Any],
        *,
        given: Any = None,
        score: Score | str = "auto",
        networks: int = 50,
    ) -> Any:
        """Return the probability of states given others, averaged over drawn networks.

        The networks, at most so many and evenly spread over the draws, are fitted to the data.
        `query` and `given` are those of `Network.probability`."""
        number = min(networks, len(self.draws))
        places = np.linspace(0, max(len(self.draws) - 1, 0), number).astype(int).tolist()
        answers = [
            fit(self.draws[place], data, score).probability(query, given=given) for place in places
        ]
        if not answers:
            raise SettingError("no network was drawn; give draws=100")
        if isinstance(answers[0], dict):
            return {state: _mean([each[state] for each in answers]) for state in answers[0]}
        if not isinstance(answers[0], float):
            raise SettingError("give states to average; a density is no single number")
        return _mean(answers)

    def compare(self, confidence: Confidence) -> list[tuple[str, str, float, float]]:
        """Return (a, b, probability, bootstrap frequency) of joined pairs, those far apart first.

        Pairs that neither joins in one of a hundred networks are left out."""
        joined = self.joined
        rows = []
        for a, b in combinations(range(len(self.names)), 2):
            ours, theirs = float(joined[a, b]), confidence.of(a, b)
            if max(ours, theirs) >= 0.01:
                rows.append((self.names[a], self.names[b], ours, theirs))
        return sorted(rows, key=lambda row: -abs(row[2] - row[3]))

    def to_arviz(self, least: float = 0.01) -> dict[str, Any]:
        """Return keywords of `arviz.from_dict`: the score and the edges above `least` of each draw.

        Chains have equally many draws."""
        draws, chains = self.draws, self.sampled.chains
        each = len(draws) // chains
        edges = list(self.edge_probabilities(least))
        index = {name: vertex for vertex, name in enumerate(self.names)}
        parents = [index[parent] for parent, _ in edges]
        children = [index[child] for _, child in edges]
        there = np.array(
            [draws.arcs(place)[parents, children] for place in range(len(draws))], np.float64
        ).reshape(len(draws), len(edges))
        kept = [np.flatnonzero(draws.chains == chain)[:each] for chain in range(chains)]
        scores = np.array([draws.scores[places] for places in kept])
        return {
            "posterior": {"score": scores, "edge": np.array([there[places] for places in kept])},
            "dims": {"edge": ["arc"]},
            "coords": {"arc": [f"{parent} -> {child}" for parent, child in edges]},
        }

    def in_doubt(self) -> dict[tuple[str, str], float]:
        """Return {(parent, child): probability} of the edges in doubt, the likeliest first."""
        return {
            edge: share
            for edge, share in self.edge_probabilities(_DOUBT).items()
            if share < 1.0 - _DOUBT
        }

    def describe(self, most: int = 10) -> list[str]:
        """Return what was computed, how sure it is, and edges in doubt, as lines for people."""
        sampled = self.sampled
        exact = int(sampled.exact.sum())
        lines = [f"edge probabilities: {self.title}; among sets of {self.among}"]
        if exact:
            lines.append(f"{counted(exact, 'variable')} summed exactly")
        if exact < len(self.names):
            rest = counted(len(self.names) - exact, "variable")
            lines.append(
                f"{rest} sampled by {counted(sampled.chains, 'chain')} of {sampled.steps:,} steps: "
                f"R-hat {self.rhat:.3f}, largest error {float(self.errors.max(initial=0.0)):.3f}"
            )
        lines.append(self.verdict)
        doubtful = self.in_doubt()
        shown = list(doubtful.items())[:most]
        if shown:
            lines.append(f"the {len(shown)} likeliest of {len(doubtful)} edges in doubt:")
        lines += [f"  {parent} -> {child} {share:.3f}" for (parent, child), share in shown]
        return lines

    @property
    def verdict(self) -> str:
        """Whether the probabilities are known, and what was left out, in words."""
        left_out = f"networks that were left out have at most {100 * self.lost:.2g} % of the mass"
        if self.sampled.exact.all():
            return f"certified: sums over all networks; {left_out}"
        if self.converged:
            return f"converged: the chains agree within 0.02; {left_out}"
        edges = counted(len(self.open_edges), "edge")
        return f"not converged: {edges} open, allow more time; {left_out}"

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        sampled = self.sampled
        index = {name: vertex for vertex, name in enumerate(self.names)}
        edges = []
        for (parent, child), share in self.edge_probabilities(0.001).items():
            error = float(self.errors[index[parent], index[child]])
            edges.append([parent, child, share, error])
        return {
            "score": self.title,
            "prior": self.prior,
            "ess": self.ess,
            "among": self.among,
            "edges": edges,
            "converged": self.converged,
            "open_edges": [list(edge) for edge in self.open_edges],
            "rhat": self.rhat,
            "effective": self.effective if math.isfinite(self.effective) else None,
            "exact": [name for name, its in zip(self.names, sampled.exact, strict=True) if its],
            "lost": self.lost,
            "chains": sampled.chains,
            "steps": sampled.steps,
            "draws": len(self.draws),
            "tempered": sampled.tempered,
            "interrupted": self.interrupted,
            "seconds": round(sampled.seconds, 3),
        }


def _mean(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def posterior(
    data: Any,
    search: CandidateSearch | None = None,
    *,
    prior: Prior = "uniform",
    seconds: float | None = POSTERIOR_SECONDS,
    steps: int | None = None,
    chains: int = 4,
    draws: int = 1000,
    seed: int = 0,
    reading: ReadSettings | None = None,
    known: Candidates | None = None,
    workers: Workers | None = None,
    interrupt: Interrupt | None = None,
    on_progress: OnProgress = silent,
) -> Posterior:
    """Return the posterior probabilities of edges and at most `draws` networks drawn from it.

    `data` is a file, a data frame or a `Dataset`. The sampling ends after the `seconds` or after
    so many `steps` of each chain; with `seconds=None` the result depends on the seed alone. Ctrl-C
    keeps the draws so far. `prior` is "uniform" over networks, or "fair": each number of parents
    of a variable has the same probability. Without a search, parent sets have at most three
    parents, more if there are few variables. Where there are too many sets to score all, only some
    variables are possible parents of each; `known` candidate sets then say which, or a search that
    grows them.

    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 5
    >>> table = polars.DataFrame({"rain": rain, "wet": rain, "coin": [0, 1, 0, 1, 0, 0, 1, 1] * 5})
    >>> found = posterior(table, seconds=1, draws=50)
    >>> probabilities = found.edge_probabilities(least=0.3)
    >>> {edge: round(share, 2) for edge, share in probabilities.items()}, found.converged
    ({('rain', 'wet'): 0.5, ('wet', 'rain'): 0.5}, True)
    """
    _check(prior, seconds, steps, chains, draws, seed)
    dataset = data if isinstance(data, Dataset) else read_for_search(data, reading)
    interrupt = Interrupt() if interrupt is None else interrupt
    joined = (workers or Workers()).here
    search = _prepared(dataset, search)
    with interrupt.listening():
        if known is None and _needs_pools(dataset, search):
            known = grown_sets(dataset, search, seconds, seed, joined, interrupt)
        sets = parent_sets(dataset, search, prior, known, joined, interrupt, on_progress)
        sampled = sample_networks(
            sets,
            seconds=seconds,
            steps=steps,
            chains=chains,
            draws=draws,
            start=good_start(sets, seed, joined, interrupt),
            seed=seed,
            workers=joined,
            interrupt=interrupt,
            on_progress=on_progress,
        )
    title = sets.title
    if not search.score.is_exact_evidence:
        title += " (weights exp(score), as this score is no marginal likelihood)"
    return Posterior(dataset.names, sampled, title, sets.among, prior, sets.stamp.ess)


# The arrays of `Sampled`, and those of its draws.
_ARRAYS = ("edges", "errors", "rhat", "effective", "exact")
_FAMILIES = ("vertex_start", "set_start", "members")
_OF_DRAWS = ("choices", "scores", "chains")
_NUMBERS = ("lost", "steps", "chains", "tempered", "seconds", "interrupted")
_TYPES = ("<f8", "<i8", "<i4", "<i2", "|i1", "<u2", "|u1", "|b1")  # of arrays in a file


def _layout(facts: Facts) -> Layout:
    """Return types and lengths of the arrays in a file."""
    found = []
    for _, kind, shape in facts["arrays"]:
        if kind not in _TYPES or not all(type(size) is int and size >= 0 for size in shape):
            raise FormatError("the arrays have unknown types or shapes; they are made again")
        found.append((kind, math.prod(shape)))
    return tuple(found)


_FILE = Format(b"qubayes.draws.1\n", "posterior probabilities", "they are made again", _layout)


def write_posterior(found: Posterior, path: Path) -> None:
    """Write the result: its facts, then its arrays."""
    sampled, draws = found.sampled, found.draws
    arrays = {name: getattr(sampled, name) for name in _ARRAYS}
    arrays |= {f"draws_{name}": getattr(draws, name) for name in _OF_DRAWS}
    arrays |= {f"families_{name}": getattr(draws.families, name) for name in _FAMILIES}
    facts = {
        "sampled": {name: getattr(sampled, name) for name in _NUMBERS},
        "posterior": [found.names, found.title, found.among, found.prior, found.ess],
        "arrays": [[name, each.dtype.str, list(each.shape)] for name, each in arrays.items()],
    }
    with replacing(path, binary=True) as file:
        write_arrays(file, _FILE, facts, [np.ravel(each) for each in arrays.values()])


def read_posterior(path: Path) -> Posterior:
    """Return what `write_posterior` wrote."""
    try:
        facts, flat = read_arrays(path, _FILE)
        arrays = {
            name: each.reshape(shape)
            for (name, _, shape), each in zip(facts["arrays"], flat, strict=True)
        }
        families = Families(*(arrays[f"families_{name}"] for name in _FAMILIES))
        of_draws = [arrays[f"draws_{name}"] for name in _OF_DRAWS]
        of_edges: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
        names, title, among, prior, ess = facts["posterior"]
        draws = Draws(tuple(names), families, of_draws[0], of_draws[1], of_draws[2], title)
        sampled = Sampled(**of_edges, draws=draws, **facts["sampled"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path} is damaged; it is made again") from error
    return Posterior(tuple(names), sampled, title, among, prior, ess)


def _check(
    prior: str, seconds: float | None, steps: int | None, chains: int, draws: int, seed: int
) -> None:
    """Raise for settings outside what is allowed."""
    if prior not in get_args(Prior):
        raise SettingError(f"{option('prior', prior)}; give one of {', '.join(get_args(Prior))}")
    if seconds is None and steps is None:
        raise SettingError("the sampling has no end; give seconds or steps")
    if seconds is not None and not 0 <= seconds < math.inf:
        raise SettingError(f"seconds = {seconds!r}; give 0 or more")
    least = {"steps": (steps, 1), "chains": (chains, 1), "draws": (draws, 0), "seed": (seed, 0)}
    for name, (value, lowest) in least.items():
        if value is not None and value < lowest:
            raise SettingError(f"{name} = {value}; give {lowest} or more")


def _prepared(dataset: Dataset, search: CandidateSearch | None) -> CandidateSearch:
    """Return the search with its score for these data and a number of parents that can be had."""
    if search is None:
        search = CandidateSearch(max_parents=parents_for(dataset))
    if search.knowledge.before or search.knowledge.not_ancestors or search.knowledge.ancestors:
        raise SettingError(
            "edge probabilities take no order of variables (before, not_ancestors) and no"
            " ancestors; leave them out"
        )
    most = max(0, min(search.max_parents, dataset.n - 1))
    return replace(search, score=search.score.on(dataset), max_parents=most)


def _scores(dataset: Dataset, most: int) -> float:
    """Return how many parent sets are scored to find all of at most so many parents, by rows."""
    others = dataset.n - 1
    scanned = sum(comb(others, size) for size in range(most))
    return dataset.n * scanned * others * max(1.0, dataset.rows / 1000.0)


def parents_for(dataset: Dataset) -> int:
    """Return the number of parents of which all sets are summed where none is given."""
    most = min(_PARENTS, dataset.n - 1)
    while most < dataset.n - 1 and _scores(dataset, most + 1) <= _FEW_SCORES:
        most += 1
    return most


def _stamp(dataset: Dataset, search: CandidateSearch, pools: Sequence[VertexSet] | None) -> Any:
    """Return where the scores come from."""
    stamp = stamp_of(dataset, replace(search, possible_parents=None))
    if pools is None:
        return stamp
    return replace(stamp, possible_parents=round(sum(map(len, pools)) / max(len(pools), 1)))


def _needs_pools(dataset: Dataset, search: CandidateSearch) -> bool:
    """Return whether only some variables can be possible parents of each."""
    many = _scores(dataset, search.max_parents) > _MOST_SCORES
    return many or search.possible_parents is not None


def parent_sets(
    dataset: Dataset,
    search: CandidateSearch,
    prior: Prior,
    known: Candidates | None,
    workers: Workers,
    interrupt: Interrupt,
    on_progress: OnProgress = silent,
) -> SlackSets:
    """Return the parent sets that are summed; `known` sets say where only some are possible."""
    engine = search.score.engine(dataset)
    pools = None
    if known is not None and _needs_pools(dataset, search):
        pools = possible_pools(dataset, search, engine, known.families.arcs())
    sets = slack_sets(
        engine,
        dataset.names,
        search.knowledge.resolve(dataset.names, search.max_parents),
        _stamp(dataset, search, pools),
        prior=prior,
        pools=pools,
        most_lost=OPEN_ERROR,
        workers=workers,
        stop=lambda: bool(interrupt),
        on_progress=on_progress,
    )
    if sets is None:
        raise NoResultError("interrupted while parent sets were scored; nothing is sampled")
    return sets


def grown_sets(
    dataset: Dataset,
    search: CandidateSearch,
    seconds: float | None,
    seed: int,
    workers: Workers,
    interrupt: Interrupt,
) -> Candidates:
    """Return candidate sets that are grown for a while."""
    engine = search.score.engine(dataset)
    growth = Growth(
        LimitedTables(engine, dataset.arities, 10**6),
        dataset.names,
        search.knowledge.resolve(dataset.names, search.max_parents),
        stamp_of(dataset, search),
        seed=seed,
        workers=workers,
        interrupt=interrupt,
    )
    clock = TimeLimit(seconds)
    growth.run(lambda: clock.left)
    return growth.candidates()


def possible_pools(
    dataset: Dataset, search: CandidateSearch, engine: Engine, arcs: Bools
) -> list[VertexSet]:
    """Return the possible parents of each variable: the best single ones, and those of `arcs`.

    If a is a possible parent of b, then b is one of a: else no edge could be reversed."""
    n = dataset.n
    pairs = engine.pairs(np.arange(n))
    gains = pairs - np.diag(pairs)[:, None]
    np.fill_diagonal(gains, -np.inf)
    ranks = np.argsort(np.argsort(-gains, axis=1), axis=1)
    size = min(search.possible_parents or _MOST_POOL, n - 1)
    while True:
        there = (ranks < size) | arcs | arcs.T
        there |= there.T
        np.fill_diagonal(there, False)
        scores = sum(
            _scores_of_pool(int(pool), search.max_parents, dataset.rows)
            for pool in there.sum(axis=1)
        )
        if scores <= _MOST_SCORES or size <= _LEAST_POOL or search.possible_parents:
            return [tuple(np.flatnonzero(row).tolist()) for row in there]
        size -= 1


def _scores_of_pool(pool: int, most: int, rows: int) -> float:
    """Return how many parent sets are scored for a variable with so many possible parents."""
    return sum(comb(pool, size) for size in range(most)) * pool * max(1.0, rows / 1000.0)


def good_start(sets: SlackSets, seed: int, workers: Workers, interrupt: Interrupt) -> Ints:
    """Return the numbers of the sets of a good network."""
    candidates = sets.candidates()
    limits = Limits(None, moves=_MOVES * sets.n, seed=seed)
    found = solve(candidates, "anneal", limits=limits, workers=workers, interrupt=interrupt)
    return np.asarray(np.flatnonzero(sets.leads)[np.asarray(found.choice)], np.int64)
