"""`identify`: all candidate parent sets up to a size, exactly (paper, Definition `CPS`)."""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from math import comb
from pathlib import Path

import numpy as np

from ..data.dataset import Dataset
from ..foundation.errors import DataError, SettingError, option
from ..foundation.progress import OnProgress, Progress, silent
from ..foundation.settings import facts
from ..foundation.workers import Stopped, Workers, run
from ..scores import AUTO, Score, check_independent
from ..scores.score import check_joint_states
from .by_extensions import blocks_of_child
from .candidates import Candidates, Stamp, in_order
from .checkpoint import Checkpoint
from .counting import check_rows, prepare_rows
from .knowledge import Knowledge, allowed_for, refuse_ancestors
from .levels import (
    Level,
    make_above,
    next_level,
    prepare_constraints,
    prepare_rule,
    scan_block,
    scan_block_elsewhere,
    sets_of_heads,
    split,
    start_level,
    with_bounds,
)
from .moments import prepare, scan_sizes
from .own_sets import score_all_sets
from .parts import scan_parts, steps_of
from .prune import with_order
from .scanning import Above, Block
from .screening import candidates_of_child, possible_parents

# Sets times rows of a block (bits count 1/16): 2 s, with bounds some tenths of a second. A task on
# a cluster costs 2 ms of the one client and scheduler, so that a hundred workers need tasks of 0.2
# s or more.
_ROWS_PER_BLOCK = 1_000_000_000
_LEAST_BLOCKS = 32
# Sets times rows of a lower level: less is done here sooner than sent.
_LEAST_FOR_CLUSTER = 1_000_000_000
# Bytes of the tables between levels: more fit no memory, and ranks of sets would overflow.
MOST_TABLE_BYTES = 2**62


@dataclass(frozen=True, slots=True)
class CandidateSearch:
    """Which parent sets are searched: at most `max_parents`, by a score, under prior knowledge.

    With `possible_parents` only this number of parents of each variable is considered, beside the
    required ones: a third are the best single parents, the others score best in a pair with one of
    these. With `every_size` larger sets are searched as well (every_size.py)."""

    max_parents: int = 3  # n - 1 where there are fewer variables
    score: Score = field(default_factory=lambda: Score(AUTO))
    knowledge: Knowledge = field(default_factory=Knowledge)
    possible_parents: int | None = None
    # larger sets, too: of any size
    every_size: bool = field(default=False, metadata={"plain": False})

    def most(self, n: int) -> int:
        """Return the largest number of parents among n variables."""
        return n - 1 if self.every_size else self.max_parents


def identify(
    dataset: Dataset,
    search: CandidateSearch | None = None,
    *,
    workers: Workers | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    on_progress: OnProgress = silent,
) -> Candidates:
    """Return the parent sets of each vertex that score more than every one of their subsets.

    The result is exact and does not depend on the workers. With a checkpoint, finished blocks of
    discrete data are kept in that file; `resume` continues from it. The file stays: remove it
    once the result is safe elsewhere. A variable has at most n - 1 parents: a larger `max_parents`
    gives the same result.

    >>> from qubayes import read
    >>> import polars
    >>> rain = [0, 0, 1, 1, 0, 1, 0, 1] * 20
    >>> coin = [0, 1, 0, 1, 0, 0, 1, 1] * 20
    >>> dataset = read(polars.DataFrame({"rain": rain, "wet": rain, "coin": coin}))
    >>> candidates = identify(dataset, CandidateSearch(max_parents=2))
    >>> [parents for parents, score in candidates.of(1)]  # of "wet": "rain", or nothing
    [(0,), ()]
    """
    found = identify_until(
        None,
        dataset,
        search,
        workers=workers,
        checkpoint=checkpoint,
        resume=resume,
        on_progress=on_progress,
    )
    assert found is not None  # nothing stops it
    return found


def identify_until(
    stop: Callable[[], bool] | None,
    dataset: Dataset,
    search: CandidateSearch | None = None,
    *,
    enough: Callable[[], bool] | None = None,
    workers: Workers | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    on_progress: OnProgress = silent,
) -> Candidates | None:
    """Return what `identify` returns; None once `stop` is true.

    Once `enough` is true, no more sets of every size are searched: the stamp then says of how many
    variables they are known."""
    search = checked(dataset, search or CandidateSearch())
    if search.every_size:
        return _of_every_size(stop, enough, dataset, search, workers, on_progress)
    if search.score.function is not None:
        return _by_function(stop, dataset, search, on_progress)
    blocks: list[Block] = []
    with ExitStack() as stack:
        stack.enter_context(suppress(Stopped))
        joined = stack.enter_context((workers or Workers()).until(stop).connected())
        if not dataset.is_plain:
            steps = _by_extensions(dataset, search, joined)
        elif dataset.kind == "continuous":
            steps = _by_size(dataset, search, joined)
        elif dataset.kind == "mixed":
            steps = _by_parts(dataset, search, joined)
        elif search.possible_parents is None:
            steps = _by_level(dataset, search, joined, checkpoint, resume=resume)
        else:
            steps = _by_child(dataset, search, joined)
        for progress, found in stack.enter_context(closing(steps)):
            blocks += found
            if progress is not None:
                on_progress(progress)
        return assemble(dataset, search, blocks)
    return None


