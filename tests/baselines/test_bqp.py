"""`bqp`: optimum, bound and start on SCIP and Gurobi; what is missing is said in one line."""

import time
from importlib.util import find_spec

import numpy as np
import pytest

from formulation_cases import candidates_of, crowded_scores
from qubayes import MissingPackageError, QubayesError, SettingError
from qubayes.qubo import formulate
from qubayes.qubo.subsets import cover
from qubayes.search import Limits, solve, solver_named
from qubayes_baselines import bqp
from solve_cases import TickingClock, best_score, formulated, random_candidates, with_required_edge

PACKAGES = {"scip": "pyscipopt", "gurobi": "gurobipy"}
BACKENDS = [name for name, package in PACKAGES.items() if find_spec(package)]


@pytest.mark.parametrize("order", ["chordal", "scc"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_optimum_is_proved(backend, order):
    random = np.random.default_rng(4)
    cases = [
        random_candidates(6, 3),
        with_required_edge(5, 6),
        candidates_of(crowded_scores(random, 5, 3)),
    ]
    for candidates in cases:
        formulation = formulate(candidates, cover(candidates), order=order)
        solution = solve(
            formulation, solver_named("bqp", backend=backend), limits=Limits(30.0, seed=1)
        )
        assert solution.score == pytest.approx(best_score(candidates), abs=1e-7)
        assert solution.proved and "proved optimal" in solution.status
        assert solution.statistics["backend"].lower() == backend


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_bound_of_an_unfinished_run_holds(backend):
    candidates = random_candidates(13, 4, sets=6)
    formulation, best = formulated(candidates), best_score(candidates)
    if backend == "gurobi" and formulation.bits["u"] + formulation.bits["r"] > 200:
        pytest.skip("too large for Gurobi without a licence")
    solution = solve(formulation, solver_named("bqp", backend=backend), limits=Limits(1.0))
    assert (
        best - 1e-7
        <= solution.bound
        < candidates.scores[candidates.families.vertex_start[:-1]].sum() - 1e-3
    )
    assert solution.score <= best + 1e-9


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_start_is_taken(backend):
    candidates = random_candidates(9, 8, sets=5)
    formulation = formulated(candidates)
    best = solve(candidates, "order-sa", limits=Limits(None, moves=20_000))
    assert best.score == pytest.approx(best_score(candidates))
    solution = solve(
        formulation, solver_named("bqp", backend=backend), limits=Limits(30.0), start=best.network
    )
    assert solution.score == best.score and solution.proved
    assert len(solution.trace) == 1  # the start was the best solution all along


@pytest.mark.skipif("scip" not in BACKENDS, reason="needs pyscipopt")
def test_products_of_the_start_satisfy_the_model():
    from pyscipopt import Model

    from qubayes.foundation.workers import Workers
    from qubayes.search.run import Run

    candidates = random_candidates(8, 8, sets=12)
    formulation = formulated(candidates)
    best = solve(candidates, "order-sa", limits=Limits(None, moves=20_000))
    run = Run(candidates, Limits(60.0), Workers(1), best.choice, lambda progress: None, "bqp")
    model = Model()
    model.hideOutput()
    bqp.build_scip_model(model, bqp.constrained_program(formulation, run), run)
    assert model.getNSols() == 1
    assert model.getSolObjVal(model.getSols()[0]) == pytest.approx(-best.score)


def test_a_model_that_is_not_built_in_time(set_clock):
    formulation, solver = (
        formulated(random_candidates(40, 1, sets=40)),
        solver_named("bqp", backend=BACKENDS[0]),
    )
    set_clock(TickingClock(1.0))
    solution = solve(formulation, solver, limits=Limits(10.0))
    assert "while the model was built" in solution.status and solution.score == solution.empty_score


@pytest.mark.skipif("gurobi" not in BACKENDS, reason="needs gurobipy")
def test_a_model_too_large_for_the_licence():
    formulation = formulated(random_candidates(30, 2, sets=30))
    gurobi = solver_named("bqp", backend="gurobi")
    try:
        solve(formulation, gurobi, limits=Limits(0.5))
    except bqp.LicenceError as error:
        assert isinstance(error, QubayesError)
        assert "set the backend to scip" in str(error) and "\n" not in str(error)
        if "scip" in BACKENDS:
            assert (
                solve(formulation, "bqp", limits=Limits(1.0)).statistics.get("backend", "SCIP")
                == "SCIP"
            )
    else:
        pytest.skip("Gurobi has a full licence here")


@pytest.mark.parametrize("backend", ["scip", "gurobi"])
def test_a_missing_package_is_named(monkeypatch, backend):
    monkeypatch.setattr(bqp, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=f"pip install {PACKAGES[backend]}$"):
        solve(formulated(random_candidates(4, 0)), solver_named("bqp", backend=backend))


def test_an_unknown_backend():
    with pytest.raises(SettingError, match="choose one of auto, scip, gurobi"):
        solver_named("bqp", backend="cplex")


@pytest.mark.skipif("gurobi" not in BACKENDS, reason="needs gurobipy")
def test_gurobi_looks_at_the_clock_while_it_builds(monkeypatch):
    import gurobipy

    monkeypatch.setattr(bqp, "gurobi_limited_in_size", lambda: False)
    monkeypatch.setattr(bqp, "ROWS", 10)
    add, pieces = gurobipy.Model.addMConstr, []

    def slow(*arguments):
        pieces.append(arguments)
        time.sleep(0.6)
        return add(*arguments)

    monkeypatch.setattr(gurobipy.Model, "addMConstr", slow)
    formulation = formulated(random_candidates(20, 1, sets=20))
    solution = solve(formulation, solver_named("bqp", backend="gurobi"), limits=Limits(0.5))
    assert "while the model was built for Gurobi" in solution.status
    assert len(pieces) <= 1 and 2 * len(formulation.order.triangles) > 20
