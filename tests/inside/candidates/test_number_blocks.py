"""Blocks of parent sets of continuous columns: their number and the threads change nothing."""

import numpy as np
import pandas as pd
import pytest

from qubayes.candidates import Knowledge
from qubayes.candidates.moments import prepare, scan_sizes
from qubayes.data import read
from qubayes.foundation.workers import Workers
from qubayes.scores import Score


@pytest.mark.parametrize("name", ["bge", "bic"])
@pytest.mark.parametrize("pairs", [1, 300])
def test_blocks_and_threads_find_the_same(name, pairs):
    cells = np.random.default_rng(0).normal(size=(200, 11))
    cells[:, 1:] += cells[:, :-1]
    dataset = read(pd.DataFrame(cells))
    problem = prepare(dataset, Score(name), Knowledge().resolve(dataset.names, 4), 4)

    def found(workers, **options):
        rows = set()
        for part in scan_sizes(problem, 4, workers, **options):
            for family, score in zip(part.block.families.tolist(), part.block.scores, strict=True):
                rows.add((*family, float(score)))
        return rows

    plain = found(Workers(1))
    assert len(plain) > 100
    assert found(Workers(3), pairs_per_block=pairs) == plain
