"""Tables of data: `read` makes a `Dataset` of a file or a data frame."""

from ..settings import ReadSettings
from .cells import MissingCells
from .columns import ADVISED_BINS, code_of, state_of, values_of
from .dataset import MOST_CODES, Dataset, code_type, make_frame, numbers_of, write, write_rows
from .example_tables import EXAMPLES, example
from .read import column_like, read, read_evidence, read_number_evidence
from .rows import have_many_equal
from .spelling import is_missing

__all__ = [
    "ADVISED_BINS",
    "EXAMPLES",
    "MOST_CODES",
    "Dataset",
    "MissingCells",
    "ReadSettings",
    "code_of",
    "code_type",
    "column_like",
    "example",
    "have_many_equal",
    "is_missing",
    "make_frame",
    "numbers_of",
    "read",
    "read_evidence",
    "read_number_evidence",
    "state_of",
    "values_of",
    "write",
    "write_rows",
]
