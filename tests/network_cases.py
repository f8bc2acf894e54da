"""Random networks for property tests."""

import csv
import gzip
import io
import re
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from qubayes.network import Network, read_network

# fmt: off
NASTY = [
    'plain a b', 'a;b', 'a"b', "a'b", 'a[b]', 'a{b}(c)', 'a|b:c', '<script>alert(1)</script>', '&amp;', '雨',
    'Größe', 'a\\', '\\', 'a\\"b', '//x', '/*x', '#x', '-1', '1.5', '<1.5', '>=1.5', 'a=b', 'a->b', 'digraph',
    'node', 'table', '%s', '{0}', '$(x)', '`x`', '.', '..', '../x', '0', '0.0', 'NaN', ']]>', '<!--x-->',
    '\ufeffx', '\u202ex', '\x85', 'a,b', ' a', 'a ', 'a  b', 'a\tb', 'a\nb', 'a\r\nb', '\r', ' ', '', '\x00',
    '\x01', '\x1f', '\ufffe', '😀',
]
# fmt: on
names = st.one_of(
    st.sampled_from(NASTY),
    st.text(max_size=6),
    st.text(alphabet='ab "\\\n\r[]|:,;-<>&', max_size=5),
)


@st.composite
def graphs(draw, max_vertices=6, vertex_names=None):
    """A graph alone, its vertices in any order of names."""
    n = draw(st.integers(1, max_vertices))
    if vertex_names is None:
        chosen = list("abcdefghij"[:n])
    else:
        chosen = draw(st.lists(vertex_names, min_size=n, max_size=n, unique=True))
    order = draw(st.permutations(range(n)))
    parents = [()] * n
    for place, vertex in enumerate(order):
        earlier = order[:place]
        parents[vertex] = (
            tuple(draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)))
            if earlier
            else ()
        )
    return Network(tuple(chosen), tuple(parents))


@st.composite
def networks(draw, max_vertices=4, vertex_names=None, state_names=None):
    """A network with tables."""
    graph = draw(graphs(max_vertices, vertex_names))
    arities = draw(st.lists(st.integers(1, 3), min_size=graph.n, max_size=graph.n))
    if state_names is None:
        states = [tuple("xyz"[:arity]) for arity in arities]
    else:
        states = [
            tuple(draw(st.lists(state_names, min_size=r, max_size=r, unique=True))) for r in arities
        ]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_tables(Network(graph.names, graph.parents, tuple(states)), rng)


def random_tables(network, rng):
    """The network with random tables; some probabilities are 0, some tiny."""
    tables = []
    for vertex, parents in enumerate(network.parents):
        shape = tuple(len(network.states[v]) for v in (*parents, vertex))
        weights = (
            rng.random(shape) * 10.0 ** rng.integers(-12, 1, shape) * (rng.random(shape) < 0.9)
        )
        weights[..., 0] += weights.sum(axis=-1) == 0
        tables.append(weights / weights.sum(axis=-1, keepdims=True))
    return Network(network.names, network.parents, network.states, tuple(tables))


def equal_tables(a, b):
    """Whether two networks have the same tables, to the last bit."""
    return all(
        x.shape == y.shape and (x == y).all() for x, y in zip(a.tables, b.tables, strict=True)
    )


_DOT_NAME = r'"((?:[^"\\]|\\")*)"'
_DOT_LINE = re.compile(rf"  {_DOT_NAME}(?: -> {_DOT_NAME})?( \[dir=none\])?;\n")


def read_graph(path):
    """The network of a file; DOT and adjacency matrices, which are only written, as we write them."""
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if kind not in ("dot", "gv", "csv"):
        return read_network(path)
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    names, edges = [], []
    if kind == "csv":
        names, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        for parent, row in zip(names, rows, strict=True):
            assert set(row) <= {"0", "1"}
            edges += [(parent, name) for name, x in zip(names, row, strict=True) if x == "1"]
    else:
        assert text.startswith("digraph {\n") and text.endswith("}\n")
        place = len("digraph {\n")
        while match := _DOT_LINE.match(text, place):
            parent, child = (name and name.replace('\\"', '"') for name in match.groups()[:2])
            if child is None:
                names.append(parent)
            else:
                edges.append((parent, child))
            place = match.end()
        assert place == len(text) - len("}\n")
    return replace(Network.from_edges(names, edges), name=path.name.removesuffix(".gz"))
