"""Candidate sets among a few possible parents of each variable, for thousands of variables.

All pairs of a child and one parent are scored exactly. Each child keeps the parents that score best alone, and those
that prior knowledge requires; then all its parent sets among these are searched. A candidate set of the whole problem
may be missed where one of its members is not kept.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import AnyArray, Floats, Ints
from ..foundation.families import VertexSet
from ..foundation.workers import Workers, run
from ..scores.score import DECLARED, EACH, Formula, Score, rising
from .counting import prepare_rows
from .knowledge import Allowed
from .levels import Block, make_above, next_level, prepare_constraints, prepare_rule, scan, split, start_level

_ROWS = 1 << 16  # rows that are counted together: sums of 32-bit floats are exact up to 2^24
_CELLS = 1 << 22  # cells of pairs that are scored together
_LONG_TABLE = 1 << 17  # counts beyond this are not tabulated but scored one by one


class Pairs(NamedTuple):
    """The data in the form in which all pairs are scored, and the score."""

    codes: AnyArray  # (n, rows) observed states, numbered from 0
    kinds: Ints  # (n, 2) numbers of declared and of observed states
    formula: Formula


def possible_parents(
    dataset: Dataset, score: Score, allowed: Allowed, most: int, workers: Workers | None = None
) -> tuple[VertexSet, ...]:
    """Return for each child its required parents and the `most` others that score best alone (ties: the first ones)."""
    pairs, kept = prepare_pairs(dataset, score.formula(dataset.rows)), dict[int, VertexSet]()
    blocks = blocks_of_children(pairs.kinds)
    # Here one block follows the other: a product of matrices takes all threads.
    spread = workers if workers and workers.cluster is not None else Workers(1)
    for _, found in run(best_parents, (pairs, allowed, most), blocks, spread):
        kept.update(found)
    return tuple(kept[child] for child in range(dataset.n))


def prepare_pairs(dataset: Dataset, formula: Formula) -> Pairs:
    """Return the data in the form in which pairs are scored."""
    observed = [np.unique(column, return_inverse=True) for column in dataset.codes]
    kinds = [(len(states), len(seen)) for states, (seen, _) in zip(dataset.states, observed, strict=True)]
    codes = [column.astype(dataset.codes.dtype) for _, column in observed]
    return Pairs(np.array(codes).reshape(dataset.codes.shape), np.array(kinds).reshape(-1, 2), formula)


def blocks_of_children(kinds: Ints) -> list[Ints]:
    """Return blocks of variables of the same numbers of declared and of observed states."""
    blocks: list[Ints] = []
    for kind in np.unique(kinds, axis=0):
        children = np.flatnonzero((kinds == kind).all(axis=1))
        width = max(1, _CELLS // int(kind[1] * kinds[:, 1].sum()))
        blocks += [children[start : start + width] for start in range(0, len(children), width)]
    return blocks


def best_parents(shared: tuple[Pairs, Allowed, int], children: Ints) -> dict[int, VertexSet]:
    """Return the possible parents of the children of a block."""
    pairs, allowed, most = shared
    kept: dict[int, VertexSet] = {}
    for child, scores in zip(children.tolist(), pair_scores(pairs, children), strict=True):
        scores += allowed.prior_of(child)
        scores[list(allowed.excluded[child])] = -np.inf
        scores[list(allowed.required[child])] = -np.inf
        count = min(most, int(np.isfinite(scores).sum()))
        least = np.partition(scores, -count)[-count] if count else np.inf  # of those that are kept
        best = np.flatnonzero(scores > least)
        tied = np.flatnonzero(scores == least)[: count - len(best)]
        kept[child] = tuple(sorted({*best.tolist(), *tied.tolist(), *allowed.required[child]}))
    return kept


def pair_scores(pairs: Pairs, children: Ints) -> Floats:
    """(children, n) local scores of the children of a block with each single parent.

    Counts of all pairs are products of one-hot matrices. Variables of the same numbers of declared and of observed
    states make a group: its pairs with another group share the prior.
    """
    (n, rows), (spread, prior, penalty) = pairs.codes.shape, pairs.formula
    states, seen = pairs.kinds[children[0]].tolist()

    def one_hot(group: Ints, states: int, first: int) -> AnyArray:
        """Return (variables * states, rows) from this row on, as 32-bit floats."""
        codes = pairs.codes[group, first : first + _ROWS]
        hot: AnyArray = (codes[:, None, :] == np.arange(states)[None, :, None]).astype(np.float32)
        return hot.reshape(len(group) * states, -1)

    scores = np.empty((len(children), n))
    for other_states, other_seen in np.unique(pairs.kinds, axis=0).tolist():
        parents = np.flatnonzero((pairs.kinds == (other_states, other_seen)).all(axis=1))
        counts = np.zeros((len(children) * seen, len(parents) * other_seen), np.int64)
        for first in range(0, rows, _ROWS):
            counts += (one_hot(children, seen, first) @ one_hot(parents, other_seen, first).T).astype(np.int64)
        cells = counts.reshape(len(children), seen, len(parents), other_seen)
        if spread == EACH:
            per_cell, per_state = prior, prior * states
        elif spread == DECLARED:
            per_cell, per_state = prior / other_states / states, prior / other_states
        else:
            per_cell, per_state = prior / other_seen / seen, prior / other_seen
        joint = _terms(cells, per_cell, rows).sum(axis=(1, 3))
        marginal = _terms(cells[0].sum(axis=0), per_state, rows).sum(axis=1)
        scores[:, parents] = joint - marginal - penalty * (states - 1) * other_states
    return scores


def _terms(counts: Ints, s: float, rows: int) -> Floats:
    """Return `rising` of each count."""
    if rows <= _LONG_TABLE:
        looked_up: Floats = _term_table(rows, s)[counts]
        return looked_up
    values, places = np.unique(counts, return_inverse=True)
    listed: Floats = np.array([rising(c, s) for c in values.tolist()])[places].reshape(counts.shape)
    return listed


@lru_cache(maxsize=64)
def _term_table(rows: int, s: float) -> Floats:
    return np.array([rising(c, s) for c in range(rows + 1)])


def candidates_of_child(shared: tuple[Dataset, Score, Allowed, tuple[VertexSet, ...]], child: int) -> list[Block]:
    """Return the candidate sets of one child: a search in which no other variable may have parents."""
    dataset, score, allowed, kept = shared
    members = np.array(sorted((child, *kept[child])))
    n, place = len(members), int(np.searchsorted(members, child))
    states = tuple(dataset.states[i] for i in members.tolist())
    part = Dataset(tuple(dataset.names[i] for i in members.tolist()), states, dataset.codes[members])
    needed = tuple(np.searchsorted(members, allowed.required[child]).tolist())
    most = min(allowed.limits[child], n - 1)
    own = Allowed(
        tuple(needed if i == place else () for i in range(n)),
        tuple((i,) for i in range(n)),
        tuple(most if i == place else 0 for i in range(n)),
        tuple((i, place, float(nats)) for i, nats in enumerate(allowed.prior_of(child)[members]) if nats),
    )
    rows = prepare_rows(part)
    rule = prepare_rule(part, rows, score, own.required, [place])
    level = start_level(rows, rule, prepare_constraints(own), most + 1)
    found: list[Block] = []
    while True:
        last = level.k == most + 1
        above = make_above(level, last=last)
        for heads in split(level, 1 << 62):
            block = scan((level, above), heads)
            mine = block.child == place
            parents = members[block.parents[mine]].astype(np.int32)
            found.append(Block(np.full(len(parents), child, np.int32), parents, block.score[mine]))
        if last:
            return found
        level = next_level(level, above)
