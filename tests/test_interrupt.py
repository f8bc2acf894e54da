"""Ctrl-C inside and outside blocks that stop on it."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from qubayes.foundation.progress import raising, stopping

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_interrupt_sets_the_flag_and_the_second_raises():
    stop, before = np.zeros(1, np.bool_), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), stopping(stop):
        interrupt()
        assert stop[0]
        interrupt()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_stops_the_blocks_around_it():
    outer, inner = np.zeros(1, np.bool_), np.zeros(1, np.bool_)
    with stopping(outer):
        with stopping(inner):
            interrupt()
        assert outer[0] and inner[0]
    again = np.zeros(1, np.bool_)
    with stopping(again):
        pass
    assert not again[0]
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_an_interrupt_before_a_block_is_not_forgotten():
    outer, inner = np.zeros(1, np.bool_), np.zeros(1, np.bool_)
    with stopping(outer):
        interrupt()
        with stopping(inner):
            assert inner[0]
        with pytest.raises(KeyboardInterrupt), raising():
            pytest.fail("the block began")


def test_a_block_inside_may_raise():
    outer, before = np.zeros(1, np.bool_), signal.getsignal(signal.SIGINT)
    with stopping(outer):
        with pytest.raises(KeyboardInterrupt), raising():
            interrupt()
        assert not outer[0]
        interrupt()
        assert outer[0]
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_leave_the_handler_alone():
    handlers = []

    def run() -> None:
        with stopping(np.zeros(1, np.bool_)), raising():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


EARLY = {
    "in the first import of the command line": (
        "typer.py",
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)",
    ),
    "where an import takes the interrupt for its own": (
        "typer.py",
        "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept BaseException as error:\n"
        "    raise ImportError('cannot be loaded') from error",
    ),
}


@pytest.mark.parametrize("kind", EARLY)
def test_an_interrupt_while_libraries_are_loaded_is_one_line(kind, tmp_path):
    name, text = EARLY[kind]
    (tmp_path / name).write_text(text)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    command = [sys.executable, "-m", "qubayes", "--help"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path}
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "qubayes: interrupted\n")


def test_an_interrupt_at_any_time_is_no_traceback(tmp_path):
    """From the first statement of ours on; before it, Python itself is being loaded."""
    script = "import sys; from qubayes.__main__ import main; print('begun', file=sys.stderr, flush=True); main()"
    for delay in (0.0, 0.05, 0.15, 0.3, 0.6):
        command = [sys.executable, "-c", script, "plan", "--help"]
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None and process.stderr.readline() == "begun\n"
        time.sleep(delay + 0.002)
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
        assert (process.returncode, rest) in (
            (130, "qubayes: interrupted\n"),
            (0, ""),
            (-signal.SIGINT, ""),
        )


def test_where_interrupts_are_ignored_they_stay_ignored():
    script = (
        "import signal; signal.signal(2, signal.SIG_IGN); from qubayes.__main__ import main; main()"
    )
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.argv = ['qubayes', '--version']; {script}; print('x')",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("qubayes ") and not done.stderr
