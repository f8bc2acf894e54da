"""Searches for candidate sets level by level, with bounds however few sets there are."""

from dataclasses import dataclass, field

from qubayes import Workers
from qubayes.candidates import Candidates, CandidateSearch
from qubayes.candidates.bound_tables import sets_to_judge
from qubayes.candidates.identify import assemble, checked, first_level, scan_blocks
from qubayes.candidates.levels import (
    Level,
    bits_of,
    bounds_exist,
    make_above,
    make_bounded,
    next_level,
    prefixes_of,
)
from qubayes.data import Dataset

ONE = Workers(1)


@dataclass
class Passed:
    """Which sets of the last level pass their bounds."""

    sets: int
    counted: int  # sets whose terms were bounded by counting
    kept: list[tuple[int, ...]] = field(default_factory=list)


def search_levels(
    dataset: Dataset, search: CandidateSearch, workers: Workers = ONE, *, bounded: bool = True
) -> tuple[Candidates, Passed | None]:
    """Return the candidate sets, and which sets pass bounds where there are any."""
    search = checked(dataset, search)
    level = first_level(dataset, search)
    blocks = []
    for _ in range(search.max_parents):
        above = make_above(level, last=False)
        blocks += [block for _, block in scan_blocks(level, above, workers)]
        level = next_level(level, above)
    if bounded and bounds_exist(level, level.k):
        level = make_bounded(level)
    blocks += [block for _, block in scan_blocks(level, make_above(level, last=True), workers)]
    passed = None if level.bounds is None else sets_that_pass(level)
    return assemble(dataset, search, blocks), passed


def sets_that_pass(level: Level) -> Passed:
    """Return which sets of the level pass their bounds."""
    prefixes = prefixes_of(level, (0, len(level.heads)))
    bits = bits_of(level) if level.rows.bits.shape[1] else None
    x_start, xs, counted = sets_to_judge(
        prefixes, bits, level.rule, level.bounds, level.constraints, level.below
    )
    passed = Passed(int((level.n - 1 - prefixes[:, -1]).sum()), counted)
    for p, prefix in enumerate(prefixes.tolist()):
        passed.kept += [(*prefix, x) for x in xs[x_start[p] : x_start[p + 1]].tolist()]
    return passed
