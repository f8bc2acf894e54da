"""Sentences with figures for the pages, made from the raw results; each has its place between comments of its name."""

import math
import re
import statistics
from collections.abc import Callable, Sequence

from .printed import BITS, STEPS, Instance
from .store import Record, Store
from .table import spread
from .tables import ANNEALERS, OURS, SAME, own_score, samples_of, sources, statistic

PAPERS_COUNTERPARTS = ("order-sa", "exact", "hillclimb", "asobs")  # of SAO, GOB, HCS and ASO
# pages of the repository that have sentences
SAYING = ("docs/paper.md", "docs/results/README.md")
LARGE_FACTOR = 14.0  # samples on which the range is fewer times smaller are named
NEEDED = (OURS, *ANNEALERS, *PAPERS_COUNTERPARTS)


def sentences_of(
    store: Store, instances: Sequence[Instance], limits: Sequence[float]
) -> dict[str, str]:
    """Return the sentences by name; a sentence about solvers is about one time limit, and has it in its name."""
    found: dict[str, str] = {}
    for seconds in limits:
        if not all(store.results(kind="solve", approach=name, seconds=seconds) for name in NEEDED):
            continue
        ending = "" if seconds == limits[0] else f"-{seconds:g}s"
        made = {
            f"said-{name}{ending}": make(store, instances, seconds)
            for name, make in SOLVING.items()
        }
        found |= {name: text for name, text in made.items() if text}
    made = {f"said-{name}": make(store, instances) for name, make in FORMULATING.items()}
    return found | {name: text for name, text in made.items() if text}


def with_sentences(page: str, sentences: dict[str, str]) -> str:
    """Return the page with each sentence in its places, between <!-- NAME --> and <!-- /NAME -->."""
    for name, text in sentences.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        page = re.sub(
            f"{begin}.*?{end}", lambda _, new=f"{begin}{text}{end}": new, page, flags=re.DOTALL
        )
    return page


def _samples(
    store: Store, instances: Sequence[Instance], solver: str, seconds: float
) -> dict[tuple[Instance, int], Record]:
    """The records of a solver by instance and seed."""
    found = {}
    for instance in instances:
        for record in samples_of(store, instance, kind="solve", approach=solver, seconds=seconds):
            found[instance, record["trial"]["seed"]] = record
    return found


def _best(
    store: Store, instances: Sequence[Instance], seconds: float
) -> dict[tuple[Instance, int], float]:
    """The best score that any solver found, by instance and seed."""
    best: dict[tuple[Instance, int], float] = {}
    for solver in sorted(
        {r["trial"]["approach"] for r in store.results(kind="solve", seconds=seconds)}
    ):
        for sample, record in _samples(store, instances, solver, seconds).items():
            best[sample] = max(best.get(sample, -math.inf), own_score(record))
    return best


def _solving(store: Store, instances: Sequence[Instance], seconds: float) -> str:
    """On how many samples the first solver is first or level, and how many are proved."""
    best, ours = _best(store, instances, seconds), _samples(store, instances, OURS, seconds)
    level = sum(own_score(record) >= best[sample] - SAME for sample, record in ours.items())
    proved = sum(
        bool(r["result"].get("proved"))
        for r in _samples(store, instances, "exact", seconds).values()
    )
    return (
        f"After {seconds:g} s `{OURS}` is first or level on {level} of {len(ours)} samples, and `exact` proves the "
        f"optimum among networks with at most m parents of each variable on {proved} of them."
    )


def _annealing(store: Store, instances: Sequence[Instance], seconds: float) -> str:
    """Where the scores of annealers of the QUBO are from."""
    parts = []
    for solver in ANNEALERS:
        counts = sources(store, solver, seconds)
        raw = sum(statistic(r, "raw_score") is None for r in _solver(store, solver, seconds))
        parts.append(
            f"`{solver}`: {counts['repaired']} of {counts.total()} scores are of a repaired state and {counts['raw']} "
            f"of a feasible one; in {counts['before']} trials annealing found nothing above the network known before "
            f"it, and in {raw} no feasible state"
        )
    return f"After {seconds:g} s, {'; '.join(parts)}."


def _comparison(store: Store, instances: Sequence[Instance], seconds: float) -> str:
    """How often `digital` beats the other solvers, raw and after repair."""
    annealed = _samples(store, instances, "digital", seconds)
    raw, repaired = [], []
    for other in PAPERS_COUNTERPARTS:
        theirs = _samples(store, instances, other, seconds)
        wanted = {
            sample: own_score(theirs[sample]) + SAME for sample in annealed if sample in theirs
        }
        scores = {sample: statistic(annealed[sample], "raw_score") for sample in wanted}
        raw.append(sum(scores[s] is not None and scores[s] > least for s, least in wanted.items()))
        repaired.append(
            sum(own_score(annealed[sample]) > least for sample, least in wanted.items())
        )
    names = [f"`{name}`" for name in PAPERS_COUNTERPARTS]
    return (
        f"After {seconds:g} s the best feasible state of `digital` scores more than {_listed(names)} in "
        f"{_listed(raw)} of {len(annealed)} trials, its best state after repair in {_listed(repaired)}."
    )


