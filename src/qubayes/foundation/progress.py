"""How long work reports itself: a callable that is told after each finished piece."""

from typing import NamedTuple, Protocol


class Progress(NamedTuple):
    """What a stage says of itself while it runs."""

    stage: str  # "candidates", "subsets", ...
    done: float  # in units of `total`
    total: float
    note: str = ""  # a few words, such as the best score so far


class OnProgress(Protocol):
    """Receives a report; called from the thread that called the stage."""

    def __call__(self, progress: Progress, /) -> None: ...


def silent(progress: Progress, /) -> None:
    """The receiver that ignores every report."""
