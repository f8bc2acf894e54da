"""The command line: one thin command for each verb."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated

import typer

from .. import __version__
from .shell import guarded

app = typer.Typer(
    name="qubayes",
    help="Learn the structure of Bayesian networks, with a proof or a gap, and as a compact QUBO.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"qubayes {__version__}")
        raise typer.Exit


@app.callback()
def _stages(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


for _module in sorted(m.name for m in iter_modules(__path__) if m.name.endswith("_command")):
    import_module(f".{_module}", __name__).register(app)


def main() -> None:
    """Run the command line; bad input becomes one line and exit code 1."""
    guarded(app)
