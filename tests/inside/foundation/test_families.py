"""The views of sets of vertices, each against its definition by tuples."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qubayes.foundation.families import Families


@st.composite
def sets_by_vertex(draw):
    """Lists of sets of other vertices, one list for each vertex; some are empty."""
    n = draw(st.integers(1, 6))
    lists = []
    for vertex in range(n):
        others = [other for other in range(n) if other != vertex]
        subsets = st.sets(st.sampled_from(others)) if others else st.just(set())
        lists.append([tuple(sorted(each)) for each in draw(st.lists(subsets, max_size=5))])
    return lists


def sets_of(families):
    return [list(families.sets_at(range(first, last))) for first, last in ranges_of(families)]


def ranges_of(families):
    start = families.vertex_start.tolist()
    return list(itertools.pairwise(start))


@given(sets_by_vertex())
def test_arrays_along_the_sets(lists):
    families = Families.of(lists)
    every = [each for sets in lists for each in sets]
    assert families.owners.tolist() == [v for v, sets in enumerate(lists) for _ in sets]
    assert families.set_sizes.tolist() == [len(each) for each in every]
    assert families.sets_of_members.tolist() == [i for i, each in enumerate(every) for _ in each]
    assert families.masks().tolist() == [sum(1 << member for member in each) for each in every]


@given(sets_by_vertex())
def test_padded_rows_hold_the_members_and_then_n(lists):
    families = Families.of(lists)
    rows = families.padded().tolist()
    width = max([1, *families.set_sizes.tolist()])
    every = [each for sets in lists for each in sets]
    assert rows == [[*each, *[families.n] * (width - len(each))] for each in every]


@given(sets_by_vertex())
def test_by_member_lists_the_sets_that_contain_a_vertex(lists):
    families = Families.of(lists)
    start, numbers = families.by_member()
    every = [each for sets in lists for each in sets]
    for vertex in range(families.n):
        holders = [i for i, each in enumerate(every) if vertex in each]
        assert numbers[start[vertex] : start[vertex + 1]].tolist() == holders


@given(sets_by_vertex(), st.data())
def test_inside_drops_other_vertices_from_the_sets_of_the_given_ones(lists, data):
    families = Families.of(lists)
    vertices = sorted(data.draw(st.sets(st.integers(0, families.n - 1), min_size=1)))
    local, numbers = families.inside(np.array(vertices))
    expected = []
    for vertex in vertices:
        inside = [tuple(vertices.index(u) for u in each if u in vertices) for each in lists[vertex]]
        expected.append(inside)
    assert sets_of(local) == expected
    assert numbers.tolist() == [i for v in vertices for i in range(*ranges_of(families)[v])]
