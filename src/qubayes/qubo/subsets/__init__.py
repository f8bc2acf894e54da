"""Candidate parent subsets: as few as possible whose unions of two give all candidate sets."""

from .cover import METHODS, Budget, Subsets, check_output, cover, read_subsets, write_subsets

__all__ = ["METHODS", "Budget", "Subsets", "check_output", "cover", "read_subsets", "write_subsets"]
