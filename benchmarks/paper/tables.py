"""The paper's five tables from raw results, with its own figures beside ours."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from .printed import BITS, CANDIDATES, PAPER_SOLVERS, STEPS, STEPS_IP_ONLY, WINS, Instance, Printed
from .store import Record, Store
from .table import Table, spread

OURS = "anneal"
REPAIRED = ("digital", "sa", "dimod")  # a state that violates a constraint is read as a network nearby


def candidates_table(store: Store, instances: Iterable[Instance]) -> Table:
    """Table D.2: number of candidate sets and seconds, for both scores."""
    rows = []
    for instance in instances:
        printed = CANDIDATES.get(instance, ())
        row = [instance.name, str(instance.max_parents)]
        for score in ("bds", "bdeu"):
            found = _of(store, instance, kind="candidates", score=score)
            row += [spread(_figures(found, "total")), spread(_figures(found, "seconds"), 2)]
        rows.append((*row, *_printed(printed, 2)))
    head = (
        "instance",
        "m",
        "bds: sets",
        "bds: seconds",
        "bdeu: sets",
        "bdeu: seconds",
        "paper: sets",
        "paper: seconds",
    )
    note = "Means and standard deviations over the samples. The paper's score is `bds` here (see the README)."
    return Table("table-d2", "Candidate parent sets (the paper's Table D.2)", head, tuple(rows), note)


def bits_table(store: Store, instances: Iterable[Instance]) -> Table:
    """Table 1: bits and seconds of each formulation."""
    rows = []
    for instance in instances:
        printed = BITS.get(instance, ())
        row = [instance.name, str(instance.max_parents)]
        for approach in ("ogorman", "ilp-only", "ilp", "auto"):
            found = _of(store, instance, kind="bits", approach=approach)
            row.append(spread([record["result"]["bits"]["total"] for record in found]))
            if approach != "ogorman":
                row.append(spread([_total_seconds(record) for record in found], 1))
        rows.append((*row, *(_one(printed, place) for place in (0, 2, 4, 5))))
    head = (
        *("instance", "m", "O'Gorman", "IP only", "s", "IP + Algorithm 2", "s", "ours", "s"),
        *("paper: O'Gorman", "paper: IP only", "paper: IP + Algorithm 2", "paper: s"),
    )
    note = (
        "`IP only` and `IP + Algorithm 2` are the paper's formulation on HiGHS; ours is the cover `auto` with chordal "
        "order bits and tight penalties. O'Gorman's size is counted, not assembled; so is what does not fit the "
        "memory, and the seconds are for counting then."
    )
    return Table("table-1", "Bits and seconds (the paper's Table 1)", head, tuple(rows), note)


def steps_table(store: Store, instances: Iterable[Instance], approach: str) -> Table:
    """Table 2 or D.5: the seconds of preparing, solving, assembling."""
    name, title, printed = {
        "ilp": ("table-2", "Seconds of each step, IP + Algorithm 2 (the paper's Table 2)", STEPS),
        "ilp-only": ("table-d5", "Seconds of each step, IP only (the paper's Table D.5)", STEPS_IP_ONLY),
    }[approach]
    rows = []
    for instance in instances:
        row = [instance.name, str(instance.max_parents)]
        for which in (approach, "auto"):
            found = _of(store, instance, kind="bits", approach=which)
            row.append(", ".join(spread(_figures(found, step), 1) for step in ("prepare", "cover", "assemble")))
        told = ", ".join(f"{step.mean:,g} ± {step.deviation:,g}" for step in printed.get(instance, ()))
        rows.append((*row, told or "–"))
    head = ("instance", "m", f"{approach}: preparing, solving, assembling", "ours (auto)", "paper")
    note = (
        "Preparing and solving are summed over the vertices, not over threads. Where the QUBO does not fit the memory "
        "its bits are counted in place of assembling it."
    )
    return Table(name, title, head, tuple(rows), note)


def wins_table(store: Store, instances: Iterable[Instance], solvers: Sequence[str], seconds: float) -> Table:
    """Table 3: wins of each solver, with our annealer in the field and without it, and the paper's."""
    rivals = [solver for solver in solvers if solver != OURS]
    rows = []
    for instance in instances:
        with_ours, trials = _wins(store, instance, solvers, seconds)
        without, _ = _wins(store, instance, rivals, seconds)
        row = [instance.name, str(instance.max_parents), str(trials)]
        row += [f"{with_ours[solver]} / {without.get(solver, '–')}" for solver in solvers]
        printed = WINS.get(instance, {})
        told = ", ".join(f"{PAPER_SOLVERS[name]} {count}" for name, count in printed.items() if count)
        rows.append((*row, told or "–"))
    head = (
        "instance",
        "m",
        "trials",
        *(f"{s} ({PAPER_SOLVERS[s]})" if s in PAPER_SOLVERS else s for s in solvers),
        "paper",
    )
    note = (
        f"{seconds:g} s for each solver. Wins with `{OURS}` in the field / without it. The highest score wins; among "
        "equal scores (within 1e-6) the one reached first, or proved first."
    )
    return Table("table-3", "Wins (the paper's Table 3)", head, tuple(rows), note, 3)


