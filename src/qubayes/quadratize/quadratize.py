"""Decomposed quadratization of any pseudo-Boolean polynomial (the paper's section of that name, design §8)."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import dimod

from ..foundation.errors import SettingError
from .canonical import CanonicalOrder, canonical_order
from .choose import Choice, Mode, choose_family
from .decoder import Decoder
from .family import Assumptions, Mask, Plan, bits, couplers, in_order, plan_for
from .greedy import prune
from .peer import smaller_by_dimod
from .penalties import Penalty, Quadratic, exclusive_model, paper_model, tight_model
from .polynomial import Polynomial, Variable, as_polynomial
from .reduction import pairs_estimate, simple_bound
from .term_reduction import Thrift
from .term_reduction import fewest_couplers as find_fewest_couplers


@dataclass(frozen=True, slots=True)
class Quadratization:
    """A quadratic model whose states, read by the decoder, stand for states of the polynomial, energy for energy.

    For every state p that the decoder can give, f(p) is the least energy of the model over the states that decode to p
    (Definition 5); the least energy of all is the least f of all.
    """

    polynomial: Polynomial
    sets: tuple[tuple[Variable, ...], ...]  # Q_1 .. Q_J; bit j stands for the product of its set's variables
    model: dimod.BinaryQuadraticModel  # g2
    decoder: Decoder  # g1
    assumptions: Assumptions
    lower_bound: int  # no family that satisfies the assumptions has fewer sets
    proved: bool  # the number of sets equals the lower bound
    couplers_bound: int | None  # with fewest_couplers: no family with this number of sets has fewer, signs left aside
    couplers_proved: bool | None
    structural: bool  # the result depends on the variables' labels only by renaming
    status: str  # one sentence on what was proved
    seconds: float

    @property
    def bits(self) -> int:
        """Number of bits of the model."""
        return int(self.model.num_variables)

    @property
    def couplers(self) -> int:
        """Number of couplers of the model."""
        return int(self.model.num_interactions)


class TradeOff(NamedTuple):
    """Fewest couplers known with a number of bits."""

    bits: int
    couplers: int
    proved: bool  # no fewer couplers with that many bits


def quadratize(
    poly: Any,
    *,
    assumptions: Assumptions = "general",
    mode: Mode = "auto",
    fewest_couplers: bool = False,
    penalty: Penalty = "tight",
    time_limit: float = 120.0,
) -> Quadratization:
    """The decomposed quadratization of a polynomial of bits with the fewest bits that the mode finds.

    assumptions: "general" (Assumptions 1 and 2), "conventional" (and 3: every variable keeps its own bit), or
    "terms-exclusive" (1 only; the caller knows that in every state that matters the ones of p are one term, or
    none). mode: "optimal" (integer program until the time limit), "greedy" (any size, no proof), "auto" (optimal
    where that is likely to end). fewest_couplers: among families of the same number of sets, one with the fewest
    couplers (Appendix C.2). penalty: "tight" (ours, per term) or "paper" (Lemma B.2 with one kappa). time_limit:
    seconds for the integer programs.
    """
    began = time.monotonic()
    _check(assumptions, mode, penalty, time_limit)
    polynomial = as_polynomial(poly)
    if polynomial.degree <= 2:
        return _as_it_is(polynomial, assumptions, began)
    task = _prepare(polynomial, assumptions)
    choice = _choose(task, poly, mode, began + time_limit)
    plan = plan_for(choice.sets, task.coefficients, assumptions)
    thrift = _reduce_terms(task, plan, 0, began + time_limit) if fewest_couplers else None
    if thrift is not None:
        plan = thrift.plan
    model, decoder = _assemble(task, plan, penalty)
    return Quadratization(
        polynomial=polynomial,
        sets=decoder.sets,
        model=model,
        decoder=decoder,
        assumptions=assumptions,
        lower_bound=choice.bound,
        proved=choice.proved,
        couplers_bound=thrift.bound if thrift else None,
        couplers_proved=thrift.proved if thrift else None,
        structural=task.order.structural,
        status="; ".join([choice.status] + [_thrift_words(thrift)] * fewest_couplers),
        seconds=round(time.monotonic() - began, 3),
    )


def trade_off(
    poly: Any, *, assumptions: Assumptions = "general", extra_bits: int = 2, time_limit: float = 120.0
) -> tuple[TradeOff, ...]:
    """The fewest couplers with the least number of bits, with up to one more, and so on (Appendix C.2), `time_limit`
    seconds each.
    """
    _check(assumptions, "optimal", "tight", time_limit)
    if assumptions == "terms-exclusive":
        raise SettingError(
            "exclusive terms couple every two bits, so there is no trade-off; use general or conventional"
        )
    if extra_bits < 0:
        raise SettingError(f"extra_bits = {extra_bits}; give 0 or more")
    task = _prepare(as_polynomial(poly), assumptions)
    choice = choose_family(tuple(task.coefficients), assumptions, "optimal", time.monotonic() + time_limit)
    plan = plan_for(choice.sets, task.coefficients, assumptions)
    result = []
    for extra in range(extra_bits + 1):
        thrift = _reduce_terms(task, plan, extra, time.monotonic() + time_limit)
        found = plan if thrift is None else thrift.plan
        result.append(TradeOff(len(found.sets), len(couplers(found)), thrift is not None and thrift.proved))
    return tuple(result)


class _Task(NamedTuple):
    """A polynomial ready for the search."""

    polynomial: Polynomial
    order: CanonicalOrder
    coefficients: dict[Mask, float]  # terms as masks over canonical positions, in a defined order
    assumptions: Assumptions


def _prepare(polynomial: Polynomial, assumptions: Assumptions) -> _Task:
    order = canonical_order(polynomial)
    place = {variable: position for position, variable in enumerate(order.order)}
    pairs = zip(polynomial.terms, polynomial.coefficients, strict=True)
    masks = {sum(1 << place[v] for v in term): coefficient for term, coefficient in pairs}
    return _Task(polynomial, order, {mask: masks[mask] for mask in in_order(masks)}, assumptions)


PAIRS_FOR_COUPLERS = 100_000  # pairs past which the program that counts couplers is not built


def _reduce_terms(task: _Task, plan: Plan, extra: int, deadline: float) -> Thrift | None:
    """The plan with the fewest couplers; None where every family has the same, or the program would be too large."""
    if task.assumptions == "terms-exclusive" or pairs_estimate(task.coefficients) > PAIRS_FOR_COUPLERS:
        return None
    terms = tuple(task.coefficients)
    return find_fewest_couplers(terms, task.assumptions, plan, extra, deadline - time.monotonic())


def _thrift_words(thrift: Thrift | None) -> str:
    if thrift is None:
        return "couplers were not minimised"
    return "couplers proved fewest" if thrift.proved else f"at least {thrift.bound} couplers needed, time limit reached"


def _check(assumptions: str, mode: str, penalty: str, time_limit: float) -> None:
    """Refuse settings that mean nothing."""
    allowed = {"assumptions": (assumptions, Assumptions), "mode": (mode, Mode), "penalty": (penalty, Penalty)}
    for name, (value, kind) in allowed.items():
        if value not in get_args(kind):
            raise SettingError(f"{name} = {value!r}; give one of {', '.join(get_args(kind))}")
    if not (isinstance(time_limit, int | float) and time_limit > 0 and not math.isnan(time_limit)):
        raise SettingError(f"time_limit = {time_limit!r}; give a number of seconds above 0")


def _choose(task: _Task, given: Any, mode: Mode, deadline: float) -> Choice:
    """The family; dimod's for the polynomial as it was given where that is smaller and nothing is proved."""
    terms = tuple(task.coefficients)
    choice = choose_family(terms, task.assumptions, mode, deadline)
    if choice.proved or task.assumptions == "terms-exclusive":
        return choice
    used = {v for term in task.polynomial.terms for v in term}
    masks = {task.polynomial.variables[v]: 1 << place for place, v in enumerate(task.order.order) if v in used}
    family = smaller_by_dimod(given, masks, len(choice.sets))
    if family is None:
        return choice
    sets = in_order(prune(family, terms, task.assumptions))
    status = (
        f"{len(sets)} sets, at least {choice.bound} needed; taken from dimod, whose choice depends on the hash seed"
    )
    return choice._replace(sets=sets, proved=len(sets) == choice.bound, status=status)


