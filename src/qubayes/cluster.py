"""Where work runs: threads of this process, or an existing Dask cluster (design §9).

Work is a list of items and a function of the shared input and one item. Kernels release the GIL, so threads are enough here.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import MissingPackageError, QubayesError, SettingError

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")


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
        return self.threads or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else self.threads or os.cpu_count() or 1


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
    client, owned = _client(cluster)
    try:
        remote = client.scatter(shared, broadcast=True, hash=False)
        futures = {
            client.submit(task, remote, item, pure=False, retries=3): index for index, item in enumerate(items)
        }
        from distributed import as_completed

        for future, result in as_completed(futures, with_results=True):
            yield futures[future], result
            future.release()
    finally:
        if owned:
            client.close()


def _client(cluster: Any) -> tuple[Any, bool]:
    """A client of the cluster, and whether it is ours to close."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingPackageError("a cluster needs Dask; install it with: pip install 'qubayes[dask]'") from None
    if isinstance(cluster, Client):
        return cluster, False
    try:
        return Client(cluster, timeout=10, set_as_default=False), True
    except (OSError, ValueError) as error:
        raise QubayesError(f"no Dask scheduler answers at {cluster}; start one, or leave out --cluster ({error})") from error
