"""Candidate sets among the possible parents of each variable, against the definition."""

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candidate_cases import assert_one_line, data_file, dependent_data, run
from qubayes import ConstraintError, SettingError, Workers
from qubayes.candidates import (
    CandidateSearch,
    Knowledge,
    identify,
    partners,
    read_candidates,
    screening,
    tolerance,
    write_candidates,
)
from qubayes.data import Dataset
from qubayes.scores import NAMES, Score
from reference import scores
from reference.candidates import partner_score, possible_parents
from strategies import datasets
from test_candidates import assert_same, by_vertex, knowledge


def definition(dataset, search):
    """The sets that beat all their subsets, among those of required parents, the best single ones and partners."""
    rows, arities = [tuple(row) for row in dataset.codes.T.tolist()], dataset.arities.tolist()

    @cache
    def local(child, parents):
        return scores.local_score(
            rows, arities, child, parents, search.score.name, search.score.ess
        )

    @cache
    def partner(child, parents):
        return partner_score(rows, arities, child, parents, search.score.name, search.score.ess)

    allowed = search.knowledge.resolve(dataset.names, search.max_parents)
    found, unsure = [], []
    for i in range(dataset.n):
        kept, sure = possible_parents(
            lambda j, i=i: local(i, (j,)),
            lambda j, k, i=i: partner(i, (j, k)),
            allowed.allowed[i],
            search.possible_parents,
            allowed.limits[i],
        )
        unsure.append(not sure)  # a tie: either may be kept
        base = allowed.required[i]
        sets = {
            tuple(sorted(base + more)): local(i, tuple(sorted(base + more)))
            for size in range(allowed.limits[i] - len(base) + 1)
            for more in combinations(sorted(kept), size)
        }
        margin = tolerance(sets[base], dataset.rows)
        best = {w: max((sets[v] for v in sets if set(v) < set(w)), default=-np.inf) for w in sets}
        found.append({w: s for w, s in sets.items() if s > best[w] + margin})
    return found, unsure


def assert_is_definition(dataset, search):
    found, (wanted, unsure) = by_vertex(identify(dataset, search)), definition(dataset, search)
    sure = [i for i in range(dataset.n) if not unsure[i]]
    assert_same([found[i] for i in sure], [wanted[i] for i in sure])
    return sure


@given(datasets(min_variables=2), st.sampled_from(NAMES), st.sampled_from([0.01, 1.0, 100.0]))
def test_all_pairs_are_scored_exactly(dataset, name, ess):
    rows, arities = [tuple(row) for row in dataset.codes.T.tolist()], dataset.arities.tolist()
    pairs, children = screening.prepare_pairs(dataset, Score(name, ess).formula(dataset.rows)), []
    for block in screening.blocks_of_children(pairs.kinds):
        children += block.tolist()
        for child, found in zip(block.tolist(), screening.pair_scores(pairs, block), strict=True):
            for parent in set(range(dataset.n)) - {child}:
                wanted = scores.local_score(rows, arities, child, (parent,), name, ess)
                assert found[parent] == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert sorted(children) == list(range(dataset.n))


@given(
    datasets(min_variables=4, max_variables=7),
    st.sampled_from(NAMES),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.integers(0, 3),
    st.integers(1, 5),
)
def test_candidates_among_possible_parents(dataset, name, ess, max_parents, kept):
    assert_is_definition(
        dataset, CandidateSearch(max_parents, Score(name, ess), possible_parents=kept)
    )


@given(
    datasets(min_variables=4, max_variables=6, max_arity=3),
    st.sampled_from(["bdeu", "bds", "bic"]),
    st.data(),
)
def test_required_parents_are_kept_beside_the_best(dataset, name, data):
    search = CandidateSearch(
        2, Score(name), data.draw(knowledge(dataset.names)), possible_parents=1
    )
    try:
        assert_is_definition(dataset, search)
    except ConstraintError:
        with pytest.raises(ConstraintError):
            search.knowledge.resolve(dataset.names, 2)


@pytest.mark.parametrize("name", NAMES)
def test_larger_data(name, monkeypatch):
    """Several blocks of children, several of rows, and counts beyond the table."""
    dataset = dependent_data(12, 500, seed=5, states=4)
    search = CandidateSearch(2, Score(name), possible_parents=5)
    assert len(assert_is_definition(dataset, search)) > 9
    usual = by_vertex(identify(dataset, search))
    monkeypatch.setattr(partners, "_BLOCK_COUNTS", 5000)
    monkeypatch.setattr(screening, "_ROWS", 64)
    monkeypatch.setattr(screening, "_CELLS", 100)
    monkeypatch.setattr(screening, "_LONGEST_TABLE", 100)
    assert by_vertex(identify(dataset, search)) == usual


