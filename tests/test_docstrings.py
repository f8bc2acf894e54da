"""The examples in docstrings say what happens."""

import doctest
import importlib
import pkgutil

import pytest

import qubayes


def _with_examples() -> list[str]:
    found = []
    for module in pkgutil.walk_packages(qubayes.__path__, "qubayes."):
        spec = module.module_finder.find_spec(module.name, None)
        source = spec.loader.get_source(module.name) if spec and spec.loader else ""
        if ">>>" in (source or ""):
            found.append(module.name)
    return found


def test_every_stage_has_an_example():
    stages = (
        "data.read",
        "candidates.identify",
        "qubo.subsets.cover",
        "qubo.formulation",
        "search.solve",
        "learning.pipeline",
    )
    assert {f"qubayes.{stage}" for stage in stages} <= set(_with_examples())


@pytest.mark.parametrize("name", _with_examples())
def test_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted and not result.failed
