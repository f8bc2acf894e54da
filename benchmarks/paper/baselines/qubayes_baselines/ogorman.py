"""O'Gorman et al.'s formulation, the paper's baseline: one bit for each possible edge, products for higher degrees.

Bits: d for each possible edge, r for each pair of the order, then for each vertex the products of
    two d that reduce its terms of degree three and four, then two or three slack bits that bound
    its number of parents."""

from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qubayes import QubayesError
from qubayes.candidates import Candidates
from qubayes.foundation.arrays import Floats, Ints, SmallInts, frozen
from qubayes.foundation.families import Families, VertexSet
from qubayes.machines.qubo import Qubo, check_bits
from qubayes.qubo.assembly import QuboPart, order_terms, summed
from qubayes.qubo.gains import LocalSets, RelativeSets, closure_gains, look_up, relate
from qubayes.qubo.order_bits import OrderBits, choose_order, eliminations
from qubayes.qubo.penalties import MARGIN, Penalties, order_bounds
from qubayes.qubo.subsets import Subsets

MOST_PARENTS = 4
_BLOCK = 1 << 16  # sets whose parts are looked up at once


class Sizes(NamedTuple):
    """Sizes of the baseline for each vertex (paper, Section 5.1, Baselines)."""

    parents: Ints  # (n,) |X_i|, possible parents
    degrees: Ints  # (n,) m_i, the size of the largest candidate set
    products: Ints  # (n,) floor((|X_i| - 1)^2 / 4) for m_i = 3, |X_i| (|X_i| - 1) / 2 for m_i = 4
    slacks: Ints  # (n,) bits that count up to m_i: 2 for m_i = 2 and 3, 3 for m_i = 4


