"""Polynomials and their quadratization by definition: every state, every family. Nothing here imports the package."""

from itertools import chain, combinations, product

Family = tuple[frozenset, ...]


def value(terms, state):
    """f(state) = sum of coefficients of the terms all of whose variables are 1."""
    return sum(c for t, c in terms.items() if all(state[v] for v in t))


def states(labels):
    """Every assignment of bits to the labels."""
    labels = list(labels)
    return (dict(zip(labels, bits, strict=True)) for bits in product((0, 1), repeat=len(labels)))


def variables(terms):
    """The variables that occur."""
    return sorted({v for t in terms for v in t}, key=str)


def minimum(terms):
    """The least f."""
    return min(value(terms, state) for state in states(variables(terms)))


def least_energy_by_decoded_state(model, decode):
    """State of the variables that some state of the bits decodes to -> least energy over those states."""
    result = {}
    for bits in states(model.variables):
        key = frozenset(v for v, x in decode(bits).items() if x)
        energy = model.energy(bits)
        result[key] = min(energy, result.get(key, energy))
    return result


def unions(sets):
    """Every union of the sets, the empty one included."""
    result = {frozenset()}
    for s in sets:
        result |= {u | frozenset(s) for u in result}
    return result


def subsets(universe, least=0):
    """Every subset with at least so many elements."""
    items = list(universe)
    return (
        frozenset(c)
        for c in chain.from_iterable(combinations(items, k) for k in range(least, len(items) + 1))
    )


def assumption_1(family, terms):
    """Every term is a set of the family or the union of two."""
    return all(any(a | b == t for a in family for b in family) for t in terms)


def has_minimal_cover_by_two_or_more(chosen, family):
    """The premise of Assumption 2 as printed: some W of two or more other sets covers `chosen` and no proper part of
    W does.
    """
    others = [s for s in family if s != chosen]
    for cover in subsets(others, least=2):
        if chosen <= frozenset().union(*cover) and not any(
            chosen <= frozenset().union(*(cover - {s})) for s in cover
        ):
            return True
    return False


def assumption_2(family):
    """Every set with a minimal cover by two or more others is the union of two others."""
    return all(
        any(a | b == s for a, b in combinations([x for x in family if x != s], 2))
        for s in family
        if has_minimal_cover_by_two_or_more(s, family)
    )


def assumption_3(family, terms):
    """Every variable has its singleton."""
    return all(frozenset([v]) in family for t in terms for v in t)


def holds(family, terms, assumptions):
    """Whether the family satisfies what is assumed."""
    return (
        assumption_1(family, terms)
        and (assumptions == "terms-exclusive" or assumption_2(family))
        and (assumptions != "conventional" or assumption_3(family, terms))
    )


def smallest_families(terms, assumptions):
    """All families of the least size that satisfy what is assumed, out of all subsets of terms."""
    candidates = sorted(
        {s for t in terms for s in subsets(t, least=1)}, key=lambda s: (len(s), sorted(map(str, s)))
    )
    for size in range(len(candidates) + 1):
        found = [
            family for family in combinations(candidates, size) if holds(family, terms, assumptions)
        ]
        if found:
            return found
    raise AssertionError("the family of all subsets satisfies everything")


def private_elements(chosen, family):
    """Elements of the set all of whose sets contain it."""
    return [e for e in chosen if all(chosen <= s for s in family if e in s)]


def fewest_couplers(family, terms):
    """The least number of couplers over every choice of roots, of one split per other set, and of a pair per term."""
    roles = []
    for s in family:
        splits = [
            frozenset([frozenset([a, b]), frozenset([a, s]), frozenset([b, s])])
            for a, b in _pairs(s, family)
        ]
        roles.append(splits + ([None] if private_elements(s, family) else []))
    pairs = [
        [frozenset()] if t in family else [frozenset([frozenset(p)]) for p in _pairs(t, family)]
        for t in terms
    ]
    best = None
    for chosen in product(*roles):
        roots = [s for s, role in zip(family, chosen, strict=True) if role is None]
        base = {c for role in chosen if role is not None for c in role} | {
            frozenset([a, b])
            for a in roots
            for b in roots
            if a < b and not any(a < x < b for x in roots)
        }
        for use in product(*pairs):
            number = len(base.union(*use))
            best = number if best is None else min(best, number)
    return best


def _pairs(s, family):
    return [(a, b) for a, b in combinations([x for x in family if x != s], 2) if a | b == s]


def merged_products(terms):
    """Products of the merge start: the two factors that most terms of three or more share become one factor.

    Sets are masks; of equally frequent pairs the smallest is taken.
    """
    factors, products = (
        [{1 << e for e in range(t.bit_length()) if t >> e & 1} for t in terms],
        set(),
    )
    while True:
        uses = {}
        for parts in factors:
            for pair in combinations(sorted(parts), 2) if len(parts) > 2 else ():
                uses[pair] = uses.get(pair, 0) + 1
        if not uses:
            return products
        a, b = min(uses, key=lambda pair: (-uses[pair], pair))
        products.add(a | b)
        factors = [
            parts - {a, b} | {a | b} if len(parts) > 2 and {a, b} <= parts else parts
            for parts in factors
        ]


def fewest_pairs_of_one_colour(terms):
    """Over all colourings by two colours in which every term of four has an even number of either."""
    names, best = sorted(frozenset().union(*terms)), None
    pairs = {pair for t in terms if len(t) > 2 for pair in combinations(sorted(t), 2)}
    for colours in product((0, 1), repeat=len(names)):
        own = dict(zip(names, colours, strict=True))
        if all(sum(own[v] for v in t) % 2 == 0 for t in terms if len(t) == 4):
            number = sum(own[a] == own[b] for a, b in pairs)
            best = number if best is None else min(best, number)
    return best


def growth_order(terms):
    """Variables: next the one that completes most terms, then the one that is in most terms with at most two to go."""
    names, order = sorted(frozenset().union(*terms)), []
    while len(order) < len(names):
        left = [t - set(order) for t in terms]

        def key(v, left=left):
            near = sum(v in t and len(t) <= 2 for t in left)
            return sum(t == {v} for t in left), len(terms) * near + sum(v in t for t in terms), -v

        order.append(max((v for v in names if v not in order), key=key))
    return order
