"""What there is not memory for is refused before it begins."""

import os
from dataclasses import asdict

import pytest

from benchmarks.paper import trial
from benchmarks.paper.store import Store
from candidate_cases import run
from qubayes import TooLargeError
from qubayes.candidates import example, write_candidates
from qubayes.foundation import environment
from qubayes.qubo import count_bits, formulate
from qubayes.qubo import formulation as module
from qubayes.qubo.subsets import cover
from solve_cases import random_candidates


@pytest.fixture
def machine(monkeypatch, set_memory, tmp_path):
    """A machine of 10 pages of 1000 bytes, without limits; the folder of limits, and the list of groups."""
    monkeypatch.setattr(
        os, "sysconf", {"SC_PHYS_PAGES": 10, "SC_PAGE_SIZE": 1000}.__getitem__, raising=False
    )
    set_memory(None)
    monkeypatch.setattr(environment, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(environment, "_LIMITS", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("limit", "least"), [("max\n", 10_000), ("4000\n", 4000), ("99000\n", 10_000), ("", 10_000)]
)
@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize(
    ("lines", "place", "name"),
    [
        ("0::/jobs/7\n", "", "memory.max"),
        ("9:name=systemd:/\n4:cpu,memory:/jobs/7\n0::/\n", "memory", "memory.limit_in_bytes"),
    ],
)
def test_the_least_limit_of_all_groups_counts(machine, lines, place, name, inner, limit, least):
    (machine / "groups").write_text(lines)
    folder = machine / place / ("jobs/7" if inner else "jobs")
    folder.mkdir(parents=True)
    (folder / name).write_text(limit)
    assert environment.memory_here() == least


def test_a_limit_of_the_process_counts(machine, set_memory):
    set_memory(3000)
    assert environment.memory_here() == 3000


def test_nobody_can_tell(machine, monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert environment.memory_here() is None


def test_a_qubo_that_does_not_fit_is_refused(set_memory):
    candidates = example()
    subsets = cover(candidates)
    sizes = subsets.families.sizes
    pairs = sum(size * (size - 1) // 2 for size in sizes.tolist())
    triangles = len(formulate(candidates, subsets).order.triangles)
    assert pairs > 0 and triangles > 0
    needed = module.BYTES_OF_PAIR * (pairs + 3 * triangles)
    set_memory(needed)
    formulate(candidates, subsets)
    set_memory(needed - 1)
    with pytest.raises(
        TooLargeError, match=r"takes about .* GB, and there are .*fewer subsets.*without --bits"
    ):
        formulate(candidates, subsets)
    set_memory(None)
    formulate(candidates, subsets)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("order", "penalty"), [("chordal", "tight"), ("scc", "paper")])
def test_bits_are_counted_without_the_qubo(seed, order, penalty):
    candidates = random_candidates(9, seed, sets=3, most=2)
    subsets = cover(candidates)
    assert count_bits(candidates, subsets, order="scc")["r"] > count_bits(candidates, subsets)["r"]
    counted = count_bits(candidates, subsets, order=order, penalty=penalty)
    assert counted == formulate(candidates, subsets, order=order, penalty=penalty).bits


def test_a_trial_whose_qubo_does_not_fit_counts_its_bits(monkeypatch, set_memory, tmp_path):
    candidates = random_candidates(9, 1, sets=12)
    monkeypatch.setattr(trial, "prepared", lambda place, of: candidates)
    measured = trial.Trial("bits", "alarm", 2, 0, approach="auto", threads=1)
    whole = trial.run(trial.Place("", str(tmp_path)), measured)
    monkeypatch.setattr(trial, "example", lambda: random_candidates(3, 0))  # fits
    set_memory(20_000)
    counted = trial.run(trial.Place("", str(tmp_path)), measured)
    assert whole["couplers"] > 0 and counted["couplers"] is None
    assert counted["bits"] == whole["bits"]
    Store(tmp_path / "trials.jsonl").add({"trial": asdict(measured), "result": counted})
    assert measured in Store(tmp_path / "trials.jsonl")


def test_the_remedy_works(set_memory, tmp_path, capsys):
    """What the refusal tells: solve without --bits; presolve and plan count without a QUBO."""
    set_memory(1)
    path = tmp_path / "x.jkl"
    write_candidates(random_candidates(6, 0), path)
    code, _, told = run(capsys, "solve", path, "--moves", 100, "--bits")
    assert code == 1 and "without --bits" in told
    assert run(capsys, "solve", path, "--moves", 100)[0] == 0
    code, told, _ = run(capsys, "presolve", path, "--time-limit", 5, "-o", tmp_path / "y.jkl")
    assert code == 0 and "bits" in told
