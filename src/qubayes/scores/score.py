"""`Score`: local scores by definition; `FORMULAS` of counts; `ENGINES`: what scores which data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from math import fsum, inf, isclose, lgamma, log, log1p, prod
from typing import NamedTuple

import numpy as np

from ..data.dataset import Dataset, Kind
from ..foundation.arrays import Bools, Ints
from ..foundation.errors import DataError, SettingError, option
from ..foundation.workers import Workers
from .engine import Engine
from .own import LocalScore, Own, ScoreFunction

# Within these no prior is rounded to zero or infinity, and no score overflows.
LEAST_ESS, LARGEST_ESS = 1e-100, 1e100
AUTO = "auto"
# what `auto` means
DEFAULTS: dict[Kind, str] = {"discrete": "bdeu", "continuous": "bge", "mixed": "bic"}
PENALISED = ("bic", "aic")  # scores with a penalty that can be multiplied
MOST_JOINT_STATES = 10**200  # joint states of a family, by the declared arities
# from here on Stirling's series is exact to double precision: the first term left out is 1e-16
LARGE = 16.0
OWN = "own:"  # begins the names of scores that are functions, and no entry points
DECLARED, OBSERVED, EACH = range(3)  # ways to spread a prior count


class Formula(NamedTuple):
    """A local score in numbers.

    With N_ijk rows in state j of the parents and k of the child i, and prior counts a_ijk that sum
    to a_ij over k,

        score = Σ_jk term(N_ijk, a_ijk) − Σ_j term(N_ij, a_ij) − penalty · free parameters,
        term(c, a) = lnΓ(c + a) − lnΓ(a), and c log c where a = 0.

    The `prior` count is spread evenly over the cells that the declared states make (`DECLARED`),
    over those that the observed states of the parents and of the child make (`OBSERVED`), or stands
    in each declared cell (`EACH`)."""

    spread: int
    prior: float  # a count
    # of a free parameter; a family has (declared states − 1 of the child) · (of the parents)
    penalty: float = 0.0

    def is_evidence(self, rows: int) -> bool:
        """Whether the score is a log marginal likelihood: with a prior, or as BIC approximately."""
        return self.prior > 0.0 or (self.penalty > 0.0 and isclose(self.penalty, bic_penalty(rows)))


def bic_penalty(rows: int) -> float:
    """Return (log N)/2, what a free parameter costs in BIC."""
    return 0.5 * float(np.log(max(rows, 1)))


def priors(formula: Formula, parent_states: float, child_states: float) -> tuple[float, float]:
    """Return the prior count of a cell and that of a state of the parents."""
    if formula.spread == EACH:
        return formula.prior, formula.prior * child_states
    return formula.prior / parent_states / child_states, formula.prior / parent_states


# of the equivalent sample size and the number of rows
FORMULAS: dict[str, Callable[[float, int], Formula]] = {
    "bdeu": lambda ess, rows: Formula(DECLARED, ess),
    "bds": lambda ess, rows: Formula(OBSERVED, ess),
    "bic": lambda ess, rows: Formula(EACH, 0.0, bic_penalty(rows)),
    "aic": lambda ess, rows: Formula(EACH, 0.0, 1.0),
    "k2": lambda ess, rows: Formula(EACH, 1.0),
    "loglik": lambda ess, rows: Formula(EACH, 0.0),
}
NAMES = tuple(FORMULAS)
OWN_ROWS_NAMES = ("bic", "aic", "loglik")  # scores of tables with missing cells
GAUSSIAN_NAMES = ("bge", "bic", "aic", "loglik")  # scores of continuous columns
MIXED_NAMES = ("bic", "aic", "loglik")  # scores of tables of numbers and states


class EngineEntry(NamedTuple):
    """Which engine scores columns of a kind."""

    kind: Kind
    names: tuple[str, ...]  # of its scores
    target: str  # "module:class" of this package; made with (dataset, score)


# tests/test_engines.py compares each entry with the definitions of its scores
ENGINES = (
    EngineEntry("discrete", NAMES, "discrete:Discrete"),
    EngineEntry("continuous", GAUSSIAN_NAMES, "gaussian:Gaussian"),
    EngineEntry("mixed", MIXED_NAMES, "mixed:Mixed"),
)


# how names of scores are usually written, where not in capitals
_WRITTEN = {"bdeu": "BDeu", "bds": "BDs", "bge": "BGe", "loglik": "log-likelihood"}


def score_title(name: str, ess: float | None = None, penalty: float | None = None) -> str:
    """Return the name of a score as it is usually written, with what it depends on.

    >>> score_title("bdeu", 1.0), score_title("bic")
    ('BDeu, equivalent sample size 1', 'BIC')
    """
    plain, _, priors = name.partition("+")
    if plain.startswith(OWN):
        plain = f"own score {plain.removeprefix(OWN)}"
    title = plain.upper() if plain in ("bic", "aic", "k2") else _WRITTEN.get(plain, plain)
    if priors:
        title += " with priors of edges"
    if ess is not None:
        title += f", equivalent sample size {ess:g}"
    return title if penalty is None else f"{title}, {penalty:g} times the penalty"


@cache
def _installed() -> dict[str, Callable[[float, int], Formula]]:
    """Return the scores that other packages bring, by name."""
    return {point.name: point.load() for point in entry_points(group="qubayes.scores")}


@cache
def _local_scores() -> dict[str, EntryPoint]:
    """Return the functions that other packages bring as scores, by name."""
    return {point.name: point for point in entry_points(group="qubayes.local_scores")}


def _loaded(point: EntryPoint) -> LocalScore:
    """Return the function of an entry point, with what its package says of it."""
    found = point.load()
    return found if isinstance(found, LocalScore) else LocalScore(found, point.name)


def is_score(name: str) -> bool:
    """Return whether a score has this name: one of this package or of another."""
    return _is_ours(name) or name in _installed() or name in _local_scores()


def _is_ours(name: str) -> bool:
    """Return whether a score of this package has this name."""
    return name in (AUTO, *FORMULAS) or any(name in entry.names for entry in ENGINES)


@dataclass(frozen=True, slots=True)
class Score:
    """A decomposable score, its equivalent sample size, and a factor of its penalty.

    - `auto`: `bdeu` for discrete columns, `bge` for continuous ones, `bic` for a table of both.
    - `bdeu`: Appendix D.1 with the product of the declared arities as the number of joint parent
      states.
    - `bds`: the same with *observed* joint parent states and *observed* child states.
    - `k2`: every prior count is 1.
    - `loglik`, `aic`, `bic`: maximised log-likelihood less 0, 1 or (log N)/2 per free parameter.
      For `aic` and `bic` that is multiplied by `penalty`; 2 is common in other programs.
    - `bge`: marginal likelihood of a linear Gaussian model, of columns divided by their standard
      deviations. For continuous columns; `loglik`, `aic` and `bic` are for these, too, and for
      tables of both.

    `Score.of` also takes a function, as `function`; it scores columns of any kind.
    """

    name: str = "bdeu"
    ess: float = 1.0
    penalty: float = field(default=1.0, metadata={"plain": 1.0})
    function: LocalScore | None = field(default=None, repr=False, metadata={"plain": None})

    def __post_init__(self) -> None:
        if self.function is None:
            self._check_name()
        if not 0.0 < self.penalty < inf:
            raise SettingError(
                f"{option('penalty', self.penalty)}; give a positive number, usually 1 or 2"
            )
        if self.penalty != 1.0 and self.name not in PENALISED:
            raise SettingError(
                f"{option('penalty', self.penalty)} has no effect on score '{self.name}';"
                f" give it with {option('score', 'bic')} or aic"
            )
        if self.ess != 1.0 and (self.name == "bge" or self.function is not None):
            raise SettingError(
                f"{option('ess', self.ess)} has no effect on score '{self.name}'; leave it out"
            )
        if not LEAST_ESS <= self.ess <= LARGEST_ESS:
            raise SettingError(
                f"equivalent sample size {self.ess}; give a positive number from {LEAST_ESS} to "
                f"{LARGEST_ESS}, usually 1 to 10"
            )

    @classmethod
    def of(
        cls,
        score: "str | Score | LocalScore | ScoreFunction",
        ess: float = 1.0,
        penalty: float = 1.0,
    ) -> "Score":
        """Return the score of this name, or the one that a function of the user is.

        >>> Score.of("bic").name, Score.of(lambda dataset, child, parents: 0.0).name
        ('bic', 'own:<lambda>')
        """
        if isinstance(score, Score):
            return score
        if isinstance(score, str):
            return cls(score, ess, penalty)
        own = score if isinstance(score, LocalScore) else LocalScore(score)
        return cls(OWN + own.name, ess, penalty, own)

    def _check_name(self) -> None:
        """Load the function if the name is that of one; raise for an unknown name."""
        name = self.name
        if _is_ours(name) or name in _installed():
            return
        if name in _local_scores():
            object.__setattr__(self, "function", _loaded(_local_scores()[name]))
            return
        if name.startswith(OWN):
            raise SettingError(
                f"score '{name}' is a function, which a file does not hold; give the function"
                " itself, in Python"
            )
        known = dict.fromkeys(each for entry in ENGINES for each in entry.names)
        others = sorted({*_installed(), *_local_scores()} - known.keys())
        names = ", ".join([*known, *others])
        raise SettingError(f"score '{name}' is unknown; choose one of {names}")

    @property
    def is_formula(self) -> bool:
        """Whether the score is a `Formula` of discrete columns, as `identify` needs it."""
        return self.function is None and (
            self.name in (AUTO, *FORMULAS) or self.name in _installed()
        )

    @property
    def is_equivalent(self) -> bool:
        """Whether networks of one equivalence class are taken to have the same score."""
        return self.function is None or self.function.equivalent

    def told(self, dataset: Dataset) -> Bools | None:
        """Return the (n, n) pairs whose direction equivalent networks do not leave open.

        Experiments tell some. In a table of numbers and states those of each kind with the other:
        no number is a parent of states. All, if equivalent networks may have other scores."""
        if self.function is None and dataset.kind == "mixed":
            is_number = np.array([not states for states in dataset.states])
            across: Bools = is_number[:, None] != is_number
            return across if dataset.told is None else dataset.told | across
        if self.is_equivalent:
            return dataset.told
        everything: Bools = np.ones((dataset.n, dataset.n), np.bool_)
        return everything

    def fitting(self, workers: Workers) -> Workers:
        """Return the workers on which the score may be computed: one thread for most functions."""
        if self.function is None or self.function.parallel:
            return workers
        return replace(workers.here, threads=1)

    def on(self, dataset: Dataset) -> "Score":
        """Return the score for these data, with a name for `auto`; raise if it does not fit."""
        if self.function is not None:
            return self
        kind = dataset.kind
        if dataset.has_gaps and kind == "mixed":
            raise DataError(
                "missing cells in a table of numbers and states; cut the numbers into intervals"
                f" with {option('bins', 3)}, or drop these rows with {option('missing', 'drop')}"
            )
        on_own_rows = dataset.has_gaps and not dataset.to_impute
        default = OWN_ROWS_NAMES[0] if on_own_rows else DEFAULTS[kind]
        chosen = replace(self, name=default) if self.name == AUTO else self
        if on_own_rows and chosen.name not in OWN_ROWS_NAMES:
            raise SettingError(
                f"score '{chosen.name}' needs tables without missing cells; give"
                f" {option('missing', 'impute')} to fill them, or {option('score', 'bic')}"
            )
        if chosen._entry(kind) is None:
            raise chosen._not_for_mixed(dataset) if kind == "mixed" else chosen._not_for(kind)
        return chosen

    def _entry(self, kind: Kind) -> EngineEntry | None:
        """Return which engine has the score for columns of this kind."""
        # one of another package is a formula, too
        name = "bdeu" if self.is_formula and self.name not in NAMES else self.name
        found = (entry for entry in ENGINES if entry.kind == kind and name in entry.names)
        return next(found, None)

    def is_evidence(self, rows: int) -> bool:
        """Whether the score of `rows` rows is a log marginal likelihood, or near one (BIC)."""
        known = self.is_formula and self.formula(rows).is_evidence(rows)
        return known or self.name == "bge"

    @property
    def is_exact_evidence(self) -> bool:
        """Whether the score is a log marginal likelihood itself: it has a prior."""
        known = self.is_formula and self.formula(2).prior > 0.0
        return known or self.name == "bge"

    def formula(self, rows: int) -> Formula:
        """Return the score of discrete columns in numbers, for data of this many rows."""
        if not self.is_formula:
            raise self._not_for("discrete")
        name = DEFAULTS["discrete"] if self.name == AUTO else self.name
        define = FORMULAS[name] if name in FORMULAS else _installed()[name]
        found = define(self.ess, rows)
        if name in PENALISED:
            found = found._replace(penalty=self.penalty * found.penalty)
        if found.spread not in (DECLARED, OBSERVED, EACH) or not (
            0 <= found.prior < inf and 0 <= found.penalty < inf
        ):
            raise SettingError(
                f"score '{self.name}' gives {found}; a prior count and a penalty are finite, from 0"
            )
        return found

    def engine(self, dataset: Dataset) -> Engine:
        """Return what scores parent sets of the data."""
        if self.function is not None:
            return Own(dataset, self.function)
        chosen = self.on(dataset)
        if not dataset.is_plain:
            return _engine_of_partial(dataset, chosen)
        entry = chosen._entry(dataset.kind)
        assert entry is not None  # `on` raises
        # loaded here, with numba, which many commands can do without
        module, _, kind_of_engine = entry.target.partition(":")
        make = getattr(import_module(f".{module}", __package__), kind_of_engine)
        engine: Engine = make(dataset, chosen)
        return engine

    def is_for(self, kind: Kind) -> bool:
        """Whether columns of this kind have the score."""
        return self.function is not None or self._entry(kind) is not None

    def _not_for_mixed(self, dataset: Dataset) -> SettingError:
        """Return the error for a table of numbers and states."""
        number = next(iter(dataset.numbers))
        state = next(name for name in dataset.names if name not in dataset.numbers)
        return SettingError(
            f"score '{self.name}' is for columns of one kind, and {number!r} is continuous and"
            f" {state!r} discrete; use {option('score', 'bic')}, or cut the continuous columns into"
            f" intervals with {option('bins', 3)}"
        )

    def _not_for(self, kind: Kind) -> SettingError:
        """Return the error for data that the score is not for."""
        if self.is_for(kind):
            return SettingError(
                f"score '{self.name}' is no formula of counts, which a search of all parent sets "
                "needs; "
                "`learn` without a number of parents does without"
            )
        if kind == "discrete":
            return SettingError(
                f"score '{self.name}' is for continuous columns; use bdeu for discrete ones"
            )
        return SettingError(
            f"score '{self.name}' is for discrete columns, and all of these are numbers;"
            f" use {option('score', 'bge')}, or cut the columns with {option('bins', 3)}"
        )

    @property
    def stamped_ess(self) -> float | None:
        """The equivalent sample size, None if the score does not depend on it."""
        if not self.is_formula:
            return None
        depends = replace(self, ess=1.0).formula(2) != replace(self, ess=2.0).formula(2)
        return self.ess if depends else None

    @property
    def stamped_penalty(self) -> float | None:
        """The factor of the penalty, None if it is 1."""
        return None if self.penalty == 1.0 else self.penalty


def _engine_of_partial(dataset: Dataset, score: Score) -> Engine:
    """Return the engine of data with missing cells or interventions."""
    if dataset.to_impute:
        raise SettingError(
            f"{option('missing', 'impute')} fills cells while a network is learned;"
            f" give {option('missing', 'rows')} here"
        )
    if dataset.interventions is not None:
        from .experiments import Experiments

        return Experiments(dataset, score)
    if dataset.completions:
        from .completions import MeanScores

        return MeanScores(dataset, score)
    from .own_rows import DiscreteOwnRows, GaussianOwnRows

    kind_of_engine = DiscreteOwnRows if dataset.kind == "discrete" else GaussianOwnRows
    return kind_of_engine(dataset, score)


class FamilyCounts(NamedTuple):
    """Counts of the observed cells of one family."""

    parents: Ints  # N_ij of the observed parent states j
    cells: Ints  # N_ijk of the observed cells (j, k)
    totals: Ints  # N_ij of the parent state of each cell
    parent_states: float  # beta_i: product of the declared arities of the parents
    child_states: int  # gamma_i: declared arity of the child
    child_observed: int  # observed states of the child


def local_score(dataset: Dataset, child: int, parents: Sequence[int], score: Score) -> float:
    """Return log S_i(parents) of the vertex `child`; a network's score is their sum.

    The two sums of a Bayesian score (paper, Appendix D.1) are of the order N log N, and a score
    near 0 is their difference. So N log N − N, which they share, is taken from both first: Σ_jk
    N_ijk log(N_ijk / N_ij) is what stays of it."""
    if dataset.kind != "discrete" or not score.is_formula or not dataset.is_plain:
        return score.engine(dataset).local(child, parents)
    table, formula = count(dataset, child, parents), score.formula(dataset.rows)
    cells, totals = table.cells, table.totals
    # All terms of Σ c log(c / N) have one sign, and log1p keeps those near 0 exact.
    logs = np.where(2 * cells > totals, np.log1p((cells - totals) / totals), np.log(cells / totals))
    total = float(np.sum(cells * logs)) - formula.penalty * (
        table.parent_states * (table.child_states - 1)
    )
    if formula.prior == 0.0:
        return total
    if formula.spread == OBSERVED:
        per_cell, per_parent_state = priors(
            formula, max(1, len(table.parents)), max(1, table.child_observed)
        )
    else:
        per_cell, per_parent_state = priors(formula, table.parent_states, table.child_states)
    return (
        total + _sum_surplus(table.cells, per_cell) - _sum_surplus(table.parents, per_parent_state)
    )


def check_joint_states(dataset: Dataset, family: Sequence[int]) -> None:
    """Raise if the family has too many joint states to be scored."""
    states = prod(dataset.arities[list(family)].tolist())
    if states > MOST_JOINT_STATES:
        raise DataError(
            f"{dataset.names[family[0]]!r} and {len(family) - 1} parents have "
            f"10^{len(str(states)) - 1} joint states; "
            f"at most 10^{len(str(MOST_JOINT_STATES)) - 1} can be scored: "
            "remove parents or merge states"
        )


def count(dataset: Dataset, child: int, parents: Sequence[int]) -> FamilyCounts:
    """Return the contingency table of a family."""
    arities = dataset.arities
    check_joint_states(dataset, [child, *parents])
    label = np.zeros(dataset.stored_rows, dtype=np.int64)
    # relabelled densely each time, so that products of arities cannot overflow
    for parent in parents:
        label = label * int(arities[parent]) + dataset.codes[parent]
        label = np.unique(label, return_inverse=True)[1].reshape(-1)
    joint = label * int(arities[child]) + dataset.codes[child]
    cells, cell_counts = _occurring(joint, dataset.weights)
    parent_counts = _occurring(label, dataset.weights)[1]
    return FamilyCounts(
        parents=parent_counts,
        cells=cell_counts,
        totals=parent_counts[cells // int(arities[child])],
        parent_states=float(prod(arities[list(parents)].tolist())),
        child_states=int(arities[child]),
        child_observed=len(np.unique(dataset.codes[child])),
    )


def _occurring(labels: Ints, weights: Ints | None) -> tuple[Ints, Ints]:
    """Return the labels that occur, and the number of rows of each."""
    if weights is None:
        return np.unique(labels, return_counts=True)
    found, places = np.unique(labels, return_inverse=True)
    counts = np.zeros(len(found), np.int64)
    np.add.at(counts, places.reshape(-1), weights)
    return found, counts


def rising(count: int, prior: float) -> float:
    """Return term(count, prior) = lnΓ(count + prior) − lnΓ(prior); count log count if prior = 0.

    By `math`, not scipy: to load that takes longer than all the work on a small data set. Kernels
    compile this, too."""
    if count == 0:
        return 0.0
    if prior == 0.0:
        return count * log(count)
    if prior < LARGE:
        return lgamma(count + prior) - lgamma(prior)
    # By Stirling's series: of two log-gammas only rounding would be left.
    head = count * log(count + prior) - count + (prior - 0.5) * log1p(count / prior)
    return head + (stirling(count + prior) - stirling(prior))


def stirling(x: float) -> float:
    """Return lnΓ(x) − (x − 1/2) log x + x − log √2π for x >= LARGE, by the series in 1/x."""
    s = 1.0 / (x * x)
    return ((((1 / 1188 * s - 1 / 1680) * s + 1 / 1260) * s - 1 / 360) * s + 1 / 12) / x


def _surplus(count: int, prior: float) -> float:
    """Return `rising` less count log count − count: by Stirling's series nothing large cancels."""
    if count + prior < LARGE:
        return rising(count, prior) - count * log(count) + count
    head = count * log1p(prior / count)
    if prior < LARGE:
        gamma = (
            (prior - 0.5) * log(count + prior)
            + 0.918938533204672742
            + stirling(count + prior)
            - prior
        )
        return head + gamma - lgamma(prior)  # 0.9189...: log √2π
    return head + (prior - 0.5) * log1p(count / prior) + (stirling(count + prior) - stirling(prior))


def _sum_surplus(counts: Ints, prior: float) -> float:
    """Return the sum of `_surplus` over the counts."""
    values, times = np.unique(counts, return_counts=True)
    return fsum(
        n * _surplus(count, prior) for count, n in zip(values.tolist(), times.tolist(), strict=True)
    )
