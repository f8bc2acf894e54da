"""Engines for tables with missing cells: each family is scored on the rows that have its values.

A variable i with the parents P has n rows in which none of them is missing, of N in all. Its score
is

    N/n · (L(i|P) − L(i) − penalty · parameters) + N · (mean log-likelihood of i alone),

with both maximised log-likelihoods L on these n rows, and the mean on all rows that have a value of
i. The gain of the parents is measured on the same rows with and without them; scores of different
families would otherwise differ because their rows do. On complete rows this is bic, aic or loglik.

A score on these rows alone says nothing of why cells are missing: like dropping incomplete rows,
it supposes that this does not depend on the values."""

from collections.abc import Sequence
from math import log, pi
from typing import Any

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Bools, Floats, Ints, SmallInts
from ..foundation.jit import inner, kernel
from .columns import LEAST_RESIDUAL
from .score import Score, bic_penalty

_NOTHING = np.zeros((1, 0), np.int32)  # the empty set
_CELLS = 1 << 22  # of the matrices that are made for several variables at once


class _OwnRows:
    """What both engines share: penalties, the variables alone, pairs as extensions."""

    def __init__(self, dataset: Dataset, score: Score) -> None:
        self.dataset = dataset
        self.score = score
        self.n = dataset.n
        self.rows = dataset.rows
        factor = {"bic": bic_penalty(dataset.rows), "aic": 1.0}.get(score.name, 0.0)
        self._penalty = score.penalty * factor

    def pairs(self, children: Ints) -> Floats:
        """(children, n) scores with each single parent; with the child itself: without parents."""
        scores = np.empty((len(children), self.n))
        for row, child in zip(scores, children.tolist(), strict=True):
            found = self.extensions(child, _NOTHING, None)[0]
            row[:] = found[:-1]
            row[child] = found[-1]
        return scores

    def extensions(self, child: int, sets: SmallInts, others: Ints | None) -> Floats:
        """(sets, others + 1) scores with each set and one more parent; last: the set alone."""
        variables = np.arange(self.n) if others is None else others
        scores = self._scan(child, sets, variables)
        of_set, _, repeated = np.nonzero(sets[:, :, None] == variables)
        scores[of_set, repeated] = scores[of_set, -1]
        scores[:, :-1][:, variables == child] = -np.inf
        return scores

    def _scan(self, child: int, sets: SmallInts, variables: Ints) -> Floats:
        """Return the scores of the sets with each variable, and alone."""
        raise NotImplementedError

    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the local score of the child with these parents, from its definition."""
        family = np.array([child, *parents])
        rows = np.flatnonzero(self.dataset.observed(family))
        alone = np.flatnonzero(self.dataset.observed(family[:1]))
        if len(rows) < self._least_rows(len(parents)):
            return -np.inf
        own = self.dataset.select(family).take(rows)
        gain = _log_likelihood(own, range(1, len(family))) - _log_likelihood(own, ())
        gain -= self._penalty * self._parameters(family)
        mean = _log_likelihood(self.dataset.select(family[:1]).take(alone), ()) / len(alone)
        return self.rows * (gain / len(rows) + mean)

    def _parameters(self, family: Ints) -> float:
        """Return the number of free parameters of the first variable given the others."""
        raise NotImplementedError

    def _least_rows(self, parents: int) -> int:
        """Return how many rows a score with so many parents needs."""
        raise NotImplementedError


def _log_likelihood(dataset: Dataset, parents: Sequence[int]) -> float:
    """Return the maximised log-likelihood of the first variable of complete rows."""
    return Score("loglik").engine(dataset).local(0, parents)


class DiscreteOwnRows(_OwnRows):
    """Scores parent sets of discrete columns with missing cells (an `Engine`)."""

    def __init__(self, dataset: Dataset, score: Score) -> None:
        super().__init__(dataset, score)
        self._states = dataset.arities
        codes = dataset.codes.astype(np.int32)
        assert dataset.missing is not None
        codes[dataset.missing.mask] = -1
        self._codes = codes
        counts = np.arange(self.rows + 1, dtype=float)
        self._logs = counts * np.log(np.maximum(counts, 1.0))

    def _parameters(self, family: Ints) -> float:
        states = self._states[family].astype(float)
        return float(states[1:].prod() * (states[0] - 1.0))

    def _least_rows(self, parents: int) -> int:
        return 1

    def _scan(self, child: int, sets: SmallInts, variables: Ints) -> Floats:
        scores = np.empty((len(sets), len(variables) + 1))
        most = int(self._states.max(initial=1))
        _score_own_rows(
            child,
            sets,
            np.append(variables, -1),
            self._codes,
            self._states,
            self._logs,
            self._penalty,
            np.zeros((3, self.rows * most + 1), np.int32),
            scores,
        )
        return scores


@kernel
def _score_own_rows(
    child: int,
    sets: SmallInts,
    others: Ints,
    codes: SmallInts,
    states: Ints,
    logs: Floats,
    penalty: float,
    scratch: SmallInts,
    scores: Floats,
) -> None:
    """Set scores[s] to those with the set s and each of the others; -1 is the set alone.

    Missing cells have the code -1. `logs` are c log c. The scratch has three rows: the number of
    the parents' state in each row, numbers of states that occur, and counts."""
    own = codes[child]
    label = scratch[0]
    for row in range(len(own)):
        label[row] = min(own[row], 0)
    _, alone, n = _log_likelihoods(1, own, -1, codes, states[child], 1, logs, scratch)
    mean = alone / n
    for s in range(len(sets)):
        for row in range(len(own)):
            label[row] = min(own[row], 0)
        groups = 1
        parameters = states[child] - 1.0
        for parent in sets[s]:
            if parent >= 0:
                groups = _split(groups, codes[parent], states[parent], scratch)
                parameters *= states[parent]
        for place in range(len(others)):
            other = others[place]
            its_states = 1 if other < 0 else states[other]
            given, alone, n = _log_likelihoods(
                groups, own, other, codes, states[child], its_states, logs, scratch
            )
            scores[s, place] = -np.inf
            if n > 0:
                gain = given - alone - penalty * parameters * its_states
                scores[s, place] = len(own) * (gain / n + mean)


