"""Networks of other packages: networkx (the graph), pgmpy and pyAgrum (with probabilities)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..foundation.errors import MissingPackageError, QubayesError
from .network import Network

if TYPE_CHECKING:
    import networkx as nx


def _package(name: str, install: str) -> Any:
    """Return the module of an optional package; raise if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"{name.partition('.')[0]} cannot be imported ({error}); run: pip install {install}"
        ) from None


def to_networkx(network: Network) -> "nx.DiGraph":
    """Return the graph with the vertices' names as nodes; without attributes, so that any format can hold it."""
    return _add_graph(_package("networkx", "'qubayes[networkx]'").DiGraph(), network)


def _add_graph(graph: Any, network: Network) -> Any:
    graph.add_nodes_from(network.names)
    graph.add_edges_from(network.edges)
    return graph


def from_networkx(graph: "nx.DiGraph") -> Network:
    """Return the network with the graph's nodes as vertices; a node that is not text is named str(node)."""
    if not graph.is_directed():
        raise QubayesError("an undirected networkx graph; give a DiGraph")
    nodes = list(graph.nodes)
    index = {node: vertex for vertex, node in enumerate(nodes)}
    parents = tuple(tuple(index[parent] for parent in graph.predecessors(node)) for node in nodes)
    return Network(tuple(map(str, nodes)), parents)


def to_pgmpy(network: Network) -> Any:
    """Return a pgmpy DiscreteBayesianNetwork: the graph, and a TabularCPD for each vertex if there are tables."""
    tabular = _package("pgmpy.factors.discrete", "pgmpy").TabularCPD
    model = _add_graph(_package("pgmpy.models", "pgmpy").DiscreteBayesianNetwork(), network)
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
    """Return the network of a pgmpy model; with tables if every node has a TabularCPD. Names become text."""
    nodes = list(model.nodes)
    index = {node: vertex for vertex, node in enumerate(nodes)}
    factors = [model.get_cpds(node) for node in nodes]
    if not nodes or any(factor is None for factor in factors):
        return from_networkx(model)
    parents = tuple(tuple(index[name] for name in factor.variables[1:]) for factor in factors)
    own_states = [factor.state_names[node] for node, factor in zip(nodes, factors, strict=True)]
    tables = []
    for factor, its in zip(factors, parents, strict=True):
        values = np.asarray(factor.values, dtype=np.float64)
        for axis, parent in enumerate(its, start=1):  # a factor may list the states of a parent in another order
            listed = factor.state_names[nodes[parent]]
            if listed != own_states[parent]:
                values = values.take([listed.index(state) for state in own_states[parent]], axis=axis)
        tables.append(np.moveaxis(values, 0, -1))
    states = tuple(tuple(map(str, its)) for its in own_states)
    return Network(tuple(map(str, nodes)), parents, states, tuple(tables))


def to_pyagrum(network: Network) -> Any:
    """Return a pyAgrum BayesNet: labelled variables, the arcs and the probabilities."""
    gum = _package("pyagrum", "pyagrum")
    states, tables = network.parameters
    model = gum.BayesNet(network.name or "network")
    for name, its in zip(network.names, states, strict=True):
        model.add(gum.LabelizedVariable(name, name, list(its)))
    for edge in network.edges:
        model.addArc(*edge)
    for name, parents, table in zip(network.names, network.parents, tables, strict=True):
        cpt = model.cpt(name)
        axes = [name if v == name else v for v in reversed(cpt.names)]
        own = [*(network.names[p] for p in parents), name]
        model.cpt(name).fillWith(table.transpose([own.index(axis) for axis in axes]).ravel().tolist())
    return model
