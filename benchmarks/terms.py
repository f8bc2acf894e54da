"""Bits, couplers and embedded qubits of three formulations of the same candidate sets: the paper's Limitation 3.

    python -m benchmarks terms [--data FILE] [--columns 6,9,12,37] [-m 2] [--topology pegasus:16]
    [--timeout 30]
        [--output FILE]

The formulations: O'Gorman et al. (one bit for each possible edge), the paper's (candidate parent
subsets, order bits of all pairs on possible cycles, its penalties) and ours (the default: order
bits of a chordal completion, tight penalties). Columns are the first ones of the data,
examples/alarm.csv unless given. Embeddings are by minorminer, a heuristic; where none is found in
time, the table says so, which proves nothing."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import polars

from qubayes import Candidates, CandidateSearch, Score, cover, formulate, identify, read
from qubayes.machines.embedding import embed
from qubayes.machines.qubo import Qubo
from qubayes_baselines import formulate_ogorman


def formulations(candidates: Candidates) -> Iterator[tuple[str, Qubo]]:
    """The three QUBOs."""
    yield "O'Gorman et al.", formulate_ogorman(candidates).qubo
    subsets = cover(candidates)
    yield "the paper", formulate(candidates, subsets, order="scc", penalty="paper").qubo
    yield "qubayes", formulate(candidates, subsets).qubo


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path(__file__).parents[1] / "examples" / "alarm.csv"
    )
    parser.add_argument(
        "--columns", default="6,9,12,37", help="numbers of columns, separated by commas"
    )
    parser.add_argument("-m", "--max-parents", type=int, default=2)
    parser.add_argument("--topology", default="pegasus:16")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds of one embedding")
    parser.add_argument("--output", type=Path, help="write the table to this file")
    options = parser.parse_args()
    lines = [
        f"| columns of {options.data.name}, m = {options.max_parents} | formulation | bits | couplers | couplers a bit "
        f"| qubits on {options.topology} | longest chain |",
        "|---|---|---|---|---|---|---|",
    ]
    frame = polars.read_csv(options.data, infer_schema_length=None)
    for count in map(int, options.columns.split(",")):
        dataset = read(frame.select(frame.columns[:count]))
        candidates = identify(dataset, CandidateSearch(options.max_parents, Score("bdeu", 1.0)))
        for name, qubo in formulations(candidates):
            found = embed(qubo, options.topology, timeout=options.timeout)
            none = "impossible" if found.impossible else f"none found in {options.timeout:.0f} s"
            where = (
                f"{found.physical_qubits} | {found.longest_chain}" if found.found else f"{none} | "
            )
            ratio = qubo.couplers / max(qubo.bits, 1)
            lines.append(
                f"| {count} | {name} | {qubo.bits} | {qubo.couplers} | {ratio:.1f} | {where} |"
            )
            print(lines[-1], flush=True)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
