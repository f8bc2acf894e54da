"""Answers of a network: probabilities of states, and predictions for the rows of data."""

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import (
    code_of,
    column_like,
    is_missing,
    read_evidence,
    read_number_evidence,
    state_of,
)
from ..foundation.arrays import AnyArray, Floats, Ints
from ..foundation.errors import DataError, QubayesError, SettingError, some
from .inference import marginals_given
from .mixture import Mixture, Posterior, posterior_of
from .normal import (
    Normal,
    interval_of,
    normal_of,
    normal_probability,
    number_of,
    predicted_means,
)

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
    if network.is_mixed:
        return _mixed_probability(network, wanted, known)
    codes = _codes_of(network, known)
    # By the chain rule, so that no joint table of many vertices is needed.
    total = 1.0
    for vertex, value in wanted.items():
        code = state_of(network.parameters[0][vertex], value, network.names[vertex])
        total *= float(_posterior(network, vertex, codes)[0, code]) if total else 0.0
        codes[vertex] = np.array([code])
    return total


def _mixed_probability(
    network: "Network", wanted: Mapping[int, Any], known: Mapping[int, Any]
) -> float:
    """Return the probability of states, and of an interval of one continuous variable."""
    states, _ = network.all_parameters
    intervals = [vertex for vertex in wanted if not states[vertex]]
    if len(intervals) > 1:
        names = " and ".join(repr(network.names[vertex]) for vertex in intervals)
        raise SettingError(
            f"intervals of {names} were asked for; ask for one, and give the others as numbers"
        )
    codes, numbers = _split(network, known)
    total = 1.0
    for vertex in [*(v for v in wanted if states[v]), *intervals]:
        if total == 0.0:
            break
        found = posterior_of(network, vertex, codes, numbers)
        if not states[vertex]:
            low, high = interval_of(network.names[vertex], wanted[vertex])
            return total * found.distribution().between(low, high)
        code = state_of(states[vertex], wanted[vertex], network.names[vertex])
        total *= float(found.probabilities(len(states[vertex]))[0, code])
        codes[vertex] = code
    return total


def _split(
    network: "Network", values: Mapping[int, Any]
) -> tuple[dict[int, int], dict[int, Floats]]:
    """Return the states and the numbers that values name, without missing ones."""
    states, _ = network.all_parameters
    codes = {}
    numbers = {}
    for vertex, value in values.items():
        name = network.names[vertex]
        if states[vertex]:
            code = code_of(states[vertex], value, name)
            if code >= 0:
                codes[vertex] = code
        elif not is_missing(value):
            numbers[vertex] = np.array([number_of(name, value)])
    return codes, numbers


def _distribution(
    network: "Network", vertex: int, given: Any
) -> dict[Any, float] | Normal | Mixture:
    """Return the probability of each value of the vertex; of a continuous one its `Normal`."""
    known = values_given(network, given, {vertex})
    if network.is_continuous:
        return normal_of(network, vertex, known)
    if network.is_mixed:
        posterior = posterior_of(network, vertex, *_split(network, known))
        states = network.all_parameters[0][vertex]
        if not states:
            return posterior.distribution()
        shares = posterior.probabilities(len(states))[0]
        return dict(zip(_values(network, vertex).tolist(), shares.tolist(), strict=True))
    found = _posterior(network, vertex, _codes_of(network, known))[0]
    return dict(zip(_values(network, vertex).tolist(), found.tolist(), strict=True))


def predict_proba(network: "Network", data: Any, name: str) -> Floats:
    """Return the answer of `Network.predict_proba`."""
    vertex = network.index(name)
    if not network.all_parameters[0][vertex]:
        raise SettingError(
            f"{name!r} is continuous and has no states; use predict for its mean, or probability"
            " for its normal distribution"
        )
    if network.is_mixed:
        return _mixed_predictions(network, data, vertex)
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
    if not network.all_parameters[0][vertex]:
        return column_like(data, name, _mixed_predictions(network, data, vertex)[:, 0])
    likeliest = predict_proba(network, data, name).argmax(axis=1)
    return column_like(data, name, _values(network, vertex)[likeliest])


def _mixed_predictions(network: "Network", data: Any, query: int) -> Floats:
    """Return (rows, states) the probabilities of the query, or (rows, 1) its mean.

    Rows with the same states and the same missing cells are computed together."""
    states = len(network.all_parameters[0][query])
    codes, numbers = _mixed_evidence(network, data, query)
    rows = len(next(iter({**codes, **numbers}.values())))
    found = np.empty((rows, max(1, states)))
    present = [np.isnan(cells) for cells in numbers.values()]
    patterns, which = np.unique(
        np.array([*codes.values(), *present], np.int64), axis=1, return_inverse=True
    )
    for number, pattern in enumerate(patterns.T.tolist()):
        here = which.reshape(-1) == number
        seen = {v: code for v, code in zip(codes, pattern, strict=False) if code >= 0}
        lacking = dict(zip(numbers, pattern[len(codes) :], strict=True))
        cells = {v: its[here] for v, its in numbers.items() if not lacking[v]}
        posterior = posterior_of(network, query, seen, cells)
        found[here] = _answer(posterior, states)
    return found


def _mixed_evidence(
    network: "Network", data: Any, query: int
) -> tuple[dict[int, AnyArray], dict[int, Floats]]:
    """Return the states and the numbers that the data give for vertices other than the query."""
    states, _ = network.all_parameters
    name = network.names[query]
    codes = {
        network.index(other): its
        for other, its in read_evidence(data, network.discrete_part).items()
        if other != name
    }
    continuous = {network.names[v] for v, its in enumerate(states) if not its} - {name}
    numbers = {
        network.index(other): its for other, its in read_number_evidence(data, continuous).items()
    }
    _check_some(network, {**codes, **numbers}, name)
    return codes, numbers


def _answer(posterior: Posterior, states: int) -> Floats:
    """Return (rows, states) the probabilities of a discrete query, or (rows, 1) the mean."""
    if states:
        return posterior.probabilities(states)
    found: Floats = (posterior.weights * posterior.means).sum(axis=1, keepdims=True)
    return found


def _values(network: "Network", vertex: int) -> AnyArray:
    """Return the value of each state of the vertex; names where the data had none."""
    return network.values.get(network.names[vertex], np.array(network.all_parameters[0][vertex]))


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
