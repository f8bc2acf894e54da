"""Stage 4: the smallest families whose pairwise unions give every candidate parent set."""

from .cover import Budget, cover
from .subset_files import read_subsets, write_subsets
from .subsets import Subsets

__all__ = ["Budget", "Subsets", "cover", "read_subsets", "write_subsets"]
