"""Options of commands: single ones, and groups that become one settings object.

A parameter with the default `made_by(make)` is spelled out on the command line as the parameters of
the function or class `make`, and gets what that returns. Options of settings are in their
annotations (foundation/settings.py). Parameters of the same name are one option. The functions
import what they make when they are called: the command line starts without numpy."""

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

import typer

from ..foundation.errors import SettingError
from ..foundation.settings import Option
from ..settings import (
    ALL,
    DEFAULT_PARENTS,
    AritiesOption,
    Ess,
    KnowledgeOption,
    MaxParents,
    PenaltyFactor,
    PossibleParents,
    ScoreOption,
)

if TYPE_CHECKING:
    from ..candidates import CandidateSearch
    from ..foundation.workers import Workers

DataFile = Annotated[
    Path,
    typer.Argument(
        help="A table: CSV, TSV, Parquet, Arrow, GOBNILP or FIMI .dat; text also as .gz; "
        "- for standard input.",
        show_default=False,
    ),
]
CandidatesFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE.jkl",
        help="Candidate parent sets: .jkl, .scores, .pss, .qbc.",
        show_default=False,
    ),
]
NetworkFile = Annotated[
    Path,
    typer.Argument(
        help="A network: .bif, .xmlbif, .json, .graphml or .bnlearn.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Threads = Annotated[
    int | None, typer.Option("--threads", help="Use this many threads. Default: all cores.")
]
ScoreName = Annotated[str, ScoreOption]
KnowledgeFile = Annotated[Path | None, KnowledgeOption]
ArityFile = Annotated[Path | None, AritiesOption]
NetworkOutput = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", help="Write the network: .bif .xmlbif .json .dot .graphml .csv ..."
    ),
]
TraceFile = Annotated[
    Path | None, typer.Option("--trace", help="Write the score over time as CSV.")
]


class _MadeBy(NamedTuple):
    """The default of a parameter that stands for a group of options."""

    make: Callable[..., Any]


def made_by(make: Callable[..., Any]) -> Any:
    """Return the default of a parameter that stands for a group of options, made by `make`.

    `make` may be a class of settings; a field that holds settings is a group, too.
    """
    return _MadeBy(make)


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with each group replaced by its options, for typer to read."""

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        _call(command, given)

    options = _options_of(command)
    signature = inspect.Signature([*options.values()])
    with_options.__signature__ = signature  # type: ignore[attr-defined]
    with_options.__annotations__ = {name: each.annotation for name, each in options.items()}
    del with_options.__wrapped__  # typer would look through to the command's parameters
    return with_options


def _maker(parameter: inspect.Parameter) -> Callable[..., Any] | None:
    """Return the `make` of a parameter that stands for a group of options; None for an option."""
    if isinstance(parameter.default, _MadeBy):
        return parameter.default.make
    kinds = get_args(parameter.annotation)
    return next((kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)), None)


def _options_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the options of the function's parameters by name, those of groups in their places."""
    found: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        make = _maker(parameter)
        options = {name: _for_typer(parameter)} if make is None else _options_of(make)
        for each, option in options.items():
            found.setdefault(each, option)
    return found


def _call(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Return what the function returns for the options that were given."""
    arguments = {}
    for name, parameter in inspect.signature(function).parameters.items():
        make, option = _maker(parameter), _option(parameter)
        arguments[name] = given[name] if make is None else _call(make, given)
        if option and option.parse and given[name] is not None:
            arguments[name] = option.parse(given[name])
    return function(**arguments)


def _option(parameter: inspect.Parameter) -> Option | None:
    """Return the `Option` in the annotation of a parameter."""
    return next((each for each in get_args(parameter.annotation) if isinstance(each, Option)), None)


def _for_typer(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter as typer reads it."""
    option = _option(parameter)
    if option is None:
        return parameter.replace(kind=parameter.KEYWORD_ONLY)
    kind = option.given_as or get_args(parameter.annotation)[0]
    read = typer.Option(*option.flags, help=option.help, metavar=option.metavar, min=option.least)
    default = None if parameter.default == () else parameter.default
    return parameter.replace(
        kind=parameter.KEYWORD_ONLY, annotation=Annotated[kind, read], default=default
    )


def search_options(
    max_parents: MaxParents = None,
    score: ScoreName = "auto",
    ess: Ess = 1.0,
    knowledge: KnowledgeFile = None,
    possible_parents: PossibleParents = None,
    penalty: PenaltyFactor = 1.0,
) -> "CandidateSearch":
    """Return what candidate sets are searched for."""
    from ..candidates import CandidateSearch, Knowledge, read_knowledge
    from ..scores import Score

    known = read_knowledge(knowledge) if knowledge else Knowledge()
    every_size = max_parents == ALL
    most = DEFAULT_PARENTS if max_parents is None or max_parents == ALL else max_parents
    chosen = Score(score, ess, penalty)
    return CandidateSearch(most, chosen, known, possible_parents, every_size=every_size)


def given_options(context: typer.Context) -> dict[str, str]:
    """Return {parameter: flag} of the options that stand on the command line."""
    found = {}
    for item in context.command.params:
        source = context.get_parameter_source(item.name or "")
        if (
            item.param_type_name == "option"
            and item.name
            and source
            and source.name == "COMMANDLINE"
        ):
            found[item.name] = max(item.opts, key=len)
    return found


def refuse(given: dict[str, str], names: Iterable[str], why: str) -> None:
    """Raise if one of these options stands on the command line, where it would have no effect."""
    for name in names:
        if name in given:
            raise SettingError(f"{given[name]} has no effect {why}")


def worker_options(
    threads: Threads = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this Dask cluster.")
    ] = None,
) -> "Workers":
    """Return the threads, or the cluster."""
    from ..foundation.workers import Workers

    return Workers(threads, cluster)
