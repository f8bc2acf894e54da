"""Progress on a terminal: bars with the remaining time, and a word while kernels are compiled."""

import io
import sys
import time

import numba
import pytest

from qubayes.cli import shell
from qubayes.foundation.progress import COMPILING, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Called by the test itself: pytest puts its own stderr in place between a fixture and its test."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def double(number: int) -> int:
    return 2 * number


def test_compilation_is_told_and_then_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    with shell.progress_bar() as show:
        assert numba.njit(double)(3) == 6
        time.sleep(0.3)  # a bar is drawn ten times a second
        compiled = screen.tell()
        show(Progress("candidates", 1, 4, "best so far"))
    before, after = screen.getvalue()[:compiled], screen.getvalue()[compiled:]
    assert COMPILING.stage in before and "%" not in before
    assert "candidates" in after and "25 %" in after and "best so far" in after
    last = after[: after.rindex("best so far")].rsplit("\x1b[2K", 2)[-2:]  # the lines of the last picture
    assert not any(COMPILING.stage in line for line in last)


def test_nothing_is_told_once_the_bar_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    with shell.progress_bar():
        pass
    length = screen.tell()
    assert numba.njit(double)(4) == 8
    assert screen.tell() == length


def test_no_terminal_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with shell.progress_bar() as show:
        show(Progress("candidates", 1, 4))
    assert not pipe.getvalue()
