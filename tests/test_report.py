"""What goes into the page, and how."""

import base64
import hashlib
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference.pictures as reference
from qubayes import QubayesError
from qubayes.candidates import Candidates
from qubayes.foundation.environment import versions
from qubayes.foundation.families import Families
from qubayes.learning import learn
from qubayes.network import ByState, Linear, Network
from qubayes.report import (
    Consensus,
    Outcome,
    Report,
    VertexFacts,
    edge_strengths,
    render,
    write_report,
)
from report_cases import TRICKY, full_report, random_network

PAIR = Network(("a", "b"), ((), (0,)))


def data_of(page):
    [block] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(block)


def blocks(page, tag):
    return re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)


def test_weights_of_continuous_vertices():
    linears = Linear(6.0, (), 1.5), Linear(4.0, (-0.123456,), 0.5)
    network = Network(("sun", "rain"), ((), (0,)), ((), ()), linears)
    data = data_of(render(Report(network, marginals=((), ()))))
    [edge] = data["network"]["edges"]
    assert edge["weight"] == -0.1235 and data["bif"] is None
    assert data["parameters"][1]["linear"] == {
        "intercept": 4.0,
        "weights": [-0.1235],
        "deviation": 0.5,
    }
    assert data["parameters"][0]["states"] == [] and data["parameters"][0]["table"] is None
    [edge] = data_of(render(Report(PAIR)))["network"]["edges"]
    assert "weight" not in edge


def test_regressions_by_state():
    network = Network(
        ("rain", "moisture", "meter"),
        ((), (0,), (1,)),
        (("no", "yes"), (), ()),
        (
            np.array([0.7, 0.3]),
            ByState(np.array([10.0, 30.0]), np.zeros((2, 0)), np.array([3.0, 5.0])),
            Linear(1.0, (1.0,), 2.0),
        ),
    )
    data = data_of(render(Report(network)))
    moisture = data["parameters"][1]["by_state"]
    assert moisture == {"states": [0], "numbers": [], "rows": [[10.0, 3.0], [30.0, 5.0]]}
    assert data["parameters"][0]["table"] == [[0.7, 0.3]] and data["bif"] is None
    edges = {(edge["parent"], edge["child"]): edge for edge in data["network"]["edges"]}
    assert edges[0, 1]["forced"] and not edges[0, 1]["reversible"]
    assert not edges[1, 2]["forced"] and edges[1, 2]["weight"] == 1.0


def test_the_policy_allows_our_own_blocks_and_nothing_else():
    page = render(full_report(random_network(12, 15, 0)))
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    [style], [script] = blocks(page, "style"), blocks(page, "script")
    assert directives["default-src"] == "'none'"
    for directive, block in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
        assert directives[directive] == f"'sha256-{digest}'"
    assert "unsafe" not in policy and "http" not in policy.replace("https", "http")
    assert not re.findall(r'(?:src|href)="(?!data:,|#)', page)


def test_our_script_parses_no_markup():
    [script] = blocks(render(Report(PAIR)), "script")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script
    )


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4, unique=True))
def test_any_names_arrive_and_none_becomes_markup(names):
    network = Network(tuple(names), ((),) * len(names))
    plain = render(Report(Network(tuple("abcd"[: len(names)]), network.parents)))
    page = render(Report(network))
    assert [node["name"] for node in data_of(page)["network"]["nodes"]] == names
    before, after = (
        re.sub(r'id="data">.*?</script>', "", text, flags=re.S) for text in (plain, page)
    )
    assert before == after  # outside the block of data, names change nothing
    block = re.search(r'id="data">(.*?)</script>', page, re.S)[1]
    assert block.isascii() and not set("<>&") & set(block)


def test_tricky_names_and_texts():
    network = Network(TRICKY, ((),) * len(TRICKY))
    page = render(
        Report(
            network,
            TRICKY[1],
            Outcome(-1.0, TRICKY[0], status=TRICKY[1]),
            provenance={TRICKY[0]: {"x": TRICKY[1]}},
        )
    )
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert data_of(page)["title"] == TRICKY[1]
    page.encode("utf-8")


def test_what_is_unknown_is_left_out():
    data = data_of(render(Report(PAIR)))
    assert data["outcome"] is None and data["bits"] is None and data["vertices"] is None
    assert data["trace"] == [] and data["provenance"] == []
    assert data["network"]["edges"][0]["strength"] is None


