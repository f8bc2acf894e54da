"""Networks whose samples lose some of their cells."""

from dataclasses import replace

import numpy as np

from qubayes.data import MissingCells
from qubayes.network import Linear, Network, sample_dataset

STATES = (("n", "y"),) * 4
CHAIN = Network(
    ("a", "b", "c", "d"),
    ((), (0,), (1,), (2,)),
    states=STATES,
    tables=(np.array([0.4, 0.6]), *(np.array([[0.9, 0.1], [0.15, 0.85]]),) * 3),
)
NUMBERS = Network(
    ("x", "y", "z"),
    ((), (0,), (0, 1)),
    states=((), (), ()),
    tables=(Linear(1.0, (), 1.0), Linear(0.5, (0.8,), 0.7), Linear(0.0, (1.0, -0.5), 0.5)),
)


def chain_with_gaps(rows=400, share=0.2, seed=0):
    """A sample of the chain without this share of the cells."""
    dataset = sample_dataset(CHAIN, rows, seed)
    mask = np.random.default_rng(seed).random(dataset.codes.shape) < share
    mask[:, 0] = False
    return replace(dataset, missing=MissingCells(mask, "impute"))


def numbers_with_gaps(rows=60, share=0.25, seed=0):
    """A sample of the linear network without this share of the cells."""
    dataset = sample_dataset(NUMBERS, rows, seed)
    mask = np.random.default_rng(seed).random((3, rows)) < share
    mask[:, :5] = False
    numbers = {
        name: np.where(mask[v], np.nan, dataset.numbers[name])
        for v, name in enumerate(dataset.names)
    }
    return replace(dataset, numbers=numbers, missing=MissingCells(mask, "rows"))
