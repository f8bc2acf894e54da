"""Criteria to end a search, with a clock that the test sets."""

import math

import pytest

from qubayes.foundation.stop import Interrupt, Reason, Stalled, Stop, TimeLimit


class Clock:
    """Seconds that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_criterion_with_a_reason_ends_the_search():
    asked = []

    def criterion(name, reason):
        def ask():
            asked.append(name)
            return reason

        return ask

    first, second = criterion("first", None), criterion("second", Reason.TIME)
    stop = Stop(first, second, criterion("third", Reason.PROVED))
    assert stop() and stop.reason is Reason.TIME and asked == ["first", "second"]
    assert stop() and asked == ["first", "second"]  # it has ended for good
    assert not Stop()() and Stop().reason is None


def test_an_interrupt_is_a_reason():
    interrupt = Interrupt()
    stop = Stop(interrupt)
    assert not stop() and not interrupt
    interrupt.press()
    assert stop() and stop.reason is Reason.INTERRUPTED and interrupt.flag.tolist() == [True]


def test_the_time_limit_leaves_out_pauses():
    clock = Clock()
    limit = TimeLimit(10.0, clock)
    clock.now += 4.0
    with limit.paused():
        clock.now += 100.0
    assert (limit.elapsed, limit.left, limit()) == (4.0, 6.0, None)
    with limit.shortened(2.0):
        assert limit.left == 2.0
        clock.now += 2.0
        assert limit() is Reason.TIME
    assert limit() is None
    with limit.shortened(50.0):
        assert limit.left == 4.0
    clock.now += 4.0
    assert limit() is Reason.TIME and limit.left == 0.0


def test_no_limit_is_never_reached():
    clock = Clock()
    limit = TimeLimit(None, clock)
    clock.now = 1e300
    assert limit() is None and limit.left == math.inf


@pytest.mark.parametrize(
    ("improved", "elapsed", "stalled"),
    [(0.5, 2.5, False), (0.5, 2.6, True), (3.0, 9.0, False), (3.0, 9.1, True)],
)
def test_patience_is_a_multiple_of_what_it_took_to_find_the_best(improved, elapsed, stalled):
    clock = Clock()
    limit = TimeLimit(60.0, clock)
    clock.now = 110.0
    patience = Stalled(limit, 2.0)
    clock.now = 110.0 + improved
    patience.better()
    clock.now = 110.0 + elapsed
    assert patience.idle == pytest.approx(elapsed - improved)
    assert patience() == (Reason.FINISHED if stalled else None)


def test_every_reason_has_a_sentence():
    assert len({reason.sentence for reason in Reason}) == len(Reason)
