"""The score of a network on data."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Dataset, ReadSettings, read
from ..foundation.arrays import Bools, Floats, frozen
from ..foundation.errors import DataError
from ..foundation.summary import aligned, counted
from ..scores import AUTO, LocalScore, Score, ScoreFunction, local_score, score_title
from .network import Network
from .network_files import read_network
from .parameters import columns_of, in_states_of, log_likelihood


def told_by(network: Network, dataset: Dataset) -> Bools | None:
    """Return the (n, n) pairs of vertices whose direction the dataset tells, for `cpdag`.

    Its experiments tell some; in a table of numbers and states, each state with each number. None
    if there are none."""
    columns = columns_of(network, dataset)
    told = Score("auto").told(dataset)
    return None if told is None else told[np.ix_(columns, columns)]


def vertex_scores(network: Network, dataset: Dataset, score: Score | None = None) -> Floats:
    """Return (n,) the local score of every vertex given its parents.

    Their sum is the score of the network."""
    columns = columns_of(network, dataset)
    chosen = score or Score(AUTO)
    if dataset.numbers or not dataset.is_plain:
        engine = chosen.engine(dataset.select(np.array(columns, np.int64)))
        scores = [engine.local(vertex, its) for vertex, its in enumerate(network.parents)]
        return frozen(np.array(scores, dtype=np.float64))
    scores = [
        local_score(dataset, columns[vertex], [columns[p] for p in its], chosen)
        for vertex, its in enumerate(network.parents)
    ]
    return frozen(np.array(scores, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class NetworkScore:
    """The score of a network on data, and the log-likelihood if it has probabilities."""

    score: Score
    per_vertex: Mapping[str, float]
    edges: int
    rows: int
    dropped: int  # rows with missing values
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
            **({} if self.score.penalty == 1.0 else {"penalty": self.score.penalty}),
            "arities": self.arities_from,
            "n": len(self.per_vertex),
            "edges": self.edges,
            "rows": self.rows,
            "dropped_rows": self.dropped,
            "other_columns": self.other_columns,
            "log_likelihood": likelihood,
            "log_likelihood_per_row": likelihood / self.rows
            if likelihood is not None and self.rows
            else None,
            "log_likelihood_note": self.log_likelihood_note,
        }

    def __str__(self) -> str:
        return "\n".join(self.describe())

    def describe(self) -> list[str]:
        """Return the result in a few lines for people."""
        title = score_title(
            self.score.name,
            self.score.stamped_ess,
            None if self.score.penalty == 1.0 else self.score.penalty,
        )
        size = f"{counted(len(self.per_vertex), 'variable')}, {counted(self.edges, 'edge')}"
        data = f"{counted(self.rows, 'row')}, states from {self.arities_from}"
        if self.dropped:
            data += f"; {counted(self.dropped, 'row')} with missing values left out"
        if self.other_columns:
            data += f"; {counted(self.other_columns, 'column')} not in the network"
        likelihood = self.log_likelihood_note or "unknown"
        if self.log_likelihood is not None:
            each = self.log_likelihood / self.rows
            likelihood = f"{self.log_likelihood:,.2f}   ({each:,.2f} per row)"
        rows = [
            ("score", f"{self.total:,.2f}   ({title})"),
            ("log-likelihood", likelihood),
            ("network", size),
            ("data", data),
        ]
        return aligned(rows)


def score(
    network: Network | str | Path,
    data: Any,
    score: str | Score | LocalScore | ScoreFunction = "auto",
    ess: float = 1.0,
    penalty: float = 1.0,
    *,
    reading: ReadSettings | None = None,
    **options: Any,
) -> NetworkScore:
    """Return the score of the network on the data: a file, a data frame or a `Dataset`.

    Columns are matched by name. The score `auto` is `bdeu`, or `bge` of continuous variables.
    Where the states of the network are intervals, numbers are put into
    them; where it has the state `missing`, missing values are this state. How the data are read is
    said by `reading`, or by its fields by name (`missing="drop"`). Arities are those that the
    network declares, unless it declares none, `arities` are given, or the data hold a state that it
    does not have.

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
    dataset = read(data, reading, like=graph, **options)
    declared = options.get("arities") if reading is None else reading.arities
    found: float | None = None
    note: str | None = None
    scored = dataset
    if graph.states is not None:
        try:
            scored = in_states_of(graph, dataset) if declared is None else dataset
            found = log_likelihood(graph, dataset) if graph.tables is not None else None
        except DataError as error:
            note = str(error)
    chosen = Score.of(score, ess, penalty)
    chosen = chosen.on(scored.select(np.array(columns_of(graph, scored), np.int64)))
    if graph.tables is None:
        note = "the network has no probabilities"
    elif found == -math.inf:
        found, note = None, "minus infinity: some row is impossible in the network"
    return NetworkScore(
        chosen,
        dict(zip(graph.names, vertex_scores(graph, scored, chosen).tolist(), strict=True)),
        len(graph.edges),
        dataset.rows,
        dataset.dropped,
        scored.arities_from,
        dataset.n - graph.n,
        found,
        note,
    )
