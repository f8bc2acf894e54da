"""Parallel work: on threads of this process, or on an existing Dask cluster.

Work is a list of items and a function of a shared input and one item. Kernels release the GIL, so
threads suffice on one machine. On a cluster the shared input is sent once; each task takes its item
and brings its result back."""

import logging
import math
import os
import socket
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from .. import __version__
from .environment import optional
from .errors import QubayesError, SettingError, option

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

_PATIENCE = 10  # seconds for a scheduler to answer
# seconds without any worker; a nanny needs some of them to replace one that died
_PATIENCE_FOR_WORKERS = 30
_TICK = 0.005  # seconds between two looks for a finished task; a task takes some tenths of a second
_MOST_LOSSES = 3  # times that all workers may die without a finished task in between
# client -> workers that have this version of qubayes
_checked: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Workers:
    """Threads of this process (by default one for each core), or a Dask cluster."""

    threads: int | None = None
    cluster: Any = None  # "tcp://host:port" or a distributed.Client

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise SettingError(
                f"threads = {self.threads}; give 1 or more, or leave it out for all cores"
            )

    @property
    def count(self) -> int:
        """Number of threads of this process."""
        if self.threads:
            return self.threads
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )

    @property
    def slots(self) -> int:
        """Number of tasks at once: threads of this process, or of all workers of the cluster it is connected to."""
        if self.cluster is None:
            return self.count
        with _scheduler_needed():
            threads: int = sum(self.cluster.nthreads().values())
        return max(1, threads)

    @property
    def here(self) -> "Workers":
        """The threads of this process alone, for work that is too small for a cluster."""
        return Workers(self.threads)

    def everywhere(self, function: Callable[[], Any]) -> None:
        """Call the function once in each process of the cluster it is connected to; faults are left to later tasks."""
        with _scheduler_needed():
            self.cluster.run(function, on_error="ignore")

    @contextmanager
    def connected(self) -> Iterator["Workers"]:
        """Yield these workers with one connection to the cluster for all work inside the block.

        It is closed at the end, unless the cluster is a client of the caller. Raises if no
        scheduler answers, or if a worker has another version of qubayes."""
        if self.cluster is None or isinstance(self.cluster, _distributed().Client):
            yield self
            return
        with _client(self.cluster) as client:
            with _scheduler_needed():
                _check_versions(client)
            yield replace(self, cluster=client)


def run(
    task: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item], workers: Workers
) -> Generator[tuple[int, Result], None, None]:
    """Yield (index of the item, task(shared, item)) as tasks finish. Closing the iterator cancels those not begun.

    The list of items may grow while the iterator is read: the tasks of later items share the same
    input."""
    if workers.cluster is not None:
        with workers.connected() as joined:
            yield from _run_on_cluster(task, shared, items, joined.cluster)
        return
    if workers.count == 1 or len(items) == 1:
        for index, item in enumerate(items):
            yield index, task(shared, item)
        return
    pool, begun = ThreadPoolExecutor(workers.count), 0
    pending: dict[Future[Result], int] = {}
    try:
        while begun < len(items) or pending:
            # few: results do not pile up
            while begun < len(items) and len(pending) < 2 * workers.count:
                pending[pool.submit(task, shared, items[begun])] = begun
                begun += 1
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield pending.pop(future), future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_on_cluster(
    task: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item], client: Any
) -> Iterator[tuple[int, Result]]:
    begun, again = 0, list[int]()  # items to repeat
    batch = _Batch(client, task, shared)
    try:
        with _scheduler_needed():
            while begun < len(items) or again or batch.pending:
                while (begun < len(items) or again) and batch.has_room:
                    index = again.pop() if again else begun
                    begun += index == begun
                    batch.submit(index, items[index])
                index, future, sent = batch.next()
                try:
                    result = batch.result(future)
                # the result, or the shared input, was lost with the last worker that held it
                except CancelledError:
                    batch.renew(sent)
                    again.append(index)
                    continue
                yield index, result
    finally:
        batch.close()


