"""Priors of edges and the order of variables, against all networks of four variables that obey them."""

import itertools
import json
import re
from dataclasses import fields, replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import qubayes as qb
from candidate_cases import dependent_data, run
from qubayes import ConstraintError, FormatError, QubayesError, SettingError
from qubayes.candidates import read_candidates, restrict, write_candidates
from qubayes.data import Dataset, write
from qubayes.qubo import data_scores, decode, encode, formulate, read_formulation
from reference.networks import acyclic
from reference.scores import local_score
from reference.searches import ancestors

N = 4
Graph = tuple[tuple[int, ...], ...]


@cache
def data(seed: int) -> Dataset:
    return dependent_data(N, 40, seed, 2)


@cache
def scores(seed: int, name: str) -> list[dict[tuple[int, ...], float]]:
    """{parents: local score} of each variable."""
    dataset = data(seed)
    rows, arities = [tuple(row) for row in dataset.codes.T.tolist()], dataset.arities.tolist()
    return [
        {
            its: local_score(rows, arities, child, its, name, 1.0)
            for size in range(N)
            for its in combinations([v for v in range(N) if v != child], size)
        }
        for child in range(N)
    ]


@cache
def graphs(most: int) -> list[Graph]:
    sets = [
        [
            its
            for size in range(most + 1)
            for its in combinations([v for v in range(N) if v != c], size)
        ]
        for c in range(N)
    ]
    return [graph for graph in product(*sets) if acyclic(graph)]


def best_of_all(seed: int, name: str, most: int, knowledge: qb.Knowledge) -> float:
    """The best score of a network that obeys the knowledge, priors included; -inf if none does."""
    names = data(seed).names
    place = {label: vertex for vertex, label in enumerate(names)}
    required, forbidden, before, never, always = (
        [(place[a], place[b]) for a, b in getattr(knowledge, key)]
        for key in ("required", "forbidden", "before", "not_ancestors", "ancestors")
    )
    priors = {(place[a], place[b]): nats for a, b, nats in knowledge.priors}

    def obeys(graph: Graph) -> bool:
        ordered = [[*its, *(a for a, b in before if b == child)] for child, its in enumerate(graph)]
        return (
            all(a in graph[b] for a, b in required)
            and not any(a in graph[b] for a, b in forbidden)
            and acyclic(ordered)
            and not any(a in ancestors(graph, b) for a, b in never)
            and all(a in ancestors(graph, b) for a, b in always)
        )

    table = scores(seed, name)
    totals = [
        sum(
            table[c][its] + sum(priors.get((p, c), 0.0) for p in its) for c, its in enumerate(graph)
        )
        for graph in graphs(most)
        if obeys(graph)
    ]
    return max(totals, default=float("-inf"))


def random_knowledge(seed: int, kinds: str) -> qb.Knowledge:
    random = np.random.default_rng(seed)
    names = data(seed).names
    pairs = [(a, b) for a in names for b in names if a != b]

    def draw(count: int) -> list[tuple[str, str]]:
        return [pairs[k] for k in random.permutation(len(pairs))[:count]]

    order = [names[k] for k in random.permutation(N)]
    ordered = [(order[a], order[b]) for a in range(N) for b in range(a + 1, N)]
    return qb.Knowledge(
        priors=[(a, b, float(random.normal() * 8.0)) for a, b in draw(5)] if "p" in kinds else (),
        before=[ordered[k] for k in random.permutation(len(ordered))[:2]] if "b" in kinds else (),
        not_ancestors=draw(1) if "n" in kinds else (),
        forbidden=draw(1) if "f" in kinds else (),
        required=[ordered[random.integers(len(ordered))]] if "r" in kinds else (),
    )


def obeyed(network: qb.Network, knowledge: qb.Knowledge) -> bool:
    place = {name: v for v, name in enumerate(network.names)}
    with_order = [
        [*its, *(place[a] for a, b in knowledge.before if place[b] == v)]
        for v, its in enumerate(network.parents)
    ]
    return (
        acyclic(with_order)
        and all(place[a] in network.parents[place[b]] for a, b in knowledge.required)
        and not any(
            place[a] in ancestors(network.parents, place[b]) for a, b in knowledge.not_ancestors
        )
    )


