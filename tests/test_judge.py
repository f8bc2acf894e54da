"""`judge` against the definition of the scores and all networks of four variables."""

import json
import math
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import qubayes as qb
from qubayes import DataError, SettingError
from qubayes.cli import app
from qubayes.data import Dataset, write
from qubayes.foundation.arrays import frozen
from qubayes.scores import EACH, FORMULAS, Formula
from reference.networks import acyclic
from reference.scores import local_score
from reference.searches import descendants

NAMES, ARITIES = ("a", "b", "c", "d"), (2, 3, 2, 2)
DIAMOND = qb.Network(NAMES, ((), (0,), (0,), (0, 1, 2)))


def data(seed: int, rows: int = 60) -> Dataset:
    """Rows in which b and c depend on a, and d on b."""
    random = np.random.default_rng(seed)
    a = random.integers(2, size=rows)
    b = np.where(random.random(rows) < 0.7, a, random.integers(3, size=rows))
    c = np.where(random.random(rows) < 0.6, a, random.integers(2, size=rows))
    d = np.where(random.random(rows) < 0.7, b == 1, random.integers(2, size=rows))
    states = tuple(tuple(f"s{k}" for k in range(arity)) for arity in ARITIES)
    return Dataset(NAMES, states, frozen(np.array([a, b, c, d], np.uint8)))


def scores_of(dataset, name, most):
    """{parents: score} of each vertex, for all sets of at most `most` parents."""
    rows = [tuple(row) for row in dataset.codes.T.tolist()]
    return [
        {
            chosen: local_score(rows, list(ARITIES), child, chosen, name, 1.0)
            for size in range(most + 1)
            for chosen in combinations([v for v in range(4) if v != child], size)
        }
        for child in range(4)
    ]


def test_a_registered_score_with_the_penalty_of_bic_has_a_bayes_factor(monkeypatch):
    monkeypatch.setitem(
        FORMULAS, "schwarz", lambda ess, rows: Formula(EACH, 0.0, math.log(rows) / 2)
    )
    monkeypatch.setitem(FORMULAS, "dearer", lambda ess, rows: Formula(EACH, 0.0, math.log(rows)))
    bic, schwarz, dearer = (
        qb.judge(data(1), DIAMOND, 2, score=name) for name in ("bic", "schwarz", "dearer")
    )
    assert schwarz.bayes_factor == pytest.approx(bic.bayes_factor) and dearer.bayes_factor is None
    assert bic.describe()[0] == schwarz.describe()[0] and "this one about" in bic.describe()[0]


@pytest.mark.parametrize(
    ("seed", "name", "most"), [(0, "bdeu", 2), (1, "bic", 3), (2, "k2", 1), (3, "aic", 3)]
)
def test_against_all_networks(seed, name, most):
    dataset = data(seed)
    tables = scores_of(dataset, name, 3)
    networks = [
        graph for graph in product(*tables) if acyclic(graph) and max(map(len, graph)) <= most
    ]
    best = max(
        sum(table[its] for table, its in zip(tables, graph, strict=True)) for graph in networks
    )
    own = [table[its] for table, its in zip(tables, DIAMOND.parents, strict=True)]
    found = qb.judge(dataset, DIAMOND, most, score=name)
    assert found.score == pytest.approx(sum(own)) and found.learned.solution.proved
    assert found.below == pytest.approx(best - sum(own)) == found.below_at_most
    assert found.outside == (("d",) if most < 3 else ())
    assert found.optimal == (most == 3 and best - sum(own) < 1e-9)
    if name == "aic":
        assert found.bayes_factor is None
    else:
        assert found.bayes_factor == pytest.approx(math.exp(best - sum(own)))
    support = {
        (NAMES[p], NAMES[c]): own[c] - tables[c][tuple(v for v in its if v != p)]
        for c, its in enumerate(DIAMOND.parents)
        for p in its
    }
    assert {edge[:2]: edge.nats for edge in found.edges} == pytest.approx(support)
    assert [edge.nats for edge in found.edges] == sorted(edge.nats for edge in found.edges)
    gains = {}
    for child, table in enumerate(tables):
        free = {v for v in range(4) if v != child} - descendants(DIAMOND.parents, child)
        gain = (
            max(score for its, score in table.items() if set(its) <= free and len(its) <= most)
            - own[child]
        )
        if gain > 1e-9:
            gains[NAMES[child]] = gain
    assert {each.child: each.nats for each in found.replacements} == pytest.approx(gains)
    for each in found.replacements:
        child, parents = NAMES.index(each.child), tuple(sorted(map(NAMES.index, each.parents)))
        assert tables[child][parents] - own[child] == pytest.approx(each.nats)


