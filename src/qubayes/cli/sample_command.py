"""`qubayes sample`: rows drawn from a network."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Seed
from .shell import Clock, print_json, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sample")(sample)


def sample(
    network: Annotated[Path, typer.Argument(help="A network with probabilities: .bif, .xmlbif or .json.")],
    rows: Annotated[int, typer.Option("--rows", "-n", help="How many rows to draw.")] = 1000,
    seed: Seed = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv, .tsv, .dat or .parquet file; stdout unless given.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw rows from a network."""
    from ..data.write import write, write_rows
    from ..foundation.errors import SettingError
    from ..network import read_network
    from ..network import sample as draw

    if as_json and output is None:
        raise SettingError("--json and the rows would both go to stdout; name a file for the rows with -o")
    clock = Clock()
    dataset = draw(read_network(network), rows, seed)
    if output is None:
        write_rows(dataset, sys.stdout)
        return
    write(dataset, output)
    if as_json:
        print_json(
            {
                "n": dataset.n,
                "rows": dataset.rows,
                "seed": seed,
                "output": str(output),
                "checksum": dataset.checksum,
                "seconds": clock.seconds,
            }
        )
    else:
        say(f"{dataset.rows} rows of {dataset.n} variables in {output}")
