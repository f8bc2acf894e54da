"""What a vertex scores with each edge into it toggled: from candidate sets, or counted in the data."""

from math import lgamma
from typing import Any, NamedTuple

import numpy as np

from ...candidates.counting import Labels, add_member, count_rows, make_counts, make_labels, prepare_rows
from ...data.dataset import Dataset
from ...foundation.arrays import Floats, SmallInts
from ...foundation.jit import allocating_kernel, inner, kernel
from ...scores import OBSERVED, Formula, Score
from ...scores.score import LARGE, priors, rising
from ...scores.sums import TIMES, VALUES
from .hillclimb_moves import conclude, recall, remember, step
from .hillclimb_state import CHANGED, FIRST, KEY, PARENTS, POSSIBLE, SIZE, has


class Data(NamedTuple):
    """The data, how they are scored, and memory for the counts of one thread."""

    labels: Labels
    formula: Formula
    states: Floats  # (n,) declared number of states
    prior_states: Floats  # (n,) number of child states in the prior
    counts: SmallInts  # (2, most) cell counts: values, and how often each occurs
    total: int  # number of rows


def data_of(dataset: Dataset, score: Score, most: int) -> Data:
    """Return the data, to be scored with at most `most` parents. Each thread needs its own, as it counts in it."""
    rows, formula, k = prepare_rows(dataset, as_bits=False), score.formula(dataset.rows), most + 2
    states = dataset.arities.astype(float)
    prior_states = rows.observed.astype(float) if formula.spread == OBSERVED else states
    return Data(make_labels(k, rows), formula, states, prior_states, make_counts(k, rows), dataset.rows)


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
        states *= data.states[parents[FIRST + k]]
    if FIRST + size == len(parents):
        return
    add_member(size, vertex, data.labels)
    for other in range(len(scores)):
        if has(climb.bits, POSSIBLE, vertex, other) and not has(climb.bits, PARENTS, vertex, other):
            declared = states * data.states[other]
            above, prior = _parent_part(data, count_rows(size, other, data.labels, data.counts), vertex, declared)
            cells = _rising(data.counts, count_rows(size + 1, other, data.labels, data.counts), prior)
            scores[other] = cells - above


@inner
def _family(data: Any, parents: Any, vertex: Any, skip: Any) -> Any:
    """Local score with the parents but the one at `skip`; they stay in the scratch's partitions."""
    depth, states, last = 0, 1.0, np.int64(-1)
    for k in range(parents[SIZE]):
        if k != skip:
            last = parents[FIRST + k]
            add_member(depth, last, data.labels)
            states *= data.states[last]
            depth += 1
    if depth:
        count = count_rows(depth - 1, last, data.labels, data.counts)
    else:
        data.counts[VALUES, 0], data.counts[TIMES, 0] = data.total, 1
        count = 1
    above, prior = _parent_part(data, count, vertex, states)
    return _rising(data.counts, count_rows(depth, vertex, data.labels, data.counts), prior) - above


@inner
def _parent_part(data: Any, count: Any, vertex: Any, states: Any) -> Any:
    """(what the parents' own counts and the penalty take from the score, prior of a cell) from the parents' counts."""
    penalty, observed = data.formula.penalty * states * (data.states[vertex] - 1.0), 0
    if data.formula.spread == OBSERVED:
        for k in range(count):
            observed += data.counts[TIMES, k] if data.counts[VALUES, k] else 0
        states = max(1.0, float(observed))
    per_cell, per_parent_state = priors(data.formula, states, data.prior_states[vertex])
    return _rising(data.counts, count, per_parent_state) + penalty, per_cell


@inner
def _rising(counts: Any, count: Any, prior: Any) -> Any:
    """Return the sum of times · (lnΓ(value + prior) − lnΓ(prior)); with prior 0, of times · value log value."""
    total, cells = 0.0, 0
    small = 0.0 < prior < LARGE  # then lnΓ(prior) is taken away once, at the end
    for k in range(count):
        value = counts[VALUES, k]
        if value:
            total += counts[TIMES, k] * (lgamma(value + prior) if small else rising(value, prior))
            cells += counts[TIMES, k]
    return total - cells * lgamma(prior) if small else total
