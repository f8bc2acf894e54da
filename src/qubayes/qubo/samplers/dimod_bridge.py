"""The bridge to dimod: our annealers as dimod samplers, any dimod sampler as the solver `dimod`."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, ClassVar

import dimod
import numpy as np
from dimod.core.initialized import Initialized
from dimod.core.sampler import Sampler

from ...foundation.arrays import AnyArray, Bools, Floats
from ...foundation.errors import MissingPackageError, ServiceError, SettingError
from ...foundation.progress import OnProgress, Progress, silent
from ...foundation.settings import is_number, is_whole
from ...foundation.stop import Interrupt
from ...foundation.workers import Workers
from ...machines.qubo import Qubo, bqm_vectors, qubo_from_couplers, to_bqm
from ...search.run import Ending, Run, warm_up
from .. import Formulation
from .digital import BitGroups, Tempering, load_trial
from .flips import FlipModel, Schedule, descend, halting, watch
from .reads import FlipMoves, Read, ReadPlan, TimeSlot, load_sweeps, time_slots
from .settling import SettlingMoves, load_settling
from .states import PROVED_OPTIMAL, NetworkOffers, formulate_example

DEFAULT_SWEEPS = 1000  # sweeps of a read, by default
DEFAULT_ITERATIONS = 10_000  # iterations of a replica, by default
# Error of any energy that weights of 32 bits may cause, in units of the coldest temperature. This
# is the sum of all rounding errors; they are of both signs, so that on 2,000 coupled spins the
# usual error is a thousandth of it.
LARGEST_ROUNDING = 0.1
MOVES = ("flip", "settle")
SCHEDULES = ("geometric", "linear", "custom")
# What samplers call their time limit, and how many of its units a second has.
TIME_LIMITS = {"time_limit": 1.0, "timeout": 1000.0}
_COMMON = (
    "seed",
    "time_limit",
    "threads",
    "initial_states",
    "initial_states_generator",
    "interrupt_function",
    "progress",
)


class SimulatedAnnealingSampler(Sampler, Initialized):
    """Simulated annealing by single flips, or by settling moves; a sample is a state of a read."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The keywords of `sample`."""
        names = (
            "num_reads",
            "num_sweeps",
            "beta_range",
            "beta_schedule",
            "randomize_order",
            "moves",
        )
        return {
            "beta_schedule_type": ["beta_schedule_options"],
            **{name: [] for name in (*names, *_COMMON)},
        }

    @property
    def properties(self) -> dict[str, Any]:
        """The kinds of beta schedules."""
        return {"beta_schedule_options": SCHEDULES}

    def sample(
        self,
        bqm: dimod.BinaryQuadraticModel,
        num_reads: int | None = None,
        num_sweeps: int | None = None,
        beta_range: Sequence[float] | None = None,
        beta_schedule_type: str = "geometric",
        beta_schedule: Sequence[float] | None = None,
        randomize_order: bool = False,
        moves: str = "flip",
        **parameters: Any,
    ) -> dimod.SampleSet:
        """Return the states at the end of `num_reads` annealings, which run in parallel threads.

        A read makes `num_sweeps` (1000 without a time limit) from the first to the last inverse
        temperature of `beta_range`, or one for each of `beta_schedule` with type `custom`. With
        `time_limit` alone the clock decides the temperature, and the reads share the time; with
        both, what is done in time is returned, at least one sample. A sweep tries every bit in
        order, or with `randomize_order` as many bits drawn from all.

        With `moves="settle"` a flipped bit lets others react before the whole is accepted or undone
        (`settling.py`): better for models with constraints, such as one bit of each group. A sweep
        tries as many bits, drawn from all; a sample is the best state at the end of a sweep.

        Also: `seed`, `time_limit` in seconds, `threads`, `initial_states` with
            `initial_states_generator`, `interrupt_function` (called about fifty times a second),
            `progress` (called with a `Progress`)."""
        task = SamplingTask.of(self, bqm, num_reads, parameters)
        schedule = _schedule(task.qubo, beta_range, beta_schedule_type, beta_schedule)
        steps = _count("num_sweeps", num_sweeps, None if task.timed else DEFAULT_SWEEPS)
        if beta_schedule is not None and num_sweeps is None:
            steps = len(beta_schedule)
        if beta_schedule is not None and steps != len(beta_schedule):
            raise SettingError(
                f"num_sweeps = {steps} with a schedule of {len(beta_schedule)}; "
                "leave num_sweeps out"
            )
        if moves not in MOVES:
            raise SettingError(f"moves = {moves!r}; choose one of {', '.join(MOVES)}")
        plan = ReadPlan(schedule, steps, task.qubo.bits if randomize_order else 0)
        settles = moves == "settle"
        model, task = task.started(schedule, load_settling if settles else load_sweeps)
        states = task.anneal(model, plan, settles=settles)
        return task.answer(states, {"beta_range": schedule.betas[[0, -1]].tolist()})


