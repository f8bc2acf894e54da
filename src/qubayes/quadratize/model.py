"""The quadratic model of a decomposition: g2 with the penalty h, and the decoder g1.

`tight` weighs each part of h by the terms that could gain from breaking it and is exact for the
decoder that reads the roots (docs/quadratization.md). `paper` is the paper's Lemma `barc1` as
printed with one kappa, exact for the decoder that takes the union of all active sets."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, combinations, combinations_with_replacement
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import dimod
import numpy as np
import numpy.typing as npt

from ..foundation.arrays import AnyArray, Bools, Floats
from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import json_object, replacing
from .decomposition import (
    Assumptions,
    Decomposition,
    Mask,
    Pair,
    Penalty,
    SubsetIndex,
    bits,
    nested_roots,
)
from .polynomial import Polynomial, Variable

FORMAT = "qubayes-decoder-1"


class Quadratic:
    """sum of linear[s] q_s + sum of couplers[s, t] q_s q_t, collected term by term."""

    def __init__(self) -> None:
        self.linear: dict[Mask, float] = defaultdict(float)
        self.couplers: dict[Pair, float] = defaultdict(float)

    def add(self, weight: float, a: Mask, b: Mask | None = None) -> None:
        """Add weight * q_a * q_b, or weight * q_a."""
        if b is None or a == b:
            self.linear[a] += weight
        else:
            self.couplers[(a, b) if a < b else (b, a)] += weight

    def add_product_penalty(self, off: float, on: float, product: Mask, parts: Pair) -> None:
        """Add `off` if product = 0 with both parts 1, at least `on` if it is 1 without both.

        A product that is right adds 0. off = on = kappa gives
        kappa (q_j q_k - 2 q_j q_i - 2 q_k q_i + 3 q_i) of the paper's Lemma `barc1`."""
        self.add(off, *parts)
        for part in parts:
            self.add(-(off + on), part, product)
        self.add(off + 2 * on, product)

    def add_inclusion_penalty(self, weight: float, inner: Mask, outer: Mask) -> None:
        """Add weight * (1 - q_inner) * q_outer."""
        self.add(weight, outer)
        self.add(-weight, inner, outer)


def tight_quadratic(decomposition: Decomposition, coefficients: Mapping[Mask, float]) -> Quadratic:
    """Return g2 with the smallest penalty proved enough: one split for each set, nested roots.

    Each part of the penalty weighs the sum of the coefficients that a wrong bit there could
    withhold (> 0) or collect (< 0)."""
    trees = {term: decomposition.tree(term) for term in coefficients}
    off: dict[Mask, float] = defaultdict(float)  # split set -> weight against being 0 wrongly
    on: dict[Mask, float] = defaultdict(float)  # split set -> weight against being 1 wrongly
    for term, coefficient in coefficients.items():
        weights = off if coefficient > 0 else on
        for mask in trees[term] & decomposition.splits.keys():
            weights[mask] += abs(coefficient)
    result = _terms(decomposition, coefficients)
    for mask, parts in decomposition.splits.items():
        result.add_product_penalty(off[mask], on[mask], mask, parts)
    for (inner, outer), weight in _nesting_weights(decomposition, trees, coefficients).items():
        result.add_inclusion_penalty(weight, inner, outer)
    return result


def _nesting_weights(
    decomposition: Decomposition,
    trees: Mapping[Mask, set[Mask]],
    coefficients: Mapping[Mask, float],
) -> dict[Pair, float]:
    """Return (inner, outer) -> weight against the outer root without the inner one."""
    weights = dict.fromkeys(nested_roots(decomposition.roots), 0.0)
    above: dict[Mask, list[Pair]] = {}
    for root in decomposition.roots if weights else ():
        above[root] = [pair for pair in weights if root & ~pair[0] == 0]
    for term, coefficient in coefficients.items():
        if coefficient > 0 and above:
            used = trees[term] - decomposition.splits.keys()
            for pair in set(chain.from_iterable(above[root] for root in used)):
                weights[pair] += coefficient
    return weights


