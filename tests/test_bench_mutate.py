"""The mutants of `benchmarks/mutate.py`, and which tests it would run against them."""

import pytest

from benchmarks import mutate

PATH = "src/qubayes/candidates/prune.py"


@pytest.fixture(scope="module")
def mutants():
    """All mutants of one file."""
    return mutate.mutants_of(mutate.ROOT / PATH)


def test_each_mutant_is_another_program(mutants):
    text = (mutate.ROOT / PATH).read_text()
    lines = text.splitlines()
    assert len(mutants) > 50
    for mutant in mutants:
        changed = text[: mutant.start] + mutant.text + text[mutant.end :]
        compile(changed, PATH, "exec")
        assert changed != text
        assert lines[mutant.line - 1].strip() == mutant.source
        others = [
            k
            for k, (old, new) in enumerate(zip(lines, changed.splitlines(), strict=True), 1)
            if old != new
        ]
        assert others == [mutant.line]


def test_a_draw_keeps_its_mutants_when_it_grows():
    few, many = (mutate.chosen(["candidates", "qubo/subsets"], "", count, 0) for count in (5, 20))
    assert len(few) == 10
    assert {mutant.key for mutant in few} < {mutant.key for mutant in many}
    assert {mutate.room_of(mutant.path) for mutant in few} == {"candidates", "qubo/subsets"}


def test_who_holds_a_mutant(mutants):
    def held(text):
        return {
            owner.key
            for owner in mutate.holders(next(mutant for mutant in mutants if text in mutant.source))
        }

    assert held("lost = np.setdiff1d(families.vertex_start") == {f"{PATH}::_only_allowed"}
    kernel = held("return size < 24 and")  # of a kernel, up to the Python function that calls it
    assert {f"{PATH}::_find_survivors", f"{PATH}::_mark"} <= kernel
    assert f"{PATH}::prune_families" not in kernel
    # a constant
    assert f"{PATH}::_find_survivors" in held("_FINE, _OUTSIDE, _REPEATED, _COLLISION")


def test_the_narrow_and_quick_tests_come_first(mutants):
    mutant = next(
        mutant for mutant in mutants if "lost = np.setdiff1d(families.vertex_start" in mutant.source
    )
    key = f"{PATH}::_only_allowed"
    reached = {
        "tests/test_learning.py::wide": (1.0, [key] + ["other"] * 100),
        "tests/test_learning.py::quick": (0.1, [key]),
        "tests/test_learning.py::elsewhere": (0.1, ["other"]),
        "tests/test_learning.py::long": (9.0, [key]),
    }
    users = {key: [test for test, (_, called) in reached.items() if key in called]}
    assert list(mutate.tests_for(mutant, reached, users, 2.0)) == [
        "tests/test_learning.py::quick",
        "tests/test_learning.py::wide",
    ]
