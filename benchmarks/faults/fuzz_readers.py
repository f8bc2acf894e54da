"""Every reader of the project: how valid files for it are made, how they are damaged, how they are read."""

import io
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import fuzz_mutations as damage
import numpy as np

from qubayes import QubayesError

Read = Callable[[Path, Random], object]


class Reader(NamedTuple):
    """One reader. `prepare(folder)` makes the seeds and the function that reads a file."""

    ending: str
    share: float  # of the inputs, in parts; little for those that start a process for each
    prepare: Callable[[Path], tuple[list[bytes], Read]]
    damage: Callable[[Sequence[bytes], Random], bytes] = damage.mutated


def _table(states: int = 3, n: int = 4, rows: int = 30, names: Sequence[str] = ()) -> Any:
    from qubayes.data import Dataset

    rng = np.random.default_rng(states)
    codes = np.zeros((n, rows), dtype=np.uint8)
    for i in range(n):
        codes[i] = (
            np.where(rng.random(rows) < 0.4, rng.integers(0, states, rows), codes[i - 1]) % states
        )
    return Dataset(
        tuple(names) or tuple(f"v{i}" for i in range(n)),
        (tuple(map(str, range(states))),) * n,
        codes,
    )


def _bytes(folder: Path, name: str, write: Callable[[Path], object]) -> bytes:
    path = folder / f"seed{name}"
    write(path)
    return path.read_bytes()


# Data


def _csv(folder: Path, separator: str = ",") -> tuple[list[bytes], Read]:
    from qubayes.data import ReadSettings, read, write

    ending = ".csv" if separator == "," else ".tsv"
    seeds = [
        _bytes(folder, ending, lambda path: write(_table(2), path)),
        _bytes(
            folder,
            ending,
            lambda path: write(_table(3, names=('a "q"', "b,c", "d\te", "f\ng")), path),
        ),
        b"age,sex,x\n1.5,f,NA\n2.5,m,1\n-3e2,,2\n7,f,3\n".replace(b",", separator.encode()),
        b'"a","b"\n"x""y","1"\n"p\nq","2"\n'.replace(b",", separator.encode()),
    ]
    variants = [
        ReadSettings(),
        ReadSettings(missing="drop", bins=3),
        ReadSettings(missing="state", bins={"v0": 2}, bin_method="width"),
        ReadSettings(missing="state", bins=4, bin_method="width", ignore=("v1",)),
        ReadSettings(arities={"v0": 5, "v1": ["0", "1", "2"]}, missing="drop"),
        ReadSettings(format="gobnilp"),
    ]
    return seeds, lambda path, random: read(path, random.choice(variants))


def _dat(folder: Path) -> tuple[list[bytes], Read]:
    from qubayes.data import ReadSettings, read, write

    seeds = [
        _bytes(folder, ".dat", lambda path: write(_table(3), path)),
        b"# made by hand\na b c\n2 2 3\n0 1 2\n1 1 0\n\n0 0 1\n",
        b"1 3 5\n2 3\n\n1 2 5 9\n10\n",
        b"a b\n3 2\nx y\nz y\nw q\n",
    ]
    variants = [
        ReadSettings(),
        ReadSettings(),
        ReadSettings(format="fimi"),
        ReadSettings(format="gobnilp"),
    ]
    return seeds, lambda path, random: read(path, random.choice(variants))


def _frame(folder: Path, kind: str) -> tuple[list[bytes], Read]:
    import polars as pl

    from qubayes.data import ReadSettings, read, write

    text = [["x", "y", None, "x"] * 5, ["1", "2", "2", "1"] * 5]
    frame = pl.DataFrame(
        {
            "t": pl.Series(text[0]),
            "e": pl.Series(text[1], dtype=pl.Enum(["1", "2", "3"])),
            "c": pl.Series(text[1], dtype=pl.Categorical),
            "i": list(range(20)),
            "f": [0.5, 1.5] * 10,
            "b": [True, False] * 10,
        }
    )
    seeds = []
    for made in (frame, frame.select("t", "e"), pl.DataFrame({"p": [1, 2] * 4, "q": [1, 1] * 4})):
        file = io.BytesIO()
        if kind == "parquet":
            made.write_parquet(file, compression=("zstd", "snappy", "uncompressed")[len(seeds)])
        elif kind == "arrow":
            made.write_ipc(file, compression=("uncompressed", "lz4", "zstd")[len(seeds)])
        else:
            made.write_ipc_stream(file)
        seeds.append(file.getvalue())
    if kind == "parquet":
        seeds.append(_bytes(folder, ".parquet", lambda path: write(_table(2), path)))
    settings = ReadSettings(missing="state", bins=3)
    return seeds, lambda path, random: read(path, settings)


