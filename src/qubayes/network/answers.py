"""Answers of a network: probabilities of states, and predictions for the rows of data."""

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import code_of, column_like, read_evidence, read_number_evidence, state_of
from ..foundation.arrays import AnyArray, Floats, Ints
from ..foundation.errors import DataError, QubayesError, SettingError, some
from .inference import marginals_given
from .normal import Normal, normal_of, normal_probability, predicted_means

if TYPE_CHECKING:
    from .network import Network


def probability(
    network: "Network",
    query: str | Mapping[str, Any] | None,
    given: Any,
    others: Mapping[str, Any],
) -> Any:
    """Return the answer of `Network.probability`."""
    if isinstance(query, str):
        if others:
            raise SettingError(
                f"a variable ({query!r}) and a state ({min(others)}) were given; give one or "
                "the other"
            )
        return _distribution(network, network.index(query), given)
    wanted = {network.index(name): value for name, value in {**(query or {}), **others}.items()}
    if not wanted:
        raise SettingError(
            'probability of nothing; give states such as probability(x="yes"), or a name'
        )
    known = values_given(network, given, wanted.keys())
    if network.is_continuous:
        return normal_probability(network, wanted, known)
    codes = _codes_of(network, known)
    # By the chain rule, so that no joint table of many vertices is needed.
    total = 1.0
    for vertex, value in wanted.items():
        code = state_of(network.parameters[0][vertex], value, network.names[vertex])
        total *= float(_posterior(network, vertex, codes)[0, code]) if total else 0.0
        codes[vertex] = np.array([code])
    return total


def _distribution(network: "Network", vertex: int, given: Any) -> dict[Any, float] | Normal:
    """Return the probability of each value of the vertex; of a continuous one its `Normal`."""
    known = values_given(network, given, {vertex})
    if network.is_continuous:
        return normal_of(network, vertex, known)
    found = _posterior(network, vertex, _codes_of(network, known))[0]
    return dict(zip(_values(network, vertex).tolist(), found.tolist(), strict=True))


def predict_proba(network: "Network", data: Any, name: str) -> Floats:
    """Return the answer of `Network.predict_proba`."""
    vertex = network.index(name)
    if network.is_continuous:
        raise SettingError(
            f"{name!r} is continuous and has no states; use predict for its mean, or probability"
            " for its normal distribution"
        )
    columns = {
        network.index(other): codes
        for other, codes in read_evidence(data, network).items()
        if other != name
    }
    _check_some(network, columns, name)
    rows = len(next(iter(columns.values())))
    known = np.array([codes >= 0 for codes in columns.values()])
    found = np.empty((rows, len(network.parameters[0][vertex])))
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    for pattern, observed in enumerate(patterns.T):
        here = which.ravel() == pattern
        evidence = {
            v: codes[here]
            for (v, codes), seen in zip(columns.items(), observed, strict=True)
            if seen
        }
        found[here] = _posterior(network, vertex, evidence)
    return found


def predict(network: "Network", data: Any, name: str) -> Any:
    """Return the answer of `Network.predict`."""
    vertex = network.index(name)
    if network.is_continuous:
        numbers = read_number_evidence(data, network.names)
        columns = {network.index(other): its for other, its in numbers.items() if other != name}
        _check_some(network, columns, name)
        return column_like(data, name, predicted_means(network, vertex, columns))
    likeliest = predict_proba(network, data, name).argmax(axis=1)
    return column_like(data, name, _values(network, vertex)[likeliest])


def _values(network: "Network", vertex: int) -> AnyArray:
    """Return the value of each state of the vertex; names where the data had none."""
    return network.values.get(network.names[vertex], np.array(network.parameters[0][vertex]))


def values_given(network: "Network", given: Any, asked: Container[int]) -> dict[int, Any]:
    """Return the value of each vertex that a mapping or a row gives."""
    if given is None or isinstance(given, Mapping):
        values = {network.index(name): value for name, value in (given or {}).items()}
        if both := [vertex for vertex in values if vertex in asked]:
            raise SettingError(
                f"{network.names[min(both)]!r} is asked for and given; leave it out of one"
            )
        return values
    if getattr(given, "ndim", 0) == 1 and hasattr(given, "items"):  # a Series
        known = {
            network.names.index(str(name)): value
            for name, value in given.items()
            if str(name) in network.names
        }
        return {vertex: value for vertex, value in known.items() if vertex not in asked}
    raise SettingError(
        f"given is of type {type(given).__name__}; give states by name, such as "
        "{'x': 'yes'}, or a row of a pandas frame"
    )


def _codes_of(network: "Network", values: Mapping[int, Any]) -> dict[int, Ints]:
    """Return the state of each vertex that a value names, without missing values."""
    states, _ = network.parameters
    codes = {
        vertex: code_of(states[vertex], value, network.names[vertex])
        for vertex, value in values.items()
    }
    return {vertex: np.array([code]) for vertex, code in codes.items() if code >= 0}


def _posterior(network: "Network", query: int, evidence: Mapping[int, Ints]) -> Floats:
    """Return (rows, states) the probabilities of the query; raise for impossible evidence."""
    found = marginals_given(network, query, evidence)
    if np.isnan(found).any():
        row = int(np.argmax(np.isnan(found).any(axis=1)))
        states = network.parameters[0]
        given = (
            f"{network.names[v]} = {states[v][codes[row]]}"
            for v, codes in list(evidence.items())[:5]
        )
        raise QubayesError(
            f"the network holds the evidence of row {row + 1} impossible ({', '.join(given)});"
            " leave out some of it, or fit the network with a prior such as bdeu"
        )
    return found


def _check_some(network: "Network", columns: Mapping[int, AnyArray], name: str) -> None:
    """Raise if the data have no column that is another vertex."""
    if not columns:
        raise DataError(
            f"the data have no column that is a vertex besides {name!r}; vertices are "
            f"{some(network.names)}"
        )