@given(datasets(min_variables=3), st.sampled_from(NAMES), st.sampled_from([0.01, 1.0, 100.0]))
def test_partners_are_scored_to_first_order(dataset, name, ess):
    rows, arities = [tuple(row) for row in dataset.codes.T.tolist()], dataset.arities.tolist()
    pairs = screening.prepare_pairs(dataset, Score(name, ess).formula(dataset.rows))
    equal, n = (
        name not in ("bds", "bdeu") or (name == "bdeu" and len(set(arities)) == 1),
        dataset.n,
    )
    for block in screening.blocks_of_children(pairs.kinds):
        singles = np.array([[j for j in range(n) if j != child] for child in block.tolist()])
        found = partners.partner_scores(pairs, block, singles)
        for (i, child), j in product(enumerate(block.tolist()), range(n - 1)):
            for other in set(range(n)) - {child, int(singles[i, j])}:
                family = child, (int(singles[i, j]), other), name, ess
                assert found[i, j, other] == pytest.approx(
                    partner_score(rows, arities, *family), rel=1e-9, abs=1e-9
                )
                if equal:  # exact where all families have the same prior
                    wanted = scores.local_score(rows, arities, *family)
                    assert found[i, j, other] == pytest.approx(wanted, rel=1e-9, abs=1e-8)


def test_a_partner_that_says_nothing_alone_is_kept():
    """a is b where c is 0, and random where c is 1: c alone says nothing of a, while others say a little."""
    random = np.random.default_rng(3)
    codes = random.integers(0, 2, (9, 400)).astype(np.uint8)
    codes[0] = np.where(codes[2] == 0, codes[1], codes[0])
    codes[3:] = np.where(random.random((6, 400)) < 0.2, codes[0], codes[3:])
    dataset = Dataset(tuple("abcdefghi"), (("x", "y"),) * 9, codes)
    allowed, pairs = (
        Knowledge().resolve(dataset.names, 2),
        screening.prepare_pairs(dataset, Score().formula(400)),
    )
    assert screening.best_parents((pairs, allowed, 8), np.array([0]))[0][0] == 1
    assert 2 not in screening.best_parents((pairs, allowed, 4), np.array([0]))[0]
    assert 2 in screening.possible_parents(dataset, Score(), allowed, 2)[0]
    single = Knowledge(max_parents={"a": 1}).resolve(dataset.names, 2)
    assert 2 not in screening.possible_parents(dataset, Score(), single, 4)[0]


def test_partners_are_ranked_on_a_sample_of_the_rows(monkeypatch):
    dataset = dependent_data(9, 90, seed=7)
    pairs = screening.prepare_pairs(dataset, Score("bic").formula(90))
    monkeypatch.setattr(partners, "MOST_SAMPLED_ROWS", 40)
    sample = pairs.sample
    numbers = [row.tolist() for row in dataset.codes.T]
    assert sample.codes.shape == (9, 40) and sample.weight == 90 / 40
    assert all(row.tolist() in numbers for row in sample.codes.T)
    monkeypatch.setattr(partners, "MOST_SAMPLED_ROWS", 90)
    assert pairs.sample is pairs
    children, singles = np.array([0]), np.array([[1]])
    found, plain = (
        partners.partner_scores(each._replace(formula=formula), children, singles)[0, 0, 2:]
        for each, formula in (
            (sample, pairs.formula),
            (sample._replace(weight=1.0), Score("loglik").formula(90)),
        )
    )
    price = pairs.formula.penalty * (pairs.kinds[0, 0] - 1) * pairs.kinds[1, 0] * pairs.kinds[2:, 0]
    assert found == pytest.approx(90 / 40 * plain - price)


def every_other_row(rows):
    """v0 is v1 in even rows, and v1 and v2 in odd ones; v3 to v8 are copies of v0 with errors."""
    random = np.random.default_rng(1)
    codes = random.integers(0, 2, (9, rows)).astype(np.uint8)
    codes[0] = np.where(np.arange(rows) % 2, codes[1] & codes[2], codes[1])
    codes[3:] = np.where(random.random((6, rows)) < 0.3, codes[0], codes[3:])
    return Dataset(tuple(f"v{i}" for i in range(9)), (("x", "y"),) * 9, codes)


@pytest.mark.parametrize(
    ("nats", "kept"), [(0.0, True), (-25.0, True), (-100.0, True), (-3000.0, False)]
)
def test_a_sample_of_rows_hides_neither_periods_nor_the_weight_of_priors(nats, kept, monkeypatch):
    dataset = every_other_row(4000)
    monkeypatch.setattr(partners, "MOST_SAMPLED_ROWS", 400)
    known = Knowledge(priors=[("v2", "v0", nats)]).resolve(dataset.names, 2)
    assert (2 in screening.possible_parents(dataset, Score(), known, 2)[0]) == kept


