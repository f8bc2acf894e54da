"""Steps of the searches over networks and orders, by trying everything. Families: by vertex {parents: score}."""

from itertools import permutations

NEVER = float("-inf")


def best_inside(family, allowed):
    """(parents, score) of the best set whose members are all allowed; (None, -inf) if there is none."""
    fitting = [(score, parents) for parents, score in family.items() if parents <= allowed]
    score, parents = max(fitting, key=lambda found: found[0], default=(NEVER, None))
    return parents, score


def order_score(families, order):
    """The score of the best network whose parents come first in the order; -inf if required parents do not."""
    return sum(best_inside(families[v], frozenset(order[:place]))[1] for place, v in enumerate(order))


def order_scores(families):
    """{order: score} of all orders."""
    return {order: order_score(families, order) for order in permutations(range(len(families)))}


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
        found, score = best_inside(family, parents ^ {other}) if other != vertex else (None, family[parents])
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
