"""Tables of text, in the formats that people paste."""

import csv
import io
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table; the first columns are text, the others numbers."""

    name: str  # of its files
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    text_columns: int = 2

    def markdown(self) -> str:
        """As GitHub shows it."""
        return f"### {self.title}\n\n{self.body()}"

    def body(self) -> str:
        """The table and its note without the title, as GitHub shows them."""
        rule = ["---"] * self.text_columns + ["--:"] * (len(self.head) - self.text_columns)
        lines = [f"| {' | '.join(row)} |" for row in (self.head, tuple(rule), *self.rows)]
        note = f"\n\n{self.note}" if self.note else ""
        return "\n".join(lines) + note + "\n"

    def csv(self) -> str:
        """Comma separated."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.head, *self.rows])
        return text.getvalue()

    def latex(self) -> str:
        """A tabular of booktabs with its caption."""
        columns = "l" * self.text_columns + "r" * (len(self.head) - self.text_columns)
        body = " \\\\\n".join(" & ".join(_escaped(cell) for cell in row) for row in self.rows)
        head = " & ".join(_escaped(cell) for cell in self.head)
        return (
            "\\begin{table}\n\\centering\n"
            f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{head} \\\\\n\\midrule\n{body} \\\\\n\\bottomrule\n"
            f"\\end{{tabular}}\n\\caption{{{_escaped(self.title)}. {_escaped(self.note)}}}\n\\end{{table}}\n"
        )


def _escaped(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text.replace("±", "$\\pm$").replace("–", "--").replace("×", "$\\times$").replace("`", "")


def spread(values: Sequence[float], digits: int = 0) -> str:
    """mean ± deviation; the value alone if there is one; a dash if there is none."""
    if not values:
        return "–"
    mean = f"{statistics.mean(values):,.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):,.{digits}f}"
