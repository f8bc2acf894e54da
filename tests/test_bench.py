"""The benchmark: downloads, raw results, tables, plots, and the whole of it at a small size."""

import gzip
import hashlib
import json
import re
import shutil
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.all_zero import add_scores
from benchmarks.paper.__main__ import app
from benchmarks.paper.bench import (
    QUICK,
    SOLVERS,
    TABLES,
    Plan,
    bench,
    parsed_instances,
    parsed_tables,
    tables_of,
    with_tables,
    write_tables,
)
from benchmarks.paper.growth import AXES, growth_tables, slope
from benchmarks.paper.printed import (
    BITS,
    CANDIDATES,
    INSTANCES,
    STEPS,
    STEPS_IP_ONLY,
    WINS,
    Instance,
)
from benchmarks.paper.programs import parsed_peers, solve_by_program
from benchmarks.paper.sentences import SAYING, sentences_of, with_sentences
from benchmarks.paper.sources import SOURCES, Source, fetch
from benchmarks.paper.store import Store
from benchmarks.paper.table import Table, spread
from benchmarks.paper.tables import bits_table, scores_table, wins_table
from benchmarks.paper.trial import Place, Trial, measure, prepared
from candidate_cases import assert_one_line
from qubayes import QubayesError, ServiceError, SettingError
from qubayes.candidates import example
from qubayes.cli import guarded
from qubayes.foundation.files import lock_folder
from qubayes.network import Network, write_network
from qubayes.qubo import decode, formulate
from qubayes.search import Limits, solve

CONTENT = b"1 2 3\n" * 50_000
PACKED = gzip.compress(CONTENT, mtime=0)
NOISE = gzip.compress(np.random.default_rng(0).bytes(300_000), mtime=0)  # too large for one piece


@pytest.fixture
def server():
    """A real HTTP server on this machine. `asked` holds (path, Range) of each request."""
    files = {"/good.gz": PACKED, "/noise.gz": NOISE}
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        cut = 0  # bytes after which the connection breaks; 0: never
        ranges = True

        def do_GET(self):
            wanted = self.headers.get("Range")
            asked.append((self.path, wanted))
            if self.path not in files:
                self.send_error(404)
                return
            body = files[self.path]
            first = (
                int(wanted.removeprefix("bytes=").removesuffix("-"))
                if wanted and Handler.ranges
                else 0
            )
            if first >= len(body):
                self.send_error(416)
                return
            self.send_response(206 if first else 200)
            self.send_header("Content-Length", str(len(body) - first))
            self.end_headers()
            last = first + Handler.cut if Handler.cut else len(body)
            self.wfile.write(body[first:last])

        def log_message(self, *arguments):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_address[1]}", Handler, asked
    http.shutdown()
    http.server_close()


def source(address: str, path: str, content: bytes) -> dict[str, Source]:
    return {"x": Source(address + path, "fimi/x.dat.gz", hashlib.sha256(content).hexdigest())}


def test_downloads_are_checked_and_kept(server, tmp_path):
    address, _, asked = server
    wanted = source(address, "/good.gz", CONTENT)
    fetch(["x"], tmp_path, sources=wanted)
    assert gzip.decompress((tmp_path / "fimi/x.dat.gz").read_bytes()) == CONTENT
    fetch(["x"], tmp_path, sources=wanted)
    assert len(asked) == 1
    assert [path.name for path in (tmp_path / "fimi").iterdir()] == ["x.dat.gz"]


def test_a_damaged_file_is_fetched_again(server, tmp_path):
    address, _, asked = server
    wanted = source(address, "/good.gz", CONTENT)
    fetch(["x"], tmp_path, sources=wanted)
    (tmp_path / "fimi/x.dat.gz").write_bytes(PACKED[:100])
    fetch(["x"], tmp_path, sources=wanted)
    assert len(asked) == 2 and (tmp_path / "fimi/x.dat.gz").read_bytes() == PACKED


def test_a_wrong_checksum_keeps_nothing(server, tmp_path):
    with pytest.raises(ServiceError, match="checksum"):
        fetch(["x"], tmp_path, sources=source(server[0], "/good.gz", b"other"))
    assert not list((tmp_path / "fimi").iterdir())


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_goes_on(server, tmp_path, ranges):
    address, handler, asked = server
    content = gzip.decompress(NOISE)
    wanted = source(address, "/noise.gz", content)
    handler.cut, handler.ranges = 100_000, ranges
    with pytest.raises(ServiceError, match="run again"):
        fetch(["x"], tmp_path, sources=wanted)
    assert (tmp_path / "fimi/x.dat.gz.part").stat().st_size == 100_000
    handler.cut = 0
    fetch(["x"], tmp_path, sources=wanted)
    assert asked[-1][1] == "bytes=100000-"
    assert (tmp_path / "fimi/x.dat.gz").read_bytes() == NOISE


