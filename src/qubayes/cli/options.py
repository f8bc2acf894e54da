"""Options of commands: single ones, and groups that become one settings object.

A parameter with the default `made_by(make)` is spelled out on the command line as the parameters of the function
`make`, and gets what that returns. Parameters of the same name are one option. The functions import what they make when
they are called: the command line starts without numpy.
"""

import functools
import inspect
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..foundation.errors import SettingError

if TYPE_CHECKING:
    from ..candidates import Search
    from ..data import ReadSettings
    from ..foundation.workers import Workers
    from ..search import Limits

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
NetworkFile = Annotated[
    Path, typer.Argument(help="A network: .bif, .xmlbif, .json, .dot, .graphml, .bnlearn or .csv.", show_default=False)
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="NUMBER", help="The same seed gives the same result.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads here; all cores unless given.")]
ScoreName = Annotated[
    str,
    typer.Option(
        "--score", metavar="NAME", help="Local score, as bdeu, bds, bic or k2; an unknown name prints the list."
    ),
]
Ess = Annotated[float, typer.Option("--ess", help="Equivalent sample size of bdeu and bds.")]
KnowledgeFile = Annotated[
    Path | None, typer.Option("--knowledge", help="JSON with what is known: edges, tiers, priors, order.")
]
ArityFile = Annotated[
    Path | None,
    typer.Option(
        "--arities", help="Declare states: a .bif network, or JSON with the states or their number by column."
    ),
]
MaxParents = Annotated[
    int | None,
    typer.Option("--max-parents", "-m", help="Maximum number of parents; default 3, or what fits --time-limit."),
]
PossibleParents = Annotated[
    int | None,
    typer.Option(
        metavar="K", help="Consider only K parents of each variable: the best single ones and their best partners."
    ),
]
TotalSeconds = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds for all stages; 10 for the solver unless given.")
]
NetworkOutput = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write the network: .bif .xmlbif .json .dot .graphml .csv ...")
]
TraceFile = Annotated[Path | None, typer.Option("--trace", help="Write the score over time as CSV.")]
Order = Annotated[
    str, typer.Option("--order", help="Order bits: chordal; scc as in the paper; on demand: adjacent, minimal.")
]
Penalty = Annotated[str, typer.Option("--penalty", help="Penalties of the QUBO: tight, or paper.")]
Cover = Annotated[
    str,
    typer.Option(
        "--cover", help="How subsets are found: auto, search, ilp (the paper's Algorithm 2 first) or ilp-only."
    ),
]
PresolveSeconds = Annotated[
    float,
    typer.Option("--presolve", metavar="SECONDS", help="Spend this on removing sets that no optimum needs first."),
]
SubsetsFile = Annotated[
    Path | None, typer.Option("--subsets", help="Take the subsets from this .qbs file instead of finding them.")
]


BestCount = Annotated[int | None, typer.Option(metavar="K", help="List the K best networks, by `exact`.")]
WithinFactor = Annotated[
    float | None, typer.Option(metavar="FACTOR", help="List all networks within this Bayes factor of the best.")
]


class _MadeBy(NamedTuple):
    """The default of a parameter that stands for a group of options."""

    make: Callable[..., Any]


def made_by(make: Callable[..., Any]) -> Any:
    """Return the default that marks a parameter as a group: what `make` returns for the options in its signature."""
    return _MadeBy(make)


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with each group of options replaced by the options themselves, for typer to read."""

    def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
        found: dict[str, inspect.Parameter] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            group = isinstance(parameter.default, _MadeBy)
            new = parameters_of(parameter.default.make) if group else {name: parameter}
            found |= {each: new[each].replace(kind=parameter.KEYWORD_ONLY) for each in new if each not in found}
        return found

    def call(function: Callable[..., Any], given: dict[str, Any]) -> Any:
        parameters = inspect.signature(function).parameters
        groups = {name: each.default.make for name, each in parameters.items() if isinstance(each.default, _MadeBy)}
        return function(**{name: call(groups[name], given) if name in groups else given[name] for name in parameters})

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        call(command, given)

    options = parameters_of(command)
    with_options.__signature__ = inspect.Signature([*options.values()])  # type: ignore[attr-defined]
    with_options.__annotations__ = {name: each.annotation for name, each in options.items()}
    del with_options.__wrapped__  # typer would look through to the command's parameters
    return with_options


def reading_options(
    missing: Annotated[
        str, typer.Option(metavar="error|drop|state", help="Missing values: refuse, drop rows, or a state.")
    ] = "error",
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K|COLUMN=K|COLUMN=A,B,...",
            help="Cut into K intervals, or at these bounds: a column, or all of fractions or over 20 whole numbers.",
        ),
    ] = None,
    bin_method: Annotated[
        str, typer.Option(metavar="quantile|width", help="Intervals with equal counts or equal widths.")
    ] = "quantile",
    arities: ArityFile = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN,...", help="Leave these columns out; may be repeated."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="csv, tsv, parquet, arrow, gobnilp, fimi; by the ending unless given."),
    ] = None,
) -> "ReadSettings":
    """Return how the data are read."""
    from ..data import ReadSettings

    given: dict[str, Any] = {"missing": missing, "bin_method": bin_method, "format": format}  # `ReadSettings` checks
    return ReadSettings(**given, bins=parsed_bins(bins or []), arities=arities, ignore=tuple(ignore or ()))


def search_options(
    max_parents: MaxParents = None,
    score: ScoreName = "bdeu",
    ess: Ess = 1.0,
    knowledge: KnowledgeFile = None,
    possible_parents: PossibleParents = None,
) -> "Search":
    """Return what candidate sets are searched for."""
    from ..candidates import Knowledge, Search, read_knowledge
    from ..scores import Score

    known = read_knowledge(knowledge) if knowledge else Knowledge()
    return Search(3 if max_parents is None else max_parents, Score(score, ess), known, possible_parents)


Patience = Annotated[
    float | None,
    typer.Option(
        metavar="FACTOR",
        help="End once annealing found nothing better for this times as long as the best took; auto: 3, anneal: inf.",
    ),
]


def limit_options(
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for the solver; 10 unless this or --moves is given.")
    ] = None,
    moves: Annotated[
        int | None, typer.Option(help="End after this many moves instead: repeatable on any machine.")
    ] = None,
    seed: Seed = 0,
) -> "Limits":
    """Return the limits of a solver."""
    from ..learning import limits_of

    return limits_of(time_limit, moves, seed)


def given_options(context: typer.Context) -> dict[str, str]:
    """Return {parameter: flag} of the options that stand on the command line."""
    found = {}
    for item in context.command.params:
        source = context.get_parameter_source(item.name or "")
        if item.param_type_name == "option" and item.name and source and source.name == "COMMANDLINE":
            found[item.name] = max(item.opts, key=len)
    return found


def refuse(given: dict[str, str], names: Iterable[str], why: str) -> None:
    """Raise if one of these options stands on the command line, where it would have no effect."""
    for name in names:
        if name in given:
            raise SettingError(f"{given[name]} has no effect {why}")


def worker_options(
    threads: Threads = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster.")] = None,
) -> "Workers":
    """Return the threads, or the cluster."""
    from ..foundation.workers import Workers

    return Workers(threads, cluster)


def parsed_bins(texts: list[str]) -> int | dict[str, int | list[float]] | None:
    """Return 3 for "3", {"age": 3} for "age=3", {"age": [18, 40]} for "age=18,40" (bounds between intervals)."""
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
