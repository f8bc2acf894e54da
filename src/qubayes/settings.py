"""Settings of `read`, `learn`, `solve` and `formulate`; annotations are the options of commands.

A result depends on its input and its settings only. The command line is made from these classes and
starts without numpy; so other packages are imported where a setting is made."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast, get_args

from .foundation.errors import SettingError, option
from .foundation.settings import Option, check_whole, facts

if TYPE_CHECKING:
    from .candidates import CandidateSearch, Knowledge
    from .data import Dataset
    from .scores import LocalScore, Score, ScoreFunction
    from .search import Limits, Solver

Missing: TypeAlias = Literal["error", "drop", "state", "rows", "impute"]
Numbers: TypeAlias = Literal["gaussian", "bins", "error"]
BinMethod: TypeAlias = Literal["quantile", "width"]
Prior: TypeAlias = Literal["uniform", "fair"]
DataFormat: TypeAlias = Literal["csv", "tsv", "parquet", "arrow", "gobnilp", "fimi"]
Arities: TypeAlias = Mapping[str, int | Sequence[str]]  # number of states, or their names in order
# intervals, or bounds between them, for all or by column
Bins: TypeAlias = int | Mapping[str, int | Sequence[float]]

# Options of several commands.
ScoreOption = Option(
    "Use this local score: auto (bdeu; bge for numbers), bdeu, bds, bic, k2, ...; "
    "an unknown name prints the list.",
    metavar="NAME",
    given_as=str,
)
KnowledgeOption = Option(
    "Use prior knowledge from this JSON file: edges, tiers, priors, order.", given_as=Path | None
)
AritiesOption = Option(
    "Declare states by a .bif network, or by JSON with the states or their number by column.",
    given_as=Path | None,
)


def parsed_parents(text: str) -> "int | Literal['all']":
    """Return a number of parents, or "all"."""
    if text == ALL:
        return ALL
    try:
        return int(text)
    except ValueError:
        raise SettingError(f"--max-parents {text}; give a whole number, or all") from None


ALL: Literal["all"] = "all"  # number of parents: any
MaxParents = Annotated[
    int | Literal["all"] | None,
    Option(
        "Search all sets of at most this many parents, or all sets. Default: 3, or what fits "
        "--time-limit; learn also grows larger sets.",
        ("--max-parents", "-m"),
        metavar="NUMBER|all",
        given_as=str | None,
        parse=parsed_parents,
    ),
]
Ess = Annotated[float, Option("Set the equivalent sample size of bdeu and bds.")]
PenaltyFactor = Annotated[
    float, Option("Multiply the penalty of bic or aic by this; 2 is common.", metavar="FACTOR")
]
PossibleParents = Annotated[
    int | None,
    Option(
        "Consider only K candidate parents per variable: the best single ones and their partners.",
        metavar="K",
    ),
]
TotalSeconds = Annotated[
    float | None,
    Option(
        "Stop after this many seconds, all stages together. Default: 10 s for the solver alone."
    ),
]
Memory = Annotated[
    float | str | None,
    Option(
        "Use at most this memory for parent sets, such as 4GB. Default: three quarters of what is "
        "free.",
        metavar="SIZE",
        given_as=str | None,
    ),
]
Moves = Annotated[
    int | None,
    Option("Stop after this many moves, not by time: the result is the same on any machine."),
]
Patience = Annotated[
    float | None,
    Option(
        "Stop annealing if no better network is found for FACTOR times as long as the best one "
        "took. Default: 3 for auto, no limit for anneal.",
        metavar="FACTOR",
    ),
]
Seed = Annotated[
    int,
    Option("Use this random seed; the same seed gives the same result.", metavar="NUMBER", least=0),
]
BestCount = Annotated[
    int | None, Option("List the K best networks; they are proved to be the best.", metavar="K")
]
WithinFactor = Annotated[
    float | None,
    Option("List all networks within this Bayes factor of the best one.", metavar="FACTOR"),
]
OrderBits = Annotated[
    str,
    Option(
        "Choose the order variables: chordal, scc (as in the paper), adjacent (on demand), or "
        "proved (few, with a certificate)."
    ),
]
Penalty = Annotated[str, Option("Choose the penalties of the QUBO: tight or paper.")]
Cover = Annotated[
    str,
    Option("Find subsets by auto, search, ilp (the paper's Algorithm 2 first) or ilp-only."),
]
PresolveSeconds = Annotated[
    float,
    Option(
        "First remove candidate parent sets that are not needed, for this many seconds.",
        ("--presolve",),
        metavar="SECONDS",
    ),
]
SubsetsFile = Annotated[
    Path | None,
    Option("Read the parent subsets from this .qbs file instead of finding them.", ("--subsets",)),
]


class CellTable:
    """A table of truth values, one for each cell of the data; equal to itself only."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __repr__(self) -> str:
        return "a table of truth values"


