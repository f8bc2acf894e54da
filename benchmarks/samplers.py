"""Annealers of QUBOs: flips per second beside other packages and a plain C loop, kinds of moves, both formulations.

    python -m benchmarks samplers peers [--seeds 3] [--reads 4] [--models dense,sparse]
    python -m benchmarks samplers moves DIR [--instances win95pts:2,andes:2] [--seconds 20]
        [--seeds 0] [--effort 0.1] [--subsets COVERS]
    python -m benchmarks samplers formulations DIR [--instances alarm:4,andes:2] [--seconds 10]
        [--seeds 0] [--effort 0.1] [--subsets COVERS] [--solver sa] [--json OUT.jsonl]

`peers`: models of 2,000 spins, all coupled by normal numbers, and of 20,000 spins with about 6
couplers of +-1 each. Every sampler gets the same schedule and one thread. Flips per second count
the processor's seconds of many sweeps minus those of two, so that reading the model is not counted;
the least of three measurements each. OpenJij is measured where it is installed, on the sparse model
only: the dense one was not through after three minutes. The plain loop is the dozen lines of C
below with weights and fields of 32 bits, compiled by gcc -O3 -march=native.

`moves`: one thread of `sa` with single flips, `sa` with vertex moves, and `digital`, on the default
formulation. Gaps are in percent of the gain of the best network known: the best of these runs and
of `anneal` for the same time. "raw" is the best state of annealing that violates no constraint,
"repaired" the best one with repair. "edge" is the median energy that it costs to turn off a subset
bit of the best network; "free" is the share of the order bits that can be flipped there for less
than 1. Moves per second are of the processor's time.

`formulations`: DIR holds candidate sets as {name}_m{m}_s{sample}, all of sample 0. The solver gets
the same seconds on (chordal, tight) and on the paper's (scc, paper) formulation over the same
subsets, which are read from COVERS/{name}_m{m}_s0.qbs or found by a short search."""

import argparse
import ctypes
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import dimod
import numpy as np

INSTANCES = (
    "alarm:4,barley:4,hailfinder:4,hepar2:4,chess:2,chess:3,win95pts:2,win95pts:3,pathfinder:2,pathfinder:3,"
    "mushroom:2,connect:2,connect:3,munin1:2,andes:2,andes:3"
)
# Sweeps by Metropolis' rule with kept fields h_i + sum_j J_ij x_j. Rows are dense (n floats) where
# `columns` is null.
PLAIN_LOOP = """
#include <math.h>
#include <stdint.h>
static uint64_t first, second;
static inline uint64_t word(void) {
    uint64_t x = first, y = second;
    first = y;
    x ^= x << 23;
    second = x ^ y ^ (x >> 17) ^ (y >> 26);
    return second + y;
}
void anneal(int n, const int64_t *start, const int32_t *columns, const float *weights, float *field, int8_t *bits,
            const float *betas, int sweeps, int at_random, uint64_t seed) {
    first = seed * 0x9E3779B97F4A7C15u + 1;
    second = 0xD1B54A32D192ED03u;
    for (int sweep = 0; sweep < sweeps; sweep++)
        for (int k = 0; k < n; k++) {
            int i = at_random ? (int)(((word() >> 32) * (uint64_t)n) >> 32) : k;
            float sign = bits[i] ? -1 : 1, rise = sign * field[i];
            if (rise > 0 && (word() >> 40) * 0x1p-24f >= expf(-betas[sweep] * rise)) continue;
            bits[i] ^= 1;
            if (columns)
                for (int64_t p = start[i]; p < start[i + 1]; p++) field[columns[p]] += sign * weights[p];
            else
                for (int j = 0; j < n; j++) field[j] += sign * weights[(int64_t)i * n + j];
        }
}
"""
MODES = (("chordal", "tight"), ("scc", "paper"))
Sampler = Callable[[Any, int, int, int, tuple[float, float]], dimod.SampleSet]