class DigitalAnnealingSampler(Sampler, Initialized):
    """Parallel trial and replica exchange; a sample is the best state of a replica."""

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
        bqm: dimod.BinaryQuadraticModel,
        num_reads: int | None = None,
        num_iterations: int | None = None,
        beta_range: Sequence[float] | None = None,
        **parameters: Any,
    ) -> dimod.SampleSet:
        """Return the best states of `num_reads` replicas (4 by default).

        The coldest replica goes through `beta_range`. Each makes `num_iterations` (10,000 without a
        time limit); in an iteration every flip is tried and one of the accepted is made. The other
        keywords are those of `SimulatedAnnealingSampler.sample`."""
        if num_reads is None and parameters.get("initial_states") is None:
            num_reads = 4
        task = SamplingTask.of(self, bqm, num_reads, parameters)
        iterations = _count(
            "num_iterations", num_iterations, None if task.timed else DEFAULT_ITERATIONS
        )
        schedule = _schedule(task.qubo, beta_range, "geometric", None)
        model, task = task.started(schedule, load_trial)
        states = task.temper(model, schedule, iterations)
        return task.answer(states, {"beta_range": schedule.betas.tolist()})


@dataclass(frozen=True, slots=True)
class SamplingTask:
    """The model and the common keywords of a call of `sample`."""

    bqm: dimod.BinaryQuadraticModel
    qubo: Qubo
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
    def of(
        sampler: Any,
        bqm: dimod.BinaryQuadraticModel,
        num_reads: int | None,
        parameters: dict[str, Any],
    ) -> "SamplingTask":
        """Check the keywords and convert the model."""
        began = time.perf_counter()
        if not isinstance(bqm, dimod.BinaryQuadraticModel):
            raise SettingError(
                f"the model is a {type(bqm).__name__}; give a dimod.BinaryQuadraticModel"
            )
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
        options = {name: given[name] for name in given if name.startswith("initial_states")}
        parsed = sampler.parse_initial_states(
            bqm, num_reads=num_reads, seed=seed % 2**32, **options
        )
        initial = parsed.initial_states
        places = list(map(initial.variables.index, bqm.variables))
        return SamplingTask(
            bqm=bqm,
            qubo=qubo_of_bqm(bqm),
            starts=initial.record.sample[:, places] > 0,
            seeds=np.random.SeedSequence(seed),
            threads=Workers(_count("threads", given.get("threads"), None, least=1)).count,
            interrupt=given.get("interrupt_function", lambda: False),
            progress=given.get("progress", silent),
            halt=np.zeros(1, np.bool_),
            began=began,
            ready=time.perf_counter(),
            end=began + limit,
        )

    def started(
        self, schedule: Schedule, load: Callable[[str], None]
    ) -> tuple[FlipModel, "SamplingTask"]:
        """Return the model for the kernels, and the task; its clock stands still while they load.

        Weights of 32 bits may change no state's energy by more than a tenth of the coldest
        temperature."""
        coldest = float(schedule.betas.max())
        model = FlipModel.of(self.qubo, LARGEST_ROUNDING / coldest if coldest > 0 else math.inf)
        now = time.perf_counter()
        load(model.kind)
        loading = time.perf_counter() - now
        times = {name: getattr(self, name) + loading for name in ("began", "ready", "end")}
        return model, replace(self, **times)

    @property
    def timed(self) -> bool:
        """True if there is a time limit."""
        return self.end < math.inf

    def look(self, name: str, done: float, total: float) -> float:
        """Report progress and return the seconds left; 0 after an interrupt."""
        self.progress(Progress(name, done, total))
        return 0.0 if self.halt[0] or self.interrupt() else self.end - time.perf_counter()

    def anneal(self, model: FlipModel, plan: ReadPlan, *, settles: bool) -> list[Bools]:
        """Return the last states of all reads that were begun; the first read is always begun."""
        count = len(self.starts)
        times = [TimeSlot(0.0, 0.0)] * count
        if self.timed:
            times = time_slots(count, self.threads, self.ready, self.end)
        seeds = self.seeds.spawn(count)
        begun: dict[int, Read] = {}

        def anneal_one(number: int) -> Bools | None:
            if self.halt[0] and number:
                return None
            moves = self._moves(model, number, seeds[number], settles=settles)
            begun[number] = Read(moves, plan, times[number], self.halt)
            begun[number].advance()
            # Even if there was no time for a sweep, the first sample is a local minimum.
            if self.timed and number == 0:
                return descend(model, moves.best)
            return moves.best if settles else moves.state

        def look() -> float:
            done = sum(read.progress for read in tuple(begun.values()))
            return self.look("anneal", done, float(count))

        with Interrupt(self.halt).listening(), halting(self.halt, self.threads) as pool:
            futures = [pool.submit(anneal_one, number) for number in range(count)]
            states = watch(futures, look, self.halt)
        return [state for state in states if state is not None]

    def _moves(
        self, model: FlipModel, number: int, seed: np.random.SeedSequence, *, settles: bool
    ) -> FlipMoves | SettlingMoves:
        if settles:
            return SettlingMoves(self.qubo, self.starts[number], seed)
        return FlipMoves(model, self.starts[number], seed)

    def temper(self, model: FlipModel, schedule: Schedule, iterations: int | None) -> list[Bools]:
        """Return the best state of each replica."""
        n = self.qubo.bits
        tempering = Tempering(model, BitGroups.of([], n), list(self.starts), self.seeds)
        if not n:
            return tempering.bests

        clock = TimeSlot(self.ready, self.end)

        def progress() -> float:
            if iterations is None:
                return clock.progress
            return min(1.0, tempering.iterations / max(iterations, 1))

        def look() -> float:
            return self.look("temper", progress(), 1.0)

        with Interrupt(self.halt).listening(), halting(self.halt, self.threads) as pool:
            while not self.halt[0] and (iterations is None or tempering.iterations < iterations):
                left = tempering.period if iterations is None else iterations - tempering.iterations
                tempering.advance(
                    pool, min(tempering.period, left), schedule.at(progress()), look, self.halt
                )
        # Even if there was no time for an iteration, the first sample is a local minimum.
        if self.timed:
            return [descend(model, tempering.bests[0]), *tempering.bests[1:]]
        return tempering.bests

    def answer(self, states: list[Bools], info: dict[str, Any]) -> dimod.SampleSet:
        """Return the states as samples of the model, with energies computed from it."""
        sampled = time.perf_counter()
        samples = np.array(states, dtype=np.int8).reshape(len(states), len(self.bqm.variables))
        if self.bqm.vartype is dimod.SPIN:
            samples = 2 * samples - 1
        labels = list(self.bqm.variables)
        energies = np.full(len(states), float(self.bqm.offset))
        if labels:
            energies = self.bqm.energies((samples, labels))
        result: dimod.SampleSet = dimod.SampleSet.from_samples(  # type: ignore[no-untyped-call]
            (samples, labels),
            energy=energies,
            vartype=self.bqm.vartype,
            info=info,
            sort_labels=False,
        )
        result.info["timing"] = {
            "preprocessing_ns": int((self.ready - self.began) * 1e9),
            "sampling_ns": int((sampled - self.ready) * 1e9),
            "postprocessing_ns": int((time.perf_counter() - sampled) * 1e9),
        }
        return result


