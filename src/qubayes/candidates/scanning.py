"""The kernel `scan_prefixes`: score every family of the sets of a level, keep the candidate sets.

A *level* k visits all sets V of k variables in lexicographic order. V = P + {i} is a family of each
of its members i, so one count serves k families. A set is split into a *prefix* (all but its
largest member) and that member x: the prefix is counted once, x runs in the inner loop, and the
lexicographic rank of any subset of V that holds x is a constant plus x, so that the inner loop
reads every table of the level below in memory order."""

from math import inf
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import AnyArray, Floats, Ints, Records, SmallInts
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

FORBIDDEN, ALLOWED, REQUIRED = range(3)  # values of Constraints.edges

# Records: one array however many fields. A kernel passes its arrays on with every call.
CHILD = np.dtype(
    [
        ("states", np.float64),  # declared
        ("prior_states", np.float64),  # over which the prior is spread: observed ones for OBSERVED
        ("column", np.int64),  # of the parent terms
        ("margin", np.float64),  # by which a set must beat its subsets
        # for each cell, on the score of every superset (docs/candidates.md)
        ("cell_bound", np.float64),
    ]
)
LIMITS = np.dtype(
    [
        ("required", np.int64),  # number of required parents
        ("most", np.int64),  # largest number of parents
        ("bonus", np.float64),  # the most that priors of edges can add to the score
    ]
)


class Rule(NamedTuple):
    """The score in numbers, and what it takes for a set to be a candidate set."""

    formula: Formula
    children: Records  # (n,) CHILD
    class_states: Floats  # (classes,) child states that a column of the parent terms is for


class Constraints(NamedTuple):
    """Which parents prior knowledge allows. Kernels take None instead where it says nothing."""

    edges: AnyArray  # (n, n) int8, [i, j]: whether j may be a parent of i, or must
    limits: Records  # (n,) LIMITS of each child
    # (n, n) [i, j]: what the edge from j adds to the score of i; (0, 0) without priors
    priors: Floats


class Below(NamedTuple):
    """What is known of smaller sets when level k is visited, by lexicographic rank."""

    terms: Floats  # (classes, C(n, k-1)) parent terms of sets of k-1
    cells: SmallInts  # (C(n, k-1),) number of observed states of sets of k-1
    best: Floats  # (n, C(n, k-2)) best score of any subset; +inf: no superset can be a candidate
    binomials: Ints  # (k + 2, n + 1) [s, v]: C(n - v, s)


class Above(NamedTuple):
    """Tables that level k makes for level k + 1; empty arrays at the last level."""

    terms: Floats  # (classes, C(n, k))
    cells: SmallInts  # (C(n, k),)
    best: Floats  # (n, C(n, k-1))
    ones: SmallInts  # (C(n, k),) if rows are bits: rows in which all members are 1


class Block(NamedTuple):
    """Candidate sets of some sets of a level, in the order of discovery; or memory for them."""

    families: SmallInts  # (found, k) the child, then its parents, ascending
    scores: Floats  # (found,)

    @property
    def children(self) -> SmallInts:
        """(found,) the child of each set."""
        return self.families[:, 0]

    @property
    def parents(self) -> SmallInts:
        """(found, k-1) the members of each set."""
        return self.families[:, 1:]

    def fits(self, n: int, k: int) -> bool:
        """Return whether these can be candidate sets of level k among n variables."""
        families, parents = self.families, self.parents
        return (
            families.shape[1] == k
            and bool(((families >= 0) & (families < n)).all())
            and bool((np.diff(parents, axis=1) > 0).all())
            and bool((parents != self.children[:, None]).all())
            and bool(np.isfinite(self.scores).all())
        )


class Visit(NamedTuple):
    """The set under judgement and what is known of its subsets."""

    members: Ints  # (k,) the prefix; and x
    bases: Ints  # (k,) plus x: rank of V - v_t; the last is the rank of the prefix itself
    # (k, n) [t, x]: best of child v_t with a proper subset of V - v_t; +inf: not allowed
    best_subset_scores: Floats
    counts: SmallInts  # (2, most) cell counts of V: values, and how often each occurs
    moments: Floats  # (SERIES,)


def make_visit(k: int, n: int, rows: Rows) -> Visit:
    """Return memory for the sets of level k."""
    members, bases = np.zeros((2, k), np.int64)
    return Visit(members, bases, np.empty((k, n)), make_counts(k, rows), np.empty(SERIES))


