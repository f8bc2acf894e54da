"""What a vertex scores with each edge into it toggled: from candidate sets, or counted in the data."""

from math import lgamma, log
from typing import Any, NamedTuple

import numpy as np

from ...candidates.counting import Scratch, add_member, count_rows, make_scratch
from ...candidates.problem import _KINDS as KINDS
from ...candidates.problem import _observed, merge_rows
from ...candidates.tables import BDS, K2, LIKELIHOOD, Rows
from ...candidates.terms import term
from ...data.dataset import Dataset
from ...foundation.arrays import Floats
from ...foundation.jit import allocating_kernel, inner, kernel
from ...scores import Score
from ...scores.score import LARGE
from .hillclimb_moves import conclude, recall, remember, step
from .hillclimb_state import CHANGED, FIRST, KEY, PARENTS, POSSIBLE, SIZE, has


class Rule(NamedTuple):
    """A score in numbers."""

    kind: int
    ess: float
    price: float  # of one free parameter
    arities: Floats  # (n,) number of child states in the prior: observed for BDs, else declared
    declared: Floats  # (n,)


class Data(NamedTuple):
    """The data, how they are scored, and room for counts."""

    rows: Rows
    rule: Rule
    scratch: Scratch


def data_of(dataset: Dataset, score: Score, most: int) -> Data:
    """The data, to be scored with at most so many parents. Each thread needs its own, as it counts in it."""
    codes, observed = _observed(dataset)
    codes, weights = merge_rows(codes)
    rows = Rows(codes, observed, weights, bool((weights > 1).any()), np.zeros((dataset.n, 0), np.uint64), dataset.rows)
    declared = dataset.arities.astype(float)
    price = {"bic": 0.5 * log(max(dataset.rows, 1)), "aic": 1.0}.get(score.name, 0.0)
    kind = KINDS[score.name]
    rule = Rule(kind, score.ess, price, observed.astype(float) if kind == BDS else declared, declared)
    most_labels = min(float(len(weights)), float(np.prod(np.sort(observed)[::-1][: most + 1].astype(float))))
    scratch = make_scratch(most + 2, rows, int(most_labels + 1) * int(observed.max(initial=1)))
    return Data(rows, rule, scratch)


@allocating_kernel
def climb_sets(sets: Any, climb: Any, moves: int) -> None:
    """Make this many steps, scores being those of the best candidate set inside the parents."""
    for made in range(-1, moves):
        if made >= 0:
            step(sets, climb)
        elif climb.counts[CHANGED] == 0:  # only a new climb begins with rows to score
            continue
        for k in range(climb.counts[CHANGED]):
            vertex = climb.changed[k, 0]
            if not recall(climb, vertex):
                score_by_sets(sets, climb, vertex)
                remember(climb, vertex)
        conclude(climb)


@allocating_kernel
def climb_data(data: Any, sets: Any, climb: Any, moves: int) -> None:
    """Make this many steps, scores being counted in the data."""
    for made in range(-1, moves):
        if made >= 0:
            step(sets, climb)
        elif climb.counts[CHANGED] == 0:
            continue
        for k in range(climb.counts[CHANGED]):
            vertex = climb.changed[k, 0]
            if not recall(climb, vertex):
                score_by_data(data, climb, vertex)
                remember(climb, vertex)
        conclude(climb)


@inner
def score_by_sets(sets: Any, climb: Any, vertex: Any) -> None:
    """Fill the vertex's row with the scores of the best candidate sets inside its parents ± each other vertex.

    Its parents are a candidate set. A parent more that gives no better set is no change, and not allowed. A set inside
    the parents and one more vertex is that vertex alone, or has one of the parents: only lists of these are read.
    """
    scores, entries, parents = climb.scores[vertex], climb.entries[vertex], climb.lists[0, vertex]
    now, base = parents[KEY] - 1, sets.vertex_start[vertex + 1] - 1
    for other in range(len(scores)):
        single = sets.edges[vertex, other, 2]
        scores[other], entries[FIRST + other] = -np.inf, single if single < now else -1
    for p in range(FIRST, FIRST + parents[SIZE]):
        if not _holds(sets, base, parents[p]):
            entries[FIRST + parents[p]] = base
    for p in range(FIRST, FIRST + parents[SIZE]):
        for k in range(sets.edges[vertex, parents[p], 0], sets.edges[vertex, parents[p], 1]):
            _weigh(sets, climb, vertex, np.int64(sets.lists[k]))
    for other in range(len(scores)):
        if entries[FIRST + other] >= 0:
            scores[other] = sets.scores[entries[FIRST + other]]
    scores[vertex] = sets.scores[now]


