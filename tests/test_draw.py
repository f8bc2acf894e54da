"""`qubayes draw` from the outside, and its pictures."""

import json
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from qubayes import MissingPackageError, QubayesError
from qubayes.cli import app
from qubayes.network import Network, read_network, write_network
from qubayes.report import draw, write_drawing
from report_cases import TRICKY, random_network

SVG = "{http://www.w3.org/2000/svg}"
CHAIN = Network(("a", "b", "c"), ((), (0,), (1,)))
COLLIDER = Network(("a", "b", "c", "d"), ((), (), (0, 1), (2,)))

SCORES = """4
d 2
-5.0 1 c
-9.0 0
c 4
-10.0 2 a b
-12.0 1 b
-40.0 1 a
-60.0 0
b 1
-1.0 0
a 1
-1.0 0
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    write_network(COLLIDER, tmp_path / "net.json")
    (tmp_path / "scores.jkl").write_text(SCORES)

    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["draw", *arguments])


def groups(picture, kind):
    return [g for g in ElementTree.fromstring(picture).iter(f"{SVG}g") if g.get("class") == kind]


def heads(picture):
    return [
        g.find(f"{SVG}title").text
        for g in groups(picture, "edge")
        if len(g.findall(f"{SVG}path")) == 2
    ]


def thickness(picture):
    return {
        g.find(f"{SVG}title").text: float(g.find(f"{SVG}path").get("stroke-width"))
        for g in groups(picture, "edge")
    }


def test_svg_has_every_vertex_and_edge():
    network = random_network(40, 60, 5)
    picture = draw(network)
    assert [g.find(f"{SVG}title").text for g in groups(picture, "node")] == list(network.names)
    assert len(groups(picture, "edge")) == len(heads(picture)) == 60


def test_any_name_is_text():
    network = Network((*TRICKY, "\x01\x7f\ud800"), ((),) * (len(TRICKY) + 1))
    picture = draw(network)
    titles = [g.find(f"{SVG}title").text for g in groups(picture, "node")]
    assert titles[:5] == list(TRICKY[:5]) and titles[-1] == "\ufffd\ufffd\ufffd"
    assert not list(ElementTree.fromstring(picture).iter(f"{SVG}script"))
    picture.encode("utf-8")


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a & b.bif", "\x01"])
def test_the_name_of_a_network_is_text(name):
    title = ElementTree.fromstring(draw(replace(CHAIN, name=name))).find(f"{SVG}title")
    assert title.text == name.replace("\x01", "\ufffd") and not list(title)


def test_the_command(run, tmp_path):
    done = run("net.json", "-o", "x.svg")
    assert (done.exit_code, done.output) == (0, "4 variables, 3 edges\n\n  x.svg   picture\n")
    assert (tmp_path / "x.svg").read_text() == draw(read_network("net.json"))


def test_json(run):
    done = run("net.json", "-o", "x.html", "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.output)
    assert (result["n"], result["edges"], result["output"]) == (4, 3, "x.html") and result[
        "seconds"
    ] >= 0


def test_strengths_by_name(run, tmp_path):
    done = run("net.json", "-o", "x.svg", "--candidates", "scores.jkl")
    assert done.exit_code == 0, done.output
    drawn = thickness((tmp_path / "x.svg").read_text())
    assert set(drawn) == {"a → c: 2.00", "b → c: 30.00", "c → d: 4.00"}
    assert drawn["a → c: 2.00"] < drawn["c → d: 4.00"] < drawn["b → c: 30.00"]


def test_scores_of_other_variables(run, tmp_path):
    (tmp_path / "other.jkl").write_text("2\na 1\n-1.0 0\nz 1\n-1.0 0\n")
    done = run("net.json", "-o", "x.svg", "--candidates", "other.jkl")
    assert "'b' is in only one of the network and the candidates" in str(done.exception)
    assert not (tmp_path / "x.svg").exists()


def test_classes_have_fewer_heads(run, tmp_path):
    write_network(CHAIN, tmp_path / "chain.json")
    for name, heads_left in (("net.json", ["a → c", "b → c", "c → d"]), ("chain.json", [])):
        assert run(name, "-o", "x.svg", "--cpdag").exit_code == 0
        assert sorted(heads((tmp_path / "x.svg").read_text())) == heads_left
    assert thickness((tmp_path / "x.svg").read_text()).keys() == {"a — b", "b — c"}
    assert run("chain.json", "-o", "x.html", "--cpdag").exit_code == 0
    assert '"class_only":true' in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("net.json", "-o", "x.pdf"), "x.pdf ends in none of .svg, .png, .html"),
        (("nothing.bif", "-o", "x.svg"), "cannot read nothing.bif: no such file"),
        (("net.json", "-o", "nowhere/x.svg"), "cannot write nowhere/x.svg"),
    ],
)
def test_bad_input(run, arguments, message):
    done = run(*arguments)
    assert isinstance(done.exception, QubayesError) and message in str(done.exception)


def test_bad_input_is_one_line(tmp_path):
    command = [
        sys.executable,
        "-c",
        "from qubayes.cli import main; main()",
        "draw",
        "nothing.bif",
        "-o",
        "x.svg",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.count("\n") == 1


def test_png_is_twice_the_size(tmp_path):
    pytest.importorskip("resvg_py", reason="PNG needs resvg-py")
    write_drawing(CHAIN, tmp_path / "x.png")
    content = (tmp_path / "x.png").read_bytes()
    root = ElementTree.fromstring(draw(CHAIN))
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">II", content[16:24]) == tuple(
        2 * int(root.get(side)) for side in ("width", "height")
    )


def test_png_shows_labels(tmp_path):
    pytest.importorskip("resvg_py", reason="PNG needs resvg-py")
    for name in ("HHHH", "IIII"):
        write_drawing(Network((name,), ((),)), tmp_path / f"{name}.png")
    assert (tmp_path / "HHHH.png").read_bytes() != (tmp_path / "IIII.png").read_bytes()


def test_png_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingPackageError, match=r"pip install '\.\[png\]'"):
        write_drawing(CHAIN, tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


def test_other_endings(tmp_path):
    with pytest.raises(QubayesError, match=r"none of \.svg, \.png, \.html"):
        write_drawing(CHAIN, tmp_path / "x")