@kernel
def scan_prefixes(
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
    found: Block,
    visit: Visit,
) -> int:
    """Judge every V = prefix + {x} for these prefixes, which come in lexicographic order.

    x runs over xs[x_start[p] .. x_start[p+1]-1] of prefix p, or, where x_start is empty, over all
    larger variables. Exactly one of `labels` and `bits` is given. Returns the number of candidates;
    those beyond the capacity of `found` are counted, not kept."""
    n = len(rule.children)
    length = prefixes.shape[1]
    members = visit.members
    chosen = len(x_start) > 0
    last = len(above.cells) == 0
    known = 0  # how many members of the prefix are those of the prefix before
    n_found = 0
    for p in range(len(prefixes)):
        if chosen and x_start[p] == x_start[p + 1]:
            continue
        known = common_length(members, prefixes[p], known)
        _add_members(known, prefixes[p], labels, bits, visit)
        known = length
        first = members[length - 1] + 1 if length else 0
        _set_best_subset_scores(n, first, length, below, visit)
        if constraints is not None:
            _forbid(n, first, length, constraints, visit)
        base = _set_bases(n, length, below.binomials, visit)
        if bits is not None:
            set_prefix_cells(members, length, below.binomials, bits)
        begin = x_start[p] if chosen else first
        end = x_start[p + 1] if chosen else n
        for place in range(begin, end):
            x = np.int64(xs[place]) if chosen else place
            if last and not _may_gain(x, length, visit.best_subset_scores):
                continue
            members[length] = x
            n_values = 2 << length
            if bits is not None:
                all_ones = count_bits(length, x, bits, visit.counts)
                if not last:
                    above.ones[base + x] = all_ones
            if labels is not None:
                n_values = count_rows(length, x, labels, visit.counts)
            n_found = _judge(
                base + x, n_values, rule, tables, constraints, below, above, found, visit, n_found
            )
    return n_found


@inner
def common_length(members: Ints, prefix: SmallInts, known: int) -> int:
    """Return how many of the first `known` members begin the prefix too."""
    for t in range(known):
        if members[t] != prefix[t]:
            return t
    return known


@inner
def _add_members(
    known: int, prefix: SmallInts, labels: Labels | None, bits: Bits | None, visit: Visit
) -> None:
    """Count the prefix, of which the first `known` members are counted already."""
    for t in range(known, len(prefix)):
        visit.members[t] = prefix[t]
        if bits is not None:  # None is a type to numba: one branch is compiled
            add_to_prefix(t, visit.members[t], bits)
        if labels is not None:
            add_member(t, visit.members[t], labels)


@inner
def _may_gain(x: int, length: int, best_subset_scores: Floats) -> bool:
    """Return whether the set may be a candidate set of some child."""
    for t in range(length + 1):  # noqa: SIM110 - numba has no generators
        if best_subset_scores[t, x] != inf:
            return True
    return False


@inner
def _set_bases(n: int, length: int, binomials: Ints, visit: Visit) -> int:
    """Set what each x is added to for the ranks of parent sets; return that of prefix + {x}."""
    members = visit.members
    for t in range(length):
        visit.bases[t] = base_rank(members, length, t, -1, length, binomials) - (n - 1)
    visit.bases[length] = base_rank(members, length, -1, -1, length, binomials)
    return base_rank(members, length, -1, -1, length + 1, binomials) - (n - 1)


@inner
def base_rank(
    prefix: Ints, length: int, skip: int, skip_too: int, size: int, binomials: Ints
) -> int:
    """Return the lexicographic rank of the prefix without the positions skip and skip_too.

    The set has `size` members. If one member x is still to come, subtract n - 1 - x.
    """
    rank = binomials[size, 0] - 1
    for j in range(length):
        if j != skip and j != skip_too:
            rank -= binomials[size, prefix[j] + 1]
            size -= 1
    return rank


@inner
def _set_best_subset_scores(n: int, first: int, length: int, below: Below, visit: Visit) -> None:
    """Set the best scores of proper subsets of the families of prefix + {x}, for every x."""
    prefix = visit.members
    bests = below.best
    binomials = below.binomials
    for t in range(length):
        best = bests[prefix[t]]
        row = visit.best_subset_scores[t]
        start = best[base_rank(prefix, length, t, -1, length - 1, binomials)]
        for x in range(first, n):
            row[x] = start
        for u in range(length):
            if u != t:
                base = base_rank(prefix, length, t, u, length - 1, binomials) - (n - 1)
                for x in range(first, n):
                    row[x] = max(row[x], best[base + x])
    row = visit.best_subset_scores[length]
    for x in range(first, n):
        row[x] = -inf
    for u in range(length):
        rank = base_rank(prefix, length, u, -1, length - 1, binomials)
        for x in range(first, n):
            row[x] = max(row[x], bests[x, rank])


