"""`solve` runs a solver on candidate sets or a QUBO and returns a `Solution`; its JSON file."""

import json
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..candidates import Candidates, Stamp
from ..foundation.arrays import Bools, Ints
from ..foundation.errors import ConstraintError, FormatError, QubayesError, SettingError
from ..foundation.families import VertexSet
from ..foundation.files import json_object, read_text, replacing, shown
from ..foundation.graph import cycle_path, find_cycle
from ..foundation.progress import OnProgress, silent
from ..foundation.settings import is_number
from ..foundation.stop import Interrupt, Reason
from ..foundation.summary import aligned, counted
from ..foundation.workers import Workers
from ..network import Network
from .run import (
    Ending,
    Formulated,
    Limits,
    Run,
    Solver,
    check,
    is_solver,
    load,
    name_for,
    problem_candidates,
    solver_named,
)

log = logging.getLogger("qubayes")

WEAK_GAP = 0.2  # share of the gain; beyond it the bound is far off, not the network
_LARGEST = 1e300  # number in a file; a whole number beyond the floats would be an error elsewhere


@dataclass(frozen=True, slots=True)
class Solution:
    """The best network found. Its score is the exactly rounded sum of its sets' scores."""

    names: tuple[str, ...]
    parents: tuple[VertexSet, ...]
    choice: Ints = field(repr=False)  # (n,) number of the candidate set of each vertex
    score: float
    empty_score: float  # of the empty graph, or of the required edges alone
    bound: float  # no network of these candidate sets scores more
    solver: str
    seed: int
    seconds: float
    status: str  # a sentence: how the search ended
    reason: Reason = Reason.FINISHED  # the same as a value
    certificate: Path | None = None  # the file with the certificate, if one was written
    # (seconds, score) of each improvement
    trace: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    # counts of the search: moves, nodes, cuts
    statistics: Mapping[str, Any] = field(default_factory=dict)
    # the state of the QUBO, where there is one
    bits: Bools | None = field(default=None, repr=False)
    energy: float | None = None  # of `bits`; equal to -score
    stamp: Stamp = field(default_factory=Stamp)
    required: int = 0  # number of required edges

    @property
    def network(self) -> Network:
        """The graph, without parameters."""
        return Network(self.names, self.parents)

    @property
    def interrupted(self) -> bool:
        """True if the search was interrupted; it returned the best network so far."""
        return self.reason is Reason.INTERRUPTED

    @property
    def proved(self) -> bool:
        """True if no network of these candidate sets scores more, up to rounding."""
        return self.bound - self.score <= 1e-9 * max(1.0, abs(self.score))

    @property
    def gap(self) -> float:
        """(bound - score) / (score - empty score); 0 if proved, infinite without a gain."""
        if self.proved:
            return 0.0
        gain = self.score - self.empty_score
        return (self.bound - self.score) / gain if gain > 0 else float("inf")

    def write_trace(self, path: str | Path) -> None:
        """Write the score over time as CSV."""
        with replacing(path) as file:
            file.write("seconds,score\n")
            file.writelines(f"{seconds!r},{score!r}\n" for seconds, score in self.trace)

    def __str__(self) -> str:
        return "\n".join(self.describe())

    def describe(self) -> list[str]:
        """Return the result in a few lines for people."""
        rows = self.rows_of_network()
        if self.energy is not None and self.bits is not None:
            size = counted(len(self.bits), "binary variable")
            rows.append(("QUBO", f"{size}; energy {self.energy:,.2f}, equal to minus the score"))
        return [*self.conclusion(), "", *aligned([*rows, ("time", f"{self.seconds:.2f} s")])]

    def conclusion(self) -> list[str]:
        """Return what is known of the network in one or two sentences, a line each."""
        known = self._known_in_words()
        if self.stamp.cells == "filled":
            known.append(
                "This is said of the completed table; missing cells may have other values."
            )
        return known

    def _known_in_words(self) -> list[str]:
        """Return what is known of the network for the given scores."""
        if self.interrupted and not self.proved:
            return ["Interrupted: best network so far.", *self._bound_in_words()]
        if self.only_grown:
            if self.proved:
                scope = "the parent sets that were grown"
                return [f"Best network of {scope}; nothing is proved of other sets."]
            return ["Nothing is proved: parent sets were grown, and others can be better."]
        if not self.proved:
            bound, *limits = self._bound_in_words()
            return [f"Not proved optimal: {bound[0].lower()}{bound[1:]}", *limits]
        if self.over_all_dags:
            return [f"Proved optimal{self.scope}: no network scores higher."]
        if self.stamp.grown or self.stamp.max_parents is None:
            return [f"Proved optimal{self.scope}."]
        return [f"Proved optimal: no network{self.scope} scores higher."]

    def _bound_in_words(self) -> list[str]:
        """Return how much better another network can be, and which networks that is said of."""
        if self.only_grown:
            return []
        bound = f"A better network can score at most {self.bound:,.2f}"
        if self.gap == math.inf:
            bound += "."
        elif self.gap > WEAK_GAP:
            bound += ", a weak bound."
        else:
            bound += f" (gap {100 * self.gap:.2g} %)."
        if self.over_all_dags:
            return [bound, f"The bound holds{self.scope}."]
        return [bound, f"The bound is for networks{self.scope}."] if self.scope else [bound]

    def rows_of_network(self) -> list[tuple[str, str]]:
        """Return the size of the network, its score and how the search ended: names and values."""
        edges = counted(sum(map(len, self.parents)), "edge")
        score, gain = f"{self.score:,.2f}", f"{self.score - self.empty_score:,.2f}"
        empty = "the network with the required edges only" if self.required else "the empty network"
        rows = [
            ("network", f"{counted(len(self.names), 'variable')}, {edges}"),
            ("score", f"{score}   ({self.stamp.title})"),
            ("", f"{gain:>{len(score)}}   above {empty}"),
        ]
        return rows if self.proved else [*rows, ("search", f"{self.solver}: {self.status}")]

    def describe_gap(self) -> str:
        """Return how far from optimal the network can be, in a few words."""
        if self.only_grown:
            return "not proved optimal"
        if self.proved:
            completed = " for the completed table" if self.stamp.cells == "filled" else ""
            return f"proved optimal{self.scope}{completed}"
        known = self.gap <= WEAK_GAP
        return f"gap {100 * self.gap:.2g} %{self.scope}" if known else "not proved optimal"

    @property
    def only_grown(self) -> bool:
        """Whether parent sets were grown, and for no size all of them were searched."""
        return self.stamp.grown is not None and not self.stamp.max_parents

    @property
    def over_all_dags(self) -> bool:
        """Whether sets of every size were searched for all variables, on purpose."""
        return self.stamp.every_size == len(self.names)

    @property
    def scope(self) -> str:
        """For which networks a proof or a bound holds, in words; empty if for all."""
        if self.over_all_dags:
            allowed = " that prior knowledge allows" if self.stamp.restricted else ""
            return f" over all DAGs{allowed}"
        largest, possible = self.stamp.max_parents, self.stamp.possible_parents
        if self.only_grown:
            return " of the parent sets that were grown"
        if largest is None:
            return " for these candidate parent sets"
        if self.stamp.grown:
            return (
                f" among all sets of at most {largest} parents and {self.stamp.grown:,} larger ones"
            )
        if self.stamp.every_size:
            limited = counted(len(self.names) - self.stamp.every_size, "variable")
            parents = f"{largest} parent{'s' * (largest != 1)}"
            return f" with at most {parents} for {limited}, any number for the others"
        if largest < len(self.names) - 1:
            most = f" with at most {largest}"
            if possible is not None:
                return f"{most} of {possible} candidate parents per variable"
            return f"{most} parent{'s' * (largest != 1)} per variable"
        return "" if possible is None else f" with {possible} candidate parents per variable"

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        gap = self.gap
        return {
            "score": self.score,
            "empty_score": self.empty_score,
            "bound": self.bound,
            "gap": gap if gap != float("inf") else None,
            "proved": self.proved,
            "solver": self.solver,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "network": {name: list(found) for name, found in self.network.parent_names().items()},
            "status": self.status,
            "reason": self.reason,
            "certificate": None if self.certificate is None else str(self.certificate),
            "energy": self.energy,
            "bits": None if self.bits is None else len(self.bits),
            "statistics": dict(self.statistics),
            "score_name": self.stamp.score,
            "ess": self.stamp.ess,
            "max_parents": self.stamp.max_parents,
            "grown": self.stamp.grown,
            **self.stamp.optional_facts,
        }


