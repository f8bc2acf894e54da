"""The paper's five tables from raw results, with its own figures beside ours."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from qubayes.qubo.samplers import annealed_score

from .growth import AXES
from .printed import BITS, CANDIDATES, PAPER_SOLVERS, STEPS, STEPS_IP_ONLY, WINS, Instance, Printed
from .programs import PROGRAMS
from .store import Record, Store
from .table import Table, spread
from .trial import Trial

OURS = "anneal"
SAME = 1e-6  # difference of scores that counts as none
GROWTH = {trial for axis in AXES for trial in axis.trials}
# a state that violates a constraint is read as a network nearby
REPAIRED = ("digital", "sa-flips", "dimod")
ANNEALERS = ("digital", "sa-flips")  # of these, those that know a network before they anneal


def candidates_table(store: Store, instances: Iterable[Instance]) -> Table:
    """Table D.2: number of candidate sets and seconds, for both scores."""
    rows = []
    for instance in instances:
        printed = CANDIDATES.get(instance, ())
        row = [instance.name, str(instance.max_parents)]
        for score in ("bds", "bdeu"):
            found = samples_of(store, instance, kind="candidates", score=score)
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
    return Table(
        "table-d2", "Candidate parent sets (the paper's Table D.2)", head, tuple(rows), note
    )


def bits_table(store: Store, instances: Iterable[Instance]) -> Table:
    """Table 1: bits and seconds of each formulation."""
    rows = []
    for instance in instances:
        printed = BITS.get(instance, ())
        row = [instance.name, str(instance.max_parents)]
        for approach in ("ogorman", "ilp-only", "ilp", "auto"):
            found = samples_of(store, instance, kind="bits", approach=approach)
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
        "ilp-only": (
            "table-d5",
            "Seconds of each step, IP only (the paper's Table D.5)",
            STEPS_IP_ONLY,
        ),
    }[approach]
    rows = []
    for instance in instances:
        row = [instance.name, str(instance.max_parents)]
        for which in (approach, "auto"):
            found = samples_of(store, instance, kind="bits", approach=which)
            row.append(
                ", ".join(
                    spread(_figures(found, step), 1) for step in ("prepare", "cover", "assemble")
                )
            )
        told = ", ".join(
            f"{step.mean:,g} ± {step.deviation:,g}" for step in printed.get(instance, ())
        )
        rows.append((*row, told or "–"))
    head = ("instance", "m", f"{approach}: preparing, solving, assembling", "ours (auto)", "paper")
    note = (
        "Preparing and solving are summed over the vertices, not over threads. Where the QUBO does not fit the memory "
        "its bits are counted in place of assembling it."
    )
    return Table(name, title, head, tuple(rows), note)


def wins_table(
    store: Store, instances: Sequence[Instance], solvers: Sequence[str], seconds: float
) -> Table:
    """Table 3: wins of each solver, with our annealer in the field and without it, and the paper's."""
    rows, counts = [], []
    for instance in instances:
        records = _solved(store, instance, solvers, seconds)
        if not records:
            continue
        with_ours, trials = _wins(records)
        without, _ = _wins({solver: found for solver, found in records.items() if solver != OURS})
        counts.append(trials)
        row = [instance.name, str(instance.max_parents), str(trials)]
        row += [f"{with_ours.get(solver, '–')} / {without.get(solver, '–')}" for solver in solvers]
        printed = WINS.get(instance, {})
        told = ", ".join(
            f"{PAPER_SOLVERS[name]} {count}" for name, count in printed.items() if count
        )
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
        "equal scores (within 1e-6) the one reached first, or proved first. The score of an annealer is that of its "
        "best annealed state. " + _repairs(store, solvers, seconds)
    )
    samples = {1: "one sample of each"}.get(
        max(counts, default=0), f"up to {max(counts, default=0)} samples of each"
    )
    title = f"Wins after {seconds:g} s, {samples} (the paper's Table 3)"
    return Table(
        "table-3", title, head, tuple(rows), note + _left_out(store, instances, solvers, seconds), 3
    )


