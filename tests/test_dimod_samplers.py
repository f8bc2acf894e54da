"""Our annealers as dimod samplers: dimod's own conformance tests, exact energies, limits, interrupts, bad keywords."""

import math
import os
import signal
import threading
import time
import unittest
import warnings

import dimod
import dimod.testing
import numpy as np
import pytest

from qubayes import QubayesError, SettingError
from qubayes.qubo.samplers import (
    DigitalAnnealingSampler,
    SimulatedAnnealingSampler,
    default_beta_range,
    qubo_of_bqm,
)
from solve_cases import TickingClock

BOTH = pytest.mark.parametrize("sampler", [SimulatedAnnealingSampler(), DigitalAnnealingSampler()])


@dimod.testing.load_sampler_bqm_tests(SimulatedAnnealingSampler)
@dimod.testing.load_sampler_bqm_tests(DigitalAnnealingSampler)
class TestConformance(unittest.TestCase):
    pass


def glass(
    n: int, seed: int = 0, vartype: str = "SPIN", density: float = 1.0
) -> dimod.BinaryQuadraticModel:
    random = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    some = random.random(len(i)) < density
    vectors = (i[some], j[some], random.normal(size=int(some.sum())))
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        random.normal(size=n), vectors, 3.25, vartype
    )


@BOTH
def test_the_interface_is_dimods(sampler):
    dimod.testing.assert_sampler_api(sampler)
    began = time.perf_counter()
    answer = sampler.sample(glass(8), num_reads=3, seed=1)
    elapsed = time.perf_counter() - began
    dimod.testing.assert_response_energies(answer, glass(8))
    assert len(answer) == 3
    assert set(answer.info["timing"]) == {"preprocessing_ns", "sampling_ns", "postprocessing_ns"}
    # parts of the time that the call took
    assert all(value > 0 for value in answer.info["timing"].values())
    assert 1e-9 * sum(answer.info["timing"].values()) <= elapsed


@BOTH
@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
@pytest.mark.parametrize("seed", range(3))
def test_the_ground_state_of_a_small_glass_is_found(sampler, vartype, seed):
    model = glass(12, seed, vartype)
    least = dimod.ExactSolver().sample(model).first.energy
    answer = sampler.sample(model, num_reads=8, seed=seed)
    assert answer.first.energy == pytest.approx(least)
    assert answer.vartype is model.vartype


@BOTH
def test_labels_of_any_kind_come_back(sampler):
    model = dimod.BinaryQuadraticModel(
        {1: 1.0, "1": -1.0, (1, "x"): 0.5}, {(1, "1"): 2.0}, 0.0, "BINARY"
    )
    best = sampler.sample(model, seed=1).first
    assert dict(best.sample) == {1: 0, "1": 1, (1, "x"): 0}
    assert best.energy == -1.0


@BOTH
def test_the_same_seed_gives_the_same_with_any_number_of_threads(sampler):
    model = glass(60, density=0.2)
    answers = [sampler.sample(model, num_reads=4, seed=7, threads=threads) for threads in (1, 2, 2)]
    assert all((answers[0].record.sample == other.record.sample).all() for other in answers)
    other = sampler.sample(model, num_reads=4, seed=8, beta_range=(0.01, 0.02))
    assert (answers[0].record.sample != other.record.sample).any()


@BOTH
def test_a_time_limit_is_kept(sampler, set_clock):
    model, clock = glass(300), TickingClock(0.1)
    set_clock(clock)
    answer = sampler.sample(model, num_reads=3, time_limit=60.0, threads=2)
    assert 55.0 <= clock.seconds < 65.0
    assert len(answer) == 3
    assert len(sampler.sample(model, num_reads=2, time_limit=0.0)) >= 1


@BOTH
def test_without_time_the_first_sample_is_a_local_minimum(sampler):
    model = dimod.BinaryQuadraticModel({"a": -1.0, "b": 2.0}, {("a", "b"): 0.5}, 0.0, "BINARY")
    answer = sampler.sample(model, initial_states={"a": 0, "b": 1}, time_limit=0.0)
    assert dict(answer.samples(sorted_by=None)[0]) == {"a": 1, "b": 0}


