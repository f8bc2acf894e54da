"""The documentation names only what exists."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).parent.parent
_PAPER = (ROOT / "docs/paper.md").read_text()
ROWS = re.findall(r"^\| (.+?) \| `(qubayes[\w.]+)` \| `([\w./]+)::(\w+)` \|$", _PAPER, re.M)


def test_the_table_was_found():
    assert len(ROWS) > 30


@pytest.mark.parametrize(
    ("part", "function", "file", "test"), ROWS, ids=[row[0][:40] for row in ROWS]
)
def test_function_and_test_exist(part, function, file, test):
    module, name = function.rsplit(".", 1)
    assert hasattr(import_module(module), name)
    tree = ast.parse((ROOT / "tests" / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


SYMBOLS = re.findall(r"^\| ([^|]+?) \| `(qubayes[\w.]+)` \| (?!`)", _PAPER, re.M)


def test_the_symbols_were_found():
    assert len(SYMBOLS) > 30


@pytest.mark.parametrize(("symbol", "name"), SYMBOLS, ids=[symbol for symbol, _ in SYMBOLS])
def test_the_name_of_a_symbol_exists(symbol, name):
    assert resolve_name(name) is not None


PAGES = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/notebook/*.md")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text())
    assert all((page.parent / link).exists() for link in links)
    assert page.read_text().startswith("# ")


def test_the_site_has_every_page():
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")}
    assert (
        {"results/README.md", *(page for page in pages if not page.startswith("results/"))}
        <= listed
        <= pages
    )


def test_the_python_reference_names_what_exists():
    names = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/reference.md").read_text(), re.M)
    assert len(names) > 10
    for name in names:
        module, attribute = name.rsplit(".", 1)
        assert hasattr(import_module(module), attribute), name


SOURCES = sorted(
    path for folder in ("src", "tests", "benchmarks") for path in ROOT.glob(f"{folder}/**/*.py")
)


@pytest.mark.parametrize(
    "path", [*PAGES, *SOURCES], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_what_the_paper_states_is_named_by_label_and_said_to_be_the_papers(path):
    """Its definitions and lemmas have labels; in parentheses its parts are said to be the paper's."""
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"Definition [\d]|Lemma [A-D]\.\d|[Pp]aper's Theorem [\d]", text)
    assert path.name == "paper.md" or not re.findall(
        r"\((?:Algorithm|Appendix|Section) [\dA-D][^)]*", text
    )


@pytest.mark.parametrize("program", re.findall(r"`(benchmarks/\w+\.py)`", _PAPER))
def test_benchmarks_exist(program):
    assert (ROOT / program).exists()


def test_the_list_of_modules_is_up_to_date():
    """If this fails: python scripts/module_list.py."""
    subprocess.run([sys.executable, ROOT / "scripts/module_list.py", "--check"], check=True)


def defined_names() -> set[str]:
    """Return the names in the sources and tests: modules, functions, classes, fields, imports, options."""
    found = set()
    for path in (*ROOT.glob("src/qubayes/**/*.py"), *ROOT.glob("tests/**/*.py")):
        found |= {path.stem, path.parent.name}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.alias):
                found |= set(node.name.split("."))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)  # names of solvers, scores, options
    return found


def missing(page: str) -> list[str]:
    """Return the paths and names in backticks that do not exist."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    names = defined_names()
    wrong = []
    for word in re.findall(r"`([^`\n]+)`", text):
        if re.fullmatch(r"[\w.-]*/[\w./-]*|[\w-]+\.(py|md|toml|yml)", word):
            folders = (ROOT, ROOT / "src/qubayes", ROOT / "docs")
            if not any((folder / word).exists() for folder in folders):
                wrong.append(word)
        elif re.fullmatch(r"[A-Za-z_][\w.]*", word) and not names.issuperset(word.split(".")):
            wrong.append(word)
    return wrong


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_paths_and_names_of_the_code_exist(page):
    assert missing(page) == []
