"""`LocalScore`: a score that the user wrote as a function; `Own`: the engine that calls it."""

import hashlib
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Floats, Ints, SmallInts
from ..foundation.errors import SettingError, some

# of (dataset, child, parents): numbers of columns, the parents ascending
ScoreFunction: TypeAlias = Callable[[Dataset, int, tuple[int, ...]], float]


@dataclass(frozen=True, slots=True)
class LocalScore:
    """A score given by a function (dataset, child, parents) -> float, with what is known of it.

    The child is the number of a column, the parents are an ascending tuple of them, as for
    `qubayes.local_score`. The function returns a finite number, the larger the better, or -inf if
    this is no parent set of the child. Without parents it is finite. Two calls with the same
    arguments return the same.

    name : name in results; that of the function unless given.
    equivalent : whether networks of the same equivalence class have the same score. Only then are
        edges told apart by whether the data determine their direction.
    parallel : whether several threads may call the function at once.

    >>> LocalScore(lambda dataset, child, parents: 0.0, "zero").name
    'zero'
    """

    function: ScoreFunction
    name: str = ""
    equivalent: bool = False
    parallel: bool = False
    checksum: str = field(default="", init=False)  # of the source

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise SettingError(
                f"score = {self.function!r}; give the name of a score, a Score, or a function of"
                " (dataset, child, parents)"
            )
        name = self.name or getattr(self.function, "__qualname__", type(self.function).__name__)
        object.__setattr__(self, "name", name)
        source = _source_of(self.function).encode()
        object.__setattr__(self, "checksum", hashlib.sha256(source).hexdigest())


def _source_of(function: Any) -> str:
    """Return the source of a function or of an object's class; its byte code if there is none."""
    if isinstance(function, partial):
        return f"{_source_of(function.func)} {function.args!r} {function.keywords!r}"
    code = getattr(function, "__code__", None)
    try:
        text = inspect.getsource(type(function) if code is None else function)
    except (OSError, TypeError):  # typed at a prompt, or compiled
        text = repr(function) if code is None else f"{code.co_code!r} {code.co_consts!r}"
    # one source makes many functions: by defaults, and by variables of the function around it
    cells = getattr(function, "__closure__", None) or ()
    defaults = getattr(function, "__defaults__", None)
    return f"{text} {defaults!r} {[cell.cell_contents for cell in cells]!r}"


class Own:
    """Scores parent sets by a function of the user (an `Engine`); calls it once for each set."""

    def __init__(self, dataset: Dataset, score: LocalScore) -> None:
        self.n = dataset.n
        self.rows = dataset.rows
        self._dataset = dataset
        self._score = score
        self._known: dict[tuple[int, tuple[int, ...]], float] = {}

    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the local score of the child with these parents."""
        key = child, tuple(sorted(parents))
        found = self._known.get(key)
        if found is None:
            found = self._call(*key)
            self._known[key] = found
        return found

    def pairs(self, children: Ints) -> Floats:
        """(children, n) scores with each single parent; with the child itself: without parents."""
        scores = np.empty((len(children), self.n))
        for row, child in zip(scores, children.tolist(), strict=True):
            row[:] = [self.local(child, () if x == child else (x,)) for x in range(self.n)]
        return scores

    def extensions(self, child: int, sets: SmallInts, others: Ints | None) -> Floats:
        """(sets, others + 1) scores with each set and one more parent; last: the set alone."""
        variables = range(self.n) if others is None else others.tolist()
        scores = np.empty((len(sets), len(variables) + 1))
        for row, members in zip(scores, sets.tolist(), strict=True):
            parents = [v for v in members if v >= 0]
            alone = self.local(child, parents)
            row[-1] = alone
            for place, x in enumerate(variables):
                if x == child:
                    row[place] = -math.inf
                else:
                    row[place] = alone if x in parents else self.local(child, [*parents, x])
        return scores

    def _call(self, child: int, parents: tuple[int, ...]) -> float:
        """Return what the function returns; raise if it is no score."""
        try:
            given = self._score.function(self._dataset, child, parents)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise self._failed(child, parents, f"raises {what}; mend the function") from error
        try:
            found = float(given)
        except (TypeError, ValueError):
            found = math.nan
        if math.isnan(found) or found == math.inf:
            raise self._failed(
                child,
                parents,
                f"is {given!r}; return a finite number, or -inf for what is no parent set",
            )
        if found == -math.inf and not parents:
            raise self._failed(child, parents, "is -inf; return a finite number")
        return found

    def _failed(self, child: int, parents: tuple[int, ...], what: str) -> SettingError:
        """Return the error that names the score, the child and the parents."""
        names = self._dataset.names
        given = "without parents"
        if parents:
            given = f"with parents {some([names[p] for p in parents], 20)}"
        line = " ".join(what.split())  # a message of several lines
        return SettingError(f"score {self._score.name!r} of {names[child]!r} {given} {line}")
