"""Files of candidate sets: pruned as the definition says, given back exactly, and refused with a reason."""

import gzip
import json
import struct
import zlib
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import FormatError, QubayesError
from qubayes.candidates import ENDINGS as REGISTERED
from qubayes.candidates import (
    Candidates,
    Stamp,
    prune,
    read_candidates,
    tolerance,
    write_candidates,
)
from qubayes.foundation.families import Families, well_formed
from reference import candidates as reference

Lists = list[list[tuple[tuple[int, ...], float]]]

TEXT_ENDINGS = [
    ending + packed for packed in ("", ".gz") for ending in REGISTERED if ending != ".qbc"
]
ENDINGS = [*TEXT_ENDINGS, ".qbc"]
coarse = st.integers(-6, 0).map(float)  # ties are common
fine = st.floats(-1e6, 0, allow_subnormal=True)
words = st.text(min_size=1, max_size=4).filter(
    lambda name: name.split() == [name] and name[0] != "#" and name.isprintable()
)
stamps = st.builds(
    Stamp,
    score=st.sampled_from(["bdeu", "unknown"]),
    ess=st.none() | st.floats(0.1, 100),
    max_parents=st.none() | st.integers(0, 5),
    rows=st.none() | st.integers(0, 10**9),
    arities=st.text(max_size=8),
)


@st.composite
def scored_lists(draw: st.DrawFn, scores: st.SearchStrategy[float] = coarse | fine) -> Lists:
    """Some parent sets of each of up to six vertices, in any order, all above one base."""
    n = draw(st.integers(0, 6))
    lists = []
    for vertex in range(n):
        others = [v for v in range(n) if v != vertex]
        base = draw(st.sets(st.sampled_from(others), max_size=1)) if others else set()
        more = (
            draw(st.sets(st.frozensets(st.sampled_from(others)), max_size=20)) if others else set()
        )
        sets = {frozenset(base)} | {frozenset(base | extra) for extra in more}
        listed = [tuple(draw(st.permutations(sorted(s)))) for s in sorted(sets, key=sorted)]
        lists.append([(parents, draw(scores)) for parents in draw(st.permutations(listed))])
    return lists


@st.composite
def candidates(draw: st.DrawFn) -> Candidates:
    lists = draw(scored_lists())
    names = draw(st.lists(words, min_size=len(lists), max_size=len(lists), unique=True))
    return prune(names, lists, draw(stamps))


def numbered(lists: Lists) -> list[str]:
    return [f"V{i}" for i in range(len(lists))]


def as_lists(found: Candidates) -> Lists:
    return [list(found.of(vertex)) for vertex in range(found.n)]


def assert_same(a: Candidates, b: Candidates) -> None:
    assert a.names == b.names
    assert a.stamp == b.stamp
    assert a.scores.tobytes() == b.scores.tobytes()
    for mine, other in zip(a.families, b.families, strict=True):
        assert mine.dtype == other.dtype and mine.tolist() == other.tolist()


SMALL = prune(
    ["A", "B", "C"],
    [[((), -3.5), ((1,), -2.25), ((1, 2), -1.0)], [((0,), -4.0), ((0, 2), -1 / 3)], [((), -7.0)]],
    Stamp("bds", 1.0, 2, 100, "network x = 1.bif"),
)


# Pruning


@given(scored_lists())
def test_prune_agrees_with_all_pairs(lists: Lists) -> None:
    assert as_lists(prune(numbered(lists), lists)) == reference.prune(lists)


@given(scored_lists())
def test_prune_again_changes_nothing(lists: Lists) -> None:
    once = prune(numbered(lists), lists)
    assert_same(prune(numbered(lists), as_lists(once)), once)


def test_every_set_up_to_four_of_ten() -> None:
    scores = np.random.default_rng(3).integers(-40, 0, size=(10, 1 << 10)).astype(float)

    def score(child: int, parents: tuple[int, ...]) -> float:
        return float(scores[child, sum(1 << p for p in parents)])

    lists = [
        [
            (s, score(i, s))
            for k in range(5)
            for s in combinations([v for v in range(10) if v != i], k)
        ]
        for i in range(10)
    ]
    found = as_lists(prune(numbered(lists), lists))
    assert found == reference.candidate_sets(score, 10, 4)
    assert found == reference.prune(lists)