def scores_table(
    store: Store, instances: Sequence[Instance], solvers: Sequence[str], seconds: float
) -> Table:
    """How far each solver ends below the best of all, in parts of the best gain over the empty graph."""
    rows = []
    for instance in instances:
        records = _solved(store, instance, solvers, seconds)
        if not records:
            continue
        row = [instance.name, str(instance.max_parents)]
        best = _best_by_seed(records)
        for solver in solvers:
            row += _score_cells(solver, records.get(solver, []), best)
        gaps = [_gap(records, seed, score) for seed, score in best.items()]
        row.append(f"{100 * max(gaps):.3f} %" if gaps else "–")
        ours = [
            r["result"]["score"] >= best[r["trial"]["seed"]] - SAME for r in records.get(OURS, ())
        ]
        rows.append((*row, f"{sum(ours)} of {len(ours)}" if ours else "–"))
    head = ("instance", "m", *chain(*map(_score_heads, solvers)), "gap", f"{OURS} first or level")
    note = (
        "Mean distance below the best score of all solvers for the sample, in parts of its gain over the empty graph. "
        "Repaired: the best repaired state of annealing; in parentheses, how many samples owe their score to it. "
        "Raw: the best state of annealing that violates nothing; in parentheses, in how many samples there was one. "
        "Before annealing: the better network of two that `solve` reads before the first move, that of the all-zero "
        "state (repaired if it violates a constraint) and that of the local minimum below it; in parentheses, in how "
        "many samples annealing found nothing above it. "
        + _added_later(store, solvers, seconds)
        + "Gap: how far at "
        "most the best score is below the optimum, by the best bound; the largest over the samples. "
        f"Last: in how many samples no solver that was run on it scored more than `{OURS}`. "
    )
    return Table(
        "scores",
        f"Scores after {seconds:g} s",
        head,
        tuple(rows),
        note + _left_out(store, instances, solvers, seconds),
    )


def _solved(
    store: Store, instance: Instance, solvers: Sequence[str], seconds: float
) -> dict[str, list[Record]]:
    """The records of each solver; empty if none was run. Another program counts only where it was run."""
    found = {
        s: samples_of(store, instance, kind="solve", approach=s, seconds=seconds) for s in solvers
    }
    return (
        {s: records for s, records in found.items() if records or s not in PROGRAMS}
        if any(found.values())
        else {}
    )


def _score_heads(solver: str) -> tuple[str, ...]:
    """The columns of a solver in the table of scores."""
    if solver not in REPAIRED:
        return (solver,)
    before = (f"{solver}, before annealing",) if solver in ANNEALERS else ()
    return (f"{solver}, repaired", f"{solver}, raw", *before)


def _score_cells(solver: str, records: Sequence[Record], best: dict[int, float]) -> list[str]:
    """The cells of a solver's columns: its mean distances, and of how many samples."""
    if solver not in REPAIRED:
        return [_mean_lack(best, [(record, record["result"]["score"]) for record in records])]
    repaired = [
        (record, score)
        for record in records
        if (score := statistic(record, "repaired_score")) is not None
    ]
    raw = [
        (record, score)
        for record in records
        if (score := statistic(record, "raw_score")) is not None
    ]
    before = [
        (record, score) for record in records if (score := before_annealing(record)) is not None
    ]
    counts = Counter(map(source, records))
    shown = [(repaired, counts["repaired"]), (raw, len(raw)), (before, counts["before"])]
    columns = len(_score_heads(solver))
    return [
        f"{_mean_lack(best, found)} ({n} of {len(records)})" if records else "–"
        for found, n in shown[:columns]
    ]


def statistic(record: Record, name: str) -> float | None:
    """A score that the solver recorded; None if it has none."""
    found: float | None = record["result"].get("statistics", {}).get(name)
    return found


def before_annealing(record: Record) -> float | None:
    """The best score of a network that was known before the first move of an annealer; None if it was not recorded.

    Trials that did not record it have a field of their own (`python -m benchmarks all-zero`).
    """
    recorded = statistic(record, "before_annealing")
    added: float | None = record.get("before_annealing", {}).get("score")
    return added if recorded is None else recorded


def own_score(record: Record) -> float:
    """The score that a solver found itself; of an annealer that of its best annealed state, minus infinity without."""
    if record["trial"]["approach"] not in REPAIRED:
        return float(record["result"]["score"])
    annealed = annealed_score(record["result"].get("statistics", {}))
    return -math.inf if annealed is None else annealed


def source(record: Record) -> str:
    """Where an annealer's score is from: "repaired" or "raw" states, or "before" if no state of it scores more."""
    raw, before, own = statistic(record, "raw_score"), before_annealing(record), own_score(record)
    if own <= (-math.inf if before is None else before + SAME):
        return "before"
    return "repaired" if raw is None or raw < own - SAME else "raw"


def sources(store: Store, solver: str, seconds: float) -> Counter[str]:
    """In how many trials the score of an annealer is from where."""
    return Counter(map(source, store.results(kind="solve", approach=solver, seconds=seconds)))


