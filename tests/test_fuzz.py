"""Damaged and hostile files: only a QubayesError comes out, in bounded time and memory. What fuzzing found stays found.

The experiment is benchmarks/faults/fuzz.py; here it runs at a tiny size, and each kind of bug that
it met has a test."""

import gzip
import io
import json
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paper.growth import slope
from benchmarks.paper.store import Store
from benchmarks.paper.trial import Trial
from candidate_cases import dependent_data
from qubayes import (
    DataError,
    FormatError,
    QubayesError,
    ServiceError,
    SettingError,
)
from qubayes.candidates import (
    CandidateSearch,
    Knowledge,
    identify,
    read_candidates,
    read_knowledge,
    write_candidates,
)
from qubayes.candidates.prune import prune
from qubayes.data import ReadSettings, read
from qubayes.foundation.files import (
    LIMIT_VARIABLE,
    check_archive,
    check_places,
    json_object,
    opened,
    parse_json,
    read_bytes,
    read_text,
    replacing,
    shown,
    unpacked_limit,
)
from qubayes.learning import bootstrap, learn
from qubayes.machines import KEY_VARIABLE, DigitalAnnealer, Patience, read_model
from qubayes.network import Network, read_network
from qubayes.quadratize import Decoder, read_polynomial
from qubayes.qubo import formulate, read_formulation
from qubayes.scores import Score
from qubayes.search import Limits, solve
from qubayes.search.solve import read_solution, write_solution
from service_cases import sender

ROOT = Path(__file__).parents[1]
FAULTS = ROOT / "benchmarks" / "faults"
DIGITS = "9" * 5000  # Python refuses to make a number of them, with a ValueError of its own


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def quickly(limit: float, call: object, *arguments: object) -> object:
    """What the call returns; an error if it took longer than so many seconds of processor time."""
    began = time.process_time()
    try:
        return call(*arguments)
    finally:
        assert time.process_time() - began < limit


# The experiment


@pytest.mark.parametrize(
    "reader",
    [
        "network .bif",
        "native .qbc",
        "bench trials.jsonl",
        "formulation .qbf",
        "certificate and scores (checker)",
    ],
)
def test_the_experiment_at_a_tiny_size(reader: str) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "faults",
        "fuzz",
        "--inputs",
        "60",
        "--reader",
        reader,
        "--seed",
        "7",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith(f"| {reader}")).split(
        " | "
    )
    inputs, accepted, refused = map(int, row[1:4])
    assert inputs == 60 == accepted + refused and (refused > 20 or reader == "bench trials.jsonl")


