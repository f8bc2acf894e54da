"""The quadratic g2 of a decomposition: its terms, and the penalty h that ties the bits together.

`tight` weighs each part of h by the terms that could gain from breaking it and is exact for the decoder that reads the
roots (docs/quadratization.md). `paper` is Lemma B.2 as printed with one kappa, exact for the decoder that takes the
union of all active sets.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..foundation.arrays import Bools, Floats
from .decomposition import Decomposition, Mask, Pair, SubsetIndex, bits, nested_roots


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

        off = on = kappa gives kappa (q_j q_k - 2 q_j q_i - 2 q_k q_i + 3 q_i) of Lemma B.2.
        """
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

    Each part of the penalty weighs the sum of the coefficients that a wrong bit there could withhold (> 0) or collect
    (< 0).
    """
    splits, roots = decomposition.splits, decomposition.roots
    off: dict[Mask, float] = defaultdict(float)  # split set -> weight against being 0 wrongly
    on: dict[Mask, float] = defaultdict(float)  # split set -> weight against being 1 wrongly
    nested = dict.fromkeys(nested_roots(roots), 0.0)  # (inner, outer) -> weight against outer without inner
    above = {root: [pair for pair in nested if root & ~pair[0] == 0] for root in roots} if nested else {}
    for term, coefficient in coefficients.items():
        tree = _tree(decomposition, decomposition.pairs[term])
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


def _tree(decomposition: Decomposition, start: Pair) -> set[Mask]:
    """Return the sets that the given ones are built from, themselves included."""
    seen: set[Mask] = set()
    waiting = list(start)
    while waiting:
        mask = waiting.pop()
        if mask not in seen:
            seen.add(mask)
            waiting += decomposition.splits.get(mask, ())
    return seen


def paper_quadratic(decomposition: Decomposition, coefficients: Mapping[Mask, float]) -> Quadratic:
    """Return g2 with h of Lemma B.2: every split and every inclusion, with kappa = 1.1 sum of |coefficients|.

    kappa_0 is at most that sum.
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


def exclusive_quadratic(sets: Sequence[Mask], coefficients: Mapping[Mask, float]) -> ExclusiveQuadratic:
    """Return g2 for exclusive terms, as for Bayesian networks: one or two active sets cost f of their union.

    With k >= 3 active sets and the best z the penalty is xi (k - 1)(k - 2) / 2. It lifts them above f of every union of
    two sets if xi > top + 3 a + 3 b, where -a and -b bound the linear and quadratic coefficients from below and top is
    the largest f of a union: (top + k a + k (k - 1) / 2 b) / ((k - 1)(k - 2) / 2) falls with k.
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
    return ExclusiveQuadratic(result, 1.1 * (top + 3 * sum(lowest)) or 1.0)


def _values_of_unions(sets: Sequence[Mask], coefficients: Mapping[Mask, float]) -> Floats:
    """Return f of the union of every two sets, without the constant."""
    width = max((mask.bit_length() for mask in coefficients), default=0)
    members = _indicator(sets, width)
    terms = _indicator(tuple(coefficients), width).astype(np.float32).T
    weights = np.array(list(coefficients.values()))
    rows = [((~(members | row)).astype(np.float32) @ terms == 0) @ weights for row in members]
    return np.array(rows).reshape(len(sets), len(sets))


def _indicator(masks: Sequence[Mask], width: int) -> Bools:
    result = np.zeros((len(masks), width), dtype=np.bool_)
    for row, mask in enumerate(masks):
        result[row, list(bits(mask))] = True
    return result
