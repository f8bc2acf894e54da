"""The hash table of 64-bit keys against a dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes.foundation.jit import kernel
from qubayes.foundation.words import slot_of, table_slots

WORDS = st.integers(-(2**63), 2**63 - 1).filter(bool)


@kernel
def number_keys(given, keys, values, found):
    """Number the distinct keys in order of appearance."""
    numbers = 0
    for place in range(len(given)):
        slot = slot_of(keys, given[place])
        if keys[slot] == 0:
            keys[slot], values[slot] = given[place], numbers
            numbers += 1
        found[place] = values[slot]


@given(
    st.lists(
        st.one_of(WORDS, st.integers(1, 9), st.integers(1, 20).map(lambda x: x << 40)), max_size=200
    )
)
def test_a_table_is_a_dictionary(words):
    slots = table_slots(len(words))
    found = np.empty(len(words), np.int32)
    number_keys(
        np.array(words, np.int64), np.zeros(slots, np.int64), np.empty(slots, np.int32), found
    )
    numbers: dict[int, int] = {}
    assert found.tolist() == [numbers.setdefault(word, len(numbers)) for word in words]


@pytest.mark.parametrize("entries", [0, 1, 2, 3, 4, 5, 1000, 1024, 1025])
def test_half_of_the_slots_stay_free(entries):
    slots = table_slots(entries)
    assert slots >= 2 * entries and slots & (slots - 1) == 0 and slots <= max(4, 4 * entries)
