"""Progress on a terminal: bars with the remaining time, and a note while kernels are compiled."""

import io
import sys
import time

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
    monkeypatch.setattr("qubayes.foundation.jit.uncompiled", set())
    with shell.progress_bar() as show:
        show(Progress("candidates", 1, 4, "best so far"))
        time.sleep(0.3)  # a bar is drawn ten times a second
    shown = screen.getvalue()
    assert "candidates" in shown and "25 %" in shown and "best so far" in shown and "compiling" not in shown


def test_compilation_is_announced_where_kernels_are_not_on_disk_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    monkeypatch.setattr("qubayes.foundation.jit.uncompiled", {"qubayes.candidates.scanning"})
    with shell.progress_bar():
        time.sleep(0.3)
    assert "compiling" in screen.getvalue() and "once on this machine" in screen.getvalue()


def test_no_terminal_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with shell.progress_bar() as show:
        show(Progress("candidates", 1, 4))
    assert not pipe.getvalue()
