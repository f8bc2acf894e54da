"""Annealers for any `dimod.BinaryQuadraticModel`: bits or spins, labels of any kind."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dimod
import numpy as np
from dimod.core.initialized import Initialized
from dimod.core.sampler import Sampler

from ...foundation.arrays import AnyArray, Bools, Floats
from ...foundation.errors import SettingError
from ...foundation.interrupt import stopping
from ...foundation.progress import OnProgress, Progress, silent
from ...foundation.workers import Workers
from ...machines.qubo import Qubo, qubo_from_couplers
from ...search.run import is_number, is_whole
from .exchange import Tempering
from .reads import Clock, Model, Plan, Read, Schedule, clocks, halting, watch
from .trial import Groups

SWEEPS = 1000  # of a read, unless said
ITERATIONS = 10_000  # of a replica, unless said
SCHEDULES = ("geometric", "linear", "custom")


class SimulatedAnnealingSampler(Sampler, Initialized):
    """Metropolis annealing by single flips; a sample is the state at the end of a read."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The keywords of `sample`."""
        names = ("num_reads", "num_sweeps", "beta_range", "beta_schedule", "randomize_order")
        return {"beta_schedule_type": ["beta_schedule_options"], **{name: [] for name in (*names, *_COMMON)}}

    @property
    def properties(self) -> dict[str, Any]:
        """The kinds of schedules."""
        return {"beta_schedule_options": SCHEDULES}

    def sample(
        self,
        bqm: Any,
        num_reads: int | None = None,
        num_sweeps: int | None = None,
        beta_range: Sequence[float] | None = None,
        beta_schedule_type: str = "geometric",
        beta_schedule: Sequence[float] | None = None,
        randomize_order: bool = False,
        **parameters: Any,
    ) -> dimod.SampleSet:
        """Samples at the end of `num_reads` annealings, threads over reads.

        `num_sweeps` (1000 unless there is a time limit) from the first to the last inverse temperature of `beta_range`,
        or one for each of `beta_schedule` with type `custom`. With `time_limit` alone the clock decides the
        temperature, and the reads share the time; with both, what is done in time comes back, at least one sample. A
        sweep tries every bit in order, or as many bits drawn from all with `randomize_order`.

        Also: `seed`, `time_limit` in seconds, `threads`, `initial_states` with `initial_states_generator`,
        `interrupt_function` (called some fifty times a second), `progress` (called with a `Progress`).
        """
        task = _Task.of(self, bqm, num_reads, parameters)
        schedule = _schedule(task.model.qubo, beta_range, beta_schedule_type, beta_schedule)
        steps = _count("num_sweeps", num_sweeps, None if task.timed else SWEEPS)
        if beta_schedule is not None and num_sweeps is None:
            steps = len(beta_schedule)
        if beta_schedule is not None and steps != len(beta_schedule):
            raise SettingError(f"num_sweeps = {steps} with a schedule of {len(beta_schedule)}; leave num_sweeps out")
        plan = Plan(schedule, steps, task.model.qubo.bits if randomize_order else 0)
        return task.answer(_anneal(task, plan), {"beta_range": schedule.betas[[0, -1]].tolist()})


class DigitalAnnealingSampler(Sampler, Initialized):
    """Parallel trial with dynamic offset and replica exchange; a sample is the best state of a replica."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The keywords of `sample`."""
        return {name: [] for name in ("num_reads", "num_iterations", "beta_range", *_COMMON)}

    @property
    def properties(self) -> dict[str, Any]:
        """None."""
        return {}

    def sample(
        self,
        bqm: Any,
        num_reads: int | None = None,
        num_iterations: int | None = None,
        beta_range: Sequence[float] | None = None,
        **parameters: Any,
    ) -> dimod.SampleSet:
        """The best states of `num_reads` replicas (4 unless said), the coldest of them going through `beta_range`.

        Each makes `num_iterations` (10,000 unless there is a time limit); in one of them every flip is tried and one of
        the accepted is made. The other keywords are those of `SimulatedAnnealingSampler.sample`.
        """
        if num_reads is None and parameters.get("initial_states") is None:
            num_reads = 4
        task = _Task.of(self, bqm, num_reads, parameters)
        iterations = _count("num_iterations", num_iterations, None if task.timed else ITERATIONS)
        betas = _schedule(task.model.qubo, beta_range, "geometric", None)
        return task.answer(_temper(task, betas, iterations), {"beta_range": betas.betas.tolist()})


