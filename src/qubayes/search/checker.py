"""`qubayes check`: verify a certificate of optimality (docs/certificates.md) in integer arithmetic.

    python checker.py SCORES.jkl PROOF.json

Needs Python alone; shares no code with the solver. Losses are integer multiples of 1 / `unit`,
weights of 2 ** -scale.

A certificate holds a network and, for parts of the variables, cuts with weights >= 0. A parent
outside its child's part is ignored, which only allows more. A cluster C with k is crossed by a
vertex in C whose parents include k or more members of C; at most |C| - k vertices of an acyclic
graph cross it, because its first k vertices do not. A sum of such inequalities and of "one parent
set each" for some odd vertices may be halved and rounded down. Therefore every network of a part
loses at least

    bound = sum over v of min over sets of (loss + weights of cuts crossed)  -  sum over cuts of
    weight * right side.

Several lists of cuts are used one after the other: if the bound, with the price of a set instead of
the least one of its vertex, reaches the loss of the network given, the set is in no better network
and is left out from then on. Mode "root": a bound must reach the loss of the network. Mode
"search": all sets U of vertices that can come first are searched, except those whose least loss,
plus a bound for the other vertices from the same weights, reaches it. Mode "branch": networks with
an edge u -> v and networks without it are proved apart, each with lists of cuts and a mode.

With "order", a list of pairs of variables, the bound also holds for the QUBO with order bits for
these pairs: inside the cluster of every cut its states have no cycle (docs/theory.md). For that the
members of a cluster leave one by one, in the sequence under "leaving"; each predecessor p and each
other successor q of the one that leaves, v, need bits for pv, vq and pq, and p -> q becomes an
arc. Arcs on no cycle inside the cluster do not count."""

import gzip
import hashlib
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import isfinite, lcm
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

