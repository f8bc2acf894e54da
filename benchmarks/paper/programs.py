"""Programs of others on the same score files, where the user has them: `--peer minobs=PATH`, `--peer gobnilp=PATH`.

Nothing of them is shipped. Their command lines, as their public sources have them:

- minobs: PATH SCORES SECONDS SEED OUTPUT. SCORES is .jkl with numbers for names and no comments.
  OUTPUT has a line BEST, a line of headings, then two lines for each better order: milliseconds and
  minus a million times its score; the order, parents first. (Lee and van Beek 2017.)
- gobnilp: PATH -f=jkl -g=SETTINGS SCORES. `limits/time` and the file of the solution are settings.
  The solution has a line `child <- {parent,parent} score` for each vertex. SCIP prints `Dual Bound`
  at the end. (Cussens; on SCIP.)

The network is read, not the score: it is scored here, as the networks of all other solvers are.
"""

import math
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qubayes import ServiceError, SettingError
from qubayes.candidates import Candidates
from qubayes.foundation.graph import find_cycle

PATIENCE = 60.0  # seconds beyond the time limit, for reading the scores and writing the answer


class Answer(NamedTuple):
    """What a program found."""

    choice: Sequence[int]  # for each vertex the number of a candidate set
    # seconds and score of each better network, as the program says; may be empty
    trace: list[list[float]]
    bound: float = math.inf


class Program(NamedTuple):
    """How a program is called, and how its answer is read, in a folder with `scores.jkl`."""

    command: Callable[[str, Path, float, int], list[str]]  # of path, folder, seconds, seed
    # of the candidates, the folder, what was printed
    read: Callable[[Candidates, Path, str], Answer]


def parsed_peers(texts: Sequence[str]) -> dict[str, str]:
    """Return name -> path of options NAME=PATH; raise unless the name is known and the file can be run."""
    found = {}
    for text in texts:
        name, _, place = text.partition("=")
        if name not in PROGRAMS or not place:
            raise SettingError(
                f"--peer {text!r}; give one of {', '.join(PROGRAMS)} and its path, as minobs=/path/search"
            )
        path = Path(place).absolute()
        if not path.is_file() or not os.access(path, os.X_OK):
            raise SettingError(
                f"--peer {text!r}: {path} is not a program; build it, and give the path of the executable"
            )
        found[name] = str(path)
    return found


def solve_by_program(
    name: str, path: str, candidates: Candidates, seconds: float, seed: int
) -> dict[str, Any]:
    """Return score, bound and trace of another program on these candidate sets, as of a solver of ours."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "scores.jkl").write_text("".join(_score_lines(candidates)))
        command = PROGRAMS[name].command(path, folder, seconds, seed)
        began = time.perf_counter()
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=seconds + PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise ServiceError(
                f"{name} did not end {PATIENCE:g} s after its limit of {seconds:g} s"
            ) from None
        taken = time.perf_counter() - began
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
            raise ServiceError(
                f"{name} ended with exit code {done.returncode} and said: {said[:200]}"
            )
        answer = PROGRAMS[name].read(candidates, folder, done.stdout)
    if find_cycle(candidates.families.sets_at(answer.choice)):
        raise ServiceError(
            f"the network of {name} has a cycle; its answer is not read as it was meant"
        )
    score, empty = (
        math.fsum(candidates.scores[list(answer.choice)]),
        math.fsum(candidates.base_scores),
    )
    before = [[when, min(told, score)] for when, told in answer.trace if told < score - 1e-3]
    reached = next((when for when, told in answer.trace if told >= score - 1e-3), taken)
    proved = answer.bound <= score + 1e-6 * max(1.0, abs(score))
    return {
        "score": score,
        "empty_score": empty,
        "bound": max(answer.bound, score),
        "proved": proved,
        "seconds": taken,
        "status": f"{name}: "
        + ("proved optimal, to its tolerances" if proved else "time limit, or its own end"),
        "trace": [[0.0, empty], *before, [min(reached, taken), score]],
        "statistics": {"program": Path(path).name},
    }


def _score_lines(candidates: Candidates) -> Iterator[str]:
    """Yield the lines of a .jkl file with the numbers of the vertices for names and no comments."""
    yield f"{candidates.n}\n"
    for vertex in range(candidates.n):
        yield f"{vertex} {candidates.families.sizes[vertex]}\n"
        for parents, score in candidates.of(vertex):
            yield " ".join([repr(score), str(len(parents)), *map(str, parents)]) + "\n"


def _call_minobs(path: str, folder: Path, seconds: float, seed: int) -> list[str]:
    return [path, str(folder / "scores.jkl"), f"{seconds:.2f}", str(seed), str(folder / "output")]


def _read_minobs(candidates: Candidates, folder: Path, printed: str) -> Answer:
    lines = _text(folder / "output").partition("BEST\n")[2].splitlines()[1:]
    pairs = [line.split() for line in lines[::2]]
    orders = [[int(word) for word in line.split() if word.isdigit()] for line in lines[1::2]]
    if (
        not orders
        or sorted(orders[-1]) != list(range(candidates.n))
        or any(len(pair) != 2 for pair in pairs)
    ):
        raise ServiceError(
            f"the output of minobs does not end with an order of {candidates.n} variables"
        )
    trace = [[int(when) / 1000, -int(cost) / 1e6] for when, cost in pairs]
    return Answer(candidates.families.best_of_order(orders[-1]).tolist(), trace)


def _call_gobnilp(path: str, folder: Path, seconds: float, seed: int) -> list[str]:
    settings = {
        "limits/time": f"{seconds:.2f}",
        "randomization/randomseedshift": str(seed),
        "gobnilp/outputfile/solution": '"solution"',
    }
    (folder / "settings").write_text(
        "".join(f"{name} = {value}\n" for name, value in settings.items())
    )
    return [path, "-f=jkl", f"-g={folder / 'settings'}", str(folder / "scores.jkl")]


def _read_gobnilp(candidates: Candidates, folder: Path, printed: str) -> Answer:
    rows = re.findall(r"^(\d+)\s*<-\s*\{([\d,\s]*)\}", _text(folder / "solution"), re.MULTILINE)
    chosen = {
        int(child): tuple(sorted(map(int, re.findall(r"\d+", parents)))) for child, parents in rows
    }
    choice = []
    for vertex in range(candidates.n):
        sets = list(candidates.families.sets_of(vertex))
        if chosen.get(vertex) not in sets:
            raise ServiceError(
                f"the solution of gobnilp gives variable {vertex} no candidate set: {chosen.get(vertex)}"
            )
        choice.append(int(candidates.families.vertex_start[vertex]) + sets.index(chosen[vertex]))
    bounds = re.findall(r"^Dual Bound\s*:\s*([-+.\deE]+)", printed, re.MULTILINE)
    bound = float(bounds[-1]) if bounds else math.inf
    return Answer(choice, [], bound if abs(bound) < 1e19 else math.inf)  # SCIP's infinity is 1e20


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise ServiceError(
            f"the program wrote no {path.name} ({error.strerror}); is it the right one?"
        ) from None


PROGRAMS: Mapping[str, Program] = {
    "minobs": Program(_call_minobs, _read_minobs),
    "gobnilp": Program(_call_gobnilp, _read_gobnilp),
}
