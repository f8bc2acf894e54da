"""Covers of candidate sets: every method against exhaustion, and the border cases."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qubayes import QubayesError, SettingError
from qubayes.candidates import Candidates
from qubayes.foundation.families import Families
from qubayes.foundation.workers import Workers
from qubayes.qubo.subsets import METHODS, Budget, Subsets, cover
from reference.covers import covers, optimum


def candidates_of(*lists):
    """Candidates whose vertices have these sets, each list ending with its base."""
    families = Families.of([[tuple(sorted(members)) for members in sets] for sets in lists])
    return Candidates(
        tuple(f"x{i}" for i in range(len(lists))), families, np.zeros(len(families.set_start) - 1)
    )


def cover_of(sets, **settings):
    """(members, lower bound) of the cover of one family."""
    result = cover(candidates_of([*sets, ()]), **{"workers": Workers(1), **settings})
    return [frozenset(members) for members in result.families.sets_of(0)], int(
        result.lower_bounds[0]
    )


def random_family(rng, *, elements=5, largest=3, count=7):
    return [frozenset(rng.sample(range(elements), rng.randint(1, largest))) for _ in range(count)]


def triples(rng, *, elements=14, count=150):
    """A family as candidates are: most singletons, some pairs, many triples."""
    singles = [frozenset({e}) for e in range(elements) if rng.random() < 0.8]
    return singles + [
        frozenset(rng.sample(range(elements), rng.choice((2, 3, 3)))) for _ in range(count)
    ]


families = st.lists(st.frozensets(st.integers(0, 5), max_size=4), max_size=8)


@pytest.mark.parametrize("method", METHODS)
@given(sets=families)
def test_every_method_finds_and_proves_the_optimum_of_small_families(method, sets):
    members, bound = cover_of(sets, method=method)
    assert covers(sets, members)
    if method == "search":  # promises a cover, not a proof
        assert bound <= optimum(sets) <= len(members)
    else:
        assert bound == len(members) == optimum(sets)


def test_search_finds_the_optimum_of_small_families():
    rng = random.Random(3)
    for _ in range(60):
        sets = random_family(rng, elements=6, largest=4, count=7)
        assert len(cover_of(sets, method="search")[0]) == optimum(sets), sets


@given(sets=st.lists(st.frozensets(st.integers(0, 7), min_size=1, max_size=2), max_size=11))
def test_pairs_are_solved_by_the_closed_form(sets):
    members, bound = cover_of(sets)
    assert covers(sets, members)
    assert bound == len(members) == optimum(sets)


def test_a_tree_of_pairs_costs_its_edges_and_a_cycle_its_vertices():
    tree = [(0, 1), (1, 2), (1, 3)]
    assert len(cover_of(tree)[0]) == 3
    assert len(cover_of([*tree, (3,)])[0]) == 4
    assert len(cover_of([(0, 1), (1, 2), (0, 2), (0, 3), (1, 3)])[0]) == 4


@given(sets=families, seed=st.integers(0, 99))
def test_shuffling_and_relabelling_keep_the_size(sets, seed):
    rng = random.Random(seed)
    names = rng.sample(range(100), 6)
    other = [frozenset(names[e] for e in members) for members in sets]
    rng.shuffle(other)
    assert len(cover_of(sets)[0]) == len(cover_of(other)[0])


def test_a_shuffled_large_family_has_the_same_cover():
    rng = random.Random(5)
    sets = triples(rng)
    members = cover_of(sets, method="search")[0]
    rng.shuffle(sets)
    assert cover_of(sets + sets[:9], method="search")[0] == members
    assert covers(sets, members)


def test_methods_agree_on_families_of_triples():
    rng = random.Random(8)
    for _ in range(3):
        sets = triples(rng, elements=9, count=40)
        results = {method: cover_of(sets, method=method) for method in METHODS}
        assert all(covers(sets, members) for members, _ in results.values())
        assert (
            len(results["ilp"][0])
            == len(results["ilp-only"][0])
            == results["ilp"][1]
            == len(results["auto"][0])
        )
        assert max(bound for _, bound in results.values()) == len(results["ilp"][0])


def test_more_effort_is_never_worse_on_a_hard_family():
    sets = triples(random.Random(1), elements=20, count=700)
    sizes = [
        len(cover_of(sets, method="search", budget=Budget(effort=effort))[0])
        for effort in (0.001, 1.0)
    ]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_cover(method):
    result = cover(candidates_of([], [()], [(0,)]), method=method)
    assert result.total == 0 and result.proved.all() and result.complete
    assert cover(candidates_of(), method=method).total == 0


@pytest.mark.parametrize("method", METHODS)
def test_one_set_is_its_own_cover(method):
    for members in [(7,), (1, 2), (1, 2, 3), (1, 2, 3, 4, 5, 6, 7, 8), tuple(range(200))]:
        assert cover_of([members], method=method) == ([frozenset(members)], 1)


@pytest.mark.parametrize("method", METHODS)
def test_duplicates_and_empty_sets_change_nothing(method):
    sets = [(0,), (1,), (2, 3), (0, 1, 2)]
    assert cover_of([*sets, (), *sets, ()], method=method) == cover_of(sets, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_sets_of_more_than_64_elements(method):
    """80 common elements, and one of two, one of three others: the products of two small families."""
    sets = [frozenset({*range(80), 90 + a, 95 + b}) for a in range(3) for b in range(4)]
    members, bound = cover_of(sets, method=method)
    assert covers(sets, members)
    assert len(members) == 7
    assert bound <= 7


@settings(max_examples=12)
@given(
    sets=st.lists(st.frozensets(st.integers(0, 6), min_size=1, max_size=5), min_size=1, max_size=5)
)
def test_closed_subsets_suffice_when_sets_are_large(sets):
    # one set of seven: only closed subsets are looked at
    sets = [*sets, frozenset({*range(100, 107)})]
    members, bound = cover_of(sets)
    assert covers(sets, members)
    assert bound == len(members) == 1 + optimum(sets[:-1])


def test_too_many_subsets_leave_a_cover_without_proof():
    rng = random.Random(2)
    sets = [frozenset(rng.sample(range(30), 15)) for _ in range(60)]
    members, bound = cover_of(sets)
    assert covers(sets, members)
    assert bound <= len(members) <= 60


def test_more_elements_than_a_key_of_six_has_room_for():
    sets = [frozenset(range(6 * block, 6 * block + 6)) for block in range(171)]
    members, bound = cover_of(sets)
    assert sorted(members, key=min) == sets and bound == 171


def test_required_parents_are_left_out():
    result = cover(candidates_of([(1, 2, 3), (1, 2), (1, 3), (1,)]))
    assert list(result.families.sets_of(0)) == [(2,), (3,)]
    with pytest.raises(QubayesError, match="required parents"):
        cover(candidates_of([(2, 3), (1,)]))


def test_equal_families_share_their_cover():
    sets = triples(random.Random(4), elements=8, count=30)
    moved = [frozenset(e + 20 for e in members) for members in sets]
    result = cover(candidates_of([*sets, ()], [*moved, ()]))
    first, second = result.families.sets_of(0), result.families.sets_of(1)
    assert [tuple(e + 20 for e in members) for members in first] == list(second)


def same(one: Subsets, other: Subsets) -> bool:
    return all(
        np.array_equal(a, b) for a, b in zip(one.families, other.families, strict=True)
    ) and np.array_equal(one.lower_bounds, other.lower_bounds)


@pytest.mark.parametrize("method", ["auto", "search", "ilp"])
def test_threads_do_not_change_the_result(method):
    rng = random.Random(6)
    candidates = candidates_of(*([*triples(rng, elements=10, count=60), ()] for _ in range(5)))
    results = [cover(candidates, method=method, workers=Workers(threads)) for threads in (1, 3)]
    assert same(*results)


def test_a_cluster_gives_the_same_result():
    distributed = pytest.importorskip("distributed")
    rng = random.Random(6)
    candidates = candidates_of(*([*triples(rng, elements=9, count=40), ()] for _ in range(3)))
    here = cover(candidates)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert same(here, cover(candidates, workers=Workers(cluster=client)))


def test_progress_ends_at_its_total():
    reports = []
    cover(candidates_of([(1, 2), (1,), ()], [(2,), ()], [()]), on_progress=reports.append)
    assert reports and {report.stage for report in reports} == {"subsets"}
    assert reports[-1].done == reports[-1].total
    assert [report.note for report in reports] == [
        f"{number} of 3 vertices" for number in (1, 2, 3)
    ]
    assert [report.done for report in reports] == sorted(report.done for report in reports)


def test_an_interrupt_between_vertices_keeps_what_was_found():
    lists = [[*triples(random.Random(seed), elements=9, count=40), ()] for seed in range(4)]

    def interrupt(progress):
        raise KeyboardInterrupt

    result = cover(candidates_of(*lists), workers=Workers(1), on_progress=interrupt)
    assert not result.complete
    sizes = [len({members for members in sets if members}) for sets in lists]
    for vertex, sets in enumerate(lists):
        assert covers(sets, [frozenset(members) for members in result.families.sets_of(vertex)])
    assert (
        sum(int(size) == most for size, most in zip(result.families.sizes, sizes, strict=True)) == 3
    )


def test_a_time_limit_leaves_a_cover():
    sets = triples(random.Random(1), elements=24, count=1500)
    members, bound = cover_of(sets, method="ilp", budget=Budget(seconds=0.01))
    assert covers(sets, members) and bound < len(members)


def test_bad_settings_are_said():
    with pytest.raises(SettingError, match="choose one of auto"):
        cover(candidates_of([()]), method="gurobi")
    for wrong in ({"seconds": 0}, {"effort": 0.0}, {"rounds": -1}, {"program": -1}):
        with pytest.raises(SettingError, match="must be positive"):
            Budget(**wrong)
    assert Budget(seconds=0.5, effort=0.5, rounds=0, program=0).rounds == 0
