"""Reliability of edge probabilities and of bootstrap frequencies, over samples of known networks.

    python -m benchmarks calibration sachs.bif.gz [--sets 20] [--samples 50] [--seed 0]
        [--pictures docs/pictures] [--page docs/posterior.md]

Three cases: truths drawn from the prior itself (a network of 8 binary variables with at most 3
parents, uniformly; tables from the prior of BDeu with equivalent sample size 8; 200 rows), and
samples of 500 rows of the network in the file, scored with equivalent sample sizes 1 and 10. A
probability is that of a pair joined in either direction; in the first case also that of an edge.
Each case is a picture: the share of true pairs against the probability that was said, in groups.
The table replaces the one on --page, between comments."""

import argparse
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars

from qubayes.candidates import CandidateSearch, SlackSets
from qubayes.data import Dataset, read
from qubayes.foundation.arrays import Floats
from qubayes.foundation.families import Families
from qubayes.foundation.workers import Workers
from qubayes.learning import bootstrap
from qubayes.learning.posterior import posterior
from qubayes.network import Network, read_network, sample
from qubayes.scores import Score
from qubayes.search.posterior import sample_networks

BOUNDS = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0)  # of the groups of probabilities
LEAST = 1e-3  # probabilities are cut here for the logarithmic loss
MARK = "<!-- benchmarks calibration -->"
SIDE = 260  # of a picture
COLORS = {"uniform": "#2c55c9", "fair": "#3a9c6b", "bootstrap": "#c9662c"}


class Said(NamedTuple):
    """Probabilities, and what is true."""

    shares: Floats
    truth: Floats  # 0 or 1


def prior_networks(n: int, most: int, number: int, seed: int) -> list[Network]:
    """Return networks drawn uniformly from all with at most so many parents."""
    lists = []
    for child in range(n):
        others = [v for v in range(n) if v != child]
        lists.append([its for size in range(most + 1) for its in combinations(others, size)])
    families = Families.of(lists)
    zeros = np.zeros(len(families.set_sizes))
    names = tuple(f"x{v}" for v in range(n))
    sets = SlackSets(names, families, zeros, zeros, zeros == 0.0)
    steps = 2000 * number
    found = sample_networks(sets, seconds=None, steps=steps, chains=1, draws=number, seed=seed)
    return list(found.draws)


def data_of(network: Network, rows: int, ess: float, random: np.random.Generator) -> Dataset:
    """Return rows of binary variables with tables drawn from the prior of BDeu."""
    x = np.zeros((network.n, rows), np.int64)
    for v in network.order:
        parents = network.parents[v]
        states = 2 ** len(parents)
        table = random.dirichlet(np.full(2, ess / (2 * states)), states)
        key = np.zeros(rows, np.int64)
        for parent in parents:
            key = 2 * key + x[parent]
        x[v] = random.random(rows) > table[key, 0]
    columns = {name: x[v].astype(str) for v, name in enumerate(network.names)}
    arities = {name: ["0", "1"] for name in network.names}
    return read(polars.DataFrame(columns), arities=arities)


def adjacency(network: Network) -> Floats:
    """Return (n, n) 1 for each edge, at [parent, child]."""
    found = np.zeros((network.n, network.n))
    for child, parents in enumerate(network.parents):
        found[list(parents), child] = 1.0
    return found


def edges_by(method: str, dataset: Dataset, search: CandidateSearch, samples: int) -> Floats:
    """Return (n, n) the share of each edge that the method gives."""
    one = Workers(1)
    if method == "bootstrap":
        return bootstrap(dataset, search, samples, workers=one).frequencies
    prior = "fair" if method == "fair" else "uniform"
    found = posterior(dataset, search, prior=prior, seconds=None, steps=4000, draws=4, workers=one)
    return found.edges


def said_of(cases: Iterator[tuple[Network, Floats]], directed: bool) -> Said:
    """Return the probabilities of all edges, or of all pairs, and the truth."""
    shares, truth = [], []
    for network, edges in cases:
        there = adjacency(network)
        if directed:
            pairs = ~np.eye(network.n, dtype=bool)
        else:
            edges, there = edges + edges.T, there + there.T
            pairs = np.triu(np.ones((network.n, network.n), bool), 1)
        shares.append(np.clip(edges[pairs], 0.0, 1.0))
        truth.append(there[pairs])
    return Said(np.concatenate(shares), np.concatenate(truth))


