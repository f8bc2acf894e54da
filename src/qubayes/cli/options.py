"""Options that several commands share."""

import functools
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..foundation.errors import SettingError

DataFile = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet, Arrow, GOBNILP or FIMI .dat; text also as .gz; - for standard input.",
        show_default=False,
    ),
]
CandidatesFile = Annotated[
    Path, typer.Argument(metavar="FILE.jkl", help="Candidate sets: .jkl, .scores, .pss, .qbc.", show_default=False)
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads here; all cores unless given.")]
Cluster = Annotated[str | None, typer.Option("--cluster", metavar="ADDRESS", help="Run on this Dask cluster.")]

MaxParents = Annotated[int, typer.Option("--max-parents", "-m", help="Largest number of parents of a variable.")]
PossibleParents = Annotated[
    int | None,
    typer.Option(
        "--possible-parents",
        metavar="K",
        help="Consider only the K parents of each variable that score best alone.",
    ),
]
ScoreName = Annotated[
    str, typer.Option("--score", metavar="NAME", help="Local score, as bdeu, bds, bic or k2; a wrong name lists all.")
]
Ess = Annotated[float, typer.Option("--ess", help="Equivalent sample size of bdeu and bds.")]
KnowledgeFile = Annotated[
    Path | None, typer.Option("--knowledge", help="JSON with forbidden and required edges, tiers, numbers of parents.")
]

TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds for the solver; 10 unless this or --moves is given.")
]
Moves = Annotated[
    int | None, typer.Option("--moves", help="End after this many moves instead: repeatable on any machine.")
]
SolverSettings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the solver; may be repeated.")
]
NetworkOutput = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write the network: .bif .xmlbif .json .dot .graphml .csv ...")
]
TraceFile = Annotated[Path | None, typer.Option("--trace", help="Write the score over time as CSV.")]
BootstrapSamples = Annotated[
    int,
    typer.Option(
        "--bootstrap", metavar="SAMPLES", help="Estimate the confidence in each edge from this many resamplings."
    ),
]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Write a page to look at: .html.")]
QuboFile = Annotated[
    Path | None, typer.Option("--qubo", help="Write the QUBO of the same problem: .bqm .coo .qubo .cqm .lp ...")
]
RunDirectory = Annotated[
    Path | None, typer.Option("--run-dir", help="Keep the result of every stage here, and resume from it.")
]

Order = Annotated[
    str, typer.Option("--order", help="Order bits: chordal; scc as in the paper; on demand: adjacent, minimal.")
]
Penalty = Annotated[str, typer.Option("--penalty", help="Penalties of the QUBO: tight, or paper.")]
Cover = Annotated[
    str, typer.Option("--cover", help="How subsets are found: auto, search, ilp (Algorithm 2 first) or ilp-only.")
]
PresolveSeconds = Annotated[
    float,
    typer.Option("--presolve", metavar="SECONDS", help="Spend this on removing sets that no optimum needs first."),
]
SubsetsFile = Annotated[
    Path | None, typer.Option("--subsets", help="Take the subsets from this .qbs file instead of finding them.")
]
ModelOutput = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="Write the model: .bqm .coo .qubo .mtx .npz; constrained: .cqm .lp .qplib .json; a picture: .svg",
    ),
]
SolverName = Annotated[
    str, typer.Option(help="anneal, exact, auto, digital, sa, bqp, hillclimb, order-sa, asobs or dimod.")
]
StartNetwork = Annotated[Path | None, typer.Option(help="Start from this network (any network file).")]
NamesFile = Annotated[
    Path | None, typer.Option(help="Names of the variables: a network file, or a text with one on each line.")
]
BoundSeconds = Annotated[float, typer.Option(metavar="SECONDS", help="Spend this on a bound first, to know the gap.")]
CheckBits = Annotated[
    bool | None,
    typer.Option("--bits/--no-bits", help="Formulate, and check energy = -score on the QUBO; on for anneal."),
]
CertificateFile = Annotated[
    Path | None, typer.Option(help="Prove by `exact`, and write a certificate that `qubayes check` checks.")
]
BestCount = Annotated[int | None, typer.Option(metavar="K", help="List the K best networks, by `exact`.")]
WithinFactor = Annotated[
    float | None, typer.Option(metavar="FACTOR", help="List all networks within this Bayes factor of the best.")
]
CoverChoice = Annotated[
    str | None, typer.Option(help="How subsets are found: auto unless given, search, ilp or ilp-only.")
]
Ordering = Annotated[
    str, typer.Option(help="The order in constrained models (.cqm .lp .qplib): penalties, or inequalities.")
]
KnownNetwork = Annotated[
    Path | None, typer.Option(help="A good network for the orders adjacent and minimal; found unless given.")
]
UnionData = Annotated[Path | None, typer.Option(help="Score unions of subsets on these data, as the paper does.")]
UnionScore = Annotated[str | None, typer.Option(help="Score on the data; that of the candidate sets unless given.")]
UnionEss = Annotated[float, typer.Option(help="Equivalent sample size of --score.")]
Scales = Annotated[
    str, typer.Option(metavar="KIND=FACTOR,...", help="Multiply penalties: order, edge, triangle, slack.")
]
Digits = Annotated[int | None, typer.Option(help="Round coefficients to this many decimal places.")]
Precision = Annotated[
    int | None, typer.Option(help="Round coefficients to whole numbers of this many bits times a step.")
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
            metavar="K|COLUMN=K|COLUMN=A,B,...",
            help="Cut into K intervals, or at these bounds: a column, or all of fractions or over 20 whole numbers.",
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


def with_reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with its parameter `reading` (a ReadSettings) replaced by six options.

    Typer makes options of a function's parameters; the command gets a signature that has these in place of `reading`.
    """

    @functools.wraps(command)
    def spelled_out(**arguments: Any) -> Any:
        from ..data import ReadSettings

        given = {name: arguments.pop(name) for name in _READING}
        given["bins"] = parsed_bins(given["bins"] or [])
        given["ignore"] = tuple(given["ignore"] or ())
        return command(**arguments, reading=ReadSettings(**given))

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


def parsed_bins(texts: list[str]) -> int | dict[str, int | list[float]] | None:
    """Return 5 for "5", {"age": 5} for "age=5", {"age": [18, 40]} for "age=18,40" (bounds between intervals)."""
    named: dict[str, int | list[float]] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        whole = number.isascii() and number.isdigit()
        try:
            bounds = [] if whole else [float(bound) for bound in number.split(",") if equals]
        except ValueError:
            bounds = []
        if not (whole or bounds) or (not equals and len(texts) > 1):
            raise SettingError(
                f"--bins {text}; give one number for all columns, or COLUMN=NUMBER or COLUMN=BOUND,BOUND,... for each"
            )
        if not equals:
            return int(number)
        named[name] = int(number) if whole else bounds
    return named or None


def parsed_settings(texts: list[str] | None) -> dict[str, Any]:
    """Return {name: value} of NAME=VALUE; a value is read as JSON, or else taken as text."""
    found: dict[str, Any] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise SettingError(f"--set {text}; give NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except (json.JSONDecodeError, RecursionError):
            found[name] = value
    return found
