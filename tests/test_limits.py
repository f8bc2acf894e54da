"""At the limits of what is accepted nothing overflows; one step further it is refused with a clear message."""

import math

import numpy as np
import pytest

from qubayes import DataError, FormatError, QubayesError, SettingError
from qubayes.candidates import Candidates, CandidateSearch, identify
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
from qubayes.data import Dataset, ReadSettings, read
from qubayes.foundation.families import Families
from qubayes.foundation.workers import Workers
from qubayes.machines import MOST_BITS, check_bits
from qubayes.network import LARGEST_TABLES, Network, fit
from qubayes.qubo import decode, encode, formulate
from qubayes.qubo.gains import MOST_SETS, check_sets
from qubayes.qubo.subsets import cover
from qubayes.scores import NAMES, Score, local_score
from qubayes.scores.score import LARGEST_ESS, LEAST_ESS
from qubayes.search import Limits, solve
from qubayes.search.run import MOST_MOVES
from reference.scores import prior_counts

ONE = Workers(1)


def repeated(column: list[list[int]], arities: list[int], rows: int) -> Dataset:
    """Data that take no memory: one row, again and again."""
    codes = np.broadcast_to(np.array(column, dtype=np.uint16), (len(arities), rows))
    names = tuple(f"v{i}" for i in range(len(arities)))
    return Dataset(names, tuple(tuple(map(str, range(r))) for r in arities), codes)


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


@pytest.mark.parametrize("seed", [9, 10, 12, 15])  # where the sums do round differently
@pytest.mark.parametrize("score", ["bds", "loglik"])
def test_ties_in_many_rows_make_no_candidates(seed, score):
    """a and b are copies up to names: given a, b tells nothing, but the sums for {a} and {a, b} round differently."""
    rng = np.random.default_rng(seed)
    rows, arity = 300_000, int(rng.choice([3, 10, 30, 90]))
    a = rng.choice(arity, size=rows, p=rng.dirichlet(np.ones(arity)))
    b, c = rng.permutation(arity)[a], rng.random(rows) < 1e-4 * (1 + 5 * (a == 0))
    states = tuple(map(str, range(arity)))
    dataset = Dataset(
        ("a", "b", "c"), (states, states, ("0", "1")), np.array([a, b, c]).astype(np.uint8)
    )
    found = dict(identify(dataset, CandidateSearch(2, Score(score)), workers=ONE).of(2))
    assert (0, 1) not in found


# -- states


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ess", [LEAST_ESS, LARGEST_ESS])
def test_scores_are_finite_at_the_limits_of_prior_and_states(name, ess):
    # 2 * 10^198 joint states
    dataset = repeated([[r - 1] for r in [2] + [100] * 99], [2] + [100] * 99, 3)
    assert math.isfinite(local_score(dataset, 0, range(1, 100), Score(name, ess)))
    with pytest.raises(DataError, match=r"10\^200 joint states; at most 10\^200 can be scored"):
        local_score(repeated([[0]] * 101, [2] + [100] * 100, 3), 0, range(1, 101), Score(name, ess))


def test_a_family_of_exactly_the_most_joint_states_is_scored():
    assert math.isfinite(
        local_score(repeated([[0]] * 100, [100] * 100, 3), 0, range(1, 100), Score("bdeu"))
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


@pytest.mark.parametrize(("states", "kind"), [(256, np.uint8), (257, np.uint16)])
def test_codes_of_a_full_type_are_kept(states, kind, tmp_path):
    """As many states as the type has values: the last code is the type's largest number."""
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i % 2}\n" for i in range(states)))
    dataset = read(path)
    assert dataset.codes.dtype == kind and dataset.codes[0].tolist() == list(range(states))
    found = identify(dataset, CandidateSearch(1, Score("loglik")), workers=ONE)
    assert dict(found.of(1))[(0,)] == pytest.approx(0.0, abs=1e-9)
    assert dict(found.of(0))[()] == pytest.approx(-states * math.log(states))


def test_the_most_states_of_a_column(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + "".join(f"s{i},{i % 2}\n" for i in range(1000)))
    assert read(path).arities.tolist() == [1000, 2]
    path.write_text("a,b\n" + "".join(f"s{i},{i % 2}\n" for i in range(1001)))
    with pytest.raises(DataError, match="1001 states, at most 1000"):
        read(path)
    path.write_text("a b\n1000 2\n0 0\n")
    assert read(path, ReadSettings(format="gobnilp")).arities.tolist() == [1000, 2]
    path.write_text("a b\n1001 2\n0 0\n")
    with pytest.raises(FormatError, match="1001 states; at most 1000"):
        read(path, ReadSettings(format="gobnilp"))


