"""Candidate sets of every size, against all parent sets scored one by one."""

from dataclasses import replace
from itertools import combinations
from math import inf
from pathlib import Path

import numpy as np
import pytest

from qubayes import Knowledge, Score, Workers, learn, local_score, solve
from qubayes.candidates import (
    Candidates,
    CandidateSearch,
    Stamp,
    identify,
    identify_until,
    read_candidates,
    tolerance,
    write_candidates,
)
from qubayes.candidates.every_size import with_every_size
from qubayes.data import Dataset
from qubayes.foundation.errors import SettingError

ONE = Workers(1)


def discrete(random: np.random.Generator, n: int, rows: int, *, repeats: bool = True) -> Dataset:
    """Return a table with columns of 1 to 4 states, some of them functions of others with noise."""
    states = random.integers(1 if repeats else 2, 5, n)
    codes = np.array([random.integers(0, its, rows) for its in states], np.uint8)
    for child in range(1, n):
        if random.random() < 0.6:
            parents = random.choice(child, min(child, int(random.integers(1, 4))), replace=False)
            total = codes[parents].sum(axis=0) + (random.random(rows) < 0.15)
            codes[child] = total % states[child]
    if repeats:
        codes[-1], states[-1] = codes[0], states[0]
    states += random.random(n) < 0.2  # a state that does not occur
    names = tuple(f"v{v}" for v in range(n))
    return Dataset(names, tuple(tuple(map(str, range(its))) for its in states), codes)


def continuous(random: np.random.Generator, n: int, rows: int) -> Dataset:
    """Return a table of correlated numbers."""
    cells = random.normal(size=(rows, n))
    for child in range(1, n):
        weights = random.normal(size=child) * (random.random(child) < 0.6)
        cells[:, child] += cells[:, :child] @ weights
    names = tuple(f"v{v}" for v in range(n))
    numbers = {name: cells[:, v].copy() for v, name in enumerate(names)}
    return Dataset(names, ((),) * n, np.zeros((n, rows), np.uint8), numbers=numbers)


def by_definition(dataset: Dataset, search: CandidateSearch) -> list[dict[tuple[int, ...], float]]:
    """Return the candidate sets of each variable, by scoring every set that is allowed."""
    allowed = search.knowledge.resolve(dataset.names, dataset.n - 1)
    found = []
    for child in range(dataset.n):
        required, optional = allowed.required[child], allowed.allowed[child]
        priors = allowed.prior_of(child)
        best: dict[frozenset[int], float] = {}
        kept = {}
        for size in range(min(len(optional), allowed.limits[child] - len(required)) + 1):
            for members in combinations(optional, size):
                parents = tuple(sorted((*required, *members)))
                score = local_score(dataset, child, parents, search.score)
                score += float(priors[list(parents)].sum())
                if not size:
                    margin = tolerance(score, dataset.rows)
                below = max((best[frozenset(members) - {out}] for out in members), default=-inf)
                if score > below + margin:
                    kept[parents] = score
                best[frozenset(members)] = max(below, score)
        found.append(kept)
    return found


def agrees(dataset: Dataset, search: CandidateSearch, within: float = 1e-9) -> int:
    """Check the sets of every size against the definition; return the size of the largest.

    All sets of at most `max_parents` parents are searched before."""
    small = identify(dataset, search, workers=ONE)
    found = with_every_size(small, dataset, search, workers=ONE)
    for child, wanted in enumerate(by_definition(dataset, search)):
        sets = dict(found.of(child))
        assert sets.keys() == wanted.keys()
        assert all(sets[its] == pytest.approx(wanted[its], rel=within) for its in sets)
    assert found.stamp.every_size == dataset.n
    assert found.stamp.max_parents == dataset.n - 1
    return int(found.families.set_sizes.max())


SCORES = [
    Score("bic"),
    Score("bic", penalty=0.05),
    Score("aic"),
    Score("aic", penalty=0.3),
    Score("bdeu", 0.1),
    Score("bdeu", 1.0),
    Score("bdeu", 100.0),
    Score("k2"),
]