def total(seed: int, name: str, network: qb.Network, knowledge: qb.Knowledge) -> float:
    priors = {(a, b): nats for a, b, nats in knowledge.priors}
    return sum(scores(seed, name)[c][its] for c, its in enumerate(network.parents)) + sum(
        priors.get(edge, 0.0) for edge in network.edges
    )


@pytest.mark.parametrize("kinds", ["p", "b", "n", "pb", "pn", "pbf", "pr", "br", "pbr"])
@pytest.mark.parametrize(
    ("seed", "name", "most"), [(0, "bdeu", 2), (1, "bic", 3), (2, "k2", 1), (3, "bds", 3)]
)
def test_learned_network_is_the_best_that_obeys(seed, name, most, kinds):
    knowledge = random_knowledge(seed, kinds)
    best = best_of_all(seed, name, most, knowledge)
    learned = qb.learn(data(seed), most, score=name, knowledge=knowledge)
    assert learned.solution.proved and learned.solution.score == pytest.approx(best)
    assert total(seed, name, learned.network, knowledge) == pytest.approx(best) and obeyed(
        learned.network, knowledge
    )
    assert learned.report_contents().strengths.keys() == {
        (p, c) for c, its in enumerate(learned.network.parents) for p in its
    }


@pytest.mark.parametrize("seed", range(4))
def test_annealers_and_the_qubo_obey(seed, tmp_path):
    knowledge = random_knowledge(seed, "pb")
    best = best_of_all(seed, "bdeu", 3, knowledge)
    candidates = qb.identify(data(seed), qb.CandidateSearch(3, knowledge=knowledge))
    found = qb.solve(candidates, "anneal", limits=qb.Limits(None, 20_000))
    assert found.score == pytest.approx(best) and obeyed(found.network, knowledge)
    formulation = formulate(candidates)
    exact = qb.solve(formulation, "exact")
    assert exact.energy == pytest.approx(-best)
    assert decode(formulation, exact.bits).parents == exact.parents and obeyed(
        exact.network, knowledge
    )
    formulation.write(tmp_path / "x.bqm")
    assert decode(read_formulation(tmp_path / "x.bqm"), exact.bits).parents == exact.parents
    presolved = qb.presolve(candidates)
    restored = presolved.restore(qb.solve(presolved.candidates, "exact"))
    assert restored.score == pytest.approx(best) and obeyed(restored.network, knowledge)


@pytest.mark.parametrize("seed", range(4))
def test_networks_are_encoded_without_the_members_that_express_an_order(seed):
    knowledge = random_knowledge(seed, "b")
    candidates = qb.identify(data(seed), qb.CandidateSearch(3, knowledge=knowledge))
    formulation, encoded = formulate(candidates), 0
    for graph in graphs(3):
        if not obeyed(qb.Network(candidates.names, graph), knowledge):
            continue
        try:
            state = encode(formulation, graph)
        except QubayesError as error:
            assert "is not a candidate set" in str(error)
            continue
        found = decode(formulation, state)
        assert found.parents == graph and not found.violations
        assert found.energy == pytest.approx(
            -sum(scores(seed, "bdeu")[c][its] for c, its in enumerate(graph))
        )
        encoded += 1
    assert encoded > 1
    best = qb.solve(candidates, "exact")
    assert decode(formulation, encode(formulation, best.parents)).energy == pytest.approx(
        -best.score
    )


@pytest.mark.parametrize("kinds", ["p", "b"])
def test_scores_on_data_are_refused_with_priors_and_an_order(kinds, tmp_path, capsys):
    """They lack both: a union of subsets would score something else than a candidate set."""
    candidates = qb.identify(data(1), qb.CandidateSearch(2, knowledge=random_knowledge(1, kinds)))
    for score in (None, qb.Score("bdeu")):
        with pytest.raises(SettingError, match="which scores on data lack; leave out data"):
            data_scores(candidates, data(1), score)
    write_candidates(candidates, tmp_path / "x.qbc")
    write(data(1), tmp_path / "x.csv")
    code, _, error = run(capsys, "formulate", tmp_path / "x.qbc", "--data", tmp_path / "x.csv")
    assert code == 1 and "leave out --data" in error