@inner
def _split(groups: int, column: Any, size: int, scratch: Any) -> int:
    """Number the states of the parents and one more parent; return how many occur."""
    label, numbers = scratch[0], scratch[1]
    for place in range(groups * size):
        numbers[place] = 0
    found = 0
    for row in range(len(column)):
        if label[row] < 0:
            continue
        if column[row] < 0:
            label[row] = -1
            continue
        place = label[row] * size + column[row]
        if numbers[place] == 0:
            found += 1
            numbers[place] = found
        label[row] = numbers[place] - 1
    return found


@inner
def _log_likelihoods(
    groups: int,
    own: Any,
    other: int,
    codes: Any,
    child_states: int,
    size: int,
    logs: Any,
    scratch: Any,
) -> Any:
    """Return the log-likelihood given the parents and another one, that without any, and the rows.

    All three are of the rows that have these values; `other`, which has `size` states, is -1 for
    none."""
    label, numbers, counts = scratch[0], scratch[1], scratch[2]
    for place in range(groups * size):
        numbers[place] = 0
    found = 0
    rows = 0
    for row in range(len(own)):
        state = 0 if other < 0 else codes[other, row]
        if label[row] < 0 or state < 0:
            continue
        place = label[row] * size + state
        if numbers[place] == 0:
            for k in range(child_states):
                counts[found * child_states + k] = 0
            found += 1
            numbers[place] = found
        counts[(numbers[place] - 1) * child_states + own[row]] += 1
        rows += 1
    given = 0.0
    for j in range(found):
        total = 0
        for k in range(child_states):
            count = counts[j * child_states + k]
            total += count
            given += logs[count]
        given -= logs[total]
    alone = -logs[rows]
    for k in range(child_states):
        total = 0
        for j in range(found):
            total += counts[j * child_states + k]
        alone += logs[total]
    return given, alone, rows


