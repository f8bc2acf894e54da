"""Network files: one table of formats.

docs/networks.md says what each format can hold. To add one, write `text(network) -> str` and, if it
is read, `parse(content) -> Network`, and add a line to `_FORMATS`. Parsers raise errors without the
path, which `read_network` puts before them."""

import gzip
import logging
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ..data import Dataset
from ..foundation.arrays import Bools
from ..foundation.errors import FormatError, QubayesError, option, some
from ..foundation.files import ending, read_bytes, read_text, replacing, shown
from .bif import bif_text, parse_bif
from .equivalence import cpdag
from .json_files import (
    MOST_NETWORK_BYTES,
    json_text,
    parse_json_network,
)
from .network import Edge, Network
from .other_formats import (
    HALF_CHARACTER,
    MODELSTRING_FORBIDDEN,
    adjacency_text,
    dot_text,
    from_modelstring,
    graphml_text,
    modelstring_text,
    parse_graphml,
    parse_xmlbif,
    xmlbif_text,
)
from .pgmpy_files import PGMPY_FORBIDDEN, pgmpy_text

log = logging.getLogger("qubayes")

_MOST_VERTICES = 100_000


class _Format(NamedTuple):
    """How a file is read and written, and what it cannot hold."""

    parse: Callable[[Any], Network] | None  # None: it is only written
    text: Callable[[Network], str]
    forbidden: str = r"(?!)"  # pattern of names that it cannot hold
    why: str = ""
    tables: bool = False  # whether it holds states and probabilities
    discrete: bool = True  # whether its tables are of discrete variables
    continuous: bool = False  # whether it holds the parameters of continuous variables
    needs_tables: bool = False
    binary: bool = False  # whether `parse` takes bytes, to find the encoding itself
    vertices: tuple[int, int] = (0, _MOST_VERTICES)  # least and most
    # with edges without direction
    class_text: Callable[[Network, Container[Edge]], str] | None = None


# not in XML, even as a reference
_EMPTY_OR_CONTROL = "\\A\\Z|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"

_BIF = _Format(
    parse_bif,
    bif_text,
    tables=True,
    needs_tables=True,
    vertices=(1, _MOST_VERTICES),
)
_XMLBIF = _Format(
    parse_xmlbif,
    xmlbif_text,
    _EMPTY_OR_CONTROL + r"|\A[ \t\r\n]|[ \t\r\n]\Z",
    "it is empty, has a control character, or begins or ends with a blank",
    tables=True,
    needs_tables=True,
    binary=True,
)
_GRAPHML = _Format(
    parse_graphml,
    graphml_text,
    _EMPTY_OR_CONTROL,
    "it is empty, or has a control character",
    binary=True,
    class_text=graphml_text,
)
_DOT = _Format(
    None, dot_text, r"[\\\0]", "it has a backslash or a NUL character", class_text=dot_text
)
_MODELSTRING = _Format(
    from_modelstring,
    modelstring_text,
    MODELSTRING_FORBIDDEN,
    "it is empty, or has one of [ ] | : or a NUL character",
    vertices=(1, _MOST_VERTICES),
)
# Readers of CSV take fields up to 131,072 characters (Python's); 5,000 vertices make 50 MB
_ADJACENCY = _Format(
    None,
    adjacency_text,
    r"\0|(?s:\A.{100001})",
    "it has a NUL character, or is too long",
    vertices=(1, 5_000),
    class_text=adjacency_text,
)
_FORMATS = {
    ".bif": _BIF,
    ".xmlbif": _XMLBIF,
    ".bifxml": _XMLBIF,
    ".xml": _XMLBIF,
    ".json": _Format(parse_json_network, json_text, tables=True, continuous=True),
    ".dot": _DOT,
    ".gv": _DOT,
    ".graphml": _GRAPHML,
    ".bnlearn": _MODELSTRING,
    ".csv": _ADJACENCY,
}
# Read as .json: its content tells what it is.
_PGMPY_ENDING = ".pgmpy.json"
_PGMPY = _Format(
    parse_json_network,
    pgmpy_text,
    PGMPY_FORBIDDEN,
    "it is the name of the intercept",
    tables=True,
    needs_tables=True,
    vertices=(1, _MOST_VERTICES),
    discrete=False,
    continuous=True,
)
NETWORK_ENDINGS = tuple(_FORMATS)
_READ = tuple(kind for kind, chosen in _FORMATS.items() if chosen.parse is not None)


def read_network(path: str | Path) -> Network:
    """Return the network in the file: .bif, .xmlbif (.bifxml, .xml), .json, .graphml or .bnlearn.

    Each of them may be packed (.gz). A .json file is our own, or one of pgmpy with the keys
    `nodes`, `arcs` and `cpds`."""
    chosen = _format(path)
    if chosen.parse is None:
        raise FormatError(
            f"{path}: {ending(path)} files are written, not read; give one of {', '.join(_READ)}, "
            "or read the graph with networkx and use qubayes.network.from_networkx"
        )
    read = read_bytes if chosen.binary else read_text
    content = read(path, MOST_NETWORK_BYTES)
    try:
        network = chosen.parse(content)
    except QubayesError as error:
        raise FormatError(f"{path}: {error}") from None
    if network.n > _MOST_VERTICES:
        raise FormatError(f"{path}: {network.n} vertices; at most {_MOST_VERTICES}")
    return replace(network, name=Path(path).name.removesuffix(".gz"))


