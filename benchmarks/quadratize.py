"""Bits, couplers, coefficients and bounds of quadratizations by qubayes, dimod, pyqubo, qubovert and Amplify.

Run: python -m benchmarks quadratize [--polynomials NAMES] [--seconds 60] [--output FILE] [--save
    DIR]. The table says where a package is not installed and where a quadratization was stopped at
    the limit.

"Energies kept" compares all states of the model, where it has at most 22 bits: for each state p of
the variables the least energy over the other bits is the polynomial's value at p ("all"), or at
least the minima agree ("minimum")."""

import argparse
import json
import math
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import dimod
import numpy as np

from benchmarks import polynomials as instances
from benchmarks.polynomials import Terms
from qubayes.machines import write_model
from qubayes.quadratize import Quadratization, as_polynomial, quadratize

MOST_BITS = 22  # of the exhaustive check: four million states


HEAD = """# Polynomials

Made by `python -m benchmarks quadratize`. {versions}

*Range* is the largest over the smallest coefficient. *Energies kept*: `all` if for every state of the variables the
least energy over the other bits is the polynomial's value, `minimum` if only the minima agree; checked by all states up
to 22 bits. Seconds are of one run on a shared machine. dimod has the sum of the absolute coefficients as strength, the
others their defaults.

| polynomial | package | bits | couplers | range | energies kept | seconds | status |
|---|---|---|---|---|---|---|---|
"""


class Model(NamedTuple):
    """A quadratization by one package."""

    model: dimod.BinaryQuadraticModel
    # states, labels -> bits of each variable
    decode: Callable[[np.ndarray, list[Any]], dict[Any, np.ndarray]]
    note: str = ""


class Row(NamedTuple):
    """One line of the table."""

    package: str
    bits: int
    couplers: int
    spread: float  # largest over smallest coefficient, of bits and couplers
    kept: str
    seconds: float
    note: str


POLYNOMIALS: dict[str, Callable[[], Terms]] = {
    "the paper's example": lambda: {
        ("1", "2", "3", "4"): 1.0, ("1", "2", "3"): -2.0, ("4",): 1.5, ("3", "4"): 3.0,
    },
    "random 12/40": lambda: instances.random_terms(12, 40, (2, 3, 4), 0),
    "LABS 6": lambda: instances.labs(6),
    "LABS 8": lambda: instances.labs(8),
    "LABS 20": lambda: instances.labs(20),
    "LABS 30": lambda: instances.labs(30),
    "LABS 50": lambda: instances.labs(50),
    "LABS 100": lambda: instances.labs(100),
    "periodic LABS 30": lambda: instances.labs(30, periodic=True),
    "2-D LABS 7x7": lambda: instances.labs_2d(7, 7),
    "toric code 6x6": lambda: instances.toric_code(6),
    "four-body chain 60": lambda: instances.chain(60),
    "4-XORSAT 50/100": lambda: instances.xorsat(50, 100),
    "one-hot products 4x6": lambda: instances.one_hot_products(4, 6),
    "dense quartic 12": lambda: instances.dense_quartic(12),
    "random 120/20,000": lambda: instances.random_terms(120, 20_000, (2, 3, 4), 0),
}  # fmt: skip


def named(states: np.ndarray, labels: list[Any]) -> dict[Any, np.ndarray]:
    """The bits as they are: variables keep their labels."""
    return {label: states[:, column] for column, label in enumerate(labels)}


def by_qubayes(terms: Terms) -> Model:
    """Ours, as it is by default."""
    result = quadratize(terms)

    def decode(states: np.ndarray, labels: list[Any]) -> dict[Any, np.ndarray]:
        columns = [labels.index(label) for label in result.decoder.labels]
        return named(result.decoder.decode_rows(states[:, columns]), list(result.decoder.variables))

    return Model(result.model, decode, result.status)


def by_dimod(terms: Terms) -> Model:
    """dimod.make_quadratic with the sum of the absolute coefficients as strength, which is sound."""
    return Model(dimod.make_quadratic(terms, sum(map(abs, terms.values())), "BINARY"), named)


