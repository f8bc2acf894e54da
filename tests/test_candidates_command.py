"""`qubayes candidates` on the command line: what it prints, what it refuses, and that it starts quickly."""

import json
import subprocess
import sys

import pytest

from candidate_cases import assert_one_line, data_file, dependent_data, run
from qubayes import QubayesError
from qubayes.candidates import CandidateSearch, read_candidates
from qubayes.data import read
from qubayes.learning import identify_file
from reference.candidates import candidate_sets
from reference.scores import local_score

GOOD = "a,b,c\n0,1,x\n1,0,y\n1,1,x\n0,0,y\n"
EDGE = '{"required": [["a", "b"]]'  # to be closed

# content of the data file, arguments after it, words that the line must hold
BAD = {
    "empty file": ("", [], ["is empty"]),
    "header only": ("a,b\n", [], ["no row"]),
    "ragged rows": ("a,b,c\n1,2,3\n1,2\n", [], ["line 3", "2 fields", "3"]),
    "one column": ("a\n1\n2\n", [], ["1 column", "two or more"]),
    "names twice": ("a,b,a\n1,2,3\n", [], ["'a'"]),
    "not text": (b"a,b\n1,2\n\xe9\xff,2\n", [], ["line 3", "UTF-8"]),
    "binary": (bytes(range(256)) * 8, [], ["data.csv"]),
    "thousands of states": (
        "id,b\n" + "".join(f"k{i},{i % 2}\n" for i in range(3000)),
        [],
        ["'id'", "3000 states"],
    ),
    "missing values": ("a,b\n1,2\n,2\n", [], ["'a'", "--missing"]),
    "continuous": (
        "a,b\n" + "".join(f"{i / 7},{i % 2}\n" for i in range(1, 99)),
        ["--numbers", "error"],
        ["'a'", "--bins"],
    ),
    "m below 0": (GOOD, ["-m", "-1"], ["-1 parents", "0 and more"]),
    "unknown score": (
        GOOD,
        ["-m", "1", "--score", "bdx"],
        ["'bdx'", "bdeu, bds, bic, aic, k2, loglik"],
    ),
    "ess 0": (GOOD, ["-m", "1", "--ess", "0"], ["0.0", "positive"]),
    "ess below 0": (GOOD, ["-m", "1", "--ess", "-2"], ["-2.0", "positive"]),
    "ess not a number": (GOOD, ["-m", "1", "--ess", "nan"], ["nan", "positive"]),
    "ess infinite": (GOOD, ["-m", "1", "--ess", "inf"], ["inf", "positive"]),
    "no threads": (GOOD, ["-m", "1", "--threads", "0"], ["threads = 0", "1 or more"]),
    "unknown column ignored": (GOOD, ["-m", "1", "--ignore", "d"], ["'d'"]),
}

BAD_KNOWLEDGE = {
    "unknown column": ('{"forbidden": [["a", "bb"]]}', ["a -> bb", "'bb'", "did you mean 'b'"]),
    "unknown column in a tier": ('{"tiers": [["a"], ["z"]]}', ["tier 2", "'z'"]),
    "required and forbidden": (
        EDGE + ', "forbidden": [["a", "b"]]}',
        ["a -> b", "both required and forbidden"],
    ),
    "required against tiers": (
        EDGE + ', "tiers": [["b"], ["a"]]}',
        ["a -> b", "tier 2 back to tier 1"],
    ),
    "required inside a tier": (
        EDGE + ', "tiers": [["a", "b"]], "forbid_within_tiers": true}',
        ["a -> b", "tier 1"],
    ),
    "cycle": (
        '{"required": [["a", "b"], ["b", "c"], ["c", "a"]]}',
        ["a -> b", "b -> c", "c -> a", "cycle"],
    ),
    "too many required": (
        '{"required": [["a", "c"], ["b", "c"]]}',
        ["'c'", "2 required parents", "at most 1"],
    ),
    "unknown key": ('{"forbiden": []}', ["'forbiden'", "forbidden"]),
    "no JSON": ('{"forbidden": [', ["not a JSON file"]),
    "no object": ("[]", ["JSON object"]),
}


def refused(capsys, folder, arguments, words) -> None:
    """Assert that the command says so in one line and writes nothing."""
    (folder / "x.jkl").write_text("an older result")
    before = sorted(folder.iterdir())
    code, out, err = run(capsys, "candidates", *arguments)
    assert_one_line(code, err, *words)
    assert out == "" and sorted(folder.iterdir()) == before
    assert (folder / "x.jkl").read_text() == "an older result"


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, tmp_path, capsys):
    content, arguments, words = BAD[case]
    data = tmp_path / "data.csv"
    data.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(capsys, tmp_path, [data, *arguments, "-o", tmp_path / "x.jkl"], words)


