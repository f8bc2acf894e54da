"""Files and data frames to integer codes."""

from .columns import state_of
from .dataset import Dataset, ReadSettings, make_frame, write, write_rows
from .read import read, read_evidence

__all__ = ["Dataset", "ReadSettings", "make_frame", "read", "read_evidence", "state_of", "write", "write_rows"]