def _behind(store: Store, instances: Sequence[Instance], seconds: float) -> str:
    """Where the first solver is behind, and by how much."""
    best, parts = _best(store, instances, seconds), []
    ours = _samples(store, instances, OURS, seconds)
    for instance in instances:
        lacks = []
        for (of, seed), record in ours.items():
            lack = best[of, seed] - own_score(record)
            if of == instance and lack > SAME:
                lacks.append(lack / (best[of, seed] - record["result"]["empty_score"]))
        if lacks:
            told = _listed([f"{100 * lack:.3f}" for lack in sorted(lacks, reverse=True)])
            parts.append(
                f"{len(lacks)} of {instance.name} m = {instance.max_parents} (by {told} % of the gain)"
            )
    if not parts:
        return f"After {seconds:g} s no solver scores more than `{OURS}` on any sample."
    return f"After {seconds:g} s another solver scores more than `{OURS}` on {_listed(parts)}."


def _furthest(store: Store, instances: Sequence[Instance], seconds: float) -> str:
    """The largest mean distances of annealers from the best score, after repair and raw."""
    best, parts = _best(store, instances, seconds), []
    for solver in ANNEALERS:
        found = _samples(store, instances, solver, seconds)
        texts = []
        for kind in ("repaired", "raw"):
            means = {}
            for instance in instances:
                lacks = []
                for (of, seed), record in found.items():
                    raw = statistic(record, "raw_score")
                    score = own_score(record) if kind == "repaired" else raw
                    if of == instance and score is not None:
                        gain = best[of, seed] - record["result"]["empty_score"]
                        lacks.append((best[of, seed] - score) / gain)
                if lacks:
                    means[instance] = statistics.mean(lacks), len(lacks)
            if not means:
                continue
            worst = max(means, key=lambda each: means[each][0])
            mean, trials = means[worst]
            where = f"{worst.name} m = {worst.max_parents}"
            texts.append(
                f"{100 * mean:.1f} % {'after repair' if kind == 'repaired' else 'raw'} ({where}, {trials})"
            )
        parts.append(f"`{solver}` {' and '.join(texts)}")
    return (
        f"Largest mean distance below the best score after {seconds:g} s, in parts of its gain (in parentheses where, "
        f"and the number of trials with such a state): {_listed(parts)}."
    )


def _ranges(store: Store, instances: Sequence[Instance]) -> str:
    """How many times smaller the range of coefficients is than that of the paper's formulation, on the same samples."""
    times: list[tuple[float, str]] = []
    for instance in instances:
        kinds = [
            {
                r["trial"]["seed"]: r["result"].get("range")
                for r in samples_of(store, instance, kind="bits", approach=a)
            }
            for a in ("ilp", "auto")
        ]
        for seed in sorted(set(kinds[0]) & set(kinds[1])):
            paper, ours = kinds[0][seed], kinds[1][seed]
            if paper and ours:
                times.append(
                    (paper / ours, f"{instance.name} m = {instance.max_parents}, seed {seed}")
                )
    if not times:
        return ""
    median = statistics.median(factor for factor, _ in times)
    few = [f"{factor:.1f} on {name}" for factor, name in sorted(times) if factor < LARGE_FACTOR]
    others = [factor for factor, _ in times if factor >= LARGE_FACTOR]
    named = f" ({', '.join(few)})" if few else ""
    least = f", at least {math.floor(min(others))} times on all but {len(few)}" if others else ""
    return (
        f"The range of coefficients (largest over smallest) is smaller than that of the paper's formulation on "
        f"{sum(factor > 1 for factor, _ in times)} of {len(times)} samples: {median:.0f} times in the median{least}"
        f"{named}."
    )


def _proved(store: Store, instances: Sequence[Instance]) -> str:
    """For how many vertices the family of subsets is proved smallest, where it is not for all."""
    parts, all_proved = [], 0
    for instance in instances:
        results = [r["result"] for r in samples_of(store, instance, kind="bits", approach="auto")]
        counts, n = (
            [result["proved"] for result in results],
            max((result["n"] for result in results), default=0),
        )
        if counts and min(counts) < n:
            span = (
                f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
            )
            parts.append(f"{span} of {n} (`{instance.name}` m = {instance.max_parents})")
        all_proved += bool(counts) and min(counts) == n
    if not parts:
        return ""
    return (
        f"The families of subsets are proved smallest for all vertices on {all_proved} of the "
        f"{all_proved + len(parts)} instances. On the others they are proved smallest only for {_listed(parts)}; the "
        "other vertices have small families that may not be smallest."
    )


def _assembling(store: Store, instances: Sequence[Instance]) -> str:
    """The seconds of assembling the largest QUBO, beside the paper's."""
    largest = max(instances, key=lambda each: BITS[each][4].mean if each in BITS else 0.0)
    records = samples_of(store, largest, kind="bits", approach="auto")
    if not records or largest not in STEPS:
        return ""
    ours, paper = spread([r["result"]["assemble"] for r in records], 1), STEPS[largest][2]
    return (
        f"The largest, {largest.name} m = {largest.max_parents}, takes {ours} s to assemble; the paper reports "
        f"{paper.mean:,g} ± {paper.deviation:,g} s."
    )


def _solver(store: Store, solver: str, seconds: float) -> list[Record]:
    return store.results(kind="solve", approach=solver, seconds=seconds)


def _listed(parts: Sequence[object]) -> str:
    """a, b and c."""
    *first, last = map(str, parts)
    return f"{', '.join(first)} and {last}" if first else last


SOLVING: dict[str, Callable[[Store, Sequence[Instance], float], str]] = {
    "solving": _solving,
    "annealing": _annealing,
    "comparison": _comparison,
    "behind": _behind,
    "furthest": _furthest,
}
FORMULATING: dict[str, Callable[[Store, Sequence[Instance]], str]] = {
    "ranges": _ranges,
    "proved": _proved,
    "assembling": _assembling,
}
