"""Progress on a terminal: bars with the remaining time, and a note while kernels are compiled."""

import io
import sys
import time

import numba
import pytest

from qubayes.cli import shell
from qubayes.foundation.progress import Progress


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


def test_a_stage_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    with shell.progress_bar() as show:
        show(Progress("candidates", 1, 4, "best so far"))
        time.sleep(0.3)  # a bar is drawn ten times a second
    shown = screen.getvalue()
    assert (
        "candidates" in shown
        and "25 %" in shown
        and "best so far" in shown
        and "compiling" not in shown
    )


def test_a_compilation_is_shown_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    with shell.progress_bar() as show:
        numba.njit(lambda x: x + 1)(1)
        assert "compiling" in screen.getvalue() and "once on this machine" in screen.getvalue()
        time.sleep(0.3)  # it is drawn no more
        screen.truncate(0)
        show(Progress("candidates", 1, 4))
        time.sleep(0.3)
    assert "candidates" in screen.getvalue() and "compiling" not in screen.getvalue()


def test_no_terminal_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with shell.progress_bar() as show:
        show(Progress("candidates", 1, 4))
    assert not pipe.getvalue()