def main() -> None:
    """Print one of the two Markdown tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(required=True)
    peers = kinds.add_parser("peers")
    peers.set_defaults(run=compare_peers)
    peers.add_argument("--seeds", type=int, default=3)
    peers.add_argument("--reads", type=int, default=4)
    peers.add_argument("--models", default="dense,sparse")
    moves = kinds.add_parser("moves")
    moves.set_defaults(run=compare_moves, order="chordal", penalty="tight")
    moves.add_argument("directory", type=Path)
    moves.add_argument("--instances", default="win95pts:2,pathfinder:2,andes:2")
    moves.add_argument("--seconds", type=float, default=20.0)
    moves.add_argument("--seeds", default="0", help="of the solvers, separated by commas")
    moves.add_argument("--effort", type=float, default=0.1, help="of the search for subsets")
    moves.add_argument("--subsets", type=Path, metavar="COVERS")
    formulations = kinds.add_parser("formulations")
    formulations.set_defaults(run=compare_formulations)
    formulations.add_argument("directory", type=Path)
    formulations.add_argument("--instances", default=INSTANCES)
    formulations.add_argument("--seconds", type=float, default=10.0)
    formulations.add_argument("--seeds", default="0", help="of the solver, separated by commas")
    formulations.add_argument("--effort", type=float, default=0.1, help="of the search for subsets")
    formulations.add_argument("--subsets", type=Path, metavar="COVERS")
    formulations.add_argument("--solver", default="sa")
    formulations.add_argument("--json", type=Path, help="append a line for each run")
    options = parser.parse_args()
    options.run(options)


def compare_peers(options: argparse.Namespace) -> None:
    """Flips per second and energies of each sampler on each model."""
    print(
        "| model | order | sampler | million flips tried per CPU second | mean energy | standard error |\n"
        "|---|---|---|---|---|---|"
    )
    for name in options.models.split(","):
        model, betas, sweeps = dense() if name == "dense" else sparse()
        for order, label, sampler in samplers():
            if (name, label) == ("dense", "openjij"):
                continue
            rate = _rate(sampler, model, sweeps, options.reads, betas)
            energies = np.concatenate(
                [
                    sampler(model, sweeps, options.reads, seed, betas).record.energy
                    for seed in range(1, options.seeds + 1)
                ]
            )
            error = energies.std(ddof=1) / np.sqrt(len(energies))
            print(
                f"| {name} | {order} | {label} | {rate / 1e6:.2f} | {energies.mean():,.1f} | {error:.1f} |",
                flush=True,
            )


def dense(n: int = 2000) -> tuple[Any, tuple[float, float], int]:
    """(model, inverse temperatures, sweeps): all spins coupled."""
    rows, columns = np.triu_indices(n, 1)
    weights = np.random.default_rng(0).normal(size=len(rows))
    return _ising(n, rows, columns, weights), (0.2 / np.sqrt(n), 10.0 / np.sqrt(n)), 400


def sparse(n: int = 20_000, degree: int = 6) -> tuple[Any, tuple[float, float], int]:
    """(model, inverse temperatures, sweeps): few couplers for each spin."""
    random = np.random.default_rng(0)
    ends = random.integers(0, n, (n * degree // 2, 2))
    pairs = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    weights = random.choice([-1.0, 1.0], len(pairs))
    return _ising(n, pairs[:, 0], pairs[:, 1], weights), (0.1, 3.0), 1000


def _ising(n: int, rows: Any, columns: Any, weights: Any) -> Any:
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        np.zeros(n), (rows, columns, weights), 0.0, "SPIN"
    )


def samplers() -> list[tuple[str, str, Sampler]]:
    """(order of the spins, name, sampler) of all that are installed."""
    from dwave.samplers import SimulatedAnnealingSampler as Theirs

    from qubayes.qubo.samplers import SimulatedAnnealingSampler as Ours

    def dwave(at_random: bool) -> Sampler:
        return lambda model, sweeps, reads, seed, betas: Theirs().sample(
            model,
            num_reads=reads,
            num_sweeps=sweeps,
            beta_range=betas,
            seed=seed,
            randomize_order=at_random,
        )

    def ours(at_random: bool) -> Sampler:
        return lambda model, sweeps, reads, seed, betas: Ours().sample(
            model,
            num_reads=reads,
            num_sweeps=sweeps,
            beta_range=betas,
            seed=seed,
            randomize_order=at_random,
            threads=1,
        )

    found: list[tuple[str, str, Sampler]] = []
    for order, at_random in (("in order", False), ("random", True)):
        found += [(order, "qubayes", ours(at_random)), (order, "dwave-samplers", dwave(at_random))]
        found += [(order, "plain C loop", plain_loop(at_random))]
    try:
        import openjij
    except ImportError:
        return found

    def jij(
        model: Any, sweeps: int, reads: int, seed: int, betas: tuple[float, float]
    ) -> dimod.SampleSet:
        return openjij.SASampler().sample(
            model,
            num_sweeps=sweeps,
            num_reads=reads,
            beta_min=betas[0],
            beta_max=betas[1],
            seed=seed,
        )

    return [*found, ("in order", "openjij", jij)]


@cache
def _compiled() -> Any:
    """Return the compiled C function."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "plain.c", Path(folder) / "plain.so"
        source.write_text(PLAIN_LOOP)
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, "-o", str(library), str(source), "-lm"], check=True)
        return ctypes.CDLL(str(library)).anneal


