"""Decomposed quadratization of any pseudo-Boolean polynomial (the paper's section of that name).

`quadratize` returns the model; the composite lets any dimod sampler of quadratic models sample
polynomials by it."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import dimod
import numpy as np
from dimod.core.polysampler import ComposedPolySampler
from dimod.higherorder.polynomial import BinaryPolynomial
from dimod.higherorder.utils import reduce_binary_polynomial

from ..foundation.errors import SettingError
from ..machines import write_model
from .decomposition import (
    Assumptions,
    Decomposition,
    Mask,
    Penalty,
    couplers,
    decompose,
    holds,
    in_order,
    merge_twins,
    pairs_estimate,
    reduce_space,
    simple_bound,
    singletons,
)
from .heuristic import prune, quick_family, searched_family
from .integer_program import FewestCouplers, smallest_family
from .integer_program import fewest_couplers as find_fewest_couplers
from .model import Decoder, assemble
from .polynomial import CanonicalOrder, Polynomial, Variable, as_polynomial, canonical_order

Mode: TypeAlias = Literal["auto", "optimal", "greedy"]

# Pairs up to which the integer program comes first; 40 terms of degree 2-4 have about 2,000.
COMFORTABLE = 20_000
# Pairs up to which "auto" gives it some seconds after the fast search.
BRIEF_PAIRS = 200_000
BRIEF_SECONDS = 10.0
FEASIBLE = 1_500_000  # pairs past which even "optimal" does not build the program: memory
MOST_PAIRS: dict[str, int] = {"greedy": 0, "auto": BRIEF_PAIRS, "optimal": FEASIBLE}
PAIRS_FOR_COUPLERS = 100_000  # pairs past which the program that counts couplers is not built
# Names of the options of `quadratize`.
OPTION_NAMES = ("assumptions", "mode", "fewest_couplers", "penalty", "time_limit")


@dataclass(frozen=True, slots=True)
class Quadratization:
    """A quadratic model whose states decode to states of the polynomial with the same energies.

    For every state p that the decoder can give, f(p) is the least energy of the model over the
    states that decode to p (paper, Definition `decomposition`); the least energy of the model is
    the least value of f."""

    polynomial: Polynomial
    # Q_1 .. Q_J; bit j stands for the product of its set's variables
    sets: tuple[tuple[Variable, ...], ...]
    model: dimod.BinaryQuadraticModel  # g2
    decoder: Decoder  # g1
    assumptions: Assumptions
    lower_bound: int  # no family that satisfies the assumptions has fewer sets
    proved: bool  # the number of sets equals the lower bound
    # with fewest_couplers: lower bound for families of as many sets, for any coefficients
    couplers_bound: int | None
    couplers_proved: bool | None
    structural: bool  # other labels of the variables only rename the result
    status: str  # what was proved
    seconds: float

    @property
    def bits(self) -> int:
        """Number of bits of the model."""
        return int(self.model.num_variables)

    @property
    def couplers(self) -> int:
        """Number of couplers of the model."""
        return int(self.model.num_interactions)

    def write(self, path: str | Path) -> None:
        """Write the model; the ending chooses the format."""
        write_model(self.model, path)

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {
            "variables": len(self.polynomial.variables),
            "terms": len(self.polynomial.terms),
            "degree": self.polynomial.degree,
            "bits": {"total": self.bits, "sets": len(self.sets)},
            "couplers": self.couplers,
            "lower_bound": self.lower_bound,
            "proved": self.proved,
            "status": self.status,
            "seconds": self.seconds,
        }

    def describe(self) -> list[str]:
        """Return the result in a few lines for people."""
        proved = "minimal number of sets" if self.proved else "no"
        facts = {**self.as_json(), "bits": self.bits, "proved": proved}
        return [f"{name.replace('_', ' '):<12} {value}" for name, value in facts.items()]


class TradeOff(NamedTuple):
    """Fewest couplers known with a number of bits."""

    bits: int
    couplers: int
    proved: bool  # no model with at most as many bits has fewer couplers

    def describe(self) -> str:
        """Return the row in words."""
        proved = ", proved fewest" if self.proved else ""
        return f"{self.bits} bits: {self.couplers} couplers{proved}"


def quadratize(
    poly: Any,
    *,
    assumptions: Assumptions = "general",
    mode: Mode = "auto",
    fewest_couplers: bool = False,
    penalty: Penalty = "tight",
    time_limit: float = 120.0,
) -> Quadratization:
    """Return the decomposed quadratization of a polynomial with the fewest bits the mode finds.

    assumptions: "general" (Assumptions 1 and 2), "conventional" (and 3: every variable keeps its
        own bit), or "terms-exclusive" (1 only; the caller knows that in every state that matters
        the ones of p are one term, or none). mode: "optimal" (integer program until the time
        limit), "greedy" (any size, no proof), "auto" (optimal where that is likely to end).
        fewest_couplers: among families of the same number of sets, one with the fewest couplers of
        the chosen penalty (paper, Appendix C.2). penalty: "tight" (ours, per term) or "paper" (its
        Lemma `barc1` with one kappa). time_limit: seconds for the integer programs."""
    began = time.monotonic()
    _check(assumptions, mode, penalty, time_limit)
    polynomial = as_polynomial(poly)
    if polynomial.degree <= 2:
        return _unchanged(polynomial, assumptions, began)
    task = _prepare(polynomial, assumptions)
    choice = _choose(task, poly, mode, began + time_limit)
    decomposition = decompose(choice.sets, task.coefficients, assumptions)
    status = choice.status
    fewest = None
    if fewest_couplers:
        fewest = _fewest_couplers(task, decomposition, penalty, 0, began + time_limit)
        status += "; " + (fewest.status if fewest else "couplers were not minimised")
    if fewest is not None:
        decomposition = fewest.decomposition
    model, decoder = assemble(
        polynomial, task.order.order, decomposition, task.coefficients, assumptions, penalty
    )
    return Quadratization(
        polynomial=polynomial,
        sets=decoder.sets,
        model=model,
        decoder=decoder,
        assumptions=assumptions,
        lower_bound=choice.bound,
        proved=choice.proved,
        couplers_bound=fewest.bound if fewest else None,
        couplers_proved=fewest.proved if fewest else None,
        structural=task.order.structural,
        status=status,
        seconds=round(time.monotonic() - began, 3),
    )


def _unchanged(polynomial: Polynomial, assumptions: Assumptions, began: float) -> Quadratization:
    """Return a polynomial of degree 2 or less as a model of its own variables."""
    masks = dict(zip(map(_mask, polynomial.terms), polynomial.coefficients, strict=True))
    sets = in_order(singletons(masks))
    pairs = {mask: (mask & -mask, 1 << mask.bit_length() - 1) for mask in masks}
    order = range(len(polynomial.variables))
    decomposition = Decomposition(sets, {}, pairs)
    model, decoder = assemble(polynomial, order, decomposition, masks, "conventional", "tight")
    bound = min(simple_bound(tuple(masks), assumptions), len(sets))
    proved = bound == len(sets)
    remark = "" if proved else f"; at least {bound} sets needed"
    return Quadratization(
        polynomial=polynomial,
        sets=decoder.sets,
        model=model,
        decoder=decoder,
        assumptions=assumptions,
        lower_bound=bound,
        proved=proved,
        couplers_bound=None,
        couplers_proved=None,
        structural=True,
        status=f"degree {polynomial.degree}: returned as it is{remark}",
        seconds=round(time.monotonic() - began, 3),
    )


def _mask(elements: Iterable[int]) -> Mask:
    """Return the set of these elements."""
    return sum(map((1).__lshift__, elements))


def trade_off(
    poly: Any,
    *,
    assumptions: Assumptions = "general",
    extra_bits: int = 2,
    time_limit: float = 120.0,
) -> tuple[TradeOff, ...]:
    """Return the fewest couplers with the least number of bits, with one more, and so on.

    This is the paper's Appendix C.2. Couplers are those of the tight penalty. Each row takes at
    most `time_limit` seconds."""
    _check(assumptions, "optimal", "tight", time_limit)
    if assumptions == "terms-exclusive":
        raise SettingError(
            "with terms-exclusive every pair of bits is coupled, so there is no trade-off; "
            "use general or conventional"
        )
    if extra_bits < 0:
        raise SettingError(f"extra_bits = {extra_bits}; give 0 or more")
    task = _prepare(as_polynomial(poly), assumptions)
    choice = choose_family(
        tuple(task.coefficients), assumptions, "optimal", time.monotonic() + time_limit
    )
    start = decompose(choice.sets, task.coefficients, assumptions)
    result = []
    for extra in range(extra_bits + 1):
        fewest = _fewest_couplers(task, start, "tight", extra, time.monotonic() + time_limit)
        found = start if fewest is None else fewest.decomposition
        proved = fewest is not None and fewest.proved
        result.append(TradeOff(len(found.sets), len(couplers(found, "tight")), proved))
    return tuple(result)


def _check(assumptions: str, mode: str, penalty: str, time_limit: float) -> None:
    """Raise for settings outside the allowed values."""
    allowed = {
        "assumptions": (assumptions, Assumptions),
        "mode": (mode, Mode),
        "penalty": (penalty, Penalty),
    }
    for name, (value, kind) in allowed.items():
        if value not in get_args(kind):
            raise SettingError(f"{name} = {value!r}; give one of {', '.join(get_args(kind))}")
    if not (isinstance(time_limit, int | float) and time_limit > 0 and not math.isnan(time_limit)):
        raise SettingError(f"time_limit = {time_limit!r}; give a number of seconds above 0")


class _Prepared(NamedTuple):
    """A polynomial as masks over canonical positions of its variables."""

    polynomial: Polynomial
    order: CanonicalOrder
    coefficients: dict[Mask, float]  # of terms, in a fixed order
    assumptions: Assumptions


def _prepare(polynomial: Polynomial, assumptions: Assumptions) -> _Prepared:
    order = canonical_order(polynomial)
    place = {variable: position for position, variable in enumerate(order.order)}
    masks = {}
    for term, coefficient in zip(polynomial.terms, polynomial.coefficients, strict=True):
        masks[_mask(map(place.__getitem__, term))] = coefficient
    coefficients = {mask: masks[mask] for mask in in_order(masks)}
    return _Prepared(polynomial, order, coefficients, assumptions)


class FamilyChoice(NamedTuple):
    """A family and what is known about the smallest one."""

    sets: tuple[Mask, ...]
    bound: int  # no family that satisfies the assumptions has fewer sets
    proved: bool
    status: str


def choose_family(
    terms: Sequence[Mask], assumptions: Assumptions, mode: Mode, deadline: float
) -> FamilyChoice:
    """Return a family for the terms, proved smallest where mode, size and time allow it."""
    merged = merge_twins(terms, assumptions)
    bound = simple_bound(merged.terms, assumptions)
    pairs = pairs_estimate(merged.terms)
    small = mode != "greedy" and pairs <= COMFORTABLE
    search = quick_family if small else partial(searched_family, enough=bound)
    sets = search(merged.terms, assumptions)
    reason = "fast search, no proof sought"
    if mode == "optimal":
        reason = "fast search: the terms are too long for the integer program"
    if len(sets) > bound and pairs <= MOST_PAIRS[mode]:
        seconds = deadline - time.monotonic()
        reason = "time limit reached, best so far returned"
        if mode == "auto" and not small and seconds > BRIEF_SECONDS:
            seconds = BRIEF_SECONDS
            reason = f"no proof within {BRIEF_SECONDS:.0f} s"
        sets, proved_bound = _by_program(merged.terms, assumptions, sets, seconds)
        bound = max(bound, proved_bound)
    if small and len(sets) > bound:
        sets = min(sets, searched_family(merged.terms, assumptions, bound), key=len)
    bound = min(bound, len(sets))
    proved = bound == len(sets)
    number = "1 set" if len(sets) == 1 else f"{len(sets)} sets"
    known = "proved minimal" if proved else f"at least {bound} needed; {reason}"
    return FamilyChoice(tuple(map(merged.expand, sets)), bound, proved, f"{number}, {known}")


def _by_program(
    terms: Sequence[Mask], assumptions: Assumptions, sets: set[Mask], seconds: float
) -> tuple[set[Mask], int]:
    """Return the family of the integer program if it has fewer sets, else `sets`; and its bound."""
    found = smallest_family(reduce_space(terms, assumptions), seconds, sets)
    # Of equal families the one is kept that does not depend on the solver.
    if not found.sets or len(found.sets) >= len(sets):
        return sets, found.bound
    # The solver works with tolerances, so its family is checked.
    if not holds(found.sets, terms, assumptions):
        return sets, found.bound
    return set(found.sets), found.bound


def _choose(task: _Prepared, given: Any, mode: Mode, deadline: float) -> FamilyChoice:
    """Return the family, or dimod's for the same input if that is smaller and no proof is lost."""
    terms = tuple(task.coefficients)
    choice = choose_family(terms, task.assumptions, mode, deadline)
    if choice.proved or task.assumptions == "terms-exclusive":
        return choice
    used = set(chain.from_iterable(task.polynomial.terms))
    masks = {
        task.polynomial.variables[v]: 1 << place
        for place, v in enumerate(task.order.order)
        if v in used
    }
    family = dimod_family(given, masks)
    if len(family) >= len(choice.sets):
        return choice
    sets = in_order(prune(family, terms, task.assumptions))
    status = (
        f"{len(sets)} sets, at least {choice.bound} needed; "
        "taken from dimod, whose choice depends on the hash seed"
    )
    return choice._replace(sets=sets, proved=len(sets) == choice.bound, status=status)


