"""A Dataset, and the files that one is written to."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, frozen
from ..foundation.environment import optional
from ..foundation.errors import DataError, FormatError, option, some
from ..foundation.files import replacing
from .cells import MissingCells, any_of

Kind = Literal["discrete", "continuous", "mixed"]
# a variable with more is an identifier or a measurement, not a discrete variable
MOST_STATES = 1000
MISSING_STATE = "missing"  # the name of missing values where they are a state
# Spellings of a missing value. "None" and "none" are not among them: many variables have a state of
# that name.
MISSING_TOKENS = frozenset({"", "NA", "N/A", "<NA>", "NaN", "nan", "NULL", "null", "?"})
# whole numbers with at most this many values are codes: `bins` for all columns leaves them as they
# are
MOST_CODES = 20
_SHOWN = 20  # variables in the text of a Dataset
_BLOCK = 1 << 14  # rows that are in memory as text


@dataclass(frozen=True)
class Dataset:
    """Rows of a table: `codes[i, row]` is the state of variable i, an index into `states[i]`.

    A *continuous* variable has no states. Its cells are in `numbers`, by its name, and its codes
    are 0. With `weights` each stored row stands for as many equal rows of the table."""

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    # (n, rows), the smallest unsigned type that holds every code; read-only
    codes: AnyArray = field(repr=False)
    # or their declaration: "declared types", "network alarm.bif", "states.json", ...
    arities_from: str = "data"
    dropped: int = 0  # rows with missing values that were left out
    # By name, the value of each state as the source has it; not for columns of texts or intervals.
    values: Mapping[str, AnyArray] = field(default_factory=dict, repr=False, compare=False)
    # By name, the cells of each continuous variable.
    numbers: Mapping[str, Floats] = field(default_factory=dict, repr=False, compare=False)
    # Cells that had no value, and (n, rows) cells that an experiment set.
    missing: MissingCells | None = field(default=None, repr=False, compare=False)
    interventions: Bools | None = field(default=None, repr=False, compare=False)
    # (stored rows,) how often each row counts, from 1
    weights: Ints | None = field(default=None, repr=False, compare=False)

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def stored_rows(self) -> int:
        """Number of rows that are stored: with weights, different ones."""
        return int(self.codes.shape[1])

    @property
    def rows(self) -> int:
        """Number of rows of the table, each as often as its weight says."""
        return self.stored_rows if self.weights is None else int(self.weights.sum())

    @property
    def arities(self) -> Ints:
        """Declared number of states of each variable."""
        return np.array([len(states) for states in self.states], dtype=np.int64)

    @property
    def kind(self) -> Kind:
        """Whether the variables are all discrete, all continuous, or mixed."""
        if not self.numbers:
            return "discrete"
        return "continuous" if len(self.numbers) == self.n else "mixed"

    @property
    def has_gaps(self) -> bool:
        """Whether cells are missing, and not filled with values."""
        return self.missing is not None and self.missing.treatment != "filled"

    @property
    def to_impute(self) -> bool:
        """Whether `learn` is to fill the missing cells."""
        return self.missing is not None and self.missing.treatment == "impute"

    @property
    def is_plain(self) -> bool:
        """Whether every family is scored on all rows of one table: no gaps, no experiments."""
        several = self.missing is not None and len(self.missing.tables) > 1
        return self.interventions is None and not self.has_gaps and not several

    @property
    def completions(self) -> tuple["Dataset", ...]:
        """The completed tables that the missing cells were filled in several times; or none."""
        if self.missing is None:
            return ()
        each = self.missing._replace(tables=())
        return tuple(replace(self, codes=codes, missing=each) for codes in self.missing.tables)

    def observed(self, family: Ints) -> Bools:
        """(rows,) whether all variables of the family have a value."""
        if self.missing is None or not self.has_gaps:
            return np.ones(self.stored_rows, np.bool_)
        found: Bools = np.logical_not(np.any(self.missing.mask[family], axis=0))
        return found

    def lacking(self, variable: int) -> Bools:
        """(rows,) whether the variable has no value."""
        return ~self.observed(np.array([variable]))

    def rows_of(self, child: int, parents: Sequence[int]) -> Bools:
        """(rows,) whether the row counts for the family: no value is missing, the child not set."""
        found = self.observed(np.array([child, *parents]))
        return found if self.interventions is None else found & ~self.interventions[child]

    @cached_property
    def told(self) -> Bools | None:
        """(n, n) whether one of two variables was set where the other was not; None if none was.

        Then the data tell the direction of an edge between them (`cpdag`)."""
        if self.interventions is None:
            return None
        _, group = np.unique(self.interventions, axis=0, return_inverse=True)
        group = group.reshape(-1)
        differs: Bools = group[:, None] != group
        return differs

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Standard deviations (n,) and correlations (n, n) of the variables, all continuous."""
        cells = np.array([self.numbers[name] for name in self.names])
        for name, its in zip(self.names, cells, strict=True):
            if its.min() == its.max():
                raise DataError(
                    f"column {name!r} is constant ({float(its[0])!r} in every row) and tells "
                    f"nothing of others; leave it out with {option('ignore', [name])}"
                )
        # so that no square overflows
        units = np.maximum(np.abs(cells).max(axis=1, keepdims=True), np.finfo(float).tiny)
        centred = cells / units
        centred -= self.mean(centred)[:, None]
        squares = self.mean(centred * centred)
        unknown = None if self.missing is None else self.missing.spread
        if unknown is not None:  # of cells that are filled with their expected values
            unknown = unknown / (units * units.T * self.rows)
            squares += np.diagonal(unknown)
        deviations = np.sqrt(squares)
        centred /= deviations[:, None]
        weighted = centred if self.weights is None else centred * self.weights
        correlations = centred @ weighted.T / self.rows
        if unknown is not None:
            correlations += unknown / np.outer(deviations, deviations)
        np.fill_diagonal(correlations, 1.0)
        return deviations * units[:, 0], correlations

    @cached_property
    def checksum(self) -> str:
        """sha256 of names, states and cells; the same data give the same from any file format."""
        digest = hashlib.sha256(repr((self.names, self.states)).encode())
        # as one array of four bytes a code they would take eight times their memory
        for codes in self.codes:
            digest.update(codes.astype("<u4"))
        for name in sorted(self.numbers):
            digest.update(repr(name).encode() + self.numbers[name].astype("<f8").tobytes())
        if self.missing is not None:
            digest.update(
                self.missing.treatment.encode() + np.packbits(self.missing.mask).tobytes()
            )
            for table in self.missing.tables:
                digest.update(table.astype("<u4").tobytes())
            if self.missing.spread is not None:
                digest.update(self.missing.spread.astype("<f8").tobytes())
        if self.interventions is not None:
            digest.update(b"interventions" + np.packbits(self.interventions).tobytes())
        if self.weights is not None:
            digest.update(b"weights" + self.weights.astype("<i8").tobytes())
        return digest.hexdigest()

    def select(self, variables: Ints) -> "Dataset":
        """Return the data of these variables, by number and in this order."""
        numbers = variables.tolist()
        names = tuple(self.names[v] for v in numbers)
        states = tuple(self.states[v] for v in numbers)
        kept = {name: cells for name, cells in self.numbers.items() if name in names}
        missing, marks = self.missing, self.interventions
        return replace(
            self,
            names=names,
            states=states,
            codes=self.codes[variables],
            numbers=kept,
            missing=None if missing is None else missing.select(variables),
            interventions=None if marks is None else any_of(marks[variables]),
        )

    def take(self, rows: Ints) -> "Dataset":
        """Return the data of these rows, by number and in this order.

        With weights, numbers are those of `repeated`, and equal rows are stored once."""
        weights = None
        if self.weights is not None:
            ends = np.cumsum(self.weights)
            stored = np.searchsorted(ends, rows, side="right")
            times = np.bincount(stored, minlength=self.stored_rows).astype(np.int64)
            rows = np.flatnonzero(times)
            weights = frozen(times[rows])
        numbers = {name: frozen(cells[rows]) for name, cells in self.numbers.items()}
        missing, marks = self.missing, self.interventions
        return replace(
            self,
            codes=frozen(self.codes[:, rows]),
            numbers=numbers,
            weights=weights,
            missing=None if missing is None else missing.take(rows),
            interventions=None if marks is None else any_of(marks[:, rows]),
        )

    def repeated(self) -> "Dataset":
        """Return the data without weights: each row as often as its weight says."""
        if self.weights is None:
            return self
        rows = np.repeat(np.arange(self.stored_rows), self.weights)
        return replace(self, weights=None).take(rows)

    def mean(self, cells: Floats) -> Any:
        """Return the mean over all rows of (..., stored rows)."""
        return np.average(cells, axis=-1, weights=self.weights)

    def with_plain_states(self) -> "Dataset":
        """Return the data with other names for states that a text file would read as missing.

        NA becomes state_NA."""

        def renamed(states: tuple[str, ...]) -> tuple[str, ...]:
            names = list(states)
            for place, state in enumerate(states):
                if state in MISSING_TOKENS:
                    names[place] = f"state_{state}" if state else "state_empty"
                    while names.count(names[place]) > 1:
                        names[place] += "_"
            return tuple(names)

        return replace(self, states=tuple(map(renamed, self.states)))

    def to_frame(self) -> Any:
        """Return a data frame: pandas if it is installed, else polars.

        Columns are categorical; continuous ones hold numbers. Rows are repeated by their weights.
        """
        if find_spec("pandas") is None:
            return self.to_polars()
        pd = import_module("pandas")
        table = self.repeated()
        columns = {}
        for v, (name, states) in enumerate(zip(table.names, table.states, strict=True)):
            if name in table.numbers:
                columns[name] = table.numbers[name].copy()
            else:
                codes = np.where(table.lacking(v), -1, table.codes[v].astype(np.int64))
                columns[name] = pd.Categorical.from_codes(codes, list(states))
        return pd.DataFrame(columns)

    def to_polars(self) -> Any:
        """Return a polars frame of enumerated columns, which keep states that do not occur.

        Continuous columns hold numbers. Rows are repeated by their weights."""
        pl = optional("polars", "a data frame", "frames")
        table = self.repeated()
        columns = []
        for v, (name, states) in enumerate(zip(table.names, table.states, strict=True)):
            if name in table.numbers:
                columns.append(pl.Series(name, table.numbers[name], nan_to_null=True))
                continue
            # the last one stands for missing values
            names = pl.Series(name, [*states, None], dtype=pl.Enum(states))
            codes = np.where(table.lacking(v), len(states), table.codes[v])
            columns.append(names.gather(pl.Series(codes.astype(np.uint32))))
        return pl.DataFrame(columns)

    def __str__(self) -> str:
        dropped = f" ({self.dropped} more with missing values were dropped)" if self.dropped else ""
        lines = [
            f"Dataset: {self.rows} rows{dropped} of {self.n} variables,"
            f" arities from {self.arities_from}{self._cells_in_words()}"
        ]
        for name, states in islice(zip(self.names, self.states, strict=True), _SHOWN):
            lines.append(f"  {name}: {self._kind_of(name, states)}")
        if self.n > _SHOWN:
            lines.append(f"  and {self.n - _SHOWN} variables more")
        return "\n".join(lines)

    def _cells_in_words(self) -> str:
        """Return how many cells are missing or were set, after a semicolon; or nothing."""
        words = ""
        if self.missing is not None:
            filled = ", filled" if self.missing.treatment == "filled" else ""
            words += f"; {100.0 * self.missing.mask.mean():.3g} % of the cells missing{filled}"
        if self.interventions is not None:
            words += f"; {100.0 * self.interventions.mean():.3g} % of the cells set by experiments"
        return words

    def _kind_of(self, name: str, states: Sequence[str]) -> str:
        """Return what the column holds, in words."""
        if name not in self.numbers:
            return f"{len(states)} states {some(states)}"
        cells = self.numbers[name]
        cells = cells[~np.isnan(cells)]
        return f"numbers from {cells.min():g} to {cells.max():g}" if len(cells) else "numbers"

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for notebooks."""

        def row(tag: str, cells: Iterable[str]) -> str:
            return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

        names, states = self.names[:_SHOWN], self.states[:_SHOWN]
        counts = row("td", (f"{len(its)} states" if its else "numbers" for its in states))
        columns = []
        for v, (name, its) in enumerate(zip(names, states, strict=True)):
            if name in self.numbers:
                shown = [f"{cell:g}" for cell in self.numbers[name][:10]]
            else:
                shown = [its[code] for code in self.codes[v, :10].tolist()]
            lacking = self.lacking(v).tolist()
            columns.append(["" if lacks else x for x, lacks in zip(shown, lacking, strict=False)])
        rows = [row("td", cells) for cells in zip(*columns, strict=True)]
        title = escape(str(self).partition("\n")[0])
        head = f"<thead>{row('th', names)}{counts}</thead>"
        return f"<p>{title}</p><table>{head}<tbody>{''.join(rows)}</tbody></table>"


def numbers_of(dataset: Dataset, name: str) -> Floats:
    """Return the cells of a column as numbers, if it is continuous or its states are numbers."""
    if name in dataset.numbers:
        return dataset.numbers[name]
    variable = dataset.names.index(name)
    values = dataset.values.get(name)
    if values is None or values.dtype.kind not in "iuf":
        raise DataError(
            f"column {name!r} has states such as {dataset.states[variable][0]!r}, and the network"
            " holds it continuous; give numbers"
        )
    numbers: Floats = values.astype(np.float64)[dataset.codes[variable]]
    return numbers


def make_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return a data frame: pandas if it is installed, else polars."""
    package = (
        import_module("pandas")
        if find_spec("pandas")
        else optional("polars", "a data frame", "frames")
    )
    return package.DataFrame(dict(columns))


