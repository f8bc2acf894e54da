"""`qubayes formulate` on the command line."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from formulation_cases import candidates_of, random_scores, subsets_of, whole_subsets
from model_cases import read_back, read_constrained, read_request
from qubayes import QubayesError
from qubayes.candidates import read_candidates
from qubayes.cli import app
from qubayes.machines import read_qubo
from qubayes.qubo import energy
from qubayes.qubo.subsets import cover, write_subsets


@pytest.fixture(scope="module")
def scores_file(tmp_path_factory):
    """A small score file, written by hand so that the test depends on no writer."""
    candidates = candidates_of(random_scores(np.random.default_rng(3), 6, 2, 0.4))
    lines = [str(candidates.n)]
    for vertex, name in enumerate(candidates.names):
        sets = list(candidates.of(vertex))
        lines.append(f"{name} {len(sets)}")
        lines += [
            " ".join([repr(score), str(len(p)), *(candidates.names[v] for v in p)])
            for p, score in sets
        ]
    path = tmp_path_factory.mktemp("scores") / "small.jkl"
    path.write_text("\n".join(lines) + "\n")
    return path


def formulate(*arguments: object) -> dict:
    done = CliRunner().invoke(app, ["formulate", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)


def test_both_modes_tell_their_sizes(scores_file, tmp_path):
    ours = formulate(scores_file, "-o", tmp_path / "model.bqm")
    paper = formulate(scores_file, "--order", "scc", "--penalty", "paper")
    for facts in (ours, paper):
        bits = facts["bits"]
        assert (
            facts["n"] == 6
            and bits["total"] == bits["u"] + bits["r"] + bits["z"]
            and bits["u"] == sum(facts["mu"])
        )
        assert 0 < facts["coefficient_range"][0] < facts["coefficient_range"][1]
        assert 0 <= facts["proved_optimal_vertices"] <= 6 and set(facts["seconds"]) == {
            "cover",
            "order",
            "assemble",
        }
    assert paper["bits"]["z"] == 6 and ours["bits"]["total"] < paper["bits"]["total"]
    assert ours["coefficient_range"][1] < paper["coefficient_range"][1]
    qubo, labels = read_qubo(tmp_path / "model.bqm")
    assert qubo.bits == len(labels) == ours["bits"]["total"] and qubo.couplers == ours["couplers"]
    assert labels[0].startswith("u[v0|") and energy(qubo, np.zeros(qubo.bits)) == pytest.approx(
        qubo.offset
    )


def test_constrained_files(scores_file, tmp_path):
    facts = formulate(scores_file, "-o", tmp_path / "model.json")
    objective, penalty, inequalities = read_request(tmp_path / "model.json")
    without_slack = facts["bits"]["u"] + facts["bits"]["r"]
    assert objective.bits == penalty.bits == without_slack
    assert len(inequalities.constants) == sum(size > 2 for size in facts["mu"])
    formulate(scores_file, "-o", tmp_path / "penalties.cqm")
    formulate(scores_file, "-o", tmp_path / "inequalities.cqm", "--ordering", "inequalities")
    few, many = (
        read_constrained(tmp_path / f"{name}.cqm") for name in ("penalties", "inequalities")
    )
    assert len(few.variables) == len(many.variables) == without_slack
    assert len(few.constraints) == sum(size > 2 for size in facts["mu"]) < len(many.constraints)


@pytest.mark.parametrize("name", ["m.bqm", "m.coo.gz", "m.cqm", "m.lp", "m.qplib", "m.json"])
def test_the_numbers_that_are_printed_are_those_of_the_file(name, scores_file, tmp_path):
    facts = formulate(scores_file, "-o", tmp_path / name, "--order", "scc")
    if name in ("m.cqm", "m.lp", "m.qplib"):
        model = read_constrained(tmp_path / name)
        found, constraints = (
            (len(model.variables), model.objective.num_interactions),
            len(model.constraints),
        )
        objective = model.objective
        weights = [*dict(objective.linear).values(), *dict(objective.quadratic).values()]
    else:
        if name == "m.json":
            *parts, inequalities = read_request(tmp_path / name)
            constraints = len(inequalities.constants)
        else:
            parts, constraints = [read_back(tmp_path / name)[0]], 0
        found = parts[0].bits, sum(part.couplers for part in parts)
        weights = np.concatenate([[*part.h, *part.weights] for part in parts]).tolist()
    assert (facts["bits"]["total"], facts["couplers"]) == found
    assert sum(facts["bits"][kind] for kind in "urz") == facts["bits"]["total"]
    assert facts["constraints"] == constraints and (constraints > 0) == (
        name in ("m.cqm", "m.lp", "m.qplib", "m.json")
    )
    sizes = [abs(weight) for weight in weights if weight]
    assert facts["coefficient_range"] == [min(sizes), max(sizes)]
    told = (
        CliRunner()
        .invoke(app, ["formulate", str(scores_file), "-o", str(tmp_path / name), "--order", "scc"])
        .stdout
    )
    assert f"{found[0]:,} binary variables: " in told and f"; {found[1]:,} interactions" in told
    assert (f"; {constraints:,} constraints" in told) == (constraints > 0)


def test_names_of_bits_and_constraints_are_in_every_constrained_file(scores_file, tmp_path):
    models = []
    for ending in (".cqm", ".lp", ".qplib"):
        formulate(scores_file, "-o", tmp_path / f"m{ending}", "--ordering", "inequalities")
        models.append(read_constrained(tmp_path / f"m{ending}"))
    assert all(one.is_equal(models[0]) for one in models[1:])
    assert all(list(one.variables) == list(models[0].variables) for one in models[1:])
    # dimod sorts those of a .cqm file
    assert list(models[1].constraints) == list(models[2].constraints)
    assert any(name.startswith("edge[v") for name in models[0].constraints)


def test_text_output_and_bad_settings(scores_file, tmp_path):
    told = CliRunner().invoke(app, ["formulate", str(scores_file)])
    assert told.exit_code == 0 and " binary variables: " in told.stdout
    for bad in (
        ["--order", "none"],
        ["--penalty", "huge"],
        ["--cover", "magic"],
        ["-o", str(tmp_path / "x.txt")],
    ):
        done = CliRunner().invoke(app, ["formulate", str(scores_file), *bad])
        assert isinstance(done.exception, QubayesError), bad


def test_subsets_from_a_file(scores_file, tmp_path):
    candidates = read_candidates(scores_file)
    write_subsets(whole_subsets(candidates), tmp_path / "whole.qbs")
    whole = formulate(scores_file, "--subsets", tmp_path / "whole.qbs")
    # as in the file, and not as few as could be found
    assert whole["mu"] == candidates.per_vertex.tolist()
    found = formulate(scores_file, "-o", tmp_path / "found.bqm", "--threads", 1)
    assert sum(found["mu"]) < sum(whole["mu"])
    write_subsets(cover(candidates), tmp_path / "found.qbs")
    read = formulate(scores_file, "--subsets", tmp_path / "found.qbs", "-o", tmp_path / "read.bqm")
    assert {**read, "seconds": None} == {**found, "seconds": None}
    assert (tmp_path / "read.bqm").read_bytes() == (tmp_path / "found.bqm").read_bytes()
    told = CliRunner().invoke(
        app, ["formulate", str(scores_file), "--subsets", str(tmp_path / "found.qbs")]
    )
    assert f"subsets read from {tmp_path / 'found.qbs'}" in told.stdout


def test_an_interrupt_writes_the_best_so_far_and_exits_with_130(scores_file, tmp_path, press_at):
    press_at("qubayes.qubo.subsets.cover.cover_system")
    done = CliRunner().invoke(
        app,
        [
            "formulate",
            str(scores_file),
            "--threads",
            "1",
            "--json",
            "-o",
            str(tmp_path / "model.bqm"),
        ],
    )
    assert done.exit_code == 130 and "interrupted; the best covers found so far" in done.stderr
    facts = json.loads(done.stdout)
    assert read_qubo(tmp_path / "model.bqm")[0].bits == facts["bits"]["total"]
    # every vertex but the first one reached keeps its sets
    sizes = read_candidates(scores_file).per_vertex
    assert sum(mu == size for mu, size in zip(facts["mu"], sizes.tolist(), strict=True)) >= 5


def test_what_is_refused_before_anything_is_assembled(scores_file, tmp_path, monkeypatch):
    monkeypatch.setattr("qubayes.foundation.workers._PATIENCE", 1)
    candidates = read_candidates(scores_file)
    whole = whole_subsets(candidates)
    lists = [list(whole.families.sets_of(vertex)) for vertex in range(candidates.n)]
    write_subsets(whole, tmp_path / "whole.qbs")
    write_subsets(replace(whole, names=tuple("abcdef")), tmp_path / "names.qbs")
    write_subsets(subsets_of(candidates, [sets[:1] for sets in lists]), tmp_path / "few.qbs")
    for bad, words in [
        (["--subsets", tmp_path / "names.qbs"], "different variables; cover these candidates"),
        (
            ["--subsets", tmp_path / "few.qbs"],
            "not a union of two of its subsets; cover them again",
        ),
        (["--subsets", scores_file], "not a file of subsets"),
        (["--subsets", tmp_path / "none.qbs"], "cannot read"),
        (["--subsets", tmp_path / "whole.qbs", "--cover", "search"], "give one"),
        (["--threads", 0], "threads = 0"),
        (["--cluster", "tcp://127.0.0.1:1"], "no Dask scheduler answers at tcp://127.0.0.1:1"),
    ]:
        done = CliRunner().invoke(app, ["formulate", str(scores_file), *map(str, bad)])
        assert isinstance(done.exception, QubayesError) and words in str(done.exception), (
            bad,
            done.exception,
        )


def test_a_missing_file_is_one_line():
    command = [
        sys.executable,
        "-c",
        "from qubayes.cli import main; main()",
        "formulate",
        "missing.jkl",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "missing.jkl" in done.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("formulate x.jkl --network x.dot", "--network has no effect with --order chordal"),
        (
            "formulate x.jkl --order scc --order-time-limit 5",
            "--order-time-limit has no effect with --order scc",
        ),
        ("formulate x.jkl --score bic", "--score has no effect without --data"),
        ("formulate x.jkl --bins 5", "--bins has no effect without --data"),
        ("formulate x.jkl --data x.csv --ess 5", "--ess has no effect without --score"),
        ("formulate x.jkl --ordering inequalities", "--ordering has no effect on this output"),
        (
            "formulate x.jkl --ordering inequalities -o x.bqm",
            "--ordering has no effect on this output",
        ),
        (
            "formulate x.jkl --ordering inequalities -o x.json",
            "--ordering has no effect on this output",
        ),
        ("subsets x.jkl --cover search --seconds 5", "--seconds has no effect with --cover search"),
        (
            "subsets x.jkl --cover ilp-only --effort 2",
            "--effort has no effect with --cover ilp-only",
        ),
        ("decode x.bqm a.json --order chordal", "--order has no effect on the model x.bqm"),
        ("decode x.qbf a.json --subsets x.qbs", "--subsets has no effect on the model x.qbf"),
    ],
)
def test_an_option_without_effect_is_refused(command, words):
    """Before any file is read."""
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 1 and words in str(done.exception), done.output