def test_large_sets_are_compared_with_each_other() -> None:
    """More than 64 vertices and sets of 30 parents: far more subsets than sets, and signatures that repeat."""
    draw = np.random.default_rng(5)
    n = 140
    chains: Lists = []
    for vertex in range(n):
        others = draw.permutation([v for v in range(n) if v != vertex])[:30].tolist()
        sets = {tuple(sorted(others[:k])) for k in (0, 1, 2, 5, 13, 29, 30)} | {
            tuple(sorted(others[4:20]))
        }
        chains.append([(s, float(draw.integers(-9, 0))) for s in sorted(sets)])
    assert as_lists(prune(numbered(chains), chains)) == reference.prune(chains)


def test_tolerance_decides() -> None:
    margin = tolerance(-8.0)
    assert margin == 1e-10 + 2.0**-43
    kept = prune(
        ["A", "B"],
        [[((), -8.0), ((1,), -8.0 + margin)], [((), -8.0), ((0,), np.nextafter(-8.0 + margin, 0))]],
    )
    assert kept.per_vertex.tolist() == [0, 1]


def test_tolerance_decides_among_large_sets() -> None:
    """Sets with far more subsets than the list has sets: each is compared with every other one."""
    margin, smaller, larger = tolerance(-8.0), tuple(range(1, 7)), tuple(range(1, 8))
    for score, kept in [
        (-4.0, False),
        (-4.0 + margin, False),
        (float(np.nextafter(-4.0 + margin, 0)), True),
        (-3.0, True),
    ]:
        family = [((), -8.0), (smaller, -4.0), (larger, score)]
        lists: Lists = [family, *([((), 0.0)] for _ in range(7))]
        found = as_lists(prune(numbered(lists), lists))
        assert found == reference.prune(lists)
        assert [parents for parents, _ in found[0]] == ([larger] if kept else []) + [smaller, ()]


def test_a_dropped_set_still_competes() -> None:
    """B is within the tolerance of the base and leaves; BC beats the base enough, but not B."""
    margin = tolerance(-1.0)
    lists: Lists = [
        [((), -1.0), ((1,), -1.0 + 0.9 * margin), ((1, 2), -1.0 + 1.5 * margin)],
        [((), 0.0)],
        [((), 0.0)],
    ]
    assert as_lists(prune("ABC", lists)) == reference.prune(lists)
    assert prune("ABC", lists).total == 0


