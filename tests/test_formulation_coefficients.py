"""Scaled penalties, rounded coefficients, true scores of unions from data: what is promised of each, by exhaustion."""

import json

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

from formulation_cases import (
    TIGHT,
    all_energies,
    candidates_of,
    random_scores,
    split_subsets,
    state_of,
    whole_subsets,
)
from qubayes import QubayesError
from qubayes.candidates import Candidates, CandidateSearch, Stamp, identify, write_candidates
from qubayes.cli import app
from qubayes.data import read
from qubayes.machines import read_qubo
from qubayes.qubo import Coefficients, data_scores, decode, encode_sets, energy, formulate
from qubayes.qubo.subsets import cover, write_subsets
from qubayes.scores import Score, local_score
from reference import energies as reference
from test_formulation_paper import paper_energy_of, paper_problem


def small_problems(count: int, seed: int, most: int = 14):
    random = np.random.default_rng(seed)
    while count:
        scores = random_scores(
            random, int(random.integers(3, 6)), 2, 0.25, required=int(random.integers(2))
        )
        candidates = candidates_of(scores)
        subsets = split_subsets(random, candidates)
        if 0 < formulate(candidates, subsets).qubo.bits <= most:
            yield scores, candidates, subsets
            count -= 1


@pytest.mark.parametrize("settings", [{"digits": 0}, {"digits": 1}, {"bits": 6}, {"bits": 10}])
@pytest.mark.parametrize("mode", [("chordal", "tight"), ("scc", "paper")])
def test_rounding_loses_no_more_than_is_stated(settings, mode):
    """Every minimiser of the rounded QUBO is a network, best by rounded scores and at most the error below the best."""
    lost = 0
    for scores, candidates, subsets in small_problems(25, 1):
        written = Coefficients(**settings)
        formulation = formulate(
            candidates, subsets, order=mode[0], penalty=mode[1], coefficients=written
        )
        step, qubo = formulation.step, formulation.qubo
        steps = np.concatenate([qubo.h, qubo.weights]) / step
        assert np.abs(steps - np.rint(steps)).max(initial=0) < 1e-6
        if "bits" in settings:
            assert np.abs(steps).max() <= 2 ** (settings["bits"] - 1) - 1 + 1e-6
        else:
            assert step == 10.0 ** -settings["digits"]
        assert formulation.rounding_error == step * sum(len(known) > 1 for known in scores)
        energies, best = all_energies(qubo), reference.best_score_of_orders(scores)
        rounded = [
            {
                p: known[base] + round((score - known[base]) / step) * step
                for p, score in known.items()
            }
            for known, base in ((known, reference.base_of(known)) for known in scores)
        ]
        assert energies.min() == pytest.approx(-reference.best_score_of_orders(rounded))
        for index in np.flatnonzero(energies <= energies.min() + 1e-9).tolist()[:20]:
            found = decode(formulation, state_of(index, qubo.bits))
            assert found.feasible and found.score >= best - formulation.rounding_error - 1e-9
            true = sum(
                reference.closure(k, frozenset(p))
                for k, p in zip(scores, found.parents, strict=True)
            )
            assert found.score == pytest.approx(true)
            lost += found.score < best - 1e-6
    if settings in ({"digits": 0}, {"bits": 6}):
        assert lost  # the error is real


@pytest.mark.parametrize("settings", [{"digits": 0}, {"bits": 6}])
def test_gains_are_the_nearest_multiples_of_the_step(settings):
    for _, candidates, subsets in small_problems(6, 1):
        formulation = formulate(candidates, subsets, coefficients=Coefficients(**settings))
        gains = candidates.scores - np.repeat(candidates.base_scores, candidates.families.sizes)
        nearest = np.rint(gains / formulation.step) * formulation.step
        np.testing.assert_allclose(formulation.relative.gains, nearest, atol=1e-9)


