"""The constrained form, Appendix D.4 of the paper: its least objective is minus the best score."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from formulation_cases import (
    all_energies,
    candidates_of,
    crowded_scores,
    random_scores,
    split_subsets,
    state_of,
    subsets_of,
)
from qubayes import SettingError
from qubayes.qubo import annealer_problem, constrain, formulate, to_bqm, to_cqm
from reference import energies as reference


def instances(count: int, seed: int):
    random = np.random.default_rng(seed)
    while count:
        crowded = count % 2 == 0
        scores = (
            crowded_scores(random, 4, 2)
            if crowded
            else random_scores(random, 4, 2, 0.3, required=count % 3 == 0)
        )
        candidates = candidates_of(scores)
        for order, penalty in (("chordal", "tight"), ("scc", "paper")):
            formulation = formulate(
                candidates, split_subsets(random, candidates), order=order, penalty=penalty
            )
            if 0 < formulation.bits["u"] + formulation.bits["r"] <= 13:
                yield scores, formulation
                count -= 1
                if not count:
                    return


def satisfying(model, labels, bits: int):
    """(state, objective) of every state that satisfies the model's constraints."""
    states = np.array([state_of(index, bits) for index in range(1 << bits)]).astype(float)
    column = {label: states[:, number] for number, label in enumerate(labels)}
    fits = np.ones(len(states), np.bool_)
    for constraint in model.constraints.values():
        left = (
            sum(weight * column[label] for label, weight in constraint.lhs.linear.items())
            + constraint.lhs.offset
        )
        compare = {"<=": np.less_equal, ">=": np.greater_equal, "==": np.equal}[
            constraint.sense.value
        ]
        fits &= compare(left, constraint.rhs)
    energies = model.objective.energies((states[fits], list(labels)))
    return states[fits], energies


@pytest.mark.parametrize("ordering", ["penalties", "inequalities"])
def test_least_objective_under_the_constraints(ordering):
    inequalities = 0
    for scores, formulation in instances(24, 0):
        labels = [label for label in formulation.labels if label[0] != "z"]
        model = to_cqm(formulation, ordering=ordering)
        states, energies = satisfying(model, labels, len(labels))
        best = reference.best_score_of_orders(scores)
        assert energies.min() == pytest.approx(-best)
        inequalities += sum(label.startswith("subsets") for label in model.constraints)
        # then every state that fits is a network, and its objective at least -best
        if ordering == "inequalities":
            assert (energies >= -best - 1e-9).all()
        assert len(states)
    assert inequalities


def test_the_parts_add_up_to_the_qubo_without_its_penalty_on_subsets():
    for _, formulation in instances(10, 1):
        form = constrain(formulation)
        whole = all_energies(formulation.qubo)
        score, cycles = all_energies(form.score), all_energies(form.cycles)
        for index in range(0, len(score), 3):
            state = state_of(index, len(form.labels))
            counts = [
                int(state[first:last].sum())
                for first, last in zip(*_ranges(formulation), strict=True)
            ]
            if max(counts) <= 1:  # neither z nor a pair of subsets
                assert score[index] + cycles[index] == pytest.approx(whole[index], abs=1e-9)


def _ranges(formulation):
    start = formulation.subsets.families.vertex_start
    return start[:-1], start[1:]


def test_for_a_digital_annealer():
    for _, formulation in instances(6, 2):
        problem, form = annealer_problem(formulation), constrain(formulation)
        assert to_bqm(problem.objective) == to_bqm(form.score) and to_bqm(
            problem.penalty
        ) == to_bqm(form.cycles)
        assert (
            len(problem.inequalities.constants)
            == len(form.groups)
            == sum(formulation.subsets.families.sizes > 2)
        )
        for number, (first, last) in enumerate(form.groups):
            begin, end = problem.inequalities.indptr[number : number + 2]
            assert problem.inequalities.indices[begin:end].tolist() == list(range(first, last))
            assert (
                set(problem.inequalities.weights[begin:end]) == {1.0}
                and problem.inequalities.constants[number] == -2.0
            )
        assert not any(label.startswith("z") for label in problem.labels)


