"""The paper's instances: samples of known networks and of item sets.

The folder of the data holds `networks/NAME.bif.gz` (the Bayesian network repository) and
`fimi/NAME.dat.gz` (the frequent item set mining repository)."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from qubayes import SettingError
from qubayes.data import Dataset, ReadSettings, read
from qubayes.foundation.arrays import frozen
from qubayes.network import read_network, sample_dataset

# Item sets, with the items that are left out: the first two of mushroom are its class, edible or
# poisonous.
ITEM_SETS: dict[str, tuple[str, ...]] = {"chess": (), "connect": (), "mushroom": ("1", "2")}


def instance(name: str, seed: int, folder: str | Path, rows: int = 1000) -> Dataset:
    """`rows` rows of the instance: drawn from the network of that name, or from an item set without replacement."""
    if name in ITEM_SETS:
        return _draw(name, seed, Path(folder) / "fimi" / f"{name}.dat.gz", rows)
    path = Path(folder) / "networks" / f"{name}.bif.gz"
    if not path.exists():
        known = sorted(
            [
                *ITEM_SETS,
                *(found.name.removesuffix(".bif.gz") for found in path.parent.glob("*.bif.gz")),
            ]
        )
        raise SettingError(f"no instance {name!r} in {folder}; there are {', '.join(known)}")
    return sample_dataset(read_network(path), rows, seed)


def _draw(name: str, seed: int, path: Path, rows: int) -> Dataset:
    """Transactions in the order of the file, each at most once."""
    whole = read(path, ReadSettings(format="fimi", ignore=ITEM_SETS[name]))
    if not 1 <= rows <= whole.rows:
        raise SettingError(f"{rows} rows of {name}; allowed are 1 to {whole.rows}")
    chosen = np.random.default_rng(np.random.SeedSequence(seed)).choice(
        whole.rows, rows, replace=False
    )
    return replace(whole, codes=frozen(whole.codes[:, np.sort(chosen)]))
