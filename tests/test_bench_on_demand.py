"""The benchmark of order bits on demand: its table and the sentence about it."""

import json
from pathlib import Path

from benchmarks.on_demand import main, read_rows, sentence_of, table_of, with_rows
from benchmarks.paper.printed import INSTANCES

ROOT = Path(__file__).parents[1]
PAGES = ("docs/results/README.md", "docs/machines.md", "docs/notebook/benchmarks.md")


def row(instance: str, scores: list[tuple[float | None, float | None]], found: int = 0) -> dict:
    """A row with the raw and the repaired score of each formulation; a gain of 100 is known."""
    status = {"proved": False, "walks": 30 + found, "moves": 400, "found": found}
    made = {}
    for number, (kind, (raw, repaired)) in enumerate(
        zip(("paper", "default", "adjacent"), scores, strict=True)
    ):
        facts = {"bits": {"total": 100 - 10 * number}, "couplers": 1000 - 100 * number}
        facts |= {"order_status": status, "cpu_seconds": 1.6, "spare": 3}
        made[kind] = facts | {"raw": raw, "repaired": repaired}
    base = {"instance": instance, "flips": 2_000_000, "known": -100.0, "empty": -200.0}
    return base | {"formulations": made}


def test_a_gap_is_of_the_states_that_annealing_reached():
    made = row("asia:2", [(-110.0, -110.0), (None, -101.5), (None, None)], found=2)
    (cells,) = table_of([made]).rows
    assert cells[2:6] == ("100 / 90 / 80", "88.9%", "1,000 / 900 / 800", "88.9%")
    assert cells[6:8] == ("10.000 / none / none", "10.000 / 1.500 / none")
    assert cells[8:] == ("32 of 400", "2", "3", "2")


def test_the_best_of_all_is_what_gaps_are_measured_from():
    (cells,) = table_of([row("asia:2", [(-110.0, -110.0), (None, -100.0), (-90.0, -90.0)])]).rows
    assert cells[7] == "18.182 / 9.091 / 0.000"


def test_the_sentence_counts_the_rows():
    rows = [
        row("asia:2", [(-110.0, -110.0), (None, -105.0), (-104.0, -104.0)], found=2),
        row("asia:3", [(-110.0, -110.0), (-101.0, -101.0), (None, -103.0)]),
        row("asia:4", [(-110.0, -110.0), (-101.0, -101.0), (None, -101.0)]),
        row("asia:5", [(-110.0, -110.0), (-101.0, -101.0), (None, None)]),
    ]
    said = sentence_of(rows)
    assert "on 4 of 4 instances (89 to 89 % of them, and 89 to 89 % of the couplers)" in said
    assert "On 1 its search met states below" in said and "30 to 32 walks after" in said
    assert "After 2 million flips" in said
    assert "better than the default's on 1 instances, worse on 2 and equal on 1" in said
    assert said.endswith("it has no feasible state on 3, the default on 1.")


def test_rows_that_were_measured_are_put_on_pages(tmp_path, monkeypatch, capsys):
    rows = [row("asia:2", [(-110.0, -110.0), (None, -105.0), (-104.0, -104.0)])]
    (tmp_path / "x.jsonl").write_text(json.dumps(rows[0]) + "\n")
    page = tmp_path / "x.md"
    page.write_text(
        "a\n<!-- on-demand --><!-- /on-demand --> <!-- said-on-demand --><!-- /said-on-demand -->"
    )
    words = ["", "--json", tmp_path / "x.jsonl", "--pages", page, "--instances", "asia:2,asia:3"]
    monkeypatch.setattr("sys.argv", [str(word) for word in words])
    main()
    assert "| asia:2 |" in page.read_text() and sentence_of(rows) in page.read_text()
    assert "| asia:2 |" in capsys.readouterr().out


def test_the_pages_of_the_documentation_are_made_from_their_rows():
    rows = read_rows(ROOT / "docs" / "results" / "on-demand.jsonl")
    assert [row["instance"] for row in rows] == [str(instance) for instance in INSTANCES]
    for name in PAGES:
        page = (ROOT / name).read_text(encoding="utf-8")
        assert sentence_of(rows) in page and with_rows(page, rows) == page
