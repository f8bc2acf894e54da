"""The annealer on the paper's instances: score, spread over seeds, time to the best network, moves per second, memory.

    python -m benchmarks anneal --candidates FOLDER [--instances alarm:4,andes:3] [--sample 0]
    [--seconds 60]
        [--trials 5] [--threads 2]

FOLDER holds candidate files named {instance}_m{m}_s{sample}.qbc (or .jkl). Prints a Markdown table.
"gain" is that of the best trial over the empty graph, "spread" the largest less the smallest score
in parts of it, "to best" the mean and the longest time until a trial's last improvement. A move is
a draw over all places of one vertex; "places" counts each place of each draw. "memory" is what
`order_problem` and the walks hold, in parts of the candidates' own arrays."""

import argparse
import resource
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from qubayes.candidates import Candidates, read_candidates
from qubayes.foundation.workers import Workers
from qubayes.search import Limits, Solution, solve
from qubayes.search.orders import order_problem
from qubayes.search.orders.anneal import Anneal
from qubayes.search.orders.insertions import order_state
from qubayes.search.reduction import split

INSTANCES = (
    "alarm:4,barley:4,hailfinder:4,hepar2:4,chess:2,chess:3,win95pts:2,win95pts:3,pathfinder:2,pathfinder:3,"
    "mushroom:2,connect:2,connect:3,munin1:2,andes:2,andes:3"
)
HEADER = (
    "| instance | m | score | gain | spread | to best (s) | moves / CPU s | places / CPU s | memory | peak MB |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class Trial:
    """One run and the CPU seconds that it took."""

    solution: Solution
    cpu: float

    @property
    def moves_per_second(self) -> float:
        """Moves for each CPU second, all threads together."""
        return float(self.solution.statistics["moves"] / self.cpu)


def main() -> None:
    """Print the table."""
    options = parse()
    # compiles
    solve(read_candidates(find(options, options.instances[0])), limits=Limits(None, moves=100))
    print(*HEADER, sep="\n")
    for instance in options.instances:
        candidates = read_candidates(find(options, instance))
        trials = [run(candidates, options, seed) for seed in range(options.trials)]
        print(line(instance, candidates, trials), flush=True)


def parse() -> argparse.Namespace:
    """The command line."""
    words = lambda text: text.split(",")  # noqa: E731
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--candidates", type=Path, required=True)
    parser.add_argument("--instances", type=words, default=words(INSTANCES))
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--threads", type=int)
    return parser.parse_args()


def find(options: argparse.Namespace, instance: str) -> Path:
    """The file of the instance."""
    name, most = instance.split(":")
    found = sorted(options.candidates.glob(f"{name}_m{most}_s{options.sample}.*"))
    if not found:
        raise SystemExit(f"{options.candidates} has no file of {instance}, sample {options.sample}")
    return Path(found[0])


def run(candidates: Candidates, options: argparse.Namespace, seed: int) -> Trial:
    """One trial."""
    began = time.process_time()
    solution = solve(
        candidates,
        "anneal",
        limits=Limits(options.seconds, seed=seed),
        workers=Workers(options.threads),
    )
    return Trial(solution, time.process_time() - began)


def line(instance: str, candidates: Candidates, trials: list[Trial]) -> str:
    """One row."""
    scores = [trial.solution.score for trial in trials]
    gain = max(scores) - trials[0].solution.empty_score
    last = [trial.solution.trace[-1][0] for trial in trials]
    speed = statistics.mean(trial.moves_per_second for trial in trials)
    largest = max((len(part.vertices) for part in split(candidates)), default=1)
    columns = [
        *instance.split(":"),
        f"{max(scores):,.3f}{' (proved)' if trials[0].solution.proved else ''}",
        f"{gain:,.3f}",
        f"{(max(scores) - min(scores)) / gain:.4%}",
        f"{statistics.mean(last):.2f}, {max(last):.2f}",
        f"{speed:,.0f}",
        f"{speed * largest:,.0f}",
        f"{memory(candidates):.2f}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f}",
    ]
    return f"| {' | '.join(columns)} |"


def memory(candidates: Candidates) -> float:
    """Bytes of the annealer's arrays for each byte of the candidates'."""
    own = sum(array.nbytes for array in (*candidates.families, candidates.scores))
    added = 0
    for part in split(candidates):
        problem = order_problem(part.families, part.scores)
        state = order_state(problem, range(problem.n))
        shared = {id(part.families.vertex_start), id(part.scores), id(state.noise)}
        added += sum(array.nbytes for array in problem if id(array) not in shared)
        added += Anneal().walks * sum(array.nbytes for array in state if id(array) not in shared)
    return added / own


if __name__ == "__main__":
    main()
