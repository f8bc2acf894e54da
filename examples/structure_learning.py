"""The best network for your data, with a proof or a gap; prior knowledge; confidence of edges."""

from pathlib import Path

import qubayes as qb
from qubayes.search import Limits, solve

here = Path(__file__).parent

# Everything in one call: bin the continuous columns, give the cultivar no parents, ask for edge
# confidence.
learned = qb.learn(
    here / "wine.csv",
    max_parents=3,
    reading=qb.ReadSettings(bins=3),
    knowledge=qb.Knowledge(max_parents={"cultivar": 0}),
    bootstrap=20,
)
solution = learned.solution
print(f"score {solution.score:.3f}: {solution.status}; gap {solution.gap:.2%}")
for child, parents in learned.network.parent_names().items():
    print(f"  {child} <- {', '.join(parents) or 'nothing'}")

# How often resampled data show the edges of the network.
assert learned.confidence is not None
for child, parents in enumerate(learned.network.parents):
    for parent in parents:
        names = learned.network.names
        print(f"  {names[parent]} - {names[child]}: {learned.confidence.of(parent, child):.0%}")

# The same, stage by stage: every result is a value that can be saved, looked at and given to the
# next stage.
dataset = qb.read(here / "wine.csv", bins=3)
candidates = qb.identify(dataset, qb.CandidateSearch(max_parents=3, score=qb.Score("bic")))
proved = solve(candidates, "exact", limits=Limits(seconds=30))
searched = solve(candidates, "anneal", limits=Limits(seconds=1, seed=1), bound_seconds=5)
print(
    f"bic: {proved.score:.3f} ({proved.status}); "
    f"annealed {searched.score:.3f}, gap {searched.gap:.2%}"
)
