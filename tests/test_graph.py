"""Directed graphs: order, cycles, components, reachability."""

from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes.foundation.graph import (
    children_of,
    cycle_path,
    find_cycle,
    reachable,
    strong_components,
    topological_order,
)


@st.composite
def graphs(draw):
    """(n, n) arcs of a small graph."""
    n = draw(st.integers(0, 9))
    arcs = np.zeros((n, n), np.bool_)
    for a, b in (
        draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
        if n
        else ()
    ):
        arcs[a, b] = a != b
    return arcs


@given(graphs())
def test_components_and_reachability_agree_with_networkx(arcs):
    graph = nx.from_numpy_array(arcs, create_using=nx.DiGraph)
    expected = sorted(sorted(component) for component in nx.strongly_connected_components(graph))
    assert [component.tolist() for component in strong_components(arcs)] == expected
    reached = np.zeros_like(arcs)
    for vertex in graph:
        reached[vertex, [vertex, *nx.descendants(graph, vertex)]] = True
    assert (reachable(arcs) == reached).all()


@given(graphs())
def test_order_or_cycle(arcs):
    parents = [np.flatnonzero(arcs[:, vertex]).tolist() for vertex in range(len(arcs))]
    cycle, order = find_cycle(parents), topological_order(parents)
    if cycle:
        assert len(order) < len(arcs)
        assert all(arcs[a, b] for a, b in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    else:
        assert sorted(order) == list(range(len(arcs)))
        assert all(
            order.index(parent) < order.index(v) for v, its in enumerate(parents) for parent in its
        )
    assert children_of(parents) == [np.flatnonzero(row).tolist() for row in arcs]


@given(graphs())
def test_of_all_orders_the_one_with_the_smallest_index_first(arcs):
    parents = [np.flatnonzero(arcs[:, vertex]).tolist() for vertex in range(len(arcs))]
    expected, left = [], set(range(len(arcs)))
    while ready := [vertex for vertex in left if not left & set(parents[vertex])]:
        expected.append(min(ready))
        left.remove(min(ready))
    assert topological_order(parents) == tuple(expected)


def test_a_child_that_becomes_ready_comes_before_larger_vertices():
    assert topological_order([[], [0], []]) == (0, 1, 2)
    assert topological_order([[3], [], [], []]) == (1, 2, 3, 0)


def test_orders_of_complete_graphs():
    for order in permutations(range(4)):
        assert topological_order([order[: order.index(vertex)] for vertex in range(4)]) == order


@pytest.mark.parametrize("length", [8, 9])
def test_long_cycles_are_shortened(length):
    path = cycle_path(range(length), [f"v{k}" for k in range(length)])
    assert path.startswith("v0 -> v1 -> ") and path.endswith(
        "-> v7 -> v0" if length == 8 else "-> v8 -> ..."
    )