@inner
def _forbid(n: int, first: int, length: int, constraints: Constraints, visit: Visit) -> None:
    """Set the best subset scores of families that are not allowed to +inf: nothing beats that."""
    edges = constraints.edges
    limits = constraints.limits
    bests = visit.best_subset_scores
    for x in range(first, n):
        if length > limits[x]["most"]:
            bests[length, x] = inf
    for t in range(length):
        child = visit.members[t]
        barred = length > limits[child]["most"]
        for u in range(length):
            barred = barred or (u != t and edges[child, visit.members[u]] == FORBIDDEN)
        for x in range(first, n):
            if barred or edges[child, x] == FORBIDDEN:
                bests[t, x] = inf
            if edges[x, child] == FORBIDDEN:
                bests[length, x] = inf


@inner
def _judge(
    rank: int,
    n_values: int,
    rule: Rule,
    tables: TermTables,
    constraints: Constraints | None,
    below: Below,
    above: Above,
    found: Block,
    visit: Visit,
    n_found: int,
) -> int:
    """Score the families of V, keep the candidates, fill the tables of the next level.

    Returns the number of candidates.
    """
    members = visit.members
    spread, count, penalty = rule.formula
    k = len(members)
    x = members[k - 1]
    last = len(above.cells) == 0
    n_cells = _count_cells(n_values, visit.counts)
    states = _joint_states(members, rule.children)
    visit.moments[0] = np.nan  # the moments of V are not known yet
    joint = 0.0
    if spread != OBSERVED:
        key = states if spread == DECLARED else 1.0
        joint = sum_terms(key, count / key, n_cells, tables, visit.moments, visit.counts, n_values)
    for t in range(k):
        parents = visit.bases[t] + (x if t < k - 1 else 0)
        best = visit.best_subset_scores[t, x]
        if best != inf:
            child = rule.children[members[t]]
            if spread == OBSERVED:
                key = below.cells[parents] * child["prior_states"]
                joint = sum_terms(
                    key, count / key, n_cells, tables, visit.moments, visit.counts, n_values
                )
            costs = penalty * (states / child["states"] * (child["states"] - 1.0))
            score = joint - below.terms[child["column"], parents] - costs
            bonus = 0.0
            if constraints is not None:
                score = _with_edges(score, t, members, constraints)
                bonus = constraints.limits[members[t]]["bonus"]
            if score > best + child["margin"]:
                _keep(t, score, members, found, n_found)
                n_found += 1
            best = max(score, best)
            if not last and bonus - n_cells * child["cell_bound"] - costs <= best:
                best = inf  # no superset can be a candidate
        if not last:
            above.best[members[t], parents] = best
    if not last:
        above.cells[rank] = n_cells
        for column in range(len(above.terms)):
            above.terms[column, rank] = _parent_terms(
                joint, column, n_cells, n_values, rule, tables, visit
            )
    return n_found


@inner
def _count_cells(n_values: int, counts: SmallInts) -> int:
    """Return the number of cells that are not empty."""
    n_cells = 0
    for t in range(n_values):
        if counts[VALUES, t] > 0:
            n_cells += counts[TIMES, t]
    return n_cells


@inner
def _joint_states(members: Ints, children: Records) -> float:
    """Return the number of joint states of V."""
    states = 1.0
    for t in range(len(members)):
        states *= children[members[t]]["states"]
    return states


@inner
def _with_edges(score: float, t: int, members: Ints, constraints: Constraints) -> float:
    """Return the score of child v_t with priors of its edges; -inf without a required parent."""
    child = members[t]
    edges = constraints.edges[child]
    held = 0
    for u in range(len(members)):
        held += u != t and edges[members[u]] == REQUIRED
    if held < constraints.limits[child]["required"]:
        return -inf
    if len(constraints.priors) > 0:
        for u in range(len(members)):
            score += constraints.priors[child, members[u]]  # 0 for the child itself
    return score


@inner
def _parent_terms(
    joint: float,
    column: int,
    n_cells: int,
    n_values: int,
    rule: Rule,
    tables: TermTables,
    visit: Visit,
) -> float:
    """Return the terms of V as a parent set of children of this column; `joint`: as a family."""
    spread, count, _ = rule.formula
    if spread == OBSERVED:
        prior = count / n_cells
        return sum_terms(
            float(n_cells), prior, n_cells, tables, visit.moments, visit.counts, n_values
        )
    if spread == EACH and count > 0.0:
        prior = count * rule.class_states[column]
        return sum_terms(-1.0, prior, n_cells, tables, visit.moments, visit.counts, n_values)
    return joint


@inner
def _keep(t: int, score: float, members: Ints, found: Block, place: int) -> None:
    """Put the family of v_t in its place, if there is room."""
    if place < len(found.scores):
        found.scores[place] = score
        found.families[place, 0] = members[t]
        column = 1
        for u in range(len(members)):
            if u != t:
                found.families[place, column] = members[u]
                column += 1
