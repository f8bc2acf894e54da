"""Candidate parent sets with their local scores."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from html import escape
from itertools import combinations
from math import inf, log
from typing import Any, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from ..foundation.arrays import Floats, Ints, SmallInts, frozen
from ..foundation.errors import FormatError
from ..foundation.families import Families, VertexSet
from ..foundation.files import shown
from ..scores import score_title

ROWS_SHOWN = 60  # rows of the table in a notebook


@dataclass(frozen=True, slots=True)
class Stamp:
    """Where scores come from, so that two results are compared only if they mean the same."""

    score: str = "unknown"  # "bdeu", "bds", ...; "unknown" for files of other programs
    ess: float | None = None  # equivalent sample size, for the scores that have one
    max_parents: int | None = None
    rows: int | None = None
    arities: str = "unknown"  # what declared the number of states
    # only this number of parents of each vertex was considered; None: all
    possible_parents: int | None = None
    # sets that were grown on demand, beside all those of at most `max_parents`; None: not tried
    grown: int | None = None
    penalty: float | None = None  # factor of the penalty of bic or aic; None: 1
    # of tables with missing cells: "rows" for scores of each family's own rows, "filled" for those
    # of completed tables
    cells: str | None = None
    # vertices of which sets of every size were searched; None: this was not tried
    every_size: int | None = None
    # whether prior knowledge excludes sets; said only beside `every_size`
    restricted: bool | None = None

    def as_json(self, **more: int) -> str:
        """Return the stamp, and more facts beside it, as one line of plain ASCII."""
        facts = {**asdict(self), **more}
        optional = ("possible_parents", "grown", "penalty", "cells", "every_size", "restricted")
        for key in optional:
            if facts[key] is None:
                del facts[key]
        try:
            return json.dumps(facts, allow_nan=False)
        except ValueError as error:
            raise FormatError(
                f"the stamp {self} cannot be written: {error}; give finite numbers"
            ) from error

    @property
    def title(self) -> str:
        """The score with what it depends on, in words."""
        own = ", on the rows of each family" if self.cells == "rows" else ""
        return score_title(self.score, self.ess, self.penalty) + own

    @property
    def optional_facts(self) -> dict[str, float]:
        """What results say of the scores only where it is not as usual."""
        facts = {
            "possible_parents": self.possible_parents,
            "penalty": self.penalty,
            "every_size": self.every_size,
            "restricted": self.restricted,
        }
        return {name: value for name, value in facts.items() if value is not None}

    def with_priors(self) -> "Stamp":
        """Return the stamp of scores to which priors of edges were added."""
        return replace(self, score=f"{self.score}+priors")

    @property
    def has_priors(self) -> bool:
        """Whether priors of edges were added to the scores."""
        return self.score.endswith("+priors")

    @staticmethod
    def of(facts: dict[str, Any]) -> "Stamp":
        """Return the stamp that was written as these facts."""
        types = get_type_hints(Stamp)
        for key, value in facts.items():
            if key not in types:
                raise FormatError(f"the stamp has {key!r}; known are {', '.join(types)}")
            fits = isinstance(value, types[key]) or (
                isinstance(value, int) and isinstance(0.0, types[key])
            )
            # 1 is a valid 1.0, but True is not a valid 1
            wrong = isinstance(value, bool) and bool not in get_args(types[key])
            if wrong or not fits:
                raise FormatError(f"the stamp says {key} = {shown(value)}; it must be {types[key]}")
        return Stamp(**facts)


def tolerance(base_score: float, rows: int = 0) -> float:
    """Return the margin by which a candidate set must beat each of its proper subsets.

    A set W is kept iff score(W) > best score of a proper subset + tolerance. 2^-46 of the base's
    score covers the rounding of a sum over the cells of a table, with which scores that are equal
    on paper come out apart. A score is the difference of two sums of the order N log N: where it is
    far smaller than they are (a variable that is nearly constant, in 300,000 rows), 2^-48 of that
    covers the rounding of theirs."""
    return 1e-10 + 2.0**-46 * abs(base_score) + 2.0**-48 * rows * log(max(rows, 1))


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidate parent sets of every vertex (paper, Definition `CPS`), best first.

    Inside a vertex, sets come in descending score (ties: smaller first, then lexicographic). The
    last one is the vertex's *base*: the empty set, or exactly the required parents. Every other set
    of the vertex contains the base and scores more."""

    names: tuple[str, ...]
    families: Families
    scores: Floats = field(repr=False)  # (sets,)
    stamp: Stamp = Stamp()
    # without the members that only express an order
    plain: "Candidates | None" = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.names)

    @property
    def total(self) -> int:
        """Number of candidate sets, the bases not counted (as the paper's Table D.2 counts)."""
        return int(self.families.sizes.sum()) - self.n

    @property
    def per_vertex(self) -> Ints:
        """Number of candidate sets of each vertex, its base not counted."""
        return self.families.sizes - 1

    def __str__(self) -> str:
        """Return the number of sets and where they come from, in one line."""
        kind = self.stamp.score
        most = self.stamp.max_parents
        kept = self.stamp.possible_parents
        limit = f", at most {most} parent{'s' * (most != 1)}" if most is not None else ""
        if self.stamp.every_size == self.n:
            limit = ", any number of parents"
        elif self.stamp.every_size:
            limit += f", any number for {self.stamp.every_size:,} of the variables"
        limit += f" among {kept} possible parents of each variable" if kept is not None else ""
        limit += f", {self.stamp.grown:,} of them grown on demand" if self.stamp.grown else ""
        return f"{self.total:,} candidate sets of {self.n} variables ({kind}{limit})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the number of sets of each variable, and the best one."""
        rows = ""
        for vertex in range(min(self.n, ROWS_SHOWN)):
            best, score = next(self.of(vertex))
            cells = (
                self.names[vertex],
                f"{self.per_vertex[vertex]:,}",
                ", ".join(self.names[p] for p in best),
            )
            rows += "".join(f"<td>{escape(cell)}</td>" for cell in (*cells, f"{score:,.3f}")).join(
                ("<tr>", "</tr>")
            )
        more = f"<div>and {self.n - ROWS_SHOWN} more variables</div>" if self.n > ROWS_SHOWN else ""
        head = (
            "<tr><th>variable</th><th>candidate sets</th><th>best set</th><th>its score</th></tr>"
        )
        return f"<div>{escape(str(self))}</div><table>{head}{rows}</table>{more}"

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes candidates --json` prints: numbers of sets, and the stamp."""
        return {
            "n": self.n,
            "rows": self.stamp.rows,
            "score": self.stamp.score,
            "ess": self.stamp.ess,
            "arities": self.stamp.arities,
            "m": self.stamp.max_parents,
            **self.stamp.optional_facts,
            "total": self.total,
            "per_vertex": dict(zip(self.names, self.per_vertex.tolist(), strict=True)),
        }

    @property
    def base_scores(self) -> Floats:
        """Score of each vertex with its base alone.

        They sum to the score of the empty graph if nothing is required.
        """
        return self.scores[self.families.vertex_start[1:] - 1]

    def parents_at(self, choice: npt.ArrayLike) -> tuple[VertexSet, ...]:
        """Return the parents of each vertex for one set of each.

        Members that only express an order are left out.
        """
        sets = self.families.sets_at(choice)
        if self.plain is None:
            return sets
        inside = np.zeros((self.n, self.n), np.bool_)
        for vertex, members in enumerate(sets):
            inside[vertex, list(members)] = True
        families = self.plain.families
        return families.sets_at(families.best_inside(inside))

    def base(self, vertex: int) -> VertexSet:
        """Return the required parents of the vertex; () unless edges are required."""
        return self.families.set_at(int(self.families.vertex_start[vertex + 1]) - 1)

    @property
    def required(self) -> int:
        """Number of required edges."""
        scored = self.plain or self
        return sum(len(scored.base(vertex)) for vertex in range(self.n))

    def of(self, vertex: int) -> Iterator[tuple[VertexSet, float]]:
        """(parent set, score) of one vertex, best first, its base last."""
        first, last = self.families.vertex_start[vertex : vertex + 2]
        return zip(self.families.sets_of(vertex), self.scores[first:last].tolist(), strict=True)


def in_order(
    names: tuple[str, ...],
    owners: Ints,
    sizes: Ints,
    members: SmallInts,
    scores: Floats,
    stamp: Stamp,
) -> Candidates:
    """Return the sets in the order that `Candidates` promises.

    Set s has sizes[s] members and belongs to owners[s].
    """
    start = np.cumsum(sizes) - sizes
    order = np.lexsort((sizes, -scores, owners))
    tied = np.all([np.diff(values[order]) == 0 for values in (owners, sizes, scores)], axis=0)
    runs = np.flatnonzero(np.diff(np.concatenate([[0], tied.astype(np.int8), [0]]))).reshape(-1, 2)
    for first, last in runs.tolist():
        run = order[first : last + 1]
        run[:] = sorted(run, key=lambda s: members[start[s] : start[s] + sizes[s]].tolist())
    set_start = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int64)
    places = np.arange(set_start[-1]) + np.repeat(start[order] - set_start[:-1], sizes[order])
    vertex_start = np.searchsorted(owners[order], np.arange(len(names) + 1)).astype(np.int64)
    families = Families(
        frozen(vertex_start), frozen(set_start), frozen(members[places].astype(np.int32))
    )
    return Candidates(names, families, frozen(scores[order]), stamp)


def example(vertices: int = 8) -> Candidates:
    """Return random candidate sets: to compile or load kernels before a clock starts.

    No kernel makes them.
    """
    random = np.random.default_rng(0)
    lists = []
    scores: list[float] = []
    for vertex in range(vertices):
        others = [other for other in range(vertices) if other != vertex]
        every = [chosen for size in range(1, 4) for chosen in combinations(others, size)]
        best: dict[tuple[int, ...], float] = {(): -10.0}
        # about 32 of each vertex
        for chosen in (chosen for chosen in every if random.random() < 32 / len(every)):
            smaller = [score for known, score in best.items() if set(known) < set(chosen)]
            best[chosen] = max(smaller, default=-inf) + float(random.random())
        ordered = sorted(best.items(), key=lambda item: (-item[1], len(item[0]), item[0]))
        lists.append([chosen for chosen, _ in ordered])
        scores += [score for _, score in ordered]
    names = tuple(f"v{vertex}" for vertex in range(vertices))
    return Candidates(names, Families.of(lists), frozen(np.array(scores)))