@pytest.mark.parametrize("score", SCORES, ids=str)
def test_all_sets_of_discrete_columns(score: Score) -> None:
    random = np.random.default_rng(5)
    largest = 0
    for most, rows in ((0, 5), (1, 40), (2, 300), (1, 1000)):
        dataset = discrete(random, int(random.integers(5, 8)), rows)
        largest = max(largest, agrees(dataset, CandidateSearch(most, score)))
    assert largest >= 2


@pytest.mark.parametrize(
    "score", [Score("bic"), Score("bic", penalty=2.0), Score("aic"), Score("bge")], ids=str
)
def test_all_sets_of_continuous_columns(score: Score) -> None:
    random = np.random.default_rng(6)
    largest = 0
    for most, rows in ((0, 12), (1, 60), (2, 1000)):
        dataset = continuous(random, 7, rows)
        largest = max(largest, agrees(dataset, CandidateSearch(most, score)))
    assert largest >= 5


def test_nearly_dependent_columns() -> None:
    random = np.random.default_rng(7)
    dataset = continuous(random, 6, 200)
    cells = dict(dataset.numbers)
    cells["v5"] = cells["v0"] - cells["v1"] + 1e-4 * random.normal(size=200)
    # a hundred-millionth of a variance is left: its rounding shows in the score
    agrees(replace(dataset, numbers=cells), CandidateSearch(0, Score("bic")), within=1e-7)


KNOWLEDGE = [
    Knowledge(required=[("v0", "v1"), ("v4", "v1")], forbidden=[("v2", "v0"), ("v3", "v2")]),
    Knowledge(max_parents={"v2": 1, "v3": 5}, tiers=[["v0", "v1"], ["v4"]]),
    Knowledge(priors=[("v1", "v2", 4.0), ("v2", "v1", -3.0), ("v3", "v5", 2.0)]),
]


@pytest.mark.parametrize("knowledge", KNOWLEDGE, ids=["edges", "limits", "priors"])
@pytest.mark.parametrize("name", ["bic", "bdeu", "bge"])
def test_prior_knowledge_holds(knowledge: Knowledge, name: str) -> None:
    random = np.random.default_rng(8)
    make = continuous if name == "bge" else discrete
    agrees(make(random, 6, 300), CandidateSearch(2, Score(name), knowledge))


def test_an_order_of_variables_holds() -> None:
    dataset = discrete(np.random.default_rng(9), 6, 300, repeats=False)
    known = Knowledge(before=[("v5", "v0")])
    search = CandidateSearch(5, Score("bic", penalty=0.1), known)
    found = identify(dataset, replace(search, max_parents=3, every_size=True), workers=ONE)
    assert solve(found, "exact").score == solve(identify(dataset, search), "exact").score


def test_sets_that_matter_only_together_are_found() -> None:
    random = np.random.default_rng(10)
    codes = random.integers(0, 2, (9, 3000)).astype(np.uint8)
    codes[8] = codes[:6].sum(axis=0) % 2  # no five of the six tell anything
    names = tuple(f"v{v}" for v in range(9))
    dataset = Dataset(names, (("0", "1"),) * 9, codes)
    found = identify(dataset, CandidateSearch(score=Score("bic"), every_size=True), workers=ONE)
    assert (0, 1, 2, 3, 4, 5) in dict(found.of(8))


@pytest.mark.parametrize("name", ["bic", "bdeu"])
def test_weights_are_rows(name: str) -> None:
    dataset = discrete(np.random.default_rng(11), 6, 200, repeats=False)
    weights = np.random.default_rng(12).integers(1, 5, 200)
    search = CandidateSearch(score=Score(name), every_size=True)
    weighted = replace(dataset, weights=weights)
    same_sets(identify(weighted, search), identify(weighted.repeated(), search))


def same_sets(one: Candidates, other: Candidates) -> None:
    """Check that two searches found the same sets and scores."""
    for child in range(one.n):
        sets = dict(one.of(child))
        assert sets == pytest.approx(dict(other.of(child)), rel=1e-9)


