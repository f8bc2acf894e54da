"""Any dimod sampler as a solver: decoded, repaired, and its faults told by its name."""

import time

import dimod
import numpy as np
import pytest

from formulation_cases import candidates_of, random_scores, split_subsets, state_of
from qubayes import MissingPackageError, ServiceError, SettingError
from qubayes.qubo import decode, formulate
from qubayes.search import Limits, solve, solver_named
from reference import energies as exhaustive


def problem(seed: int = 0, n: int = 4):
    random = np.random.default_rng(seed)
    scores = random_scores(random, n, 2, 0.4)
    candidates = candidates_of(scores)
    return scores, formulate(candidates, split_subsets(random, candidates))


class Fixed(dimod.Sampler):
    """Returns what it was told to."""

    parameters: dict = {"time_limit": [], "seed": []}  # noqa: RUF012
    properties: dict = {}  # noqa: RUF012

    def __init__(self, answer=None) -> None:
        self.answer, self.given, self.model = answer, None, None

    def sample(self, bqm, **given):
        self.given, self.model = given, bqm
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(bqm) if callable(self.answer) else self.answer


def zeros(bqm, rows=1):
    return dimod.SampleSet.from_samples_bqm(
        (np.zeros((rows, len(bqm.variables)), np.int8), list(bqm.variables)), bqm
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_solver_of_dimod_finds_the_optimum(seed):
    random = np.random.default_rng(seed)
    scores = random_scores(random, 3, 2, 0.5)
    candidates = candidates_of(scores)
    formulation = formulate(candidates, split_subsets(random, candidates))
    solution = solve(
        formulation, solver_named("dimod", sampler=dimod.ExactSolver()), limits=Limits(60.0)
    )
    assert solution.score == pytest.approx(exhaustive.best_score_of_dags(scores))
    assert solution.statistics["samples"] == 2**formulation.qubo.bits
    states = (state_of(index, formulation.qubo.bits) for index in range(2**formulation.qubo.bits))
    assert solution.statistics["repaired"] == sum(
        not decode(formulation, state).feasible for state in states
    )
    assert "it takes no time limit" in solution.status


@pytest.mark.parametrize(
    "name",
    [
        "qubayes.qubo.samplers.dimod_bridge:SimulatedAnnealingSampler",
        "qubayes.qubo.samplers.dimod_bridge:DigitalAnnealingSampler",
    ],
)
def test_a_class_by_name_with_parameters_as_json(name):
    scores, formulation = problem(1)
    solver = solver_named("dimod", sampler=name, parameters='{"num_reads": 20, "threads": 2}')
    solution = solve(formulation, solver, limits=Limits(0.5, seed=3))
    assert solution.score == pytest.approx(exhaustive.best_score_of_dags(scores))
    assert solution.status.startswith(name.partition(":")[2])
    assert "time limit" not in solution.status


def test_samplers_of_dwave_work_too():
    samplers = pytest.importorskip("dwave.samplers")
    scores, formulation = problem(2)
    for solver, parameters in (
        (samplers.TabuSampler(), {}),
        (samplers.SimulatedAnnealingSampler(), {"num_reads": 50}),
    ):
        made = solver_named("dimod", sampler=solver, parameters=parameters)
        solution = solve(formulation, made, limits=Limits(0.5))
        assert solution.score == pytest.approx(exhaustive.best_score_of_dags(scores))
        assert solution.statistics["read"] >= 1


def test_time_limit_and_seed_are_passed_on_unless_given():
    _, formulation = problem()
    sampler = Fixed(zeros)
    solve(formulation, solver_named("dimod", sampler=sampler), limits=Limits(2.0, seed=9))
    assert sampler.given["seed"] == 9
    assert 1.0 < sampler.given["time_limit"] <= 1.9
    assert set(sampler.model.variables) == set(formulation.labels)
    own = {"seed": 1, "time_limit": 7}
    solve(
        formulation,
        solver_named("dimod", sampler=sampler, parameters=own),
        limits=Limits(2.0, seed=9),
    )
    assert sampler.given == own
    solve(formulation, solver_named("dimod", sampler=sampler), limits=Limits(None))
    assert sampler.given == {"seed": 0}
    sampler.parameters = {"interrupt_function": []}
    solve(formulation, solver_named("dimod", sampler=sampler), limits=Limits(None))
    assert sampler.given["interrupt_function"]() is False


def test_samples_that_there_is_no_time_for_are_not_read():
    _, formulation = problem()

    def slow(bqm):
        time.sleep(0.3)
        random = np.random.default_rng(0)
        return dimod.SampleSet.from_samples_bqm(
            (random.integers(0, 2, (500, len(bqm.variables)), np.int8), list(bqm.variables)), bqm
        )

    solution = solve(formulation, solver_named("dimod", sampler=Fixed(slow)), limits=Limits(0.2))
    assert solution.statistics["read"] == 1 < solution.statistics["samples"]
    assert "only the best was read in time" in solution.status


def test_milliseconds_where_the_parameter_is_called_timeout():
    _, formulation = problem()
    sampler = Fixed(zeros)
    sampler.parameters = {"timeout": []}
    solve(formulation, solver_named("dimod", sampler=sampler), limits=Limits(2.0))
    assert 1000 < sampler.given["timeout"] <= 1900


def test_samples_are_repaired_and_said_to_be():
    _, formulation = problem()
    sampler = Fixed(
        lambda bqm: dimod.SampleSet.from_samples_bqm(
            (np.ones((3, len(bqm.variables)), np.int8), list(bqm.variables)), bqm
        )
    )
    solution = solve(formulation, solver_named("dimod", sampler=sampler), limits=Limits(2.0))
    counts = {"sampler": "Fixed", "samples": 1, "read": 1, "repaired": 1}
    scores = {"raw_score": None, "repaired_score": solution.score, "before_annealing": None}
    assert solution.statistics == {**counts, **scores}
    assert "the best state broke constraints" in solution.status
    assert solution.score > solution.empty_score


def test_spins_and_another_order_of_variables_are_understood():
    scores, formulation = problem(1)

    def answer(bqm):
        best = solve(formulation, "sa", limits=Limits(None, moves=200_000))
        labels = formulation.labels[::-1]
        spins = 2 * best.bits[::-1].astype(np.int8) - 1
        return dimod.SampleSet.from_samples((spins[None], labels), energy=[0.0], vartype="SPIN")

    solution = solve(formulation, solver_named("dimod", sampler=Fixed(answer)), limits=Limits(5.0))
    assert solution.score == pytest.approx(exhaustive.best_score_of_dags(scores))


def nan_energy(bqm):
    return dimod.SampleSet.from_samples(zeros(bqm), energy=[float("nan")], vartype="BINARY")


def other_variables(bqm):
    return dimod.SampleSet.from_samples(
        {f"x{i}": 0 for i in range(len(bqm.variables))}, energy=[0.0], vartype="BINARY"
    )


def some_variables(bqm):
    return dimod.SampleSet.from_samples(
        dict.fromkeys(list(bqm.variables)[1:], 0), energy=[0.0], vartype="BINARY"
    )


def filled(value, vartype="BINARY"):
    """An answer that has this value everywhere but at the first variable, which is 1."""

    def answer(bqm):
        samples = np.full((1, len(bqm.variables)), value, np.int8)
        samples[0, 0] = 1
        made = dimod.SampleSet.from_samples(
            (samples * 0, list(bqm.variables)), energy=[0.0], vartype=vartype
        )
        made.record.sample[:] = samples
        return made

    return answer


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (filled(7), "returned the value 7; samples must be of 0 and 1, or of -1 and 1"),
        (None, "returned a NoneType"),
        ([{"a": 1}], "returned a list"),
        (lambda bqm: zeros(bqm, 0), "no sample"),
        (nan_energy, "not numbers"),
        (other_variables, "no value of"),
        (some_variables, "no value of"),
        (RuntimeError("solver is offline"), "RuntimeError: solver is offline"),
        (TypeError("unexpected keyword"), "check its parameters"),
    ],
)
def test_faults_are_told_by_the_name_of_the_sampler(answer, words):
    _, formulation = problem()
    with pytest.raises(ServiceError, match="the sampler Fixed") as caught:
        solve(formulation, solver_named("dimod", sampler=Fixed(answer)), limits=Limits(2.0))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_zeros_among_spins_are_refused():
    _, formulation = problem()

    def answer(bqm):
        made = filled(-1)(bqm)
        made.record.sample[0, 1] = 0
        return made

    with pytest.raises(ServiceError, match="returned both 0 and -1"):
        solve(formulation, solver_named("dimod", sampler=Fixed(answer)), limits=Limits(2.0))