def _of_every_size(
    stop: Callable[[], bool] | None,
    enough: Callable[[], bool] | None,
    dataset: Dataset,
    search: CandidateSearch,
    workers: Workers | None,
    on_progress: OnProgress,
) -> Candidates | None:
    """Return the candidate sets of any size: small ones first, then larger ones by bounds."""
    # loaded here: few runs need it
    from .every_size import check_bounds, small_size, with_every_size

    check_bounds(dataset, search.score)
    smaller = replace(search, max_parents=small_size(dataset, search), every_size=False)
    found = identify_until(stop, dataset, smaller, workers=workers, on_progress=on_progress)
    if found is None:
        return None
    with suppress(Stopped):
        return with_every_size(
            found,
            dataset,
            smaller,
            workers=(workers or Workers()).until(stop),
            stop=enough or (lambda: False),
            on_progress=on_progress,
        )
    return None


def _by_function(
    stop: Callable[[], bool] | None,
    dataset: Dataset,
    search: CandidateSearch,
    on_progress: OnProgress,
) -> Candidates | None:
    """Return the candidate sets by a function of the user, or None once `stop` is true."""
    return score_all_sets(
        search.score.engine(dataset),
        dataset.names,
        search.knowledge.resolve(dataset.names, search.max_parents),
        stamp_of(dataset, search),
        stop=stop,
        on_progress=on_progress,
    )


# Progress where there is something to report, and what was found since the last step.
Steps = Generator[tuple[Progress | None, list[Block]], None, None]


def _by_level(
    dataset: Dataset,
    search: CandidateSearch,
    workers: Workers,
    checkpoint: Path | None,
    *,
    resume: bool,
) -> Steps:
    """Yield the sets of one size after the other; the checkpoint has blocks of the last level."""
    level = first_level(dataset, search)
    total = sum(comb(dataset.n, k) for k in range(1, search.max_parents + 2))

    def progress(done: int) -> Progress:
        return Progress("candidates", done, total, f"{done:,} of {total:,} sets of variables")

    smaller = 0  # sets of the levels below
    while level.k <= search.max_parents:
        above = make_above(level, last=False)
        for _, block in scan_blocks(level, above, workers):
            yield None, [block]
        smaller += comb(dataset.n, level.k)
        yield progress(smaller), []
        level = next_level(level, above)
    with ExitStack() as stack:
        kept = None
        if checkpoint:
            kept = Checkpoint(checkpoint, fingerprint(dataset, search), resume=resume)
            stack.enter_context(kept)
        level = with_bounds(level)
        for done, block in scan_blocks(level, make_above(level, last=True), workers, kept):
            yield progress(smaller + done), [block]


def _by_size(dataset: Dataset, search: CandidateSearch, workers: Workers) -> Steps:
    """Yield the sets of continuous variables of one size after the other."""
    most = search.max_parents
    allowed = allowed_for(dataset, search.score, search.knowledge, most)
    total = sum(comb(dataset.n, size) for size in range(1, most + 1))
    done = 0
    problem = prepare(dataset, search.score, allowed, most)
    with closing(scan_sizes(problem, most, workers)) as parts:
        for found in parts:
            done += found.sets
            note = f"{done:,} of {total:,} parent sets"
            yield Progress("candidates", done, total, note), [found.block]


def _by_parts(dataset: Dataset, search: CandidateSearch, workers: Workers) -> Steps:
    """Yield the sets of a table of numbers and states, one set of discrete parents at a time."""
    from ..scores.mixed import Mixed  # tables of one kind do without

    most = search.max_parents
    allowed = allowed_for(dataset, search.score, search.knowledge, most)
    total = steps_of(dataset, most)
    done = 0
    with closing(scan_parts(Mixed(dataset, search.score), allowed, most, workers)) as parts:
        for found in parts:
            done += found.steps
            note = f"{done:,} of {total:,} splits of the rows"
            yield Progress("candidates", done, total, note), found.blocks


def _by_extensions(dataset: Dataset, search: CandidateSearch, workers: Workers) -> Steps:
    """Yield the sets of one variable after the other, scored by an engine."""
    n = dataset.n
    allowed = allowed_for(dataset, search.score, search.knowledge, search.max_parents)
    shared = (search.score.engine(dataset), allowed)
    with closing(run(blocks_of_child, shared, list(range(n)), workers)) as tasks:
        for done, (_, found) in enumerate(tasks, 1):
            yield Progress("candidates", done, n, f"{done:,} of {n:,} variables"), found