@dataclass(frozen=True, slots=True)
class OGorman:
    """A QUBO over edges whose least energy is minus the best score."""

    relative: RelativeSets = field(repr=False)
    order: OrderBits = field(repr=False)
    sizes: Sizes = field(repr=False)
    qubo: Qubo = field(repr=False)

    @property
    def candidates(self) -> Candidates:
        """The candidate sets that were formulated."""
        return self.relative.candidates

    @property
    def bits(self) -> dict[str, int]:
        """Number of d, r and auxiliary bits, and their total."""
        return bits_of(self.sizes, len(self.order.pairs))

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each bit: d[child|parent], r[first<second], a[child|parent*parent], y[child,power of two]."""
        names, parents = self.candidates.names, self.relative.parents
        edges = zip(parents.children.tolist(), parents.vertices.tolist(), strict=True)
        labels = [f"d[{names[child]}|{names[parent]}]" for child, parent in edges]
        labels += [
            f"r[{names[first]}<{names[second]}]" for first, second in self.order.pairs.tolist()
        ]
        for vertex, name in enumerate(names):
            mine = parents.vertices[parents.start[vertex] : parents.start[vertex + 1]].tolist()
            products = products_of(len(mine), int(self.sizes.degrees[vertex]))
            labels += [f"a[{name}|{names[mine[j]]}*{names[mine[k]]}]" for j, k in products]
            labels += [f"y[{name},{1 << power}]" for power in range(self.sizes.slacks[vertex])]
        return tuple(labels)

    def parents(self, bits: npt.ArrayLike) -> tuple[VertexSet, ...]:
        """Return the parents of each vertex by the d bits, required ones included."""
        on = np.asarray(bits)[: self.bits["d"]] != 0
        chosen: list[set[int]] = [
            set(self.candidates.base(vertex)) for vertex in range(self.candidates.n)
        ]
        edges = self.relative.parents
        for child, parent in zip(
            edges.children[on].tolist(), edges.vertices[on].tolist(), strict=True
        ):
            chosen[child].add(parent)
        return tuple(tuple(sorted(members)) for members in chosen)


def edge_subsets(candidates: Candidates) -> Subsets:
    """Return one subset for each possible parent: O'Gorman's edge bits d are then u bits, and the order terms ours."""
    arcs = candidates.families.arcs()
    lists = [
        [
            (parent,)
            for parent in np.flatnonzero(arcs[:, vertex]).tolist()
            if parent not in candidates.base(vertex)
        ]
        for vertex in range(candidates.n)
    ]
    return Subsets(
        candidates.names, Families.of(lists), np.zeros(candidates.n, np.int64), "edges", 0.0
    )


def sizes_of(relative: RelativeSets) -> Sizes:
    """Return the counts of the paper's Baselines paragraph."""
    families = relative.candidate_sets
    parents, set_sizes = np.diff(relative.parents.start), np.diff(families.set_start)
    owners = np.repeat(np.arange(families.n), families.sizes)
    degrees = np.zeros(families.n, np.int64)
    np.maximum.at(degrees, owners, set_sizes)
    products = np.select(
        [degrees == 3, degrees == 4], [(parents - 1) ** 2 // 4, parents * (parents - 1) // 2], 0
    )
    slacks = np.array([int(degree).bit_length() for degree in degrees], dtype=np.int64)
    return Sizes(parents, degrees, products, slacks)


def bits_of(sizes: Sizes, pairs: int) -> dict[str, int]:
    """Return the number of d, r and auxiliary bits, and their total."""
    d, auxiliary = int(sizes.parents.sum()), int((sizes.products + sizes.slacks).sum())
    return {"d": d, "r": pairs, "auxiliary": auxiliary, "total": d + pairs + auxiliary}


def ogorman_bits(candidates: Candidates, *, order: str = "scc") -> dict[str, int]:
    """Return the number of bits of the baseline, without the QUBO."""
    pairs = sum(filled.pairs for _, filled in eliminations(candidates, order))
    return bits_of(sizes_of(relate(candidates, edge_subsets(candidates))), pairs)


def formulate_ogorman(candidates: Candidates, *, order: str = "scc") -> OGorman:
    """Return the baseline as a QUBO, for sets of at most four parents, with proved penalties (docs/theory.md §7)."""
    relative = relate(candidates, edge_subsets(candidates))
    sizes, pairs = sizes_of(relative), choose_order(candidates, order)
    if sizes.degrees.max(initial=0) > MOST_PARENTS:
        raise QubayesError(
            f"sets of {sizes.degrees.max()} parents; this formulation takes at most {MOST_PARENTS}"
        )
    counts = bits_of(sizes, len(pairs.pairs))
    check_bits(counts["total"])
    edges, required, triangles = (MARGIN * bound for bound in order_bounds(relative, pairs))
    penalties = Penalties(
        edges, required, triangles, np.zeros(candidates.n), np.zeros(candidates.n, np.bool_)
    )
    cycles = order_terms(counts["total"], counts["d"], relative, pairs, penalties)
    scores = score_terms(relative, sizes, counts["d"] + counts["r"], counts["total"])
    return OGorman(relative, pairs, sizes, summed(scores, *cycles))


def products_of(parents: int, degree: int) -> list[tuple[int, int]]:
    """Return the products of two d bits that reduce all terms of a vertex.

    Degree 3: pairs inside either half of the parents, as two of any three lie in one half. Degree
    4: all pairs."""
    if degree < 3:
        return []
    half = (parents + 1) // 2
    pairs = combinations(range(parents), 2)
    return [(j, k) for j, k in pairs if degree == 4 or (j < half) == (k < half)]


class Monomials(NamedTuple):
    """A polynomial in the d bits of one vertex, which are numbered from 0."""

    members: SmallInts  # (terms, 4) ascending, -1 where there are fewer
    weights: Floats  # (terms,)


def score_terms(relative: RelativeSets, sizes: Sizes, first_auxiliary: int, bits: int) -> QuboPart:
    """Return minus the scores, reduced to degree two, and the bounds on the numbers of parents."""
    h, offset, place = (
        np.zeros(bits),
        -float(relative.candidates.base_scores.sum()),
        first_auxiliary,
    )
    rows, cols, weights = [np.empty(0, np.int32)], [np.empty(0, np.int32)], [np.empty(0)]
    for vertex in np.flatnonzero(sizes.degrees).tolist():
        parents, degree, auxiliary = (
            int(sizes.parents[vertex]),
            int(sizes.degrees[vertex]),
            int(sizes.products[vertex]),
        )
        monomials = score_monomials(relative, vertex, parents, degree)
        slacks = int(sizes.slacks[vertex])
        d = relative.parents.start[vertex] + np.arange(parents)
        bit_of = np.concatenate([d, np.arange(place, place + auxiliary + slacks)]).astype(np.int32)
        place += auxiliary + slacks
        for part in (
            _reduced(monomials, parents, degree),
            _counted(monomials, parents, auxiliary, slacks, degree),
        ):
            h[bit_of[: len(part.h)]] += part.h
            offset += part.offset
            rows.append(bit_of[part.rows])
            cols.append(bit_of[part.cols])
            weights.append(part.weights)
    return QuboPart(h, np.concatenate(rows), np.concatenate(cols), np.concatenate(weights), offset)


def score_monomials(relative: RelativeSets, vertex: int, parents: int, degree: int) -> Monomials:
    """Return the multilinear polynomial that equals minus the closure gain on all sets of at most `degree` parents.

    The weight of a set W is the sum over V inside W of (-1)^(1 + |W - V|) gain(V) (Moebius
    inversion)."""
    candidates, gains = relative.sets_of(vertex)[0], relative.gains_of(vertex)
    members, weights = [], []
    for size in range(1, degree + 1):
        flat = np.fromiter(
            (j for chosen in combinations(range(parents), size) for j in chosen), np.int32
        )
        sets = flat.reshape(-1, size)
        members.append(np.pad(sets, ((0, 0), (0, MOST_PARENTS - size)), constant_values=-1))
        for begin in range(0, len(sets), _BLOCK):
            rows = sets[begin : begin + _BLOCK] + 1
            start = np.arange(len(rows) + 1, dtype=np.int64) * size
            sought = LocalSets(frozen(start), frozen(rows.ravel()), candidates.width)
            best, total = closure_gains(look_up(candidates, sought), gains), np.zeros(len(rows))
            for mask in range(1 << size):
                total -= (-1) ** (size - mask.bit_count()) * best[:, mask]
            weights.append(total)
    return Monomials(np.concatenate(members), np.concatenate(weights))


def _reduced(monomials: Monomials, parents: int, degree: int) -> QuboPart:
    """Return the polynomial with products a = d d', each enforced by M (3 a + d d' - 2 a d - 2 a d') (Rosenberg)."""
    products = np.array(products_of(parents, degree), np.int32).reshape(-1, 2)
    number = np.full((parents, parents), -1, np.int32)
    number[products[:, 0], products[:, 1]] = parents + np.arange(len(products))
    a, b, c, e = monomials.members.T
    size = (monomials.members >= 0).sum(axis=1)
    front = number[a, b]
    inside = (size > 2) & (front < 0)  # degree 3, a and b in different halves: b and c are in one
    first = np.select([size < 3, inside], [a, number[b, c]], front)
    second = np.select([size < 2, size == 2, inside, size == 3], [a, b, a, c], number[c, e])
    strength = np.zeros(parents + len(products))
    for bits in (first, second):
        used = bits >= parents
        np.add.at(strength, bits[used], np.abs(monomials.weights[used]))
    M = MARGIN * strength[parents:]
    aux, (j, k) = parents + np.arange(len(products)), products.T
    h = np.concatenate([np.zeros(parents), 3 * M])
    rows, cols = np.concatenate([first, j, aux, aux]), np.concatenate([second, k, j, k])
    return QuboPart(h, rows, cols, np.concatenate([monomials.weights, M, -2 * M, -2 * M]))


def _counted(
    monomials: Monomials, parents: int, auxiliary: int, slacks: int, degree: int
) -> QuboPart:
    """Return delta (m - sum of d - y)^2 with y = y_1 + 2 y_2 + 4 y_4: zero for at most m parents and the right y.

    delta exceeds what one parent can add to the polynomial: the sum of the negative weights of the
    terms that hold it."""
    held = np.zeros(parents)
    for column in monomials.members.T:
        np.add.at(held, column[column >= 0], np.maximum(-monomials.weights[column >= 0], 0.0))
    delta = MARGIN * float(held.max())
    bits = np.concatenate([np.arange(parents), parents + auxiliary + np.arange(slacks)])
    factors = np.concatenate([np.ones(parents), 2.0 ** np.arange(slacks)])
    h = np.zeros(parents + auxiliary + slacks)
    h[bits] = delta * (factors**2 - 2 * degree * factors)
    j, k = np.triu_indices(len(bits), 1)
    return QuboPart(h, bits[j], bits[k], 2 * delta * factors[j] * factors[k], delta * degree**2)
