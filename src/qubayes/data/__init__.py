"""Files and data frames to integer codes."""

from .dataset import Dataset, ReadSettings, write, write_rows
from .read import read

__all__ = ["Dataset", "ReadSettings", "read", "write", "write_rows"]
