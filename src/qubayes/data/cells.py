"""Cells that are no plain observations: missing ones, and those that an experiment set.

Both are masks of the shape (n, rows) beside the codes and numbers of a `Dataset`. The code of a
missing cell is 0, its number is NaN."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, frozen
from ..foundation.errors import DataError, option, some
from .spelling import is_missing

# what is made of missing cells that stay in the table; "filled": the cells have drawn values
Treatment: TypeAlias = Literal["rows", "impute", "filled"]
SEPARATOR = ";"  # between the names of variables that were set in the same row


class MissingCells(NamedTuple):
    """The cells of a table that had no value where it was read."""

    mask: Bools  # (n, rows)
    treatment: Treatment = "rows"
    # (n, n) sum over the rows of the covariance of the missing cells given the others; only of
    # continuous columns that are filled with expected values
    spread: Floats | None = None
    # codes of all completed tables, the first of which the data hold; only of discrete columns that
    # are filled with draws
    tables: tuple[AnyArray, ...] = ()

    def select(self, variables: Any) -> "MissingCells | None":
        """Return the cells of these variables; None if none of them is missing."""
        mask = self.mask[variables]
        spread = None if self.spread is None else frozen(self.spread[np.ix_(variables, variables)])
        tables = tuple(frozen(codes[variables]) for codes in self.tables)
        found = self._replace(mask=frozen(mask), spread=spread, tables=tables)
        return found if mask.any() else None

    def take(self, rows: Any) -> "MissingCells | None":
        """Return the cells of these rows; None if none of them is missing.

        The spread, which is known for all rows together, is shared out evenly."""
        mask = self.mask[:, rows]
        if not mask.any():
            return None
        spread = self.spread
        if spread is not None:
            spread = frozen(spread * (mask.shape[1] / max(self.mask.shape[1], 1)))
        tables = tuple(frozen(codes[:, rows]) for codes in self.tables)
        return self._replace(mask=frozen(mask), spread=spread, tables=tables)


def any_of(marks: Bools) -> Bools | None:
    """Return the marks; None if there is none."""
    return frozen(marks) if marks.any() else None


def set_by_names(names: Sequence[str], column: str, cells: Sequence[Any]) -> Bools:
    """Return (n, rows) which cells were set; each row names its variables, or none.

    >>> set_by_names(("a", "b"), "INT", ["", "b", "a;b"]).tolist()
    [[False, False, True], [False, True, True]]
    """
    place = {name: number for number, name in enumerate(names)}
    found: Bools = np.zeros((len(names), len(cells)), np.bool_)
    for row, cell in enumerate(cells):
        if is_missing(cell):
            continue
        text = str(cell).strip()
        parts = [text] if text in place else [part.strip() for part in text.split(SEPARATOR)]
        for part in filter(None, parts):
            if part not in place:
                raise DataError(
                    f"column {column!r}, row {row + 1}: {part!r} is not a variable; name those that"
                    f" were set, with {SEPARATOR!r} between them: {some(names)}"
                )
            found[place[part], row] = True
    return found


def set_by_table(names: Sequence[str], given: Mapping[str, Any] | Any, rows: int) -> Bools:
    """Return (n, rows) which cells were set, of truth values by name or as (rows, n) array."""
    if not isinstance(given, Mapping):
        found = np.asarray(given)
        if found.shape != (rows, len(names)):
            raise DataError(
                f"{option('interventions')} has the shape {found.shape};"
                f" give truth values for {rows} rows of {len(names)} variables"
            )
        return _truth(found).T
    marks: Bools = np.zeros((len(names), rows), np.bool_)
    for name, its in given.items():
        if name not in names:
            raise DataError(
                f"{option('interventions')} names {name!r}, which is not a variable;"
                f" variables are {some(names)}"
            )
        if len(its) != rows:
            raise DataError(
                f"{option('interventions')} has {len(its)} rows, and the data {rows};"
                " give a truth value for each row"
            )
        marks[list(names).index(name)] = _truth(np.asarray(its))
    return marks


def _truth(values: Any) -> Bools:
    """Return the values as truth values; raise if they are others."""
    other = [value for value in values.reshape(-1).tolist() if value not in (0, 1)]
    if other:
        raise DataError(
            f"{option('interventions')} holds {other[0]!r}, which is no truth value;"
            " give True where a variable was set, or the name of a column"
        )
    return np.asarray(values, dtype=np.bool_)


def check_interventions(names: Sequence[str], marks: Bools) -> None:
    """Raise if a variable was set in every row: nothing is known of its parents."""
    everywhere = np.flatnonzero(marks.all(axis=1)).tolist()
    if everywhere:
        name = names[everywhere[0]]
        raise DataError(
            f"{name!r} was set in all rows, so nothing tells its parents; give rows in which it was"
            f" observed, or leave it out with {option('ignore', [name])}"
        )
