"""Pictures of raw results: bits per instance, time per stage, score over time, growth."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from qubayes import MissingPackageError
from qubayes.foundation.environment import how_to_install
from qubayes.foundation.files import replacing

from .growth import AXES, Axis, points_of, slope
from .printed import BITS, STEPS, Instance
from .store import Store
from .tables import samples_of

COLOURS = {
    "ogorman": "#9aa0a6",
    "ilp-only": "#c2a05a",
    "ilp": "#c2571a",
    "auto": "#2f6fb3",
    "paper": "#555555",
}


def draw_all(
    store: Store, instances: Sequence[Instance], solvers: Sequence[str], seconds: float, out: Path
) -> list[Path]:
    """Write every picture that there are results for, as SVG and PNG; the files."""
    made: list[Path] = []
    made += _draw(out / "bits", _bits, store, instances)
    made += _draw(out / "seconds", _seconds, store, instances)
    for instance in instances:
        name = f"scores-{instance.name}-{instance.max_parents}"
        made += _draw(out / name, _scores, store, instance, solvers, seconds)
    for axis in AXES:
        made += _draw(out / f"growth-{axis.name}", _growth, store, axis)
    return made


def _draw(path: Path, draw: Any, *arguments: Any) -> list[Path]:
    """The picture in two formats; nothing if there was nothing to draw."""
    with _figure() as (figure, axes):
        if not draw(axes, *arguments):
            return []
        path.parent.mkdir(parents=True, exist_ok=True)
        files = [path.with_suffix(kind) for kind in (".svg", ".png")]
        for file in files:
            metadata = {"Date": None} if file.suffix == ".svg" else None
            with replacing(file, binary=True) as picture:
                figure.savefig(picture, format=file.suffix[1:], dpi=120, metadata=metadata)
    return files


@contextmanager
def _figure() -> Iterator[tuple[Any, Any]]:
    try:
        import matplotlib
    except ImportError:
        raise MissingPackageError(f"plots need matplotlib; {how_to_install('bench')}") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    style: Any = {
        "svg.hashsalt": "qubayes",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 9,
    }
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
        try:
            yield figure, axes
        finally:
            pyplot.close(figure)


def _bits(axes: Any, store: Store, instances: Sequence[Instance]) -> bool:
    """Bars of total bits, on a log scale."""
    shown = [i for i in instances if samples_of(store, i, kind="bits", approach="auto")]
    kinds = ("ogorman", "ilp-only", "ilp", "auto")
    for place, kind in enumerate(kinds):
        found = [samples_of(store, i, kind="bits", approach=kind) for i in shown]
        heights = [
            np.mean([r["result"]["bits"]["total"] for r in records]) if records else 0
            for records in found
        ]
        axes.bar(
            np.arange(len(shown)) + 0.2 * (place - 1.5),
            heights,
            0.19,
            label=_label(kind),
            color=COLOURS[kind],
        )
    paper = [BITS[i][4].mean if i in BITS else np.nan for i in shown]
    axes.plot(
        np.arange(len(shown)),
        paper,
        "_",
        color=COLOURS["paper"],
        markersize=16,
        label="paper: IP + Algorithm 2",
    )
    _by_instance(axes, shown, "bits")
    return bool(shown)


def _seconds(axes: Any, store: Store, instances: Sequence[Instance]) -> bool:
    """Seconds of each stage, on a log scale, beside the paper's total of preparing, solving and assembling."""
    shown = [i for i in instances if samples_of(store, i, kind="bits", approach="auto")]
    stages = ("candidates", "cover", "assemble")
    for place, stage in enumerate(stages):
        heights = [_stage_seconds(store, i, stage) for i in shown]
        axes.bar(np.arange(len(shown)) + 0.25 * (place - 1), heights, 0.24, label=stage)
    paper = [sum(step.mean for step in STEPS[i]) if i in STEPS else np.nan for i in shown]
    axes.plot(
        np.arange(len(shown)),
        paper,
        "_",
        color=COLOURS["paper"],
        markersize=16,
        label="paper: cover + assemble",
    )
    _by_instance(axes, shown, "seconds")
    return bool(shown)


def _stage_seconds(store: Store, instance: Instance, stage: str) -> float:
    if stage == "candidates":
        values = [
            r["result"]["seconds"]
            for r in samples_of(store, instance, kind="candidates", score="bds")
        ]
    else:
        results = [r["result"] for r in samples_of(store, instance, kind="bits", approach="auto")]
        values = [
            r["assemble"] if stage == "assemble" else r["prepare"] + r["cover"] for r in results
        ]
    return float(np.mean(values)) if values else 0.0


def _scores(
    axes: Any, store: Store, instance: Instance, solvers: Sequence[str], seconds: float
) -> bool:
    """What each solver lacks to the best score, over time, for the first sample that was solved."""
    found = {
        s: samples_of(store, instance, kind="solve", approach=s, seconds=seconds) for s in solvers
    }
    first = {solver: records[0]["result"] for solver, records in found.items() if records}
    if not first:
        return False
    best = max(result["score"] for result in first.values())
    gain = max(1e-300, best - min(result["empty_score"] for result in first.values()))
    for solver, result in first.items():
        times, scores = np.array(result["trace"]).T
        times, scores = np.append(times, result["seconds"]), np.append(scores, scores[-1])
        lacks = np.maximum(100 * (best - scores) / gain, 1e-4)
        axes.step(
            np.maximum(times, 1e-3),
            lacks,
            where="post",
            label=solver,
            linewidth=2.2 if solver == "anneal" else 1.2,
        )
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="below the best, % of its gain")
    axes.set_title(f"{instance.name}, m = {instance.max_parents}")
    axes.legend(frameon=False, ncols=2)
    return True


def _growth(axes: Any, store: Store, axis: Axis) -> bool:
    """Seconds, memory and bits along one axis, with the exponents of the fitted powers."""
    points = points_of(store, axis)
    for figure in ("seconds", "peak_mb", "bits"):
        line = [(x, values[figure]) for x, values in points if figure in values]
        if len(line) < 2:
            continue
        x, y = np.array(line, dtype=float).T
        axes.plot(
            x,
            np.maximum(y, 1e-3),
            "o-",
            label=f"{figure.replace('peak_mb', 'MB')} ~ {axis.symbol}^{slope(line):.2f}",
        )
    axes.set(xscale="log", yscale="log", xlabel=axis.symbol)
    axes.set_title(axis.title)
    if len(points) > 1:
        axes.legend(frameon=False)
    return len(points) > 1


def _by_instance(axes: Any, shown: Sequence[Instance], label: str) -> None:
    axes.set_xticks(
        np.arange(len(shown)), [str(instance) for instance in shown], rotation=45, ha="right"
    )
    axes.set(yscale="log", ylabel=label)
    axes.legend(frameon=False)


def _label(kind: str) -> str:
    return {
        "ogorman": "O'Gorman",
        "ilp-only": "IP only",
        "ilp": "IP + Algorithm 2",
        "auto": "ours",
    }[kind]