class GaussianOwnRows(_OwnRows):
    """Scores parent sets of continuous columns with missing cells (an `Engine`)."""

    def __init__(self, dataset: Dataset, score: Score) -> None:
        super().__init__(dataset, score)
        assert dataset.missing is not None
        self._known: Bools = ~dataset.missing.mask
        cells = np.array([dataset.numbers[name] for name in dataset.names])
        means = np.nanmean(cells, axis=1)
        deviations = np.nanstd(cells, axis=1)
        self._cells = np.where(self._known, (cells - means[:, None]) / deviations[:, None], 0.0)
        self._alone = -0.5 * self.rows * (1.0 + log(2.0 * pi) + 2.0 * np.log(deviations))

    def _parameters(self, family: Ints) -> float:
        return len(family) + 1.0

    def _least_rows(self, parents: int) -> int:
        return parents + 3

    def _scan(self, child: int, sets: SmallInts, variables: Ints) -> Floats:
        scores = np.empty((len(sets), len(variables) + 1))
        for row, its in zip(scores, sets, strict=True):
            parents = its[its >= 0]
            row[-1] = self._score(child, parents, None)[0]
            step = max(1, _CELLS // (len(parents) + 3) ** 2)
            for first in range(0, len(variables), step):
                part = variables[first : first + step]
                row[first : first + len(part)] = self._score(child, parents, part)
        return scores

    def _score(self, child: int, parents: Ints, others: Ints | None) -> Floats:
        """Return the scores with the parents and each of the others, or without another one."""
        family = [*parents.tolist(), child]
        rows = np.flatnonzero(self._known[family].all(axis=0))
        fixed = np.vstack([np.ones(len(rows)), self._cells[np.ix_(family, rows)]])
        size = len(parents) + 1 + (others is not None)  # regressors, the constant among them
        known = np.ones((1, len(rows))) if others is None else self._known[others][:, rows] * 1.0
        # sums of products over the rows that each of the others has
        first, second = np.triu_indices(len(fixed))
        products = (fixed[first] * fixed[second]) @ known.T
        places = [*range(len(parents) + 1), size]
        gram = np.zeros((len(known), size + 1, size + 1))
        for a, b, sums in zip(first.tolist(), second.tolist(), products, strict=True):
            gram[:, places[a], places[b]] = sums
            gram[:, places[b], places[a]] = sums
        if others is not None:
            more = self._cells[others][:, rows]
            with_fixed = more @ fixed.T
            gram[:, size - 1, places] = with_fixed
            gram[:, places, size - 1] = with_fixed
            gram[:, size - 1, size - 1] = (more * more).sum(axis=1)
        ratios = _part_left(gram)
        n = known.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = -0.5 * n * np.log(ratios) - self._penalty * (size + 1.0)
            scores = self.rows / n * gain + self._alone[child]
        # the regressors without the constant are the parents
        scores[(n < self._least_rows(size - 1)) | ~(ratios > LEAST_RESIDUAL)] = -np.inf
        return np.asarray(scores)


def _part_left(gram: Floats) -> Floats:
    """(many,) part of the last variable's variance that the others leave; NaN if they depend.

    The first variable is the constant: after its step the matrix holds sums of squares around
    means."""
    size = gram.shape[1] - 1
    variances = np.zeros(0)
    for step in range(size):
        pivots = gram[:, step, step]
        if step:
            least = LEAST_RESIDUAL * np.maximum(variances[:, step], np.finfo(float).tiny)
            pivots = np.where(pivots > least, pivots, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            gram = gram - gram[:, :, step, None] * gram[:, None, step] / pivots[:, None, None]
        if step == 0:
            variances = np.diagonal(gram, axis1=1, axis2=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(gram[:, size, size] / variances[:, size])