def test_faults_of_a_server_are_told_in_one_line(server, tmp_path):
    with pytest.raises(ServiceError, match="answers 404"):
        fetch(["x"], tmp_path, sources=source(server[0], "/absent", CONTENT))
    with pytest.raises(ServiceError, match="cannot fetch"):
        fetch(["x"], tmp_path, sources=source("http://127.0.0.1:9", "/x", CONTENT))
    with pytest.raises(SettingError, match="no source of 'y'"):
        fetch(["y"], tmp_path)


def test_every_instance_has_a_source():
    assert {instance.name for instance in INSTANCES} <= set(SOURCES)
    assert all(len(bytes.fromhex(source.sha256)) == 32 for source in SOURCES.values())


# The paper's figures


def test_printed_tables_agree_with_each_other():
    assert len(INSTANCES) == 16
    for instance in INSTANCES:
        assert len(CANDIDATES[instance]) == 2 and len(BITS[instance]) == 6
        # Times of the steps add up to those of Table 1, up to rounding and the paper's own spread.
        for steps, total in (
            (STEPS[instance], BITS[instance][5]),
            (STEPS_IP_ONLY[instance], BITS[instance][3]),
        ):
            assert sum(step.mean for step in steps) == pytest.approx(total.mean, abs=2)
        assert sum(WINS[instance].values()) == 5
        assert BITS[instance][4].mean <= BITS[instance][2].mean <= BITS[instance][0].mean


# Raw results


def record(
    approach: str,
    score: float,
    *,
    seed: int = 0,
    reached: float = 1.0,
    bound: float = 0.0,
    **statistics: Any,
) -> dict[str, Any]:
    trial = {
        "kind": "solve",
        "instance": "alarm",
        "max_parents": 4,
        "seed": seed,
        "approach": approach,
    }
    result = {
        "score": score,
        "empty_score": -100.0,
        "bound": bound,
        "trace": [[0.0, -100.0], [reached, score]],
    }
    result |= {"ahead": 0.0, "seconds": 2.0, "limit": 60.0, "statistics": statistics}
    return {"trial": json.loads(Trial(**trial).key), "result": result}


def test_records_survive_and_a_cut_line_is_passed_over(tmp_path):
    path = tmp_path / "trials.jsonl"
    store = Store(path)
    store.add(record("anneal", -10.0))
    with path.open("ab") as file:
        file.write(b'{"trial": {"kind": "so')  # a run was killed here
    again = Store(path)
    assert len(again.results(kind="solve")) == 1
    again.add(record("sa-flips", -20.0))
    assert {r["trial"]["approach"] for r in Store(path).results()} == {"anneal", "sa-flips"}


def test_the_last_record_of_a_trial_counts_and_errors_are_tried_again(tmp_path):
    store = Store(tmp_path / "x.jsonl")
    failed = {**record("sa-flips", 0.0), "error": "no memory"}
    del failed["result"]
    store.add(failed)
    trial = Trial(**failed["trial"])
    assert trial not in store and store.errors()
    store.add(record("sa-flips", -5.0))
    assert trial in store and not store.errors()


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "x.jsonl").write_text("name,score\n")
    with pytest.raises(QubayesError, match="no file of results"):
        Store(tmp_path / "x.jsonl")


def test_a_trial_of_unknown_kind():
    with pytest.raises(SettingError, match="choose one of"):
        Trial("magic", "alarm", 2, 0)


# Tables


