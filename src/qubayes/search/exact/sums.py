"""Sums over all networks of given parent sets: posterior probabilities of sets and edges.

Every network has the weight exp(score): with a Bayesian score this is its posterior probability, up
to a common factor, under a uniform prior over the networks that are made of the given sets, or the
prior that the scores hold.
Write A_j(U) for the sum of exp(score) over the sets of vertex j inside U, and Z(S) for the sum over
all acyclic networks on S. By inclusion and exclusion over the vertices T that have no child (Tian
and He, UAI 2009),

    Z(S) = sum over non-empty T in S of (-1)^(|T| + 1) Z(S - T) prod over j in T of A_j(S - T),

which counts each network once; sums over orders would count it once for each of its orders. Z is
linear in each A_j(U). With D(U) the derivative of Z(V) by Z(U), V all vertices and D(V) = 1, one
pass backwards gives

    D(U) = sum over non-empty T outside U of (-1)^(|T| + 1) D(U + T) prod over j in T of A_j(U),

and the terms with j in T, times Z(U) exp(score of C) / (A_j(U) Z(V)), summed over all U that hold C
but not j, are the probability that C is the set of j. Components of the candidate graph are summed
apart; one of k vertices takes 3^k steps. The terms of Z(S) add up to at most 2^k Z(S): rounding
stays below 2^k * 1e-16."""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...candidates import prune
from ...foundation.arrays import Bools, Floats, Ints, frozen
from ...foundation.errors import TooLargeError
from ...foundation.families import Families
from ...foundation.graph import strong_components
from ...foundation.jit import inlined, inner, kernel
from ...network import Network
from ..run import Limits
from ..solve import solve

# Of a component: 20 * 2^20 sums take 170 MB, and 3^20 steps at most a minute or so.
MOST_SUMMED_VERTICES = 20
_STEPS_PER_CALL = 50_000_000  # between two looks at the clock
# Logarithm of a relative weight that is left out of Z(S): Z(U) is at most 20! = e^42 times its
# scale, and there are at most 2^20 = e^14 terms, so all of them add up to less than e^-64.
_NEGLIGIBLE = -120.0
# The same of the largest product of A over orders that begin with U. All signed terms through such
# U add up to at most e^-100 times the number of ordered partitions of 20 vertices, 2.7 * 10^21:
# less than 10^-21.
_NEGLIGIBLE_FIRST = -100.0
_MOST_DOUBTFUL_PARENTS = 16  # of a vertex of the consensus: 2^16 sets
_LEAST_GAIN = 1e-9  # an edge that gains less is in no consensus


class Timed(Protocol):
    """A search whose time may end: a `Run`, for example."""

    @property
    def over(self) -> bool:
        """Whether it is to end."""

    def paused(self) -> AbstractContextManager[None]:
        """Stop the clock inside the block, where kernels are compiled."""


