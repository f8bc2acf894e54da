"""All candidate sets of at most m parents of a table of numbers, from one matrix.

With R and c, a, b as in scores/gaussian.py, a set P of s parents of i scores

    c − a/2 · log R(i|P) − b/2 · log det R_PP + priors of the edges.

P = Q + {x} is split into a prefix Q and its largest member x. Given Q, all residual variances and
covariances are known, and one more step gives those given P: R(i|P) = R(i|Q) − R(ix|Q)² / R(x|Q).
So a prefix is visited once, and x and i run in the inner loops, i over neighbouring memory. The
best score of a subset is kept as a *threshold* of the variance: P beats all its subsets where
R(i|P) · weight(P) is below the least of theirs, so the inner loop takes no logarithm."""

from collections.abc import Generator, Sequence
from contextlib import closing
from itertools import pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Bools, Floats, Ints, SmallInts
from ..foundation.jit import inlined, inner, kernel
from ..foundation.workers import Workers, run
from ..scores.columns import LEAST_RESIDUAL
from ..scores.gaussian import Moments, moments_for
from ..scores.score import Score
from .candidates import tolerance
from .knowledge import Allowed
from .levels import constraints_of, extended
from .scanning import FORBIDDEN, REQUIRED, Block, Constraints

PAIR_SECONDS = 6e-9  # of a thread, for a child and a set of many parents; of three 2e-9
_PAIRS_PER_BLOCK = 30_000_000  # children times sets: about 0.1 s
_FIRST_CAPACITY = 1 << 17  # candidate sets that a block has memory for at first: 5 MB
_LARGEST_EXPONENT = 300.0  # of the weight of a prior: beyond it is the same as this


class Problem(NamedTuple):
    """What the search depends on."""

    moments: Moments
    constraints: Constraints
    margins: Floats  # (n,) by which a set must beat its subsets
    required: Bools  # (n,) whether the variable has required parents
    alone: Floats  # (n,) score without parents, of columns in units of their deviation
    binomials: Ints  # (m + 2, n + 1) [s, v]: C(n − v, s)


class SizeStep(NamedTuple):
    """The sets of one size: their score in numbers, and what is known of smaller sets."""

    matrix: Floats  # (n, n) R
    constant: float  # c
    weight: float  # a
    determinant: float  # b
    least: Floats  # (n,) residual variances up to this are rounding: a linear function
    margins: Floats  # (n,) factors of the thresholds
    priors: Floats  # (n, n) [parent, child] factors of the thresholds; (0, 0) if there are none
    # (C(n, s-1), n) by rank of a set of s - 1 and child: least of R(i|S) · weight(S) of the subsets
    thresholds: Floats
    binomials: Ints


class CovarianceScratch(NamedTuple):
    """Memory of a block."""

    partial: Floats  # (s, n, n) covariances given the first 0, 1, ... members of the prefix
    logs: Floats  # (s,) logarithms of the determinants of these members
    residuals: Floats  # (n,) given the prefix; infinite for what cannot be its child
    of_prefix: Floats  # (n,) factors for the priors of edges from the prefix
    bests: Floats  # (n,) least threshold of the subsets of a set
    bars: Floats  # (n,) what the residual variance of a candidate set is below
    bases: Ints  # (s,) ranks of the subsets without one member of the prefix, less x


def bytes_of_tables(n: int, max_parents: int) -> int:
    """Return the most bytes that the tables of the search take, and the list of prefixes."""
    largest = 0
    for size in range(1, max_parents + 1):
        below = comb(n, size - 1)
        above = comb(n, size) if size < max_parents else 0
        # 64-bit members while the list is made, then 32-bit ones
        largest = max(largest, 8 * n * (below + above) + 12 * size * below)
    return largest


def pairs_of(n: int, size: int) -> int:
    """Return how many (child, set) are looked at among the sets of this size."""
    return n * comb(n, size)


def prepare(dataset: Dataset, score: Score, allowed: Allowed, max_parents: int) -> Problem:
    """Return the search for the sets of at most this number of parents."""
    n = dataset.n
    moments = moments_for(dataset, score)
    binomials = np.empty((max_parents + 2, n + 1), np.int64)
    for size in range(max_parents + 2):
        binomials[size] = [comb(n - v, size) for v in range(n + 1)]
    constraints = constraints_of(allowed)
    alone = moments.constants[0] - 0.5 * moments.weights[0] * np.log(np.diag(moments.matrix))
    scores = alone + moments.shifts
    margins = np.array([tolerance(value, dataset.rows) for value in scores.tolist()])
    required = np.array([len(its) > 0 for its in allowed.required])
    return Problem(moments, constraints, margins, required, alone, binomials)


