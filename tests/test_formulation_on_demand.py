"""Order bits on demand: what the search claims, and the theorems of docs/theory.md §10."""

import json
import zipfile
from itertools import combinations, product

import numpy as np
import pytest
from typer.testing import CliRunner

from formulation_cases import all_energies, candidates_of, random_scores, whole_subsets
from order_cases import HARMLESS, RING, best_relaxed_score, forward, problems, rings
from qubayes import QubayesError
from qubayes.candidates import write_candidates
from qubayes.cli import app
from qubayes.network import Network, write_network
from qubayes.qubo import Demand, OrderStatus, formulate, read_formulation
from reference import energies as reference

PROVED = OrderStatus(True)


@pytest.mark.parametrize("k", range(3, 12))
def test_a_cycle_without_chords_takes_few_extra_bits(k):
    """Theorem C: (t - 1 - v.y)(t - 2 - v.y) / 2 is positive for equal bits only, with ceil(log2(k - 1)) - 1 bits y."""
    extra = max(0, int(np.ceil(np.log2(k - 1))) - 1)
    weights = np.ones(k, int)
    weights[0] += k % 2 == 0
    left, values = int(weights.sum()) - 3, []
    for place in range(extra):
        values.append(min(2 ** (place + 1), left - sum(values)))
    assert sum(values) == left
    for x in product((0, 1), repeat=k):
        t = int(np.dot(weights, x))
        ends = [
            t - 1 - sum(v for v, y in zip(values, bits, strict=True) if y)
            for bits in product((0, 1), repeat=extra)
        ]
        least = min(end * (end - 1) // 2 for end in ends)
        assert least == (len(set(x)) == 1)


def test_four_vertices_have_no_quadratic_penalty_without_an_extra_bit():
    """Theorem C, k = 4: the only quadratic function that vanishes on all but the two equal states is 0."""
    states = [x for x in product((0, 1), repeat=4) if len(set(x)) > 1]
    rows = [[1, *x, *(a * b for a, b in combinations(x, 2))] for x in states]
    assert np.linalg.matrix_rank(np.array(rows)) == 11


def test_a_parent_that_is_always_allowed_is_folded_into_the_scores():
    """Theorem D (iii), with a one-way pair without an order bit."""
    folded = 0
    for random, scores, candidates, _, default, near in problems(9, 60, most=40):
        arcs = candidates.families.arcs()
        for parent, child in np.argwhere(arcs & ~arcs.T).tolist():
            bits = {
                pair
                for pair in default - {(min(parent, child), max(parent, child))}
                if random.random() < 0.7
            }
            known: dict = {}
            for members, score in scores[child].items():
                rest = members - {parent}
                known[rest] = max(score, known.get(rest, -np.inf))
            changed = [known if vertex == child else given for vertex, given in enumerate(scores)]
            found = best_relaxed_score(changed, bits, near)
            assert found == pytest.approx(best_relaxed_score(scores, bits, near))
            folded += 1
    assert folded > 20


def test_a_pendant_is_dropped():
    """Theorem D (iv): a vertex with a single neighbour, and what it lowers at that neighbour."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        scores = random_scores(random, 4, 2, 0.2)
        lone = random.uniform(-9.0, -1.0, 2)
        pendant = {frozenset(): float(lone.min()), frozenset([0]): float(lone.max())}
        with_it = {
            c | {4}: s + float(random.exponential(3.0)) for c, s in scores[0].items() if len(c) < 2
        }
        lowered = {c: s - float(np.ptp(lone)) for c, s in with_it.items()}
        whole = [scores[0] | with_it, *scores[1:], pendant]
        left = [scores[0] | lowered, *scores[1:], {frozenset(): float(lone.max())}]
        assert reference.best_score_of_orders(left) == pytest.approx(
            reference.best_score_of_orders(whole)
        )


@pytest.mark.parametrize("kind", ["dense", "required", "ring"])
def test_order_bits_on_demand_are_exact_on_small_problems(kind):
    """There the search finds every state below the known network, so the least energy is minus the best score."""
    saved, proved = 0, set()
    cases = rings(4, 15) if kind == "ring" else problems(4, 15, kind == "required")
    for random, scores, candidates, subsets, default, near in cases:
        # far from the best
        known = Network(candidates.names, tuple(candidates.base(v) for v in range(candidates.n)))
        demand = Demand(known if random.random() < 0.5 else None, sweeps=100, walks=20)
        made = formulate(candidates, subsets, order="adjacent", demand=demand)
        assert made.exact or made.order_status.walks == 20
        assert all_energies(made.qubo).min() == pytest.approx(
            -reference.best_score_of_orders(scores)
        )
        assert {(min(p), max(p)) for p in made.order.pairs.tolist()} <= default
        saved += len(default) - len(made.order.pairs)
        proved |= {made.exact} if near < default else set()
        chosen = candidates.families.best_of_order(forward(scores))
        assert made.state_of(chosen)[1] == pytest.approx(-candidates.scores[chosen].sum())
    assert saved > 2 and (kind != "ring" or proved == {False, True})


def without_search():
    """A problem that has order bits for fewer pairs than by default."""
    candidates = candidates_of(HARMLESS)
    return formulate(
        candidates, whole_subsets(candidates), order="adjacent", demand=Demand(seconds=0.0)
    )


def test_a_search_without_time_claims_nothing():
    """The bits of the start are left: networks keep their energies."""
    for random, scores, candidates, subsets, default, near in (*problems(7, 6), *rings(7, 9)):
        made = formulate(candidates, subsets, order="adjacent", demand=Demand(seconds=0.0))
        assert made.order_status == (
            PROVED if near == default else OrderStatus(False, 0, made.order_status.moves)
        )
        assert {(min(p), max(p)) for p in made.order.pairs.tolist()} <= near
        assert all_energies(made.qubo).min() == pytest.approx(
            -best_relaxed_score(scores, near, near)
        )
        order = random.permutation(len(scores)).tolist()
        chosen = candidates.families.best_of_order(order)
        assert made.state_of(chosen)[1] == pytest.approx(-candidates.scores[chosen].sum())
    made = without_search()
    assert not made.exact and "order bits: adjacent, not proved exact" in made.describe()


def test_the_same_seed_gives_the_same_order_bits():
    _, _, candidates, subsets, _, _ = next(problems(5, 1))
    first, second = (
        formulate(candidates, subsets, order="adjacent", demand=Demand(walks=9, seed=3))
        for _ in range(2)
    )
    assert first.checksum == second.checksum and first.labels == second.labels


def test_on_the_command_line(tmp_path):
    for name, scores, proved in (("ring", RING, True), ("harmless", HARMLESS, False)):
        write_candidates(candidates_of(scores), tmp_path / f"{name}.qbc")
        model = tmp_path / f"{name}.cqm"
        command = [
            "formulate",
            str(tmp_path / f"{name}.qbc"),
            "--order",
            "adjacent",
            "-o",
            str(model),
        ]
        done = CliRunner().invoke(app, [*command, "--json"])
        facts = json.loads(done.stdout)
        status = OrderStatus(**facts["order_status"])
        assert done.exit_code == 0 and facts["order"] == "adjacent" and status.proved == proved
        assert status.walks == (0 if proved else 1000) and status.moves == (
            0 if proved else 420 * 13
        )
        again = read_formulation(model)
        assert again.order_status == status and again.bits["r"] == facts["bits"]["r"]
        assert f"order bits: adjacent, {status}" in CliRunner().invoke(app, command).stdout
    stopped = CliRunner().invoke(app, [*command, "--order-time-limit", "0"])
    assert "order bits: adjacent, not proved exact" in stopped.stdout
    assert read_formulation(model).order_status.walks == 0


def test_the_search_for_order_bits_is_not_counted_as_assembling(tmp_path):
    write_candidates(candidates_of(HARMLESS), tmp_path / "harmless.qbc")
    command = ["formulate", str(tmp_path / "harmless.qbc"), "--order", "adjacent"]
    seconds = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["seconds"]
    assert seconds["order"] > 5 * seconds["assemble"] > 0  # 1000 walks beside a QUBO of eleven bits
    assert "s; order bits chosen in " in CliRunner().invoke(app, command).stdout


def test_statuses_of_files_of_version_0_1_0(tmp_path):
    """They are sentences, of which "exact" alone is a proof."""
    made = without_search()
    made.write(tmp_path / "model.bqm")
    for written, status in (
        ("exact", PROVED),
        ("settled: no state below was found", OrderStatus(False)),
    ):
        rewrite_settings(tmp_path / "model.bqm.qbf", order_status=written)
        assert read_formulation(tmp_path / "model.bqm").order_status == status
    for damaged in (
        {"proved": False, "walks": 1.5, "moves": 1, "found": 0},
        {"proved": True},
        None,
    ):
        rewrite_settings(tmp_path / "model.bqm.qbf", order_status=damaged)
        with pytest.raises(QubayesError, match="formulate again"):
            read_formulation(tmp_path / "model.bqm")


def rewrite_settings(path, **changed):
    """Change settings of a formulation's file."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents["settings.json"] = json.dumps(json.loads(contents["settings.json"]) | changed).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def test_presolve_and_a_given_network(tmp_path):
    candidates = candidates_of(HARMLESS)
    write_candidates(candidates, tmp_path / "a.qbc")
    write_network(Network(candidates.names, ((),) * 4), tmp_path / "empty.json")
    options = [
        "--order",
        "adjacent",
        "--presolve",
        "3",
        "--network",
        str(tmp_path / "empty.json"),
        "--json",
    ]
    done = CliRunner().invoke(app, ["formulate", str(tmp_path / "a.qbc"), *options])
    assert done.exit_code == 0, done.stderr


def test_bad_settings_are_refused():
    candidates = candidates_of(RING)
    with pytest.raises(QubayesError, match=r"chordal, scc, adjacent, proved$"):
        formulate(candidates, order="none")
    with pytest.raises(QubayesError, match="other variables"):
        formulate(candidates, order="adjacent", demand=Demand(Network(("a",), ((),))))
    with pytest.raises(QubayesError, match="give 1 or more"):
        Demand(sweeps=0)
    with pytest.raises(QubayesError, match="walks = 0; give 1 or more"):
        Demand(walks=0)
    with pytest.raises(QubayesError, match="time limit of -1"):
        Demand(seconds=-1)
    with pytest.raises(QubayesError, match="ordering = penalties"):
        without_search().to_cqm(ordering="inequalities")