class WeightedSets(Protocol):
    """Parent sets of named variables with scores: `Candidates` or `SlackSets`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""

    @property
    def families(self) -> Families:
        """The sets."""

    @property
    def scores(self) -> Floats:
        """(sets,) their scores."""


@dataclass(frozen=True, slots=True)
class NetworkSums:
    """Probabilities over all networks of some parent sets, with weights exp(score)."""

    names: tuple[str, ...]
    log_mass: float  # logarithm of the sum of exp(score) over all networks
    families: Floats = field(repr=False)  # (sets,) probability of each parent set
    edges: Floats = field(repr=False)  # (n, n) probability of each edge, at [parent, child]

    def consensus(self) -> Network:
        """Return `consensus` of the probabilities of edges."""
        return consensus(self.names, self.edges)


def sum_networks(sets: WeightedSets, run: Timed | None = None) -> NetworkSums | None:
    """Return the probability of every parent set and edge; None if the run is over before.

    >>> from qubayes.candidates import example
    >>> found = sum_networks(example())
    >>> bool(abs(found.families.sum() - 8) < 1e-9)  # every vertex has one set
    True
    """
    components = strong_components(sets.families.arcs())
    largest = max(map(len, components), default=0)
    if largest > MOST_SUMMED_VERTICES:
        raise TooLargeError(
            f"a component of {largest} variables; sums over all its networks take 3^{largest} "
            f"steps, at most 3^{MOST_SUMMED_VERTICES} are allowed: list the best networks instead"
        )
    probabilities = np.zeros(len(sets.scores))
    log_mass = 0.0
    for vertices in components:
        mass = sum_component(sets, vertices, probabilities, run)
        if mass is None:
            return None
        log_mass += mass
    return NetworkSums(
        sets.names,
        log_mass,
        frozen(np.clip(probabilities, 0.0, 1.0)),
        frozen(np.clip(edges_of(sets.families, probabilities), 0.0, 1.0)),
    )


def edges_of(families: Families, probabilities: Floats) -> Floats:
    """Return (n, n) the probability of each edge, at [parent, child], by those of the sets."""
    edges = np.zeros((families.n, families.n))
    places = (families.members, families.member_owners)
    np.add.at(edges, places, probabilities[families.sets_of_members])
    return edges


def sum_component(
    sets: WeightedSets, vertices: Ints, probabilities: Floats, run: Timed | None = None
) -> float | None:
    """Write the probabilities of the sets of a component of at most 20 vertices.

    Returns the logarithm of the sum over its networks; None if the run is over before."""
    return _sum(Weights.of(sets, vertices), probabilities, run)


class Weights(NamedTuple):
    """Weights of the sets of one component of k vertices; sets of vertices are bit masks."""

    start: Ints  # (k + 1,) into masks
    numbers: Ints  # of the parent sets
    masks: Ints  # their members inside the component
    scores: Floats
    inside: Floats  # (k, 2^k) logarithm of A_j(U)
    # (2^k,) logarithm of the largest product of A over orders; Z(U) is 1 to k! times it.
    scale: Floats
    # (2^k,) whether networks in which U comes first have more than a negligible weight.
    alive: Bools

    @staticmethod
    def of(sets: WeightedSets, vertices: Ints) -> "Weights":
        """Return the weights of the sets of these vertices."""
        families, numbers = sets.families.inside(vertices)
        k = families.n
        start = families.vertex_start
        masks = families.masks().astype(np.int64)
        scores = sets.scores[numbers]
        inside = np.full((k, 1 << k), -np.inf)
        with np.errstate(invalid="ignore"):
            for vertex in range(k):
                its = slice(start[vertex], start[vertex + 1])
                np.logaddexp.at(inside[vertex], masks[its], scores[its])
                _sum_over_subsets(inside[vertex])
        scale = np.full(1 << k, -np.inf)
        scale[0] = 0.0
        rest = np.full(1 << k, -np.inf)
        rest[-1] = 0.0
        _fill_scale(inside, scale, rest)
        alive = scale + rest > scale[-1] + _NEGLIGIBLE_FIRST
        return Weights(start, numbers, masks, scores, inside, scale, alive)


def _sum_over_subsets(logs: Floats) -> None:
    """Replace each of the 2^k logarithms by that of the sum over all subsets of its mask."""
    k = len(logs).bit_length() - 1
    for member in range(k):
        halves = logs.reshape(-1, 2, 1 << member)
        np.logaddexp(halves[:, 0], halves[:, 1], out=halves[:, 1])


class Sums(NamedTuple):
    """What the two passes add up."""

    masses: Floats  # (2^k,) Z(U) / exp(scale of U)
    slopes: Floats  # (2^k,) D(U) exp(scale of U) / Z(V)


class Terms(NamedTuple):
    """The terms of one U, a place for each T outside U."""

    logs: Floats  # (2^k,) logarithm of the product of A_j(U) over j in T
    signed: Floats  # (2^k,) the product with its sign, times exp(scale of U minus that of U + T)
    targets: Ints  # (2^k,) U + T


def _sum(weights: Weights, probabilities: Floats, run: Timed | None) -> float | None:
    """Write the probabilities of a component's sets; return log Z, or None without time."""
    every = len(weights.scale)
    sums = Sums(np.zeros(every), np.zeros(every))
    sums.masses[0] = 1.0
    terms = Terms(np.zeros(every), np.zeros(every), np.zeros(every, np.int64))
    if run is not None:
        with run.paused():  # compile
            _add_forwards(weights, sums, terms, 0, 0, probabilities)
            _add_backwards(weights, sums, terms, 0, 0, probabilities)
    slices = _slices(weights)
    for add, order in ((_add_forwards, slices), (_add_backwards, slices[::-1])):
        for first, last in order:
            if run is not None and run.over:
                return None
            add(weights, sums, terms, first, last, probabilities)
    return float(weights.scale[-1] + math.log(sums.masses[-1]))


def _slices(weights: Weights) -> list[tuple[int, int]]:
    """Return ranges of masks, each with some `_STEPS_PER_CALL` steps."""
    every = len(weights.scale)
    outside = len(weights.inside) - np.bitwise_count(np.arange(every)).astype(np.int64)
    steps = np.cumsum(np.where(weights.alive, 1 << outside, 0))
    goals = np.arange(_STEPS_PER_CALL, int(steps[-1]), _STEPS_PER_CALL)
    cuts = np.searchsorted(steps, goals)
    return list(pairwise(np.unique([0, *cuts, every]).tolist()))


@kernel
def _fill_scale(inside: Floats, scale: Floats, rest: Floats) -> None:
    """Set the largest log product of A over orders of each set of vertices, and of the others."""
    k = len(inside)
    full = len(scale) - 1
    for s in range(1, full + 1):
        for vertex in range(k):
            if (s >> vertex) & 1:
                u = s ^ (1 << vertex)
                scale[s] = max(scale[s], scale[u] + inside[vertex, u])
    for u in range(full - 1, -1, -1):
        for vertex in range(k):
            if not (u >> vertex) & 1:
                rest[u] = max(rest[u], inside[vertex, u] + rest[u | (1 << vertex)])


