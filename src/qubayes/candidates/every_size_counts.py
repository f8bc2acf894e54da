"""Kernel: all candidate sets of a discrete child, of any size, by bounds on all larger sets.

Sets are visited so that subsets come before the sets that contain them: a set Q is extended by
variables of a smaller number than all of its members. Visiting Q scores all extensions Q + y in one
pass over the rows, and bounds every set P that contains Q + y. With n_j rows in the state j of Q, H
for entropies inside it, and q(P) for the number of states of P (proofs in docs/theory.md):

- Scores with a penalty c for each state of the parents: leaving y out of P costs at most the gain
  G = Σ_j n_j min(H(child|j), H(y|j)), and saves c (1 − 1/states of y) q(P). So no P of at least
  G / (c (1 − 1/states of y)) states is a candidate set, nor one of which the penalty alone is below
  the score of a subset.
- Scores with a prior: P scores at most −log r for each observed cell of Q + y and the child, which
  has r states.

The search can be stopped after any set and continued: all its memory is in arrays."""

from math import log
from typing import Any, NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import AnyArray, Floats, Ints, Records, SmallInts, Words
from ..foundation.jit import inner, kernel
from ..scores.extensions import COLUMNS_AT_ONCE, Tables, make_room, make_tables, table_of, term
from ..scores.score import OBSERVED, Formula, Score, priors
from .candidates import tolerance
from .child_search import (
    DEPTH,
    DONE,
    FOUND,
    FULL,
    PAUSED,
    VISITED,
    ChildSearch,
    KnownSets,
    Sets,
    best_inside,
    copy_words,
    include,
    keep,
    words_of,
)
from .knowledge import Allowed

_LONGEST_RUN = 255  # rows whose sums fit into a byte

COUNTS_LEVEL = np.dtype(
    [
        ("groups", np.int64),  # states of the set in the rows that still count
        ("others", np.int64),  # variables that may extend it
        ("place", np.int64),  # the next of them
        ("width", np.int64),  # one-hot columns of all variables that come before its members
        ("states", np.float64),  # product of the declared states
        (
            "fixed",
            np.float64,
        ),  # score of rows that do not count any more, and priors of edges
        ("best", np.float64),  # best known score of a subset
        # what may contain the set has fewer states than this, or scores at most this
        ("limit", np.float64),
    ]
)


class Child(NamedTuple):
    """A child and its optional parents, in the order in which they are numbered."""

    codes: AnyArray  # (parents, rows)
    own: AnyArray  # (rows,) states of the child
    states: Ints  # (parents,) declared
    observed: Ints  # (parents,)
    first: Ints  # (parents + 1,) first one-hot column of each
    columns: AnyArray  # (rows, a multiple of COLUMNS_AT_ONCE) uint8
    own_states: int  # declared states of the child
    own_observed: int
    formula: Formula
    cost: float  # penalty of a state of the parents
    cell_bound: float  # log of the states of the child: what a cell costs at least
    edges: Floats  # (parents,) priors of the edges
    bonus: float  # sum of the positive ones
    margin: float  # by which a set must beat its subsets
    least: int  # parents of the sets that are searched; smaller ones are known
    most: int  # parents


class Walk(NamedTuple):
    """Where the search is, and its memory; by number of members where the first axis is depth."""

    state: Ints  # (3,)
    levels: Records  # (depths,) COUNTS_LEVEL
    rows: SmallInts  # (depths, rows) by state of the set, and by state of the child
    starts: SmallInts  # (depths, rows + 1) first row of each cell
    groups: SmallInts  # (depths, rows + 1) first cell of each state of the set
    others: SmallInts  # (depths, parents)
    scores: Floats  # (depths, parents) of the set and one of the others
    limits: Floats  # (depths, parents) as `limit`, for what contains the set and one of the others
    masks: Words  # (depths, words)
    buckets: Ints  # (2, states of a variable · of the child)
    sums: AnyArray  # (columns,) uint8
    counts: AnyArray  # (2, columns) uint32: of a cell and of a state of the set
    terms: Floats  # (2, columns)
    slots: Ints  # (2, parents) tables
    priors: Floats  # (2, parents) prior counts
    logs: Floats  # (rows + 1,) c log c; (0,) with a prior
    tables: Tables  # with a prior


class Columns(NamedTuple):
    """The columns of a table, in the order in which searches number them."""

    order: Ints  # (n,) variables: those of few states first, as large sets are made of these
    codes: SmallInts  # (n, rows) without states that do not occur
    states: Ints  # (n,) declared
    observed: Ints  # (n,)
    first: Ints  # (n + 1,)
    hot: AnyArray  # (rows, a multiple of COLUMNS_AT_ONCE) uint8