def _arities(folder: Path) -> tuple[list[bytes], Read]:
    from qubayes.data import ReadSettings, read, write

    data = folder / "data.csv"
    write(_table(2, names="abcd"), data)
    seeds = [
        b'{"a": 3, "b": ["0", "1"], "c": 2}',
        b'{"d": ["1", "0", "other"]}',
        b'{"a": ["0", "1", "\\u00e9"], "d": 1000}',
    ]
    return seeds, lambda path, random: read(data, ReadSettings(arities=path))


def _arities_bif(folder: Path) -> tuple[list[bytes], Read]:
    from qubayes.data import ReadSettings, read, write
    from qubayes.network import fit

    table = _table(2, names="abcd")
    data = folder / "data.csv"
    write(table, data)
    network = fit(_graph("abcd"), table)
    seeds = [_bytes(folder, ".bif", lambda path: _write_network(network, path))]
    return seeds, lambda path, random: read(data, ReadSettings(arities=path))


# Local scores and subsets


def _candidates(seed: int = 3) -> Any:
    from qubayes.candidates import CandidateSearch, identify
    from qubayes.scores import Score

    return identify(_table(seed, rows=200), CandidateSearch(3, Score("bdeu", 1.0)))


def _scores(folder: Path, kind: str) -> tuple[list[bytes], Read]:
    from qubayes.candidates import read_candidates, write_candidates

    seeds = [
        _bytes(folder, kind, lambda path: write_candidates(_candidates(2), path)),
        _bytes(folder, kind, lambda path: write_candidates(_candidates(3), path)),
    ]
    if kind == ".jkl":
        seeds.append(
            b"3\n# made by hand\na 2\n-1.5 0\n-1 1 b\nb 1\n-2 0\nc 4\n-9 0\n-8 1 a\n-7 1 b\n-3 2 a b\n"
        )
    if kind == ".pss":
        seeds.append(
            b"META pss_version = 0.1\n\nVAR a\nMETA arity=2\n-1.5\n-1 b\n\nVAR b\n-2\n\nVAR c\n-9\n-8 a\n-3 a b\n"
        )
    back = folder / "back.qbc"

    def read(path: Path, random: Random) -> object:
        found = read_candidates(path)
        if random.random() < 0.1:
            write_candidates(found, back)
            again = read_candidates(back)
            assert again.names == found.names and (again.scores == found.scores).all()
        return found

    return seeds, read


def _subsets(folder: Path) -> tuple[list[bytes], Read]:
    from qubayes.qubo.subsets import cover, read_subsets, write_subsets

    made = [cover(_candidates(states)) for states in (2, 3)]
    seeds = [_bytes(folder, ".qbs", lambda path, one=one: write_subsets(one, path)) for one in made]

    def read(path: Path, random: Random) -> object:
        found = read_subsets(path)
        from qubayes.qubo import formulate

        return formulate(_KEPT["candidates"], found) if random.random() < 0.2 else found

    _KEPT["candidates"] = _candidates(3)
    return seeds, read


_KEPT: dict[str, Any] = {}