@pytest.mark.parametrize("name", ["bic", "bge"])
def test_threads_and_the_order_of_columns_change_nothing(name: str) -> None:
    random = np.random.default_rng(13)
    make = continuous if name == "bge" else discrete
    dataset = make(random, 7, 200)
    search = CandidateSearch(score=Score(name), every_size=True)
    found = identify(dataset, search, workers=ONE)
    threaded = identify(dataset, search, workers=Workers(2))
    assert found.scores.tolist() == threaded.scores.tolist()
    order = random.permutation(7)
    permuted = identify(dataset.select(order), search, workers=ONE)
    for place, child in enumerate(order.tolist()):
        renamed = {tuple(sorted(order[list(its)])): score for its, score in permuted.of(place)}
        assert renamed == pytest.approx(dict(found.of(child)), rel=1e-9)


def test_a_search_that_is_cut_off_says_so() -> None:
    dataset = discrete(np.random.default_rng(14), 14, 300, repeats=False)
    search = CandidateSearch(score=Score("bdeu"), every_size=True)
    found = identify_until(None, dataset, search, enough=lambda: True, workers=ONE)
    assert found is not None
    assert found.stamp.every_size == 0
    assert found.stamp.max_parents == 4
    smaller = identify(dataset, CandidateSearch(4, Score("bdeu")), workers=ONE)
    assert found.scores.tolist() == smaller.scores.tolist()
    assert "over all" not in solve(found, "exact").conclusion()[0]
    asked = []

    def pressed() -> bool:
        asked.append(True)
        return len(asked) > 10

    assert identify_until(pressed, dataset, search, workers=ONE) is None


def test_what_is_proved_is_said() -> None:
    dataset = discrete(np.random.default_rng(15), 7, 500, repeats=False)
    learned = learn(dataset, max_parents="all", score="bic")
    solution = learned.solution
    assert solution.over_all_dags
    assert solution.proved
    assert solution.conclusion() == ["Proved optimal over all DAGs: no network scores higher."]
    assert solution.as_json()["every_size"] == 7
    assert learned.settings.max_parents == "all"
    known = Knowledge(forbidden=[("v0", "v1")])
    restricted = learn(dataset, max_parents="all", score="bic", knowledge=known).solution
    assert "over all DAGs that prior knowledge allows" in restricted.conclusion()[0]
    some = replace(solution, stamp=Stamp("bdeu", 1.0, 3, 500, every_size=5))
    words = "Proved optimal: no network with at most 3 parents for 2 variables, any number for the"
    assert some.conclusion() == [f"{words} others scores higher."]


def test_files_keep_what_was_searched(tmp_path: Path) -> None:
    dataset = discrete(np.random.default_rng(18), 6, 300, repeats=False)
    known = Knowledge(forbidden=[("v0", "v1")])
    search = CandidateSearch(2, Score("bic"), known, every_size=True)
    found = identify(dataset, search, workers=ONE)
    assert found.stamp.restricted
    assert str(found).endswith("candidate sets of 6 variables (bic, any number of parents)")
    for ending in ("jkl", "qbc"):
        write_candidates(found, tmp_path / f"sets.{ending}")
        assert read_candidates(tmp_path / f"sets.{ending}").stamp == found.stamp


def test_a_run_folder_is_used_again(tmp_path: Path) -> None:
    dataset = discrete(np.random.default_rng(19), 6, 300, repeats=False)
    first = learn(dataset, max_parents="all", score="bic", run_dir=tmp_path)
    again = learn(dataset, max_parents="all", score="bic", run_dir=tmp_path)
    assert first.solution.over_all_dags
    assert again.solution.stamp == first.solution.stamp
    assert again.solution.conclusion() == first.solution.conclusion()


def test_learn_without_a_number_tries_it() -> None:
    dataset = discrete(np.random.default_rng(20), 7, 500, repeats=False)
    assert learn(dataset, score="bic").solution.over_all_dags
    assert not learn(dataset, score="bdeu").solution.over_all_dags


@pytest.mark.parametrize("score", ["loglik", "bds"])
def test_scores_without_bounds_are_refused(score: str) -> None:
    dataset = discrete(np.random.default_rng(16), 5, 50)
    with pytest.raises(SettingError, match="has no bounds"):
        identify(dataset, CandidateSearch(score=Score(score), every_size=True))


def test_few_rows_of_numbers_are_refused() -> None:
    dataset = continuous(np.random.default_rng(17), 6, 6)
    with pytest.raises(SettingError, match="more rows than variables"):
        identify(dataset, CandidateSearch(score=Score("bge"), every_size=True))
