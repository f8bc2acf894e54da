"""Bits and couplers of quadratizations of the same polynomials by qubayes, dimod, pyqubo and qubovert, as a Markdown
table.

Run: python -m benchmarks quadratize [--large]. A package that is not installed is left out with a word. "Minimum
kept" is found by minimising both the polynomial (all its states) and the quadratic model (an integer program on
HiGHS), so it is proved.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import dimod
import highspy
import numpy as np

from qubayes.quadratize import quadratize

Terms = dict[tuple[str, ...], float]


class Row(NamedTuple):
    """One quadratization."""

    package: str
    bits: int
    couplers: int
    seconds: float
    kept: str
    note: str


def random_terms(variables: int, terms: int, degrees: tuple[int, ...], seed: int) -> Terms:
    """Random terms with coefficients in [-1, 1]: unstructured."""
    draw = random.Random(seed)
    names = [f"x{i}" for i in range(variables)]
    result: Terms = {}
    while len(result) < terms:
        result[tuple(sorted(draw.sample(names, draw.choice(degrees))))] = round(draw.uniform(-1, 1), 3) or 0.5
    return result


def block_terms(blocks: int, size: int, terms: int, seed: int) -> Terms:
    """Terms that are unions of one to three blocks of variables: a structured support."""
    draw = random.Random(seed)
    result: Terms = {}
    while len(result) < terms:
        chosen = draw.sample(range(blocks), draw.randint(1, 3))
        term = tuple(sorted(f"b{b}_{i}" for b in chosen for i in range(size)))
        result[term] = round(draw.uniform(-1, 1), 3) or 0.5
    return result


def nested_terms(chains: int, length: int, seed: int) -> Terms:
    """Prefixes of chains, and products of prefixes of two chains: a support where singletons are not needed."""
    draw = random.Random(seed)
    result: Terms = {}
    for c in range(chains):
        for stop in range(2, length + 1, 2):
            result[tuple(f"c{c}_{i}" for i in range(stop))] = round(draw.uniform(-1, 1), 3) or 0.5
    for _ in range(chains * 2):
        a, b = draw.sample(range(chains), 2)
        term = [f"c{a}_{i}" for i in range(2)] + [f"c{b}_{i}" for i in range(2)]
        result[tuple(sorted(term))] = round(draw.uniform(-1, 1), 3) or 0.5
    return result


def polynomials() -> dict[str, Terms]:
    """The polynomials of the table."""
    paper = {("1", "2", "3", "4"): 1.0, ("1", "2", "3"): -2.0, ("4",): 1.5, ("3", "4"): 3.0}
    return {
        "the paper's example": paper,
        **{
            f"random, 12 variables, 40 terms of degree 2-4, seed {s}": random_terms(12, 40, (2, 3, 4), s)
            for s in range(3)
        },
        "blocks of 3: 15 variables, 18 terms": block_terms(5, 3, 18, 0),
        "nested: 12 variables": nested_terms(3, 4, 0),
    }


def by_qubayes(**settings: object) -> Callable[[Terms], tuple[dimod.BinaryQuadraticModel, Callable[[dict], dict], str]]:
    """Our quadratization with the given settings."""

    def make(terms: Terms) -> tuple[dimod.BinaryQuadraticModel, Callable[[dict], dict], str]:
        result = quadratize(terms, **settings)  # type: ignore[arg-type]
        return result.model, result.decoder.decode, result.status

    return make


def by_dimod(
    strength: float | None,
) -> Callable[[Terms], tuple[dimod.BinaryQuadraticModel, Callable[[dict], dict], str]]:
    """dimod.make_quadratic; None: the sum of the absolute coefficients, which is sound."""

    def make(terms: Terms) -> tuple[dimod.BinaryQuadraticModel, Callable[[dict], dict], str]:
        weight = strength if strength is not None else sum(map(abs, terms.values()))
        return dimod.make_quadratic(terms, weight, "BINARY"), dict, ""

    return make


def by_pyqubo(terms: Terms) -> tuple[dimod.BinaryQuadraticModel, Callable[[dict], dict], str]:
    """pyqubo with its default strength."""
    from pyqubo import Binary

    names = {v: Binary(v) for t in terms for v in t}
    expression = 0
    for term, coefficient in terms.items():
        product = coefficient
        for v in term:
            product = product * names[v]
        expression = expression + product
    return expression.compile().to_bqm(), dict, ""


def by_qubovert(terms: Terms) -> tuple[dimod.BinaryQuadraticModel, Callable[[dict], dict], str]:
    """qubovert with its default penalties."""
    from qubovert import PUBO

    poly = PUBO(terms)
    qubo = poly.to_qubo()
    model = dimod.BinaryQuadraticModel(dimod.BINARY)
    for v in range(qubo.num_binary_variables):
        model.add_linear(v, 0.0)
    for key, weight in qubo.items():
        if len(key) == 2:
            model.add_quadratic(*key, weight)
        elif key:
            model.add_linear(key[0], weight)
        else:
            model.offset += weight
    return model, poly.convert_solution, ""


PACKAGES: dict[str, Callable[[Terms], tuple[dimod.BinaryQuadraticModel, Callable[[dict], dict], str]]] = {
    "qubayes": by_qubayes(mode="optimal"),
    "qubayes, fewest couplers": by_qubayes(mode="optimal", fewest_couplers=True),
    "qubayes, conventional": by_qubayes(mode="optimal", assumptions="conventional"),
    "qubayes, greedy": by_qubayes(mode="greedy"),
    "dimod, strength 1": by_dimod(1.0),
    "dimod, sum of coefficients": by_dimod(None),
    "pyqubo, default": by_pyqubo,
    "qubovert, default": by_qubovert,
}


def value(terms: Terms, state: dict) -> float:
    """f at a state."""
    return sum(c for t, c in terms.items() if all(state[v] for v in t))


def least_value(terms: Terms) -> float:
    """The least f over all states, in blocks of states."""
    names = sorted({v for t in terms for v in t})
    place = {v: i for i, v in enumerate(names)}
    masks = [(sum(1 << place[v] for v in t), c) for t, c in terms.items()]
    states = np.arange(1 << len(names), dtype=np.int64)
    return float(sum(c * ((states & m) == m) for m, c in masks).min())


def least_energy(model: dimod.BinaryQuadraticModel) -> dict:
    """A state of least energy, proved by HiGHS on the linearised model."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    labels = list(model.variables)
    place = {v: i for i, v in enumerate(labels)}
    for v in labels:
        solver.addVar(0.0, 1.0)
        solver.changeColIntegrality(place[v], highspy.HighsVarType.kInteger)
        solver.changeColCost(place[v], float(model.get_linear(v)))
    for number, ((u, v), weight) in enumerate(model.quadratic.items(), len(labels)):
        solver.addVar(0.0, 1.0)
        solver.changeColCost(number, float(weight))
        both = np.array([place[u], place[v], number], dtype=np.int32)
        solver.addRow(-1.0, highspy.kHighsInf, 3, both, np.array([-1.0, -1.0, 1.0]))
        for end in both[:2]:
            solver.addRow(0.0, highspy.kHighsInf, 2, np.array([end, number], dtype=np.int32), np.array([1.0, -1.0]))
    solver.run()
    values = solver.getSolution().col_value
    return {v: int(values[place[v]] > 0.5) for v in labels}


