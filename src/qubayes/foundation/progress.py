"""Progress reports of long work: a callable that is called after each finished piece."""

from typing import NamedTuple, Protocol


class Progress(NamedTuple):
    """The progress of a stage."""

    stage: str  # "candidates", "subsets", ...
    done: float  # in units of `total`
    total: float
    note: str = ""  # a few words, such as the best score so far


class OnProgress(Protocol):
    """Receives a report; called from the thread that called the stage."""

    def __call__(self, progress: Progress, /) -> None: ...


def silent(progress: Progress, /) -> None:
    """The receiver that ignores every report."""
