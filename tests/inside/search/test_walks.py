"""Candidate sets as arrays for searches over orders: the limits of their table; random orders."""

from itertools import combinations, permutations

import numpy as np
import pytest

from qubayes import SettingError
from qubayes.foundation.families import Families
from qubayes.search.orders import walks
from qubayes.search.orders.walks import order_problem, random_order


def test_the_largest_number_of_vertices():
    assert order_problem(Families.of([[()]] * 65_535), np.zeros(65_535)).n == 65_535
    with pytest.raises(SettingError, match=r"65536 variables in one component; .* at most 65535"):
        order_problem(Families.of([[()]] * 65_536), np.zeros(65_536))


def test_members_up_to_16_bits():
    families = Families.of([[()]] * (walks._LARGEST - 1) + [[(walks._LARGEST - 2,), ()]])
    problem = order_problem(families, np.zeros(walks._LARGEST + 1))
    assert problem.members[-2:, 0].tolist() == [walks._LARGEST - 2, walks._LARGEST]


def test_long_runs_of_sets_with_one_member():
    """A step over them fits in 16 bits too: the next one follows."""
    n = 370
    pairs = [(1, *pair) for pair in combinations(range(2, n), 2)]
    assert len(pairs) > 65_535 + 100
    problem = order_problem(
        Families.of([[*pairs, ()]] + [[()]] * (n - 1)), np.zeros(len(pairs) + n)
    )
    left = len(pairs) - np.arange(len(pairs))
    assert problem.skip[: len(pairs), 0].tolist() == np.minimum(left, 65_535).tolist()


def test_orders_begin_at_random_and_keep_required_edges():
    parents = [(1,), (), (0,), ()]
    orders = {random_order(parents, np.random.SeedSequence(seed)) for seed in range(200)}
    allowed = [o for o in permutations(range(4)) if o.index(1) < o.index(0) < o.index(2)]
    assert orders == set(allowed)
