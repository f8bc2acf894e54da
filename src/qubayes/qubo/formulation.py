"""Formulation of structure learning as a QUBO H(u, r, z) over subsets, an order and slack bits (paper, Section 4)."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from ..candidates import Candidates
from ..foundation.arrays import Bools, Floats, Ints, SmallInts, frozen
from ..foundation.environment import memory_here
from ..foundation.errors import FormatError, SettingError, TooLargeError
from ..foundation.files import ending
from ..foundation.progress import OnProgress, silent
from ..foundation.workers import Workers, run
from ..machines import CONSTRAINED_ENDINGS, ModelSize, to_ommx, write_model, write_qubo
from ..machines.qubo import Qubo, coefficient_range, to_bqm
from .answers import Samples, State
from .assembly import annealer_problem, assemble, coupled_pairs, slack_bits, to_cqm
from .decoding import Decoded, decode, encode_sets
from .formulation_files import (
    Problem,
    companion_of,
    model_companion,
    read_problem,
    write_formulation,
)
from .gains import RelativeSets, UnionScores, relate
from .on_demand import DEMAND, Demand, order_on_demand
from .order_bits import ORDERS, PROVED, Order, OrderStatus, balanced, choose_order, eliminations
from .penalties import (
    KINDS,
    PENALTIES,
    Penalties,
    needs_slack,
    paper,
    scaled,
    tight,
    vertex_gains,
    weak_kinds,
)
from .subsets import Budget, Subsets, cover

if TYPE_CHECKING:
    from dimod import BinaryQuadraticModel, ConstrainedQuadraticModel

# A tenth of the search for subsets costs a few bits in a thousand and saves most of its time
# (connect, m = 3).
QUICK = Budget(effort=0.1, rounds=0)
# at the peak, while couplers are sorted; up to 101 were measured (docs/results/trials.jsonl)
BYTES_OF_PAIR = 105


@dataclass(frozen=True, slots=True)
class Coefficients:
    """How coefficients are written: factors of penalties, and their precision."""

    # of edge, triangle, both (order), slack
    scale: Mapping[str, float] = field(default_factory=dict)
    digits: int | None = None  # after the decimal point
    bits: int | None = None  # of signed whole numbers, in units of a step that is found

    def __post_init__(self) -> None:
        """Raise for what is not allowed."""
        for kind, factor in self.scale.items():
            if kind not in KINDS or not 0.0 < factor < np.inf:
                raise SettingError(
                    f"scale {kind} = {factor}; give positive factors of {', '.join(KINDS)}"
                )
        if self.digits is not None and self.bits is not None:
            raise SettingError(
                f"digits = {self.digits} and bits of precision = {self.bits}; give one of them"
            )
        if self.digits is not None and not 0 <= self.digits <= 12:
            raise SettingError(f"digits = {self.digits}; give 0 to 12")
        if self.bits is not None and not 2 <= self.bits <= 53:
            raise SettingError(f"bits of precision = {self.bits}; give 2 to 53")


@dataclass(frozen=True, slots=True)
class Formulation:
    """A QUBO whose least energy is minus the best score, and the meaning of its bits.

    Bits: one u for each subset, vertex by vertex; one r for each pair of `order`; one z for each
        vertex in `slack_vertices`."""

    relative: RelativeSets = field(repr=False)
    order: Order = field(repr=False)
    penalties: Penalties = field(repr=False)
    # (sets, 2) the subsets of a candidate set, equal if one; -1: base
    representations: SmallInts = field(repr=False)
    qubo: Qubo = field(repr=False)
    order_kind: str
    penalty_kind: str
    seconds: float  # spent on assembling the QUBO
    # (sets,) of the candidate sets; those that were formulated may be rounded
    scores: Floats = field(repr=False)
    scale: Mapping[str, float] = field(default_factory=dict)  # factors of penalties, by kind
    step: float | None = None  # scores and coefficients are multiples of it
    weak: tuple[str, ...] = ()  # kinds of penalties that are not above their proved bounds
    order_status: OrderStatus = PROVED  # whether the order bits forbid every cycle
    order_seconds: float = 0.0  # spent on choosing the order bits

    @property
    def candidates(self) -> Candidates:
        """The candidate sets that were formulated."""
        return self.relative.candidates

    @property
    def subsets(self) -> Subsets:
        """The subsets that the u bits stand for."""
        return self.relative.subsets

    @property
    def slack_vertices(self) -> Ints:
        """The vertices that have a z bit, ascending."""
        return np.flatnonzero(self.penalties.has_slack)

    @property
    def bits(self) -> dict[str, int]:
        """Number of u, r and z bits, and their total."""
        return _counts(self.subsets.total, len(self.order.pairs), len(self.slack_vertices))

    @property
    def z_bits(self) -> Ints:
        """(n,) the z bit of each vertex, -1 where it has none."""
        return slack_bits(self.subsets.total + len(self.order.pairs), self.penalties.has_slack)

    @property
    def coefficient_range(self) -> tuple[float, float]:
        """(least, largest) absolute value of a non-zero coefficient."""
        return coefficient_range(self.qubo)

    @property
    def exact(self) -> bool:
        """Whether the order bits are proved to forbid every cycle."""
        return self.order_status.proved

    @property
    def checksum(self) -> str:
        """sha256 of the labels and coefficients."""
        digest = hashlib.sha256(repr((self.labels, self.qubo.offset)).encode())
        for part in self.qubo[:-1]:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    @property
    def rounding_error(self) -> float:
        """The most that the best network of the rounded scores can score below the best network (theory.md §9)."""
        return (self.step or 0.0) * int((self.candidates.per_vertex > 0).sum())

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
        """Return the constrained form (paper, Appendix D.4) as a model of dimod."""
        return to_cqm(self, ordering=ordering)

    def to_ommx(self, *, ordering: str = "penalties") -> Any:
        """Return the constrained form as an `ommx.v1.Instance`, the at-most-two constraints as constraints."""
        return to_ommx(self.to_cqm(ordering=ordering))

    def write(
        self, path: str | Path, *, ordering: str = "penalties", companion: bool = True
    ) -> ModelSize:
        """Write the QUBO with its labels, or its constrained form, and return the size of what was written.

        Constrained are `.cqm`, `.lp`, `.qplib`, and `.json` for the Digital Annealer. Beside it,
        the file `PATH.qbf` holds what `qubayes decode` needs."""
        kind = ending(path)
        if kind == ".json":
            size = write_model(annealer_problem(self), path)
        elif kind in CONSTRAINED_ENDINGS:
            size = write_model(self.to_cqm(ordering=ordering), path)
        else:
            size = write_qubo(self.qubo, self.labels, path)
        if companion:
            write_formulation(self, companion_of(path))
        return size

    @overload
    def decode(self, answer: State, *, repair: bool = False) -> Decoded: ...
    @overload
    def decode(self, answer: Samples, *, repair: bool = False) -> tuple[Decoded, ...]: ...
    def decode(
        self, answer: State | Samples, *, repair: bool = False
    ) -> Decoded | tuple[Decoded, ...]:
        """Return the network of a state, or of each sample of an answer, and every constraint that it violates."""
        return decode(self, answer, repair=repair)

    def state_of(self, choice: npt.ArrayLike) -> tuple[Bools, float]:
        """Return (bits, energy) of the DAG that gives each vertex the candidate set of this number.

        The energy is checked to be minus the score of the DAG.
        """
        decoded = self.decode(encode_sets(self, choice))
        score = float(self.scores[np.asarray(choice, dtype=np.int64)].sum())
        if decoded.violations or not np.isclose(decoded.score, score, rtol=1e-9, atol=1e-6):
            raise AssertionError(
                f"internal error: energy {decoded.energy} of a network with score {score}"
            )
        return decoded.bits, decoded.energy

    @property
    def size(self) -> ModelSize:
        """Size of the QUBO."""
        return ModelSize(self.qubo.bits, self.qubo.couplers, 0, self.coefficient_range)

    def as_json(self, written: ModelSize | None = None) -> dict[str, Any]:
        """Return what `qubayes formulate --json` prints: the sizes of the model that was written, or of the QUBO."""
        size, u, r = written or self.size, self.bits["u"], self.bits["r"]
        return {
            "n": self.candidates.n,
            "bits": _counts(u, r, size.bits - u - r),
            "couplers": size.couplers,
            "constraints": size.constraints,
            "coefficient_range": list(size.coefficient_range),
            "mu": self.subsets.families.sizes.tolist(),
            "proved_optimal_vertices": int(self.subsets.proved.sum()),
            "seconds": {
                "cover": round(self.subsets.seconds, 3),
                "order": round(self.order_seconds, 3),
                "assemble": round(self.seconds, 3),
            },
            "order": self.order_kind,
            "order_status": asdict(self.order_status),
            "penalty": self.penalty_kind,
            "step": self.step,
            "rounding_error": self.rounding_error,
            "weak_penalties": list(self.weak),
        }

    def __str__(self) -> str:
        """Return the size of the QUBO in one line."""
        return self.describe()[0]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the lines of `describe`."""
        return "".join(f"<div>{escape(line)}</div>" for line in self.describe())

    def describe(self, written: ModelSize | None = None) -> list[str]:
        """Return the size of the model that was written, or of the QUBO, in a few lines for people."""
        size, u, r = written or self.size, self.bits["u"], self.bits["r"]
        least, largest = size.coefficient_range
        z, rows = (
            size.bits - u - r,
            f"; {size.constraints:,} constraints" if size.constraints else "",
        )
        proved = int(self.subsets.proved.sum())
        rounding = []
        if self.step is not None:
            error = f"rounding loses at most {self.rounding_error:.6g} of the best score"
            rounding = [f"coefficients are multiples of {self.step:.6g}; {error}"]
        return [
            f"{size.bits:,} bits: {u:,} subsets, {r:,} order, {z:,} slack; {size.couplers:,} couplers{rows}",
            f"coefficients from {least:.6g} to {largest:.6g}",
            *rounding,
            *(
                []
                if self.order_kind in ORDERS
                else [f"order bits: {self.order_kind}, {self.order_status}"]
            ),
            f"{proved} of {self.candidates.n} vertices have a provably smallest family of subsets",
            f"subsets found in {round(self.subsets.seconds, 3)} s; order bits chosen in "
            f"{round(self.order_seconds, 3)} s; QUBO assembled in {round(self.seconds, 3)} s",
        ]


