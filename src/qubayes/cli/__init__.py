"""The command line: one thin command per stage (design §10)."""

from importlib import import_module
from pkgutil import iter_modules

import typer

from .shell import guarded

app = typer.Typer(
    name="qubayes",
    help="Learn the structure of Bayesian networks through the smallest QUBO known.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _stages() -> None:
    # A callback keeps the name of a command necessary even while there is only one.
    pass


for _module in sorted(m.name for m in iter_modules(__path__) if m.name.endswith("_command")):
    import_module(f".{_module}", __name__).register(app)


def main() -> None:
    """Run the command line; bad input becomes one line and exit code 1."""
    guarded(app)
