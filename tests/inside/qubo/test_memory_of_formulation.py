"""The memory that a formulation is said to need."""

from pathlib import Path

from benchmarks.paper.store import Store
from qubayes.qubo.formulation import BYTES_OF_PAIR


def test_the_memory_of_a_large_qubo_is_not_underestimated():
    """By the trials of the documentation: a process without a QUBO takes less than 200 MB."""
    store = Store(Path(__file__).parents[3] / "docs" / "results" / "trials.jsonl")
    measured = [
        r["result"]
        for r in store.results(kind="bits")
        if (r["result"].get("couplers") or 0) > 10**7
    ]
    assert len(measured) > 10
    assert all(BYTES_OF_PAIR * r["couplers"] + 200e6 > r["peak_mb"] * 2**20 for r in measured)
