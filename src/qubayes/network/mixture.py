"""Exact answers of a network of numbers and states: sums over the states that are left free.

Given a state of every discrete parent of a continuous variable, the continuous variables are
jointly normal. So the answer is a mixture: one part for each combination of the states of the
discrete parents that are not known, with the probability of this combination given the known states
times the density of the known numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, log, pi, prod, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..foundation.arrays import Floats, Ints
from ..foundation.errors import QubayesError, TooLargeError
from .inference import MOST_INFERENCE_NUMBERS, joint_given, relevant
from .linear import Linear
from .normal import Normal
from .separation import boundary

if TYPE_CHECKING:
    from .network import Network

_BLOCK = 1_000_000  # numbers of several rows that are computed together


@dataclass(frozen=True, slots=True)
class Mixture:
    """A mixture of normal distributions.

    >>> mixture = Mixture((0.5, 0.5), (Normal(-1.0, 1.0), Normal(1.0, 1.0)))
    >>> mixture.mean, round(mixture.deviation, 3), mixture.between(-1.0, 1.0) < 0.5
    (0.0, 1.414, True)
    """

    weights: tuple[float, ...]  # of the parts; their sum is 1
    parts: tuple[Normal, ...]

    @property
    def mean(self) -> float:
        """The mean of the whole mixture."""
        return fsum(w * part.mean for w, part in zip(self.weights, self.parts, strict=True))

    @property
    def deviation(self) -> float:
        """The standard deviation of the whole mixture."""
        mean = self.mean
        squares = [(part.mean - mean) ** 2 + part.deviation**2 for part in self.parts]
        return sqrt(fsum(w * square for w, square in zip(self.weights, squares, strict=True)))

    def between(self, low: float, high: float) -> float:
        """Return the probability of a value between the two; each may be infinite."""
        shares = [part.between(low, high) for part in self.parts]
        return fsum(w * share for w, share in zip(self.weights, shares, strict=True))

    def __str__(self) -> str:
        return f"mean {self.mean:.6g}, deviation {self.deviation:.6g}, {len(self.parts)} normals"


class Posterior(NamedTuple):
    """What is known of a query in each row: the parts of a mixture."""

    weights: Floats  # (rows, parts)
    states: Ints  # (parts,) of a discrete query
    means: Floats  # (rows, parts) of a continuous query
    deviations: Floats  # (parts,)

    def distribution(self, row: int = 0) -> Normal | Mixture:
        """Return the distribution of a continuous query in a row."""
        kept = np.flatnonzero(self.weights[row] > 0.0).tolist()
        normals = [Normal(float(self.means[row, k]), float(self.deviations[k])) for k in kept]
        if len(normals) == 1:
            return normals[0]
        return Mixture(tuple(self.weights[row, kept].tolist()), tuple(normals))

    def probabilities(self, states: int) -> Floats:
        """Return (rows, states) the probabilities of the states of a discrete query."""
        which: Floats = (self.states[:, None] == np.arange(states)).astype(np.float64)
        found: Floats = self.weights @ which
        return found


class _Joint(NamedTuple):
    """The joint normals of some continuous vertices, one for each part."""

    means: Floats  # (parts, vertices)
    triangles: Floats  # (parts, vertices, vertices) transposed Cholesky factors of covariances


class _Parts(NamedTuple):
    """The parts of a mixture: the possible combinations of states of some discrete vertices."""

    probabilities: Floats  # (parts,)
    states: dict[int, Ints | int]  # of each vertex: (parts,), or one if it is given


def posterior_of(
    network: "Network",
    query: int,
    codes: Mapping[int, int],
    numbers: Mapping[int, Floats],
    largest: int = MOST_INFERENCE_NUMBERS,
) -> Posterior:
    """Return the distribution of the query given states and (rows,) numbers of other vertices."""
    needed = boundary(network, query, [*codes, *numbers])
    vertices = set(relevant(network, query, needed))
    known = {vertex: code for vertex, code in codes.items() if vertex in vertices}
    given = {vertex: cells for vertex, cells in numbers.items() if vertex in vertices}
    states = network.states or ()
    is_discrete = bool(states[query])
    order = [v for v in network.order if v in vertices and not states[v]]
    free = _free_vertices(network, query, order, known)
    _check_size([len(states[v]) for v in free], len(order), largest)
    parts = _parts_of(network, free, known)
    asked = [*given] if is_discrete else [*given, query]
    joint = _joint(network, order, parts, asked)
    weights, means = _weighted(np.log(parts.probabilities), joint, _matrix(given))
    nothing = np.zeros(len(parts.probabilities))
    if is_discrete:
        return Posterior(weights, np.asarray(parts.states[query]), means, nothing)
    deviations = np.abs(joint.triangles[:, -1, -1])
    return Posterior(weights, nothing.astype(np.int64), means, deviations)


def _check_size(arities: Sequence[int], continuous: int, largest: int) -> None:
    """Raise if the joint normals of all combinations of states take too many numbers."""
    size = prod(arities) * max(1, continuous) ** 2
    if size > largest:
        raise TooLargeError(
            f"exact inference needs {size:,} numbers, at most {largest:,}; give more evidence"
        )


def _free_vertices(
    network: "Network", query: int, continuous: Sequence[int], known: Mapping[int, int]
) -> list[int]:
    """Return the discrete vertices whose states tell the parts from each other.

    These are a discrete query and the parents of the continuous vertices whose state is not known.
    """
    free: set[int] = set()
    for vertex in continuous:
        discrete, _ = network.split_parents(vertex)
        free.update(discrete)
    free -= known.keys()
    if (network.states or ())[query]:
        free.add(query)
    return sorted(free)


def _matrix(given: Mapping[int, Floats]) -> Floats:
    """Return the (vertices, rows) numbers that are given; one row if there are none."""
    if not given:
        return np.zeros((0, 1))
    return np.array(list(given.values()))


def _parts_of(network: "Network", free: Sequence[int], known: Mapping[int, int]) -> _Parts:
    """Return the possible combinations of states of the free vertices, beside the known ones."""
    probabilities, combinations = _combinations(network, free, known)
    states: dict[int, Ints | int] = dict(zip(free, combinations, strict=True))
    states.update(known)
    return _Parts(probabilities, states)


def _combinations(
    network: "Network", free: Sequence[int], known: Mapping[int, int]
) -> tuple[Floats, Ints]:
    """Return the probabilities of the possible combinations of states, and (free, parts) states."""
    if not free:
        return np.ones(1), np.zeros((0, 1), np.int64)
    discrete = network.discrete_part
    place = {network.names.index(name): v for v, name in enumerate(discrete.names)}
    evidence = {place[v]: np.array([code]) for v, code in known.items()}
    joint = joint_given(discrete, [place[v] for v in free], evidence)
    if np.isnan(joint).any():
        raise QubayesError(
            "the network holds the given states impossible; leave out some of them, or fit the"
            " network with a prior such as bdeu"
        )
    possible = np.flatnonzero(joint > 0.0)
    states = np.array(np.unravel_index(possible, joint.shape)).reshape(len(free), -1)
    return joint.reshape(-1)[possible], states


def _joint(
    network: "Network",
    order: Sequence[int],
    mixture: _Parts,
    asked: Sequence[int],
) -> _Joint:
    """Return the joint normals of the vertices that are asked for."""
    parts = len(mixture.probabilities)
    _, parameters = network.all_parameters
    place = {vertex: k for k, vertex in enumerate(order)}
    means = np.zeros((parts, len(order)))
    roots = np.zeros((parts, len(order), len(order)))
    for k, vertex in enumerate(order):
        its = parameters[vertex]
        assert not isinstance(its, np.ndarray)  # the vertices are continuous
        discrete, continuous = network.split_parents(vertex)
        others = [place[parent] for parent in continuous]
        if isinstance(its, Linear):
            intercepts = np.full(parts, its.intercept)
            weights = np.tile(np.array(its.weights), (parts, 1))
            deviations = np.full(parts, its.deviation)
        else:
            states = tuple(np.broadcast_to(mixture.states[parent], parts) for parent in discrete)
            intercepts = its.intercepts[states]
            weights = its.weights[states]
            deviations = its.deviations[states]
        means[:, k] = intercepts + (weights * means[:, others]).sum(axis=1)
        roots[:, k] = np.einsum("jp,jpx->jx", weights, roots[:, others])
        roots[:, k, k] = deviations
    wanted = [place[vertex] for vertex in asked]
    triangles = np.linalg.qr(roots[:, wanted].transpose(0, 2, 1), mode="r")
    return _Joint(means[:, wanted], np.asarray(triangles))


def _weighted(logs: Floats, joint: _Joint, cells: Floats) -> tuple[Floats, Floats]:
    """Return (rows, parts) the weights of the parts, and the means of the last vertex.

    The other vertices have the numbers `cells`, (vertices, rows)."""
    given, rows = cells.shape
    parts = len(logs)
    weights = np.empty((rows, parts))
    means = np.empty((rows, parts))
    factor = joint.triangles[:, :given, :given].transpose(0, 2, 1)
    slopes = joint.triangles[:, :given, -1] if joint.means.shape[1] > given else None
    constant = logs - 0.5 * given * log(2.0 * pi)
    constant -= np.log(np.abs(np.einsum("jxx->jx", factor))).sum(axis=1)
    step = max(1, _BLOCK // (parts * max(given, 1)))
    for start in range(0, rows, step):
        block = slice(start, start + step)
        errors = cells[None, :, block] - joint.means[:, :given, None]
        scaled = np.linalg.solve(factor, errors) if given else errors
        densities = constant[:, None] - 0.5 * (scaled * scaled).sum(axis=1)
        shares = np.exp(densities - densities.max(axis=0))
        weights[block] = (shares / shares.sum(axis=0)).T
        if slopes is not None:
            of_cells = np.einsum("jp,jpr->rj", slopes, scaled)
            means[block] = joint.means[:, -1] + of_cells
    return weights, means
