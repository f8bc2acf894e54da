"""The parts of the search for a family: what Algorithm 1 closes, the local search, dimod as a yardstick."""

import random
from collections import Counter
from itertools import product

import dimod
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qubayes.foundation.highs import Highs, Solved
from qubayes.foundation.random import random_stream
from qubayes.quadratize import heuristic, quadratize, trade_off
from qubayes.quadratize.decomposition import (
    bits,
    closed_sets,
    couplers,
    decompose,
    holds,
    in_order,
    reduce_space,
    singletons,
)
from qubayes.quadratize.heuristic import (
    OptionRows,
    choice_problem,
    improve,
    merge_frequent,
    parity_pairs,
    prune,
)
from qubayes.quadratize.integer_program import smallest_family
from qubayes.quadratize.local_search import TRIED, first_state, search
from qubayes.quadratize.quadratize import dimod_family
from reference import polynomials as oracle
from reference.annealing import Draws
from reference.choices import Choice
from test_quadratize import EXAMPLE, polynomials, random_polynomial, support


def masks(terms):
    return tuple(sorted({sum(1 << v for v in t) for t in terms}))


def as_set(mask):
    return frozenset(bits(mask))


@pytest.mark.parametrize("assumptions", ["general", "terms-exclusive"])
@given(terms=polynomials(variables=4, terms=4))
def test_closed_sets_are_in_every_smallest_family(assumptions, terms):
    closed = {as_set(s) for s in closed_sets(masks(terms), assumptions)}
    assert {t for t in support(terms) if len(t) == 1} <= closed
    assert all(
        closed <= set(family) for family in oracle.smallest_families(support(terms), assumptions)
    )


@pytest.mark.parametrize("assumptions", ["general", "terms-exclusive"])
@given(terms=polynomials(variables=4, terms=4))
def test_what_is_left_open_holds_a_smallest_family(assumptions, terms):
    space = reduce_space(masks(terms), assumptions)
    allowed = {as_set(s) for s in (*space.closed, *space.candidates)}
    assert any(
        set(family) <= allowed for family in oracle.smallest_families(support(terms), assumptions)
    )


@pytest.mark.parametrize("assumptions", ["general", "terms-exclusive"])
def test_the_program_finds_a_smallest_family(assumptions):
    """By itself, without what comes before and after it, and one that satisfies what is assumed."""
    alone = [frozenset({e}) for e in range(4)]
    cases = [{*alone[:3], frozenset(range(3))}, {*alone, frozenset(range(3)), frozenset(range(4))}]
    for seed in range(40):
        rng = random.Random(seed)
        cases.append(
            {
                frozenset(rng.sample(range(4), rng.choice((1, 2, 3, 3, 4))))
                for _ in range(rng.randint(2, 4))
            }
        )
    for terms in cases:
        found = smallest_family(reduce_space(masks(terms), assumptions), 60.0)
        assert found.sets is not None and found.proved, terms
        assert oracle.holds([as_set(own) for own in found.sets], terms, assumptions), terms
        least = len(oracle.smallest_families(terms, assumptions)[0])
        assert len(found.sets) == found.bound == least, terms


def test_a_program_without_a_solution_keeps_its_bound(monkeypatch):
    space = reduce_space(masks([(0, 1, 2), (0, 1), (1, 2, 3)]), "general")
    for bound in (2.0, 2.0 + 1e-9, 1.5):
        stopped = Solved(np.zeros(0), None, bound, feasible=False, optimal=False)
        monkeypatch.setattr(Highs, "solve", lambda self, seconds, stopped=stopped: stopped)
        assert smallest_family(space, 1.0) == (None, len(space.closed) + 2, False)


def test_a_program_that_is_stopped_has_a_bound_of_at_most_its_family(monkeypatch):
    space = reduce_space(masks([(0, 1, 2), (0, 1), (1, 2, 3)]), "general")
    most = len(space.closed) + len(space.candidates)
    for bound in (1.0, len(space.candidates) - 1.0, len(space.candidates) + 5.0):

        def solve(self, seconds, bound=bound):
            return Solved(np.ones(len(self._fake)), None, bound, feasible=True, optimal=False)

        def load(self, model):
            assert set(model.costs[model.integer].tolist()) == {1.0}  # a set costs one
            self._fake = model.costs

        monkeypatch.setattr(Highs, "load", load)
        monkeypatch.setattr(Highs, "solve", solve)
        found = smallest_family(space, 1.0)
        assert found.sets is not None and len(found.sets) == most and not found.proved
        assert found.bound == min(len(space.closed) + bound, most)