def _blocks(folder: Path) -> tuple[list[bytes], Read]:
    """Finished blocks of a search that was killed: read, and gone on with."""
    from qubayes.candidates import CandidateSearch, identify
    from qubayes.candidates.checkpoint import Checkpoint
    from qubayes.foundation.workers import Workers
    from qubayes.scores import Score

    table, search = _table(3, n=5, rows=60), CandidateSearch(2, Score("bdeu", 1.0))
    place, kept = folder / "kept.blocks", []
    plain = Checkpoint.add

    def noting(self: Checkpoint, index: int, block: Any) -> None:
        plain(self, index, block)
        kept.append(self.path.read_bytes())

    Checkpoint.add = noting  # type: ignore[method-assign]
    try:
        identify(table, search, checkpoint=place, workers=Workers(1))
    finally:
        Checkpoint.add = plain  # type: ignore[method-assign]
    workers = Workers(1)
    expected = identify(table, search, workers=workers)

    def read(path: Path, random: Random) -> object:
        found = identify(table, search, checkpoint=path, resume=True, workers=workers)
        assert found.names == expected.names
        return found

    return kept[:1] or [b""], read


# Networks


def _graph(names: str) -> Any:
    from qubayes.network import Network

    return Network(
        tuple(names),
        tuple(() if not i else ((0,) if i == 1 else (i - 2, i - 1)) for i in range(len(names))),
    )


def _write_network(network: Any, path: Path) -> None:
    from qubayes.network import write_network

    write_network(network, path)


def _networks(folder: Path, kind: str) -> tuple[list[bytes], Read]:
    from qubayes.network import Network, fit, read_network, write_network

    fitted = fit(_graph("abcd"), _table(2, names="abcd"))
    odd = Network(("x y", "p.q", "ä"), ((), (0,), ()), (("a b", "c"), ("1", "2", "3"), ("only",)))
    tables = (np.array([0.25, 0.75]), np.array([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]]), np.array([1.0]))
    odd = Network(odd.names, odd.parents, odd.states, tables)
    seeds = [
        _bytes(folder, kind, lambda path, one=one: write_network(one, path))
        for one in (fitted, odd)
    ]
    seeds += _BY_HAND.get(kind, [])
    back = folder / "back.json"

    def read(path: Path, random: Random) -> object:
        found = read_network(path)
        if random.random() < 0.1:
            with suppress(QubayesError):  # names that no file can hold
                write_network(found, back)
                assert read_network(back).parent_names() == found.parent_names()
        return found

    return seeds, read


_BY_HAND = {
    ".bif": [
        b'network "n" { property author me; }\n// comment\nvariable A { type discrete [2] { x, y }; property p = 1; }\n'
        b"variable B { type discrete [ 2 ] { u v }; }\nprobability ( A ) { table 0.3 0.7; }\n"
        b"probability ( B | A ) { default 0.5 0.5; (x) 0.1 0.9; /* more */ }\n"
    ],
    ".xmlbif": [
        b'<?xml version="1.0"?>\n<!DOCTYPE BIF [\n<!ELEMENT BIF (NETWORK)*>\n'
        b"<!ATTLIST BIF VERSION CDATA #REQUIRED>\n]>\n"
        b'<BIF VERSION="0.3"><NETWORK><NAME>n</NAME><VARIABLE TYPE="nature"><NAME>a</NAME><OUTCOME>x</OUTCOME>'
        b"<OUTCOME>y</OUTCOME><PROPERTY>p = 1</PROPERTY></VARIABLE><DEFINITION><FOR>a</FOR><TABLE>0.5 <!-- c --> 0.5"
        b"</TABLE></DEFINITION></NETWORK></BIF>"
    ],
    ".graphml": [
        b'<?xml version="1.0"?><graphml><key id="d0" for="node"/><graph id="G" edgedefault="directed"><node id="n0">'
        b'<data key="d0">1</data></node><node id="n1"/><edge id="e0" source="n0" target="n1"/></graph></graphml>'
    ],
    ".bnlearn": [b"[A][C][B|A][D|A:C]\n", b"[A] [B|A]"],
}


# Knowledge, polynomials, models


def _knowledge(folder: Path) -> tuple[list[bytes], Read]:
    from qubayes.candidates import read_knowledge

    seeds = [
        b'{"forbidden": [["a", "b"]], "required": [["c", "d"]], "tiers": [["a", "b"], ["c"], ["d"]],'
        b' "forbid_within_tiers": true, "max_parents": {"a": 0}}',
        b'{"required": [["a", "b"], ["b", "c"]]}',
        b"{}",
    ]
    return seeds, lambda path, random: read_knowledge(path).resolve("abcd", 3)


