"""The wrapper of HiGHS against another solver, and its limits."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csc_array, csr_array

from qubayes.foundation.highs import Highs, LinearModel


def covering(seed: int, rows: int = 12, columns: int = 9) -> LinearModel:
    """Choose columns that cover all rows, at least cost."""
    random = np.random.default_rng(seed)
    matrix = (random.random((rows, columns)) < 0.4).astype(float)
    matrix[np.arange(rows), random.integers(columns, size=rows)] = 1.0
    return LinearModel(1.0 + random.random(columns), csr_array(matrix), row_lower=1.0, upper=1.0)


def least(model: LinearModel) -> float:
    return float(
        linprog(
            model.costs, -model.matrix.toarray(), -np.ones(model.matrix.shape[0]), bounds=(0, 1)
        ).fun
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_linear_program(seed):
    model = covering(seed)
    solved = Highs(solver="simplex").load(model).solve(60.0, np.zeros(1, np.bool_))
    assert solved.optimal and solved.feasible and solved.bound == -np.inf
    assert model.costs @ solved.values == pytest.approx(least(model))
    assert (
        solved.duals is not None and (model.matrix.T @ solved.duals <= model.costs + 1e-7).sum() > 0
    )


@pytest.mark.parametrize("seed", range(5))
def test_rows_and_columns_come_and_go(seed):
    model, highs = covering(seed), Highs(solver="simplex")
    dense, costs = model.matrix.toarray(), np.asarray(model.costs)
    highs.load(LinearModel(costs[:5], csr_array(dense[:6, :5]), row_lower=0.0, upper=1.0))
    highs.solve()
    highs.add_rows(csr_array(np.concatenate([np.ones((2, 5)), dense[6:, :5]])), lower=0.0)
    highs.delete_rows(np.array([6, 7]))
    highs.add_columns(costs[5:], csc_array(dense[:, 5:]), upper=1.0)
    assert highs.solve().values.sum() == 0.0
    basis = highs.basis
    highs.add_rows(csr_array(dense), lower=1.0)
    found = costs @ highs.solve().values
    assert found == pytest.approx(least(model))
    highs.bound_columns(np.arange(len(costs)), 1.0, 1.0)
    assert highs.solve().values.tolist() == [1.0] * len(costs)
    highs.bound_columns(np.arange(len(costs)), 0.0, 1.0)
    highs.forget_basis()
    assert costs @ highs.solve().values == pytest.approx(found) and basis is not None


@pytest.mark.parametrize("seed", range(5))
def test_a_mixed_integer_program(seed):
    model = covering(seed)
    dense, costs = model.matrix.toarray(), np.asarray(model.costs)
    choices = (np.arange(2 ** len(costs))[:, None] >> np.arange(len(costs))) & 1
    best = min(costs @ choice for choice in choices if (dense @ choice >= 1).all())
    highs = Highs(mip_rel_gap=0.0, mip_abs_gap=1e-9)
    highs.load(model._replace(integer=np.ones(len(costs), np.bool_)))
    highs.start_from(np.arange(len(costs)), np.ones(len(costs)))
    solved = highs.solve(60.0, np.zeros(1, np.bool_))
    assert solved.optimal and costs @ solved.values == pytest.approx(best) == solved.bound


def test_a_stopped_or_infeasible_program_is_not_optimal():
    model = covering(0)
    assert not Highs().load(model._replace(upper=0.0)).solve().feasible
    assert (
        not Highs(solver="simplex", presolve="off")
        .load(model)
        .solve(simplex_iteration_limit=0)
        .optimal
    )
    stopped = (
        Highs(mip_max_nodes=10**6).load(model._replace(integer=np.ones(9, np.bool_))).solve(0.0)
    )
    assert stopped.bound <= least(model) + 2.0


@pytest.mark.parametrize("integer", [False, True])
def test_an_interrupt_ends_any_program_and_can_be_taken_back(integer):
    """The flag is read in HiGHS's callbacks: the same object solves on as soon as it is cleared."""
    random = np.random.default_rng(0)
    model = covering(0, 300, 200)._replace(costs=1.0 + random.random(200))
    kinds = np.ones(200, np.bool_) if integer else None
    highs, stop = Highs(solver="simplex", presolve="off", mip_max_nodes=5), np.ones(1, np.bool_)
    highs.load(model._replace(integer=kinds))
    assert not highs.solve(60.0, stop).optimal
    stop[0] = False
    again = highs.solve(60.0, stop)
    assert integer or (again.optimal and model.costs @ again.values == pytest.approx(least(model)))
    assert not integer or again.feasible


def test_an_unknown_option_is_an_error():
    with pytest.raises(AssertionError, match="rejects the option speed"):
        Highs(speed=11)
