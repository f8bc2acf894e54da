"""The constrained form (Appendix D.4): over the states that satisfy it, the least energy is minus the best score."""

import numpy as np
import pytest

from formulation_cases import candidates_of, crowded_scores, random_scores, split_subsets, state_of
from qubayes.foundation.errors import SettingError
from qubayes.qubo import annealer_problem, constrain, formulate, to_bqm, to_cqm
from reference import energies as reference
from test_formulation_minimum import all_energies


def instances(count: int, seed: int):
    random = np.random.default_rng(seed)
    while count:
        crowded = count % 2 == 0
        scores = crowded_scores(random, 4, 2) if crowded else random_scores(random, 4, 2, 0.3, required=count % 3 == 0)
        candidates = candidates_of(scores)
        for order, penalty in (("chordal", "tight"), ("scc", "paper")):
            formulation = formulate(candidates, split_subsets(random, candidates), order=order, penalty=penalty)
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
        left = sum(weight * column[label] for label, weight in constraint.lhs.linear.items()) + constraint.lhs.offset
        compare = {"<=": np.less_equal, ">=": np.greater_equal, "==": np.equal}[constraint.sense.value]
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
        if ordering == "inequalities":  # then every state that fits is a network, and its objective at least -best
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
            counts = [int(state[first:last].sum()) for first, last in zip(*_ranges(formulation), strict=True)]
            if max(counts) <= 1:  # neither z nor a pair of subsets
                assert score[index] + cycles[index] == pytest.approx(whole[index], abs=1e-9)


def _ranges(formulation):
    start = formulation.subsets.families.vertex_start
    return start[:-1], start[1:]


def test_for_a_digital_annealer():
    for _, formulation in instances(6, 2):
        problem, form = annealer_problem(formulation), constrain(formulation)
        assert to_bqm(problem.objective) == to_bqm(form.score) and to_bqm(problem.penalty) == to_bqm(form.cycles)
        assert len(problem.inequalities.constants) == len(form.groups) == sum(formulation.subsets.families.sizes > 2)
        for number, (first, last) in enumerate(form.groups):
            begin, end = problem.inequalities.indptr[number : number + 2]
            assert problem.inequalities.indices[begin:end].tolist() == list(range(first, last))
            assert (
                set(problem.inequalities.weights[begin:end]) == {1.0} and problem.inequalities.constants[number] == -2.0
            )
        assert not any(label.startswith("z") for label in problem.labels)


def test_unknown_ordering_is_refused():
    _, formulation = next(instances(1, 3))
    with pytest.raises(SettingError, match="penalties, inequalities"):
        to_cqm(formulation, ordering="none")
