"""Pictures of networks: rows, orders, places, curves."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference.pictures as reference
from qubayes.network import Network
from qubayes.report.layers import crossings, layered, ordered, smallest_rows
from qubayes.report.layout import (
    BOX_HEIGHT,
    LONGEST_LABEL,
    components,
    distance,
    lay_out,
    placed,
    shortened,
    text_width,
)
from report_cases import networks, random_network


@given(networks(max_vertices=5))
def test_rows_have_the_least_total_length(network):
    rows = smallest_rows(network.parents)
    edges = [(p, c) for c, its in enumerate(network.parents) for p in its]
    assert all(rows[c] > rows[p] for p, c in edges)
    assert sum(int(rows[c] - rows[p]) for p, c in edges) == reference.least_total_length(
        network.parents
    )
    whole = layered(network.parents, widest=network.n or 1)
    assert sum(len(chain) - 1 for chain in whole.chains.values()) == reference.least_total_length(
        network.parents
    )


@given(networks(), st.integers(1, 4))
def test_layers_join_neighbouring_rows_and_keep_the_width(network, widest):
    layers = layered(network.parents, widest)
    row_of = {node: k for k, row in enumerate(layers.rows) for node in row}
    assert sorted(row_of) == list(range(layers.nodes))
    assert all(row_of[b] == row_of[a] + 1 for a in range(layers.nodes) for b in layers.below[a])
    assert all(a in layers.above[b] for a in range(layers.nodes) for b in layers.below[a])
    assert all(sum(node < network.n for node in row) <= widest for row in layers.rows)
    assert set(layers.chains) == {(p, c) for c, its in enumerate(network.parents) for p in its}


@given(networks(), st.randoms(use_true_random=False))
def test_crossings_are_counted(network, random):
    layers = layered(network.parents, 4)
    rows = [random.sample(row, len(row)) for row in layers.rows]
    assert crossings(layers, rows) == reference.crossings(layers.below, rows)


@given(networks())
def test_ordering_adds_no_crossing(network):
    layers = layered(network.parents, 4)
    rows = ordered(layers)
    assert [sorted(row) for row in rows] == [sorted(row) for row in layers.rows]
    assert crossings(layers, rows) <= crossings(layers, layers.rows)


@pytest.mark.parametrize("seed", range(12))
def test_no_move_of_a_node_or_of_an_edge_removes_a_crossing(seed):
    layers = layered(random_network(14, 24, seed).parents, 3)
    rows = ordered(layers)
    fewest = reference.crossings(layers.below, rows)
    # with one or two bends
    edges = [chain[1:-1] for chain in layers.chains.values() if len(chain) <= 4]
    for bends in [*edges, *((node,) for node in range(layers.nodes))]:
        others = [[node for node in row if node not in bends] for row in rows]
        homes = [next(k for k, row in enumerate(rows) if bend in row) for bend in bends]
        for gaps in product(*(range(len(others[k]) + 1) for k in homes)):
            moved = [row[:] for row in others]
            for bend, k, gap in zip(bends, homes, gaps, strict=True):
                moved[k].insert(gap, bend)
            assert reference.crossings(layers.below, moved) >= fewest


@pytest.mark.parametrize("seed", range(5))
def test_trees_have_no_crossing(seed):
    draw = np.random.default_rng(seed)
    label = draw.permutation(60)
    parents = [()] * 60
    for k in range(1, 60):
        parents[label[k]] = (int(label[draw.integers(k)]),)
    layers = layered(parents, 60)
    assert crossings(layers, ordered(layers)) == 0


def test_ordering_removes_most_crossings():
    """481 of 3,079 crossings are left; without moves of nodes, or without moves of edges, it would be 534."""
    pictures = [layered(random_network(100, 150, seed).parents, 15) for seed in range(4)]
    assert sum(crossings(layers, layers.rows) for layers in pictures) > 3000
    assert sum(crossings(layers, ordered(layers)) for layers in pictures) < 500


@given(networks())
def test_places_are_the_straightest(network):
    layers = layered(network.parents, 3)
    if not layers.chains:
        return
    rows, widths = ordered(layers), [30.0 + 7 * v for v in range(network.n)]
    x, leaving, entering = placed(layers, rows, widths)
    links = [link for chain in layers.chains.values() for link in pairwise(chain)]
    weights = np.array([(1, 2, 8)[(a >= network.n) + (b >= network.n)] for a, b in links])
    offsets = np.array([leaving[link] - entering[link] for link in links])
    neighbours = [pair for row in rows for pair in pairwise(row)]
    room = [distance(layers, widths, *pair) for pair in neighbours]
    upper, lower = np.array(links).T
    least = reference.least_extent(layers.nodes, links, offsets, weights, neighbours, room)
    assert weights @ np.abs(x[upper] - x[lower] + offsets) == pytest.approx(least, abs=1e-6)
    assert all(
        x[b] - x[a] >= distance - 1e-6 for (a, b), distance in zip(neighbours, room, strict=True)
    )


def _boxes(layout):
    half = layout.widths / 2
    return list(
        zip(
            layout.x - half,
            layout.x + half,
            layout.y - BOX_HEIGHT / 2,
            layout.y + BOX_HEIGHT / 2,
            strict=True,
        )
    )


def _on_curve(points):
    """Points on the curve as it is drawn: cubic, upright at both ends of each piece."""
    t = np.linspace(0, 1, 15)
    for (x0, y0), (x1, y1) in pairwise(points):
        middle, a, b, c, d = (
            (y0 + y1) / 2,
            (1 - t) ** 3,
            3 * t * (1 - t) ** 2,
            3 * t**2 * (1 - t),
            t**3,
        )
        yield from zip(
            a * x0 + b * x0 + c * x1 + d * x1, a * y0 + (b + c) * middle + d * y1, strict=True
        )


def _check(network, layout):
    boxes = _boxes(layout)
    for (l1, r1, t1, b1), (l2, r2, t2, b2) in combinations(boxes, 2):
        assert r1 < l2 or r2 < l1 or b1 < t2 or b2 < t1
    for left, right, top, bottom in boxes:
        assert left >= 0 and right <= layout.width and top >= 0 and bottom <= layout.height
    assert set(layout.curves) == {(p, c) for c, its in enumerate(network.parents) for p in its}
    for (parent, child), points in layout.curves.items():
        (first_x, first_y), (last_x, last_y) = points[0], points[-1]
        assert (
            first_y == pytest.approx(boxes[parent][3], abs=0.1)
            and boxes[parent][0] < first_x < boxes[parent][1]
        )
        assert (
            last_y == pytest.approx(boxes[child][2], abs=0.1)
            and boxes[child][0] < last_x < boxes[child][1]
        )
        for x, y in _on_curve(points):
            assert not any(l + 1 < x < r - 1 and t + 1 < y < b - 1 for l, r, t, b in boxes)  # noqa: E741


@given(networks())
def test_boxes_are_apart_and_edges_pass_between(network):
    _check(network, lay_out(network))


@pytest.mark.parametrize("largest_program", [0, 4000])
def test_both_ways_of_placing(largest_program):
    network = random_network(70, 100, 3)
    _check(network, lay_out(network, largest_program=largest_program))


def test_a_chain_is_a_straight_line():
    network = Network(tuple("abcde"), ((), (0,), (1,), (2,), (3,)))
    layout = lay_out(network)
    assert np.ptp(layout.x) == 0
    assert (np.diff(layout.y) > BOX_HEIGHT).all()


def test_the_same_network_has_the_same_picture():
    network = random_network(60, 90, 2)
    one, two = lay_out(network), lay_out(network)
    assert one.curves == two.curves
    assert (one.x == two.x).all() and (one.y == two.y).all()


def test_parts_are_laid_out_apart():
    network = Network(tuple("abcdef"), ((), (0,), (), (2,), (), ()))
    assert [part.tolist() for part in components(network.parents)] == [[0, 1], [2, 3], [4], [5]]
    _check(network, lay_out(network))


@pytest.mark.parametrize("n", [0, 1])
def test_tiny_networks(n):
    layout = lay_out(Network(("a",)[:n], ((),)[:n]))
    assert layout.curves == {} and layout.width > 0 and layout.height > 0


@pytest.mark.parametrize("edges", [300, 400])
def test_a_large_network_is_no_tower(edges):
    layout = lay_out(random_network(223, edges, 0))
    assert layout.height < 1.5 * layout.width
    long_chains = Network(
        tuple(map(str, range(120))), tuple((v - 3,) if v >= 3 else () for v in range(120))
    )
    joined = Network(long_chains.names, (*long_chains.parents[:-1], (116, 117, 118)))
    layout = lay_out(joined)
    assert layout.height < 1.5 * layout.width
    _check(joined, layout)


def test_isolated_vertices_stand_below_and_shift_nothing():
    names = tuple("abcdefgh")
    joined = lay_out(Network(names[:3], ((), (0,), (0,))))
    layout = lay_out(Network(names, ((), (0,), (0,), (), (), (), (), ())))
    assert min(layout.y[3:]) > max(layout.y[:3]) + BOX_HEIGHT
    middle = (layout.x[1] + layout.x[2]) / 2
    assert middle == pytest.approx(layout.width / 2, abs=1)
    assert np.diff(layout.x[:3]) == pytest.approx(np.diff(joined.x))


def test_a_star_is_no_strip():
    layout = lay_out(Network(tuple(f"vertex_{v}" for v in range(201)), ((), *[(0,)] * 200)))
    assert layout.width < 6 * layout.height


def test_long_names_lose_their_middle():
    name = "".join(chr(65 + k % 26) for k in range(100))
    assert len(shortened(name)) == LONGEST_LABEL
    assert (
        shortened(name)[:5] == name[:5]
        and shortened(name)[-5:] == name[-5:]
        and "…" in shortened(name)
    )
    assert shortened("short") == "short"
    assert shortened("a\nb\u2028c\ud800") == "a b c "


def test_wide_letters_count_for_more():
    assert text_width("iiii") < text_width("aaaa") < text_width("MMMM") <= text_width("血血血血")
    assert text_width("e\u0301") == text_width("e")
