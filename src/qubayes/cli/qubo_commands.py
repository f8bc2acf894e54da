"""Commands on QUBOs: `subsets`, `formulate`, `decode`, `embed`, `quadratize`."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..settings import Cover, FormulateSettings, OrderBits, Penalty, ReadSettings, Seed, SubsetsFile
from .options import (
    AsJson,
    CandidatesFile,
    Threads,
    given_options,
    made_by,
    refuse,
    worker_options,
)
from .shell import (
    Clock,
    fail_after_printing,
    print_json,
    print_result,
    print_written,
    progress_bar,
    say,
)

if TYPE_CHECKING:
    from ..foundation.workers import Workers

SHOWN = 10  # samples, and violations


def subsets(
    file: CandidatesFile,
    cover: Cover = "auto",
    seconds: Annotated[
        float,
        typer.Option(help="Stop the integer program of each variable after this many seconds."),
    ] = 60.0,
    effort: Annotated[
        float, typer.Option(help="Multiply the work of the search by this factor.")
    ] = 1.0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the subsets, for `formulate --subsets`: .qbs."),
    ] = None,
    seed: Seed = 0,
    workers: "Workers" = made_by(worker_options),
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")] = False,
    given: dict[str, str] = made_by(given_options),
) -> None:
    """Find the parent subsets that the QUBO uses.

    Every candidate parent set is the union of two of them; the fewest are looked for.
    """
    from ..candidates import read_candidates
    from ..qubo.subsets import Budget, check_output, write_subsets
    from ..qubo.subsets import cover as find

    unused = {"search": ["seconds"], "ilp": ["effort"], "ilp-only": ["effort"]}
    refuse(
        given, unused.get(cover, []), f"with --cover {cover}; leave it out, or choose --cover auto"
    )
    if output:
        check_output(output)
    budget = Budget(seconds=seconds, effort=effort)
    with workers.connected() as joined, progress_bar(quiet=quiet) as show:
        found = find(
            read_candidates(file),
            method=cover,
            budget=budget,
            seed=seed,
            workers=joined,
            on_progress=show,
        )
    if output:
        write_subsets(found, output)
    print_result(found, {output: "parent subsets, for `qubayes formulate`"}, as_json=as_json)
    if not found.complete:
        raise typer.Exit(130)


def formulate(
    file: CandidatesFile,
    settings: FormulateSettings = made_by(FormulateSettings),
    ordering: Annotated[
        str,
        typer.Option(
            help="Express the order in constrained models (.cqm .lp .qplib) by penalties or "
            "inequalities."
        ),
    ] = "penalties",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Write the model: .bqm .coo .qubo .mtx .npz; constrained: "
            ".cqm .lp .qplib .json; a picture: .svg",
        ),
    ] = None,
    workers: "Workers" = made_by(worker_options),
    as_json: AsJson = False,
    given: dict[str, str] = made_by(given_options),
) -> None:
    """Write the QUBO for candidate parent sets."""
    from ..foundation.stop import Interrupt
    from ..learning import formulate_file
    from ..qubo import companion_of

    _refuse_unused(given, settings, output)
    interrupt = Interrupt()
    with workers.connected() as joined, progress_bar(quiet=as_json) as show:
        formulation, written = formulate_file(
            file,
            settings,
            output,
            ordering,
            workers=joined,
            on_progress=show,
            interrupt=interrupt,
        )
    if as_json:
        print_json(formulation.as_json(written))
    else:
        say("\n".join(formulation.describe(written)))
        if settings.subsets:
            say(f"subsets read from {settings.subsets}")
        files: dict[Path | None, str] = {output: "picture of the QUBO"}
        if output and written:
            files = {output: "model", companion_of(output): "what `qubayes decode` needs"}
        if settings.certificate and formulation.certificate:
            files[settings.certificate] = "certificate, for `qubayes check`"
            files[settings.certificate.with_suffix(".jkl")] = "its scores"
        print_written(files)
    if formulation.weak:
        kinds = ", ".join(formulation.weak)
        say(
            f"qubayes: penalties of {kinds} are not above their proved bounds: "
            "a wrong state may win",
            error=True,
        )
    unfinished = interrupt or not (settings.subsets or formulation.subsets.complete)
    fail_after_printing(interrupted=unfinished and "the best covers found so far are used")


def _refuse_unused(given: dict[str, str], settings: FormulateSettings, output: Path | None) -> None:
    """Raise if an option of `formulate` was given that has no effect beside the others."""
    from ..foundation.files import ending
    from ..machines import CONSTRAINED_ENDINGS
    from ..qubo import DEMAND, PROVED

    kinds = {"network": DEMAND, "order_seconds": (*DEMAND, PROVED), "certificate": (PROVED,)}
    for name, orders in kinds.items():
        if settings.order not in orders:
            others = " or ".join(orders)
            why = f"with --order {settings.order}; leave it out, or choose --order {others}"
            refuse(given, [name], why)
    if settings.data is None:
        of_data = ["score", "ess", *(each.name for each in fields(ReadSettings))]
        refuse(given, of_data, "without --data; name the data, or leave it out")
    if settings.score is None:
        refuse(given, ["ess"], "without --score; name the score, or leave it out")
    ordered = [kind for kind in CONSTRAINED_ENDINGS if kind != ".json"]
    if output is None or ending(output) not in ordered:
        why = f"on this output; leave it out, or write one of {', '.join(ordered)}"
        refuse(given, ["ordering"], why)


def decode(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="The model that `formulate -o` wrote, or candidate parent sets (.jkl .scores "
            ".pss .qbc) that are formulated now.",
            show_default=False,
        ),
    ],
    answer: Annotated[
        Path,
        typer.Argument(help="The samples, labels and values: .json or .csv.", show_default=False),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the best network.")
    ] = None,
    repair: Annotated[bool, typer.Option(help="Repair samples that violate constraints.")] = True,
    order: OrderBits = "chordal",
    penalty: Penalty = "tight",
    subsets_file: SubsetsFile = None,
    threads: Threads = None,
    as_json: AsJson = False,
    given: dict[str, str] = made_by(given_options),
) -> None:
    """Turn an annealer's samples into networks.

    Prints their scores, energies and violated constraints. Options on orders, penalties and
    subsets are for candidate parent sets only; a model has its own.
    """
    from ..foundation.workers import Workers
    from ..learning import FormulateSettings, decode_file, is_model

    if is_model(model):
        refuse(
            given,
            ["order", "penalty", "subsets_file"],
            f"on the model {model}, which has its own; leave it out",
        )
    settings, workers = FormulateSettings(order, penalty, subsets=subsets_file), Workers(threads)
    names, samples, best = decode_file(
        model, answer, settings, output, repair=repair, workers=workers
    )
    if as_json:
        print_json({"n": len(names), "samples": [sample.as_json(names) for sample in samples]})
        return
    say(
        f"samples: {len(samples)}, without a violation: "
        f"{sum(sample.feasible for sample in samples)}"
    )
    for number, sample in enumerate(samples[:SHOWN]):
        end = f", repaired to score {sample.repaired.score:.6f}" if sample.repaired else ""
        say(
            f"{number}: energy {sample.energy:.6f}, score {sample.score:.6f}, violations "
            f"{len(sample.violations)}{end}"
        )
    for violation in samples[0].violations[:SHOWN]:
        say(f"sample 0: {violation}")
    if best is not None:
        say(f"best network: score {best.score:.6f}, edges {sum(map(len, best.parents))}")
        print_written({output: "best network, without probabilities"})


def embed(
    model: Annotated[
        Path,
        typer.Argument(
            help="A .bqm file, or candidate sets (.jkl .scores .pss .qbc): then our formulation "
            "and the paper's side by side."
        ),
    ],
    topology: Annotated[
        str, typer.Option(help="Embed in this graph: pegasus:SIZE, zephyr:SIZE or chimera:SIZE.")
    ] = "zephyr:12",
    timeout: Annotated[
        float, typer.Option(help="Stop each search after this many seconds.")
    ] = 60.0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Embed a model in the graph of a quantum annealer."""
    from ..candidates import read_candidates
    from ..foundation.files import ending
    from ..machines import embed as find
    from ..machines import read_qubo
    from ..qubo import formulate as assemble

    clock = Clock()
    if ending(model) not in (".jkl", ".scores", ".pss", ".qbc"):
        found = find(read_qubo(model)[0], topology, timeout=timeout, seed=seed)
        if as_json:
            print_json({**found.as_json(), "seconds": clock.seconds})
        else:
            say("\n".join(found.describe()))
        return
    ours = assemble(read_candidates(model))
    paper = assemble(ours.candidates, ours.subsets, order="scc", penalty="paper")
    models = {"default": ours.qubo, "paper": paper.qubo}
    both = {name: find(qubo, topology, timeout=timeout, seed=seed) for name, qubo in models.items()}
    if as_json:
        print_json(
            {**{name: found.as_json() for name, found in both.items()}, "seconds": clock.seconds}
        )
    else:
        say("\n".join(f"{name}: " + "\n".join(found.describe()) for name, found in both.items()))


