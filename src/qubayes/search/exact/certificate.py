"""Certificates of optimality: what a checker needs to verify a proof with whole numbers (docs/certificates.md)."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Floats, Ints
from ...foundation.errors import QubayesError
from ...foundation.files import replacing
from ..run import Run
from .cuts import Bytes, ClusterCuts, no_cuts
from .ideals import LARGEST, search_ideals
from .proof import MOST_STATES, ComponentProof, Proof
from .relaxation import Bounded, lagrangian

SCALE = 40  # weights are whole multiples of 2 ** -SCALE


class NotCertifiedError(QubayesError):
    """The proof cannot be written as a certificate."""


def write_certificate(proof: Proof, run: Run, path: str | Path) -> None:
    """Write the proof of all components, which must be closed and made without the elimination of twins."""
    candidates = run.candidates
    parents = candidates.families.sets_at(run.choice)
    names = candidates.names
    certificate = {
        "format": "qubayes certificate",
        "version": 1,
        "score": run.score,
        "scale": SCALE,
        "network": {name: [names[parent] for parent in its] for name, its in zip(names, parents, strict=True)},
        "parts": [_part(each, names, run) for each in proof.components],
    }
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
    certificate["digest"] = hashlib.sha256(text.encode()).hexdigest()
    with replacing(path) as file:
        json.dump(certificate, file, separators=(",", ":"))
        file.write("\n")


class Step(NamedTuple):
    """Cuts with rounded weights, and their bounds over the sets that earlier steps leave."""

    cuts: ClusterCuts
    weights: Ints  # whole multiples of 2 ** -SCALE
    bounded: Bounded


def _part(component: ComponentProof, names: tuple[str, ...], run: Run) -> dict[str, Any]:
    """Return the entry of one component.

    The last multipliers are enough if they close the gap over all sets. If they rely on sets that earlier ones have
    excluded, these come first, as few of them as suffice; if none suffice, a search closes the gap.
    """
    if component.history is None:
        raise NotCertifiedError("no certificate: a component was proved by branching, which has none yet")
    bounded = component.bounded
    last = (no_cuts(component.n), np.zeros(0)) if bounded is None else (bounded.cuts, bounded.weights)
    count, steps, states = 0, _replayed(component, [last]), 0
    alone = steps
    while not component.closes(steps[-1].bounded.loss) and count < len(component.history):
        count = 2 * count + 1
        steps = _replayed(component, [*component.history[-count:], last])
    if not component.closes(steps[-1].bounded.loss):
        states = _states(component, alone[-1].bounded, run)
        if states:
            steps = alone
        else:
            states = _states(component, steps[-1].bounded, run)
        if not states:
            most = f"{LARGEST} variables and {MOST_STATES:,} states"
            raise NotCertifiedError(f"no certificate: the search that checks it would take more than {most}")
    return {
        "vertices": [names[vertex] for vertex in component.component.vertices.tolist()],
        "mode": "search" if states else "root",
        "states": states,
        "cuts": [[_entry(step, cut) for cut in range(step.cuts.total)] for step in steps],
    }


def _replayed(component: ComponentProof, multipliers: list[tuple[ClusterCuts, Floats]]) -> list[Step]:
    """Return the bounds with rounded weights, each over the sets that those before it leave."""
    allowed: Bools = np.ones(len(component.sets.losses), np.bool_)
    steps = []
    for cuts, weights in multipliers:
        whole = np.floor(np.ldexp(weights, SCALE)).astype(np.int64)
        kept = whole > 0
        cuts, whole = cuts.select(kept), whole[kept]
        bounded = lagrangian(component.sets, cuts, np.ldexp(whole.astype(np.float64), -SCALE), allowed, component.scale)
        allowed = allowed & (bounded.with_set <= component.cutoff + component.tolerance)
        steps.append(Step(cuts, whole, bounded))
        if component.closes(bounded.loss):
            break
    return steps


def _states(component: ComponentProof, bounded: Bounded, run: Run) -> int:
    """Return the number of states after which a search with these multipliers closes the gap; 0 if it does not."""
    if component.n > LARGEST:
        return 0
    goal = component.cutoff - component.tolerance / 2
    usable = bounded.with_set <= component.cutoff + component.tolerance
    found = search_ideals(component.sets, bounded, usable, goal, MOST_STATES, component.scale, run)
    return found.states if found.finished and component.closes(found.loss) else 0


def _entry(step: Step, cut: int) -> list[Any]:
    """Return [weight, [[mask, k], ...]], followed by the mask of the odd vertices for a zero-half cut."""
    cuts = step.cuts
    clusters = range(cuts.start[cut], cuts.start[cut + 1])
    entry = [int(step.weights[cut]), [[_hexadecimal(cuts.inside[c]), int(cuts.needs[c])] for c in clusters]]
    return [*entry, _hexadecimal(cuts.odd[cut])] if cuts.divisors[cut] == 2 else entry


def _hexadecimal(inside: Bytes) -> str:
    return f"{sum(1 << vertex for vertex in np.flatnonzero(inside).tolist()):x}"