def write_solution(solution: Solution, path: str | Path) -> None:
    """Write what `--json` prints, the choice and the trace as JSON, completely or not at all."""
    value = {
        **solution.as_json(),
        "seconds": solution.seconds,
        "choice": solution.choice.tolist(),
        "trace": [list(point) for point in solution.trace],
    }
    with replacing(path) as file:
        json.dump(value, file, indent=1, allow_nan=False, ensure_ascii=False)
        file.write("\n")


def solution_of(
    problem: Candidates | Formulated, choice: Ints, *, bound: float, **facts: Any
) -> Solution:
    """Return the solution with these candidate sets; compute score, energy and network."""
    candidates = problem_candidates(problem)
    parents, score = candidates.parents_at(choice), math.fsum(candidates.scores[choice].tolist())
    bits, energy = (None, None) if isinstance(problem, Candidates) else problem.state_of(choice)
    return Solution(
        names=candidates.names,
        parents=parents,
        choice=choice,
        score=score,
        empty_score=math.fsum((candidates.plain or candidates).base_scores.tolist()),
        bound=max(bound, score),
        bits=bits,
        energy=energy,
        stamp=candidates.stamp,
        required=candidates.required,
        **facts,
    )


def read_solution(path: str | Path, problem: Candidates | Formulated) -> Solution:
    """Return the solution written for this problem; score and energy are computed again."""
    value = json_object(read_text(path))
    choice = _choice_in(value, path, problem_candidates(problem))
    trace = value.get("trace")
    if not isinstance(trace, list):
        raise FormatError(f"{path}: no trace; solve again")
    points = [point for point in trace if isinstance(point, list) and len(point) == 2]
    for key in ("solver", "status"):
        if not isinstance(value.get(key), str):
            raise FormatError(f"{path}: {key} is {shown(value.get(key))}; allowed is text")
    if value.get("reason") not in tuple(Reason):
        reason = shown(value.get("reason"))
        raise FormatError(f"{path}: reason is {reason}; allowed are {', '.join(Reason)}")

    def number(key: str, found: Any) -> float:
        if type(found) not in (int, float) or not abs(found) < _LARGEST:
            raise FormatError(f"{path}: {key} is {shown(found)}; allowed is a number")
        return found  # type: ignore[no-any-return]

    return solution_of(
        problem,
        choice,
        bound=number("bound", value.get("bound")),
        solver=value["solver"],
        seed=int(number("seed", value.get("seed"))),
        seconds=number("seconds", value.get("seconds")),
        status=value["status"],
        reason=Reason(value["reason"]),
        trace=tuple(
            (number("seconds", seconds), number("score", score)) for seconds, score in points
        ),
        statistics=value["statistics"] if isinstance(value.get("statistics"), dict) else {},
    )


