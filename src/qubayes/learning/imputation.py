"""`Imputation`: missing cells are drawn from the network, and the network is learned again.

It begins with the network whose families are scored on their own rows. In each round several tables
are completed: the missing cells are drawn from the network, given the other cells of their rows.
Then a network is learned by the mean of the usual score over these tables. For columns of numbers
there is one table, of expected numbers and the covariances that they leave out, by the EM
algorithm; nothing is drawn.

At the end a network is learned from each of several completed tables alone: the share of these with
an edge says how much the missing cells leave open."""

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..candidates import stamp_of
from ..data import Dataset
from ..foundation.arrays import Floats
from ..foundation.errors import FormatError
from ..foundation.files import json_object, replacing
from ..foundation.progress import OnProgress, Progress
from ..foundation.settings import facts
from ..foundation.stop import Interrupt
from ..foundation.workers import Workers
from ..network import Network, fit
from ..network.filling import (
    draw_from_columns,
    draw_numbers,
    draw_states,
    fit_with_gaps,
    joined,
    with_numbers,
    with_states,
)
from ..scores import LimitedTables, Score
from ..search import Growth
from ..search.growth import NARROW
from ..settings import LearnSettings

SHARE = 0.5  # of the time limit
_SWEEPS = 20  # of Gibbs sampling in a round
_EM_STEPS, _LAST_EM_STEPS = 10, 200


@dataclass
class Imputation:
    """Completes a table; `networks` are those learned from the final completions."""

    dataset: Dataset
    settings: LearnSettings
    workers: Workers
    interrupt: Interrupt
    on_progress: OnProgress
    most: int  # parents of a variable
    interrupted: bool = False
    networks: list[Network] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began = time.perf_counter()
        self._random = np.random.default_rng(self.settings.seed)
        self._steps = 1 + self.settings.impute_rounds + self.settings.completions
        self._done = 0
        self._rows = self._with("rows")

    @property
    def outline(self) -> Dataset:
        """The table as it will be completed, without the values of the missing cells."""
        filled = self._with("filled")
        return joined([filled] * self.settings.completions) if self._is_discrete else filled

    def run(self) -> Dataset:
        """Return the completed table; of states, it holds several completions."""
        score = self.settings.chosen_score
        graph = self._learn(self._rows, _score_of_rows(score), None)
        table = self._first_table(graph)
        for _ in range(self.settings.impute_rounds):
            graph = self._learn(table, score, graph)
            if self._is_over:
                break
            table = self._completed(graph, table)
        for each in self._single_tables(graph, table):
            if self._is_over:
                break
            self.networks.append(self._learn(each, score, graph))
        return table

    def _with(self, treatment: Any) -> Dataset:
        """Return the table with another treatment of its missing cells."""
        assert self.dataset.missing is not None
        missing = self.dataset.missing._replace(treatment=treatment)
        return replace(self.dataset, missing=missing)

    @property
    def _is_discrete(self) -> bool:
        return self.dataset.kind == "discrete"

    @property
    def _is_over(self) -> bool:
        """Whether Ctrl-C was pressed, or no time is left."""
        self.interrupted = self.interrupted or bool(self.interrupt)
        limit = self.settings.time_limit
        late = limit is not None and time.perf_counter() - self._began > SHARE * limit
        return self.interrupted or late

    def _first_table(self, graph: Network) -> Dataset:
        """Return the first completed table; draws begin with those of single columns."""
        if not self._is_discrete:
            return fit_with_gaps(graph, self._rows, _EM_STEPS)[1]
        tables = []
        for _ in range(self.settings.completions):
            tables.append(draw_from_columns(self.dataset, self._random))
        return self._completed(graph, joined(tables))

    def _completed(self, graph: Network, table: Dataset) -> Dataset:
        """Return the table completed anew by a network."""
        if not self._is_discrete:
            return fit_with_gaps(graph, self._rows, _LAST_EM_STEPS)[1]
        fitted = self._fitted(graph)
        tables = []
        for each in table.completions:
            tables.append(draw_states(fitted, each, _SWEEPS, self._random))
        return joined(tables)

    def _fitted(self, graph: Network) -> Network:
        """Return the network with probabilities above 0, of the rows of each family."""
        score = self.settings.chosen_score
        prior = Score("bdeu", score.ess if score.name == "bdeu" else 1.0)
        bare = Network(self._rows.names, graph.parents, states=self._rows.states)
        return fit(bare, self._rows, prior)

    def _single_tables(self, graph: Network, table: Dataset) -> Iterator[Dataset]:
        """Yield the completed tables, or tables of numbers that are drawn."""
        if self._is_discrete:
            yield from table.completions
            return
        fitted, _ = fit_with_gaps(graph, self._rows, _LAST_EM_STEPS)
        for _ in range(self.settings.completions):
            yield draw_numbers(fitted, self._rows, self._random)

    def _learn(self, table: Dataset, score: Score, start: Network | None) -> Network:
        """Return the best network of grown parent sets."""
        search = replace(self.settings.search, score=score)
        names = table.names
        self._done += 1
        growth = Growth(
            LimitedTables(score.engine(table), table.arities, self.settings.max_table),
            names,
            search.knowledge.resolve(names, self.most),
            stamp_of(table, search),
            width=NARROW,
            seed=self.settings.seed,
            start=start,
            workers=self.workers,
            interrupt=self.interrupt,
            on_progress=self._show,
        )
        growth.run(self._until_next())
        self.interrupted = self.interrupted or bool(self.interrupt)
        assert growth.network is not None  # there at once
        return Network(names, growth.network.parents)

    def _until_next(self) -> Callable[[], float]:
        """Return a clock of the seconds that are left for the network that is learned now."""
        limit = self.settings.time_limit
        if limit is None or limit == math.inf:
            return lambda: math.inf
        end = self._began + SHARE * limit * self._done / self._steps
        return lambda: end - time.perf_counter()

    def _show(self, progress: Progress) -> None:
        """Report which network is learned."""
        note = f"network {self._done} of {self._steps}, {progress.note}"
        self.on_progress(Progress("missing cells", self._done - 1, self._steps, note))


