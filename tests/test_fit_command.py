"""`qubayes fit`, `convert --cpdag`, `sample`, `solve --names --knowledge`, and what `learn` never loses."""

import io
import itertools
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from candidate_cases import assert_one_line, dependent_data, run, with_large_tables
from qubayes import (
    CandidateSearch,
    ConstraintError,
    FormatError,
    Knowledge,
    QubayesError,
    Score,
    identify,
    learn,
    solve,
)
from qubayes.candidates import read_candidates, rename, restrict, write_candidates
from qubayes.data import Dataset, ReadSettings, read, write
from qubayes.learning import Outputs
from qubayes.network import (
    Network,
    compare,
    cpdag,
    fit,
    from_modelstring,
    log_likelihood,
    read_network,
    score,
    write_cpdag,
    write_network,
)
from reference.scores import local_score
from solve_cases import random_candidates


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(
        {"a": [1.5, 2.5, 3.5, 2.5] * 5, "b": ["x", "y", "x", "x"] * 5, "c": [1] * 20}
    ).to_csv("x.csv", index=False)
    Path("g.bnlearn").write_text("[a][b|a]")
    return tmp_path


def test_fit(capsys, folder):
    code, out, _ = run(
        capsys, "fit", "g.bnlearn", "x.csv", "--bins", "a=2,3", "--score", "ml", "-o", "x.bif"
    )
    assert code == 0 and out.startswith("2 variables, 1 edge, 9 probabilities\n")
    assert out.endswith("\n  x.bif   network with probabilities\n")
    network = read_network("x.bif")
    assert network.states == (("<2", "2..3", ">=3"), ("x", "y"))
    assert [table.tolist() for table in network.tables] == [
        [0.25, 0.5, 0.25],
        [[1, 0], [0.5, 0.5], [1, 0]],
    ]
    code, out, _ = run(capsys, "fit", "x.bif", "x.csv", "--ess", "6", "-o", "y.json", "--json")
    assert code == 0 and json.loads(out)["probabilities"] == 9
    fitted = read_network("y.json")
    assert fitted.tables[0] == pytest.approx([7 / 26, 12 / 26, 7 / 26])
    assert log_likelihood(fitted, read("x.csv", like=fitted)) < log_likelihood(
        network, read("x.csv", like=network)
    )


def test_what_cannot_be_fitted(capsys, folder):
    for arguments, word in (
        (("g.bnlearn", "x.csv", "-o", "x.dot"), "holds no probabilities"),
        (("g.bnlearn", "x.csv", "-o", "g.bnlearn"), "an input"),
        (("g.bnlearn", "x.csv", "-o", "x.bif", "--score", "nonsense", "--bins", "2"), "nonsense"),
        (("g.bnlearn", "x.csv", "-o", "x.bif"), "continuous"),
    ):
        code, _, error = run(capsys, "fit", *arguments)
        assert_one_line(code, error, word)
    assert not (folder / "x.bif").exists()


def test_frames_and_files_are_fitted_as_datasets(folder):
    reading = ReadSettings(bins={"a": [2, 3]})
    graph, frame = from_modelstring("[a][b|a]"), pd.read_csv("x.csv")
    first = fit(graph, read(frame, reading))
    for other in (
        fit("g.bnlearn", "x.csv", reading=reading),
        fit(graph, frame, "bdeu", reading=reading),
    ):
        assert all((a == b).all() for a, b in zip(first.tables, other.tables, strict=True))


