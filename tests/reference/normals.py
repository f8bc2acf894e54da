"""Linear Gaussian networks by the covariance of all variables, and separation by every path."""

from fractions import Fraction
from math import log, pi, sqrt

import numpy as np


def joint(parents, intercepts, weights, deviations):
    """Mean and covariance of x, where x = intercepts + B x + noise: x = (I - B)^-1 (...)."""
    n = len(parents)
    b = np.zeros((n, n))
    for child, its in enumerate(parents):
        for parent, weight in zip(its, weights[child], strict=True):
            b[child, parent] = weight
    inverse = np.linalg.inv(np.eye(n) - b)
    noise = np.diag(np.square(deviations))
    return inverse @ np.array(intercepts), inverse @ noise @ inverse.T


def conditional(mean, covariance, query, given):
    """Mean and standard deviation of one variable given numbers of others, {variable: number}."""
    known = list(given)
    x = np.array([given[v] for v in known])
    if not known:
        return mean[query], np.sqrt(covariance[query, query])
    weights = np.linalg.inv(covariance[np.ix_(known, known)]) @ covariance[known, query]
    variance = covariance[query, query] - weights @ covariance[known, query]
    return mean[query] + weights @ (x - mean[known]), np.sqrt(variance)


def log_density(mean, covariance, rows):
    """Log density of the rows of a table, by the determinant and the inverse of the covariance."""
    errors = rows - mean
    squares = np.einsum("ij,jk,ik->i", errors, np.linalg.inv(covariance), errors)
    constant = len(mean) * log(2 * pi) + np.linalg.slogdet(covariance)[1]
    return -0.5 * float((squares + constant).sum())


def normal_equations(rows, child, parents):
    """Intercept, weights and deviation that minimise the squares, from the normal equations."""
    design = np.column_stack([np.ones(len(rows)), rows[:, parents]])
    found = np.linalg.inv(design.T @ design) @ design.T @ rows[:, child]
    errors = rows[:, child] - design @ found
    return found[0], found[1:], np.sqrt((errors @ errors) / len(rows))


def share_between(mean, deviation, low, high, steps=200_000):
    """Probability of an interval by the trapezoidal rule."""
    x = np.linspace(low, high, steps + 1)
    density = np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * pi))
    return float(np.trapezoid(density, x))


def all_paths(parents, x, y):
    """Every path between two vertices that visits none twice, in any directions."""
    neighbours = [set() for _ in parents]
    for child, its in enumerate(parents):
        for parent in its:
            neighbours[child].add(parent)
            neighbours[parent].add(child)
    paths = [[x]]
    while paths:
        path = paths.pop()
        if path[-1] == y:
            yield path
            continue
        paths += [[*path, v] for v in neighbours[path[-1]] if v not in path]


def descendants(parents, vertex):
    """The vertex and all that a directed path from it reaches."""
    found = {vertex}
    while more := {c for c, its in enumerate(parents) if c not in found and found & set(its)}:
        found |= more
    return found


def separated(parents, x, y, given):
    """Whether every path from x to y is blocked: by a given vertex that is no collider, or by a
    collider without a given descendant (Pearl's definition)."""
    for path in all_paths(parents, x, y):
        blocked = False
        for a, b, c in zip(path, path[1:], path[2:], strict=False):
            collider = a in parents[b] and c in parents[b]
            if collider:
                blocked |= not descendants(parents, b) & set(given)
            else:
                blocked |= b in given
        if not blocked:
            return False
    return True


def exact_conditional(parents, lines, query, given):
    """Mean and standard deviation of a variable given numbers, by fractions: no digit is lost.

    `lines` are (intercept, weights, deviation) by variable; parents come first."""
    n = len(parents)
    mean = [Fraction(0)] * n
    covariance = [[Fraction(0)] * n for _ in range(n)]
    for v, its in _in_order(parents):
        intercept, weights, deviation = lines[v]
        weights = [Fraction(weight) for weight in weights]
        mean[v] = Fraction(intercept) + sum(w * mean[p] for w, p in zip(weights, its, strict=True))
        for u in range(n):
            shared = sum(w * covariance[p][u] for w, p in zip(weights, its, strict=True))
            if u != v:
                covariance[v][u] = covariance[u][v] = shared
        pulled = sum(w * covariance[p][v] for w, p in zip(weights, its, strict=True))
        covariance[v][v] = Fraction(deviation) ** 2 + pulled
    mean, covariance = list(mean), [list(row) for row in covariance]
    for v, number in given.items():
        gain = [row[v] / covariance[v][v] for row in covariance]
        error = Fraction(number) - mean[v]
        mean = [m + g * error for m, g in zip(mean, gain, strict=True)]
        of_v = list(covariance[v])
        covariance = [
            [c - g * x for c, x in zip(row, of_v, strict=True)]
            for row, g in zip(covariance, gain, strict=True)
        ]
    return float(mean[query]), sqrt(covariance[query][query])


def _in_order(parents):
    """Each variable with its parents, parents first."""
    done = []
    while len(done) < len(parents):
        ready = [v for v, its in enumerate(parents) if v not in done and set(its) <= set(done)]
        for v in ready:
            done.append(v)
            yield v, parents[v]