_UNITS = {"GB": 1e9, "MB": 1e6, "KB": 1e3, "G": 1e9, "M": 1e6}
DEFAULT_SECONDS = 10.0  # for the solver
DEFAULT_PARENTS = 3


def parsed_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Return {name: value} of NAME=VALUE; a value is read as JSON, or else taken as text."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise SettingError(f"--set {text}; give NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except (json.JSONDecodeError, RecursionError):
            found[name] = value
    return found


def parsed_factors(text: str) -> dict[str, float]:
    """Return {"order": 1.2} for "order=1.2"."""
    factors = {}
    for part in filter(None, text.split(",")):
        kind, _, factor = part.partition("=")
        try:
            factors[kind.strip()] = float(factor)
        except ValueError:
            raise SettingError(f"--scale {part}; give KIND=FACTOR, as order=1.2,slack=1") from None
    return factors


def bytes_of(size: float | str) -> float:
    """Return 4e9 for "4GB" and for 4, and 5e8 for "500MB"."""
    text = str(size).strip().upper()
    unit = next((unit for unit in _UNITS if text.endswith(unit)), "")
    try:
        number = float(text.removesuffix(unit))
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        given = option("memory", size)
        raise SettingError(f"{given}; give a size such as 4GB or 500MB; a number is in GB")
    return number * _UNITS.get(unit, 1e9)


def parsed_bins(texts: Sequence[str]) -> Bins | None:
    """Return 5 for "5", {"age": 5} for "age=5", {"age": [18, 40]} for the bounds "age=18,40"."""
    named: dict[str, int | list[float]] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        whole = number.isascii() and number.isdigit()
        try:
            bounds = [] if whole else [float(bound) for bound in number.split(",") if equals]
        except ValueError:
            bounds = []
        if not (whole or bounds) or (not equals and len(texts) > 1):
            raise SettingError(
                f"--bins {text}; give one number for all columns, or COLUMN=NUMBER or "
                "COLUMN=BOUND,BOUND,... for each"
            )
        if not equals:
            return int(number)
        named[name] = int(number) if whole else bounds
    return named or None


