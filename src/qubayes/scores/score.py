"""Local scores, straight from their definitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, lgamma, log, log1p, prod
from typing import NamedTuple

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Ints
from ..foundation.errors import DataError, SettingError

NAMES = ("bdeu", "bds", "bic", "aic", "k2", "loglik")
_WITH_PRIOR = ("bdeu", "bds")
# Within these no prior is rounded to zero or infinity, and no score overflows.
LEAST_ESS, LARGEST_ESS = 1e-100, 1e100
MOST_JOINT_STATES = 10**200  # of a family, by the declared arities
LARGE = 16.0  # from here on STIRLING is exact to double precision: the first term left out is 2e-3 LARGE^-11 = 1e-16
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)  # of 1/x, 1/x^3, ... in lnΓ(x)


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
        if not LEAST_ESS <= self.ess <= LARGEST_ESS:
            raise SettingError(
                f"equivalent sample size {self.ess}; give a positive number from {LEAST_ESS} to {LARGEST_ESS}, usually "
                "1 to 10"
            )

    @property
    def stamped_ess(self) -> float | None:
        """The equivalent sample size if this score has one."""
        return self.ess if self.name in _WITH_PRIOR else None


class Table(NamedTuple):
    """Counts of one family: the observed cells only."""

    parents: Ints  # N_ij of the observed parent states j
    cells: Ints  # N_ijk of the observed cells (j, k)
    totals: Ints  # N_ij of the parent state of each cell
    parent_states: float  # beta_i: product of the declared arities of the parents
    child_states: int  # gamma_i: declared arity of the child
    child_observed: int  # observed states of the child


def local_score(dataset: Dataset, child: int, parents: Sequence[int], score: Score) -> float:
    """log S_i(parents) for the vertex `child`; the sum over vertices is the score of a network."""
    table = count(dataset, child, parents)
    if score.name in ("bdeu", "bds", "k2"):
        return _bayesian(table, score)
    return _likelihood(table) - _parameters(table) * _price(score.name, dataset.rows)


def check_joint_states(dataset: Dataset, family: Sequence[int]) -> None:
    """Raise if the family has so many joint states that its score cannot be computed."""
    states = prod(dataset.arities[list(family)].tolist())
    if states > MOST_JOINT_STATES:
        raise DataError(
            f"{dataset.names[family[0]]!r} and {len(family) - 1} parents have 10^{len(str(states)) - 1} joint states; "
            f"at most 10^{len(str(MOST_JOINT_STATES)) - 1} can be scored: remove parents or merge states"
        )


def count(dataset: Dataset, child: int, parents: Sequence[int]) -> Table:
    """The contingency table of a family."""
    arities = dataset.arities
    check_joint_states(dataset, [child, *parents])
    label = np.zeros(dataset.rows, dtype=np.int64)
    for parent in parents:  # relabelled densely each time, so that products of arities cannot overflow
        label = label * int(arities[parent]) + dataset.codes[parent]
        label = np.unique(label, return_inverse=True)[1].reshape(-1)
    cells, cell_counts = np.unique(label * int(arities[child]) + dataset.codes[child], return_counts=True)
    parent_counts = np.unique(label, return_counts=True)[1]
    return Table(
        parents=parent_counts,
        cells=cell_counts,
        totals=parent_counts[cells // int(arities[child])],
        parent_states=float(prod(arities[list(parents)].tolist())),
        child_states=int(arities[child]),
        child_observed=len(np.unique(dataset.codes[child])),
    )


def _bayesian(table: Table, score: Score) -> float:
    """Σ_j [lnΓ(α_ij) − lnΓ(N_ij + α_ij)] + Σ_jk [lnΓ(N_ijk + α_ijk) − lnΓ(α_ijk)] (Appendix D.1).

    Both sums are of the order N log N, and a score near 0 is their difference. So N log N − N, which they share, is
    taken from both first: Σ_jk N_ijk log(N_ijk / N_ij) is what stays of it.
    """
    if score.name == "bds":
        per_parent_state = score.ess / max(1, len(table.parents))
        per_cell = per_parent_state / max(1, table.child_observed)
    elif score.name == "bdeu":
        per_parent_state = score.ess / table.parent_states
        per_cell = per_parent_state / table.child_states
    else:
        per_parent_state, per_cell = float(table.child_states), 1.0
    return _likelihood(table) + _sum_surplus(table.cells, per_cell) - _sum_surplus(table.parents, per_parent_state)


def rising(count: int, prior: float) -> float:
    """lnΓ(count + prior) − lnΓ(prior); count log count where the prior is 0.

    By `math`, not scipy: to load that takes longer than all the work on a small data set.
    """
    if count == 0:
        return 0.0
    if prior == 0.0:
        return count * log(count)
    if prior < LARGE:
        return lgamma(count + prior) - lgamma(prior)
    return count * log(count + prior) - count + (prior - 0.5) * log1p(count / prior) + _difference(count, prior)


def _surplus(count: int, prior: float) -> float:
    """`rising` less count log count − count, by Stirling's series: nothing large is subtracted."""
    if count + prior < LARGE:
        return rising(count, prior) - count * log(count) + count
    if prior < LARGE:
        gamma = (prior - 0.5) * log(count + prior) + 0.918938533204672742 + _stirling(count + prior) - prior
        return count * log1p(prior / count) + gamma - lgamma(prior)  # 0.9189...: log √2π
    return count * log1p(prior / count) + (prior - 0.5) * log1p(count / prior) + _difference(count, prior)


def _difference(count: int, prior: float) -> float:
    return _stirling(count + prior) - _stirling(prior)


def _stirling(x: float) -> float:
    """lnΓ(x) − (x − 1/2) log x + x − log √2π for x of LARGE or more."""
    square = 1.0 / (x * x)
    total = 0.0
    for coefficient in reversed(STIRLING):
        total = total * square + coefficient
    return total / x


def _sum_surplus(counts: Ints, prior: float) -> float:
    """Σ of `_surplus` over the counts."""
    values, times = np.unique(counts, return_counts=True)
    return fsum(n * _surplus(count, prior) for count, n in zip(values.tolist(), times.tolist(), strict=True))


def _likelihood(table: Table) -> float:
    """Σ c log(c / N) over the cells: all terms have one sign, and log1p keeps those near 0 exact."""
    cells, totals = table.cells, table.totals
    mostly = 2 * cells > totals
    logs = np.where(mostly, np.log1p((cells - totals) / totals), np.log(cells / totals))
    return float(np.sum(cells * logs))


def _parameters(table: Table) -> float:
    return table.parent_states * (table.child_states - 1)


def _price(name: str, rows: int) -> float:
    """What one free parameter costs."""
    return {"loglik": 0.0, "aic": 1.0, "bic": 0.5 * float(np.log(max(rows, 1)))}[name]
