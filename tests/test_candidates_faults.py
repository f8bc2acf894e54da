"""What a search for candidate sets survives: kills, interrupts, damaged checkpoints and full disks."""

import resource
import signal
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from candidate_cases import assert_one_line, data_file, dependent_data, finish, run, start
from checkpoint_cases import DATASET, SEARCH, blocks_and_result_in, bytes_of
from qubayes import FormatError
from qubayes.candidates import CandidateSearch, Knowledge, identify, write_candidates
from qubayes.data import read
from qubayes.foundation.workers import Workers
from qubayes.scores import Score

SETTINGS = ("-m", 4, "--score", "bds")


@pytest.fixture(scope="module")
def blocks_and_result(tmp_path_factory):
    return blocks_and_result_in(tmp_path_factory.mktemp("blocks"))


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """Data whose search takes seconds, and the bytes of its undisturbed result."""
    folder = tmp_path_factory.mktemp("long")
    data = data_file(folder, dependent_data(36, 1000, seed=1))
    write_candidates(identify(read(data), CandidateSearch(4, Score("bds"))), folder / "whole.jkl")
    return data, (folder / "whole.jkl").read_bytes()


def stopped_in_last_level(sign: signal.Signals, data: Path, output: Path) -> tuple[int, str, str]:
    """Start a search, send the signal once a block is finished, and wait for its end."""
    blocks = output.with_name(output.name + ".blocks")
    process = start("candidates", data, *SETTINGS, "-o", output)
    while not (blocks.exists() and len(blocks.read_bytes().partition(b"\n")[2]) > 0):
        assert process.poll() is None, "the search ended before a block was seen"
        time.sleep(0.002)
    process.send_signal(sign)
    return finish(process)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_resume_after_a_stop(sign, long_run, tmp_path, capsys):
    data, whole = long_run
    output, blocks = tmp_path / "x.jkl", tmp_path / "x.jkl.blocks"
    code, _, err = stopped_in_last_level(sign, data, output)
    if sign == signal.SIGINT:
        told = f"qubayes: finished blocks are kept in {blocks}; continue with --resume\nqubayes: interrupted\n"
        assert code == 130 and err == told
    else:
        assert code == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == [blocks.name]
    kept = blocks.read_bytes()
    code, _, err = run(capsys, "candidates", data, *SETTINGS, "--ess", 2, "-o", output, "--resume")
    assert_one_line(code, err, str(blocks), "other data or settings", "--resume")
    assert blocks.read_bytes() == kept
    code, _, err = run(capsys, "candidates", data, *SETTINGS, "-o", output, "--resume")
    assert code == 0 and err == "" and output.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


