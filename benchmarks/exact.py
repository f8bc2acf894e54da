"""Proofs, bounds and presolve: what `exact` and `presolve` come to on files of candidate sets.

    python -m benchmarks exact --candidates DIR [--instances alarm:4,win95pts:2] [--seeds 0,1]
    [--time-limit 120]
        [--json OUT.json]

DIR holds candidate sets as {name}_m{m}_s{seed} with any ending that `read_candidates` takes. Prints
for each: the best score, the bound, the gap (of the gain over the empty graph), wall and CPU
seconds, nodes and cuts; candidate sets before and after presolve, and the bits of the QUBO before
and after. Kernels are compiled before the clock starts."""

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qubayes.candidates import Candidates

COLUMNS = (
    *("score", "bound", "gap %", "proved", "seconds", "CPU s", "nodes", "cuts"),
    *("sets", "left", "presolve CPU s", "bits", "bits left"),
)


def main() -> None:
    """Print a Markdown table; write everything that was measured as JSON if asked to."""
    options = _options()
    _warm_up()
    print(f"| instance | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}", flush=True)
    rows = []
    for path in _files(Path(options.candidates), options.instances, options.seeds):
        rows.append(_measured(path, options.time_limit))
        print(_line(rows[-1]), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _options() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--candidates", required=True)
    parser.add_argument(
        "--instances", type=lambda text: [tuple(item.split(":")) for item in text.split(",")]
    )
    parser.add_argument("--seeds", type=lambda text: text.split(","), default=["0"])
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--json")
    return parser.parse_args()


def _files(folder: Path, instances: list[tuple[str, str]] | None, seeds: list[str]) -> list[Path]:
    """The files of the instances, or all of these seeds."""
    if instances is None:
        return sorted(path for seed in seeds for path in folder.glob(f"*_m*_s{seed}.*"))
    return [
        path
        for name, m in instances
        for seed in seeds
        for path in sorted(folder.glob(f"{name}_m{m}_s{seed}.*"))
    ]


def _warm_up() -> None:
    from qubayes.candidates import prune
    from qubayes.search import solve
    from qubayes.search.exact import presolve

    sets = [
        [((1, 2), -1.0), ((), -3.0)],
        [((0, 2), -1.0), ((), -3.5)],
        [((0, 1), -1.0), ((), -4.0)],
    ]
    candidates = prune("abc", sets)
    solve(candidates, "exact")
    _bits(presolve(candidates).candidates)


def _bits(candidates: "Candidates") -> int:
    from qubayes.qubo import count_bits, quick_subsets

    return count_bits(candidates, quick_subsets(candidates))["total"]


def _measured(path: Path, seconds: float) -> dict[str, Any]:
    from qubayes.candidates import read_candidates
    from qubayes.search import Limits, solve
    from qubayes.search.exact import presolve

    candidates = read_candidates(path)
    start = time.process_time()
    solution = solve(candidates, "exact", limits=Limits(seconds))
    proof = time.process_time() - start
    start = time.process_time()
    presolved = presolve(candidates, seconds)
    return {
        "instance": path.name.split(".")[0],
        "score": solution.score,
        "bound": solution.bound,
        "gap %": 100 * solution.gap,
        "proved": solution.proved,
        "seconds": solution.seconds,
        "CPU s": proof,
        **{key: solution.statistics[key] for key in ("nodes", "cuts")},
        "presolve CPU s": time.process_time() - start,
        "sets": candidates.total,
        "left": presolved.candidates.total,
        "bits": _bits(candidates),
        "bits left": _bits(presolved.candidates),
    }


def _line(row: dict[str, Any]) -> str:
    """One line of the table."""
    shown = {**row, "proved": "yes" if row["proved"] else "no", "gap %": f"{row['gap %']:.4f}"}
    for key in ("score", "bound"):
        shown[key] = f"{row[key]:.4f}"
    for key in ("seconds", "CPU s", "presolve CPU s"):
        shown[key] = f"{row[key]:.1f}"
    return f"| {row['instance']} | {' | '.join(str(shown[column]) for column in COLUMNS)} |"


if __name__ == "__main__":
    main()
