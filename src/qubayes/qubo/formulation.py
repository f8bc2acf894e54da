"""H(u, r, z): learning a network as a QUBO over candidate parent subsets and an order (paper, Section 4)."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..candidates import Candidates
from ..foundation.arrays import Bools, Floats, Ints, SmallInts, frozen
from ..foundation.errors import SettingError, TooLargeError
from ..foundation.files import ending
from ..foundation.memory import memory_here
from ..foundation.workers import Workers
from ..machines import write_model, write_qubo
from ..machines.qubo import Qubo, check_bits, coefficient_range, to_bqm
from .balance import balanced
from .constrained import annealer_problem, to_cqm
from .decoding import Decoded, decode, encode_sets
from .order import Order, choose_order
from .penalties import PENALTIES, Penalties, order_bounds, paper, tight
from .score_part import Problem, ScorePart, UnionScores, count_slack, losses, score_parts
from .subsets import Subsets
from .terms import Block, cycle_terms, score_terms, slack_terms, summed

if TYPE_CHECKING:
    from dimod import BinaryQuadraticModel, ConstrainedQuadraticModel

BYTES_OF_PAIR = 90  # at the peak, while couplers are sorted; measured with benchmarks/formulation.py


@dataclass(frozen=True, slots=True)
class Formulation:
    """A QUBO whose least energy is minus the best score, and what its bits mean.

    Bits: one u for each subset, vertex by vertex; one r for each pair of `order`; one z for each vertex in
    `slack_vertices` (design §2.5).
    """

    problem: Problem = field(repr=False)
    order: Order = field(repr=False)
    penalties: Penalties = field(repr=False)
    ways: SmallInts = field(
        repr=False
    )  # (sets, 2) the subsets that stand for a candidate set; equal if one; -1 for a base
    qubo: Qubo = field(repr=False)
    order_kind: str
    penalty_kind: str
    seconds: float

    @property
    def candidates(self) -> Candidates:
        """What was formulated."""
        return self.problem.candidates

    @property
    def subsets(self) -> Subsets:
        """The sets that the u bits stand for."""
        assert self.problem.subsets is not None
        return self.problem.subsets

    @property
    def slack_vertices(self) -> Ints:
        """The vertices that have a z bit, ascending."""
        return np.flatnonzero(self.penalties.has_slack)

    @property
    def bits(self) -> dict[str, int]:
        """Number of u, r and z bits, and their total."""
        u, r, z = self.subsets.total, len(self.order.pairs), len(self.slack_vertices)
        return {"u": u, "r": r, "z": z, "total": u + r + z}

    @property
    def z_bits(self) -> Ints:
        """(n,) the z bit of each vertex, -1 where it has none."""
        return _z_bits(self.subsets.total + len(self.order.pairs), self.penalties)

    @property
    def coefficient_range(self) -> tuple[float, float]:
        """(least, largest) absolute value of a non-zero coefficient."""
        return coefficient_range(self.qubo)

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each bit: u[Smoker|Age,Sex], r[Age<Sex], z[Smoker]."""
        names, families = self.candidates.names, self.subsets.families
        u = [
            f"u[{name}|{','.join(names[parent] for parent in subset)}]"
            for vertex, name in enumerate(names)
            for subset in families.sets_of(vertex)
        ]
        r = [f"r[{names[first]}<{names[second]}]" for first, second in self.order.pairs.tolist()]
        z = [f"z[{names[vertex]}]" for vertex in self.slack_vertices.tolist()]
        return (*u, *r, *z)

    def to_bqm(self) -> "BinaryQuadraticModel":
        """Return the QUBO as a binary quadratic model of dimod over the labels."""
        return to_bqm(self.qubo, self.labels)

    def to_ising(self) -> tuple[dict[str, float], dict[tuple[str, str], float], float]:
        """Return (h, J, offset) of the same function over spins, x = (1 + s) / 2, by label."""
        h, couplings, offset = self.to_bqm().to_ising()  # type: ignore[no-untyped-call]
        return h, couplings, float(offset)

    def to_cqm(self, *, ordering: str = "penalties") -> "ConstrainedQuadraticModel":
        """Return the constrained form (Appendix D.4) as a model of dimod."""
        return to_cqm(self, ordering=ordering)

    def write(self, path: str | Path, *, ordering: str = "penalties") -> None:
        """Write the QUBO with its labels, or its constrained form (`.cqm`, `.lp`; `.json` for the Digital Annealer)."""
        kind = ending(path)
        if kind == ".json":
            write_model(annealer_problem(self), path)
        elif kind in (".cqm", ".lp"):
            write_model(self.to_cqm(ordering=ordering), path)
        else:
            write_qubo(self.qubo, self.labels, path)

    def decode(self, bits: npt.ArrayLike, *, repair: bool = False) -> Decoded:
        """Return the network of a state and every constraint that the state violates."""
        return decode(self, bits, repair=repair)

    def state_of(self, choice: npt.ArrayLike) -> tuple[Bools, float]:
        """Return (bits, energy) of the DAG that gives each vertex the candidate set of this number.

        The energy is checked to be minus the score of the DAG.
        """
        decoded = self.decode(encode_sets(self, choice))
        score = float(self.candidates.scores[np.asarray(choice, dtype=np.int64)].sum())
        if decoded.violations or not np.isclose(decoded.score, score, rtol=1e-9, atol=1e-6):
            raise AssertionError(f"internal error: energy {decoded.energy} of a network with score {score}")
        return decoded.bits, decoded.energy