def limits_of(time_limit: float | None, moves: int | None, seed: int) -> "Limits":
    """Return the solver's limits: DEFAULT_SECONDS if none is given, no time for `math.inf`."""
    from .search import Limits

    seconds = DEFAULT_SECONDS if time_limit is None and moves is None else time_limit
    return Limits(None if seconds == math.inf else seconds, moves, seed)


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Settings of `read`: missing values, continuous columns, declared states.

    missing : "error", or "drop" the rows with missing values, or make missing a "state" of its own;
        "rows" scores each variable and its parents on the rows that have all their values, "impute"
        also draws the missing values from the network while it is learned.
    numbers : columns of numbers with fractions: "gaussian" keeps the numbers, "bins" cuts them into
        three intervals unless `bins` says otherwise, "error" refuses them.
    bins : number of intervals, for every column of numbers that are not codes; or by name of
        column, also as the bounds between the intervals.
    bin_method : "quantile" for intervals with equally many rows, or equal "width".
    arities : declared states: a .bif network, a .json file, or a mapping from names of columns.
    ignore : names of columns that are left out; one name, or several with commas.
    weights : how often each row counts, as whole numbers: the name of a column, which is then no
        variable, or one number for each row. Rows that count 0 times are left out.
    format : of a file; by default from its ending (and, for .dat, its content).
    interventions : which variables an experiment set: the name of a column that holds the name of
        the variable in each row (several with ";" between them, empty for none); or truth values by
        name of column, as a data frame or an array of the shape of the data.
    """

    missing: Annotated[
        Missing,
        Option(
            "Refuse missing values, drop their rows, make 'missing' a state, score what rows "
            "have, or impute.",
            metavar="error|drop|state|rows|impute",
            given_as=str,
        ),
    ] = "error"
    numbers: Annotated[
        Numbers,
        Option(
            "Keep columns of fractions (Gaussian scores), cut them into intervals, or refuse them.",
            metavar="gaussian|bins|error",
            given_as=str,
        ),
    ] = field(default="gaussian", metadata={"plain": "gaussian"})
    bins: Annotated[
        Bins | None,
        Option(
            "Discretize every continuous column (fractions, or over 20 integers) into K "
            "intervals, or one column.",
            metavar="K|COLUMN=K|COLUMN=A,B,...",
            given_as=list[str] | None,
            parse=parsed_bins,
        ),
    ] = None
    bin_method: Annotated[
        BinMethod,
        Option(
            "Make intervals with equal counts or with equal widths.",
            metavar="quantile|width",
            given_as=str,
        ),
    ] = "quantile"
    arities: Annotated[str | Path | Arities | None, AritiesOption] = None
    ignore: Annotated[
        Sequence[str],
        Option(
            "Leave these columns out; may be repeated.",
            metavar="COLUMN,...",
            given_as=list[str] | None,
        ),
    ] = ()
    weights: Annotated[
        str | Sequence[int] | None,
        Option(
            "Count each row as often as this column of whole numbers says.",
            metavar="COLUMN",
            given_as=str | None,
        ),
    ] = field(default=None, metadata={"plain": None})
    format: Annotated[
        DataFormat | None,
        Option(
            "Read the data as csv, tsv, parquet, arrow, gobnilp or fimi. Default: "
            "by the file's ending.",
            metavar="NAME",
            given_as=str | None,
        ),
    ] = None
    interventions: Annotated[
        Any,
        Option(
            "Name the column that says which variable an experiment set in each row (A;B: two).",
            metavar="COLUMN",
            given_as=str | None,
        ),
    ] = field(default=None, metadata={"plain": None})

    def __post_init__(self) -> None:
        kinds = {
            "missing": Missing,
            "numbers": Numbers,
            "bin_method": BinMethod,
            "format": DataFormat,
        }
        for name, kind in kinds.items():
            value, allowed = getattr(self, name), get_args(kind)
            if value not in allowed and not (name == "format" and value is None):
                raise SettingError(f"{name} = {value!r}; give one of {', '.join(allowed)}")
        if isinstance(self.bins, Mapping):
            for bins in self.bins.values():
                _check_bins(bins, bounds_too=True)
        else:
            _check_bins(self.bins, bounds_too=False)
        object.__setattr__(self, "ignore", self._names_to_ignore())
        if not isinstance(self.interventions, str | CellTable | None):
            object.__setattr__(self, "interventions", CellTable(self.interventions))
        object.__setattr__(self, "weights", self._checked_weights())

    def _checked_weights(self) -> str | tuple[int, ...] | None:
        import numpy as np

        from .foundation.files import shown

        weights: Any = self.weights
        if weights is None or isinstance(weights, str):
            return weights
        try:
            numbers = np.asarray(weights)
        except (TypeError, ValueError):
            numbers = np.zeros(())
        right = numbers.ndim == 1 and numbers.dtype.kind in "iuf"
        if right and numbers.dtype.kind == "f":
            right = bool(np.all(numbers == np.floor(numbers)))
        if not right or (numbers < 0).any():
            raise SettingError(
                f"weights = {shown(weights)}; give the name of a column, or for each row how often"
                " it counts: whole numbers from 0"
            )
        found: tuple[int, ...] = tuple(numbers.astype(np.int64).tolist())
        return found

    def _names_to_ignore(self) -> tuple[str, ...]:
        from .foundation.files import shown

        ignore: Any = () if self.ignore is None else self.ignore
        if isinstance(ignore, str):
            ignore = [ignore]
        if not isinstance(ignore, Sequence) or not all(isinstance(name, str) for name in ignore):
            raise SettingError(
                f"ignore = {shown(self.ignore)}; give names of columns, such as ['id']"
            )
        return tuple(ignore)

    @classmethod
    def of(cls, options: Mapping[str, Any], name: str) -> "ReadSettings":
        """Return the settings that a verb was given: one object, or its fields one by one."""
        found, whole = cls(**{each.name: options[each.name] for each in fields(cls)}), options[name]
        if whole is None:
            return found
        for each in fields(cls):
            if getattr(found, each.name) != each.default:
                both = f"{name} and {each.name} were both given"
                raise SettingError(f"{both}; give one: {each.name} is a part of {name}")
        return cast(ReadSettings, whole)


def _check_bins(bins: Any, *, bounds_too: bool) -> None:
    """Raise unless this is a number of intervals or, if allowed, ascending bounds between them."""
    import numpy as np

    from .data.dataset import MOST_STATES
    from .foundation.files import shown

    if bounds_too and isinstance(bins, list | tuple | np.ndarray):
        numbers = all(isinstance(bound, int | float | np.number) for bound in bins)
        finite = numbers and all(math.isfinite(bound) for bound in bins)
        ascending = finite and all(low < high for low, high in pairwise(bins))
        right = ascending and 1 <= len(bins) < MOST_STATES
    else:
        # so True is refused
        right = bins is None or (isinstance(bins, int) and 2 <= bins <= MOST_STATES)
    if not right:
        raise SettingError(
            f"bins = {shown(bins)}; give a whole number from 2 to {MOST_STATES}, or for a column "
            "ascending bounds between intervals, such as {'age': [18, 40, 65]}"
        )


@dataclass(frozen=True, slots=True)
class LearnSettings:
    """Settings of `learn`, shared by the function, the command line and the scikit-learn estimator.

    max_parents : largest number of parents of a variable. None: parent sets of any size are grown
        on demand, and all sets of at most 3 parents are found as well, or of fewer, where the time
        allows it. A number that does not fit the time limit is refused. `qubayes plan` predicts the
        cost. "all": all sets of any size, where bounds on scores allow it (docs/every-size.md).
    score, ess : name of the local score, and its equivalent sample size where it has one; a
        `Score`; or a function (dataset, child, parents) -> float, as it is or as a `LocalScore`.
        "auto": "bdeu" for discrete columns, "bge" for continuous ones.
    penalty : bic and aic subtract this many times their penalty.
    knowledge : what is known of edges, order and numbers of parents (`Knowledge`); or the JSON file
        that holds it.
    solver : "auto" proves what it can and anneals the rest; the other names are those of `qubayes
        solve`.
    time_limit : seconds for reading, candidate sets and solver together; the solver has a tenth of
        it in any case. Unless this or `moves` is given, the solver alone has 10 s. `math.inf` for
        no limit.
    moves : number of moves of the annealer; where parent sets are grown, half of them are made
        meanwhile. With `seed` the result is the same on any machine, for any number of threads.
    patience : annealing ends once it found nothing better for this many times as long as the best
        network took (at least a second). None: 3 for "auto", no end for "anneal". `math.inf` for
        the whole time limit.
    seed : seed of the solver and of the bootstrap samples.
    bootstrap : number of bootstrap samples from which the confidence in each edge is estimated; 0
        for none.
    posterior : seconds to sample networks from the posterior, for the probability of each edge.
    prior : of networks, for these probabilities: "uniform", or "fair", by which each number of
        parents of a variable is equally probable. The best network has the uniform prior.
    impute_rounds : with missing="impute", how often missing cells are drawn and the network is
        learned again.
    completions : with missing="impute", number of completed tables: the score is the mean over
        them, and a network of each alone gives the support of edges.
    reading : how the data are read, see `ReadSettings`.
    best, within : also list this number of best networks, or all within this Bayes factor of the
        best (`alternatives`).
    possible_parents : consider only this number of parents of each variable, the best single ones
        and their best partners; None for all. The bound then holds for these parents only.
    max_table : no set is grown whose table of probabilities would have more cells; sets of at most
        `max_parents` parents are not concerned.
    memory : memory that is used for parent sets, such as "4GB" or "500MB"; a number is in GB. None:
        three quarters of what is free.
    """

    max_parents: MaxParents = None
    score: Annotated["str | Score | LocalScore | ScoreFunction", ScoreOption] = "auto"
    ess: Ess = 1.0
    penalty: PenaltyFactor = field(default=1.0, metadata={"plain": 1.0})
    knowledge: Annotated["Knowledge | None", KnowledgeOption] = None
    possible_parents: PossibleParents = None
    max_table: Annotated[
        int,
        Option(
            "Grow no parent set whose table of probabilities would have more cells.",
            metavar="CELLS",
            least=1,
        ),
    ] = 10**6
    memory: Memory = field(default=None, metadata={"plain": None})
    solver: Annotated[
        str, Option("Search by auto, anneal, exact or another solver of `qubayes solve`.")
    ] = "auto"
    time_limit: TotalSeconds = None
    moves: Moves = None
    patience: Patience = None
    seed: Seed = 0
    bootstrap: Annotated[
        int,
        Option(
            "Estimate the confidence in each edge from this many bootstrap samples.",
            metavar="SAMPLES",
        ),
    ] = 0
    posterior: Annotated[
        float | None,
        Option(
            "Sample networks for this many seconds, for the probability of each edge.",
            metavar="SECONDS",
        ),
    ] = field(default=None, metadata={"plain": None})
    prior: Annotated[
        Prior,
        Option(
            "Give all networks the same prior probability, or each number of parents (fair), for "
            "--posterior.",
            metavar="uniform|fair",
            given_as=str,
        ),
    ] = field(default="uniform", metadata={"plain": "uniform"})
    impute_rounds: Annotated[
        int,
        Option(
            "With --missing impute, fill the cells and learn again this many times.",
            metavar="ROUNDS",
            least=0,
        ),
    ] = field(default=8, metadata={"plain": 8})
    completions: Annotated[
        int,
        Option(
            "With --missing impute, complete the table this many times; the score is the mean.",
            metavar="TABLES",
            least=1,
        ),
    ] = field(default=5, metadata={"plain": 5})
    best: BestCount = None
    within: WithinFactor = None
    reading: ReadSettings | None = None

    def __post_init__(self) -> None:
        from .candidates import Knowledge, read_knowledge
        from .search.exact.alternatives import check_wanted

        check_whole(self)
        if isinstance(self.knowledge, str | PathLike):
            object.__setattr__(self, "knowledge", read_knowledge(Path(self.knowledge)))
        if not isinstance(self.knowledge, Knowledge | None):
            remedy = "give Knowledge(forbidden=[...]), or the name of a JSON file"
            raise SettingError(f"knowledge = {self.knowledge!r}; {remedy}")
        if self.reading is not None and not isinstance(self.reading, ReadSettings):
            raise SettingError(f"reading = {self.reading!r}; give ReadSettings(bins=3)")
        _ = self.memory_in_bytes  # raises
        check_wanted(self.best, self.within)
        self._check_order_and_ancestors()
        for name, least in (("impute_rounds", 0), ("completions", 1)):
            if getattr(self, name) < least:
                given = f"{name} = {getattr(self, name)}"
                raise SettingError(f"{given}; give a whole number from {least}")
        if self.bootstrap < 0:
            remedy = "give the number of samples, or 0 for none"
            raise SettingError(f"bootstrap = {self.bootstrap}; {remedy}")
        self._check_posterior()
        # These raise now rather than after the data are read.
        if not isinstance(self.score, str):
            object.__setattr__(self, "score", self.chosen_score)
        _ = self.chosen_score
        _ = self.limits
        solver = self.solver_with_settings
        if self.moves is not None and not solver.counts:
            remedy = "give a time limit, or the solver 'anneal'"
            raise SettingError(f"{self.solver} counts no moves; {remedy}")

    def _check_posterior(self) -> None:
        """Raise unless the sampling of networks has a time limit and a known prior."""
        if self.prior not in get_args(Prior):
            allowed = ", ".join(get_args(Prior))
            raise SettingError(f"prior = {self.prior!r}; give one of {allowed}")
        if self.posterior is not None and not 0 < self.posterior < math.inf:
            raise SettingError(f"posterior = {self.posterior!r}; give a number of seconds")

    def _check_order_and_ancestors(self) -> None:
        """Raise if prior knowledge does not go with the other settings."""
        ordered = self.knowledge is not None and (
            self.knowledge.before or self.knowledge.not_ancestors
        )
        if ordered and (self.best or self.within):
            raise SettingError(
                "a list of networks (best, within) takes no order of variables (before, "
                "not_ancestors); leave one out"
            )
        if self.posterior is not None and (ordered or self.ancestors):
            raise SettingError(
                "edge probabilities (posterior) take no order of variables (before, "
                "not_ancestors) and no ancestors; leave one of the two out"
            )
        others = (self.bootstrap, self.best, self.within, self.moves)
        if self.ancestors and (self.solver not in ("auto", "exact") or any(others)):
            raise SettingError(
                "ancestors in the prior knowledge need the solver exact or auto, and neither "
                "moves, bootstrap, best nor within; leave one of the two out"
            )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "LearnSettings":
        """Return the settings that a verb was given by field, with `ReadSettings` for `reading`."""
        own = {each.name: options[each.name] for each in fields(cls)}
        return cls(**{**own, "reading": ReadSettings.of(options, "reading")})

    @property
    def chosen_score(self) -> "Score":
        """The local score."""
        from .scores import Score

        return Score.of(self.score, self.ess, self.penalty)

    @property
    def ancestors(self) -> Sequence[tuple[str, str]]:
        """The pairs (a, b) where a must be an ancestor of b; candidate sets cannot express them."""
        return self.knowledge.ancestors if self.knowledge else ()

    @property
    def solver_name(self) -> str:
        """The solver: `auto` becomes `anneal` where moves are counted."""
        from .search.run import name_for

        return name_for(self.solver, self.moves)

    @property
    def solver_with_settings(self) -> "Solver":
        """The solver. Raises if it has no setting `patience`, and one is given."""
        from .search import solver_named

        return solver_named(
            self.solver_name, **({} if self.patience is None else {"patience": self.patience})
        )

    @property
    def limits(self) -> "Limits":
        """The limits of the solver."""
        return limits_of(self.time_limit, self.moves, self.seed)

    @property
    def memory_in_bytes(self) -> float | None:
        """The memory for parent sets; None for the default."""
        return None if self.memory is None else bytes_of(self.memory)

    @property
    def search(self) -> "CandidateSearch":
        """The search for candidate sets, without the ancestors in the prior knowledge."""
        from .candidates import CandidateSearch, Knowledge

        given = self.max_parents
        most = DEFAULT_PARENTS if given is None or given == ALL else given
        known = replace(self.knowledge or Knowledge(), ancestors=())
        every_size = given == ALL
        return CandidateSearch(
            most, self.chosen_score, known, self.possible_parents, every_size=every_size
        )

    def fitted_to(self, data: Any, dataset: "Dataset") -> "LearnSettings":
        """Return the settings in force: few variables need fewer parents; data are not read."""
        from .data import Dataset

        most = min(self.search.max_parents, dataset.n - 1)
        score = self.chosen_score.on(dataset)
        reading = None if isinstance(data, Dataset) else self.reading
        if reading is not None and isinstance(reading.interventions, CellTable):
            # the data hold them
            reading = replace(reading, interventions=repr(reading.interventions))
        if reading is not None and not isinstance(reading.weights, str | None):
            reading = replace(reading, weights=None)  # the data hold them
        return replace(
            self,
            max_parents=ALL if self.max_parents == ALL else most,
            score=score.name if isinstance(self.score, str) and not score.function else score,
            reading=reading,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the settings in force by name, for provenance."""
        from .candidates import Knowledge

        penalty = self.chosen_score.stamped_penalty
        in_force = {
            **({} if penalty is None else {"penalty": penalty}),
            "score": self.chosen_score.name,
            "ess": self.chosen_score.stamped_ess,
            "knowledge": facts(self.knowledge or Knowledge()),
            "solver": self.solver_name,
            "time_limit": self.limits.seconds,
        }
        return {**facts(self), **in_force}


