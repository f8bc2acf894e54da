"""Order bits with a proof: few pairs, with which a certificate of `exact` also holds for the QUBO.

A certificate bounds the score of all networks by cuts, each a sum of cluster inequalities
(docs/certificates.md). An inequality is true of every choice of parent sets without a cycle inside
its cluster. If order bits hold the clusters of all cuts (`holding.py`), the bound is one on the
states of the QUBO as well: its least energy is minus the best score, proved (docs/theory.md §11).

First each cut gets the pairs that hold its clusters. Then pairs are dropped, with the cuts that
need them, as long as the linear program of the other cuts reaches the loss of the best network."""

import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..candidates import Candidates
from ..foundation.arrays import Bools, Floats, Ints
from ..foundation.environment import sparse
from ..foundation.highs import Highs, LinearModel
from ..foundation.stop import TimeLimit
from ..foundation.workers import Workers
from ..search import Limits, solve, solver_named
from ..search.exact import SCALE, signed
from .holding import hold
from .order_walk import Pair

PROVED = "proved"  # the kind of order bits
_PROOF_TOLERANCE = 1e-9  # share of the score that rounding may cost, as in a certificate
ROUNDS = 2  # in each every cut chooses the pairs that hold its clusters, given those of the others


class Cluster(NamedTuple):
    """At most |members| - needs of the members have `needs` parents or more among them."""

    members: frozenset[int]
    needs: int


class Cut(NamedTuple):
    """A cluster inequality; or the sum of several and of odd vertices, halved and rounded down."""

    clusters: tuple[Cluster, ...]
    odd: frozenset[int]
    divisor: int

    @property
    def right_side(self) -> int:
        """The most that a choice of sets without a cycle adds up to."""
        total = sum(len(members) - needs for members, needs in self.clusters) + len(self.odd)
        return total // self.divisor

    def coefficient(self, vertex: int, parents: frozenset[int]) -> int:
        """Return what this parent set of the vertex adds."""
        total = int(vertex in self.odd)
        for members, needs in self.clusters:
            total += vertex in members and len(members & parents) >= needs
        return total // self.divisor


@dataclass(frozen=True, slots=True)
class Part:
    """Vertices that a certificate proves apart, by these cuts alone."""

    vertices: list[int]
    cuts: list[Cut]
    goal: float  # loss of the best network: what its sets score less than the best of each vertex


class Columns(NamedTuple):
    """Parent sets of a part that a network as good as the best can have."""

    vertices: list[int]
    parents: list[frozenset[int]]  # inside the part
    losses: list[float]


class Needs(NamedTuple):
    """The order bits that a cut needs, and how they hold its clusters."""

    pairs: frozenset[Pair]
    sequences: dict[frozenset[int], tuple[int, ...]]  # in which the members of a cluster leave


class ProvedOrder(NamedTuple):
    """Pairs whose order bits make the QUBO exact, and the certificate of that."""

    pairs: set[Pair]
    certificate: dict[str, Any]


def prove_order(
    candidates: Candidates, seconds: float, workers: Workers, seed: int = 0
) -> ProvedOrder | None:
    """Return order bits with a proof that they make the QUBO exact, if one is found in the time.

    There is none if the proof of the best network needs more than cuts."""
    clock = TimeLimit(seconds)
    certificate = _certificate_of(candidates, seconds, workers, seed)
    if certificate is None:
        return None
    parts = [_part_of(candidates, certificate, part) for part in certificate["parts"]]
    allowance = _PROOF_TOLERANCE * max(1.0, abs(certificate["score"])) / max(1, len(parts))
    arcs = candidates.families.arcs()
    pairs: set[Pair] = set()
    proofs = []
    for part in parts:
        goal = part.goal - 0.5 * allowance
        program = CutProgram(part, columns_of(candidates, part))
        if program.solve() < goal:
            return None
        needs = needs_of(arcs, part.cuts)
        pairs |= drop_pairs(program, needs, goal, clock)
        proofs.append(_entry(candidates.names, part, program, needs))
    names = candidates.names
    bits = [[names[a], names[b]] for a, b in sorted(pairs)]
    made = signed({**certificate, "parts": proofs, "order": bits})
    return ProvedOrder(pairs, made)


