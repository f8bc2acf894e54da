"""Kernel: scores of each child with each single parent, from rows as bits."""

from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts, Words
from ..foundation.jit import inner, kernel
from ..foundation.words import popcount
from .extensions import Tables, make_room, table_of, term
from .score import OBSERVED, Formula, priors


class Bitmaps(NamedTuple):
    """The rows in which each variable has each of its states."""

    rows: Words  # (states of all variables, words)
    first: Ints  # (n + 1,) the first state of each variable
    counts: Ints  # (states of all variables,) number of rows
    seen: Ints  # (n,) number of observed states


def bitmaps(codes: AnyArray, states: Ints) -> Bitmaps:
    """Return the rows of the table as bits."""
    n, rows = codes.shape
    first = np.concatenate([[0], np.cumsum(states)]).astype(np.int64)
    words = np.zeros((int(first[-1]), -(-max(rows, 1) // 64)), np.uint64)
    counts = np.zeros(int(first[-1]), np.int64)
    for variable in range(n):
        for state in range(int(states[variable])):
            padded = np.zeros(words.shape[1] * 64, np.uint8)
            padded[:rows] = codes[variable] == state
            words[first[variable] + state] = np.packbits(padded, bitorder="little").view(np.uint64)
            counts[first[variable] + state] = int(padded.sum())
    seen = np.add.reduceat(counts > 0, first[:-1], dtype=np.int64) if n else np.zeros(0, np.int64)
    return Bitmaps(words, first, counts, seen)


@kernel
def score_pairs(
    children: Ints,
    total: int,
    states: Ints,
    formula: Formula,
    bits: Bitmaps,
    tables: Tables,
    cells: SmallInts,
    scores: Floats,
) -> None:
    """Set scores[i, x] to that of children[i] with the parent x; without, if x is the child.

    `cells` has room for the counts of two variables."""
    for place in range(len(children)):
        child = children[place]
        own = states[child]
        spread_over = bits.seen[child] if formula.spread == OBSERVED else own
        for parent in range(len(states)):
            make_room(tables)
            if parent == child:
                scores[place, parent] = _alone(
                    child, own, spread_over, total, formula, bits, tables
                )
                continue
            _count_pair(child, parent, bits, cells)
            joint = states[parent]
            if formula.spread == OBSERVED:
                joint = bits.seen[parent]
            per_cell, per_state = priors(formula, float(joint), spread_over)
            of_cells = table_of(tables, per_cell, total)
            of_states = table_of(tables, per_state, total)
            score = -formula.penalty * (own - 1.0) * states[parent]
            for state in range(states[parent]):
                count = bits.counts[bits.first[parent] + state]
                score -= term(tables, of_states, count, per_state)
                for each in range(own):
                    score += term(tables, of_cells, cells[state, each], per_cell)
            scores[place, parent] = score


@inner
def _alone(
    child: int,
    own: int,
    spread_over: int,
    total: int,
    formula: Formula,
    bits: Bitmaps,
    tables: Tables,
) -> Any:
    """Return the score of the child without parents."""
    per_cell, per_state = priors(formula, 1.0, spread_over)
    of_cells = table_of(tables, per_cell, total)
    of_all = table_of(tables, per_state, total)
    score = -formula.penalty * (own - 1.0) - term(tables, of_all, total, per_state)
    for state in range(own):
        score += term(tables, of_cells, bits.counts[bits.first[child] + state], per_cell)
    return score


@inner
def _count_pair(child: int, parent: int, bits: Bitmaps, cells: Any) -> None:
    """Set cells[a, b] to the number of rows with the state a of the parent and b of the child.

    The last state of each variable gets what is left."""
    child_first, child_end = bits.first[child], bits.first[child + 1]
    parent_first, parent_end = bits.first[parent], bits.first[parent + 1]
    last_of_child = child_end - child_first - 1
    last_of_parent = parent_end - parent_first - 1
    for b in range(last_of_child + 1):
        cells[last_of_parent, b] = bits.counts[child_first + b]
    for a in range(last_of_parent):
        rest = bits.counts[parent_first + a]
        for b in range(last_of_child):
            count = 0
            for word in range(bits.rows.shape[1]):
                count += popcount(
                    bits.rows[parent_first + a, word] & bits.rows[child_first + b, word]
                )
            cells[a, b] = count
            cells[last_of_parent, b] -= count
            rest -= count
        cells[a, last_of_child] = rest
        cells[last_of_parent, last_of_child] -= rest