def paper_quadratic(decomposition: Decomposition, coefficients: Mapping[Mask, float]) -> Quadratic:
    """Return g2 with h of the paper's Lemma `barc1`: every split and every inclusion.

    kappa = 1.1 sum of |coefficients|; kappa_0 is at most that sum.
    """
    result = _terms(decomposition, coefficients)
    kappa = 1.1 * math.fsum(map(abs, coefficients.values()))
    index = SubsetIndex(decomposition.sets)
    for mask in decomposition.sets:
        inside = index.inside(mask)
        for number, a in enumerate(inside):
            result.add_inclusion_penalty(kappa, a, mask)
            for b in inside[number + 1 :]:
                if a | b == mask:
                    result.add_product_penalty(kappa, kappa, mask, (a, b))
    return result


def _terms(decomposition: Decomposition, coefficients: Mapping[Mask, float]) -> Quadratic:
    result = Quadratic()
    for mask in decomposition.sets:
        result.add(0.0, mask)
    for term, coefficient in coefficients.items():
        result.add(coefficient, *decomposition.pairs[term])
    return result


class ExclusiveQuadratic(NamedTuple):
    """The quadratic for at most two active sets, and the weight of the penalty on more."""

    quadratic: Quadratic
    more_than_two: float  # xi in xi (z - z sum u + sum of u u')


def exclusive_quadratic(
    sets: Sequence[Mask], coefficients: Mapping[Mask, float]
) -> ExclusiveQuadratic:
    """Return g2 for exclusive terms (Bayesian networks): two active sets cost f of their union.

    With k >= 3 active sets and the best z the penalty is xi (k - 1)(k - 2) / 2. It lifts them above
    f of every union of two sets if xi > top + 3 a + 3 b, where -a and -b bound the linear and
    quadratic coefficients from below and top is the largest f of a union: (top + k a + k (k - 1) /
    2 b) / ((k - 1)(k - 2) / 2) falls with k."""
    values = _values_of_unions(sets, coefficients)
    alone = np.diag(values)
    joint = values - alone[:, None] - alone[None, :]
    result = Quadratic()
    for value, mask in zip(alone.tolist(), sets, strict=True):
        result.add(value, mask)
    pairs = np.triu_indices(len(sets), 1)
    for value, (a, b) in zip(joint[pairs].tolist(), combinations(sets, 2), strict=True):
        result.add(value, a, b)
    lowest = [max(0.0, -float(x.min(initial=0.0))) for x in (alone, joint[pairs])]
    top = float(values.max(initial=0.0))
    return ExclusiveQuadratic(result, 1.1 * (top + 3 * sum(lowest)) or 1.0)


def _values_of_unions(sets: Sequence[Mask], coefficients: Mapping[Mask, float]) -> Floats:
    """Return (sets, sets) f of the union of every two sets, without the constant."""
    width = max((mask.bit_length() for mask in coefficients), default=0)
    members = _membership(sets, width)
    terms = _membership(coefficients, width).astype(np.float32).T
    weights = np.array(list(coefficients.values()))
    rows = [((~(members | row)).astype(np.float32) @ terms == 0) @ weights for row in members]
    return np.array(rows).reshape(len(sets), len(sets))


def _membership(masks: Iterable[Mask], width: int) -> Bools:
    """Return (masks, width) which elements each set has."""
    rows = [[mask >> element & 1 for element in range(width)] for mask in masks]
    return np.array(rows, np.bool_).reshape(-1, width)


