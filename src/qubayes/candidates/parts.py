"""All candidate sets of at most m parents of a table of numbers and states.

A set of a continuous child is a set Δ of discrete columns and a set Γ of continuous ones. The rows
are split once for each Δ; in each part one covariance matrix gives the scores of all children and
all Γ, as in `moments.py`: given a prefix Q of Γ, its largest member x follows from
R(i|Q + x) = R(i|Q) − R(ix|Q)² / R(x|Q). A set is a candidate if it beats its subsets, which are
(Δ without a member, Γ) and (Δ, Γ without a member). A discrete child has discrete parents only."""

from collections.abc import Generator, Sequence
from contextlib import closing
from itertools import combinations
from math import comb, prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Bools, Floats, Ints
from ..foundation.families import VertexSet
from ..foundation.workers import Workers, run
from ..scores.columns import LEAST_RESIDUAL
from .by_extensions import blocks_of_child
from .candidates import tolerance
from .knowledge import Allowed
from .levels import constraints_of
from .scanning import FORBIDDEN, REQUIRED, Block, Constraints

if TYPE_CHECKING:  # tables of one kind do without the engine
    from ..scores.mixed import Mixed

_MOST_NUMBERS = 1_000_000  # of covariances that are looked at together: 8 MB
_LEAST_VARIANCE = 1e-24  # of a column in a part: less is rounding
SCORE_SECONDS = 2e-8  # of a thread, for a child with a set in one part of the rows
CELL_SECONDS = 6e-9  # of a thread, for a row and two columns whose covariance is summed


class _Sets(NamedTuple):
    """Sets of continuous columns, by size and then lexicographic."""

    members: list[Ints]  # of each size: (sets, size)
    starts: Ints  # (most + 2,) first set of each size
    subsets: list[Ints]  # of each size: (sets, size) places of the sets without one member
    holds: Bools  # (sets, columns)

    def number(self, most: int) -> int:
        """Return how many sets have at most this size."""
        return int(self.starts[most + 1])


def _sets_of(columns: int, most: int) -> _Sets:
    """Return all sets of at most this size."""
    place: dict[VertexSet, int] = {}
    members: list[Ints] = []
    subsets: list[Ints] = []
    starts = [0]
    for size in range(most + 1):
        sets = list(combinations(range(columns), size))
        for each in sets:
            place[each] = len(place)
        smaller = [[place[each[:k] + each[k + 1 :]] for k in range(size)] for each in sets]
        members.append(np.array(sets, np.int64).reshape(len(sets), size))
        subsets.append(np.array(smaller, np.int64).reshape(len(sets), size))
        starts.append(len(place))
    holds = np.zeros((len(place), columns), np.bool_)
    for start, its in zip(starts, members, strict=False):
        holds[start + np.arange(len(its))[:, None], its] = True
    return _Sets(members, np.array(starts), subsets, holds)


class _Rules(NamedTuple):
    """What prior knowledge says of the continuous children (columns) and the sets (rows)."""

    sets: _Sets
    constraints: Constraints
    continuous: Ints
    discrete: Ints
    forbidden: Ints  # (sets, children) forbidden members
    required: Ints  # (sets, children) required members
    priors: Floats  # (sets, children) what the edges from the members add

    @classmethod
    def of(cls, allowed: Allowed, engine: "Mixed", sets: _Sets) -> "_Rules":
        """Return the rules for the columns of the engine."""
        constraints = constraints_of(allowed)
        own = np.ix_(engine.continuous, engine.continuous)
        holds = sets.holds.astype(np.int64)
        edges = constraints.edges[own].T
        priors = np.zeros((len(holds), len(engine.continuous)))
        if len(constraints.priors):
            priors = holds @ constraints.priors[own].T
        return cls(
            sets,
            constraints,
            engine.continuous,
            engine.discrete,
            holds @ (edges == FORBIDDEN),
            holds @ (edges == REQUIRED),
            priors,
        )

    def apply(self, scores: Floats, discrete: VertexSet) -> None:
        """Add the priors of edges to scores with these discrete parents; -inf: not allowed."""
        number = len(scores)
        parents = self.discrete[list(discrete)]
        edges = self.constraints.edges[np.ix_(self.continuous, parents)]
        limits = self.constraints.limits[self.continuous]
        sizes = self.sets.holds[:number].sum(axis=1)
        required = self.required[:number] + (edges == REQUIRED).sum(axis=1)
        barred = self.forbidden[:number] + (edges == FORBIDDEN).sum(axis=1) > 0
        barred |= required != limits["required"]
        barred |= sizes[:, None] + len(discrete) > limits["most"]
        scores += self.priors[:number]
        if len(self.constraints.priors):
            scores += self.constraints.priors[np.ix_(self.continuous, parents)].sum(axis=1)
        scores[barred] = -np.inf


