"""Certificates of optimality: what a checker needs to verify a proof with whole numbers (docs/certificates.md)."""

import hashlib
import json
import os
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import Bools, Ints
from ...foundation.files import replacing
from ..run import Run
from .branching import split_on_edge
from .cuts import Bytes, ClusterCuts, ScoredSets, no_cuts
from .ideals import LARGEST, search_ideals
from .proof import MOST_STATES, NOTHING, BranchNode, ComponentProof, Proof
from .relaxation import Bounded, lagrangian

SCALE = 40  # weights are whole multiples of 2 ** -SCALE


def write_certificate(proof: Proof, run: Run, path: str | PathLike[str]) -> tuple[Path | None, str]:
    """Write the proof of all components, made without the elimination of twins.

    Return the file, or None if no certificate could be made, and a sentence for the user.
    """
    parents, names, parts = run.candidates.families.sets_at(run.choice), run.candidates.names, []
    tolerance = 0.5e-9 * max(1.0, abs(run.score)) / max(1, len(proof.components))
    for each in proof.components:
        part = certified_part(each, each.cutoff - tolerance, run)
        if part is None:
            if run.over:
                return (
                    None,
                    "no certificate: the time limit ended the search that would close its gap; give more time",
                )
            most = f"{LARGEST} variables and {MOST_STATES:,} states"
            return (
                None,
                f"no certificate: its bounds are too weak, and the search would take more than {most}",
            )
        parts.append(
            {"vertices": [names[vertex] for vertex in each.component.vertices.tolist()], **part}
        )
    certificate = {
        "format": "qubayes certificate",
        "version": 1,
        "score": run.score,
        "scale": SCALE,
        "network": {
            name: [names[parent] for parent in its]
            for name, its in zip(names, parents, strict=True)
        },
        "parts": parts,
    }
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
    certificate["digest"] = hashlib.sha256(text.encode()).hexdigest()
    with replacing(os.fspath(path)) as file:
        json.dump(certificate, file, separators=(",", ":"))
        file.write("\n")
    return Path(path), f"certificate written to {path}"


class Step(NamedTuple):
    """Cuts with rounded weights, and their bounds over the sets that earlier steps leave."""

    cuts: ClusterCuts
    weights: Ints  # whole multiples of 2 ** -SCALE
    bounded: Bounded

    def entries(self) -> list[list[Any]]:
        """Return [weight, [[mask, k], ...]] for each cut, followed by the mask of the odd vertices if it is halved."""
        entries, cuts = [], self.cuts
        for cut, weight in enumerate(self.weights.tolist()):
            clusters = range(cuts.start[cut], cuts.start[cut + 1])
            entry = [weight, [[_hexadecimal(cuts.inside[c]), int(cuts.needs[c])] for c in clusters]]
            entries.append(
                [*entry, _hexadecimal(cuts.odd[cut])] if cuts.divisors[cut] == 2 else entry
            )
        return entries


class _Replay(NamedTuple):
    """The replay of a proof over all sets of its component, with the last multipliers of each node."""

    component: ComponentProof
    sets: ScoredSets
    goal: float  # the loss that closes a node
    last: int  # how many multipliers of a node, beside its best ones

    def steps(self, node: BranchNode, allowed: Bools) -> tuple[list[Step], Bools]:
        """Return the bounds in turn, the best one last, until one closes the node; and the sets that they leave."""
        component, steps = self.component, list[Step]()
        nothing = Bounded(0.0, NOTHING, NOTHING, no_cuts(component.n), NOTHING)
        best = max(node.history, key=lambda bounded: bounded.loss, default=nothing)
        before = node.history[-self.last :] if self.last else []
        for bounded in before if before and before[-1] is best else [*before, best]:
            whole = np.floor(np.ldexp(bounded.weights, SCALE)).astype(np.int64)
            cuts, whole = bounded.cuts.select(whole > 0), whole[whole > 0]
            found = lagrangian(
                self.sets,
                cuts,
                np.ldexp(whole.astype(np.float64), -SCALE),
                allowed,
                component.scale,
            )
            allowed = allowed & (found.with_set <= component.cutoff + component.tolerance)
            steps.append(Step(cuts, whole, found))
            if found.loss >= self.goal:
                break
        return steps, allowed

    def tree(self, node: BranchNode, allowed: Bools) -> dict[str, Any] | None:
        """Return the entry of a node; None if it, or a node below it, is not closed."""
        if not np.logical_or.reduceat(allowed, self.sets.families.vertex_start[:-1]).all():
            return {"mode": "root", "cuts": []}  # no network is here
        steps, allowed = self.steps(node, allowed)
        entry = {"mode": "root", "cuts": [step.entries() for step in steps]}
        if steps[-1].bounded.loss >= self.goal:
            return entry
        halves = split_on_edge(self.sets, allowed, *node.edge) if node.sides else ()
        below = [self.tree(side, half) for side, half in zip(node.sides, halves, strict=True)]
        if not below or None in below:
            return None
        return {
            **entry,
            "mode": "branch",
            "edge": list(node.edge),
            "with": below[0],
            "without": below[1],
        }


def certified_part(component: ComponentProof, goal: float, run: Run) -> dict[str, Any] | None:
    """Return the entry of one component; None if neither bounds nor a search close it.

    The best multipliers of each node are enough if they close the gap. If they rely on sets that
    earlier ones have excluded, these come first, as few of them as suffice; if none suffice, a
    search closes the gap."""
    root, count = component.tree or BranchNode(), 0
    sets = ScoredSets.of(component.component.families, component.component.scores)
    everything: Bools = np.ones(len(sets.losses), np.bool_)
    while True:
        replay = _Replay(component, sets, goal, count)
        if entry := replay.tree(root, everything):
            return entry
        if count > len(root.history):
            break
        count = 2 * count + 1
    for each in (replay._replace(last=0), replay) if component.n <= LARGEST else ():
        steps, usable = each.steps(root, everything)
        threshold = (goal + component.cutoff) / 2
        found = search_ideals(
            sets, steps[-1].bounded, usable, threshold, MOST_STATES, component.scale, run
        )
        if found.finished and found.loss >= goal:
            cuts = [step.entries() for step in steps]
            return {"mode": "search", "states": found.states, "cuts": cuts}
    return None


def _hexadecimal(inside: Bytes) -> str:
    return f"{sum(1 << vertex for vertex in np.flatnonzero(inside).tolist()):x}"