@dataclass(frozen=True, slots=True)
class SolveSettings:
    """Settings of `solve_candidates`, shared with `qubayes solve`.

    solver : one of `SOLVERS`; with `moves` or a certificate "auto" is "anneal" or "exact".
    time_limit, moves, seed : limits of the solver; 10 s unless one of the first two is given.
    patience : annealing ends once it found nothing better for this many times as long as the best
        network took.
    options : settings of the solver, by name.
    bound_seconds : seconds for a bound before the search.
    presolve_seconds : seconds for removing candidate sets that no optimum needs.
    order, penalty, cover : of the QUBO, see `FormulateSettings`.
    bits : check energy = -score on the QUBO. None: where the solver takes the QUBO.
    certificate : file for a proof by "exact".
    """

    solver: Annotated[str, Option("Search by one of {solvers}.")] = "auto"
    time_limit: Annotated[
        float | None,
        Option("Stop the solver after this many seconds. Default: 10, or no limit with --moves."),
    ] = None
    moves: Moves = None
    seed: Seed = 0
    patience: Patience = None
    options: Annotated[
        Mapping[str, Any] | None,
        Option(
            "Change a setting of the solver; may be repeated.",
            ("--set",),
            metavar="NAME=VALUE",
            given_as=list[str] | None,
            parse=parsed_settings,
        ),
    ] = None
    bound_seconds: Annotated[
        float,
        Option(
            "First compute an upper bound for this many seconds, to know the gap.",
            ("--bound",),
            metavar="SECONDS",
        ),
    ] = 0.0
    presolve_seconds: PresolveSeconds = 0.0
    order: OrderBits = "chordal"
    penalty: Penalty = "tight"
    cover: Cover = "auto"
    bits: Annotated[
        bool | None,
        Option(
            "Make the QUBO, too, and check that its energy is minus the score.",
            ("--bits/--no-bits",),
        ),
    ] = None
    certificate: Annotated[
        Path | None,
        Option("Prove optimality by exact, and write a certificate that `qubayes check` verifies."),
    ] = None

    def __post_init__(self) -> None:
        check_whole(self)
        if self.certificate is not None and self.solver not in ("auto", "exact"):
            needed = f"{option('certificate')} needs {option('solver', 'exact')}"
            raise SettingError(f"{needed}, and not {self.solver}; leave one of the two out")
        solver, _ = self.solver_with_settings, self.limits
        if self.solver_options.get("certificate") and self.presolve_seconds:
            raise SettingError(
                f"{option('certificate')} takes no {option('presolve')}; it is a proof for all sets"
            )
        if solver.takes == "formulation" and self.bits is False:
            raise SettingError(
                f"{solver.name} solves the QUBO, which has bits; choose another solver, as anneal"
            )

    @property
    def limits(self) -> "Limits":
        """The limits of the solver."""
        return limits_of(self.time_limit, self.moves, self.seed)

    @property
    def solver_name(self) -> str:
        """The solver: `auto` becomes `exact` for a certificate, `anneal` if moves are counted."""
        from .search.run import name_for

        return "exact" if self.certificate is not None else name_for(self.solver, self.moves)

    @property
    def solver_options(self) -> dict[str, Any]:
        """The settings of the solver that were given, by name."""
        named = {"patience": self.patience, "certificate": self.certificate}
        return {
            **(self.options or {}),
            **{name: value for name, value in named.items() if value is not None},
        }

    @property
    def solver_with_settings(self) -> "Solver":
        """The solver; it refuses settings that it has not."""
        from .search import solver_named

        return solver_named(self.solver_name, **self.solver_options)

    @property
    def formulates(self) -> bool:
        """Whether the solver or the user asks for the QUBO."""
        return self.solver_with_settings.takes == "formulation" or bool(self.bits)