CERTIFICATE_TOLERANCE = Fraction(1, 10**9)  # share of the score that rounding may have cost, in all
NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,60})?([eE][+-]?[0-9]{1,3})?")
COUNT = re.compile(r"[0-9]{1,18}")
LARGEST_WEIGHT = 10**100
LONGEST_LINE = 1 << 24  # bytes
MOST_SEARCH_STATES = 10_000_000  # of one search
DAMAGE = (  # what a damaged certificate raises
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
Scores: TypeAlias = dict[str, dict[frozenset[str], Fraction]]
Clusters: TypeAlias = list[tuple[int, int]]  # masks with their k
Losses: TypeAlias = list[dict[int, int]]  # of each vertex: by mask of its parents


class RefusedError(ValueError):
    """What is wrong with the certificate, or with the file of scores."""


class Verdict(NamedTuple):
    """What was checked: no network scores more than `score` by more than the tolerance."""

    score: float
    parts: int
    cuts: int
    states: int  # that were searched
    nodes: int  # that branching led to
    order: frozenset[frozenset[str]] | None = None  # the pairs whose order bits make the QUBO exact

    def describe(self) -> str:
        """Return the verdict in one line."""
        work = f"{self.states:,} states searched, {self.nodes:,} nodes"
        facts = f"{self.parts} parts, {self.cuts:,} cuts, {work}"
        held = f"the certificate holds: no network scores more than {self.score:,.6f} ({facts})"
        if self.order is None:
            return held
        return f"{held}, and the QUBO with its {len(self.order):,} order bits is exact"


class Cut(NamedTuple):
    """A sum of clusters' inequalities, divided and rounded down, with its weight."""

    weight: int
    clusters: Clusters  # odd vertices are one with k = 0, which all of them cross
    divisor: int  # 1 or 2

    def around(self, vertex: int) -> Clusters:
        """Return the clusters that contain the vertex."""
        return [cluster for cluster in self.clusters if cluster[0] >> vertex & 1]

    def right_side(self) -> int:
        """Return the most that an acyclic choice of parents adds up to."""
        return sum(mask.bit_count() - k for mask, k in self.clusters) // self.divisor


def read_scores(path: str) -> Scores:
    """Return the scores of each variable's parent sets.

    The file has `n`, then a block for each variable that begins with `NAME COUNT`."""
    found: Scores = {}
    try:
        lines = lines_of(path)
        [variables] = next(lines)
        for _ in range(count_of(variables)):
            name, sets = next(lines)
            if name in found:
                raise RefusedError(f"the variable {name[:40]!r} comes twice")
            found[name] = {}
            for _ in range(count_of(sets)):
                members, score = scored_set(next(lines), name)
                if members in found[name]:
                    raise RefusedError(f"a parent set of {name[:40]!r} comes twice")
                found[name][members] = score
        if next(lines, None):
            raise RefusedError("lines after the last variable")
    except RefusedError as refused:
        raise RefusedError(f"{path}: {refused}") from None
    except (StopIteration, ValueError, OSError, EOFError, zlib.error, MemoryError) as error:
        raise RefusedError(f"{path}: not a readable .jkl file of scores") from error
    if not found or not all(found.values()):
        raise RefusedError(f"{path}: no variable, or a variable without scores")
    if any(members - found.keys() for sets in found.values() for members in sets):
        raise RefusedError(f"{path}: an unknown parent")
    return found


def lines_of(path: str) -> Iterator[list[str]]:
    """Yield the words of each line that is neither blank nor a comment."""
    with Path(path).open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    left = max(1 << 30, 100 * Path(path).stat().st_size)
    with gzip.open(path) if packed else Path(path).open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            left -= len(line)
            if left < 0 or len(line) == LONGEST_LINE:
                raise RefusedError("it unpacks to too many bytes, or has too long a line")
            words = line.decode("utf-8").split()
            if words and not words[0].startswith("#"):
                yield words


def count_of(word: str) -> int:
    """Return the word as a number of things."""
    if not COUNT.fullmatch(word):
        raise RefusedError(f"{word[:40]!r} is not a number of things")
    return int(word)


def scored_set(words: list[str], child: str) -> tuple[frozenset[str], Fraction]:
    """Return the parent set of a line `SCORE SIZE PARENT ...` and its score."""
    text, size, *parents = words
    if not NUMBER.fullmatch(text) or not isfinite(float(text)):
        raise RefusedError(f"{text[:40]!r} is not a score")
    members = frozenset(parents)
    if not count_of(size) == len(parents) == len(members) or child in members:
        raise RefusedError(f"a line of {child[:40]!r} is not SCORE SIZE and SIZE other variables")
    return members, Fraction(text)


def check(scores_path: str, certificate_path: str) -> Verdict:
    """Return what was checked; raise RefusedError with the place where the certificate fails."""
    scores = read_scores(scores_path)
    try:
        return check_parts(scores, json.loads(Path(certificate_path).read_text(encoding="utf-8")))
    except RefusedError as refused:
        raise RefusedError(f"{certificate_path}: {str(refused)[:400]}") from None
    except DAMAGE as error:
        reason = f"not a certificate of these scores ({type(error).__name__}: {str(error)[:200]!r})"
        raise RefusedError(f"{certificate_path}: {reason}") from error


def check_parts(scores: Scores, certificate: dict[str, Any]) -> Verdict:
    """Return what was checked: the network, then each part."""
    check_form(certificate)
    parts = certificate["parts"]
    chosen = {name: frozenset(members) for name, members in certificate["network"].items()}
    total = network_score(scores, chosen)
    allowance = CERTIFICATE_TOLERANCE * max(Fraction(1), abs(total))
    check_score(certificate["score"], total, allowance)
    top = {name: max(sets.values()) for name, sets in scores.items()}
    unit = lcm(*(value.denominator for sets in scores.values() for value in sets.values()))
    fine = unit << certificate["scale"]
    lost = {name: int((top[name] - scores[name][chosen[name]]) * fine) for name in scores}
    # One tolerance in all: what variables in no part lose comes first, the parts share the rest.
    free = scores.keys() - placed_in(parts)
    tolerance = int(allowance * fine) - sum(lost[name] for name in free)
    if tolerance < 0:
        name = max(free, key=lambda name: lost[name])
        raise RefusedError(f"{name} is in no part, but does not have its best parent set")
    counts: Counter[str] = Counter()
    for number, part in enumerate(parts, 1):
        vertices = part["vertices"]
        losses = [losses_of(scores[name], top[name], vertices, fine) for name in vertices]
        goal = sum(lost[name] for name in vertices) - tolerance // len(parts)
        counts += prove(part, losses, goal, unit, f"part {number}")
    return Verdict(
        float(total),
        len(parts),
        counts["cuts"],
        counts["states"],
        counts["nodes"],
        order_of(certificate, scores),
    )


def check_form(certificate: dict[str, Any]) -> None:
    """Raise unless this is a certificate as it was written."""
    digest = certificate.pop("digest")
    shape = (certificate["format"], certificate["version"])
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
    if digest != hashlib.sha256(text.encode()).hexdigest():
        raise RefusedError("it was changed after it was written")
    scale = certificate["scale"]
    if shape != ("qubayes certificate", 1) or type(scale) is not int or not 0 <= scale <= 200:
        raise RefusedError("not a qubayes certificate of version 1")


def check_score(claimed: Any, total: Fraction, allowance: Fraction) -> None:
    """Raise unless the claimed score is that of the network, up to rounding."""
    if type(claimed) not in (int, float) or not isfinite(claimed):
        raise RefusedError("the score is not a finite number")
    if abs(Fraction(claimed) - total) > allowance:
        raise RefusedError(f"the network scores {float(total)!r}, not {claimed!r}")


def placed_in(parts: list[dict[str, Any]]) -> set[str]:
    """Return the variables of the parts; raise unless each is in one of them."""
    placed: set[str] = set()
    for number, part in enumerate(parts, 1):
        vertices = part["vertices"]
        if not vertices or len(set(vertices)) != len(vertices) or placed & set(vertices):
            raise RefusedError(f"part {number}: a variable twice, or none")
        placed |= set(vertices)
    return placed


def network_score(scores: Scores, chosen: dict[str, frozenset[str]]) -> Fraction:
    """Return the score of the network, which must be acyclic and made of sets with scores."""
    if chosen.keys() != scores.keys():
        raise RefusedError("the network does not have the variables of the scores")
    for name, members in chosen.items():
        if members not in scores[name]:
            raise RefusedError(f"the parents of {name} have no score")
    left = dict(chosen)
    while left:
        ready = [name for name, members in left.items() if not members & left.keys()]
        if not ready:
            raise RefusedError(f"the network has a cycle among {', '.join(sorted(left))}")
        for name in ready:
            del left[name]
    return sum((scores[name][members] for name, members in chosen.items()), Fraction(0))


def losses_of(
    sets: dict[frozenset[str], Fraction], top: Fraction, vertices: list[str], unit: int
) -> dict[int, int]:
    """Return the least loss, in whole units, for each mask of parents inside the part."""
    bit = {name: 1 << place for place, name in enumerate(vertices)}
    found: dict[int, int] = {}
    for members, score in sets.items():
        mask = sum(bit.get(name, 0) for name in members)
        loss = int((top - score) * unit)
        found[mask] = min(loss, found.get(mask, loss))
    return found


def prove(node: dict[str, Any], losses: Losses, goal: int, unit: int, place: str) -> Counter[str]:
    """Raise unless every network of these sets loses `goal` or more; return the counts of work."""
    if node["mode"] not in ("root", "search", "branch"):
        raise RefusedError(f"{place}: mode {node['mode']!r}; root, search or branch is allowed")
    counts = Counter[str]()
    bound = 0
    cuts: list[Cut] = []
    for step in node["cuts"]:
        if bound < goal:
            cuts = [read_cut(entry, len(losses), unit) for entry in step]
            bound, losses = bound_of(losses, cuts, goal)
            counts["cuts"] += len(cuts)
    if bound >= goal:
        return counts
    if node["mode"] == "search":
        return counts + Counter(states=search(losses, cuts, goal, place))
    if node["mode"] == "root":
        short = min(Fraction(100 * (goal - bound), goal), Fraction(10**9))
        raise RefusedError(f"{place}: the bound of its cuts is {float(short):.9g} % too weak")
    u, v = node["edge"]
    if type(u) is not int or type(v) is not int or u == v or not {u, v} <= set(range(len(losses))):
        raise RefusedError(f"{place}: {u} -> {v} is not an edge")
    for side in ("with", "without"):
        left = side_of(losses, u, v, side == "with")
        counts["nodes"] += 1
        if all(left):  # else no network is on this side
            counts += prove(node[side], left, goal, unit, f"{place}, {side} {u} -> {v}")
    return counts


def order_of(certificate: dict[str, Any], scores: Scores) -> frozenset[frozenset[str]] | None:
    """Return the pairs with an order bit, or None; raise unless they hold the clusters."""
    if "order" not in certificate:
        return None
    pairs = frozenset(map(frozenset, certificate["order"]))
    if not all(len(pair) == 2 and pair <= scores.keys() for pair in pairs):
        raise RefusedError("a pair of the order is not two variables")
    for number, part in enumerate(certificate["parts"], 1):
        if part["mode"] != "root":
            raise RefusedError(f"part {number}: with an order, only cuts are allowed")
        names = part["vertices"]
        parents = parents_of(names, scores)
        beside = beside_each(names, pairs)
        clusters = [cluster for step in part["cuts"] for cut in step for cluster in cut[1]]
        for mask in {mask for mask, _ in clusters}:
            if not is_held(int(mask, 16), part["leaving"].get(mask), parents, beside):
                raise RefusedError(f"part {number}: its order bits do not hold {mask}")
    return pairs


def parents_of(names: list[str], scores: Scores) -> list[int]:
    """Return the mask of the possible parents of each variable of a part."""
    bit = {name: 1 << place for place, name in enumerate(names)}
    possible = [frozenset().union(*scores[name]) for name in names]
    return [sum(bit.get(parent, 0) for parent in its) for its in possible]


def beside_each(names: list[str], pairs: frozenset[frozenset[str]]) -> list[int]:
    """Return the mask of the variables with which each variable of a part has an order bit."""
    bit = {name: 1 << place for place, name in enumerate(names)}
    found = []
    for name in names:
        found.append(sum(bit[other] for other in names if frozenset((name, other)) in pairs))
    return found


def is_held(cluster: int, leaving: Any, parents: list[int], beside: list[int]) -> bool:
    """Return whether the members of a cluster can leave in this sequence with the order bits."""
    members = [v for v in range(len(parents)) if cluster >> v & 1]
    if len(members) == 2:
        return True  # the QUBO forbids that each of two is a parent of the other
    into = on_cycles({v: parents[v] & cluster for v in members})
    if not isinstance(leaving, list) or sorted(leaving) != members:
        return False
    for v in leaving:
        before = into.pop(v)
        after = sum(1 << w for w in into if into[w] >> v & 1)
        if not may_leave(v, before, after, beside):
            return False
        for w in into:
            through = before & ~(1 << w) if after >> w & 1 else 0
            into[w] = (into[w] | through) & ~(1 << v)
    return True


def may_leave(v: int, before: int, after: int, beside: list[int]) -> bool:
    """Return whether order bits join v, its predecessors and its successors as leaving needs."""
    near = before | after
    if not before or not after or near.bit_count() == 1:
        return True
    if near & ~beside[v]:
        return False
    joined = [beside[p] | 1 << p for p in range(len(beside)) if before >> p & 1]
    return not any(after & ~others for others in joined)


def on_cycles(into: dict[int, int]) -> dict[int, int]:
    """Return the predecessors of each vertex along arcs that are on a cycle."""
    above = dict(into)  # from which a vertex can be reached
    for k in into:
        for v in into:
            if above[v] >> k & 1:
                above[v] |= above[k]
    on: dict[int, int] = {}
    for v in into:
        below = sum(1 << w for w in into if above[w] >> v & 1)
        on[v] = into[v] & below
    return on


def side_of(losses: Losses, u: int, v: int, has: bool) -> Losses:
    """Return the losses of the sets for networks with the edge u -> v, or for those without it."""
    left = list(losses)
    left[v] = {m: loss for m, loss in losses[v].items() if (m >> u & 1) == has}
    if has:
        left[u] = {m: loss for m, loss in losses[u].items() if not m >> v & 1}
    return left


def read_cut(entry: Any, n: int, unit: int) -> Cut:
    """Return the cut of [weight, [[mask, k], ...]] or, halved, [weight, [[mask, k], ...], odd]."""
    weight, clusters, *odd = entry
    known = type(weight) is int and 0 <= weight <= LARGEST_WEIGHT
    if not known or len(odd) > 1 or (not odd and len(clusters) != 1):
        raise RefusedError(f"the cut {str(entry)[:60]} is not a valid inequality")
    masks = [(int(mask, 16), k) for mask, k in clusters]
    extra = [(int(mask, 16), 0) for mask in odd]
    for mask, k in [*masks, *((mask or 1, 1) for mask, _ in extra)]:
        if type(k) is not int or not 0 < mask < 1 << n or not 1 <= k <= mask.bit_count():
            raise RefusedError(f"the cluster {mask:x} with k = {k} is not valid")
    return Cut(weight * unit, masks + extra, 2 if odd else 1)


def prices_of(losses: Losses, cuts: list[Cut]) -> Losses:
    """Return for each set its loss plus the weights of the cuts that it crosses."""
    prices: Losses = []
    for vertex, sets in enumerate(losses):
        near = [(cut, clusters) for cut in cuts if (clusters := cut.around(vertex))]
        prices.append({m: loss + paid_by(m, near) for m, loss in sets.items()})
    return prices


def paid_by(members: int, near: list[tuple[Cut, Clusters]]) -> int:
    """Return the weights of the cuts that a set crosses, given the clusters around its vertex."""
    paid = 0
    for cut, clusters in near:
        crossed = sum([(cluster & members).bit_count() >= k for cluster, k in clusters])
        paid += cut.weight * (crossed // cut.divisor)
    return paid


def bound_of(losses: Losses, cuts: list[Cut], goal: int) -> tuple[int, Losses]:
    """Return the bound of the weights, and the losses of sets of networks below the goal."""
    prices = prices_of(losses, cuts)
    least = [min(its.values()) for its in prices]
    bound = sum(least) - sum(cut.weight * cut.right_side() for cut in cuts)
    left: Losses = []
    for sets, price, low in zip(losses, prices, least, strict=True):
        left.append({m: loss for m, loss in sets.items() if bound + price[m] - low < goal})
    return bound, left


def search(losses: Losses, cuts: list[Cut], goal: int, place: str) -> int:
    """Raise unless every network loses `goal` or more; return the number of states."""
    steps = Steps(losses, cuts)
    layer = {0: (0, steps.bound)}  # those that come first: their least loss, a bound for others
    states = 0
    for _ in losses:
        after: dict[int, tuple[int, int]] = {}
        for first, (lost, bound) in layer.items():
            states += 1
            if states + len(after) > MOST_SEARCH_STATES:
                raise RefusedError(
                    f"{place}: the search needs more than {MOST_SEARCH_STATES:,} states"
                )
            for vertex, loss, fall in steps.after(first):
                state = first | 1 << vertex
                g, h = lost + loss, bound - fall
                if g + h < goal and (state not in after or g < after[state][0]):
                    after[state] = g, h
        layer = after
    if layer:
        raise RefusedError(f"{place}: the search finds a network that is better than the one given")
    return states


class Steps:
    """Which vertices can come next in an order, and what they lose."""

    def __init__(self, losses: Losses, cuts: list[Cut]) -> None:
        self.least = [min(its.values()) for its in prices_of(losses, cuts)]
        self.ranked = [sorted(sets.items(), key=lambda each: each[1]) for sets in losses]
        self.holding = [holders([mask for mask, _ in sets], len(losses)) for sets in self.ranked]
        self.falls = Falls(cuts, len(losses))
        self.bound = sum(self.least) - sum(cut.weight * cut.right_side() for cut in cuts)

    def after(self, first: int) -> list[tuple[int, int, int]]:
        """Return each next vertex, its loss, and by how much the bound for the others falls."""
        others = [v for v in range(len(self.ranked)) if not first >> v & 1]
        # A vertex that may have its best set comes next: nothing is lost by that.
        forced = [v for v in others if not self.ranked[v][0][0] & ~first][:1]
        freed = self.falls.of_all(first)
        width, field = self.falls.width, self.falls.field
        found = []
        for v in forced or others:
            best = first_without(self.holding[v], others)
            if best < len(self.ranked[v]):
                loss = self.ranked[v][best][1]
                found.append((v, loss, self.least[v] - (freed >> v * width & field)))
        return found


def holders(masks: list[int], n: int) -> list[int]:
    """Return for each parent which of the sets contain it: bit i for the set with number i."""
    found = [0] * n
    for number, mask in enumerate(masks):
        for u in range(n):
            if mask >> u & 1:
                found[u] |= 1 << number
    return found


def first_without(holding: list[int], others: list[int]) -> int:
    """Return the number of the first set with none of these members, or the number of sets."""
    wrong = 0
    for u in others:
        wrong |= holding[u]
    return (~wrong & (wrong + 1)).bit_length() - 1  # the lowest bit that is 0


class Falls:
    """What each next vertex takes off the right sides of the cuts, as fields of one integer."""

    def __init__(self, cuts: list[Cut], n: int) -> None:
        most = sum((cut.weight + 1) * (len(cut.clusters) + 1) for cut in cuts)
        self.width = most.bit_length() + 1
        self.field, self.ones = (1 << self.width) - 1, self.in_fields((1 << n) - 1)
        each = [(cut, self.spread(cut)) for cut in cuts]
        self.plain = [(*its[0][:2], cut.weight * its[0][2]) for cut, its in each if cut.divisor < 2]
        self.halved = [(cut.weight, its) for cut, its in each if cut.divisor == 2]

    def spread(self, cut: Cut) -> list[tuple[int, int, int]]:
        """Return (mask, k, a 1 in the field of each member) for each cluster."""
        return [(mask, k, self.in_fields(mask)) for mask, k in cut.clusters]

    def in_fields(self, mask: int) -> int:
        """Return a 1 in the field of each vertex of the mask."""
        return sum(1 << v * self.width for v in range(mask.bit_length()) if mask >> v & 1)

    def of_all(self, first: int) -> int:
        """Return by how much the weighted right sides given `first` fall with each next vertex."""
        # A member more takes 1 off a cluster of which k members or more come first.
        freed = sum([weights for mask, k, weights in self.plain if (mask & first).bit_count() >= k])
        for weight, clusters in self.halved:
            total = steps = 0
            for mask, k, members in clusters:
                met = (mask & first).bit_count()
                total += mask.bit_count() - max(k, met)
                steps += members if met >= k else 0
            # total // 2 - (total - step) // 2 is half the step, rounded up if the total is even
            steps += self.ones if total % 2 == 0 else 0
            freed += weight * (steps >> 1 & self.ones * (self.field >> 1))
        return freed


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python checker.py SCORES.jkl PROOF.json")
    try:
        print(check(*sys.argv[1:]).describe())
    except RefusedError as refused:
        sys.exit(f"refused: {refused}")
    except KeyboardInterrupt:
        sys.exit(130)