def formulate(
    candidates: Candidates,
    subsets: Subsets,
    *,
    order: str = "chordal",
    penalty: str = "tight",
    union_scores: UnionScores | None = None,
    workers: Workers | None = None,
) -> Formulation:
    """The QUBO H(u, r, z) with min H = -(best score), reached only by states of best networks.

    `order="scc", penalty="paper"` is the paper's formulation. Unions of subsets that are no candidate sets score as the
    best candidate set inside them (closure), or as `union_scores` says (the base beyond the largest allowed size).
    """
    start = time.perf_counter()
    _check_penalty(penalty)
    _check_memory(subsets)
    problem = Problem.of(candidates, subsets, union_scores)
    pairs = choose_order(problem.relative, order)
    _check_memory(subsets, len(pairs.triangles))
    parts = score_parts(problem, workers or Workers())
    penalties = _penalties(problem, pairs, parts, penalty)
    if penalty == "tight":
        pairs = balanced(pairs, penalties.triangles)
    qubo = assemble(problem, pairs, parts, penalties)
    seconds = time.perf_counter() - start
    return Formulation(problem, pairs, penalties, _ways(problem, parts), qubo, order, penalty, seconds)


def count_bits(
    candidates: Candidates,
    subsets: Subsets,
    *,
    order: str = "chordal",
    penalty: str = "tight",
    workers: Workers | None = None,
) -> dict[str, int]:
    """`Formulation.bits` without the QUBO: for what is too large to be assembled, or before it is.

    >>> from qubayes.candidates.example import example
    >>> from qubayes.qubo.subsets import cover
    >>> candidates = example()
    >>> subsets = cover(candidates)
    >>> count_bits(candidates, subsets) == formulate(candidates, subsets).bits
    True
    """
    _check_penalty(penalty)
    problem = Problem.of(candidates, subsets)
    r = len(choose_order(problem.relative, order).pairs)
    z = candidates.n if penalty == "paper" else count_slack(problem, workers or Workers())
    return {"u": subsets.total, "r": r, "z": z, "total": subsets.total + r + z}


def _check_memory(subsets: Subsets, triangles: int = 0) -> None:
    """Raise if the machine cannot hold the couplers between u bits of a vertex, and those of so many triangles."""
    sizes, here = subsets.families.sizes, memory_here()
    needed = BYTES_OF_PAIR * (int((sizes * (sizes - 1) // 2).sum()) + 3 * triangles)
    if here is not None and needed > here:
        raise TooLargeError(
            f"making a QUBO of {subsets.total} subsets takes about {needed / 1e9:,.1f} GB, and there are "
            f"{here / 1e9:,.1f}; cover the candidates with fewer subsets (by the method auto), allow fewer parents, or "
            "learn without a QUBO: `qubayes learn` with another solver, or `qubayes solve --no-bits`"
        )


def _check_penalty(penalty: str) -> None:
    if penalty not in PENALTIES:
        raise SettingError(f"penalty = {penalty!r}; choose one of {', '.join(PENALTIES)}")


def _ways(problem: Problem, parts: list[ScorePart]) -> SmallInts:
    ways = np.full((len(problem.gains), 2), -1, np.int32)
    for part in parts:
        ways[part.ways[:, 0]] = part.ways[:, 1:]
    return frozen(ways)


def _penalties(problem: Problem, order: Order, parts: list[ScorePart], kind: str) -> Penalties:
    if kind == "paper":
        return paper(problem.relative, order, _largest_gains(problem), _xi0(parts))
    crowds = np.array([part.crowd.bound for part in parts])
    has_slack = np.array([part.crowd.slack for part in parts], dtype=np.bool_)
    return tight(order_bounds(losses(problem, order), problem.relative, order), crowds, has_slack)


def _largest_gains(problem: Problem) -> Floats:
    """max over candidate sets of log S(W) - log S(base); the best set of a vertex comes first."""
    return problem.gains[problem.candidates.families.vertex_start[:-1]]


def _xi0(parts: list[ScorePart]) -> float:
    """-3 min over vertices and pairs of subsets, the empty one among them, of pi bar (the paper's first lemma)."""
    steepest = 0.0
    for part in parts:
        j, k = np.triu_indices(len(part.singles), 1)
        pulls = part.pairs - part.singles[j] - part.singles[k]
        steepest = max(steepest, part.singles.max(initial=0.0), pulls.max(initial=0.0))
    return 3.0 * float(steepest)


def assemble(problem: Problem, order: Order, parts: list[ScorePart], penalties: Penalties) -> Qubo:
    """The sum of the score part with its penalties and the ordering part."""
    families = problem.relative.subsets
    first_r = len(families.set_start) - 1
    z_bits = _z_bits(first_r + len(order.pairs), penalties)
    bits = first_r + len(order.pairs) + int(penalties.has_slack.sum())
    check_bits(bits)
    extras = zip(penalties.crowds.tolist(), penalties.has_slack.tolist(), strict=True)
    blocks = [
        Block(first, part.singles, part.pairs, extra, slack, np.ascontiguousarray(part.ways[:, 1:]))
        for first, part, (extra, slack) in zip(families.vertex_start.tolist(), parts, extras, strict=False)
    ]
    owners = np.repeat(np.arange(families.n), families.sizes)
    return summed(
        score_terms(bits, blocks, -float(problem.candidates.base_scores.sum())),
        slack_terms(bits, z_bits, owners, penalties.crowds),
        cycle_terms(bits, first_r, problem.relative, order, penalties),
    )


def _z_bits(first: int, penalties: Penalties) -> Ints:
    return np.where(penalties.has_slack, first + np.cumsum(penalties.has_slack) - 1, -1)
