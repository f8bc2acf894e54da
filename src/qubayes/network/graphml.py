"""GraphML: the graph alone, directed; the id of a node is the vertex's name, as networkx has it."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

from ..foundation.errors import FormatError
from .assembly import from_edges
from .network import Network
from .xml_tree import check_xml_name, read_xml

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'


def graphml_text(network: Network) -> str:
    """The graph as a GraphML file."""
    for name in network.names:
        check_xml_name(".graphml", name)
    ids = [quoteattr(name) for name in network.names]
    lines = [_HEAD, '<graph edgedefault="directed">', *(f"<node id={name}/>" for name in ids)]
    for child, parents in enumerate(network.parents):
        lines += (f"<edge source={ids[parent]} target={ids[child]}/>" for parent in parents)
    return "\n".join([*lines, "</graph>", "</graphml>"]) + "\n"


def read_graphml(path: str | Path) -> Network:
    """The graph in a GraphML file; attributes of nodes and edges are passed over."""
    root = read_xml(path)
    graphs = root.findall("graph") if root.tag == "graphml" else []
    if len(graphs) != 1:
        raise FormatError(f"{path} is no GraphML file with one graph; its root is {root.tag!r} with {len(graphs)}")
    [graph] = graphs
    if graph.find("hyperedge") is not None or graph.find("node/graph") is not None:
        raise FormatError(f"{path} has hyperedges or graphs in nodes; a network has plain directed edges")
    names = [_attribute(path, node, "id") for node in graph.findall("node")]
    known = set(names)
    edges = list(_edges(path, graph))
    for edge in edges:
        for name in edge:
            if name not in known:
                raise FormatError(f"{path}: an edge leads to {name!r}, which is no node; add it")
    return from_edges(path, names, edges)


def _edges(path: str | Path, graph: Element) -> Iterator[tuple[str, str]]:
    default = graph.get("edgedefault") == "directed"
    for edge in graph.findall("edge"):
        parent, child = _attribute(path, edge, "source"), _attribute(path, edge, "target")
        if edge.get("directed", "true" if default else "false") not in ("true", "1"):
            raise FormatError(f"{path}: the edge between {parent!r} and {child!r} is undirected; give it a direction")
        yield parent, child


def _attribute(path: str | Path, element: Element, key: str) -> str:
    value = element.get(key)
    if not value:
        raise FormatError(f"{path}: a {element.tag} without {key!r}; give it one")
    return value
