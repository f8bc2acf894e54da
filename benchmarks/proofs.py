"""Proofs on a corpus: seconds at several limits, counts that must agree, certificates and their checks.

    python -m benchmarks proofs --candidates DIR [--limits 20,60,180] [--only alarm,steel] [--no-certificates]

DIR holds .jkl files. Prints one line for each: variables, candidate sets, score, CPU seconds of the proof at each limit
(or the gap that was left), whether the counts of all runs that ended with a proof agree, size of the certificate, CPU
seconds of its check in pure Python. Kernels are compiled before the clock starts.
"""

import argparse
import tempfile
import time
from pathlib import Path

from qubayes.candidates import read_candidates
from qubayes.search import Limits, Solution, solve, solver_named
from qubayes.search.checker import RefusedError, check


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", required=True, type=Path)
    parser.add_argument(
        "--limits", type=lambda text: [float(word) for word in text.split(",")], default=[20.0, 60.0, 180.0]
    )
    parser.add_argument("--only", type=lambda text: text.split(","), default=[""])
    parser.add_argument("--certificates", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    shown = [f"{limit:g} s" for limit in options.limits]
    print(f"| file | n | sets | score | {' | '.join(shown)} | same counts | certificate | check |")
    print(f"|{'---|' * (7 + len(shown))}", flush=True)
    for path in sorted(options.candidates.glob("*.jkl"), key=lambda path: path.stat().st_size):
        if any(word in path.name for word in options.only):
            print(line(path, options.limits, options.certificates), flush=True)


def line(path: Path, limits: list[float], certificates: bool) -> str:
    """Return the line of one file."""
    candidates = read_candidates(path)
    found = [proof(path, limit) for limit in limits]
    counts = {str(solution.statistics) for solution, _ in found if solution.proved}
    cells = [f"{seconds:.2f}" if solution.proved else f"gap {100 * solution.gap:.3f} %" for solution, seconds in found]
    best = max(solution.score for solution, _ in found)
    certificate = certified(path, limits[-1]) if certificates and found[-1][0].proved else ("", "")
    facts = (path.stem, candidates.n, candidates.total, f"{best:.4f}", *cells, "yes" if len(counts) < 2 else "no")
    return f"| {' | '.join(map(str, (*facts, *certificate)))} |"


def proof(path: Path, limit: float) -> tuple[Solution, float]:
    """Return the solution and the CPU seconds that it took."""
    candidates, solver = read_candidates(path), solver_named("exact").prepare()
    began = time.process_time()
    solution = solve(candidates, solver, limits=Limits(limit))
    return solution, time.process_time() - began


def certified(path: Path, limit: float) -> tuple[str, str]:
    """Return the size of the certificate and the CPU seconds of its check."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proof.json"
        solve(read_candidates(path), solver_named("exact", certificate=file), limits=Limits(limit))
        if not file.exists():
            return "none", ""
        began = time.process_time()
        try:
            verdict = check(str(path), str(file))
        except RefusedError as refused:
            return f"{file.stat().st_size / 1000:.1f} kB", f"REFUSED: {refused}"
        searched = f" ({verdict.states:,} states)" if verdict.states else ""
        return f"{file.stat().st_size / 1000:.1f} kB", f"{time.process_time() - began:.2f} s{searched}"


if __name__ == "__main__":
    main()