def _count(name: str, value: Any, default: Any, least: int = 0) -> Any:
    """Return the value, or the default for None; raise unless it is whole and at least `least`."""
    if value is None:
        return default
    if not (is_whole(value) and value >= least):
        raise SettingError(f"{name} = {value!r}; give a whole number, {least} or more")
    return int(value)


def qubo_of_bqm(bqm: dimod.BinaryQuadraticModel) -> Qubo:
    """Return the model as a function of bits x; spins are 2 x - 1."""
    h, rows, columns, weights, offset = bqm_vectors(bqm)
    with np.errstate(over="ignore"):
        total = float(np.abs(h).sum() + np.abs(weights).sum() + abs(offset))
    if not math.isfinite(total):
        raise SettingError(
            "the biases add up to more than a float holds; give finite ones, scaled down"
        )
    return qubo_from_couplers(h, rows, columns, weights, offset)


def _schedule(
    qubo: Qubo, beta_range: Sequence[float] | None, kind: str, custom: Sequence[float] | None
) -> Schedule:
    if kind not in SCHEDULES:
        raise SettingError(f"beta_schedule_type = {kind!r}; choose one of {', '.join(SCHEDULES)}")
    if (kind == "custom") != (custom is not None):
        raise SettingError(
            "give beta_schedule together with beta_schedule_type='custom', or neither"
        )
    given = beta_range if custom is None else custom
    if given is None:
        given = default_beta_range(qubo)
    try:
        betas = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError(
            f"inverse temperatures {given!r}; give finite numbers, 0 or more"
        ) from None
    if betas.ndim != 1 or not len(betas) or not (np.isfinite(betas) & (betas >= 0)).all():
        raise SettingError(f"inverse temperatures {betas.tolist()}; give finite numbers, 0 or more")
    if kind != "custom" and (len(betas) != 2 or (kind == "geometric" and betas.min() <= 0)):
        raise SettingError(
            f"beta_range = {betas.tolist()}; give two numbers, above 0 for a geometric schedule"
        )
    return Schedule(betas, kind)


