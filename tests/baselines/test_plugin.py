"""The package of the paper's comparison methods: its entry points, and kernels that are compiled once."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import qubayes
import qubayes_baselines
from qubayes.search import BASELINES, WHERE_BASELINES_ARE, registered, solver_named

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks/paper/baselines"
PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
PREPARED = """
from qubayes_baselines.swaps import OrderAnnealing, swap_places
OrderAnnealing().prepare()
print(sum(swap_places.stats.cache_hits.values()), sum(swap_places.stats.cache_misses.values()))
"""


def test_each_baseline_is_registered():
    assert set(BASELINES) == set(PROJECT["entry-points"]["qubayes.solvers"])
    installed = {point.name: point.value for point in entry_points(group="qubayes.solvers")}
    for name, target in PROJECT["entry-points"]["qubayes.solvers"].items():
        assert registered()[name] == installed[name] == target
        assert solver_named(name).name == name


def test_it_has_the_version_of_the_package_that_it_belongs_to():
    assert PROJECT["version"] == qubayes.__version__


def test_the_documented_command_installs_this_folder():
    (folder,) = re.findall(r"pip install \. (\S+)", (FOLDER / "README.md").read_text())
    assert (ROOT / folder).samefile(FOLDER) and WHERE_BASELINES_ARE.endswith(
        f" pip install {folder}"
    )


@pytest.mark.slow
def test_a_kernel_is_kept_until_a_function_that_it_calls_changes(tmp_path):
    for module in (qubayes, qubayes_baselines):
        package = Path(module.__file__ or "").parent
        shutil.copytree(
            package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__")
        )
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }

    def prepared() -> str:
        command = [sys.executable, "-B", "-c", PREPARED]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert prepared() == "0 1\n"
    assert prepared() == "1 0\n"
    # `holds`, which kernels of both packages call
    called = tmp_path / "qubayes/search/orders/walks.py"
    assert "held |= " in called.read_text()
    called.write_text(called.read_text().replace("held |= ", "held = held | "))
    assert prepared() == "0 1\n"
