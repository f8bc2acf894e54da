"""`qubayes embed`: how many qubits of an annealer a model takes."""

from pathlib import Path
from typing import Annotated

import typer

from .shell import Clock, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(embed)


def embed(
    model: Annotated[
        Path, typer.Argument(help="A model without constraints: .bqm .coo .qubo .mtx .npz .cqm .lp .json")
    ],
    topology: Annotated[str, typer.Option(help="pegasus:SIZE, zephyr:SIZE or chimera:SIZE")] = "zephyr:12",
    timeout: Annotated[float, typer.Option(help="Seconds for the search")] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of the search")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
) -> None:
    """Embed a model in the graph of a quantum annealer and tell what it takes."""
    from ..machines import read_qubo
    from ..machines.embedding import embed as find

    clock = Clock()
    qubo, _ = read_qubo(model)
    found = find(qubo, topology, timeout=timeout, seed=seed)
    if json:
        print_json(
            {
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
                "seconds": clock.seconds,
            }
        )
        return
    print(f"{found.bits:,} bits, {found.couplers:,} couplers")
    print(found.status)
    if found.found:
        print(f"{found.physical_qubits:,} physical qubits, longest chain {found.longest_chain}")
