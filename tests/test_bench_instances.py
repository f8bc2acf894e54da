"""The paper's instances, from a folder made here."""

import gzip

import numpy as np
import pytest

from benchmarks.paper import instance
from qubayes import QubayesError

NETWORK = """network unknown { }
variable a { type discrete [ 2 ] { no, yes }; }
variable b { type discrete [ 2 ] { no, yes }; }
probability ( a ) { table 0.5, 0.5; }
probability ( b | a ) { (no) 1.0, 0.0; (yes) 0.0, 1.0; }
"""


@pytest.fixture
def folder(tmp_path):
    """Forty transactions: item 1 or 2 (the class), item 3 always, the bits of the row's number as items 10 to 15."""
    lines = []
    for row in range(40):
        bits = [str(10 + bit) for bit in range(6) if row >> bit & 1]
        lines.append(" ".join([str(1 + row % 2), "3", *bits]) + "\n")
    for name in ("chess", "mushroom"):
        (tmp_path / "fimi").mkdir(exist_ok=True)
        (tmp_path / "fimi" / f"{name}.dat.gz").write_bytes(gzip.compress("".join(lines).encode()))
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "pair.bif.gz").write_bytes(gzip.compress(NETWORK.encode()))
    return tmp_path


def rows_drawn(dataset) -> list[int]:
    """The numbers of the transactions, from their bits."""
    bits = [
        dataset.codes[dataset.names.index(str(10 + bit))].astype(int) << bit for bit in range(6)
    ]
    return np.sum(bits, axis=0).tolist()


def test_item_sets_are_drawn_without_replacement(folder):
    dataset = instance("chess", 7, folder, rows=25)
    chosen = np.random.default_rng(np.random.SeedSequence(7)).choice(40, 25, replace=False)
    assert rows_drawn(dataset) == sorted(chosen.tolist()) and len(set(chosen.tolist())) == 25
    assert dataset.names == ("1", "2", "3", "10", "11", "12", "13", "14", "15")
    assert dataset.states == (("0", "1"),) * 9
    assert rows_drawn(instance("chess", 8, folder, rows=25)) != rows_drawn(dataset)
    assert instance("chess", 7, folder, rows=25).checksum == dataset.checksum


def test_the_class_of_mushroom_is_left_out(folder):
    assert instance("mushroom", 0, folder, rows=40).names == (
        "3",
        "10",
        "11",
        "12",
        "13",
        "14",
        "15",
    )


def test_networks_are_sampled(folder):
    dataset = instance("pair", 0, folder)
    assert dataset.names == ("a", "b") and dataset.rows == 1000
    assert (
        np.array_equal(dataset.codes[0], dataset.codes[1])
        and 400 < int(dataset.codes[0].sum()) < 600
    )


def test_what_is_not_there(folder):
    with pytest.raises(QubayesError, match=r"'par'.*chess.*pair"):
        instance("par", 0, folder)
    with pytest.raises(QubayesError, match="41 rows of chess; allowed are 1 to 40"):
        instance("chess", 0, folder, rows=41)
    with pytest.raises(QubayesError, match=r"connect\.dat\.gz"):
        instance("connect", 0, folder)