def _without_parents(problem: Problem) -> Block:
    """Return the empty sets of the variables without required parents."""
    children = np.flatnonzero(~problem.required)
    scores = problem.alone + problem.moments.shifts
    return Block(children[:, None].astype(np.int32), scores[children])


class Found(NamedTuple):
    """What was found in a block of sets."""

    size: int  # of the sets
    sets: int  # that were looked at
    block: Block


def scan_sizes(
    problem: Problem,
    max_parents: int,
    workers: Workers,
    *,
    pairs_per_block: int = _PAIRS_PER_BLOCK,
) -> Generator[Found, None, None]:
    """Yield the candidate sets of block after block, from small sets to large ones."""
    yield Found(0, 0, _without_parents(problem))
    n = len(problem.margins)
    thresholds = _first_thresholds(problem) if max_parents else np.zeros((0, n))
    for size in range(1, max_parents + 1):
        step = _step_of(problem, size, thresholds)
        above = np.empty((comb(n, size) if size < max_parents else 0, n))
        prefixes = extended(np.zeros((1, 0), np.int64), n, size, size - 1)
        ranges = _ranges(prefixes, n, pairs_per_block)
        shared = step, problem.constraints, prefixes, above
        sets = _sets_of(prefixes, n)
        with closing(run(_scan_block, shared, ranges, workers.here)) as blocks:
            for index, block in blocks:
                scores = block.scores + problem.moments.shifts[block.children]
                first, last = ranges[index]
                yield Found(size, int(sets[first:last].sum()), Block(block.families, scores))
        thresholds = _of_next_size(problem.moments, size, above)


def _first_thresholds(problem: Problem) -> Floats:
    """Return the thresholds of the empty set for sets of one parent."""
    moments = problem.moments
    gaps = moments.constants[1] - problem.alone
    thresholds = np.empty((1, len(gaps)))
    thresholds[0] = np.exp(2.0 * gaps / moments.weights[1])
    thresholds[0, problem.required] = np.inf
    return thresholds


def _of_next_size(moments: Moments, size: int, thresholds: Floats) -> Floats:
    """Turn the thresholds of sets of this size, in place, into those of sets larger by one."""
    if not len(thresholds):
        return thresholds
    weight = moments.weights[size + 1]
    power = moments.weights[size] / weight
    shift = 2.0 * (moments.constants[size + 1] - moments.constants[size]) / weight
    if power == 1.0:
        thresholds *= np.exp(shift)
        return thresholds
    np.log(thresholds, out=thresholds)
    thresholds *= power
    thresholds += shift
    np.exp(thresholds, out=thresholds)
    return thresholds


def _step_of(problem: Problem, size: int, thresholds: Floats) -> SizeStep:
    """Return what the kernel needs for the sets of this size."""
    moments = problem.moments
    weight = float(moments.weights[size])
    priors = problem.constraints.priors
    exponents = np.clip(2.0 * priors.T / weight, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
    return SizeStep(
        matrix=moments.matrix,
        constant=float(moments.constants[size]),
        weight=weight,
        determinant=moments.determinant,
        least=LEAST_RESIDUAL * np.diag(moments.matrix),
        margins=np.exp(-2.0 * problem.margins / weight),
        priors=np.exp(exponents),
        thresholds=thresholds,
        binomials=problem.binomials,
    )


def _sets_of(prefixes: SmallInts, n: int) -> Ints:
    """Return how many sets have each prefix."""
    if not prefixes.shape[1]:
        return np.full(len(prefixes), n)
    return np.asarray(n - 1 - prefixes[:, -1], dtype=np.int64)


def _ranges(prefixes: SmallInts, n: int, pairs_per_block: int) -> list[tuple[int, int]]:
    """Return ranges of prefixes that make blocks of about the same work."""
    number = np.cumsum(n * _sets_of(prefixes, n)) // pairs_per_block
    bounds = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(prefixes)]
    return [(first, end) for first, end in pairwise(bounds) if end > first]


def _scan_block(
    shared: tuple[SizeStep, Constraints, SmallInts, Floats], places: Sequence[int]
) -> Block:
    """Return the candidate sets of a range of prefixes; fill the next size's table for them."""
    step, constraints, prefixes, above = shared
    n, size = len(step.matrix), prefixes.shape[1] + 1
    scratch = CovarianceScratch(
        partial=np.empty((size, n, n)),
        logs=np.zeros(size),
        residuals=np.empty(n),
        of_prefix=np.ones(n),
        bests=np.empty(n),
        bars=np.empty(n),
        bases=np.empty(size, np.int64),
    )
    scratch.partial[0] = step.matrix
    some = prefixes[places[0] : places[1]]
    capacity = _FIRST_CAPACITY
    while True:
        found = Block(np.empty((capacity, size + 1), np.int32), np.empty(capacity))
        count = int(_scan_prefixes(some, step, constraints, scratch, above, found))
        if count <= capacity:  # copies: the rest of the memory is free again
            return Block(found.families[:count].copy(), found.scores[:count].copy())
        capacity = count


