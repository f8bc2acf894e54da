"""What the documentation tells people to run runs, and its pictures and reference are the program's own."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import pytest

from candidate_cases import assert_one_line, run
from qubayes import SettingError
from qubayes.network import read_network
from qubayes.report import MOST_BITS_DRAWN, write_model_drawing
from solve_cases import formulated, random_candidates

ROOT = Path(__file__).parent.parent


def shell(command: str, folder: Path) -> str:
    """What the command prints, run where the examples are; it must end well."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands(page: str) -> list[str]:
    """The shell commands of the page, one from each block."""
    return [
        block.strip()
        for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / page).read_text(), re.S)
    ]


def without_time(printed: str) -> list[str]:
    """The lines of a summary, but for that of the time."""
    return [line for line in printed.splitlines() if not line.startswith("  time ")]


def test_the_tutorial_runs_as_written(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    told = {command: shell(command, tmp_path) for command in commands("tutorial.md")}
    assert len(told) >= 9
    assert sum("Proved optimal" in text for text in told.values()) >= 3
    page = (ROOT / "docs/tutorial.md").read_text()
    block = r"```sh\n([^`]*)\n```\n\n((?:    [^\n]*\n|\n(?=    ))+)"
    shown = {command: dedent(printed) for command, printed in re.findall(block, page)}
    assert len(shown) == 3
    for command, printed in shown.items():
        assert without_time(told[command]) == without_time(printed)
    made = {path.name for path in tmp_path.iterdir()}
    assert {
        "wine.bif",
        "wine.html",
        "wine2.bif",
        "sure.html",
        "wine.svg",
        "wine.jkl",
        "exact.dot",
        "wine.bqm",
    } <= made


def test_bringing_an_annealer_runs_as_written(tmp_path):
    pytest.importorskip("dwave.samplers")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in commands("howto-annealer.md"):
        shell(command, tmp_path)
    network = read_network(tmp_path / "network.json")
    assert network.n == 37 and sum(map(len, network.parents)) > 20


def test_the_page_about_quality_runs_as_written(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    told = [shell(command, tmp_path) for command in commands("howto-quality.md")]
    assert len(told) == 4 and "Proved optimal" in told[0]
    page = (ROOT / "docs/howto-quality.md").read_text()
    printed = re.search(r"--holdout 0.3\n```\n\n((?:    [^\n]*\n|\n(?=    ))*)", page)
    assert dedent(printed[1]) == told[2]


@pytest.mark.parametrize("page", ["howto-quality.md", "howto-time-series.md"])
def test_the_python_of_how_tos_runs(page, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.S)
    exec(compile(code, page, "exec"), {})
    told = capsys.readouterr().out
    if page == "howto-quality.md":
        assert "False" in told and "Support(" in told and "HeldOut(rows=53" in told
    else:
        assert told == "pump <- nothing\npressure <- pump[-1]\nalarm <- pressure\n"


@pytest.mark.parametrize(
    "name", ["howto-messy-table.md", "howto-numbers.md", "howto-mixed.md", "howto-own-score.md"]
)
def test_pages_print_what_they_show(name, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / name).read_text()
    names: dict[str, object] = {}
    for code, shown in re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)*)", page, re.S):
        exec(compile(code, name, "exec"), names)
        assert capsys.readouterr().out == dedent(shown)
    assert "learned" in names


@pytest.mark.parametrize("program", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_examples_run(program, tmp_path):
    if program == "in_a_pipeline.py":
        pytest.importorskip("sklearn")
    assert shell(f"{sys.executable} {ROOT / 'examples' / program}", tmp_path).count("\n") >= 2


def test_every_example_is_listed():
    told = (ROOT / "examples/README.md").read_text()
    assert all(
        f"`{path.name}`" in told
        for path in (ROOT / "examples").iterdir()
        if path.name != "README.md"
    )


@pytest.mark.skipif(
    tuple(map(int, version("typer").split(".")[:2])) < (0, 26),
    reason="what an argument means is kept elsewhere there",
)
def test_the_command_reference_is_up_to_date():
    subprocess.run([sys.executable, ROOT / "scripts/command_reference.py", "--check"], check=True)


@pytest.mark.parametrize(
    ("picture", "options"), [("qubo", ("scc", "paper")), ("qubo-tight", ("chordal", "tight"))]
)
def test_the_pictures_of_the_qubo_are_the_programs(tmp_path, capsys, picture, options):
    order, penalty = options
    out = tmp_path / "x.svg"
    file = ROOT / "docs/pictures/three.jkl"
    assert run(capsys, "formulate", file, "--order", order, "--penalty", penalty, "-o", out)[0] == 0
    assert out.read_text() == (ROOT / f"docs/pictures/{picture}.svg").read_text()
    circles = ElementTree.parse(out).getroot().iter("{http://www.w3.org/2000/svg}circle")
    assert len(list(circles)) == (10 if penalty == "paper" else 7)


def test_the_overview_is_the_programs():
    command = [sys.executable, "-m", "benchmarks", "figures", "--check"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def test_each_edge_has_a_colour_of_its_own_in_the_picture_of_a_qubo():
    """As in the paper's Figure 2: an edge of the network, its order bit, its subset bit and their coupler."""
    text = (ROOT / "docs/pictures/qubo.svg").read_text()
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    lines = {
        path.get("stroke")
        for path in root.find(f"{space}g").iter(f"{space}path")
        if path.get("stroke")
    }
    assert len(lines) == 3
    couplers = {
        path.find(f"{space}title").text: path.get("stroke") for path in root.findall(f"{space}path")
    }
    coloured = {
        title.split(" · ", 1)[1]: colour for title, colour in couplers.items() if colour in lines
    }
    assert set(coloured) == {
        "u[X1|X2] · r[X1<X2]",
        "u[X3|X1,X2] · r[X1<X3]",
        "u[X3|X1,X2] · r[X2<X3]",
    }
    assert len(set(coloured.values())) == 3
    rings = {
        bit.findall(f"{space}text")[1].text: {
            path.get("stroke") for path in bit.findall(f"{space}path")
        }
        for bit in root.iter(f"{space}g")
        if bit.find(f"{space}circle") is not None
    }
    for pair, colour in coloured.items():
        assert all(colour in rings[label] for label in pair.split(" · "))
    assert rings["u[X1|X3]"] == rings["z[X1]"] == set()


def test_a_large_qubo_is_not_drawn(tmp_path, capsys):
    formulation = formulated(random_candidates(12, 0, sets=20))
    assert formulation.qubo.bits > MOST_BITS_DRAWN
    with pytest.raises(SettingError, match="at most"):
        write_model_drawing(formulation, tmp_path / "x.svg")


def test_names_are_text_in_a_picture(tmp_path, capsys):
    path = tmp_path / "x.jkl"
    path.write_text("2\n<script>alert(1)</script> 2\n-1.0 1 b\n-2.0 0\nb 1\n-1.0 0\n")
    assert run(capsys, "formulate", path, "-o", tmp_path / "x.svg")[0] == 0
    text = (tmp_path / "x.svg").read_text()
    assert "<script" not in text and "&lt;script&gt;" in text
    code, _, err = run(capsys, "formulate", path, "-o", tmp_path / "absent" / "x.svg")
    assert_one_line(code, err, "cannot write")
