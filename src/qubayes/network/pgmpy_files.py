"""The JSON of pgmpy for linear Gaussian networks, in which the four of bnlearn's repository stand.

{"nodes": ["sun", "rain"], "arcs": [["sun", "rain"]],
 "cpds": {"sun": {"coefficients": {"(Intercept)": [6.0]}, "variance": [2.25], "parents": []},
          "rain": {"coefficients": {"(Intercept)": [4.0], "sun": [-0.3]},
                   "variance": [0.25], "parents": ["sun"]}}}"""

import json
from collections.abc import Mapping
from math import sqrt
from typing import Any

from ..foundation.errors import FormatError, QubayesError
from ..foundation.graph import edges_of
from .linear import Linear
from .network import Network
from .other_formats import HALF_CHARACTER

_INTERCEPT = "(Intercept)"
PGMPY_FORBIDDEN = r"\A\(Intercept\)\Z"  # pattern of names that such a file cannot hold


def pgmpy_text(network: Network) -> str:
    """Return the network as JSON with one line for each CPD."""
    lines = []
    parents = network.parent_names()
    for name, linear in zip(network.names, network.linears, strict=True):
        weights = zip(parents[name], linear.weights, strict=True)
        facts = {
            "coefficients": {
                _INTERCEPT: [linear.intercept],
                **{parent: [weight] for parent, weight in weights},
            },
            "variance": [_variance(linear.deviation)],
            "parents": parents[name],
        }
        lines.append(f"  {_json(name)}: {_json(facts)}")
    cpds = ",\n".join(lines)
    edges = sorted(edges_of(network.parents))
    arcs = [(network.names[p], network.names[child]) for p, child in edges]
    return f'{{"nodes": {_json(network.names)},\n"arcs": {_json(arcs)},\n"cpds": {{\n{cpds}\n}}}}\n'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _variance(deviation: float) -> float:
    """Return the square of the deviation with the fewest digits that give it back."""
    square = deviation * deviation
    for digits in range(1, 17):
        short = float(f"{square:.{digits}g}")
        if sqrt(short) == deviation:
            return short
    return square


def is_of_pgmpy(document: Any) -> bool:
    """Return True if a JSON document has the keys of pgmpy's networks."""
    return isinstance(document, dict) and {"nodes", "cpds"} <= document.keys()


def network_of_pgmpy(document: Mapping[str, Any]) -> Network:
    """Return the network of a JSON document of pgmpy."""
    nodes = document["nodes"]
    arcs = document.get("arcs")
    cpds = document["cpds"]
    if not _are_texts(nodes):
        raise FormatError("'nodes' must be a list of names")
    if not isinstance(arcs, list) or not all(_are_texts(arc) and len(arc) == 2 for arc in arcs):
        raise FormatError("'arcs' must be a list of pairs of names, [parent, child]")
    if not isinstance(cpds, dict) or cpds.keys() != set(nodes):
        raise FormatError("'cpds' must hold the parameters of each node, by its name")
    edges = []
    linears = []
    for name in nodes:
        parents, linear = _cpd(name, cpds[name])
        edges += [(parent, name) for parent in parents]
        linears.append(linear)
    if wrong := {tuple(arc) for arc in arcs} ^ set(edges):
        parent, child = min(wrong)
        raise FormatError(
            f"the arc {parent!r} -> {child!r} stands in one of 'arcs' and the coefficients of"
            f" {child!r}; give it in both"
        )
    graph = Network.from_edges(nodes, edges)
    return Network(graph.names, graph.parents, ((),) * graph.n, tuple(linears))


def _are_texts(value: Any) -> bool:
    """Return True for a list of texts.

    A lone surrogate, which JSON can hold, is not text."""
    texts = isinstance(value, list) and all(isinstance(text, str) for text in value)
    return texts and not any(HALF_CHARACTER.search(text) for text in value)


def _cpd(name: str, facts: Any) -> tuple[list[str], Linear]:
    """Return the parents of a node, and its parameters with the weights in their order."""
    coefficients = facts.get("coefficients") if isinstance(facts, dict) else None
    if not isinstance(coefficients, dict) or _INTERCEPT not in coefficients:
        raise FormatError(
            f"the parameters of {name!r} have no 'coefficients' with '{_INTERCEPT}'; only linear"
            " Gaussian networks are read from such a file"
        )
    parents = [parent for parent in coefficients if parent != _INTERCEPT]
    listed = facts.get("parents", parents)
    if not _are_texts(listed) or sorted(listed) != sorted(parents):
        raise FormatError(f"{name!r} has coefficients of {parents} and the 'parents' {listed}")
    numbers = [_number(name, coefficients[term]) for term in (_INTERCEPT, *listed)]
    variance = _number(name, facts.get("variance"))
    try:
        linear = Linear(numbers[0], tuple(numbers[1:]), sqrt(max(variance, 0.0)))
    except QubayesError as error:
        raise FormatError(f"the parameters of {name!r}: {error}") from None
    return listed, linear


def _number(name: str, value: Any) -> float:
    """Return the number of a list of one."""
    number = value[0] if isinstance(value, list) and len(value) == 1 else value
    if type(number) not in (int, float) or abs(number) > 1e300:
        raise FormatError(f"a parameter of {name!r} is {str(value)[:80]}; give a number")
    return float(number)
