"""Fewest couplers of the paper's penalty, by exhaustion over all families on four variables."""

from itertools import permutations

import numpy as np
import pytest

from qubayes.quadratize import quadratize

# non-empty sets of four variables; a family is a number with bit s - 1 for each of its sets s
SETS = range(1, 16)
FAMILIES = np.arange(2**15)


def holds_set(s):
    """(families,) whether the set is in each family."""
    return FAMILIES >> (s - 1) & 1 == 1


def represented(whole, *, by_others):
    """(families,) whether the set is in the family, or the union of two others."""
    pairs = [(a, b) for a in SETS for b in SETS if a < b and a | b == whole and whole not in (a, b)]
    found = np.zeros(len(FAMILIES), bool) if by_others else holds_set(whole)
    for a, b in pairs:
        found = found | (holds_set(a) & holds_set(b))
    return found


def second_assumption():
    """(families,) whether each set is the union of two others or the intersection of all sets with some element."""
    right = np.ones(len(FAMILIES), bool)
    for s in SETS:
        root = np.zeros(len(FAMILIES), bool)
        for element in (e for e in range(4) if s >> e & 1):
            outside = [t for t in SETS if t >> element & 1 and s & ~t]
            root |= ~np.any([holds_set(t) for t in outside], axis=0) if outside else True
        right &= ~holds_set(s) | root | represented(s, by_others=True)
    return right


def couplers_of_penalty():
    """(families,) pairs that the lemma `barc1` couples: nested, or with a set of the family as union."""
    number = np.zeros(len(FAMILIES), np.int64)
    for a in SETS:
        for b in (b for b in SETS if b > a):
            number += holds_set(a) & holds_set(b) & holds_set(a | b)
    return number


def least(support):
    """Sets and couplers of the best family: fewest sets, then fewest couplers. A term outside it costs one coupler."""
    sizes, outside = np.bitwise_count(FAMILIES), np.bitwise_count(support & ~FAMILIES)
    inside = sum(
        1 << (s - 1) for s in SETS if any(support >> (t - 1) & 1 and s & ~t == 0 for t in SETS)
    )
    allowed = SECOND & (FAMILIES & ~inside == 0)
    for term in (t for t in SETS if support >> (t - 1) & 1):
        allowed = allowed & REPRESENTED[term]
    fewest = sizes[allowed].min()
    return fewest, (COUPLERS + outside)[allowed & (sizes == fewest)].min()


SECOND = second_assumption()
REPRESENTED = {s: represented(s, by_others=False) for s in SETS}
COUPLERS = couplers_of_penalty()


def supports():
    """One support of each class under permutations of the variables that has a term of three or four of them."""
    images = np.full((24, len(FAMILIES)), 0, np.int64)
    for row, order in enumerate(permutations(range(4))):
        for s in SETS:
            image = sum(1 << order[e] for e in range(4) if s >> e & 1)
            images[row] |= holds_set(s).astype(np.int64) << (image - 1)
    long = sum(1 << (s - 1) for s in SETS if s.bit_count() > 2)
    return [int(f) for f in np.flatnonzero(images.min(axis=0) == FAMILIES) if f & long]


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 8))]
)
def test_the_fewest_couplers_of_every_support_on_four_variables(part):
    for support in supports()[part::8]:
        terms = {
            tuple("abcd"[e] for e in range(4) if s >> e & 1): 1.0
            for s in SETS
            if support >> (s - 1) & 1
        }
        result = quadratize(terms, mode="optimal", penalty="paper", fewest_couplers=True)
        assert result.proved and result.couplers_proved, terms
        assert (len(result.sets), result.couplers) == least(support), terms
        assert result.couplers_bound == result.couplers
