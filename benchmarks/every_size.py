"""Proofs over all DAGs: `qubayes learn -m all` on samples of networks.

    python -m benchmarks every-size NETWORK[:SCORE[:SECONDS]] [...] [--rows 1000] [--seed 1]
        [--results every-size.jsonl] [--page PAGE.md]

Rows are drawn from each network (.bif, .json). Each run is a command of its own on one thread: seconds
are processor time of the whole command, with compiled kernels if it is run twice. A
time limit of SECONDS may end a search before all variables have sets of every size; 0 is none. With
`--results`, finished runs are kept and not repeated; `--page` puts the table between the two
comments that mark its place."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from qubayes import read_network
from qubayes.candidates import read_candidates
from qubayes.network import sample_dataset

BEGINS = "<!-- table of python -m benchmarks every-size -->"
ENDS = "<!-- end of the table -->"
HEAD = (
    "| network | variables | score | best network | most parents in it | candidate sets |"
    " variables with sets of every size | CPU s | proved over all DAGs |\n"
    "|---|--:|---|--:|--:|--:|--:|--:|---|"
)


def main() -> None:
    """Print a Markdown table; keep the runs and write the table to a page if asked to."""
    options = _options()
    kept = Path(options.results) if options.results else None
    lines = kept.read_text(encoding="utf-8").splitlines() if kept and kept.exists() else []
    known = [json.loads(line) for line in lines]
    print(HEAD, flush=True)
    table = []
    for given in options.networks:
        path, score, seconds = given.split(":") + ["auto", "0"][given.count(":") :]
        facts = {
            "network": Path(path).name.split(".")[0],
            "rows": options.rows,
            "seed": options.seed,
            "wanted": score,
            "time_limit": float(seconds),
        }
        run = next((each for each in known if each.items() >= facts.items()), None)
        if run is None:
            run = facts | _measured(Path(path), facts)
            if kept:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(run) + "\n")
        table.append(_line(run))
        print(table[-1], flush=True)
    if options.page:
        page = Path(options.page)
        before, rest = page.read_text(encoding="utf-8").split(BEGINS)
        after = rest.split(ENDS)[1]
        text = "\n".join([HEAD, *table])
        page.write_text(f"{before}{BEGINS}\n\n{text}\n\n{ENDS}{after}", encoding="utf-8")


def _options() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results")
    parser.add_argument("--page")
    return parser.parse_args()


def _measured(network: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Run the command on a sample of the network."""
    dataset = sample_dataset(read_network(network), facts["rows"], facts["seed"])
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "data.parquet"
        dataset.to_polars().write_parquet(table)
        kept = Path(folder) / "run"
        command = ["learn", str(table), "-m", "all", "--score", facts["wanted"], "--json"]
        command += ["--run-dir", str(kept)]
        if facts["time_limit"]:
            command += ["--time-limit", str(facts["time_limit"])]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "qubayes", *command, "--threads", "1"],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            check=True,
            text=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        sets = read_candidates(kept / "candidates.qbc").total
    found = json.loads(done.stdout)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sizes = [len(parents) for parents in found["network"].values()]
    return {
        "variables": dataset.n,
        "score_name": found["score_name"],
        "score": found["score"],
        "most_parents": max(sizes),
        "every_size": found["every_size"],
        "sets": sets,
        "proved": found["proved"],
        "cpu_seconds": round(spent, 2),
    }


def _line(run: dict[str, Any]) -> str:
    """The row of a run."""
    whole = run["every_size"] == run["variables"]
    cells = (
        run["network"],
        str(run["variables"]),
        run["score_name"],
        f"{run['score']:,.2f}",
        str(run["most_parents"]),
        f"{run['sets']:,}",
        str(run["every_size"]),
        f"{run['cpu_seconds']:.1f}",
        "yes" if whole and run["proved"] else "no",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
