"""Growth of the search among possible parents with variables, kept parents and rows, on random binary networks.

    python -m benchmarks many-variables [--variables 500,1000,2000] [--kept 10,20,30] [--rows
    500,1000,2000] [-m 3]
        [--learn SECONDS]

One axis grows while the others stand at 1000 variables, 20 kept parents and 1000 rows. Every search
is a process of its own; its seconds are processor time of all threads, without compilation. A
variable has up to three parents among the 20 before it. `--learn` also learns a network of the
largest number of variables, with these seconds for the solver."""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

USUAL = (1000, 20, 1000)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variables", default="500,1000,2000")
    parser.add_argument("--kept", default="10,20,30")
    parser.add_argument("--rows", default="500,1000,2000")
    parser.add_argument("-m", type=int, default=3, dest="most")
    parser.add_argument("--learn", type=float)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(**json.loads(options.one))))
        return
    axes = [
        [int(value) for value in text.split(",")]
        for text in (options.variables, options.kept, options.rows)
    ]
    cases = {(*USUAL[:axis], v, *USUAL[axis + 1 :]) for axis in range(3) for v in axes[axis]}
    print(
        "| variables | kept | rows | pairs s | search s | candidate sets | MB |\n|---|---|---|---|---|---|---|"
    )
    for case in sorted(cases):
        print(row(dict(zip(("n", "kept", "rows"), case, strict=True)), options.most), flush=True)
    if options.learn:
        case = {"n": max(axes[0]), "kept": USUAL[1], "rows": USUAL[2], "learn": options.learn}
        print("\n" + json.dumps(in_process({**case, "most": options.most})))


def row(case: dict[str, Any], most: int) -> str:
    """Return a row of the table."""
    found = in_process({**case, "most": most})
    head = f"| {case['n']:,} | {case['kept']} | {case['rows']:,} "
    return (
        head
        + f"| {found['pairs']:.1f} | {found['search']:.1f} | {found['sets']:,} | {found['megabytes']:,.0f} |"
    )


def in_process(case: dict[str, Any]) -> dict[str, Any]:
    """Return what a process of its own measured."""
    command = [sys.executable, __file__, "--one", json.dumps(case)]
    answer: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return answer


def measured(n: int, kept: int, rows: int, most: int, learn: float | None = None) -> dict[str, Any]:
    """Return seconds, candidate sets and memory of a search, or of learning."""
    from qubayes import identify, read_network
    from qubayes import learn as learn_network
    from qubayes.candidates import CandidateSearch
    from qubayes.candidates.screening import possible_parents
    from qubayes.data import Dataset
    from qubayes.network import sample_dataset

    with TemporaryDirectory() as folder:
        path = Path(folder) / "random.bif"
        path.write_text("".join(network(n)))
        dataset = sample_dataset(read_network(path), rows, seed=0)
    part = Dataset(dataset.names[:9], dataset.states[:9], dataset.codes[:9])
    identify(part, CandidateSearch(most, possible_parents=4))  # compiles
    search, began = CandidateSearch(most, possible_parents=kept), time.process_time()
    facts: dict[str, Any] = {}
    if learn is None:
        possible_parents(dataset, search.score, search.knowledge.resolve(dataset.names, most), kept)
        paired = time.process_time()
        facts["sets"] = identify(dataset, search).total
        facts |= {
            "pairs": paired - began,
            "search": time.process_time() - paired - (paired - began),
        }
    else:
        began = time.perf_counter()
        learned = learn_network(dataset, most, possible_parents=kept, time_limit=learn)
        facts |= {"learn": time.perf_counter() - began, "says": learned.describe()}
    return {**facts, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}


def network(n: int) -> Iterator[str]:
    """Yield a random network of binary variables as the lines of a BIF file."""
    random = np.random.default_rng(0)
    yield "network random {\n}\n"
    for i in range(n):
        yield f"variable v{i} {{\n  type discrete [ 2 ] {{ no, yes }};\n}}\n"
    for i in range(n):
        near = min(i, 20)
        parents = sorted(
            i - 1 - random.choice(near, size=random.integers(0, min(3, near) + 1), replace=False)
        )
        chances = random.beta(0.4, 0.4, 2 ** len(parents))
        given = " | " + ", ".join(f"v{parent}" for parent in parents) if parents else ""
        yield f"probability ( v{i}{given} ) {{\n"
        for state, chance in enumerate(chances.tolist()):
            words = ["yes" if state >> place & 1 else "no" for place in range(len(parents))]
            line = f"({', '.join(words)})" if parents else "table"
            yield f"  {line} {chance}, {1.0 - chance};\n"
        yield "}\n"


if __name__ == "__main__":
    main()