def code_type(states: Sequence[Sequence[str]]) -> np.dtype[Any]:
    """Return the smallest unsigned integer type that holds every code."""
    return np.min_scalar_type(max((len(its) - 1 for its in states if its), default=0))


def write(dataset: Dataset, path: str | Path) -> None:
    """Write the data in the format of the path's ending: .csv, .tsv, .dat (GOBNILP) or .parquet.

    The columns of a Parquet file are enumerations, so that states that do not occur are kept.
    Numbers are written with all their digits, rows as often as their weights say.
    """
    ending = Path(path).suffix.lower()
    if ending == ".parquet":
        with replacing(path, binary=True) as file:
            dataset.to_polars().write_parquet(file)
        return
    if ending not in (".csv", ".tsv", ".dat"):
        raise FormatError(
            f"cannot write data to {path}; give a name that ends in .csv, .tsv, .dat or .parquet"
        )
    for name, states in zip(dataset.names, dataset.states, strict=True):
        if lost := sorted(MISSING_TOKENS.intersection(states)):
            raise FormatError(
                f"the state {lost[0]!r} of {name!r} means a missing value in a {ending} file;"
                " rename it (`Dataset.with_plain_states`), or write .parquet"
            )
    if ending == ".dat":
        if dataset.numbers:
            raise FormatError(
                f"a .dat file cannot hold the numbers of {next(iter(dataset.numbers))!r}; "
                "write .csv instead"
            )
        for text in (*dataset.names, *chain.from_iterable(dataset.states)):
            if not text or text.startswith("#") or any(c.isspace() for c in text):
                raise FormatError(
                    f"a .dat file cannot hold the name {text!r} (blanks in it, or `#` first);"
                    " write .csv instead"
                )
    with replacing(path) as file:
        write_rows(dataset, file, {".csv": ",", ".tsv": "\t", ".dat": " "}[ending])


