"""Files of a Dataset that other programs read."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..foundation.errors import FormatError
from ..foundation.files import replacing
from .dataset import Dataset
from .frames import check_polars

_BLOCK = 1 << 14  # rows that are in memory as text


def write(dataset: Dataset, path: str | Path) -> None:
    """Write the data in the format of the path's ending: .csv, .tsv, .dat (GOBNILP) or .parquet."""
    ending = Path(path).suffix.lower()
    if ending == ".dat":
        write_dat(dataset, path)
    elif ending == ".parquet":
        write_parquet(dataset, path)
    elif ending in (".csv", ".tsv"):
        write_csv(dataset, path)
    else:
        raise FormatError(f"cannot write data to {path}; give a name that ends in .csv, .tsv, .dat or .parquet")


def write_csv(dataset: Dataset, path: str | Path) -> None:
    """Write a header and the state names of each row; tabs between if the path ends in .tsv."""
    with replacing(path) as file:
        write_rows(dataset, file, "\t" if Path(path).suffix.lower() == ".tsv" else ",")


def write_rows(dataset: Dataset, file: IO[Any], separator: str = ",") -> None:
    """Write a header and the state names of each row to an open text file."""
    file.write(separator.join(_quoted(name, separator) for name in dataset.names) + "\n")
    fields = [[_quoted(state, separator) for state in states] for states in dataset.states]
    file.writelines(_lines(dataset, fields, separator))


def write_dat(dataset: Dataset, path: str | Path) -> None:
    """Write a GOBNILP table: names, numbers of states, rows of state names."""
    for text in (*dataset.names, *(state for states in dataset.states for state in states)):
        if not text or text.startswith("#") or any(c.isspace() for c in text):
            raise FormatError(
                f"a .dat file cannot hold the name {text!r} (blanks in it, or `#` first); write .csv instead"
            )
    with replacing(path) as file:
        file.write(" ".join(dataset.names) + "\n")
        file.write(" ".join(str(len(states)) for states in dataset.states) + "\n")
        file.writelines(_lines(dataset, [list(states) for states in dataset.states], " "))


def write_parquet(dataset: Dataset, path: str | Path) -> None:
    """Write a Parquet file of enumerated columns: all declared states are kept."""
    check_polars("a file in the Parquet format")
    import polars as pl

    columns = []
    for name, states, codes in zip(dataset.names, dataset.states, dataset.codes, strict=True):
        names = pl.Series(name, states, dtype=pl.Enum(states))
        columns.append(names.gather(pl.Series(codes.astype(np.uint32))))
    with replacing(path, binary=True) as file:
        pl.DataFrame(columns).write_parquet(file)


def _lines(dataset: Dataset, fields: list[list[str]], separator: str) -> Iterator[str]:
    """Yield the rows as lines, field `fields[i][code]` for variable i."""
    texts = [np.array(its, dtype=object) for its in fields]
    for start in range(0, dataset.rows, _BLOCK):
        columns = [
            its[codes].tolist() for its, codes in zip(texts, dataset.codes[:, start : start + _BLOCK], strict=True)
        ]
        yield "".join(separator.join(row) + "\n" for row in zip(*columns, strict=True))


def _quoted(text: str, separator: str) -> str:
    """Return the text as a field, in quotes if it needs them."""
    if text and text == text.strip() and not any(sign in text for sign in ('"', "\r", "\n", separator)):
        return text
    return '"' + text.replace('"', '""') + '"'
