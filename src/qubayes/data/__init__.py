"""Files and data frames to integer codes."""

from .dataset import Dataset, ReadSettings
from .read import read
from .write import write, write_csv, write_dat

__all__ = ["Dataset", "ReadSettings", "read", "write", "write_csv", "write_dat"]