def quadratize(
    poly: Annotated[
        Path, typer.Argument(metavar="POLY.json", help="JSON list of [coefficient, [names...]].")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write the quadratic model; the ending chooses the format."
        ),
    ] = None,
    decoder: Annotated[Path | None, typer.Option(help="Write the decoder as JSON.")] = None,
    assumptions: Annotated[
        str, typer.Option(help="Assume general, conventional or terms-exclusive decompositions.")
    ] = "general",
    mode: Annotated[str, typer.Option(help="Search by auto, optimal or greedy.")] = "auto",
    fewest_couplers: Annotated[
        bool,
        typer.Option(
            "--fewest-couplers",
            help="Of the smallest models, find one with the fewest interactions.",
        ),
    ] = False,
    trade_off: Annotated[
        int | None,
        typer.Option(
            help="Also show the fewest interactions with up to this many more binary variables."
        ),
    ] = None,
    penalty: Annotated[
        str,
        typer.Option(
            help="Choose penalties: tight (per term) or paper (one kappa, as in the paper)."
        ),
    ] = "tight",
    time_limit: Annotated[
        float, typer.Option(help="Stop the integer program after this many seconds.")
    ] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Turn a polynomial of binary variables into a QUBO.

    It has as few further binary variables as can be found; the result says what is proved.
    """
    from ..quadratize import quadratize as as_quadratic
    from ..quadratize import read_polynomial
    from ..quadratize import trade_off as rows_of_trade_off

    polynomial = read_polynomial(poly)
    common: dict[str, Any] = {"assumptions": assumptions, "time_limit": time_limit}
    settings: dict[str, Any] = {
        "mode": mode,
        "fewest_couplers": fewest_couplers,
        "penalty": penalty,
    }
    result = as_quadratic(polynomial, **common, **settings)
    if output is not None:
        result.write(output)
    if decoder is not None:
        result.decoder.write(decoder)
    rows = (
        () if trade_off is None else rows_of_trade_off(polynomial, extra_bits=trade_off, **common)
    )
    if as_json:
        print_json(
            result.as_json() | ({"trade_off": [row._asdict() for row in rows]} if rows else {})
        )
    else:
        say("\n".join([*result.describe(), *(row.describe() for row in rows)]))
