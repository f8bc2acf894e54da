"""`Mixed`: the engine of tables with numbers and states; conditional linear Gaussian models.

A discrete child has discrete parents only, and is scored by counts. A continuous child with the
discrete parents Δ and the continuous parents Γ has one regression for each *part* of the rows:
those with the same states of Δ. A part of few rows would fit them perfectly, with an infinite
likelihood. So a row is added to each part, as a prior: the covariance R_j of part j and that of the
prior, W, are those of `parts.py`. With N_j rows in part j and κ = 1 prior row,

    score = −N/2 (1 + log 2π) − Σ_j [(N_j + κ)/2 log R_j(i|Γ) − κ/2 log W(i|Γ)]
            − penalty · (states of Δ) · (|Γ| + 2),

where R(i|Γ) is the residual variance of the child. This is the penalised log-likelihood of the
regressions with the covariances R_j: the log-likelihood of all rows, less that of the prior rows
under W. Without discrete parents it is the score of `gaussian.py`. docs/howto-mixed.md shows why
this prior was chosen."""

from collections.abc import Sequence
from functools import lru_cache
from math import log, pi
from typing import NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Floats, Ints, SmallInts
from .columns import LEAST_RESIDUAL
from .discrete import Discrete
from .parts import PRIOR, Prior, covariances_of, shrunken, split_rows
from .score import Score, bic_penalty, check_joint_states

_KEPT = 64  # splits of the rows whose covariances are kept


class Parts(NamedTuple):
    """The covariances R_j of the parts of the rows, and last that of the prior, W.

    With the weights w, −Σ_j w_j log R_j(i|Γ) is what the score takes of the data."""

    matrices: Floats  # (parts + 1, columns, columns)
    weights: Floats  # (parts + 1,)
    states: float  # of the discrete parents, as declared; observed or not


def parts_of(
    cells: Floats, labels: Ints, times: Ints | None, whole: Floats, states: float, prior: Prior
) -> Parts:
    """Return the parts of the rows for these columns."""
    counts, _, covariances = covariances_of(cells, labels, times)
    matrices, added = shrunken(counts, covariances, whole, prior)
    weights = 0.5 * (counts + prior.rows)
    if prior.rows == 0.0:
        return Parts(matrices, weights, states)
    of_prior = -0.5 * prior.rows * len(counts)
    return Parts(np.concatenate([matrices, added[None]]), np.append(weights, of_prior), states)


