"""`dimod`: any sampler with dimod's interface; its samples are decoded and, where they must be, repaired."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from ...foundation.arrays import AnyArray, Bools
from ...foundation.errors import MissingPackageError, ServiceError, SettingError
from ...search.run import Ending, Run
from .. import Formulation, to_bqm
from .states import PROVED, read_state, repairs

# What samplers call their time limit, and how many of its units a second has.
TIME_LIMITS = {"time_limit": 1.0, "timeout": 1000.0}


@dataclass(frozen=True, slots=True)
class DimodSampler:
    """A sampler of `dimod.BinaryQuadraticModel`s: an object, or "module:Class" to be made without arguments.

    `parameters` (a mapping, or JSON) go to its `sample`. The run's time limit is passed on where the sampler has a
    parameter `time_limit` (seconds) or `timeout` (milliseconds), its seed where it has a parameter `seed`, an interrupt
    where it has an `interrupt_function`. A bound ends the reading of its samples; while it samples it knows none.
    """

    sampler: Any = "qubayes.qubo.samplers.dimod_samplers:SimulatedAnnealingSampler"
    parameters: Mapping[str, Any] | str = field(default_factory=dict)

    name: ClassVar[str] = "dimod"
    takes: ClassVar[str] = "formulation"
    counts: ClassVar[str] = ""

    def prepared(self) -> "DimodSampler":
        """The same with the sampler made."""
        return replace(self, sampler=_loaded(self.sampler), parameters=_mapping(self.parameters))

    def __call__(self, formulation: Formulation, run: Run, /) -> Ending:
        """Give the sampler the QUBO, and offer the network of each different sample."""
        sampler = _loaded(self.sampler)
        name = type(sampler).__name__
        if run.proved:
            return Ending(f"{PROVED}{name} was not asked", {"sampler": name, "samples": 0})
        run.report(f"waiting for {name}")
        model = to_bqm(formulation.qubo, formulation.labels)
        given, told = _with_limits(sampler, _mapping(self.parameters), run)
        try:
            answer = sampler.sample(model, **given)
            states = _states(answer, formulation, name)
        except (KeyboardInterrupt, ServiceError):
            raise
        except Exception as error:
            raise ServiceError(
                f"the sampler {name} failed: {type(error).__name__}: {error}; check its parameters {sorted(given)}"
            ) from error
        read, mended = _offer(formulation, run, states)
        figures = {"sampler": name, "samples": len(states), "read": read, "repaired": mended}
        proved, many = PROVED if run.proved else "", _many(len(states), read, run)
        return Ending(f"{proved}{name} returned {many}{told}; {repairs(mended, read)}", figures)


def _many(states: int, read: int, run: Run) -> str:
    """How many states there are, and how many of them were read."""
    if states == 1:
        return "1 state"
    which = f"{read} were" if read > 1 else "was"
    unread = f", of which only the best {which} read{'' if run.proved else ' in time'}" if read < states else ""
    return f"{states} different states{unread}"


def _offer(formulation: Formulation, run: Run, states: list[Bools]) -> tuple[int, int]:
    """Offer the networks of the states, best first, while there is time; how many were read, and how many repaired."""
    read = mended = 0
    for state in states:
        if read and (run.over or run.proved):
            break
        reading = read_state(formulation, state)
        run.offer(reading.choice)
        read, mended = read + 1, mended + reading.repaired
        run.report()
    return read, mended


def _loaded(sampler: Any) -> Any:
    """The object itself, or one made of the class that "module:Class" names."""
    if isinstance(sampler, str):
        module, _, kind = sampler.partition(":")
        if not module or not kind:
            raise SettingError(f"sampler = {sampler!r}; give module:Class, such as dwave.samplers:TabuSampler")
        try:
            found = getattr(import_module(module), kind)
        except ImportError as error:
            raise MissingPackageError(f"the sampler {sampler} needs a package that is not here: {error}") from None
        except AttributeError:
            raise SettingError(f"the module {module} has no {kind}; give module:Class") from None
        try:
            sampler = found()
        except Exception as error:
            raise ServiceError(f"the sampler {kind} could not be made: {type(error).__name__}: {error}") from error
    if not callable(getattr(sampler, "sample", None)):
        raise SettingError(f"{type(sampler).__name__} has no method sample(model); give a dimod sampler")
    return sampler


def _mapping(parameters: Mapping[str, Any] | str) -> dict[str, Any]:
    if not isinstance(parameters, str):
        return dict(parameters)
    try:
        found = json.loads(parameters)
    except ValueError as error:
        raise SettingError(f"the sampler's parameters are not JSON: {error}") from None
    if not isinstance(found, dict):
        raise SettingError('the sampler\'s parameters must be a JSON object, such as {"num_reads": 10}')
    return found


def _with_limits(sampler: Any, given: dict[str, Any], run: Run) -> tuple[dict[str, Any], str]:
    """The parameters with time limit and seed where the sampler takes them, and a remark where it does not."""
    known = getattr(sampler, "parameters", None)
    known = known if isinstance(known, Mapping) else {}
    if "seed" in known and "seed" not in given:
        given["seed"] = run.seed
    if "interrupt_function" in known and "interrupt_function" not in given:
        given["interrupt_function"] = lambda: bool(run.stop[0]) or run.proved
    if _is_ours(sampler) and "progress" not in given:
        given["progress"] = lambda progress: run.report(done=progress.done, total=progress.total)
    if not math.isfinite(run.left) or any(name in given for name in TIME_LIMITS):
        return given, ""
    for name, units in TIME_LIMITS.items():
        if name in known:
            # Reading the samples takes time too.
            given[name] = 0.95 * run.left if units == 1.0 else max(1, int(0.95 * run.left * units))
            return given, ""
    return given, " (it takes no time limit, and was not stopped)"


def _is_ours(sampler: Any) -> bool:
    from .dimod_samplers import DigitalAnnealingSampler, SimulatedAnnealingSampler

    return isinstance(sampler, SimulatedAnnealingSampler | DigitalAnnealingSampler)


def _states(answer: Any, formulation: Formulation, name: str) -> list[Bools]:
    """The different samples, best first, as states of the QUBO."""
    if hasattr(answer, "resolve"):
        answer.resolve()
    record = getattr(answer, "record", None)
    if record is None or not hasattr(answer, "variables"):
        raise ServiceError(f"the sampler {name} returned a {type(answer).__name__}; a dimod.SampleSet is needed")
    if not len(record):
        raise ServiceError(f"the sampler {name} returned no sample; raise its number of reads or its time limit")
    if np.isnan(np.asarray(record.energy, dtype=np.float64)).any():
        raise ServiceError(f"the sampler {name} returned energies that are not numbers; its answer cannot be trusted")
    labels = formulation.labels
    missing = sorted(set(labels) - set(answer.variables))
    if missing:
        raise ServiceError(
            f"the sampler {name} returned no value of {_listed(missing)}; give one that returns all variables of the "
            "model"
        )
    places = {label: column for column, label in enumerate(answer.variables)}
    order = np.argsort(record.energy, kind="stable")
    values = np.asarray(record.sample)[order][:, [places[label] for label in labels]]
    _check_values(values, name)
    bits = values > 0
    _, first = np.unique(bits, axis=0, return_index=True)
    return [bits[row] for row in np.sort(first)]


def _listed(labels: list[str]) -> str:
    """The first label, and how many there are besides."""
    more = len(labels) - 1
    return labels[0] if not more else f"{labels[0]} and {more} other variable{'s' if more > 1 else ''}"


def _check_values(values: AnyArray, name: str) -> None:
    """Raise unless all are bits, or all are spins."""
    if np.isin(values, (0, 1)).all() or np.isin(values, (-1, 1)).all():
        return
    wrong = values[~np.isin(values, (-1, 0, 1))]
    found = f"the value {wrong[0]}" if len(wrong) else "both 0 and -1"
    raise ServiceError(f"the sampler {name} returned {found}; samples must be of 0 and 1, or of -1 and 1")
