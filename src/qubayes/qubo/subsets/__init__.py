"""Candidate parent subsets: as few sets as possible whose unions of two give every candidate parent set."""

from .cover import METHODS, Budget, Subsets, check_output, cover, read_subsets, write_subsets

__all__ = ["METHODS", "Budget", "Subsets", "check_output", "cover", "read_subsets", "write_subsets"]