class Found(NamedTuple):
    """What was found in some steps of the search."""

    steps: int
    blocks: list[Block]


def steps_of(dataset: Dataset, most: int) -> int:
    """Return the number of steps of `scan_parts`."""
    discrete = dataset.n - len(dataset.numbers)
    return discrete + sum(comb(discrete, size) for size in range(most + 1))


def seconds_of(dataset: Dataset, most: int) -> float:
    """Return the predicted seconds of a thread for `scan_parts`."""
    c = len(dataset.numbers)
    arities = [len(states) for states in dataset.states if states]
    usual = prod(arities) ** (1.0 / len(arities)) if len(arities) < 300 else 2.0
    seconds = 0.0
    for size in range(min(most, len(arities)) + 1):
        parts = min(usual**size, dataset.stored_rows)
        sets = sum(comb(c, more) for more in range(most - size + 1))
        columns = c * c / 2 if size < most else c
        each = SCORE_SECONDS * parts * sets * c + CELL_SECONDS * dataset.stored_rows * columns
        seconds += comb(len(arities), size) * each
    return seconds


def bytes_of_parts(dataset: Dataset, most: int) -> int:
    """Return the most bytes that the tables of best scores of two sizes take."""
    c = len(dataset.numbers)
    d = dataset.n - c
    tables = [
        8 * c * comb(d, size) * sum(comb(c, more) for more in range(most - size + 1))
        for size in range(min(most, d) + 1)
    ]
    return max(sum(pair) for pair in zip(tables, [*tables[1:], 0], strict=True))


def scan_parts(
    engine: "Mixed", allowed: Allowed, most: int, workers: Workers
) -> Generator[Found, None, None]:
    """Yield the candidate sets of at most so many parents, those of few discrete ones first."""
    children = engine.discrete.tolist()
    with closing(run(blocks_of_child, (engine, allowed), children, workers.here)) as tasks:
        for _, blocks in tasks:
            yield Found(1, blocks)
    yield from _scan_continuous(engine, allowed, most, workers)


def _scan_continuous(
    engine: "Mixed", allowed: Allowed, most: int, workers: Workers
) -> Generator[Found, None, None]:
    """Yield the candidate sets of the continuous children, by the number of discrete parents."""
    sets = _sets_of(len(engine.continuous), most)
    rules = _Rules.of(allowed, engine, sets)
    margins = _margins(engine, allowed)
    below: dict[VertexSet, Floats] = {}
    variables = len(engine.discrete)
    for size in range(min(most, variables) + 1):
        chosen = list(combinations(range(variables), size))
        shared = engine, sets, most - size
        bests: dict[VertexSet, Floats] = {}
        with closing(run(_scores_of, shared, chosen, workers.here)) as scored:
            for index, scores in scored:
                discrete = chosen[index]
                rules.apply(scores, discrete)
                subsets = [discrete[:k] + discrete[k + 1 :] for k in range(size)]
                smaller = [below[each] for each in subsets]
                bests[discrete], kept = _judge(scores, smaller, sets, margins)
                yield Found(1, _blocks(kept, scores, rules, discrete))
        below = bests


def _margins(engine: "Mixed", allowed: Allowed) -> Floats:
    """Return by how much a set of each continuous child must beat its subsets."""
    bases = [engine.local(v, allowed.required[v]) for v in engine.continuous.tolist()]
    return np.array([tolerance(base, engine.rows) for base in bases])


