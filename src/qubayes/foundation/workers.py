"""Where work runs: threads of this process, or an existing Dask cluster (design §9).

Work is a list of items and a function of the shared input and one item. Kernels release the GIL, so threads are
enough here.
"""

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any, TypeVar

from .. import __version__
from .errors import MissingPackageError, QubayesError, SettingError

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

_PATIENCE = 10  # seconds that a scheduler has to answer
_PATIENCE_FOR_WORKERS = 30  # seconds; a nanny needs some to put a new worker in the place of one that died
_TICK = 0.005  # seconds between two looks for a finished task; a task takes some tenths of a second
_MOST_LOSSES = 3  # times that all workers may die without one finished task in between


@dataclass(frozen=True, slots=True)
class Workers:
    """Threads of this process (all cores unless said), or a Dask cluster given by address or client."""

    threads: int | None = None
    cluster: Any = None  # "tcp://host:port" or a distributed.Client

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise SettingError(f"threads = {self.threads}; give 1 or more, or leave it out for all cores")

    @property
    def count(self) -> int:
        """Number of threads of this process that may work at once."""
        if self.threads:
            return self.threads
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(
    task: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item], workers: Workers
) -> Iterator[tuple[int, Result]]:
    """Yield (index of the item, task(shared, item)) as they finish. Closing the iterator stops what has not begun."""
    if workers.cluster is not None:
        yield from _on_cluster(task, shared, items, workers.cluster)
    elif workers.count == 1 or len(items) == 1:
        for index, item in enumerate(items):
            yield index, task(shared, item)
    else:
        yield from _on_threads(task, shared, items, workers.count)


def _on_threads(
    task: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item], threads: int
) -> Iterator[tuple[int, Result]]:
    pool = ThreadPoolExecutor(threads)
    pending: dict[Future[Result], int] = {}
    try:
        queue = iter(enumerate(items))
        for index, item in queue:
            pending[pool.submit(task, shared, item)] = index
            if len(pending) < 2 * threads:  # a short queue: results are not held while the caller is slow
                continue
            yield from _finished(pending)
        while pending:
            yield from _finished(pending)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _finished(pending: dict[Future[Result], int]) -> Iterator[tuple[int, Result]]:
    done, _ = wait(pending, return_when=FIRST_COMPLETED)
    for future in done:
        yield pending.pop(future), future.result()


def _on_cluster(
    task: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item], cluster: Any
) -> Iterator[tuple[int, Result]]:
    waiting = deque(range(len(items)))
    with _connected(cluster) as client:
        batch = _Batch(client, task, shared)
        try:
            while waiting or batch.pending:
                while waiting and batch.has_room:
                    index = waiting.popleft()
                    batch.submit(index, items[index])
                index, future, sent = batch.next()
                try:
                    result = batch.result(future)
                except CancelledError:  # the result, or the shared input, was lost with the last worker that held it
                    batch.renew(sent)
                    waiting.append(index)
                    continue
                yield index, result
        except OSError as error:  # CommClosedError is one, and so is a connection that cannot be made again
            raise _went_away(error) from error
        finally:
            batch.close()