def test_wins_count_score_then_time(tmp_path):
    store = Store(tmp_path / "x.jsonl")
    mended = {"raw_score": None, "before_annealing": None}
    for result in (
        *(record("anneal", -10.0), record("exact", -10.0, reached=0.5)),  # exact was first
        record("sa-flips", -20.0, repaired_score=-20.0, **mended),
        *(record("anneal", -9.0, seed=1), record("exact", -10.0, seed=1)),
        record("sa-flips", -11.0, seed=1, repaired_score=-11.0, **mended),
        *(record("anneal", -9.0, seed=2), record("exact", -8.0, seed=2)),  # sa was not run
    ):
        store.add(result)
    table = wins_table(store, [Instance("alarm", 4)], ("anneal", "exact", "sa-flips"), 60.0)
    assert table.rows[0] == ("alarm", "4", "2", "1 / –", "1 / 2", "0 / 0", "GOB 5")
    assert (
        "repaired state: `sa-flips` 2 of 2. Trials" in table.note
        and "known before it: `sa-flips` 0 of 2." in table.note
    )
    scores = scores_table(store, [Instance("alarm", 4)], ("anneal", "exact", "sa-flips"), 60.0)
    lacks = (1 / 92 / 3, 1 / 91 / 3, (10 / 90 + 2 / 91) / 2)
    assert scores.rows[0][2:4] == tuple(f"{100 * lack:.3f} %" for lack in lacks[:2])
    assert scores.rows[0][4] == f"{100 * lacks[2]:.3f} % (2 of 2)"
    assert scores.head[4:7] == (
        "sa-flips, repaired",
        "sa-flips, raw",
        "sa-flips, before annealing",
    )
    assert scores.rows[0][5:7] == ("– (0 of 2)", "– (0 of 2)")
    store.add(
        record(
            "sa-flips", -11.0, seed=1, raw_score=-12.0, repaired_score=-11.0, before_annealing=-13.0
        )
    )
    scores = scores_table(store, [Instance("alarm", 4)], ("anneal", "exact", "sa-flips"), 60.0)
    assert scores.rows[0][5:7] == (
        f"{100 * 3 / 91:.3f} % (1 of 2)",
        f"{100 * 4 / 91:.3f} % (0 of 2)",
    )
    assert scores.rows[0][-1] == "2 of 3"


@pytest.mark.parametrize("recorded", [True, False])
def test_a_network_known_before_annealing_is_no_score_of_the_annealer(tmp_path, recorded):
    """Neither does it win, nor is it the repaired or the raw score; in older trials it is a field of its own."""
    store = Store(tmp_path / "x.jsonl")
    own = {"raw_score": -30.0, "repaired_score": -20.0}
    found = record("sa-flips", -5.0, **own, **({"before_annealing": -5.0} if recorded else {}))
    if not recorded:
        found["before_annealing"] = {"score": -5.0}
    store.add(found)
    store.add(record("exact", -10.0))
    wins = wins_table(store, [Instance("alarm", 4)], ("exact", "sa-flips"), 60.0)
    assert wins.rows[0][3:5] == ("1 / 1", "0 / 0")
    assert (
        "repaired state: `sa-flips` 0 of 1. Trials" in wins.note
        and "known before it: `sa-flips` 1 of 1." in wins.note
    )
    scores = scores_table(store, [Instance("alarm", 4)], ("exact", "sa-flips"), 60.0)
    assert scores.rows[0][2:6] == (
        "0.000 %",
        "11.111 % (0 of 1)",
        "22.222 % (1 of 1)",
        "-5.556 % (1 of 1)",
    )
    assert ("1 of 1 trials of annealers did not record it" in scores.note) == (not recorded)


def test_the_score_before_annealing_is_added_to_older_trials(data, tmp_path):
    """The network of the all-zero state by `decode`, or a later one before 4 % of the time; other lines stay."""
    place, path = Place(str(data), str(tmp_path / "cache")), tmp_path / "trials.jsonl"
    known = []
    for instance in ("alarm", "chess"):
        trial = Trial("solve", instance, 2, 0, "sa-flips", rows=100)
        formulation = formulate(prepared(place, trial))
        known.append(
            decode(formulation, np.zeros(formulation.qubo.bits, np.bool_), repair=True).final.score
        )
        for approach, early in (
            ("sa-flips", [known[-1]]),
            ("digital", [known[-1], known[-1] + 0.5]),
            ("order-sa", []),
        ):
            made = record(approach, known[-1] + 2.0, raw_score=known[-1] - 1.0)
            made["trial"] |= {"instance": instance, "max_parents": 2, "rows": 100}
            made["result"] |= {"empty_score": known[-1] - 9.0}
            made["result"]["trace"] = [
                [0.0, known[-1] - 9.0],
                *([0.1, score] for score in early),
                [2.4, known[-1] + 2.0],
            ]
            Store(path).add(made)
    lines = path.read_text().splitlines()
    add_scores(path, place)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    added = [record.pop("before_annealing", {}) for record in records]
    assert [json.dumps(record) for record in records] == lines
    scores = [score for all_zero in known for score in (all_zero, all_zero + 0.5, None)]
    assert [each.get("score") for each in added] == [
        score and pytest.approx(score, abs=1e-9) for score in scores
    ]
    written = path.read_bytes()
    add_scores(path, place)
    assert path.read_bytes() == written
    del records[0]["result"]["trace"][1]
    path.write_text(json.dumps(records[0]) + "\n")
    with pytest.raises(SystemExit, match="does not hold the all-zero state's"):
        add_scores(path, place)