def _choice_in(value: dict[str, Any], path: str | Path, candidates: Candidates) -> Ints:
    """Return the sets that a solution's file names; raise unless they form a network."""
    choice: Any = value.get("choice")
    is_list = isinstance(choice, list) and all(type(each) is int for each in choice)
    if not is_list or len(choice) != candidates.n:
        sets = f"no candidate set for each of {candidates.n} vertices"
        raise FormatError(f"{path}: {sets}; solve again")
    ranges = pairwise(candidates.families.vertex_start.tolist())
    named = zip(ranges, choice, strict=True)
    if not all(first <= number < last for (first, last), number in named):
        raise FormatError(f"{path}: it names candidate sets that are not there; solve again")
    if find_cycle(candidates.families.sets_at(choice)):
        raise FormatError(f"{path}: the network has a directed cycle; solve again")
    return np.array(choice, dtype=np.int64)


def solve(
    problem: Candidates | Formulated,
    solver: str | Solver = "auto",
    *,
    limits: Limits | None = None,
    start: Network | None = None,
    bound: float = math.inf,
    bound_seconds: float = 0.0,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
    on_network: Callable[[Network], None] | None = None,
    interrupt: Interrupt | None = None,
) -> Solution:
    """Return the best network that the solver finds within the limits, from `start` if it is given.

    `auto` proves what it can and anneals the rest; where the limits count moves, it is `anneal`.

    A `bound` on the score of every network gives the result a gap, and ends the search once it is
    reached; `bound_seconds` are spent on finding one before the search.

    Solvers of the QUBO (`digital`, `sa`, `dimod`) need a formulation; the others take it or the
    candidates alone. All run on threads of this process. With a formulation the result has its
    bits, and their energy is checked to be -score. A search that is interrupted, by Ctrl-C or by
    `interrupt.press()` from another thread, returns the best network so far. `on_network` gets the
    best network so far, the first one too, about once a second where it is a new one. Kernels are
    compiled, and packages and files loaded, before the time limit begins.

    >>> from qubayes.candidates import example
    >>> best = solve(example(), "exact")
    >>> limits = Limits(seconds=None, moves=1000, seed=1)
    >>> found = solve(example(), "anneal", limits=limits, bound=best.bound)
    >>> best.status, found.proved, found.score == best.score
    ('optimal', True, True)
    """
    limits = Limits() if limits is None else limits
    interrupt = Interrupt() if interrupt is None else interrupt
    chosen: Any = solver
    if isinstance(solver, str):
        chosen = solver_named(name_for(solver, getattr(limits, "moves", None)))
    _check_types(problem, chosen, limits, start)
    candidates = problem_candidates(problem)
    check(candidates)
    _check_values(problem, chosen, limits, bound, bound_seconds)
    if limits.seconds != 0:
        chosen = chosen.prepare()
    if bound_seconds > 0:  # loaded here: HiGHS is needed for nothing else in this module
        found = load("qubayes.search.exact:upper_bound")(
            candidates, bound_seconds, on_progress=on_progress
        )
        bound = min(bound, found.value)
        if found.interrupted:
            interrupt.press()
    first = _start(candidates, start)
    run = Run(
        candidates,
        limits,
        workers or Workers(),
        first,
        on_progress,
        chosen.name,
        interrupt,
        on_network,
    )
    run.tighten(bound)
    ending = _search(chosen, problem, run)
    found = solution_of(
        problem,
        run.choice,
        bound=run.bound,
        solver=chosen.name,
        seed=run.seed,
        seconds=run.elapsed,
        status=ending.status,
        reason=ending.reason or run.reason,
        certificate=ending.certificate,
        trace=tuple(run.trace),
        statistics=ending.statistics,
    )
    log.info("%s: %s; score %.6f, bound %.6f", found.solver, found.status, found.score, found.bound)
    return found