def measure(package: str, terms: Terms, *, check: bool) -> Row | None:
    """The row of one package; None if it is not installed."""
    began = time.perf_counter()
    try:
        model, decode, note = PACKAGES[package](terms)
    except ImportError as error:
        print(f"{package} is left out: {error}", file=sys.stderr)
        return None
    seconds = time.perf_counter() - began
    kept = "not checked"
    if check:
        best = least_energy(model)
        least = least_value(terms)
        right = abs(model.energy(best) - least) < 1e-6 and abs(value(terms, decode(best)) - least) < 1e-6
        kept = "yes" if right else f"no ({model.energy(best):.3f}, true {least:.3f})"
    couplers = sum(1 for weight in model.quadratic.values() if weight)
    return Row(package, model.num_variables, couplers, seconds, kept, note)


def print_table(name: str, terms: Terms, packages: list[str], *, check: bool) -> None:
    """One section of the report."""
    print(f"\n**{name}**\n\n| package | bits | couplers | seconds | minimum kept | what it says |")
    print("|---|---|---|---|---|---|")
    for row in (measure(package, terms, check=check) for package in packages):
        if row is not None:
            print(
                f"| {row.package} | {row.bits} | {row.couplers} | {row.seconds:.2f} | {row.kept} | {row.note} |",
                flush=True,
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also 120 variables and 20,000 terms (bits only)")
    large = parser.parse_args().large
    quadratize(random_terms(6, 8, (3,), 0), mode="greedy")  # compiles the search, so that no row pays for it
    for name, terms in polynomials().items():
        print_table(name, terms, list(PACKAGES), check=True)
    if large:
        terms = random_terms(120, 20_000, (2, 3, 4), 0)
        names = ["qubayes, greedy", "dimod, sum of coefficients"]
        print_table("random, 120 variables, 20,000 terms of degree 2-4", terms, names, check=False)


if __name__ == "__main__":
    main()
