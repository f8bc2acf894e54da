"""A search with a checkpoint of finished blocks."""

from pathlib import Path

from candidate_cases import dependent_data
from qubayes.candidates import CandidateSearch, identify, write_candidates
from qubayes.scores import Score

DATASET, SEARCH = dependent_data(25, 100, seed=3), CandidateSearch(3, Score("bdeu", 2.0))


def bytes_of(found, folder: Path) -> bytes:
    write_candidates(found, folder / "found.qbc")
    return (folder / "found.qbc").read_bytes()


def blocks_and_result_in(folder: Path) -> tuple[bytes, bytes]:
    """Every block of a search as its checkpoint held them at the end, and the result of the search."""
    seen = []

    def look(_):
        if (folder / "x.blocks").exists():
            seen.append((folder / "x.blocks").read_bytes())

    found = identify(DATASET, SEARCH, checkpoint=folder / "x.blocks", on_progress=look)
    assert len(seen) > 5 and len(set(seen)) == len(seen)
    return seen[-1], bytes_of(found, folder)
