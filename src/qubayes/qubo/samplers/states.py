"""From states of the QUBO, or of its constrained form, to networks."""

import time
from typing import NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Bools, Ints
from ...foundation.graph import find_cycle
from ...search.run import Run
from .. import Formulation, best_sets, encode_sets, energy, formulate, implied_order
from ..decoding import active_state, closure_sets, energy_tolerance

PROVED = "the bound was reached: proved optimal; "  # begins the status of such a run


class Reading(NamedTuple):
    """The network of a state, as the number of a candidate set for each vertex."""

    choice: Ints
    repaired: bool  # True if the state violated a constraint


def read_state(formulation: Formulation, bits: Bools) -> Reading:
    """Return the network of a feasible state; of another state the best network of the order that it implies.

    A state is feasible if its energy is minus the score. `decode` would list each violation, and a state far from all
    networks has a hundred thousand of them.
    """
    chosen = closure_sets(formulation, bits)
    score = float(formulation.candidates.scores[chosen].sum())
    exact = abs(float(energy(formulation.qubo, bits)) + score) <= energy_tolerance(formulation)
    if exact and not find_cycle(formulation.candidates.families.sets_at(chosen)):
        return Reading(chosen, False)
    return Reading(best_sets(formulation, implied_order(formulation, bits)), True)


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


def reading_seconds(formulation: Formulation, run: Run) -> float:
    """Return the seconds it takes to read a state. The second reading is timed: the first may compile."""
    zeros = np.zeros(formulation.qubo.bits, np.bool_)
    run.offer(read_state(formulation, zeros).choice)
    began = time.perf_counter()
    read_state(formulation, zeros)
    return time.perf_counter() - began


def repair_message(count: int, of: int) -> str:
    """Return the part of the status about repaired states."""
    if not count:
        return f"all {of} best states are feasible" if of > 1 else "the best state is feasible"
    which = f"{count} of the {of} best states" if of > 1 else "the best state"
    return f"{which} broke constraints, repaired to the best network of the implied order"