def test_the_experiment_tells_of_a_reader_that_breaks(tmp_path: Path) -> None:
    script = f"""
import sys; sys.path.insert(0, {str(FAULTS)!r})
import fuzz, os
from fuzz_readers import Reader
def prepare(folder):
    def read(path, random):
        content = path.read_bytes()
        if len(content) % 5 == 1: raise KeyError("broken")
        if len(content) % 5 == 2: os.abort()
        if len(content) % 5 == 3: bytearray(8 << 30)
        raise fuzz.QubayesError("refused")
    return [b"12345", b"1234567890"], read
fuzz.READERS.clear(); fuzz.READERS["r"] = Reader(".x", 1, prepare)
sys.argv = ["fuzz", "--inputs", "40"]
sys.exit(fuzz.main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert all(
        word in done.stderr for word in ("KeyError: \"'broken'\"", "code -6", "MemoryError")
    ), done.stderr


# JSON: numbers with thousands of digits, infinities, depth


@pytest.mark.parametrize(
    "text",
    [
        DIGITS,
        "1e999",
        "1e400",
        "-1e400",
        "[1, 2e308]",
        "NaN",
        "-Infinity",
        "[" * 200_000,
        "",
        "{",
        b"\xff",
        b"\xff\xfe[",
    ],
)
def test_json_that_is_none(text: str | bytes) -> None:
    with pytest.raises(FormatError, match="not JSON"):
        parse_json(text)


def test_json_objects_alone() -> None:
    assert json_object('{"a": 1.5}') == {"a": 1.5}
    with pytest.raises(FormatError, match="object"):
        json_object("[1]")


@pytest.mark.parametrize("depth", [900, 960, 980, 990, 995, 2000, 100_000])
def test_nested_values_in_every_json_file(tmp_path: Path, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    table = file(tmp_path, "t.csv", "a,b\n0,1\n1,0\n")
    for text, reading in (
        (f"[[{nested}, []]]", read_polynomial),
        (f"[[1, {nested}]]", read_polynomial),
        (f'{{"a": {nested}}}', lambda path: read(table, ReadSettings(arities=path))),
        (f'{{"forbidden": {nested}}}', read_knowledge),
        (f'{{"max_parents": {{"a": {nested}}}}}', read_knowledge),
        (f'{{"format": "qubayes network", "version": {nested}, "vertices": []}}', read_network),
        (
            f'{{"format": "qubayes-decoder-1", "bits": {nested}}}',
            lambda path: Decoder.from_json(path.read_text()),
        ),
    ):
        with pytest.raises(QubayesError):
            reading(file(tmp_path, "x.json", text))


def test_numbers_beyond_the_floats(tmp_path: Path) -> None:
    for text in (
        f"[[1, [{DIGITS}]]]",
        f"[[{DIGITS}, []]]",
        "[[1e999, []]]",
        "[[" + "9" * 400 + ", []]]",
    ):
        with pytest.raises(QubayesError):
            read_polynomial(file(tmp_path, "x.json", text))
    names = read_polynomial(
        file(tmp_path, "x.json", f"[[1, [{'9' * 400}, -{'9' * 400}, 3]]]")
    ).variables
    assert names == (-int("9" * 400), 3, int("9" * 400))
    with pytest.raises(FormatError):
        Decoder.from_json(f'{{"format": {DIGITS}}}')
    table = file(tmp_path, "t.csv", "a,b\n0,1\n1,0\n")
    with pytest.raises(FormatError):
        read(table, ReadSettings(arities=file(tmp_path, "x.json", f'{{"a": {DIGITS}}}')))
    with pytest.raises(DataError, match="declared with 1 states"):
        read(file(tmp_path, "x.dat", f"{DIGITS} 1\n1 1\n{DIGITS} 0\n0 1\n"))


def test_solutions_with_impossible_facts(tmp_path: Path) -> None:
    found = identify(dependent_data(3, 60, 1), CandidateSearch(2, Score("bdeu")))
    path = tmp_path / "s.json"
    write_solution(solve(found, "anneal", limits=Limits(None, 50, 0)), path)
    good = json.loads(path.read_text())
    for key, value in (
        ("bound", 10**400),
        ("seed", 10**400),
        ("seconds", "x"),
        ("status", [[]]),
        ("solver", 3),
    ):
        path.write_text(json.dumps({**good, key: value}))
        with pytest.raises(FormatError, match=key):
            read_solution(path, found)
    path.write_text(json.dumps(good).replace('"statistics": {', '"statistics": {"x": Infinity, '))
    with pytest.raises(FormatError, match="Infinity"):
        read_solution(path, found)


def test_values_of_any_kind_are_shown_on_one_line() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "a list" and shown("a\nb") == repr("a\nb") and len(shown("x" * 999)) == 60
    assert shown(10**9000) == "a int"


# Networks


@pytest.mark.parametrize("parents", [40, 3000])
@pytest.mark.parametrize("states", [1, 10])
def test_tables_with_more_axes_than_arrays_have(tmp_path: Path, parents: int, states: int) -> None:
    its = [f"s{i}" for i in range(states)]
    row = ", ".join(["1"] + ["0"] * (states - 1))
    kind = f"type discrete [ {states} ] {{ {', '.join(its)} }};"
    roots = "".join(
        f"variable v{i} {{ {kind} }}\nprobability ( v{i} ) {{ table {row}; }}\n"
        for i in range(parents)
    )
    given = ", ".join(f"v{i}" for i in range(parents))
    child = f"variable c {{ type discrete [ 1 ] {{ x }}; }}\nprobability ( c | {given} ) {{ default 1; }}\n"
    with pytest.raises(FormatError, match="at most 31"):
        read_network(file(tmp_path, "x.bif", roots + child))
    vertex = {"states": its, "table": [[1.0] + [0.0] * (states - 1)], "parents": []}
    vertices = [{"name": f"v{i}", **vertex} for i in range(parents)]
    vertices.append(
        {
            "name": "c",
            "states": ["x"],
            "table": [[1.0]],
            "parents": [f"v{i}" for i in range(parents)],
        }
    )
    text = json.dumps({"format": "qubayes network", "version": 1, "vertices": vertices})
    with pytest.raises(FormatError, match="at most 31"):
        read_network(file(tmp_path, "x.json", text))


def test_no_entities_and_no_square_of_declarations(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "' + "&x;" * 1000 + '">]><a>&y;</a>'
    outside = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'
    parameter = '<!DOCTYPE a [<!ENTITY % x SYSTEM "http://localhost/x"> %x;]><a/>'
    for name in ("x.xmlbif", "x.graphml"):
        for text in (bomb, outside, parameter):
            with pytest.raises(FormatError, match="entity"):
                read_network(file(tmp_path, name, text))
        many = "".join(f"<!ATTLIST a b{i} CDATA 'x'>" for i in range(100_000))
        with pytest.raises(FormatError, match="more than 1000 attributes"):
            quickly(2.0, read_network, file(tmp_path, name, f"<!DOCTYPE a [{many}]><a/>"))
        with pytest.raises(FormatError, match=r"not an? "):  # an address outside is not looked at
            read_network(file(tmp_path, name, '<!DOCTYPE a SYSTEM "http://localhost/x.dtd"><a/>'))


def test_a_long_cycle_is_told_in_short() -> None:
    n = 20_000
    with pytest.raises(QubayesError, match=r"cycle, .*\.\.\.; remove") as caught:
        Network(tuple(f"v{i}" for i in range(n)), tuple(((i - 1) % n,) for i in range(n)))
    assert len(str(caught.value)) < 300


# Data


def test_room_for_rows_that_are_there_not_for_blank_lines(tmp_path: Path) -> None:
    # with as many lines it would be 90 billion cells
    header = ",".join(f"c{i}" for i in range(300_000))
    with pytest.raises(DataError, match="no row"):
        quickly(10.0, read, file(tmp_path, "x.csv", header + "\n" * 300_000))
    assert (
        read(file(tmp_path, "x.csv", "a,b\n,0\n\n\n1,0\n"), ReadSettings(missing="state")).rows == 2
    )


def test_rare_items_do_not_fill_the_memory(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="too large"):
        quickly(
            10.0,
            read,
            file(tmp_path, "x.dat", "\n".join(map(str, range(32_000)))),
            ReadSettings(format="fimi"),
        )


# Local scores


def test_long_sets_are_sorted_in_time(tmp_path: Path) -> None:
    n = 60_000  # sorted by insertion these are two billion steps
    roots = "".join(f"{i} 1\n-1 0\n" for i in range(1, n))
    given = " ".join(map(str, range(n - 1, 0, -1)))
    path = file(tmp_path, "x.jkl", f"{n}\n{roots}0 2\n-1 0\n-2 {n - 1} {given}\n")
    assert quickly(8.0, read_candidates, path).total == 0


# Knowledge


def test_tiers_and_chains_in_time(tmp_path: Path) -> None:
    quickly(3.0, Knowledge(tiers=[[]] * 200_000).resolve, ("a", "b"), 1)
    names = tuple(f"v{i}" for i in range(600))
    edges = [(f"v{i}", f"v{i + 1}") for i in range(599)]
    assert quickly(5.0, Knowledge(required=edges).resolve, names, 1).required[5] == (4,)
    with pytest.raises(QubayesError, match=r"cycle v.* -> \.\.\.; remove"):
        quickly(5.0, Knowledge(required=[*edges, ("v599", "v0")]).resolve, names, 2)
    with pytest.raises(QubayesError, match="not a variable of the data; did you mean"):
        quickly(2.0, Knowledge(forbidden=[("a" * 10**6, "v0")]).resolve, (*names, "a" * 10**5), 2)


# Models


def test_archives_whose_parts_overlap_or_swell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("format", "shape", "data"):
            archive.writestr(f"{name}.npy", b"\0" * 100_000)
    path = file(tmp_path, "x.zip", whole.getvalue())

    def checked(path: Path) -> None:
        with zipfile.ZipFile(path) as archive, path.open("rb") as content:
            check_archive(archive, content)

    monkeypatch.setenv(LIMIT_VARIABLE, "200000")
    with pytest.raises(FormatError, match=f"300,000 bytes; set {LIMIT_VARIABLE}"):
        checked(path)
    content = bytearray(whole.getvalue())
    at = len(content)
    for _ in range(3):  # the sizes of packed parts in the directory
        at = content.rindex(b"PK\x01\x02", 0, at)
        content[at + 20 : at + 24] = (50_000).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(FormatError, match="overlap"):
        checked(path)


# Formulations


@pytest.fixture(scope="module")
def parts_of_formulation(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The parts of a .qbf file with pairs, triangles, coupled pairs and scores of unions."""
    lists = [[((), -10.0), *(((p,), -9.0 + p / 10) for p in range(5) if p != v)] for v in range(5)]
    names = tuple(f"v{i}" for i in range(5))
    candidates = prune(names, [[s for s in its if s[1] > -10.5] for its in lists])
    folder = tmp_path_factory.mktemp("formulation")
    found = formulate(candidates, union_scores=lambda v, sets: [-8.0 - len(s) for s in sets])
    found.write(folder / "x.bqm")
    with zipfile.ZipFile(folder / "x.bqm.qbf") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(folder: Path, parts: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(folder / "x.qbf", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return folder / "x.qbf"


def saved(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def i4(*rows: object) -> bytes:
    return saved(np.array(rows, np.int32))


HUGE = 2**31 - 1
WRONG_PARTS = {
    "a vertex that is not there": {"pairs.npy": lambda a: i4(*a[:-1], [0, HUGE])},
    "one vertex too many": {"pairs.npy": lambda a: i4(*a[:-1], [3, 5])},
    "a negative vertex": {"pairs.npy": lambda a: i4([-1, 0], *a[1:])},
    "a pair of one": {"pairs.npy": lambda a: i4([0, 0], *a[1:])},
    "a pair twice": {"pairs.npy": lambda a: i4(a[1], *a[1:])},
    "descending pairs": {"pairs.npy": lambda a: i4(a[1], a[0], *a[2:])},
    "a pair turned round": {"pairs.npy": lambda a: i4(a[0][::-1], *a[1:])},
    "three vertices in a pair": {"pairs.npy": lambda a: i4(*([*x, 4] for x in a))},
    "a flat array": {"pairs.npy": lambda a: saved(a.ravel())},
    "real numbers": {"pairs.npy": lambda a: saved(a.astype(np.float64))},
    "64 bits": {"pairs.npy": lambda a: saved(a.astype(np.int64))},
    "columns first": {"pairs.npy": lambda a: saved(np.asfortranarray(a))},
    "objects": {"pairs.npy": lambda a: b"\x93NUMPY\x01\x00" + b"x" * 200},
    "a triangle of no pair": {"triangles.npy": lambda a: i4(*a[:-1], [0, 1, HUGE])},
    "one pair too many": {"triangles.npy": lambda a: i4(*a[:-1], [8, 9, 10])},
    "a negative pair": {"triangles.npy": lambda a: i4(*a[:-1], [-1, 0, 1])},
    "pairs that make no triangle": {"triangles.npy": lambda a: i4(*a[:-1], [0, 1, 2])},
    "sides in another order": {"triangles.npy": lambda a: i4(*a[:-1], a[-1][::-1])},
    "two sides": {"triangles.npy": lambda a: i4(*(x[:2] for x in a))},
    "coupled without candidates": {"coupled.npy": lambda a: i4([0, HUGE])},
    "coupled with itself": {"coupled.npy": lambda a: i4([2, 2])},
    "one score too few": {"unions.npy": lambda a: saved(a[:-1])},
    "a score that is none": {"unions.npy": lambda a: saved(a * np.nan)},
    "another penalty": {"settings.json": {"penalty": "none"}},
    "a penalty that is a list": {"settings.json": {"penalty": []}},
    "another scale": {"settings.json": {"scale": {"all": 2.0}}},
    "a scale that is a number": {"settings.json": {"scale": 2.0}},
    "a scale of a text": {"settings.json": {"scale": {"edge": "2"}}},
    "a negative scale": {"settings.json": {"scale": {"edge": -2.0}}},
    "a huge scale": {"settings.json": {"scale": {"edge": 10**400}}},
    "a step of 0": {"settings.json": {"step": 0}},
    "a step that is a text": {"settings.json": {"step": "1"}},
    "an order that is a number": {"settings.json": {"order": 3}},
    "another checksum": {"settings.json": {"checksum": "0" * 64}},
}


def test_a_formulation_in_parts_is_read(
    tmp_path: Path, parts_of_formulation: dict[str, bytes]
) -> None:
    found = read_formulation(archived(tmp_path, parts_of_formulation))
    assert found.bits["r"] == 10 and len(found.order.triangles) > 3


@pytest.mark.parametrize("fault", WRONG_PARTS)
def test_a_formulation_with_a_wrong_part_is_refused(
    tmp_path: Path, parts_of_formulation: dict[str, bytes], fault: str
) -> None:
    [(name, change)] = WRONG_PARTS[fault].items()
    content = parts_of_formulation[name]
    if isinstance(change, dict):
        changed = json.dumps(json.loads(content) | change).encode()
    else:
        changed = change(np.load(io.BytesIO(content)))
    path = archived(tmp_path, parts_of_formulation | {name: changed})
    with pytest.raises(FormatError, match=r"x\.qbf"):
        quickly(2.0, read_formulation, path)


def test_a_formulation_unpacks_to_a_limit(
    tmp_path: Path, parts_of_formulation: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archived(tmp_path, parts_of_formulation)
    monkeypatch.setenv(LIMIT_VARIABLE, "500")
    with pytest.raises(FormatError, match=LIMIT_VARIABLE):
        read_formulation(path)


def test_an_array_is_as_large_as_its_part(
    tmp_path: Path, parts_of_formulation: dict[str, bytes]
) -> None:
    """A header that claims 10^14 numbers, and one that numpy would read as a Python expression."""
    for header in (b"(100000000000000,)", b"(" * 90 + b"1" + b",)" * 90):
        content = parts_of_formulation["unions.npy"]
        start = content.index(b"(")
        stop = content.index(b")") + 1
        path = archived(
            tmp_path,
            parts_of_formulation | {"unions.npy": content[:start] + header + content[stop:]},
        )
        with pytest.raises(FormatError, match=r"x\.qbf"):
            read_formulation(path)


def test_every_archive_that_is_damaged_is_refused(
    tmp_path: Path, parts_of_formulation: dict[str, bytes]
) -> None:
    """One bit flipped in the directory and in the head of each part: a formulation, or one error."""
    content = archived(tmp_path, parts_of_formulation).read_bytes()
    directory = content.index(b"PK\x01\x02")
    refused = 0
    for place in (
        *range(30),
        *range(directory, directory + 46),
        *range(len(content) - 22, len(content)),
    ):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            try:
                assert read_formulation(file(tmp_path, "y.qbf", changed)).bits["r"] == 10
            except FormatError as error:
                refused += "y.qbf" in str(error)
    assert refused > 200
    for name in parts_of_formulation.keys() - {"unions.npy"}:
        parts = {key: part for key, part in parts_of_formulation.items() if key != name}
        with pytest.raises(FormatError, match=r"x\.qbf"):
            read_formulation(archived(tmp_path, parts))


# The Digital Annealer


@contextmanager
def client_of(body: object, status: int = 200) -> Iterator[DigitalAnnealer]:
    """A client of a service that gives this answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    with pytest.MonkeyPatch.context() as patch, sender([head + content]) as address:
        patch.setenv(KEY_VARIABLE, "k")
        yield DigitalAnnealer(address, patience=Patience(1.0, 1, 0.0, 0.0))


@pytest.mark.parametrize("index", ["0" * 9 + "7", "0" * 9 + DIGITS, "-1", "1.0", "²", "3", " 1"])
def test_bits_that_the_answer_makes_up(index: str) -> None:
    solution = {
        "energy": 0,
        "penalty_energy": 0,
        "frequency": 1,
        "configuration": {"0": True, index: True, "2": True},
    }
    answer = {"status": "Done", "qubo_solution": {"solutions": [solution]}}
    with client_of(answer) as client, pytest.raises(ServiceError, match="sets"):
        client.fetch("job", 3)


def test_many_empty_solutions_take_no_room() -> None:
    answer = {"status": "Done", "qubo_solution": {"solutions": [{}] * 10**5}}
    with (
        client_of(answer) as client,
        pytest.raises(ServiceError, match="does not hold 100000 bits"),
    ):
        quickly(2.0, client.fetch, "job", 100_000)  # 10 GB, were there room made for them


@pytest.mark.parametrize("depth", [900, 970, 985, 100_000])
def test_nested_messages(depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    for body, status in (
        (b'{"status": "Error", "message": %s}', 200),
        (b'{"error": {"title": %s}}', 400),
    ):
        with client_of(body % nested, status) as client, pytest.raises(ServiceError) as raised:
            client.fetch("job", 3)
        assert "connection" not in str(raised.value)  # the answer arrived


# Run folders and results of the bench


def test_files_of_other_data_in_a_run_folder_are_made_anew(tmp_path: Path) -> None:
    settings = {"max_parents": 2, "time_limit": None, "moves": 50, "solver": "anneal"}
    table, other = dependent_data(3, 60, 1), dependent_data(4, 60, 2)
    expected = learn(table, **settings, run_dir=tmp_path / "a").solution
    learn(other, **settings, run_dir=tmp_path / "b")
    for name in ("candidates.qbc", "solution.json", "run.json"):
        (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
        assert learn(table, **settings, run_dir=tmp_path / "a").solution.score == expected.score


@pytest.mark.parametrize("kept", ["[[1], [0], []]", "[[1, 1], [], []]", "[[1.0], [], []]"])
def test_kept_resamplings_that_are_no_networks_are_made_anew(tmp_path: Path, kept: str) -> None:
    path = file(tmp_path, "b.json", f'{{"networks": [{kept}]}}')
    table, search = dependent_data(3, 60, 1), CandidateSearch(1)
    anew = bootstrap(table, search, 1)
    assert (bootstrap(table, search, 1, keep=path).frequencies == anew.frequencies).all()
    network = [[], [], []] if anew.consensus.edges else [[1], [], []]
    path.write_text(json.dumps({"networks": [network]}))
    taken = bootstrap(table, search, 1, keep=path).consensus
    assert [list(parents) for parents in taken.parents] != anew.consensus.parents
    assert len(taken.edges) == sum(map(len, network))


def test_results_that_lack_something_are_not_measured(tmp_path: Path) -> None:
    from dataclasses import asdict

    trial = Trial("candidates", "alarm", 2, 0)
    good = {"trial": asdict(trial), "result": {"total": 3, "seconds": 0.5, "peak_mb": 9}}
    path = tmp_path / "trials.jsonl"
    for damage in (
        {"result": {"total": 3}},
        {"result": {**good["result"], "seconds": "1"}},
        {"result": {**good["result"], "total": 10**400}},
        {"result": 3},
        {"trial": {**good["trial"], "seed": None}},
        {"trial": {**good["trial"], "rows": [1]}},
    ):
        path.write_text(json.dumps({**good, **damage}) + "\n")
        assert trial not in Store(path) and not Store(path).results()
    path.write_text(json.dumps(good) + "\n")
    assert trial in Store(path)
    assert np.isnan(slope([(1.0, 0.0), (2.0, 0.0)]))


# Packed files


def test_packed_files_have_a_limit_that_can_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unpacked_limit(10) == 1 << 30 and unpacked_limit(10**9) == 10**11
    path = file(tmp_path, "x.csv.gz", gzip.compress(b"a,b\n" + b"0,1\n1,0\n" * 50_000))
    monkeypatch.setenv(LIMIT_VARIABLE, "100000")
    with pytest.raises(FormatError, match=f"more than 100,000 bytes.*{LIMIT_VARIABLE}"):
        read(path)
    monkeypatch.setenv(LIMIT_VARIABLE, "400004")
    assert read(path).rows == 100_000
    monkeypatch.setenv(LIMIT_VARIABLE, "much")
    with pytest.raises(SettingError, match=LIMIT_VARIABLE):
        read(path)


@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz"])
def test_texts_have_a_limit_unpacked(tmp_path: Path, name: str) -> None:
    text = "a" * 999 + "\n"
    path = file(tmp_path, name, gzip.compress(text.encode()) if name.endswith(".gz") else text)
    assert read_text(path, 1000) == text
    with pytest.raises(FormatError, match="more than 999 bytes unpacked"):
        read_text(path, 999)
    large = b"a" * (1 << 24)
    path = file(tmp_path, name, gzip.compress(large) if name.endswith(".gz") else large)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="more than 999 bytes unpacked"):
            read_text(path, 999)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("x.csv.gz", read),
        ("x.dat.gz", read),
        ("x.jkl.gz", read_candidates),
        ("x.pss.gz", read_candidates),
        ("x.bif.gz", read_network),
        ("x.xmlbif.gz", read_network),
        ("x.bqm.gz", read_model),
    ],
)
def test_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reading: object) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1000000")
    packed = b"".join([gzip.compress(b"\0" * 10**7)] * 20)  # 200 MB
    with pytest.raises(FormatError):
        quickly(2.0, reading, file(tmp_path, name, packed))


def test_names_of_files_that_cannot_be(tmp_path: Path) -> None:
    for path, word in (
        ("x\0y", "NUL"),
        ("x\ud800y", "surrogate"),
        (tmp_path, "folder"),
        (tmp_path / "none", "no such file"),
    ):
        with pytest.raises(FormatError, match=word):
            read_bytes(path)
        with pytest.raises(FormatError, match=word), opened(path):
            pass
    for name in ("x\0y", "x\ud800y"):
        with (
            pytest.raises(FormatError, match=r"cannot write .* NUL byte or a lone surrogate"),
            replacing(tmp_path / name),
        ):
            pass
        with pytest.raises(FormatError, match=r"cannot write .* NUL byte or a lone surrogate"):
            check_places([tmp_path / name])
    assert not list(tmp_path.iterdir())


def test_sets_hash_otherwise_each_time_with_the_same_result(tmp_path: Path) -> None:
    found = identify(dependent_data(5, 200, 4), CandidateSearch(3, Score("bdeu")))
    path = tmp_path / "x.jkl"
    write_candidates(found, path)
    first, second = read_candidates(path), read_candidates(path)
    assert (first.scores == second.scores).all() and (
        first.families.members == second.families.members
    ).all()


def test_line_ends_in_names_come_back(tmp_path: Path) -> None:
    from qubayes.data import Dataset, write

    states = (("0", "x\ry"), ("0", "1\n2"), ("0", "1"), ("0", ","))
    given = Dataset(("a\rb", "c\nd", 'e"f', "g,h"), states, np.array([[0, 1]] * 4, dtype=np.uint8))
    for name in ("x.csv", "x.tsv"):
        write(given, tmp_path / name)
        found = read(tmp_path / name)
        assert (
            found.names == given.names
            and {*found.states[0]} == {*states[0]}
            and {*found.states[1]} == {*states[1]}
        )
