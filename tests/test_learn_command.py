"""`learn` and `solve` from the command line: what is checked beforehand, and what an interrupt leaves."""

import itertools
import json
import math
import os
import subprocess
import sys
from importlib import import_module
from types import MappingProxyType

import networkx as nx
import numpy as np
import polars
import pytest
from dimod import BinaryQuadraticModel

import qubayes
from candidate_cases import assert_one_line, data_file, dependent_data, run, with_large_tables
from qubayes import QubayesError
from qubayes.learning import Learned, learn
from qubayes.network import read_network
from qubayes.qubo import encode_sets
from qubayes.search import solver_named

DATA = dependent_data(8, 300, seed=1)


def assert_refused(capsys, complaint, *arguments) -> None:
    code, _, error = run(capsys, *arguments)
    assert_one_line(code, error, complaint)


@pytest.fixture
def data(tmp_path):
    return data_file(tmp_path, DATA)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--report", "x.html.gz"], "give it the ending .html"),
        (["-o", "nowhere/x.json"], "there is no folder nowhere"),
        (["--report", "nowhere/x.html"], "there is no folder nowhere"),
        (["--trace", "nowhere/x.csv"], "there is no folder nowhere"),
        (["--report", "folder.html"], "a folder or a device has that name"),
        (["--report", "x.pdf"], "give it the ending .html"),
        (["--trace", "x.html"], "give it the ending .csv"),
        (["-o", "x.csv", "--trace", "x.csv"], "choose another name"),
        (["-o", "x.csv", "--trace", "./x.csv"], "choose another name"),
    ],
)
def test_places_are_checked_before_the_work(tmp_path, monkeypatch, capsys, options, complaint):
    """The data have a fault, which would be found next."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "bad.csv").write_text("a,b\n1\n")
    assert_refused(capsys, complaint, "learn", tmp_path / "bad.csv", *options)
    assert_refused(capsys, "line 2", "learn", tmp_path / "bad.csv")


def test_report_and_qubo_search_the_subsets_once(data, tmp_path, calls_of, capsys):
    searches = calls_of(import_module("qubayes.qubo.formulation"), "cover")
    files = tmp_path / "x.html", tmp_path / "x.bqm"
    assert run(capsys, "learn", data, "-m", 2, "--report", files[0], "--qubo", files[1])[0] == 0
    assert len(searches) == 1 and all(file.exists() for file in files)


@pytest.mark.parametrize("option", ["-o", "--trace"])
def test_data_are_not_written_over(tmp_path, capsys, option):
    data = data_file(tmp_path, DATA)
    before = data.read_bytes()
    assert_refused(capsys, "choose another name", "learn", data, option, data)
    assert data.read_bytes() == before


@pytest.mark.skipif(
    os.name != "posix" or os.getuid() == 0, reason="the superuser may write anywhere"
)
def test_a_folder_that_may_not_be_written_to(data, tmp_path, capsys):
    (tmp_path / "mine").mkdir(mode=0o500)
    assert_refused(
        capsys, "nothing may be written", "learn", data, "-o", tmp_path / "mine" / "x.json"
    )


def test_one_file_that_cannot_be_written_keeps_no_other_from_being(tmp_path, capsys):
    path = data_file(tmp_path, with_large_tables())
    files = ["-o", tmp_path / "x.bif", "--report", tmp_path / "x.html"]
    code, out, error = run(capsys, "learn", path, "-m", 2, "--score", "loglik", *files)
    warning, failure = error.splitlines()
    assert code == 1 and "the network has no probabilities: the tables need" in warning
    assert "needs probabilities and this network has none" in failure and failure.endswith(
        "x.bif.json"
    )
    assert read_network(tmp_path / "x.bif.json").names == ('q"x', "b", "c")
    assert "score" in out and f"{tmp_path / 'x.html'}   report" in out
    assert (tmp_path / "x.html").exists() and not (tmp_path / "x.bif").exists()


@pytest.mark.parametrize("name", ["x.xmlbif", "x.graphml"])
def test_a_name_that_the_file_cannot_hold_is_refused_before_the_search(tmp_path, capsys, name):
    path = tmp_path / "data.csv"
    path.write_text('"a\x01b",c\n' + "0,1\n1,0\n" * 20)
    reports = []
    with pytest.raises(QubayesError, match="cannot hold the name"):
        learn(path, output=tmp_path / name, on_progress=reports.append)
    assert not reports
    assert_refused(capsys, r"cannot hold the name 'a\x01b'", "learn", path, "-o", tmp_path / name)


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("target", "call", "samples"),
    [
        ("pipeline.fit", 1, None),
        ("confidence.identify_until", 1, None),
        ("confidence.identify_until", 2, 1),
    ],
)
def test_a_network_that_was_found_is_not_thrown_away(
    data, tmp_path, press_at, capsys, target, call, samples
):
    best = learn(DATA, 2).solution.score
    press_at(f"qubayes.learning.{target}", call)
    files = [tmp_path / name for name in ("x.bif", "x.html", "x.csv")]
    code, out, error = run(
        capsys,
        "learn",
        data,
        "-m",
        2,
        "--bootstrap",
        3,
        "--json",
        "-o",
        files[0],
        "--report",
        files[1],
        "--trace",
        files[2],
    )
    found = json.loads(out)
    assert code == 130 and "interrupted" in error
    assert found["score"] == best and found["proved"] and found["bits"]["ours"]["total"] > 0
    assert all(path.exists() for path in files)
    assert read_network(files[0]).tables is not None
    assert samples == (found["confidence"] and found["confidence"]["samples"])


COVER = "qubayes.qubo.subsets.cover.cover_system"  # the search of one vertex


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_while_subsets_are_searched_is_told(
    data, tmp_path, monkeypatch, press_at, capsys
):
    """The bits of an unfinished cover are not shown as a result, and its QUBO is not written."""
    press_at(COVER)
    files = [tmp_path / name for name in ("x.bif", "x.html", "x.bqm")]
    options = ["-o", files[0], "--report", files[1], "--qubo", files[2]]
    code, out, error = run(capsys, "learn", data, "-m", 3, "--json", *options)
    found = json.loads(out)
    assert code == 130 and error == "qubayes: interrupted; the QUBO is left out\n"
    assert found["proved"] and found["interrupted"] and found["bits"] is None
    assert [path.exists() for path in files] == [True, True, False]
    assert '"bits":null' in files[1].read_text()
    press_at(COVER)
    learned = learn(DATA, 3, report=tmp_path / "y.html")
    assert learned.interrupted and learned.solution.proved
    press_at(COVER)
    assert not learned.subsets.complete  # more subsets than needed are not kept
    monkeypatch.undo()
    assert learned.bits["total"] == learn(DATA, 3).bits["total"]


@pytest.mark.parametrize("name", ["run.json", "choice.json", "solution.json"])
def test_files_of_the_run_folder_are_not_written_over(data, tmp_path, capsys, name):
    folder = tmp_path / "run"
    assert_refused(
        capsys, "choose another name", "learn", data, "-o", folder / name, "--run-dir", folder
    )


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_before_the_solver_searches_is_heard(data, press_at, capsys):
    """While its kernels are compiled: a search of an hour must not follow."""
    press_at("qubayes.search.orders.anneal.warm_up")
    code, out, error = run(
        capsys, "learn", data, "-m", 1, "--solver", "anneal", "--time-limit", 3600
    )
    assert code == 130 and error == "qubayes: interrupted; this is the best network so far\n"
    assert "interrupted before the search; the start is returned" in out


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("name", ["write_solution", "fit", "alternatives", "Learned"])
def test_an_interrupt_between_two_stages_loses_no_network(data, tmp_path, press_at, capsys, name):
    """After the block of one stage that stops on Ctrl-C, and before that of the next one."""
    press_at(f"qubayes.learning.pipeline.{name}", after=True)
    options = ["--best", 2, "--run-dir", tmp_path / "run", "-o", tmp_path / "x.bif", "--json"]
    code, out, _ = run(capsys, "learn", data, "-m", 2, *options)
    assert (
        json.loads(out)["score"] == learn(DATA, 2).solution.score and (tmp_path / "x.bif").exists()
    )
    assert code == 130


WRITE = "qubayes.learning.learned.write_network"


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("before", [False, True])
def test_an_interrupt_while_files_are_written_leaves_out_the_qubo(
    data, tmp_path, press_at, capsys, before
):
    """Also the first one in this stage after one in an earlier stage."""
    if before:
        press_at("qubayes.learning.pipeline.fit")
    press_at(WRITE)
    options = [
        "-o",
        tmp_path / "x.bif",
        "--trace",
        tmp_path / "x.csv",
        "--qubo",
        tmp_path / "x.bqm",
    ]
    code, _, error = run(capsys, "learn", data, "-m", 2, *options)
    assert code == 130 and error == "qubayes: interrupted; the QUBO is left out\n"
    assert [(tmp_path / name).exists() for name in ("x.bif", "x.csv", "x.bqm")] == [
        True,
        True,
        False,
    ]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_while_files_are_written_is_told_without_a_qubo(
    data, tmp_path, press_at, capsys
):
    press_at(WRITE)
    files = [tmp_path / name for name in ("x.bif", "x.html", "x.csv")]
    options = ["-o", files[0], "--report", files[1], "--trace", files[2], "--json"]
    code, out, error = run(capsys, "learn", data, "-m", 2, *options)
    assert code == 130 and error == "qubayes: interrupted; nothing is left out\n"
    found = json.loads(out)
    assert (
        found["interrupted"]
        and found["bits"]["ours"]["total"] > 0
        and all(path.exists() for path in files)
    )


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_second_interrupt_in_one_stage_acts_at_once(data, tmp_path, press_at, capsys):
    press_at(WRITE, times=2)
    code, out, error = run(
        capsys, "learn", data, "-m", 2, "-o", tmp_path / "x.bif", "--trace", tmp_path / "x.csv"
    )
    assert (code, out, error) == (130, "", "qubayes: interrupted\n")
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_report_without_bits_is_told(data, tmp_path, press_at, capsys):
    press_at(COVER)
    code, _, error = run(capsys, "learn", data, "-m", 3, "--report", tmp_path / "x.html")
    assert code == 130 and error == "qubayes: interrupted; the report is without bits\n"


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_before_a_network_has_the_ancestors(data, tmp_path, press_at, capsys):
    """The best network has no path between these two: an edge is required, whose candidate sets are searched for."""
    learned = learn(DATA, 2)
    graph = nx.DiGraph(learned.network.edges)
    graph.add_nodes_from(DATA.names)
    pairs = itertools.permutations(DATA.names, 2)
    names = next(pair for pair in pairs if not nx.has_path(graph, *pair))
    (tmp_path / "k.json").write_text(json.dumps({"ancestors": [names]}))
    press_at("qubayes.learning.pipeline.solve", after=True)
    options = ["-m", 2, "--knowledge", tmp_path / "k.json", "-o", tmp_path / "x.bif"]
    code, out, error = run(capsys, "learn", data, *options)
    reason = "interrupted before a network with all required ancestors was found"
    assert (code, out, error) == (130, "", f"qubayes: {reason}\n")
    assert not (tmp_path / "x.bif").exists()


def test_files_may_go_to_the_run_folder_that_is_made(data, tmp_path, capsys):
    folder = tmp_path / "new" / "run"
    code, out, _ = run(capsys, "learn", data, "-m", 1, "--run-dir", folder, "-o", folder / "x.bif")
    assert code == 0 and f"{folder / 'x.bif'}   network with probabilities" in out


@pytest.mark.parametrize("name", ["solution.json", "run.json"])
def test_the_files_of_a_run_are_not_written_over(data, tmp_path, capsys, name):
    folder = tmp_path / "run"
    assert run(capsys, "learn", data, "-m", 1, "--run-dir", folder)[0] == 0
    before = (folder / name).read_bytes()
    assert_refused(
        capsys, "choose another name", "learn", data, "--run-dir", folder, "-o", folder / name
    )
    assert (folder / name).read_bytes() == before


def test_the_declaration_of_states_is_not_written_over(data, tmp_path, capsys):
    declared = tmp_path / "x.bif"
    assert run(capsys, "learn", data, "-m", 1, "-o", declared)[0] == 0
    before = declared.read_bytes()
    assert_refused(
        capsys, "it is also an input", "learn", data, "--arities", declared, "-o", declared
    )
    assert declared.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_links_in_a_circle(data, tmp_path, capsys):
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    assert_refused(capsys, "circle of links", "learn", data, "--trace", tmp_path / "a.csv")


def test_a_network_can_be_improved_in_place(tmp_path, capsys):
    sets, network = tmp_path / "x.jkl", tmp_path / "x.bnlearn"
    run(capsys, "candidates", data_file(tmp_path, DATA), "-m", 2, "-o", sets)
    assert run(capsys, "solve", sets, "--moves", 10, "-o", network)[0] == 0
    assert run(capsys, "solve", sets, "--moves", 10, "--start", network, "-o", network)[0] == 0


def test_numbers_of_numpy_are_numbers(tmp_path):
    whole = {"moves": np.int64(50), "seed": np.int64(3), "bootstrap": np.int64(1)}
    learned = learn(DATA, np.int64(1), solver="anneal", run_dir=tmp_path, **whole)
    assert json.loads(json.dumps(learned.as_json()))["seed"] == 3
    assert json.dumps(learn(DATA, 1, time_limit=np.float32(1)).as_json())


def test_any_mapping_declares_states():
    frame = polars.DataFrame({"a": ["x", "y"] * 9, "b": ["x", "x"] * 9})
    reading = qubayes.ReadSettings(arities=MappingProxyType({"b": ("x", "y")}))
    told = learn(frame, 1, reading=reading).as_json()
    assert json.loads(json.dumps(told))["provenance"]["settings"]["reading"]["arities"] == {
        "b": ["x", "y"]
    }
    assert learn(DATA, 1, reading=reading).as_json()["provenance"]["settings"]["reading"] is None


def test_no_limit_of_time():
    assert learn(DATA, 1, time_limit=math.inf).settings.limits.seconds is None
    assert learn(DATA, 1).settings.limits.seconds == 10.0


def test_few_variables_need_no_setting(tmp_path, capsys):
    path = tmp_path / "two.csv"
    path.write_text("a,b\n" + "0,0\n1,1\n" * 20)
    code, out, _ = run(capsys, "learn", path, "--json")
    assert code == 0 and json.loads(out)["provenance"]["settings"]["max_parents"] == 1


def test_moves_alone_end_a_run(data, capsys):
    code, out, _ = run(capsys, "learn", data, "-m", 2, "--moves", 500, "--json")
    found = json.loads(out)
    assert code == 0 and found["solver"] == "anneal"
    assert found["provenance"]["settings"]["time_limit"] is None
    assert learn(DATA, 2, moves=500).solution.score == found["score"]


def test_provenance_tells_how_the_data_were_read(tmp_path, capsys):
    path = tmp_path / "numbers.csv"
    path.write_text("a,b,c\n" + "".join(f"{i / 10},{i % 3},{i % 2}\n" for i in range(60)))
    code, out, _ = run(capsys, "learn", path, "--bins", 3, "--ignore", "c", "--json")
    told = json.loads(out)["provenance"]
    assert code == 0 and told["data"]["file"] == "numbers.csv"
    assert told["settings"]["reading"]["bins"] == 3 and told["settings"]["reading"]["ignore"] == [
        "c"
    ]


def test_a_second_run_begins_where_the_first_ended(tmp_path, calls_of):
    """With more time, or after an interrupt; but moves and a seed give the same result anywhere."""
    calls = calls_of(sys.modules["qubayes.learning.pipeline"], "solve")
    first = learn(DATA, 2, run_dir=tmp_path, time_limit=1.0)
    second = learn(DATA, 2, run_dir=tmp_path, time_limit=2.0)
    learn(DATA, 2, run_dir=tmp_path, moves=100)
    learn(dependent_data(8, 300, seed=9), 2, run_dir=tmp_path, time_limit=1.0)
    starts = [more["start"] for _, more in calls]
    assert [starts[0], *starts[2:]] == [None, None, None]
    assert starts[1].parents == first.solution.parents
    assert second.solution.score >= first.solution.score


def test_the_qubo_of_the_solver_is_kept():
    learned: Learned = learn(DATA, 1, solver="sa", time_limit=0.2)
    assert learned.qubo.formulation is not None
    assert learned.bits == learned.formulation.bits


@pytest.mark.parametrize("kind", [".bif", ".xmlbif"])
def test_solve_writes_no_probabilities(tmp_path, capsys, kind):
    sets = tmp_path / "x.jkl"
    run(capsys, "candidates", data_file(tmp_path, DATA), "-m", 2, "-o", sets)
    assert_refused(
        capsys,
        "needs probabilities",
        "solve",
        sets,
        "--time-limit",
        100,
        "-o",
        tmp_path / f"x{kind}",
    )
    assert_refused(
        capsys, "choose another name", "solve", sets, "--time-limit", 100, "--trace", sets
    )
    code, out, _ = run(capsys, "solve", sets, "--moves", 100, "-o", tmp_path / "x.dot")
    assert code == 0 and f"{tmp_path / 'x.dot'}   network without" in out


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("home", "name"), [("search.exact.exact", "Proof"), ("qubo.subsets.cover", "cover_system")]
)
def test_an_interrupt_before_the_search_leaves_the_start(tmp_path, press_at, capsys, home, name):
    sets, start = tmp_path / "x.jkl", tmp_path / "start.bnlearn"
    run(capsys, "candidates", data_file(tmp_path, DATA), "-m", 2, "-o", sets)
    run(capsys, "solve", sets, "--moves", 100, "-o", start)
    solver_named("exact").prepare()  # which makes a proof too
    press_at(f"qubayes.{home}.{name}")
    options = ["--presolve", 5] if name == "Proof" else ["--bits"]
    code, out, error = run(
        capsys,
        "solve",
        sets,
        *options,
        "--start",
        start,
        "--time-limit",
        100,
        "--json",
        "-o",
        tmp_path / "x.bnlearn",
    )
    assert code == 130 and "interrupted" in error
    assert read_network(tmp_path / "x.bnlearn").parents == read_network(start).parents
    assert "interrupted before the search" in json.loads(out)["status"]


@pytest.mark.parametrize(("rows", "doubtful"), [(40, True), (20, False)])
def test_a_column_of_identifiers_is_doubted(tmp_path, capsys, rows, doubtful):
    path = tmp_path / "data.csv"
    path.write_text("id,b\n" + "".join(f"{i},{i % 2}\n" for i in range(rows)))
    code, out, error = run(capsys, "learn", path)
    assert code == 0 and f"2 to {rows} states per variable" in out
    assert ("'id' has 40 states in 40 rows" in error and "--ignore id" in error) == doubtful


def test_columns_to_ignore_are_listed_or_repeated(tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_text("id,name,a,b\n" + "".join(f"{i},n{i},{i % 2},{i % 3}\n" for i in range(40)))
    for ignored in (("--ignore", "id,name"), ("--ignore", "id", "--ignore", "name")):
        code, out, error = run(capsys, "learn", path, *ignored)
        assert code == 0 and "2 variables" in out and not error


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"knowledge": "k.json"}, "k.json"),
        ({"knowledge": 5}, "JSON file"),
        ({"workers": qubayes.Workers(1), "threads": 2}, "give one"),
        ({"workers": 2}, "Workers\\(threads=2\\)"),
        ({"reading": {"bins": 3}}, "ReadSettings"),
        ({"max_parents": "3"}, "max_parents = '3'"),
        ({"max_parents": 2.5}, "give a whole number"),
        ({"seed": None}, "seed = None"),
        ({"bootstrap": 2.5}, "bootstrap = 2.5"),
    ],
)
def test_wrong_kinds_of_arguments_are_told_with_the_remedy(arguments, complaint):
    with pytest.raises(QubayesError, match=complaint):
        learn(DATA, **arguments)


def test_names_are_found_without_being_loaded():
    script = (
        "import sys, qubayes; names = dir(qubayes); "
        "print('numba' in sys.modules, set(qubayes.__all__) <= set(names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False True\n"
    for name in qubayes.__all__:
        assert getattr(qubayes, name) is not None


def test_the_qubo_of_the_same_problem_is_written_and_agrees(data, tmp_path, capsys):
    code, out, _ = run(capsys, "learn", data, "-m", 2, "--qubo", tmp_path / "x.bqm")
    assert code == 0 and "in the paper's formulation)" in out and "also needs x.bqm.qbf" in out
    learned = learn(DATA, 2)
    with (tmp_path / "x.bqm").open("rb") as file:
        model = BinaryQuadraticModel.from_file(file)
    bits = encode_sets(learned.formulation, learned.solution.choice)
    state = dict(zip(learned.formulation.labels, bits.astype(int).tolist(), strict=True))
    assert model.energy(state) == pytest.approx(-learned.solution.score, rel=1e-9)


@pytest.mark.parametrize("options", [[], ["--bootstrap", "2"]])
def test_a_plain_run_leaves_the_qubo_wing_alone(data, options):
    script = (
        "import sys; from qubayes.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "wing = ('qubayes.qubo', 'qubayes.machines', 'qubayes.quadratize', 'dimod', 'networkx')\n"
        "print([name for name in sys.modules if name.startswith(wing)])"
    )
    command = [sys.executable, "-c", script, "learn", str(data), "-m", "1", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.skipif(os.name != "posix", reason="descriptors")
@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&- <&-"])
def test_closed_streams_cost_no_result(data, tmp_path, closed):
    command = (
        f"'{sys.executable}' -m qubayes learn '{data}' -m 1 -o '{tmp_path / 'x.bif'}' {closed}"
    )
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert read_network(tmp_path / "x.bif").tables is not None


def test_networks_close_to_the_best(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = data_file(tmp_path, dependent_data(5, 60, 1))
    code, printed, _ = run(
        capsys, "learn", path, "-m", 2, "--within", 20, "--report", "x.html", "--json"
    )
    value = json.loads(printed)
    assert code == 0
    close = value["alternatives"]
    assert close["complete"] and close["networks"][0]["score"] == pytest.approx(value["score"])
    assert all(each["bayes_factor"] <= 20 * (1 + 1e-9) for each in close["networks"])
    assert 0.0 <= close["left_out"] < 1.0 and value["provenance"]["settings"]["within"] == 20.0
    page = (tmp_path / "x.html").read_text()
    assert (
        "of the posterior mass of all networks of the candidate sets" in page
        and '"networks":' in page.replace(" ", "")
    )
    learned = qubayes.learn(path, max_parents=2, best=3)
    assert len(learned.alternatives.networks) == 3 and "certified" in "\n".join(learned.describe())
    assert learned.report_contents().close.probabilities == learned.alternatives.doubtful_edges()
    with pytest.raises(QubayesError, match=r"within=0.5; give a Bayes factor"):
        qubayes.learn(path, within=0.5)
