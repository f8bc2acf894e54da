"""The loop over every small set of variables, which judges every family in it (design §3).

A *level* k visits all sets V of k variables in lexicographic order. V = P + {i} is a family of each of its members i,
so one count serves k families. A set is split into a *prefix* (all but its largest member) and that member x: the
prefix is counted once, x runs in the inner loop, and the lexicographic rank of any subset of V that holds x is a
constant plus x, so that the inner loop reads every table of the level below in memory order.
"""

from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from ..foundation.arrays import Floats, Ints
from ..foundation.jit import inner, kernel
from .counting import Scratch, add_member, add_to_prefix, base_rank, count_bits, count_rows, set_prefix_cells
from .tables import BDEU, BDS, K2, LIKELIHOOD, Above, Below, Bits, Constraints, Counts, Found, Labels, Rule
from .terms import SERIES, sum_by_table, sum_terms


class Visit(NamedTuple):
    """The set under judgement and what is known of its subsets."""

    prefix: Ints  # (k,) all members but x; and x
    bases: Ints  # (k,) plus x: rank of V − v_t; the last is the rank of the prefix itself
    chosen: Ints  # (k,) scratch
    thresholds: Floats  # (k, n) [t, x]: best score of any proper subset of V − v_t for child v_t; +inf: not allowed
    moments: Floats  # (SERIES,)


def make_visit(k: int, n: int) -> Visit:
    """Room for the sets of level k."""
    prefix, bases, chosen = np.zeros((3, k), np.int64)
    return Visit(prefix, bases, chosen, np.empty((k, n)), np.empty(SERIES))


@kernel
def scan(
    k: int,
    heads: Ints,
    data: Labels,
    bits: Bits | None,
    rule: Rule,
    constraints: Constraints | None,
    below: Below,
    above: Above,
    found: Found,
    scratch: Scratch,
    visit: Visit,
) -> int:
    """Visit every V of k variables that starts with one of `heads` (rows of 0, 1 or 2 members).

    Returns the number of candidates; those beyond the capacity of `found` are counted, not kept.
    """
    n = len(rule.declared)
    length, head_length = k - 1, heads.shape[1]
    prefix = visit.prefix
    n_found: Any = np.int64(0)  # not a literal: numba would compile what it is passed to once more
    for head in range(len(heads)):
        depth: Any = np.int64(0)
        following: Any = np.int64(0)
        while True:
            if depth < head_length:
                following = heads[head, depth]
            if depth < length and following <= n - (k - depth):
                prefix[depth] = following
                if bits is not None:  # numba knows, and compiles only one of the two
                    add_to_prefix(depth, following, bits)
                else:
                    add_member(depth, following, data, scratch)
                depth += 1
                following += 1
                continue
            if depth == length:
                n_found = _visit_prefix(k, data, bits, rule, constraints, below, above, found, scratch, visit, n_found)
            if depth == head_length:
                break
            depth -= 1
            following = prefix[depth] + 1
    return n_found


@inner
def _visit_prefix(
    k: int,
    data: Labels,
    bits: Bits | None,
    rule: Rule,
    constraints: Constraints | None,
    below: Below,
    above: Above,
    found: Found,
    scratch: Scratch,
    visit: Visit,
    n_found: int,
) -> int:
    """Judge every V that has this prefix."""
    n, length = len(rule.declared), k - 1
    store = len(above.cells) > 0
    _set_thresholds(n, k, below, visit)
    if constraints is not None:
        _forbid(n, k, constraints, visit)
    base = _set_ranks(n, k, below, visit)
    if bits is not None:
        set_prefix_cells(k, visit.prefix, visit.chosen, n, below, bits)
    for x in range(visit.prefix[length - 1] + 1 if length else 0, n):
        if not store and _hopeless(k, x, visit.thresholds):
            continue
        if bits is not None:
            all_ones = count_bits(length, x, bits, below, scratch.values)
            n_values = 2 << length
            if store:
                above.ones[base + x] = all_ones
        else:
            n_values = count_rows(length, x, data, scratch)
        visit.prefix[length] = x
        counts = (scratch.values, scratch.times, n_values)
        n_found = _judge(k, base + x, counts, rule, constraints, below, above, found, visit, n_found)
    return n_found


@inner
def _set_ranks(n: int, k: int, below: Below, visit: Visit) -> int:
    """Set visit.bases; returns what plus x is the rank of V."""
    length = k - 1
    none = visit.prefix[0] * 0 - 1  # −1, but no literal
    for t in range(length):
        visit.bases[t] = base_rank(visit.prefix, length, t, none, k - 1, below) - (n - 1)
    visit.bases[length] = base_rank(visit.prefix, length, none, none, k - 1, below)
    return base_rank(visit.prefix, length, none, none, k, below) - (n - 1)