def test_minus_infinity_forbids_a_set() -> None:
    found = prune("AB", [[((), -2.0), ((1,), -np.inf)], [((), -1.0)]])
    assert as_lists(found) == [[((), -2.0)], [((), -1.0)]]


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ([], "'A' has no parent set"),
        ([((1,), -1.0), ((2,), -2.0)], "'A': its smallest parent set is not contained in set 2"),
        ([((), -1.0), ((1, 2), -1.0), ((2, 1), -2.0)], "'A': set 3 of its list came before"),
        ([((), -1.0), ((1,), float("nan"))], "'A': the score of a parent set is nan"),
        ([((), float("inf"))], "'A': the score of a parent set is inf"),
        ([((), float("-inf")), ((1,), -1.0)], "'A': its smallest parent set scores -inf"),
        ([((), -1.0), ((0, 1), -1.0)], "'A' is its own parent in set 2"),
        ([((), -1.0), ((1, 3), -1.0)], "'A' has the parent number 3; allowed are 0 to 2"),
        ([((), -1.0), ((-1,), -1.0)], "'A' has the parent number -1"),
        ([((), -1.0), ((2, 1, 2), -1.0)], "'A': parent 'C' comes twice in set 2"),
    ],
)
def test_what_prune_refuses(family: list[tuple[tuple[int, ...], float]], reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        prune("ABC", [family, [((), -1.0)], [((), -1.0)]])


def test_prune_wants_one_list_per_different_name() -> None:
    for names in (["A"], ["A", "A"]):
        with pytest.raises(FormatError, match="give one for each variable"):
            prune(names, [[((), -1.0)], [((), -1.0)]])


# Round trips


@pytest.mark.parametrize("ending", ENDINGS)
def test_sets_of_one_score_are_given_back(tmp_path: Path, ending: str) -> None:
    lists: Lists = [
        [((1,), -1.0), ((2,), -1.0), ((), -3.0)],
        [((0,), -2.0), ((), -2.5)],
        [((), -1.0)],
    ]
    found = prune(("a", "b", "c"), lists, Stamp())
    assert len(found.scores) == 6
    write_candidates(found, tmp_path / f"x{ending}")
    again = read_candidates(tmp_path / f"x{ending}")
    assert [list(again.of(vertex)) for vertex in range(3)] == lists


@pytest.mark.parametrize("ending", ENDINGS)
@given(found=candidates())
def test_files_give_back_what_was_written(tmp_path: Path, ending: str, found: Candidates) -> None:
    path = tmp_path / f"x{ending}"
    write_candidates(found, path)
    assert_same(read_candidates(path), found)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", ENDINGS)
def test_same_candidates_same_bytes(tmp_path: Path, ending: str) -> None:
    first, second = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    write_candidates(SMALL, first)
    write_candidates(SMALL, second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    "name", ["two words", "", "#a", "tab\t", "no\u00a0break", "line\n", "\ud800"]
)
@pytest.mark.parametrize("ending", TEXT_ENDINGS)
def test_names_that_text_cannot_hold(tmp_path: Path, name: str, ending: str) -> None:
    found = prune([name, "B"], [[((), -1.0)], [((), -1.0)]])
    path = tmp_path / f"x{ending}"
    path.write_text("kept")
    with pytest.raises(FormatError, match=r"cannot hold the name .* write a \.qbc"):
        write_candidates(found, path)
    assert path.read_text() == "kept"
    write_candidates(found, tmp_path / "x.qbc")
    assert_same(read_candidates(tmp_path / "x.qbc"), found)


@pytest.mark.parametrize("name", ["VAR", "META", "3", "-1.5", "nan", "a#b", "a=b", "名", "\ufeff"])
@pytest.mark.parametrize("ending", TEXT_ENDINGS)
def test_odd_names_that_text_can_hold(tmp_path: Path, name: str, ending: str) -> None:
    found = prune([name, "B"], [[((), -2.0), ((1,), -1.0)], [((), -2.0), ((0,), -1.0)]])
    write_candidates(found, tmp_path / f"x{ending}")
    assert_same(read_candidates(tmp_path / f"x{ending}"), found)


@pytest.mark.parametrize("name", ["x.txt", "x", "x.qbc.gz", "x.jkl.zip"])
def test_endings_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match=r"allowed endings are \.jkl"):
        write_candidates(SMALL, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_scores_that_are_not_finite_are_not_written(tmp_path: Path) -> None:
    broken = Candidates(("A",), Families.of([[()]]), np.array([np.nan]))
    with pytest.raises(FormatError, match="not finite"):
        write_candidates(broken, tmp_path / "x.qbc")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ENDINGS)