@pytest.mark.parametrize("seed", range(4))
def test_possible_parents_with_priors_count_them(seed):
    names = data(seed).names
    knowledge = qb.Knowledge(priors=[(names[0], names[3], 100.0)])
    found = qb.identify(data(seed), qb.CandidateSearch(1, knowledge=knowledge, possible_parents=1))
    assert (0,) in [members for members, _ in found.of(3)]
    assert dict(found.of(3))[(0,)] == pytest.approx(scores(seed, "bdeu")[3][(0,)] + 100.0)


@pytest.mark.parametrize("seed", range(4))
def test_files_of_scores_take_order_and_negative_priors(seed, tmp_path):
    knowledge = random_knowledge(seed, "pb")
    knowledge = replace(knowledge, priors=[(a, b, -abs(nats)) for a, b, nats in knowledge.priors])
    candidates = restrict(qb.identify(data(seed), qb.CandidateSearch(3)), knowledge)
    solution = qb.solve(candidates, "exact")
    assert solution.score == pytest.approx(best_of_all(seed, "bdeu", 3, knowledge))
    assert candidates.stamp.score == "bdeu+priors"
    positive = qb.Knowledge(priors=[(candidates.names[0], candidates.names[1], 1.0)])
    with pytest.raises(
        ConstraintError, match="needs scores that a file of candidate sets leaves out"
    ):
        restrict(qb.identify(data(seed), qb.CandidateSearch(3)), positive)
    write_candidates(candidates, tmp_path / "x.qbc")
    assert read_candidates(tmp_path / "x.qbc").plain.total == candidates.plain.total
    again = read_candidates(tmp_path / "x.qbc")
    assert qb.solve(again, "exact").network == solution.network
    with pytest.raises(FormatError, match="holds no order of variables"):
        write_candidates(candidates, tmp_path / "x.jkl")


def test_lists_of_networks_refuse_an_order():
    names = data(0).names
    candidates = qb.identify(
        data(0), qb.CandidateSearch(2, knowledge=qb.Knowledge(before=[(names[0], names[1])]))
    )
    with pytest.raises(SettingError, match="no order of variables"):
        qb.alternatives(candidates, 3)
    with pytest.raises(SettingError, match="no order of variables"):
        qb.learn(data(0), 2, knowledge=qb.Knowledge(before=[(names[0], names[1])]), within=20.0)


def test_judge_counts_priors_and_the_order():
    names = data(1).names
    knowledge = qb.Knowledge(priors=[(names[0], names[1], -5.0)], before=[(names[1], names[2])])
    network = qb.Network(names, ((), (0, 2), (), ()))
    found = qb.judge(data(1), network, 3, knowledge=knowledge)
    best = best_of_all(1, "bdeu", 3, knowledge)
    assert found.score == pytest.approx(total(1, "bdeu", network, knowledge))
    assert found.below == pytest.approx(best - found.score)
    assert names[1] in found.outside  # names[2] is its parent, and comes after it
    table = scores(1, "bdeu")[1]
    support = {edge[:2]: edge.nats for edge in found.edges}
    assert support[names[0], names[1]] == pytest.approx(table[0, 2] - 5.0 - table[(2,)])


CONTRADICTIONS = [
    ({"before": [("a", "b"), ("b", "c"), ("c", "a")]}, "form the cycle"),
    ({"before": [("a", "b")], "required": [("b", "a")]}, "form the cycle"),
    ({"before": [("a", "c")], "required": [("c", "b"), ("b", "a")]}, "form the cycle"),
    ({"not_ancestors": [("a", "b")], "required": [("a", "c"), ("c", "b")]}, "form the cycle"),
    ({"not_ancestors": [("a", "b"), ("c", "d")]}, "give them as `before`"),
    ({"not_ancestors": [("a", "b")], "before": [("c", "d")]}, "give them as `before`"),
    ({"before": [("a", "x")]}, r"before \['a', 'x'\] names 'x'"),
    ({"priors": [("a", "x", 1.0)]}, "the prior of a -> x names 'x'"),
]


@pytest.mark.parametrize(("known", "words"), CONTRADICTIONS)
def test_contradictions_are_named(known, words):
    with pytest.raises(ConstraintError, match=words):
        qb.Knowledge(**known).resolve("abcd", 3)