def test_a_trial_of_the_growth_tables_is_no_further_sample(tmp_path):
    store = Store(tmp_path / "x.jsonl")
    bits = {"bits": {"total": 100}, "prepare": 1.0, "cover": 1.0, "assemble": 1.0}
    growth = Trial("bits", "alarm", 4, 0, "auto")
    assert growth in {trial for axis in AXES for trial in axis.trials}
    measured = [
        (growth, 700),
        *((replace(growth, seed=s, seconds=2.0, threads=1), 100 + s) for s in (0, 2)),
    ]
    for trial, total in measured:
        store.add({"trial": json.loads(trial.key), "result": {**bits, "bits": {"total": total}}})
    assert bits_table(store, [Instance("alarm", 4)]).rows[0][7:9] == ("101 ± 1", "3.0 ± 0.0")
    alone = Store(tmp_path / "y.jsonl")
    alone.add({"trial": json.loads(growth.key), "result": bits})
    assert bits_table(alone, [Instance("alarm", 4)]).rows[0][7] == "100"


def test_a_score_without_repair_is_not_counted_as_repaired(tmp_path):
    store = Store(tmp_path / "x.jsonl")
    for seed, raw in ((0, -11.0), (1, -12.0)):
        store.add(record("sa-flips", -11.0, seed=seed, raw_score=raw, repaired_score=-11.0))
    table = scores_table(store, [Instance("alarm", 4)], ("sa-flips",), 60.0)
    assert table.rows[0][2] == "0.000 % (1 of 2)" and table.rows[0][3].endswith("% (2 of 2)")


def test_results_of_two_time_limits_make_two_tables(tmp_path):
    store = Store(tmp_path / "x.jsonl")
    for seconds, seeds in ((20.0, (0, 1)), (60.0, (0,))):
        for seed, approach in (
            (seed, approach) for seed in seeds for approach in ("anneal", "exact")
        ):
            found = record(approach, -seconds - seed, seed=seed)
            found["trial"]["seconds"] = seconds
            store.add(found)
    plan = Plan(
        ("3",),
        (Instance("alarm", 4), Instance("chess", 2)),
        solvers=("anneal", "exact"),
        time_limit=20.0,
    )
    tables = {table.name: table for table in tables_of(store, plan)}
    assert list(tables) == ["table-3", "scores", "table-3-60s", "scores-60s"]
    assert [tables[name].rows[0][2] for name in ("table-3", "table-3-60s")] == ["2", "1"]
    assert (
        "up to 2 samples" in tables["table-3"].title
        and "one sample of each" in tables["table-3-60s"].title
    )
    assert all("Not measured: chess:2." in table.note for table in tables.values())


def test_approaches_are_chosen():
    plan = Plan(
        ("1", "D.5"), (Instance("alarm", 2),), seeds=(0,), approaches=("ilp-only", "ogorman")
    )
    assert [trial.approach for trial in plan.trials()] == ["ogorman", "ilp-only"]
    with pytest.raises(
        SettingError, match="approach 'lp' is unknown; choose among auto, ogorman, ilp, ilp-only"
    ):
        Plan(("1",), approaches=("lp",))


def test_a_page_gets_its_tables_between_comments(tmp_path):
    tables = [
        Table("x", "X", ("a", "m"), (("1", "2"),), "Note."),
        Table("absent", "Y", ("b", "m"), ()),
    ]
    page = "Before\n<!-- x -->\nold\n<!-- /x -->\nafter\n"
    wanted = (
        "Before\n<!-- x -->\n\n| a | m |\n| --- | --- |\n| 1 | 2 |\n\nNote.\n\n<!-- /x -->\nafter\n"
    )
    assert with_tables(page, tables) == wanted == with_tables(wanted, tables)


