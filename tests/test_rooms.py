"""A room (a package inside `qubayes`) imports only rooms to its left (docs/architecture.md)."""

import ast
import re
from importlib.util import resolve_name
from pathlib import Path

import pytest

import qubayes

PACKAGE = Path(qubayes.__file__).parent
ROOMS = (
    *("foundation", "data", "scores", "network", "candidates", "search"),  # from data to a network
    *("machines", "qubo", "quadratize"),  # QUBOs
    *("report", "learning", "cli"),  # all of these together
)
EXCEPTIONS = {
    # states may be declared by a network file, which is read on demand
    ("data/read.py", "network"),
    ("network/network.py", "report"),  # a picture is drawn on demand
}
QUBO_ROOMS = ("machines", "qubo", "quadratize")
# What stands after the candidate sets sees numbers per parent set, not the data.
NUMBERS_ONLY = ("search", "machines", "qubo", "quadratize")
SEES_MORE = {
    ("search/growth.py", "scores"),  # any engine
    ("qubo/gains.py", "data"),  # scores of unions of subsets, if asked for
    ("qubo/gains.py", "scores"),
}
TESTS = Path(__file__).parent


def imports_of(path: Path) -> list[tuple[str, int, bool]]:
    """(room, line, whether at the top of the module) of each import from this package that is not for types alone."""
    home = ".".join(("qubayes", *path.relative_to(PACKAGE).parts[:-1]))
    tree = ast.parse(path.read_text())
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and node not in for_types:
            base = resolve_name("." * node.level + (node.module or ""), home)
            for name in node.names:
                full = f"{base}.{name.name}" if base == "qubayes" else base
                room = full.split(".")[1]
                if (PACKAGE / room).is_dir():
                    found.append((room, node.lineno, node in tree.body))
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_to_its_left(room):
    allowed = ROOMS[: ROOMS.index(room) + 1]
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {other}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for other, line, _ in imports_of(path)
        if other not in allowed and (path.relative_to(PACKAGE).as_posix(), other) not in EXCEPTIONS
    ]
    assert not wrong


def test_every_folder_is_a_room():
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == set(
        ROOMS
    )
    assert {path.name for path in PACKAGE.glob("*.py")} == {
        "__init__.py",
        "__main__.py",
        "settings.py",
    }


def test_what_stands_after_the_candidate_sets_sees_no_data():
    found = {
        (path.relative_to(PACKAGE).as_posix(), other)
        for room in NUMBERS_ONLY
        for path in (PACKAGE / room).rglob("*.py")
        for other, _, _ in imports_of(path)
        if other in ("data", "scores")
    }
    assert found == SEES_MORE


def test_the_list_of_modules_has_the_rooms_in_the_order_of_imports():
    page = (TESTS.parent / "docs/modules.md").read_text()
    assert re.findall(r"^## (\w+)$", page, re.M) == ["qubayes", *ROOMS]


def test_two_modules_import_numba_and_one_its_inner_parts():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        modules = re.findall(r"^\s*(?:from|import) ((?:numba|llvmlite)[\w.]*)", text, re.M)
        if modules:
            found[path.relative_to(PACKAGE).as_posix()] = set(modules)
    assert list(found) == ["foundation/jit.py", "foundation/words.py"]
    assert found["foundation/words.py"] == {"llvmlite", "numba", "numba.extending"}


def test_learning_loads_the_rooms_of_qubos_only_where_they_are_asked_for():
    at_once = [
        f"{path.name}:{line} imports {room}"
        for path in sorted((PACKAGE / "learning").rglob("*.py"))
        for room, line, at_top in imports_of(path)
        if at_top and room in QUBO_ROOMS
    ]
    assert at_once == []


def exported(package: str) -> set[str]:
    """Return the names in `__all__` of a package of this project, and its packages."""
    folder = PACKAGE.joinpath(*package.split(".")[1:])
    if not (folder / "__init__.py").exists():
        return set()
    names = {path.parent.name for path in folder.glob("*/__init__.py")}
    for node in ast.parse((folder / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names |= set(ast.literal_eval(node.value))
    return names


def is_public(module: str, name: str) -> bool:
    """Return whether a room around the module exports the name; modules of foundation are libraries."""
    if module.startswith("qubayes.foundation."):
        return not name.startswith("_")
    parts = module.split(".")
    return any(name in exported(".".join(parts[:end])) for end in range(1, len(parts) + 1))


def inner_names(path: Path) -> list[str]:
    """Return what a test imports from this package that no room exports."""
    return [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "qubayes"
        for alias in node.names
        if not is_public(str(node.module), alias.name)
    ]


def test_tests_import_what_rooms_export():
    """What must look inside a room stands in tests/inside/."""
    files = {path.relative_to(TESTS).as_posix(): path for path in sorted(TESTS.rglob("*.py"))}
    outside = [name for name in files if not name.startswith("inside/")]
    assert {name: found for name in outside if (found := inner_names(files[name]))} == {}


def test_names_of_test_files_are_unique():
    """Folders of tests are no packages, so that cases can be shared."""
    names = [path.name for path in TESTS.rglob("*.py")]
    assert len(names) == len(set(names))
