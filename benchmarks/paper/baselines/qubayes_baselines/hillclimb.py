"""`hillclimb` (the paper's HCS): greedy changes of single edges with a tabu list, and random restarts.

climb: in each step the change of an edge that scores most is made, even if it is for the worse,
    until TABU steps have brought no better network.

kick: KICKS random edges of the best network are changed; then the next climb begins.
"""

from dataclasses import dataclass, field, replace
from os import PathLike
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from qubayes import QubayesError, SettingError
from qubayes.candidates import Candidates
from qubayes.candidates.counting import Labels, make_counts, make_labels, prepare_rows
from qubayes.data import Dataset, read
from qubayes.foundation.arrays import Floats, Ints, SmallInts, Words, frozen
from qubayes.foundation.random import random_stream
from qubayes.scores import NAMES, OBSERVED, Formula, Score, is_score
from qubayes.search.orders import order_problem
from qubayes.search.run import Ending, Run, warm_up

from .hillclimb_kernels import BEST, CLIMBS, FIRST, KEY, KICKS, POSSIBLE, SIZE, climb_edges
from .walks import Advance, Pace, walk_all

MEMORY = 64 << 20  # bytes for rows that were scored before


@dataclass(frozen=True, slots=True)
class HillClimb:
    """Add, delete or reverse the edge that gains most; a pair just changed is left alone for 10 changes.

    A climb ends when 10 changes have brought no better network. Then 10 random edges of the best
    network so far are changed, unless they close a cycle, and the next climb begins. Only edges in
    some candidate set are considered.

    With a dataset, or the path of one, local scores are counted in it, by the score in the
    candidates' stamp; the result has the best candidate sets inside the parents that were found.
    Without a dataset a vertex scores as its best candidate set inside its parents, and keeps only
    these parents: adding an edge may displace another."""

    dataset: Dataset | str | PathLike[str] | None = field(default=None, repr=False)

    name: ClassVar[str] = "hillclimb"
    takes: ClassVar[str] = "candidates"
    counts: ClassVar[str] = "changed edges"

    def prepare(self) -> "HillClimb":
        """Compile the kernels, and read the data."""
        warm_up(HillClimb)
        return self if self.dataset is None else replace(self, dataset=read(self.dataset))

    def __call__(self, candidates: Candidates, run: Run, /) -> Ending:
        """Climb on every thread."""
        dataset = None if self.dataset is None else read(self.dataset)
        sets = sets_of(candidates) if dataset is None else None
        edges, climbers = possible_edges(candidates), list[Climber]()

        def make(number: int, seed: np.random.SeedSequence) -> Advance:
            data = None if dataset is None else data_of(dataset, candidates)
            climb = new_climb(
                run, edges, random_stream(seed), hashed=sets is None, kick=KICKS if number else 0
            )
            climber = Climber(run, sets, data, climb)
            climbers.append(climber)
            return climber.advance

        ending = walk_all(run, make)
        climbs = sum(int(climber.climb.counts[CLIMBS]) for climber in climbers)
        return Ending(ending.status, {**ending.statistics, "climbs": climbs})


class Sets(NamedTuple):
    """Four arrays of an `OrderProblem`, and where to find the sets of an edge."""

    first: Ints  # (n + 1,)
    scores: Floats  # (sets,)
    members: npt.NDArray[np.uint16]  # (sets, largest size)
    lists: SmallInts  # (members,)
    # (n, n, 3) [child, parent]: first and last + 1 of its sets in `lists`; the set {parent}, -1 if
    # none
    edges: Ints


def sets_of(candidates: Candidates) -> Sets:
    """Return the candidate sets, and for each edge those that have it."""
    families, n = candidates.families, candidates.n
    problem = order_problem(families, candidates.scores)
    edges = np.zeros((n, n, 3), np.int64)
    parent = np.repeat(np.arange(n), np.diff(problem.edge_start))
    edges[problem.child, parent, 0], edges[problem.child, parent, 1] = (
        problem.list_start,
        problem.list_stop,
    )
    edges[:, :, 2] = -1
    single = np.flatnonzero(np.diff(families.set_start) == 1)
    child = np.searchsorted(families.vertex_start, single, side="right") - 1
    edges[child, families.members[families.set_start[single]], 2] = single
    return Sets(problem.first, problem.scores, problem.members, problem.lists, frozen(edges))


class Data(NamedTuple):
    """The data, their score, and memory for the counts of one thread."""

    labels: Labels
    formula: Formula
    states: Floats  # (n,) declared number of states
    prior_states: Floats  # (n,) number of child states in the prior
    counts: SmallInts  # (2, most) cell counts: values, and how often each occurs
    total: int  # number of rows


def data_of(dataset: Dataset, candidates: Candidates) -> Data:
    """Return the data with the score of the candidates' stamp. Each thread needs its own, as it counts in it."""
    if candidates.names != dataset.names:
        raise QubayesError(
            "the data's columns are not the candidates' variables; give the data that they come from"
        )
    stamp = candidates.stamp
    if not is_score(stamp.score):
        raise SettingError(
            f"the candidates' score is {stamp.score!r}; to climb on data it must be one of {', '.join(NAMES)}"
        )
    formula = Score(stamp.score, stamp.ess if stamp.ess is not None else 1.0).formula(dataset.rows)
    rows, k = prepare_rows(dataset, as_bits=False), most_parents(candidates) + 2
    states = dataset.arities.astype(float)
    prior_states = rows.observed.astype(float) if formula.spread == OBSERVED else states
    return Data(
        make_labels(k, rows), formula, states, prior_states, make_counts(k, rows), dataset.rows
    )


