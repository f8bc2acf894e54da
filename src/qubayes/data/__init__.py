"""Stage 1: files and data frames to integer codes."""

from .dataset import Dataset
from .read import read
from .settings import ReadSettings
from .write import write, write_csv, write_dat

__all__ = ["Dataset", "ReadSettings", "read", "write", "write_csv", "write_dat"]
