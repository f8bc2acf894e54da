"""FIMI item sets: a transaction of item numbers on each line."""

import re
from pathlib import Path

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.errors import DataError, FormatError
from ..foundation.files import read_bytes
from .columns import Column

_MOST_CELLS = 10**9  # one byte each, and once more for the codes: a small file of rare items asks for their square


def read_fimi(path: Path) -> list[Column]:
    """A column of "0" and "1" for each item, in numeric order: "1" where the row's transaction has it."""
    content = read_bytes(path)
    if bad := re.search(rb"[^0-9\s]|[0-9]{19}", content):
        line = content.count(b"\n", 0, bad.start()) + 1
        raise FormatError(f"{path}, line {line}: {bad[0][:20]!r} is no item; items are whole numbers, blanks between")
    transactions = [line.split() for line in content.split(b"\n")]
    if not transactions[-1]:
        transactions.pop()  # what follows the last line end
    lengths = np.array([len(transaction) for transaction in transactions], dtype=np.int64)
    items = np.array([int(item) for transaction in transactions for item in transaction], dtype=np.int64)
    numbers, columns = np.unique(items, return_inverse=True)
    if len(numbers) == 0:
        raise FormatError(f"{path} holds no item; give a transaction of item numbers on each line")
    if len(numbers) * len(lengths) > _MOST_CELLS:
        raise DataError(f"{path}: {len(numbers)} items x {len(lengths)} rows is too large; remove rare items first")
    present: AnyArray = np.zeros((len(numbers), len(lengths)), dtype=np.uint8)
    present[columns, np.repeat(np.arange(len(lengths)), lengths)] = 1
    return [Column(str(number), ("0", "1"), present[i], ("0", "1")) for i, number in enumerate(numbers.tolist())]
