"""Solutions as JSON files: what `--json` prints, and the choice and trace that it leaves out."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from ..candidates import Candidates
from ..foundation.errors import FormatError
from ..foundation.files import json_object, read_text, replacing, shown
from ..foundation.graph import find_cycle
from ..qubo import Formulation, decode, encode_sets
from .solution import Solution

_LARGEST = 1e300  # of a number in a file; a whole number beyond the floats would be an error elsewhere


def write_solution(solution: Solution, path: str | Path) -> None:
    """Write the solution; the file is whole or absent."""
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


def read_solution(path: str | Path, problem: Candidates | Formulation) -> Solution:
    """The solution that was written for these candidates; its score and energy are computed anew."""
    value = json_object(read_text(path))
    formulation = problem if isinstance(problem, Formulation) else None
    candidates = formulation.candidates if formulation else problem
    assert isinstance(candidates, Candidates)
    choice = np.array(_choice(value, candidates, path), dtype=np.int64)
    parents = candidates.families.sets_at(choice)
    if find_cycle(parents):
        raise FormatError(f"{path}: the network has a directed cycle; solve again")
    decoded = decode(formulation, encode_sets(formulation, choice)) if formulation else None
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
        figures=value["figures"] if isinstance(value.get("figures"), dict) else {},
        bits=decoded.bits if decoded else None,
        energy=decoded.energy if decoded else None,
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
