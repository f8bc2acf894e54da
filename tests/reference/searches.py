"""Steps of the searches over networks and orders, by trying everything. Families: by vertex {parents: score}."""

from itertools import count, permutations
from math import exp, log

NEVER = float("-inf")


def best_inside(family, allowed):
    """(parents, score) of the best set whose members are all allowed; (None, -inf) if there is none."""
    fitting = [(score, parents) for parents, score in family.items() if parents <= allowed]
    score, parents = max(fitting, key=lambda found: found[0], default=(NEVER, None))
    return parents, score


def order_score(families, order):
    """The score of the best network whose parents come first in the order; -inf if required parents do not."""
    return sum(
        best_inside(families[v], frozenset(order[:place]))[1] for place, v in enumerate(order)
    )


def order_scores(families):
    """{order: score} of all orders."""
    return {order: order_score(families, order) for order in permutations(range(len(families)))}


def sets_of_order(families, order):
    """By vertex, the first of its sets whose members come before it in the order."""
    sets = [frozenset()] * len(families)
    for place, vertex in enumerate(order):
        sets[vertex] = next(
            parents for parents in families[vertex] if parents <= frozenset(order[:place])
        )
    return sets


def insertions(families, order, draws, noise, regroup_every, temperature, cooling):
    """Yield the order after each insertion move.

    The vertex goes to the place with the largest sum of score and temperature times noise. After
    every few moves a vertex and some of its parents are moved to the end with their descendants, or
    it and some of its children to the front with their ancestors; it is the next vertex to be
    moved."""
    n, order, drawn = len(families), list(order), None
    for move in count(1):
        vertex, offset = draws.below(n) if drawn is None else drawn, draws.below(len(noise))
        rest, drawn = [v for v in order if v != vertex], None
        orders = [[*rest[:place], vertex, *rest[place:]] for place in range(n)]
        sums = [
            order_score(families, trial) + temperature * noise[(offset + place) % len(noise)]
            for place, trial in enumerate(orders)
        ]
        order = orders[sums.index(max(sums))]
        if move % regroup_every == 0:
            drawn, word = draws.below(n), draws.word(0)
            late, parents = word < 2**63, sets_of_order(families, order)
            near = [v for v in range(n) if (v in parents[drawn] if late else drawn in parents[v])]
            seeds = {drawn} | {v for v in near if word >> (16 + v % 32) & 1}
            related = seeds.union(
                *((descendants if late else ancestors)(parents, seed) for seed in seeds)
            )
            order = sorted(order, key=lambda v: (v in related) == late)
        temperature *= cooling
        yield list(order)


def swapped(order, one, two):
    """The order with the vertices at two places exchanged."""
    new = list(order)
    new[one], new[two] = order[two], order[one]
    return new


def annealed_swaps(families, order, draws, log_hot, done, per_move):
    """Yield the order after each swap of two random places that was tried, accepted or not."""
    score = order_score(families, order)
    for move in count():
        one, two = draws.below(len(order)), draws.below(len(order) - 1)
        trial = swapped(order, one, two + (two >= one))
        temperature = exp(log_hot * max(0.0, 1.0 - done - move * per_move))
        change = order_score(families, trial) - score
        if change >= temperature * log(draws.uniform()):
            order, score = trial, score + change
        yield list(order)


def ancestors(parents, vertex):
    """The ancestors of the vertex."""
    found, todo = set(), list(parents[vertex])
    while todo:
        other = todo.pop()
        if other not in found:
            found.add(other)
            todo += parents[other]
    return found


def descendants(parents, vertex):
    """The descendants of the vertex."""
    return {other for other in range(len(parents)) if vertex in ancestors(parents, other)}


def acyclic_selection(families, order):
    """From the last vertex of the order to the first, the best set without descendants in the graph so far."""
    parents = [min(family, key=len) for family in families]  # what is required
    for vertex in reversed(order):
        free = frozenset(range(len(families))) - descendants(parents, vertex) - {vertex}
        parents[vertex] = best_inside(families[vertex], free)[0]
    return parents


def network_score(families, parents):
    """The sum of the scores of these sets."""
    return sum(family[its] for family, its in zip(families, parents, strict=True))


def toggled_by_sets(family, parents, vertex, n):
    """What the vertex, whose parents are a candidate set, scores with each edge toggled; -inf if nothing changes."""
    scores = []
    for other in range(n):
        found, score = (
            best_inside(family, parents ^ {other}) if other != vertex else (None, family[parents])
        )
        scores.append(NEVER if other != vertex and found in (None, parents) else score)
    return scores


def changes(parents, toggled):
    """(gain, child, parent) of every addition, deletion and reversal that leaves no cycle."""
    n = len(parents)
    found = []
    for child in range(n):
        for parent in range(n):
            gain = toggled[child][parent] - toggled[child][child]
            if parent == child or gain == NEVER:
                continue
            if parent in parents[child]:
                found.append((gain, child, parent))
                without = [its - {parent} if v == child else its for v, its in enumerate(parents)]
                back = toggled[parent][child] - toggled[parent][parent]
                if back > NEVER and parent not in ancestors(without, child):
                    found.append((gain + back, child, parent))
            elif child not in ancestors(parents, parent):
                found.append((gain, child, parent))
    return found


def kicked(edges, parents, draws, tries, most):
    """(child, parent, new parents) of a random edge that is toggled; None if none of the tries fits."""
    for _ in range(tries if len(edges) else 0):
        child, parent = edges[draws.below(len(edges))]
        fits = len(parents[child]) < most and child not in ancestors(parents, parent)
        if parent in parents[child] or fits:
            return child, parent, parents[child] ^ {parent}
    return None


def kicked_by_sets(families, edges, parents, draws, tries):
    """The same with candidate sets: an edge comes with a random set that has it, more likely one of the best."""
    for _ in range(tries if len(edges) else 0):
        child, parent = edges[draws.below(len(edges))]
        if parent in parents[child]:
            return child, parent, best_inside(families[child], parents[child] - {parent})[0]
        if child in ancestors(parents, parent):
            continue
        sets = [its for its in families[child] if parent in its]
        start = draws.below(draws.below(len(sets)) + 1)
        for its in sets[start:] + sets[:start]:
            if not any(child in ancestors(parents, member) for member in its):
                return child, parent, its
    return None