def _assemble(task: _Task, plan: Plan, penalty: Penalty) -> tuple[dimod.BinaryQuadraticModel, Decoder]:
    """g2 and g1 in the caller's labels."""
    polynomial, order = task.polynomial, task.order
    exclusive = task.assumptions == "terms-exclusive"
    members = {s: tuple(polynomial.variables[v] for v in sorted(order.order[e] for e in bits(s))) for s in plan.sets}
    ranked = sorted(plan.sets, key=lambda s: (s.bit_count(), sorted(order.order[e] for e in bits(s))))
    labels = dict(zip(ranked, _bit_labels([members[s] for s in ranked], polynomial.variables), strict=True))
    counter = None
    if exclusive:
        quadratic, weight = exclusive_model(plan.sets, task.coefficients)
        if len(plan.sets) > 2:
            counter = _fresh("z", {*labels.values(), *polynomial.variables})
    else:
        quadratic = (tight_model if penalty == "tight" else paper_model)(plan, task.coefficients)
    model = _bqm(quadratic, ranked, labels, polynomial.constant)
    if counter is not None:
        _at_most_two(model, list(labels.values()), counter, weight)
    read = tuple(exclusive or penalty == "paper" or s not in plan.splits for s in ranked)
    decoder = Decoder(
        polynomial.variables, tuple(labels.values()), tuple(members[s] for s in ranked), read, counter, exclusive
    )
    return model, decoder


