"""Linear Gaussian networks by the covariance of all variables, and separation by every path."""

from math import log, pi

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