def _check_types(problem: Any, solver: Any, limits: Any, start: Any) -> None:
    """Raise unless the arguments of `solve` are of the right types."""
    is_model = hasattr(problem, "candidates") and hasattr(problem, "state_of")
    if not (is_model or isinstance(problem, Candidates)):
        kinds = "candidates (read_candidates reads files of them), or a formulation"
        raise _wrong_type("the problem", problem, kinds)
    if not is_solver(solver):
        raise _wrong_type("the solver", solver, "a name, or what solver_named returns")
    if not isinstance(limits, Limits):
        raise _wrong_type("limits", limits, "Limits(seconds, moves, seed)")
    if not isinstance(start, Network | None):
        raise _wrong_type("start", start, "a Network (read_network reads files of them)")


def _wrong_type(what: str, value: object, kinds: str) -> SettingError:
    return SettingError(f"{what} is of type {type(value).__name__}; give {kinds}")


def _check_values(
    problem: Candidates | Formulated,
    solver: Solver,
    limits: Limits,
    bound: float,
    bound_seconds: float,
) -> None:
    """Raise unless the solver takes this problem and these limits, and the bounds are numbers."""
    if solver.takes == "formulation" and isinstance(problem, Candidates):
        remedy = "formulate the candidates first, and give the formulation"
        raise SettingError(f"{solver.name} solves the QUBO; {remedy}")
    if limits.moves is not None and not solver.counts:
        raise SettingError(f"{solver.name} counts no moves; give it a time limit")
    if not (is_number(bound) and bound > -math.inf):
        remedy = "give a number that no network's score exceeds, or leave it out"
        raise SettingError(f"bound = {bound!r}; {remedy}")
    if not (is_number(bound_seconds) and 0 <= bound_seconds < math.inf):
        raise SettingError(f"{bound_seconds!r} s for a bound; give 0 or more")


def _start(candidates: Candidates, network: Network | None) -> Ints | None:
    """Return the best candidate sets inside the parents of the network; None without a network."""
    if network is None:
        return None
    missing = set(candidates.names) ^ set(network.names)
    if missing:
        raise QubayesError(
            f"{min(missing)!r} is in only one of the candidates and the starting network; "
            "give one of the same"
        )
    place = {name: vertex for vertex, name in enumerate(candidates.names)}
    allowed = np.zeros((candidates.n, candidates.n), np.bool_)
    for vertex, name in enumerate(network.names):
        allowed[
            place[name], [place[network.names[parent]] for parent in network.parents[vertex]]
        ] = True
        allowed[vertex, list(candidates.base(vertex))] = True
    if cycle := find_cycle([np.flatnonzero(row).tolist() for row in allowed]):
        path = cycle_path(cycle, candidates.names)
        raise ConstraintError(
            f"the starting network and the required edges form the cycle {path}; start from another"
        )
    return candidates.families.best_inside(allowed)


def _search(solver: Solver, problem: Any, run: Run) -> Ending:
    """Run the solver; an interrupt, or a limit of no time, leaves the best network so far."""
    if not len(run.choice):
        return Ending("no variables")
    if run.over:
        reason = "interrupted before the search" if run.interrupt else "no time to search"
        return Ending(f"{reason}; the start is returned")
    with run.interrupt.listening():
        try:
            ending = solver(problem if solver.takes == "formulation" else run.candidates, run)
        except KeyboardInterrupt:  # of a second Ctrl-C, or of the receiver of progress
            run.interrupt.press()
            ending = Ending("")
    if (run.choice < 0).any() or find_cycle(run.candidates.families.sets_at(run.choice)):
        raise AssertionError(
            f"internal error: {solver.name} returned a network with a cycle or without a "
            "required parent; please report it"
        )
    if run.interrupt:
        return replace(ending, status=Reason.INTERRUPTED.sentence, reason=Reason.INTERRUPTED)
    return ending
