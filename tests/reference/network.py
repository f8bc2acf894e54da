"""Equivalence classes, parameters and distances by listing everything."""

from collections import Counter, defaultdict
from itertools import combinations, product
from math import prod

from .scores import prior_counts


def all_graphs(n):
    """Every directed acyclic graph of n vertices, as a set of edges (parent, child)."""
    pairs = list(combinations(range(n), 2))
    for choice in product((None, False, True), repeat=len(pairs)):
        edges = {
            (b, a) if turned else (a, b)
            for (a, b), turned in zip(pairs, choice, strict=True)
            if turned is not None
        }
        if acyclic(n, edges):
            yield frozenset(edges)


def acyclic(n, edges):
    """Whether taking away vertices without parents, one after the other, takes away all."""
    left = set(range(n))
    while True:
        free = {v for v in left if not any(p in left and c == v for p, c in edges)}
        if not free:
            return not left
        left -= free


def signature(n, edges):
    """Skeleton and v-structures: equal iff the graphs are equivalent."""
    adjacent = {frozenset(edge) for edge in edges}
    colliders = {
        (frozenset((a, b)), c)
        for a, b, c in product(range(n), repeat=3)
        if a != b and (a, c) in edges and (b, c) in edges and frozenset((a, b)) not in adjacent
    }
    return frozenset(adjacent), frozenset(colliders)


def classes(n):
    """The equivalence classes of all graphs of n vertices, each a list of graphs."""
    found = defaultdict(list)
    for edges in all_graphs(n):
        found[signature(n, edges)].append(edges)
    return list(found.values())


def directed_in_all(members):
    """The edges that have the same direction in every member."""
    return frozenset.intersection(*members)


def table(rows, arities, child, parents, name, ess=1.0):
    """{(parent states, state): probability} estimated from rows (tuples of states)."""
    cells = Counter((tuple(row[p] for p in parents), row[child]) for row in rows)
    seen = {tuple(row[p] for p in parents) for row in rows}
    child_seen = {row[child] for row in rows}
    r, q = arities[child], prod(arities[p] for p in parents)
    probabilities = {}
    for given in product(*(range(arities[p]) for p in parents)):
        weights = []
        for state in range(r):
            _, prior = prior_counts(name, ess, (q, r), (len(seen), len(child_seen)))
            if name == "bds" and not (given in seen and state in child_seen):
                prior = 0.0
            weights.append(cells[given, state] + prior)
        for state in range(r):
            total = sum(weights)
            probabilities[given, state] = weights[state] / total if total else 1 / r
    return probabilities


def edits(n, graph, other):
    """The fewest single edges to add, remove or turn that make one graph the other (order of edits does not matter)."""
    count = 0
    for a, b in combinations(range(n), 2):
        before, after = (
            {e for e in ((a, b), (b, a)) if e in graph},
            {e for e in ((a, b), (b, a)) if e in other},
        )
        count += before != after
    return count