def test_the_results_of_the_documentation_are_made_from_their_trials(tmp_path):
    kept = Path(__file__).parents[1] / "docs" / "results"
    shutil.copy(kept / "README.md", tmp_path)
    made = write_tables(Store(kept / "trials.jsonl"), Plan(TABLES, time_limit=20.0), tmp_path)
    assert len(made) > 25 and all(
        path.read_text() == (kept / path.name).read_text() for path in made
    )
    page = (kept / "README.md").read_text()
    assert all(f"<!-- {path.stem} -->" in page for path in made if path.suffix == ".csv")


def test_the_sentences_of_the_pages_are_made_from_the_trials():
    """Each sentence stands on a page, and wherever it stands it is what the trials say."""
    root = Path(__file__).parents[1]
    sentences = sentences_of(
        Store(root / "docs" / "results" / "trials.jsonl"), INSTANCES, (20.0, 60.0)
    )
    pages = [root / name for name in SAYING]
    said = [set(re.findall("<!-- (said-[^ ]*) -->", page.read_text())) for page in pages]
    others = {"said-on-demand"}  # of benchmarks/on_demand.py, with a test of its own
    assert set().union(*said) - others == set(sentences) and all(said)
    for page in pages:
        assert with_sentences(page.read_text(), sentences) == page.read_text()


def test_sentences_count_what_the_trials_say(tmp_path):
    """Two samples; `digital` is above the others once, raw, and has nothing of its own once."""
    store, paper, bits = (
        Store(tmp_path / "x.jsonl"),
        Trial("bits", "alarm", 4, 0, "ilp"),
        {"bits": {"total": 9}},
    )
    for name in ("anneal", "exact", "order-sa", "hillclimb", "asobs", "sa-flips"):
        store.add(record(name, -20.0, raw_score=-20.0, before_annealing=-30.0))
        store.add(record(name, -10.0, seed=1, repaired_score=-10.0, before_annealing=-30.0))
    store.add(
        record("digital", -12.0, raw_score=-12.0, repaired_score=-14.0, before_annealing=-30.0)
    )
    store.add(record("digital", -8.0, seed=1, repaired_score=-28.0, before_annealing=-8.0))
    for approach, seed, range_of in (
        ("ilp", 0, 300.0),
        ("auto", 0, 100.0),
        ("ilp", 1, 450.0),
        ("auto", 1, 30.0),
    ):
        steps = {
            "prepare": 1.0,
            "cover": 1.0,
            "assemble": 1.0,
            "n": 7,
            "proved": 7 - 2 * seed,
            "range": range_of,
        }
        trial = replace(paper, approach=approach, seed=seed)
        store.add({"trial": json.loads(trial.key), "result": {**bits, **steps}})
    said = sentences_of(store, [Instance("alarm", 4)], (60.0,))
    assert (
        "first or level on 1 of 2 samples" in said["said-solving"]
        and "on 0 of them" in said["said-solving"]
    )
    assert (
        "another solver scores more than `anneal` on 1 of alarm m = 4 (by 9.091 %"
        in said["said-behind"]
    )
    assert (
        "`digital`: 0 of 2 scores are of a repaired state and 1 of a feasible one; in 1 "
        in said["said-annealing"]
    )
    assert (
        "in 1, 1, 1 and 1 of 2 trials, its best state after repair in 1, 1, 1 and 1."
        in said["said-comparison"]
    )
    assert "`digital` 10.0 % after repair (alarm m = 4, 2) and 0.0 % raw" in said["said-furthest"]
    assert "on 2 of 2 samples: 9 times in the median" in said["said-ranges"]
    assert "15 times on all but 1 (3.0 on alarm m = 4, seed 0)" in said["said-ranges"]
    assert "5 to 7 of 7 (`alarm` m = 4)" in said["said-proved"]
    page = "a <!-- said-behind -->old\ntext<!-- /said-behind --> b"
    assert (
        with_sentences(page, said)
        == f"a <!-- said-behind -->{said['said-behind']}<!-- /said-behind --> b"
    )


def test_records_from_before_the_rules_are_measured_again(tmp_path):
    store, old = Store(tmp_path / "x.jsonl"), record("sa-flips", -1.0)
    del old["result"]["limit"]
    store.add(old)
    assert Trial(**old["trial"]) not in Store(tmp_path / "x.jsonl")


