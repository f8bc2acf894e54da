"""The paper's Figure 1, redrawn from what the program computes for the three vertices of its Figure 2.

`python -m benchmarks figures` writes docs/pictures/overview.svg; `--check` compares. Figure 2 is
drawn by `qubayes formulate docs/pictures/three.jkl --order scc --penalty paper -o qubo.svg`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from qubayes.candidates import Candidates, read_candidates
from qubayes.network import Network
from qubayes.qubo import Formulation, constrain, formulate
from qubayes.qubo.subsets import cover
from qubayes.report import draw
from qubayes.search import Limits, solve

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH, GAP, LINE, TOP, SMALL, LARGE = 200, 34, 19, 62, 12, 13
STEPS = (
    "scores of parent sets",
    "unions of two",
    "one bit each",
    "order, at most two",
    "least energy",
)


def panels(candidates: Candidates) -> tuple[list[tuple[str, list[str]]], Network]:
    """Return the title and the lines of each panel, and the network of the last one."""
    subsets = cover(candidates)
    paper = formulate(candidates, subsets, order="scc", penalty="paper")
    ours = formulate(candidates, subsets)
    solution = solve(paper, "exact", limits=Limits(10.0))
    chosen = candidates.families.sets_at(solution.choice)
    names, families = candidates.names, subsets.families
    sets = [[(members, score) for members, score in candidates.of(v)] for v in range(candidates.n)]
    kinds = {"u": "subset bits", "r": "order bits", "z": "slack bits"}
    bits = [f"{paper.bits[kind]} {word}" for kind, word in kinds.items()]
    return [
        ("data", ["a row for each case,", "a column for each", f"of {', '.join(names)}"]),
        (
            "candidate parent sets",
            [
                f"{names[v]}: {_set(names, w)}  {_number(s)}"
                for v, own in enumerate(sets)
                for w, s in reversed(own)
            ],
        ),
        (
            "candidate parent subsets",
            [
                f"{names[v]}: u{v + 1}{k} = {_set(names, w)}"
                for v in range(families.n)
                for k, w in enumerate(families.sets_of(v), 1)
            ],
        ),
        ("minus the score", list(_polynomials(paper))),
        (
            "QUBO",
            [
                f"{paper.qubo.bits} bits:",
                *bits,
                f"({ours.qubo.bits} bits in our",
                "own formulation)",
            ],
        ),
        ("network", [f"score {_number(solution.score)},", f"energy {_number(-solution.score)}"]),
    ], Network(names, chosen)


def _number(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _set(names: Sequence[str], members: Sequence[int]) -> str:
    return "{" + ", ".join(names[v] for v in members) + "}" if members else "∅"


def _polynomials(formulation: Formulation) -> Iterator[str]:
    """Yield minus the score of each vertex as a polynomial of its subset bits, from the coefficients of the QUBO."""
    score, names = constrain(formulation).score, formulation.candidates.names
    families = formulation.subsets.families
    for vertex, first in enumerate(families.vertex_start[:-1].tolist()):
        own = range(first, int(families.vertex_start[vertex + 1]))
        label = {bit: f"u{vertex + 1}{bit - first + 1}" for bit in own}
        terms = [(float(score.h[bit]), label[bit]) for bit in own]
        for bit in own:
            places = range(int(score.indptr[bit]), int(score.indptr[bit + 1]))
            later = [
                (float(score.weights[k]), int(score.indices[k]))
                for k in places
                if score.indices[k] > bit
            ]
            terms += [
                (weight, f"{label[bit]} {label[other]}")
                for weight, other in later
                if other in label
            ]
        text = "".join(
            f" {'−' if weight < 0 else '+'} {abs(weight):g} {name}" for weight, name in terms
        )
        whole = f"{names[vertex]}: {-formulation.candidates.base_scores[vertex]:g}{text}"
        while len(whole) > 22:  # wrapped at a sign
            cut = max(whole.rfind(" − ", 0, 22), whole.rfind(" + ", 0, 22))
            yield whole[:cut]
            whole = "     " + whole[cut + 1 :]
        yield whole


def picture(candidates: Candidates) -> str:
    """Return the overview as an SVG document."""
    content, network = panels(candidates)
    inner = draw(network)
    height = TOP + LINE * max(len(lines) for _, lines in content) + 108
    width = len(content) * WIDTH + (len(content) - 1) * GAP + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" role="img" aria-label="From data to a network by a QUBO">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, (title, lines) in enumerate(content):
        left = 10 + number * (WIDTH + GAP)
        parts.append(
            f'<rect x="{left}" y="30" width="{WIDTH}" height="{height - 40}" rx="9" fill="#f4f7fc" stroke="#4a6fa5"/>'
        )
        parts.append(_label(left + WIDTH / 2, 52, title, LARGE, "middle", "bold"))
        parts += [
            _label(left + 12, TOP + 18 + LINE * k, line, SMALL) for k, line in enumerate(lines)
        ]
        if number:
            middle = TOP + 28
            parts.append(
                f'<path d="M{left - GAP + 3} {middle}h{GAP - 14}" stroke="#555555" stroke-width="2"/>'
                f'<path d="M{left - 11} {middle - 5}l9 5l-9 5z" fill="#555555"/>'
            )
            parts.append(_label(left - GAP / 2, 20, STEPS[number - 1], SMALL, "middle"))
    for row in range(6):  # the table of the data
        cells = "".join(
            f'<rect x="{22 + 36 * k}" y="{TOP + 84 + 20 * row}" width="36" height="20"/>'
            for k in range(3)
        )
        parts.append(
            f'<g fill="{"#dfe6f2" if row == 0 else "#ffffff"}" stroke="#9aa0a6">{cells}</g>'
        )
    parts += [
        _label(40 + 36 * k, TOP + 98, name, SMALL, "middle")
        for k, name in enumerate(candidates.names)
    ]
    nested = inner.replace("<svg ", f'<svg x="{10 + 5 * (WIDTH + GAP) + 40}" y="{TOP + 44}" ', 1)
    return "\n".join(
        [*parts, nested.replace('fill="#ffffff"', 'fill="none"', 1).rstrip(), "</svg>", ""]
    )


def _label(
    x: float, y: float, text: str, size: int, anchor: str = "start", weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" fill="#202124" '
        f'xml:space="preserve">{escape(text)}</text>'
    )


def main() -> None:
    """Write the picture, or compare it with the one that is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if docs/pictures/overview.svg differs"
    )
    arguments = parser.parse_args()
    made, place = picture(read_candidates(PICTURES / "three.jkl")), PICTURES / "overview.svg"
    if arguments.check:
        sys.exit(place.read_text() != made)
    place.write_text(made)
    print(f"written: {place}")


if __name__ == "__main__":
    main()
