"""Mutants of the package that the tests do not notice, as Markdown tables.

    python -m benchmarks mutate [--rooms candidates,qubo] [--only PART_OF_PATH] [--mutants 60] [--seed 0] [--jobs 1]
        [--results mutants.jsonl]

A mutant is a copy of the package with one operator, comparison, constant or call of min or max changed. The tests of
its room run against it until one fails: all with few examples for each property, those named like the module first,
then the nearest files with the usual number of examples. A mutant that no test notices survives. Results are kept as
lines of JSON: a run that is started again with the same file resumes, and a mutant whose source has changed is tried
again.

Mutation tools that patch Python in place (mutmut, cosmic-ray) leave compiled kernels as they were. Here each mutant is
a folder of its own on the path, and the checksum in the name of the kernels' cache folder makes numba compile them.

Survivors that cannot be noticed are listed with the reason in `equivalent_mutants.txt`: a line `file | source line |
change | reason`. They are counted apart.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/qubayes")
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")

# The tests of each room, narrowest first. A room's folder includes its subfolders unless they have a line of their own.
TESTS = {
    "foundation": "graph hash_table random highs interrupt memory jit progress limits security",
    "data": "data data_options data_frames data_errors data_spelling",
    "scores": "score candidates score_command",
    "network": "network_files bif network_parameters network_equivalence network_inference sample compare_command "
    "fit_command network_peers",
    "candidates": "candidates last_level screening candidate_files knowledge candidates_faults candidates_command",
    "search": "solve solve_limits solve_settings components limits certificates",
    "search/exact": "exact ideals presolve certificates alternatives solve",
    "search/orders": "anneal asobs order_sa hillclimb population walks solve",
    "machines": "machines_files machines_qubo machines_annealer machines_embedding machine_pages",
    "qubo": "formulation_order formulation_minimum formulation_closure formulation_coefficients formulation_answers "
    "formulation_on_demand formulation_paper formulation_decoding formulation_constrained paper_lemmas ogorman "
    "formulation_command",
    "qubo/subsets": "subsets subsets_search subsets_reductions subsets_bounds subsets_tree subsets_files "
    "subsets_command",
    "qubo/samplers": "sa digital dimod_bridge dimod_samplers bqp solve",
    "quadratize": "quadratize quadratize_structure quadratize_search quadratize_couplers quadratize_labels "
    "quadratize_sampler quadratize_command",
    "report": "report report_layout draw",
    "learning": "learning learn_command plan estimator two_runs",
}
FEW_EXAMPLES = ("--hypothesis-profile", "fast")
NEAREST = 3  # test files that run with the usual number of examples
COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
OPERATORS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
}
CALLS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin"}
CALLS |= {"any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}


class Mutant(NamedTuple):
    """One change of one file: characters `start` to `end` of its text become `text`."""

    path: str
    line: int
    start: int
    end: int
    text: str
    source: str  # the line as it is, stripped
    change: str

    @property
    def key(self) -> str:
        """The mutant's name in the file of results: stable while its line and the place in it stay the same."""
        return f"{self.path} | {self.source} | {self.change}"


def room_of(path: str) -> str:
    """Return the room of a file, by the longest name in TESTS."""
    folder = Path(path).parent.relative_to(PACKAGE).as_posix()
    return max((room for room in TESTS if folder == room or folder.startswith(room + "/")), key=len, default="")


