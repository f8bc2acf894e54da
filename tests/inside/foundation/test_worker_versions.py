"""Workers of a cluster that lack the package or are lost."""

from contextlib import nullcontext

import pytest
from distributed.comm import CommClosedError

from qubayes import QubayesError
from qubayes.foundation import workers as cluster_module
from qubayes.foundation.workers import Workers, _check_versions


class Answers:
    """Stands for a cluster of one worker, which gives this answer."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def nthreads(self) -> dict[str, int]:
        return {"tcp://127.0.0.1:1": 1}

    def run(self, *arguments: object, **more: object) -> dict[str, object]:
        return {"tcp://127.0.0.1:1": self.answer}


def test_a_worker_without_qubayes():
    with pytest.raises(QubayesError, match="has no qubayes"):
        _check_versions(Answers(ModuleNotFoundError("qubayes")))


class Closed(Answers):
    """Stands for a cluster whose scheduler is restarted while its workers are asked for their version."""

    def __init__(self) -> None:
        super().__init__(None)

    def run(self, *arguments: object, **more: object) -> dict[str, object]:
        raise CommClosedError("stream is closed")


def test_a_scheduler_that_is_lost_between_tasks_is_told(monkeypatch):
    monkeypatch.setattr(cluster_module, "_client", lambda _: nullcontext(Closed()))
    with pytest.raises(
        QubayesError, match=r"the connection to the Dask scheduler was lost .*run again"
    ):
        Workers(cluster="tcp://127.0.0.1:1").connected().__enter__()