def test_numbers_that_json_lacks():
    report = Report(
        PAIR,
        outcome=Outcome(-1.5, empty_score=-math.inf, bound=math.nan),
        strengths={(0, 1): math.inf},
        trace=((0.0, -math.inf), (1.0, -2.0), (2.0, -1.5)),
        vertices=(VertexFacts(), VertexFacts(gain=math.nan, candidates=3)),
        provenance={"Settings": {"limit": math.inf}},
    )
    data = data_of(render(report))
    assert data["outcome"]["empty_score"] is None and data["outcome"]["bound"] is None
    assert data["network"]["edges"][0]["strength"] == "required"
    assert data["trace"] == [[1.0, -2.0], [2.0, -1.5]]
    assert data["vertices"][1] == {"gain": None, "candidates": 3, "subsets": None}
    assert data["provenance"] == [["Settings", [["limit", "inf"]]]]


def test_long_traces_are_thinned_out():
    trace = tuple((float(k), float(k)) for k in range(100_001))
    shown = data_of(render(Report(PAIR, trace=trace)))["trace"]
    assert len(shown) <= 2001 and shown[0] == [0, 0] and shown[-1] == [100_000, 100_000]


def test_secrets_are_hidden():
    page = render(
        Report(
            PAIR,
            provenance={"Settings": {"api_key": "hunter2", "Access-Token": "hunter3", "seed": 4}},
        )
    )
    assert "hunter" not in page
    assert data_of(page)["provenance"][0][1] == [
        ["api_key", "(hidden)"],
        ["Access-Token", "(hidden)"],
        ["seed", 4],
    ]


def test_bits_of_this_run_alone():
    data = data_of(render(Report(PAIR, bits={"u": 5, "r": 3, "z": 1, "total": 9})))
    assert data["bits"] == {"ours": {"u": 5, "r": 3, "z": 1, "total": 9}, "paper": None}


def test_the_consensus_is_told_beside_the_network():
    network = Network(tuple("abcd"), ((), (0,), (1,), (2,)))
    found = Consensus(50, {(0, 1): 0.6, (2, 1): 0.9, (0, 3): 1.0, (2, 3): 0.6})
    told = data_of(render(Report(network, consensus=found)))["consensus"]
    assert told["samples"] == 50
    assert [tuple(edge.values()) for edge in told["edges"]] == [
        (0, 3, 1.0, "absent"),
        (2, 1, 0.9, "turned"),
        (0, 1, 0.6, "same"),
        (2, 3, 0.6, "same"),
    ]


@pytest.mark.parametrize("edge", [(0, 2), (-1, 0)])
def test_a_consensus_of_other_vertices_is_refused(edge):
    with pytest.raises(
        QubayesError, match=r"edge \(.*\) of the consensus or in doubt; the vertices are 0 to 1"
    ):
        Report(PAIR, consensus=Consensus(3, {edge: 0.9}))


def sure_data():
    """Two variables that are alike, one of them with a hostile name, and one of its own."""
    first, second = np.random.default_rng(0).integers(0, 2, (2, 200))
    return polars.DataFrame({TRICKY[0]: first, "alike": first, "alone": second})


def test_the_report_of_learn_has_the_consensus():
    learned = learn(sure_data(), 1, bootstrap=6)
    report, confidence = learned.report_contents(), learned.confidence
    told = {
        (parent, child) for child, its in enumerate(confidence.consensus.parents) for parent in its
    }
    assert report.consensus == Consensus(6, {edge: confidence.of(*edge) for edge in told})
    assert {frozenset(edge) for edge in told} >= {frozenset((0, 1))}
    edges = {(parent, child) for child, its in enumerate(learned.network.parents) for parent in its}
    assert report.confidences == {edge: confidence.of(*edge) for edge in edges}


def test_without_resampling_there_is_no_consensus():
    report = learn(sure_data(), 1).report_contents()
    assert report.consensus is None and report.confidences == {}
    assert data_of(render(report))["consensus"] is None


