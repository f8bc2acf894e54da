"""States that are declared outside the data."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError, FormatError
from ..files import ending, parse_json, read_text, shown
from .bins import edges_of
from .columns import MISSING_STATE, Column
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
    states = dict(zip(network.names, network.states or (), strict=True)) | intervals_of(network)
    if not any(column.name in states for column in columns):
        raise DataError(f"{path} declares no column of the data ({columns[0].name!r}, ...); give their network")
    return [column._replace(declared=states.get(column.name, column.declared)) for column in columns]


def intervals_of(network: "Network") -> dict[str, tuple[str, ...]]:
    """The intervals into which numbers were cut before the network was learned, by the names of their columns.

    As the `arities` of settings they cut other rows alike.

    >>> import polars
    >>> from qubayes import ReadSettings, learn, read
    >>> table = polars.DataFrame({"dose": [0.5, 1.5, 2.5, 3.5] * 5, "cured": ["no", "yes"] * 10})
    >>> network = learn(table, max_parents=1, reading=ReadSettings(bins=2)).network
    >>> intervals_of(network)
    {'dose': ('<2.5', '>=2.5')}
    >>> others = polars.DataFrame({"dose": [9.9, 0.1], "cured": ["yes", "no"]})
    >>> read(others, ReadSettings(arities=intervals_of(network))).codes.tolist()
    [[1, 0], [1, 0]]
    """
    found = {}
    for name, states in zip(network.names, network.states or (), strict=bool(network.states)):
        intervals = tuple(state for state in states if state != MISSING_STATE)  # which is a state if there is need
        if edges_of(intervals):
            found[name] = intervals
    return found


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
    return [column._replace(declared=declared.get(column.name, column.declared)) for column in columns]


def _fine(states: Any) -> bool:
    if isinstance(states, bool) or not isinstance(states, int | list | tuple):
        return False
    if isinstance(states, int):
        return 1 <= states <= MOST_STATES
    return 1 <= len(set(states)) == len(states) <= MOST_STATES if all(isinstance(s, str) for s in states) else False


def _some(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
