"""At the limits of what is accepted nothing overflows; one step further it is refused with a clear message."""

import math

import numpy as np
import pytest

from candidate_cases import repeated
from qubayes import DataError, FormatError, QubayesError, SettingError
from qubayes.candidates import Candidates, CandidateSearch, identify
from qubayes.data import Dataset, ReadSettings, read
from qubayes.foundation.families import Families
from qubayes.foundation.workers import Workers
from qubayes.machines import MOST_BITS, check_bits
from qubayes.network import LARGEST_TABLES, Network, fit
from qubayes.qubo import decode, encode, formulate
from qubayes.qubo.subsets import cover
from qubayes.scores import NAMES, Score, local_score
from qubayes.search import Limits, solve

ONE = Workers(1)
MOST_MOVES = 2**53  # a count that doubles hold exactly


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
@pytest.mark.parametrize("ess", [1e-100, 1e100])
def test_scores_are_finite_at_the_limits_of_prior_and_states(name, ess):
    # 2 * 10^198 joint states
    dataset = repeated([[r - 1] for r in [2] + [100] * 99], [2] + [100] * 99, 3)
    assert math.isfinite(local_score(dataset, 0, range(1, 100), Score(name, ess)))
    with pytest.raises(DataError, match=r"10\^200 joint states; at most 10\^200 can be scored"):
        local_score(repeated([[0]] * 101, [2] + [100] * 100, 3), 0, range(1, 101), Score(name, ess))
    with pytest.raises(SettingError, match="give a positive number from 1e-100 to 1e\\+100"):
        Score(name, ess * ess)


def test_a_family_of_exactly_the_most_joint_states_is_scored():
    assert math.isfinite(
        local_score(repeated([[0]] * 100, [100] * 100, 3), 0, range(1, 100), Score("bdeu"))
    )


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


def test_bits_are_numbered_up_to_the_limit():
    check_bits(MOST_BITS)
    with pytest.raises(QubayesError, match="2147483648 bits; at most 2147483647"):
        check_bits(MOST_BITS + 1)


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
