"""Stage 1: files and data frames to integer codes."""

from .dataset import Dataset

__all__ = ["Dataset"]
