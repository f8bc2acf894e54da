"""Model strings of the R package bnlearn: `[A][C][B|A][D|A:C]`."""

import re
from pathlib import Path

from ..foundation.errors import FormatError
from ..foundation.files import read_text
from .assembly import MOST_BYTES, from_edges, unholdable
from .network import Network

_PART = re.compile(r"\s*\[([^][|:]+)(?:\|([^][|]+))?\]")


def to_modelstring(network: Network) -> str:
    """`[A][C][B|A][D|A:C]`, in the order of the vertices."""
    for name in network.names:
        if not name or any(sign in name for sign in "[]|:\0"):
            raise unholdable(".bnlearn", name, "it is empty, or has one of [ ] | : or a NUL character")
    parts = (f"{name}|{':'.join(its)}" if its else name for name, its in network.parent_names().items())
    return "".join(f"[{part}]" for part in parts)


def from_modelstring(text: str) -> Network:
    """The graph that a model string tells; white space between the brackets is passed over."""
    return _parsed("the model string", text)


def modelstring_text(network: Network) -> str:
    """A file that holds the model string alone."""
    if not network.n:
        raise FormatError("a .bnlearn file cannot hold a network without vertices; write .json instead")
    return to_modelstring(network) + "\n"


def read_modelstring(path: str | Path) -> Network:
    """The network in a file that holds a model string."""
    return _parsed(path, read_text(path, MOST_BYTES))


def _parsed(path: str | Path, text: str) -> Network:
    families: list[tuple[str, list[str]]] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _PART.match(text, place)
        if match is None:
            raise FormatError(
                f"{path}: {text[place : place + 30].strip()!r} where [vertex] or [vertex|parent:parent] must stand"
            )
        families.append((match[1], match[2].split(":") if match[2] else []))
        place = match.end()
    if not families:
        raise FormatError(f"{path}: no vertex; a model string looks like [A][C][B|A][D|A:C]")
    names = [name for name, _ in families]
    known = set(names)
    for name, parents in families:
        for parent in parents:
            if parent not in known:
                raise FormatError(f"{path}: {parent!r}, a parent of {name!r}, has no [ ] of its own; add it")
    return from_edges(path, names, ((parent, name) for name, parents in families for parent in parents))