@kernel
def _scan_prefixes(
    prefixes: SmallInts,
    step: SizeStep,
    constraints: Constraints,
    scratch: CovarianceScratch,
    above: Floats,
    found: Block,
) -> int:
    """Write the candidate sets that extend the prefixes by one larger member; return their number.

    `above` gets the thresholds of these sets, unless it is empty."""
    n = len(step.matrix)
    held = prefixes.shape[1]
    count = 0
    for p in range(len(prefixes)):
        prefix = prefixes[p]
        same = 0
        while p > 0 and same < held and prefix[same] == prefixes[p - 1, same]:
            same += 1
        pivot = _condition_on(prefix, same, scratch)
        _prepare_children(prefix, pivot, step, constraints, scratch)
        _prepare_ranks(prefix, step, scratch)
        of_prefix = step.thresholds[_rank(prefix, held, step.binomials)]
        first = prefix[held - 1] + 1 if held else 0
        for x in range(first, n):
            count = _scan_children(
                x, prefix, pivot, of_prefix, step, constraints, scratch, above, found, count
            )
    return count


@inner
def _condition_on(prefix: SmallInts, same: int, scratch: CovarianceScratch) -> float:
    """Set the covariances given all but the prefix's last member; its first `same` are not new.

    Returns the inverse of the last member's residual variance; 0 for an empty prefix."""
    held = len(prefix)
    n = len(scratch.residuals)
    if held == 0:
        return 0.0
    for place in range(same, held - 1):
        y = prefix[place]
        before = scratch.partial[place]
        after = scratch.partial[place + 1]
        pivot = before[y, y]
        scratch.logs[place + 1] = scratch.logs[place] + np.log(pivot)
        of_y = before[y]
        for i in range(n):
            factor = before[i, y] / pivot
            own = before[i]
            row = after[i]
            for x in range(n):
                row[x] = own[x] - factor * of_y[x]
    y = prefix[held - 1]
    return 1.0 / float(scratch.partial[held - 1][y, y])


@inner
def _prepare_children(
    prefix: SmallInts,
    pivot: float,
    step: SizeStep,
    constraints: Constraints,
    scratch: CovarianceScratch,
) -> None:
    """Set each variable's residual variance given the prefix; infinite if not allowed."""
    held = len(prefix)
    n = len(scratch.residuals)
    given = scratch.partial[max(held - 1, 0)]
    of_last = given[prefix[held - 1] if held else 0]
    for i in range(n):
        scratch.residuals[i] = given[i, i] - of_last[i] * of_last[i] * pivot
        if constraints.limits[i]["most"] < held + 1:
            scratch.residuals[i] = np.inf
        for member in prefix:
            if constraints.edges[i, member] == FORBIDDEN:  # also the variable itself
                scratch.residuals[i] = np.inf
    if len(step.priors):
        scratch.of_prefix[:] = 1.0
        for member in prefix:
            for i in range(n):
                scratch.of_prefix[i] *= step.priors[member, i]


@inner
def _prepare_ranks(prefix: SmallInts, step: SizeStep, scratch: CovarianceScratch) -> None:
    """Set the ranks, less x, of the sets of prefix and x without one member of the prefix."""
    held = len(prefix)
    n = len(scratch.residuals)
    for left_out in range(held):
        rank = step.binomials[held, 0] - n
        left = held
        for place in range(held):
            if place != left_out:
                rank -= step.binomials[left, prefix[place] + 1]
                left -= 1
        scratch.bases[left_out] = rank


@inner
def _rank(members: SmallInts, size: int, binomials: Ints) -> int:
    """Return the lexicographic rank of a set among those of its size."""
    rank = binomials[size, 0] - 1
    for place in range(size):
        rank -= binomials[size - place, members[place] + 1]
    return int(rank)


