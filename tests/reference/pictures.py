"""Slow, obvious definitions for pictures of networks and the strengths of their edges."""

from itertools import combinations, product

import numpy as np
from scipy.optimize import linprog


def least_total_length(parents):
    """The least sum of row differences over the edges, by trying all assignments of rows."""
    n = len(parents)
    edges = [(p, c) for c, its in enumerate(parents) for p in its]
    totals = (
        sum(rows[c] - rows[p] for p, c in edges)
        for rows in product(range(n), repeat=n)
        if all(rows[c] > rows[p] for p, c in edges)
    )
    return min(totals)


def crossings(below, rows):
    """Pairs of links between neighbouring rows that cross, by comparing all pairs."""
    place = {node: k for row in rows for k, node in enumerate(row)}
    total = 0
    for row in rows:
        links = [(place[node], place[other]) for node in row for other in below[node]]
        total += sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(links, 2))
    return total


def least_extent(nodes, links, offsets, weights, neighbours, room):
    """min sum w |x_upper - x_lower + offset| with x_right - x_left >= room, as a dense linear program."""
    rows, limits = [], []
    for k, ((upper, lower), offset) in enumerate(zip(links, offsets, strict=True)):
        for sign in (1, -1):
            row = np.zeros(nodes + len(links))
            row[upper], row[lower], row[nodes + k] = sign, -sign, -1
            rows.append(row)
            limits.append(-sign * offset)
    for (left, right), distance in zip(neighbours, room, strict=True):
        row = np.zeros(nodes + len(links))
        row[left], row[right] = 1, -1
        rows.append(row)
        limits.append(-distance)
    cost = np.concatenate([np.zeros(nodes), weights])
    # The presolve of scipy 1.13 and 1.14 takes some of these programs for infeasible.
    return linprog(
        cost, np.array(rows), limits, bounds=(None, None), options={"presolve": False}
    ).fun


def edge_strengths(sets, parents):
    """sets[v]: {frozenset: score}. Best score inside the parents less the best without one of them."""

    def best(child, allowed):
        return max(
            (score for members, score in sets[child].items() if members <= allowed),
            default=-float("inf"),
        )

    return {
        (parent, child): best(child, frozenset(its)) - best(child, frozenset(its) - {parent})
        for child, its in enumerate(parents)
        for parent in its
    }