@pytest.mark.parametrize("ending", [".dot", ".graphml", ".csv"])
def test_classes_as_files(folder, ending):
    network = from_modelstring("[a][b|a][c|b:d][d][e|c]")
    write_cpdag(network, f"x{ending}")
    graph = cpdag(network)
    named = {(network.names[p], network.names[c]) for p, c in graph.directed}
    reversible = {frozenset((network.names[p], network.names[c])) for p, c in graph.undirected}
    assert named and reversible
    if ending == ".csv":
        matrix = pd.read_csv("x.csv")
        ones = {
            (matrix.columns[i], matrix.columns[j])
            for i, j in zip(*np.nonzero(matrix.to_numpy()), strict=True)
        }
        found = (
            {edge for edge in ones if edge[::-1] not in ones},
            {frozenset(e) for e in ones if e[::-1] in ones},
        )
    elif ending == ".dot":
        edges = nx.DiGraph(nx.nx_pydot.read_dot("x.dot")).edges(data=True)
        strip = [((a.strip('"'), b.strip('"')), facts.get("dir")) for a, b, facts in edges]
        found = (
            {e for e, kind in strip if kind != "none"},
            {frozenset(e) for e, kind in strip if kind == "none"},
        )
    else:
        lines = Path("x.graphml").read_text().splitlines()
        ends = [
            (line.split('"')[1::2], "false" in line) for line in lines if line.startswith("<edge")
        ]
        found = (
            {tuple(e) for e, free in ends if not free},
            {frozenset(e[:2]) for e, free in ends if free},
        )
    assert found == (named, reversible)


def test_convert_to_a_class(capsys, folder):
    assert run(capsys, "convert", "g.bnlearn", "x.dot", "--cpdag")[0] == 0
    assert '"a" -> "b" [dir=none];' in Path("x.dot").read_text()
    assert_one_line(
        *run(capsys, "convert", "g.bnlearn", "x.json", "--cpdag")[::2],
        "give .dot, .graphml or .csv",
    )


def test_samples_can_be_learned_from(capsys, folder):
    states = (("NA", "x"), ("?", "y", "state_?"))
    write_network(
        Network(("a", "b"), ((), ()), states, (np.array([0.5, 0.5]), np.array([0.4, 0.3, 0.3]))),
        "na.bif",
    )
    code, _, error = run(capsys, "sample", "na.bif", "-n", "60", "-o", "na.csv")
    assert code == 0
    assert error.splitlines() == [
        "qubayes: 'a': 'NA' means a missing value; written as 'state_NA'",
        "qubayes: 'b': '?' means a missing value; written as 'state_?_'",
    ]
    assert run(capsys, "learn", "na.csv", "-m", "1", "--json")[0] == 0
    code, printed, _ = run(capsys, "sample", "na.bif", "-n", "60")
    assert printed == Path("na.csv").read_text()
    code, _, error = run(capsys, "sample", "na.bif", "-n", "60", "-o", "na.parquet")
    assert (code, error) == (0, "") and read("na.parquet").states == states


def test_score_takes_the_arities_of_the_network(folder):
    rows = [(0, 0), (0, 1), (1, 1), (1, 1), (0, 0)]
    frame = pd.DataFrame(rows, columns=["a", "b"])
    graph = Network(("a", "b"), ((), (0,)), (("0", "1", "2"), ("1", "0", "5", "6")), name="n.bif")
    found = score(graph, frame)
    wanted = local_score(rows, [3, 4], 0, (), "bdeu", 1.0) + local_score(
        rows, [3, 4], 1, (0,), "bdeu", 1.0
    )
    assert found.total == pytest.approx(wanted) and found.arities_from == "network n.bif"
    plain = local_score(rows, [2, 2], 0, (), "bdeu", 1.0) + local_score(
        rows, [2, 2], 1, (0,), "bdeu", 1.0
    )
    assert plain != pytest.approx(wanted)
    assert score(Network(graph.names, graph.parents), frame).total == pytest.approx(plain)
    strange = score(Network(graph.names, graph.parents, (("0", "1"), ("0", "x"))), frame)
    assert strange.total == pytest.approx(plain) and strange.arities_from == "data"
    declared = score(graph, frame, reading=ReadSettings(arities={"a": 2, "b": 2}))
    assert declared.total == pytest.approx(plain) and declared.arities_from == "declared"