@inner
def _fill_terms(weights: Weights, u: int, terms: Terms) -> int:
    """Set the terms of u; return their number.

    T runs over the sets outside u; place 0 is the empty one.
    """
    logs, signed, targets = terms
    logs[0] = 0.0
    signed[0] = -1.0
    targets[0] = u
    count = 1
    for vertex in range(len(weights.inside)):
        if not (u >> vertex) & 1:
            for place in range(count):
                logs[count + place] = logs[place] + weights.inside[vertex, u]
                signed[count + place] = -signed[place]
                targets[count + place] = targets[place] | (1 << vertex)
            count <<= 1
    for place in range(1, count):
        log = weights.scale[u] + logs[place] - weights.scale[targets[place]]
        signed[place] *= math.exp(log) if log > _NEGLIGIBLE else 0.0  # 0 also where both are -inf
    signed[0] = 0.0
    return count


@kernel
def _add_forwards(
    weights: Weights, sums: Sums, terms: Terms, first: int, last: int, probabilities: Floats
) -> None:
    """Add what Z(u) contributes to larger sets, for u from first to last - 1."""
    signed = terms.signed
    targets = terms.targets
    for u in range(first, last):
        if weights.alive[u]:
            for place in range(1, _fill_terms(weights, u, terms)):
                sums.masses[targets[place]] += sums.masses[u] * signed[place]


@kernel
def _add_backwards(
    weights: Weights, sums: Sums, terms: Terms, first: int, last: int, probabilities: Floats
) -> None:
    """Set the slope of u, for u from last - 1 to first, and add probabilities of sets inside u.

    The probability that the vertices of u come first, and `vertex` next and without a child, is the
    signed sum of the terms with `vertex` in T; folding the upper half of the places onto the lower
    one gives it for each vertex in turn."""
    signed = terms.signed
    slopes = sums.slopes
    full = len(slopes) - 1
    for u in range(last - 1, first - 1, -1):
        if not weights.alive[u]:
            continue
        count = _fill_terms(weights, u, terms)
        slopes[u] = 0.0 if u < full else 1.0 / sums.masses[full]
        for place in range(1, count):
            signed[place] *= slopes[terms.targets[place]]
            slopes[u] += signed[place]
        for vertex in range(len(weights.inside) - 1, -1, -1):
            if not (u >> vertex) & 1:
                count >>= 1
                share = sums.masses[u] * _fold(signed, count)
                _add_probabilities(weights, vertex, u, share, probabilities)


@inlined
def _fold(signed: Floats, count: int) -> Any:
    """Fold the upper half of the places onto the lower one; return the sum of the upper half."""
    total = 0.0
    for place in range(count):
        total += signed[count + place]
        signed[place] += signed[count + place]
    return total


@inlined
def _add_probabilities(
    weights: Weights, vertex: int, u: int, share: float, probabilities: Floats
) -> None:
    """Share a probability among the sets of the vertex inside u."""
    for s in range(weights.start[vertex], weights.start[vertex + 1]):
        if share != 0.0 and weights.masks[s] & ~u == 0:
            log = weights.scores[s] - weights.inside[vertex, u]
            probabilities[weights.numbers[s]] += share * math.exp(log)


def consensus(names: tuple[str, ...], edges: Floats) -> Network:
    """Return the network expected to be right for most pairs of variables, by edge probabilities.

    A network is right for a pair if it has the true edge in its direction, or rightly none. An edge
    a -> b gains P(a -> b) - P(no edge between a and b); the sum of gains is maximised over acyclic
    networks by the exact solver."""
    gains = edges - (1.0 - edges - edges.T)
    np.fill_diagonal(gains, 0.0)
    useful = gains > _LEAST_GAIN
    component = np.zeros(len(names), np.int64)
    for number, vertices in enumerate(strong_components(useful)):
        component[vertices] = number
    free = useful & (component[:, None] != component)  # such an edge is in no cycle
    lists = []
    for child in range(len(names)):
        always = np.flatnonzero(free[:, child]).tolist()
        doubtful = np.flatnonzero((useful & ~free)[:, child]).tolist()
        if len(doubtful) > _MOST_DOUBTFUL_PARENTS:
            raise TooLargeError(
                f"{len(doubtful)} parents of {names[child]!r} may be in the consensus, at most "
                f"{_MOST_DOUBTFUL_PARENTS} are allowed; learn from more data, or take networks "
                "within a smaller Bayes factor"
            )
        sets = [tuple(sorted([*always, *more])) for more in _subsets(doubtful)]
        lists.append([(members, float(gains[list(members), child].sum())) for members in sets])
    return solve(prune(names, lists), "exact", limits=Limits(None)).network


def _subsets(members: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield all subsets, small ones first."""
    for size in range(len(members) + 1):
        yield from combinations(members, size)
