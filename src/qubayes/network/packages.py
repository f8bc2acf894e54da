"""Networks of other packages: networkx (the graph) and pgmpy (with probabilities)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..foundation.errors import MissingPackageError, QubayesError
from .network import Network

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(network: Network) -> "nx.DiGraph":
    """The graph with the vertices' names as nodes; without attributes, so that networkx can write it to any format."""
    try:
        import networkx as nx
    except ImportError:
        raise MissingPackageError("networkx is not installed; run: pip install 'qubayes[networkx]'") from None
    graph = nx.DiGraph()
    graph.add_nodes_from(network.names)
    graph.add_edges_from((parent, child) for child, its in network.parent_names().items() for parent in its)
    return graph


def from_networkx(graph: "nx.DiGraph") -> Network:
    """The network with the graph's nodes as vertices; a node that is no text is named str(node)."""
    if not graph.is_directed():
        raise QubayesError("an undirected networkx graph; give a DiGraph")
    nodes = list(graph.nodes)
    index = {node: vertex for vertex, node in enumerate(nodes)}
    parents = tuple(tuple(index[parent] for parent in graph.predecessors(node)) for node in nodes)
    return Network(tuple(map(str, nodes)), parents)


def to_pgmpy(network: Network) -> Any:
    """A pgmpy DiscreteBayesianNetwork: the graph, and a TabularCPD for each vertex if the network has tables."""
    tabular, model_type = _pgmpy()
    model = model_type()
    model.add_nodes_from(network.names)
    model.add_edges_from((parent, child) for child, its in network.parent_names().items() for parent in its)
    if network.tables is None or network.states is None:
        return model
    for vertex, (its, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        states = {network.names[v]: list(network.states[v]) for v in (vertex, *its)}
        values = table.reshape(-1, table.shape[-1]).T
        arities = list(table.shape[:-1])
        given = [network.names[p] for p in its]
        model.add_cpds(tabular(network.names[vertex], table.shape[-1], values, given or None, arities or None, states))
    return model


def from_pgmpy(model: Any) -> Network:
    """The network of a pgmpy model; with tables if every node has a TabularCPD. Names that are no text become text."""
    nodes = list(model.nodes)
    index = {node: vertex for vertex, node in enumerate(nodes)}
    factors = [model.get_cpds(node) for node in nodes]
    if not nodes or any(factor is None for factor in factors):
        return from_networkx(model)
    parents = tuple(tuple(index[name] for name in factor.variables[1:]) for factor in factors)
    states = tuple(tuple(map(str, factor.state_names[node])) for node, factor in zip(nodes, factors, strict=True))
    tables = tuple(np.moveaxis(_aligned(model, factor), 0, -1) for factor in factors)
    return Network(tuple(map(str, nodes)), parents, states, tables)


def _aligned(model: Any, factor: Any) -> Any:
    """The values of the factor with the states of each parent in the parent's own order."""
    values = np.asarray(factor.values, dtype=np.float64)
    for axis, parent in enumerate(factor.variables[1:], start=1):
        own, here = model.get_cpds(parent).state_names[parent], factor.state_names[parent]
        if own != here:
            values = values.take([here.index(state) for state in own], axis=axis)
    return values


def _pgmpy() -> tuple[Any, Any]:
    try:
        factors, models = import_module("pgmpy.factors.discrete"), import_module("pgmpy.models")
    except ImportError as error:
        raise MissingPackageError(f"pgmpy is not there ({error}); install it with 'pip install pgmpy'") from None
    return factors.TabularCPD, models.DiscreteBayesianNetwork
