"""The paper's instances and tables."""

from .instances import instance

__all__ = ["instance"]