def by_pyqubo(terms: Terms) -> Model:
    """pyqubo with its default strength."""
    from pyqubo import Binary

    variables = {v: Binary(repr(v)) for t in terms for v in t}
    expression = 0
    for term, coefficient in terms.items():
        product = coefficient
        for v in term:
            product = product * variables[v]
        expression = expression + product
    names = {repr(v): v for v in variables}

    def decode(states: np.ndarray, labels: list[Any]) -> dict[Any, np.ndarray]:
        return {
            names[label]: states[:, column] for column, label in enumerate(labels) if label in names
        }

    return Model(expression.compile().to_bqm(), decode)


def by_qubovert(terms: Terms) -> Model:
    """qubovert with its default penalties."""
    from qubovert import PUBO

    polynomial = PUBO(terms)
    qubo = polynomial.to_qubo()
    model = dimod.BinaryQuadraticModel(dimod.BINARY)
    for v in range(qubo.num_binary_variables):
        model.add_linear(v, 0.0)
    add_terms(model, dict(qubo))
    names = polynomial.reverse_mapping

    def decode(states: np.ndarray, labels: list[Any]) -> dict[Any, np.ndarray]:
        return {
            names[label]: states[:, column] for column, label in enumerate(labels) if label in names
        }

    return Model(model, decode)


def by_amplify(method: str) -> Callable[[Terms], Model]:
    """Amplify's intermediate model by one of its two methods."""

    def make(terms: Terms) -> Model:
        import amplify

        variables = sorted({v for t in terms for v in t}, key=str)
        bits = amplify.VariableGenerator().array("Binary", len(variables))
        place = dict(zip(variables, bits, strict=True))
        products = []
        for term, coefficient in terms.items():
            product = amplify.Poly(coefficient)
            for v in term:
                product *= place[v]
            products.append(product)
        degrees = amplify.AcceptableDegrees(objective={"Binary": "Quadratic"})
        found, _ = amplify.Model(amplify.sum(products)).to_intermediate_model(
            degrees, quadratization_method=method
        )
        model = dimod.BinaryQuadraticModel(dimod.BINARY)
        # substitution adds its products as constraints
        add_terms(model, found.to_unconstrained_poly().as_dict())
        names = {bit.id: v for v, bit in place.items()}

        def decode(states: np.ndarray, labels: list[Any]) -> dict[Any, np.ndarray]:
            return {
                names[label]: states[:, column]
                for column, label in enumerate(labels)
                if label in names
            }

        return Model(model, decode)

    return make


def add_terms(model: dimod.BinaryQuadraticModel, terms: dict[tuple[Any, ...], float]) -> None:
    """Add terms of degree two or less."""
    for key, weight in terms.items():
        if len(key) == 2:
            model.add_quadratic(*key, weight)
        elif key:
            model.add_linear(key[0], weight)
        else:
            model.offset += weight


PACKAGES: dict[str, Callable[[Terms], Model]] = {
    "qubayes": by_qubayes,
    "dimod": by_dimod,
    "pyqubo": by_pyqubo,
    "qubovert": by_qubovert,
    "Amplify, Ishikawa-KZFD": by_amplify("IshikawaKZFD"),
    "Amplify, substitution": by_amplify("Substitute"),
}


def energies_kept(terms: Terms, made: Model) -> str:
    """ "all", "minimum" or "no", by all states of the model."""
    model, labels = made.model, list(made.model.variables)
    if len(labels) > MOST_BITS:
        return "not checked"
    numbers = np.arange(2 ** len(labels))
    bits = [(numbers >> column & 1).astype(bool) for column in range(len(labels))]
    place = {label: column for column, label in enumerate(labels)}
    energies = np.full(len(numbers), float(model.offset))
    for label, weight in model.linear.items():
        energies += weight * bits[place[label]]
    for (a, b), weight in model.quadratic.items():
        energies += weight * (bits[place[a]] & bits[place[b]])
    variables = made.decode(np.stack(bits, axis=1), labels)
    order = sorted({v for t in terms for v in t}, key=str)
    codes = sum(variables[v].astype(np.int64) << number for number, v in enumerate(order))
    least = np.full(2 ** len(order), np.inf)
    np.minimum.at(least, codes, energies)
    states, values = np.arange(2 ** len(order)), np.zeros(2 ** len(order))
    for term, coefficient in terms.items():
        mask = sum(1 << order.index(v) for v in term)
        values += coefficient * ((states & mask) == mask)
    reached = np.isfinite(least)
    if np.allclose(least[reached], values[reached]) and math.isclose(
        energies.min(), values.min(), abs_tol=1e-6
    ):
        return "all"
    return "minimum" if math.isclose(energies.min(), values.min(), abs_tol=1e-6) else "no"


