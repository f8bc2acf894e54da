"""Candidate sets among a few possible parents of each variable, for thousands of variables.

All pairs of a child and one parent are scored exactly. Each child keeps the parents that score best alone, and those
that prior knowledge requires; then all its parent sets among these are searched. A candidate set of the whole problem
may be missed where one of its members is not kept.
"""

from collections.abc import Iterator

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


def possible_parents(dataset: Dataset, score: Score, allowed: Allowed, most: int) -> tuple[VertexSet, ...]:
    """Return for each child its required parents and the `most` others that score best alone (ties: the first ones)."""
    kept: list[VertexSet] = [()] * dataset.n
    for child, scores in pair_scores(dataset, score.formula(dataset.rows)):
        scores[list(allowed.excluded[child])] = -np.inf
        scores[list(allowed.required[child])] = -np.inf
        count = min(most, int(np.isfinite(scores).sum()))
        best = np.argsort(-scores, kind="stable")[:count] if count else np.zeros(0, np.int64)
        kept[child] = tuple(sorted({*best.tolist(), *allowed.required[child]}))
    return tuple(kept)


def pair_scores(dataset: Dataset, formula: Formula) -> Iterator[tuple[int, Floats]]:
    """Yield (child, local score with each single parent); children come in any order.

    Counts of all pairs are products of one-hot matrices. Variables of the same numbers of declared and of observed
    states make a group: its pairs with another group share the prior.
    """
    n, rows, (spread, prior, penalty) = dataset.n, dataset.rows, formula
    observed = [np.unique(column, return_inverse=True) for column in dataset.codes]
    kinds = np.array([(len(dataset.states[i]), len(observed[i][0])) for i in range(n)])
    groups = {(r, o): np.flatnonzero((kinds == (r, o)).all(axis=1)) for r, o in np.unique(kinds, axis=0).tolist()}
    tables: dict[float, Floats] = {}

    def terms(counts: Ints, s: float) -> Floats:
        if rows > _LONG_TABLE:
            values, places = np.unique(counts, return_inverse=True)
            listed: Floats = np.array([rising(c, s) for c in values.tolist()])[places].reshape(counts.shape)
            return listed
        if s not in tables:
            tables[s] = np.array([rising(c, s) for c in range(rows + 1)])
        looked_up: Floats = tables[s][counts]
        return looked_up

    def one_hot(group: Ints, states: int, first: int) -> AnyArray:
        """Return (variables * states, rows) from this row on, as 32-bit floats."""
        codes = np.stack([observed[i][1][first : first + _ROWS] for i in group])
        hot: AnyArray = (codes[:, None, :] == np.arange(states)[None, :, None]).astype(np.float32)
        return hot.reshape(len(group) * states, -1)

    for (states, seen), children in groups.items():
        width = max(1, _CELLS // (seen * int(kinds[:, 1].sum())))
        for start in range(0, len(children), width):
            block = children[start : start + width]
            scores = np.empty((len(block), n))
            for (other_states, other_seen), parents in groups.items():
                counts = np.zeros((len(block) * seen, len(parents) * other_seen), np.int64)
                for first in range(0, rows, _ROWS):
                    counts += (one_hot(block, seen, first) @ one_hot(parents, other_seen, first).T).astype(np.int64)
                cells = counts.reshape(len(block), seen, len(parents), other_seen)
                if spread == EACH:
                    per_cell, per_state = prior, prior * states
                elif spread == DECLARED:
                    per_cell, per_state = prior / other_states / states, prior / other_states
                else:
                    per_cell, per_state = prior / other_seen / seen, prior / other_seen
                joint = terms(cells, per_cell).sum(axis=(1, 3))
                marginal = terms(cells[0].sum(axis=0), per_state).sum(axis=1)
                scores[:, parents] = joint - marginal - penalty * (states - 1) * other_states
            yield from zip(block.tolist(), scores, strict=True)


def identify_among(
    dataset: Dataset, score: Score, allowed: Allowed, kept: tuple[VertexSet, ...], workers: Workers
) -> Iterator[list[Block]]:
    """Yield the candidate sets of each child, which are sets of its kept parents; children come in any order."""
    for _, blocks in run(_candidates_of, (dataset, score, allowed, kept), list(range(dataset.n)), workers):
        yield blocks


def _candidates_of(shared: tuple[Dataset, Score, Allowed, tuple[VertexSet, ...]], child: int) -> list[Block]:
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
