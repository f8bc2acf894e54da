"""Candidate sets among a few possible parents of each variable, for thousands of variables.

All pairs of a child and one parent are scored exactly. Each child keeps a third of its possible
parents because they score best alone, and for each of these its best partners: the variables with
which it scores best as a pair of parents. Those that prior knowledge requires are kept, too. Then
all parent sets among these are searched. A candidate set of the whole problem may be missed where
one of its members is not kept."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import AnyArray, Floats, Ints
from ..foundation.families import VertexSet
from ..foundation.workers import Workers, run
from ..scores.score import OBSERVED, Formula, Score, priors, rising
from .counting import prepare_rows
from .knowledge import Allowed
from .levels import (
    make_above,
    next_level,
    prepare_constraints,
    prepare_rule,
    scan_block,
    split,
    start_level,
)
from .partners import PARTNERS, Pairs, choose_partners, partner_scores
from .scanning import Block

_ROWS = 1 << 16  # rows that are counted together: sums of 32-bit floats are exact up to 2^24
_CELLS = 1 << 22  # cells of pairs that are scored together
_LONGEST_TABLE = 1 << 17  # terms of counts beyond this are not tabulated but computed one by one


def possible_parents(
    dataset: Dataset, score: Score, allowed: Allowed, most: int, workers: Workers | None = None
) -> tuple[VertexSet, ...]:
    """Return for each child its required parents and `most` others: singles and partners."""
    workers = workers or Workers()
    pairs = prepare_pairs(dataset, score.formula(dataset.rows))
    blocks = blocks_of_children(pairs.kinds)
    ranked: dict[int, list[int]] = {}
    # Here one block follows the other: a product of matrices takes all threads.
    one_by_one = workers if workers.cluster else Workers(1)
    for _, best in run(best_parents, (pairs, allowed, most), blocks, one_by_one):
        ranked.update(best)
    sample = pairs.sample
    tasks = blocks_with_singles(sample, ranked, most)
    kept: dict[int, VertexSet] = {}
    for _, found in run(with_partners, (sample, allowed, most), tasks, workers):
        kept.update(found)
    return tuple(kept[child] for child in range(dataset.n))


def prepare_pairs(dataset: Dataset, formula: Formula) -> Pairs:
    """Return the data in the form in which pairs are scored."""
    codes = np.empty_like(dataset.codes)
    kinds = np.zeros((dataset.n, 2), np.int64)
    for i, column in enumerate(dataset.codes):
        seen, codes[i] = np.unique(column, return_inverse=True)
        kinds[i] = len(dataset.states[i]), len(seen)
    return Pairs(codes, kinds, formula, times=dataset.weights)


def blocks_of_children(kinds: Ints, cells: Callable[[int], int] | None = None) -> list[Ints]:
    """Return blocks of variables of one kind (same numbers of states), to be scored together.

    `cells` is what is held at once for one of this number of observed states: by default its pairs
    with all variables."""
    blocks: list[Ints] = []
    for kind in np.unique(kinds, axis=0):
        children = np.flatnonzero((kinds == kind).all(axis=1))
        seen = int(kind[1])
        held = int(seen * kinds[:, 1].sum()) if cells is None else cells(seen)
        width = max(1, _CELLS // held)
        blocks += [children[start : start + width] for start in range(0, len(children), width)]
    return blocks


def blocks_with_singles(
    pairs: Pairs, ranked: dict[int, list[int]], most: int
) -> list[list[tuple[int, list[int]]]]:
    """Return blocks of (child, its best single parents), of the children with ranked parents."""
    most_seen = int(pairs.kinds[:, 1].max())
    count = singles_among(most)
    made: list[list[tuple[int, list[int]]]] = []
    for block in blocks_of_children(
        pairs.kinds, lambda seen: (2 * sum(pairs.codes.shape) + most_seen * seen) * count
    ):
        children = [child for child in block.tolist() if child in ranked]
        if children:
            made.append([(child, ranked[child]) for child in children])
    return made


def singles_among(most: int) -> int:
    """Return how many of the possible parents are kept because they score best alone."""
    return -(-most // (1 + PARTNERS))


def best_parents(shared: tuple[Pairs, Allowed, int], children: Ints) -> dict[int, list[int]]:
    """Return the `most` best single parents of each child of a block, best first.

    Of equal ones the first are taken.
    """
    pairs, allowed, most = shared
    ranked: dict[int, list[int]] = {}
    for child, scores in zip(children.tolist(), pair_scores(pairs, children), strict=True):
        scores = _allowed_alone(allowed, child, scores)
        count = min(most, int(np.isfinite(scores).sum()))
        least = np.partition(scores, -count)[-count] if count else np.inf  # of those that are kept
        best = np.flatnonzero(scores >= least)
        ranked[child] = best[np.argsort(-scores[best], kind="stable")][:count].tolist()
    return ranked


def _allowed_alone(allowed: Allowed, child: int, scores: Floats) -> Floats:
    """Return the scores (..., n) of parents with priors; -inf if not allowed, or required."""
    scores = scores + allowed.prior_of(child)
    scores[..., list(allowed.excluded[child])] = -np.inf
    scores[..., list(allowed.required[child])] = -np.inf
    return scores


def with_partners(
    shared: tuple[Pairs, Allowed, int], block: Sequence[tuple[int, list[int]]]
) -> dict[int, VertexSet]:
    """Return the possible parents of the children of a block of (child, best single parents).

    A child that may have one parent only keeps single parents; others fill up with them where
    partners are lacking."""
    pairs, allowed, most = shared
    kept = dict(block)
    count = singles_among(most)
    paired = [child for child, ranked in block if allowed.limits[child] > 1 and ranked]
    if paired:
        # Fewer single parents are filled up by the first.
        singles = np.array([(kept[child] + kept[child][:1] * count)[:count] for child in paired])
        found = partner_scores(pairs, np.array(paired), singles)
        for child, scores in zip(paired, found, strict=True):
            scores = _allowed_alone(allowed, child, scores)
            best = choose_partners(scores, kept[child][:count], most)
            kept[child] = list(dict.fromkeys(best + kept[child]))[:most]
    return {
        child: tuple(sorted({*parents, *allowed.required[child]}))
        for child, parents in kept.items()
    }


def pair_scores(pairs: Pairs, children: Ints) -> Floats:
    """(children, n) local scores of the children of a block with each single parent.

    Counts of all pairs are products of one-hot matrices. Variables of the same numbers of declared
    and of observed states make a group: its pairs with another group share the prior."""
    n, rows = len(pairs.codes), pairs.total
    formula = pairs.formula
    observed = formula.spread == OBSERVED
    states, seen = pairs.kinds[children[0]].tolist()
    scores = np.empty((len(children), n))
    for other_states, other_seen in np.unique(pairs.kinds, axis=0).tolist():
        parents = np.flatnonzero((pairs.kinds == (other_states, other_seen)).all(axis=1))
        cells = _count_pairs(pairs, children, seen, parents, other_seen)
        of_parent, of_child = (other_seen, seen) if observed else (other_states, states)
        per_cell, per_state = priors(formula, of_parent, of_child)
        joint = _terms(cells, per_cell, rows).sum(axis=(1, 3))
        marginal = _terms(cells[0].sum(axis=0), per_state, rows).sum(axis=1)
        scores[:, parents] = joint - marginal - formula.penalty * (states - 1) * other_states
    return scores


def _count_pairs(pairs: Pairs, children: Ints, seen: int, parents: Ints, of_parent: int) -> Ints:
    """Return (children, states, parents, states) numbers of rows, of variables of two kinds."""
    counts = np.zeros((len(children) * seen, len(parents) * of_parent), np.int64)
    for first in range(0, pairs.codes.shape[1], _ROWS):
        rows = pairs.codes[:, first : first + _ROWS]
        own = _one_hot(rows[children], seen)
        other = _one_hot(rows[parents], of_parent)
        if pairs.times is not None:  # 64-bit sums are exact up to 2^53
            own = own * pairs.times[first : first + _ROWS].astype(np.float64)
        counts += (own @ other.T).astype(np.int64)
    return counts.reshape(len(children), seen, len(parents), of_parent)


def _one_hot(codes: AnyArray, states: int) -> AnyArray:
    """Return (variables * states, rows) whether the variable has the state, as 32-bit floats."""
    hot: AnyArray = (codes[:, None, :] == np.arange(states)[None, :, None]).astype(np.float32)
    return hot.reshape(len(codes) * states, -1)


def _terms(counts: Ints, s: float, rows: int) -> Floats:
    """Return `rising` of each count."""
    if rows <= _LONGEST_TABLE:
        looked_up: Floats = _term_table(rows, s)[counts]
        return looked_up
    values, places = np.unique(counts, return_inverse=True)
    listed: Floats = np.array([rising(c, s) for c in values.tolist()])[places].reshape(counts.shape)
    return listed


@lru_cache(maxsize=64)
def _term_table(rows: int, s: float) -> Floats:
    """Return `rising` of the counts 0 .. rows."""
    return np.array([rising(c, s) for c in range(rows + 1)])


def candidates_of_child(
    shared: tuple[Dataset, Score, Allowed, tuple[VertexSet, ...]], child: int
) -> list[Block]:
    """Return the candidate sets of one child: in this search no other variable has parents."""
    dataset, score, allowed, kept = shared
    members = np.array(sorted((child, *kept[child])))
    place = int(np.searchsorted(members, child))
    part = dataset.select(members)
    own = _only_parents_of(place, members, allowed)
    rows = prepare_rows(part)
    rule = prepare_rule(part, rows, score, own.required, [place])
    most = own.limits[place]
    level = start_level(rows, rule, prepare_constraints(own), most + 1)
    found: list[Block] = []
    while True:
        last = level.k == most + 1
        above = make_above(level, last=last)
        for heads in split(level, 1 << 62):
            block = scan_block((level, above), heads)
            mine = block.children == place
            found.append(Block(members[block.families[mine]].astype(np.int32), block.scores[mine]))
        if last:
            return found
        level = next_level(level, above)


def _only_parents_of(place: int, members: Ints, allowed: Allowed) -> Allowed:
    """Return what is allowed among these variables if only the one at this place has parents."""
    child = int(members[place])
    n = len(members)
    required: list[VertexSet] = [()] * n
    required[place] = tuple(np.searchsorted(members, allowed.required[child]).tolist())
    limits = [0] * n
    limits[place] = min(allowed.limits[child], n - 1)
    nats = allowed.prior_of(child)[members].tolist()
    priors = [(parent, place, value) for parent, value in enumerate(nats) if value]
    itself = [(vertex,) for vertex in range(n)]
    return Allowed(tuple(required), tuple(itself), tuple(limits), tuple(priors))