@pytest.mark.parametrize("limit", ["MERGES", "MERGES_LONG"])
def test_one_run_at_least_however_large_the_support(limit, monkeypatch):
    monkeypatch.setattr(heuristic, limit, 0)
    terms = masks(
        [tuple(range(first, first + (4 if limit == "MERGES" else 40))) for first in range(3)]
    )
    family = heuristic.searched_family(terms, "general")
    assert holds(family, terms, "general")


def test_row_2_read_by_its_explanation_keeps_the_optimum():
    """As printed, row 2 would close {0,1} and more here and end with five sets."""
    terms = {(0,): 1.0, (0, 1): 1.0, (0, 2): 1.0, (0, 1, 2): 1.0, (0, 1, 2, 3): 1.0}
    result = quadratize(terms, assumptions="terms-exclusive")
    assert result.proved and len(result.sets) == 4


@st.composite
def rows_and_choice(draw):
    """Random rows over few sets, and the choice of everything."""
    sets = draw(st.integers(2, 7))
    starts, guards, first, second = [0], [], [], []
    for _ in range(draw(st.integers(1, 8))):
        guard = draw(st.integers(-1, sets - 1))
        guards.append(guard if guard not in guards else -1)
        for _ in range(draw(st.integers(1, 3))):
            a, b = draw(st.integers(0, sets - 1)), draw(st.integers(-1, sets - 1))
            first.append(a)
            second.append(-1 if a == b else b)
        starts.append(len(first))
    return OptionRows(
        *(np.array(x, dtype=np.int64) for x in (starts, guards, first, second))
    ), np.ones(sets, dtype=np.bool_)


def content(rows, chosen):
    """Whether every row that asks has an option whose sets are chosen."""
    for row, guard in enumerate(rows.guard):
        options = range(rows.start[row], rows.start[row + 1])
        served = any(
            chosen[rows.first[o]] and (rows.second[o] < 0 or chosen[rows.second[o]])
            for o in options
        )
        if (guard < 0 or chosen[guard]) and not served:
            return False
    return True


# The search is a heuristic, which finds the optimum of nearly all small problems: the same ones are
# tried each time.
@settings(max_examples=150, derandomize=True)
@given(rows_and_choice())
def test_local_search_finds_the_smallest_choice(problem):
    rows, everything = problem
    before = everything.copy()
    found = improve(rows, everything, 3_000)
    assert content(rows, found) and (everything == before).all()
    least = min(sum(c) for c in product((False, True), repeat=len(everything)) if content(rows, c))
    assert found.sum() == least


