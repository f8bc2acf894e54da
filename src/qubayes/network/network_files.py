"""Network files: one reader and one writer for each ending. docs/networks.md says what each format can hold.

To add a format, write `read(path) -> Network` and `text(network) -> str`, and add a line to `_FORMATS`.
"""

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..foundation.errors import FormatError
from ..foundation.files import ending, replacing
from .assembly import MOST_BYTES, MOST_VERTICES, all_names
from .bif import bif_text, read_bif
from .graph_files import (
    adjacency_text,
    dot_text,
    modelstring_text,
    read_adjacency,
    read_dot,
    read_modelstring,
)
from .json_files import json_text, read_json
from .network import Network
from .xml_files import graphml_text, read_graphml, read_xmlbif, xmlbif_text


class _Format(NamedTuple):
    read: Callable[[str | Path], Network]
    text: Callable[[Network], str]
    tables: bool  # whether it holds states and probabilities
    needs_tables: bool = False


_XMLBIF = _Format(read_xmlbif, xmlbif_text, True, needs_tables=True)
_DOT = _Format(read_dot, dot_text, False)
_FORMATS = {
    ".bif": _Format(read_bif, bif_text, True, needs_tables=True),
    ".xmlbif": _XMLBIF,
    ".bifxml": _XMLBIF,
    ".xml": _XMLBIF,
    ".json": _Format(read_json, json_text, True),
    ".dot": _DOT,
    ".gv": _DOT,
    ".graphml": _Format(read_graphml, graphml_text, False),
    ".bnlearn": _Format(read_modelstring, modelstring_text, False),
    ".csv": _Format(read_adjacency, adjacency_text, False),
}


def read_network(path: str | Path) -> Network:
    """The network in the file: .bif, .xmlbif (.bifxml, .xml), .json, .dot (.gv), .graphml, .bnlearn or .csv; or .gz."""
    return _format(path).read(path)


def write_network(network: Network, path: str | Path, about: Mapping[str, Any] | None = None) -> None:
    """Write the network in the format of the path's ending; packed if it ends in .gz. The file is whole or absent.

    `about`: facts such as score and stamp that a .json file keeps beside the network (`read_about` gives them back);
    the other formats have no place for them.
    """
    chosen = _format(path)
    _check_size(network, path)
    _check_encodable(network)
    text = json_text(network, about) if chosen.read is read_json else chosen.text(network)
    content = text.encode()
    if len(content) > MOST_BYTES:
        raise FormatError(f"{path} would hold {len(content)} bytes, more than the {MOST_BYTES} that are read back")
    with replacing(path, binary=True) as file:
        # No time stamp: the same network gives the same file.
        file.write(gzip.compress(content, mtime=0) if Path(path).suffix.lower() == ".gz" else content)


def holds_tables(path: str | Path) -> bool:
    """Whether the format of the path's ending keeps states and probabilities; the others keep the graph alone."""
    return _format(path).tables


def check_network_path(path: str | Path, *, tables: bool = True) -> None:
    """Raise if no network, or none without probabilities, can be written there because of the path's ending.

    Asked before a long search, not after it.
    """
    if _format(path).needs_tables and not tables:
        raise FormatError(
            f"a {ending(path)} file needs probabilities, which take data: `qubayes learn` has them; here write .json,"
            " .dot, .graphml, .bnlearn or .csv"
        )


def _format(path: str | Path) -> _Format:
    try:
        return _FORMATS[ending(path)]
    except KeyError:
        raise FormatError(
            f"{path} has no ending of a network file; allowed are {', '.join(_FORMATS)} (with or without .gz)"
        ) from None


def _check_size(network: Network, path: str | Path) -> None:
    """Raise if the file could not be read back; asked before the text is made, for a number needs three bytes."""
    numbers = sum(table.size for table in network.tables or ()) if holds_tables(path) else 0
    if network.n > MOST_VERTICES or 3 * numbers > MOST_BYTES:
        raise FormatError(
            f"{network.n} vertices and {numbers} probabilities are too many for a {ending(path)} file; at most"
            f" {MOST_VERTICES} and {MOST_BYTES // 3}"
        )


def _check_encodable(network: Network) -> None:
    for name in all_names(network):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise FormatError(f"no file can hold the name {name!r} (half a character); rename it") from None
