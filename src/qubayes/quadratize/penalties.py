"""The quadratic g2 of a plan, on bit masks: the terms, and the penalty h that ties the bits together
(docs/quadratization.md).

`tight` weighs each part of h by the terms that could gain from breaking it and is exact for the decoder that reads
the roots. `paper` is Lemma B.2 as printed with one kappa, exact for the decoder that takes the union of all active
sets.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from .family import Mask, Pair, Plan, Subsets, bits, nested_roots

Penalty: TypeAlias = Literal["tight", "paper"]


class Quadratic:
    """sum of linear[s] q_s + sum of couplers[s, t] q_s q_t, gathered piece by piece."""

    def __init__(self) -> None:
        self.linear: dict[Mask, float] = defaultdict(float)
        self.couplers: dict[Pair, float] = defaultdict(float)

    def add(self, weight: float, a: Mask, b: Mask | None = None) -> None:
        """Add weight * q_a * q_b, or weight * q_a."""
        if b is None or a == b:
            self.linear[a] += weight
        else:
            self.couplers[(a, b) if a < b else (b, a)] += weight

    def product_penalty(self, off: float, on: float, product: Mask, parts: Pair) -> None:
        """Add a penalty of `off` where product = 0 with both parts 1, at least `on` where it is 1 without both, 0
        where right.

        off = on = kappa gives kappa (q_j q_k - 2 q_j q_i - 2 q_k q_i + 3 q_i) of Lemma B.2.
        """
        self.add(off, *parts)
        for part in parts:
            self.add(-(off + on), part, product)
        self.add(off + 2 * on, product)

    def inclusion_penalty(self, weight: float, inner: Mask, outer: Mask) -> None:
        """Add weight * (1 - q_inner) * q_outer."""
        self.add(weight, outer)
        self.add(-weight, inner, outer)


class Weights(NamedTuple):
    """How much each part of the penalty must weigh at least."""

    off: dict[Mask, float]  # split set -> weight against being 0 wrongly
    on: dict[Mask, float]  # split set -> weight against being 1 wrongly
    nested: dict[Pair, float]  # (inner, outer) roots -> weight against outer without inner


def tight_weights(plan: Plan, coefficients: Mapping[Mask, float]) -> Weights:
    """Per part of the penalty, the sum of the coefficients that a wrong bit there could withhold (> 0) or collect (<
    0).
    """
    off: dict[Mask, float] = defaultdict(float)
    on: dict[Mask, float] = defaultdict(float)
    nested = dict.fromkeys(nested_roots(plan.roots), 0.0)
    above = {root: [pair for pair in nested if root & ~pair[0] == 0] for root in plan.roots} if nested else {}
    for term, coefficient in coefficients.items():
        tree = _tree(plan, plan.pairs[term])
        for mask in tree:
            if mask in plan.splits:
                (off if coefficient > 0 else on)[mask] += abs(coefficient)
        if coefficient > 0 and above:
            for pair in {pair for mask in tree if mask not in plan.splits for pair in above[mask]}:
                nested[pair] += coefficient
    return Weights(off, on, nested)


def _tree(plan: Plan, start: Pair) -> set[Mask]:
    """The sets that the given ones are built from, themselves included."""
    seen: set[Mask] = set()
    waiting = list(start)
    while waiting:
        mask = waiting.pop()
        if mask not in seen:
            seen.add(mask)
            waiting += plan.splits.get(mask, ())
    return seen


def tight_model(plan: Plan, coefficients: Mapping[Mask, float]) -> Quadratic:
    """g2 with the smallest penalty proved to do: one split per set, roots inside roots, weights term by term."""
    result = _terms(plan, coefficients)
    weights = tight_weights(plan, coefficients)
    for mask, parts in plan.splits.items():
        result.product_penalty(weights.off.get(mask, 0.0), weights.on.get(mask, 0.0), mask, parts)
    for (inner, outer), weight in weights.nested.items():
        result.inclusion_penalty(weight, inner, outer)
    return result


def paper_model(plan: Plan, coefficients: Mapping[Mask, float]) -> Quadratic:
    """g2 with h of Lemma B.2: every split, every inclusion. kappa_0 <= sum of |coefficients|, and kappa is 1.1 times
    that.
    """
    result = _terms(plan, coefficients)
    kappa = 1.1 * math.fsum(map(abs, coefficients.values()))
    family = Subsets(plan.sets)
    for mask in plan.sets:
        inside = family.inside(mask)
        for number, a in enumerate(inside):
            result.inclusion_penalty(kappa, a, mask)
            for b in inside[number + 1 :]:
                if a | b == mask:
                    result.product_penalty(kappa, kappa, mask, (a, b))
    return result


def _terms(plan: Plan, coefficients: Mapping[Mask, float]) -> Quadratic:
    result = Quadratic()
    for mask in plan.sets:
        result.add(0.0, mask)
    for term, coefficient in coefficients.items():
        result.add(coefficient, *plan.pairs[term])
    return result


class ExclusiveModel(NamedTuple):
    """The quadratic for at most two active sets, and the weight xi of the penalty on more."""

    quadratic: Quadratic
    more_than_two: float  # xi in xi (z - z sum u + sum of u u')


def exclusive_model(sets: Sequence[Mask], coefficients: Mapping[Mask, float]) -> ExclusiveModel:
    """g2 for exclusive terms, as in the Bayesian network case: one or two active sets cost f of their union, whatever
    the pair.

    With k >= 3 active sets and the best z the penalty is xi (k - 1)(k - 2) / 2. It lifts them above f of every
    union of two sets if xi > top + 3 a + 3 b, where -a and -b bound the linear and quadratic coefficients from
    below and top is the largest f of a union: (top + k a + k (k - 1) / 2 b) / ((k - 1)(k - 2) / 2) falls with k.
    """
    values = _values_of_unions(sets, coefficients)  # (J, J), the diagonal for one set
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
    return ExclusiveModel(result, 1.1 * (top + 3 * sum(lowest)) or 1.0)


def _values_of_unions(
    sets: Sequence[Mask], coefficients: Mapping[Mask, float]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """f of the union of every two sets, without the constant."""
    width = max((mask.bit_length() for mask in coefficients), default=0)
    members = _indicator(sets, width)
    terms = _indicator(tuple(coefficients), width).astype(np.float32).T
    weights = np.array(list(coefficients.values()))
    rows = [((~(members | row)).astype(np.float32) @ terms == 0) @ weights for row in members]
    return np.array(rows).reshape(len(sets), len(sets))


def _indicator(masks: Sequence[Mask], width: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    result = np.zeros((len(masks), width), dtype=np.bool_)
    for row, mask in enumerate(masks):
        result[row, list(bits(mask))] = True
    return result