@pytest.mark.parametrize(
    "sets, count, seed", [(12, 14, 0), (12, 14, 1), (12, 10, 2), (4, 3, 3), (4, 3, 4), (5, 3, 9)]
)
def test_every_step_of_the_local_search_is_its_definition(sets, count, seed):
    draw = random.Random(seed)
    guards = [-1] * count + draw.sample(range(sets), sets // 2)
    options = [
        [draw.sample(range(sets), draw.choice((1, 2, 2))) for _ in range(draw.randint(2, 5))]
        for _ in guards
    ]
    sizes = np.cumsum([0, *map(len, options)])
    first, second = ([(*option, -1)[side] for own in options for option in own] for side in (0, 1))
    rows = OptionRows(*(np.array(values, np.int64) for values in (sizes, guards, first, second)))
    chosen = np.ones(sets, np.bool_)
    for s in draw.sample(range(sets), sets // 4):  # not everything: some options lack a set
        chosen[s] = False
        chosen[s] = not content(rows, chosen)
    start = np.flatnonzero(chosen).tolist()
    slow = Choice(
        list(zip(guards, options, strict=True)), start, sets, Draws(*random_stream(0).tolist())
    )
    for steps, smallest in enumerate(slow.improve(150, TRIED), 1):
        if steps < 20 or steps % 10 == 0:
            best = chosen.copy()
            uses, state = first_state(rows, best)
            search(rows, uses, state, steps, best)
            assert state.picked[: state.counts[0]].tolist() == slow.picked
            assert state.unsatisfied[: state.counts[1]].tolist() == slow.unsatisfied
            assert state.weight.tolist() == slow.weight and state.stamp.tolist() == slow.stamp
            assert set(np.flatnonzero(best).tolist()) == smallest
    assert max(slow.weight) > 5 and len(smallest) < sets


def random_masks(seed, variables, count, degrees):
    draw = random.Random(seed)
    return masks(draw.sample(range(variables), draw.choice(degrees)) for _ in range(count))


@pytest.mark.parametrize("seed", range(8))
def test_the_first_merging_takes_the_smallest_of_the_most_frequent_pairs(seed):
    terms = random_masks(seed, 8, 14, (2, 3, 4, 5, 7))
    assert merge_frequent(terms) == oracle.merged_products(terms)


@pytest.mark.parametrize("seed", range(8))
def test_parity_pairs_are_the_fewest_of_all_colourings(seed):
    terms = random_masks(seed, 8, 6, (1, 2, 3, 4, 4))
    own = [as_set(t) for t in terms]
    pairs = parity_pairs(terms)
    assert pairs is not None and len(pairs) == oracle.fewest_pairs_of_one_colour(own)
    assert all(any(pair & ~t == 0 for t in terms if t.bit_count() > 2) for pair in pairs)
    assert holds(pairs | singletons(terms), terms, "conventional")


@pytest.mark.parametrize("seed", range(8))
def test_variables_grow_by_the_terms_that_they_complete(seed):
    terms = random_masks(seed, 9, 12, (3, 4))
    assert heuristic._growth_order(terms) == oracle.growth_order([as_set(t) for t in terms])


@pytest.mark.parametrize("assumptions", ["general", "terms-exclusive"])
@pytest.mark.parametrize("seed", range(8))
def test_gaps_of_a_family_are_filled_before_the_local_search(seed, assumptions):
    """Without a step of the search: what is given stays, and every term gets a representation."""
    terms, draw = random_masks(seed, 7, 10, (1, 2, 3, 4)), random.Random(seed)
    problem = choice_problem(terms, set(), assumptions)
    given = {s for s in problem.sets if s.bit_count() <= 2 and draw.random() < 0.4}
    found = problem.improved(given, 0)
    assert given | problem.closed <= found and holds(found, terms, assumptions)
    assert problem.improved(found, 0) == found
    least = problem.improved(found)
    assert len(least) < len(found) and holds(least, terms, assumptions)


@pytest.mark.parametrize("assumptions", ["general", "terms-exclusive"])
@pytest.mark.parametrize("seed", range(4))
def test_options_of_a_row_are_all_its_representations(seed, assumptions):
    """By sets that are not closed; a closed one is there anyway."""
    terms, exclusive = random_masks(seed, 6, 7, (1, 2, 3, 4)), assumptions == "terms-exclusive"
    problem = choice_problem(terms, set(), assumptions)
    sets, closed, rows = problem.sets, problem.closed, problem.rows
    wanted = [t for t in terms if t.bit_count() > 2 or not singletons([t]) <= closed]
    wanted += [] if exclusive else [own for own in sets if own.bit_count() > 2]
    assert rows.guard.tolist() == [-1 if row < len(terms) and mask in terms else sets.index(mask)
                                   for row, mask in enumerate(wanted)]  # fmt: skip
    for row, mask in enumerate(wanted):
        options = range(rows.start[row], rows.start[row + 1])
        found = {
            frozenset(sets[s] for s in (rows.first[o], rows.second[o]) if s >= 0) for o in options
        }
        inside = [
            own for own in (*sets, *closed) if own & ~mask == 0 and (own != mask or exclusive)
        ]
        unions = {frozenset({a, b} - closed) for a in inside for b in inside if a | b == mask}
        least = {own for own in unions if not any(other < own for other in unions)}
        assert found == least and len(found) == len(options)


@pytest.mark.parametrize("assumptions", ["general", "terms-exclusive", "conventional"])
def test_pruning_drops_one_by_one(assumptions):
    """The better of two orders, larger sets first and, where singletons may go, smaller sets first."""
    better = Counter()
    for seed in range(25):
        terms, results = random_masks(seed, 7, 9, (1, 2, 3, 4, 5)), []
        family = set().union(
            *(merge_frequent(terms, run) for run in range(3)), singletons(terms), terms[::2]
        )
        for order in (in_order(family)[::-1], in_order(family)):
            left, before = set(family), None
            while before != left:
                before = set(left)
                for own in order:
                    left -= (
                        {own} if own in left and holds(left - {own}, terms, assumptions) else set()
                    )
            results.append(left)
        better[len(results[0]) - len(results[1])] += 1
        expected = results[0] if assumptions == "conventional" else min(results, key=len)
        assert prune(family, terms, assumptions) == expected
    assert assumptions == "conventional" or (min(better) < 0 < max(better)), better


@pytest.mark.parametrize("seed", range(6))
def test_the_quick_family_is_that_of_the_better_start(seed):
    terms = random_masks(seed, 8, 8, (3, 4, 4))
    starts = [merge_frequent(terms), parity_pairs(terms)]
    sizes = [
        len(prune(singletons(terms) | start, terms, "general"))
        for start in starts
        if start is not None
    ]
    assert len(heuristic.quick_family(terms, "general")) == min(sizes)


def test_terms_of_two_variables_are_nothing_to_grow_by():
    terms = random_masks(1, 14, 30, (3, 4))
    found = heuristic.grown_products(terms, "general")
    assert holds(found | singletons(terms), terms, "general")
    for last in range(14):
        pairs = [1 << v | 1 << last for v in range(14) if v != last]
        assert heuristic.grown_products((*terms, *pairs), "general") == found


@pytest.mark.parametrize("assumptions", ["general", "terms-exclusive", "conventional"])
def test_every_start_gives_a_family(assumptions):
    terms = random_masks(0, 8, 8, (3, 4))
    families = list(heuristic._families(terms, assumptions))
    assert len(families) == (1 if assumptions == "terms-exclusive" else 4)
    assert all(holds(family, terms, assumptions) for family in families)


def test_the_smallest_family_of_all_starts_is_kept():
    families = [{1, 2, 4, 3, 6}, {1, 2, 4, 5}, {1, 2, 4, 3, 5}, {1, 2, 4, 6}]
    for enough, best, tried in ((0, 1, 4), (4, 1, 2), (5, 0, 1)):
        left = iter(families)
        assert heuristic.smallest_of(left, enough) == families[best]
        assert len(list(left)) == 4 - tried


@pytest.mark.parametrize("run", [0, 1, 2])
def test_merging_gives_products_of_two(run):
    terms = masks(random_polynomial(10, 30, (3, 5, 7), 1))
    family = merge_frequent(terms, run) | {1 << v for v in range(10)}
    assert holds(family, terms, "conventional")


@given(
    terms=polynomials(variables=5, terms=5),
    assumptions=st.sampled_from(["general", "terms-exclusive", "conventional"]),
)
def test_pruning_keeps_what_is_assumed_and_leaves_nothing_to_drop(terms, assumptions):
    family = merge_frequent(masks(terms)) | {1 << v for t in terms for v in t}
    pruned = prune(family, masks(terms), assumptions)
    assert pruned <= family
    assert oracle.holds([as_set(s) for s in pruned], support(terms), assumptions)
    for gone in pruned:
        assert not oracle.holds(
            [as_set(s) for s in pruned - {gone}], support(terms), assumptions
        ), gone


def test_pruning_tries_again_what_other_sets_needed():
    """{0, 1} goes after {5}: {0, 1, 5}, which they made up, is then a root."""
    terms = masks([(0, 2, 3, 4), (0, 1, 3, 5), (0, 1, 2, 4, 5)])
    family = merge_frequent(terms) | singletons(terms)
    assert prune(family, terms, "general") == {0b100011, 0b1001, 0b10100}


def test_dimods_family_is_a_conventional_one():
    terms = random_polynomial(9, 25, (2, 3, 5), 0)
    family = dimod_family(terms, {v: 1 << v for v in range(9)})
    assert holds(family, masks(terms), "conventional")
    assert len(family) == dimod.make_quadratic(terms, 1.0, "BINARY").num_variables


def test_terms_use_couplers_that_are_there():
    found = decompose(
        [0b100, 0b1000, 0b111], masks([(0, 1, 2, 3), (0, 1, 2), (3,), (2, 3)]), "general"
    )
    assert (
        found.splits == {} and len(couplers(found, "tight")) == len(couplers(found, "paper")) == 3
    )


def test_trade_off_of_little():
    assert trade_off({}, extra_bits=0) == ((0, 0, True),)
    assert trade_off(EXAMPLE, assumptions="conventional", extra_bits=0)[0][:2] == (6, 8)
