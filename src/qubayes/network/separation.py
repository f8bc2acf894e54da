"""Separation of variables by the graph alone (d-separation)."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..foundation.errors import SettingError

if TYPE_CHECKING:
    from .network import Network


def separated(
    network: "Network",
    x: str | Iterable[str],
    y: str | Iterable[str],
    given: str | Iterable[str],
) -> bool:
    """Return the answer of `Network.separated`.

    The variables and their ancestors are joined as the moral graph: children with parents, and
    parents of one child with each other. x and y are separated if every path in it that joins them
    has a vertex that is given (Lauritzen et al. 1990)."""
    left = _vertices(network, x)
    right = _vertices(network, y)
    blocked = _vertices(network, given)
    for one, other in ((left, right), (left, blocked), (right, blocked)):
        if both := one & other:
            raise SettingError(
                f"{network.names[min(both)]!r} stands in two of x, y and given; leave it out of one"
            )
    return not _reached(network, left, right | blocked) & right


def boundary(network: "Network", query: int, given: Iterable[int]) -> list[int]:
    """Return the given vertices that the query depends on, given all of them; ascending."""
    return sorted(_reached(network, {query}, set(given)))


def _reached(network: "Network", start: set[int], ends: set[int]) -> set[int]:
    """Return the ends that paths from the start reach first in the moral graph."""
    neighbours = _moral_graph(network, start | ends)
    stack = list(start)
    seen = set(start)
    while stack:
        vertex = stack.pop()
        if vertex not in ends:
            fresh = neighbours[vertex] - seen
            seen |= fresh
            stack += fresh
    return seen & ends


def _vertices(network: "Network", names: str | Iterable[str]) -> set[int]:
    """Return the vertices of one name, or of several."""
    return {network.index(name) for name in ([names] if isinstance(names, str) else names)}


def _moral_graph(network: "Network", vertices: Collection[int]) -> dict[int, set[int]]:
    """Return the neighbours of the vertices and of their ancestors in the moral graph of these."""
    neighbours: dict[int, set[int]] = {}
    stack = list(vertices)
    while stack:
        vertex = stack.pop()
        if vertex not in neighbours:
            neighbours[vertex] = set()
            stack += network.parents[vertex]
    for vertex in tuple(neighbours):
        family = {vertex, *network.parents[vertex]}
        for member in family:
            neighbours[member] |= family - {member}
    return neighbours
