"""What enters the kernels: the data, the score, and what one level of the search leaves for the next."""

from typing import NamedTuple

from ..foundation.arrays import AnyArray, Bools, Floats, Ints, SmallInts, Words

BDEU, BDS, K2, LIKELIHOOD = 0, 1, 2, 3


class Rows(NamedTuple):
    """The data, ready for counting. States are the observed ones only."""

    codes: AnyArray  # (n, R) distinct rows; (n, 0) if bits are used
    observed: Ints  # (n,) observed number of states
    weights: SmallInts  # (R,) how often each row occurs
    merged: bool  # whether some weight is above 1
    bits: Words  # (n, words) rows in state 1, if every variable has at most two observed states; else (n, 0)
    total: int  # N


class Labels(NamedTuple):
    """The data as the kernels count them where some variable has more than two observed states; else (n, 0) codes."""

    codes: AnyArray  # (n, R)
    observed: Ints  # (n,)
    weights: SmallInts  # (R,)
    merged: bool


class Bits(NamedTuple):
    """The data as the kernels count them where every variable has at most two observed states."""

    rows: Words  # (n, words) rows in state 1
    prefix: Words  # (k, words) rows in which every member of the prefix is 1
    prefix_cells: SmallInts  # (2^(k-1),) rows in which exactly these members of the prefix are 1
    ones_base: Ints  # (2^(k-1),) plus x: where the all-ones count of these members and x stands


class Rule(NamedTuple):
    """What is scored: kind, prior and price."""

    kind: int
    ess: float
    price: float  # of one free parameter
    arities: Floats  # (n,) number of child states in the prior: observed for BDs, else declared
    declared: Floats  # (n,) declared arities
    arity_class: Ints  # (n,) which column of the parent terms a child uses
    class_arity: Floats  # (classes,)
    tolerance: Floats  # (n,) a set must beat its subsets by more than this


class Constraints(NamedTuple):
    """Which parents prior knowledge allows. Kernels take None instead where it says nothing."""

    allowed: Bools  # (n, n) allowed[i, j]: j may be a parent of i
    required: Bools  # (n, n)
    required_count: Ints  # (n,)
    limits: Ints  # (n,) largest number of parents


class Below(NamedTuple):
    """What is known of smaller sets when level k is visited, by lexicographic rank."""

    terms: Floats  # (C(n, k-1), classes) parent terms of sets of k-1
    cells: SmallInts  # (C(n, k-1),) number of observed states of sets of k-1
    best: Floats  # (n, C(n, k-2)) best score of any subset; +inf: no superset can be a candidate
    ones: SmallInts  # rows in which all members are 1, for sets of 0, 1, ..., k-1, one size after the other
    drop: Ints  # (k + 2, n + 1) drop[s, v] = C(n-1-v, s)
    sizes: Ints  # (k + 2,) C(n, s)
    ones_start: Ints  # (k + 2,) where sets of s begin in `ones`
    keys: Floats  # (rows,) ascending: ess / prior of each row of `table`; only priors above SMALL_PRIOR
    table: Floats  # (rows, width) lnΓ(c + prior) − lnΓ(prior), or c log c
    series: Floats  # (width, SERIES) coefficients of prior^0, prior^1, ... in lnΓ(c + prior) − lnΓ(1 + prior)


class Above(NamedTuple):
    """What level k leaves for level k + 1; empty arrays at the last level."""

    terms: Floats  # (C(n, k), classes)
    cells: SmallInts  # (C(n, k),)
    best: Floats  # (n, C(n, k-1))
    ones: SmallInts  # (C(n, k),)


Counts = tuple[SmallInts, SmallInts, int]  # (values, times, number of pairs): a multiset of cell counts


class Found(NamedTuple):
    """Candidate sets of one block, in the order of discovery."""

    child: SmallInts  # (capacity,)
    parents: SmallInts  # (capacity, k-1)
    score: Floats  # (capacity,)
