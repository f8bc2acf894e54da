"""Local scores, straight from their definitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma, log
from typing import NamedTuple

import numpy as np

from ..arrays import Ints
from ..data.dataset import Dataset
from ..errors import SettingError

NAMES = ("bdeu", "bds", "bic", "aic", "k2", "loglik")
_WITH_PRIOR = ("bdeu", "bds")


@dataclass(frozen=True, slots=True)
class Score:
    """A decomposable score and its equivalent sample size.

    - `bdeu`: Appendix D.1 with the product of the declared arities as the number of joint parent states.
    - `bds`: the same with *observed* joint parent states and *observed* child states (design §2.3).
    - `k2`: every prior count is 1.
    - `loglik`, `aic`, `bic`: maximised log-likelihood less 0, 1 or (log N)/2 per free parameter.
    """

    name: str = "bdeu"
    ess: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise SettingError(f"score '{self.name}' is unknown; choose one of {', '.join(NAMES)}")
        if not (np.isfinite(self.ess) and self.ess > 0):
            raise SettingError(f"equivalent sample size {self.ess}; give a positive number, usually 1 to 10")

    @property
    def stamped_ess(self) -> float | None:
        """The equivalent sample size if this score has one."""
        return self.ess if self.name in _WITH_PRIOR else None


class Table(NamedTuple):
    """Counts of one family: the observed cells only."""

    parents: Ints  # N_ij of the observed parent states j
    cells: Ints  # N_ijk of the observed cells (j, k)
    parent_states: float  # beta_i: product of the declared arities of the parents
    child_states: int  # gamma_i: declared arity of the child
    child_observed: int  # observed states of the child


def local_score(dataset: Dataset, child: int, parents: Sequence[int], score: Score) -> float:
    """log S_i(parents) for the vertex `child`; the sum over vertices is the score of a network."""
    table = count(dataset, child, parents)
    if score.name in ("bdeu", "bds", "k2"):
        return _bayesian(table, score)
    return _likelihood(table) - _parameters(table) * _price(score.name, dataset.rows)


def count(dataset: Dataset, child: int, parents: Sequence[int]) -> Table:
    """The contingency table of a family."""
    arities = dataset.arities
    label = np.zeros(dataset.rows, dtype=np.int64)
    for parent in parents:  # relabelled densely each time, so that products of arities cannot overflow
        label = label * int(arities[parent]) + dataset.codes[parent]
        label = np.unique(label, return_inverse=True)[1].reshape(-1)
    cell = label * int(arities[child]) + dataset.codes[child]
    return Table(
        parents=np.unique(label, return_counts=True)[1],
        cells=np.unique(cell, return_counts=True)[1],
        parent_states=float(np.prod(arities[list(parents)].astype(float))),
        child_states=int(arities[child]),
        child_observed=len(np.unique(dataset.codes[child])),
    )


def _bayesian(table: Table, score: Score) -> float:
    """Σ_j [lnΓ(α_ij) − lnΓ(N_ij + α_ij)] + Σ_jk [lnΓ(N_ijk + α_ijk) − lnΓ(α_ijk)] (Appendix D.1)."""
    if score.name == "bds":
        per_parent_state = score.ess / max(1, len(table.parents))
        per_cell = per_parent_state / max(1, table.child_observed)
    elif score.name == "bdeu":
        per_parent_state = score.ess / table.parent_states
        per_cell = per_parent_state / table.child_states
    else:
        per_parent_state, per_cell = float(table.child_states), 1.0
    return _sum_rising(table.cells, per_cell) - _sum_rising(table.parents, per_parent_state)


def rising(count: int, prior: float) -> float:
    """lnΓ(count + prior) − lnΓ(prior); count log count where the prior is 0.

    By `math`, not scipy: to load that takes longer than all the work on a small data set.
    """
    if count == 0:
        return 0.0
    return lgamma(count + prior) - lgamma(prior) if prior else count * log(count)


def _sum_rising(counts: Ints, prior: float) -> float:
    """Σ of `rising` over the counts."""
    values, times = np.unique(counts, return_counts=True)
    return float(sum(n * rising(count, prior) for count, n in zip(values.tolist(), times.tolist(), strict=True)))


def _likelihood(table: Table) -> float:
    def sum_c_log_c(counts: Ints) -> float:
        return float(np.sum(counts * np.log(counts)))

    return sum_c_log_c(table.cells) - sum_c_log_c(table.parents)


def _parameters(table: Table) -> float:
    return table.parent_states * (table.child_states - 1)


def _price(name: str, rows: int) -> float:
    """What one free parameter costs."""
    return {"loglik": 0.0, "aic": 1.0, "bic": 0.5 * float(np.log(max(rows, 1)))}[name]
