"""The benchmark of proved order bits: its table and the page that shows it."""

from pathlib import Path

import numpy as np

from benchmarks import settling
from benchmarks.on_demand import read_rows
from benchmarks.proved_order import OTHERS, is_verified, scores_of, table_of
from formulation_cases import candidates_of, random_scores
from qubayes.qubo import formulate

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def row(instance, certified):
    bits = {"total": 990}
    found = {"instance": instance, "certified": certified, "checked": certified, "bits": bits}
    return {**found, "couplers": 14_321, "cpu_seconds": 5.32}


def test_a_row_stands_beside_the_other_formulations():
    table = table_of([row("alarm:4", True), row("chess:2", False)], read_rows(OTHERS))
    proved, open_one = table.rows
    assert proved[0] == "alarm:4" and proved[2].endswith(" / 990") and proved[4:] == ("yes", "5.3")
    assert open_one[2].endswith(" / no proof") and open_one[4] == ""


def test_a_certificate_is_checked():
    candidates = candidates_of(random_scores(np.random.default_rng(2), 8, 2, 0.3))
    made = formulate(candidates, order="proved")
    assert is_verified(made)
    scores = scores_of(candidates)
    assert list(scores) == list(candidates.names)
    assert sum(map(len, scores.values())) == len(candidates.scores)


def test_the_page_has_the_table_of_the_results():
    table = table_of(read_rows(RESULTS / "proved-order.jsonl"), read_rows(OTHERS))
    page = (RESULTS / "README.md").read_text(encoding="utf-8")
    assert table.body() in page


def test_the_page_of_settling_moves_has_the_table_of_its_results():
    table = settling.table_of(read_rows(RESULTS / "settling.jsonl"))
    assert table.body() in (RESULTS.parent / "samplers.md").read_text(encoding="utf-8")


def test_values_of_the_problems_are_told_from_broken_constraints():
    problem = settling.PROBLEMS["TSP, 10 cities"]()
    tour = np.eye(10, dtype=int)
    length = problem.value(tour.ravel())
    energy = problem.model.energy(dict(enumerate(tour.ravel().tolist())))
    assert length is not None and abs(energy - length) < 1e-9
    assert problem.reference < length
    tour[0, 0] = 0
    assert problem.value(tour.ravel()) is None