@pytest.mark.parametrize(
    ("missing", "words"),
    [(1, "; "), (2, " and 1 other variable; "), (3, " and 2 other variables; ")],
)
def test_missing_variables_are_counted(missing, words):
    _, formulation = problem()

    def answer(bqm):
        kept = list(bqm.variables)[missing:]
        return dimod.SampleSet.from_samples(dict.fromkeys(kept, 0), energy=[0.0], vartype="BINARY")

    first = min(formulation.labels[:missing])
    with pytest.raises(ServiceError) as caught:
        solve(formulation, solver_named("dimod", sampler=Fixed(answer)), limits=Limits(2.0))
    assert f"no value of {first}{words}give one" in str(caught.value)


def test_one_state_is_one_state():
    _, formulation = problem()
    status = solve(
        formulation, solver_named("dimod", sampler=Fixed(zeros)), limits=Limits(2.0)
    ).status
    assert status.startswith("Fixed returned 1 state; ")


def test_an_interrupt_of_the_sampler_returns_the_start():
    _, formulation = problem()

    def interrupted(bqm):
        raise KeyboardInterrupt

    solution = solve(
        formulation, solver_named("dimod", sampler=Fixed(interrupted)), limits=Limits(2.0)
    )
    assert solution.interrupted
    assert solution.score == solution.empty_score


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"sampler": "dimod"}, SettingError),
        ({"sampler": "dimod:Nothing"}, SettingError),
        ({"sampler": "no_such_package:Sampler"}, MissingPackageError),
        ({"sampler": "dimod:SampleSet"}, ServiceError),
        ({"sampler": object()}, SettingError),
        ({"sampler": "dimod:RandomSampler", "parameters": "{"}, SettingError),
        ({"sampler": "dimod:RandomSampler", "parameters": "[1]"}, SettingError),
    ],
)
def test_wrong_settings_are_refused(settings, error):
    _, formulation = problem()
    with pytest.raises(error):
        solve(formulation, solver_named("dimod", **settings), limits=Limits(2.0))
