"""The posterior over networks: parent sets, sums and chains, against all networks of few variables."""

import math
from itertools import combinations

import numpy as np
import polars
import pytest

import qubayes as qb
from posterior_cases import NAMES, matrix, random_lists, sets_from, shifted
from qubayes import NoResultError, SettingError
from qubayes.candidates import CandidateSearch, Knowledge, slack_sets, stamp_of
from qubayes.foundation.stop import Interrupt
from qubayes.foundation.workers import Workers
from qubayes.search.exact import sum_networks
from qubayes.search.posterior import Draws, read_draws, sample_networks
from reference.networks import edge_probabilities

ONE = Workers(1)


def random_table(seed: int, n: int = 4, rows: int = 40) -> qb.Dataset:
    """A chain of binary variables with noise."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 2, (n, rows))
    for v in range(1, n):
        x[v] = np.where(random.random(rows) < 0.7, x[v - 1], x[v])
    return qb.read(polars.DataFrame({NAMES[v]: x[v].tolist() for v in range(n)}))


def sets_of(dataset: qb.Dataset, most: int = 3, known: Knowledge | None = None, **options):
    search = CandidateSearch(max_parents=most, knowledge=known or Knowledge())
    allowed = search.knowledge.resolve(dataset.names, most)
    engine = search.score.engine(dataset)
    return slack_sets(engine, dataset.names, allowed, stamp_of(dataset, search), **options)


def all_scores(dataset: qb.Dataset, most: int, fair: bool = False):
    """Every set of at most `most` parents of each variable, with its score from the definition."""
    others = dataset.n - 1
    lists = []
    for child in range(dataset.n):
        pool = [v for v in range(dataset.n) if v != child]
        sets = [its for size in range(most + 1) for its in combinations(pool, size)]
        lists.append(
            [
                (
                    its,
                    qb.local_score(dataset, child, its, CandidateSearch().score.on(dataset))
                    - fair * math.log(math.comb(others, len(its))),
                )
                for its in sets
            ]
        )
    return lists


# Parent sets.


@pytest.mark.parametrize("prior", ["uniform", "fair"])
def test_with_much_slack_every_set_is_there_with_its_score(prior):
    dataset = random_table(1)
    found = sets_of(dataset, slack=1e9, prior=prior)
    expected = all_scores(dataset, 3, fair=prior == "fair")
    assert found.lost_bound == 0.0
    for child, its in enumerate(expected):
        first, last = found.families.vertex_start[child : child + 2]
        scores = found.scores[first:last]
        assert (np.diff(scores) <= 0).all()
        known = dict(zip(found.families.sets_of(child), scores.tolist(), strict=True))
        assert known == pytest.approx(dict(its), abs=1e-9)


def test_without_slack_the_sets_are_the_candidate_sets():
    dataset = random_table(2, n=5, rows=200)
    found = sets_of(dataset).candidates()
    expected = qb.identify(dataset, CandidateSearch(max_parents=3))
    assert list(map(found.families.set_at, range(len(found.scores)))) == list(
        map(expected.families.set_at, range(len(expected.scores)))
    )
    assert found.scores == pytest.approx(expected.scores, abs=1e-9)


@pytest.mark.parametrize("slack", [0.0, 0.5, 1.5])
def test_the_mass_that_is_lost_bounds_the_error(slack):
    dataset = random_table(3)
    lists = shifted(all_scores(dataset, 3))
    total, shares = edge_probabilities(lists)
    found = sets_of(dataset, slack=slack, most_lost=1.0)
    sums = sum_networks(found)
    top = sum(max(score for _, score in its) for its in all_scores(dataset, 3))
    lost = 1.0 - math.exp(sums.log_mass - top) / total
    assert 0.0 < lost <= found.lost_bound < 1.0
    assert np.abs(sums.edges - matrix(shares, 4)).max() <= lost + 1e-9


def test_the_slack_is_raised_until_little_is_lost():
    dataset = random_table(3)
    few = sets_of(dataset, slack=0.0, most_lost=1.0)
    more = sets_of(dataset, slack=0.0, most_lost=1e-4)
    assert few.lost_bound > 0.1 and more.lost_bound < 1e-4
    assert len(few.scores) < len(more.scores)


def test_threads_do_not_change_the_sets():
    dataset = random_table(4, n=5)
    one, two = sets_of(dataset, workers=ONE), sets_of(dataset, workers=Workers(2))
    assert np.array_equal(one.scores, two.scores) and np.array_equal(one.lost, two.lost)


# Chains.


def sampled(lists, *, steps: int = 60_000, summed: int = 0, **options):
    options = {"seconds": None, "draws": 0, "workers": ONE, **options}
    return sample_networks(sets_from(lists), steps=steps, most_summed=summed, **options)


@pytest.mark.parametrize(("n", "deviation"), [(3, 1.0), (4, 2.0), (4, 30.0)])
def test_chains_and_sums_against_all_networks(n, deviation):
    lists = random_lists(n, 5, deviation)
    _, shares = edge_probabilities(shifted(lists))
    found = sampled(lists)
    assert not found.exact.any() and not found.open.any()
    assert np.abs(found.edges - matrix(shares, n)).max() < 0.01
    exact = sampled(lists, summed=20)
    assert exact.exact.all() and not exact.errors.any()
    assert exact.edges == pytest.approx(matrix(shares, n), abs=1e-9)


def test_the_error_covers_the_truth():
    """Two standard errors of 20 edges in 8 runs cover 95 % of them on average."""
    lists = random_lists(5, 3, 2.0)
    truth = sampled(lists, summed=20).edges
    off = ~np.eye(5, dtype=bool)
    covered = []
    for seed in range(8):
        found = sampled(lists, steps=5000, seed=seed)
        covered.append((np.abs(found.edges - truth) <= found.errors)[off])
    assert np.mean(covered) > 0.85


@pytest.mark.parametrize("n", [8, 10])
def test_chains_against_exact_sums(n):
    random = np.random.default_rng(n)
    lists = [
        [
            (its, float(random.normal(-2.0 * len(its), 2.0)))
            for size in range(3)
            for its in combinations([v for v in range(n) if v != child], size)
        ]
        for child in range(n)
    ]
    found, exact = sampled(lists), sampled(lists, summed=20, steps=10)
    assert exact.exact.all() and not found.exact.any()
    assert np.abs(found.edges - exact.edges).max() < 0.02


def test_seeds_and_threads():
    lists = random_lists(5, 6, 2.0)
    one = sampled(lists, steps=3000, draws=20)
    two = sampled(lists, steps=3000, draws=20, workers=Workers(3))
    other = sampled(lists, steps=3000, draws=20, seed=1)
    assert np.array_equal(one.edges, two.edges) and not np.array_equal(one.edges, other.edges)
    assert np.array_equal(one.draws.choices, two.draws.choices)


# From data to probabilities.


def test_from_data_against_all_networks():
    dataset = random_table(5)
    for prior in ("uniform", "fair"):
        _, shares = edge_probabilities(shifted(all_scores(dataset, 3, fair=prior == "fair")))
        found = qb.posterior(dataset, seconds=None, steps=20_000, draws=400, prior=prior)
        assert np.abs(found.edges - matrix(shares, 4)).max() <= found.lost + 1e-9
        assert np.abs(found.draws.edges() - found.edges).max() < 0.12
        assert found.converged and found.prior == prior and found.ess == 1.0
        assert prior in found.title and "certified" in found.verdict


def test_required_and_forbidden_edges_keep_1_and_0():
    known = Knowledge(required=[("a", "b")], forbidden=[("c", "d")])
    search = CandidateSearch(max_parents=3, knowledge=known)
    dataset = random_table(6)
    lists = all_scores(dataset, 3)
    lists[1] = [(its, score) for its, score in lists[1] if 0 in its]
    lists[3] = [(its, score) for its, score in lists[3] if 2 not in its]
    _, shares = edge_probabilities(shifted(lists))
    found = qb.posterior(dataset, search, seconds=None, steps=2000, draws=100)
    assert found.edges[0, 1] == 1.0 and found.edges[2, 3] == 0.0
    assert found.draws.edges()[0, 1] == 1.0 and found.draws.edges()[2, 3] == 0.0
    assert np.abs(found.edges - matrix(shares, 4)).max() <= found.lost + 1e-9


def test_priors_of_edges_count():
    known = Knowledge(priors=[("a", "c", 3.0)])
    dataset = random_table(7)
    plain = qb.posterior(dataset, seconds=None, steps=500)
    search = CandidateSearch(max_parents=3, knowledge=known)
    found = qb.posterior(dataset, search, seconds=None, steps=500)
    odds = [p.edges[0, 2] / (1.0 - p.edges[0, 2]) for p in (plain, found)]
    assert odds[1] / odds[0] == pytest.approx(math.exp(3.0), rel=1e-2)


def test_variables_in_another_order():
    frame = random_table(8).to_polars()
    one = qb.posterior(frame, seconds=None, steps=500)
    two = qb.posterior(frame.select(["c", "a", "d", "b"]), seconds=None, steps=500)
    first, second = one.edge_probabilities(), two.edge_probabilities()
    assert {edge: second[edge] for edge in first} == pytest.approx(first, abs=0.005)


def test_scores_that_are_no_evidence_say_so():
    found = qb.posterior(
        random_table(1), CandidateSearch(score=qb.Score("bic")), seconds=None, steps=500
    )
    assert "no marginal likelihood" in found.title
    assert "no marginal" not in qb.posterior(random_table(1), seconds=None, steps=500).title


def test_numbers_have_a_posterior_too():
    random = np.random.default_rng(0)
    a = random.normal(size=60)
    b = a + random.normal(size=60)
    frame = polars.DataFrame({"a": a, "b": b, "c": random.normal(size=60)})
    dataset = qb.read(frame)
    score = CandidateSearch().score.on(dataset)
    pool = [[v for v in range(3) if v != child] for child in range(3)]
    lists = [
        [
            (its, qb.local_score(dataset, child, its, score))
            for size in range(3)
            for its in combinations(pool[child], size)
        ]
        for child in range(3)
    ]
    _, shares = edge_probabilities(shifted(lists))
    found = qb.posterior(dataset, seconds=None, steps=500)
    assert np.abs(found.edges - matrix(shares, 3)).max() <= found.lost + 1e-6


def test_possible_parents_hold_the_best_ones():
    dataset = random_table(9, n=5, rows=300)
    search = CandidateSearch(max_parents=2, possible_parents=2)
    found = qb.posterior(dataset, search, seconds=None, steps=2000)
    every = qb.posterior(dataset, CandidateSearch(max_parents=2), seconds=None, steps=2000)
    assert "possible parents" in found.among and "possible parents" not in every.among
    assert np.abs(found.joined - every.joined).max() < 0.15


def test_ctrl_c_keeps_the_draws_so_far():
    lists = random_lists(5, 6, 2.0)
    interrupt = Interrupt()

    def press(progress) -> None:
        interrupt.press()

    found = sampled(lists, steps=10**9, draws=10, interrupt=interrupt, on_progress=press)
    assert found.interrupted and len(found.draws) and 0 < found.steps < 10**6
    interrupt = Interrupt()
    with pytest.raises(NoResultError, match="parent sets"):
        qb.posterior(random_table(1), interrupt=interrupt, on_progress=press)


def test_the_time_limit_is_kept():
    found = sampled(random_lists(5, 6, 2.0), steps=None, seconds=0.3)
    assert 0.3 <= found.seconds < 3.0 and found.steps > 0


def test_stuck_chains_are_tempered():
    """All edges forward, or all backward: nothing between these two is likely."""
    n = 10
    forward = [tuple(v for v in (child - 2, child - 1) if v >= 0) for child in range(n)]
    backward = [tuple(v for v in (child + 1, child + 2) if v < n) for child in range(n)]
    lists = [
        [*((its, 0.0) for its in {one, other}), ((), -14.0)]
        for one, other in zip(forward[2:-2], backward[2:-2], strict=True)
    ]
    for child in (0, 1, n - 2, n - 1):
        ends = [(forward[child], -7.0 * (2 - len(forward[child])))]
        ends.append((backward[child], -7.0 * (2 - len(backward[child]))))
        lists.insert(child, [*dict([*ends, ((), -14.0)]).items()])
    found, exact = sampled(lists, steps=30_000), sampled(lists, summed=20, steps=10)
    assert exact.edges[4, 5] == pytest.approx(0.5, abs=0.01) and not exact.tempered
    assert found.tempered == n and np.abs(found.edges - exact.edges).max() < 0.2


# Draws and features.


def test_draws_as_a_file(tmp_path):
    dataset = random_table(10)
    found = qb.posterior(dataset, seconds=None, steps=2000, draws=60)
    found.draws.write(tmp_path / "draws.jsonl")
    again = read_draws(tmp_path / "draws.jsonl")
    assert len(again) == len(found.draws) and list(again) == list(found.draws)
    assert np.array_equal(again.scores, found.draws.scores) and again.about == found.title
    (tmp_path / "draws.jsonl").write_text('{"format": "other"}')
    with pytest.raises(qb.QubayesError):
        read_draws(tmp_path / "draws.jsonl")


def test_features_are_those_of_the_networks():
    found = qb.posterior(random_table(11), seconds=None, steps=20_000, draws=200)
    draws = found.draws
    network = draws[0]
    assert isinstance(network, qb.Network) and isinstance(draws[1:3], Draws)
    edges, paths, blankets = draws.edges(), found.paths(), found.markov_blankets()
    for a, b in combinations(range(4), 2):
        one, two = NAMES[a], NAMES[b]
        assert found.probability(f"{one} -> {two}") == pytest.approx(edges[a, b])
        assert found.probability(f"{one} -- {two}") == pytest.approx(edges[a, b] + edges[b, a])
        assert found.probability(f"{one} ~> {two}") == pytest.approx(paths[a, b])
        assert paths[a, b] >= edges[a, b] and blankets[a, b] == blankets[b, a]
        assert blankets[a, b] >= edges[a, b] + edges[b, a] - 1e-12
    assert found.probability(lambda each: True) == 1.0
    expected = np.mean([(0, 2, 1) in qb.network.v_structures(each) for each in draws])
    assert found.probability("a -> c <- b") == pytest.approx(expected)
    for words in ("a => b", "a -> x", "a -> b -> c"):
        with pytest.raises(SettingError):
            found.probability(words)


def test_what_users_see():
    dataset = random_table(12)
    found = qb.posterior(dataset, seconds=None, steps=20_000, draws=40)
    frame = found.to_frame()
    assert list(frame.columns)[:3] == ["parent", "child", "probability"]
    assert len(frame) == len(found.edge_probabilities(0.001))
    value = found.as_json()
    assert value["prior"] == "uniform" and value["ess"] == 1.0 and value["converged"]
    assert "equivalent sample size 1, uniform prior" in "\n".join(found.describe())
    assert found.consensus().names == dataset.names
    arviz = found.to_arviz()
    chains, each, edges = arviz["posterior"]["edge"].shape
    assert chains == 4 and each == 10 and edges == len(arviz["coords"]["arc"])
    confidence = qb.bootstrap(dataset, CandidateSearch(max_parents=2), 4)
    rows = found.compare(confidence)
    assert rows and all(abs(r[2] - r[3]) <= abs(rows[0][2] - rows[0][3]) for r in rows)


def test_probabilities_are_averaged_over_networks():
    dataset = random_table(13)
    found = qb.posterior(dataset, seconds=None, steps=2000, draws=5)
    answers = [
        qb.fit(network, dataset).probability({"b": 1}, given={"a": 0}) for network in found.draws
    ]
    assert found.average(dataset, {"b": 1}, given={"a": 0}) == pytest.approx(np.mean(answers))
    assert sum(found.average(dataset, "b", given={"a": 0}).values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "wrong", [{"prior": "flat"}, {"seconds": None}, {"chains": 0}, {"seconds": -1.0}, {"draws": -1}]
)
def test_settings_outside_what_is_allowed(wrong):
    with pytest.raises(SettingError):
        qb.posterior(random_table(1), **wrong)


def test_an_order_of_variables_is_refused():
    search = CandidateSearch(knowledge=Knowledge(before=[("a", "b")]))
    with pytest.raises(SettingError, match="order of variables"):
        qb.posterior(random_table(1), search)