def test_more_bits_mean_a_smaller_error():
    _, candidates, subsets = next(small_problems(1, 3))
    errors = [
        formulate(candidates, subsets, coefficients=Coefficients(bits=b)).rounding_error
        for b in (5, 8, 12, 20)
    ]
    assert errors == sorted(errors, reverse=True) and errors[-1] < errors[0] / 1000


@pytest.mark.parametrize("name", TIGHT)
def test_a_scale_below_the_bound_is_said_and_lets_a_wrong_state_win(name):
    scores, lists = TIGHT[name]
    candidates = candidates_of(scores)
    subsets = whole_subsets(candidates) if lists is None else None
    kind = {"edges": "edge", "triangles": "triangle", "required": "edge"}.get(name, "slack")
    best = reference.best_score_of_orders(scores)
    plain = formulate(candidates, subsets or _subsets(candidates, lists))
    for factor, weak in ((0.999, False), (0.97, True), (3.0, False)):
        made = formulate(candidates, plain.subsets, coefficients=Coefficients({kind: factor}))
        assert (kind in made.weak) == weak
        assert (all_energies(made.qubo).min() < -best - 0.1) == weak
    raised = formulate(
        candidates, plain.subsets, coefficients=Coefficients({"order": 2.0, "slack": 3.0})
    )
    for field, factor in (
        ("edges", 2.0),
        ("triangles", 2.0),
        ("required", 2.0),
        ("at_most_two", 3.0),
    ):
        expected = getattr(plain.penalties, field) * factor
        np.testing.assert_allclose(getattr(raised.penalties, field), expected)


def _subsets(candidates, lists):
    from formulation_cases import subsets_of

    return subsets_of(candidates, lists)


@pytest.mark.parametrize("kind", ["edge", "order", "slack"])
def test_a_penalty_that_the_qubo_does_not_have_is_not_weak(kind):
    """Nothing can violate a required edge that no cycle can reach: there is no order bit for it."""
    required = candidates_of([{frozenset(): -1.0}, {frozenset([0]): -1.0}])
    made = formulate(required, coefficients=Coefficients(scale={kind: 2.0}))
    assert made.qubo.bits == 0 and made.weak == ()


def test_bad_settings_are_refused():
    for settings, words in [
        ({"scale": {"edges": 1.0}}, "order, edge, triangle, slack"),
        ({"scale": {"slack": 0.0}}, "positive"),
        ({"digits": 2, "bits": 8}, "one of them"),
        ({"digits": 13}, "0 to 12"),
        ({"bits": 1}, "2 to 53"),
    ]:
        with pytest.raises(QubayesError, match=words):
            Coefficients(**settings)
    candidates = candidates_of([{frozenset(): -2.0, frozenset([1]): -1.0}, {frozenset(): -1.0}])
    with pytest.raises(QubayesError, match="scores of unions"):
        formulate(
            candidates,
            union_scores=lambda v, s: [0.0] * len(s),
            coefficients=Coefficients(digits=1),
        )


@pytest.fixture(scope="module")
def table():
    """Data of six variables in which unions of subsets are often not candidate sets."""
    random = np.random.default_rng(1)
    columns = {"a": random.integers(0, 3, 300), "b": random.integers(0, 2, 300)}
    columns["c"] = (columns["a"] + columns["b"] + random.integers(0, 2, 300)) % 3
    columns["d"] = (columns["c"] * columns["b"] + (random.random(300) < 0.2)) % 2
    columns["e"] = (columns["a"] + columns["d"] + (random.random(300) < 0.3)) % 3
    columns["f"] = (columns["e"] + columns["b"] * (random.random(300) < 0.7)).astype(int) % 2
    return polars.DataFrame({name: column.astype(int) for name, column in columns.items()})


