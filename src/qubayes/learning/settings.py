"""Settings of `learn` and of `solve_candidates`: everything that a result depends on besides its input."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..candidates import Knowledge, Search, read_knowledge
from ..data import Dataset, ReadSettings
from ..foundation.errors import SettingError, check_options, option
from ..foundation.settings import facts
from ..scores import Score
from ..search import Limits, Solver, solver_named
from ..search.exact.alternatives import check_wanted
from ..search.run import name_for

DEFAULT_SECONDS = 10.0  # for the solver
DEFAULT_PARENTS = 3


def limits_of(time_limit: float | None, moves: int | None, seed: int) -> Limits:
    """Return the limits of a solver: DEFAULT_SECONDS unless one is given, no limit of time for `math.inf`."""
    seconds = DEFAULT_SECONDS if time_limit is None and moves is None else time_limit
    return Limits(None if seconds == math.inf else seconds, moves, seed)


@dataclass(frozen=True, slots=True)
class LearnSettings:
    """Settings of `learn`, shared by the function, the command line and the scikit-learn estimator.

    max_parents : largest number of parents of a variable. None: 3, or what fits `time_limit` (fewer, or only possible
        parents; a warning says which). A number that does not fit is refused. `qubayes plan` predicts the cost.
    score, ess : name of the local score, and its equivalent sample size where it has one; or a `Score`.
    knowledge : what is known of edges, order and numbers of parents (`Knowledge`); or the JSON file that holds it.
    solver : "auto" proves what it can and anneals the rest; the other names are those of `qubayes solve`.
    time_limit : seconds for reading, candidate sets and solver together; the solver has a tenth of it in any case.
        Unless this or `moves` is given, the solver alone has 10 s. `math.inf` for no limit.
    moves : number of moves of the annealer. With `seed` the result is the same on any machine.
    patience : annealing ends once it found nothing better for this many times as long as the best network took (at
        least a second). None: 3 for "auto", no end for "anneal". `math.inf` for the whole time limit.
    seed : seed of the solver and of the bootstrap samples.
    bootstrap : number of bootstrap samples from which the confidence in each edge is estimated; 0 for none.
    reading : how the data are read, see `ReadSettings`.
    best, within : also list this number of best networks, or all within this Bayes factor of the best (`alternatives`).
    possible_parents : consider only this number of parents of each variable, the best single ones and their best
        partners; None for all. The bound then holds for these parents only.
    """

    max_parents: int | None = None
    score: str | Score = "bdeu"
    ess: float = 1.0
    knowledge: Knowledge | None = None
    solver: str = "auto"
    time_limit: float | None = None
    moves: int | None = None
    seed: int = 0
    bootstrap: int = 0
    reading: ReadSettings | None = None
    possible_parents: int | None = None
    best: int | None = None
    within: float | None = None
    patience: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_parents", "seed", "bootstrap", "possible_parents", "best"):
            value = getattr(self, name)
            if value is None and name in ("max_parents", "possible_parents", "best"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise SettingError(f"{name} = {value!r}; give a whole number")
            object.__setattr__(self, name, int(value))
        if isinstance(self.knowledge, str | PathLike):
            object.__setattr__(self, "knowledge", read_knowledge(Path(self.knowledge)))
        if self.knowledge is not None and not isinstance(self.knowledge, Knowledge):
            raise SettingError(
                f"knowledge = {self.knowledge!r}; give Knowledge(forbidden=[...]), or the name of a JSON file"
            )
        if self.reading is not None and not isinstance(self.reading, ReadSettings):
            raise SettingError(f"reading = {self.reading!r}; give ReadSettings(bins=3)")
        check_wanted(self.best, self.within)
        ordered = self.knowledge is not None and (self.knowledge.before or self.knowledge.not_ancestors)
        if ordered and (self.best or self.within):
            raise SettingError(
                "a list of networks (best, within) takes no order of variables (before, not_ancestors); leave one out"
            )
        others = (self.bootstrap, self.best, self.within, self.moves)
        if self.ancestors and (self.solver not in ("auto", "exact") or any(others)):
            raise SettingError(
                "ancestors in the prior knowledge need the solver exact or auto, and neither moves, bootstrap, best "
                "nor within; leave one of the two out"
            )
        if self.bootstrap < 0:
            raise SettingError(f"bootstrap = {self.bootstrap}; give the number of samples, or 0 for none")
        _ = self.chosen_score, self.limits, self.solver_with_settings  # raise now rather than after the data are read
        if self.moves is not None and not self.solver_with_settings.counts:
            raise SettingError(f"{self.solver} counts no moves; give a time limit, or the solver 'anneal'")

    @classmethod
    def of(cls, **options: Any) -> "LearnSettings":
        """Return the settings with these options: fields of `LearnSettings` and of `ReadSettings`, by name."""
        own, reading = ({each.name for each in fields(kind)} for kind in (cls, ReadSettings))
        check_options("learn", options, own | reading)
        read = {name: value for name, value in options.items() if name in reading}
        rest = {name: value for name, value in options.items() if name in own}
        if read and rest.get("reading") is not None:
            raise SettingError(f"reading and {min(read)} were both given; give one: {min(read)} is a part of reading")
        if read:
            rest["reading"] = ReadSettings.of(**read)
        return cls(**rest)

    @property
    def chosen_score(self) -> Score:
        """The local score."""
        return self.score if isinstance(self.score, Score) else Score(self.score, self.ess)

    @property
    def ancestors(self) -> Sequence[tuple[str, str]]:
        """The pairs (a, b) of variables where a must be an ancestor of b, which candidate sets cannot express."""
        return self.knowledge.ancestors if self.knowledge else ()

    @property
    def solver_name(self) -> str:
        """The solver: `auto` becomes `anneal` where moves are counted, since a proof counts none."""
        return name_for(self.solver, self.moves)

    @property
    def solver_with_settings(self) -> Solver:
        """The solver; it refuses a patience that it has not."""
        return solver_named(self.solver_name, **({} if self.patience is None else {"patience": self.patience}))

    @property
    def limits(self) -> Limits:
        """The limits of the solver."""
        return limits_of(self.time_limit, self.moves, self.seed)

    @property
    def search(self) -> Search:
        """The search for candidate sets; `ancestors` are no part of it."""
        most = DEFAULT_PARENTS if self.max_parents is None else self.max_parents
        known = replace(self.knowledge or Knowledge(), ancestors=())
        return Search(most, self.chosen_score, known, self.possible_parents)

    def fitted_to(self, data: Any, dataset: Dataset) -> "LearnSettings":
        """Return the settings in force: few variables lower the number of parents, and a `Dataset` is not read."""
        most = min(self.search.max_parents, dataset.n - 1)
        return replace(self, max_parents=most, reading=None if isinstance(data, Dataset) else self.reading)

    def as_json(self) -> dict[str, Any]:
        """Return the settings in force by name, for provenance."""
        in_force = {
            "score": self.chosen_score.name,
            "ess": self.chosen_score.stamped_ess,
            "knowledge": facts(self.knowledge or Knowledge()),
            "solver": self.solver_name,
            "time_limit": self.limits.seconds,
        }
        return {**facts(self), **in_force}


@dataclass(frozen=True, slots=True)
class SolveSettings:
    """Settings of `solve_candidates`, shared with `qubayes solve`."""

    solver: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)  # settings of the solver, by name
    limits: Limits = field(default_factory=Limits)
    bound_seconds: float = 0.0  # spent on a bound before the search
    presolve_seconds: float = 0.0  # spent on removing candidate sets that no optimum needs
    bits: bool | None = None  # check energy = -score on the QUBO; None: where the solver takes the QUBO
    order: str | None = None  # of the QUBO; chordal unless given
    penalty: str | None = None  # of the QUBO; tight unless given
    cover: str | None = None  # how the subsets of the QUBO are found; auto unless given

    def __post_init__(self) -> None:
        solver = self.solver_with_settings
        if self.options.get("certificate") and self.presolve_seconds:
            raise SettingError(f"{option('certificate')} takes no {option('presolve')}; it is a proof for all sets")
        if solver.takes == "formulation" and self.bits is False:
            raise SettingError(f"{solver.name} solves the QUBO, which has bits; choose another solver, as anneal")
        for name in () if self.formulates else ("order", "penalty", "cover"):
            if value := getattr(self, name):
                raise SettingError(
                    f"{option(name, value)} is about the QUBO, which {solver.name} does not use; leave it out, choose a"
                    f" solver of the QUBO, or check the QUBO with {option('bits')}"
                )

    @property
    def solver_name(self) -> str:
        """The solver: `auto` becomes `anneal` where moves are counted, since a proof counts none."""
        return name_for(self.solver, self.limits.moves)

    @property
    def solver_with_settings(self) -> Solver:
        """The solver; it refuses settings that it has not."""
        return solver_named(self.solver_name, **self.options)

    @property
    def formulates(self) -> bool:
        """Whether the solver or the user asks for the QUBO."""
        return self.solver_with_settings.takes == "formulation" or bool(self.bits)


@dataclass(frozen=True, slots=True)
class FormulateSettings:
    """Settings of `formulate_file`, shared with `qubayes formulate`."""

    order: str = "chordal"
    penalty: str = "tight"
    cover: str | None = None  # how subsets are found; "auto" unless given
    subsets: Path | None = None  # a file of subsets, instead of finding them
    presolve_seconds: float = 0.0  # spent on removing candidate sets that no optimum needs
    seed: int = 0
    network: Path | None = None  # a good network for order bits on demand; found by `anneal` unless given
    data: Path | None = None  # the data on which unions of subsets are scored; else they have closure scores
    reading: ReadSettings | None = None  # of the data
    score: Score | None = None  # on the data; that of the candidate sets unless given
    scale: Mapping[str, float] = field(default_factory=dict)  # factors of penalties, by kind
    digits: int | None = None  # of coefficients, after the decimal point
    precision: int | None = None  # bits of coefficients
    order_seconds: float | None = None  # time limit of the search for order bits on demand

    def __post_init__(self) -> None:
        for name, value in (("cover", self.cover), ("presolve", self.presolve_seconds)):
            if self.subsets and value:
                given = f"{option('subsets', str(self.subsets))} and {option(name, value)}"
                raise SettingError(f"{given}; give one: the file has its subsets")
