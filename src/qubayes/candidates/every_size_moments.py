"""Kernel: all candidate sets of a continuous child, of any size, by leaps and bounds.

Sets are visited so that subsets come before the sets that contain them: a set Q is extended by
variables of a smaller number than all of its members. A set P inside Q and the variables up to x
leaves at least the residual variance that all of these leave, and conditional variances of its
members are at least those given all other variables; that bounds its score (docs/theory.md).

For each Q there is a triangular matrix, the Cholesky factor of the covariances given Q of the
variables that may extend it, and of the child. So the residual variances given Q and the first 1,
2, ... of these are partial sums of squares. The factor given Q + x follows by rotations that move x
to the front. The search can be stopped after any set and continued."""

from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Floats, Ints, Records, Words
from ..foundation.jit import inner, kernel
from ..scores.columns import LEAST_RESIDUAL
from ..scores.gaussian import Moments
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

MOMENTS_LEVEL = np.dtype(
    [
        ("others", np.int64),  # variables that may extend the set: those of smaller numbers
        ("place", np.int64),  # the next of them
        ("best", np.float64),  # best known score of a subset
        ("logs", np.float64),  # logarithm of the determinant of the set
        ("variance", np.float64),  # of the child, given the set
        ("edges", np.float64),  # priors of the edges from its members
    ]
)


class Child(NamedTuple):
    """A child and its optional parents, in the order in which they are numbered."""

    constants: Floats  # (n,) by the number of parents: c of scores/gaussian.py
    weights: Floats  # (n,) a
    ceilings: Floats  # (n,) what c and larger determinants can come to, with more parents
    determinant: float  # b
    least_logs: float  # of a variance given all others, not of the child
    least: Floats  # (parents,) variances up to this are rounding
    least_own: float  # the same of the child
    edges: Floats  # (parents,) priors of the edges
    bonus: float  # sum of the positive ones
    shift: float  # of scores
    margin: float  # by which a set must beat its subsets
    held: int  # required parents
    most: int  # optional parents


class Walk(NamedTuple):
    """Where the search is, and its memory; the first axis is the number of members."""

    state: Ints  # (3,)
    levels: Records  # (depths,) MOMENTS_LEVEL
    masks: Words  # (depths, words)
    roots: Floats  # (depths, parents, parents) upper triangular
    own: Floats  # (depths, parents) the same of the child
    rest: Floats  # (depths, parents) variance of the child, given the set and the first others
    carried: Floats  # (parents,)


def search_of(moments: Moments, rows: int, allowed: Allowed, known: KnownSets) -> ChildSearch:
    """Return the search for larger sets than the known ones, at its beginning."""
    vertex = known.child
    matrix = moments.matrix
    n = len(matrix)
    required = list(allowed.required[vertex])
    optional = np.array(allowed.allowed[vertex], np.int64)
    given, logs = _conditional(matrix, required)
    strength = given[vertex, optional] ** 2 / np.diag(given)[optional]
    order = optional[np.argsort(strength, kind="stable")]
    edges = allowed.prior_of(vertex)
    least_logs = -np.log(np.diag(np.linalg.inv(matrix)))
    child = Child(
        constants=moments.constants,
        weights=moments.weights,
        ceilings=_ceilings(moments, vertex, least_logs),
        determinant=moments.determinant,
        least_logs=float(np.delete(least_logs, vertex).min(initial=np.inf)),
        least=LEAST_RESIDUAL * np.diag(matrix)[order],
        least_own=LEAST_RESIDUAL * float(matrix[vertex, vertex]),
        edges=edges[order],
        bonus=float(np.maximum(edges, 0.0).sum()),
        shift=float(moments.shifts[vertex]),
        margin=tolerance(known.base, rows),
        held=len(required),
        most=allowed.limits[vertex] - len(required),
    )
    places = [*order.tolist(), vertex]
    factor = np.linalg.cholesky(given[np.ix_(places, places)]).T
    m = len(order)
    depths = min(child.most, m) + 2
    walk = Walk(
        state=np.zeros(3, np.int64),
        levels=np.zeros(depths, MOMENTS_LEVEL),
        masks=np.zeros((depths, words_of(n)), np.uint64),
        roots=np.zeros((depths, m, m)),
        own=np.zeros((depths, m)),
        rest=np.zeros((depths, m)),
        carried=np.zeros(m),
    )
    walk.roots[0] = factor[:m, :m]
    walk.own[0] = factor[:m, m]
    squares = factor[:, m] ** 2
    walk.rest[0] = np.cumsum(squares[::-1])[::-1][1:]
    first = walk.levels[0]
    first["others"] = m if child.most > max(known.most - len(required), 0) else 0
    first["best"] = known.base
    first["logs"] = logs
    first["variance"] = squares.sum()
    first["edges"] = edges[required].sum()
    return ChildSearch(search_sets, child, walk, known, order)


