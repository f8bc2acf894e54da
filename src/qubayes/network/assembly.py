"""What the readers and writers of network files share: limits, and errors that name the file or the name."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..foundation.arrays import Floats
from ..foundation.errors import FormatError, QubayesError
from .network import Network

# Unpacked, and for vertices. The largest network of the public repositories has 8 MB and 1041 vertices; a hostile file
# of this size costs up to 25 times as much memory (empty JSON lists).
MOST_BYTES = 1 << 26
MOST_VERTICES = 100_000
MOST_AXES = 32  # of a table: numpy has no more in some versions


def unholdable(kind: str, name: str, why: str, instead: str = ".json") -> FormatError:
    """The error for a name that a format has no way to write."""
    shown = repr(name) if len(name) <= 80 else f"{name[:80]!r}..."
    return FormatError(f"a {kind} file cannot hold the name {shown} ({why}); write {instead} instead, or rename it")


def all_names(network: Network) -> Iterable[str]:
    """The names of the vertices and of their states."""
    yield from network.names
    for states in network.states or ():
        yield from states


def assembled(
    path: str | Path,
    names: Sequence[str],
    parents: Sequence[Sequence[int]],
    states: Sequence[Sequence[str]] | None = None,
    tables: Sequence[Floats] | None = None,
) -> Network:
    """The network, named after the file; what is wrong with it is told with the path."""
    if len(names) > MOST_VERTICES:
        raise FormatError(f"{path}: {len(names)} vertices; at most {MOST_VERTICES}")
    try:
        return Network(
            tuple(names),
            tuple(map(tuple, parents)),
            None if states is None else tuple(map(tuple, states)),
            None if tables is None else tuple(tables),
            Path(path).name.removesuffix(".gz"),
        )
    except QubayesError as error:
        raise FormatError(f"{path}: {error}") from None


def from_edges(path: str | Path, names: Sequence[str], edges: Iterable[tuple[str, str]]) -> Network:
    """The network with these edges (parent, child) between names that are all known; a repeated edge counts once."""
    index = {name: vertex for vertex, name in enumerate(names)}
    parents: list[dict[int, None]] = [{} for _ in names]  # dictionaries keep the order
    for parent, child in edges:
        parents[index[child]][index[parent]] = None
    return assembled(path, names, [tuple(its) for its in parents])


def check_axes(path: str | Path, name: str, axes: int) -> None:
    """Raise if no table has so many axes: parents, and the vertex itself."""
    if axes > MOST_AXES:
        raise FormatError(f"{path}: {name!r} has a table and {axes - 1} parents; at most {MOST_AXES - 1} can have one")


def with_tables(kind: str, network: Network) -> tuple[tuple[tuple[str, ...], ...], tuple[Floats, ...]]:
    """The states and tables of the network; an error if it has none, for formats that are nothing without them."""
    if network.states is None or network.tables is None:
        raise FormatError(
            f"a {kind} file needs probabilities and this network has none; fit it to data first (`qubayes.fit`), or"
            " write .json, .dot, .graphml, .bnlearn or .csv"
        )
    return network.states, network.tables