def _by_child(dataset: Dataset, search: CandidateSearch, workers: Workers) -> Steps:
    """Yield the sets among the possible parents of one variable after the other."""
    n = dataset.n
    most = search.possible_parents or 0
    allowed = allowed_for(dataset, search.score, search.knowledge, search.max_parents)
    yield Progress("candidates", 0, n, f"scoring all pairs of {n:,} variables"), []
    kept = possible_parents(dataset, search.score, allowed, most, workers)
    shared = (dataset, search.score, allowed, kept)
    tasks = run(candidates_of_child, shared, list(range(n)), workers)
    with closing(tasks):
        for done, (_, found) in enumerate(tasks, 1):
            yield Progress("candidates", done, n, f"{done:,} of {n:,} variables"), found


def stamp_of(dataset: Dataset, search: CandidateSearch) -> Stamp:
    """Return where the scores of the search come from."""
    score = search.score.on(dataset)
    stamp = Stamp(
        score.name,
        score.stamped_ess,
        search.max_parents,
        dataset.rows,
        dataset.arities_from,
        search.possible_parents,
        penalty=score.stamped_penalty,
        cells=_cells_of(dataset),
    )
    return stamp.with_priors() if search.knowledge.priors else stamp


def _cells_of(dataset: Dataset) -> str | None:
    """Return what is made of missing cells, for the stamp; None if there are none."""
    if dataset.missing is None:
        return None
    return "rows" if dataset.has_gaps else "filled"


def checked(dataset: Dataset, search: CandidateSearch) -> CandidateSearch:
    """Return the search with at most n - 1 parents; raise if it makes no sense for the data."""
    if dataset.rows == 0:
        raise DataError("the data have no rows; give at least one")
    search = replace(search, score=search.score.on(dataset))
    refuse_ancestors(search.knowledge)
    if search.max_parents < 0:
        raise SettingError(
            f"at most {search.max_parents} parents; allowed are 0 and more (usually 2 to 4)"
        )
    search = replace(search, max_parents=max(0, min(search.max_parents, dataset.n - 1)))
    most = search.possible_parents
    if most is not None and most < 1:
        raise SettingError(
            f"possible_parents = {most}; give 1 or more (usually 10 to 50), or leave it out for all"
        )
    if most is not None and most >= dataset.n - 1:  # all others: nothing is left out
        search = replace(search, possible_parents=None)
    if search.score.function is not None:
        return _checked_own(dataset, search)
    if not dataset.is_plain and search.possible_parents is not None:
        raise SettingError(
            f"{option('possible_parents', search.possible_parents)} is for tables without missing"
            " cells and experiments; leave it out, and for many columns the number of parents, too:"
            " then sets are grown among all"
        )
    if dataset.kind != "discrete":
        return _checked_numbers(dataset, search)
    check_rows(dataset)
    n = dataset.n if search.possible_parents is None else search.possible_parents + 1
    if too_many_sets(n, search.max_parents):
        digits = len(str(comb(n, search.max_parents + 1))) - 1
        raise SettingError(
            f"at most {search.max_parents} parents among {n} variables make 10^{digits} sets, "
            f"far too many to look at; allow fewer parents, or {option('possible_parents', 30)}"
        )
    widest = np.argsort(dataset.arities, kind="stable")[::-1]
    check_joint_states(dataset, widest[: search.max_parents + 1].tolist())
    return search


def _checked_own(dataset: Dataset, search: CandidateSearch) -> CandidateSearch:
    """Return the search if all parent sets can be scored by a function; raise if not."""
    if search.possible_parents is not None:
        raise SettingError(
            f"{option('possible_parents', search.possible_parents)} is for scores of this package;"
            " with a function leave it out, and for many columns the number of parents, too: then"
            " sets are grown among all"
        )
    if too_many_sets(dataset.n, search.max_parents):
        raise SettingError(
            f"at most {search.max_parents} parents among {dataset.n} variables make too many sets"
            " to look at; allow fewer parents, or give no number: then sets are grown"
        )
    return search