class _Batch:
    """Tasks on a cluster over one shared input, a few at a time: results are not held while the caller is slow."""

    def __init__(self, client: Any, task: Callable[[Any, Any], Any], shared: object) -> None:
        self.pending: dict[Any, tuple[int, Any]] = {}  # future -> index of its item, shared input as it was sent
        self._client, self._task, self._shared = client, task, shared
        self._finished = _dask().as_completed(loop=client.loop)
        self._losses = 0
        self._remote = self._send()

    @property
    def has_room(self) -> bool:
        """Whether another task would be begun soon: two for each thread of the cluster."""
        threads: int = sum(self._client.nthreads().values())
        return len(self.pending) < max(2, 2 * threads)

    def submit(self, index: int, item: object) -> None:
        """Hand one item to the cluster. A worker that dies under it costs this task, which another worker repeats."""
        future = self._client.submit(self._task, self._remote, item, pure=False)
        self.pending[future] = index, self._remote
        self._finished.add(future)

    def next(self) -> tuple[int, Any, Any]:
        """(index, future, shared input as it was sent) of the next task that ended."""
        self._wait()
        future = next(self._finished)
        index, sent = self.pending.pop(future)
        return index, future, sent

    def _wait(self) -> None:
        """Return once a task has ended; raise if there has been nobody to end one for long."""
        seen = looked = time.monotonic()
        while not self._finished.has_ready():
            time.sleep(_TICK)
            now = time.monotonic()
            if now - looked > 1:
                looked = now
                seen = now if self._client.nthreads() else seen
            if now - seen > _PATIENCE_FOR_WORKERS:
                raise _no_worker()

    def result(self, future: Any) -> Any:
        """What the task returned. The cluster forgets it once the future is dropped."""
        try:
            result = future.result()
        except _dask().KilledWorker as error:
            raise QubayesError(
                "several workers of the cluster died one after the other at the same piece of work, perhaps for want "
                "of memory; give them more, or leave out --cluster"
            ) from error
        self._losses = 0
        return result

    def renew(self, sent: Any) -> None:
        """Send the shared input again, unless that was done since: all the workers that held it may have died.

        What the client says of it is no help: an input that was lost on its way counts as finished for ever.
        """
        if sent is not self._remote:
            return
        self._losses += 1
        if self._losses > _MOST_LOSSES:
            raise QubayesError(
                f"all workers of the cluster died {self._losses} times before they finished anything; look at their "
                "logs, or leave out --cluster"
            )
        self._remote = self._send()

    def close(self) -> None:
        """Call off what has not ended."""
        with suppress(Exception):  # the cluster may be gone, which is told elsewhere
            self._client.cancel([*self.pending, self._remote], force=True)

    def _send(self) -> Any:
        """The shared input on a worker, where the others fetch it; sent again if that one dies meanwhile.

        Not on all of them at once: the scheduler never ends a broadcast under which a worker dies.
        """
        for _ in range(_MOST_LOSSES):
            _wait_for_worker(self._client)
            with suppress(OSError, KeyError):  # KeyError: the scheduler looks for a worker that it no longer has
                _check_versions(self._client)
                # As a list of one: Dask would take a tuple or a dictionary apart.
                sent = self._client.scatter([self._shared], hash=False, timeout=_PATIENCE_FOR_WORKERS)
                return sent[0]
        raise QubayesError(
            f"{_MOST_LOSSES} times workers of the cluster died while their input was sent, or took too long; look at "
            "their logs, or leave out --cluster"
        )


def _wait_for_worker(client: Any) -> None:
    """Return once there is one."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_FOR_WORKERS)
    except TimeoutError as error:
        raise _no_worker() from error
    except OSError as error:
        raise _went_away(error) from error


def _no_worker() -> QubayesError:
    return QubayesError(
        f"the Dask cluster has had no worker for {_PATIENCE_FOR_WORKERS} s; start one, or leave out --cluster"
    )


def _went_away(error: OSError) -> QubayesError:
    return QubayesError(
        f"the Dask scheduler went away ({error}); run again when it is back: candidates with -o go on with --resume, "
        "learn with the same --run-dir"
    )


def _check_versions(client: Any) -> None:
    """Raise unless the cluster has this version of qubayes: a worker dies of a task that it cannot unpack."""
    found = client.run(version, "qubayes", on_error="return")
    for place, installed in found.items():
        if isinstance(installed, OSError):  # it died while it was asked
            continue
        if installed != __version__:
            what = "no qubayes" if isinstance(installed, Exception) else f"qubayes {installed}"
            raise QubayesError(f"the worker {place} has {what}; install qubayes {__version__} on the whole cluster")


@contextmanager
def _connected(cluster: Any) -> Iterator[Any]:
    """A client of the cluster; closed at the end unless it was the caller's own."""
    distributed = _dask()
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    try:
        client = distributed.Client(cluster, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise QubayesError(
            f"no Dask scheduler answers at {cluster}; start one, or leave out --cluster ({error})"
        ) from error
    for name in ("distributed", "distributed.client"):  # what matters of a lost connection is told once, in one line
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with client:
        yield client


def _dask() -> Any:
    """The package `distributed`, which is optional."""
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingPackageError("a cluster needs Dask; install it with: pip install 'qubayes[dask]'") from None