def scores_table(store: Store, instances: Iterable[Instance], solvers: Sequence[str], seconds: float) -> Table:
    """How far each solver ends below the best of all, in parts of the best gain over the empty graph."""
    rows = []
    for instance in instances:
        records = {s: _of(store, instance, kind="solve", approach=s, seconds=seconds) for s in solvers}
        row = [instance.name, str(instance.max_parents)]
        best = _best_by_seed(records)
        for solver in solvers:
            row.append(_mean_lack([(best, record, record["result"]["score"]) for record in records[solver]]))
            if solver in REPAIRED:
                raw = [(r, r["result"].get("statistics", {}).get("raw_score")) for r in records[solver]]
                feasible = [(best, record, score) for record, score in raw if score is not None]
                row.append(f"{_mean_lack(feasible)} ({len(feasible)} of {len(raw)})" if raw else "–")
        gaps = [_gap(records, seed, score) for seed, score in best.items()]
        row.append(f"{100 * max(gaps):.3f} %" if gaps else "–")
        ours = [r["result"]["score"] >= best[r["trial"]["seed"]] - 1e-6 for r in records.get(OURS, ())]
        rows.append((*row, f"{sum(ours)} of {len(ours)}" if ours else "–"))
    columns = [(solver, f"{solver} before repair") if solver in REPAIRED else (solver,) for solver in solvers]
    head = ("instance", "m", *chain(*columns), "gap", f"{OURS} first or level")
    note = (
        "Mean distance below the best score of all solvers for the sample, in parts of its gain over the empty graph. "
        "Before repair: of the states that violate nothing, and in how many samples there was one; records that do not "
        "tell count as none. Gap: how far at most the best score is below the optimum, by the best bound; the largest "
        "over the samples. "
        f"Last: in how many samples no solver that was run on it scored more than `{OURS}`."
    )
    return Table("scores", f"Scores after {seconds:g} s", head, tuple(rows), note)


def _mean_lack(found: Sequence[tuple[dict[int, float], Record, float]]) -> str:
    """How far the scores are below the best of their sample, in parts of its gain: the mean."""
    lacks = [
        (best[seed] - score) / max(1e-300, best[seed] - record["result"]["empty_score"])
        for best, record, score in found
        if (seed := record["trial"]["seed"]) in best
    ]
    return f"{100 * sum(lacks) / len(lacks):.3f} %" if lacks else "–"


def _gap(records: dict[str, list[Record]], seed: int, score: float) -> float:
    """How far the least bound that any solver gave for the sample is above the score, in parts of its gain."""
    results = [r["result"] for found in records.values() for r in found if r["trial"]["seed"] == seed]
    bound = min(result["bound"] for result in results)
    return float((bound - score) / max(1e-300, score - results[0]["empty_score"]))


def _best_by_seed(records: dict[str, list[Record]]) -> dict[int, float]:
    best: dict[int, float] = {}
    for record in (record for found in records.values() for record in found):
        seed = record["trial"]["seed"]
        best[seed] = max(best.get(seed, -float("inf")), record["result"]["score"])
    return best


def _wins(store: Store, instance: Instance, solvers: Sequence[str], seconds: float) -> tuple[dict[str, int], int]:
    """Wins of each solver, and the number of samples that all solvers were run on."""
    records = {
        solver: {
            r["trial"]["seed"]: r["result"]
            for r in _of(store, instance, kind="solve", approach=solver, seconds=seconds)
        }
        for solver in solvers
    }
    common = set.intersection(*(set(found) for found in records.values())) if records else set()
    wins = dict.fromkeys(solvers, 0)
    for seed in common:
        wins[min(solvers, key=_rank({solver: records[solver][seed] for solver in solvers}))] += 1
    return wins, len(common)


def _rank(results: dict[str, Any]) -> Callable[[str], tuple[bool, float]]:
    best = max(result["score"] for result in results.values())

    def rank(solver: str) -> tuple[bool, float]:
        result = results[solver]
        reached = next((seconds for seconds, score in result["trace"] if score >= best - 1e-6), float("inf"))
        return result["score"] < best - 1e-6, reached + result["ahead"]

    return rank


def _of(store: Store, instance: Instance, **wanted: object) -> list[Record]:
    return store.results(instance=instance.name, max_parents=instance.max_parents, **wanted)


def _figures(records: Iterable[Record], name: str) -> list[float]:
    return [float(record["result"][name]) for record in records]


def _total_seconds(record: Record) -> float:
    return float(sum(record["result"][step] for step in ("prepare", "cover", "assemble")))


def _one(printed: Sequence[Printed], place: int) -> str:
    return f"{printed[place].mean:,g} ± {printed[place].deviation:,g}" if printed else "–"


def _printed(printed: Sequence[Printed], count: int) -> list[str]:
    return [_one(printed, place) for place in range(count)]