@inner
def _weigh(sets: Any, climb: Any, vertex: Any, number: Any) -> None:
    """Let a set with at most one member that is no parent be the best for that member more, or for each parent less."""
    entries, parents = climb.entries[vertex], climb.lists[0, vertex]
    absent, missing = 0, np.int64(0)
    for k in range(sets.set_start[number], sets.set_start[number + 1]):
        if not has(climb.bits, PARENTS, vertex, sets.members[k]):
            absent, missing = absent + 1, np.int64(sets.members[k])
            if absent > 1:
                return
    if absent == 1:
        if number < parents[KEY] - 1 and (entries[FIRST + missing] < 0 or number < entries[FIRST + missing]):
            entries[FIRST + missing] = number
        return
    for p in range(FIRST, FIRST + parents[SIZE]):
        if number < entries[FIRST + parents[p]] and not _holds(sets, number, parents[p]):
            entries[FIRST + parents[p]] = number


@inner
def _holds(sets: Any, number: Any, vertex: Any) -> Any:
    """Whether the vertex is in the set."""
    held = False
    for k in range(sets.set_start[number], sets.set_start[number + 1]):
        held = held or sets.members[k] == vertex
    return held


@kernel
def score_by_data(data: Any, climb: Any, vertex: Any) -> None:
    """Fill the vertex's row with local scores counted in the data."""
    parents, scores = climb.lists[0, vertex], climb.scores[vertex]
    size, states = parents[SIZE], 1.0
    for other in range(len(scores)):
        scores[other] = -np.inf
    for skip in range(size + 1):  # without each parent; then with all, which leaves the partition by them
        if skip == size or has(climb.bits, POSSIBLE, vertex, parents[FIRST + skip]):
            scores[vertex if skip == size else parents[FIRST + skip]] = _family(data, parents, vertex, skip)
    for k in range(size):
        states *= data.rule.declared[parents[FIRST + k]]
    if FIRST + size == len(parents):
        return
    add_member(size, vertex, data.rows, data.scratch)
    for other in range(len(scores)):
        if has(climb.bits, POSSIBLE, vertex, other) and not has(climb.bits, PARENTS, vertex, other):
            declared = states * data.rule.declared[other]
            above, prior = _parent_part(data, count_rows(size, other, data.rows, data.scratch), vertex, declared)
            cells = _rising(data.scratch, count_rows(size + 1, other, data.rows, data.scratch), prior)
            scores[other] = cells - above


@inner
def _family(data: Any, parents: Any, vertex: Any, skip: Any) -> Any:
    """Local score with the parents but the one at `skip`; they stay in the scratch's partitions."""
    depth, states, last = 0, 1.0, np.int64(-1)
    for k in range(parents[SIZE]):
        if k != skip:
            last = parents[FIRST + k]
            add_member(depth, last, data.rows, data.scratch)
            states *= data.rule.declared[last]
            depth += 1
    if depth:
        count = count_rows(depth - 1, last, data.rows, data.scratch)
    else:
        data.scratch.values[0], data.scratch.times[0] = data.rows.total, 1
        count = 1
    above, prior = _parent_part(data, count, vertex, states)
    return _rising(data.scratch, count_rows(depth, vertex, data.rows, data.scratch), prior) - above


@inner
def _parent_part(data: Any, count: Any, vertex: Any, states: Any) -> Any:
    """(what the parents' own counts take from the score, prior of a cell) from the counts in the scratch."""
    rule, arity = data.rule, data.rule.arities[vertex]
    if rule.kind == LIKELIHOOD:
        return _rising(data.scratch, count, 0.0) + rule.price * states * (arity - 1.0), 0.0
    if rule.kind == K2:
        return _rising(data.scratch, count, arity), 1.0
    if rule.kind == BDS:
        observed = 0
        for k in range(count):
            observed += data.scratch.times[k] if data.scratch.values[k] else 0
        states = max(1.0, float(observed))
    prior = rule.ess / states
    return _rising(data.scratch, count, prior), prior / arity


@inner
def _rising(scratch: Any, count: Any, prior: Any) -> Any:
    """Σ times · (lnΓ(value + prior) − lnΓ(prior)) of the scratch's counts; with prior 0, Σ times · value log value."""
    total, cells = 0.0, 0
    small = 0.0 < prior < LARGE  # then lnΓ(prior) is taken away once, at the end
    for k in range(count):
        value = scratch.values[k]
        if value:
            total += scratch.times[k] * (lgamma(value + prior) if small else term(value, prior))
            cells += scratch.times[k]
    return total - cells * lgamma(prior) if small else total
