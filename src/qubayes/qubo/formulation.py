"""Formulation of structure learning as a QUBO H(u, r, z) (paper, Section 4).

Binary variables: u for parent subsets, r for the order, z for slack."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

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
from .assembly import assemble, coupled_pairs, slack_bits
from .constrained import annealer_problem, to_cqm
from .decoding import Decoded, decode
from .encoding import encode_sets
from .formulation_files import (
    AssemblyInput,
    companion_of,
    model_companion,
    read_problem,
    write_formulation,
)
from .gains import RelativeSets, UnionScores, relate
from .on_demand import DEMAND, Demand, default_pairs, order_on_demand, without_free_pairs
from .order_bits import (
    ORDERS,
    PROVED_ORDER,
    OrderBits,
    OrderStatus,
    balanced,
    choose_order,
    eliminations,
)
from .penalties import (
    KINDS,
    PENALTIES,
    Penalties,
    VertexGains,
    needs_slack,
    paper,
    scaled,
    tight,
    vertex_gains,
    weak_kinds,
)
from .proved_order import PROVED, ProvedOrder, prove_order
from .subsets import Budget, Subsets, cover

if TYPE_CHECKING:
    from dimod import BinaryQuadraticModel, ConstrainedQuadraticModel

# A tenth of the search for subsets costs a few u variables in a thousand and saves most of its time
# (connect, m = 3).
QUICK_COVER = Budget(effort=0.1, rounds=0)
# at the peak, while interactions are sorted; up to 101 were measured (docs/results/trials.jsonl)
BYTES_OF_PAIR = 105


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Precision of the coefficients, and factors of the penalties."""

    # factors of the penalties edge, triangle, both (order), slack
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
    """A QUBO whose least energy is minus the best score, and the meaning of its variables.

    Variables: one u for each subset, vertex by vertex; one r for each pair of `order`; one z for
    each vertex in `slack_vertices`."""

    relative: RelativeSets = field(repr=False)
    order: OrderBits = field(repr=False)
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
    order_status: OrderStatus = PROVED_ORDER  # whether the order bits forbid every cycle
    order_seconds: float = 0.0  # spent on choosing the order bits
    # that the least energy is minus the best score, for `qubayes check`; of order="proved"
    certificate: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def candidates(self) -> Candidates:
        """The candidate sets that were formulated."""
        return self.relative.candidates

    @property
    def subsets(self) -> Subsets:
        """The subsets that the u variables stand for."""
        return self.relative.subsets

    @property
    def first_r(self) -> int:
        """Number of u variables: the index of the first r."""
        return self.subsets.total

    @property
    def first_z(self) -> int:
        """Number of u and r variables, which the constrained form has: the index of the first z."""
        return self.first_r + len(self.order.pairs)

    @property
    def slack_vertices(self) -> Ints:
        """The vertices that have a slack variable z, ascending."""
        return np.flatnonzero(self.penalties.has_slack)

    @property
    def bits(self) -> dict[str, int]:
        """Number of u, r and z variables, and their total."""
        return _counts(self.first_r, len(self.order.pairs), len(self.slack_vertices))

    @property
    def z_bits(self) -> Ints:
        """(n,) the index of the slack variable z of each vertex, -1 where it has none."""
        return slack_bits(self.first_z, self.penalties.has_slack)

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
        """Upper bound on the score lost by rounding (docs/theory.md §9)."""
        return (self.step or 0.0) * int((self.candidates.per_vertex > 0).sum())

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each variable: u[Smoker|Age,Sex], r[Age<Sex], z[Smoker]."""
        names, families = self.candidates.names, self.subsets.families
        labels = []
        for vertex, name in enumerate(names):
            for subset in families.sets_of(vertex):
                labels.append(f"u[{name}|{','.join(names[parent] for parent in subset)}]")
        labels += [
            f"r[{names[first]}<{names[second]}]" for first, second in self.order.pairs.tolist()
        ]
        labels += [f"z[{names[vertex]}]" for vertex in self.slack_vertices.tolist()]
        return tuple(labels)

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
        """Return the constrained form as an `ommx.v1.Instance`."""
        return to_ommx(self.to_cqm(ordering=ordering))

    def write(
        self, path: str | Path, *, ordering: str = "penalties", companion: bool = True
    ) -> ModelSize:
        """Write the QUBO with its labels, or its constrained form, and return the model's size.

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
        """Return the network of a sample, or of each of several, with its violated constraints."""
        return decode(self, answer, repair=repair)

    def state_of(self, choice: npt.ArrayLike) -> tuple[Bools, float]:
        """Return the sample, and its energy, of the DAG with these numbers of candidate sets.

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
        """Return what `qubayes formulate --json` prints, for the written model if given."""
        size = written or self.size
        u, r, z = self._counts_in(size)
        return {
            "n": self.candidates.n,
            "bits": _counts(u, r, z),
            "couplers": size.couplers,
            "constraints": size.constraints,
            "coefficient_range": list(size.coefficient_range),
            "mu": self.subsets.families.sizes.tolist(),
            "proved_optimal_vertices": int(self.subsets.proved.sum()),
            "seconds": self._seconds(),
            "order": self.order_kind,
            "order_status": asdict(self.order_status),
            "penalty": self.penalty_kind,
            "step": self.step,
            "rounding_error": self.rounding_error,
            "weak_penalties": list(self.weak),
        }

    def _counts_in(self, size: ModelSize) -> tuple[int, int, int]:
        """Return the numbers of u and r variables, and of others in a model of this size."""
        return self.first_r, len(self.order.pairs), size.bits - self.first_z

    def _seconds(self) -> dict[str, float]:
        """Return the seconds spent on each step."""
        return {
            "cover": round(self.subsets.seconds, 3),
            "order": round(self.order_seconds, 3),
            "assemble": round(self.seconds, 3),
        }

    def __str__(self) -> str:
        """Return the size of the QUBO in one line."""
        return self.describe()[0]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the lines of `describe`."""
        return "".join(f"<div>{escape(line)}</div>" for line in self.describe())

    def describe(self, written: ModelSize | None = None) -> list[str]:
        """Return the size of the QUBO, or of the written model if given, in a few lines."""
        size = written or self.size
        u, r, z = self._counts_in(size)
        first = (
            f"{size.bits:,} binary variables: {u:,} parent subsets, {r:,} order, {z:,} slack; "
            f"{size.couplers:,} interactions"
        )
        if size.constraints:
            first += f"; {size.constraints:,} constraints"
        least, largest = size.coefficient_range
        lines = [first, f"coefficients from {least:.6g} to {largest:.6g}"]
        if self.step is not None:
            error = f"rounding loses at most {self.rounding_error:.6g} of the best score"
            lines.append(f"coefficients are multiples of {self.step:.6g}; {error}")
        if self.order_kind == PROVED and not self.order_status.certified:
            lines.append("order bits: the default ones, which are exact; no proof for fewer")
        elif self.order_kind == PROVED:
            lines.append(f"order bits: {self.order_status}")
        elif self.order_kind not in ORDERS:
            lines.append(f"order bits: {self.order_kind}, {self.order_status}")
        proved, seconds = int(self.subsets.proved.sum()), self._seconds()
        return [
            *lines,
            f"{proved} of {self.candidates.n} vertices have a provably smallest family of subsets",
            f"subsets found in {seconds['cover']} s; order bits chosen in {seconds['order']} s; "
            f"QUBO assembled in {seconds['assemble']} s",
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
    """Return the QUBO H(u, r, z) with min H = -(best score), reached by best networks alone.

    `order="scc", penalty="paper"` is the paper's formulation. A union of subsets that is not a
    candidate set scores as the best candidate set inside it (closure), or as `union_scores` says
    (the base beyond the maximum size). Without `subsets`, they are found by `cover`. With rounded
    `coefficients`, min H = -(best rounded score). With `order="adjacent"` order bits are made on
    demand, and `order_status` says what is known of them. With `order="proved"` they are few, and a
    `certificate` proves that they suffice; without a proof in the time they are the default ones.
    """
    workers = workers or Workers()
    coefficients = coefficients or Coefficients()
    if subsets is None:
        subsets = cover(candidates, workers=workers)
    _check_penalty(penalty)
    _check_memory(subsets)
    _check_scores(order, union_scores, coefficients)
    began = time.perf_counter()
    choice = _choose_order(order, candidates, subsets, demand or Demand(), workers, on_progress)
    chosen = time.perf_counter()
    problem = AssemblyInput(
        candidates, subsets, choice.bits, penalty, coefficients.scale, union_scores
    )
    made = _assembled_with(coefficients, problem, workers)
    return replace(
        made,
        order_kind=order,
        order_status=choice.status,
        order_seconds=chosen - began,
        seconds=time.perf_counter() - chosen,
        certificate=choice.certificate,
    )


def _check_scores(order: str, union_scores: UnionScores | None, coefficients: Coefficients) -> None:
    """Raise if the scores of unions or the coefficients exclude another setting."""
    rounds = coefficients.digits is not None or coefficients.bits is not None
    if union_scores is not None and rounds:
        raise SettingError("given scores of unions and rounded coefficients; give one of them")
    if order == PROVED and (union_scores is not None or rounds):
        other = "rounded coefficients" if rounds else "given scores of unions"
        raise SettingError(
            f"order = {PROVED!r} is a proof about the scores of candidate sets; leave out {other}"
        )


class _OrderChoice(NamedTuple):
    """The order bits, and what is known of them."""

    bits: OrderBits
    status: OrderStatus
    certificate: Mapping[str, Any] | None = None


def _choose_order(
    kind: str,
    candidates: Candidates,
    subsets: Subsets,
    demand: Demand,
    workers: Workers,
    on_progress: OnProgress,
) -> _OrderChoice:
    """Return the order bits of this kind."""
    if kind in DEMAND:
        relative = relate(candidates, subsets)
        bits, status = order_on_demand(relative, demand, workers, on_progress)
        return _OrderChoice(bits, status)
    if kind == PROVED:
        bits, proof = _proved_order(candidates, subsets, demand, workers)
        if proof is None:
            return _OrderChoice(bits, replace(PROVED_ORDER, certified=False))
        return _OrderChoice(bits, replace(PROVED_ORDER, certified=True), proof.certificate)
    if kind in ORDERS:
        return _OrderChoice(choose_order(candidates, kind), PROVED_ORDER)
    orders = ", ".join((*ORDERS, *DEMAND, PROVED))
    raise SettingError(f"order = {kind!r}; choose one of {orders}")


def _proved_order(
    candidates: Candidates, subsets: Subsets, demand: Demand, workers: Workers
) -> tuple[OrderBits, ProvedOrder | None]:
    """Return order bits with their proof; the default ones if there is no proof in the time."""
    by_default = choose_order(candidates, "chordal")
    proof = prove_order(candidates, demand.seconds, workers, demand.seed)
    if proof is None:
        return by_default, None
    pairs = default_pairs(relate(candidates, subsets))
    certified = without_free_pairs(pairs, proof.pairs)
    if len(certified.pairs) >= len(by_default.pairs):
        return by_default, None
    return certified, proof


def is_certified(formulation: Formulation, names_of_pairs: Iterable[frozenset[str]]) -> bool:
    """Return whether the order bits are those for these pairs, by the names of their vertices."""
    number = {name: vertex for vertex, name in enumerate(formulation.candidates.names)}
    pairs = set()
    for pair in names_of_pairs:
        first, second = sorted(number[name] for name in pair)
        pairs.add((first, second))
    expected = without_free_pairs(default_pairs(formulation.relative), pairs)
    order = formulation.order
    if order.triangles.tolist() != expected.triangles.tolist():
        return False
    if order.coupled.tolist() != expected.coupled.tolist():
        return False
    return bool((np.sort(order.pairs, axis=1) == expected.pairs).all())


def _assembled_with(
    coefficients: Coefficients, problem: AssemblyInput, workers: Workers
) -> Formulation:
    """Return the formulation with coefficients of this precision."""
    if coefficients.digits is not None:
        return assembled(problem, 10.0**-coefficients.digits, workers)
    made = assembled(problem, None, workers)
    if coefficients.bits is None:
        return made
    # take the least step found whose coefficients are at most `most` steps
    most = 2 ** (coefficients.bits - 1) - 1
    step = max(made.coefficient_range[1], 1e-9) / most
    while True:
        made = assembled(problem, step, workers)
        largest = made.coefficient_range[1]
        if largest <= step * most * (1 + 1e-9):
            return made
        if not made.relative.gains.any():
            raise SettingError("too few bits of precision: every gain is rounded to 0; give more")
        step *= 1.001 * largest / (step * most)


def assembled(problem: AssemblyInput, step: float | None, workers: Workers) -> Formulation:
    """Return the formulation; with a step, of the gains rounded to its multiples."""
    candidates = problem.candidates
    if step is not None:
        candidates = _rounded(candidates, step)
    relative = relate(candidates, problem.subsets, problem.union_scores)
    order = problem.order
    _check_memory(relative.subsets, 3 * len(order.triangles) + coupled_pairs(relative, order))
    gains = vertex_gains(relative, workers)
    proved = (
        tight(relative, order, gains, step)
        if problem.penalty == "tight"
        else paper(relative, order, gains)
    )
    penalties = scaled(proved, problem.scale, step)
    weak = weak_kinds(penalties, relative, order, gains) if problem.scale else ()
    if problem.penalty == "tight":
        order = balanced(order, penalties.triangles)
    qubo = assemble(relative, order, gains, penalties)
    if step is not None:
        h = frozen(np.rint(qubo.h / step) * step)
        qubo = qubo._replace(h=h, weights=frozen(np.rint(qubo.weights / step) * step))
    return Formulation(
        relative,
        order,
        penalties,
        _representations(relative, gains),
        qubo,
        order_kind="",
        penalty_kind=problem.penalty,
        seconds=0.0,
        scores=problem.candidates.scores,
        scale=problem.scale,
        step=step,
        weak=weak,
    )


def _rounded(candidates: Candidates, step: float) -> Candidates:
    """Return the candidate sets with gains rounded to multiples of the step."""
    bases = np.repeat(candidates.base_scores, candidates.families.sizes)
    scores = bases + np.rint((candidates.scores - bases) / step) * step
    return replace(candidates, scores=frozen(scores))


def _representations(relative: RelativeSets, gains: list[VertexGains]) -> SmallInts:
    """Return (sets, 2) the subsets that represent each candidate set; -1 for a base."""
    found = np.full((len(relative.gains), 2), -1, np.int32)
    for vertex in gains:
        found[vertex.representations[:, 0]] = vertex.representations[:, 1:]
    return frozen(found)


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
    """Return `Formulation.bits` without the QUBO, for example because it is too large.

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
    return cover(
        candidates, method=method, budget=QUICK_COVER, workers=workers, on_progress=on_progress
    )


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
    """Raise if memory cannot hold the interactions inside each vertex and `others` more."""
    sizes = subsets.families.sizes
    here = memory_here()
    needed = BYTES_OF_PAIR * (int((sizes * (sizes - 1) // 2).sum()) + others)
    if here is not None and needed > here:
        raise TooLargeError(
            f"making a QUBO of {subsets.total} subsets takes about {needed / 1e9:,.1f} GB, and "
            f"there are {here / 1e9:,.1f}; cover the candidates with fewer subsets (by the method "
            "auto), allow fewer parents, or learn without a QUBO: `qubayes learn` with another "
            "solver, or `qubayes solve` without --bits"
        )
