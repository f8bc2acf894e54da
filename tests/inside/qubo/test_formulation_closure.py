"""Gains, losses and representations against their definitions."""

from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest

from formulation_cases import candidates_of, random_scores, split_subsets, whole_subsets
from qubayes import QubayesError
from qubayes.candidates import Candidates
from qubayes.foundation.families import Families
from qubayes.foundation.workers import Workers
from qubayes.qubo import formulate
from qubayes.qubo.gains import relate
from qubayes.qubo.order_bits import choose_order
from qubayes.qubo.penalties import (
    choose_representations,
    order_bounds,
    order_losses,
    third_gain,
    unused_bound,
    vertex_gains,
)
from qubayes.qubo.subsets import Subsets
from reference import energies as reference


def cases():
    for seed in range(25):
        random = np.random.default_rng(seed)
        scores = random_scores(random, int(random.integers(2, 9)), 4, 0.15, required=seed % 3)
        candidates = candidates_of(scores)
        yield (
            scores,
            candidates,
            split_subsets(random, candidates) if seed % 2 else whole_subsets(candidates),
        )


def gain(known, parents) -> float:
    return reference.closure(known, frozenset(parents)) - known[reference.base_of(known)]


def test_gains_of_subsets_and_unions():
    for scores, candidates, subsets in cases():
        for vertex, part in enumerate(vertex_gains(relate(candidates, subsets), Workers(1))):
            family = [frozenset(members) for members in subsets.families.sets_of(vertex)]
            assert part.singles == pytest.approx(
                [gain(scores[vertex], U) for U in family], abs=1e-12
            )
            unions = [gain(scores[vertex], U | V) for U, V in combinations(family, 2)]
            assert part.pairs == pytest.approx(unions, abs=1e-12)


def test_each_candidate_set_is_a_union_of_its_two_subsets():
    for _, candidates, subsets in cases():
        formulation = formulate(candidates, subsets)
        chosen = [
            set(members)
            for vertex in range(candidates.n)
            for members in subsets.families.sets_of(vertex)
        ]
        number = 0
        for vertex in range(candidates.n):
            base = set(candidates.base(vertex))
            for parents in candidates.families.sets_of(vertex):
                first, second = formulation.representations[number]
                number += 1
                if set(parents) == base:
                    assert first == second == -1
                else:
                    assert chosen[first] | chosen[second] == set(parents) - base
                    lowest, last = subsets.families.vertex_start[vertex : vertex + 2]
                    assert lowest <= first <= second < last


def test_losses_of_parents():
    for scores, candidates, subsets in cases():
        relative = relate(candidates, subsets)
        order = choose_order(candidates, "chordal")
        edges, vertices = order_losses(relative, order)
        parents = relative.parents
        for edge, (parent, child) in enumerate(
            zip(parents.vertices.tolist(), parents.children.tolist(), strict=True)
        ):
            known = scores[child]
            slow = max(
                score - reference.closure(known, c - {parent})
                for c, score in known.items()
                if parent in c
            )
            assert edges[edge] == pytest.approx(slow)
        pairs = {frozenset(pair) for pair in order.pairs.tolist()}
        for child, known in enumerate(scores):
            free = {p for p in range(candidates.n) if frozenset((p, child)) not in pairs}
            slow = max(score - reference.closure(known, c & free) for c, score in known.items())
            assert vertices[child] == pytest.approx(slow)


def test_bounds_count_required_ancestors():
    """0 -> 1 -> 2 required: a vertex goes first with its required ancestors, or last if none requires it."""
    scores = [
        {frozenset(): -9.0, frozenset([2]): -5.0, frozenset([3]): -8.0},
        {frozenset([0]): -9.0, frozenset([0, 3]): -7.0},
    ]
    scores += [
        {frozenset([1]): -9.0, frozenset([1, 3]): -8.5},
        {frozenset(): -9.0, frozenset([0]): -1.0},
    ]
    candidates = candidates_of(scores)
    relative, order = relate(candidates, whole_subsets(candidates)), choose_order(candidates, "scc")
    edges, required, triangles = order_bounds(relative, order)
    assert sorted(edges.tolist()) == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert required.tolist() == [4.0 + 2.0, 4.0 + 2.0 + 0.5]
    last = {3: 1.0 + 2.0 + 0.5, 2: 4.0}
    first = {0: 4.0, 1: 6.0, 2: 6.5, 3: 8.0}
    least = {v: min(first[v], last.get(v, np.inf)) for v in first}
    assert triangles.tolist() == [
        min(least[v] for v in corner) for corner in order.corners().tolist()
    ]


def test_third_subsets_never_gain_more_than_the_bound():
    """The lemma: what k active subsets gain over the best pair among them is at most (k - 1)(k - 2) / 2 bounds."""
    random = np.random.default_rng(0)
    for _ in range(200):
        mu = int(random.integers(3, 8))
        singles = random.exponential(1.0, mu) * (random.random(mu) < 0.5)
        pairs = np.array(
            [
                max(singles[j], singles[k]) + random.exponential(1.0)
                for j, k in combinations(range(mu), 2)
            ]
        )
        joint = dict(zip(combinations(range(mu), 2), pairs, strict=True))
        bound = third_gain(singles, pairs)
        worst = -np.inf
        for size in range(3, mu + 1):
            for K in combinations(range(mu), size):
                gains = [joint[p] for p in combinations(K, 2)]
                total = sum(gains) - (size - 2) * singles[list(K)].sum()
                worst = max(worst, (total - max(gains)) / ((size - 1) * (size - 2) / 2))
        assert worst <= bound + 1e-9
        if mu == 3:
            assert worst == pytest.approx(bound)  # and for three subsets it is exact