def default_beta_range(qubo: Qubo) -> tuple[float, float]:
    """Return two inverse temperatures: the strongest bit flips freely, hardly any flips upwards.

    With spins s = 2 x - 1 the field at bit i is about f_i = sqrt(h_i^2 + sum_j J_ij^2) and a flip
    costs twice that. The first temperature is 2 max f. At the last, a flip that costs 2 d is
    accepted once in a hundred tries, where d is the least coefficient but at least a fiftieth of
    the median f."""
    largest = max(float(np.abs(part).max(initial=0.0)) for part in (qubo.h, qubo.weights))
    exponent = math.frexp(largest)[1]
    # A power of two where the squares of the coefficients would overflow or underflow.
    scale = math.ldexp(1.0, -exponent) if exponent > 400 or -900 < exponent < -400 else 1.0
    weights = qubo.weights * scale
    pulls = _row_sums(qubo, weights)
    squares = _row_sums(qubo, weights**2)
    h = qubo.h * scale / 2 + pulls / 4
    fields = np.sqrt(h * h + squares / 16)
    fields = fields[fields > 0]
    if not len(fields):
        return 0.1, 1.0
    terms = np.abs(np.concatenate([h, weights / 4]))
    least = max(float(terms[terms > 1e-9 * fields.max()].min()), float(np.median(fields)) / 50)
    return scale / (2.0 * float(fields.max())), scale * math.log(100.0) / (2.0 * least)


