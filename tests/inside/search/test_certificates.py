"""Certificates: written for every proof, checked with whole numbers, refused where they are wrong."""

import ast
import gzip
import hashlib
import json
import math
import re
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_proofs import BRANCHING
from typer.testing import CliRunner

from qubayes import QubayesError
from qubayes.candidates import Candidates, read_candidates, write_candidates
from qubayes.cli import app
from qubayes.foundation.workers import Workers
from qubayes.learning import SolveSettings, solve_file
from qubayes.search import Limits, Reason, Run, checker, solve
from qubayes.search.checker import RefusedError, check
from qubayes.search.exact import Alternatives, alternatives
from qubayes.search.exact import certificate as certificate_module
from qubayes.search.exact.exact import prove
from qubayes.search.exact.ideals import IdealSearch
from qubayes.search.exact.plan import PLAN, Plan
from qubayes.search.reduction import without_twins
from reference.energies import all_dags
from solve_cases import (
    best_score,
    random_candidates,
    sparse_candidates,
    symmetric,
    with_required_edge,
)

SEARCH = PLAN._replace(easy_sets=0)  # many sets: the linear program is not tried first


def certified(candidates: Candidates, folder: Path, plan: Plan = PLAN) -> tuple[str, str]:
    """The files of scores and certificate, and a proof."""
    scores, certificate = folder / "x.jkl", folder / "proof.json"
    write_candidates(candidates, scores)
    run = Run(candidates, Limits(None), Workers(1))
    ending = prove(candidates, run, certificate=certificate, plan=plan)
    assert run.proved and ending.status == f"optimal; certificate written to {certificate}"
    assert ending.certificate == certificate
    return str(scores), str(certificate)


def forged(path: str, change: Any) -> None:
    """Change a certificate and sign it again."""
    certificate = json.loads(Path(path).read_text())
    del certificate["digest"]
    change(certificate)
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
    certificate["digest"] = hashlib.sha256(text.encode()).hexdigest()
    Path(path).write_text(json.dumps(certificate))


@pytest.mark.parametrize("plan", [PLAN, SEARCH], ids=["usual", "search"])
@pytest.mark.parametrize("seed", range(6))
def test_every_proof_has_a_certificate_that_holds(seed, plan, tmp_path):
    candidates = [
        random_candidates(8, seed, sets=20),
        random_candidates(6, seed, ties=True),
        with_required_edge(6, seed),
        sparse_candidates(8, seed),
        symmetric(6, seed),
    ]
    modes = set()
    for each in candidates:
        scores, certificate = certified(each, tmp_path, plan)
        assert check(scores, certificate).score == pytest.approx(best_score(each), abs=1e-9)
        modes |= {part["mode"] for part in json.loads(Path(certificate).read_text())["parts"]}
    assert "search" in modes or plan is PLAN


def test_a_proof_without_time_for_its_certificate_says_so(tmp_path, monkeypatch, set_clock):
    clock, file = [0.0], tmp_path / "proof.json"

    def search_ideals(*_: Any) -> IdealSearch:
        clock[0] += 100.0
        return IdealSearch(False, 0, 0.0, math.inf, np.zeros(0, np.int64))

    monkeypatch.setattr(certificate_module, "search_ideals", search_ideals)
    set_clock(SimpleNamespace(perf_counter=lambda: clock[0]), "qubayes.foundation.stop")
    candidates = random_candidates(9, 0, sets=30)
    run = Run(candidates, Limits(30.0), Workers(1))
    ending = prove(candidates, run, certificate=file, plan=SEARCH)
    assert run.proved and ending.certificate is None and not file.exists()
    assert "the time limit ended the search" in ending.status


def test_twins_stay_where_a_certificate_is_written(tmp_path):
    candidates = symmetric(6, 4)
    assert without_twins(candidates).twins
    scores, certificate = certified(candidates, tmp_path)
    vertices = {
        name
        for part in json.loads(Path(certificate).read_text())["parts"]
        for name in part["vertices"]
    }
    assert {"v0", "v1"} <= vertices and check(scores, certificate).cuts > 0