def test_tables_in_three_formats():
    table = Table("x", "A & B", ("name", "m", "value"), (("a_b", "2", "1,000 ± 5"),), "50 %")
    assert "| a_b | 2 | 1,000 ± 5 |" in table.markdown()
    assert table.csv() == 'name,m,value\na_b,2,"1,000 ± 5"\n'
    assert r"a\_b & 2 & 1,000 $\pm$ 5" in table.latex() and r"50 \%" in table.latex()


def test_spread():
    assert (spread([]), spread([3.0]), spread([1.0, 3.0], 1)) == ("–", "3", "2.0 ± 1.4")


def test_the_slope_of_a_power():
    assert slope([(x, 5.0 * x**2.5) for x in (1, 2, 4, 8)]) == pytest.approx(2.5)


def test_growth_tables_tell_exponents(tmp_path):
    store = Store(tmp_path / "x.jsonl")
    axis = next(axis for axis in AXES if axis.name == "rows")
    for trial in axis.trials:
        result = (
            {"seconds": trial.rows / 100, "peak_mb": 100, "total": 7}
            if trial.kind == "candidates"
            else {"bits": {"total": 5}}
        )
        store.add({"trial": json.loads(trial.key), "result": result})
    table = next(table for table in growth_tables(store) if table.name == "growth-rows")
    assert "seconds ~ N^1.00" in table.note and len(table.rows) == 4


def test_plans():
    assert parsed_instances("alarm:4, chess:2") == (Instance("alarm", 4), Instance("chess", 2))
    assert parsed_tables(["1", "4", "5"]) == ("1", "D.2", "D.5")
    for wrong in ("alarm", "alarm:x", ":2"):
        with pytest.raises(SettingError, match="NAME:PARENTS"):
            parsed_instances(wrong)
    with pytest.raises(SettingError, match="choose among"):
        Plan(tables=("7",))
    trials = list(Plan(instances=(Instance("alarm", 4),), seeds=(0, 1)).trials())
    assert len(trials) == 2 * (2 + 4 + 1 + len(SOLVERS)) and len(
        {trial.key for trial in trials}
    ) == len(trials)


