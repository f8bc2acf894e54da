"""Polynomials of the literature as {tuple of variables: coefficient}, of bits; those of spins are expanded by dimod."""

import random
from collections import Counter
from itertools import combinations, product

import dimod

Terms = dict[tuple[object, ...], float]


def of_spins(products: Counter[tuple[int, ...]]) -> Terms:
    """The polynomial of bits that equals a polynomial of spins; a spin that repeats an even number of times is 1."""
    reduced: Counter[tuple[int, ...]] = Counter()
    for spins, weight in products.items():
        reduced[tuple(sorted(s for s, times in Counter(spins).items() if times % 2))] += weight
    binary = dimod.BinaryPolynomial(reduced, "SPIN").to_binary(copy=True)
    return {tuple(sorted(term)): c for term, c in binary.items() if c}


def labs(n: int, *, periodic: bool = False) -> Terms:
    """Low-autocorrelation binary sequences: the sum over k of (sum over i of s_i s_{i+k}) squared."""
    products: Counter[tuple[int, ...]] = Counter()
    for k in range(1, n):
        pairs = [(i, (i + k) % n) for i in range(n if periodic else n - k)]
        products.update(a + b for a, b in product(pairs, pairs))
    return of_spins(products)


def labs_2d(rows: int, columns: int) -> Terms:
    """Binary arrays of low autocorrelation: the same over the shifts of a rectangle, one of each two opposite ones."""
    products: Counter[tuple[int, ...]] = Counter()
    for down, right in product(range(rows), range(1 - columns, columns)):
        if (down, right) <= (0, 0):
            continue
        cells = [
            (r, c)
            for r, c in product(range(rows - down), range(columns))
            if 0 <= c + right < columns
        ]
        pairs = [(r * columns + c, (r + down) * columns + c + right) for r, c in cells]
        products.update(a + b for a, b in product(pairs, pairs))
    return of_spins(products)


def toric_code(size: int) -> Terms:
    """Minus the products of the four spins of each star and each plaquette on a square lattice with periodic ends."""

    def edge(row: int, column: int, direction: int) -> int:
        return 2 * (row % size * size + column % size) + direction  # 0: to the right, 1: down

    products: Counter[tuple[int, ...]] = Counter()
    for r, c in product(range(size), repeat=2):
        products[edge(r, c, 0), edge(r, c, 1), edge(r, c - 1, 0), edge(r - 1, c, 1)] -= 1
        products[edge(r, c, 0), edge(r, c, 1), edge(r + 1, c, 0), edge(r, c + 1, 1)] -= 1
    return of_spins(products)


def chain(n: int) -> Terms:
    """Products of four neighbours on a ring of spins."""
    return of_spins(Counter({tuple((i + k) % n for k in range(4)): 1 for i in range(n)}))


def xorsat(variables: int, clauses: int, seed: int = 0) -> Terms:
    """4-XORSAT: plus or minus the product of four random spins of each clause."""
    draw = random.Random(seed)
    products: Counter[tuple[int, ...]] = Counter()
    while len(products) < clauses:
        products[tuple(sorted(draw.sample(range(variables), 4)))] = draw.choice((-1, 1))
    return of_spins(products)


def one_hot_products(groups: int, size: int, seed: int = 0) -> Terms:
    """A random cost of each choice of one variable from every group, as of four-way assignment."""
    draw = random.Random(seed)
    choices = product(*([(g, i) for i in range(size)] for g in range(groups)))
    return {choice: float(draw.randint(1, 100)) for choice in choices}


def dense_quartic(variables: int, seed: int = 0) -> Terms:
    """Every product of four spins, with a random sign."""
    draw = random.Random(seed)
    return of_spins(
        Counter({four: draw.choice((-1, 1)) for four in combinations(range(variables), 4)})
    )


def random_terms(variables: int, terms: int, degrees: tuple[int, ...], seed: int) -> Terms:
    """Random terms with coefficients in [-1, 1]: unstructured."""
    draw = random.Random(seed)
    names = [f"x{i}" for i in range(variables)]
    result: Terms = {}
    while len(result) < terms:
        result[tuple(sorted(draw.sample(names, draw.choice(degrees))))] = (
            round(draw.uniform(-1, 1), 3) or 0.5
        )
    return result


def relabelled(terms: Terms, seed: int) -> Terms:
    """The same polynomial with shuffled names and terms."""
    names = sorted({v for term in terms for v in term}, key=str)
    draw = random.Random(seed)
    image = dict(zip(names, draw.sample(range(len(names)), len(names)), strict=True))
    pairs = [(tuple(sorted(image[v] for v in term)), c) for term, c in terms.items()]
    draw.shuffle(pairs)
    return dict(pairs)
