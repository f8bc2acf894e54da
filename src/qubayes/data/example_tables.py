"""`example`: sample tables that are installed with the package, to try commands and functions.

alarm: 1,000 rows drawn with seed 0 from the alarm network (37 variables). wine: the Wine data of
the UCI Machine Learning Repository (S. Aeberhard and M. Forina, 1992, doi 10.24432/C5PC7J,
CC BY 4.0), columns renamed. The folder `tables` holds both, compressed."""

from difflib import get_close_matches
from importlib.resources import as_file, files
from typing import overload

from ..foundation.errors import SettingError, some
from ..settings import ReadSettings
from .dataset import Dataset
from .read import read

EXAMPLES = {
    "alarm": "1,000 rows drawn from the alarm network, 37 variables of 2 to 4 states",
    "wine": "178 wines, their cultivar and 13 measurements (UCI repository, CC BY 4.0)",
}


@overload
def example() -> tuple[str, ...]: ...
@overload
def example(name: str, reading: ReadSettings | None = None) -> Dataset: ...
def example(
    name: str | None = None, reading: ReadSettings | None = None
) -> Dataset | tuple[str, ...]:
    """Return the sample table of this name; without a name, the names of all sample tables.

    `reading` says how the table is read, as in `read`.

    >>> example()
    ('alarm', 'wine')
    >>> example("wine").rows, example("wine", ReadSettings(bins=3)).kind
    (178, 'discrete')
    """
    if name is None:
        return tuple(EXAMPLES)
    if name not in EXAMPLES:
        close = get_close_matches(str(name), EXAMPLES, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise SettingError(
            f"no sample table is named {name!r}; {hint}sample tables are {some(EXAMPLES, 10)}"
        )
    with as_file(files(__package__) / "tables" / f"{name}.csv.gz") as path:
        return read(path, reading)
