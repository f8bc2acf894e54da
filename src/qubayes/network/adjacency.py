"""Adjacency matrices as CSV: a header of names, entry 1 in row i and column j iff i is a parent of j."""

import csv
import io
from pathlib import Path

from ..foundation.errors import FormatError
from ..foundation.files import read_text
from .assembly import MOST_BYTES, from_edges, unholdable
from .network import Network

_MOST_VERTICES = 5_000  # 50 MB of zeros and ones
_LONGEST_NAME = 100_000  # Python's csv reader takes fields up to 131,072 characters


def adjacency_text(network: Network) -> str:
    """The matrix, all names in quotes. The order of the parents of a vertex becomes that of the columns."""
    n = network.n
    if not 1 <= n <= _MOST_VERTICES:
        raise FormatError(f"a .csv matrix of {n} vertices; from 1 to {_MOST_VERTICES} are written: use .json instead")
    for name in network.names:
        if "\0" in name or len(name) > _LONGEST_NAME:
            raise unholdable(".csv", name, "it has a NUL character, or is too long")
    children: list[list[int]] = [[] for _ in range(n)]
    for child, parents in enumerate(network.parents):
        for parent in parents:
            children[parent].append(child)
    lines = [",".join('"' + name.replace('"', '""') + '"' for name in network.names)]
    for its in children:
        row = ["0"] * n
        for child in its:
            row[child] = "1"
        lines.append(",".join(row))
    return "\n".join(lines) + "\n"


def read_adjacency(path: str | Path) -> Network:
    """The network in a matrix of 0 and 1 with a header of names; a first column of names may be there too."""
    header, *rows = _cells(path)
    with_names = len(header) == len(rows) + 1 or (len(header) == len(rows) and len(rows[0]) == len(rows) + 1)
    names = header[1:] if len(header) == len(rows) + 1 else header
    if len(names) != len(rows):
        raise FormatError(f"{path}: {len(header)} names over {len(rows)} rows; an adjacency matrix is square")
    if len(set(names)) != len(names):
        raise FormatError(f"{path}: a name stands twice in the header; give each vertex its own")
    edges = []
    for place, (name, row) in enumerate(zip(names, rows, strict=True)):
        if with_names and row[:1] != [name]:
            raise FormatError(f"{path}, row {place + 1}: begins with {str(row[:1])[:60]}; {name!r} must stand there")
        entries = row[1:] if with_names else row
        if len(entries) != len(names):
            raise FormatError(f"{path}, row {place + 1}: {len(entries)} entries under {len(names)} names")
        edges += [(name, child) for child, entry in zip(names, entries, strict=True) if _is_edge(path, place, entry)]
    return from_edges(path, names, edges)


def _is_edge(path: str | Path, place: int, entry: str) -> bool:
    entry = entry.strip()
    if entry not in ("0", "1", "0.0", "1.0"):
        raise FormatError(f"{path}, row {place + 1}: {entry[:40]!r} where 0 or 1 must stand")
    return entry[0] == "1"


def _cells(path: str | Path) -> list[list[str]]:
    text = read_text(path, MOST_BYTES)
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            if row:
                rows.append(row)
            if rows and len(rows) > len(rows[0]) + 1:
                raise FormatError(f"{path}: {len(rows[0])} names over more rows; an adjacency matrix is square")
    except csv.Error as error:
        raise FormatError(f"{path} is no CSV: {error}") from None
    if len(rows) < 2:
        raise FormatError(f"{path}: {len(rows)} lines; give a header of names and a row of 0 and 1 for each")
    return rows