def _certificate_of(
    candidates: Candidates, seconds: float, workers: Workers, seed: int
) -> dict[str, Any] | None:
    """Return the certificate of the best network; None without a proof within the time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.json"
        solver = solver_named("exact", certificate=path)
        found = solve(candidates, solver, limits=Limits(seconds, seed=seed), workers=workers)
        if not found.certificate:
            return None
        certificate: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return certificate


def _part_of(candidates: Candidates, certificate: dict[str, Any], part: dict[str, Any]) -> Part:
    """Return a part of a certificate, with every cut of its first node once."""
    number = {name: vertex for vertex, name in enumerate(candidates.names)}
    vertices = [number[name] for name in part["vertices"]]
    entries = {json.dumps(cut[1:]): cut[1:] for step in part["cuts"] for cut in step}
    cuts = [_cut_of(vertices, *entry) for entry in entries.values()]
    goal = 0.0
    for vertex in vertices:
        parents = certificate["network"][candidates.names[vertex]]
        scores = dict(candidates.of(vertex))
        chosen = scores[tuple(sorted(number[name] for name in parents))]
        goal += max(scores.values()) - chosen
    return Part(vertices, cuts, goal)


def _cut_of(vertices: Sequence[int], clusters: list[tuple[str, int]], odd: str = "") -> Cut:
    """Return the cut of [[mask, k], ...] and the mask of odd vertices, if it is halved."""
    read = [Cluster(_members(vertices, mask), needs) for mask, needs in clusters]
    return Cut(tuple(read), _members(vertices, odd or "0"), 2 if odd else 1)


def _members(vertices: Sequence[int], mask: str) -> frozenset[int]:
    bits = int(mask, 16)
    return frozenset(vertex for place, vertex in enumerate(vertices) if bits >> place & 1)


def columns_of(candidates: Candidates, part: Part) -> Columns:
    """Return the parent sets of the part that lose no more than the best network."""
    inside = frozenset(part.vertices)
    columns = Columns([], [], [])
    for vertex in part.vertices:
        scores = dict(candidates.of(vertex))
        best = max(scores.values())
        least: dict[frozenset[int], float] = {}
        for parents, score in scores.items():
            members = inside & frozenset(parents)
            least[members] = min(best - score, least.get(members, math.inf))
        for members, loss in least.items():
            if loss <= part.goal + 1e-9:
                columns.vertices.append(vertex)
                columns.parents.append(members)
                columns.losses.append(loss)
    return columns


class CutProgram:
    """The least loss of a choice of sets that satisfies the cuts that are on."""

    def __init__(self, part: Part, columns: Columns) -> None:
        count = len(columns.vertices)
        self._switch = count  # the column that turns the first cut off
        self.cuts = part.cuts
        self.on: Bools = np.ones(len(part.cuts), np.bool_)
        self.weights: Floats = np.zeros(len(part.cuts))  # multipliers of the last solution
        rows, places, values = self._entries(part, columns)
        rights = np.array([cut.right_side for cut in part.cuts], np.float64)
        one = np.ones(len(part.vertices))
        shape = len(one) + len(rights), count + len(rights)
        self._highs = Highs(
            solver="simplex", primal_feasibility_tolerance=1e-9, dual_feasibility_tolerance=1e-9
        ).load(
            LinearModel(
                np.concatenate([columns.losses, np.zeros(len(rights))]),
                sparse.csr_array((values, (rows, places)), shape=shape),
                row_lower=np.concatenate([one, np.full(len(rights), -np.inf)]),
                row_upper=np.concatenate([one, rights]),
                upper=np.concatenate([np.full(count, np.inf), np.zeros(len(rights))]),
            )
        )
        self._losses = np.array(columns.losses)

    def _entries(self, part: Part, columns: Columns) -> tuple[Ints, Ints, Floats]:
        """Return (rows, columns, values): one set for each vertex, then the cuts."""
        row_of = {vertex: row for row, vertex in enumerate(part.vertices)}
        found = [(row_of[vertex], column, 1.0) for column, vertex in enumerate(columns.vertices)]
        sets = list(zip(columns.vertices, columns.parents, strict=True))
        for row, cut in enumerate(part.cuts, len(part.vertices)):
            for column, (vertex, parents) in enumerate(sets):
                if value := cut.coefficient(vertex, parents):
                    found.append((row, column, float(value)))
            # without a limit, this column makes the cut say nothing
            found.append((row, self._switch + row - len(part.vertices), -1.0))
        rows, places, values = zip(*found, strict=True)
        return np.array(rows), np.array(places), np.array(values)

    def turn(self, cuts: Sequence[int], on: bool) -> None:
        """Turn cuts on or off."""
        self.on[list(cuts)] = on
        numbers = self._switch + np.array(cuts, np.int64)
        self._highs.bound_columns(numbers, 0.0, 0.0 if on else math.inf)

    def solve(self) -> float:
        """Return the least loss; -inf if it cannot be told."""
        solved = self._highs.solve()
        if not solved.optimal or solved.duals is None:
            return -math.inf
        of_cuts = solved.duals[len(solved.duals) - len(self.cuts) :]
        self.weights = np.maximum(0.0, -of_cuts)
        return float(self._losses @ solved.values[: self._switch])


def needs_of(arcs: Bools, cuts: Sequence[Cut]) -> list[Needs]:
    """Return what each cut needs; together they need few pairs."""
    known: set[Pair] = set()
    needs = [Needs(frozenset(), {})] * len(cuts)
    sizes = [sum(len(cluster.members) for cluster in cut.clusters) for cut in cuts]
    for _ in range(ROUNDS):
        for number in np.argsort(sizes, kind="stable").tolist():
            needs[number] = _needs_of_one(arcs, cuts[number], known)
            known |= needs[number].pairs
        known = set().union(*(each.pairs for each in needs))
    return needs


def _needs_of_one(arcs: Bools, cut: Cut, known: set[Pair]) -> Needs:
    pairs: set[Pair] = set()
    sequences = {}
    for cluster in cut.clusters:
        held = hold(arcs, sorted(cluster.members), known | pairs)
        sequences[cluster.members] = held.sequence
        pairs |= held.pairs
    return Needs(frozenset(pairs), sequences)


def _entry(
    names: Sequence[str], part: Part, program: "CutProgram", needs: Sequence[Needs]
) -> dict[str, Any]:
    """Return the part of the certificate that the cuts of the program prove."""
    place = {vertex: number for number, vertex in enumerate(part.vertices)}

    def mask(vertices: frozenset[int]) -> str:
        return f"{sum(1 << place[vertex] for vertex in vertices):x}"

    weights = np.floor(np.ldexp(program.weights, SCALE)).astype(np.int64)
    cuts = []
    leaving: dict[str, list[int]] = {}
    for number in np.flatnonzero(program.on & (weights > 0)).tolist():
        cut = part.cuts[number]
        clusters = [[mask(members), needed] for members, needed in cut.clusters]
        halved = [mask(cut.odd)] if cut.divisor == 2 else []
        cuts.append([int(weights[number]), clusters, *halved])
        for members, sequence in needs[number].sequences.items():
            leaving[mask(members)] = [place[vertex] for vertex in sequence]
    return {
        "vertices": [names[vertex] for vertex in part.vertices],
        "mode": "root",
        # the first step leaves out sets that alone lose as much as the best network
        "cuts": [[], cuts],
        "leaving": leaving,
    }


def drop_pairs(
    program: CutProgram, needs: Sequence[Needs], goal: float, clock: TimeLimit
) -> set[Pair]:
    """Turn off cuts that the goal can do without, and return the pairs that the others need."""
    pairs = set[Pair]().union(*(each.pairs for each in needs))
    kept: set[Pair] = set()
    while pairs - kept and clock.left > 0:
        pair = min(pairs - kept, key=_Price(program, needs, pairs))
        users = [cut for cut in _on(program) if pair in needs[cut].pairs]
        program.turn(users, on=False)
        if program.solve() >= goal:
            pairs = set[Pair]().union(*(needs[cut].pairs for cut in _on(program)))
        else:
            kept.add(pair)
            program.turn(users, on=True)
            program.solve()
    return pairs


def _on(program: CutProgram) -> Iterator[int]:
    return iter(np.flatnonzero(program.on).tolist())


class _Price:
    """The order in which pairs are dropped: little weight of their cuts, many pairs saved."""

    def __init__(self, program: CutProgram, needs: Sequence[Needs], pairs: set[Pair]) -> None:
        self._users: dict[Pair, list[int]] = {pair: [] for pair in pairs}
        self._uses: dict[Pair, int] = dict.fromkeys(pairs, 0)
        for cut in _on(program):
            for pair in needs[cut].pairs:
                self._users[pair].append(cut)
                self._uses[pair] += 1
        self._needs = needs
        self._weights = program.weights

    def __call__(self, pair: Pair) -> tuple[float, Pair]:
        users = self._users[pair]
        fewer: dict[Pair, int] = {}
        for cut in users:
            for other in self._needs[cut].pairs:
                fewer[other] = fewer.get(other, 0) + 1
        saved = sum(count == self._uses[other] for other, count in fewer.items())
        return float(self._weights[users].sum()) / (1 + saved), pair
