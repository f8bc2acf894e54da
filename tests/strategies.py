"""Random inputs for property tests."""

import numpy as np
from hypothesis import strategies as st

from qubayes.data import Dataset


@st.composite
def datasets(draw, min_variables=2, max_variables=6, max_rows=60, max_arity=4):
    """Data with copies, constants, dependences and states that never occur."""
    n = draw(st.integers(min_variables, max_variables))
    rows = draw(st.integers(1, max_rows))
    observed = draw(st.lists(st.integers(1, max_arity), min_size=n, max_size=n))
    unseen = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    noise = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = np.zeros((n, rows), dtype=np.uint8)
    for i in range(n):
        source = (
            codes[rng.integers(0, i)] + codes[rng.integers(0, i)] if i else np.zeros(rows, np.uint8)
        )
        fresh = rng.integers(0, observed[i], rows)
        codes[i] = np.where(rng.random(rows) < noise, fresh, source) % observed[i]
    states = tuple(
        tuple(str(s) for s in range(r + more)) for r, more in zip(observed, unseen, strict=True)
    )
    return Dataset(tuple("abcdefghij"[:n]), states, codes)
