"""What the package promises as a whole."""

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

import qubayes
from candidate_cases import run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
HEAVY = (
    "numba",
    "polars",
    "dimod",
    "scipy",
    "highspy",
    "networkx",
    "pandas",
    "narwhals",
    "distributed",
)


@pytest.mark.parametrize("name", qubayes.__all__)
def test_every_public_name_is_there(name):
    assert getattr(qubayes, name) is not None


def test_the_page_of_names_has_the_names_of_the_package():
    page = re.findall(r"^::: ([\w.]+)\.(\w+)$", (ROOT / "docs/reference.md").read_text(), re.M)
    assert sorted([*(name for _, name in page), "__version__"]) == dir(qubayes)
    for home, name in page:
        found = getattr(qubayes, name)
        assert (
            found is getattr(import_module(home), name)
            or found is sys.modules["qubayes.quadratize"]
        )


@pytest.mark.parametrize(
    "first", ["pass", "import qubayes.quadratize", "from qubayes.quadratize import Polynomial"]
)
def test_quadratize_is_a_function_and_a_module(first):
    code = (
        f"{first}; import qubayes as qb; small = {{('a', 'b', 'c'): 1.0, ('a', 'b', 'd'): 1.0}};"
        "print(type(qb.quadratize(small)).__name__);"
        "import qubayes.quadratize as module; print(module.Polynomial.__name__, module.quadratize is not module)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Quadratization", "Polynomial", "True"]


def test_the_package_is_listed_without_scikit_learn():
    code = (
        "import inspect, sys; sys.modules['sklearn'] = None\n"
        "import qubayes; from qubayes import *; print(len(inspect.getmembers(qubayes)))\n"
        "try: qubayes.BayesianNetworkEstimator\n"
        "except qubayes.QubayesError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, message = done.stdout.splitlines()
    assert int(count) == len(qubayes.__all__) and "pip install '.[sklearn]'" in message


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'learn_everything'"):
        _ = qubayes.learn_everything


@pytest.mark.parametrize("code", ["import qubayes", "import qubayes.cli"])
def test_imports_are_light(code):
    report = f"{code}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", report], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


# packages that `learn` of a table in a text file does without
NOT_FOR_LEARN = ("polars", "dimod", "networkx", "pandas", "narwhals", "distributed", "sklearn")
LEARN = f"""
import sys
from qubayes.cli import app
from qubayes.foundation.jit import compilations
told = []
with compilations(told.append):
    app(["learn", "examples/alarm.csv"], standalone_mode=False)
parts = ("qubayes.qubo", "qubayes.machines", "qubayes.quadratize")
print(told, [name for name in {NOT_FOR_LEARN!r} + parts if name in sys.modules])
"""


def test_a_second_learn_compiles_nothing_and_imports_what_it_needs():
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", LEARN], cwd=ROOT, capture_output=True, text=True, check=True
        )
    assert done.stdout.splitlines()[0].startswith("Proved optimal among all sets of at most 3")
    assert done.stdout.splitlines()[-1] == "[] []"


def test_a_command_ends_without_a_search_for_garbage():
    code = (
        "import atexit, gc, sys; atexit.register(lambda: print(len(gc.get_objects()), gc.get_freeze_count()));"
        "from qubayes.cli import main; sys.argv = ['qubayes', '--version']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    looked_through, frozen = map(int, done.stdout.split()[-2:])
    assert looked_through < 100 < 10_000 < frozen


WITHOUT_UNIX = """
import os, signal, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None  # import raises ImportError
for name in ("O_NOFOLLOW", "O_NONBLOCK", "sched_getaffinity", "fchmod", "killpg", "getuid", "fork"):
    vars(os).pop(name, None)
for name in ("SIGKILL", "SIGHUP"):
    vars(signal).pop(name, None)
from importlib import import_module
from pkgutil import walk_packages
import qubayes
for module in walk_packages(qubayes.__path__, "qubayes."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
from qubayes.cli import main
main()
"""


def test_nothing_needs_what_windows_lacks(tmp_path):
    """Every module is imported, and `learn` writes all its files, without the modules and names of Unix."""
    files = [tmp_path / name for name in ("x.bif", "x.html", "x.bqm", "run")]
    given = [
        word
        for pair in zip(("-o", "--report", "--qubo", "--run-dir"), files, strict=True)
        for word in pair
    ]
    command = [
        sys.executable,
        "-c",
        WITHOUT_UNIX,
        "learn",
        ROOT / "examples/wine.csv",
        "--bins",
        "3",
        "-m",
        "1",
        *given,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Proved optimal" in done.stdout and all(file.exists() for file in files)


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "qubayes", "--version"], capture_output=True, text=True, check=True
    )
    assert qubayes.__version__ in done.stdout


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """An empty folder with the examples; the current one during a test."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_readmes_python_prints_what_it_shows(clone, capsys):
    [(code, shown)] = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)*)", README, re.S)
    assert code.count("\n") <= 12
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == dedent(shown)
    assert (clone / "alarm.svg").exists()


def test_the_readmes_commands_print_what_it_shows(clone, capsys):
    learn, query = re.findall(r"^    qubayes (.*)$", README, re.M)
    shown = dedent(README.split(f"{learn}\n\n")[1].split("\n\nThe first run")[0])
    code, printed, _ = run(capsys, *learn.split())
    assert code == 0
    told = [line for line in printed.splitlines() if not line.startswith("  time ")]
    assert told == [line for line in shown.splitlines() if not line.startswith("  time ")]
    bits = re.findall(r"[\d,]+ instead of [\d,]+ in the paper's formulation", README)
    assert bits == ["922 instead of 1,286 in the paper's formulation"]
    code, printed, _ = run(capsys, *query.split())
    assert code == 0 and "LVFAILURE   false" in printed


def test_the_readme_has_two_commands():
    commands = re.findall(r"```sh\n(.*?)```", README, re.S)
    assert len(commands) == 2 and all(command.count("\n") == 1 for command in commands)
    assert (
        commands[1] == "sh scripts/test.sh\n"
        and "scripts/test.sh" in (ROOT / ".ci/run").read_text()
    )


def test_every_extra_that_is_named_can_be_installed():
    """Packages of extras are installed in a clone: `pip install '.[embed]'`."""
    sources = [
        path for folder in ("src", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.*")
    ]
    texts = [
        path.read_text() for path in [*sources, ROOT / "README.md"] if path.suffix in (".py", ".md")
    ]
    named = re.findall(r"pip install [^\n]*?(\S*)\[([\w,]+)\]", "\n".join(texts))
    named += [
        ("'.", extra) for extra in re.findall(r"how_to_install\([\"'](\w+)", "\n".join(texts))
    ]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert len(named) > 10 and {place for place, _ in named} == {"'."}
    assert {extra for _, names in named for extra in names.split(",")} <= extras.keys()


def test_versions_agree():
    assert f'version = "{qubayes.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {qubayes.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_the_conda_recipe_asks_for_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "conda/recipe.yaml").read_text()
    wanted = re.findall(r"^    - (\S+) (>=\S+)$", recipe.split("  run:")[1], re.M)
    assert {f"{name}{least}" for name, least in wanted} - {"python>=3.11"} == set(
        project["dependencies"]
    )
    assert f'version: "{project["version"]}"' in recipe