def _polynomial(folder: Path) -> tuple[list[bytes], Read]:
    from qubayes.quadratize import read_polynomial

    seeds = [
        b'[[1.5, ["a", "b", "c"]], [-2, ["a"]], [3, []], [0.25, ["b", "d"]]]',
        b"[[1, [0, 1, 2]], [2, [3, 10]]]",
    ]
    return seeds, lambda path, random: read_polynomial(path)


def _decoder(folder: Path) -> tuple[list[bytes], Read]:
    from qubayes.quadratize import Decoder, quadratize

    made = [
        quadratize({("a", "b", "c"): 1.0, ("b", "c", "d"): -2.0, ("a",): 1.0}),
        quadratize({(0, 1, 2): 1.0}),
    ]
    seeds = [one.decoder.to_json().encode() for one in made]

    def read(path: Path, random: Random) -> object:
        decoder = Decoder.from_json(path.read_text(encoding="utf-8", errors="surrogateescape"))
        return decoder.decode(dict.fromkeys(decoder.labels, 1))

    return seeds, read


def _formulation() -> Any:
    from qubayes.qubo import formulate
    from qubayes.qubo.subsets import cover

    candidates = _candidates(3)
    return formulate(candidates, cover(candidates))


def _models(folder: Path, kind: str) -> tuple[list[bytes], Read]:
    from qubayes.machines import qubo_from_couplers, read_model, read_qubo, write_qubo

    small = qubo_from_couplers(
        np.array([1.0, -2.5, 0.0]), np.array([0, 1]), np.array([1, 2]), np.array([3.0, -0.5]), 7.0
    )
    plain = kind.removesuffix(".gz")
    seeds = [
        _bytes(folder, plain, lambda path: write_qubo(small, None, path)),
        _bytes(folder, plain, lambda path: write_qubo(small, ["a", "b c", "ü"], path)),
    ]
    return seeds, lambda path, random: (read_model if random.random() < 0.5 else read_qubo)(path)


def _formulations(folder: Path) -> tuple[list[bytes], Read]:
    """A formulation; behind the checksum of its QUBO too, as if it were that of the damaged one."""
    from qubayes.foundation.workers import Workers
    from qubayes.qubo import decode, formulate, formulation_files, read_formulation
    from qubayes.qubo.formulation import Coefficients, assembled
    from qubayes.qubo.subsets import cover

    candidates, workers = _candidates(3), Workers(1)
    variants: list[dict[str, Any]] = [
        {},
        {"order": "adjacent"},
        {"order": "scc", "penalty": "paper"},
        {"coefficients": Coefficients({"order": 1.5}, digits=2)},
        {"union_scores": lambda v, sets: [-50.0 - v - sum(p) / 7 for p in sets]},
    ]
    made = [formulate(candidates, cover(candidates), workers=workers, **more) for more in variants]
    seeds = [
        _bytes(folder, ".qbf", lambda path, one=one: formulation_files.write_formulation(one, path))
        for one in made
    ]

    def read(path: Path, random: Random) -> object:
        if random.random() < 0.3:
            return read_formulation(path, workers)
        problem, settings = formulation_files.read_problem(path)
        with np.errstate(all="ignore"):
            found = assembled(problem, settings["step"], workers)
            return found.checksum, decode(found, np.zeros(found.qubo.bits, np.int8), repair=True)

    return seeds, read


# Results and answers