@pytest.mark.parametrize("arguments", [[], ["-m", "3"], ["-m", "100"]])
def test_few_variables_lower_the_number_of_parents(arguments, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(GOOD)
    code, out, err = run(
        capsys, "candidates", tmp_path / "data.csv", *arguments, "-o", tmp_path / "x.qbc"
    )
    assert code == 0, err
    assert "at most 2 parents" in out
    assert read_candidates(tmp_path / "x.qbc").stamp.max_parents == 2


@pytest.mark.parametrize("case", BAD_KNOWLEDGE)
def test_bad_knowledge(case, tmp_path, capsys):
    content, words = BAD_KNOWLEDGE[case]
    (tmp_path / "data.csv").write_text(GOOD)
    (tmp_path / "known.json").write_text(content)
    arguments = [
        tmp_path / "data.csv",
        "-m",
        1,
        "--knowledge",
        tmp_path / "known.json",
        "-o",
        tmp_path / "x.jkl",
    ]
    refused(capsys, tmp_path, arguments, words)


def test_bad_places(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text(GOOD)
    for output, words in {
        tmp_path / "x.txt": ["x.txt", ".jkl", ".pss", ".qbc"],
        tmp_path / "x": ["allowed endings"],
        tmp_path / "missing" / "x.jkl": ["no folder", "missing"],
    }.items():
        refused(capsys, tmp_path, [data, "-m", 1, "-o", output], words)
    refused(capsys, tmp_path, [data, "-m", 1, "--resume"], ["--resume without --output"])
    refused(capsys, tmp_path, [tmp_path / "none.csv", "-m", 1], ["none.csv"])
    refused(capsys, tmp_path, [tmp_path, "-m", 1], [str(tmp_path)])
    refused(capsys, tmp_path, [data, "-m", 1, "--knowledge", tmp_path / "none.json"], ["none.json"])


def test_names_that_the_format_cannot_hold_are_refused_before_the_search(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text(GOOD.replace("a,b,c", "a,b c,d"))
    reports = []
    with pytest.raises(QubayesError, match="'b c'"):
        identify_file(data, CandidateSearch(1), tmp_path / "x.jkl", on_progress=reports.append)
    assert not reports
    refused(capsys, tmp_path, [data, "-m", 1, "-o", tmp_path / "x.jkl"], ["'b c'", ".qbc"])
    code, _, err = run(capsys, "candidates", data, "-m", 1, "-o", tmp_path / "x.qbc")
    assert code == 0 and read_candidates(tmp_path / "x.qbc").names == ("a", "b c", "d"), err


# As the next stage reads them.
BAD_SCORES = {
    "NaN": ("2\na 2\nnan 0\n-1 1 b\nb 1\n-2 0\n", ["'a'", "is nan"]),
    "infinite": ("2\na 2\n-3 0\ninf 1 b\nb 1\n-2 0\n", ["'a'", "is inf"]),
    "truncated": ("2\na 2\n-3 0\n-1 1 b\nb 1\n", ["parent set 1 of 1 of"]),
    "truncated line": ("2\na 2\n-3 0\n-1 1", ["line 4", "k parents"]),
    "unknown parent": ("2\na 2\n-3 0\n-1 1 q\nb 1\n-2 0\n", ["line 4", "'q'"]),
}


@pytest.mark.parametrize("case", BAD_SCORES)
def test_bad_score_files(case, tmp_path, capsys):
    content, words = BAD_SCORES[case]
    (tmp_path / "bad.jkl").write_text(content)
    code, out, err = run(capsys, "formulate", tmp_path / "bad.jkl", "-o", tmp_path / "x.bqm")
    assert_one_line(code, err, "bad.jkl", *words)
    assert out == "" and not (tmp_path / "x.bqm").exists()


def test_json(tmp_path, capsys):
    data = data_file(tmp_path, dependent_data(6, 80, seed=1))
    code, out, err = run(
        capsys, "candidates", data, "-m", 2, "--score", "bds", "--ess", 3, "--json"
    )
    told = json.loads(out)
    assert code == 0 and err == ""
    assert {"n", "rows", "score", "ess", "m", "total", "per_vertex", "seconds"} <= set(told)
    assert [told[key] for key in ("n", "rows", "score", "ess", "m")] == [6, 80, "bds", 3.0, 2]
    assert list(told["per_vertex"]) == [f"v{i}" for i in range(6)]
    assert told["total"] == sum(told["per_vertex"].values()) > 0 and told["seconds"] > 0
    code, out, _ = run(capsys, "candidates", data, "-m", 2, "--score", "bic", "--json")
    assert code == 0 and json.loads(out)["ess"] is None, "bic has no equivalent sample size"


def test_text(tmp_path, capsys):
    data = data_file(tmp_path, dependent_data(6, 80, seed=1))
    code, out, err = run(capsys, "candidates", data, "-m", 2, "-o", tmp_path / "x.pss")
    total = read_candidates(tmp_path / "x.pss").total
    assert code == 0 and err == ""
    first, _, last = out.splitlines()
    assert first == f"{total} candidate sets of 6 variables (bdeu, at most 2 parents)"
    assert last == f"  {tmp_path / 'x.pss'}   candidate parent sets"


@pytest.mark.parametrize("score", ["bdeu", "bds", "bic"])
def test_knowledge_is_honoured(score, tmp_path, capsys):
    data = data_file(tmp_path, dependent_data(7, 120, seed=9))
    known = {
        "required": [["v0", "v3"]],
        "forbidden": [["v1", "v4"], ["v5", "v4"]],
        "tiers": [["v0", "v1"], ["v3"], ["v5", "v6"]],
        "max_parents": {"v6": 1},
    }
    (tmp_path / "known.json").write_text(json.dumps(known))
    output = tmp_path / "x.qbc"
    arguments = ["-m", 3, "--score", score, "--knowledge", tmp_path / "known.json", "-o", output]
    code, _, err = run(capsys, "candidates", data, *arguments)
    assert code == 0, err
    found = read_candidates(output)
    dataset = read(data)
    rows = [tuple(row) for row in dataset.codes.T.tolist()]
    arities = dataset.arities.tolist()
    # By hand: v3 must have v0; nothing of a later tier is a parent of an earlier one; v0 cannot
    # come after v3.
    required = [(), (), (), (0,), (), (), ()]
    allowed = [
        [1, 2, 4],
        [0, 2, 4],
        [0, 1, 3, 4, 5, 6],
        [1, 2, 4],
        [0, 2, 3, 6],
        [0, 1, 2, 3, 4, 6],
        [0, 1, 2, 3, 4, 5],
    ]
    for limit, vertices in {3: range(6), 1: [6]}.items():
        oracle = candidate_sets(
            lambda child, parents: local_score(rows, arities, child, parents, score),
            7,
            limit,
            required,
            allowed,
        )
        for vertex in vertices:
            ours = list(found.of(vertex))
            assert [parents for parents, _ in ours] == [parents for parents, _ in oracle[vertex]], (
                vertex
            )
            assert [value for _, value in ours] == pytest.approx(
                [value for _, value in oracle[vertex]], abs=1e-8
            )
    assert all(0 in parents for parents, _ in found.of(3))


HEAVY = (
    "numba",
    "polars",
    "narwhals",
    "dimod",
    "scipy",
    "highspy",
    "networkx",
    "pandas",
    "distributed",
    "numpy",
)


@pytest.mark.parametrize(
    "code",
    [
        "import qubayes",
        "import qubayes.cli",
        "import sys; sys.argv = ['qubayes', '--help']; from qubayes.cli import main; main()",
        "import sys; sys.argv = ['qubayes', 'candidates', '--help']; from qubayes.cli import main; main()",
    ],
    ids=["import qubayes", "import the command line", "help", "help of a command"],
)
def test_a_start_loads_nothing_heavy(code):
    watch = f"import atexit, sys; atexit.register(lambda: print('HEAVY', [m for m in {HEAVY} if m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", f"{watch}; {code}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("HEAVY []\n"), done.stdout[-200:]
    assert "--help" not in code or "Usage" in done.stdout


def test_wrong_usage_is_exit_code_2(capsys):
    assert run(capsys, "candidates", "--nonsense")[0] == 2
    assert run(capsys, "candidates")[0] == 2
    assert run(capsys, "candidates", "x.csv", "--threads", "many")[0] == 2


def test_a_number_of_parents_is_a_number_or_all(capsys):
    code, _, err = run(capsys, "candidates", "x.csv", "-m", "many")
    assert_one_line(code, err, "--max-parents many", "all")
