"""Ctrl-C inside and outside blocks that stop on it."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import qubayes
from candidate_cases import dependent_data
from qubayes import NoResultError
from qubayes.candidates import Knowledge
from qubayes.foundation.stop import Interrupt, Reason
from qubayes.learning import bootstrap

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")
DATA = dependent_data(9, 200, seed=4)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_interrupt_sets_the_flag_and_the_second_raises():
    stop, before = Interrupt(), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), stop.listening():
        interrupt()
        assert stop
        interrupt()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_sets_the_flags_of_the_blocks_around_it():
    outer, inner = Interrupt(), Interrupt()
    with pytest.raises(KeyboardInterrupt), outer.listening():
        with inner.listening():
            interrupt()
            assert outer and inner
        interrupt()
    again = Interrupt()
    with again.listening():
        pass
    assert not again
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_a_second_interrupt_in_the_inner_block_raises():
    with pytest.raises(KeyboardInterrupt), Interrupt().listening(), Interrupt().listening():
        interrupt()
        interrupt()


def test_a_block_inside_another_of_the_same_interrupt_changes_nothing():
    stop = Interrupt()
    with stop.listening():
        handler = signal.getsignal(signal.SIGINT)
        with stop.listening():
            assert signal.getsignal(signal.SIGINT) == handler
        interrupt()
        assert stop


def test_an_interrupt_before_a_block_is_not_forgotten():
    outer, inner = Interrupt(), Interrupt()
    with outer.listening():
        interrupt()
        with inner.listening():
            assert inner


def test_what_is_forgotten_counts_from_the_beginning():
    stop = Interrupt()
    assert not stop.forget()
    with stop.listening():
        interrupt()
        assert stop.forget() and not stop
        interrupt()
        assert stop


def test_other_threads_leave_the_handler_alone():
    handlers = []

    def run() -> None:
        with Interrupt().listening():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


def pressing(stage: str):
    """Return a receiver of progress that presses Ctrl-C at the first report of a stage."""
    reports = []

    def show(progress) -> None:
        if progress.stage == stage:
            reports.append(progress)
            if len(reports) == 1:
                interrupt()

    return show


def learn_interrupted(stage: str, **options):
    learned = qubayes.learn(DATA, 2, on_progress=pressing(stage), threads=1, **options)
    assert learned.interrupted and learned.network.tables is not None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return learned


def test_candidate_sets_leave_no_network():
    with pytest.raises(KeyboardInterrupt):
        learn_interrupted("candidates")


def test_without_a_qubo_the_start_is_returned(tmp_path):
    known = Knowledge(required=[("v0", "v1")])
    learned = learn_interrupted(
        "subsets", solver="sa", time_limit=60.0, knowledge=known, output=tmp_path / "x.bif"
    )
    assert learned.solution.reason is Reason.INTERRUPTED and learned.solution.solver == "sa"
    assert learned.network.edges == [("v0", "v1")] and (tmp_path / "x.bif").exists()


@pytest.mark.parametrize("solver", ["anneal", "exact", "auto"])
def test_solvers_return_the_best_so_far_and_later_stages_are_left_out(solver, tmp_path):
    data = dependent_data(40, 100, seed=1)
    best = None if solver == "anneal" else 3
    learned = qubayes.learn(
        data,
        3,
        solver=solver,
        time_limit=600.0,
        best=best,
        bootstrap=5,
        on_progress=pressing(solver),
        qubo=tmp_path / "x.bqm",
    )
    assert learned.interrupted and learned.solution.reason is Reason.INTERRUPTED
    assert learned.solution.status == Reason.INTERRUPTED.sentence
    assert learned.alternatives is None and learned.confidence is None
    assert (tmp_path / "x.bqm").exists()


def test_required_ancestors_that_are_still_missing_are_an_error():
    pairs = ((names := DATA.names)[0], names[8]), (names[8], names[4]), (names[4], names[2])
    with pytest.raises(NoResultError, match="interrupted before a network with all"):
        learn_interrupted("ancestors", knowledge=Knowledge(ancestors=pairs))


def test_alternatives_so_far_are_listed():
    data = dependent_data(18, 100, seed=1)
    learned = qubayes.learn(
        data, 2, best=10_000, bootstrap=5, on_progress=pressing("alternatives"), threads=1
    )
    assert learned.interrupted and learned.solution.proved and learned.confidence is None
    assert learned.alternatives is not None and learned.alternatives.interrupted


@pytest.mark.parametrize("samples", [0, 1])
def test_bootstrap_samples_so_far_count(samples):
    def show(progress) -> None:
        if progress.stage == "bootstrap" and progress.done == samples:
            interrupt()

    learned = qubayes.learn(DATA, 2, bootstrap=3, on_progress=show, threads=1)
    assert learned.interrupted
    assert samples == (learned.confidence.samples if learned.confidence else 0)
    found = bootstrap(DATA, learned.settings.search, 3, on_progress=show)
    assert found.samples == samples and found.frequencies.shape == (9, 9)


def test_subsets_of_a_report_are_left_out(tmp_path):
    files = {
        "report": tmp_path / "x.html",
        "qubo": tmp_path / "x.bqm",
        "output": tmp_path / "x.bif",
    }
    learned = learn_interrupted("subsets", **files)
    assert learned.solution.proved
    assert [path.exists() for path in files.values()] == [True, False, True]
    assert learned.subsets.complete and learned.formulation.bits == learned.bits


def test_files_are_finished(tmp_path):
    learned = learn_interrupted("files", output=tmp_path / "x.bif", trace=tmp_path / "x.csv")
    assert learned.solution.proved
    assert (tmp_path / "x.bif").exists() and (tmp_path / "x.csv").exists()


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