def _bqm(
    quadratic: Quadratic, ranked: Sequence[Mask], labels: Mapping[Mask, Variable], constant: float
) -> dimod.BinaryQuadraticModel:
    model = dimod.BinaryQuadraticModel(dimod.BINARY)
    model.offset = constant
    for mask in ranked:
        model.add_linear(labels[mask], quadratic.linear[mask])
    rank = {mask: number for number, mask in enumerate(ranked)}
    kept = ((rank[a], rank[b], w) for (a, b), w in quadratic.couplers.items() if w != 0.0)
    for first, second, weight in sorted((min(a, b), max(a, b), w) for a, b, w in kept):
        model.add_quadratic(labels[ranked[first]], labels[ranked[second]], weight)
    return model


def _at_most_two(
    model: dimod.BinaryQuadraticModel, bits_of_sets: list[Variable], counter: Variable, weight: float
) -> None:
    """Add weight * (z - z sum u + sum over pairs of u u'): 0 for the best z iff at most two of the bits are 1."""
    model.add_linear(counter, weight)
    for number, bit in enumerate(bits_of_sets):
        model.add_quadratic(counter, bit, -weight)
        for other in bits_of_sets[number + 1 :]:
            model.add_quadratic(bit, other, weight)


def _bit_labels(sets: Sequence[tuple[Variable, ...]], variables: Sequence[Variable]) -> Iterator[Variable]:
    """A label for each set: the variable itself, or its variables joined by *, with underscores before it if taken."""
    taken = set(variables)
    for members in sets:
        label = members[0] if len(members) == 1 else _fresh("*".join(map(str, members)), taken)
        taken.add(label)
        yield label


def _fresh(label: str, taken: set[Variable]) -> str:
    while label in taken:
        label = "_" + label
    return label


def _as_it_is(polynomial: Polynomial, assumptions: Assumptions, began: float) -> Quadratization:
    """The polynomial of degree 2 or less as a model of its own variables."""
    masks = {sum(1 << v for v in t): c for t, c in zip(polynomial.terms, polynomial.coefficients, strict=True)}
    singletons = in_order({1 << v for term in polynomial.terms for v in term})
    plan = Plan(singletons, {}, {mask: _halves(mask) for mask in masks})
    order = CanonicalOrder(tuple(range(len(polynomial.variables))), True)
    model, decoder = _assemble(_Task(polynomial, order, masks, "conventional"), plan, "tight")
    bound = min(simple_bound(tuple(masks), assumptions), len(singletons))
    proved = bound == len(singletons)
    status = f"degree {polynomial.degree}: returned as it is" + ("" if proved else f"; at least {bound} sets needed")
    return Quadratization(
        polynomial, decoder.sets, model, decoder, assumptions, bound, proved, None, None, True, status,
        round(time.monotonic() - began, 3),
    )  # fmt: skip


def _halves(mask: Mask) -> tuple[Mask, Mask]:
    elements = [1 << e for e in bits(mask)]
    return elements[0], elements[-1]
