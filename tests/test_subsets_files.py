"""Files of subsets: given back exactly, and refused with a reason."""

import json
import resource
import signal
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import FormatError, QubayesError
from qubayes.candidates import Candidates, read_candidates, write_candidates
from qubayes.foundation.families import Families
from qubayes.qubo.subsets import Subsets, cover, read_subsets, write_subsets

LISTS = [[(1,), (1, 2)], [], [(0, 1)]]
SMALL = Subsets(
    ("a", "b b", "\N{GREEK SMALL LETTER GAMMA}"),
    Families.of(LISTS),
    np.array([2, 0, 1]),
    "auto",
    0.1,
)
FACTS = {
    "names": ["a", "b"],
    "method": "auto",
    "seconds": 0.5,
    "status": "finished",
    "sets": 1,
    "members": 1,
}
ARRAYS = ([0, 1, 1], [0, 1], [1, 0], [1])  # vertex_start, set_start, lower_bounds, members


@st.composite
def subsets(draw: st.DrawFn) -> Subsets:
    """Some sets of other vertices for each of up to five vertices, and bounds not above their numbers."""
    n = draw(st.integers(0, 5))
    names = draw(st.lists(st.text(max_size=3), min_size=n, max_size=n, unique=True))
    lists = []
    for vertex in range(n):
        others = [v for v in range(n) if v != vertex]
        chosen = (
            draw(st.sets(st.frozensets(st.sampled_from(others), min_size=1), max_size=6))
            if others
            else set()
        )
        lists.append([tuple(sorted(members)) for members in chosen])
    bounds = np.array([draw(st.integers(0, len(sets))) for sets in lists], dtype=np.int64)
    seconds = draw(st.floats(0, allow_infinity=False, allow_nan=False))
    return Subsets(
        tuple(names),
        Families.of(lists),
        bounds,
        draw(st.text(max_size=5)),
        seconds,
        draw(st.booleans()),
    )


def assert_same(a: Subsets, b: Subsets) -> None:
    assert (a.names, a.method, a.seconds, a.status) == (b.names, b.method, b.seconds, b.status)
    for mine, other in zip(
        (*a.families, a.lower_bounds), (*b.families, b.lower_bounds), strict=True
    ):
        assert mine.dtype == other.dtype and mine.tolist() == other.tolist()


@given(found=subsets())
def test_a_file_gives_back_what_was_written(tmp_path: Path, found: Subsets) -> None:
    write_subsets(found, tmp_path / "x.qbs")
    again = read_subsets(tmp_path / "x.qbs")
    assert_same(found, again)
    assert not any(array.flags.writeable for array in (*again.families, again.lower_bounds))


def test_a_cover_survives_and_bytes_repeat(tmp_path: Path) -> None:
    families = Families.of([[(1, 2), (1,), (2,), ()], [(0, 2, 3), (0, 2), ()], [()], [()]])
    found = cover(Candidates(tuple("abcd"), families, -np.arange(9.0)))
    for name in ("x.qbs", "y.QBS"):
        write_subsets(found, str(tmp_path / name))
    assert_same(read_subsets(str(tmp_path / "x.qbs")), found)
    assert (tmp_path / "x.qbs").read_bytes() == (tmp_path / "y.QBS").read_bytes()


def packed(
    facts: object, arrays: object = ARRAYS, magic: bytes = b"\x93qubayes-subsets", version: int = 1
) -> bytes:
    """A file with a right checksum, whatever it says."""
    header = json.dumps(facts).encode()
    parts = [
        struct.pack(f"<{len(values)}{kind}", *values)
        for values, kind in zip(arrays, "qqqi", strict=True)
    ]
    body = struct.pack("<16sII", magic, version, len(header)) + header + b"".join(parts)
    return body + struct.pack("<I", zlib.crc32(body))