def formulate(
    candidates: Candidates,
    subsets: Subsets | None = None,
    *,
    order: str = "chordal",
    penalty: str = "tight",
    union_scores: UnionScores | None = None,
    coefficients: Coefficients | None = None,
    demand: Demand | None = None,
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Formulation:
    """Return the QUBO H(u, r, z) with min H = -(best score), reached only by states of best networks.

    `order="scc", penalty="paper"` is the paper's formulation. A union of subsets that is not a
    candidate set scores as the best candidate set inside it (closure), or as `union_scores` says
    (the base beyond the maximum size). Without `subsets`, they are found by `cover`. With rounded
    `coefficients`, min H = -(best rounded score). With `order="adjacent"` order bits are made on
    demand, and `order_status` says what is known of them."""
    workers = workers or Workers()
    if subsets is None:
        subsets = cover(candidates, workers=workers)
    status, written = PROVED, coefficients or Coefficients()
    _check_penalty(penalty)
    _check_memory(subsets)
    if union_scores is not None and (written.digits, written.bits) != (None, None):
        raise SettingError("given scores of unions and rounded coefficients; give one of them")
    began = time.perf_counter()
    if order in DEMAND:
        pairs, status = order_on_demand(
            relate(candidates, subsets), demand or Demand(), workers, on_progress
        )
    elif order in ORDERS:
        pairs = choose_order(candidates, order)
    else:
        raise SettingError(f"order = {order!r}; choose one of {', '.join((*ORDERS, *DEMAND))}")
    chosen = time.perf_counter()
    problem = Problem(candidates, subsets, pairs, penalty, written.scale, union_scores)
    step = 10.0**-written.digits if written.digits is not None else None
    made = assembled(problem, step, workers)
    # take the least step found whose coefficients are at most `most` steps
    if written.bits is not None:
        most = 2 ** (written.bits - 1) - 1
        step = max(made.coefficient_range[1], 1e-9) / most
        while (made := assembled(problem, step, workers)).coefficient_range[1] > step * most * (
            1 + 1e-9
        ):
            if not made.relative.gains.any():
                raise SettingError(
                    "too few bits of precision: every gain is rounded to 0; give more"
                )
            step *= 1.001 * made.coefficient_range[1] / (step * most)
    assembling, choosing = time.perf_counter() - chosen, chosen - began
    return replace(
        made, order_kind=order, order_status=status, order_seconds=choosing, seconds=assembling
    )


def assembled(problem: Problem, step: float | None, workers: Workers) -> Formulation:
    """Return the formulation; with a step, of the gains rounded to its multiples."""
    candidates, pairs = problem.candidates, problem.order
    if step is not None:
        bases = np.repeat(candidates.base_scores, candidates.families.sizes)
        scores = bases + np.rint((candidates.scores - bases) / step) * step
        candidates = replace(candidates, scores=frozen(scores))
    relative = relate(candidates, problem.subsets, problem.union_scores)
    _check_memory(relative.subsets, 3 * len(pairs.triangles) + coupled_pairs(relative, pairs))
    gains = vertex_gains(relative, workers)
    proved = (
        tight(relative, pairs, gains, step)
        if problem.penalty == "tight"
        else paper(relative, pairs, gains)
    )
    penalties = scaled(proved, problem.scale, step)
    weak = weak_kinds(penalties, relative, pairs, gains) if problem.scale else ()
    if problem.penalty == "tight":
        pairs = balanced(pairs, penalties.triangles)
    qubo = assemble(relative, pairs, gains, penalties)
    if step is not None:
        h, weights = (frozen(np.rint(part / step) * step) for part in (qubo.h, qubo.weights))
        qubo = qubo._replace(h=h, weights=weights)
    representations = np.full((len(relative.gains), 2), -1, np.int32)
    for vertex in gains:
        representations[vertex.representations[:, 0]] = vertex.representations[:, 1:]
    return Formulation(
        relative,
        pairs,
        penalties,
        frozen(representations),
        qubo,
        "",
        problem.penalty,
        0.0,
        scores=problem.candidates.scores,
        scale=problem.scale,
        step=step,
        weak=weak,
    )


def read_formulation(path: str | Path, workers: Workers | None = None) -> Formulation:
    """Return the formulation in a `.qbf` file, or in the one beside a model file."""
    place = model_companion(path)
    problem, settings = read_problem(place)
    with np.errstate(all="ignore"):  # of numbers that no formulation has: the checksum tells
        made = assembled(problem, settings["step"], workers or Workers())
    if made.checksum != settings["checksum"]:
        raise FormatError(
            f"{place} was written by another version and gives another QUBO now; formulate again"
        )
    return replace(made, order_kind=settings["order"], order_status=settings["order_status"])


def count_bits(
    candidates: Candidates,
    subsets: Subsets,
    *,
    order: str = "chordal",
    penalty: str = "tight",
    workers: Workers | None = None,
) -> dict[str, int]:
    """Return `Formulation.bits` without the QUBO: before it is assembled, or where it is too large for that.

    >>> from qubayes.candidates import example
    >>> from qubayes.qubo.subsets import cover
    >>> candidates = example()
    >>> subsets = cover(candidates)
    >>> count_bits(candidates, subsets) == formulate(candidates, subsets).bits
    True
    """
    _check_penalty(penalty)
    r = sum(filled.pairs for _, filled in eliminations(candidates, order))
    if penalty == "paper":
        return _counts(subsets.total, r, candidates.n)
    slack = run(needs_slack, relate(candidates, subsets), range(candidates.n), workers or Workers())
    return _counts(subsets.total, r, sum(needed for _, needed in slack))


def quick_subsets(
    candidates: Candidates,
    method: str = "auto",
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Subsets:
    """Return subsets whose unions of two give every candidate set, found in little time."""
    return cover(candidates, method=method, budget=QUICK, workers=workers, on_progress=on_progress)


def quick_formulation(
    candidates: Candidates,
    order: str = "chordal",
    penalty: str = "tight",
    method: str = "auto",
    workers: Workers | None = None,
    on_progress: OnProgress = silent,
) -> Formulation | None:
    """Return the QUBO of subsets that are found in little time; None if that was interrupted."""
    subsets = quick_subsets(candidates, method, workers, on_progress)
    if not subsets.complete:
        return None
    return formulate(candidates, subsets, order=order, penalty=penalty, workers=workers)


def _counts(u: int, r: int, z: int) -> dict[str, int]:
    return {"u": u, "r": r, "z": z, "total": u + r + z}


def _check_penalty(penalty: str) -> None:
    if penalty not in PENALTIES:
        raise SettingError(f"penalty = {penalty!r}; choose one of {', '.join(PENALTIES)}")


def _check_memory(subsets: Subsets, others: int = 0) -> None:
    """Raise if memory cannot hold the couplers between u bits of a vertex and so many others."""
    sizes, here = subsets.families.sizes, memory_here()
    needed = BYTES_OF_PAIR * (int((sizes * (sizes - 1) // 2).sum()) + others)
    if here is not None and needed > here:
        raise TooLargeError(
            f"making a QUBO of {subsets.total} subsets takes about {needed / 1e9:,.1f} GB, and there are "
            f"{here / 1e9:,.1f}; cover the candidates with fewer subsets (by the method auto), allow fewer parents, or "
            "learn without a QUBO: `qubayes learn` with another solver, or `qubayes solve` without --bits"
        )