def test_nowhere_to_write_and_nothing_to_read(tmp_path: Path, ending: str) -> None:
    with pytest.raises(FormatError, match="cannot write"):
        write_candidates(SMALL, tmp_path / "absent" / f"x{ending}")
    with pytest.raises(FormatError, match="cannot read"):
        read_candidates(tmp_path / f"x{ending}")
    (tmp_path / f"folder{ending}").mkdir()
    with pytest.raises(FormatError, match="cannot read"):
        read_candidates(tmp_path / f"folder{ending}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_full_disk_loses_nothing(tmp_path: Path, ending: str) -> None:
    resource = pytest.importorskip("resource")
    scores = np.random.default_rng(0).normal(size=5000)
    large = prune([f"V{i}" for i in range(5000)], [[((), score)] for score in scores.tolist()])
    path = tmp_path / f"x{ending}"
    path.write_text("kept")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # a write past it fails as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(FormatError, match="cannot write"):
            write_candidates(large, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [path]


# Other programs' files

OTHER_JKL = """3
# Method: something
# Score function: BDeu (alpha: 1.00)
0 4
-3.0000 2 2 1
-5.0 0
-4 1 1
-6 1 2

1 1
-2e0 0
2 2
-9.5 0\r
# a comment between
-1.5 1 0"""

OTHER_PSS = """# made elsewhere
META pss_version = 0.1
META ess=1.0

VAR 0
META arity=3
META values=a b c
-3.0000 2 1
-5.0
-4 1
-6 2

VAR 1
META arity=2
-2e0

VAR 2
-9.5
-1.5 0"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.jkl", OTHER_JKL),
        ("x.BDeu", OTHER_JKL),
        ("x.pss", OTHER_PSS),
        ("x", OTHER_PSS),
        ("x.jkl", "\ufeff" + OTHER_JKL),
    ],
)
def test_other_programs_files(tmp_path: Path, name: str, text: str) -> None:
    plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
    plain.write_text(text, encoding="utf-8", newline="")
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        found = read_candidates(path)
        assert found.names == ("0", "1", "2")
        assert as_lists(found) == [
            [((1, 2), -3.0), ((1,), -4.0), ((), -5.0)],
            [((), -2.0)],
            [((0,), -1.5), ((), -9.5)],
        ]
        assert found.stamp == Stamp()


@given(scored_lists())
def test_files_that_list_every_set_are_pruned(tmp_path: Path, lists: Lists) -> None:
    names = numbered(lists)
    path = tmp_path / "x.jkl"
    with path.open("w") as file:
        file.write(f"{len(names)}\n")
        for name, family in zip(names, lists, strict=True):
            file.write(f"{name} {len(family)}\n")
            file.writelines(
                f"{score!r} {len(s)} {' '.join(names[p] for p in s)}\n" for s, score in family
            )
    assert as_lists(read_candidates(path)) == reference.prune(lists)


def test_lines_longer_than_a_block(tmp_path: Path) -> None:
    """Names of a million letters: lines and words that span blocks of the reader."""
    found = prune(
        ["A" * 1_500_000, "B" * 700_000], [[((), -2.0), ((1,), -1.0)], [((), -2.0), ((0,), -1.0)]]
    )
    write_candidates(found, tmp_path / "x.jkl")
    assert_same(read_candidates(tmp_path / "x.jkl"), found)


# Bad files


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ends after line 0; expected the number of variables"),
        ("two\n", "line 1: 'two' is given as the number of variables"),
        ("-1\n", "line 1: '-1' is given"),
        ("2 3\n", "line 1: it holds 2 words"),
        ("1\n", "ends after line 1; expected 'name count' of variable 1 of 1"),
        ("1\nA\n", "line 2: it holds 1 words; expected 'name count'"),
        ("1\nA x\n", "line 2: 'x' is given as the number of parent sets of 'A'"),
        ("1\nA 2\n-1 0\n", "ends after line 3; expected parent set 2 of 2 of 'A'"),
        (
            "99999999999999999\nA 1\n-1 0\n",
            "ends after line 3; expected 'name count' of variable 2 of 9+",
        ),
        ("1\nA 99999999999999999\n-1 0\n", "ends after line 3; expected parent set 2 of 9+ of 'A'"),
        ("9" * 5000 + "\n", "expected a whole number"),
        ("1\nA 1\nx 0\n", "line 3: the score is 'x'; expected a number"),
        ("1\nA 1\n-1_0 0\n", "line 3: the score is '-1_0'"),
        ("1\nA 1\n-1\n", "line 3: '-1' is not 'score k parent1"),
        ("2\nA 1\n-1 1\n", "line 3: '-1 1' is not 'score k parent1"),
        ("1\nA 1\n-1 0 B\n", "line 3: '-1 0 B' is not 'score k parent1"),
        ("1\nA 1\n-1 0\nB 1\n", "line 4: 'B 1' comes after the last of 1 variables"),
        ("2\nA 1\n-1 0\nA 1\n-1 0\n", "line 4: variable 'A' comes a second time"),
        ("1\nA 2\n-1 0\n-1 1 Z\n", "line 4: parent 'Z' is not a variable of the file"),
        ("1\nA 1\nnan 0\n", "'A': the score of a parent set is nan"),
        ("1\nA 2\n-1 0\n-2 0\n", "'A': set 2 of its list came before"),
        ("1\nA 2\n-1 0\n-2 1 A\n", "'A' is its own parent"),
        ("1\nA 0\n", "'A' has no parent set"),
        ('1\n# qubayes {"score": 3}\nA 1\n-1 0\n', "stamp says score"),
        ('1\n# qubayes {"author": "x"}\nA 1\n-1 0\n', "stamp has 'author'"),
        ("1\n# qubayes {" + '"a":[' * 100_000 + "\nA 1\n-1 0\n", "not JSON"),
    ],
)
def test_bad_jkl(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "x.jkl"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"x\.jkl: .*" + reason):
        read_candidates(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected 'VAR name'"),
        ("META a = b\n", "ends after line 1; expected 'VAR name'"),
        ("-1 A\n", "line 1: '-1 A' comes before the first variable"),
        ("VAR\n", "line 1: 'VAR' is not 'VAR name'"),
        ("VAR a b\n", "line 1: 'VAR a b' is not 'VAR name'"),
        ("VAR A\nx B\n", "line 2: the score is 'x'"),
        ("VAR A\n-1\nVAR A\n-1\n", "line 3: variable 'A' comes a second time"),
        ("VAR A\n-1\n-2 B\n", "line 3: parent 'B' is not a variable of the file"),
        ("VAR A\n", "'A' has no parent set"),
    ],
)
def test_bad_pss(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "x.pss"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"x\.pss: .*" + reason):
        read_candidates(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_cut_short_anywhere_is_noticed(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x{ending}"
    write_candidates(SMALL, path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError, match=r"x\."):
            read_candidates(path)


def test_a_changed_bit_of_a_native_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.qbc"
    write_candidates(SMALL, path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises(FormatError, match=r"x\.qbc: "):
            read_candidates(path)


def native(facts: object, *arrays: bytes) -> bytes:
    """A native file with a right checksum, whatever it says."""
    header = json.dumps(facts).encode()
    body = (
        struct.pack("<16sII", b"\x93qubayes-candidates"[:16], 1, len(header))
        + header
        + b"".join(arrays)
    )
    return body + struct.pack("<I", zlib.crc32(body))


def parts(
    vertex_start: list[int], set_start: list[int], scores: list[float], members: list[int]
) -> list[bytes]:
    kinds = zip((vertex_start, set_start, scores, members), "qqdi", strict=True)
    return [struct.pack(f"<{len(values)}{kind}", *values) for values, kind in kinds]


FACTS = {"names": ["A", "B"], "stamp": {}, "sets": 3, "members": 1}


def test_native_layout_is_what_the_docstring_says(tmp_path: Path) -> None:
    (tmp_path / "x.qbc").write_bytes(
        native(FACTS, *parts([0, 2, 3], [0, 1, 1, 1], [-1, -2, -3], [1]))
    )
    assert as_lists(read_candidates(tmp_path / "x.qbc")) == [
        [((1,), -1.0), ((), -2.0)],
        [((), -3.0)],
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a native file at all, by far",
        native([]),
        native({}),
        native({**FACTS, "names": ["A", "A"]}),
        native({**FACTS, "names": "AB"}),
        native({**FACTS, "sets": -1}),
        native({**FACTS, "sets": True}),
        native({**FACTS, "sets": 2**59, "members": 2**59}),
        native({**FACTS, "stamp": {"score": None}}),
        native(FACTS, *parts([0, 0, 3], [0, 1, 1, 1], [-1, -2, -3], [1])),
        native(FACTS, *parts([0, 4, 3], [0, 1, 1, 1], [-1, -2, -3], [1])),
        native(FACTS, *parts([0, 2, 3], [0, 9, 1, 1], [-1, -2, -3], [1])),
        native(FACTS, *parts([0, 2, 3], [0, 1, 1, 1], [-1, -2, -3], [2])),
        native(FACTS, *parts([0, 2, 3], [0, 1, 1, 1], [-1, -2, -3], [-1])),
        native(FACTS, *parts([0, 2, 3], [0, 1, 1, 1], [-1, -2, -3], [0])),
        native(FACTS, *parts([0, 2, 3], [0, 1, 1, 1], [-3, -2, -3], [1])),
        native(FACTS, *parts([0, 2, 3], [0, 0, 1, 1], [-1, -2, -3], [1])),
        native(FACTS, *parts([0, 2, 3], [0, 1, 1, 1], [float("nan"), -2, -3], [1])),
    ],
)
def test_bad_native(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.qbc"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"x\.qbc: "):
        read_candidates(path)


def test_a_line_without_end_is_refused_early(tmp_path: Path) -> None:
    path = tmp_path / "x.jkl.gz"
    path.write_bytes(gzip.compress(b"1" * (1 << 26), compresslevel=1))
    with pytest.raises(FormatError, match="longer than"):
        read_candidates(path)


@pytest.mark.parametrize("ending", ENDINGS)
@given(content=st.binary(max_size=200))
def test_random_bytes_raise_our_errors_only(tmp_path: Path, ending: str, content: bytes) -> None:
    _read_or_refuse(tmp_path / f"x{ending}", content)


@pytest.mark.parametrize("ending", [".jkl", ".pss", ".qbc", ".jkl.gz"])
@given(
    edits=st.lists(
        st.tuples(st.integers(0, 400), st.integers(0, 3), st.binary(max_size=3)),
        min_size=1,
        max_size=4,
    ),
)
def test_mutated_files_raise_our_errors_only(
    tmp_path: Path, ending: str, edits: list[tuple[int, int, bytes]]
) -> None:
    path = tmp_path / f"x{ending}"
    write_candidates(SMALL, path)
    content = path.read_bytes()
    for place, removed, added in edits:
        place %= len(content) + 1
        content = content[:place] + added + content[place + removed :]
    _read_or_refuse(path, content)


@pytest.mark.parametrize("ending", [".jkl", ".pss"])
@given(
    tokens=st.lists(
        st.sampled_from(
            [
                "0",
                "1",
                "2",
                "3",
                "A",
                "B",
                "C",
                "-1",
                "-2.5",
                "nan",
                "inf",
                "-inf",
                "VAR",
                "META",
                "#",
                "=",
                "\n",
                "\n",
                "\n",
            ]
        ),
        max_size=40,
    )
)
def test_shuffled_words_raise_our_errors_only(
    tmp_path: Path, ending: str, tokens: list[str]
) -> None:
    _read_or_refuse(tmp_path / f"x{ending}", " ".join(tokens).encode())


def _read_or_refuse(path: Path, content: bytes) -> None:
    """Whatever is read is in the promised form: reading what is then written gives the same."""
    path.write_bytes(content)
    try:
        found = read_candidates(path)
    except QubayesError as error:
        assert str(path.name) in str(error)
        return
    assert_same(prune(found.names, as_lists(found), found.stamp), found)


SETS_OUTSIDE = {
    "well formed": ([0, 2, 3, 3], [0, 1, 3, 5], [1, 1, 2, 0, 2], True),
    "a member twice": ([0, 2, 3, 3], [0, 1, 3, 5], [1, 2, 2, 0, 2], False),
    "descending members": ([0, 2, 3, 3], [0, 1, 3, 5], [1, 2, 1, 0, 2], False),
    "the vertex itself": ([0, 2, 3, 3], [0, 1, 3, 5], [0, 1, 2, 0, 2], False),
    "no vertex": ([0, 2, 3, 3], [0, 1, 3, 5], [1, 1, 3, 0, 2], False),
    "a negative vertex": ([0, 2, 3, 3], [0, 1, 3, 5], [-1, 1, 2, 0, 2], False),
    "a start beyond the end": ([0, 2, 3, 3], [0, 1, 6, 5], [1, 1, 2, 0, 2], False),
    "members of no set": ([0, 2, 3, 3], [0, 1, 3, 4], [1, 1, 2, 0, 2], False),
    "sets of no vertex": ([0, 2, 2, 2], [0, 1, 3, 5], [1, 1, 2, 0, 2], False),
}


@pytest.mark.parametrize("kind", SETS_OUTSIDE)
def test_sets_from_outside(kind: str) -> None:
    vertex_start, set_start, members, expected = SETS_OUTSIDE[kind]
    families = Families(
        np.array(vertex_start, np.int64), np.array(set_start, np.int64), np.array(members, np.int32)
    )
    assert well_formed(families) is expected
