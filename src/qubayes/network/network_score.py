"""The score of a given network on data."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import ReadSettings, read
from ..foundation.errors import DataError
from ..scores import Score
from .network import Network
from .network_files import read_network
from .parameters import log_likelihood, vertex_scores


@dataclass(frozen=True, slots=True)
class NetworkScore:
    """The score of a network on data and, where it has probabilities, the log-likelihood of the rows."""

    score: Score
    per_vertex: Mapping[str, float]
    edges: int
    rows: int
    arities_from: str
    other_columns: int  # of the data, which are not vertices
    log_likelihood: float | None
    log_likelihood_note: str | None  # why there is none

    @property
    def total(self) -> float:
        """The sum of the local scores."""
        return math.fsum(self.per_vertex.values())

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes score --json` prints, without the scores of single vertices."""
        likelihood = self.log_likelihood
        return {
            "score": self.total,
            "name": self.score.name,
            "ess": self.score.stamped_ess,
            "arities": self.arities_from,
            "n": len(self.per_vertex),
            "edges": self.edges,
            "rows": self.rows,
            "other_columns": self.other_columns,
            "log_likelihood": likelihood,
            "log_likelihood_per_row": likelihood / self.rows if likelihood is not None and self.rows else None,
            "log_likelihood_note": self.log_likelihood_note,
        }

    def describe(self) -> list[str]:
        """Return the result in a few lines for people."""
        ess = "" if self.score.stamped_ess is None else f", equivalent sample size {self.score.stamped_ess:g}"
        lines = [
            f"{self.score.name} score {self.total:.6f}{ess}, arities from {self.arities_from}",
            f"{len(self.per_vertex)} vertices, {self.edges} edges, {self.rows} rows",
        ]
        if self.other_columns:
            lines.append(f"{self.other_columns} columns of the data are not vertices and were ignored")
        if self.log_likelihood is None:
            return [*lines, f"log-likelihood: {self.log_likelihood_note}"]
        return [*lines, f"log-likelihood {self.log_likelihood:.6f}, {self.log_likelihood / self.rows:.6f} per row"]


def score(
    network: Network | str | Path,
    data: Any,
    score: str | Score = "bdeu",
    ess: float = 1.0,
    *,
    reading: ReadSettings | None = None,
) -> NetworkScore:
    """Return the score of the network on the data: a file, a data frame or a `Dataset`.

    Columns are matched by name. Where the states of the network are intervals, numbers are put into them.

    >>> from qubayes.data import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> dataset = read(polars.DataFrame({"rain": rain, "wet": rain}))
    >>> graph, empty = Network(("rain", "wet"), ((), (0,))), Network(("rain", "wet"), ((), ()))
    >>> from qubayes import score
    >>> score(graph, dataset).total > score(empty, dataset, "bic").total
    True
    """
    graph = network if isinstance(network, Network) else read_network(network)
    dataset = read(data, reading, like=graph)
    chosen = score if isinstance(score, Score) else Score(score, ess)
    found, note = None, None
    if graph.tables is None:
        note = "the network has no probabilities"
    else:
        try:
            found = log_likelihood(graph, dataset)
        except DataError as error:
            note = str(error)
        if found == -math.inf:
            found, note = None, "minus infinity: some row is impossible in the network"
    return NetworkScore(
        chosen,
        dict(zip(graph.names, vertex_scores(graph, dataset, chosen).tolist(), strict=True)),
        graph.edges,
        dataset.rows,
        dataset.arities_from,
        dataset.n - graph.n,
        found,
        note,
    )
