"""`aligned`: the rows of a summary, as commands print them."""

from collections.abc import Sequence


def aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return the rows as lines: names on the left, values in one column.

    >>> print("\\n".join(aligned([("network", "3 variables"), ("time", "0.10 s")])))
      network   3 variables
      time      0.10 s
    """
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:{width}}   {value}".rstrip() for name, value in rows]


def counted(number: int, thing: str) -> str:
    """Return "1 edge" or "2,000 edges"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"
