"""What the command line prints: control characters, progress, long messages, any encoding."""

import io
import json
import sys

import pytest

from candidate_cases import CONTROL
from qubayes import QubayesError
from qubayes.cli import shell
from qubayes.foundation.progress import Progress

# The terminal


def test_control_characters_are_spelled_out() -> None:
    assert (
        shell.printable("a\x1b]0;x\x07b\x9b\u202e\ud800é") == "a\\x1b]0;x\\x07b\\x9b\\u202e\\ud800é"
    )
    assert shell.printable("two\nlines\tand a tab") == "two\nlines\tand a tab"


def test_progress_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "200")
    with shell.progress_bar() as show:
        show(Progress("[red]x", 1, 2, "[link=http://x]y[/link] {task.id} %s \x1b]0;owned\x07"))
        show(Progress("[red]x", 2, 2, "[/nothing] {0.__class__}"))
    shown = screen.getvalue()
    assert "[/nothing] {0.__class__}" in shown and "[red]x" in shown
    assert "\x1b]0;owned" not in shown and "\x1b]8" not in shown


def test_long_messages_are_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        raise QubayesError("x" * 10**6)

    with pytest.raises(SystemExit):
        shell.guarded(command)
    assert len(capsys.readouterr().err) < 3000


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_name_can_be_printed_in_any_encoding(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    monkeypatch.setattr(sys, "stdout", stream)
    value = {"雨 \ud800 \x7f \x9b": "é\u2028"}
    shell.print_json(value)
    shell.say("雨 \ud800 é")
    stream.flush()
    text = stream.buffer.getvalue().decode(encoding)
    document, line = text.rsplit("\n", 2)[:2]
    assert json.loads(document) == value and "\\ud800" in line
    assert not CONTROL.search(text)
