"""`qubayes embed`: how many qubits of an annealer a model takes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Seed
from .shell import Clock, print_json, say

if TYPE_CHECKING:
    from ..machines import Embedding
    from ..qubo import Qubo

_CANDIDATES = (".jkl", ".scores", ".pss", ".qbc")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(embed)


def embed(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model without constraints (.bqm .coo .qubo .mtx .npz .cqm .lp .json), or candidate sets "
            "(.jkl .scores .pss .qbc): then our formulation and the paper's side by side."
        ),
    ],
    topology: Annotated[str, typer.Option(help="pegasus:SIZE, zephyr:SIZE or chimera:SIZE")] = "zephyr:12",
    timeout: Annotated[float, typer.Option(help="Seconds for each search")] = 60.0,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Embed a model in the graph of a quantum annealer and tell what it takes."""
    from ..foundation.files import ending
    from ..machines import embed as find
    from ..machines import read_qubo

    clock = Clock()
    if ending(model) not in _CANDIDATES:
        found = find(read_qubo(model)[0], topology, timeout=timeout, seed=seed)
        if json:
            print_json({**facts_of(found), "seconds": clock.seconds})
        else:
            say(text_of(found))
        return
    both = {name: find(qubo, topology, timeout=timeout, seed=seed) for name, qubo in formulations(model, seed).items()}
    if json:
        print_json({**{name: facts_of(found) for name, found in both.items()}, "seconds": clock.seconds})
    else:
        say("\n".join(f"{name}: {text_of(found)}" for name, found in both.items()))


def formulations(file: Path, seed: int) -> "dict[str, Qubo]":
    """Our QUBO and the paper's of the same candidates and subsets."""
    from ..candidates import read_candidates
    from ..qubo import formulate
    from ..qubo.subsets import cover

    candidates = read_candidates(file)
    subsets = cover(candidates, seed=seed)
    return {
        "default": formulate(candidates, subsets).qubo,
        "paper": formulate(candidates, subsets, order="scc", penalty="paper").qubo,
    }


def facts_of(found: "Embedding") -> dict[str, Any]:
    """What --json prints of one embedding."""
    return {
        "topology": found.topology,
        "available_qubits": found.available_qubits,
        "available_couplers": found.available_couplers,
        "bits": found.bits,
        "couplers": found.couplers,
        "found": found.found,
        "impossible": found.impossible,
        "physical_qubits": found.physical_qubits if found.found else None,
        "longest_chain": found.longest_chain if found.found else None,
        "status": found.status,
    }


def text_of(found: "Embedding") -> str:
    """One embedding in a few lines."""
    lines = [f"{found.bits:,} bits, {found.couplers:,} couplers", found.status]
    if found.found:
        lines.append(f"{found.physical_qubits:,} physical qubits, longest chain {found.longest_chain}")
    return "\n".join(lines)
