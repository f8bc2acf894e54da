"""Parallel work: on threads of this process, or on an existing Dask cluster.

Work is a list of items and a function of a shared input and one item. Kernels release the GIL, so
threads suffice on one machine. On a cluster the shared input is sent once; each task takes its item
and brings its result back. Work whose `Workers` have a `stop` can be interrupted: `run` asks it
while it waits, and raises `Stopped` once it is true."""

import logging
import math
import os
import socket
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, TypeVar

from .. import __version__
from .environment import optional
from .errors import QubayesError, SettingError, option

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

_ASK_EVERY = 0.05  # seconds between two questions to `stop`
_PATIENCE = 10  # seconds for a scheduler to answer
_PATIENCE_FOR_WORKERS = 30  # seconds for the first worker to come


class Stopped(Exception):  # noqa: N818 - it says that nothing went wrong
    """The work of `run` is given up; the caller that set `Workers.stop` catches this."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Threads of this process (by default one for each core), or a Dask cluster."""

    threads: int | None = None
    cluster: Any = None  # "tcp://host:port" or a distributed.Client
    # once it is true, work is given up; it is asked in this process, also for a cluster
    stop: Callable[[], bool] | None = field(default=None, repr=False, compare=False)

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
    def here(self) -> "Workers":
        """The threads of this process alone, for work that is too small for a cluster."""
        return replace(self, cluster=None)

    def until(self, stop: Callable[[], bool] | None) -> "Workers":
        """Return the same workers; `run` gives up their work once `stop` is true."""
        return replace(self, stop=stop)

    def check(self) -> None:
        """Raise `Stopped` if the work is to be given up."""
        if self.stop is not None and self.stop():
            raise Stopped

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
    """Yield (index of the item, task(shared, item)) as tasks finish.

    Closing the iterator cancels the tasks that are not begun, and so does `workers.stop`: this
    raises `Stopped` once it is true."""
    if workers.cluster is not None:
        with workers.connected() as joined:
            yield from _run_on_cluster(task, shared, items, joined)
        return
    if workers.count == 1 or len(items) == 1:
        for index, item in enumerate(items):
            workers.check()
            yield index, task(shared, item)
        return
    pool = ThreadPoolExecutor(workers.count)
    pending: dict[Future[Result], int] = {}
    begun = 0
    timeout = None if workers.stop is None else _ASK_EVERY
    try:
        while begun < len(items) or pending:
            workers.check()
            # few: results do not pile up
            while begun < len(items) and len(pending) < 2 * workers.count:
                pending[pool.submit(task, shared, items[begun])] = begun
                begun += 1
            done, _ = wait(pending, timeout, FIRST_COMPLETED)
            for future in done:
                yield pending.pop(future), future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_on_cluster(
    task: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item], workers: Workers
) -> Iterator[tuple[int, Result]]:
    """Yield what `run` yields. Dask repeats the tasks of a worker that dies."""
    client = workers.cluster
    finished = _distributed().as_completed(loop=client.loop)
    pending: dict[Any, int] = {}  # future -> index of its item
    begun = 0
    remote = None
    try:
        with _scheduler_needed():
            remote = _send(shared, client)
            threads = _Threads(client)
            while begun < len(items) or pending:
                workers.check()
                # Few are submitted: results do not pile up while the caller is slow.
                while begun < len(items) and len(pending) < max(2, 2 * threads.count):
                    future = client.submit(task, remote, items[begun], pure=False)
                    pending[future] = begun
                    finished.add(future)
                    begun += 1
                while workers.stop is not None and not finished.has_ready():
                    workers.check()
                    time.sleep(_ASK_EVERY)
                future = next(finished)
                yield pending.pop(future), _result(future)
    finally:
        with suppress(Exception):  # the cluster may be lost, which is reported elsewhere
            client.cancel([*pending, remote], force=True)


class _Threads:
    """Threads of a cluster, asked for once a second: that takes as long as submitting a task."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._count = 0
        self._asked = -math.inf

    @property
    def count(self) -> int:
        """Threads of all workers that it has now."""
        now = time.monotonic()
        if now - self._asked > 1:
            self._count = sum(self._client.nthreads().values())
            self._asked = now
        return self._count


def _send(shared: object, client: Any) -> Any:
    """Return the shared input on all workers, which have this version of qubayes."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_FOR_WORKERS)
    except TimeoutError as error:
        raise _no_worker() from error
    _check_versions(client)
    try:
        # In a list: Dask would take a tuple or a dictionary apart.
        return client.scatter([shared], hash=False, broadcast=True)[0]
    except KeyError as error:  # the scheduler looks for a worker that has just died
        raise _workers_died() from error
    except OSError as error:  # of the connection to a worker, or to the scheduler
        if client.status != "running":
            raise
        raise _workers_died() from error


def _result(future: Any) -> Any:
    """Return the result of a task. The cluster forgets it once the future is dropped."""
    try:
        return future.result()
    except (CancelledError, _distributed().KilledWorker) as error:
        if future.client.status != "running":
            raise _scheduler_lost(OSError("all tasks were cancelled")) from error
        raise _workers_died() from error


def _workers_died() -> QubayesError:
    return QubayesError(
        "workers of the cluster died, perhaps for want of memory: give them more, and run again "
        f"with the same {option('run_dir')}, or leave out {option('cluster')}"
    )


def _no_worker() -> QubayesError:
    return QubayesError(
        f"the Dask cluster has had no worker for {_PATIENCE_FOR_WORKERS} s; "
        f"start one, or leave out {option('cluster')}"
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
        f"the connection to the Dask scheduler was lost ({error}); when it is back, run again: "
        f"candidates with {option('resume')}, learn with the same {option('run_dir')}"
    )


def _check_versions(client: Any) -> None:
    """Raise unless all workers have this version of qubayes.

    A worker dies of a task that it cannot unpack."""
    for place, installed in client.run(version, "qubayes", on_error="return").items():
        if isinstance(installed, OSError):
            raise _workers_died() from installed
        if installed != __version__:
            found = "no qubayes" if isinstance(installed, Exception) else f"qubayes {installed}"
            raise QubayesError(
                f"the worker {place} has {found}; install qubayes {__version__} on the whole "
                "cluster"
            )


@contextmanager
def _client(cluster: Any) -> Iterator[Any]:
    """Yield a client of the cluster, closed at the end."""
    distributed = _distributed()
    try:
        _check_address(cluster)
        client = distributed.Client(cluster, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise QubayesError(
            f"no Dask scheduler answers at {cluster}; "
            f"start one, or leave out {option('cluster')} ({error})"
        ) from error
    # a lost connection is reported once, by our error
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with client:
        yield client


def _check_address(cluster: Any) -> None:
    """Raise an OSError or a ValueError if nothing listens there; Dask would retry for long."""
    addresses = _distributed().comm
    scheme, place = addresses.parse_address(cluster) if isinstance(cluster, str) else ("", "")
    if scheme in ("tcp", "tls"):
        socket.create_connection(addresses.parse_host_port(place), timeout=_PATIENCE).close()


def _distributed() -> Any:
    return optional("distributed", "a cluster", "dask")
