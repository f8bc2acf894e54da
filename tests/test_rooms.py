"""The plan of the rooms: a room imports only rooms to its left (docs/architecture.md)."""

import ast
from importlib.util import resolve_name
from pathlib import Path

import pytest

import qubayes

PACKAGE = Path(qubayes.__file__).parent
ROOMS = (
    *("foundation", "data", "scores", "network", "candidates", "search"),  # the network wing
    *("machines", "qubo", "quadratize"),  # the QUBO wing
    *("report", "learning", "cli"),  # the hall
)
EXCEPTIONS = {
    # states may be declared by a network file, which is read on demand
    ("data/read.py", "network"),
    ("network/network.py", "report"),  # a picture is drawn on demand
}
WING = ("machines", "qubo", "quadratize")


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


def test_learning_loads_the_qubo_wing_only_where_it_is_asked_for():
    at_once = [
        f"{path.name}:{line} imports {room}"
        for path in sorted((PACKAGE / "learning").rglob("*.py"))
        for room, line, at_top in imports_of(path)
        if at_top and room in WING
    ]
    assert at_once == []