def _certificates(folder: Path) -> tuple[list[bytes], Read]:
    """Scores and a certificate, given to the checker; it imports nothing of ours, so its error is its own."""
    from qubayes.candidates import write_candidates
    from qubayes.foundation.files import read_bytes
    from qubayes.foundation.workers import Workers
    from qubayes.search import Limits, Run, checker
    from qubayes.search.exact.exact import prove
    from qubayes.search.exact.plan import PLAN

    found: list[bytes] = []
    place, scores_place = folder / "proof.json", folder / "scores.jkl"
    branching = PLAN._replace(order_graph_vertices=0, few_cuts=0, least_violation=0.9)
    for plan in (PLAN, branching):  # mode root, and mostly mode branch
        for seed in range(3):
            candidates = _random_candidates(6, seed)
            run = Run(candidates, Limits(None), Workers(1))
            prove(candidates, run, certificate=place, plan=plan)
            scores = _bytes(
                folder, ".jkl", lambda path, these=candidates: write_candidates(these, path)
            )
            found.append(b"%d\n" % len(scores) + scores + read_bytes(place))
            searched = json.loads(read_bytes(place))
            for part in searched["parts"]:
                part["mode"], part["cuts"] = "search", [step[:2] for step in part["cuts"]]
            content = damage.signed(json.dumps(searched).encode())
            found.append(b"%d\n" % len(scores) + scores + content)

    def read(path: Path, random: Random) -> object:
        line, rest = path.read_bytes().split(b"\n", 1)
        scores_place.write_bytes(rest[: int(line)])
        place.write_bytes(rest[int(line) :])
        try:
            verdict = checker.check(str(scores_place), str(place))
            scores = checker.read_scores(str(scores_place))
            if len(scores) <= 8:
                most = float(_best_score(scores))
                assert verdict.score >= most - 1e-9 * max(1.0, abs(verdict.score)) * (1 + 1e-6)
            return verdict.describe()
        except checker.RefusedError as refused:
            assert len(str(refused)) < 1000
            raise QubayesError(str(refused)) from None

    return found, read


def _best_score(scores: dict[str, dict[frozenset[str], Any]]) -> Any:
    """The score of the best acyclic network, by the set of variables that come first."""
    best: dict[frozenset[str], Any] = {frozenset(): 0}
    for _ in scores:
        after: dict[frozenset[str], Any] = {}
        for first, total in best.items():
            for child in scores.keys() - first:
                usable = [score for members, score in scores[child].items() if members <= first]
                if usable:
                    whole = first | {child}
                    after[whole] = max(after.get(whole, total + max(usable)), total + max(usable))
        best = after
    return max(best.values())


def _random_candidates(n: int, seed: int) -> Any:
    """Candidate sets whose best network is not found by taking the best sets."""
    from itertools import combinations

    from qubayes.candidates.prune import prune

    rng = np.random.default_rng(seed)
    lists = []
    for child in range(n):
        others = [v for v in range(n) if v != child]
        every = [chosen for size in (1, 2) for chosen in combinations(others, size)]
        lists.append([((), -10.0), *((chosen, -9.0 * float(rng.random())) for chosen in every)])
    return prune([f"v{v}" for v in range(n)], lists)


def _solutions(folder: Path) -> tuple[list[bytes], Read]:
    from qubayes.search import Limits, solve
    from qubayes.search.solve import read_solution, write_solution

    formulation = _formulation()
    solution = solve(formulation, "anneal", limits=Limits(None, 200, 0))
    seeds = [_bytes(folder, ".json", lambda path: write_solution(solution, path))]

    def read(path: Path, random: Random) -> object:
        found = read_solution(
            path, formulation if random.random() < 0.3 else formulation.candidates
        )
        return json.dumps(found.as_json(), allow_nan=False)

    return seeds, read


def _bootstraps(folder: Path) -> tuple[list[bytes], Read]:
    from qubayes.learning.confidence import consensus, edge_frequencies, kept_networks

    names = ("a", "b", "c")
    seeds = [b'{"networks": [[[], [0], [0, 1]], [[1], [], []]]}', b'{"networks": []}']

    def read(path: Path, random: Random) -> object:
        found = kept_networks(path, names)
        return consensus(names, edge_frequencies(found)) if found else None

    return seeds, read


