"""The random generator of kernels against the same one in Python, and the distributions that are drawn from it."""

import numpy as np
import pytest

from qubayes.foundation.random import (
    below,
    draws_of,
    next_picks,
    next_waits,
    next_word,
    random_stream,
    uniform,
)
from reference.annealing import Draws


def test_words_are_those_of_the_definition():
    words = random_stream(7, lanes=3)
    slow = Draws(*words.tolist())
    for lane in (0, 2, 0, 1, 0):
        assert next_word(words, lane) == slow.word(lane)
    assert words.tolist() == [slow.first, slow.second]
    assert below(words, 10**9) == slow.below(10**9)


def test_streams_differ_by_seed_and_by_spawned_seed():
    one, two = np.random.SeedSequence(5).spawn(2)
    streams = [random_stream(5), random_stream(6), random_stream(one), random_stream(two)]
    assert len({next_word(words, 0) for words in streams}) == 4
    assert next_word(random_stream(5), 0) == next_word(random_stream(np.random.SeedSequence(5)), 0)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_integers_are_uniform(n):
    words, count = random_stream(n), 20_000
    seen = np.bincount([below(words, n) for _ in range(count)], minlength=n)
    assert len(seen) == n
    chi_square = float(((seen - count / n) ** 2).sum() / (count / n))
    assert chi_square < n + 6 * np.sqrt(2 * n)


def test_numbers_are_uniform_and_never_zero():
    words = random_stream(3)
    numbers = np.array([uniform(words) for _ in range(20_000)])
    assert 0 < numbers.min() < 0.001 and 0.999 < numbers.max() <= 1
    assert numbers.mean() == pytest.approx(1 / 2, abs=0.01)
    assert numbers.var() == pytest.approx(1 / 12, abs=0.005)
    assert np.corrcoef(numbers[:-1], numbers[1:])[0, 1] == pytest.approx(0, abs=0.03)


def test_blocks_are_those_of_the_definition():
    draws = draws_of(np.random.SeedSequence(9))
    slow = Draws(*draws.words.tolist())
    for _ in range(40):
        drawn, picked = next_waits(draws), next_picks(draws, 1000)
        np.testing.assert_allclose(draws.waits[drawn : drawn + 16], slow.waits(), atol=2e-9)
        assert draws.picks[picked : picked + 16].tolist() == slow.picks(1000)
