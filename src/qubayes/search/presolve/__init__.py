"""Between candidates and subsets: fewer candidate sets with the same optimum (design §6, §7)."""

from .presolve import Presolved, presolve

__all__ = ["Presolved", "presolve"]
