"""At the limits of a search for candidate sets counts and numbers of sets do not overflow."""

import math

import numpy as np
import pytest

from candidate_cases import repeated
from qubayes import DataError, SettingError
from qubayes.candidates import CandidateSearch, identify
from qubayes.candidates.counting import MOST_COUNTED_ROWS, Rows
from qubayes.candidates.identify import MOST_TABLE_BYTES, assemble, checked
from qubayes.candidates.levels import (
    make_above,
    next_level,
    prepare_rule,
    scan_block,
    split,
    start_level,
)
from qubayes.data import Dataset
from qubayes.scores import NAMES, Score
from reference.scores import prior_counts

# -- rows


def test_rows_are_counted_up_to_the_limit_and_refused_beyond():
    checked(repeated([[0], [0]], [2, 2], MOST_COUNTED_ROWS), CandidateSearch(1))
    with pytest.raises(DataError, match=r"2147483648 rows; at most 2147483647 can be counted"):
        identify(repeated([[0], [0]], [2, 2], MOST_COUNTED_ROWS + 1), CandidateSearch(1))


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_the_most_rows_do_not_overflow(name):
    """The kernels on distinct rows that occur 2^31 - 1 times together, against sums of `math.lgamma`."""
    codes = np.array([[0, 1, 2, 0], [0, 0, 1, 1], [1, 0, 1, 2]], dtype=np.uint8)
    weights = np.array([MOST_COUNTED_ROWS - 1_000_003, 1_000_000, 2, 1], dtype=np.int32)
    dataset = Dataset(("a", "b", "c"), (tuple("xyz"), tuple("xy"), tuple("xyz")), codes)
    rows = Rows(codes, np.array([3, 2, 3]), weights, np.zeros((3, 0), np.uint64), MOST_COUNTED_ROWS)
    score = Score(name)
    rule = prepare_rule(dataset, rows, score, [()] * 3)._replace(
        formula=score.formula(MOST_COUNTED_ROWS)
    )
    level, blocks = start_level(rows, rule, None, 3), []
    for k in (1, 2, 3):
        above = make_above(level, last=k == 3)
        blocks += [scan_block((level, above), heads) for heads in split(level, 1000)]
        level = next_level(level, above) if k < 3 else level
    found = assemble(dataset, CandidateSearch(2, score), blocks)
    for vertex in range(3):
        for parents, value in found.of(vertex):
            expected = weighted_score(dataset, weights.tolist(), vertex, parents, name)
            # two sums of 4e10 are subtracted
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-4)


def weighted_score(
    dataset: Dataset, weights: list[int], child: int, parents: tuple[int, ...], name: str
) -> float:
    """The score of rows that occur so often, by dictionaries."""
    cells: dict[tuple[int, ...], int] = {}
    states: dict[tuple[int, ...], int] = {}
    for row, weight in zip(dataset.codes.T.tolist(), weights, strict=True):
        state = tuple(row[p] for p in parents)
        cells[(*state, row[child])] = cells.get((*state, row[child]), 0) + weight
        states[state] = states.get(state, 0) + weight
    arity, declared = len(dataset.states[child]), math.prod(len(dataset.states[p]) for p in parents)
    if name in ("loglik", "aic", "bic"):
        price = {"loglik": 0.0, "aic": 1.0, "bic": math.log(sum(weights)) / 2}[name]
        fitted = math.fsum(c * math.log(c / states[cell[:-1]]) for cell, c in cells.items())
        return fitted - price * declared * (arity - 1)
    observed = len({cell[-1] for cell in cells})
    per_state, per_cell = prior_counts(name, 1.0, (declared, arity), (len(states), observed))
    inside = math.fsum(math.lgamma(c + per_cell) - math.lgamma(per_cell) for c in cells.values())
    return inside - math.fsum(
        math.lgamma(c + per_state) - math.lgamma(per_state) for c in states.values()
    )


def test_a_search_that_would_meet_more_joint_states_is_refused():
    class Many(tuple):  # a tuple of names that is said to be long
        def __len__(self):
            return 10**18

    states = (Many(),) * 12
    dataset = Dataset(tuple("abcdefghijkl"), states, np.zeros((12, 3), np.uint8))
    checked(dataset, CandidateSearch(10))  # 10^198 joint states
    with pytest.raises(DataError, match=r"10\^216 joint states"):
        checked(dataset, CandidateSearch(11))


# -- sets


def largest_search(n: int) -> int:
    """The most parents for which all sets can be numbered."""
    m, sets = 0, sum(math.comb(n, size) for size in range(4))
    while 8 * (n + 1) * sets <= MOST_TABLE_BYTES:
        m += 1
        sets += math.comb(n, m + 3)
    return m


@pytest.mark.parametrize(("n", "m", "digits"), [(100_000, 1, 9), (3000, 5, 18)])
def test_the_sets_that_are_too_many_are_counted(n, m, digits):
    """All sets of m + 1 variables, a child and its parents."""
    dataset = repeated([[0]] * n, [2] * n, 1)
    with pytest.raises(SettingError, match=rf"make 10\^{digits} sets, .* or possible_parents=30"):
        checked(dataset, CandidateSearch(m))


@pytest.mark.parametrize("n", [60, 200, 3000])
def test_more_sets_than_can_be_numbered_are_refused(n):
    dataset = repeated([[0]] * n, [2] * n, 3)
    most = largest_search(n)
    checked(dataset, CandidateSearch(most))
    with pytest.raises(SettingError, match="far too many to look at; allow fewer parents"):
        identify(dataset, CandidateSearch(most + 1))
