"""Ctrl-C inside and outside blocks that stop on it."""

import os
import signal
import threading

import numpy as np
import pytest

from qubayes.foundation.progress import raising, stopping

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_interrupt_sets_the_flag_and_the_second_raises():
    stop, before = np.zeros(1, np.bool_), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), stopping(stop):
        interrupt()
        assert stop[0]
        interrupt()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_stops_the_blocks_around_it():
    outer, inner = np.zeros(1, np.bool_), np.zeros(1, np.bool_)
    with stopping(outer):
        with stopping(inner):
            interrupt()
        assert outer[0] and inner[0]
    again = np.zeros(1, np.bool_)
    with stopping(again):
        pass
    assert not again[0]
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_an_interrupt_before_a_block_is_not_forgotten():
    outer, inner = np.zeros(1, np.bool_), np.zeros(1, np.bool_)
    with stopping(outer):
        interrupt()
        with stopping(inner):
            assert inner[0]
        with pytest.raises(KeyboardInterrupt), raising():
            pytest.fail("the block began")


def test_a_block_inside_may_raise():
    outer, before = np.zeros(1, np.bool_), signal.getsignal(signal.SIGINT)
    with stopping(outer):
        with pytest.raises(KeyboardInterrupt), raising():
            interrupt()
        assert not outer[0]
        interrupt()
        assert outer[0]
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_leave_the_handler_alone():
    handlers = []

    def run() -> None:
        with stopping(np.zeros(1, np.bool_)), raising():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