def dimod_family(given: Any, masks: Mapping[Variable, Mask]) -> set[Mask]:
    """Return the family of `dimod.make_quadratic` on the same input, as masks of variables.

    dimod breaks ties by hash order, so its family may change with PYTHONHASHSEED.
    """
    if isinstance(given, Polynomial):
        terms = (tuple(given.variables[v] for v in term) for term in given.terms)
        given = dict(zip(terms, given.coefficients, strict=True))
    polynomial = given if isinstance(given, BinaryPolynomial) else BinaryPolynomial(given, "BINARY")
    nonzero = BinaryPolynomial({t: c for t, c in polynomial.items() if c}, "BINARY")
    _, products = reduce_binary_polynomial(nonzero)
    known: dict[Variable, Mask] = dict(masks)
    for (first, second), product in products:
        known[product] = known[first] | known[second]
    return set(known.values())


def _fewest_couplers(
    task: _Prepared, start: Decomposition, penalty: Penalty, extra: int, deadline: float
) -> FewestCouplers | None:
    """Return the decomposition with the fewest couplers.

    None if all have as many, or the program is too large."""
    terms = tuple(task.coefficients)
    if task.assumptions == "terms-exclusive" or pairs_estimate(terms) > PAIRS_FOR_COUPLERS:
        return None
    seconds = deadline - time.monotonic()
    return find_fewest_couplers(terms, task.assumptions, penalty, start, extra, seconds)


