"""Samples of a search that forecasts time, and the memory of its tables."""

import pytest

from candidate_cases import Clock, dependent_data
from qubayes.candidates import (
    CandidateSearch,
    forecasts,
)
from qubayes.candidates.forecast import Load, Pace, extrapolated, tried
from qubayes.candidates.identify import first_level, scan_blocks
from qubayes.candidates.levels import make_above, next_level
from qubayes.foundation.workers import Workers


@pytest.mark.parametrize(("before", "factor"), [(4.0, 1.0), (2.0, 1.0), (1.6, 1.25), (0.5, 1.5)])
def test_a_trend_goes_on_within_limits(before, factor):
    assert extrapolated(Pace(before, 0.5), Pace(2.0, 0.25)) == Pace(factor * 2.0, 0.125)
    # no more than before
    assert extrapolated(Pace(before, 0.1), Pace(2.0, 0.25)).candidates == 0.25


def test_the_memory_is_that_of_the_tables():
    dataset = dependent_data(12, 200, seed=0)
    level = first_level(dataset, CandidateSearch(3))
    for _ in range(3):
        above = make_above(level, last=False)
        for _ in scan_blocks(level, above, Workers(1)):
            pass
        level = next_level(level, above)
    below = level.below
    tables = below.terms.nbytes + below.cells.nbytes + below.best.nbytes
    found = forecasts(dataset, CandidateSearch(3))
    # the last level may hold best scores twice
    assert tables < found[2].memory - found[0].memory < 3 * tables


@pytest.mark.parametrize(
    ("sample", "longest", "share"),
    [
        (100.0, 0.0, 1.0),  # all fits the sample
        (3.0, 0.0, 0.1),
        (3.0, 70.0, 1.0),  # all of it is predicted to take 60 s
        (3.0, 50.0, 0.1),
    ],
)
def test_a_sample_ends_in_time_unless_all_is_run(set_clock, sample, longest, share):
    clock = Clock()
    set_clock(clock, "qubayes.candidates.forecast")
    found = tried(
        clock.work, None, [2.0] * 30, [1.0] * 30, Workers(1), Load(), sample=sample, longest=longest
    )
    assert found.seconds == 2.0 and found.share == share and len(found.results) == 30 * share


def test_other_work_on_the_machine_slows_all_samples_alike(set_clock):
    """A sample that other work interrupts ten times as often is no reason to predict ten times the time."""
    clock, load = Clock(), Load()
    set_clock(clock, "qubayes.candidates.forecast")
    for clock.slow in (1.0, 10.0):
        found = tried(clock.work, None, [2.0] * 30, [1.0] * 30, Workers(1), load, sample=900.0)
        assert found.seconds == 2.0 and found.share == 1.0
    assert load.factor == pytest.approx(5.5)


def test_a_sample_is_drawn_from_all_kinds_of_work(set_clock):
    """Items are in the order of their costs; the first ones would be too cheap."""
    clock = Clock()
    set_clock(clock, "qubayes.candidates.forecast")
    costs = [1.0] * 50 + [9.0] * 50
    found = tried(clock.work, None, costs, [1.0] * 100, Workers(1), Load(), sample=60.0)
    assert found.share < 0.5 and found.seconds == pytest.approx(5.0, rel=0.4)
