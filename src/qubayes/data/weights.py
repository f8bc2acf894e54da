"""How often each row of a table counts: a column of the table, or numbers that are given."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints, frozen
from ..foundation.errors import DataError, option, some
from .columns import Column, cells_of, missing_values
from .dataset import Dataset

MOST_ROWS = 2**31 - 1  # counts are 32-bit integers


def take_weights(
    columns: list[Column], weights: str | Sequence[int] | None
) -> tuple[list[Column], Ints | None]:
    """Return the columns without that of the weights, and how often each row counts."""
    if weights is None:
        return columns, None
    if isinstance(weights, str):
        cells = _cells_of_column(columns, weights)
        columns = [column for column in columns if column.name != weights]
    else:
        cells = np.array(weights, np.float64)
        rows = len(columns[0].codes)
        if len(cells) != rows:
            raise DataError(f"{len(cells)} weights and {rows} rows; give one weight for each row")
    total = float(cells.sum())
    if total == 0.0:
        raise DataError("all weights are 0 (zero); give one row or more that counts")
    if total > MOST_ROWS:
        raise DataError(
            f"the weights sum to {total:.4g}; at most {MOST_ROWS} rows can be counted: divide"
            " the weights"
        )
    return columns, cells.astype(np.int64)


def rows_left(lost: Bools | None, weights: Ints | None) -> Bools | None:
    """Return which rows are read: not lost, and with a weight; None for all."""
    left = None if lost is None else ~lost
    if weights is not None and not weights.all():
        left = weights > 0 if left is None else left & (weights > 0)
    if left is not None and not left.any():
        raise DataError("no row without missing values counts; give weights above 0")
    return left


def with_weights(dataset: Dataset, weights: Ints | None) -> Dataset:
    """Return the data with these weights.

    Rows with missing cells, or with cells that were set, are repeated instead."""
    if weights is None:
        return dataset
    weighted = replace(dataset, weights=frozen(weights))
    plain = dataset.missing is None and dataset.interventions is None
    return weighted if plain else weighted.repeated()


def _cells_of_column(columns: list[Column], name: str) -> Floats:
    """Return the numbers of the column of this name; raise unless they are whole, from 0."""
    found = next((column for column in columns if column.name == name), None)
    if found is None:
        names = [column.name for column in columns]
        raise DataError(f"no column is named {name!r}; columns are {some(names, 10)}")
    wrong = f"column {name!r} is to say how often each row counts ({option('weights', name)})"
    right = "give whole numbers from 0"
    if missing_values(found)[found.codes].any():
        raise DataError(f"{wrong}, and has missing values; {right}")
    try:
        cells = cells_of(found)
    except DataError:
        raise DataError(f"{wrong}, and is no column of numbers; {right}") from None
    bad = np.flatnonzero(~((cells >= 0.0) & (cells == np.floor(cells))))
    if len(bad):
        row = int(bad[0])
        raise DataError(f"{wrong}, and has {float(cells[row])!r} in row {row + 1}; {right}")
    return cells