def _score_of_rows(score: Score) -> Score:
    """Return the score by which the first network is learned, from the rows of each family."""
    return score if score.name in ("bic", "aic") else Score("bic")


@dataclass(frozen=True, slots=True)
class Completion:
    """A completed table, and the networks learned from several completions."""

    table: Dataset
    networks: tuple[Network, ...]


def write_completion(completion: Completion, path: Path) -> None:
    """Write the cells that were filled, and the networks."""
    table = completion.table
    missing = table.missing
    assert missing is not None
    tables = []
    for each in table.completions or (table,):
        cells = {}
        for variable, name in enumerate(each.names):
            own = each.numbers.get(name, each.codes[variable])
            cells[name] = own[missing.mask[variable]].tolist()
        tables.append(cells)
    content = {
        "tables": tables,
        "spread": facts(missing.spread),
        "networks": [network.parents for network in completion.networks],
    }
    with replacing(path) as file:
        json.dump(content, file)


def _with_cells(dataset: Dataset, cells: dict[str, Any]) -> Dataset:
    """Return the table with these values in its missing cells, by column."""
    assert dataset.missing is not None
    mask = dataset.missing.mask
    values = np.zeros(mask.shape)
    for variable, name in enumerate(dataset.names):
        values[variable, mask[variable]] = cells[name]
    return with_numbers(dataset, values) if dataset.numbers else with_states(dataset, values)


def _numbers_of(table: Dataset) -> Floats:
    """(n, rows) the cells of a table of numbers."""
    return np.array([table.numbers[name] for name in table.names])


def read_completion(path: Path, dataset: Dataset) -> Completion:
    """Return what `write_completion` wrote for these data."""
    content = json_object(path.read_bytes())
    assert dataset.missing is not None
    try:
        tables = [_with_cells(dataset, cells) for cells in content["tables"]]
        if dataset.numbers:
            spread = np.array(content["spread"])
            table = with_numbers(dataset, _numbers_of(tables[0]), spread)
        else:
            table = joined(tables)
        networks = []
        for parents in content["networks"]:
            networks.append(Network(dataset.names, tuple(map(tuple, parents))))
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} does not hold a completed table; it is made again") from error
    return Completion(table, tuple(networks))