@pytest.mark.parametrize(
    "pairs",
    [[("a", "b"), ("a", "c")], [("a", "b"), ("c", "b")], [("a", "b")]],
    ids=["same first", "same second", "one"],
)
def test_not_ancestors_that_share_a_variable(pairs):
    names = data(0).names
    swapped = [tuple(names["abcd".index(letter)] for letter in pair) for pair in pairs]
    for seed in range(4):
        knowledge = qb.Knowledge(not_ancestors=swapped)
        learned = qb.learn(data(seed), 3, knowledge=knowledge)
        assert learned.solution.score == pytest.approx(best_of_all(seed, "bdeu", 3, knowledge))


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"priors": [["a", "b"]]}, r"\[parent, child, nats\]"),
        ({"priors": [["a", "b", "2"]]}, r"\[parent, child, nats\]"),
        ({"priors": [["a", "b", float("nan")]]}, r"\[parent, child, nats\]"),
        ({"priors": [["a", "b", True]]}, r"\[parent, child, nats\]"),
        ({"priors": "ab"}, r"list of \[parent, child, nats\]"),
        ({"priors": [["a", "a", 1.0]]}, "edge from 'a' to itself"),
        ({"priors": [["a", "b", 1.0], ["a", "b", 2.0]]}, "two priors; give their sum"),
        ({"before": [["a"]]}, r"\[parent, child\]"),
        ({"not_ancestors": [["a", "a"]]}, "to itself"),
    ],
)
def test_bad_values_say_what_is_allowed(known, words):
    with pytest.raises(ConstraintError, match=words):
        qb.Knowledge(**known)


def test_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(data(2), tmp_path / "x.csv")
    names = data(2).names
    known = {"before": [[names[3], names[0]]], "priors": [[names[1], names[2], -2.0]]}
    (tmp_path / "k.json").write_text(json.dumps(known))
    knowledge = qb.Knowledge(**known)
    best = best_of_all(2, "bdeu", 3, knowledge)
    code, printed, _ = run(capsys, "learn", "x.csv", "--knowledge", "k.json", "--json")
    assert code == 0 and json.loads(printed)["score"] == pytest.approx(best)
    assert run(capsys, "candidates", "x.csv", "-o", "x.jkl")[0] == 0
    code, printed, _ = run(
        capsys, "solve", "x.jkl", "--solver", "exact", "--knowledge", "k.json", "--json"
    )
    assert code == 0 and json.loads(printed)["score"] == pytest.approx(best)
    code, _, error = run(
        capsys, "solve", "x.jkl", "--certificate", "p.json", "--knowledge", "k.json"
    )
    assert code == 1 and "which say nothing of an order" in error
    (tmp_path / "k.json").write_text(json.dumps({"priors": known["priors"]}))
    best = best_of_all(2, "bdeu", 3, qb.Knowledge(priors=known["priors"]))
    assert run(capsys, "solve", "x.jkl", "--certificate", "p.json", "--knowledge", "k.json")[0] == 0
    code, printed, _ = run(capsys, "check", "p.jkl", "p.json", "--json")
    assert code == 0 and json.loads(printed)["score"] == pytest.approx(best)


@pytest.mark.parametrize("name", ["bdeu", "bic", "k2", "bds"])
def test_sets_whose_parents_all_have_a_bonus_are_found(name):
    """A bound on the scores of supersets must leave room for the priors of further parents."""
    names = data(0).names
    knowledge = qb.Knowledge(priors=[(parent, names[3], 50.0) for parent in names[:3]])
    found = qb.identify(data(0), qb.CandidateSearch(3, qb.Score(name), knowledge))
    assert dict(found.of(3))[0, 1, 2] == pytest.approx(scores(0, name)[3][0, 1, 2] + 150.0)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize(("seed", "name"), [(0, "bdeu"), (1, "bic"), (2, "bdeu"), (3, "k2")])