def test_layout_is_what_the_docstring_says(tmp_path: Path) -> None:
    (tmp_path / "x.qbs").write_bytes(packed(FACTS))
    found = read_subsets(tmp_path / "x.qbs")
    assert_same(
        found, Subsets(("a", "b"), Families.of([[(1,)], []]), np.array([1, 0]), "auto", 0.5)
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a file of subsets"),
        (packed(FACTS, magic=b"\x93qubayes-candida"), "not a file of subsets"),
        (packed(FACTS, version=2), "version 2"),
        (packed([]), "JSON object"),
        (packed({**FACTS, "names": ["a", "a"]}), "different names"),
        (packed({**FACTS, "names": ["a"]}), "cut short"),
        (packed({**FACTS, "members": 2**59}), "cut short"),
        (packed({**FACTS, "sets": -1}), "numbers of sets"),
        (packed({**FACTS, "method": None}), "method"),
        (packed({**FACTS, "seconds": "1"}), "seconds"),
        (packed({**FACTS, "seconds": float("nan")}), "not JSON: the number NaN is not finite"),
        (packed({**FACTS, "seconds": -1.0}), "seconds"),
        (packed({**FACTS, "status": 1}), "status"),
        (packed(FACTS, ([0, 2, 1], [0, 1], [1, 0], [1])), "ascending sets"),
        (packed(FACTS, ([0, -(2**63), 1], [0, 1], [1, 0], [1])), "ascending sets"),
        (packed(FACTS, ([0, 1, 1], [0, 2], [1, 0], [1])), "ascending sets"),
        (packed(FACTS, ([0, 1, 1], [0, 1], [1, 0], [2])), "ascending sets"),
        (packed(FACTS, ([0, 1, 1], [0, 1], [1, 0], [-1])), "ascending sets"),
        (packed(FACTS, ([0, 1, 1], [0, 1], [1, 0], [0])), "ascending sets"),
        (
            packed(
                {**FACTS, "names": ["a", "b", "c"], "members": 2},
                ([0, 1, 1, 1], [0, 2], [0] * 3, [2, 1]),
            ),
            "ascend",
        ),
        (packed({**FACTS, "sets": 2}, ([0, 2, 2], [0, 1, 1], [1, 0], [1])), "one parent or more"),
        (packed(FACTS, ([0, 1, 1], [0, 1], [2, 0], [1])), "lower bound"),
        (packed(FACTS, ([0, 1, 1], [0, 1], [1, -1], [1])), "lower bound"),
        (packed(FACTS)[:-1] + b"x", "checksum"),
        (packed(FACTS)[:-1], "cut short"),
        (packed(FACTS) + b"\0", "cut short"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x.qbs").write_bytes(content)
    with pytest.raises(FormatError, match=rf"x\.qbs: .*{reason}"):
        read_subsets(tmp_path / "x.qbs")


def test_every_cut_and_every_changed_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.qbs"
    write_subsets(SMALL, path)
    content = path.read_bytes()
    broken = [content[:length] for length in range(len(content))]
    broken += [
        content[:k] + bytes([content[k] ^ 1 << k % 8]) + content[k + 1 :]
        for k in range(len(content))
    ]
    for bad in broken:
        path.write_bytes(bad)
        with pytest.raises(FormatError, match=r"x\.qbs: "):
            read_subsets(path)


@given(
    edits=st.lists(
        st.tuples(st.integers(0, 400), st.integers(0, 3), st.binary(max_size=3)),
        min_size=1,
        max_size=4,
    ),
    checksum=st.booleans(),
)
def test_mutated_files_raise_our_errors_only(
    tmp_path: Path, edits: list[tuple[int, int, bytes]], checksum: bool
) -> None:
    path = tmp_path / "x.qbs"
    write_subsets(SMALL, path)
    content = path.read_bytes()
    for place, removed, added in edits:
        place %= len(content) + 1
        content = content[:place] + added + content[place + removed :]
    if checksum:  # made right again, so that what comes after it is tried too
        content = content[:-4] + struct.pack("<I", zlib.crc32(content[:-4]))
    path.write_bytes(content)
    try:
        found = read_subsets(path)
    except QubayesError as error:
        assert "x.qbs" in str(error)
        return
    write_subsets(found, tmp_path / "y.qbs")
    assert_same(read_subsets(tmp_path / "y.qbs"), found)


def test_one_kind_of_file_in_the_place_of_another(tmp_path: Path) -> None:
    write_candidates(Candidates(("a",), Families.of([[()]]), np.zeros(1)), tmp_path / "x.qbc")
    write_subsets(SMALL, tmp_path / "x.qbs")
    with pytest.raises(
        FormatError, match=r"x\.qbc: not a file of subsets .* `qubayes subsets FILE -o x\.qbs`"
    ):
        read_subsets(tmp_path / "x.qbc")
    (tmp_path / "x.qbs").rename(tmp_path / "y.qbc")
    with pytest.raises(FormatError, match="not a file of candidate sets"):
        read_candidates(tmp_path / "y.qbc")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (
            Subsets(("a", "b"), Families.of([[()], []]), np.zeros(2, np.int64), "auto", 0.0),
            "one parent or more",
        ),
        (
            Subsets(("a", "b"), Families.of([[(1,)], []]), np.array([2, 0]), "auto", 0.0),
            "lower bound",
        ),
        (
            Subsets(
                ("a", "b"), Families.of([[(1,)], []]), np.zeros(2, np.int64), "auto", float("nan")
            ),
            "finite",
        ),
        (
            Subsets(("a", "a"), Families.of([[(1,)], []]), np.zeros(2, np.int64), "auto", 0.0),
            "different names",
        ),
        (
            Subsets(("a",), Families.of([[(1,)], []]), np.zeros(2, np.int64), "auto", 0.0),
            "belong together",
        ),
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path: Path, bad: Subsets, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        write_subsets(bad, tmp_path / "x.qbs")
    assert not list(tmp_path.iterdir())


def test_nowhere_to_write_and_nothing_to_read(tmp_path: Path) -> None:
    for name in ("x.qbc", "x", "x.qbs.gz", "none/x.qbs"):
        with pytest.raises(FormatError, match="cannot write"):
            write_subsets(SMALL, tmp_path / name)
    for name in ("none.qbs", "."):
        with pytest.raises(FormatError, match="cannot read"):
            read_subsets(tmp_path / name)


def test_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    write_subsets(SMALL, tmp_path / "x.qbs")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(FormatError, match="cannot write"):
            write_subsets(SMALL, tmp_path / "x.qbs")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [file.name for file in tmp_path.iterdir()] == ["x.qbs"]
    assert_same(read_subsets(tmp_path / "x.qbs"), SMALL)