def groups(said: Said) -> list[tuple[float, float, int]]:
    """Return (mean probability, share that is true, number) of each group."""
    number = np.clip(np.searchsorted(BOUNDS, said.shares, side="right"), 1, len(BOUNDS) - 1)
    found = []
    for group in range(1, len(BOUNDS)):
        inside = number == group
        if inside.any():
            means = float(said.shares[inside].mean()), float(said.truth[inside].mean())
            found.append((*means, int(inside.sum())))
    return found


def losses(said: Said) -> tuple[float, float]:
    """Return the mean logarithmic loss and the mean squared error."""
    shares = np.clip(said.shares, LEAST, 1.0 - LEAST)
    right = np.where(said.truth > 0.0, shares, 1.0 - shares)
    return float(-np.log(right).mean()), float(((said.shares - said.truth) ** 2).mean())


def picture(lines: dict[str, Said], title: str) -> str:
    """Return a reliability diagram (SVG)."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-40 -30 {SIDE + 60} {SIDE + 75}" '
        f'width="{SIDE + 60}" font-family="sans-serif" font-size="11">',
        f'<text x="0" y="-12" font-size="13">{title}</text>',
        f'<rect width="{SIDE}" height="{SIDE}" fill="none" stroke="#999"/>',
        f'<path d="M0 {SIDE}L{SIDE} 0" stroke="#999" stroke-dasharray="4 4"/>',
        f'<text x="{SIDE / 2}" y="{SIDE + 20}" text-anchor="middle">probability</text>',
        f'<text transform="translate(-12 {SIDE / 2}) rotate(-90)" text-anchor="middle">'
        "share that is true</text>",
    ]
    for place, (method, said) in enumerate(lines.items()):
        color = COLORS[method]
        points = [(SIDE * x, SIDE * (1.0 - y)) for x, y, _ in groups(said)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
        x = 90 * place
        parts.append(f'<text x="{x}" y="{SIDE + 38}" fill="{color}">{method}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def case_of_prior(sets: int, seed: int) -> tuple[list[tuple[Network, Dataset]], CandidateSearch]:
    """Return truths drawn from the prior with their data."""
    random = np.random.default_rng(seed)
    truths = prior_networks(8, 3, sets, seed)
    return [(its, data_of(its, 200, 8.0, random)) for its in truths], CandidateSearch(
        3, Score("bdeu", 8.0)
    )


def case_of_network(
    network: Network, sets: int, seed: int, ess: float
) -> tuple[list[tuple[Network, Dataset]], CandidateSearch]:
    """Return samples of a known network."""
    plain = Network(network.names, network.parents)
    data = [read(sample(network, 500, seed=seed + place)) for place in range(sets)]
    return [(plain, each) for each in data], CandidateSearch(3, Score("bdeu", ess))


def main() -> None:
    """Print the table case by case, and write pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", type=Path)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    network = read_network(given.network)
    name = given.network.name.partition(".")[0]
    makers: dict[str, Callable[[], tuple[list[tuple[Network, Dataset]], CandidateSearch]]] = {
        "truth from the prior": lambda: case_of_prior(3 * given.sets, given.seed),
        f"{name}, equivalent sample size 1": lambda: case_of_network(
            network, given.sets, given.seed, 1.0
        ),
        f"{name}, equivalent sample size 10": lambda: case_of_network(
            network, given.sets, given.seed, 10.0
        ),
    }
    lines = ["| truth and data | what | method | log loss | squared error | said → true |"]
    lines.append("|---|---|---|---|---|---|")
    print("\n".join(lines), flush=True)
    for number, (title, make) in enumerate(makers.items(), 1):
        cases, search = make()
        methods = ("uniform", "bootstrap") if number == 1 else ("uniform", "fair", "bootstrap")
        found = {
            method: [edges_by(method, data, search, given.samples) for _, data in cases]
            for method in methods
        }
        truths = [truth for truth, _ in cases]
        for what in ("edges", "pairs") if number == 1 else ("pairs",):
            said = {
                method: said_of(zip(truths, edges, strict=True), what == "edges")
                for method, edges in found.items()
            }
            for method, its in said.items():
                loss, error = losses(its)
                told = ", ".join(f"{x:.2f} → {y:.2f}" for x, y, _ in groups(its))
                row = (title, what, method, f"{loss:.3f}", f"{error:.3f}", told)
                lines.append("| " + " | ".join(row) + " |")
                print(lines[-1], flush=True)
        if given.pictures is not None:
            path = given.pictures / f"calibration-{number}.svg"
            path.write_text(picture(said, title))
    if given.page is not None:
        before, _, after = given.page.read_text().split(MARK)
        table = "\n".join(lines)
        given.page.write_text(f"{before}{MARK}\n\n{table}\n\n{MARK}{after}")


if __name__ == "__main__":
    main()