_COMMON = (
    "seed", "time_limit", "threads", "initial_states", "initial_states_generator", "interrupt_function", "progress",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Task:
    """What both samplers do alike: read the keywords before, make the sample set after."""

    bqm: Any
    model: Model
    starts: AnyArray  # (reads, n) bits
    seeds: np.random.SeedSequence
    threads: int
    interrupt: Callable[[], bool]
    progress: OnProgress
    halt: Bools
    began: float
    ready: float
    end: float  # when the time is up; infinite without a limit

    @staticmethod
    def of(sampler: Any, bqm: Any, num_reads: int | None, parameters: dict[str, Any]) -> "_Task":
        """The keywords checked, the model as a QUBO."""
        began = time.perf_counter()
        if not isinstance(bqm, dimod.BinaryQuadraticModel):
            raise SettingError(f"the model is a {type(bqm).__name__}; give a dimod.BinaryQuadraticModel")
        given = {name: parameters.pop(name) for name in _COMMON if parameters.get(name) is not None}
        sampler.remove_unknown_kwargs(**parameters)
        limit = given.get("time_limit", math.inf)
        if not (is_number(limit) and limit >= 0):
            raise SettingError(f"time_limit = {limit!r}; give 0 seconds or more, or leave it out")
        seed = _count("seed", given.get("seed"), int(np.random.SeedSequence().generate_state(1)[0]))
        num_reads = _count("num_reads", num_reads, None, least=1)
        for name in ("interrupt_function", "progress"):
            if name in given and not callable(given[name]):
                raise SettingError(f"{name} is a {type(given[name]).__name__}; give a function")
        options = {name: given[name] for name in ("initial_states", "initial_states_generator") if name in given}
        parsed = sampler.parse_initial_states(bqm, num_reads=num_reads, seed=seed % 2**32, **options)
        labels = list(bqm.variables)
        places = [parsed.initial_states.variables.index(label) for label in labels]
        return _Task(
            bqm,
            Model.of(_qubo_of(bqm)),
            parsed.initial_states.record.sample[:, places] > 0,
            np.random.SeedSequence(seed),
            Workers(_count("threads", given.get("threads"), None, least=1)).count,
            given.get("interrupt_function", lambda: False),
            given.get("progress", silent),
            np.zeros(1, np.bool_),
            began,
            time.perf_counter(),
            began + limit,
        )

    @property
    def timed(self) -> bool:
        """Whether there is a time limit."""
        return self.end < math.inf

    def look(self, name: str, done: float, total: float) -> float:
        """Report, ask whether to go on, and tell how many seconds are left."""
        self.progress(Progress(name, done, total))
        return 0.0 if self.halt[0] or self.interrupt() else self.end - time.perf_counter()

    def answer(self, states: list[Bools], info: dict[str, Any]) -> dimod.SampleSet:
        """The states as samples of the model, their energies computed from it."""
        sampled = time.perf_counter()
        samples = np.array(states, dtype=np.int8).reshape(len(states), len(self.bqm.variables))
        if self.bqm.vartype is dimod.SPIN:
            samples = 2 * samples - 1
        labels = list(self.bqm.variables)
        energies = self.bqm.energies((samples, labels)) if labels else np.full(len(states), float(self.bqm.offset))
        result: dimod.SampleSet = dimod.SampleSet.from_samples(  # type: ignore[no-untyped-call]
            (samples, labels), energy=energies, vartype=self.bqm.vartype, info=info, sort_labels=False
        )
        result.info["timing"] = {
            "preprocessing_ns": int((self.ready - self.began) * 1e9),
            "sampling_ns": int((sampled - self.ready) * 1e9),
            "postprocessing_ns": int((time.perf_counter() - sampled) * 1e9),
        }
        return result


def _anneal(task: _Task, plan: Plan) -> list[Bools]:
    """The last states of all reads that were begun, the first one among them."""
    count = len(task.starts)
    times = clocks(count, task.threads, task.ready, task.end) if task.timed else [Clock(0.0, 0.0)] * count
    seeds = task.seeds.spawn(count)
    begun: dict[int, Read] = {}

    def read(number: int) -> Bools | None:
        if task.halt[0] and number:
            return None
        begun[number] = Read(task.model, task.starts[number], seeds[number], plan, times[number], task.halt)
        return begun[number].advance().state

    def look() -> float:
        return task.look("anneal", sum(one.progress for one in tuple(begun.values())), float(count))

    with stopping(task.halt), halting(task.halt, task.threads) as pool:
        states = watch([pool.submit(read, number) for number in range(count)], look, task.halt)
    return [state for state in states if state is not None]


def _temper(task: _Task, schedule: Schedule, iterations: int | None) -> list[Bools]:
    """The best states of all replicas."""
    n = task.model.qubo.bits
    tempering = Tempering(task.model, Groups.of([], n), list(task.starts), task.seeds)
    if not n:
        return tempering.bests

    clock = Clock(task.ready, task.end)

    def progress() -> float:
        return clock.progress if iterations is None else min(1.0, tempering.iterations / max(iterations, 1))

    def look() -> float:
        return task.look("temper", progress(), 1.0)

    with stopping(task.halt), halting(task.halt, task.threads) as pool:
        while not task.halt[0] and (iterations is None or tempering.iterations < iterations):
            left = tempering.period if iterations is None else iterations - tempering.iterations
            tempering.advance(pool, min(tempering.period, left), schedule.at(progress()), look, task.halt)
    return tempering.bests


def _count(name: str, value: Any, default: Any, least: int = 0) -> Any:
    """The value, a whole number that is not less; the default if it is None."""
    if value is None:
        return default
    if not (is_whole(value) and value >= least):
        raise SettingError(f"{name} = {value!r}; give a whole number, {least} or more")
    return int(value)


def _qubo_of(bqm: Any) -> Qubo:
    """The same function of bits; spins become 2 x - 1."""
    order = list(bqm.variables)
    binary = bqm if bqm.vartype is dimod.BINARY else bqm.change_vartype(dimod.BINARY, inplace=False)
    vectors = binary.to_numpy_vectors(variable_order=order)
    rows, columns, weights = vectors.quadratic
    with np.errstate(over="ignore"):
        total = float(np.abs(vectors.linear_biases).sum() + np.abs(weights).sum() + abs(vectors.offset))
    if not math.isfinite(total):
        raise SettingError("the biases add up to more than a float holds; give finite ones, scaled down")
    return qubo_from_couplers(vectors.linear_biases, rows, columns, weights, float(vectors.offset))


def _schedule(qubo: Qubo, beta_range: Sequence[float] | None, kind: str, custom: Sequence[float] | None) -> Schedule:
    if kind not in SCHEDULES:
        raise SettingError(f"beta_schedule_type = {kind!r}; choose one of {', '.join(SCHEDULES)}")
    if (kind == "custom") != (custom is not None):
        raise SettingError("give beta_schedule together with beta_schedule_type='custom', or neither")
    betas = _numbers(custom if custom is not None else default_beta_range(qubo) if beta_range is None else beta_range)
    if betas.ndim != 1 or not len(betas) or not (np.isfinite(betas) & (betas >= 0)).all():
        raise SettingError(f"inverse temperatures {betas.tolist()}; give finite numbers, 0 or more")
    if kind != "custom" and (len(betas) != 2 or (kind == "geometric" and betas.min() <= 0)):
        raise SettingError(f"beta_range = {betas.tolist()}; give two numbers, above 0 for a geometric schedule")
    return Schedule(betas, kind)


def _numbers(values: Any) -> Floats:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError(f"inverse temperatures {values!r}; give finite numbers, 0 or more") from None


def default_beta_range(qubo: Qubo) -> tuple[float, float]:
    """Inverse temperatures at which the strongest bit flips freely, and at which hardly any flips upwards.

    With spins s = 2 x - 1 bit i feels a field of about f_i = sqrt(h_i^2 + sum_j J_ij^2) and a flip costs twice that:
    the first temperature is 2 max f, the last lets a flip that costs 2 d happen once in a hundred tries, d the least
    coefficient but not less than a fiftieth of the median f.
    """
    scale = _scale(qubo)
    weights = qubo.weights * scale
    pulls = np.add.reduceat(np.append(weights, 0.0), qubo.indptr[:-1]) if qubo.bits else np.zeros(0)
    squares = np.add.reduceat(np.append(weights**2, 0.0), qubo.indptr[:-1]) if qubo.bits else np.zeros(0)
    none = np.diff(qubo.indptr) == 0
    pulls[none], squares[none] = 0.0, 0.0  # reduceat gives an empty row the entry that follows
    h = qubo.h * scale / 2 + pulls / 4
    fields = np.sqrt(h * h + squares / 16)
    fields = fields[fields > 0]
    if not len(fields):
        return 0.1, 1.0
    terms = np.abs(np.concatenate([h, weights / 4]))
    least = max(float(terms[terms > 1e-9 * fields.max()].min()), float(np.median(fields)) / 50)
    return scale / (2.0 * float(fields.max())), scale * math.log(100.0) / (2.0 * least)


def _scale(qubo: Qubo) -> float:
    """1, or the power of two that brings coefficients whose squares no float holds to about 1."""
    largest = max(float(np.abs(qubo.h).max(initial=0.0)), float(np.abs(qubo.weights).max(initial=0.0)))
    exponent = math.frexp(largest)[1]
    return math.ldexp(1.0, -exponent) if exponent > 400 or -900 < exponent < -400 else 1.0