def test_dropped_rows_are_counted_in_the_output(capsys, folder):
    Path("holes.csv").write_text("a,b\n" + "x,u\n,v\ny,v\n" * 9)
    Path("ab.bnlearn").write_text("[a][b|a]")
    lines = run(capsys, "score", "holes.csv", "ab.bnlearn", "--missing", "drop")[1].splitlines()
    assert lines[3].endswith("18 rows, states from data; 9 rows with missing values left out")
    assert (
        json.loads(
            run(capsys, "score", "holes.csv", "ab.bnlearn", "--missing", "drop", "--json")[1]
        )["dropped_rows"]
        == 9
    )
    assert (
        "9 rows with missing values were dropped"
        in run(capsys, "candidates", "holes.csv", "--missing", "drop")[2]
    )


# Files of scores


def test_names_of_a_score_file(capsys, folder):
    candidates = identify(dependent_data(4, 80, 0), CandidateSearch(2))
    numbered = type(candidates)(("2", "0", "3", "1"), candidates.families, candidates.scores)
    write_candidates(numbered, "x.jkl")
    Path("names.txt").write_text("zero\none\n\n two \nthree\n")
    assert rename(read_candidates("x.jkl"), "names.txt").names == ("two", "zero", "three", "one")
    from_one = type(candidates)(("2", "4", "3", "1"), candidates.families, candidates.scores)
    assert rename(from_one, "names.txt").names == ("one", "three", "two", "zero")
    assert rename(candidates, "names.txt").names == ("zero", "one", "two", "three")
    write_network(
        Network(("p", "q", "r", "s"), ((),) * 4, (("u",),) * 4, (np.ones(1),) * 4), "n.bif"
    )
    code, _, _ = run(
        capsys, "solve", "x.jkl", "--names", "n.bif", "--moves", "100", "-o", "y.json", "--json"
    )
    assert code == 0 and read_network("y.json").names == ("r", "p", "s", "q")
    Path("few.txt").write_text("a\na\nb\nc\n")
    assert_one_line(
        *run(capsys, "solve", "x.jkl", "--names", "few.txt")[::2],
        "3 different names for 4 variables",
    )


def best_allowed(candidates, allowed):
    """The best score of all acyclic choices of listed sets that are allowed."""
    lists = [[(w, s) for w, s in candidates.of(v) if allowed(w, v)] for v in range(candidates.n)]
    best = -np.inf
    for choice in itertools.product(*lists):
        graph = nx.DiGraph([(p, v) for v, (w, _) in enumerate(choice) for p in w])
        if nx.is_directed_acyclic_graph(graph):
            best = max(best, sum(s for _, s in choice))
    return best


@pytest.mark.parametrize("seed", range(4))
def test_knowledge_restricts_listed_sets(seed):
    candidates = random_candidates(4, seed)
    names = candidates.names
    knowledge = Knowledge(
        forbidden=[(names[0], names[1])],
        tiers=[[names[2]], [names[3], names[0]]],
        max_parents={names[1]: 1},
    )

    def allowed(parents, child):
        return (
            not (child == 1 and 0 in parents)
            and not (child == 2 and {0, 3} & set(parents))
            and (child != 1 or len(parents) <= 1)
        )

    restricted = restrict(candidates, knowledge)
    for child in range(4):
        assert list(restricted.of(child)) == [
            (w, s) for w, s in candidates.of(child) if allowed(w, child)
        ]
    assert solve(restricted, "exact").score == pytest.approx(best_allowed(candidates, allowed))


def test_restricted_files_give_what_data_with_the_same_knowledge_give():
    dataset = dependent_data(5, 150, 3)
    knowledge = Knowledge(
        forbidden=[("v0", "v1"), ("v2", "v4")], tiers=[["v0", "v1"], ["v3"]], max_parents={"v4": 1}
    )
    direct = identify(dataset, CandidateSearch(3, Score(), knowledge))
    restricted = restrict(identify(dataset, CandidateSearch(3)), knowledge)
    assert [list(direct.of(v)) for v in range(5)] == [list(restricted.of(v)) for v in range(5)]


