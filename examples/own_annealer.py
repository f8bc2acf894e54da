"""A QUBO with few bits for a machine of your own, and its answer read back as a network."""

import random
from pathlib import Path

import dimod

import qubayes as qb
from qubayes import Limits, solve
from qubayes.qubo.samplers import DimodSampler

here = Path(__file__).parent
dataset = qb.read(here / "wine.csv", bins=2)
candidates = qb.identify(dataset, qb.CandidateSearch(max_parents=2))
formulation = qb.formulate(candidates, qb.cover(candidates))
paper = qb.formulate(candidates, qb.cover(candidates), order="scc", penalty="paper")
print(
    f"{formulation.bits['total']} bits; with the paper's order bits and slack {paper.bits['total']}"
)
for name, model in (("ours", formulation), ("paper", paper)):
    least, largest = model.coefficient_range
    print(f"  {name}: coefficients from {least:.3g} to {largest:.3g}")


def my_annealer(bqm: dimod.BinaryQuadraticModel, steps: int, seed: int) -> dict[str, int]:
    """Put your machine here. This one flips a random bit and keeps what does not cost energy."""
    draw = random.Random(seed)
    state = dict.fromkeys(bqm.variables, 0)
    labels = list(state)
    for _ in range(steps):
        bit = draw.choice(labels)
        field = bqm.linear[bit] + sum(
            weight * state[other] for other, weight in bqm.adj[bit].items()
        )
        if field * (1 - 2 * state[bit]) <= 0:
            state[bit] = 1 - state[bit]
    return state


answer = my_annealer(formulation.to_bqm(), steps=20_000, seed=1)
decoded = qb.decode(formulation, answer, repair=True)
print(
    f"energy {decoded.energy:.3f}, violations: {len(decoded.violations)}, "
    f"network's score {decoded.final.score:.3f}"
)
for violation in decoded.violations[:3]:
    print(f"  as given, {violation}")

# What a good annealer should reach: the proved optimum, and the bits that have its energy.
best = solve(formulation, "exact")
print(f"optimum {best.score:.3f} ({best.status}), energy {best.energy:.3f}")

# Any dimod sampler can be a solver; its samples are decoded, and repaired where they have to be.
sampled = solve(
    formulation, DimodSampler(dimod.RandomSampler(), {"num_reads": 20}), limits=Limits(seconds=1)
)
print(f"random states, repaired: {sampled.score:.3f}; {sampled.status}")
