"""Candidate sets among the possible parents of each variable, against the definition."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candidate_cases import assert_one_line, data_file, dependent_data, run
from qubayes import Workers
from qubayes.candidates import Knowledge, Search, identify, read_candidates, screening, tolerance, write_candidates
from qubayes.data import Dataset
from qubayes.foundation.errors import ConstraintError, SettingError
from qubayes.scores import NAMES, Score
from reference import scores
from strategies import datasets
from test_candidates import assert_same, by_vertex, knowledge


def definition(dataset, search):
    """The sets that beat all their subsets, among those of required parents and of the best single parents."""
    rows, arities = [tuple(row) for row in dataset.codes.T.tolist()], dataset.arities.tolist()

    def local(child, parents):
        return scores.local_score(rows, arities, child, parents, search.score.name, search.score.ess)

    allowed = search.knowledge.resolve(dataset.names, search.max_parents)
    found, unsure = [], []
    for i in range(dataset.n):
        alone = sorted(((local(i, (j,)), j) for j in allowed.allowed[i]), key=lambda pair: (-pair[0], pair[1]))
        kept, left = alone[: search.possible_parents], alone[search.possible_parents :]
        unsure.append(bool(kept and left) and kept[-1][0] - left[0][0] < 1e-9)  # a tie: either may be kept
        base = allowed.required[i]
        sets = {
            tuple(sorted(base + more)): local(i, tuple(sorted(base + more)))
            for size in range(allowed.limits[i] - len(base) + 1)
            for more in combinations(sorted(j for _, j in kept), size)
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
    st.integers(1, 2),
)
def test_candidates_among_possible_parents(dataset, name, ess, max_parents, kept):
    assert_is_definition(dataset, Search(max_parents, Score(name, ess), possible_parents=kept))


@given(datasets(min_variables=4, max_variables=6, max_arity=3), st.sampled_from(["bdeu", "bds", "bic"]), st.data())
def test_required_parents_are_kept_beside_the_best(dataset, name, data):
    search = Search(2, Score(name), data.draw(knowledge(dataset.names)), possible_parents=1)
    try:
        assert_is_definition(dataset, search)
    except ConstraintError:
        with pytest.raises(ConstraintError):
            search.knowledge.resolve(dataset.names, 2)


@pytest.mark.parametrize("name", NAMES)
def test_larger_data(name, monkeypatch):
    """Several blocks of children, several of rows, and counts beyond the table."""
    dataset = dependent_data(12, 500, seed=5, states=4)
    search = Search(2, Score(name), possible_parents=5)
    assert len(assert_is_definition(dataset, search)) > 9
    usual = by_vertex(identify(dataset, search))
    monkeypatch.setattr(screening, "_ROWS", 64)
    monkeypatch.setattr(screening, "_CELLS", 100)
    monkeypatch.setattr(screening, "_LONG_TABLE", 100)
    assert by_vertex(identify(dataset, search)) == usual


def test_more_required_parents_than_are_kept():
    dataset = dependent_data(7, 200, seed=2)
    known = Knowledge(required=[("v0", "v6"), ("v1", "v6"), ("v2", "v6")])
    found = identify(dataset, Search(3, knowledge=known, possible_parents=1))
    assert found.base(6) == (0, 1, 2)


def test_of_equal_parents_the_first_are_kept():
    codes = np.array([[0, 1, 1, 0, 1, 0]] * 6 + [[0, 0, 1, 1, 1, 0]], np.uint8)
    dataset = Dataset(tuple("abcdefg"), (("x", "y"),) * 7, codes)
    allowed = Knowledge(forbidden=[("b", "f")], required=[("d", "f")]).resolve(dataset.names, 2)
    kept = screening.possible_parents(dataset, Score(), allowed, 2)
    assert kept == ((1, 2), (0, 2), (0, 1), (0, 1), (0, 1), (0, 2, 3), (0, 1))


def test_constant_columns_and_fewer_rows_than_states():
    rng = np.random.default_rng(0)
    codes = np.array([np.zeros(6), rng.integers(0, 9, 6), rng.integers(0, 2, 6), rng.integers(0, 9, 6)], np.uint8)
    dataset = Dataset(tuple("abcd"), (("x",), tuple("012345678"), ("x", "y"), tuple("012345678")), codes)
    for name in NAMES:
        assert_is_definition(dataset, Search(2, Score(name), possible_parents=2))


@pytest.mark.parametrize("kept", [3, 4, 100])
def test_all_others_are_no_restriction(kept, tmp_path):
    dataset = dependent_data(4, 100, seed=1)
    write_candidates(identify(dataset, Search(2)), tmp_path / "all.qbc")
    write_candidates(identify(dataset, Search(2, possible_parents=kept)), tmp_path / "kept.qbc")
    assert (tmp_path / "all.qbc").read_bytes() == (tmp_path / "kept.qbc").read_bytes()


@pytest.mark.parametrize("kept", [0, -3])
def test_too_few_possible_parents(kept):
    with pytest.raises(SettingError, match=f"possible_parents = {kept}; give 1 or more"):
        identify(dependent_data(4, 100, seed=1), Search(2, possible_parents=kept))


@pytest.mark.parametrize("command", ["candidates", "learn"])
def test_too_few_possible_parents_on_the_command_line(command, tmp_path, capsys):
    data = data_file(tmp_path, dependent_data(4, 100, seed=1))
    code, _, error = run(capsys, command, data, "--possible-parents", 0)
    assert_one_line(code, error, "possible_parents = 0; give 1 or more")
    assert run(capsys, command, data, "--possible-parents", 4)[0] == 0


def test_threads_do_not_matter():
    dataset = dependent_data(12, 300, seed=4)
    one, two = (identify(dataset, Search(3, possible_parents=6), workers=Workers(t)) for t in (1, 2))
    assert by_vertex(one) == by_vertex(two) and np.array_equal(one.families.members, two.families.members)


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
    assert "proved optimal" in out and "among 3 possible parents of each variable" in out