def test_knowledge_that_a_file_cannot_follow(capsys, folder):
    candidates = random_candidates(4, 0)
    with pytest.raises(ConstraintError, match="needs scores that a file"):
        restrict(candidates, Knowledge(required=[candidates.names[:2]]))
    required = identify(
        dependent_data(4, 80, 0), CandidateSearch(2, Score(), Knowledge(required=[("v0", "v1")]))
    )
    with pytest.raises(
        ConstraintError, match="smallest set of 'v1' in the file has a forbidden parent"
    ):
        restrict(required, Knowledge(forbidden=[("v0", "v1")]))
    write_candidates(candidates, "x.qbc")
    Path("k.json").write_text(json.dumps({"max_parents": dict.fromkeys(candidates.names, 0)}))
    code, out, _ = run(
        capsys, "solve", "x.qbc", "--knowledge", "k.json", "--solver", "exact", "--json"
    )
    assert code == 0 and json.loads(out)["score"] == pytest.approx(candidates.base_scores.sum())


# What learn refuses early, and what it keeps


def test_names_that_a_format_cannot_hold_are_refused_before_the_search(capsys, folder, monkeypatch):
    pd.DataFrame({"a|b": [0, 1] * 20, "c": [0, 1] * 20}).to_csv("y.csv", index=False)
    reports = []
    with pytest.raises(QubayesError, match=r"cannot hold the name 'a\|b'"):
        learn("y.csv", output="x.bnlearn", on_progress=reports.append)
    assert not reports
    code, _, error = run(capsys, "learn", "y.csv", "-o", "x.bnlearn")
    assert_one_line(code, error, "cannot hold the name 'a|b'")
    code, _, error = run(capsys, "learn", "y.csv", "-o", "x.bif", "--json")
    assert (code, error) == (0, "") and read_network("x.bif").names == ("a|b", "c")


def test_a_network_with_too_large_tables_is_kept(folder, caplog):
    dataset = with_large_tables()
    learned = learn(dataset, 2, score="loglik")
    assert "no probabilities: the tables need" in caplog.text
    assert len(learned.network.edges) == 3 and learned.network.tables is None
    written, failure, _ = Outputs(network=folder / "x.bif").write(learned)
    assert not written and "its graph is in" in str(failure)
    kept = read_network(folder / "x.bif.json")
    assert compare(kept, learned.network).distance == 0 and kept.states == dataset.states


def test_data_from_standard_input_and_doubts_before_the_search(capsys, folder, monkeypatch, caplog):
    frame = pd.DataFrame(
        {"id": [f"n{i}" for i in range(60)], "b": ["x", None, "y"] * 20, "c": [1, 2] * 30}
    )
    content = frame.to_csv(index=False).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, error = run(capsys, "learn", "-", "-m", "1", "--missing", "drop")
    assert code == 0
    left_out = "20 rows with missing values left out"
    assert f"40 rows, 2 to 40 states per variable; {left_out}\n" in out
    assert "qubayes: 'id' has 40 states in 40 rows and may be an identifier" in error
    learned = learn(frame, 1, missing="drop")
    assert "'id' has 40 states in 40 rows and may be an identifier" in caplog.text
    assert learned.provenance()["data"]["dropped_rows"] == 20


def test_categories_that_are_the_same_as_text_are_refused():
    with pytest.raises(QubayesError, match="'a' has categories that are the same as text"):
        read(pd.DataFrame({"a": pd.Categorical([1, "1"]), "b": [1, 2]}))


def test_graph_formats_do_not_ask_for_states(folder):
    odd = Dataset(("a", "b"), (("x", "\x00"), ("u", "v")), np.zeros((2, 3), np.uint8))
    from qubayes.network import check_network_path

    check_network_path("x.dot", dataset=odd)
    with pytest.raises(FormatError, match="x00"):
        check_network_path("x.xmlbif", dataset=odd)
    with pytest.raises(FormatError, match="missing value"):
        write(Dataset(("a", "b"), (("x", "NA"), ("u", "v")), odd.codes), "x.csv")