class _Batch:
    """Tasks on a cluster over one shared input, a few at a time: results do not pile up while the caller is slow."""

    def __init__(self, client: Any, task: Callable[[Any, Any], Any], shared: object) -> None:
        # future -> index of its item, shared input that it was given
        self.pending: dict[Any, tuple[int, Any]] = {}
        self._client, self._task, self._shared = client, task, shared
        self._finished = _distributed().as_completed(loop=client.loop)
        self._losses = 0
        self._remote = self._send()
        self._count, self._counted = 0, -math.inf

    @property
    def has_room(self) -> bool:
        """True if there are fewer than two tasks for each thread of the cluster."""
        return len(self.pending) < max(2, 2 * self._threads)

    @property
    def _threads(self) -> int:
        """Threads of the cluster: asked for once in a second, because it takes as long as the submission of a task."""
        now = time.monotonic()
        if now - self._counted > 1:
            self._count, self._counted = sum(self._client.nthreads().values()), now
        return self._count

    def submit(self, index: int, item: object) -> None:
        """Submit the task of one item. If its worker dies, another worker repeats the task."""
        future = self._client.submit(self._task, self._remote, item, pure=False)
        self.pending[future] = index, self._remote
        self._finished.add(future)

    def next(self) -> tuple[int, Any, Any]:
        """Return (index, future, shared input) of the next task that ends; raise if all workers are gone for long."""
        seen = time.monotonic()
        while not self._finished.has_ready():
            time.sleep(_TICK)
            seen = time.monotonic() if self._threads else seen
            if time.monotonic() - seen > _PATIENCE_FOR_WORKERS:
                raise _no_worker()
        future = next(self._finished)
        index, sent = self.pending.pop(future)
        return index, future, sent

    def result(self, future: Any) -> Any:
        """Return the result of a task. The cluster forgets it once the future is dropped."""
        try:
            result = future.result()
        except _distributed().KilledWorker as error:
            raise QubayesError(
                "several workers of the cluster died one after the other in the same task, perhaps for want of memory; "
                f"give them more, or leave out {option('cluster')}"
            ) from error
        self._losses = 0
        return result

    def renew(self, sent: Any) -> None:
        """Send the shared input again unless that was done since: all workers that held it may have died.

        The client cannot tell: it takes an input that was lost on its way for finished.
        """
        if sent is not self._remote:
            return
        self._losses += 1
        if self._losses > _MOST_LOSSES:
            raise QubayesError(
                f"all workers of the cluster died {self._losses} times before they finished a task; look at their "
                f"logs, or leave out {option('cluster')}"
            )
        self._remote = self._send()

    def close(self) -> None:
        """Cancel the tasks that have not ended."""
        with suppress(Exception):  # the cluster may be lost, which is reported elsewhere
            self._client.cancel([*self.pending, self._remote], force=True)

    def _send(self) -> Any:
        """Return the shared input on a worker, where the others fetch it; sent again if that worker dies meanwhile.

        It is not broadcast: the scheduler never ends a broadcast during which a worker dies.
        """
        for _ in range(_MOST_LOSSES):
            try:
                self._client.wait_for_workers(1, timeout=_PATIENCE_FOR_WORKERS)
            except TimeoutError as error:
                raise _no_worker() from error
            except OSError as error:
                raise _scheduler_lost(error) from error
            # KeyError: the scheduler looks for a worker that has died
            with suppress(OSError, KeyError):
                _check_versions(self._client)
                # In a list: Dask would take a tuple or a dictionary apart.
                sent = self._client.scatter(
                    [self._shared], hash=False, timeout=_PATIENCE_FOR_WORKERS
                )
                return sent[0]
        raise QubayesError(
            f"{_MOST_LOSSES} times workers of the cluster died while their input was sent, or took too long; look at "
            f"their logs, or leave out {option('cluster')}"
        )


def _no_worker() -> QubayesError:
    return QubayesError(
        f"the Dask cluster has had no worker for {_PATIENCE_FOR_WORKERS} s; start one, or leave out {option('cluster')}"
    )


@contextmanager
def _scheduler_needed() -> Iterator[None]:
    """Turn a lost connection inside the block into the error that says so."""
    try:
        yield
    # CommClosedError is one, and so is a connection that cannot be made again
    except OSError as error:
        raise _scheduler_lost(error) from error


def _scheduler_lost(error: OSError) -> QubayesError:
    return QubayesError(
        f"the connection to the Dask scheduler was lost ({error}); when it is back, run again: candidates with "
        f"{option('resume')}, learn with the same {option('run_dir')}"
    )


def _check_versions(client: Any) -> None:
    """Raise unless all workers have this version of qubayes: a worker dies of a task that it cannot unpack.

    Each worker is asked once.
    """
    known = _checked.setdefault(client, set())
    new = [place for place in client.nthreads() if place not in known]
    for place, installed in (
        client.run(version, "qubayes", workers=new, on_error="return").items() if new else ()
    ):
        if isinstance(installed, OSError):  # the worker has just died
            continue
        if installed != __version__:
            found = "no qubayes" if isinstance(installed, Exception) else f"qubayes {installed}"
            raise QubayesError(
                f"the worker {place} has {found}; install qubayes {__version__} on the whole cluster"
            )
        known.add(place)


@contextmanager
def _client(cluster: Any) -> Iterator[Any]:
    """Yield a client of the cluster, closed at the end."""
    distributed = _distributed()
    try:
        _check_address(cluster)
        client = distributed.Client(cluster, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise QubayesError(
            f"no Dask scheduler answers at {cluster}; start one, or leave out {option('cluster')} ({error})"
        ) from error
    # a lost connection is reported once, by our error
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with client:
        yield client


def _check_address(cluster: Any) -> None:
    """Raise an OSError or a ValueError if nothing listens at the address; Dask would try again for many seconds."""
    addresses = _distributed().comm
    scheme, place = addresses.parse_address(cluster) if isinstance(cluster, str) else ("", "")
    if scheme in ("tcp", "tls"):
        socket.create_connection(addresses.parse_host_port(place), timeout=_PATIENCE).close()


def _distributed() -> Any:
    return optional("distributed", "a cluster", "dask")
