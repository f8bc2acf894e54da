"""How time, memory and bits grow with the number of variables, rows and parents."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .store import Store
from .table import Table
from .trial import Trial


@dataclass(frozen=True, slots=True)
class Axis:
    """What grows, and the trials along it."""

    name: str
    symbol: str
    title: str
    field: str  # of the trial
    trials: tuple[Trial, ...]


def _axis(
    name: str, symbol: str, title: str, field: str, values: Sequence[int], **fixed: Any
) -> Axis:
    base = {"instance": "andes", "max_parents": 2, "seed": 0, "rows": 1000, **fixed}
    trials = [
        Trial(kind, **{**base, field: value}, approach=approach)
        for value in values
        for kind, approach in _KINDS
    ]
    return Axis(name, symbol, title, field, tuple(trials))


_KINDS = (("candidates", ""), ("bits", "auto"))
AXES = (
    _axis(
        "n",
        "n",
        "Variables: the first n of munin, m = 2",
        "columns",
        (32, 64, 128, 256, 512, 1041),
        instance="munin",
    ),
    _axis(
        "rows",
        "N",
        "Rows: alarm, m = 3",
        "rows",
        (100, 1000, 10_000, 100_000),
        instance="alarm",
        max_parents=3,
    ),
    _axis("m", "m", "Parents: alarm, 1000 rows", "max_parents", (1, 2, 3, 4, 5), instance="alarm"),
)


def points_of(store: Store, axis: Axis) -> list[tuple[int, dict[str, float]]]:
    """(value on the axis, figures measured there), ascending."""
    found: dict[int, dict[str, float]] = {}
    for trial in axis.trials:
        if trial not in store:
            continue
        result = store.result(trial)
        figures = found.setdefault(getattr(trial, axis.field), {})
        if trial.kind == "candidates":
            figures |= {
                "seconds": result["seconds"],
                "peak_mb": result["peak_mb"],
                "sets": result["total"],
            }
        else:
            figures["bits"] = result["bits"]["total"]
    return sorted(found.items())


def slope(points: Iterable[tuple[float, float]]) -> float:
    """The exponent of the power that fits the points best: a line through their logarithms."""
    positive = [(x, y) for x, y in points if x > 0 and y > 0]
    if len(positive) < 2:
        return math.nan
    x, y = np.log(np.array(positive, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def growth_tables(store: Store) -> list[Table]:
    """One table for each axis that was measured, with the exponents in its note."""
    tables = []
    for axis in AXES:
        points = points_of(store, axis)
        if not points:
            continue
        names = ("seconds", "peak_mb", "sets", "bits")
        rows = [
            (f"{value:,}", *(_told(figures.get(name)) for name in names))
            for value, figures in points
        ]
        exponents = [
            f"{name} ~ {axis.symbol}^{slope([(x, f[name]) for x, f in points if name in f]):.2f}"
            for name in names
            if sum(name in figures for _, figures in points) > 1
        ]
        head = (axis.symbol, "seconds", "peak MB", "candidate sets", "bits")
        note = f"Fitted powers: {', '.join(exponents)}." if exponents else ""
        tables.append(Table(f"growth-{axis.name}", axis.title, head, tuple(rows), note, 1))
    return tables


def _told(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