def plain_loop(at_random: bool) -> Sampler:
    """Return the plain C loop as a sampler; one read after the other."""
    from qubayes.qubo.samplers import qubo_of_bqm

    def sample(
        model: Any, sweeps: int, reads: int, seed: int, betas: tuple[float, float]
    ) -> dimod.SampleSet:
        qubo, states = qubo_of_bqm(model), []
        n, dense_rows = qubo.bits, bool((np.diff(qubo.indptr) == qubo.bits - 1).all())
        columns, weights = qubo.indices.astype(np.int32), qubo.weights.astype(np.float32)
        start, schedule = (
            qubo.indptr.astype(np.int64),
            np.geomspace(*betas, sweeps).astype(np.float32),
        )
        if dense_rows:
            weights = np.zeros((n, n), np.float32)
            weights[np.repeat(np.arange(n), np.diff(start)), columns] = qubo.weights
        for read in range(reads):
            field, bits = qubo.h.astype(np.float32), np.zeros(n, np.int8)
            used = (start, None if dense_rows else columns, weights, field, bits, schedule)
            pointers = [
                None if array is None else array.ctypes.data_as(ctypes.c_void_p) for array in used
            ]
            _compiled()(
                n, *pointers, sweeps, int(at_random), ctypes.c_uint64(seed * reads + read + 1)
            )
            states.append(2 * bits - 1)
        return dimod.SampleSet.from_samples_bqm((np.array(states), list(model.variables)), model)

    return sample