def test_true_scores_from_data_give_the_papers_coefficients(table, tmp_path):
    """`formulate --data DATA --order scc --penalty paper` is H of the paper, whose log S is the score on the data."""
    dataset = read(table)
    found = identify(dataset, CandidateSearch(2, Score("bdeu", 1.0)))
    subsets = cover(found)
    table.write_csv(tmp_path / "data.csv")
    write_candidates(found, tmp_path / "sets.qbc")
    write_subsets(subsets, tmp_path / "sets.qbs")
    options = [
        "--order",
        "scc",
        "--penalty",
        "paper",
        "--subsets",
        str(tmp_path / "sets.qbs"),
        "--json",
    ]
    command = ["formulate", str(tmp_path / "sets.qbc"), "-o", str(tmp_path / "m.bqm"), *options]
    done = CliRunner().invoke(app, [*command, "--data", str(tmp_path / "data.csv")])
    assert done.exit_code == 0, done.exception
    qubo, labels = read_qubo(tmp_path / "m.bqm")

    def log_score(vertex, parents):
        parents = sorted(parents) if len(parents) <= 2 else []
        return local_score(dataset, vertex, parents, Score("bdeu", 1.0))

    scores = [
        {frozenset(p): log_score(v, p) for p in found.families.sets_of(v)} for v in range(found.n)
    ]
    slow = paper_problem(scores, subsets, log_score)
    closure = formulate(found, subsets, order="scc", penalty="paper")
    assert len(labels) == qubo.bits == closure.qubo.bits
    random, differs = np.random.default_rng(0), 0
    for _ in range(100):
        state = random.random(qubo.bits) < random.random()
        assert float(energy(qubo, state)) == pytest.approx(paper_energy_of(slow, state), rel=1e-9)
        differs += abs(float(energy(qubo, state)) - float(energy(closure.qubo, state))) > 1e-6
    assert differs > 30  # closure scores of unions are others


def test_data_that_do_not_give_the_scores_are_refused(table):
    dataset = read(table)
    found = identify(dataset, CandidateSearch(2, Score("bdeu", 1.0)))
    other = read(table.select("a", "b", "c", "d", "e"))
    with pytest.raises(QubayesError, match="no column 'f'"):
        data_scores(found, other)
    with pytest.raises(QubayesError, match="in the candidate sets; give the data"):
        data_scores(found, dataset, Score("bic"))
    unknown = Candidates(found.names, found.families, found.scores, Stamp())
    with pytest.raises(QubayesError, match="give it with --score"):
        data_scores(unknown, dataset)
    again = data_scores(
        unknown, read(table.select("f", "b", "c", "d", "e", "a")), Score("bdeu", 1.0)
    )
    first = found.families.set_at(0)
    assert again(0, [first])[0] == pytest.approx(float(found.scores[0]))


def test_options_on_the_command_line(table, tmp_path):
    write_candidates(identify(read(table), CandidateSearch(2)), tmp_path / "sets.qbc")

    def run(*options: str):
        return CliRunner().invoke(app, ["formulate", str(tmp_path / "sets.qbc"), *options])

    plain, rounded = (json.loads(run("--json", *more).stdout) for more in ((), ("--digits", "1")))
    assert (
        plain["step"] is None
        and rounded["step"] == 0.1
        and rounded["rounding_error"] == pytest.approx(0.6)
    )
    weak = run("--scale", "order=0.5,slack=1.5")
    assert weak.exit_code == 0 and "penalties of edge, triangle are not above" in weak.stderr
    assert "rounding loses at most" in run("--bits-of-precision", "12").stdout
    for bad in (("--scale", "order"), ("--scale", "x=1"), ("--digits", "99")):
        assert isinstance(run(*bad).exception, QubayesError)


def test_a_rounded_formulation_encodes_networks():
    encoded = 0
    for _, candidates, subsets in small_problems(5, 9):
        formulation = formulate(candidates, subsets, coefficients=Coefficients(digits=0))
        chosen = candidates.families.best_of_order(range(candidates.n))
        if (chosen >= 0).all():
            bits, total = formulation.state_of(chosen)
            rounded = formulation.candidates.scores[chosen].sum()
            assert (
                total == pytest.approx(-rounded)
                and (bits == encode_sets(formulation, chosen)).all()
            )
            encoded += 1
    assert encoded > 2
