"""The result of a solver: a network with its score, a bound, and how it was found; and its JSON file."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
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
        if self.proved:
            return "proved optimal"
        if self.gap == float("inf"):
            return f"no network scores more than {self.bound:,.6f}"
        return f"gap {100 * self.gap:.3g} % of that: no network scores more than {self.bound:,.6f}"

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


def read_solution(path: str | Path, problem: Candidates | Formulated) -> Solution:
    """Return the solution that was written for this problem; its score and energy are computed again."""
    value, candidates = json_object(read_text(path)), candidates_of(problem)
    choice = np.array(_choice(value, candidates, path), dtype=np.int64)
    parents = candidates.families.sets_at(choice)
    if find_cycle(parents):
        raise FormatError(f"{path}: the network has a directed cycle; solve again")
    bits, energy = (None, None) if isinstance(problem, Candidates) else problem.state_of(choice)
    score = math.fsum(candidates.scores[choice].tolist())
    return Solution(
        names=candidates.names,
        parents=parents,
        choice=choice,
        score=score,
        empty_score=math.fsum(candidates.base_scores.tolist()),
        bound=max(score, _number(value, "bound", path)),
        solver=_text(value, "solver", path),
        seed=int(_number(value, "seed", path)),
        seconds=_number(value, "seconds", path),
        status=_text(value, "status", path),
        interrupted=value.get("interrupted") is True,
        trace=_trace(value, path),
        statistics=value["statistics"] if isinstance(value.get("statistics"), dict) else {},
        bits=bits,
        energy=energy,
        stamp=candidates.stamp,
    )


def _choice(value: dict[str, Any], candidates: Candidates, path: str | Path) -> list[int]:
    choice, start = value.get("choice"), candidates.families.vertex_start.tolist()
    if not isinstance(choice, list) or len(choice) != candidates.n or not all(type(v) is int for v in choice):
        raise FormatError(f"{path}: no candidate set for each of {candidates.n} vertices; solve again")
    if not all(first <= number < last for first, number, last in zip(start, choice, start[1:], strict=False)):
        raise FormatError(f"{path}: it names candidate sets that are not there; solve again")
    return choice


def _text(value: dict[str, Any], key: str, path: str | Path) -> str:
    text = value.get(key)
    if not isinstance(text, str):
        raise FormatError(f"{path}: {key} is {shown(text)}; allowed is text")
    return text


def _number(value: dict[str, Any], key: str, path: str | Path) -> float:
    number = value.get(key)
    if type(number) not in (int, float) or not abs(number) < _LARGEST:  # type: ignore[arg-type]
        raise FormatError(f"{path}: {key} is {shown(number)}; allowed is a number")
    return number  # type: ignore[return-value]


def _trace(value: dict[str, Any], path: str | Path) -> tuple[tuple[float, float], ...]:
    trace = value.get("trace")
    if not isinstance(trace, list):
        raise FormatError(f"{path}: no trace; solve again")
    points = [
        {"seconds": point[0], "score": point[1]} for point in trace if isinstance(point, list) and len(point) == 2
    ]
    return tuple((_number(point, "seconds", path), _number(point, "score", path)) for point in points)
