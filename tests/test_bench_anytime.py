"""The table of searches over time follows from the kept runs."""

from pathlib import Path

from benchmarks import gaussian
from benchmarks.anytime import OURS, Curve, kept, passed, table, with_table

ROOT = Path(__file__).parents[1]


def test_the_table_of_the_page_is_made_from_the_kept_runs():
    curves = kept(ROOT / "docs" / "results" / "anytime.jsonl")
    page = (ROOT / "docs" / "growing.md").read_text()
    assert curves
    assert with_table(page, list(table(curves))) == page


def test_a_line_says_who_was_ahead_at_whose_end():
    curves = [
        Curve("net", 0, OURS, [(0.1, -90.0), (0.5, -50.0), (2.0, -20.0)]),
        Curve("net", 0, "one", [(0.4, -60.0)]),
        Curve("net", 0, "two", [(1.0, -30.0)]),
        Curve("net", 0, "late", []),
        Curve("net", 1, "one", [(0.4, -1.0)]),
    ]
    line = list(table(curves))[-1]
    assert "two -30.0 (1.00)" in line
    assert "| 2.00 | 0 of 2 |" in line
    assert passed(curves[0].points, -50.0) == 0.5


def test_the_table_of_numbers_is_made_from_the_kept_runs():
    curves = kept(ROOT / "docs" / "results" / "gaussian.jsonl")
    page = (ROOT / "docs" / "growing.md").read_text()
    assert curves
    assert with_table(page, list(gaussian.table(curves)), gaussian.TABLE) == page


def test_a_graph_of_a_class_becomes_a_network_of_it():
    # 0 - 1 - 2, 3 -> 2 <- 1 would be no class: here 3 -> 4 <- 2
    found = gaussian.extension(5, [[3, 4], [2, 4]], [[0, 1], [1, 2]])
    edges = {(parent, child) for child, its in enumerate(found) for parent in its}
    assert {frozenset(edge) for edge in edges} == {
        *map(frozenset, [(0, 1), (1, 2), (3, 4), (2, 4)]),
    }
    assert found[4] == [2, 3] and max(map(len, found[:4])) == 1


def test_a_cell_tells_both_differences():
    ours = Curve("net", 0, OURS, [(0.1, -90.0), (0.5, -50.0)])
    theirs = Curve("net", 0, "FLOP 0", [(0.2, -60.0)])
    lines = list(gaussian.table([ours, theirs]))
    assert "| -10.0 (0.20: -30.0) |" in lines[2]
    assert "1 of 1 (0 of 1)" in lines[-1]
