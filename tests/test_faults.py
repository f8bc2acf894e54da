"""Kills, full disks, small memories and lost workers: the experiments of benchmarks/faults/ at a small size."""

import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from candidate_cases import data_file, dependent_data
from qubayes import FormatError, QubayesError
from qubayes.candidates import CandidateSearch, identify
from qubayes.foundation.files import lock_folder, remove_strays, replacing
from qubayes.learning import learn

FAULTS = Path(__file__).parent.parent / "benchmarks" / "faults"


def experiment(script: str, *arguments: str) -> str:
    """What the experiment prints; it must find no fault."""
    command = [sys.executable, str(FAULTS / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 faults" in done.stdout
    return done.stdout


def test_kills_lose_nothing():
    shown = experiment(
        "kill.py", "--kills", "2", "--variables", "10", "--commands", "formulate,learn"
    )
    # the shares of the commands are rounded up
    assert re.search(r"^[23] kills", shown, re.MULTILINE), shown


@pytest.mark.parametrize(
    ("fault", "command"), [("disk", "formulate"), ("memory", "candidates"), ("worker", "formulate")]
)
def test_faults_are_told_or_survived(fault, command):
    shown = experiment("outages.py", "--faults", fault, "--commands", command, "--variables", "10")
    assert command in shown and "too late" not in shown


def test_control_c_at_a_terminal_loses_nothing():
    shown = experiment(
        "terminal.py", "--rounds", "1", "--variables", "16", "--stages", "anneal,bootstrap"
    )
    assert re.search(r"anneal \| 1 \| 0 \| 0", shown) and "bootstrap" in shown, shown


def test_no_limit_reads_a_clock_that_jumps():
    """`time.time` follows the clock of the machine, which may be set; limits count with clocks that never jump."""
    for path in sorted((FAULTS.parents[1] / "src" / "qubayes").rglob("*.py")):
        assert not re.search(r"\btime\.time\b|\.now\(|from time import", path.read_text()), path


# Temporary files


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def left_by_a_kill(path: Path) -> Path:
    """The temporary file of a process that was killed while it wrote."""
    code = f"""
import os, signal
from qubayes.foundation.files import replacing
with replacing({str(path)!r}) as file:
    file.write("half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    (stray,) = path.parent.glob(".*.part")
    return stray


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    stray = left_by_a_kill(tmp_path / "x.json")
    assert mode_of(stray) == 0o600 and stray.read_text() == "half"
    with replacing(tmp_path / "x.jso"), replacing(tmp_path / "json"):
        assert stray.exists(), "it belongs to another file"
    with replacing(tmp_path / "x.json") as file:
        file.write("whole")
    assert {path.name for path in tmp_path.iterdir()} == {"x.json", "x.jso", "json"}
    assert (tmp_path / "x.json").read_text() == "whole"


def test_a_living_writer_keeps_its_file(tmp_path):
    with replacing(tmp_path / "x") as first:
        first.write("first")
        with replacing(tmp_path / "x") as second:
            second.write("second")
        remove_strays(tmp_path)
    assert (tmp_path / "x").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("locks", [True, False])
def test_a_link_that_is_named_like_a_temporary_file_stays(tmp_path, monkeypatch, locks):
    """Also where files cannot be locked, as on Windows."""
    if not locks:
        monkeypatch.setattr("qubayes.foundation.files.fcntl", None)
    (tmp_path / "target").write_text("kept")
    link = tmp_path / ".x.abcdefgh.part"
    link.symlink_to(tmp_path / "target")
    remove_strays(tmp_path)
    assert link.is_symlink() and link.read_text() == "kept"
    (tmp_path / ".y.abcdefgh.part").write_text("of a killed writer")
    remove_strays(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"target", link.name}


def test_many_writers_of_one_file(tmp_path):
    """Each finds the others' temporary files locked, or gone; the file is always a whole one."""

    def write(number: int) -> None:
        for _ in range(20):
            with replacing(tmp_path / "x") as file:
                file.write(str(number) * 1000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        text = (tmp_path / "x").read_text() if (tmp_path / "x").exists() else "0" * 1000
        assert len(text) == 1000 and len(set(text)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_looks_like_a_stray_and_is_none_stays(tmp_path):
    others = [".x.part", ".x.12345678.PART", "x.12345678.part", ".x.1234567.part"]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".x.abcdefgh.part").symlink_to(tmp_path / "target")
    (tmp_path / "target").write_text("kept")
    with replacing(tmp_path / "x") as file:
        file.write("x")
    assert {path.name for path in tmp_path.iterdir()} == {
        *others,
        ".x.abcdefgh.part",
        "target",
        "x",
    }


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_unfinished_files_are_private_and_finished_ones_as_the_user_wants(tmp_path, mask):
    before = os.umask(mask)
    try:
        with replacing(tmp_path / "x") as file:
            assert (
                mode_of(
                    Path(file.name)
                    if isinstance(file.name, str)
                    else next(tmp_path.glob(".*.part"))
                )
                == 0o600
            )
        assert mode_of(tmp_path / "x") == 0o666 & ~mask
        seen = []
        checkpoint = tmp_path / "x.blocks"
        data = dependent_data(6, 50, seed=0)
        identify(
            data,
            CandidateSearch(2),
            checkpoint=checkpoint,
            on_progress=lambda _: seen.append(checkpoint.exists()),
        )
        assert any(seen) and mode_of(checkpoint) == 0o600
        assert os.umask(mask) == mask
    finally:
        os.umask(before)


def test_a_file_that_exists_keeps_its_permissions(tmp_path):
    (tmp_path / "x").write_text("old")
    (tmp_path / "x").chmod(0o600)
    with replacing(tmp_path / "x") as file:
        file.write("new")
    assert (tmp_path / "x").read_text() == "new" and mode_of(tmp_path / "x") == 0o600


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed(tmp_path, exists):
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    link.symlink_to(Path("folder") / "target")
    if exists:
        target.write_text("old")
    with replacing(link) as file:
        file.write("new")
        assert len(list(target.parent.glob(".target.*.part"))) == 1
    assert link.is_symlink() and not target.is_symlink() and target.read_text() == "new"
    assert {path.name for path in tmp_path.rglob("*")} == {"folder", "link", "target"}
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(FormatError, match="circle"), replacing(tmp_path / "circle"):
        pass


def test_one_run_at_a_time_in_a_folder(tmp_path):
    first = lock_folder(tmp_path)
    assert first is not None and lock_folder(tmp_path) is None
    with pytest.raises(QubayesError, match="another run works in"):
        learn(dependent_data(5, 100, seed=0), 1, run_dir=tmp_path)
    first.release()
    code = f"from pathlib import Path; from qubayes.foundation.files import lock_folder\nheld = lock_folder(Path({str(tmp_path)!r}))\nimport os; os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    learn(dependent_data(5, 100, seed=0), 1, run_dir=tmp_path)


def test_a_run_folder_is_swept(tmp_path):
    learn(dependent_data(5, 100, seed=0), 1, run_dir=tmp_path)
    left_by_a_kill(tmp_path / "candidates.qbc")
    learn(dependent_data(5, 100, seed=0), 1, run_dir=tmp_path)  # all is kept: nothing is written
    assert not list(tmp_path.glob(".*"))


def test_devices_and_folders_are_no_place_for_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with (
            pytest.raises(FormatError, match="a folder or a device has that name"),
            replacing(tmp_path / name),
        ):
            pass
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "folder"}


# Memory and clusters


def test_little_memory_is_told_before_the_libraries_are_loaded(tmp_path):
    data = data_file(tmp_path, dependent_data(5, 50, seed=0))
    limit = ["bash", "-c", 'ulimit -v 300000; exec "$@"', "-"]
    command = [
        *limit,
        sys.executable,
        "-c",
        "from qubayes.cli import main; main()",
        "learn",
        str(data),
        "-m",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "limited to 292 MB" in done.stderr and "ulimit -v" in done.stderr


def test_a_thread_that_cannot_be_started_is_want_of_memory(tmp_path):
    code = 'from qubayes.cli.shell import guarded\ndef f(): raise RuntimeError("can\'t start new thread")\nguarded(f)'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith(
        "qubayes: out of memory; take fewer parents"
    )
    assert done.stderr.count("\n") == 1
