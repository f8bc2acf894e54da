"""A full pool of possible parents takes others, and loses those whose sets score least."""

import numpy as np

from qubayes.candidates.growing import MOST_POSSIBLE, GrownSets


def full_pool():
    """A child whose pool is full; every variable is alone in a set, the later the better."""
    its = GrownSets(100, (), 5, (100,), None)
    its.pool = np.arange(MOST_POSSIBLE)
    its.masks = np.array([0, *(1 << place for place in range(MOST_POSSIBLE))], np.uint64)
    its.scores = np.array([-1.0, *range(MOST_POSSIBLE)])
    its.count = len(its.masks)
    return its


def test_the_worst_variables_leave_with_their_sets():
    its = full_pool()
    its.masks[-1] |= np.uint64(1 << 0)  # the best set has the variable 0, too
    its.widen([70, 71], kept=[1])
    assert its.pool[[2, 3]].tolist() == [70, 71]
    assert its.pool[[0, 1, 4]].tolist() == [0, 1, 4]
    assert its.count == 1 + MOST_POSSIBLE - 2
    known = {
        tuple(its.members(mask)): score
        for mask, score in zip(its.masks.tolist(), its.scores, strict=True)
    }
    assert known[()] == -1.0 and known[0, MOST_POSSIBLE - 1] == MOST_POSSIBLE - 1
    assert (2,) not in known and (70,) not in known


def test_few_variables_of_known_sets_leave():
    its = full_pool()
    its.count -= 1  # none has the last variable
    its.widen([70, 71, 72], leaving=1)
    assert its.pool[[MOST_POSSIBLE - 1, 0, 1]].tolist() == [70, 71, 1]
    its.widen([73], leaving=0)
    assert 73 in its.pool and 70 not in its.pool  # it was in no set


def test_a_pool_with_room_loses_nothing():
    its = full_pool()
    its.pool = its.pool[:-1]
    its.widen([70])
    assert its.pool[-1] == 70 and its.count == 1 + MOST_POSSIBLE


def test_all_of_a_network_can_enter():
    its = full_pool()
    parents = [5, *range(70, 70 + MOST_POSSIBLE - 1)]
    its.widen(parents[1:], parents)
    assert set(its.pool.tolist()) == set(parents)
    its.widen([200], parents)
    assert 200 not in its.pool