def write_rows(dataset: Dataset, file: IO[Any], separator: str = ",") -> None:
    """Write a header and the state names and numbers of each row to an open text file.

    If blanks separate, the numbers of states follow the header."""
    dataset = dataset.repeated()

    def field(text: str) -> str:
        has_signs = any(sign in text for sign in ('"', "\r", "\n", separator))
        if text and text == text.strip() and not has_signs:
            return text
        return text if separator == " " else '"' + text.replace('"', '""') + '"'

    file.write(separator.join(map(field, dataset.names)) + "\n")
    if separator == " ":
        file.write(" ".join(map(str, dataset.arities)) + "\n")
    if dataset.has_gaps and separator == " ":
        raise FormatError("a .dat file cannot hold missing cells; write .csv instead")
    fields = [
        np.array([field(state) for state in states], dtype=object) for states in dataset.states
    ]
    for start in range(0, dataset.rows, _BLOCK):
        rows = slice(start, start + _BLOCK)
        columns = [_texts(dataset, v, rows, fields[v]) for v in range(dataset.n)]
        file.write("".join(separator.join(row) + "\n" for row in zip(*columns, strict=True)))


def _texts(dataset: Dataset, variable: int, rows: slice, states: AnyArray) -> list[str]:
    """Return the text of each cell of a variable in some rows; nothing for a missing one."""
    name = dataset.names[variable]
    if name in dataset.numbers:
        cells = [*map(repr, dataset.numbers[name][rows].tolist())]
    else:
        cells = states[dataset.codes[variable, rows]].tolist()
    for row in np.flatnonzero(dataset.lacking(variable)[rows]).tolist():
        cells[row] = ""
    return cells