def _trials(folder: Path) -> tuple[list[bytes], Read]:
    """The raw results of `bench`, and the tables that are made of them."""
    from dataclasses import asdict, replace

    from benchmarks.paper.bench import QUICK, tables_of
    from benchmarks.paper.store import Store

    plan = replace(
        QUICK, tables=("1", "2", "3", "D.2", "D.5", "growth"), solvers=("anneal", "exact")
    )
    result = {
        "candidates": {"n": 3, "total": 17, "seconds": 0.5},
        "bits": {"n": 3, "bits": {"total": 9}, "prepare": 0.1, "cover": 0.2, "assemble": 0.3},
        "preparation": {"identifying": 0.5, "formulating": 0.2},
        "solve": {
            "score": -9.5,
            "empty_score": -12.5,
            "bound": -9,
            "ahead": 0.1,
            "trace": [[0.1, -10], [1, -9.5]],
            "statistics": {"raw_score": -9.75, "repaired_score": -9.5, "repaired": 1},
        },
    }
    records = [
        {"trial": asdict(trial), "result": {**result[trial.kind], "peak_mb": 100}}
        for trial in plan.trials()
    ]
    records.append({**records.pop(), "error": "no memory"})
    lines = [json.dumps(record) for record in records]
    solved = [json.dumps(record) for record in records if record["trial"]["kind"] == "solve"]
    seeds = [
        "\n".join(some).encode() + b"\n" for some in (lines[:12], lines[-12:], solved, lines[:2])
    ]

    def read(path: Path, random: Random) -> object:
        store = Store(path)
        return [table.markdown() for table in tables_of(store, plan)], store.errors()

    return seeds, read


def _answers(folder: Path) -> tuple[list[bytes], Read]:
    """Answers of the Digital Annealer's service, given to the client in the place of the network."""
    import os

    from qubayes.machines import DigitalAnnealer, Patience, annealer_client, problem_of
    from qubayes.machines.annealer_client import KEY_VARIABLE, Reply
    from qubayes.machines.qubo import qubo_from_couplers

    os.environ[KEY_VARIABLE] = key = "secret-4711"
    problem = problem_of(
        qubo_from_couplers(np.ones(3), np.array([0]), np.array([1]), np.array([2.0]))
    )
    client = DigitalAnnealer("http://localhost:1", patience=Patience(1.0, 1, 0.0, 0.0))
    done = {
        "status": "Done",
        "qubo_solution": {
            "solutions": [
                {
                    "energy": -1.5,
                    "penalty_energy": 0,
                    "frequency": 3,
                    "configuration": {"0": True, "1": False, "2": True},
                },
                {
                    "energy": 2,
                    "penalty_energy": 1.0,
                    "frequency": 1,
                    "configuration": {"0": False, "1": False, "2": True},
                },
            ],
            "timing": {"solve_time": "10"},
        },
    }
    seeds = [
        json.dumps(done).encode(),
        b'{"job_id": "a-b_c-17"}',
        b'{"status": "Running"}',
        b'{"status": "Error", "message": "no ' + key.encode() + b'"}',
        b'{"error": {"code": 400, "title": "Bad", "message": "secret-4711 is wrong"}}',
    ]

    def read(path: Path, random: Random) -> object:
        body = path.read_bytes()
        status = random.choice((200, 200, 200, 200, 201, 302, 400, 401, 404, 500))
        annealer_client.exchange = lambda *_: Reply(status, None, body)  # type: ignore[assignment]
        calls: tuple[Callable[[], object], ...] = (
            lambda: client.fetch("job", 3),
            lambda: client.fetch("job", 3),
            lambda: client.poll("job"),
            lambda: client.submit(problem),
            lambda: client.cancel("job"),
        )
        try:
            return random.choice(calls)()
        except QubayesError as error:
            assert key not in str(error)
            raise

    return seeds, read


def _runs(folder: Path) -> tuple[list[bytes], Read]:
    """A run folder of `learn`, one of its files damaged."""
    from qubayes.learning import learn

    table, run = _table(2, n=3, rows=30), folder / "run"
    settings: dict[str, Any] = {
        "max_parents": 2,
        "time_limit": None,
        "moves": 50,
        "solver": "anneal",
        "run_dir": run,
    }
    learn(table, **settings)
    other = folder / "other"
    learn(_table(3, n=4, rows=30), **{**settings, "run_dir": other})
    files = {path.name: path.read_bytes() for path in sorted(run.iterdir()) if path.is_file()}
    spare = {path.name: path.read_bytes() for path in sorted(other.iterdir()) if path.is_file()}
    # The place is told by the first byte of the input, the damage by the rest.
    seeds = [bytes([i]) + content for i, content in enumerate(files.values())]
    seeds += [bytes([list(files).index(name)]) + content for name, content in spare.items()]

    def read(path: Path, random: Random) -> object:
        content = path.read_bytes()
        for name, good in files.items():
            (run / name).write_bytes(good)
        (run / list(files)[(content[:1] or b"\0")[0] % len(files)]).write_bytes(content[1:])
        return learn(table, **settings).as_json()

    return seeds, read


