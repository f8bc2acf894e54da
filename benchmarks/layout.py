"""Size and crossings of pictures of networks, ours beside those of Graphviz's dot, as a Markdown table.

    python -m benchmarks layout NETWORK [NETWORK ...] [--dot dot]

Boxes have the same sizes for both. Crossings are counted between the curves as drawn, each cut into
short lines. Without Graphviz only our own rows are printed; `--dot` names the program, which is
called as `dot -Tjson FILE`."""

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qubayes.network import Network, read_network
from qubayes.report.layout import BOX_HEIGHT, Layout, lay_out

Curve = npt.NDArray[np.float64]  # (points, 2)
_PIECES = 8  # of one cubic curve


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="+", type=Path)
    parser.add_argument("--dot", default="dot")
    options = parser.parse_args()
    print(
        "| network | vertices | edges | by | width | height | crossings | seconds |\n|---|---|---|---|---|---|---|---|"
    )
    for path in options.networks:
        network = read_network(path)
        began = time.perf_counter()
        layout = lay_out(network)
        seconds = time.perf_counter() - began
        curves = [_cubics(list(_controls(points))) for points in layout.curves.values()]
        rows = [("qubayes", layout.width, layout.height, curves, seconds)]
        if shutil.which(options.dot):
            rows.append(("dot", *_by_dot(options.dot, network, layout)))
        for name, width, height, drawn, spent in rows:
            facts = f"{path.name} | {network.n} | {len(layout.curves)} | {name}"
            print(
                f"| {facts} | {width:,.0f} | {height:,.0f} | {crossings(drawn):,} | {spent:.1f} |",
                flush=True,
            )


def crossings(curves: Sequence[Curve]) -> int:
    """Return how often two of the curves cross."""
    boxes = [(curve.min(axis=0), curve.max(axis=0)) for curve in curves]
    near = (
        (one, two)
        for (one, (low, high)), (two, (other_low, other_high)) in combinations(
            zip(curves, boxes, strict=True), 2
        )
        if (low <= other_high).all() and (other_low <= high).all()
    )
    return sum(_crossings_of_two(one, two) for one, two in near)


def _crossings_of_two(one: Curve, two: Curve) -> int:
    a, b, c, d = one[:-1, None], one[1:, None], two[None, :-1], two[None, 1:]
    return int(
        ((_side(a, b, c) * _side(a, b, d) < 0) & (_side(c, d, a) * _side(c, d, b) < 0)).sum()
    )


def _side(p: Curve, q: Curve, r: Curve) -> Curve:
    """Return on which side of the line from p to q the point r is."""
    return (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (
        r[..., 0] - p[..., 0]
    )


def _controls(points: Iterable[tuple[float, float]]) -> Iterable[tuple[float, float]]:
    """Return the control points of our curves: vertical at each point."""
    for k, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        middle = (y0 + y1) / 2
        yield from ([(x0, y0)] if k == 0 else []) + [(x0, middle), (x1, middle), (x1, y1)]


def _cubics(controls: Sequence[Sequence[float]]) -> Curve:
    """Return points on a chain of cubic Bézier curves."""
    t = np.linspace(0, 1, _PIECES + 1)[1:, None]
    weights = np.hstack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
    parts = [weights @ np.array(controls[k : k + 4]) for k in range(0, len(controls) - 1, 3)]
    return np.vstack([np.array(controls[:1]), *parts])


def _by_dot(dot: str, network: Network, layout: Layout) -> tuple[float, float, list[Curve], float]:
    """Return width, height, curves and seconds of dot's picture."""
    lines = [f'node [shape=box fixedsize=true label="" height={BOX_HEIGHT / 72}]']
    lines += [f"{v} [width={width / 72}]" for v, width in enumerate(layout.widths.tolist())]
    lines += [
        f"{parent} -> {child}"
        for child, parents in enumerate(network.parents)
        for parent in parents
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.dot"
        file.write_text("digraph {" + ";\n".join(lines) + "}")
        began = time.perf_counter()
        done = subprocess.run(
            [dot, "-Tjson", str(file)], capture_output=True, text=True, check=True
        )
        seconds = time.perf_counter() - began
    drawn = json.loads(done.stdout)
    left, bottom, right, top = map(float, drawn["bb"].split(","))
    curves = [
        _cubics(op["points"]) for edge in drawn["edges"] for op in edge["_draw_"] if op["op"] == "b"
    ]
    return right - left, top - bottom, curves, seconds


if __name__ == "__main__":
    main()
