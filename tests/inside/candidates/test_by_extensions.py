"""All candidate sets by an engine, against the definition, for scores that are random numbers."""

from itertools import combinations

import numpy as np
import pytest

from qubayes.candidates import Knowledge
from qubayes.candidates.by_extensions import blocks_of_child

N = 6


class RandomScores:
    """An engine whose scores follow no pattern."""

    n = N
    rows = 100

    def __init__(self, seed):
        self.seed = seed

    def local(self, child, parents):
        members = sorted(set(parents))
        word = sum(1 << v for v in members)
        return float(np.random.default_rng([self.seed, child, word]).normal())

    def extensions(self, child, sets, others):
        variables = range(N) if others is None else others
        found = np.empty((len(sets), len(variables) + 1))
        for row, its in zip(found, sets.tolist(), strict=True):
            members = [v for v in its if v >= 0]
            row[:-1] = [self.local(child, [*members, v]) for v in variables]
            row[-1] = self.local(child, members)
        return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("required", [(), (1,), (1, 4)])
def test_candidate_sets_beat_all_their_subsets(seed, required):
    engine = RandomScores(seed)
    names = tuple("abcdef")
    known = Knowledge(
        required=[(names[v], "c") for v in required],
        forbidden=[("f", "c")],
        priors=[("a", "c", 0.5)],
    )
    allowed = known.resolve(names, 4)
    found = {}
    for block in blocks_of_child((engine, allowed), 2):
        assert (block.children == 2).all()
        for parents, score in zip(block.parents.tolist(), block.scores.tolist(), strict=True):
            found[tuple(parents)] = score
    optional = [v for v in (0, 1, 3, 4) if v not in required]
    expected = {}
    scores = {}
    for size in range(len(optional) + 1):
        for more in combinations(optional, size):
            members = tuple(sorted((*required, *more)))
            scores[members] = engine.local(2, members) + 0.5 * (0 in members)
    for members, score in scores.items():
        smaller = [each for each in scores if set(each) < set(members)]
        if all(score > scores[each] for each in smaller):
            expected[members] = score
    assert found == pytest.approx(expected)