def test_blocks_are_smaller_where_there_are_many_states():
    kinds = np.array([[2, 2]] * 300 + [[300, 300]] * 30)
    pairs = partners.Pairs(np.zeros((330, 100), np.uint16), kinds, Score().formula(100))
    blocks = screening.blocks_with_singles(pairs, {child: [0] for child in range(330)}, 30)
    seen = [(int(kinds[block[0][0], 1]), len(block)) for block in blocks]
    assert sorted(child for block in blocks for child, _ in block) == list(range(330))
    assert all(10 * 300 * states * children <= screening._CELLS for states, children in seen)


def test_more_required_parents_than_are_kept():
    dataset = dependent_data(7, 200, seed=2)
    known = Knowledge(required=[("v0", "v6"), ("v1", "v6"), ("v2", "v6")])
    found = identify(dataset, CandidateSearch(3, knowledge=known, possible_parents=1))
    assert found.base(6) == (0, 1, 2)


def test_of_equal_parents_the_first_are_kept():
    codes = np.array([[0, 1, 1, 0, 1, 0]] * 6 + [[0, 0, 1, 1, 1, 0]], np.uint8)
    dataset = Dataset(tuple("abcdefg"), (("x", "y"),) * 7, codes)
    allowed = Knowledge(forbidden=[("b", "f")], required=[("d", "f")]).resolve(dataset.names, 2)
    kept = screening.possible_parents(dataset, Score(), allowed, 2)
    assert kept == ((1, 2), (0, 2), (0, 1), (0, 1), (0, 1), (0, 2, 3), (0, 1))


def test_constant_columns_and_fewer_rows_than_states():
    rng = np.random.default_rng(0)
    codes = np.array(
        [np.zeros(6), rng.integers(0, 9, 6), rng.integers(0, 2, 6), rng.integers(0, 9, 6)], np.uint8
    )
    dataset = Dataset(
        tuple("abcd"), (("x",), tuple("012345678"), ("x", "y"), tuple("012345678")), codes
    )
    for name in NAMES:
        assert_is_definition(dataset, CandidateSearch(2, Score(name), possible_parents=2))


@pytest.mark.parametrize("kept", [3, 4, 100])
def test_all_others_are_no_restriction(kept, tmp_path):
    dataset = dependent_data(4, 100, seed=1)
    write_candidates(identify(dataset, CandidateSearch(2)), tmp_path / "all.qbc")
    write_candidates(
        identify(dataset, CandidateSearch(2, possible_parents=kept)), tmp_path / "kept.qbc"
    )
    assert (tmp_path / "all.qbc").read_bytes() == (tmp_path / "kept.qbc").read_bytes()


@pytest.mark.parametrize("kept", [0, -3])
def test_too_few_possible_parents(kept):
    with pytest.raises(SettingError, match=f"possible_parents = {kept}; give 1 or more"):
        identify(dependent_data(4, 100, seed=1), CandidateSearch(2, possible_parents=kept))


@pytest.mark.parametrize("command", ["candidates", "learn"])
def test_too_few_possible_parents_on_the_command_line(command, tmp_path, capsys):
    data = data_file(tmp_path, dependent_data(4, 100, seed=1))
    code, _, error = run(capsys, command, data, "--possible-parents", 0)
    assert_one_line(code, error, "possible_parents = 0; give 1 or more")
    assert run(capsys, command, data, "--possible-parents", 4)[0] == 0


def test_threads_do_not_matter():
    dataset = dependent_data(12, 300, seed=4)
    one, two = (
        identify(dataset, CandidateSearch(3, possible_parents=6), workers=Workers(t))
        for t in (1, 2)
    )
    assert by_vertex(one) == by_vertex(two) and np.array_equal(
        one.families.members, two.families.members
    )


@pytest.mark.parametrize("ending", ["jkl", "pss", "qbc"])
def test_files_and_messages_name_the_restriction(ending, tmp_path, capsys):
    data, output = data_file(tmp_path, dependent_data(8, 200, seed=3)), tmp_path / f"x.{ending}"
    code, out, err = run(capsys, "candidates", data, "--possible-parents", 3, "-o", output)
    assert code == 0, err
    assert "among 3 possible parents" in out
    assert read_candidates(output).stamp.possible_parents == 3
    code, out, err = run(capsys, "candidates", data, "--possible-parents", 0, "-o", output)
    assert_one_line(code, err, "possible_parents = 0", "1 or more")


def test_a_proof_holds_for_the_kept_parents_only(tmp_path, capsys):
    data = data_file(tmp_path, dependent_data(8, 200, seed=3))
    code, out, err = run(capsys, "learn", data, "--possible-parents", 3)
    assert code == 0, err
    assert "Proved optimal" in out and "of 3 candidate parents per variable" in out
