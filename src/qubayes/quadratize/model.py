"""The quadratic model of a decomposition: g2 with the penalty h that ties the bits together, and the decoder g1.

`tight` weighs each part of h by the terms that could gain from breaking it and is exact for the
decoder that reads the roots (docs/quadratization.md). `paper` is the paper's Lemma `barc1` as
printed with one kappa, exact for the decoder that takes the union of all active sets."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, NamedTuple

import dimod
import numpy as np
import numpy.typing as npt

from ..foundation.arrays import AnyArray, Floats
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
        """Add `off` if product = 0 with both parts 1, at least `on` if it is 1 without both, 0 if it is right.

        off = on = kappa gives kappa (q_j q_k - 2 q_j q_i - 2 q_k q_i + 3 q_i) of the paper's Lemma
        `barc1`."""
        self.add(off, *parts)
        for part in parts:
            self.add(-(off + on), part, product)
        self.add(off + 2 * on, product)

    def add_inclusion_penalty(self, weight: float, inner: Mask, outer: Mask) -> None:
        """Add weight * (1 - q_inner) * q_outer."""
        self.add(weight, outer)
        self.add(-weight, inner, outer)


def tight_quadratic(decomposition: Decomposition, coefficients: Mapping[Mask, float]) -> Quadratic:
    """Return g2 with the smallest penalty proved to suffice: one split for each set, and nested roots.

    Each part of the penalty weighs the sum of the coefficients that a wrong bit there could
    withhold (> 0) or collect (< 0)."""
    splits, roots = decomposition.splits, decomposition.roots
    off: dict[Mask, float] = defaultdict(float)  # split set -> weight against being 0 wrongly
    on: dict[Mask, float] = defaultdict(float)  # split set -> weight against being 1 wrongly
    # (inner, outer) -> weight against outer without inner
    nested = dict.fromkeys(nested_roots(roots), 0.0)
    above = (
        {root: [pair for pair in nested if root & ~pair[0] == 0] for root in roots}
        if nested
        else {}
    )
    for term, coefficient in coefficients.items():
        tree = decomposition.tree(term)
        for mask in tree & splits.keys():
            (off if coefficient > 0 else on)[mask] += abs(coefficient)
        if coefficient > 0 and above:
            for pair in {pair for mask in tree - splits.keys() for pair in above[mask]}:
                nested[pair] += coefficient
    result = _terms(decomposition, coefficients)
    for mask, parts in splits.items():
        result.add_product_penalty(off.get(mask, 0.0), on.get(mask, 0.0), mask, parts)
    for (inner, outer), weight in nested.items():
        result.add_inclusion_penalty(weight, inner, outer)
    return result


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
    """Return g2 for exclusive terms, as for Bayesian networks: one or two active sets cost f of their union.

    With k >= 3 active sets and the best z the penalty is xi (k - 1)(k - 2) / 2. It lifts them above
    f of every union of two sets if xi > top + 3 a + 3 b, where -a and -b bound the linear and
    quadratic coefficients from below and top is the largest f of a union: (top + k a + k (k - 1) /
    2 b) / ((k - 1)(k - 2) / 2) falls with k."""
    width = max((mask.bit_length() for mask in coefficients), default=0)
    members, terms = (
        np.array([[mask >> e & 1 for e in range(width)] for mask in masks], np.bool_).reshape(
            -1, width
        )
        for masks in (sets, coefficients)
    )
    weights, columns = np.array(list(coefficients.values())), terms.astype(np.float32).T
    rows = [((~(members | row)).astype(np.float32) @ columns == 0) @ weights for row in members]
    # f of the union of every two, without the constant
    values: Floats = np.array(rows).reshape(len(sets), len(sets))
    alone = np.diag(values)
    joint = values - alone[:, None] - alone[None, :]
    result = Quadratic()
    above = np.triu_indices(len(sets), 1)
    for i, mask in enumerate(sets):
        result.add(float(alone[i]), mask)
    for first, second in zip(*map(np.ndarray.tolist, above), strict=True):
        result.add(float(joint[first, second]), sets[first], sets[second])
    lowest = [max(0.0, -float(x.min(initial=0.0))) for x in (alone, joint[above])]
    top = float(values.max(initial=0.0))
    return ExclusiveQuadratic(result, 1.1 * (top + 3 * sum(lowest)) or 1.0)


@dataclass(frozen=True, slots=True)
class Decoder:
    """g1: a variable is 1 iff the bit of a read set that holds it is 1. Variables in no term are 0."""

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
        """Return states of `variables`, one in each row, for states of `labels`, one in each row."""
        members = self._members()
        members[~np.array(self.read, dtype=np.bool_)] = 0.0
        return (rows[:, : len(self.bits)].astype(np.float32) @ members > 0).astype(np.int8)

    def encode(self, sample: Mapping[Variable, int]) -> dict[Variable, int]:
        """Return the state of the bits that decodes to a state of the variables, or to the largest one below it."""
        active = {v for v in self.variables if _bit(sample, v)}
        inside = {number: set(s) for number, s in enumerate(self.sets) if set(s) <= active}
        if self.exclusive:  # at most two sets whose union is that of all sets inside
            reachable = set().union(*inside.values())
            pairs = combinations_with_replacement(inside, 2)
            two = next(
                (pair for pair in pairs if inside[pair[0]] | inside[pair[1]] == reachable), None
            )
            if two is None and reachable:
                raise QubayesError(
                    "the state is not the union of two sets, so more than one term is active; give a state with one "
                    "active term, or quadratize with assumptions='general'"
                )
            inside = {number: inside[number] for number in two or ()}
        state = {bit: int(number in inside) for number, bit in enumerate(self.bits)}
        return state if self.counter is None else {**state, self.counter: int(len(inside) == 2)}

    def satisfied_rows(self, rows: AnyArray) -> npt.NDArray[np.bool_]:
        """Return for each state of `labels` whether the penalty is 0: every bit is the product of its variables."""
        active: npt.NDArray[np.bool_] = rows[:, : len(self.bits)].astype(np.bool_)
        if self.exclusive:
            number = active.sum(axis=1)
            counter = (
                number >= 2 if self.counter is None else rows[:, len(self.bits)].astype(np.int64)
            )
            return np.asarray(counter - counter * number + number * (number - 1) // 2 == 0)
        missing = (1 - self.decode_rows(rows)).astype(np.float32) @ self._members().T
        return np.asarray(np.all((missing == 0) == active, axis=1))

    def to_json(self) -> str:
        """Return the decoder as JSON; labels are strings, numbers, or tuples of them."""
        try:
            text = json.dumps(
                {"format": FORMAT, **asdict(self)}, ensure_ascii=False, allow_nan=False
            )
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
            f"{label!r} = {sample[label]!r} where a bit is expected; spins become bits by (1 + spin) / 2"
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
    """Return g2 and g1 in the labels of the polynomial; `order` is the variable at each position of the masks."""
    exclusive, sets = assumptions == "terms-exclusive", decomposition.sets
    places = {s: sorted(order[e] for e in bits(s)) for s in sets}
    ranked = sorted(sets, key=lambda s: (s.bit_count(), places[s]))
    members = tuple(tuple(polynomial.variables[v] for v in places[s]) for s in ranked)
    taken, labels = set(polynomial.variables), list[Variable]()
    for own in members:
        labels.append(own[0] if len(own) == 1 else _unused("*".join(map(str, own)), taken))
        taken.add(labels[-1])
    weight = 0.0
    if exclusive:
        quadratic, weight = exclusive_quadratic(sets, coefficients)
    else:
        quadratic = (tight_quadratic if penalty == "tight" else paper_quadratic)(
            decomposition, coefficients
        )
    model = dimod.BinaryQuadraticModel(dimod.BINARY)
    model.offset = polynomial.constant
    for label, mask in zip(labels, ranked, strict=True):
        model.add_linear(label, quadratic.linear[mask])
    rank = {mask: number for number, mask in enumerate(ranked)}
    kept = ((sorted((rank[a], rank[b])), w) for (a, b), w in quadratic.couplers.items() if w != 0.0)
    for (first, second), coupling in sorted(kept):
        model.add_quadratic(labels[first], labels[second], coupling)
    counter = None
    # weight * (z - z sum u + sum over pairs of u u'): 0 for the best z iff sum u <= 2
    if exclusive and len(sets) > 2:
        counter = _unused("z", taken)
        model.add_linear(counter, weight)
        for number, label in enumerate(labels):
            model.add_quadratic(counter, label, -weight)
            for other in labels[number + 1 :]:
                model.add_quadratic(label, other, weight)
    read = tuple(exclusive or penalty == "paper" or s not in decomposition.splits for s in ranked)
    return model, Decoder(polynomial.variables, tuple(labels), members, read, counter, exclusive)


def _unused(label: str, taken: set[Variable]) -> str:
    """Return the label with as many underscores before it as make it new."""
    while label in taken:
        label = "_" + label
    return label
