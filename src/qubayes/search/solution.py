"""The result of a solver: a network with its score, a bound, and how it was found; and its JSON file."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..candidates import Candidates, Stamp
from ..foundation.arrays import Bools, Ints
from ..foundation.errors import FormatError
from ..foundation.families import VertexSet
from ..foundation.files import json_object, read_text, replacing, shown
from ..foundation.graph import find_cycle
from ..network import Network
from .run import Formulated, candidates_of

WEAK_GAP = 0.2  # of the gain; beyond it the bound is far off, not the network
_LARGEST = 1e300  # of a number in a file; a whole number beyond the floats would be an error elsewhere


@dataclass(frozen=True, slots=True)
class Solution:
    """The best network that a solver found. Its score is the exactly rounded sum of its candidate sets' scores."""

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
    interrupted: bool = False
    trace: tuple[tuple[float, float], ...] = field(default=(), repr=False)  # (seconds, score) of each improvement
    statistics: Mapping[str, Any] = field(default_factory=dict)  # counts of the search: moves, nodes, cuts
    bits: Bools | None = field(default=None, repr=False)  # the state of the QUBO, where there is one
    energy: float | None = None  # of `bits`; equal to -score
    stamp: Stamp = field(default_factory=Stamp)

    @property
    def network(self) -> Network:
        """The graph, without parameters."""
        return Network(self.names, self.parents)

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

    def describe(self) -> list[str]:
        """Return the result in a few lines for people."""
        kind = self.stamp.score if self.stamp.ess is None else f"{self.stamp.score}, ess {self.stamp.ess:g}"
        edges = sum(map(len, self.parents))
        lines = [
            f"score {self.score:,.6f} ({kind}), {self.score - self.empty_score:,.6f} above no edges",
            f"{self.describe_gap()}; {edges:,} edge{'s' * (edges != 1)} among {len(self.names)} variables",
        ]
        if self.energy is not None and self.bits is not None:
            lines.append(f"energy {self.energy:,.6f} of {len(self.bits):,} bits, equal to minus the score")
        return [*lines, f"{self.solver}: {self.status} ({self.seconds:.2f} s)"]

    def describe_gap(self) -> str:
        """Return how far from optimal the network can be, in words."""
        most = self.stamp.possible_parents
        where = "" if most is None else f" among {most} possible parents of each variable"
        if self.proved:
            return f"proved optimal{where}"
        if self.gap == float("inf"):
            return f"no network scores more than {self.bound:,.6f}{where}"
        if self.gap > WEAK_GAP:
            return f"weak bound, which says little: no network scores more than {self.bound:,.6f}{where}"
        return f"gap {100 * self.gap:.3g} % of that: no network scores more than {self.bound:,.6f}{where}"

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
            "energy": self.energy,
            "bits": None if self.bits is None else len(self.bits),
            "statistics": dict(self.statistics),
            "score_name": self.stamp.score,
            "ess": self.stamp.ess,
            **({} if self.stamp.possible_parents is None else {"possible_parents": self.stamp.possible_parents}),
        }


def write_solution(solution: Solution, path: str | Path) -> None:
    """Write what `--json` prints, the choice and the trace as JSON; the file is complete or absent."""
    value = {
        **solution.as_json(),
        "seconds": solution.seconds,
        "choice": solution.choice.tolist(),
        "trace": [list(point) for point in solution.trace],
        "interrupted": solution.interrupted,
    }
    with replacing(path) as file:
        json.dump(value, file, indent=1, allow_nan=False, ensure_ascii=False)
        file.write("\n")


def solution_of(problem: Candidates | Formulated, choice: Ints, *, bound: float, **facts: Any) -> Solution:
    """Return the solution with these candidate sets; score, energy and network are computed from them."""
    candidates = candidates_of(problem)
    parents, score = candidates.families.sets_at(choice), math.fsum(candidates.scores[choice].tolist())
    bits, energy = (None, None) if isinstance(problem, Candidates) else problem.state_of(choice)
    return Solution(
        names=candidates.names,
        parents=parents,
        choice=choice,
        score=score,
        empty_score=math.fsum(candidates.base_scores.tolist()),
        bound=max(bound, score),
        bits=bits,
        energy=energy,
        stamp=candidates.stamp,
        **facts,
    )


def read_solution(path: str | Path, problem: Candidates | Formulated) -> Solution:
    """Return the solution that was written for this problem; its score and energy are computed again."""
    value, candidates = json_object(read_text(path)), candidates_of(problem)
    choice, trace, start = value.get("choice"), value.get("trace"), candidates.families.vertex_start.tolist()
    if not isinstance(choice, list) or len(choice) != candidates.n or not all(type(v) is int for v in choice):
        raise FormatError(f"{path}: no candidate set for each of {candidates.n} vertices; solve again")
    if not all(first <= number < last for (first, last), number in zip(pairwise(start), choice, strict=True)):
        raise FormatError(f"{path}: it names candidate sets that are not there; solve again")
    if find_cycle(candidates.families.sets_at(choice)):
        raise FormatError(f"{path}: the network has a directed cycle; solve again")
    if not isinstance(trace, list):
        raise FormatError(f"{path}: no trace; solve again")

    def number(key: str, found: Any) -> float:
        if type(found) not in (int, float) or not abs(found) < _LARGEST:
            raise FormatError(f"{path}: {key} is {shown(found)}; allowed is a number")
        return found  # type: ignore[no-any-return]

    for key in ("solver", "status"):
        if not isinstance(value.get(key), str):
            raise FormatError(f"{path}: {key} is {shown(value.get(key))}; allowed is text")
    points = [point for point in trace if isinstance(point, list) and len(point) == 2]
    return solution_of(
        problem,
        np.array(choice, dtype=np.int64),
        bound=number("bound", value.get("bound")),
        solver=value["solver"],
        seed=int(number("seed", value.get("seed"))),
        seconds=number("seconds", value.get("seconds")),
        status=value["status"],
        interrupted=value.get("interrupted") is True,
        trace=tuple((number("seconds", seconds), number("score", score)) for seconds, score in points),
        statistics=value["statistics"] if isinstance(value.get("statistics"), dict) else {},
    )
