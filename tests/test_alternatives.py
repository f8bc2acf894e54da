"""Networks close to the best, against all networks of the candidate sets."""

import json
import math
from itertools import product

import numpy as np
import pytest
from typer.testing import CliRunner

from qubayes import SettingError
from qubayes.candidates import Candidates, write_candidates
from qubayes.cli import app
from qubayes.foundation.families import Families
from qubayes.foundation.graph import find_cycle
from qubayes.network import Network, cpdag
from qubayes.search import Limits
from qubayes.search.exact import alternatives
from solve_cases import random_candidates, small_candidates


def every_network(candidates: Candidates) -> list[tuple[float, tuple[tuple[int, ...], ...]]]:
    """(score, parents) of all networks, best first."""
    lists = [list(candidates.of(vertex)) for vertex in range(candidates.n)]
    found = []
    for choice in product(*lists):
        parents = tuple(members for members, _ in choice)
        if not find_cycle(parents):
            found.append((math.fsum(score for _, score in choice), parents))
    return sorted(found, key=lambda item: -item[0])


@pytest.mark.parametrize("factor", [1.0, 3.0, 200.0, 1e9])
@pytest.mark.parametrize("seed", range(4))
def test_all_networks_within_a_factor(seed, factor):
    for candidates in small_candidates(seed):
        known = every_network(candidates)
        close = [
            (score, parents)
            for score, parents in known
            if score >= known[0][0] - math.log(factor) - 1e-9
        ]
        found = alternatives(candidates, within=factor)
        assert found.complete and {*found.networks} == {parents for _, parents in close}
        assert len(found.networks) == len(close)
        assert found.scores == pytest.approx([score for score, _ in close])
        assert found.bayes_factors()[-1] <= factor * (1 + 1e-6)


@pytest.mark.parametrize("best", [1, 2, 10, 300])
@pytest.mark.parametrize("seed", range(4))
def test_the_k_best_networks(seed, best):
    for candidates in small_candidates(seed):
        known = every_network(candidates)
        found = alternatives(candidates, best)
        assert found.complete and len(set(found.networks)) == len(found.networks) == min(
            best, len(known)
        )
        assert found.scores == pytest.approx([score for score, _ in known[:best]])
        listed = set(found.networks)
        assert all(score <= found.floor + 1e-9 for score, parents in known if parents not in listed)


@pytest.mark.parametrize("best", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_the_k_best_classes_end_before_the_first_member_of_the_next(seed, best):
    """Members of a class may lie far apart in the list, since these scores are not score equivalent."""
    for candidates in (random_candidates(5, seed, sets=6), random_candidates(4, seed, sets=7)):
        found = alternatives(candidates, best, classes=True)
        kinds = {cpdag(Network(candidates.names, parents)) for parents in found.networks}
        assert found.complete and len(kinds) == best
        count = len(found.networks)
        known = every_network(candidates)
        assert found.networks == tuple(parents for _, parents in known[:count])
        assert known[count][0] <= found.floor + 1e-9


def test_an_edge_that_may_go_either_way_counts_half_each_way():
    """Two variables: the edge both ways, which is one class, beside the graph without it."""
    families = Families.of([[(1,), ()], [(0,), ()]])
    found = alternatives(
        Candidates(("a", "b"), families, np.array([-1.0, -2.0, -1.0, -2.0])), within=10.0
    )
    assert len(found.networks) == 3 and len(found.classes()) == 2
    share = 1.0 / (1.0 + math.exp(-1.0))
    assert found.edge_shares(by_class=True) == pytest.approx(
        np.array([[0, share / 2], [share / 2, 0]])
    )


def test_classes_are_cut_before_the_first_member_of_the_next():
    """a -> c <- b is a class of its own; a -> c and c -> a, which come next, are one class."""
    families = Families.of([[(2,), ()], [()], [(0, 1), (0,), ()]])
    candidates = Candidates(("a", "b", "c"), families, np.array([0.9, 0.0, 0.0, 1.0, 0.9, 0.0]))
    lists = [alternatives(candidates, best, classes=True).networks for best in (1, 2)]
    assert lists[0] == (((), (), (0, 1)),) and len(lists[1]) == 3


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.2), (0.7, 0.1)])
def test_networks_that_tie_up_to_rounding_are_all_listed(first, second):
    """a <- c -> b scores `first` + `second`, and a -> c <- b the rounded sum: a tie but for the last bit."""
    rounded = round(first + second, 1)
    assert first + second != rounded
    families = Families.of([[(2,), ()], [(2,), ()], [(0, 1), ()]])
    candidates = Candidates(
        ("a", "b", "c"), families, np.array([first, 0.0, second, 0.0, rounded, 0.0])
    )
    for found in (alternatives(candidates, within=1.0), alternatives(candidates, 5, within=1.0)):
        assert found.complete and {*found.networks} == {((2,), (2,), ()), ((), (), (0, 1))}


def test_both_limits_hold():
    candidates = random_candidates(5, 0, sets=6)
    known = every_network(candidates)
    close = sum(score >= known[0][0] - math.log(5.0) for score, _ in known)
    assert len(alternatives(candidates, 1000, within=5.0).networks) == close
    assert len(alternatives(candidates, 2, within=1e9).networks) == 2


def test_edges_and_classes_are_those_of_the_listed_networks():
    candidates = random_candidates(5, 3, ties=True)
    found = alternatives(candidates, within=50.0)
    weights = np.array([math.exp(score - found.scores[0]) for score in found.scores])
    for (parent, child), share in found.edge_probabilities().items():
        has = [
            candidates.names.index(parent) in parents[candidates.names.index(child)]
            for parents in found.networks
        ]
        assert share == pytest.approx(float(weights @ np.array(has)) / weights.sum())
    classes = found.classes()
    assert sorted(number for its in classes for number in its) == list(range(len(found.networks)))
    kinds = [{cpdag(Network(found.names, found.networks[i])) for i in its} for its in classes]
    assert all(len(kind) == 1 for kind in kinds) and len(set.union(*kinds)) == len(classes)


def test_without_time_one_network_is_listed_and_nothing_claimed():
    found = alternatives(random_candidates(5, 0), 3, limits=Limits(0.0))
    assert not found.complete and "time limit" in found.status and len(found.networks) == 1


@pytest.mark.parametrize("n", [0, 1])
def test_few_vertices(n):
    found = alternatives(random_candidates(n, 0), 5)
    assert found.complete and found.networks == (((),) * n,)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "what kind"),
        ({"best": 0}, "best=0"),
        ({"best": 1.5}, "best=1.5"),
        ({"within": 0.5}, "within=0.5"),
        ({"within": math.inf}, "within=inf"),
    ],
)
def test_wrong_numbers_are_refused(given, words):
    with pytest.raises(SettingError, match=words):
        alternatives(random_candidates(3, 0), **given)


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    candidates = random_candidates(5, 1)
    write_candidates(candidates, tmp_path / "x.jkl")
    known = every_network(candidates)
    done = CliRunner().invoke(app, ["solve", "x.jkl", "--best", "3", "--json"])
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)
    assert [each["score"] for each in value["networks"]] == pytest.approx(
        [score for score, _ in known[:3]]
    )
    assert value["complete"] and value["edges"]
    done = CliRunner().invoke(app, ["solve", "x.jkl", "--within", "20"])
    assert (
        done.exit_code == 0 and "1. score" in done.output and "equivalence classes" in done.output
    )
    wrong = CliRunner().invoke(app, ["solve", "x.jkl", "--within", "20", "--solver", "sa"])
    assert "--solver sa makes no list of networks; give --solver exact" in str(wrong.exception)