@dataclass(frozen=True, slots=True)
class Decoder:
    """g1: a variable is 1 iff the bit of a read set that holds it is 1; in no term, it is 0."""

    variables: tuple[Variable, ...]  # of the polynomial
    bits: tuple[Variable, ...]  # label of the bit of each set
    sets: tuple[tuple[Variable, ...], ...]
    read: tuple[bool, ...]  # which sets g1 reads; the other bits are products of these
    # the bit z of exclusive terms; then at most two sets may be active
    counter: Variable | None = None
    exclusive: bool = False

    @property
    def labels(self) -> tuple[Variable, ...]:
        """All bits of the model."""
        return self.bits if self.counter is None else (*self.bits, self.counter)

    def decode(self, sample: Mapping[Variable, int]) -> dict[Variable, int]:
        """Return the state of the polynomial's variables for a state of the bits."""
        row = np.array([[_bit(sample, label) for label in self.labels]], dtype=np.int8)
        return dict(zip(self.variables, map(int, self.decode_rows(row)[0]), strict=True))

    def decode_rows(self, rows: AnyArray) -> npt.NDArray[np.int8]:
        """Return states of `variables`, one in each row, for states of `labels` in rows."""
        members = self._members()
        members[~np.array(self.read, dtype=np.bool_)] = 0.0
        return (rows[:, : len(self.bits)].astype(np.float32) @ members > 0).astype(np.int8)

    def encode(self, sample: Mapping[Variable, int]) -> dict[Variable, int]:
        """Return the state of the bits that decodes to a state of the variables.

        If none does, to the largest state below it."""
        active = {v for v in self.variables if _bit(sample, v)}
        inside = [number for number, own in enumerate(self.sets) if set(own) <= active]
        if self.exclusive:
            inside = self._two_of(inside)
        state = {bit: int(number in inside) for number, bit in enumerate(self.bits)}
        return state if self.counter is None else {**state, self.counter: int(len(inside) == 2)}

    def _two_of(self, numbers: list[int]) -> list[int]:
        """Return one or two of these sets with the same union; raise if there are none."""
        sets = {number: set(self.sets[number]) for number in numbers}
        union = set().union(*sets.values())
        for a, b in combinations_with_replacement(numbers, 2):
            if sets[a] | sets[b] == union:
                return list({a, b})
        if union:
            raise QubayesError(
                "the state is not the union of two sets, so more than one term is active; "
                "give a state with one active term, or quadratize with assumptions='general'"
            )
        return []

    def satisfied_rows(self, rows: AnyArray) -> npt.NDArray[np.bool_]:
        """Return for each state of `labels` whether every bit is the product of its variables."""
        active: npt.NDArray[np.bool_] = rows[:, : len(self.bits)].astype(np.bool_)
        if self.exclusive:
            number = active.sum(axis=1)
            best = number >= 2
            counter = best if self.counter is None else rows[:, len(self.bits)].astype(np.int64)
            return np.asarray(counter - counter * number + number * (number - 1) // 2 == 0)
        missing = (1 - self.decode_rows(rows)).astype(np.float32) @ self._members().T
        return np.asarray(np.all((missing == 0) == active, axis=1))

    def to_json(self) -> str:
        """Return the decoder as JSON; labels are strings, numbers, or tuples of them."""
        facts = {"format": FORMAT, **asdict(self)}
        try:
            text = json.dumps(facts, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise FormatError(
                f"a label cannot be JSON ({error}); use strings, numbers or tuples of them"
            ) from None
        if Decoder.from_json(text) != self:
            raise FormatError(
                "a label does not survive JSON; use strings, numbers or tuples of them"
            )
        return text

    def write(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        text = self.to_json()
        with replacing(path) as file:
            file.write(text)

    @staticmethod
    def from_json(text: str) -> "Decoder":
        """Return the decoder that `to_json` wrote."""
        facts = json_object(text)
        try:
            fields = {name: _tupled(value) for name, value in facts.items()}
            if fields.pop("format") != FORMAT:
                raise KeyError(f"this version reads {FORMAT}")
            decoder = Decoder(**fields)
            if not len(decoder.bits) == len(decoder.sets) == len(decoder.read):
                raise KeyError("'bits', 'sets' and 'read' differ in length")
            if not set().union(*decoder.sets) <= set(decoder.variables):
                raise KeyError("a set names a variable that is not listed")
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise FormatError(f"not a decoder ({error}); give what Decoder.to_json wrote") from None
        return decoder

    def _members(self) -> npt.NDArray[np.float32]:
        place = {v: i for i, v in enumerate(self.variables)}
        result = np.zeros((len(self.sets), len(self.variables)), dtype=np.float32)
        for row, members in enumerate(self.sets):
            result[row, [place[v] for v in members]] = 1.0
        return result


def _tupled(value: Any) -> Any:
    """Return the value with lists, as JSON has them, replaced by tuples."""
    return tuple(map(_tupled, value)) if isinstance(value, list) else value


def _bit(sample: Mapping[Variable, int], label: Variable) -> int:
    if label not in sample:
        raise QubayesError(f"the sample has no value for {label!r}; give a state of all bits")
    if sample[label] not in (0, 1):
        raise QubayesError(
            f"{label!r} = {sample[label]!r} where a bit is expected; "
            "spins become bits by (1 + spin) / 2"
        )
    return int(sample[label])


def assemble(
    polynomial: Polynomial,
    order: Sequence[int],
    decomposition: Decomposition,
    coefficients: Mapping[Mask, float],
    assumptions: Assumptions,
    penalty: Penalty,
) -> tuple[dimod.BinaryQuadraticModel, Decoder]:
    """Return g2 and g1 in the labels of the polynomial.

    `order` is the variable at each position of the masks."""
    exclusive = assumptions == "terms-exclusive"
    places = _ranked(decomposition.sets, order)
    members = tuple(tuple(polynomial.variables[v] for v in own) for own in places.values())
    taken = set(polynomial.variables)
    labels = _labels_of(members, taken)
    weight = 0.0
    if exclusive:
        quadratic, weight = exclusive_quadratic(decomposition.sets, coefficients)
    elif penalty == "tight":
        quadratic = tight_quadratic(decomposition, coefficients)
    else:
        quadratic = paper_quadratic(decomposition, coefficients)
    model = _labelled_model(quadratic, dict(zip(places, labels, strict=True)))
    model.offset = polynomial.constant
    counter = None
    if exclusive and len(labels) > 2:
        counter = _unused("z", taken)
        _add_counter(model, counter, labels, weight)
    reads_all = exclusive or penalty == "paper"
    return model, Decoder(
        variables=polynomial.variables,
        bits=tuple(labels),
        sets=members,
        read=tuple(reads_all or mask not in decomposition.splits for mask in places),
        counter=counter,
        exclusive=exclusive,
    )


def _ranked(sets: Iterable[Mask], order: Sequence[int]) -> dict[Mask, list[int]]:
    """Return set -> its variables, by their number, then by the variables."""
    places = {mask: sorted(map(order.__getitem__, bits(mask))) for mask in sets}
    return dict(sorted(places.items(), key=lambda item: (len(item[1]), item[1])))


def _labels_of(sets: Iterable[tuple[Variable, ...]], taken: set[Variable]) -> list[Variable]:
    """Return the label of the bit of each set; products get new ones, also added to `taken`."""
    labels: list[Variable] = []
    for own in sets:
        labels.append(own[0] if len(own) == 1 else _unused("*".join(map(str, own)), taken))
        taken.add(labels[-1])
    return labels


def _labelled_model(
    quadratic: Quadratic, labels: Mapping[Mask, Variable]
) -> dimod.BinaryQuadraticModel:
    """Return the quadratic as a model; bits and couplers in the order of the labels."""
    model = dimod.BinaryQuadraticModel(dimod.BINARY)
    for mask, label in labels.items():
        model.add_linear(label, quadratic.linear[mask])
    rank = {mask: number for number, mask in enumerate(labels)}
    couplers = {}
    for pair, weight in quadratic.couplers.items():
        if weight != 0.0:
            first, second = sorted(pair, key=rank.__getitem__)
            couplers[rank[first], rank[second]] = labels[first], labels[second], weight
    for _, coupler in sorted(couplers.items(), key=itemgetter(0)):
        model.add_quadratic(*coupler)
    return model


def _add_counter(
    model: dimod.BinaryQuadraticModel, counter: Variable, labels: Sequence[Variable], weight: float
) -> None:
    """Add weight (z - z sum u + sum over pairs of u u'): 0 for the best z iff sum u <= 2."""
    model.add_linear(counter, weight)
    for number, label in enumerate(labels):
        model.add_quadratic(counter, label, -weight)
        for other in labels[number + 1 :]:
            model.add_quadratic(label, other, weight)


def _unused(label: str, taken: set[Variable]) -> str:
    """Return the label with as many underscores before it as make it new."""
    while label in taken:
        label = "_" + label
    return label
