"""Stage 4: the smallest families whose pairwise unions give every candidate parent set."""

from .subsets import Subsets

__all__ = ["Subsets"]