def test_required_ancestors(seed, name, most):
    """Every pair of variables, alone and with other knowledge; an error iff no network obeys."""
    names = data(seed).names
    for first, second in [(a, b) for a in names for b in names if a != b]:
        forbidden = [(first, second)]
        other = [(names[0], names[3])] if (first, second) != (names[3], names[0]) else []
        for more in ({}, {"forbidden": forbidden}, {"before": other}):
            pairs = [(first, second), *other] if not more else [(first, second)]
            knowledge = qb.Knowledge(ancestors=pairs, **more)
            best = best_of_all(seed, name, most, knowledge)
            if best == float("-inf"):
                with pytest.raises(ConstraintError):
                    qb.learn(data(seed), most, score=name, knowledge=knowledge)
                continue
            learned = qb.learn(data(seed), most, score=name, knowledge=knowledge)
            assert learned.solution.proved and learned.solution.score == pytest.approx(best)
            place = {label: v for v, label in enumerate(names)}
            assert all(place[a] in ancestors(learned.network.parents, place[b]) for a, b in pairs)
            assert total(seed, name, learned.network, knowledge) == pytest.approx(best)


@pytest.mark.parametrize("pairs", [[(0, 3)], [(3, 0), (2, 1)]])
def test_a_time_limit_ends_the_search_for_ancestors(monkeypatch, pairs):
    """A clock that ticks at every look: an error, then a network with a valid bound, then the best one."""
    names = data(0).names
    knowledge = qb.Knowledge(ancestors=[(names[a], names[b]) for a, b in pairs])
    best = best_of_all(0, "bdeu", 2, knowledge)
    without = best_of_all(0, "bdeu", 2, qb.Knowledge())
    place, endings = {label: v for v, label in enumerate(names)}, []
    for limit in range(1, 60):
        ticks = itertools.count()
        clock = SimpleNamespace(perf_counter=lambda ticks=ticks: float(next(ticks)))
        with monkeypatch.context() as patch:
            patch.setattr("qubayes.learning.pipeline.time", clock)
            try:
                learned = qb.learn(data(0), 2, knowledge=knowledge, time_limit=float(limit))
            except QubayesError as error:
                assert "before a network with all required ancestors" in str(error)
                endings.append("error")
                continue
        solution = learned.solution
        assert all(
            place[a] in ancestors(learned.network.parents, place[b]) for a, b in knowledge.ancestors
        )
        assert solution.score <= best + 1e-9 and best - 1e-9 <= solution.bound <= without + 1e-9
        endings.append("proved" if solution.proved else "bound")
        assert solution.proved or "time limit reached" in solution.status
    assert set(endings) == {"error", "bound", "proved"}
    assert endings[-1] == "proved"


def test_ancestors_are_refused_where_they_cannot_be_expressed():
    names = data(0).names
    knowledge = qb.Knowledge(ancestors=[(names[0], names[1])])
    with pytest.raises(ConstraintError, match="cannot be expressed by candidate sets"):
        qb.identify(data(0), qb.CandidateSearch(2, knowledge=knowledge))
    with pytest.raises(ConstraintError, match="cannot be expressed by candidate sets"):
        restrict(qb.identify(data(0), qb.CandidateSearch(2)), knowledge)
    for more in ({"solver": "anneal"}, {"bootstrap": 2}, {"within": 3.0}, {"moves": 10}):
        with pytest.raises(SettingError, match="ancestors in the prior knowledge need"):
            qb.learn(data(0), 2, knowledge=knowledge, **more)
    for more in ({"not_ancestors": knowledge.ancestors}, {"required": [(names[1], names[0])]}):
        with pytest.raises(ConstraintError, match="form the cycle"):
            qb.learn(data(0), 2, knowledge=replace(knowledge, **more))
    found = qb.judge(data(0), qb.Network(names, ((),) * N), 2, knowledge=knowledge)
    assert found.outside == (names[1],)


def test_the_example_of_the_page_is_consistent():
    page = (Path(__file__).parent.parent / "docs/howto-knowledge.md").read_text()
    [example] = re.findall(r"```json\n(.*?)```", page, re.S)
    known = json.loads(example)
    allowed = qb.Knowledge(**known).resolve(("Age", "Sex", "Smoker", "Lung"), 3)
    keys = {item.name for item in fields(qb.Knowledge)} - {"forbid_within_tiers"}
    assert (
        set(known) == keys and allowed.before == ((2, 3), (1, 3)) and allowed.ancestors == ((1, 3),)
    )
