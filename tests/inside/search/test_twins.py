"""Twins: variables that scores cannot tell apart, found by the scores alone."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes.candidates import CandidateSearch, identify, prune
from qubayes.data import read
from qubayes.scores import Score
from qubayes.search.reduction import without_twins
from solve_cases import best_score, data_with_twins, symmetric
from test_presolve import assert_kept


@pytest.mark.parametrize("score", ["bdeu", "bds", "bic"])
@pytest.mark.parametrize("seed", range(3))
def test_columns_in_bijection_are_twins(seed, score):
    candidates = identify(
        read(data_with_twins(seed)), CandidateSearch(max_parents=3, score=Score(score))
    )
    reduced = without_twins(candidates)
    names = candidates.names
    found, known = (
        {(names[twin], names[other]) for twin, other in reduced.twins},
        {("A", "a"), ("B", "b"), ("Aa", "a")},
    )
    both = any({0, 2} <= {*members} for vertex in range(6) for members, _ in candidates.of(vertex))
    # with bdeu two columns can be more than one of them
    assert found == (known if not both else {("B", "b")})
    assert not both or score == "bdeu"
    assert best_score(reduced.candidates) == pytest.approx(best_score(candidates), abs=1e-7)
    for twin, _ in reduced.twins:
        assert reduced.candidates.families.sizes[twin] == 1
    remaining = set(range(6)) - {twin for twin, _ in reduced.twins}
    assert remaining >= {
        m for v in remaining for members, _ in reduced.candidates.of(v) for m in members
    }
    assert_kept(candidates)


@given(seed=st.integers(0, 10_000), n=st.integers(3, 7))
def test_eliminating_symmetric_vertices_keeps_the_optimum(seed, n):
    candidates = symmetric(n, seed)
    reduced = without_twins(candidates)
    if candidates.families.sizes[0] > 1:
        assert (1, 0) in reduced.twins
    assert best_score(reduced.candidates) == pytest.approx(best_score(candidates), abs=1e-9)


def test_what_is_not_symmetric_stays():
    candidates = symmetric(6, 4)
    scores = candidates.scores.copy()
    scores[0] += 0.001
    assert (1, 0) in without_twins(candidates).twins
    assert (1, 0) not in without_twins(replace(candidates, scores=scores)).twins


@pytest.mark.parametrize("seed", range(3))
def test_any_set_that_scores_otherwise_keeps_both(seed):
    """One set of the two vertices, or with one of them, scores a millionth more than its partner, or is missing."""
    candidates = symmetric(5, seed)
    assert (1, 0) in without_twins(candidates).twins
    lists = [list(candidates.of(vertex)) for vertex in range(5)]
    for vertex in range(5):
        for place, (members, score) in enumerate(lists[vertex][:-1]):
            if vertex > 1 and not {0, 1} & {*members}:
                continue
            for changed in ([(members, score + 1e-6)], []):
                family = lists[vertex][:place] + changed + lists[vertex][place + 1 :]
                other = prune(candidates.names, [*lists[:vertex], family, *lists[vertex + 1 :]])
                reduced = without_twins(other)
                assert (1, 0) not in reduced.twins
                assert best_score(reduced.candidates) == pytest.approx(best_score(other), abs=1e-9)


def test_equal_scores_of_other_sets_keep_both():
    """a and b have equally many sets with equal scores, but of different members."""
    lists = [
        [((2,), -1.0), ((3,), -2.0), ((), -9.0)],
        [((3,), -1.0), ((2,), -2.0), ((), -9.0)],
        [((), -5.0)],
    ]
    assert without_twins(prune("abcd", [*lists, [((), -6.0)]])).twins == ()


def test_every_order_of_three_twins():
    """Twins of twins: whichever column comes first stays."""
    frame = data_with_twins(1)
    for names in permutations(["a", "A", "Aa"]):
        candidates = identify(
            read(frame.select([*names, "c"])), CandidateSearch(max_parents=2, score=Score("bds"))
        )
        reduced = without_twins(candidates)
        assert [(candidates.names[t], candidates.names[o]) for t, o in reduced.twins] == [
            (names[1], names[0]),
            (names[2], names[0]),
        ]
        assert best_score(reduced.candidates) == pytest.approx(best_score(candidates), abs=1e-8)


def test_a_set_without_a_partner_makes_no_twins():
    """a may be a parent of c and b of d, with the same scores, but not the other way round."""
    both = [[((2,), -1.0), ((), -2.0)], [((2,), -1.0), ((), -2.0)]]
    only_a, only_b = [((0,), -2.0), ((), -3.0)], [((1,), -2.0), ((), -3.0)]
    either = [((0,), -2.0), ((1,), -2.0), ((), -3.0)]
    for c, d, twins in ((only_a, only_b, ()), (either, either, ((1, 0),))):
        assert without_twins(prune("abcd", [*both, c, d])).twins == twins


def test_twins_whose_parents_are_twins():
    """b, a sink, keeps its set with d, a sink after it; d keeps none with b."""
    unit, empty = 2.0**-24, ((), -1e6)
    first = [((3,), -1e6 + 3 + unit), ((2,), -1e6 + 3), empty]
    second = [((1,), -1e6 + 4 + unit), ((0,), -1e6 + 4), empty]
    candidates = prune("abcd", [first, first, second, second])
    reduced = without_twins(candidates)
    assert reduced.twins == ((1, 0), (3, 2))
    assert [members for members, _ in reduced.candidates.of(1)] == [(3,)]
    assert [members for members, _ in reduced.candidates.of(3)] == [(0,)]
    assert 0 <= best_score(candidates) - best_score(reduced.candidates) <= reduced.rounding


def test_a_set_that_holds_both_keeps_both():
    lists = [[((2,), -1.0), ((), -2.0)], [((2,), -1.0), ((), -2.0)], [((0, 1), -1.0), ((), -9.0)]]
    assert without_twins(prune("abc", lists)).twins == ()
    without = [*lists[:2], [((0,), -1.0), ((1,), -1.0), ((), -9.0)]]
    assert without_twins(prune("abc", without)).twins == ((1, 0),)