# The whole at a small size


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A small network and small item sets under the names of real ones."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "networks").mkdir()
    (folder / "fimi").mkdir()
    random = np.random.default_rng(0)
    n = 8
    parents = tuple(tuple(sorted(random.permutation(v)[:2].tolist())) for v in range(n))
    tables = tuple(random.dirichlet([0.3, 0.3], size=(2,) * len(its)) for its in parents)
    network = Network(tuple(f"v{v}" for v in range(n)), parents, (("a", "b"),) * n, tables)
    write_network(network, folder / "alarm.bif")
    (folder / "networks/alarm.bif.gz").write_bytes(
        gzip.compress((folder / "alarm.bif").read_bytes())
    )
    rows = random.random((300, 7)) < 0.5
    rows[:, 6] = rows[:, 0] ^ (random.random(300) < 0.1)
    text = "\n".join(" ".join(str(item + 1) for item in np.flatnonzero(row)) or "8" for row in rows)
    (folder / "fimi/chess.dat.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def test_a_trial_runs_in_a_process_of_its_own(data, tmp_path):
    place = Place(str(data), str(tmp_path))
    found = measure(place, Trial("candidates", "alarm", 2, 0, rows=100))
    assert found["result"]["n"] == 8 and found["result"]["peak_mb"] > 10 and found["commit"]
    failed = measure(place, Trial("candidates", "absent", 2, 0))
    assert "no instance 'absent'" in failed["error"] and "result" not in failed


def test_a_solver_ends_at_a_proved_optimum(data, tmp_path):
    trial = Trial("solve", "alarm", 2, 0, "order-sa", rows=100, seconds=20.0)
    place = Place(str(data), str(tmp_path))
    proof = measure(place, replace(trial, approach="exact"))["result"]
    assert proof["proved"]
    found = measure(replace(place, optima={trial.sample: proof["score"]}), trial)["result"]
    assert (
        found["proved"]
        and found["score"] == proof["score"]
        and "bound was reached" in found["status"]
    )


def test_proofs_come_before_other_solvers(data, tmp_path):
    plan = Plan(
        ("3",), (Instance("alarm", 2),), (0,), ("order-sa", "exact"), time_limit=20.0, rows=100
    )
    store = bench(plan, data, tmp_path)
    asked = [
        json.loads(line)["trial"]["approach"]
        for line in (tmp_path / "trials.jsonl").read_text().splitlines()
    ]
    assert asked == ["", "exact", "order-sa"] and len(store.optima()) == 1
    assert all(
        record["result"]["seconds"] < plan.time_limit for record in store.results(kind="solve")
    )


def test_time_limits_follow_the_papers_rules(data, tmp_path):
    sets = Trial("solve", "alarm", 2, 0, "order-sa", rows=100, seconds=0.2)
    place = Place(str(data), str(tmp_path), {}, {sets.sample: 0.3}, {sets.sample: 0.4})
    limits = {"order-sa": (0.6, 0.0), "sa-flips": (0.2, 0.4), "hillclimb": (0.9, -0.3)}
    for approach, (limit, ahead) in limits.items():
        found = measure(place, replace(sets, approach=approach))["result"]
        assert (found["limit"], found["ahead"]) == (pytest.approx(limit), ahead)
    prepared = measure(place, replace(sets, kind="preparation", approach=""))["result"]
    assert prepared["identifying"] > 0 and prepared["formulating"] > 0


# Programs of others: stand-ins that follow their command lines


STAND_IN = """#!{python}
import sys
sys.path[:0] = {paths!r}
from qubayes.candidates import read_candidates
from qubayes.search import Limits, solve
from qubayes.foundation.graph import topological_order

def best(scores):
    candidates = read_candidates(scores)
    assert candidates.names == tuple(map(str, range(candidates.n)))
    assert not any(line.startswith("#") for line in open(scores))
    found = solve(candidates, "exact", limits=Limits(20.0))
    return candidates.families.sets_at(found.choice), found.score
"""
MINOBS = """
scores, seconds, seed, output = sys.argv[1:]
assert float(seconds) > 0 and int(seed) == 3
parents, score = best(scores)
order = " ".join(map(str, topological_order(parents)))
with open(output, "w") as file:
    file.write(scores + "\\n5 999\\nBEST\\nTime (ms)\\tScore, followed by ordering next line\\n")
    worse = " ".join(map(str, range(len(parents))))
    file.write(f"7\\t{int(-(score - 50) * 1e6)}\\n{worse} \\n250\\t{int(-score * 1e6)}\\n{order} \\n")
"""
GOBNILP = """
form, settings, scores = sys.argv[1:]
assert form == "-f=jkl" and settings.startswith("-g=")
settings = dict(line.strip().split(" = ") for line in open(settings[3:]))
assert float(settings["limits/time"]) > 0
parents, score = best(scores)
with open(settings["gobnilp/outputfile/solution"].strip('"'), "w") as file:
    for child, own in enumerate(parents):
        file.write(str(child) + "\\t<-\\t{" + ",".join(map(str, own)) + "}\\t-1.000000\\n")
    file.write(f"BN score is {score:f}\\n")
print("SCIP Status        : problem is solved [optimal solution found]")
print(f"Primal Bound       : {score:+.14e} (5 solutions)\\nDual Bound         : {score:+.14e}")
"""


def stand_in(path: Path, body: str) -> Path:
    """An executable script that answers as the program would, with the best network."""
    paths = [str(Path(__file__).parents[1] / "src")]
    path.write_text(STAND_IN.format(python=sys.executable, paths=paths) + body)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("name", "body"), [("minobs", MINOBS), ("gobnilp", GOBNILP)])
def test_another_program_is_called_and_its_network_scored(tmp_path, name, body):
    candidates = example()
    best = solve(candidates, "exact", limits=Limits(20.0))
    found = solve_by_program(name, str(stand_in(tmp_path / name, body)), candidates, 5.0, 3)
    assert (
        found["score"] == pytest.approx(best.score, abs=1e-9)
        and found["empty_score"] < found["score"]
    )
    assert found["proved"] == (name == "gobnilp") and found["trace"][-1][1] == found["score"]
    if name == "minobs":
        assert found["bound"] == float("inf") and found["trace"][-1][0] == 0.25
        assert found["trace"][1] == [0.007, pytest.approx(best.score - 50, abs=1e-5)]
    else:
        assert found["bound"] == pytest.approx(best.score)


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("minobs", "sys.exit(3)", "exit code 3"),
        ("minobs", "pass", "wrote no output"),
        ("minobs", "open(sys.argv[4], 'w').write('BEST\\nhead\\n1\\t2\\n0 1 \\n')", "an order of"),
        ("gobnilp", "open('solution', 'w').write('0\\t<-\\t{1}\\t-1.0\\n')", "no candidate set"),
    ],
)
def test_a_program_that_fails_says_how(tmp_path, name, body, message):
    path = stand_in(tmp_path / name, body)
    with pytest.raises(ServiceError, match=message):
        solve_by_program(name, str(path), example(), 5.0, 3)


