"""Checkpoints of finished blocks: one search writes, whole blocks are kept."""

from pathlib import Path

import numpy as np
import pytest

from candidate_cases import dependent_data
from checkpoint_cases import DATASET, SEARCH, blocks_and_result_in, bytes_of
from qubayes import (
    FormatError,
)
from qubayes.candidates import (
    CandidateSearch,
    fingerprint,
    identify,
)
from qubayes.candidates.checkpoint import Checkpoint
from qubayes.foundation.workers import Workers
from qubayes.scores import Score


@pytest.fixture(scope="module")
def blocks_and_result(tmp_path_factory):
    return blocks_and_result_in(tmp_path_factory.mktemp("blocks"))


@pytest.mark.parametrize("resume", [False, True])
def test_a_checkpoint_belongs_to_one_search(tmp_path, resume):
    path = tmp_path / "blocks"
    with Checkpoint(path, {"data": "x"}, resume=False):
        before = path.read_bytes()
        with pytest.raises(FormatError, match=r"another search writes to .*blocks now"):
            Checkpoint(path, {"data": "x"}, resume=resume)
        assert path.read_bytes() == before
    with Checkpoint(path, {"data": "x"}, resume=True):
        assert path.read_bytes() == before


def test_blocks_with_a_right_sum_and_wrong_numbers_are_made_anew(tmp_path: Path) -> None:
    table, search = dependent_data(5, 60, 3), CandidateSearch(2, Score("bdeu"))
    path, workers = tmp_path / "x.blocks", Workers(1)
    expected = identify(table, search, checkpoint=path, workers=workers)
    for index, part, value in (
        (0, "children", 99),
        (0, "parents", -1),
        (0, "scores", np.nan),
        (77, "scores", 0.0),
    ):
        with Checkpoint(path, fingerprint(table, search), resume=True) as kept:
            block = next(iter(kept.done.values()))
            wrong = type(block)(block.families.copy(), block.scores.copy())
            getattr(wrong, part)[...] = value  # children and parents are views of the families
            kept.add(index, wrong)
        found = identify(table, search, checkpoint=path, resume=True, workers=workers)
        assert (found.scores == expected.scores).all() and found.total == expected.total


@pytest.mark.parametrize("damage", ["cut", "more", "flipped"])
def test_a_resumed_checkpoint_holds_whole_blocks_only(damage, blocks_and_result, tmp_path):
    content, _ = blocks_and_result
    path, facts = tmp_path / "x.blocks", fingerprint(DATASET, SEARCH)
    path.write_bytes(content)
    with Checkpoint(path, facts, resume=True) as whole:
        index, block = next(iter(whole.done.items()))
    assert path.read_bytes() == content
    with Checkpoint(path, facts, resume=True) as kept:
        kept.add(index, block)
    added = path.read_bytes()
    assert added.startswith(content) and len(added) > len(content)
    flipped = added[: len(content)] + bytes([added[len(content)] ^ 1]) + added[len(content) + 1 :]
    path.write_bytes(
        {"cut": added[:-1], "more": content + bytes(9999), "flipped": flipped + added}[damage]
    )
    with Checkpoint(path, facts, resume=True) as kept:
        assert kept.done.keys() == whole.done.keys()
    assert path.read_bytes() == content


def test_finished_blocks_are_not_searched_again(blocks_and_result, tmp_path):
    """A block that is forged to be empty stays empty: it was taken from the checkpoint."""
    content, result = blocks_and_result
    path = tmp_path / "x.blocks"
    path.write_bytes(content)
    with Checkpoint(path, fingerprint(DATASET, SEARCH), resume=True) as kept:
        index, block = max(kept.done.items(), key=lambda item: len(item[1].scores))
        assert len(block.scores) > 0
        kept.add(index, type(block)(block.families[:0], block.scores[:0]))
    forged = identify(DATASET, SEARCH, checkpoint=path, resume=True)
    whole = identify(DATASET, SEARCH)
    assert forged.total == whole.total - len(block.scores) and bytes_of(whole, tmp_path) == result
