"""Mutants of the package that the tests do not notice, as Markdown tables.

    python -m benchmarks mutate [--rooms candidates,qubo] [--only PART_OF_PATH] [--mutants 60]
    [--seed 0] [--jobs 1]
        [--budget 30] [--results mutants.jsonl]

A mutant is a copy of the package with one operator, comparison, constant or call of min or max
changed. The tests that reach the changed function run against it until one fails, with few examples
for each property. A mutant that no test notices survives. Results are kept as lines of JSON: a run
that is started again with the same file resumes, and a mutant whose source has changed is tried
again, as is a survivor whose tests have changed.

The first run finds out which test reaches which function, and how long it takes (kept beside the
results, for each test until it changes). Compiled kernels cannot be traced: a test reaches a kernel
or a constant if it reaches a Python function that names it, directly or through other kernels.
Tests run in the order of `tests_for`, up to `--budget` seconds of them.

Mutation tools that patch Python in place (mutmut, cosmic-ray) leave compiled kernels as they were.
Here each mutant is a folder of its own on the path, and the checksum in the name of the kernels'
cache folder makes numba compile them, without optimisation, which is quicker. A mutant that no
kernel holds takes the kernels of the unchanged package. Each mutant runs in a fork of this process,
which has imported the packages that the tests need.

Survivors that cannot be noticed are listed with the reason in `equivalent_mutants.txt`: a line
`file | source line | change | reason`. They are counted apart and not tried again."""

