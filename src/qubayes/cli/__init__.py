"""The command line: commands parse options, call one function and print."""

import atexit
import gc
from collections.abc import Callable
from typing import Annotated

import typer

from .. import __version__
from ..foundation.errors import flags_in_messages
from .learn_commands import candidates, example, learn, plan
from .network_commands import (
    compare,
    convert,
    draw,
    feature,
    fit,
    judge,
    query,
    sample,
    score,
)
from .options import spelled_out
from .qubo_commands import decode, embed, formulate, quadratize, subsets
from .shell import Command, Commands, guarded, log_on_stderr
from .solve_commands import check, presolve, solve

__all__ = ["app", "guarded", "main"]

app = typer.Typer(
    name="qubayes",
    cls=Commands,
    help="Learn Bayesian networks from data, optimal or with a gap, or as a QUBO.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def show_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        typer.echo(f"qubayes {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Log settings and the time of each stage on stderr."),
    ] = False,
) -> None:
    """Options before the name of a command; messages of all commands name options as flags."""
    context.with_resource(flags_in_messages())
    context.with_resource(log_on_stderr(verbose=verbose))


# the groups that `qubayes --help` shows
_GROUPS: dict[str, tuple[Callable[..., None], ...]] = {
    "Learn": (learn, plan, example),
    "Networks": (query, feature, score, judge, fit, compare, convert, draw, sample),
    "Steps of learn": (candidates, presolve, solve, check),
    "QUBO": (formulate, subsets, decode, embed, quadratize),
}
for _group, _commands in _GROUPS.items():
    for _command in _commands:
        app.command(cls=Command, rich_help_panel=_group)(spelled_out(_command))


def main() -> None:
    """Run the command line; bad input becomes one line and exit code 1."""
    # Imports make 200,000 objects that stay. Looking through them for garbage, above all at exit,
    # took a fifth of the time of a short command.
    gc.set_threshold(300_000, 20, 20)
    atexit.register(gc.freeze)
    guarded(app)
