"""Bits, couplers, range of coefficients, seconds and memory of both formulations, of one sample.

    python -m benchmarks formulation DIR [--instances alarm:4,andes:2] [--seed 0] [--cover search]
    [--subsets COVERS]
        [--json OUT.json]

DIR holds candidate sets as {name}_m{m}_s{seed} with any ending that `read_candidates` takes.
Subsets are read from COVERS/{name}_m{m}_s{seed}.qbs, or found once for each instance if they are
not there. Each QUBO is then assembled in its own process, which tells its seconds (kernels compiled
before) and the most memory that it held."""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qubayes.candidates import Candidates
    from qubayes.qubo.subsets import Subsets

# what a process that assembles finds in its folder
CANDIDATES, SUBSETS = "candidates.qbc", "subsets.qbs"
MODES = (("scc", "paper"), ("chordal", "tight"))


def main() -> None:
    """Print a Markdown table; write everything that was measured as JSON if asked to."""
    options = _options()
    if options.assemble:
        print(json.dumps(_assembled(Path(options.directory), *options.assemble)))
        return
    # here: the process that assembles is run by its path
    from benchmarks.paper.printed import INSTANCES

    rows = []
    print(f"| instance | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}", flush=True)
    for name, parents in options.instances or INSTANCES:
        row = _measured(Path(options.directory), name, parents, options)
        if row is not None:
            rows.append(row)
            print(_line(row), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory")
    parser.add_argument(
        "--instances", type=_instances, help="name:m, separated by commas; all sixteen unless given"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cover", default="search")
    parser.add_argument(
        "--subsets", type=Path, metavar="COVERS", help="take subsets from the .qbs files there"
    )
    parser.add_argument("--json")
    parser.add_argument("--assemble", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def _instances(text: str) -> list[tuple[str, int]]:
    return [
        (name, int(parents))
        for name, _, parents in (part.partition(":") for part in text.split(","))
    ]


def _measured(
    directory: Path, name: str, parents: int, options: argparse.Namespace
) -> dict[str, Any] | None:
    """One row, or None if the instance is not there."""
    from qubayes.candidates import read_candidates, write_candidates
    from qubayes.qubo import ogorman_bits
    from qubayes.qubo.subsets import write_subsets

    stem = f"{name}_m{parents}_s{options.seed}"
    found = sorted(file for file in directory.glob(f"{stem}.*") if file.suffix != ".qbs")
    if not found:
        return None
    candidates = read_candidates(found[0])
    subsets = _subsets(candidates, stem, options)
    row: dict[str, Any] = {
        "instance": name,
        "m": parents,
        "seed": options.seed,
        "candidates": candidates.total,
    }
    row |= {"cover": subsets.method, "cover_seconds": subsets.seconds}
    row["ogorman_bits"] = ogorman_bits(candidates)["total"]
    with tempfile.TemporaryDirectory() as folder:
        write_candidates(candidates, Path(folder, CANDIDATES))
        write_subsets(subsets, Path(folder, SUBSETS))
        for order, penalty in MODES:
            command = [sys.executable, __file__, folder, "--assemble", order, penalty]
            row[penalty] = json.loads(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout
            )
    return row


def _subsets(candidates: "Candidates", stem: str, options: argparse.Namespace) -> "Subsets":
    """Those of the file if there is one, new ones otherwise."""
    from qubayes.qubo.subsets import cover, read_subsets

    if options.subsets and (file := options.subsets / f"{stem}.qbs").exists():
        return read_subsets(file)
    return cover(candidates, method=options.cover)


def _assembled(folder: Path, order: str, penalty: str) -> dict[str, Any]:
    """What one mode takes, measured in this process; a formulation of a few bits has compiled the kernels before."""
    import numpy as np

    from qubayes.candidates import Candidates, read_candidates
    from qubayes.foundation.families import Families
    from qubayes.qubo import formulate
    from qubayes.qubo.subsets import cover, read_subsets

    small = Candidates(
        ("a", "b"), Families.of([[(1,), ()], [(0,), ()]]), np.array([-1.0, -2.0, -1.0, -2.0])
    )
    formulate(small, cover(small), order=order, penalty=penalty)
    candidates, subsets = read_candidates(folder / CANDIDATES), read_subsets(folder / SUBSETS)
    formulation = formulate(candidates, subsets, order=order, penalty=penalty)
    least, largest = formulation.coefficient_range
    return {
        "bits": formulation.bits,
        "couplers": formulation.qubo.couplers,
        "coefficient_range": [least, largest],
        "range": largest / least,
        "seconds": formulation.seconds,
        "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


COLUMNS = (
    "O'Gorman bits",
    "`paper` u + r + z = bits",
    "default u + r + z = bits",
    "couplers, `paper` / default",
    "range, `paper` / default",
    "times smaller",
    "s, `paper` / default",
    "GB, `paper` / default",
)


def _line(row: dict[str, Any]) -> str:
    paper, ours = row["paper"], row["tight"]

    def bits(mode: dict[str, Any]) -> str:
        u, r, z, total = mode["bits"].values()
        return f"{u:,} + {r:,} + {z} = {total:,}"

    cells = (
        f"{row['instance']} m={row['m']}",
        f"{row['ogorman_bits']:,}",
        bits(paper),
        bits(ours),
        f"{paper['couplers']:,} / {ours['couplers']:,}",
        f"{paper['range']:.2g} / {ours['range']:.2g}",
        f"{paper['range'] / ours['range']:.0f}",
        f"{paper['seconds']:.1f} / {ours['seconds']:.1f}",
        f"{paper['peak_gigabytes']:.1f} / {ours['peak_gigabytes']:.1f}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
