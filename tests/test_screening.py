"""Candidate sets among the possible parents of each variable, against the definition."""

from functools import cache
from itertools import combinations

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
    read_candidates,
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


def test_more_required_parents_than_are_kept():
    dataset = dependent_data(7, 200, seed=2)
    known = Knowledge(required=[("v0", "v6"), ("v1", "v6"), ("v2", "v6")])
    found = identify(dataset, CandidateSearch(3, knowledge=known, possible_parents=1))
    assert found.base(6) == (0, 1, 2)


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