def write_network(
    network: Network, path: str | Path, about: Mapping[str, Any] | None = None
) -> None:
    """Write the network in the format of the path's ending; packed if it ends in .gz.

    The file is whole or absent.

    A path that ends in .pgmpy.json gives the JSON of pgmpy for continuous variables.

    `about`: facts such as score and stamp that a .json file keeps beside the network (`read_about`
    gives them back); the other formats have no place for them."""
    chosen = _format(path)
    _check_held(network, path)
    if chosen.text is bif_text:
        _warn_of_single_states(network, path)
    _write(json_text(network, about) if chosen.text is json_text else chosen.text(network), path)


def _warn_of_single_states(network: Network, path: str | Path) -> None:
    """Log the vertices with one state, which pyAgrum refuses in a .bif file."""
    states, _ = network.parameters
    single = [name for name, its in zip(network.names, states, strict=True) if len(its) == 1]
    if single:
        verb = "has" if len(single) == 1 else "have"
        log.warning(
            "%s: %s %s one state, with which pyAgrum reads no .bif file; it reads .bifxml",
            path,
            some(single),
            verb,
        )


def write_cpdag(network: Network, path: str | Path, told: Bools | None = None) -> None:
    """Write the equivalence class of the network: a graph whose reversible edges have no direction.

    In a .dot file they have `dir=none`, in .graphml `directed="false"`, in a .csv matrix a 1 in
    both directions. `told` as in `cpdag`, of these vertices (`told_by`)."""
    text = _format(path).class_text
    if text is None:
        raise FormatError(
            f"{path}: the format cannot hold edges without direction; give .dot, .graphml or .csv"
        )
    _check_held(network, path)
    reversible = cpdag(network, told).undirected
    _write(text(network, {*reversible, *((b, a) for a, b in reversible)}), path)


def _write(text: str, path: str | Path) -> None:
    content = text.encode()
    if len(content) > MOST_NETWORK_BYTES:
        raise FormatError(
            f"{path} would hold {len(content)} bytes, more than the {MOST_NETWORK_BYTES} that are "
            "read back"
        )
    with replacing(path, binary=True) as file:
        # No time stamp: the same network gives the same file.
        file.write(
            gzip.compress(content, mtime=0) if Path(path).suffix.lower() == ".gz" else content
        )


def holds_tables(path: str | Path) -> bool:
    """Return True if the format of the path's ending keeps states and probabilities."""
    return _format(path).tables


def check_network_path(
    path: str | Path, *, tables: bool = True, dataset: Dataset | None = None
) -> None:
    """Raise if the format of the path's ending cannot hold a network (without `tables`: a graph).

    With a dataset, raise also if the format cannot hold a network of its variables. For use before
    a long search."""
    if dataset is not None:
        _check_names(dataset.names, dataset.states, path)
    if _format(path).needs_tables and not tables:
        raise FormatError(
            f"a {ending(path)} file needs probabilities, which take data: `qubayes learn` has "
            "them; here write .json,"
            " .dot, .graphml, .bnlearn or .csv"
        )


def _format(path: str | Path) -> _Format:
    if Path(path).name.lower().removesuffix(".gz").endswith(_PGMPY_ENDING):
        return _PGMPY
    try:
        return _FORMATS[ending(path)]
    except KeyError:
        raise FormatError(
            f"{path} has no ending of a network file; allowed are {', '.join(_FORMATS)} (with or "
            "without .gz)"
        ) from None


def _check_held(network: Network, path: str | Path) -> None:
    """Raise if the format cannot hold the network.

    Sizes are checked before the text is made: a number needs three bytes."""
    chosen, kind = _format(path), ending(path)
    numbers = sum(table.size for table in network.tables or ()) if chosen.tables else 0
    if network.n > _MOST_VERTICES or 3 * numbers > MOST_NETWORK_BYTES:
        raise FormatError(
            f"{network.n} vertices and {numbers} probabilities are too many for a {kind} file; at "
            "most"
            f" {_MOST_VERTICES} and {MOST_NETWORK_BYTES // 3}"
        )
    if chosen.needs_tables and network.tables is None:
        raise FormatError(
            f"a {kind} file needs probabilities and this network has none; fit it to data first "
            "(`qubayes.fit`), or"
            " write .json, .dot, .graphml, .bnlearn or .csv"
        )
    _check_names(network.names, network.states or (), path)


def _check_names(names: Sequence[str], states: Sequence[Sequence[str]], path: str | Path) -> None:
    """Raise if the format cannot hold these names and states, or this number of vertices."""
    chosen, kind = _format(path), ending(path)
    least, most = chosen.vertices
    if not least <= len(names) <= most:
        raise FormatError(
            f"a {kind} file of {len(names)} vertices; from {least} to {most} are written: use "
            ".json instead"
        )
    _check_kinds(names, states, path)
    forbidden = re.compile(chosen.forbidden)
    texts = list(names)
    if chosen.tables:
        texts += chain.from_iterable(states)
    for name in texts:
        if HALF_CHARACTER.search(name):
            raise FormatError(f"no file can hold the name {name!r} (half a character); rename it")
        if forbidden.search(name):
            found = f"a {kind} file cannot hold the name {shown(name, 80)} ({chosen.why})"
            raise FormatError(f"{found}; write .json instead, or rename it")


def _check_kinds(names: Sequence[str], states: Sequence[Sequence[str]], path: str | Path) -> None:
    """Raise if the format holds parameters, but not of variables of these kinds."""
    chosen, kind = _format(path), ending(path)
    for name, its in zip(names, states, strict=bool(states)):
        if chosen.tables and not its and not chosen.continuous:
            raise FormatError(
                f"a {kind} file cannot hold the continuous variable {name!r}; write .json instead,"
                f" or cut the columns of the data with {option('bins', 3)}"
            )
        if its and not chosen.discrete:
            raise FormatError(
                f"a {_PGMPY_ENDING} file holds continuous variables alone, and {name!r} has"
                " states; write .json instead"
            )