def test_what_is_done_in_time_comes_back():
    model = glass(200)
    answer = SimulatedAnnealingSampler().sample(
        model, num_reads=10**4, num_sweeps=2000, time_limit=0.5, threads=2
    )
    assert 1 <= len(answer) < 10**4
    dimod.testing.assert_response_energies(answer, model)


@BOTH
def test_interrupts_return_what_there_is(sampler):
    model = glass(100)
    sampler.sample(model, num_reads=1)
    calls = []

    def enough() -> bool:
        calls.append(time.perf_counter())
        return len(calls) > 5

    answer = sampler.sample(model, num_reads=2, time_limit=60.0, interrupt_function=enough)
    assert 5 < len(calls) < 10
    assert len(answer) >= 1
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    answer = sampler.sample(model, num_reads=2, time_limit=60.0)
    assert answer.info["timing"]["sampling_ns"] < 30e9  # a guard against a hang
    dimod.testing.assert_response_energies(answer, model)


@BOTH
def test_an_error_in_a_callback_ends_the_threads_and_is_raised(sampler):
    def fail() -> bool:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        sampler.sample(glass(50), num_reads=2, time_limit=60.0, interrupt_function=fail)
    assert threading.active_count() < 10


@BOTH
def test_progress_is_told(sampler):
    told = []
    sampler.sample(glass(50), num_reads=2, time_limit=0.3, progress=told.append)
    assert told
    assert all(0 <= report.done <= report.total for report in told)


def test_initial_states_are_where_reads_begin():
    model = glass(10)
    start = {v: 1 if v % 2 else -1 for v in range(10)}
    answer = SimulatedAnnealingSampler().sample(model, initial_states=start, num_sweeps=0)
    assert dict(answer.first.sample) == start
    frozen = SimulatedAnnealingSampler().sample(
        model, initial_states=start, beta_range=(1e9, 2e9), num_sweeps=50
    )
    assert frozen.first.energy <= model.energy(start)
    reads = DigitalAnnealingSampler().sample(model, initial_states=start, num_iterations=0)
    assert [dict(sample) for sample in reads.samples()] == [start]


def test_schedules_of_all_kinds():
    model, sampler = glass(20), SimulatedAnnealingSampler()
    for given in (
        {"beta_schedule_type": "linear", "beta_range": (0.0, 5.0)},
        {"beta_schedule_type": "geometric", "beta_range": (0.1, 5.0), "randomize_order": True},
        {"beta_schedule_type": "custom", "beta_schedule": [0.1] * 50 + [4.0] * 50},
    ):
        answer = sampler.sample(model, seed=1, num_reads=20, **given)
        assert (
            answer.record.energy.mean()
            < sampler.sample(model, seed=1, num_reads=20, num_sweeps=0).record.energy.mean()
        )


@pytest.mark.parametrize("density", [0.0, 0.05, 0.3, 1.0])
def test_default_temperatures_are_what_the_fields_say(density):
    """The definition in spins, with bits that no other bit pulls between others."""
    model = glass(25, seed=2, density=density)
    fields = [
        math.sqrt(
            model.get_linear(v) ** 2 + sum(weight**2 for _, weight in model.iter_neighborhood(v))
        )
        for v in model.variables
    ]
    coefficients = [abs(number) for number in (*model.linear.values(), *model.quadratic.values())]
    least = max(min(coefficients), float(np.median(fields)) / 50)
    expected = 1 / (2 * max(fields)), math.log(100) / (2 * least)
    assert default_beta_range(qubo_of_bqm(model)) == pytest.approx(expected)