def test_the_best_network_is_optimal():
    dataset = data(0)
    best = qb.learn(dataset).network
    found = qb.judge(dataset, best)
    assert found.optimal and found.below == 0.0 == found.below_at_most and not found.replacements
    assert "Optimal: no network" in "\n".join(found.describe())


def test_the_best_network_found_is_not_called_optimal_without_a_proof():
    dataset = data(0)
    found = qb.judge(dataset, qb.learn(dataset).network, 3, solver="digital", moves=1000)
    assert found.below == 0.0 < found.below_at_most and not found.optimal
    assert "this network is optimal" not in "\n".join(found.describe())


def test_the_prior_of_an_edge_is_a_part_of_its_support():
    dataset = data(0)
    plain = {edge[:2]: edge.nats for edge in qb.judge(dataset, DIAMOND, 3).edges}
    known = qb.Knowledge(priors=[("a", "b", 2.5), ("c", "d", -1.0), ("d", "a", 7.0)])
    found = {edge[:2]: edge.nats for edge in qb.judge(dataset, DIAMOND, 3, knowledge=known).edges}
    expected = plain | {("a", "b"): plain["a", "b"] + 2.5, ("c", "d"): plain["c", "d"] - 1.0}
    assert found == pytest.approx(expected)


def test_more_parents_than_were_searched_can_score_more():
    """With loglik every parent helps: the full graph scores more than any network of one parent each."""
    full = qb.Network(NAMES, ((), (0,), (0, 1), (0, 1, 2)))
    found = qb.judge(data(0), full, 1, score="loglik")
    assert (
        found.below < 0
        and found.below_at_most < 0
        and not found.optimal
        and found.outside == ("c", "d")
    )
    text = "\n".join(found.describe())
    assert "more than the best network that was found, and than any that was searched" in text
    assert "The parents of 'c', 'd' were not searched" in text


def test_edges_against_knowledge_are_outside():
    found = qb.judge(
        data(0), DIAMOND, 3, knowledge=qb.Knowledge(forbidden=[("a", "b")], required=[("b", "c")])
    )
    assert found.outside == ("b", "c")


def test_an_order_against_an_edge_or_a_path_is_outside():
    for before, outside in (
        (("a", "d"), ()),
        (("d", "a"), ("d",)),
        (("b", "a"), ("b",)),
        (("b", "c"), ()),
    ):
        found = qb.judge(data(0), DIAMOND, 3, knowledge=qb.Knowledge(before=[before]))
        assert found.outside == outside


def test_without_a_proof_the_distance_is_a_range():
    found = qb.judge(data(0), qb.Network(NAMES, ((),) * 4), 3, solver="digital", moves=1000)
    assert not found.learned.solution.proved and found.below < found.below_at_most
    assert f"to {found.below_at_most:,.2f} nats below the optimum" in "\n".join(found.describe())


