"""Certificates of optimality: what a stranger needs to check a proof with whole numbers (docs/certificates.md)."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ...foundation.errors import QubayesError
from ...foundation.files import replacing
from ..run import Run
from .ideals import LARGEST, search_ideals
from .proof import MOST_STATES, ComponentProof, Proof
from .relaxation import lagrangian

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
    with replacing(path) as file:
        json.dump(certificate, file, separators=(",", ":"), ensure_ascii=False)
        file.write("\n")


def _part(component: ComponentProof, names: tuple[str, ...], run: Run) -> dict[str, Any]:
    """Return the entry of one component; its cuts must close the gap over all its sets, or after a search."""
    bounded = component.bounded
    if bounded is None:
        raise NotCertifiedError("no certificate: a component was proved by branching, which has none yet")
    whole = np.floor(np.ldexp(bounded.weights, SCALE))
    kept = whole > 0
    cuts, allowed = bounded.cuts.select(kept), np.ones(len(component.sets.losses), np.bool_)
    # Over all sets: some may have been excluded by other multipliers than these.
    again = lagrangian(component.sets, cuts, np.ldexp(whole[kept], -SCALE), allowed, component.scale)
    part: dict[str, Any] = {"vertices": [names[vertex] for vertex in component.component.vertices.tolist()]}
    if component.closes(again.loss):
        part["mode"] = "root"
    else:
        part["mode"], goal = "search", component.cutoff - component.tolerance / 2
        usable = again.with_set <= component.cutoff + component.tolerance
        if component.n > LARGEST:
            raise NotCertifiedError(
                f"no certificate: the cuts of a component of {component.n} variables leave a gap, and the search that "
                f"closes it takes at most {LARGEST}"
            )
        found = search_ideals(component.sets, again, usable, goal, MOST_STATES, component.scale, run)
        if not (found.finished and component.closes(found.loss)):
            raise NotCertifiedError(f"no certificate: a check would take more than {MOST_STATES:,} states")
        part["states"] = found.states
    part["cuts"] = [
        [
            weight,
            [[_hexadecimal(cuts.inside[i]), int(cuts.needs[i])] for i in range(cuts.start[cut], cuts.start[cut + 1])],
            *([_hexadecimal(cuts.odd[cut])] if cuts.divisors[cut] == 2 else []),
        ]
        for cut, weight in enumerate(whole[kept].astype(np.int64).tolist())
    ]
    return part


def _hexadecimal(inside: Any) -> str:
    return f"{sum(1 << vertex for vertex in np.flatnonzero(inside).tolist()):x}"