def test_tables_up_to_the_limit_are_counted_without_overflow():
    dataset = repeated([[9]] * 8, [10] * 8, 2)
    network = Network(dataset.names, (*((),) * 7, (0, 1, 2, 3, 4)))
    assert fit(network, dataset).tables[7][9, 9, 9, 9, 9, 9] > 0.5
    network = Network(dataset.names, (*((),) * 7, tuple(range(7))))  # 10^8 and 70 numbers
    with pytest.raises(QubayesError, match=f"{10**8 + 70} numbers.*at most {LARGEST_TABLES}"):
        fit(network, dataset)
    wide = repeated([[0]] * 65, [10] * 65, 2)  # 10^65 cells: no product of 64 bits
    with pytest.raises(QubayesError, match="numbers"):
        fit(Network(wide.names, (*((),) * 64, tuple(range(64)))), wide)


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


def test_a_long_key_is_packed_up_to_63_bits():
    """Sets of nine parents among 127: nine times seven bits. With eight bits a set of eight would be one too long."""
    found, energy = packed(127, 9)
    assert energy == pytest.approx(-found)
    packed(255, 7)
    with pytest.raises(
        QubayesError, match="a set of 8 parents among 128 possible ones is too large to index"
    ):
        packed(128, 8)


def packed(parents: int, size: int) -> tuple[float, float]:
    """(score, energy) of the best network where the last vertex has each other one, and the `size` last of them."""
    n = parents + 1
    best = tuple(range(parents - size, parents))
    lists = [[()] for _ in range(parents)]
    lists.append([best, *((p,) for p in range(parents)), ()])
    scores = [*([-10.0] * parents), -1.0, *([-5.0] * parents), -10.0]
    candidates = Candidates(tuple(f"v{i}" for i in range(n)), Families.of(lists), np.array(scores))
    formulation = formulate(candidates, cover(candidates, workers=ONE), workers=ONE)
    decoded = decode(formulation, encode(formulation, [*[()] * parents, best]))
    assert decoded.parents[-1] == best
    return decoded.score, decoded.energy


@pytest.mark.parametrize("elements", [1023, 1024])
def test_subsets_of_six_among_many_are_told_apart(elements):
    """Six times ten bits fit into a word and are enumerated; six times eleven do not, and closed sets are taken."""
    sixes = [tuple(range(elements - 6, elements)), tuple(range(6)), (0, 1, 2, 3, 4, elements - 1)]
    lists = [[()] for _ in range(elements)]
    lists.append([*sixes, *((p,) for p in range(elements)), ()])
    scores = np.array([*([0.0] * elements), 9.0, 8.0, 7.0, *([1.0] * elements), 0.0])
    candidates = Candidates(tuple(f"v{i}" for i in range(elements + 1)), Families.of(lists), scores)
    chosen = [set(subset) for subset in cover(candidates, workers=ONE).families.sets_of(elements)]
    for six in map(set, sixes):
        inside = [subset for subset in chosen if subset <= six]
        assert any(a | b == six for a in inside for b in inside)


def test_bits_and_sets_are_numbered_up_to_the_limit():
    check_bits(MOST_BITS)
    check_sets(MOST_SETS)
    with pytest.raises(QubayesError, match="2147483648 bits; at most 2147483647"):
        check_bits(MOST_BITS + 1)
    with pytest.raises(QubayesError, match="2147483648 candidate sets; at most 2147483647"):
        check_sets(MOST_SETS + 1)


# -- moves


@pytest.mark.parametrize("solver", ["anneal", "hillclimb", "order-sa", "asobs"])
def test_the_most_moves_do_not_overflow(solver):
    lists = [[(1,), ()], [(0,), ()], [()]]
    candidates = Candidates(
        ("a", "b", "c"), Families.of(lists), np.array([2.0, 0.0, 1.0, 0.0, 0.0])
    )
    solution = solve(candidates, solver, limits=Limits(0.05, moves=MOST_MOVES), workers=ONE)
    assert solution.score == 2.0
    with pytest.raises(SettingError, match=f"give 0 to {MOST_MOVES}"):
        Limits(0.05, moves=MOST_MOVES + 1)
