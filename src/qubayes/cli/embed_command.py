"""`qubayes embed`: how many qubits of an annealer a model takes."""

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Seed
from .shell import Clock, print_json, say

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
    """Embed a model in the graph of a quantum annealer and print what it takes."""
    from ..candidates import read_candidates
    from ..foundation.files import ending
    from ..machines import embed as find
    from ..machines import read_qubo
    from ..qubo import formulate

    clock = Clock()
    if ending(model) not in _CANDIDATES:
        found = find(read_qubo(model)[0], topology, timeout=timeout, seed=seed)
        if json:
            print_json({**found.as_json(), "seconds": clock.seconds})
        else:
            say("\n".join(found.describe()))
        return
    ours = formulate(read_candidates(model))
    paper = formulate(ours.candidates, ours.subsets, order="scc", penalty="paper")
    both = {
        name: find(formulation.qubo, topology, timeout=timeout, seed=seed)
        for name, formulation in (("default", ours), ("paper", paper))
    }
    if json:
        print_json({**{name: found.as_json() for name, found in both.items()}, "seconds": clock.seconds})
    else:
        say("\n".join(f"{name}: " + "\n".join(found.describe()) for name, found in both.items()))