@inner
def _scan_children(
    x: int,
    prefix: SmallInts,
    pivot: float,
    of_prefix: Floats,
    step: SizeStep,
    constraints: Constraints,
    scratch: CovarianceScratch,
    above: Floats,
    found: Block,
    count: int,
) -> int:
    """Write the children that have prefix and x as a candidate set; return how many are written."""
    held = len(prefix)
    given = scratch.partial[max(held - 1, 0)]
    of_last = given[prefix[held - 1] if held else 0]
    of_x = given[x]
    own = of_x[x] - of_last[x] * of_last[x] * pivot
    rank = _set_bests(x, prefix, of_prefix, step, scratch, above)
    if not own > step.least[x]:  # x is a function of the prefix: no set has both
        return count
    logs = np.log(own)
    if held:
        logs += scratch.logs[held - 1] - np.log(pivot)
    scale = np.exp(-step.determinant * logs / step.weight)
    _set_bars(x, scale, step, scratch)
    slope = of_last[x] * pivot
    inverse = 1.0 / own
    if not _any_below(of_x, of_last, slope, inverse, scratch):
        return count
    for i in range(len(scratch.residuals)):
        covariance = of_x[i] - slope * of_last[i]
        left = scratch.residuals[i] - covariance * covariance * inverse
        better = left < scratch.bars[i]
        if not better or i == x or not left > step.least[i]:
            continue
        if not _is_allowed(i, prefix, x, constraints):
            continue
        if len(above):
            above[rank, i] = left / _unit(i, x, scale, step, scratch)
        if left < scratch.bars[i] * step.margins[i]:
            score = step.constant - 0.5 * step.weight * np.log(left)
            score -= 0.5 * step.determinant * logs
            _keep(i, prefix, x, score, constraints, found, count)
            count += 1
    return count


@inlined
def _set_bests(
    x: int,
    prefix: SmallInts,
    of_prefix: Floats,
    step: SizeStep,
    scratch: CovarianceScratch,
    above: Floats,
) -> int:
    """Set the least thresholds of the subsets, also in the next size's table; return their row."""
    held = len(prefix)
    n = len(scratch.bests)
    bests = scratch.bests
    for i in range(n):
        bests[i] = of_prefix[i]
    for place in range(held):
        of_subset = step.thresholds[scratch.bases[place] + x]
        for i in range(n):
            bests[i] = min(bests[i], of_subset[i])
    if len(above) == 0:
        return 0
    rank = step.binomials[held + 1, 0] - n + x
    for place in range(held):
        rank -= step.binomials[held + 1 - place, prefix[place] + 1]
    row = above[rank]
    for i in range(n):
        row[i] = bests[i]
    return int(rank)


@inlined
def _set_bars(x: int, scale: float, step: SizeStep, scratch: CovarianceScratch) -> None:
    """Set what the residual variance of each child must be below."""
    bars = scratch.bars
    for i in range(len(bars)):
        bars[i] = scale * scratch.bests[i]
    if len(step.priors):
        for i in range(len(bars)):
            bars[i] *= scratch.of_prefix[i] * step.priors[x, i]


@inlined
def _any_below(
    of_x: Floats, of_last: Floats, slope: float, inverse: float, scratch: CovarianceScratch
) -> bool:
    """Return whether the residual variance of any child is below its bar."""
    hits = 0
    for i in range(len(scratch.bars)):  # counted to the end: so the loop runs on vectors
        covariance = of_x[i] - slope * of_last[i]
        hits += scratch.residuals[i] - covariance * covariance * inverse < scratch.bars[i]
    return hits > 0


@inlined
def _unit(child: int, x: int, scale: float, step: SizeStep, scratch: CovarianceScratch) -> float:
    """Return by what a residual variance is divided to make a threshold of it."""
    if len(step.priors) == 0:
        return scale
    return float(scale * (scratch.of_prefix[child] * step.priors[x, child]))


@inlined
def _keep(
    child: int,
    prefix: SmallInts,
    x: int,
    score: float,
    constraints: Constraints,
    found: Block,
    place: int,
) -> None:
    """Put the set and its score in their place, if there is room."""
    if place < len(found.scores):
        held = len(prefix)
        family = found.families[place]
        family[0] = child
        for number in range(held):
            family[number + 1] = prefix[number]
        family[held + 1] = x
        found.scores[place] = score + _priors(child, prefix, x, constraints)


@inlined
def _is_allowed(child: int, prefix: SmallInts, x: int, constraints: Constraints) -> bool:
    """Return whether the child may have these parents, none of the prefix being forbidden."""
    edges = constraints.edges[child]
    if edges[x] == FORBIDDEN:
        return False
    held = int(edges[x] == REQUIRED)
    for member in prefix:
        held += int(edges[member] == REQUIRED)
    return bool(held == constraints.limits[child]["required"])


@inlined
def _priors(child: int, prefix: SmallInts, x: int, constraints: Constraints) -> float:
    """Return what the edges from these parents add to the score."""
    if len(constraints.priors) == 0:
        return 0.0
    added = float(constraints.priors[child, x])
    for member in prefix:
        added += constraints.priors[child, member]
    return added