import argparse
import ast
import builtins
import contextlib
import hashlib
import importlib.machinery
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple, cast

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/qubayes")
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
# A room's folder includes its subfolders unless they have a name of their own here.
ROOMS = (
    "foundation",
    "data",
    "scores",
    "network",
    "candidates",
    "search",
    "search/exact",
    "search/orders",
    "machines",
    "qubo",
    "qubo/subsets",
    "qubo/samplers",
    "quadratize",
    "report",
    "learning",
)
# Tests that reach nearly everything, by the only room for which they run.
WIDE = {
    "report": "report report_layout draw",
    "learning": "learning learn_command plan estimator judge two_runs",
}
WIDE["package"] = (
    "bench_instances bench_mutate candidates_faults docs docstrings fuzz package rooms"
)
KERNELS = {"kernel", "allocating_kernel", "inner", "inlined"}  # decorators of compiled functions
# before processes are forked
PRELOADED = "pytest hypothesis numpy scipy.optimize scipy.sparse numba pandas dimod"
# seconds of a test file, after which the rest of it is left out: its tests are too slow
ENOUGH = 30
# exit codes of pytest: tests passed, some failed, were ended after ENOUGH, or are all slow ones
FINE = (0, 1, 2, 5)
# seconds of processor time for each test, and four times what it usually takes; kernels take up to
# 8 s
PATIENCE = 12
COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
}
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
CALLS = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
}
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
    """Return the room of a file, by the longest name in ROOMS."""
    folder = Path(path).parent.relative_to(PACKAGE).as_posix()
    return max(
        (room for room in ROOMS if folder == room or folder.startswith(room + "/")),
        key=len,
        default="",
    )


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
        start, end = (
            place(left.end_lineno, left.end_col_offset),
            place(right.lineno, right.col_offset),
        )
        found = re.search(re.escape(old), text[start:end])
        if found:
            yield mutant(left, start + found.start(), start + found.end(), new)

    def changes(node: Any) -> Iterator[Mutant]:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
                if type(operator) in COMPARISONS:
                    old = {
                        ast.Lt: "<",
                        ast.LtE: "<=",
                        ast.Gt: ">",
                        ast.GtE: ">=",
                        ast.Eq: "==",
                        ast.NotEq: "!=",
                    }
                    yield from between(
                        left, right, old[type(operator)], COMPARISONS[type(operator)]
                    )
        elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            yield from between(node.left, node.right, *OPERATORS[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield from between(node.values[0], node.values[1], old, new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            start, end = (
                place(node.lineno, node.col_offset),
                place(node.operand.lineno, node.operand.col_offset),
            )
            yield mutant(
                node,
                start,
                end,
                "" if text[end - 1] != "(" else re.sub("not|-", "", text[start:end], count=1),
            )
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            start, end = (
                place(node.lineno, node.col_offset),
                place(node.end_lineno or 0, node.end_col_offset or 0),
            )
            new = node.value + 1 if isinstance(node.value, int) else node.value * 2 or 1.0
            yield mutant(node, start, end, repr(new))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            start, end = (
                place(node.lineno, node.col_offset),
                place(node.end_lineno or 0, node.end_col_offset or 0),
            )
            yield mutant(node, start, end, repr(not node.value))
        elif isinstance(node, ast.Call):
            name = (
                node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            )
            if name in CALLS:
                end = place(node.func.end_lineno or 0, node.func.end_col_offset or 0)
                yield mutant(node.func, end - len(name), end, CALLS[name])

    def walk(node: ast.AST) -> Iterator[Mutant]:
        yield from changes(node)
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "format_spec"):
                continue
            for child in value if isinstance(value, list) else [value]:
                # zip(strict=True) guards, no more
                guard = isinstance(child, ast.keyword) and child.arg == "strict"
                if isinstance(child, ast.AST) and not (
                    guard or isinstance(child, ast.Raise | ast.JoinedStr)
                ):
                    yield from walk(child)

    return list(walk(ast.parse(text)))


def chosen(rooms: Sequence[str], only: str, count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants of each room, drawn without replacement and in an order that mixes the rooms.

    `only` is a part of the paths of the files to change. The draw depends on each mutant's key: a
    change of one line leaves the other mutants that were drawn as they are."""

    def lot(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()

    by_room: dict[str, list[Mutant]] = {room: [] for room in rooms}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        room = room_of(path.relative_to(ROOT).as_posix())
        if room in by_room and path.name != "__init__.py" and only in path.as_posix():
            by_room[room] += mutants_of(path)
    drawn = [mutant for mutants in by_room.values() for mutant in sorted(mutants, key=lot)[:count]]
    return sorted(drawn, key=lot)


class Owner(NamedTuple):
    """A function, or a statement outside of functions: what holds a mutant."""

    path: str
    name: str  # of the function (Class.method), or the first name that the statement sets
    kind: str  # "python", "kernel" or "statement"
    first: int
    last: int
    uses: frozenset[str]  # names in it, in parts of dotted names too

    @property
    def key(self) -> str:
        """The owner's name in the file of reached functions."""
        return f"{self.path}::{self.name}"


def functions(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[Any, str]]:
    """Return the functions and other statements of a module or class, with the names of functions (Class.method)."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{node.name}.")
        else:
            yield node, prefix + node.name if isinstance(node, ast.FunctionDef) else ""


@cache
def owners() -> list[Owner]:
    """Return the functions of the package and its statements outside of functions."""
    found = []
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        for node, name in functions(ast.parse(path.read_text()).body):
            uses = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            uses |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
            kind = "python" if name else "statement"
            if name and KERNELS & {
                part.id for part in node.decorator_list if isinstance(part, ast.Name)
            }:
                kind = "kernel"
            stored = [
                part for part in ast.walk(node) if isinstance(getattr(part, "ctx", None), ast.Store)
            ]
            name = name or next((part.id for part in stored if isinstance(part, ast.Name)), "")
            place = path.relative_to(ROOT).as_posix(), name, kind, node.lineno, node.end_lineno
            found.append(Owner(*place, frozenset(uses)))
    compiled = {
        name
        for owner in found
        if owner.kind == "statement" and owner.uses & KERNELS
        for name in owner.uses
    }
    return [owner._replace(kind="kernel") if owner.name in compiled else owner for owner in found]


def holders(mutant: Mutant) -> list[Owner]:
    """Return the owner of the mutant, and if it is no Python function, all that hold a copy, up to Python functions.

    A statement whose name nothing uses (a loop at the top) belongs to all of its file.
    """
    found = [
        owner
        for owner in owners()
        if owner.path == mutant.path and owner.first <= mutant.line <= owner.last
    ]
    for owner in found:  # grows while it is read
        if owner.kind != "python":
            name = owner.name.rpartition(".")[2]
            near = [
                other for other in owners() if other.path == owner.path or not name.startswith("_")
            ]
            found += [other for other in near if name in other.uses and other not in found]
    return (
        found
        if len(found) != 1 or found[0].kind == "python"
        else [o for o in owners() if o.path == mutant.path]
    )


class Reached:
    """A plugin of pytest that notes which functions of the package each test calls, and how long the test takes."""

    def __init__(self, folder: Path) -> None:
        """Make every Python function of the copy of the package in `folder` note its name when it is called."""
        from numba.core import event

        self.rows: dict[str, tuple[float, list[str]]] = {}
        self.called: set[str] = set()
        self.failed: set[str] = set()
        self.began = self.paused = 0.0
        self.depth = 0
        event.Listener.register(Reached)
        event.register("numba:compiler_lock", cast(event.Listener, self))
        builtins.__dict__["_called"] = self.called
        python = {owner.key for owner in owners() if owner.kind == "python"}

        def compiled(_loader: Any, data: bytes, path: str, **_: Any) -> CodeType:
            tree = ast.parse(data)
            if Path(path).is_relative_to(folder):
                for node, name in functions(tree.body):
                    key = f"{Path(path).relative_to(folder).as_posix()}::{name}"
                    if key in python:
                        note = ast.parse(f"_called.add({key!r})").body[0]
                        first = 1 if ast.get_docstring(node) else 0
                        node.body.insert(
                            first, ast.fix_missing_locations(ast.copy_location(note, node.body[-1]))
                        )
            return compile(tree, path, "exec")

        loader: Any = importlib.machinery.SourceFileLoader
        loader.source_to_code = compiled

    def notify(self, event: Any) -> None:
        """Leave compilation out. Numba calls this when a compilation, or one inside it, starts and when it ends."""
        self.depth += 1 if event.is_start else -1
        if event.is_start and self.depth == 1:
            self.paused = time.process_time()
        elif event.is_end and self.depth == 0:
            self.began += time.process_time() - self.paused

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Begin to note."""
        self.called.clear()
        self.began = time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Keep what was called, unless the test failed: some expect the speed of optimised kernels."""
        if nodeid not in self.failed:
            self.rows[nodeid] = (round(time.process_time() - self.began, 3), sorted(self.called))
        if sum(seconds for seconds, _ in self.rows.values()) > ENOUGH:
            self.session.shouldstop = "enough"

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that fails."""
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionstart(self, session: Any) -> None:
        """Keep the session, to end it."""
        self.session = session


class Watch:
    """A plugin of pytest that ends the process if a test takes too long, and writes the name of a test that failed."""

    def __init__(self, seconds: dict[str, float], verdict: Path) -> None:
        """Keep the usual seconds of each test and the file for the name."""
        self.seconds, self.verdict = seconds, verdict

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Start the clock, of processor time: the end comes as a signal that no kernel can delay."""
        self.verdict.write_text(nodeid)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE + 4 * self.seconds.get(nodeid, 0.0))

    def pytest_collection(self) -> None:
        """Let hypothesis look for a failing example, not for the smallest one."""
        from hypothesis import Phase, settings

        quick = settings(settings.get_profile("fast"), phases=[Phase.explicit, Phase.generate])
        settings.register_profile("quick", quick)
        settings.load_profile("quick")

    def pytest_collectreport(self, report: Any) -> None:
        """Write the name of a file that cannot be imported."""
        if report.failed:
            self.verdict.write_text(report.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """End the process if a test has failed."""
        if report.failed:
            os._exit(1)


class Bench:
    """A copy of the package in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        """Copy the package into the folder."""
        self.folder, self.kernels = folder, folder / "kernels"
        self.source = str(folder / "src")
        shutil.rmtree(folder / "src", ignore_errors=True)
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))

    def fork(
        self,
        tests: Sequence[str],
        patience: float,
        prepare: Callable[[], Any],
        done: Callable[..., Any],
    ) -> int:
        """Run the tests in a fork of this process, until one fails. Return the exit code, or minus a signal's number.

        `prepare` runs first and returns a plugin; `done` is called with it at the end.
        """

        def child() -> None:
            os.setsid()
            quiet = os.open(self.folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            os.chdir(ROOT)
            sys.path[:0] = [self.source]
            os.environ |= {"PYTHONPATH": self.source, "NUMBA_CACHE_DIR": str(self.kernels)}
            os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp(dir=self.folder)
            plugin = prepare()
            import pytest

            options = ["-q", "-p", "no:cacheprovider", "-m", "not slow", "--assert=plain"]
            options += ["--hypothesis-seed=0", "--hypothesis-profile", "fast"]
            # some cannot without optimisation
            options += ["-W", "ignore:Cannot cache compiled function"]
            code = pytest.main([*options, *tests], plugins=[plugin])
            done(plugin)
            os._exit(int(code))

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(patience)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)  # and what the tests started
        process.join()
        return process.exitcode or 0

    def take_kernels(self) -> None:
        """Use the kernels of earlier mutants wherever their code is the same."""
        from numba.core import caching

        from qubayes.foundation import jit

        stamp: Any = lambda self: 0  # noqa: E731 - the folders' names hold checksums; times and sizes of files do not matter
        caching._SourceFileBackedLocatorMixin.get_source_stamp = stamp
        jit.config.CACHE_DIR = str(self.kernels)

    def reached(self, tests: Sequence[str]) -> dict[str, tuple[float, list[str]]]:
        """Return the seconds and the functions of each of these tests."""

        def prepare() -> Reached:
            self.take_kernels()
            return Reached(self.folder)

        place = self.folder / "reached.json"
        code = self.fork(
            tests, 3600, prepare, lambda plugin: place.write_text(json.dumps(plugin.rows))
        )
        if code not in FINE:
            sys.exit(f"{tests} cannot be run:\n{(self.folder / 'output.txt').read_text()[-2000:]}")
        rows: dict[str, tuple[float, list[str]]] = json.loads(place.read_text())
        return rows

    def try_mutant(self, mutant: Mutant, tests: dict[str, float]) -> tuple[str, str]:
        """Put the mutant in its place, run the tests, and put the original back.

        `tests` holds the usual seconds of each test. Return ("killed", "survived" or "invalid", the
        test that failed)."""
        place, original = self.folder / mutant.path, (ROOT / mutant.path).read_text()
        place.write_text(original[: mutant.start] + mutant.text + original[mutant.end :])
        verdict = self.folder / "verdict.txt"
        verdict.write_text("start")

        def prepare() -> Watch:
            self.take_kernels()
            return Watch(tests, verdict)  # it ends the run with the first test that fails

        try:
            compile(place.read_text(), mutant.path, "exec")
            code = (
                self.fork(list(tests), 60 + 10 * sum(tests.values()), prepare, lambda _: None)
                if tests
                else 0
            )
        except SyntaxError:
            return "invalid", ""
        finally:
            place.write_text(original)
        late = " (time)" if code in (-signal.SIGPROF, -signal.SIGKILL) else ""
        return ("killed", verdict.read_text() + late) if code else ("survived", "")


def test_sources(text: str) -> dict[str, str]:
    """Return a checksum of each test of a file: of its text and of all that is no test, but for imports."""
    tests, others = {}, ""
    for node in ast.parse(text).body:
        source = ast.get_source_segment(text, node) or ""
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower().startswith(
            "test"
        ):
            tests[node.name] = source
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            others += source
    return {name: checksum_of(source + others) for name, source in tests.items()}


def reached_functions(
    bench: Bench, rooms: Sequence[str], place: Path
) -> dict[str, tuple[float, list[str]]]:
    """Return the seconds and the functions of each test. Tests that have not changed are read from `place`."""
    known = json.loads(place.read_text()) if place.exists() else {}
    wide = {
        f"test_{name}.py"
        for room, names in WIDE.items()
        if room not in rooms
        for name in names.split()
    }
    for path in sorted(
        path for path in (ROOT / "tests").glob("test_*.py") if path.name not in wide
    ):
        sources = test_sources(path.read_text())
        before = known.get(path.name, {"sources": {}, "tests": {}})
        changed = [
            name for name, source in sources.items() if before["sources"].get(name) != source
        ]
        tests = {
            test: row
            for test, row in before["tests"].items()
            if re.split(r"::|\[", test)[1] in sources
        }
        if changed:
            tests |= bench.reached([f"tests/{path.name}::{name}" for name in changed])
        if changed or len(tests) < len(before["tests"]):
            known[path.name] = {"sources": sources, "tests": tests}
            place.write_text(json.dumps(known))
    return {test: tuple(row) for name in known for test, row in known[name]["tests"].items()}


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


@cache
def text_of(file: str) -> str:
    """Return the text of a test file."""
    return (ROOT / file).read_text()


@cache
def names(file: str, name: str) -> bool:
    """Tell whether a test file has this word."""
    return bool(re.search(rf"\b{name}\b", text_of(file)))


def tests_for(
    mutant: Mutant,
    reached: dict[str, tuple[float, list[str]]],
    users: dict[str, list[str]],
    budget: float,
) -> dict[str, float]:
    """Return the tests to run against a mutant, with their usual seconds.

    Those that reach it, the narrow and quick ones first; a file that names its function or its
    module counts as four times as quick for each. The sum of their seconds is at most `budget`."""
    held = holders(mutant)
    found = {test for owner in held for test in users.get(owner.key, ())}
    compiled = [owner.name for owner in held if owner.kind == "kernel"]
    found |= {test for test in reached if any(names(file_of(test), name) for name in compiled)}
    words = (
        [held[0].name.rpartition(".")[2] or "-", Path(mutant.path).stem]
        if held
        else [Path(mutant.path).stem]
    )

    def distance(test: str) -> float:
        named = [word for word in words if names(file_of(test), word)]
        return (reached[test][0] + 0.05) * (len(reached[test][1]) + 5) / 4 ** len(named)  # type: ignore[no-any-return]

    chosen: dict[str, float] = {}
    for test in sorted(found, key=distance):
        if sum(chosen.values()) + reached[test][0] <= budget:
            chosen[test] = reached[test][0]
    return chosen


def equivalents() -> dict[str, str]:
    """Return the reason of each mutant that is known to be equivalent, by its key."""
    if not EQUIVALENT.exists():
        return {}
    rows = [
        tuple(line.rsplit(" | ", 1))
        for line in EQUIVALENT.read_text().splitlines()
        if line.count(" | ") >= 3
    ]
    return dict(rows)


def checksum_of(text: str) -> str:
    """Return a short checksum of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_results(place: Path) -> dict[str, dict[str, Any]]:
    """Return the last result of each mutant, by its key."""
    return {row["key"]: row for row in map(json.loads, place.read_text().splitlines())}


def main() -> None:
    """Try the mutants, write results as they come, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument(
        "--only", default="", help="change only files whose path contains this text"
    )
    parser.add_argument("--mutants", type=int, default=60, help="in each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests for each mutant")
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    options = parser.parse_args()
    rooms = options.rooms.split(",")
    reasons = equivalents()
    mutants = chosen(rooms, options.only, options.mutants, options.seed)
    options.results.touch()
    os.environ |= {"NUMBA_OPT": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in PRELOADED.split():
        importlib.import_module(name)
    # stays, with the kernels: numba finds them by its name
    folder = options.results.resolve().with_suffix(".bench")
    benches = [Bench(folder / str(job)) for job in range(options.jobs)]
    reached = reached_functions(benches[0], rooms, options.results.with_suffix(".reached.json"))
    users: dict[str, list[str]] = defaultdict(list)
    for test, (_, functions) in reached.items():
        for function in functions:
            users[function].append(test)
    known = read_results(options.results)

    def attempt(bench: Bench, mutant: Mutant) -> None:
        tests = tests_for(mutant, reached, users, options.budget)
        checksum = checksum_of("".join(text_of(file_of(test)) for test in tests))
        row = known.get(mutant.key)
        if mutant.key in reasons or (
            row and (row["status"] != "survived" or row["tests"] == checksum)
        ):
            return
        began = time.perf_counter()
        status, killer = bench.try_mutant(mutant, tests)
        row = {
            "key": mutant.key,
            "room": room_of(mutant.path),
            "line": mutant.line,
            "status": status,
        }
        row |= {
            "killer": killer,
            "tests": checksum,
            "seconds": round(time.perf_counter() - began, 1),
        }
        with options.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{status:9} {mutant.path}:{mutant.line} {mutant.change} {killer}",
            file=sys.stderr,
            flush=True,
        )

    def work(job: int) -> None:
        for mutant in mutants[job :: options.jobs]:
            attempt(benches[job], mutant)

    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work, args=(job,)) for job in range(options.jobs)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    known = read_results(options.results)

    def status_of(mutant: Mutant) -> str:
        return "equivalent" if mutant.key in reasons else known[mutant.key]["status"]

    print("| room | tried | killed | equivalent | surviving |\n| --- | ---: | ---: | ---: | ---: |")
    for room in [*rooms, "all"]:
        counts = Counter(
            status_of(mutant) for mutant in mutants if room in ("all", room_of(mutant.path))
        )
        tried = counts.total() - counts["invalid"]
        print(
            f"| {room} | {tried} | {counts['killed']} | {counts['equivalent']} | {counts['survived']} |"
        )
    for mutant in mutants:
        if status_of(mutant) == "survived":
            print(f"survives: {mutant.path}:{mutant.line}: {mutant.source}   [{mutant.change}]")


if __name__ == "__main__":
    main()