class DecomposedQuadratizationComposite(ComposedPolySampler):
    """Sampler of polynomials by a sampler of quadratic models.

    Samples have the polynomial's variables, its energies and `penalty_satisfaction`. A polynomial
    of spins is sampled as the equal polynomial of bits; its samples are spins."""

    def __init__(self, child_sampler: Any) -> None:
        self._children = [child_sampler]

    @property
    def children(self) -> list[Any]:
        """The sampler of quadratic models, in a list."""
        return self._children

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the child and of this composite."""
        ours = ("quadratize_options", "discard_unsatisfied", "keep_penalty_variables")
        return {**self.child.parameters, **{name: [] for name in ours}}

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of the child."""
        return {"child_properties": dict(self.child.properties)}

    def sample_poly(  # type: ignore[override]
        self,
        poly: BinaryPolynomial,
        quadratize_options: Mapping[str, Any] | None = None,
        discard_unsatisfied: bool = False,
        keep_penalty_variables: bool = False,
        initial_state: Mapping[Variable, int] | None = None,
        **parameters: Any,
    ) -> dimod.SampleSet:
        """Sample a `dimod.BinaryPolynomial` by the child sampler, which takes further parameters.

        `quadratize_options` are keywords of `quadratize`. `initial_state` is a state of the
        polynomial's variables. `keep_penalty_variables` adds the bits of the model that are not
        variables of the polynomial."""
        began = time.perf_counter_ns()
        unknown = set(quadratize_options or {}) - set(OPTION_NAMES)
        if unknown:
            raise SettingError(
                f"quadratize_options has {sorted(unknown)}; allowed are {', '.join(OPTION_NAMES)}"
            )
        binary = poly
        if poly.vartype is dimod.SPIN:
            binary = poly.to_binary(copy=True)  # type: ignore[no-untyped-call]
        result = quadratize(binary, **(quadratize_options or {}))
        if initial_state is not None:
            if poly.vartype is dimod.SPIN:
                initial_state = {v: (x + 1) // 2 for v, x in initial_state.items()}
            parameters["initial_state"] = result.decoder.encode(initial_state)
        ready = time.perf_counter_ns()
        answer = self.child.sample(result.model, **parameters)
        sampled = time.perf_counter_ns()
        samples = _decoded(answer, poly, result, keep_penalty_variables)
        samples.info["timing"] = {
            "preprocessing_ns": ready - began, "sampling_ns": sampled - ready,
            "postprocessing_ns": time.perf_counter_ns() - sampled,
        }  # fmt: skip
        if not discard_unsatisfied:
            return samples
        return samples.filter(lambda datum: datum.penalty_satisfaction)


def _decoded(
    answer: dimod.SampleSet, poly: BinaryPolynomial, result: Quadratization, keep: bool
) -> dimod.SampleSet:
    """Return the child's samples in the polynomial's variables, with its other vectors."""
    decoder = result.decoder
    place = {label: column for column, label in enumerate(answer.variables)}
    rows = answer.record.sample[:, [place[label] for label in decoder.labels]] > 0
    states = decoder.decode_rows(rows)
    energies = result.polynomial.energies(states)
    labels = [v for v in decoder.variables if v in poly.variables]
    states = states[:, [decoder.variables.index(v) for v in labels]]
    if keep:
        extra = [label for label in decoder.labels if label not in labels]
        columns = [decoder.labels.index(label) for label in extra]
        states = np.hstack([states, rows[:, columns].astype(np.int8)])
        labels += extra
    if poly.vartype is dimod.SPIN:
        states = 2 * states - 1
    vectors = {
        name: answer.record[name]
        for name in answer.record.dtype.names
        if name not in ("sample", "energy")
    }
    vectors["penalty_satisfaction"] = decoder.satisfied_rows(rows)
    facts = {"bits": result.bits, "couplers": result.couplers, "status": result.status}
    samples: dimod.SampleSet = dimod.SampleSet.from_samples(  # type: ignore[no-untyped-call]
        (states.astype(np.int8), labels),
        energy=energies,
        info={**answer.info, "quadratization": facts},
        vartype=poly.vartype,
        sort_labels=False,
        **vectors,
    )
    return samples