def test_whatever_a_run_tells_of_itself_is_shown():
    told = {
        "data": {
            "file": "<b>雨.csv",
            "sha256": "ab" * 32,
            "reading": {"missing": "drop", "ignore": ("雨",)},
        },
        "settings": {"seed": 1, "bins": None, "strict": True, "path": Path("x")},
        "more": {"anything": 2.5},
    }
    assert data_of(render(Report(Network(("a",), ((),)), provenance=told)))["provenance"] == [
        [
            "data",
            [
                ["file", "<b>雨.csv"],
                ["sha256", "ab" * 32],
                ["reading", '{"missing": "drop", "ignore": ["雨"]}'],
            ],
        ],
        ["settings", [["seed", 1], ["bins", None], ["strict", True], ["path", '"x"']]],
        ["more", [["anything", 2.5]]],
    ]


def test_thicker_edges_are_stronger():
    network = Network(tuple("abcd"), ((), (0,), (0,), (0,)))
    strengths = {(0, 1): 1.0, (0, 2): 50.0, (0, 3): math.inf}
    edges = {
        e["child"]: e["thickness"]
        for e in data_of(render(Report(network, strengths=strengths)))["network"]["edges"]
    }
    assert edges[1] < edges[2] <= edges[3]


def test_facts_of_other_networks_are_refused():
    with pytest.raises(QubayesError, match="facts of 1 vertices for a network of 2"):
        Report(PAIR, vertices=(VertexFacts(),))
    with pytest.raises(QubayesError, match=r"strength of edge \(1, 0\), which the network lacks"):
        Report(PAIR, strengths={(1, 0): 2.0})


def test_the_file_is_whole_or_absent(tmp_path):
    write_report(Report(PAIR), tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == render(Report(PAIR))
    with pytest.raises(QubayesError, match="cannot write"):
        write_report(Report(PAIR), tmp_path / "nowhere" / "x.html")
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]


def test_versions_are_told():
    assert versions()["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"qubayes", "numpy"} <= set(versions())


@st.composite
def scored_families(draw):
    """{set: score} for each vertex, with a base that every set contains, and chosen parents that contain it."""
    n = draw(st.integers(1, 5))
    families, chosen = [], []
    for v in range(n):
        others = [u for u in range(n) if u != v]
        base = (
            frozenset(draw(st.sets(st.sampled_from(others), max_size=1))) if others else frozenset()
        )
        rest = (
            draw(st.sets(st.frozensets(st.sampled_from(others), max_size=3), max_size=6))
            if others
            else set()
        )
        sets = sorted(
            {base, *(base | extra for extra in rest)}, key=lambda s: (s == base, sorted(s))
        )
        scores = sorted(
            draw(st.lists(st.floats(-99, 0), min_size=len(sets), max_size=len(sets))), reverse=True
        )
        families.append(dict(zip(sets, scores, strict=True)))
        chosen.append(
            tuple(
                sorted(
                    base | draw(st.frozensets(st.sampled_from(others), max_size=4))
                    if others
                    else base
                )
            )
        )
    return families, chosen


@given(scored_families())
def test_strengths(case):
    families, chosen = case
    lists = Families.of([[tuple(sorted(members)) for members in family] for family in families])
    scores = np.array([score for family in families for score in family.values()])
    candidates = Candidates(tuple(f"v{v}" for v in range(len(families))), lists, scores)
    assert edge_strengths(candidates, chosen) == reference.edge_strengths(families, chosen)


def test_strengths_need_the_required_parents():
    candidates = Candidates(("a", "b"), Families.of([[()], [(0,)]]), np.array([-1.0, -2.0]))
    assert edge_strengths(candidates, [(), (0,)]) == {(0, 1): math.inf}
    with pytest.raises(
        QubayesError,
        match="no candidate set of 'b' lies inside its parents; they must hold all of a",
    ):
        edge_strengths(candidates, [(), ()])
    with pytest.raises(QubayesError, match="parents of 1 vertices but candidates of 2"):
        edge_strengths(candidates, [()])


def test_the_page_needs_no_heavy_packages(tmp_path):
    code = (
        "import sys; from qubayes.network import Linear, Network; from qubayes.report import Report, write_report;"
        "write_report(Report(Network(('a', 'b'), ((), (0,)))), sys.argv[1]);"
        "print([m for m in ('dimod', 'networkx', 'scipy', 'playwright', 'resvg_py') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x.html")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_parts_of_the_page_are_in_the_package():
    import qubayes.report

    folder = Path(qubayes.report.__file__).parent
    assert all((folder / name).is_file() for name in ("page.html", "page.css", "page.js"))
