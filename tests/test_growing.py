"""Parent sets grown on demand, and the networks that are found over them."""

import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qubayes import Knowledge, Workers, read
from qubayes.candidates import CandidateSearch, Growing, Stamp, identify, with_larger
from qubayes.data import Dataset
from qubayes.foundation.stop import Interrupt
from qubayes.scores import NAMES, Score
from qubayes.search import Growth, solve
from strategies import datasets, table_of_numbers


def grown_sets(growing, names):
    """{(child, parents): score} of the candidate sets."""
    candidates = growing.candidates(names, Stamp())
    return {
        (child, parents): score
        for child in range(len(names))
        for parents, score in candidates.of(child)
    }


def started(dataset, score, knowledge=None, **options):
    allowed = (knowledge or Knowledge()).resolve(dataset.names, dataset.n - 1)
    growing = Growing(score.engine(dataset), allowed, workers=Workers(1), **options)
    growing.start()
    return growing


@given(datasets(), st.sampled_from(NAMES), st.integers(1, 9))
def test_grown_sets_have_local_scores_and_beat_their_subsets(dataset, name, width):
    score = Score(name)
    growing = started(dataset, score)
    growing.beam(width)
    growing.around([()] * dataset.n)
    found = grown_sets(growing, dataset.names)
    engine = score.engine(dataset)
    for (child, parents), value in found.items():
        assert value == pytest.approx(engine.local(child, parents), rel=1e-9, abs=1e-8)
        for other in found:
            if other[0] == child and set(other[1]) < set(parents):
                assert found[other] < value


@given(datasets(max_variables=5), st.sampled_from(NAMES))
def test_wide_beams_find_every_candidate_set_of_two_parents(dataset, name):
    growing = started(dataset, Score(name))
    growing.beam(64)
    expected = identify(dataset, CandidateSearch(2, Score(name)), workers=Workers(1))
    found = grown_sets(growing, dataset.names)
    for child in range(dataset.n):
        for parents, score in expected.of(child):
            assert found[child, parents] == pytest.approx(score, rel=1e-9, abs=1e-8)


def parity(parents, n, rows=400, noise=0.05):
    """Data in which the last variable is the parity of the first few, which are independent."""
    random = np.random.default_rng(3)
    codes = random.integers(0, 2, (n, rows)).astype(np.uint8)
    wrong = random.random(rows) < noise
    codes[-1] = (codes[:parents].sum(axis=0) + wrong) % 2
    names = tuple(f"x{v}" for v in range(n))
    return Dataset(names, (("0", "1"),) * n, codes)


@pytest.mark.parametrize(("parents", "n"), [(2, 60), (3, 10)])
def test_parents_that_matter_only_together_are_found(parents, n):
    dataset = parity(parents, n)
    score = Score("bdeu")
    allowed = Knowledge().resolve(dataset.names, n - 1)
    found = Growth(score.engine(dataset), dataset.names, allowed, Stamp(), workers=Workers(1))
    found.run()
    family = {*range(parents), n - 1}
    families = [{child, *its} for child, its in enumerate(found.network.parents)]
    assert family in families


def test_a_partner_outside_the_pool_is_found():
    dataset = parity(2, 130)
    growing = started(dataset, Score("bdeu"))
    child = growing.children[129]
    child.pool = np.setdiff1d(np.arange(70), [1])[:63]
    child.count = 1
    growing.find_partners([()] * 130, singles=63)
    assert 1 in growing.children[129].pool
    growing.beam(63)
    assert (129, (0, 1)) in grown_sets(growing, dataset.names)


@given(datasets(min_variables=3, max_variables=5), st.data())
def test_knowledge_holds_in_grown_sets(dataset, data):
    a, b, c = data.draw(st.permutations(dataset.names))[:3]
    knowledge = Knowledge(
        required=[(a, b)], forbidden=[(c, b)], max_parents={a: 1}, priors=[(b, c, 1.5)]
    )
    growing = started(dataset, Score("bic"), knowledge)
    growing.beam(4)
    place = {name: v for v, name in enumerate(dataset.names)}
    engine = Score("bic").engine(dataset)
    for (child, parents), value in grown_sets(growing, dataset.names).items():
        if child == place[b]:
            assert place[a] in parents
            assert place[c] not in parents
        if child == place[a]:
            assert len(parents) <= 1
        prior = 1.5 if child == place[c] and place[b] in parents else 0.0
        assert value == pytest.approx(engine.local(child, parents) + prior, rel=1e-9, abs=1e-8)


def sample(rows=300):
    dataset = read("examples/alarm.csv")
    return Dataset(dataset.names, dataset.states, dataset.codes[:, :rows].copy())


def grown(dataset, left=lambda: float("inf"), **options):
    allowed = Knowledge().resolve(dataset.names, dataset.n - 1)
    engine = Score("bdeu").engine(dataset)
    found = Growth(engine, dataset.names, allowed, Stamp(), **options)
    found.run(left)
    return found


def test_each_network_on_the_way_is_better_and_has_its_score():
    dataset = sample()
    engine = Score("bdeu").engine(dataset)
    seen = []
    found = grown(dataset, on_network=lambda network, score: seen.append((network, score)))
    assert found.finished
    assert [score for _, score in seen] == sorted({score for _, score in seen})
    assert found.score == seen[-1][1]
    for network, score in seen:
        again = sum(engine.local(child, its) for child, its in enumerate(network.parents))
        assert score == pytest.approx(again, rel=1e-9)
    best = solve(identify(dataset, CandidateSearch(2)), "exact")
    assert best.proved
    assert found.score >= best.score - 1e-6
    assert found.solution().score == found.score


