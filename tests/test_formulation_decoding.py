"""Bits to networks and back: what is wrong is named, mended on request, and never mistaken."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulation_cases import candidates_of, random_scores, split_subsets, subsets_of, whole_subsets
from model_cases import read_constrained
from qubayes import QubayesError
from qubayes.machines import read_model
from qubayes.qubo import (
    Violation,
    best_sets,
    closure_sets,
    decode,
    encode,
    encode_sets,
    energy,
    formulate,
    implied_order,
    weighted_order,
)
from reference import energies as reference


def s(*members: int) -> frozenset[int]:
    return frozenset(members)


TRIANGLE = [
    {s(): -20.0, s(2): -10.0, s(1): -15.0, s(1, 2): -9.0},
    {s(): -20.0, s(0): -12.0},
    {s(): -20.0, s(1): -13.0},
]


def formulated(order="chordal", penalty="tight"):
    candidates = candidates_of(TRIANGLE)
    return formulate(
        candidates,
        subsets_of(candidates, [[(1,), (2,)], [(0,)], [(1,)]]),
        order=order,
        penalty=penalty,
    )


def state(formulation, *labels: str) -> np.ndarray:
    known = formulation.labels
    bits = np.zeros(len(known), np.bool_)
    bits[[known.index(label) for label in labels]] = True
    return bits


def test_labels_are_readable():
    paper = formulated("scc", "paper").labels
    r = ["r[v0<v1]", "r[v0<v2]", "r[v1<v2]"]
    assert paper == ("u[v0|v1]", "u[v0|v2]", "u[v1|v0]", "u[v2|v1]", *r, "z[v0]", "z[v1]", "z[v2]")
    assert formulated().qubo.bits == len(formulated().labels) == 7


def test_violations_are_named():
    formulation = formulated("scc", "paper")

    def names(*labels):
        return {
            (v.constraint, v.vertices)
            for v in decode(formulation, state(formulation, *labels)).violations
        }

    backwards = "r[v0<v2]"  # 2 < 1 < 0 but 0 < 2
    assert names(backwards) == {("triangle", ("v2", "v1", "v0"))}
    assert names("r[v0<v1]", "r[v1<v2]") == {("triangle", ("v0", "v1", "v2"))}
    assert names("u[v1|v0]") == {("edge", ("v0", "v1"))}
    assert names("u[v0|v1]", "r[v0<v1]", "r[v0<v2]") == {("edge", ("v1", "v0"))}
    assert names("z[v1]") == {("slack", ("v1",))}
    assert names("u[v0|v1]", "u[v0|v2]") == {("slack", ("v0",))}
    assert names("u[v0|v1]", "u[v0|v2]", "z[v0]") == set()
    text = str(Violation("triangle", ("a", "b", "c")))
    assert text == "a comes before b, b before c and c before a"


def test_two_subsets_that_no_candidate_set_combines_are_named():
    """The vertex has no slack bit: a coupler keeps apart the pairs that represent no candidate set."""
    scores = [{s(): -20.0, s(1, 2): -10.0, s(2, 3): -10.0}, {s(): 0.0}, {s(): 0.0}, {s(): 0.0}]
    candidates = candidates_of(scores)
    formulation = formulate(candidates, subsets_of(candidates, [[(1,), (2,), (3,)], [], [], []]))
    assert formulation.labels == ("u[v0|v1]", "u[v0|v2]", "u[v0|v3]")
    for used in ((1, 1, 0), (0, 1, 1), (1, 0, 0)):
        assert decode(formulation, list(used)).feasible
    found = decode(formulation, [1, 0, 1], repair=True)
    assert found.violations == (Violation("subsets", ("v0",)),)
    assert str(found.violations[0]) == "v0 has active subsets that no candidate set combines"
    assert found.energy > -found.score + 1.0 and found.repaired.feasible


def test_too_many_subsets_and_required_parents_are_named():
    scores = [{s(): -9.0, s(1): -8.0, s(2): -7.0, s(3): -6.0}, {s(): 0.0}, {s(): 0.0}, {s(): 0.0}]
    candidates = candidates_of(scores)
    formulation = formulate(candidates, whole_subsets(candidates))
    bits = np.zeros(formulation.qubo.bits)
    bits[:3] = 1
    assert [v.constraint for v in decode(formulation, bits).violations] == ["subsets"]
    scores = [{s(): -9.0, s(1): -8.0}, {s(0): -9.0}]
    formulation = formulate(candidates_of(scores), whole_subsets(candidates_of(scores)))
    first = formulation.order.pairs[0, 0] == 0
    found = decode(formulation, [0, 0 if first else 1])
    assert [str(v) for v in found.violations] == [
        "v0 is a required parent of v1 but comes after it"
    ]
    assert decode(formulation, [0, 1 if first else 0]).parents == ((), (0,))


@pytest.mark.parametrize("order,penalty", [("chordal", "tight"), ("scc", "paper")])
def test_any_state_is_repaired_to_the_better_network_of_two_orders(order, penalty):
    better = [0, 0]
    for seed in range(12):
        random = np.random.default_rng(seed)
        scores = random_scores(random, 5, 3, 0.3, required=seed % 3)
        candidates = candidates_of(scores)
        formulation = formulate(
            candidates, split_subsets(random, candidates), order=order, penalty=penalty
        )
        for _ in range(20):
            bits = random.random(formulation.qubo.bits) < random.random()
            given, raw = decode(formulation, bits, repair=True), decode(formulation, bits)
            found = given.final
            parents = [s(*members) for members in found.parents]
            assert reference.is_acyclic(parents) and found.energy == pytest.approx(-found.score)
            assert found.score == pytest.approx(
                sum(k[p] for k, p in zip(scores, parents, strict=True))
            )
            assert (given.parents, given.score, given.energy) == (
                raw.parents,
                raw.score,
                raw.energy,
            )
            assert (
                given.repaired is None
            ) == given.feasible == raw.feasible and raw.repaired is None
            if given.repaired:
                totals = []
                for before in (implied_order(formulation, bits), weighted_order(formulation, bits)):
                    allowed = [frozenset(before[: before.index(v)]) for v in range(5)]
                    pairs = zip(scores, allowed, strict=True)
                    totals.append(
                        sum(max(score for p, score in k.items() if p <= a) for k, a in pairs)
                    )
                assert found.score == pytest.approx(max(totals))
                better[int(totals[0] < totals[1])] += 1
    assert min(better) > 5, better  # each of the two orders decides at times


def next_by(n, key):
    """The order in which the smallest key of the vertices left, given those placed, comes next."""
    order: list[int] = []
    while len(order) < n:
        order.append(min((v for v in range(n) if v not in order), key=lambda v: key(v, set(order))))
    return order


@pytest.mark.parametrize("seed", range(15))
def test_both_orders_are_their_definitions(seed):
    """Whose r bits and whose subsets are random; scores are multiples of 1/8, so that sums are exact."""
    random = np.random.default_rng(seed)
    scores = random_scores(random, 7, 3, 0.25, required=seed % 3)
    scores = [
        {own: float(np.floor(8 * score)) / 8 + len(own) for own, score in known.items()}
        for known in scores
    ]
    candidates, bases = candidates_of(scores), [reference.base_of(known) for known in scores]
    formulation = formulate(
        candidates, split_subsets(random, candidates), order="scc" if seed % 2 else "chordal"
    )
    possible = [frozenset().union(*known) for known in scores]
    for _ in range(10):
        bits = random.random(formulation.qubo.bits) < random.random()
        first = {
            label: bit
            for label, bit in zip(formulation.labels, bits, strict=True)
            if label[0] == "r"
        }

        def allowed(p, v, first=first):
            return first.get(f"r[v{p}<v{v}]", True) and not first.get(f"r[v{v}<v{p}]", False)

        def before(v, placed, allowed=allowed):
            free = [p for p in possible[v] - bases[v] - placed if allowed(p, v)]
            return 7 * len(bases[v] - placed) + len(free)

        assert implied_order(formulation, bits) == next_by(7, before)
        chosen = [
            frozenset(own) for own in candidates.families.sets_at(closure_sets(formulation, bits))
        ]
        weight = {}
        for v, known in enumerate(scores):
            for p in chosen[v] - bases[v]:
                weight[p, v] = known[chosen[v]] - reference.closure(known, chosen[v] - {p})

        def rank(v, placed, weight=weight):
            coming = sum(w for (p, c), w in weight.items() if c == v and p not in placed)
            going = sum(w for (p, c), w in weight.items() if p == v and c not in placed)
            return len(bases[v] - placed), coming > 0, coming - going if coming else 0.0

        assert weighted_order(formulation, bits) == next_by(7, rank)


def test_an_order_in_the_r_bits_is_the_one_that_is_implied():
    """Where the r bits have no cyclic triangle, every edge that they allow goes forward in the implied order."""
    random = np.random.default_rng(1)
    scores = random_scores(random, 7, 2, 0.3)
    candidates = candidates_of(scores)
    formulation = formulate(candidates, whole_subsets(candidates))
    arcs = {(p, v) for v, known in enumerate(scores) for parents in known for p in parents}
    first_r = formulation.subsets.total
    pairs = {frozenset(pair) for pair in formulation.order.pairs.tolist()}
    for seed in range(20):
        wanted = np.random.default_rng(seed).permutation(7).tolist()
        bits = encode_sets(formulation, best_sets(formulation, wanted), wanted)
        implied = implied_order(formulation, bits)
        for parent, child in arcs:
            if frozenset((parent, child)) in pairs and wanted.index(parent) < wanted.index(child):
                assert implied.index(parent) < implied.index(child)
        assert bits[first_r:].shape[0] >= len(pairs)


@given(
    st.integers(0, 10_000),
    st.permutations(range(5)),
    st.sampled_from([("chordal", "tight"), ("scc", "paper")]),
)
def test_encoding_a_network_and_decoding_it(seed, order, mode):
    random = np.random.default_rng(seed)
    scores = random_scores(random, 5, 3, 0.25)
    candidates = candidates_of(scores)
    formulation = formulate(
        candidates, split_subsets(random, candidates), order=mode[0], penalty=mode[1]
    )
    chosen = best_sets(formulation, list(order))
    bits = encode_sets(formulation, chosen, list(order))
    found = decode(formulation, bits)
    assert found.feasible and found.score == pytest.approx(float(candidates.scores[chosen].sum()))
    assert energy(formulation.qubo, bits) == pytest.approx(-found.score)
    np.testing.assert_array_equal(found.bits, bits)
    again = decode(formulation, encode(formulation, found.parents))
    assert again.parents == found.parents and again.feasible


def test_a_feasible_state_whose_energy_is_not_its_score_is_a_fault():
    formulation = formulated()
    bits = encode(formulation, ((), (0,), (1,)))
    scale = abs(formulation.qubo.offset) + abs(formulation.qubo.h).max()
    for error, fault in [
        (0.0, False),
        (0.9e-9 * scale, False),
        (1.1e-9 * scale, True),
        (-1.0, True),
        (np.nan, True),
    ]:
        qubo = formulation.qubo._replace(h=formulation.qubo.h + error / bits.sum())
        wrong = replace(formulation, qubo=qubo)
        if fault:
            with pytest.raises(AssertionError, match="feasible state has energy"):
                decode(wrong, bits)
        else:
            assert decode(wrong, bits).feasible
        assert not decode(wrong, np.ones(qubo.bits)).feasible  # nothing is asserted of other states


def test_what_cannot_be_encoded_is_refused():
    formulation = formulated()
    with pytest.raises(QubayesError, match="not a candidate set"):
        encode(formulation, ((), (2,), ()))
    with pytest.raises(QubayesError, match="directed cycle"):
        encode(formulation, ((2,), (0,), (1,)))
    with pytest.raises(QubayesError, match="7 binary variables"):
        decode(formulation, np.zeros(6))
    required = formulate(
        *(lambda c: (c, whole_subsets(c)))(candidates_of([{s(): 0.0}, {s(0): 0.0}]))
    )
    with pytest.raises(QubayesError, match="before a required parent"):
        best_sets(required, [1, 0])


def test_an_order_against_a_required_edge_is_refused():
    candidates = candidates_of([{s(): -1.0}, {s(0): -1.0}, {s(): -1.0}])
    formulation = formulate(candidates, whole_subsets(candidates))
    with pytest.raises(QubayesError, match="puts v1 before a required parent"):
        best_sets(formulation, [1, 0, 2])


def test_state_of_a_choice():
    formulation = formulated()
    chosen = best_sets(formulation, list(range(formulation.candidates.n)))
    bits, total = formulation.state_of(chosen)
    assert total == pytest.approx(-formulation.candidates.scores[chosen].sum())
    assert formulation.decode(bits).feasible
    assert total == float(energy(formulation.qubo, bits))


def test_methods_give_the_same_function(tmp_path):
    formulation = formulated()
    bits = formulation.state_of(best_sets(formulation, list(range(formulation.candidates.n))))[0]
    expected = float(energy(formulation.qubo, bits))
    sample = dict(zip(formulation.labels, bits.astype(int).tolist(), strict=True))
    assert formulation.to_bqm().energy(sample) == pytest.approx(expected)
    h, couplings, offset = formulation.to_ising()
    spin = {label: 2 * value - 1 for label, value in sample.items()}
    total = (
        offset
        + sum(h[v] * spin[v] for v in h)
        + sum(w * spin[v] * spin[x] for (v, x), w in couplings.items())
    )
    assert total == pytest.approx(expected)
    for kind in (".bqm", ".lp", ".json"):
        formulation.write(tmp_path / f"model{kind}")
    assert read_model(tmp_path / "model.bqm") == formulation.to_bqm()
    assert set(read_constrained(tmp_path / "model.lp").variables) == set(
        formulation.to_cqm().variables
    )