@contextmanager
def limited(size: int):
    """Within it this process can write no file larger than `size`, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def large_result(tmp_path, capsys):
    """An empty folder, and the arguments and result of a search that finds many sets of variables with long names."""
    dataset = dependent_data(25, 100, seed=2)
    names = tuple(f"{name}_{'x' * 40}" for name in dataset.names)
    data = data_file(tmp_path, replace(dataset, names=names))
    arguments = ("candidates", data, "-m", 2, "--score", "loglik", "-o")
    # compiles, too: machine code goes to disk
    assert run(capsys, *arguments, tmp_path / "whole.jkl")[0] == 0
    (tmp_path / "out").mkdir()
    return tmp_path / "out", arguments, (tmp_path / "whole.jkl").read_bytes()


def test_full_disk_at_the_start(large_result, capsys):
    folder, arguments, _ = large_result
    with limited(100):
        code, _, err = run(capsys, *arguments, folder / "x.jkl")
    assert_one_line(code, err, "cannot write", "x.jkl.blocks")
    assert list(folder.iterdir()) == []


def test_full_disk_at_a_block(large_result, capsys):
    folder, arguments, whole = large_result
    with limited(80_000):
        code, _, err = run(capsys, *arguments, folder / "x.jkl")
    assert_one_line(code, err, "cannot write", "x.jkl.blocks", "make room", "--resume")
    assert [path.name for path in folder.iterdir()] == ["x.jkl.blocks"]
    assert run(capsys, *arguments, folder / "x.jkl", "--resume")[0] == 0
    assert [path.name for path in folder.iterdir()] == ["x.jkl"] and (
        folder / "x.jkl"
    ).read_bytes() == whole


def test_full_disk_at_the_result(large_result, capsys):
    folder, arguments, whole = large_result
    output = folder / "x.jkl"
    output.write_text("an older result")
    with limited(len(whole) - 1):
        code, _, err = run(capsys, *arguments, output)
    assert_one_line(code, err, f"cannot write {output}", "nothing was changed")
    assert output.read_text() == "an older result"
    assert not [path for path in folder.iterdir() if path.suffix == ".part"]


def test_full_disk_at_the_result_keeps_the_blocks(large_result, capsys):
    folder, arguments, whole = large_result
    with limited(len(whole) - 1):
        assert run(capsys, *arguments, folder / "x.jkl")[0] == 1
    assert [path.name for path in folder.iterdir()] == ["x.jkl.blocks"]
    assert run(capsys, *arguments, folder / "x.jkl", "--resume")[0] == 0
    assert [path.name for path in folder.iterdir()] == ["x.jkl"] and (
        folder / "x.jkl"
    ).read_bytes() == whole


def test_full_standard_output(tmp_path):
    data = data_file(tmp_path, DATASET)
    with Path("/dev/full").open("w") as full:
        code, _, err = finish(start("candidates", data, "-m", 1, "--json", stdout=full))
    assert_one_line(code, err, "No space left")


def resumed(content: bytes, folder: Path) -> bytes:
    path = folder / "x.blocks"
    path.write_bytes(content)
    return bytes_of(identify(DATASET, SEARCH, checkpoint=path, resume=True), folder)


def test_a_cut_checkpoint_resumes(blocks_and_result, tmp_path):
    content, result = blocks_and_result
    header = content.index(b"\n") + 1
    cuts = [0, 1, header - 1, header, header + 1, header + 15, len(content) - 1, len(content)]
    for cut in [*cuts, *np.random.default_rng(0).integers(header, len(content), 12).tolist()]:
        assert resumed(content[:cut], tmp_path) == result, cut
        assert (
            resumed(content[:cut] + bytes(4096), tmp_path) == result if cut >= header else True
        ), cut


def test_flipped_bits_in_a_checkpoint(blocks_and_result, tmp_path):
    content, result = blocks_and_result
    header = content.index(b"\n") + 1
    # block number, width and count of the first record
    heads = range(8 * header, 8 * (header + 16), 5)
    for bit in [
        *heads,
        *np.random.default_rng(1).integers(8 * header, 8 * len(content), 12).tolist(),
    ]:
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        assert resumed(bytes(damaged), tmp_path) == result, bit
    for bit in np.random.default_rng(2).integers(0, 8 * header, 12).tolist():
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FormatError, match="other data or settings"):
            resumed(bytes(damaged), tmp_path)


@pytest.mark.parametrize(
    ("dataset", "search"),
    [
        (dependent_data(25, 100, seed=4), SEARCH),
        (DATASET, CandidateSearch(2, Score("bdeu", 2.0))),
        (DATASET, CandidateSearch(3, Score("bds", 2.0))),
        (DATASET, CandidateSearch(3, Score("bdeu", 2.5))),
        (DATASET, CandidateSearch(3, Score("bdeu", 2.0), Knowledge(forbidden=[("v0", "v1")]))),
    ],
    ids=["data", "parents", "score", "sample size", "knowledge"],
)
def test_a_checkpoint_of_another_search_is_refused(dataset, search, blocks_and_result, tmp_path):
    content, _ = blocks_and_result
    path = tmp_path / "x.blocks"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="other data or settings"):
        identify(dataset, search, checkpoint=path, resume=True)
    assert path.read_bytes() == content


def test_a_checkpoint_that_cannot_be_opened(tmp_path):
    for resume in (False, True):
        with pytest.raises(FormatError, match="cannot write"):
            identify(DATASET, SEARCH, checkpoint=tmp_path, resume=resume)


@pytest.mark.parametrize("ending", ["jkl", "jkl.gz", "pss", "qbc"])
def test_threads_do_not_change_a_byte(ending, tmp_path):
    for threads in (1, 2, 3):
        found = identify(
            DATASET, SEARCH, workers=Workers(threads), checkpoint=tmp_path / f"{threads}.blocks"
        )
        write_candidates(found, tmp_path / f"{threads}.{ending}")
    first, *others = ((tmp_path / f"{threads}.{ending}").read_bytes() for threads in (1, 2, 3))
    assert all(other == first for other in others)
