"""What there is not memory for is refused before it begins."""

import os
from dataclasses import asdict

import pytest

from qubayes import memory
from qubayes.bench import trial
from qubayes.bench.store import Store
from qubayes.candidates.example import example
from qubayes.errors import QubayesError
from qubayes.formulation import count_bits, formulate
from qubayes.formulation import formulation as module
from qubayes.subsets import cover
from solve_cases import random_candidates


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine of 10 pages of 1000 bytes, no limits."""
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PHYS_PAGES": 10, "SC_PAGE_SIZE": 1000}[name])
    monkeypatch.setattr(memory, "address_limit", lambda: None)
    monkeypatch.setattr(memory, "_GROUP_LIMITS", (str(tmp_path / "limit"), str(tmp_path / "nothing")))
    return tmp_path / "limit"


@pytest.mark.parametrize(("limit", "least"), [("max\n", 10_000), ("4000\n", 4000), ("99000\n", 10_000), ("", 10_000)])
def test_the_least_limit_counts(machine, limit, least):
    machine.write_text(limit)
    assert memory.memory_here() == least


def test_a_limit_of_the_process_counts(machine, monkeypatch):
    monkeypatch.setattr(memory, "address_limit", lambda: 3000)
    assert memory.memory_here() == 3000


def test_nobody_can_tell(machine, monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    assert memory.memory_here() is None


def test_a_qubo_that_does_not_fit_is_refused(monkeypatch):
    candidates = example()
    subsets = cover(candidates)
    sizes = subsets.families.sizes
    needed = module.BYTES_OF_PAIR * sum(size * (size - 1) // 2 for size in sizes.tolist())
    assert needed > 0
    monkeypatch.setattr(module, "memory_here", lambda: needed)
    formulate(candidates, subsets)
    monkeypatch.setattr(module, "memory_here", lambda: needed - 1)
    with pytest.raises(QubayesError, match=r"takes about .* GB, and there are .*fewer subsets"):
        formulate(candidates, subsets)
    monkeypatch.setattr(module, "memory_here", lambda: None)
    formulate(candidates, subsets)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("order", "penalty"), [("chordal", "tight"), ("scc", "paper")])
def test_bits_are_counted_without_the_qubo(seed, order, penalty):
    candidates = random_candidates(9, seed, sets=12)
    subsets = cover(candidates)
    counted = count_bits(candidates, subsets, order=order, penalty=penalty)
    assert counted == formulate(candidates, subsets, order=order, penalty=penalty).bits


def test_a_trial_whose_qubo_does_not_fit_counts_its_bits(monkeypatch, tmp_path):
    candidates = random_candidates(9, 1, sets=12)
    monkeypatch.setattr(trial, "prepared", lambda place, of: candidates)
    measured = trial.Trial("bits", "alarm", 2, 0, approach="auto", threads=1)
    whole = trial.run(trial.Place("", str(tmp_path)), measured)
    monkeypatch.setattr(trial, "memory_here", lambda: 1)
    counted = trial.run(trial.Place("", str(tmp_path)), measured)
    assert whole["couplers"] > 0 and counted["couplers"] is None
    assert counted["bits"] == whole["bits"]
    Store(tmp_path / "trials.jsonl").add({"trial": asdict(measured), "result": counted})
    assert measured in Store(tmp_path / "trials.jsonl")
