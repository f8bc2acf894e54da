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


def table_of_numbers(rows, names=None):
    """A table of numbers, from (rows, n)."""
    names = names or tuple(f"x{v}" for v in range(rows.shape[1]))
    codes = np.zeros((len(names), len(rows)), np.uint8)
    numbers = {name: np.ascontiguousarray(rows[:, v]) for v, name in enumerate(names)}
    return Dataset(names, ((),) * len(names), codes, numbers=numbers)


@st.composite
def tables_of_numbers(draw):
    """Continuous columns of many scales, most of them dependent."""
    n = draw(st.integers(2, 6))
    count = draw(st.integers(20, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = random.normal(size=(count, n))
    for v in range(1, n):
        rows[:, v] += random.normal() * rows[:, random.integers(0, v)]
    return table_of_numbers(rows * 10.0 ** random.integers(-3, 4, n) + random.normal(size=n))


@st.composite
def mixed_tables(draw):
    """Tables of numbers and states; the means of numbers, and their weights, differ by state."""
    n = draw(st.integers(2, 6))
    count = draw(st.integers(20, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_number = draw(st.permutations([True, False, *(random.random(n - 2) < 0.5)]))
    codes = np.zeros((n, count), np.uint8)
    states, numbers = [], {}
    names = tuple("abcdefghij"[:n])
    for v, name in enumerate(names):
        other = int(random.integers(0, v + 1))
        if not is_number[v]:
            arity = int(random.integers(1, 4))
            source = codes[other] if random.random() < 0.7 else random.integers(0, 9, count)
            codes[v] = np.where(random.random(count) < 0.3, random.integers(0, 9, count), source)
            codes[v] %= arity
            states.append(tuple(str(s) for s in range(arity + int(random.random() < 0.3))))
            continue
        cells = random.normal(size=count) + random.normal(size=9)[codes[other]]
        if names[other] in numbers:
            cells += random.normal() * numbers[names[other]]
        numbers[name] = cells * 10.0 ** random.integers(-2, 3)
        states.append(())
    return Dataset(names, tuple(states), codes, numbers=numbers)
