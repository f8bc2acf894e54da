"""Certificates of optimality: what a checker needs to verify a proof (docs/certificates.md)."""

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
from .component_proof import NOTHING, BranchNode, ComponentProof
from .cuts import Bytes, ClusterCuts, ScoredSets, no_cuts
from .ideals import MOST_VERTICES_OF_A_STATE, search_ideals
from .proof import Proof
from .relaxation import Bounded, lagrangian_bounds

SCALE = 40  # weights are integer multiples of 2 ** -SCALE


def write_certificate(proof: Proof, run: Run, path: str | PathLike[str]) -> tuple[Path | None, str]:
    """Write the proof of all components, made without the elimination of twins.

    Return the file, or None if no certificate could be made, and a sentence for the user.
    """
    names = run.candidates.names
    tolerance = 0.5e-9 * max(1.0, abs(run.score)) / max(1, len(proof.components))
    parts = []
    for each in proof.components:
        part = certified_part(each, each.cutoff - tolerance, run)
        if part is None:
            return None, f"no certificate: {_obstacle(run, each.plan.most_states)}"
        vertices = [names[vertex] for vertex in each.component.vertices.tolist()]
        parts.append({"vertices": vertices, **part})
    parents = zip(names, run.candidates.families.sets_at(run.choice), strict=True)
    certificate = {
        "format": "qubayes certificate",
        "version": 1,
        "score": run.score,
        "scale": SCALE,
        "network": {name: [names[parent] for parent in members] for name, members in parents},
        "parts": parts,
    }
    save_certificate(signed(certificate), path)
    return Path(path), f"certificate written to {path}"


def signed(certificate: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate with the digest of all its other entries."""
    rest = {key: value for key, value in certificate.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return {**rest, "digest": hashlib.sha256(text.encode()).hexdigest()}


def save_certificate(certificate: dict[str, Any], path: str | PathLike[str]) -> None:
    """Write the certificate."""
    with replacing(os.fspath(path)) as file:
        json.dump(certificate, file, separators=(",", ":"))
        file.write("\n")


def _obstacle(run: Run, most_states: int) -> str:
    """Return why a component has no certificate."""
    if run.over:
        return "the time limit ended the search that would close its gap; give more time"
    most = f"{MOST_VERTICES_OF_A_STATE} variables and {most_states:,} states"
    return f"its bounds are too weak, and the search would take more than {most}"


class Step(NamedTuple):
    """Cuts with rounded weights, and their bounds over the sets that earlier steps leave."""

    cuts: ClusterCuts
    weights: Ints  # integer multiples of 2 ** -SCALE
    bounded: Bounded

    @staticmethod
    def of(component: ComponentProof, sets: ScoredSets, allowed: Bools, bounded: Bounded) -> "Step":
        """Return the cuts whose weights round to more than 0."""
        weights = np.floor(np.ldexp(bounded.weights, SCALE)).astype(np.int64)
        positive = weights > 0
        weights = weights[positive]
        cuts = bounded.cuts.select(positive)
        rounded = np.ldexp(weights.astype(np.float64), -SCALE)
        found = lagrangian_bounds(sets, cuts, rounded, allowed, component.scale)
        return Step(cuts, weights, found)

    def entries(self) -> list[list[Any]]:
        """Return [weight, [[mask, k], ...]] for each cut; with odd vertices if it is halved."""
        cuts = self.cuts
        entries = []
        for cut, weight in enumerate(self.weights.tolist()):
            clusters = range(cuts.start[cut], cuts.start[cut + 1])
            masks = [[_hexadecimal(cuts.inside[c]), int(cuts.needs[c])] for c in clusters]
            halved = [_hexadecimal(cuts.odd[cut])] if cuts.divisors[cut] == 2 else []
            entries.append([weight, masks, *halved])
        return entries


class _Replay(NamedTuple):
    """The replay of a proof over all sets of a component, with some multipliers of each node."""

    component: ComponentProof
    sets: ScoredSets
    goal: float  # the cost that closes a node
    last: int  # how many multipliers of a node, beside its best ones

    def steps(self, node: BranchNode, allowed: Bools) -> tuple[list[Step], Bools]:
        """Return bounds, the best last, until one closes the node; and the sets that they leave."""
        nothing = Bounded(0.0, NOTHING, NOTHING, no_cuts(self.component.n), NOTHING)
        best = max(node.history, key=lambda bounded: bounded.cost, default=nothing)
        used = node.history[-self.last :] if self.last else []
        if not used or used[-1] is not best:
            used = [*used, best]
        steps = []
        for bounded in used:
            step = Step.of(self.component, self.sets, allowed, bounded)
            allowed = allowed & self.component.usable(step.bounded)
            steps.append(step)
            if step.bounded.cost >= self.goal:
                break
        return steps, allowed

    def tree(self, node: BranchNode, allowed: Bools) -> dict[str, Any] | None:
        """Return the entry of a node; None if it, or a node below it, is not closed."""
        if not np.logical_or.reduceat(allowed, self.sets.families.vertex_start[:-1]).all():
            return {"mode": "root", "cuts": []}  # a vertex has no set: no network is here
        steps, allowed = self.steps(node, allowed)
        cuts = [step.entries() for step in steps]
        if steps[-1].bounded.cost >= self.goal:
            return {"mode": "root", "cuts": cuts}
        if not node.sides:
            return None
        halves = split_on_edge(self.sets, allowed, *node.edge)
        below = [self.tree(side, half) for side, half in zip(node.sides, halves, strict=True)]
        if None in below:
            return None
        return {
            "mode": "branch",
            "cuts": cuts,
            "edge": list(node.edge),
            "with": below[0],
            "without": below[1],
        }


def certified_part(component: ComponentProof, goal: float, run: Run) -> dict[str, Any] | None:
    """Return the entry of one component; None if neither bounds nor a search close it.

    The best multipliers of each node are enough if they close the gap. If they rely on sets that
    earlier ones have excluded, these come first, as few of them as suffice; if none suffice, a
    search closes the gap."""
    root = component.tree or BranchNode()
    sets = ScoredSets.of(component.component.families, component.component.scores)
    everything: Bools = np.ones(len(sets.costs), np.bool_)
    count = 0
    while True:
        replay = _Replay(component, sets, goal, count)
        if entry := replay.tree(root, everything):
            return entry
        if count > len(root.history):
            break
        count = 2 * count + 1
    if component.n > MOST_VERTICES_OF_A_STATE:
        return None
    for each in (replay._replace(last=0), replay):
        if entry := _searched(each, root, everything, run):
            return entry
    return None


def _searched(replay: _Replay, root: BranchNode, allowed: Bools, run: Run) -> dict[str, Any] | None:
    """Return the entry of a search in the order graph; None if it does not close the component."""
    component = replay.component
    steps, usable = replay.steps(root, allowed)
    threshold = (replay.goal + component.cutoff) / 2
    most = component.plan.most_states
    bounded = steps[-1].bounded
    found = search_ideals(replay.sets, bounded, usable, threshold, most, component.scale, run)
    if not found.finished or found.cost < replay.goal:
        return None
    cuts = [step.entries() for step in steps]
    return {"mode": "search", "states": found.states, "cuts": cuts}


def _hexadecimal(inside: Bytes) -> str:
    return f"{sum(1 << vertex for vertex in np.flatnonzero(inside).tolist()):x}"
