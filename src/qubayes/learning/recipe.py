"""What is learned and how: everything that a result depends on besides the data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..candidates import Search
from ..data import Dataset, ReadSettings
from ..foundation.errors import SettingError
from ..search import Limits, solver_named


@dataclass(frozen=True, slots=True)
class Recipe:
    """The candidate sets to search, the solver with its limits, and the number of bootstrap samples."""

    search: Search
    solver: str = "auto"
    limits: Limits = field(default_factory=Limits)
    bootstrap: int = 0
    reading: ReadSettings | None = None  # how the data were read, where they had to be

    def __post_init__(self) -> None:
        if self.bootstrap < 0:
            raise SettingError(f"bootstrap = {self.bootstrap}; give the number of samples, or 0 for none")
        if self.limits.moves is not None and not solver_named(self.solver).counts:
            raise SettingError(f"{self.solver} counts no moves; give it a time limit, or take --solver anneal")

    def fitting(self, dataset: Dataset) -> "Recipe":
        """The same for data of few variables: no more parents than there are others."""
        most = min(self.search.max_parents, dataset.n - 1)
        return replace(self, search=replace(self.search, max_parents=most))

    def as_json(self) -> dict[str, Any]:
        """The settings by name, for provenance and for telling whether a kept result still fits."""
        score, knowledge = self.search.score, self.search.knowledge
        return {
            "max_parents": self.search.max_parents,
            "score": score.name,
            "ess": score.stamped_ess,
            "knowledge": asdict(knowledge),
            "solver": self.solver,
            "time_limit": self.limits.seconds,
            "moves": self.limits.moves,
            "seed": self.limits.seed,
            "bootstrap": self.bootstrap,
            "reading": None if self.reading is None else _plain(self.reading),
        }


def _plain(reading: ReadSettings) -> dict[str, Any]:
    """The settings as JSON has them."""
    values = {each.name: getattr(reading, each.name) for each in fields(reading)}
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in values.items()}
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in plain.items()}
