"""Vertex eliminations on sets of arcs, the searches for one with few pairs, and turned pairs, by trying everything."""


def joined(arcs, sequence):
    """The arcs present when their first vertex leaves: each vertex joins its predecessors to its successors."""
    arcs, seen = set(arcs), set()
    for v in sequence:
        own = {arc for arc in arcs if v in arc}
        seen |= own
        before, after = {a for a, b in own if b == v}, {b for a, b in own if a == v}
        arcs = (arcs - own) | {(a, b) for a in before for b in after if a != b}
    return seen


def pairs_of(arcs):
    """The unordered pairs of the arcs."""
    return {frozenset(arc) for arc in arcs}


def useful(arcs, sequence):
    """The joined arcs that run both ways, or lead through the first vertex to leave beside a useful arc."""
    every, found = joined(arcs, sequence), set()
    for place in reversed(range(len(sequence))):
        v, later = sequence[place], sequence[place + 1 :]
        for b in later:
            if (v, b) in every and (
                (b, v) in every or any((a, v) in every and (a, b) in found for a in later)
            ):
                found.add((v, b))
            if (b, v) in every and (
                (v, b) in every or any((v, c) in every and (b, c) in found for c in later)
            ):
                found.add((b, v))
    return found


def greedy(near, noise, by_degree, thorough):
    """The vertex of least cost leaves next. Costs: {vertex: neighbours} counts neighbours, or pairs of them to join.

    If not thorough, the cost of a vertex is that of the time when a neighbour left last.
    """
    near, sequence = {v: set(own) for v, own in near.items()}, []

    def cost(v):
        missing = sum(b not in near[a] for a in near[v] for b in near[v] if a < b)
        return len(near[v]) if by_degree else missing

    costs = {v: cost(v) for v in near}
    while costs:
        v = min(costs, key=lambda v: costs[v] + noise[v])
        sequence.append(v)
        del costs[v]
        for a in near[v]:
            near[a] = (near[a] | near[v]) - {a, v}
        costs.update({a: cost(a) for a in (costs if thorough else near[v])})
    return sequence


def annealed(arcs, sequence, moves, allowances):
    """The sequence with the fewest pairs, where a move (from place, to place) may add as many as it is allowed."""

    def energy(sequence):
        return len(pairs_of(joined(arcs, sequence)))

    here = best = list(sequence)
    for (source, target), allowance in zip(moves, allowances, strict=True):
        trial = here[:source] + here[source + 1 :]
        trial.insert(target, here[source])
        if energy(trial) <= energy(here) + int(allowance):
            here = trial
            best = min(best, here, key=energy)
    return best


def turned(pairs, linear):
    """The pairs, turned round one after another while the sum of fourth powers of their coefficients falls."""
    pairs, changed = list(pairs), True
    while changed:
        changed = False
        for place, (a, b) in enumerate(pairs):
            trial = [*pairs[:place], (b, a), *pairs[place + 1 :]]
            if sum(h**4 for h in linear(trial)) < sum(h**4 for h in linear(pairs)):
                pairs, changed = trial, True
    return pairs
