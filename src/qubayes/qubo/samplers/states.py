"""From states of the QUBO, or of its constrained form, to networks."""

import time
from typing import NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Bools, Ints
from ...foundation.graph import find_cycle
from ...search.run import Run
from .. import Formulation, encode_sets, energy, formulate, repaired_sets
from ..decoding import active_state, closure_sets, energy_tolerance
from .flips import FlipModel, descend

PROVED = "the bound was reached: proved optimal; "  # begins the status of such a run


class Reading(NamedTuple):
    """The network of a state, as the number of a candidate set for each vertex."""

    choice: Ints
    repaired: bool  # True if the state violated a constraint


def read_state(formulation: Formulation, bits: Bools) -> Reading:
    """Return the network of a feasible state; of another state the repaired one.

    A state is feasible if its energy is minus the score. `decode` would list each violation, and a state far from all
    networks has a hundred thousand of them.
    """
    chosen = closure_sets(formulation, bits)
    score = float(formulation.candidates.scores[chosen].sum())
    exact = abs(float(energy(formulation.qubo, bits)) + score) <= energy_tolerance(formulation)
    if exact and not find_cycle(formulation.candidates.families.sets_at(chosen)):
        return Reading(chosen, False)
    return Reading(repaired_sets(formulation, bits), True)


def formulate_example(candidates: Candidates) -> Formulation:
    """Return the QUBO of a few candidate sets, on which kernels are compiled."""
    return formulate(candidates)


def with_slack(formulation: Formulation, bits: Bools) -> Bools:
    """Return the state of the QUBO for a state (u, r) of the constrained form with at most two active subsets.

    In the constrained form two subsets whose union is not a candidate set have the score of the best set inside it: the
    result has the bits of that set.
    """
    state = active_state(formulation, closure_sets(formulation, bits))
    state[formulation.subsets.total : len(bits)] = bits[formulation.subsets.total :]
    return state


def start_state(formulation: Formulation, run: Run) -> Bools:
    """Return the state of the run's start network; all zero (Appendix D.3) if that has the base sets alone."""
    bases = run.candidates.families.vertex_start[1:] - 1
    if (run.start == bases).all():
        return np.zeros(formulation.qubo.bits, np.bool_)
    return encode_sets(formulation, run.start)


class StateReader:
    """Reads states of the QUBO and offers their networks to the run; keeps raw and repaired scores apart."""

    def __init__(self, formulation: Formulation, run: Run) -> None:
        self.formulation, self.run = formulation, run
        self._scores: dict[bool, list[float]] = {False: [], True: []}  # by whether the state was repaired

    def read(self, bits: Bools) -> bool:
        """Offer the network of the state; return True if the state was repaired."""
        reading = read_state(self.formulation, bits)
        self.run.offer(reading.choice)
        self._scores[reading.repaired].append(self.run.score_of(reading.choice))
        return reading.repaired

    @property
    def scores(self) -> dict[str, float | None]:
        """The best score of the states that violate no constraint, and of those that were repaired, for statistics."""
        raw, repaired = (max(self._scores[kind], default=None) for kind in (False, True))
        return {"raw_score": raw, "repaired_score": repaired}

    def message(self, repaired: int, count: int) -> str:
        """Return the part of the status about the best states, of which some were repaired, and about the scores."""
        which = f"all {count} best states are" if count > 1 else "the best state is"
        message = f"{which} feasible"
        if repaired:
            which = f"{repaired} of the {count} best states" if count > 1 else "the best state"
            message = f"{which} broke constraints, repaired to the better network of two orders"
        raw, mended = self.scores.values()
        if mended is None or (raw is not None and raw >= mended):
            return message
        without = "no state was feasible" if raw is None else f"best score without repair {raw:,.6f}"
        return f"{message}; {without}, with repair {mended:,.6f}"


def read_first(reader: StateReader, model: FlipModel, start: Bools) -> float:
    """Offer the local minimum below the start; return the seconds, which the end of every read takes, too."""
    zeros = np.zeros(model.qubo.bits, np.bool_)
    reader.run.offer(read_state(reader.formulation, zeros).choice)  # the first reading, which is slower, is not timed
    began = time.perf_counter()
    reader.read(descend(model, start))
    return time.perf_counter() - began


def time_to_read(run: Run, seconds: float) -> float:
    """Return the part of the time limit that is kept for the last states: these seconds, at most a fifth of it."""
    return min(seconds, 0.2 * run.left) if run.limits.seconds is not None else 0.0