def compare_moves(options: argparse.Namespace) -> None:
    """Print gaps and speed of vertex moves, single flips and parallel trial."""
    from qubayes.foundation.workers import Workers
    from qubayes.qubo import encode_sets
    from qubayes.qubo.samplers.flips import walk_from
    from qubayes.qubo.samplers.states import annealed_score
    from qubayes.search import Limits, solve, solver_named

    print(
        "| instance | bits | edge | free | solver | seed | raw gap, % | repaired gap, % | million moves / s |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    solvers = {"sa": {}, "sa, flips": {"flips": True}, "digital": {}}
    for part in options.instances.split(","):
        name, _, parents = part.partition(":")
        formulation = _formulation(name, int(parents), options, options.order, options.penalty)
        runs, best = [], None
        for seed in map(int, options.seeds.split(",")):
            limits, one = Limits(options.seconds, seed=seed), Workers(1)
            known = solve(formulation.candidates, "anneal", limits=limits, workers=one)
            for label, settings in solvers.items():
                solver = solver_named(label.partition(",")[0], **settings)
                began = time.process_time()
                found = solve(formulation, solver.prepare(), limits=limits, workers=one)
                runs.append((label, seed, found, time.process_time() - began))
            best = max(
                filter(None, [best, known, *(run[2] for run in runs)]),
                key=lambda found: found.score,
            )
        walk = walk_from(formulation.qubo, encode_sets(formulation, best.choice))
        rises, first_r = walk.sign * walk.field, formulation.bits["u"]
        edge = float(np.median(rises[:first_r][walk.sign[:first_r] < 0]))
        free = float((rises[first_r : first_r + formulation.bits["r"]] < 1.0).mean())
        gain = best.score - best.empty_score
        for label, seed, found, cpu in runs:
            counts, raw = found.statistics, found.statistics["raw_score"]
            moves = (
                counts.get("flips_tried")
                or counts.get("vertex_moves")
                or counts["iterations"] * counts["replicas"]
            )
            gap, mended = (
                "none" if score is None else f"{100 * (best.score - score) / gain:.3f}"
                for score in (raw, annealed_score(counts))
            )
            print(
                f"| {name} m={parents} | {formulation.bits['total']:,} | {edge:.0f} | {free:.2f} | {label} | {seed} | "
                f"{gap} | {mended} | {moves / cpu / 1e6:.3g} |",
                flush=True,
            )


def _rate(
    sampler: Sampler, model: Any, sweeps: int, reads: int, betas: tuple[float, float]
) -> float:
    """Flips tried in a second of the processor."""

    def seconds(count: int, seed: int) -> float:
        began = time.process_time()
        sampler(model, count, reads, seed, betas)
        return time.process_time() - began

    seconds(2, 0)  # compiles
    least = [min(seconds(count, seed) for seed in range(3)) for count in (2, sweeps)]
    return len(model.variables) * reads * (sweeps - 2) / (least[1] - least[0])


def compare_formulations(options: argparse.Namespace) -> None:
    """The solver's score on both formulations of each instance."""
    print(
        "| instance | bits tight / paper | seed | tight | paper | ahead, % of the gain | repaired | better |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    wins = runs = 0
    for part in options.instances.split(","):
        name, _, parents = part.partition(":")
        for row in _compared(name, int(parents), options):
            better = max(("tight", "paper"), key=lambda mode: row[mode]["score"])
            better = "equal" if row["tight"]["score"] == row["paper"]["score"] else better
            wins, runs = wins + (better == "tight"), runs + 1
            tight, paper = row["tight"], row["paper"]
            share = 100 * (tight["score"] - paper["score"]) / (tight["score"] - tight["empty"])
            mended = f"{tight['statistics']['repaired']} / {paper['statistics']['repaired']}"
            print(
                f"| {name} m={parents} | {tight['bits']:,} / {paper['bits']:,} | {row['seed']} | "
                f"{tight['score']:,.2f} | {paper['score']:,.2f} | {share:.2f} | {mended} | {better} |",
                flush=True,
            )
    print(f"\ntight better in {wins} of {runs} runs of {options.seconds:g} s")


def _candidates(name: str, parents: int, options: argparse.Namespace) -> tuple[Any, Any]:
    """(candidates, subsets) of an instance."""
    from qubayes.candidates import read_candidates
    from qubayes.qubo.subsets import Budget, cover, read_subsets

    stem = f"{name}_m{parents}_s0"
    candidates = read_candidates(
        next(file for file in options.directory.glob(f"{stem}.*") if file.suffix != ".qbs")
    )
    file = options.subsets / f"{stem}.qbs" if options.subsets else Path("none")
    if file.exists():
        return candidates, read_subsets(file)
    return candidates, cover(candidates, method="search", budget=Budget(effort=options.effort))


def _formulation(
    name: str, parents: int, options: argparse.Namespace, order: str, penalty: str
) -> Any:
    """The QUBO of an instance."""
    from qubayes.qubo import formulate

    return formulate(*_candidates(name, parents, options), order=order, penalty=penalty)


def _compared(name: str, parents: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """For each seed the runs on both formulations, with the scores of annealing's own states."""
    from qubayes.qubo.samplers.states import annealed_score
    from qubayes.search import Limits, solve

    rows: dict[str, dict[str, Any]] = {
        seed: {"seed": int(seed)} for seed in options.seeds.split(",")
    }
    for order, penalty in MODES:
        formulation = _formulation(name, parents, options, order, penalty)
        for seed, row in rows.items():
            found = solve(
                formulation, options.solver, limits=Limits(options.seconds, seed=int(seed))
            )
            own = annealed_score(found.statistics)
            row[penalty] = {
                "instance": name, "m": parents, "seed": int(seed), "solver": options.solver, "penalty": penalty,
                "bits": formulation.bits["total"], "empty": found.empty_score,
                "score": found.score if own is None else own,
                "seconds": found.seconds, "status": found.status, "statistics": dict(found.statistics),
            }  # fmt: skip
            if options.json:
                with options.json.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(row[penalty]) + "\n")
    return list(rows.values())


if __name__ == "__main__":
    main()