def _run_damage(seeds: Sequence[bytes], random: Random) -> bytes:
    """A seed for the run folder: first the number of the file, then the file, damaged with or without its sum."""
    seed = random.choice(seeds)
    place, content = seed[:1], seed[1:]
    if random.random() < 0.05:
        return seed
    if content.startswith(b"\x93qubayes"):
        return place + damage.checked_damage([content], random)
    return place + damage.mutated([content, *(other[1:] for other in seeds)], random)


READERS = {
    "data .csv": Reader(".csv", 120, _csv),
    "data .csv.gz": Reader(".csv.gz", 30, _csv, damage.gzip_damage),
    "data .tsv": Reader(".tsv", 30, lambda folder: _csv(folder, "\t")),
    "data .dat (GOBNILP, FIMI)": Reader(".dat", 100, _dat),
    "data .dat.gz": Reader(".dat.gz", 20, _dat, damage.gzip_damage),
    "data .parquet": Reader(".parquet", 0.4, lambda folder: _frame(folder, "parquet")),
    "data .arrow (file)": Reader(".arrow", 0.4, lambda folder: _frame(folder, "arrow")),
    "data .arrow (stream)": Reader(".arrow", 0.4, lambda folder: _frame(folder, "stream")),
    "arities .json": Reader(".json", 25, _arities),
    "arities .bif": Reader(".bif", 20, _arities_bif),
    "scores .jkl": Reader(".jkl", 50, lambda folder: _scores(folder, ".jkl")),
    "scores .jkl.gz": Reader(
        ".jkl.gz", 20, lambda folder: _scores(folder, ".jkl"), damage.gzip_damage
    ),
    "scores .pss": Reader(".pss", 50, lambda folder: _scores(folder, ".pss")),
    "scores, ending unknown": Reader(".scr", 15, lambda folder: _scores(folder, ".jkl")),
    "native .qbc": Reader(
        ".qbc", 50, lambda folder: _scores(folder, ".qbc"), damage.checked_damage
    ),
    "native .qbs": Reader(".qbs", 30, _subsets, damage.checked_damage),
    "native .blocks": Reader(".blocks", 8, _blocks, damage.records_damage),
    "network .bif": Reader(".bif", 60, lambda folder: _networks(folder, ".bif")),
    "network .bif.gz": Reader(
        ".bif.gz", 15, lambda folder: _networks(folder, ".bif"), damage.gzip_damage
    ),
    "network .xmlbif": Reader(".xmlbif", 50, lambda folder: _networks(folder, ".xmlbif")),
    "network .graphml": Reader(".graphml", 40, lambda folder: _networks(folder, ".graphml")),
    "network .json": Reader(".json", 40, lambda folder: _networks(folder, ".json")),
    "network .bnlearn": Reader(".bnlearn", 30, lambda folder: _networks(folder, ".bnlearn")),
    "knowledge .json": Reader(".json", 40, _knowledge),
    "polynomial .json": Reader(".json", 40, _polynomial),
    "decoder .json": Reader(".json", 20, _decoder),
    "model .bqm": Reader(".bqm", 25, lambda folder: _models(folder, ".bqm")),
    "model .bqm.gz": Reader(
        ".bqm.gz", 8, lambda folder: _models(folder, ".bqm"), damage.gzip_damage
    ),
    "answers of the Digital Annealer": Reader(".json", 60, _answers),
    "formulation .qbf": Reader(".qbf", 12, _formulations, damage.formulation_damage),
    "certificate and scores (checker)": Reader(
        ".proof", 40, _certificates, damage.certificate_damage
    ),
    "solution .json": Reader(".json", 20, _solutions),
    "bootstrap .json": Reader(".json", 15, _bootstraps),
    "run folder of learn": Reader(".run", 2, _runs, _run_damage),
    "bench trials.jsonl": Reader(".jsonl", 10, _trials),
}
