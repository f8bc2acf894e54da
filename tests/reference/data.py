"""Slow, obvious readers: tables by the csv module, states by sorting, intervals by counting, networks by formulas."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product

MISSING = {"", "NA", "N/A", "<NA>", "NaN", "nan", "NULL", "null", "?"}


def table(text: str, separator: str = ",") -> tuple[list[str], list[list[str]]]:
    """(names, rows of text) of a table without quoted blanks at the ends of fields."""
    rows = [
        row
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        if any(f.strip() for f in row)
    ]
    stripped = [[field.strip() for field in row] for row in rows]
    return stripped[0], stripped[1:]


def states(values: Sequence[str]) -> tuple[str, ...]:
    """The distinct values: in numeric order if all are whole numbers as people write them, else sorted."""
    distinct = set(values)
    if all(value.lstrip("-").isdigit() and str(int(value)) == value for value in distinct):
        return tuple(sorted(distinct, key=int))
    return tuple(sorted(distinct))


def decoded(dataset: object) -> list[list[str]]:
    """The rows of a Dataset as state names."""
    codes = dataset.codes.tolist()  # type: ignore[attr-defined]
    columns = [[names[c] for c in row] for names, row in zip(dataset.states, codes, strict=True)]  # type: ignore[attr-defined]
    return [list(row) for row in zip(*columns, strict=True)]


def in_interval(value: float, name: str) -> bool:
    """Whether the value lies in the interval that the state's name describes."""
    if name.startswith("<"):
        return value < float(name[1:])
    if name.startswith(">="):
        return value >= float(name[2:])
    low, found, high = name.partition("..")
    return float(low) <= value < float(high) if found else value == float(name)


def quantile_parts(values: Sequence[float], bins: int) -> list[list[float]]:
    """The sorted distinct values cut where nearest to k/bins of the rows lie below, the lower place if two are."""
    counts = Counter(values)
    distinct = sorted(counts)
    cuts = set()
    for k in range(1, bins):
        wanted = Fraction(k * len(values), bins)
        below = {i: sum(counts[v] for v in distinct[:i]) for i in range(1, len(distinct))}
        if below:
            cuts.add(min(below, key=lambda i: (abs(below[i] - wanted), i)))
    bounds = [0, *sorted(cuts), len(distinct)]
    return [distinct[a:b] for a, b in pairwise(bounds)]


def width_parts(values: Sequence[float], bins: int) -> list[list[float]]:
    """The sorted distinct values by which of `bins` equally wide intervals holds them, empty ones left out."""
    distinct = sorted(set(values))
    least, greatest = Fraction(distinct[0]), Fraction(distinct[-1])
    parts: dict[int, list[float]] = {}
    for value in distinct:
        share = (Fraction(value) - least) / (greatest - least) if greatest > least else Fraction(0)
        parts.setdefault(min(int(share * bins), bins - 1), []).append(value)
    return list(parts.values())


def joint_probability(network: object, row: Sequence[int]) -> float:
    """The product over the vertices of the probability of its state given its parents' states."""
    result = 1.0
    for vertex, parents in enumerate(network.parents):  # type: ignore[attr-defined]
        cell = network.tables[vertex]  # type: ignore[attr-defined]
        for parent in parents:
            cell = cell[row[parent]]
        result *= float(cell[row[vertex]])
    return result


def all_rows(arities: Sequence[int]) -> list[tuple[int, ...]]:
    """Every combination of states."""
    return list(product(*(range(arity) for arity in arities)))