def _checked_numbers(dataset: Dataset, search: CandidateSearch) -> CandidateSearch:
    """Return the search if all parent sets of continuous variables can be scored; raise if not."""
    most = search.max_parents
    if search.possible_parents is not None:
        raise SettingError(
            f"{option('possible_parents', search.possible_parents)} is for discrete columns; "
            "leave it"
            " out, and for many columns the number of parents, too: then sets are grown among all"
        )
    if dataset.rows < most + 2:
        raise DataError(
            f"{dataset.rows} rows determine no variable by {most} parents; give {most + 2} rows or"
            f" more, or {option('max_parents', max(0, dataset.rows - 2))}"
        )
    if too_many_sets(dataset.n, most):
        raise SettingError(
            f"at most {most} parents among {dataset.n} variables make too many sets to look at;"
            " allow fewer parents, or give no number: then sets are grown"
        )
    if dataset.is_plain:
        check_independent(dataset)
    if dataset.kind == "mixed":
        check_rows(dataset)
        widest = np.argsort(dataset.arities, kind="stable")[::-1]
        check_joint_states(dataset, widest[: most + 1].tolist())
    return search


def too_many_sets(n: int, max_parents: int) -> bool:
    """Return whether no machine can hold the tables of the search, or number its sets."""
    return 8 * (n + 1) * sum(comb(n, size) for size in range(max_parents + 3)) > MOST_TABLE_BYTES


def first_level(dataset: Dataset, search: CandidateSearch) -> Level:
    """Return level 1 of the search."""
    rows = prepare_rows(dataset)
    allowed = allowed_for(dataset, search.score, search.knowledge, search.max_parents)
    rule = prepare_rule(dataset, rows, search.score, allowed.required)
    return start_level(rows, rule, prepare_constraints(allowed), search.max_parents + 1)


def sets_per_block(level: Level) -> int:
    """Return the number of sets of a block.

    It depends on the problem alone, so that a checkpoint fits any machine.
    """
    total = int(sets_of_heads(level).sum())
    return max(1, min(_ROWS_PER_BLOCK // _rows(level), max(total // _LEAST_BLOCKS, 1000)))


def _rows(level: Level) -> int:
    """Return the rows that are counted for a set; bits count 1/16."""
    return max(1, int(level.rows.bits.shape[1]) * 4 or int(level.rows.codes.shape[1]))


def scan_blocks(
    level: Level, above: Above, workers: Workers, kept: Checkpoint | None = None
) -> Iterator[tuple[int, Block]]:
    """Yield (number of sets done so far, block) for each block of a level, and fill `above`.

    Blocks of the checkpoint come first.
    """
    ranges = split(level, sets_per_block(level))
    work = sets_of_heads(level)
    finished = _finished_blocks(level, len(ranges), kept)
    done = 0
    for index, block in finished.items():
        done += int(work[slice(*ranges[index])].sum())
        yield done, block
    missing = [index for index in range(len(ranges)) if index not in finished]
    for place, block in _run_blocks(level, above, [ranges[index] for index in missing], workers):
        index = missing[place]
        if kept:
            kept.add(index, block)
        done += int(work[slice(*ranges[index])].sum())
        yield done, block


def _finished_blocks(level: Level, blocks: int, kept: Checkpoint | None) -> dict[int, Block]:
    """Return the blocks of the checkpoint by number.

    One that does not fit the search (a changed file with a valid checksum) is left out.
    """
    done = kept.done if kept else {}
    return {
        index: block
        for index, block in done.items()
        if index < blocks and block.fits(level.n, level.k)
    }


def _run_blocks(
    level: Level, above: Above, ranges: list[tuple[int, int]], workers: Workers
) -> Iterator[tuple[int, Block]]:
    """Yield (place, block) of these ranges of heads, on threads or on a cluster.

    A cluster runs the last level, which fills no tables, and large ones.
    """
    fills_tables = len(above.cells) > 0
    work = int(sets_of_heads(level).sum()) * _rows(level)
    if workers.cluster is None or not fills_tables:
        yield from run(scan_block, (level, above), ranges, workers)
    elif level.k == 1 or work < _LEAST_FOR_CLUSTER:
        yield from run(scan_block, (level, above), ranges, workers.here)
    else:
        for place, (block, part) in run(scan_block_elsewhere, level, ranges, workers):
            part.write(above)
            yield place, block


def fingerprint(dataset: Dataset, search: CandidateSearch) -> dict[str, object]:
    """Return what the candidate sets depend on: the data and every field of the search."""
    search = replace(search, score=search.score.on(dataset))
    return {"data": dataset.checksum, **facts(search)}


def assemble(dataset: Dataset, search: CandidateSearch, blocks: list[Block]) -> Candidates:
    """Return the candidate sets of all blocks, with the order of variables that is known."""
    sizes = [np.full(len(block.scores), block.parents.shape[1]) for block in blocks]
    found = in_order(
        dataset.names,
        owners=np.concatenate([block.children for block in blocks]),
        sizes=np.concatenate(sizes),
        members=np.concatenate([block.parents.reshape(-1) for block in blocks]),
        scores=np.concatenate([block.scores for block in blocks]),
        stamp=stamp_of(dataset, search),
    )
    return with_order(
        found, allowed_for(dataset, search.score, search.knowledge, search.max_parents).before
    )