def test_a_program_is_a_column_of_table_3(data, tmp_path, capsys):
    path = stand_in(tmp_path / "search", MINOBS.replace("int(seed) == 3", "int(seed) == 0"))
    asked = "--tables 3 --instances alarm:2 --trials 1 --time-limit 1 --solvers anneal,exact"
    arguments = (*asked.split(), "--data", data, "--results", tmp_path / "results")
    code, text, err = run(capsys, *arguments, "--peer", f"minobs={path}")
    assert code == 0, err
    assert "| exact (GOB) | minobs | paper |" in text
    code, text, _ = run(capsys, *arguments, "--no-measure")  # from what is there
    assert code == 0 and "| minobs |" in text
    for wrong in (
        "minobs",
        "blip=/bin/true",
        f"minobs={tmp_path}",
        f"gobnilp={tmp_path / 'absent'}",
    ):
        with pytest.raises(SettingError, match="--peer"):
            parsed_peers([wrong])


def test_one_run_at_a_time_measures_in_a_folder(data, tmp_path):
    held = lock_folder(tmp_path)
    with pytest.raises(QubayesError, match="another run measures in"):
        bench(replace(QUICK, solvers=("exact",)), data, tmp_path)
    held.release()
    assert not (tmp_path / "trials.jsonl").exists()


def run(capsys, *arguments) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of `python -m benchmarks paper`."""
    code = 0
    try:
        guarded(lambda: app([str(argument) for argument in arguments]))
    except SystemExit as end:
        code = end.code or 0
    return code, *capsys.readouterr()


def test_quick_makes_all_tables_and_goes_on(data, tmp_path, capsys):
    arguments = (
        "--quick",
        "--data",
        data,
        "--results",
        tmp_path,
        "--solvers",
        "anneal,exact,order-sa",
    )
    plots = ("--plots",) if _has_matplotlib() else ()
    code, text, err = run(capsys, *arguments, *plots)
    assert code == 0, err
    for title in ("Table 1", "Table 2", "Table 3", "Table D.2", "Table D.5"):
        assert title in text
    assert "These samples have 200 rows, those of the paper 1,000" in text
    written = (tmp_path / "trials.jsonl").read_bytes()
    assert len(written.splitlines()) == 2 * (2 + 4 + 1 + 3)
    first = json.loads(written.splitlines()[0])
    assert {"trial", "result", "commit", "versions", "machine"} <= set(first)
    assert {path.suffix for path in tmp_path.glob("table-*")} == {".md", ".csv", ".tex"}
    if plots:
        assert {path.name for path in (tmp_path / "plots").glob("*.svg")} >= {
            "scores-alarm-2.svg",
            "scores-chess-2.svg",
        }
    code, _, err = run(capsys, *arguments)
    assert code == 0 and (tmp_path / "trials.jsonl").read_bytes() == written
    half = b"".join(written.splitlines(keepends=True)[:4])
    # the tables of what is there, and nothing is measured
    (tmp_path / "trials.jsonl").write_bytes(half)
    code, text, _ = run(capsys, *arguments, "--no-measure")
    assert code == 0 and "Table D.2" in text and (tmp_path / "trials.jsonl").read_bytes() == half


def _has_matplotlib() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    code, _, err = run(capsys, "--tables", "9", "--data", tmp_path)
    assert_one_line(code, err, "table '9'")
    code, _, err = run(capsys, "--instances", "alarm", "--data", tmp_path)
    assert_one_line(code, err, "NAME:PARENTS")


@pytest.mark.usefixtures("without_plug_ins")
def test_missing_baselines_are_named_before_anything_is_downloaded(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "qubayes_baselines", None)
    for arguments in (("--tables", "1"), ("--tables", "3", "--solvers", "anneal,bqp")):
        code, _, err = run(capsys, "--quick", "--results", tmp_path / "results", *arguments)
        assert_one_line(code, err, "qubayes-baselines", "pip install ./benchmarks/paper/baselines")
    assert not (tmp_path / "results").exists()
    code, _, err = run(
        capsys, "--quick", "--results", tmp_path / "results", "--tables", "3", "--no-measure"
    )
    assert code == 0, err


def test_quick_is_small():
    assert len(list(QUICK.trials())) <= 40 and QUICK.time_limit <= 1.0