@inner
def _set_thresholds(n: int, k: int, below: Below, visit: Visit) -> None:
    length, prefix = k - 1, visit.prefix
    none = prefix[0] * 0 - 1
    first = prefix[length - 1] + 1 if length else 0
    for t in range(length):
        best = below.best[prefix[t]]
        row = visit.thresholds[t]
        start = best[base_rank(prefix, length, t, none, k - 2, below)]
        for x in range(first, n):
            row[x] = start
        for u in range(length):
            if u != t:
                base = base_rank(prefix, length, t, u, k - 2, below) - (n - 1)
                for x in range(first, n):
                    row[x] = max(row[x], best[base + x])
    row = visit.thresholds[length]
    for x in range(first, n):
        row[x] = -inf
    for u in range(length):
        rank = base_rank(prefix, length, u, none, k - 2, below)
        for x in range(first, n):
            row[x] = max(row[x], below.best[x, rank])


@inner
def _forbid(n: int, k: int, constraints: Constraints, visit: Visit) -> None:
    """Raise the thresholds of families that prior knowledge rules out to +inf."""
    length, prefix, thresholds = k - 1, visit.prefix, visit.thresholds
    first = prefix[length - 1] + 1 if length else 0
    for x in range(first, n):
        if length > constraints.limits[x]:
            thresholds[length, x] = inf
    for t in range(length):
        barred = length > constraints.limits[prefix[t]]
        for u in range(length):
            barred |= u != t and not constraints.allowed[prefix[t], prefix[u]]
        for x in range(first, n):
            if barred or not constraints.allowed[prefix[t], x]:
                thresholds[t, x] = inf
            if not constraints.allowed[x, prefix[t]]:
                thresholds[length, x] = inf


@inner
def _hopeless(k: int, x: int, thresholds: Floats) -> bool:
    hopeless = True
    for t in range(k):
        hopeless &= thresholds[t, x] == inf
    return hopeless


@inner
def _judge(
    k: int,
    rank: int,
    counts: Counts,
    rule: Rule,
    constraints: Constraints | None,
    below: Below,
    above: Above,
    found: Found,
    visit: Visit,
    n_found: int,
) -> int:
    """Score the k families of V, keep the candidates, leave what the next level needs."""
    values, times, n_values = counts
    store = len(above.cells) > 0
    members, moments = visit.prefix, visit.moments
    n_cells: Any = np.int64(0)
    for t in range(n_values):
        if values[t] > 0:
            n_cells += times[t]
    moments[0] = np.nan
    product = 1.0
    for t in range(k):
        product *= rule.declared[members[t]]
    joint = 0.0
    if rule.kind == BDEU:
        joint = sum_terms(product, rule.ess / product, n_cells, below, moments, counts)
    elif rule.kind != BDS:
        joint = sum_by_table(n_cells * 0, 1.0 if rule.kind == K2 else 0.0, below.table, counts)
    for t in range(k):
        child, parent_rank = members[t], visit.bases[t]
        if t < k - 1:
            parent_rank += members[k - 1]
        threshold = visit.thresholds[t, members[k - 1]]
        best = inf
        if threshold != inf:
            if rule.kind == BDS:
                key = below.cells[parent_rank] * rule.arities[child]
                joint = sum_terms(key, rule.ess / key, n_cells, below, moments, counts)
            parameters = product / rule.declared[child] * (rule.declared[child] - 1.0)
            score = joint - below.terms[parent_rank, rule.arity_class[child]] - rule.price * parameters
            allowed = True
            if constraints is not None:
                allowed = _holds_required(k, t, members, constraints)
            if not allowed:
                best = -inf
            else:
                if score > threshold + rule.tolerance[child] or threshold == -inf:
                    _keep(k, t, score, members, found, n_found)
                    n_found += 1
                best = max(score, threshold)
                if store and _bound(n_cells, child, parameters, rule) <= best:
                    best = inf
        if store:
            above.best[child, parent_rank] = best
    if store:
        above.cells[rank] = n_cells
        _store_terms(n_cells, joint, counts, rank, below, above, rule, moments)
    return n_found


@inner
def _bound(n_cells: int, child: int, parameters: float, rule: Rule) -> float:
    """No superset scores more than this: docs/candidates.md proves it."""
    if rule.kind == LIKELIHOOD:
        return -rule.price * parameters
    return -n_cells * log(rule.arities[child])


@inner
def _holds_required(k: int, t: int, members: Ints, constraints: Constraints) -> bool:
    """Whether V − v_t holds every required parent of v_t."""
    held = 0
    for u in range(k):
        if u != t and constraints.required[members[t], members[u]]:
            held += 1
    return held == constraints.required_count[members[t]]


@inner
def _keep(k: int, t: int, score: float, members: Ints, found: Found, place: int) -> None:
    if place < len(found.child):
        found.child[place] = members[t]
        found.score[place] = score
        column = 0
        for u in range(k):
            if u != t:
                found.parents[place, column] = members[u]
                column += 1


@inner
def _store_terms(
    n_cells: int, joint: float, counts: Counts, rank: int, below: Below, above: Above, rule: Rule, moments: Floats
) -> None:
    """The terms of V as a parent set."""
    if rule.kind == BDEU or rule.kind == LIKELIHOOD:
        above.terms[rank, 0] = joint
    elif rule.kind == BDS:
        above.terms[rank, 0] = sum_terms(float(n_cells), rule.ess / n_cells, n_cells, below, moments, counts)
    else:
        for c in range(len(rule.class_arity)):
            above.terms[rank, c] = sum_by_table(n_cells * 0 - 1, rule.class_arity[c], below.table, counts)