def random_gains(random, mu):
    """Gains of mu subsets and of the unions of two, by pair, with many ties; in half of the cases unions may lose."""
    singles = random.integers(0, 9, mu) * (random.random(mu) < 0.7) / 4
    least = random.choice([0, -8])
    joint = {
        (j, k): max(singles[j], singles[k]) + random.integers(least, 9) / 4
        for j, k in combinations(range(mu), 2)
    }
    return singles, joint


def most_gain(b, others, singles, joint):
    """max over j != l of a_bj + s_bl (docs/theory.md, Lemmas 2 and 3)."""
    union = {j: joint[min(b, j), max(b, j)] for j in others}
    return max(
        (
            max(0.0, union[j] - singles[j]) + union[k] - singles[b] - singles[k]
            for j, k in permutations(others, 2)
        ),
        default=-np.inf,
    )


def test_the_bound_of_third_subsets_is_its_definition():
    """Subsets leave in the order of what they gain among all; the bound is the most that one gains when it leaves."""
    random = np.random.default_rng(1)
    for _ in range(300):
        mu = int(random.integers(3, 9))
        singles, joint = random_gains(random, mu)
        first = [most_gain(b, set(range(mu)) - {b}, singles, joint) for b in range(mu)]
        leaving = sorted(range(mu), key=first.__getitem__)
        gains = [
            most_gain(b, leaving[place + 1 :], singles, joint) for place, b in enumerate(leaving)
        ]
        assert third_gain(singles, np.array(list(joint.values()))) == max(gains[: mu - 2])


def without_triangles(random, mu):
    """A random graph: edges that close a triangle are left out."""
    graph = nx.empty_graph(mu)
    density = random.choice([0.1, 0.3, 0.6, 1.0])
    for j, k in random.permutation(list(combinations(range(mu), 2))).tolist():
        if random.random() < density and not set(graph[j]) & set(graph[k]):
            graph.add_edge(j, k)
    return graph


def test_the_bound_of_unused_pairs_is_its_definition():
    """f(b) / 2, a_bj of the joined pairs, and a_bj + s_bl of those in their 2-core: each decides at times (Lemma 3)."""
    random = np.random.default_rng(2)
    decided = [0, 0, 0]
    for _ in range(500):
        mu = int(random.integers(2, 9))
        singles, joint = random_gains(random, mu)
        graph = without_triangles(random, mu)
        core = nx.k_core(graph, 2)
        pairs = [pair for j, k in graph.edges for pair in ((j, k), (k, j))]
        parts = [
            max(singles) / 2,
            max((joint[min(b, j), max(b, j)] - singles[j] for b, j in pairs), default=-np.inf),
            max((most_gain(b, core[b], singles, joint) for b in core), default=-np.inf),
        ]
        joined = nx.to_numpy_array(graph, nodelist=range(mu)) > 0
        assert unused_bound(singles, np.array(list(joint.values())), joined) == max(parts)
        decided[int(np.argmax(parts))] += parts.count(max(parts)) == 1
    assert min(decided) > 15, decided


@pytest.mark.parametrize("parts", [(1, 1), (1, 3), (2, 2), (2, 3), (3, 3)])
def test_pairs_of_subsets_without_a_triangle_need_no_slack_bit(parts):
    """Every subset of one part with every one of the other: as many pairs as fit (Mantel); one more is too many."""
    left, right = range(parts[0]), range(parts[0], sum(parts))
    vertex, whole = sum(parts), frozenset(range(sum(parts)))
    for more in (False, True):
        extra = [frozenset(pair) for own in (left, right) for pair in combinations(own, 2)][
            : int(more)
        ]
        sets = [frozenset(), *(frozenset((a, b)) for a in left for b in right), *extra]
        scores = [{frozenset(): 0.0} for _ in whole] + [
            {own: 2.0 * len(own) + bool(own & {0}) for own in sets}
        ]
        candidates = candidates_of(scores)
        lists = [[] for _ in whole] + [[(v,) for v in sorted(whole)]]
        subsets = Subsets(
            candidates.names, Families.of(lists), np.zeros(len(lists), np.int64), "test", 0.0
        )
        chosen = choose_representations(relate(candidates, subsets), vertex)
        assert chosen.has_triangle == bool(extra)
        if not extra:
            assert {(j, k) for j, k in np.argwhere(np.triu(chosen.joined)).tolist()} == {
                (a, b) for a in left for b in right
            }


def test_bad_subsets_are_refused():
    candidates = candidates_of(
        [{frozenset(): -2.0, frozenset([1, 2]): -1.0}, {frozenset(): 0.0}, {frozenset(): 0.0}]
    )

    def subsets(names, *lists) -> Subsets:
        return Subsets(names, Families.of(lists), np.zeros(3, np.int64), "test", 0.0)

    for bad, words in [
        (subsets(candidates.names, [(1,)], [], []), "not a union of two"),
        (subsets(candidates.names, [(1, 2)], [(0,)], []), "no candidate set of it has"),
        (subsets(candidates.names, [(1, 2), ()], [], []), "empty"),
        (subsets(("a", "b", "c"), [(1, 2)], [], []), "different variables"),
    ]:
        with pytest.raises(QubayesError, match=words):
            formulate(candidates, bad)


def test_sets_too_large_to_index_are_refused():
    members = tuple(range(1, 65))
    sets = [members[:32], members, ()]
    families = Families.of([sets, *[[()]] * 64])
    candidates = Candidates(tuple(map(str, range(65))), families, np.array([3.0, 2.0, *[0.0] * 65]))
    lists = [[members[:32], members], *[[]] * 64]
    with pytest.raises(QubayesError, match="smaller maximum number of parents"):
        formulate(
            candidates,
            Subsets(candidates.names, Families.of(lists), np.zeros(65, np.int64), "test", 0.0),
        )
