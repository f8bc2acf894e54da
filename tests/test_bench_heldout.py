"""The comparison of limits of parents on held-out rows."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.heldout import kept, measure, table
from qubayes import Network, fit, read
from qubayes.network import write_network

ROOT = Path(__file__).parent.parent


def test_the_page_shows_the_kept_outcomes():
    lines = table(kept(ROOT / "docs" / "results" / "heldout.jsonl"))
    assert len(lines) > 2
    assert "\n".join(lines) in (ROOT / "docs" / "growing.md").read_text()


def test_a_limit_of_parents_is_kept(tmp_path):
    data = read(ROOT / "examples" / "alarm.csv").select(np.arange(8))
    parents = ((), *((0,),) * 7)
    write_network(fit(Network(data.names, parents), data), tmp_path / "star.bif")
    limited, free = (measure(tmp_path / "star.bif", 200, 500, limit, 5.0) for limit in (1, None))
    assert limited.most <= 1 and free.score >= limited.score - 1e-9
    assert free.true == pytest.approx(limited.true)
    assert free.likelihood < 0.0 > limited.likelihood