def most_parents(candidates: Candidates) -> int:
    """Return the number of parents that a vertex may have: that of the stamp, or of the largest set if it is larger."""
    sizes = np.diff(candidates.families.set_start)
    return max(candidates.stamp.max_parents or 1, int(sizes.max(initial=1)))


def possible_edges(candidates: Candidates) -> SmallInts:
    """(edges, 2) child and parent of every edge in a candidate set, without the required ones."""
    found = candidates.families.arcs().T
    for vertex in range(candidates.n):
        found[vertex, list(candidates.base(vertex))] = False
    # Always in rows: kernels are compiled for one layout, and `argwhere` gives columns.
    return np.ascontiguousarray(np.argwhere(found), dtype=np.int32)


class Climb(NamedTuple):
    """State of the climbs of one thread; kernels change it. There are few arrays: each takes time to compile.

    A key identifies the parents of a vertex: the number of its candidate set + 1, or a hash of the
    vertex and its parents. Row v < n of the table (`scores`, `entries`) belongs to vertex v with
    its present parents; the other rows are those that were scored before, by key. `scores[v, j]` is
    the score of v with the edge j -> v toggled, -inf if that is not allowed; `scores[v, v]` is its
    present score."""

    # (2, n, 2 + most) of the graph, and of the best: number of parents, key, parents in any order
    lists: Ints
    bits: Words  # (3, n, words) bit j of row v: j is a parent of v; an ancestor; j -> v is possible
    scores: Floats  # (rows, n)
    # (rows, 2 + 2n) number of edges that may be toggled, key, set that each gives, edges best first
    entries: Ints
    edges: SmallInts  # (edges, 2) child and parent of each possible edge
    hashes: Ints  # (n,) of each vertex as a parent
    tabu: Ints  # (n, n) the step from which a pair may be changed again
    changed: Ints  # (n + 2, 3) child, parent and the new set of each change of a step
    # (5,) steps, steps since the climb's best, edges of the kick still to change, climbs, changes
    counts: Ints
    # (3,) score of the graph (-inf before the first step), of the climb's best, of the best of all
    totals: Floats
    random: Words  # (2, 1)
    scratch: Ints  # (2, n)


def new_climb(
    run: Run, edges: SmallInts, random: Words, *, hashed: bool, kick: int, memory: int = MEMORY
) -> Climb:
    """Return the state at the run's start, not scored yet; first `kick` random edges are to be changed.

    Keys are hashes, or the numbers of the candidate sets + 1. Among 10^6 sets two share a hash with
    a chance of 1e-7."""
    n = run.candidates.n
    as_child, as_parent = np.random.default_rng(0).integers(1, 2**63, (2, n), dtype=np.int64)
    lists = np.zeros((2, n, FIRST + most_parents(run.candidates)), np.int64)
    for vertex, parents in enumerate(run.candidates.families.sets_at(run.start)):
        key = np.bitwise_xor.reduce(as_parent[list(parents)], initial=as_child[vertex])
        lists[0, vertex, SIZE], lists[0, vertex, KEY] = (
            len(parents),
            key if hashed else run.start[vertex] + 1,
        )
        lists[0, vertex, FIRST : FIRST + len(parents)] = parents
    bits = np.zeros((3, n, -(-n // 64)), np.uint64)
    words = np.uint64(1) << (edges[:, 1] & 63).astype(np.uint64)
    np.bitwise_or.at(bits[POSSIBLE], (edges[:, 0], edges[:, 1] >> 6), words)
    rows = n + max(n, memory // (8 * (FIRST + 3 * n)))
    changed = np.zeros((n + 2, 3), np.int64)
    changed[:n, 0] = np.arange(n)
    return Climb(
        lists=lists,
        bits=bits,
        scores=np.empty((rows, n)),
        entries=np.zeros((rows, FIRST + 2 * n), np.int64),
        edges=edges,
        hashes=as_parent.copy(),
        tabu=np.zeros((n, n), np.int64),
        changed=changed,
        counts=np.array([0, 0, kick, 0, n]),
        totals=np.full(3, -np.inf),
        random=random,
        scratch=np.zeros((2, n), np.int64),
    )


class Climber:
    """The climbs of one thread; the best network is offered after each slice."""

    def __init__(self, run: Run, sets: Sets | None, data: Data | None, climb: Climb) -> None:
        self.run, self.sets, self.data, self.climb = run, sets, data, climb
        self._offered, self._choice = climb.lists[0, :, KEY].copy(), run.start.copy()

    def advance(self, moves: int, pace: Pace) -> None:
        """Make this many steps, and offer the best candidate sets inside the parents of the best graph if it is new."""
        before, best = self.climb.totals[BEST], self.climb.lists[1]
        climb_edges(self.sets, self.data, self.climb, moves)
        if self.climb.totals[BEST] == before:
            return
        for vertex in np.flatnonzero(best[:, KEY] != self._offered).tolist():
            if self.data is None:
                self._choice[vertex] = best[vertex, KEY] - 1
            else:
                inside = np.zeros(self.run.candidates.n, np.bool_)
                inside[best[vertex, FIRST : FIRST + best[vertex, SIZE]]] = True
                self._choice[vertex] = self.run.candidates.families.first_inside(vertex, inside)
        self._offered[:] = best[:, KEY]
        self.run.offer(self._choice)