def numbers_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all numbers and masks."""
    if isinstance(value, dict):
        return [place for key, each in value.items() for place in numbers_in(each, (*path, key))]
    if isinstance(value, list):
        return [place for key, each in enumerate(value) for place in numbers_in(each, (*path, key))]
    return (
        [path]
        if isinstance(value, int | float) or (isinstance(value, str) and path[0] == "parts")
        else []
    )


def test_one_changed_number_is_refused(tmp_path):
    scores, certificate = certified(random_candidates(7, 1, sets=20), tmp_path)
    original = Path(certificate).read_text()
    places = numbers_in(json.loads(original))
    assert len(places) > 30
    for place in places:
        value = json.loads(original)
        inner = value
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = inner[place[-1]] + ("0" if isinstance(inner[place[-1]], str) else 1)
        Path(certificate).write_text(json.dumps(value))
        with pytest.raises(RefusedError):
            check(scores, certificate)


@pytest.mark.parametrize("seed", range(12))
def test_a_search_is_sound_whatever_the_weights(seed, tmp_path):
    """With random cuts the best network is confirmed, and any worse one refused: by the definition of mode search."""
    candidates, random = random_candidates(6, seed, sets=8), np.random.default_rng(seed)
    scores, certificate = certified(candidates, tmp_path)
    clusters = [c for size in (2, 3, 4, 6) for c in combinations(range(6), size)]

    def mask(members: Any) -> str:
        return f"{sum(1 << int(v) for v in members):x}"

    def some() -> list[Any]:
        chosen = [clusters[i] for i in random.integers(len(clusters), size=3)]
        ks = [int(random.integers(1, min(3, len(c)))) if len(c) > 1 else 1 for c in chosen]
        pairs = [[mask(c), k] for c, k in zip(chosen, ks, strict=True)]
        weight = int(random.integers(2**41))
        if random.random() < 0.4:
            return [weight, pairs, mask(np.flatnonzero(random.random(6) < 0.5))]
        return [weight, pairs[:1]]

    steps = [[some() for _ in range(5)] for _ in range(3)]
    names = list(candidates.names)

    def random_weights(value: dict[str, Any]) -> None:
        value["parts"] = [{"vertices": names, "mode": "search", "cuts": steps}]

    forged(certificate, random_weights)
    assert check(scores, certificate).states > 0

    best = json.loads(Path(certificate).read_text())["network"]
    sets = {
        names[v]: {tuple(names[p] for p in s): x for s, x in candidates.of(v)} for v in range(6)
    }
    child = next(name for name in names if best[name])

    def worse(value: dict[str, Any]) -> None:
        value["network"][child] = []
        value["score"] += sets[child][()] - sets[child][tuple(best[child])]

    forged(certificate, worse)
    with pytest.raises(RefusedError, match="better than the one given"):
        check(scores, certificate)


def network_of(found: Alternatives, number: int) -> dict[str, list[str]]:
    """A network of the list as a certificate has it."""
    parents = zip(found.names, found.networks[number], strict=True)
    return {name: [found.names[parent] for parent in members] for name, members in parents}


@pytest.mark.parametrize("plan", [PLAN, SEARCH], ids=["usual", "search"])
def test_the_second_best_network_is_never_certified(plan, tmp_path):
    """With the multipliers of the true proof, which exclude most sets, used twice and in both modes."""
    for seed in range(25):
        candidates = random_candidates(7, seed, sets=15)
        scores, certificate = certified(candidates, tmp_path, plan)
        found = alternatives(candidates, 2)
        if found.scores[1] > found.scores[0] - 1e-6:
            continue

        def second(value: dict[str, Any], found: Alternatives = found) -> None:
            value["network"], value["score"] = network_of(found, 1), found.scores[1]
            for part in value["parts"]:
                part["cuts"], part["mode"] = 2 * part["cuts"], "search"

        forged(certificate, second)
        with pytest.raises(RefusedError, match="better than the one given"):
            check(scores, certificate)


def root_case(folder: Path) -> tuple[str, str]:
    """A certificate of mode root with cuts."""
    for seed in range(20):
        scores, certificate = certified(random_candidates(7, seed, sets=10), folder)
        parts = json.loads(Path(certificate).read_text())["parts"]
        if parts and all(part["mode"] == "root" and part["cuts"][-1] for part in parts):
            return scores, certificate
    raise AssertionError


def set_weights(value: dict[str, Any], weight: int) -> None:
    for part in value["parts"]:
        part["cuts"] = [[[weight, *cut[1:]] for cut in step] for step in part["cuts"]]


def cycle(value: dict[str, Any]) -> None:
    names = list(value["network"])
    value["network"][names[0]], value["network"][names[1]] = [names[1]], [names[0]]


def vertex_too_many(value: dict[str, Any]) -> None:
    part = value["parts"][0]
    part["cuts"].insert(0, [[1, [[f"{1 << len(part['vertices']):x}", 1]]]])


FORGERIES = {
    "too weak": lambda value: set_weights(value, 0),
    "not a valid inequality": lambda value: set_weights(value, -1),
    "is not valid": lambda value: value["parts"][0]["cuts"].insert(0, [[1, [["3", 0]]]]),
    "with k = 1 is not valid": vertex_too_many,
    "cluster 100000 with k = 1": lambda value: value["parts"][0]["cuts"].insert(
        0, [[1, [["3", 1]], "100000"]]
    ),
    "twice, or none": lambda value: value["parts"].append(value["parts"][0]),
    "part 1: a variable twice": lambda value: value["parts"][0]["vertices"].append(
        value["parts"][0]["vertices"][0]
    ),
    "part 1: a variable twice, or none": lambda value: value["parts"].insert(0, {"vertices": []}),
    "in no part": lambda value: value.update(parts=[]),
    "mode 'trust'": lambda value: value["parts"][0].update(mode="trust"),
    "have no score|a cycle": cycle,
    "variables of the scores": lambda value: value["network"].pop(next(iter(value["network"]))),
    "certificate of version 1": lambda value: value.update(version=2),
    "the network scores": lambda value: value.update(score=value["score"] + 0.01),
    "not a certificate": lambda value: value.pop("parts"),
}


@pytest.mark.parametrize("words", FORGERIES)
def test_a_signed_forgery_is_refused(words, tmp_path):
    scores, certificate = root_case(tmp_path)
    assert check(scores, certificate).cuts > 0
    forged(certificate, FORGERIES[words])
    with pytest.raises(RefusedError, match=words):
        check(scores, certificate)


def test_a_score_that_is_better_than_when_it_was_proved_is_refused(tmp_path):
    scores, certificate = root_case(tmp_path)
    lines = Path(scores).read_text().splitlines()
    refused = 0
    for number, line in enumerate(lines):
        words = line.split()
        if line.startswith("-") and len(words) > 2:
            Path(scores).write_text(
                "\n".join([*lines[:number], " ".join(["-1", *words[1:]]), *lines[number + 1 :]])
            )
            try:
                check(scores, certificate)
            except RefusedError:
                refused += 1
    assert refused > 3


@pytest.mark.parametrize(
    "text",
    ["", "2\na 1\n-1 0\n", "1\na 1\nnan 0\n", "1\na 1\n1e999999 0\n", "1\na 1\n-1 1 b\n", "x"],
)
def test_files_that_are_no_scores_are_refused(text, tmp_path):
    _, certificate = certified(random_candidates(4, 0), tmp_path)
    (tmp_path / "bad.jkl").write_text(text)
    with pytest.raises(RefusedError, match=r"bad\.jkl"):
        check(str(tmp_path / "bad.jkl"), certificate)


def branched(folder: Path, seed: int = 0) -> tuple[str, str]:
    """A certificate with branches."""
    scores, certificate = certified(random_candidates(9, seed, sets=20), folder, BRANCHING)
    assert json.loads(Path(certificate).read_text())["parts"][0]["mode"] == "branch"
    return scores, certificate


def test_proofs_by_branching_have_certificates(tmp_path):
    nodes = 0
    for seed in range(12):
        for candidates in (
            random_candidates(9, seed, sets=20),
            sparse_candidates(9, seed),
            with_required_edge(7, seed),
        ):
            scores, certificate = certified(candidates, tmp_path, BRANCHING)
            verdict = check(scores, certificate)
            assert verdict.score == pytest.approx(best_score(candidates), abs=1e-9)
            nodes += verdict.nodes
    assert nodes > 20


BRANCH_FORGERIES = {
    "bound of its cuts": lambda part: set_tree_weights(part, 0),
    "is not an edge": lambda part: part.update(edge=[3, 3]),
    "-1 is not an edge": lambda part: part.update(edge=[0, -1]),
    "not a certificate": lambda part: part.pop("without"),
    "too weak": lambda part: part.update({"with": part["without"], "without": part["with"]}),
    "mode 'closed'": lambda part: part["with"].update(mode="closed"),
    "part 1, with .* too weak": lambda part: part["with"].update(mode="root", cuts=[]),
    "part 1, without .* too weak": lambda part: part["without"].update(mode="root", cuts=[]),
}


def set_tree_weights(node: dict[str, Any], weight: int) -> None:
    """Set the weights of all cuts of a node and those below it."""
    node["cuts"] = [[[weight, *cut[1:]] for cut in step] for step in node["cuts"]]
    for side in ("with", "without"):
        if side in node:
            set_tree_weights(node[side], weight)


@pytest.mark.parametrize("words", BRANCH_FORGERIES)
def test_a_forged_branching_is_refused(words, tmp_path):
    scores, certificate = branched(tmp_path)
    forged(certificate, lambda value: BRANCH_FORGERIES[words](value["parts"][0]))
    with pytest.raises(RefusedError, match=words):
        check(scores, certificate)


def test_one_changed_number_of_a_branching_is_refused(tmp_path):
    scores, certificate = branched(tmp_path)
    value = json.loads(Path(certificate).read_text())
    value["parts"][0]["with"]["cuts"][-1][0][0] += 1
    Path(certificate).write_text(json.dumps(value))
    with pytest.raises(RefusedError, match="changed"):
        check(scores, certificate)


def test_the_second_best_network_is_never_certified_by_branching(tmp_path):
    refused = 0
    for seed in range(12):
        candidates = random_candidates(9, seed, sets=20)
        scores, certificate = certified(candidates, tmp_path, BRANCHING)
        found = alternatives(candidates, 2)
        if found.scores[1] < found.scores[0] - 1e-6:

            def second(value: dict[str, Any], found: Alternatives = found) -> None:
                value["network"], value["score"] = network_of(found, 1), found.scores[1]

            forged(certificate, second)
            with pytest.raises(RefusedError, match="too weak"):
                check(scores, certificate)
            refused += 1
    assert refused > 5


@pytest.mark.parametrize("seed", range(20))
def test_the_next_vertex_takes_from_the_right_sides_what_it_should(seed):
    """Against the right sides of docs/certificates.md, written down for each set of first vertices."""
    draw, n = Random(seed), 7

    def right_side(cut: checker.Cut, first: int) -> int:
        left = [
            ((c & ~first).bit_count(), max(0, k - (c & first).bit_count())) for c, k in cut.clusters
        ]
        return sum(outside - missing for outside, missing in left) // cut.divisor

    cuts = []
    for number in range(6):
        clusters = [(draw.randrange(1, 1 << n), 1) for _ in range(1 + 2 * (number % 2))]
        clusters = [(c, draw.randint(1, c.bit_count())) for c, _ in clusters]
        odd = [(draw.randrange(1 << n), 0)] * (number % 2)
        cuts.append(
            checker.Cut(draw.randrange(1 << draw.randrange(60)), clusters + odd, 1 + number % 2)
        )
    falls = checker.Falls(cuts, n)
    for first in range(1 << n):
        freed = falls.of_all(first)
        for v in range(n):
            if not first >> v & 1:
                lost = sum(
                    c.weight * (right_side(c, first) - right_side(c, first | 1 << v)) for c in cuts
                )
                assert freed >> v * falls.width & falls.field == lost


@pytest.mark.parametrize(
    ("edge", "loss"), [((0, 1), (5, 7)), ((1, 0), (5, 7)), ((0, 1), (7, 5)), ((1, 0), (7, 5))]
)
def test_with_an_edge_its_tail_has_no_parent_at_its_head(edge, loss):
    """Each of two vertices has the other as its best parent; the loss of the best network is the lesser of two."""
    losses = [{0: loss[0], 0b10: 0}, {0: loss[1], 0b01: 0}]
    root = {"mode": "root", "cuts": [[]]}
    node = {"mode": "branch", "cuts": [[]], "edge": list(edge), "with": root, "without": root}
    assert checker.prove(node, losses, min(loss), 1, "part 1")["nodes"] == 2
    with pytest.raises(RefusedError, match="too weak"):
        checker.prove(node, losses, min(loss) + 1, 1, "part 1")


def test_parents_outside_a_part_do_not_count():
    """The least loss of the sets that are the same inside the part."""
    sets = {
        frozenset("a"): -1,
        frozenset("b"): -2,
        frozenset("ax"): 0,
        frozenset("xy"): -3,
        frozenset("aby"): -7,
    }
    scores = {names: Fraction(score) for names, score in sets.items()}
    assert checker.losses_of(scores, Fraction(0), ["c", "a", "b"], 10) == {
        0: 30,
        0b010: 0,
        0b100: 20,
        0b110: 70,
    }


@pytest.mark.parametrize(
    "total", [Fraction(-1, 2), Fraction(-1), Fraction(-4000), Fraction(-(10**9))]
)
def test_the_score_may_differ_by_the_rounding_of_the_solver(total):
    """By 1e-9, or by that part of the score if it is larger."""
    cases = [(-1.001, True), (-0.999, False), (0, False), (0.999, False), (1.001, True)]
    if total == -(10**9):  # then the limit is a whole number
        cases.append((1, False))
    for parts, refused in cases:
        score = float(total + Fraction(parts) * max(1, abs(total)) / 10**9)
        certificate = {"format": "qubayes certificate", "version": 1, "score": score, "scale": 40}
        certificate |= {"network": {"a": []}, "parts": []}
        text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
        certificate["digest"] = hashlib.sha256(text.encode()).hexdigest()
        if refused:
            with pytest.raises(RefusedError, match="the network scores"):
                checker.check_parts({"a": {frozenset(): total}}, certificate)
        else:
            assert checker.check_parts({"a": {frozenset(): total}}, certificate).score == float(
                total
            )


def test_the_checker_stands_alone():
    source = Path(checker.__file__).read_text()
    assert source.count("\n") <= 550
    imported = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {
        alias.name for node in imported if isinstance(node, ast.Import) for alias in node.names
    }
    names |= {
        node.module
        for node in imported
        if isinstance(node, ast.ImportFrom) and not node.level and node.module
    }
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in imported)
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_candidates(random_candidates(6, 1), tmp_path / "x.jkl")
    run = CliRunner().invoke
    done = run(app, ["solve", "x.jkl", "--certificate", "proof.json", "--time-limit", "100"])
    assert done.exit_code == 0 and "proof.json   certificate" in done.output
    done = run(app, ["check", "x.jkl", "proof.json"])
    assert (
        done.exit_code == 0 and "the certificate holds: no network scores more than" in done.output
    )
    alone = [sys.executable, "-I", "-S", checker.__file__, "x.jkl", "proof.json"]
    assert (
        "the certificate holds"
        in subprocess.run(alone, capture_output=True, text=True, check=True).stdout
    )
    write_candidates(random_candidates(6, 2), tmp_path / "y.jkl")
    assert "refused" in str(run(app, ["check", "y.jkl", "proof.json"]).exception)
    wrong = run(app, ["solve", "x.jkl", "--certificate", "p.json", "--solver", "sa"])
    assert "needs --solver exact" in str(wrong.exception)
    same = run(app, ["solve", "x.jkl", "--certificate", "x.jkl"])
    assert "x.jkl" in str(same.exception) and same.exit_code == 1


@pytest.mark.parametrize("file", ["returned", "proof.json"])
def test_scores_are_written_only_beside_a_certificate(file, tmp_path, monkeypatch):
    """Whatever the name of the file: a search without a certificate ends in "the start is returned"."""
    monkeypatch.chdir(tmp_path)
    write_candidates(random_candidates(6, 1), "x.qbc")
    scores = Path(file).with_suffix(".jkl")
    for seconds, reason in ((0.0, Reason.TIME), (None, Reason.PROVED)):
        made = reason is Reason.PROVED
        found = solve_file(Path("x.qbc"), SolveSettings(certificate=file, time_limit=seconds))
        assert found.reason is reason and found.certificate == (Path(file) if made else None)
        assert scores.exists() == made and (str(scores) in found.status) == made


def test_a_certificate_of_renamed_or_restricted_scores(tmp_path, monkeypatch):
    """The scores with these names, or without what knowledge forbids, are written beside it."""
    monkeypatch.chdir(tmp_path)
    candidates = random_candidates(6, 1)
    write_candidates(candidates, tmp_path / "x.jkl")
    write_candidates(candidates, tmp_path / "x.qbc")
    free = solve(candidates, "exact").network
    parent, child = free.edges[0]
    Path("names.txt").write_text("a\nb\nc\nd\ne\nf\n")
    Path("known.json").write_text(json.dumps({"forbidden": [[parent, child]]}))
    for options in (
        ["x.jkl", "--names", "names.txt"],
        ["x.jkl", "--knowledge", "known.json"],
        ["x.qbc"],
    ):
        run = CliRunner().invoke
        done = run(app, ["solve", *options, "--certificate", "proof.json", "--time-limit", "100"])
        assert done.exit_code == 0 and re.search(r"proof\.jkl +its scores", done.output)
        done = run(app, ["check", "proof.jkl", "proof.json"])
        assert done.exit_code == 0 and "the certificate holds" in done.output
        certificate = json.loads(Path("proof.json").read_text())
        assert ("a" in certificate["network"]) == ("--names" in options)
        assert (certificate["score"] < best_score(candidates) - 1e-9) == ("--knowledge" in options)
    clash = CliRunner().invoke(
        app, ["solve", "x.jkl", "--names", "names.txt", "--certificate", "x.json"]
    )
    assert clash.exit_code == 1 and "x.jkl" in str(clash.exception)


def cuts_over(n: int, seed: int) -> list[checker.Cut]:
    """Every cluster, and some random zero-half cuts; weight 1."""
    draw, full = Random(seed), (1 << n) - 1
    clusters = [(c, k) for c in range(1, full + 1) for k in range(1, c.bit_count() + 1)]
    plain = [checker.Cut(1, [one], 1) for one in clusters]
    halved = [draw.choices(clusters, k=draw.randint(1, 3)) for _ in range(60)]
    return plain + [checker.Cut(1, [*some, (draw.randint(0, full), 0)], 2) for some in halved]


def test_the_right_side_of_a_cut_is_the_most_that_an_acyclic_graph_crosses():
    """Over all acyclic graphs of four vertices: never more; just as much for clusters and most zero-half cuts."""
    n, cuts = 4, cuts_over(4, seed=0)
    crossings = [checker.prices_of([dict.fromkeys(range(1 << n), 0)] * n, [cut]) for cut in cuts]
    graphs = [[sum(1 << p for p in members) for members in graph] for graph in all_dags(n)]
    tight_and_even = 0
    for cut, crossed in zip(cuts, crossings, strict=True):
        most = max(sum(crossed[v][mask] for v, mask in enumerate(graph)) for graph in graphs)
        assert most <= cut.right_side()
        assert most == cut.right_side() or cut.divisor == 2
        total = sum(mask.bit_count() - k for mask, k in cut.clusters)
        tight_and_even += cut.divisor == 2 and total % 2 == 0 and most == cut.right_side()
    assert tight_and_even > 10


def test_a_network_with_a_cycle_is_refused_though_its_sets_have_scores():
    sets = {frozenset("a"): -1, frozenset("b"): -1, frozenset("c"): -1, frozenset(): -2}
    scores = {child: {s: Fraction(x) for s, x in sets.items() if child not in s} for child in "abc"}
    for cycle in ({"a": "b", "b": "a", "c": ""}, {"a": "b", "b": "c", "c": "a"}):
        with pytest.raises(RefusedError, match="cycle among a, b"):
            checker.network_score(scores, {name: frozenset(its) for name, its in cycle.items()})
    path = {"a": frozenset("b"), "b": frozenset("c"), "c": frozenset[str]()}
    assert checker.network_score(scores, path) == -4


def signed(score: float, network: dict[str, list[str]], parts: list[Any]) -> dict[str, Any]:
    """A certificate with its digest."""
    certificate = {"format": "qubayes certificate", "version": 1, "score": score, "scale": 0}
    certificate |= {"network": network, "parts": parts}
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
    return certificate | {"digest": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize(
    ("lost", "holds"),
    [
        ([0.0, 0.0, 0.0, 0.0], True),
        ([0.4, 0.4, 0.0, 0.0], True),
        ([0.1, 0.1, 0.3, 0.3], True),
        ([0.6, 0.6, 0.0, 0.0], False),
        ([0.7, 0.0, 0.0, 0.0], False),  # a part has half of the tolerance
        ([0.0, 0.0, 0.6, 0.6], False),
        ([0.4, 0.4, 0.2, 0.2], False),
        ([0.0, 0.0, 0.0, 1.1], False),
    ],
)
def test_parts_and_free_variables_share_one_tolerance(lost, holds):
    """What a and b lose in two parts, and c and d in none, as shares of the tolerance."""
    loss = [Fraction(round(10 * share), 10**10) for share in lost]
    scores = {
        name: {frozenset[str](): Fraction(0), frozenset("e"): -x if x else Fraction(-1)}
        for name, x in zip("abcd", loss, strict=True)
    }
    scores["e"] = {frozenset(): Fraction(-1)}
    network = {name: ["e"] if x else [] for name, x in zip("abcd", loss, strict=True)} | {"e": []}
    parts = [{"vertices": [name], "mode": "root", "cuts": [[]]} for name in "ab"]
    certificate = signed(float(-1 - sum(loss)), network, parts)
    if holds:
        assert checker.check_parts(scores, certificate).parts == 2
        return
    with pytest.raises(RefusedError, match=r"too weak|in no part"):
        checker.check_parts(scores, certificate)


STRICT = {
    "a variable twice": "2\na 1\n-1 0\na 1\n-1 0\n",
    "lines after the last block": "1\na 1\n-1 0\nb 1\n-1 0\n",
    "a self parent": "1\na 2\n-1 0\n-1 1 a\n",
    "a set twice": "2\na 1\n-1 0\nb 3\n-2 0\n-1 1 a\n-1 1 a\n",
    "a parent twice": "2\na 1\n-1 0\nb 2\n-2 0\n-1 2 a a\n",
    "a size that is not the set's": "2\na 1\n-1 0\nb 2\n-2 0\n-1 2 a\n",
    "a block over two lines": "2\na 1 -1 0\nb 1\n-2 0\n",
    "a negative number of sets": "1\na -1\n",
    "a score of 1_0": "1\na 1\n-1_0 0\n",
    "not UTF-8": b"1\n\xff 1\n-1 0\n",
    "a score beyond the floats": "1\na 1\n1e999 0\n",
}


@pytest.mark.parametrize("fault", STRICT)
def test_scores_are_read_as_strictly_as_by_the_product(fault, tmp_path):
    path, text = tmp_path / "x.jkl", STRICT[fault]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(QubayesError):
        read_candidates(path)
    with pytest.raises(RefusedError, match=r"x\.jkl"):
        checker.read_scores(str(path))


@pytest.mark.parametrize(
    "text", ["0\n", "1\na 1\n-1e999 0\n", "1\na 1\n\u0661 0\n", "1\na 1\n-1 0 # why\n"]
)
def test_other_texts_that_are_no_scores(text, tmp_path):
    (tmp_path / "x.jkl").write_text(text)
    with pytest.raises(RefusedError, match=r"x\.jkl"):
        checker.read_scores(str(tmp_path / "x.jkl"))


def test_every_flipped_bit_of_packed_scores_is_told(tmp_path):
    """A result or a RefusedError, and never other scores than those that were packed."""
    path = tmp_path / "x.jkl.gz"
    write_candidates(random_candidates(3, 0, sets=3), path)
    content = path.read_bytes()
    right, refused = checker.read_scores(str(path)), 0
    for place in range(8 * len(content)):
        changed = bytearray(content)
        changed[place >> 3] ^= 1 << (place & 7)
        path.write_bytes(changed)
        try:
            assert checker.read_scores(str(path)) == right
        except RefusedError:
            refused += 1
    assert refused > len(content)


def test_packed_scores_have_a_limit(tmp_path):
    bomb = gzip.compress(b"#" + b" " * (1 << 25))
    (tmp_path / "x.jkl.gz").write_bytes(bomb)
    with pytest.raises(RefusedError, match="too long a line"):
        checker.read_scores(str(tmp_path / "x.jkl.gz"))
    with (tmp_path / "y.jkl.gz").open("wb") as file:
        file.write(gzip.compress((b"#" + b" " * 100_000 + b"\n") * 110) * 100)
    with pytest.raises(RefusedError, match="too many bytes"):
        checker.read_scores(str(tmp_path / "y.jkl.gz"))


NUMBERS = {
    "infinite": '"score": Infinity',
    "beyond the floats": '"score": -1e999',
    "no number": '"score": NaN',
    "a text": '"score": "1e99999999"',
    "truth": '"score": true',
    "4,000 digits": f'"score": {"9" * 4000}',
    "5,000 digits": f'"score": {"9" * 5000}',
    "a huge scale": '"scale": 201',
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_score_is_a_finite_number(kind, tmp_path):
    """Signed as the file is read, so that nothing but the number is wrong."""
    scores, certificate = certified(random_candidates(4, 0), tmp_path)
    value = json.loads(Path(certificate).read_text())
    key, text = NUMBERS[kind].split(": ")
    value.pop("digest")
    value[json.loads(key)] = "HERE"
    body = json.dumps(value, sort_keys=True, separators=(",", ":")).replace('"HERE"', text)
    with suppress(ValueError):
        body = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(body.encode()).hexdigest()
    Path(certificate).write_text(f'{body[:-1]},"digest":"{digest}"}}')
    with pytest.raises(RefusedError):
        check(scores, certificate)


def test_weights_of_thousands_of_digits_are_refused(tmp_path):
    scores, certificate = root_case(tmp_path)
    forged(certificate, lambda value: set_weights(value, 10**100 + 1))
    with pytest.raises(RefusedError, match="not a valid inequality"):
        check(scores, certificate)
    forged(certificate, lambda value: set_weights(value, 10**100))
    with pytest.raises(RefusedError, match="too weak"):
        check(scores, certificate)


def test_a_bound_below_all_floats_is_too_weak():
    losses, huge = [{0: 1, 2: 0}, {0: 1, 1: 0}], {"mode": "root", "cuts": [[[5, [["3", 1]]]]]}
    with pytest.raises(RefusedError, match="too weak"):
        checker.prove(huge, losses, 1, 10**400, "part 1")


def test_a_search_has_a_limit(monkeypatch):
    monkeypatch.setattr(checker, "MOST_SEARCH_STATES", 50)
    n = 8
    losses = [{0: 1, **{1 << u: 0 for u in range(n) if u != v}} for v in range(n)]
    with pytest.raises(RefusedError, match="more than 50 states"):
        checker.prove({"mode": "search", "cuts": [[]]}, losses, n + 1, 1, "part 1")


def test_alone_the_checker_tells_how_it_is_called(tmp_path):
    (tmp_path / "x.jkl").write_text("1\na 1\n-1 0\n")
    for arguments, words in (
        ([], "usage: "),
        ([tmp_path / "x.jkl", tmp_path / "none"], "refused: "),
    ):
        command = [sys.executable, "-I", "-S", checker.__file__, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (
            done.returncode == 1 and done.stderr.startswith(words) and done.stderr.count("\n") == 1
        )