@dataclass(frozen=True, slots=True)
class FormulateSettings:
    """Settings of `formulate_file`, shared with `qubayes formulate`.

    order, penalty : of the QUBO, see `formulate`.
    cover : how subsets are found; "auto" unless given.
    subsets : a file of subsets, instead of finding them.
    presolve_seconds : seconds for removing candidate sets that no optimum needs.
    network : a good network for order bits on demand; found by "anneal" unless given.
    order_seconds : time limit of the search for order bits on demand, or of their proof.
    certificate : file for the certificate of order "proved"; its scores are written beside it.
    data : the data on which unions of subsets are scored; else they have closure scores.
    score, ess : the score on the data; that of the candidate sets unless given.
    reading : how the data are read.
    scale : factors of penalties, by kind.
    digits : of coefficients, after the decimal point.
    precision : bits of coefficients.
    seed : of the search for subsets and for order bits.
    """

    order: OrderBits = "chordal"
    penalty: Penalty = "tight"
    cover: Annotated[
        str | None, Option("Find subsets by auto, search, ilp or ilp-only. Default: auto.")
    ] = None
    subsets: SubsetsFile = None
    presolve_seconds: PresolveSeconds = 0.0
    network: Annotated[
        Path | None, Option("Use this good network for --order adjacent. Default: one is searched.")
    ] = None
    order_seconds: Annotated[
        float,
        Option(
            "Search for the order variables of --order adjacent for this many seconds, or until "
            "1,000 annealing runs find none; or for the proof of --order proved.",
            ("--order-time-limit",),
        ),
    ] = 60.0
    certificate: Annotated[
        Path | None,
        Option("Write the proof of --order proved, which `qubayes check` verifies."),
    ] = None
    data: Annotated[
        Path | None, Option("Score unions of subsets on these data, as the paper does.")
    ] = None
    score: Annotated[
        "str | Score | LocalScore | ScoreFunction | None",
        Option(
            "Use this score on --data. Default: the score of the candidate parent sets.",
            given_as=str | None,
        ),
    ] = None
    ess: Annotated[float, Option("Set the equivalent sample size of --score.")] = 1.0
    reading: ReadSettings | None = None
    scale: Annotated[
        Mapping[str, float] | None,
        Option(
            "Multiply penalties of these kinds: order, edge, triangle, slack.",
            metavar="KIND=FACTOR,...",
            given_as=str | None,
            parse=parsed_factors,
        ),
    ] = None
    digits: Annotated[int | None, Option("Round coefficients to this many decimal places.")] = None
    precision: Annotated[
        int | None,
        Option(
            "Round coefficients to multiples of a step, with this many bits.",
            ("--bits-of-precision",),
        ),
    ] = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        check_whole(self)
        for name, value in (("cover", self.cover), ("presolve", self.presolve_seconds)):
            if self.subsets and value:
                given = f"{option('subsets', str(self.subsets))} and {option(name, value)}"
                raise SettingError(f"{given}; give one: the file has its subsets")
        _ = self.chosen_score  # raises for an unknown name

    @property
    def chosen_score(self) -> "Score | None":
        """The score on the data; None for that of the candidate sets."""
        from .scores import Score

        return None if self.score is None else Score.of(self.score, self.ess)