def _row_sums(qubo: Qubo, entries: Floats) -> Floats:
    """Return (n,) the sum of the entries of each row of J."""
    if not qubo.bits:
        return np.zeros(0)
    sums = np.add.reduceat(np.append(entries, 0.0), qubo.indptr[:-1])
    sums[np.diff(qubo.indptr) == 0] = 0.0  # reduceat gives an empty row the entry that follows
    return sums


@dataclass(frozen=True, slots=True)
class DimodSampler:
    """A sampler of dimod's models: an object, or "module:Class" to be made without arguments.

    `parameters` (a mapping, or JSON) are passed to its `sample`; so are the run's time limit if the
    sampler has a parameter `time_limit` (seconds) or `timeout` (milliseconds), the seed if it has
    `seed`, and an interrupt if it has `interrupt_function`. A bound that is reached ends the
    reading of samples, not the sampling."""

    sampler: Any = "qubayes.qubo.samplers.dimod_bridge:SimulatedAnnealingSampler"
    parameters: Mapping[str, Any] | str = field(default_factory=dict)

    name: ClassVar[str] = "dimod"
    takes: ClassVar[str] = "formulation"
    counts: ClassVar[str] = ""

    def prepare(self) -> "DimodSampler":
        """Return the solver with its sampler made; compile the kernels of our own samplers."""
        sampler = _loaded(self.sampler)
        if type(sampler).__module__.startswith("qubayes."):
            warm_up(DimodSampler, moves=None, formulate=formulate_example)
        return replace(self, sampler=sampler, parameters=_mapping(self.parameters))

    def __call__(self, formulation: Formulation, run: Run, /) -> Ending:
        """Sample the QUBO, and offer the network of each different sample."""
        sampler = _loaded(self.sampler)
        name = type(sampler).__name__
        if run.proved:
            return Ending(f"{PROVED_OPTIMAL}{name} was not asked", {"sampler": name, "samples": 0})
        run.report(f"waiting for {name}")
        model = to_bqm(formulation.qubo, formulation.labels)
        given, remark = _with_limits(sampler, _mapping(self.parameters), run)
        try:
            states = _states(sampler.sample(model, **given), formulation, name)
        except (KeyboardInterrupt, ServiceError):
            raise
        except Exception as error:
            raise ServiceError(
                f"the sampler {name} failed: {type(error).__name__}: {error}; "
                f"check its parameters {sorted(given)}"
            ) from error
        offers = NetworkOffers(formulation, run)
        stop = run.until()
        read = 0
        repaired = 0
        for state in states:  # best first, while there is time
            if read and stop():
                break
            read += 1
            repaired += offers.offer(state)
            run.report()
        found = "1 state" if len(states) == 1 else f"{len(states)} different states"
        if read < len(states):
            which = f"{read} were" if read > 1 else "was"
            found += f", of which only the best {which} read{'' if run.proved else ' in time'}"
        proved = PROVED_OPTIMAL if run.proved else ""
        status = f"{proved}{name} returned {found}{remark}; {offers.message(repaired, read)}"
        statistics = {"sampler": name, "samples": len(states), "read": read, "repaired": repaired}
        return Ending(status, {**statistics, **offers.scores})


def _loaded(sampler: Any) -> Any:
    """Return the object itself, or an instance of the class that "module:Class" names."""
    if isinstance(sampler, str):
        sampler = _made(sampler)
    if not callable(getattr(sampler, "sample", None)):
        raise SettingError(
            f"{type(sampler).__name__} has no method sample(model); give a dimod sampler"
        )
    return sampler


def _made(name: str) -> Any:
    """Return an instance of the class that "module:Class" names."""
    module, _, kind = name.partition(":")
    if not module or not kind:
        raise SettingError(
            f"sampler = {name!r}; give module:Class, such as dwave.samplers:TabuSampler"
        )
    try:
        found = getattr(import_module(module), kind)
    except ImportError as error:
        raise MissingPackageError(
            f"the sampler {name} needs a package that is not installed: {error}"
        ) from None
    except AttributeError:
        raise SettingError(f"the module {module} has no {kind}; give module:Class") from None
    try:
        return found()
    except Exception as error:
        raise ServiceError(
            f"the sampler {kind} could not be made: {type(error).__name__}: {error}"
        ) from error


