"""Networks to and from other packages: networkx, pgmpy, pyAgrum."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..foundation.arrays import Floats
from ..foundation.environment import optional
from ..foundation.errors import MissingPackageError, QubayesError
from ..foundation.graph import renamed
from .linear import Linear
from .network import Network

if TYPE_CHECKING:
    import networkx as nx


def _package(name: str) -> Any:
    """Return the module of a package of others; raise if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingPackageError(
            f"{package} cannot be imported ({error}); run: pip install {package}"
        ) from None


def to_networkx(network: Network, graph: "nx.DiGraph | None" = None) -> "nx.DiGraph":
    """Return the graph with the vertices' names as nodes, without attributes.

    The nodes and edges are added to a new graph, or to the one that is given.
    """
    if graph is None:
        graph = optional("networkx", "a graph of networkx", "networkx").DiGraph()
    graph.add_nodes_from(network.names)
    graph.add_edges_from(network.edges)
    return graph


def from_networkx(graph: "nx.DiGraph") -> Network:
    """Return the network of the graph; a node that is not text is named str(node)."""
    if not graph.is_directed():
        raise QubayesError("an undirected networkx graph; give a DiGraph")
    nodes = list(graph.nodes)
    index = {node: vertex for vertex, node in enumerate(nodes)}
    parents = tuple(renamed(map(graph.predecessors, nodes), index))
    return Network(tuple(map(str, nodes)), parents)


def to_pgmpy(network: Network) -> Any:
    """Return a pgmpy DiscreteBayesianNetwork, with a TabularCPD for each table.

    Of continuous variables it is a LinearGaussianBayesianNetwork."""
    if network.is_continuous:
        return _linear_gaussian(network)
    tabular = _package("pgmpy.factors.discrete").TabularCPD
    model = to_networkx(network, _package("pgmpy.models").DiscreteBayesianNetwork())
    if network.tables is None:
        return model
    states, tables = network.parameters
    for vertex, (its, table) in enumerate(zip(network.parents, tables, strict=True)):
        factor = tabular(
            network.names[vertex],
            table.shape[-1],
            table.reshape(-1, table.shape[-1]).T,
            [network.names[p] for p in its] or None,
            list(table.shape[:-1]) or None,
            {network.names[v]: list(states[v]) for v in (vertex, *its)},
        )
        model.add_cpds(factor)
    return model


def _linear_gaussian(network: Network) -> Any:
    """Return a pgmpy LinearGaussianBayesianNetwork, with a LinearGaussianCPD for each `Linear`."""
    normal = _package("pgmpy.factors.continuous").LinearGaussianCPD
    model = to_networkx(network, _package("pgmpy.models").LinearGaussianBayesianNetwork())
    if network.tables is None:
        return model
    for name, linear in zip(network.names, network.linears, strict=True):
        weights = [linear.intercept, *linear.weights]
        model.add_cpds(normal(name, weights, linear.deviation, list(network[name].parents)))
    return model


def from_pgmpy(model: Any) -> Network:
    """Return the network of a pgmpy model; with parameters if every node has a CPD.

    Each is a TabularCPD, or each is a LinearGaussianCPD. Names become text."""
    nodes = list(model.nodes)
    index = {node: vertex for vertex, node in enumerate(nodes)}
    factors = [model.get_cpds(node) for node in nodes]
    if not nodes or any(factor is None for factor in factors):
        return from_networkx(model)
    parents = tuple(renamed((factor.variables[1:] for factor in factors), index))
    names = tuple(map(str, nodes))
    if all(hasattr(factor, "beta") for factor in factors):
        return Network(names, parents, ((),) * len(names), tuple(map(_linear_of, factors)))
    states = {node: factor.state_names[node] for node, factor in zip(nodes, factors, strict=True)}
    tables = tuple(_table_of(factor, states) for factor in factors)
    texts = tuple(tuple(map(str, its)) for its in states.values())
    return Network(names, parents, texts, tables)


def _linear_of(factor: Any) -> Linear:
    """Return the intercept, the weights and the deviation of a LinearGaussianCPD."""
    intercept, *weights = factor.beta
    return Linear(intercept, tuple(weights), factor.std)


def _table_of(factor: Any, states: Mapping[Any, Sequence[Any]]) -> Floats:
    """Return the values of a TabularCPD, the states of the vertex on the last axis.

    A factor may list the states of a parent in another order than the parent does."""
    values = np.asarray(factor.values, dtype=np.float64)
    for axis, parent in enumerate(factor.variables[1:], start=1):
        listed = factor.state_names[parent]
        if listed != states[parent]:
            order = [listed.index(state) for state in states[parent]]
            values = values.take(order, axis=axis)
    return np.moveaxis(values, 0, -1)


def to_pyagrum(network: Network) -> Any:
    """Return a pyAgrum BayesNet: labelled variables, the arcs and the probabilities."""
    states, tables = network.parameters
    gum = _package("pyagrum")
    model = gum.BayesNet(network.name or "network")
    for name, its in zip(network.names, states, strict=True):
        model.add(gum.LabelizedVariable(name, name, list(its)))
    for edge in network.edges:
        model.addArc(*edge)
    for name, parents, table in zip(network.names, network.parents, tables, strict=True):
        cpt = model.cpt(name)
        own = [*(network.names[p] for p in parents), name]
        axes = [own.index(axis) for axis in reversed(cpt.names)]
        cpt.fillWith(table.transpose(axes).ravel().tolist())
    return model