def test_the_seed_alone_decides():
    dataset = sample()
    one = grown(dataset, workers=Workers(1), seed=5)
    two = grown(dataset, workers=Workers(2), seed=5)
    assert one.network == two.network
    assert np.array_equal(one.candidates().scores, two.candidates().scores)


def test_a_search_in_parts_is_the_search_in_one_go():
    dataset = sample()
    whole = grown(dataset)
    parts = grown(dataset, left=calls(60))
    assert not parts.finished
    parts.run()
    assert parts.finished
    assert parts.score == pytest.approx(whole.score, rel=1e-9)


def calls(count):
    """A clock with time left for this number of questions."""
    asked = []

    def left():
        asked.append(1)
        return 1e9 if len(asked) < count else 0.0

    return left


def test_permuted_columns_change_no_score():
    dataset = sample()
    turned = dataset.select(np.random.default_rng(0).permutation(dataset.n))
    assert grown(dataset).score == pytest.approx(grown(turned).score, rel=1e-9)


@pytest.mark.parametrize("count", [1, 5, 20])
def test_it_ends_when_no_time_is_left(count):
    found = grown(sample(), left=calls(count))
    assert not found.finished
    assert len(found.network.parents) == 37


def test_an_interrupt_ends_it():
    interrupt = Interrupt()
    found = grown(sample(), interrupt=interrupt, on_network=lambda *_: interrupt.press())
    assert not found.finished
    assert len(found.network.parents) == 37


def test_it_goes_on_from_a_network():
    dataset = sample()
    best = grown(dataset)
    scores = []
    again = grown(dataset, start=best.network, on_network=lambda _, score: scores.append(score))
    assert scores[0] == pytest.approx(best.score, rel=1e-9)
    assert again.score >= best.score - 1e-6


def test_larger_sets_join_those_of_an_exhaustive_search():
    dataset = parity(4, 9, rows=800)
    every = identify(dataset, CandidateSearch(2))
    exhaustive = identify(dataset, CandidateSearch(4))
    joined = with_larger(every, exhaustive)
    found = {tuple(its) for vertex in range(9) for its, _ in joined.of(vertex)}
    assert (0, 1, 2, 3) in found
    assert joined.stamp.grown == sum(len(its) > 2 for v in range(9) for its, _ in joined.of(v))
    for vertex in range(9):
        assert list(joined.of(vertex)) == list(exhaustive.of(vertex))
    best = solve(joined, "exact")
    assert best.proved
    assert "larger ones" in best.describe_gap()


@pytest.mark.parametrize("n", [1, 2])
def test_few_variables(n):
    found = grown(sample().select(np.arange(n)))
    assert found.finished
    assert len(found.network.parents) == n


def test_an_order_of_variables_holds():
    dataset = sample().select(np.arange(8))
    first, last = dataset.names[5], dataset.names[1]
    known = Knowledge(before=[(first, last)])
    engine = Score("bdeu").engine(dataset)
    found = Growth(engine, dataset.names, known.resolve(dataset.names, 7), Stamp())
    found.run()
    ancestors = nx.ancestors(nx.DiGraph(found.network.edges), first) if found.network.edges else ()
    assert last not in ancestors


def test_a_network_that_is_given_is_not_lost_without_time():
    dataset = sample()
    best = grown(dataset)
    again = grown(dataset, left=calls(1), start=best.network)
    assert again.score == pytest.approx(best.score, rel=1e-9)
    assert again.solution().score == again.score


def test_a_step_that_was_stopped_goes_on_with_the_other_children():
    dataset = sample(200)
    whole = started(dataset, Score("bdeu"))
    assert whole.beam(4)
    allowed = Knowledge().resolve(dataset.names, dataset.n - 1)
    asked = []

    def stop():
        asked.append(None)
        return len(asked) % 7 == 0

    parts = Growing(Score("bdeu").engine(dataset), allowed, workers=Workers(1), stop=stop)
    calls = 1
    while not parts.start():
        calls += 1
    assert calls > 2
    parts.stop = lambda: False
    assert parts.beam(4)
    assert grown_sets(parts, dataset.names) == grown_sets(whole, dataset.names)


def test_a_search_in_many_short_runs_comes_to_its_end():
    dataset = sample(200)
    allowed = Knowledge().resolve(dataset.names, dataset.n - 1)
    found = Growth(Score("bdeu").engine(dataset), dataset.names, allowed, Stamp())
    scores = []
    for _ in range(2000):
        end = time.perf_counter() + 0.02
        found.run(lambda end=end: end - time.perf_counter())
        scores.append(found.score)
        if found.finished:
            break
    assert found.finished
    assert scores == sorted(scores)
    assert found.score >= 1.01 * grown(dataset).score


def test_restarts_end_and_the_seed_decides_them():
    random = np.random.default_rng(2)
    rows = random.normal(size=(80, 12))
    for v in range(1, 12):
        rows[:, v] += rows[:, random.integers(0, v, 3)] @ [1.0, -0.7, 0.4]
    dataset = table_of_numbers(rows)
    allowed = Knowledge().resolve(dataset.names, 11)
    found = []
    for restarts in (None, 2, 2):
        engine = Score("bic").engine(dataset)
        growth = Growth(engine, dataset.names, allowed, Stamp("bic"), restarts=restarts)
        growth.run()
        assert growth.finished
        found.append(growth)
    assert found[1].score >= found[0].score - 1e-6
    assert found[1].score == found[2].score and found[1].network == found[2].network
