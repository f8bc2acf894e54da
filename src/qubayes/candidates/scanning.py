"""The kernel that visits every small set of variables and judges every family in it.

A *level* k visits all sets V of k variables in lexicographic order. V = P + {i} is a family of each of its members i,
so one count serves k families. A set is split into a *prefix* (all but its largest member) and that member x: the
prefix is counted once, x runs in the inner loop, and the lexicographic rank of any subset of V that holds x is a
constant plus x, so that the inner loop reads every table of the level below in memory order.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, SmallInts
from ..foundation.jit import inner, kernel
from ..scores.score import DECLARED, EACH, OBSERVED, Formula
from ..scores.sums import SERIES, TIMES, VALUES, TermTables, sum_terms
from .counting import (
    Bits,
    Labels,
    Rows,
    add_member,
    add_to_prefix,
    count_bits,
    count_rows,
    make_counts,
    set_prefix_cells,
)

STATES, PRIOR_STATES, CLASS, TOLERANCE, BOUND = range(5)  # rows of Rule.children
FORBIDDEN, ALLOWED, REQUIRED = range(3)  # values of Constraints.edges
NEEDED, LIMIT, BONUS, PRIOR = range(4)  # rows of Constraints.numbers


class Rule(NamedTuple):
    """The score in numbers, and what it takes for a set to be a candidate set."""

    formula: Formula
    # (5, n) of each child: its declared states; its states in the prior (observed ones for OBSERVED); its column of
    # the parent terms; the margin by which a set must beat its subsets; a bound, for each cell, on the score of
    # every superset (docs/candidates.md proves it)
    children: Floats
    class_states: Floats  # (classes,) child states that a column of the parent terms is for


class Constraints(NamedTuple):
    """Which parents prior knowledge allows. Kernels take None instead where it says nothing."""

    edges: AnyArray  # (n, n) int8, [i, j]: whether j may be a parent of i, or must
    # (3, n), or (3 + n, n) with priors: of each child its number of required parents, the largest number of parents,
    # and the most that priors can add to its score; from row PRIOR on, what the edge from each parent adds. One array:
    # the arrays of a kernel's arguments are passed on with every call, and two more made a scan 2.2 times as slow.
    numbers: Floats


class Below(NamedTuple):
    """What is known of smaller sets when level k is visited, by lexicographic rank."""

    terms: Floats  # (classes, C(n, k-1)) parent terms of sets of k-1
    cells: SmallInts  # (C(n, k-1),) number of observed states of sets of k-1
    best: Floats  # (n, C(n, k-2)) best score of any subset; +inf: no superset can be a candidate
    binomials: Ints  # (k + 2, n + 1) [s, v]: C(n - v, s)


class Above(NamedTuple):
    """What level k leaves for level k + 1; empty arrays at the last level."""

    terms: Floats  # (classes, C(n, k))
    cells: SmallInts  # (C(n, k),)
    best: Floats  # (n, C(n, k-1))
    ones: SmallInts  # (C(n, k),) if rows are bits: rows in which all members are 1


class Found(NamedTuple):
    """Candidate sets of one block, in the order of discovery."""

    families: SmallInts  # (capacity, k) the child, then its parents
    scores: Floats  # (capacity,)


class Visit(NamedTuple):
    """The set under judgement and what is known of its subsets."""

    members: Ints  # (k,) the prefix; and x
    bases: Ints  # (k,) plus x: rank of V − v_t; the last is the rank of the prefix itself
    best_subset_scores: Floats  # (k, n) [t, x]: best of child v_t with a proper subset of V − v_t; +inf: not allowed
    counts: SmallInts  # (2, most) cell counts of V: values, and how often each occurs
    moments: Floats  # (SERIES,)


def make_visit(k: int, n: int, rows: Rows) -> Visit:
    """Return memory for the sets of level k."""
    members, bases = np.zeros((2, k), np.int64)
    return Visit(members, bases, np.empty((k, n)), make_counts(k, rows), np.empty(SERIES))


@kernel
def scan(
    prefixes: SmallInts,
    x_start: Ints,
    xs: SmallInts,
    labels: Labels | None,
    bits: Bits | None,
    rule: Rule,
    tables: TermTables,
    constraints: Constraints | None,
    below: Below,
    above: Above,
    found: Found,
    visit: Visit,
) -> int:
    """Judge every V = prefix + {x} for these prefixes, which come in lexicographic order.

    x runs over xs[x_start[p] .. x_start[p+1]-1] of prefix p, or, where x_start is empty, over all larger variables.
    Exactly one of `labels` and `bits` is given. Returns the number of candidates; those beyond the capacity of `found`
    are counted, not kept.
    """
    n, length = rule.children.shape[1], prefixes.shape[1]
    members, bases, binomials = visit.members, visit.bases, below.binomials
    store = len(above.cells) > 0
    n_found, chosen, same_as_before = 0, len(x_start) > 0, False
    for p in range(len(prefixes)):
        if chosen and x_start[p] == x_start[p + 1]:
            continue
        same = same_as_before  # up to here: that part of the prefix is counted already
        same_as_before = True
        for t in range(length):
            same = same and members[t] == prefixes[p, t]
            if not same:
                members[t] = prefixes[p, t]
                if bits is not None:  # None is a type to numba: one branch is compiled
                    add_to_prefix(t, members[t], bits)
                if labels is not None:
                    add_member(t, members[t], labels)
        first = members[length - 1] + 1 if length else 0
        _set_best_subset_scores(n, first, length, members, below.best, binomials, visit.best_subset_scores)
        if constraints is not None:
            _forbid(n, first, length, members, constraints, visit.best_subset_scores)
        for t in range(length):
            bases[t] = base_rank(members, length, t, -1, length, binomials) - (n - 1)
        bases[length] = base_rank(members, length, -1, -1, length, binomials)
        base = base_rank(members, length, -1, -1, length + 1, binomials) - (n - 1)
        if bits is not None:
            set_prefix_cells(members, length, binomials, bits)
        for place in range(x_start[p] if chosen else first, x_start[p + 1] if chosen else n):
            x = np.int64(xs[place]) if chosen else place
            hopeless = not store
            for t in range(length + 1):
                hopeless = hopeless and visit.best_subset_scores[t, x] == inf
            if hopeless:
                continue
            members[length] = x
            n_values = 2 << length
            if bits is not None:
                all_ones = count_bits(length, x, bits, visit.counts)
                if store:
                    above.ones[base + x] = all_ones
            if labels is not None:
                n_values = count_rows(length, x, labels, visit.counts)
            n_found = _judge(base + x, n_values, rule, tables, constraints, below, above, found, visit, n_found)
    return n_found


@inner
def base_rank(prefix: Ints, length: int, skip: int, skip_too: int, size: int, binomials: Ints) -> int:
    """Return the lexicographic rank of a set of `size`: the prefix without the positions skip and skip_too.

    If one member x is still to come, subtract n − 1 − x.
    """
    rank = binomials[size, 0] - 1
    for j in range(length):
        if j != skip and j != skip_too:
            rank -= binomials[size, prefix[j] + 1]
            size -= 1
    return rank


@inner
def _set_best_subset_scores(
    n: int, first: int, length: int, prefix: Ints, bests: Floats, binomials: Ints, best_subset_scores: Floats
) -> None:
    """Set the best scores of proper subsets of the families of prefix + {x}, for every x."""
    for t in range(length):
        best = bests[prefix[t]]
        row = best_subset_scores[t]
        start = best[base_rank(prefix, length, t, -1, length - 1, binomials)]
        for x in range(first, n):
            row[x] = start
        for u in range(length):
            if u != t:
                base = base_rank(prefix, length, t, u, length - 1, binomials) - (n - 1)
                for x in range(first, n):
                    row[x] = max(row[x], best[base + x])
    row = best_subset_scores[length]
    for x in range(first, n):
        row[x] = -inf
    for u in range(length):
        rank = base_rank(prefix, length, u, -1, length - 1, binomials)
        for x in range(first, n):
            row[x] = max(row[x], bests[x, rank])


@inner
def _forbid(
    n: int, first: int, length: int, prefix: Ints, constraints: Constraints, best_subset_scores: Floats
) -> None:
    """Set the best subset scores of families that prior knowledge rules out to +inf: nothing beats that."""
    edges, limits = constraints.edges, constraints.numbers[LIMIT]
    for x in range(first, n):
        if length > limits[x]:
            best_subset_scores[length, x] = inf
    for t in range(length):
        barred = length > limits[prefix[t]]
        for u in range(length):
            barred = barred or (u != t and edges[prefix[t], prefix[u]] == FORBIDDEN)
        for x in range(first, n):
            if barred or edges[prefix[t], x] == FORBIDDEN:
                best_subset_scores[t, x] = inf
            if edges[x, prefix[t]] == FORBIDDEN:
                best_subset_scores[length, x] = inf


@inner
def _judge(
    rank: int,
    n_values: int,
    rule: Rule,
    tables: TermTables,
    constraints: Constraints | None,
    below: Below,
    above: Above,
    found: Found,
    visit: Visit,
    n_found: int,
) -> int:
    """Score the families of V, keep the candidates, leave what the next level needs.

    Returns the number of candidates.
    """
    members, counts, moments, children = visit.members, visit.counts, visit.moments, rule.children
    spread, count, penalty = rule.formula
    k, store = len(members), len(above.cells) > 0
    n_cells, product, joint = 0, 1.0, 0.0
    for t in range(n_values):
        if counts[VALUES, t] > 0:
            n_cells += counts[TIMES, t]
    for t in range(k):
        product *= children[STATES, members[t]]
    moments[0] = np.nan
    if spread != OBSERVED:
        key = product if spread == DECLARED else 1.0
        joint = sum_terms(key, count / key, n_cells, tables, moments, counts, n_values)
    for t in range(k):
        child, parent_rank = members[t], visit.bases[t]
        if t < k - 1:
            parent_rank += members[k - 1]
        best_subset_score = visit.best_subset_scores[t, members[k - 1]]
        best = inf
        if best_subset_score != inf:
            if spread == OBSERVED:
                key = below.cells[parent_rank] * children[PRIOR_STATES, child]
                joint = sum_terms(key, count / key, n_cells, tables, moments, counts, n_values)
            parameters = product / children[STATES, child] * (children[STATES, child] - 1.0)
            score = joint - below.terms[int(children[CLASS, child]), parent_rank] - penalty * parameters
            held, needed, bonus = 0, 0.0, 0.0
            if constraints is not None:  # V − v_t has all required parents of v_t iff it has as many as are required
                needed = constraints.numbers[NEEDED, child]
                bonus = constraints.numbers[BONUS, child]
                for u in range(k):
                    held += u != t and constraints.edges[child, members[u]] == REQUIRED
                if len(constraints.numbers) > PRIOR:
                    for u in range(k):
                        score += constraints.numbers[PRIOR + members[u], child]  # 0 for the child itself
            if held < needed:
                best = -inf
            else:
                if score > best_subset_score + children[TOLERANCE, child] or best_subset_score == -inf:
                    _keep(t, score, members, found, n_found)
                    n_found += 1
                best = max(score, best_subset_score)
                if store and bonus - n_cells * children[BOUND, child] - penalty * parameters <= best:
                    best = inf  # no superset can be a candidate
        if store:
            above.best[child, parent_rank] = best
    if store:
        above.cells[rank] = n_cells
        for c in range(len(above.terms)):  # the terms of V as a parent set
            if spread == OBSERVED:
                joint = sum_terms(float(n_cells), count / n_cells, n_cells, tables, moments, counts, n_values)
            elif spread == EACH and count > 0.0:
                prior = count * rule.class_states[c]
                joint = sum_terms(-1.0, prior, n_cells, tables, moments, counts, n_values)
            above.terms[c, rank] = joint
    return n_found


@inner
def _keep(t: int, score: float, members: Ints, found: Found, place: int) -> None:
    """Put the family of v_t in its place, if there is room."""
    if place < len(found.scores):
        found.scores[place] = score
        found.families[place, 0] = members[t]
        column = 1
        for u in range(len(members)):
            if u != t:
                found.families[place, column] = members[u]
                column += 1