def has_bounds(formula: Formula) -> bool:
    """Return whether there are bounds on the scores of all larger sets."""
    return formula.spread != OBSERVED and (formula.prior > 0.0 or formula.penalty > 0.0)


def prepare_columns(dataset: Dataset) -> Columns:
    """Return the columns of discrete data."""
    codes = np.zeros(dataset.codes.shape, np.int32)
    observed = np.ones(dataset.n, np.int64)
    for place, column in enumerate(dataset.codes):
        seen, codes[place] = np.unique(column, return_inverse=True)
        observed[place] = len(seen)
    order = np.lexsort((np.arange(dataset.n), observed, dataset.arities)).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(observed[order])]).astype(np.int64)
    width = -(-int(first[-1]) // COLUMNS_AT_ONCE) * COLUMNS_AT_ONCE
    hot = np.zeros((dataset.rows, width), np.uint8)
    for place, variable in enumerate(order.tolist()):
        hot[np.arange(dataset.rows), first[place] + codes[variable]] = 1
    return Columns(
        order=order,
        codes=np.ascontiguousarray(codes[order]),
        states=dataset.arities[order].astype(np.int64),
        observed=observed[order],
        first=first,
        hot=hot,
    )


def search_of(columns: Columns, score: Score, allowed: Allowed, known: KnownSets) -> ChildSearch:
    """Return the search for larger sets than the known ones, at its beginning."""
    vertex = known.child
    required = list(allowed.required[vertex])
    base = known.base
    own = int(np.flatnonzero(columns.order == vertex)[0])
    edges = allowed.prior_of(vertex)
    rows = columns.codes.shape[1]
    formula = score.formula(rows)
    states = int(columns.states[own])
    child = Child(
        codes=columns.codes,
        own=columns.codes[own],
        states=columns.states,
        observed=columns.observed,
        first=columns.first,
        columns=columns.hot,
        own_states=states,
        own_observed=int(columns.observed[own]),
        formula=formula,
        cost=formula.penalty * (states - 1),
        cell_bound=log(states),
        edges=edges[columns.order],
        bonus=float(np.maximum(edges, 0.0).sum()),
        margin=tolerance(base, rows),
        least=known.most + 1 - len(required),
        most=allowed.limits[vertex] - len(required),
    )
    walk = _walk_of(child, np.flatnonzero(np.isin(columns.order, required)), base)
    walk.levels[0]["fixed"] = edges[required].sum()
    optional = np.flatnonzero(np.isin(columns.order, allowed.allowed[vertex]))
    if child.most >= child.least:
        walk.levels[0]["others"] = len(optional)
        walk.others[0, : len(optional)] = optional
    return ChildSearch(search_sets, child, walk, known, columns.order)


def _walk_of(child: Child, required: Ints, base: float) -> Walk:
    """Return the memory of a search, at the set of the required parents."""
    n, rows = child.codes.shape
    depths = _most_members(child, base) + 2
    has_prior = child.formula.prior > 0.0
    width = child.columns.shape[1]
    logs = np.zeros(0 if has_prior else rows + 1)
    if not has_prior:
        counts = np.arange(1, rows + 1, dtype=float)
        logs[1:] = counts * np.log(counts)
    walk = Walk(
        state=np.zeros(3, np.int64),
        levels=np.zeros(depths, COUNTS_LEVEL),
        rows=np.zeros((depths, rows), np.int32),
        starts=np.zeros((depths, rows + 1), np.int32),
        groups=np.zeros((depths, rows + 1), np.int32),
        others=np.zeros((depths, n), np.int32),
        scores=np.zeros((depths, n)),
        limits=np.zeros((depths, n)),
        masks=np.zeros((depths, words_of(n)), np.uint64),
        buckets=np.zeros((2, int(child.observed.max(initial=1)) * child.own_observed), np.int64),
        sums=np.zeros(width, np.uint8),
        counts=np.zeros((2, width), np.uint32),
        terms=np.zeros((2, width)),
        slots=np.zeros((2, n), np.int64),
        priors=np.zeros((2, n)),
        logs=logs,
        tables=make_tables(rows if has_prior else 0),
    )
    _sort_by_required(child, required, walk)
    walk.levels[0]["best"] = base
    walk.levels[0]["limit"] = np.inf
    walk.levels[0]["width"] = child.first[-1]
    return walk


def _most_members(child: Child, base: float) -> int:
    """Return the most members of a set that the search visits."""
    if child.formula.prior > 0.0 or child.cost == 0.0 or (child.states < 2).any():
        return child.most
    states = max((child.bonus - base) / child.cost, 1.0)
    return min(child.most, int(np.log2(states)) + 2)


def _sort_by_required(child: Child, required: Ints, walk: Walk) -> None:
    """Sort the rows by the states of the required parents, and by the child."""
    rows = len(child.own)
    labels = np.zeros(rows, np.int64)
    for parent in required.tolist():
        labels = labels * child.observed[parent] + child.codes[parent]
        labels = np.unique(labels, return_inverse=True)[1]
    order = np.lexsort((child.own, labels))
    changes = np.diff(labels[order]) != 0
    starts = np.flatnonzero(changes | (np.diff(child.own[order]) != 0)) + 1
    new_groups = np.isin(starts, np.flatnonzero(changes) + 1)
    groups = np.flatnonzero(new_groups) + 1
    walk.rows[0] = order
    walk.starts[0, : len(starts) + 2] = [0, *starts, rows]
    walk.groups[0, : len(groups) + 2] = [0, *groups, len(starts) + 1]
    walk.levels[0]["groups"] = len(groups) + 1
    walk.levels[0]["states"] = child.states[required].prod()


@kernel
def search_sets(child: Child, walk: Walk, sets: Sets, budget: int) -> int:
    """Continue until `budget` more sets are visited, all are, or there is no room for a set."""
    state = walk.state
    end = state[VISITED] + budget
    if state[VISITED] == 0:
        _visit(0, child, walk)
    while state[DEPTH] >= 0:
        depth = state[DEPTH]
        place = walk.levels[depth]["place"]
        if place == walk.levels[depth]["others"]:
            state[DEPTH] -= 1
            continue
        if state[VISITED] >= end:
            return PAUSED
        if state[FOUND] == len(sets.scores):
            return FULL
        walk.levels[depth]["place"] += 1
        best = _best_with(depth, place, child, walk, sets)
        if _choose_others(depth, place, best, child, walk):
            _split_rows(depth, walk.others[depth, place], child, walk)
            _visit(depth + 1, child, walk)
            state[DEPTH] += 1
    return DONE


@inner
def _best_with(depth: int, place: int, child: Child, walk: Walk, sets: Sets) -> float:
    """Return the best score of a subset of the extended set; keep the set if it beats them all."""
    mask = walk.masks[depth + 1]
    copy_words(walk.masks[depth], mask)
    include(walk.others[depth, place], mask)
    best = best_inside(mask, walk.levels[depth]["best"], sets, walk.state[FOUND])
    score = walk.scores[depth, place]
    if score > best + child.margin:
        keep(mask, score, sets, walk.state)
    return float(max(best, score))


@inner
def _choose_others(depth: int, place: int, best: float, child: Child, walk: Walk) -> bool:
    """Set what may extend the extended set; return whether a larger set can be of use."""
    if depth + 2 > child.most:
        return False
    y = walk.others[depth, place]
    states = walk.levels[depth]["states"] * child.states[y]
    limit = walk.limits[depth, place]
    if child.formula.prior == 0.0:
        limit = min(limit, walk.levels[depth]["limit"])
        if child.cost > 0.0:
            limit = min(limit, (child.bonus - best) / child.cost)
    level = walk.levels[depth + 1]
    level["states"] = states
    level["best"] = best
    level["limit"] = limit
    level["width"] = child.first[y]
    missing = max(child.least - depth - 1, 1)  # members that make it a set of a new size
    if child.formula.prior == 0.0:
        level["others"] = _within_limits(depth, place, missing, child, walk)
    else:
        level["others"] = _within_bounds(depth, place, child, walk)
    return bool(level["others"] >= missing)


@inner
def _within_limits(depth: int, place: int, missing: int, child: Child, walk: Walk) -> int:
    """Set the others that a set of few enough states can have; return how many there are.

    It has `missing` of them. As they come by rising states, the first have the fewest."""
    level = walk.levels[depth + 1]
    fewest = level["states"]
    for other in range(min(place, missing - 1)):
        fewest *= child.states[walk.others[depth, other]]
    count = 0
    for other in range(place):
        z = walk.others[depth, other]
        if fewest * child.states[z] < min(level["limit"], walk.limits[depth, other]):
            walk.others[depth + 1, count] = z
            count += 1
    return count


@inner
def _within_bounds(depth: int, place: int, child: Child, walk: Walk) -> int:
    """Set the others that a set of a better score can have; return how many there are."""
    level = walk.levels[depth + 1]
    count = 0
    for other in range(place):
        if min(level["limit"], walk.limits[depth, other]) > level["best"]:
            walk.others[depth + 1, count] = walk.others[depth, other]
            count += 1
    return count


@inner
def _split_rows(depth: int, y: int, child: Child, walk: Walk) -> None:
    """Sort the rows of the level by the states of y, too, into the next level.

    States of the set whose rows score the same with all further parents are left out: those with
    one state of the child or, with a prior, with one row."""
    before, after = walk.rows[depth], walk.rows[depth + 1]
    starts, new_starts = walk.starts[depth], walk.starts[depth + 1]
    groups, new_groups = walk.groups[depth], walk.groups[depth + 1]
    column = child.codes[y]
    size = child.own_observed
    buckets, offsets = walk.buckets[0], walk.buckets[1]
    rows = 0
    cells = 0
    kept = 0
    singles = 0
    for group in range(walk.levels[depth]["groups"]):
        first, end = starts[groups[group]], starts[groups[group + 1]]
        for bucket in range(child.observed[y] * size):
            buckets[bucket] = 0
        for place in range(first, end):
            row = before[place]
            buckets[column[row] * size + child.own[row]] += 1
        for state in range(child.observed[y]):
            total = 0
            largest = 0
            for bucket in range(state * size, (state + 1) * size):
                total += buckets[bucket]
                largest = max(largest, buckets[bucket])
                offsets[bucket] = -1
            if child.formula.prior > 0.0:
                counts = total > 1
                singles += total == 1
            else:
                counts = largest < total
            if not counts:
                continue
            new_groups[kept] = cells
            kept += 1
            for bucket in range(state * size, (state + 1) * size):
                if buckets[bucket] > 0:
                    new_starts[cells] = rows
                    offsets[bucket] = rows
                    rows += buckets[bucket]
                    cells += 1
        for place in range(first, end):
            row = before[place]
            bucket = column[row] * size + child.own[row]
            if offsets[bucket] >= 0:
                after[offsets[bucket]] = row
                offsets[bucket] += 1
    new_groups[kept] = cells
    new_starts[cells] = rows
    level = walk.levels[depth + 1]
    level["groups"] = kept
    level["fixed"] = walk.levels[depth]["fixed"] + child.edges[y] - singles * child.cell_bound


@inner
def _visit(depth: int, child: Child, walk: Walk) -> None:
    """Score the set with each of the others; keep those that a candidate set may contain."""
    level = walk.levels[depth]
    others = walk.others[depth, : level["others"]]
    scores, limits = walk.scores[depth], walk.limits[depth]
    for place in range(len(others)):
        scores[place] = level["fixed"] + child.edges[others[place]]
        limits[place] = 0.0
    if child.formula.prior > 0.0:
        _add_with_prior(depth, others, child, walk)
    else:
        _add_with_penalty(depth, others, child, walk)
    kept = 0
    for place in range(len(others)):
        z = others[place]
        states = level["states"] * child.states[z]
        if child.formula.prior > 0.0:
            limit = level["fixed"] + child.bonus - child.cell_bound * limits[place]
            helps = limit > level["best"]
        else:
            scores[place] -= child.cost * states
            limit = _most_states(limits[place] + child.edges[z], child.states[z], child.cost)
            helps = states < min(limit, level["limit"])
        if helps:
            others[kept] = z
            scores[kept] = scores[place]
            limits[kept] = limit
            kept += 1
    walk.state[VISITED] += len(others)
    level["others"] = kept
    level["place"] = 0


@inner
def _most_states(gain: float, states: int, cost: float) -> float:
    """Return the number of states of a set from which on the gain of a member is too small."""
    if gain <= 0.0:
        return 0.0
    saved = cost * (states - 1.0) / states
    return gain / saved if saved > 0.0 else np.inf


@inner
def _add_with_penalty(depth: int, others: Any, child: Child, walk: Walk) -> None:
    """Add log-likelihoods to the scores, and to the limits what each variable can gain at most."""
    level, logs = walk.levels[depth], walk.logs
    starts, groups = walk.starts[depth], walk.groups[depth]
    width = level["width"]
    likelihoods, entropies = walk.terms[0], walk.terms[1]
    counts, totals = walk.counts[0], walk.counts[1]
    for column in range(width):
        likelihoods[column] = 0.0
    for group in range(level["groups"]):
        cells = groups[group], groups[group + 1]
        size = starts[cells[1]] - starts[cells[0]]
        of_child = logs[size]
        for column in range(width):
            totals[column] = 0
        for cell in range(cells[0], cells[1]):
            of_child -= logs[starts[cell + 1] - starts[cell]]
            rows = starts[cell], starts[cell + 1]
            _count(*rows, width, child.columns, walk.rows[depth], counts, walk.sums)
            _add_logs(width, counts, logs, totals, likelihoods)
        _subtract_logs(width, totals, logs, entropies, likelihoods)
        for place in range(len(others)):
            z = others[place]
            entropy = logs[size]
            for column in range(child.first[z], child.first[z + 1]):
                entropy -= entropies[column]
            walk.limits[depth, place] += min(entropy, of_child)
    for place in range(len(others)):
        z = others[place]
        total = 0.0
        for column in range(child.first[z], child.first[z + 1]):
            total += likelihoods[column]
        walk.scores[depth, place] += total


@inner
def _add_logs(width: int, counts: Any, logs: Any, totals: Any, sums: Any) -> None:
    """Add c log c of each count to the sums, and the counts to the totals."""
    for column in range(width):
        totals[column] += counts[column]
        sums[column] += logs[counts[column]]


@inner
def _subtract_logs(width: int, totals: Any, logs: Any, values: Any, sums: Any) -> None:
    """Set the values to c log c of each total, and subtract them from the sums."""
    for column in range(width):
        values[column] = logs[totals[column]]
        sums[column] -= values[column]


@inner
def _add_with_prior(depth: int, others: Any, child: Child, walk: Walk) -> None:
    """Add the terms of the counts to each score, and the number of observed cells to each limit."""
    level, tables = walk.levels[depth], walk.tables
    starts, groups = walk.starts[depth], walk.groups[depth]
    counts, totals = walk.counts[0], walk.counts[1]
    _choose_tables(depth, others, child, walk)
    for group in range(level["groups"]):
        for column in range(level["width"]):
            totals[column] = 0
        for cell in range(groups[group], groups[group + 1]):
            rows = starts[cell], starts[cell + 1]
            _count(*rows, level["width"], child.columns, walk.rows[depth], counts, walk.sums)
            for column in range(level["width"]):
                totals[column] += counts[column]
            for place in range(len(others)):
                z = others[place]
                slot, prior = walk.slots[0, place], walk.priors[0, place]
                total = 0.0
                seen = 0
                for column in range(child.first[z], child.first[z + 1]):
                    total += term(tables, slot, counts[column], prior)
                    seen += counts[column] > 0
                walk.scores[depth, place] += total
                walk.limits[depth, place] += seen
        for place in range(len(others)):
            z = others[place]
            slot, prior = walk.slots[1, place], walk.priors[1, place]
            total = 0.0
            for column in range(child.first[z], child.first[z + 1]):
                total += term(tables, slot, totals[column], prior)
            walk.scores[depth, place] -= total


@inner
def _choose_tables(depth: int, others: Any, child: Child, walk: Walk) -> None:
    """Set the tables of each of the others."""
    level = walk.levels[depth]
    starts, groups = walk.starts[depth], walk.groups[depth]
    most = 0
    for group in range(level["groups"]):
        most = max(most, starts[groups[group + 1]] - starts[groups[group]])
    make_room(walk.tables)
    for place in range(len(others)):
        states = level["states"] * child.states[others[place]]
        per_cell, per_state = priors(child.formula, states, child.own_states)
        walk.priors[0, place] = per_cell
        walk.priors[1, place] = per_state
        walk.slots[0, place] = table_of(walk.tables, per_cell, most)
        walk.slots[1, place] = table_of(walk.tables, per_state, most)


@inner
def _count(
    first: int, end: int, width: int, columns: Any, order: Any, counts: Any, sums: Any
) -> None:
    """Set the counts of these rows in each one-hot column up to the width, rounded up.

    Arrays are arguments, one by one: inside a tuple they make the loops three times slower."""
    for block in range((width + COLUMNS_AT_ONCE - 1) // COLUMNS_AT_ONCE):
        begin = block * COLUMNS_AT_ONCE
        for place in range(COLUMNS_AT_ONCE):
            counts[begin + place] = 0
        row = first
        while row < end:
            last = min(row + _LONGEST_RUN, end)
            for place in range(COLUMNS_AT_ONCE):
                sums[begin + place] = 0
            for each in range(row, last):
                source = columns[order[each]]
                for place in range(COLUMNS_AT_ONCE):
                    sums[begin + place] += source[begin + place]
            for place in range(COLUMNS_AT_ONCE):
                counts[begin + place] += sums[begin + place]
            row = last