def mutants_of(path: Path) -> list[Mutant]:
    """Return all mutants of a file. Annotations, messages of errors, decorators and names at the top are left alone."""
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:  # columns of ast count bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def mutant(node: Any, start: int, end: int, new: str) -> Mutant:
        change = f"{text[start:end].strip()} -> {new} at {start - starts[node.lineno - 1]}"
        name = path.relative_to(ROOT).as_posix()
        return Mutant(name, node.lineno, start, end, new, lines[node.lineno - 1].strip(), change)

    def between(left: Any, right: Any, old: str, new: str) -> Iterator[Mutant]:
        start, end = place(left.end_lineno, left.end_col_offset), place(right.lineno, right.col_offset)
        found = re.search(re.escape(old), text[start:end])
        if found:
            yield mutant(left, start + found.start(), start + found.end(), new)

    def changes(node: Any) -> Iterator[Mutant]:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
                if type(operator) in COMPARISONS:
                    old = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
                    yield from between(left, right, old[type(operator)], COMPARISONS[type(operator)])
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            yield from between(node.left, node.right, *OPERATORS[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield from between(node.values[0], node.values[1], old, new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            start, end = place(node.lineno, node.col_offset), place(node.operand.lineno, node.operand.col_offset)
            yield mutant(
                node, start, end, "" if text[end - 1] != "(" else re.sub("not|-", "", text[start:end], count=1)
            )
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            start, end = place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)
            new = node.value + 1 if isinstance(node.value, int) else node.value * 2 or 1.0
            yield mutant(node, start, end, repr(new))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            start, end = place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)
            yield mutant(node, start, end, repr(not node.value))
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in CALLS:
                end = place(node.func.end_lineno or 0, node.func.end_col_offset or 0)
                yield mutant(node.func, end - len(name), end, CALLS[name])

    def walk(node: ast.AST) -> Iterator[Mutant]:
        yield from changes(node)
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "format_spec"):
                continue
            for child in value if isinstance(value, list) else [value]:
                guard = isinstance(child, ast.keyword) and child.arg == "strict"  # zip(strict=True) guards, no more
                if isinstance(child, ast.AST) and not (guard or isinstance(child, ast.Raise | ast.JoinedStr)):
                    yield from walk(child)

    return list(walk(ast.parse(text)))


def chosen(rooms: Sequence[str], only: str, count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants of each room, drawn without replacement and in an order that mixes the rooms.

    `only` is a part of the paths of the files to change.
    """
    by_room: dict[str, list[Mutant]] = {room: [] for room in rooms}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        room = room_of(path.relative_to(ROOT).as_posix())
        if room in by_room and path.name != "__init__.py" and only in path.as_posix():
            by_room[room] += mutants_of(path)
    drawn = []
    for room, mutants in by_room.items():
        generator = random.Random(f"{seed} {room}")
        drawn += generator.sample(mutants, min(count, len(mutants)))
    random.Random(seed).shuffle(drawn)
    return drawn


def by_distance(mutant: Mutant, tests: Sequence[str]) -> list[str]:
    """Return the test files, first those whose names share a word with the module, then those that name it often."""
    stem = Path(mutant.path).stem
    words = set(stem.split("_"))

    def distance(test: str) -> tuple[bool, int]:
        named = len(re.findall(rf"\b{stem}\b", Path(test).read_text()))
        return not words & set(Path(test).stem.split("_")), -named

    return sorted(tests, key=distance)


class Bench:
    """A copy of the package in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        """Copy the package into the folder."""
        self.folder = folder
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))

    def run(self, tests: Sequence[str], patience: float) -> tuple[str, str]:
        """Run the tests until one fails. Return ("killed" or "survived", the test that failed)."""
        paths = {"PYTHONPATH": os.pathsep.join((str(self.folder / "src"), str(ROOT / "tests"), str(ROOT)))}
        caches = {"NUMBA_CACHE_DIR": str(self.folder / "kernels"), "PYTHONDONTWRITEBYTECODE": "1"}
        caches["HYPOTHESIS_STORAGE_DIRECTORY"] = str(self.folder / "hypothesis")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]
        shutil.rmtree(self.folder / "hypothesis", ignore_errors=True)
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=os.environ | paths | caches, timeout=patience, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            return "killed", "time"
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
        return ("survived", "") if done.returncode == 0 else ("killed", failed.group(1) if failed else "start")

    def try_mutant(self, mutant: Mutant, tests: Sequence[str], patience: float) -> tuple[str, str]:
        """Put the mutant in its place, run the tests, and put the original back."""
        place, original = self.folder / mutant.path, (ROOT / mutant.path).read_text()
        place.write_text(original[: mutant.start] + mutant.text + original[mutant.end :])
        try:
            compile(place.read_text(), mutant.path, "exec")
            status, killer = self.run([*FEW_EXAMPLES, *tests], patience)
            return (status, killer) if status == "killed" else self.run(tests[:NEAREST], patience)
        except SyntaxError:
            return "invalid", ""
        finally:
            place.write_text(original)
            for folder in set((self.folder / "kernels").glob("qubayes/*")) - self.kept:
                shutil.rmtree(folder)

    kept: frozenset[Path] = frozenset()

    def keep_kernels(self) -> None:
        """Keep the kernels that are compiled now: those of the unchanged package."""
        self.kept = frozenset((self.folder / "kernels").glob("qubayes/*"))


