"""Write docs/commands.md from the program itself; with --check only tell whether it is up to date."""

import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import typer

from qubayes.cli import app
from qubayes.cli.shell import filled
from qubayes.search import SOLVERS, solver_named

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
HEAD = """# Commands

Made from the program by `python scripts/command_reference.py`; a test keeps it up to date.

Results go to stdout, progress to stderr. Exit codes: 0 done, 1 bad input (one line on stderr says what to do), 2 bad
usage, 130 interrupted (the best so far is written where there is one).
"""


def reference() -> str:
    """The whole page."""
    group: Any = typer.main.get_command(app)
    commands = "".join(_command(name, group.commands[name]) for name in sorted(group.commands))
    return HEAD + _common(group) + commands + _solvers()


def _common(group: Any) -> str:
    """The options that stand before the name of a command."""
    rows = "".join(_row(_names(item), item) for item in group.params if item.name != "help")
    head = (
        "\n## Options of all commands\n\n"
        "They stand before the name of the command: `qubayes --verbose learn DATA`.\n\n"
    )
    return f"{head}| option | what it does | default |\n|---|---|---|\n{rows}"


def _command(name: str, command: Any) -> str:
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    options = [
        item for item in command.params if item.param_type_name == "option" and item.name != "help"
    ]
    usage = " ".join(
        ["qubayes", name, *(_argument(item) for item in arguments), "[OPTIONS]" if options else ""]
    )
    rows = [_row(f"`{_argument(item)}`", item) for item in arguments]
    rows += [_row(_names(item), item) for item in options]
    table = "".join(rows)
    head = "| argument or option | what it does | default |\n|---|---|---|\n"
    return f"\n## {name}\n\n{command.help.strip()}\n\n    {usage.strip()}\n\n{head}{table}"


def _solvers() -> str:
    """What each solver does, and the settings that `--set` takes."""
    rows = []
    for name in SOLVERS:
        solver = type(solver_named(name))
        told = " ".join((solver.__doc__ or "").split("\n\n")[0].split()).replace("|", chr(92) + "|")
        settings = ", ".join(f"`{_setting(field)}`" for field in fields(solver))
        takes = "the QUBO" if solver.takes == "formulation" else "candidate sets"
        rows.append(f"| `{name}` | {told} | {takes} | {solver.counts} | {settings} |\n")
    head = (
        "| solver | what it does | searches | `--moves` counts | settings and their defaults |\n"
        "|---|---|---|---|---|\n"
    )
    return (
        "\n## Solvers\n\nOf `solve --solver NAME --set SETTING=VALUE`:\n\n" + head + "".join(rows)
    )


def _setting(field: Any) -> str:
    default = field.default_factory() if field.default is MISSING else field.default
    told = str(default).lower() if isinstance(default, bool) else str(default)
    return str(field.name) if default is None or default == {} else f"{field.name}={told}"


def _argument(item: Any) -> str:
    name: str = item.metavar or item.name.upper()
    return name if item.required else f"[{name}]"


def _names(item: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*item.opts, *item.secondary_opts))
    return f"{names} `{item.metavar}`" if item.metavar else names


def _row(name: str, item: Any) -> str:
    default = item.default
    hidden = item.required or default is None or default == () or default == [] or default is False
    told = "" if hidden else f"`{default}`"
    text = " ".join(filled(item.help or "", SOLVERS).split()).replace("|", "\\|")
    return f"| {name.replace('|', chr(92) + '|')} | {text} | {told} |\n"


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(
            0
            if PAGE.read_text() == reference()
            else "docs/commands.md is out of date; run this without --check"
        )
    PAGE.write_text(reference())