def _judge(
    scores: Floats, smaller: Sequence[Floats], sets: _Sets, margins: Floats
) -> tuple[Floats, Bools]:
    """Return the best score of each set or a subset, and which sets beat all their subsets.

    `smaller` are the best scores of the same sets with one discrete parent less."""
    best = np.full(scores.shape, -np.inf)
    for each in smaller:
        np.maximum(best, each[: len(best)], out=best)
    kept = np.zeros(scores.shape, np.bool_)
    for size, subsets in enumerate(sets.subsets):
        rows = slice(sets.starts[size], sets.starts[size + 1])
        if rows.start >= len(scores):
            break
        of_subsets = best[rows]
        for place in range(size):
            np.maximum(of_subsets, best[subsets[:, place]], out=of_subsets)
        kept[rows] = (scores[rows] > of_subsets + margins) & (scores[rows] > -np.inf)
        np.maximum(of_subsets, scores[rows], out=best[rows])
    return best, kept


def _blocks(kept: Bools, scores: Floats, rules: _Rules, discrete: VertexSet) -> list[Block]:
    """Return the sets that are kept, with these discrete parents, as blocks of one size each."""
    found = []
    for size, members in enumerate(rules.sets.members):
        start, end = rules.sets.starts[size : size + 2]
        which, child = np.nonzero(kept[start:end])
        if not len(which):
            continue
        parents = np.empty((len(which), size + len(discrete)), np.int32)
        parents[:, :size] = rules.continuous[members[which]]
        parents[:, size:] = rules.discrete[list(discrete)]
        parents.sort(axis=1)
        children = rules.continuous[child][:, None].astype(np.int32)
        families = np.concatenate([children, parents], axis=1)
        found.append(Block(families, scores[start:end][which, child]))
    return found


def _scores_of(shared: tuple["Mixed", _Sets, int], discrete: VertexSet) -> Floats:
    """Return (sets, children) scores with these discrete parents and sets of at most some size."""
    engine, sets, most = shared
    number = sets.number(most)
    columns = len(engine.continuous)
    data = np.zeros((number, columns))
    if most:
        parts = engine.parts(discrete)
        step = max(1, _MOST_NUMBERS // (columns * columns))
        for first in range(0, len(parts.weights), step):
            some = slice(first, first + step)
            _add_data(parts.matrices[some], parts.weights[some], sets, most, data)
    else:  # without continuous parents variances are enough
        for child in range(columns):
            one = engine.parts(discrete, (child,))
            data[0, child] = one.weights @ _logs(one.matrices[:, 0, 0])
    states = engine.states_of(discrete)
    scores = np.empty((number, columns))
    for size in range(most + 1):
        rows = slice(sets.starts[size], sets.starts[size + 1])
        scores[rows] = engine.constants(size, states) - data[rows]
    scores[np.isnan(scores)] = -np.inf
    scores[sets.holds[:number]] = -np.inf
    return scores


def _logs(variances: Floats) -> Floats:
    """Return the logarithms; NaN for a column that is constant in a part, where there is no prior.

    Columns have variance 1 in the whole table."""
    found: Floats = np.log(np.where(variances > _LEAST_VARIANCE, variances, np.nan))
    return found


def _add_data(matrices: Floats, weights: Floats, sets: _Sets, most: int, data: Floats) -> None:
    """Add what the scores take of some parts; NaN where the child is a function of the parents."""
    least = LEAST_RESIDUAL * np.einsum("jxx->jx", matrices)
    columns = matrices.shape[1]
    data[0] += weights @ _logs(np.einsum("jxx->jx", matrices))
    places = sets.starts.copy()  # of the next set of each size: they come in their order

    def visit(given: Floats, size: int, first: int) -> None:
        """Add the scores of a prefix of this size and each member from `first` on."""
        variances = np.einsum("jxx->jx", given)
        own = np.where(variances > least, variances, np.nan)[:, first:]
        left = given[:, first:] ** 2 / own[:, :, None]
        np.subtract(variances[:, None], left, out=left)
        left[~(left > least[:, None])] = np.nan
        rows = slice(places[size + 1], places[size + 1] + columns - first)
        data[rows] += np.tensordot(weights, np.log(left, out=left), 1)
        places[size + 1] = rows.stop
        if size + 2 > most:
            return
        for x in range(first, columns - 1):
            of_x = given[:, x]
            slopes = of_x / own[:, x - first, None]
            visit(given - of_x[:, :, None] * slopes[:, None], size + 1, x + 1)

    visit(matrices, 0, 0)
