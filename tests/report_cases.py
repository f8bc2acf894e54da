"""Networks and reports for the tests of pictures and pages."""

import random

from hypothesis import strategies as st

from qubayes.foundation.environment import versions
from qubayes.network import Network
from qubayes.report import Consensus, Outcome, Report, VertexFacts

TRICKY = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"'quotes'\" & <b>bold</b>",
    "{{script}}",
    "血圧 (収縮期)",
    "ضغط الدم",
    "line\u2028break\ttab",
    "a very long name that no box could hold without leaving out its middle part 12345",
)


def random_network(n, edges, seed, names=None):
    """A random directed acyclic graph; children mostly near their parents in the order, as in learned networks."""
    draw = random.Random(seed)
    order = list(range(n))
    draw.shuffle(order)
    parents = [set() for _ in range(n)]
    while sum(map(len, parents)) < edges:
        upper = draw.randrange(n - 1)
        lower = min(n - 1, upper + 1 + int(draw.expovariate(1 / 12)))
        if len(parents[order[lower]]) < 4:
            parents[order[lower]].add(order[upper])
    names = names or [f"variable_{v}" for v in range(n)]
    return Network(tuple(names), tuple(tuple(sorted(its)) for its in parents))


@st.composite
def networks(draw, max_vertices=9):
    """Small networks, with names of many lengths."""
    n = draw(st.integers(0, max_vertices))
    order = draw(st.permutations(range(n)))
    parents = [[] for _ in range(n)]
    for k, v in enumerate(order):
        parents[v] = sorted(draw(st.sets(st.sampled_from(order[:k]), max_size=4))) if k else []
    names = draw(st.lists(st.text(max_size=40), min_size=n, max_size=n, unique=True))
    return Network(tuple(names), tuple(map(tuple, parents)))


def some_consensus(network):
    """Every third edge as it is, every third turned round, and joins of vertices that no edge joins."""
    edges = [(parent, child) for child, its in enumerate(network.parents) for parent in its]
    joined = {frozenset(edge) for edge in edges}
    others = [(v, v + 1) for v in range(network.n - 1) if frozenset((v, v + 1)) not in joined]
    found = [*edges[::3], *((child, parent) for parent, child in edges[1::3]), *others[:3]]
    return Consensus(200, {edge: 0.55 + 0.4 * (7 * k % 11) / 10 for k, edge in enumerate(found)})


def full_report(network, title="A report"):
    """A report with every part, from made-up numbers."""
    draw = random.Random(7)
    edges = [(parent, child) for child, its in enumerate(network.parents) for parent in its]
    trace = [(0.01 * 1.2**k, -20_000 + 9_000 * (1 - 0.8**k)) for k in range(40)]
    return Report(
        network,
        title,
        Outcome(
            trace[-1][1],
            "BDeu, equivalent sample size 1",
            -20_000.0,
            -10_990.0,
            0.0011,
            "not proved",
            "anneal",
            12.3,
        ),
        {edge: draw.lognormvariate(3, 1.2) for edge in edges},
        {edge: draw.betavariate(5, 1.4) for edge in edges},
        consensus=some_consensus(network),
        trace=tuple(trace),
        bits={"u": 1321, "r": 325, "z": 37, "total": 1683},
        paper_bits={"u": 2310, "r": 666, "z": 37, "total": 3013},
        vertices=tuple(
            VertexFacts(draw.lognormvariate(4, 1), draw.randrange(9000), draw.randrange(60))
            for _ in network.names
        ),
        provenance={
            "Data": {"file": "sample.csv", "rows": 1000, "sha256": "5f2d" * 16},
            "Settings": {"score": "bdeu", "ess": 1.0, "max parents": 3, "seed": 0, "cluster": None},
            "Versions": versions(),
        },
    )