def test_a_share_is_held_out():
    dataset = data(0, rows=200)
    found = qb.judge(dataset, DIAMOND, holdout=0.25, seed=3)
    assert found.learned.dataset.rows == 150 and found.held_out.rows == 50
    order = np.random.default_rng(3).permutation(200)
    train, test = (dataset.codes[:, rows].T.tolist() for rows in (order[50:], order[:50]))
    total = 0.0
    for child, its in enumerate(DIAMOND.parents):
        cells = math.prod(ARITIES[v] for v in (*its, child))
        for row in test:
            same = [other for other in train if all(other[p] == row[p] for p in its)]
            hits = sum(other[child] == row[child] for other in same)
            total += math.log((hits + 1 / cells) / (len(same) + ARITIES[child] / cells))
    assert found.held_out.network == pytest.approx(total)
    assert sorted(found.learned.dataset.codes.T.tolist()) == sorted(train)
    again = qb.judge(dataset, DIAMOND, holdout=0.25, seed=3)
    assert again.held_out == found.held_out
    assert qb.judge(dataset, DIAMOND, holdout=0.25, seed=4).held_out != found.held_out


def test_numbers_that_are_held_out_go_into_the_intervals_of_the_other_rows():
    rain = pl.Series([False, True] * 30)
    table = pl.DataFrame({"mm": [0.5, 8.5] * 30, "rain": rain})
    # all in the upper interval
    held = pl.DataFrame({"mm": [8.6, 9.5, 9.0, 8.7], "rain": [True] * 4})
    graph = qb.Network(("mm", "rain"), ((), (0,)))
    found = qb.judge(table, graph, holdout=held, bins=2).held_out
    fitted = qb.fit(graph, qb.read(table, bins=2))
    assert found.rows == 4
    assert found.network == pytest.approx(4 * math.log(fitted.probability(mm=8.5, rain=True)))


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5, -0.1, 0.0001])
def test_a_share_leaves_rows_on_both_sides(share):
    with pytest.raises(SettingError, match="between 0 and 1"):
        qb.judge(data(0), DIAMOND, holdout=share)


def test_states_are_the_networks_unless_the_data_have_more():
    dataset = data(0)
    wider = tuple((*states, "other") for states in dataset.states)
    declared = qb.judge(dataset, qb.Network(NAMES, DIAMOND.parents, wider))
    assert declared.learned.dataset.states == wider
    assert declared.score == pytest.approx(
        qb.score(qb.Network(NAMES, DIAMOND.parents, wider), dataset).total
    )
    fewer = tuple(states[:1] for states in dataset.states)
    assert (
        qb.judge(dataset, qb.Network(NAMES, DIAMOND.parents, fewer)).learned.dataset.states
        == dataset.states
    )


def test_columns_that_the_network_lacks_are_left_out():
    found = qb.judge(data(0), qb.Network(("c", "a"), ((1,), ())))
    assert found.learned.dataset.names == ("c", "a") and found.score == pytest.approx(
        qb.score(qb.Network(("c", "a"), ((1,), ())), data(0)).total
    )
    with pytest.raises(DataError, match="no column 'x'"):
        qb.judge(data(0), qb.Network(("x", "a"), ((1,), ())))


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(data(0, 100), tmp_path / "x.csv")
    write(data(1, 40), tmp_path / "y.csv")
    (tmp_path / "g.bnlearn").write_text("[a][b|a][c|a][d|a:b:c]")
    done = CliRunner().invoke(app, ["judge", "x.csv", "g.bnlearn", "-m", "2", "--holdout", "y.csv"])
    assert done.exit_code == 0, done.output
    for words in (
        "proved optimal with at most 2 parents per variable",
        "Bayes factor",
        "compelled",
        "least support",
        "on 40 held-out rows:",
        "not searched",
    ):
        assert words in done.stdout
    value = json.loads(
        CliRunner()
        .invoke(app, ["judge", "x.csv", "g.bnlearn", "--holdout", "0.2", "--json"])
        .stdout
    )
    assert value["rows"] == 80 and value["held_out"]["rows"] == 20 and value["best"]["proved"]
    assert (
        value["equivalence_class"] == {"compelled": 3, "reversible": 2} and len(value["edges"]) == 5
    )