def test_unknown_ordering_is_refused():
    _, formulation = next(instances(1, 3))
    with pytest.raises(SettingError, match="penalties, inequalities"):
        to_cqm(formulation, ordering="none")


def penalised_minimum(form, power: int) -> tuple[float, int]:
    """Least energy of score + cycles + lambda (excess over two)^power, and the largest excess of a minimiser."""
    energies = all_energies(form.score) + all_energies(form.cycles)
    states = (np.arange(len(energies))[:, None] >> np.arange(len(form.labels))) & 1
    active = [states[:, first:last].sum(axis=1) for first, last in form.groups]
    excesses = np.maximum(np.array(active).reshape(len(active), len(states)) - 2, 0)
    energies = energies + (np.array(form.lambdas)[:, None] * excesses**power).sum(axis=0)
    least = energies.min()
    return float(least), int(excesses[:, energies <= least + 1e-9].max(initial=0))


@pytest.mark.parametrize("power", [1, 2])
def test_lambdas_are_sound_for_linear_and_quadratic_penalties(power):
    """Lemma 4: every minimiser of the penalised form keeps to two subsets, and its energy is minus the best score."""
    limited = 0
    for scores, formulation in instances(30, 4):
        form = constrain(formulation)
        least, excess = penalised_minimum(form, power)
        assert least == pytest.approx(-reference.best_score_of_orders(scores)) and excess == 0
        limited += len(form.groups)
    assert limited > 15


def test_six_subsets_of_which_every_two_score():
    """All 15 pairs of six parents score 1 above the empty set: a penalty of xi for each excess is too small."""
    pairs = {frozenset(pair): -9.0 for pair in combinations(range(1, 7), 2)}
    scores = [{frozenset(): -10.0} | pairs, *({frozenset(): 0.0} for _ in range(6))]
    candidates = candidates_of(scores)
    formulation = formulate(
        candidates, subsets_of(candidates, [[(p,) for p in range(1, 7)], *[[]] * 6])
    )
    form = constrain(formulation)
    assert penalised_minimum(form, 1) == (9.0, 0) == penalised_minimum(form, 2)
    xi = int(np.ceil(formulation.penalties.at_most_two[0]))
    weak, excess = penalised_minimum(replace(form, lambdas=(xi,)), 1)
    assert xi == 3 and weak == 7.0 and excess == 4
    # the least whole number above g (mu - 1) / 2 = 5, with a margin of 1 %
    assert form.lambdas == (6,)


def test_constraints_carry_the_names_of_their_vertices():
    for seed in range(4):
        random = np.random.default_rng(seed)
        candidates = candidates_of(random_scores(random, 6, 3, 0.3))
        formulation = formulate(candidates, split_subsets(random, candidates))
        names = formulation.candidates.names
        labels = list(to_cqm(formulation, ordering="inequalities").constraints)
        assert [label for label in labels if label.startswith("subsets")] == [
            f"subsets[{names[vertex]}]"
            for vertex in np.flatnonzero(formulation.subsets.families.sizes > 2)
        ]
        corners = [
            ",".join(names[v] for v in corner) for corner in formulation.order.corners().tolist()
        ]
        assert corners and [label for label in labels if "ward" in label] == [
            f"{way}[{corner}]" for corner in corners for way in ("backward", "forward")
        ]


def test_a_required_edge_fixes_the_first_order_bit():
    s = frozenset
    candidates = candidates_of([{s(): -9.0, s([1]): -8.0}, {s([0]): -9.0}])
    formulation = formulate(candidates, subsets_of(candidates, [[(1,)], []]))
    assert formulation.bits["r"] == 1
    row = formulation.to_cqm(ordering="inequalities").constraints["required[v0->v1]"]
    first = formulation.order.pairs[0, 0] == 0
    assert row.sense.value == "==" and row.rhs == float(first)
