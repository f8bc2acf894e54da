"""Candidate parent subsets: the smallest families whose unions of two give every candidate parent set."""

from .cover import Budget, cover
from .subset_files import check_output, read_subsets, write_subsets
from .subsets import Subsets

__all__ = ["Budget", "Subsets", "check_output", "cover", "read_subsets", "write_subsets"]