def test_default_temperatures_scale_with_the_model():
    def of(model):
        return default_beta_range(qubo_of_bqm(model))

    model = glass(30)
    hot, cold = of(model)
    assert 0 < hot < cold
    model.scale(100.0)
    assert of(model) == pytest.approx((hot / 100, cold / 100))
    assert of(dimod.BinaryQuadraticModel({"a": 0.0}, {}, 0.0, "SPIN")) == (0.1, 1.0)
    assert of(dimod.BinaryQuadraticModel("BINARY")) == (0.1, 1.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_reads": 0}, {"num_reads": -1}, {"num_reads": 1.5}, {"num_sweeps": -1}, {"num_sweeps": True}, {"seed": -1},
        {"time_limit": -1.0}, {"time_limit": float("nan")}, {"threads": 0}, {"interrupt_function": 3}, {"progress": 1},
        {"beta_schedule_type": "wild"}, {"beta_schedule_type": "custom"}, {"beta_schedule": [1.0]},
        {"beta_range": (1.0,)}, {"beta_range": (0.0, 1.0)}, {"beta_range": (-1.0, 1.0)},
        {"beta_schedule_type": "custom", "beta_schedule": []},
        {"beta_schedule_type": "custom", "beta_schedule": [1.0, 2.0], "num_sweeps": 3},
        {"beta_schedule_type": "linear", "beta_range": (0.0, float("inf"))},
        {"time_limit": "1"}, {"time_limit": True}, {"threads": "2"}, {"threads": 1.5}, {"threads": True},
        {"beta_range": "ab"}, {"beta_range": 5}, {"beta_range": [[1.0, 2.0], [3.0]]}, {"beta_range": np.ones((2, 2))},
    ],
)  # fmt: skip
def test_wrong_keywords_are_refused(wrong):
    with pytest.raises(QubayesError):
        SimulatedAnnealingSampler().sample(glass(4), **wrong)


@BOTH
def test_unknown_keywords_are_warned_about_and_infinite_biases_refused(sampler):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sampler.sample(glass(4), num_reads=1, chains=3)
    assert any("chains" in str(warning.message) for warning in caught)
    with pytest.raises(QubayesError, match="finite"):
        sampler.sample(dimod.BinaryQuadraticModel({"a": float("inf")}, {}, 0.0, "BINARY"))


@BOTH
@pytest.mark.parametrize("reads", [0, -1, 1.5])
def test_the_least_number_of_reads_is_told(sampler, reads):
    with pytest.raises(SettingError, match=f"num_reads = {reads}; give a whole number, 1 or more"):
        sampler.sample(glass(4), num_reads=reads)


@BOTH
def test_temperatures_may_be_an_array(sampler):
    answers = [
        sampler.sample(glass(6), seed=1, beta_range=betas)
        for betas in (np.array([0.1, 1.0]), (0.1, 1.0))
    ]
    assert (answers[0].record.sample == answers[1].record.sample).all()
    assert answers[0].info["beta_range"] == [0.1, 1.0]


@BOTH
@pytest.mark.parametrize(
    "model", [None, {"a": 1.0}, dimod.ConstrainedQuadraticModel(), dimod.QuadraticModel()]
)
def test_what_is_no_model_is_refused(sampler, model):
    with pytest.raises(SettingError, match=r"give a dimod.BinaryQuadraticModel"):
        sampler.sample(model)


@BOTH
@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
@pytest.mark.parametrize("size", [1e-200, 1e160, 1e300])
def test_large_and_tiny_biases(sampler, vartype, size):
    model = dimod.BinaryQuadraticModel(
        {"a": size, "b": -size}, {("a", "b"): size / 2}, 0.0, vartype
    )
    answer = sampler.sample(model, seed=1, num_reads=4)
    assert answer.first.energy == dimod.ExactSolver().sample(model).first.energy


@BOTH
def test_biases_that_no_sum_holds_are_refused(sampler):
    model = dimod.BinaryQuadraticModel(
        {"a": 1e308, "b": -1e308}, {("a", "b"): 1e308}, 0.0, "BINARY"
    )
    with pytest.raises(SettingError, match="scaled down"):
        sampler.sample(model)
