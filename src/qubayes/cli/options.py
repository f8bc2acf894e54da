"""Options that several commands share."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..foundation.errors import SettingError

if TYPE_CHECKING:
    from ..data import ReadSettings

DataFile = Annotated[
    Path, typer.Argument(help="CSV, TSV, Parquet, Arrow, GOBNILP or FIMI .dat; text also as .gz.", show_default=False)
]
CandidatesFile = Annotated[
    Path, typer.Argument(metavar="FILE.jkl", help="Candidate sets: .jkl, .scores, .pss, .qbc.", show_default=False)
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads here; all cores unless given.")]
Cluster = Annotated[str | None, typer.Option("--cluster", metavar="ADDRESS", help="Run on this Dask cluster.")]

MaxParents = Annotated[int, typer.Option("--max-parents", "-m", help="Largest number of parents of a variable.")]
ScoreName = Annotated[
    str, typer.Option("--score", metavar="NAME", help="Local score, as bdeu, bds, bic or k2; a wrong name lists all.")
]
Ess = Annotated[float, typer.Option("--ess", help="Equivalent sample size of bdeu and bds.")]
KnowledgeFile = Annotated[
    Path | None, typer.Option("--knowledge", help="JSON with forbidden and required edges, tiers, numbers of parents.")
]

_READING = {
    "missing": Annotated[
        str,
        typer.Option("--missing", metavar="error|drop|state", help="Missing values: refuse, drop rows, or a state."),
    ],
    "bins": Annotated[
        list[str] | None,
        typer.Option(
            "--bins",
            metavar="K|COLUMN=K",
            help="Cut this column into K intervals; or all columns of fractions or of more than 20 whole numbers.",
        ),
    ],
    "bin_method": Annotated[
        str, typer.Option("--bin-method", metavar="quantile|width", help="Intervals with equal counts or equal widths.")
    ],
    "arities": Annotated[
        Path | None,
        typer.Option(
            "--arities", help="Declare states: a .bif network, or JSON with the states or their number by column."
        ),
    ],
    "ignore": Annotated[
        list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="Leave a column out; may be repeated.")
    ],
    "format": Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", help="csv, tsv, parquet, arrow, gobnilp, fimi; by the ending unless given."
        ),
    ],
}
_DEFAULTS = {"missing": "error", "bin_method": "quantile"}


def reads_data(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with its parameter `reading` (a ReadSettings) spelled out as options on the command line.

    Typer makes options of a function's parameters; so that each command need not repeat these six, it is given a
    signature that has them in the place of `reading`.
    """

    @functools.wraps(command)
    def spelled_out(**arguments: Any) -> Any:
        reading = {name: arguments.pop(name) for name in _READING}
        return command(**arguments, reading=_settings(**reading))

    signature = inspect.signature(command, eval_str=False)
    own = [p.replace(kind=p.KEYWORD_ONLY) for p in signature.parameters.values() if p.name != "reading"]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(name), annotation=kind)
        for name, kind in _READING.items()
    ]
    spelled_out.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    kept = {name: kind for name, kind in command.__annotations__.items() if name != "reading"}
    spelled_out.__annotations__ = {**kept, **_READING}
    del spelled_out.__wrapped__  # typer would look through to the original's annotations
    return spelled_out


def _settings(
    missing: Any, bins: list[str] | None, bin_method: Any, arities: Path | None, ignore: list[str] | None, format: Any
) -> "ReadSettings":
    from ..data import ReadSettings

    return ReadSettings(missing, _bins(bins or []), bin_method, arities, tuple(ignore or ()), format)


def _bins(texts: list[str]) -> "int | dict[str, int] | None":
    """5, or {"age": 5} for age=5; one number for all, or one for each column named."""
    named: dict[str, int] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not number.isascii() or not number.isdigit() or (not equals and len(texts) > 1):
            raise SettingError(f"--bins {text}; give one number for all columns, or COLUMN=NUMBER for each")
        if not equals:
            return int(number)
        named[name] = int(number)
    return named or None
