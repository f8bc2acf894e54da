"""The size of a formulation: the memory that it is said to need, and the most sets."""

from pathlib import Path

import pytest

from benchmarks.paper.store import Store
from qubayes import QubayesError
from qubayes.qubo.formulation import BYTES_OF_PAIR
from qubayes.qubo.gains import MOST_SETS, check_sets


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


def test_sets_are_numbered_up_to_the_limit():
    check_sets(MOST_SETS)
    with pytest.raises(QubayesError, match="2147483648 candidate sets; at most 2147483647"):
        check_sets(MOST_SETS + 1)