def _repairs(store: Store, solvers: Sequence[str], seconds: float) -> str:
    """In how many trials the solvers of QUBOs owe their score to a repaired state, and in how many they found none."""
    found = {s: sources(store, s, seconds) for s in solvers if s in REPAIRED}
    repaired = [
        f"`{s}` {counts['repaired']} of {counts.total()}" for s, counts in found.items() if counts
    ]
    none = [
        f"`{s}` {counts['before']} of {counts.total()}" for s, counts in found.items() if counts
    ]
    if not repaired:
        return ""
    return (
        f"Trials whose score is that of a repaired state: {', '.join(repaired)}. Trials in which annealing found "
        f"nothing above the network known before it: {', '.join(none)}. "
    )


def _added_later(store: Store, solvers: Sequence[str], seconds: float) -> str:
    """What to know of trials that did not record the score before annealing."""
    records = [
        r
        for s in solvers
        if s in ANNEALERS
        for r in store.results(kind="solve", approach=s, seconds=seconds)
    ]
    old = sum("before_annealing" in record for record in records)
    if not old:
        return ""
    return (
        f"{old} of {len(records)} trials of annealers did not record it: the network of the all-zero state was "
        "computed again and that of the local minimum read from the trace; raw and repaired states of these trials "
        "include that local minimum. "
    )


def _left_out(
    store: Store, instances: Sequence[Instance], solvers: Sequence[str], seconds: float
) -> str:
    """The rule for what the table leaves out, and what that is."""
    rule = (
        "Samples are measured in the order of their seeds, all solvers on all instances before the next sample; the "
        "trials of an instance are the samples that all solvers have finished."
    )
    records = {instance: _solved(store, instance, solvers, seconds) for instance in instances}
    absent = [str(instance) for instance, found in records.items() if not found]
    return rule + (f" Not measured: {', '.join(absent)}." if absent else "")


def _mean_lack(best: dict[int, float], found: Sequence[tuple[Record, float]]) -> str:
    """How far the scores are below the best of their sample, in parts of its gain: the mean."""
    lacks = [
        (best[seed] - score) / max(1e-300, best[seed] - record["result"]["empty_score"])
        for record, score in found
        if (seed := record["trial"]["seed"]) in best
    ]
    return f"{100 * sum(lacks) / len(lacks):.3f} %" if lacks else "–"


def _gap(records: dict[str, list[Record]], seed: int, score: float) -> float:
    """How far the least bound that any solver gave for the sample is above the score, in parts of its gain."""
    results = [
        r["result"] for found in records.values() for r in found if r["trial"]["seed"] == seed
    ]
    bound = min(result["bound"] for result in results)
    return float((bound - score) / max(1e-300, score - results[0]["empty_score"]))


def _best_by_seed(records: dict[str, list[Record]]) -> dict[int, float]:
    best: dict[int, float] = {}
    for record in (record for found in records.values() for record in found):
        seed = record["trial"]["seed"]
        best[seed] = max(best.get(seed, -math.inf), own_score(record))
    return best


def _wins(records: dict[str, list[Record]]) -> tuple[dict[str, int], int]:
    """Wins of each solver, and the number of samples that all of them were run on."""
    results = {
        s: {r["trial"]["seed"]: {**r["result"], "score": own_score(r)} for r in found}
        for s, found in records.items()
    }
    common = set.intersection(*map(set, results.values())) if results else set()
    wins = dict.fromkeys(results, 0)
    for seed in common:
        wins[
            min(results, key=_rank({solver: found[seed] for solver, found in results.items()}))
        ] += 1
    return wins, len(common)


def _rank(results: dict[str, Any]) -> Callable[[str], tuple[bool, float]]:
    best = max(result["score"] for result in results.values())

    def rank(solver: str) -> tuple[bool, float]:
        result = results[solver]
        reached = next(
            (seconds for seconds, score in result["trace"] if score >= best - SAME), float("inf")
        )
        return result["score"] < best - SAME, reached + result["ahead"]

    return rank


def samples_of(store: Store, instance: Instance, **wanted: object) -> list[Record]:
    """The records of an instance, one for each sample: a trial of the growth tables counts where there is no other."""
    found: dict[int, Record] = {}
    for record in store.results(instance=instance.name, max_parents=instance.max_parents, **wanted):
        seed = record["trial"]["seed"]
        if seed not in found or Trial(**record["trial"]) not in GROWTH:
            found[seed] = record
    return list(found.values())


def _figures(records: Iterable[Record], name: str) -> list[float]:
    return [float(record["result"][name]) for record in records]


def _total_seconds(record: Record) -> float:
    return float(sum(record["result"][step] for step in ("prepare", "cover", "assemble")))


def _one(printed: Sequence[Printed], place: int) -> str:
    return f"{printed[place].mean:,g} ± {printed[place].deviation:,g}" if printed else "–"


def _printed(printed: Sequence[Printed], count: int) -> list[str]:
    return [_one(printed, place) for place in range(count)]