def _mapping(parameters: Mapping[str, Any] | str) -> dict[str, Any]:
    if not isinstance(parameters, str):
        return dict(parameters)
    try:
        found = json.loads(parameters)
    except ValueError as error:
        raise SettingError(f"the sampler's parameters are not JSON: {error}") from None
    if not isinstance(found, dict):
        raise SettingError(
            'the sampler\'s parameters must be a JSON object, such as {"num_reads": 10}'
        )
    return found


def _with_limits(sampler: Any, given: dict[str, Any], run: Run) -> tuple[dict[str, Any], str]:
    """Return the parameters with time limit, seed and interrupt; a remark if no limit is taken."""
    known = getattr(sampler, "parameters", None)
    known = known if isinstance(known, Mapping) else {}
    offered: dict[str, Any] = {}
    if "seed" in known:
        offered["seed"] = run.seed
    if "interrupt_function" in known:
        offered["interrupt_function"] = lambda: bool(run.stop[0]) or run.proved
    if isinstance(sampler, SimulatedAnnealingSampler | DigitalAnnealingSampler):
        offered["progress"] = lambda progress: run.report(done=progress.done, total=progress.total)
    parameters = {**offered, **given}
    if not math.isfinite(run.left) or not TIME_LIMITS.keys().isdisjoint(given):
        return parameters, ""
    name = next((name for name in TIME_LIMITS if name in known), None)
    if name is None:
        return parameters, " (it takes no time limit, and was not stopped)"
    seconds = 0.95 * run.left  # decoding the samples takes time too
    units = TIME_LIMITS[name]
    parameters[name] = seconds if units == 1.0 else max(1, int(seconds * units))
    return parameters, ""


def _states(answer: Any, formulation: Formulation, name: str) -> list[Bools]:
    """Return the different samples, best first, as states of the QUBO."""
    if hasattr(answer, "resolve"):
        answer.resolve()
    record = getattr(answer, "record", None)
    if record is None or not hasattr(answer, "variables"):
        raise ServiceError(
            f"the sampler {name} returned a {type(answer).__name__}; a dimod.SampleSet is needed"
        )
    if not len(record):
        raise ServiceError(
            f"the sampler {name} returned no sample; raise its number of reads or its time limit"
        )
    if np.isnan(np.asarray(record.energy, dtype=np.float64)).any():
        raise ServiceError(
            f"the sampler {name} returned energies that are not numbers; "
            "its answer cannot be trusted"
        )
    columns = _columns_of(answer, formulation.labels, name)
    order = np.argsort(record.energy, kind="stable")
    bits = _checked_bits(np.asarray(record.sample)[order][:, columns], name)
    _, first = np.unique(bits, axis=0, return_index=True)
    return [bits[row] for row in np.sort(first)]


def _columns_of(answer: Any, labels: Sequence[str], name: str) -> list[int]:
    """Return the columns of the bits in the samples; raise if one is missing."""
    missing = sorted(set(labels) - set(answer.variables))
    if missing:
        others = len(missing) - 1
        more = f" and {others} other variable{'s' if others > 1 else ''}" if others else ""
        raise ServiceError(
            f"the sampler {name} returned no value of {missing[0]}{more}; "
            "give one that returns all bits"
        )
    places = {label: column for column, label in enumerate(answer.variables)}
    return [places[label] for label in labels]


def _checked_bits(values: AnyArray, name: str) -> Bools:
    """Return values of 0 and 1, or of -1 and 1, as bits; raise for others."""
    if not (np.isin(values, (0, 1)).all() or np.isin(values, (-1, 1)).all()):
        wrong = values[~np.isin(values, (-1, 0, 1))]
        found = f"the value {wrong[0]}" if len(wrong) else "both 0 and -1"
        raise ServiceError(
            f"the sampler {name} returned {found}; samples must be of 0 and 1, or of -1 and 1"
        )
    return values > 0