def _conditional(matrix: Floats, members: list[int]) -> tuple[Floats, float]:
    """Return the covariances given these variables, and the logarithm of their determinant."""
    if not members:
        return matrix, 0.0
    inside = matrix[np.ix_(members, members)]
    weights = np.linalg.solve(inside, matrix[members])
    return matrix - matrix[:, members] @ weights, float(np.linalg.slogdet(inside)[1])


def _ceilings(moments: Moments, vertex: int, least: Floats) -> Floats:
    """Return for each size p the most that c[q] and what it goes with can come to, q >= p.

    With the residual variance V of a set P of p parents, and all that may be added, a larger set of
    q parents scores at most ceilings[p] − a[p]/2 log V − b/2 log det R_PP. `least` are logarithms
    of the variances given all others."""
    n = len(moments.matrix)
    others = np.sort(np.delete(least, vertex))
    determinants = np.concatenate([[0.0], np.cumsum(others)])
    found = np.empty(n)
    for size in range(n):
        larger = np.arange(size, n)
        added = moments.weights[larger] - moments.weights[size]
        values = (
            moments.constants[larger]
            - 0.5 * added * least[vertex]
            - 0.5 * moments.determinant * determinants[larger - size]
        )
        found[size] = values.max()
    return found


@kernel
def search_sets(child: Child, walk: Walk, sets: Sets, budget: int) -> int:
    """Continue until `budget` more sets are visited, all are, or there is no room for a set."""
    state = walk.state
    end = state[VISITED] + budget
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
        if _visit(depth, place, child, walk, sets):
            _move_to_front(depth, place, walk)
            state[DEPTH] += 1
    return DONE


@inner
def _visit(depth: int, x: int, child: Child, walk: Walk, sets: Sets) -> bool:
    """Score the set with x, unless a bound excludes it; return whether it can be extended."""
    level = walk.levels[depth]
    size = child.held + depth + 1
    bound = child.ceilings[size] - 0.5 * child.weights[size] * np.log(walk.rest[depth, x])
    bound += child.shift + level["edges"] + child.bonus
    if child.determinant == 0.0 and bound <= level["best"]:
        return False
    variance = 0.0
    covariance = 0.0
    for row in range(x + 1):
        value = walk.roots[depth, row, x]
        variance += value * value
        covariance += value * walk.own[depth, row]
    if not variance > child.least[x]:  # x is a function of the set
        return False
    logs = level["logs"] + np.log(variance)
    if bound - 0.5 * child.determinant * logs <= level["best"]:
        return False
    walk.state[VISITED] += 1
    left = level["variance"] - covariance * covariance / variance
    if not left > child.least_own:
        return False
    mask = walk.masks[depth + 1]
    copy_words(walk.masks[depth], mask)
    include(x, mask)
    edges = level["edges"] + child.edges[x]
    score = child.shift + child.constants[size] + edges
    score -= 0.5 * (child.weights[size] * np.log(left) + child.determinant * logs)
    best = best_inside(mask, level["best"], sets, walk.state[FOUND])
    if score > best + child.margin:
        keep(mask, score, sets, walk.state)
    following = walk.levels[depth + 1]
    following["best"] = max(best, score)
    following["logs"] = logs
    following["edges"] = edges
    if depth + 1 == child.most or x == 0:
        return False
    larger = child.ceilings[size + 1] - 0.5 * child.weights[size + 1] * np.log(walk.rest[depth, x])
    larger -= 0.5 * child.determinant * (logs + child.least_logs)
    return bool(child.shift + larger + edges + child.bonus > following["best"])


@inner
def _move_to_front(depth: int, x: int, walk: Walk) -> None:
    """Set the factor of the next level: x is a member, and only smaller numbers may extend it."""
    before, after = walk.roots[depth], walk.roots[depth + 1]
    own, new_own = walk.own[depth], walk.own[depth + 1]
    carried = walk.carried
    for column in range(x):
        carried[column] = 0.0
    pivot = before[x, x]
    of_child = own[x]
    for row in range(x - 1, -1, -1):
        value = before[row, x]
        length = np.hypot(value, pivot)
        cosine = value / length if length > 0.0 else 1.0
        sine = pivot / length if length > 0.0 else 0.0
        for column in range(row, x):
            old = before[row, column]
            after[row, column] = cosine * carried[column] - sine * old
            carried[column] = cosine * old + sine * carried[column]
        new_own[row] = cosine * of_child - sine * own[row]
        of_child = cosine * own[row] + sine * of_child
        pivot = length
    left = walk.rest[depth, x]
    for row in range(x - 1, -1, -1):
        walk.rest[depth + 1, row] = left
        left += new_own[row] * new_own[row]
    level = walk.levels[depth + 1]
    level["variance"] = left
    level["others"] = x
    level["place"] = 0
