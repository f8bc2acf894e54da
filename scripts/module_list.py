"""Write docs/modules.md from the docstrings; with --check only tell whether it is up to date."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "qubayes"
PAGE = ROOT / "docs" / "modules.md"
# in the order of imports: a package imports only packages above it (tests/test_rooms.py)
PACKAGES = (
    "foundation",
    "data",
    "scores",
    "network",
    "candidates",
    "search",
    "machines",
    "qubo",
    "quadratize",
    "report",
    "learning",
    "cli",
)
HEAD = """# Modules

Every module of `src/qubayes/` with the first line of its docstring. A package imports only packages above it.
[Architecture](architecture.md) says how data flow through the packages.
`python scripts/module_list.py` writes this page; a test keeps it up to date.
"""


def first_line(path: Path) -> str:
    """Return the first line of the module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not text:
        raise SystemExit(f"{path} has no docstring")
    return text.splitlines()[0].replace("|", "\\|")


def page() -> str:
    """Return the whole page."""
    own = [path for path in SOURCE.glob("*.py") if path.name != "__init__.py"]
    parts = [
        HEAD,
        "\n## qubayes\n\n",
        first_line(SOURCE / "__init__.py"),
        "\n\n",
        _table(own, SOURCE),
    ]
    for name in PACKAGES:
        parts.append(_section(SOURCE / name))
        parts += [_section(inner.parent) for inner in sorted(SOURCE.glob(f"{name}/*/__init__.py"))]
    return "".join(parts)


def _section(folder: Path) -> str:
    """Return the part of the page on one package."""
    name = folder.relative_to(SOURCE).as_posix()
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    level = "###" if "/" in name else "##"
    about = first_line(folder / "__init__.py")
    return f"\n{level} {name}\n\n{about}\n\n{_table(modules, folder)}"


def _table(modules: list[Path], folder: Path) -> str:
    rows = [f"| `{path.relative_to(folder)}` | {first_line(path)} |\n" for path in sorted(modules)]
    return "| module | first line |\n|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        late = "docs/modules.md is out of date; run scripts/module_list.py without --check"
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else late)
    PAGE.write_text(page(), encoding="utf-8")