class Mixed:
    """Scores parent sets of a table of numbers and states (an `Engine`)."""

    def __init__(self, dataset: Dataset, score: Score, prior: Prior = PRIOR) -> None:
        self.dataset = dataset
        self.score = score
        self.prior = prior
        self.n = dataset.n
        self.rows = dataset.rows
        is_number = np.array([not states for states in dataset.states])
        self.continuous = np.flatnonzero(is_number)
        self.discrete = np.flatnonzero(~is_number)
        # of each variable among those of its kind
        self.places = np.where(is_number, np.cumsum(is_number), np.cumsum(~is_number)) - 1
        self.is_number = is_number
        factor = {"bic": bic_penalty(dataset.rows), "aic": 1.0}.get(score.name, 0.0)
        self.penalty = score.penalty * factor  # of a parameter
        numbers = dataset.select(self.continuous)
        deviations, self.whole = numbers.moments
        self.shifts = -dataset.rows * np.log(deviations)  # the units of the columns
        cells = np.array([numbers.numbers[name] for name in numbers.names])
        self.cells: Floats = (cells - dataset.mean(cells)[:, None]) / deviations[:, None]
        self.codes = dataset.codes[self.discrete]
        self.arities = dataset.arities[self.discrete].tolist()
        self.of_states = Discrete(dataset.select(self.discrete), score)
        self.labels_of = lru_cache(_KEPT)(self._labels_of)
        self._all_parts = lru_cache(_KEPT)(self.parts)

    def __reduce__(self) -> tuple[type["Mixed"], tuple[Dataset, Score, Prior]]:
        """Leave what is kept behind when the engine is sent to another process."""
        return Mixed, (self.dataset, self.score, self.prior)

    def _labels_of(self, discrete: tuple[int, ...]) -> Ints:
        """Return the part of each row by discrete columns, which are numbered among these."""
        if not discrete:
            return np.zeros(self.codes.shape[1], np.int64)
        last = discrete[-1]
        before = self.labels_of(discrete[:-1])
        return split_rows(np.array([before, self.codes[last]]), [1, self.arities[last]])

    def states_of(self, discrete: Sequence[int]) -> float:
        """Return the number of joint states of discrete columns."""
        return float(np.prod([float(self.arities[place]) for place in discrete]))

    def parts(self, discrete: tuple[int, ...], columns: tuple[int, ...] | None = None) -> Parts:
        """Return the parts by these discrete columns, for some or all continuous columns."""
        labels = self.labels_of(discrete)
        states = self.states_of(discrete)
        times = self.dataset.weights
        if columns is None:
            return parts_of(self.cells, labels, times, self.whole, states, self.prior)
        chosen = list(columns)
        whole = self.whole[np.ix_(chosen, chosen)]
        return parts_of(self.cells[chosen], labels, times, whole, states, self.prior)

    def _split(self, members: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the places of the discrete and of the continuous ones among their kinds."""
        discrete = [int(self.places[v]) for v in members if not self.is_number[v]]
        continuous = [int(self.places[v]) for v in members if self.is_number[v]]
        return tuple(sorted(discrete)), tuple(sorted(continuous))

    def constants(self, parents: int, states: float) -> Floats:
        """Return (continuous columns,) the scores but for what they take of the parents' data."""
        value = -0.5 * self.rows * (1.0 + log(2.0 * pi)) - self.penalty * states * (parents + 2)
        return np.asarray(value + self.shifts)

    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the local score of the child; -inf for a number as parent of a state."""
        discrete, continuous = self._split(parents)
        place = int(self.places[child])
        if not self.is_number[child]:
            return -np.inf if continuous else self.of_states.local(place, discrete)
        check_joint_states(self.dataset, [child, *self.discrete[list(discrete)].tolist()])
        return self._with_states(place, discrete, continuous)

    def _with_states(self, child: int, discrete: tuple[int, ...], others: tuple[int, ...]) -> float:
        """Return the score of a continuous child with discrete and other continuous columns."""
        parts = self.parts(discrete, (*others, child))
        residuals, _ = _given(parts.matrices, list(range(len(others))), len(others))
        data = _data(parts, residuals[:, -1], parts.matrices[:, -1, -1])
        return float(self.constants(len(others), parts.states)[child]) - data

    def pairs(self, children: Ints) -> Floats:
        """(children, n) scores with each single parent; with the child itself: without parents."""
        scores = np.empty((len(children), self.n))
        nothing = np.zeros((1, 0), np.int32)
        for row, child in zip(scores, children.tolist(), strict=True):
            found = self.extensions(child, nothing, None)[0]
            row[:] = found[:-1]
            row[child] = found[-1]
        return scores

    def extensions(self, child: int, sets: SmallInts, others: Ints | None) -> Floats:
        """(sets, others + 1) scores with each set and one more parent; last: the set alone."""
        variables = np.arange(self.n) if others is None else others
        scores = np.full((len(sets), len(variables) + 1), -np.inf)
        if self.is_number[child]:
            for row, members in zip(scores, sets, strict=True):
                self._extend(child, members[members >= 0].tolist(), variables, row)
            return scores
        kept = ~np.where(sets >= 0, self.is_number[sets], False).any(axis=1)
        possible = ~self.is_number[variables]
        inside = np.where(sets[kept] >= 0, self.places[sets[kept]], -1).astype(np.int32)
        chosen = self.places[variables[possible]]
        found = self.of_states.extensions(int(self.places[child]), inside, chosen)
        scores[np.ix_(kept, np.append(possible, True))] = found
        return scores

    def _extend(self, child: int, members: list[int], others: Ints, scores: Floats) -> None:
        """Set the scores of a continuous child with these parents and one of the others."""
        discrete, continuous = self._split(members)
        place = int(self.places[child])
        parts = self._all_parts(discrete)
        residuals, covariances = _given(parts.matrices, list(continuous), place)
        alone = float(self.constants(len(continuous), parts.states)[place])
        alone -= _data(parts, residuals[:, place], parts.matrices[:, place, place])
        further = float(self.constants(len(continuous) + 1, parts.states)[place])
        scores[-1] = alone
        for column, other in enumerate(others.tolist()):
            if other == child:
                continue
            which = int(self.places[other])
            if other in members:
                scores[column] = alone
            elif not self.is_number[other]:
                larger = tuple(sorted((*discrete, which)))
                scores[column] = self._with_states(place, larger, continuous)
            else:
                of_other = residuals[:, which]
                if not (of_other > LEAST_RESIDUAL * parts.matrices[:, which, which]).all():
                    continue
                left = residuals[:, place] - covariances[:, which] ** 2 / of_other
                scores[column] = further - _data(parts, left, parts.matrices[:, place, place])


def _given(matrices: Floats, parents: list[int], child: int) -> tuple[Floats, Floats]:
    """Return (parts, columns) the residual variances given the parents, and covariances.

    The covariances are those with the child."""
    residuals = np.einsum("jxx->jx", matrices).copy()
    covariances = matrices[:, child].copy()
    if parents:
        of_parents = matrices[:, parents]
        try:
            weights = np.linalg.solve(of_parents[:, :, parents], of_parents)
        except np.linalg.LinAlgError:  # without a prior: a part of few rows
            return np.full_like(residuals, np.nan), covariances
        residuals -= np.einsum("jpx,jpx->jx", of_parents, weights)
        covariances -= np.einsum("jp,jpx->jx", of_parents[:, :, child], weights)
    return residuals, covariances


def _data(parts: Parts, left: Floats, before: Floats) -> float:
    """Return what the score takes of the data; infinite if the child is a function of parents."""
    if not (left > LEAST_RESIDUAL * before).all():
        return np.inf
    return float(parts.weights @ np.log(left))