def measure(package: str, terms: Terms) -> Row:
    """The row of one package."""
    began = time.perf_counter()
    made = PACKAGES[package](terms)
    seconds = time.perf_counter() - began
    weights = [abs(w) for w in (*made.model.linear.values(), *made.model.quadratic.values()) if w]
    couplers = sum(1 for weight in made.model.quadratic.values() if weight)
    spread = max(weights) / min(weights)
    return Row(
        package,
        made.model.num_variables,
        couplers,
        spread,
        energies_kept(terms, made),
        seconds,
        made.note,
    )


def measured(package: str, terms: Terms, limit: float) -> Row | str:
    """The row, measured in a process of its own, or why there is none."""

    def work() -> None:
        try:
            sender.send(measure(package, terms))
        except ImportError as error:
            sender.send(f"not installed ({error})")
        except Exception as error:
            sender.send(f"failed: {type(error).__name__}")

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=work)
    process.start()
    answer = receiver.recv() if receiver.poll(limit) else f"stopped after {limit:.0f} s"
    process.kill()
    process.join()
    return answer  # type: ignore[no-any-return]


def lines_of(name: str, terms: Terms, limit: float) -> list[str]:
    """The rows of one polynomial in Markdown."""
    size = f"{name}: {len({v for t in terms for v in t})} variables, {len(terms)} terms"
    lines = []
    for package in PACKAGES:
        row = measured(package, terms, limit)
        if isinstance(row, str):
            lines.append(f"| {size} | {package} | {row} | | | | | |")
        else:
            cells = f"{row.bits} | {row.couplers} | {row.spread:.4g} | {row.kept} | {row.seconds:.2f} | {row.note}"
            lines.append(f"| {size} | {package} | {cells} |")
        print(lines[-1], file=sys.stderr, flush=True)
    if name.startswith("LABS"):
        n = len({v for t in terms for v in t})
        lines.append(
            f"| {size} | published in QOBLIB: N + N(N-1)/2 | {n + n * (n - 1) // 2} | | | | | |"
        )
    return lines


def save(name: str, terms: Terms, folder: Path) -> None:
    """Write the polynomial, our model (COO and dimod's format) and the decoder."""
    result: Quadratization = quadratize(terms)
    stem = folder / name.lower().replace(" ", "-").replace("'", "").replace(",", "").replace(
        "/", "-"
    )
    polynomial = as_polynomial(terms)
    coefficients = zip(polynomial.terms, polynomial.coefficients, strict=True)
    pairs = [[c, [str(polynomial.variables[v]) for v in t]] for t, c in coefficients]
    stem.with_suffix(".json").write_text(json.dumps([[polynomial.constant, []], *pairs]) + "\n")
    numbered, _ = result.model.relabel_variables_as_integers(inplace=False)
    write_model(numbered, stem.with_suffix(".coo"))
    write_model(result.model, stem.with_suffix(".bqm"))
    result.decoder.write(stem.with_suffix(".decoder.json"))


def versions() -> str:
    """The versions of the packages that are installed, and of the machine."""
    found = [f"Python {platform.python_version()}"]
    for package in ("qubayes", "dimod", "pyqubo", "qubovert", "amplify"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start"
    return f"{', '.join(found)}; {load}."


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--polynomials", help=f"names separated by semicolons, of: {'; '.join(POLYNOMIALS)}"
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="limit of one quadratization with its check"
    )
    parser.add_argument("--output", type=Path, help="write the page to this file")
    parser.add_argument(
        "--save", type=Path, help="write polynomials, our models and decoders into this folder"
    )
    options = parser.parse_args()
    names = options.polynomials.split(";") if options.polynomials else list(POLYNOMIALS)
    head = HEAD.format(versions=versions()).splitlines()
    # compiles the search
    quadratize({(0, 1, 2): 1.0, (1, 2, 3): 1.0, (0, 3, 4, 5): 1.0}, mode="greedy")
    body = []
    for name in names:
        terms = POLYNOMIALS[name]()
        body += lines_of(name, terms, options.seconds)
        if options.save:
            save(name, terms, options.save)
    page = "\n".join([*head, *body]) + "\n"
    if options.output:
        options.output.write_text(page)
    else:
        print(page)


if __name__ == "__main__":
    main()
