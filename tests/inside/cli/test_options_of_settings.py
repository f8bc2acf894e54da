"""A class of settings becomes options of a command."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from qubayes.cli.options import made_by, spelled_out
from qubayes.foundation.settings import Option


@dataclass(frozen=True)
class Inside:
    """Settings inside others."""

    low: Annotated[tuple[int, ...], Option("Lows.", given_as=list[int] | None)] = ()


@dataclass(frozen=True)
class Outside:
    """Settings with options of all kinds."""

    text: Annotated[str | None, Option("Text.", ("--text", "-t"), "TEXT")] = None
    number: Annotated[int, Option("Number.", least=0)] = 1
    parts: Annotated[
        list[str] | None, Option("Parts.", given_as=str | None, parse=lambda text: text.split("+"))
    ] = None
    inside: Inside | None = None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], Outside(inside=Inside(None))),
        (["-t", "x", "--number", "3"], Outside("x", 3, inside=Inside(None))),
        (
            ["--parts", "a+b", "--low", "1", "--low", "2"],
            Outside(parts=["a", "b"], inside=Inside([1, 2])),
        ),
    ],
)
def test_a_class_of_settings_becomes_options(given, expected):
    made = []

    def command(settings: Outside = made_by(Outside)) -> None:
        made.append(settings)

    one = typer.Typer()
    one.command()(spelled_out(command))
    assert CliRunner().invoke(one, given).exit_code == 0
    assert made == [expected]
    assert CliRunner().invoke(one, ["--number", "-1"]).exit_code == 2
