"""`compiled_ahead`: compiles kernels of the search in a second process, for the first `learn`.

Compiling takes most of the first run on a machine. The kernels that the search needs do not depend
on the data, so another core compiles them while the first stages run; `foundation/jit.py` lets the
two processes share what they compiled. The second process ends with the block, and by itself when
its input ends, which happens if the first process is killed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from ..candidates.growing import GrownSets
from ..foundation.jit import is_compiled
from .exact import Exact
from .exact.relaxation import fill_lagrangian_costs
from .orders.anneal import Anneal
from .orders.insertions import anneal_order

_PROGRAM = "from qubayes.search.ahead import compile_kernels; compile_kernels()"


@contextmanager
def compiled_ahead(*, annealing: bool) -> Iterator[None]:
    """Compile kernels of the search during the block, unless they are on disk already.

    These are the kernels of the proof; with `annealing` first those that keep grown sets and those
    of the annealer."""
    needed = anneal_order if annealing else fill_lagrangian_costs
    if is_compiled(needed):
        yield
        return
    process = _started("annealing" if annealing else "proof")
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.communicate()


def _started(first: str) -> subprocess.Popen[bytes] | None:
    """Start the second process; return None where the system refuses."""
    path = os.pathsep.join(filter(None, sys.path))
    with suppress(OSError):
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, first],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
    return None


def compile_kernels() -> None:
    """Be the second process: compile the kernels in the order in which `learn` needs them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    threading.Thread(target=_end_with_input, daemon=True).start()
    if sys.argv[1:] == ["annealing"]:
        sets = GrownSets(child=0, required=(), most=1, barred=(), priors=None)
        sets.add(np.zeros(1, np.uint64), np.zeros((1, 1)), 1)
        Anneal().prepare()
    Exact().prepare()


def _end_with_input() -> None:
    """End this process when the first one has ended."""
    os.read(0, 1)  # returns at the end of the input: nobody writes
    os._exit(0)
