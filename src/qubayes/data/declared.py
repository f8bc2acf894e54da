"""States that are declared outside the data."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..foundation.errors import DataError, FormatError
from ..foundation.files import ending, parse_json, read_text, shown
from .columns import Column, Intervals
from .settings import MOST_STATES, Arities

if TYPE_CHECKING:
    from ..network import Network


def declare(columns: list[Column], arities: str | Path | Arities) -> tuple[list[Column], str]:
    """The columns with their declared states, and what declared them."""
    if isinstance(arities, Mapping):
        return _with_states(columns, arities, "the declaration"), "declared"
    path = Path(arities)
    if ending(path) == ".bif":
        return _with_network(columns, path), f"network {path.name.removesuffix('.gz')}"
    if ending(path) != ".json":
        raise FormatError(f"arities from {path}; give a .bif network or a .json file")
    return _with_states(columns, _read_json(path), str(path)), path.name


def _read_json(path: Path) -> Any:
    text = read_text(path)
    try:
        value = parse_json(text)
    except FormatError as error:
        raise FormatError(f"{path} is {error}; give {_EXAMPLE}") from None
    if not isinstance(value, dict):
        raise FormatError(f"{path} holds no JSON object; give {_EXAMPLE}")
    return value


_EXAMPLE = '{"column": ["state", "state"], "other": 3}'


def _with_network(columns: list[Column], path: Path) -> list[Column]:
    # The only look ahead in the pipeline: a network may declare the states of the data that it is compared with.
    from ..network.bif import read_bif

    network = read_bif(path)
    states = dict(zip(network.names, network.states or (), strict=True))
    if not any(column.name in states for column in columns):
        raise DataError(f"{path} declares no column of the data ({columns[0].name!r}, ...); give their network")
    return [_declared(column, states.get(column.name)) for column in columns]


def in_intervals_of(network: "Network", columns: list[Column]) -> list[Column]:
    """The columns, numbers in the intervals of the network where it has such; codes and types stay what they are."""
    states = dict(zip(network.names, network.states or (), strict=bool(network.states)))
    found = {name: intervals for name, its in states.items() if (intervals := Intervals.of(its))}
    return [
        column._replace(declared=found[column.name]) if column.declared is None and column.name in found else column
        for column in columns
    ]


def _declared(column: Column, states: Any) -> Column:
    """The column with these states if there are any; a column of intervals stays one."""
    if states is None or isinstance(column.declared, Intervals):
        return column
    own = Intervals.of(states) if column.declared is None and isinstance(states, tuple) else None
    return column._replace(declared=own or states)


def _with_states(columns: list[Column], arities: Mapping[str, Any], source: str) -> list[Column]:
    names = [column.name for column in columns]
    known = set(names)
    for name, states in arities.items():
        if name not in known:
            raise DataError(f"{source} names {name!r}, which is no column; columns are {_some(names)}")
        if not _fine(states):
            raise DataError(
                f"{source} gives {name!r} the states {shown(states)}; give a list of different texts, or a number"
                f" from 1 to {MOST_STATES}"
            )
    declared = {name: s if isinstance(s, int) else tuple(s) for name, s in arities.items()}
    return [_declared(column, declared.get(column.name)) for column in columns]


def _fine(states: Any) -> bool:
    if isinstance(states, bool) or not isinstance(states, int | list | tuple):
        return False
    if isinstance(states, int):
        return 1 <= states <= MOST_STATES
    return 1 <= len(set(states)) == len(states) <= MOST_STATES if all(isinstance(s, str) for s in states) else False


def _some(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
