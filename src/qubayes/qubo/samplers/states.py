"""States of the QUBO that a solver of this package found, as networks; infeasible ones repaired."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...candidates import Candidates
from ...foundation.arrays import Bools, Ints
from ...foundation.graph import find_cycle
from ...search.run import Run
from .. import (
    Formulation,
    active_state,
    closure_sets,
    encode_sets,
    energy,
    energy_tolerance,
    formulate,
    repaired_sets,
)
from .flips import FlipModel, descend

# Begins the status of a run that reached its bound.
PROVED_OPTIMAL = "the bound was reached: proved optimal; "
SHARES = 20  # parts of a run; after each the best state is offered


class StateNetwork(NamedTuple):
    """The network of a state, as the number of a candidate set for each vertex."""

    choice: Ints
    repaired: bool  # True if the state violated a constraint


def network_of_state(formulation: Formulation, bits: Bools) -> StateNetwork:
    """Return the network of a feasible state; of another state the repaired network.

    A state is feasible if its energy is minus the score. `decode` would list each violation, and a
    state far from all networks has a hundred thousand of them."""
    chosen = closure_sets(formulation, bits)
    score = float(formulation.candidates.scores[chosen].sum())
    exact = abs(float(energy(formulation.qubo, bits)) + score) <= energy_tolerance(formulation)
    if exact and not find_cycle(formulation.candidates.families.sets_at(chosen)):
        return StateNetwork(chosen, False)
    return StateNetwork(repaired_sets(formulation, bits), True)


def formulate_example(candidates: Candidates) -> Formulation:
    """Return the QUBO of a few candidate sets, on which kernels are compiled."""
    return formulate(candidates)


def with_slack(formulation: Formulation, bits: Bools) -> Bools:
    """Return the QUBO's state for a state (u, r) of the constrained form, at most two subsets each.

    In the constrained form two subsets whose union is not a candidate set have the score of the
    best set inside it: the result has the bits of that set."""
    state = active_state(formulation, closure_sets(formulation, bits))
    state[formulation.subsets.total : len(bits)] = bits[formulation.subsets.total :]
    return state


def start_state(formulation: Formulation, run: Run) -> Bools:
    """Return the state of the run's start network, all zero (paper, Appendix D.3) if it is empty.

    An empty network has the base sets alone."""
    bases = run.candidates.families.vertex_start[1:] - 1
    if (run.start == bases).all():
        return np.zeros(formulation.qubo.bits, np.bool_)
    return encode_sets(formulation, run.start)


class NetworkOffers:
    """Offers the networks of states to a run, and keeps the best scores of each kind of state."""

    def __init__(self, formulation: Formulation, run: Run) -> None:
        self.formulation = formulation
        self.run = run
        # by whether the state was repaired
        self._scores: dict[bool, list[float]] = {False: [], True: []}
        self._before: list[float] = []  # of states that no move has made

    def offer(self, bits: Bools) -> bool:
        """Offer the network of a state that annealing found; return whether it was repaired."""
        network = network_of_state(self.formulation, bits)
        self.run.offer(network.choice)
        self._scores[network.repaired].append(self.run.score_of(network.choice))
        return network.repaired

    def offer_choice(self, choice: Ints) -> None:
        """Offer the network with these candidate sets, as that of a feasible state."""
        self.run.offer(choice)
        self._scores[False].append(self.run.score_of(choice))

    def offer_before(self, bits: Bools) -> None:
        """Offer the network of a state from before the first move: no result of annealing."""
        choice = network_of_state(self.formulation, bits).choice
        self.run.offer(choice)
        self._before.append(self.run.score_of(choice))

    @property
    def scores(self) -> dict[str, float | None]:
        """The best scores of feasible, of repaired states, and of states before annealing."""
        return {
            "raw_score": max(self._scores[False], default=None),
            "repaired_score": max(self._scores[True], default=None),
            "before_annealing": max(self._before, default=None),
        }

    def message(self, repaired: int, count: int) -> str:
        """Return the part of the status about the best states and their scores."""
        which = f"all {count} best states are" if count > 1 else "the best state is"
        message = f"{which} feasible"
        if repaired:
            which = f"{repaired} of the {count} best states" if count > 1 else "the best state"
            message = f"{which} broke constraints, repaired to the better network of two orders"
        raw, mended, before = self.scores.values()
        if mended is not None and (raw is None or raw < mended):
            without = "no state was feasible"
            if raw is not None:
                without = f"best score without repair {raw:,.6f}"
            message = f"{message}; {without}, with repair {mended:,.6f}"
        annealed = annealed_score(self.scores)
        if before is not None and (annealed is None or before > annealed):
            message = f"{message}; a network known before annealing scores more, {before:,.6f}"
        return message


def annealed_score(statistics: Mapping[str, Any]) -> float | None:
    """Return the best score of an annealer's own states, feasible or repaired, or None."""
    found = [statistics.get(name) for name in ("raw_score", "repaired_score")]
    return max((score for score in found if score is not None), default=None)


def offer_first(offers: NetworkOffers, model: FlipModel, start: Bools) -> float:
    """Offer the networks of the all-zero state, and of the local minimum below the start.

    Neither needs annealing. Return the seconds of the second, which the end of a read takes, too.
    """
    # The first one, which is slower, is not timed.
    offers.offer_before(np.zeros(model.qubo.bits, np.bool_))
    began = time.perf_counter()
    offers.offer_before(descend(model, start))
    return time.perf_counter() - began


def reserved_seconds(run: Run, seconds: float) -> float:
    """Return the time kept for the last states: these seconds, at most a fifth of the limit."""
    return min(seconds, 0.2 * run.left) if run.limits.seconds is not None else 0.0