def equivalents() -> dict[str, str]:
    """Return the reason of each mutant that is known to be equivalent, by its key."""
    if not EQUIVALENT.exists():
        return {}
    rows = [tuple(line.rsplit(" | ", 1)) for line in EQUIVALENT.read_text().splitlines() if line.count(" | ") >= 3]
    return dict(rows)


def main() -> None:
    """Try the mutants, write results as they come, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rooms", default=",".join(TESTS))
    parser.add_argument("--only", default="", help="change only files whose path contains this text")
    parser.add_argument("--mutants", type=int, default=60, help="in each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    options = parser.parse_args()
    rooms = options.rooms.split(",")
    mutants = chosen(rooms, options.only, options.mutants, options.seed)
    known: dict[str, dict[str, Any]] = {}
    if options.results.exists():
        known = {row["key"]: row for row in map(json.loads, options.results.read_text().splitlines())}
    tests = {
        room: [str(path) for name in TESTS[room].split() if (path := ROOT / "tests" / f"test_{name}.py").exists()]
        for room in rooms
    }
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(options.jobs) as pool:
        benches: Queue[Bench] = Queue()
        seconds: dict[str, float] = {}
        for job in range(options.jobs):
            bench = Bench(Path(temporary) / str(job))
            benches.put(bench)
            for room in sorted({room_of(mutant.path) for mutant in mutants if mutant.key not in known}):
                began = time.perf_counter()
                status, failed = bench.run([*FEW_EXAMPLES, *tests[room]], 3600)
                seconds[room] = max(seconds.get(room, 0.0), time.perf_counter() - began)
                if status != "survived":
                    sys.exit(f"the tests of {room} fail without a mutant: {failed}")
            bench.keep_kernels()

        def attempt(mutant: Mutant) -> None:
            if mutant.key in known:
                return
            room, bench = room_of(mutant.path), benches.get()
            began = time.perf_counter()
            status, killer = bench.try_mutant(mutant, by_distance(mutant, tests[room]), 60 + 4 * seconds[room])
            benches.put(bench)
            row = {"key": mutant.key, "room": room, "line": mutant.line, "status": status, "killer": killer}
            row["seconds"] = round(time.perf_counter() - began, 1)
            known[mutant.key] = row
            with options.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{status:9} {mutant.path}:{mutant.line} {mutant.change} {killer}", file=sys.stderr, flush=True)

        list(pool.map(attempt, mutants))
    reasons = equivalents()

    def status_of(mutant: Mutant) -> str:
        status: str = known[mutant.key]["status"]
        return "equivalent" if status == "survived" and mutant.key in reasons else status

    print("| room | tried | killed | equivalent | surviving |\n| --- | ---: | ---: | ---: | ---: |")
    for room in [*rooms, "all"]:
        counts = Counter(status_of(mutant) for mutant in mutants if room in ("all", room_of(mutant.path)))
        tried = counts.total() - counts["invalid"]
        print(f"| {room} | {tried} | {counts['killed']} | {counts['equivalent']} | {counts['survived']} |")
    for mutant in mutants:
        if status_of(mutant) == "survived":
            print(f"survives: {mutant.path}:{mutant.line}: {mutant.source}   [{mutant.change}]")


if __name__ == "__main__":
    main()
