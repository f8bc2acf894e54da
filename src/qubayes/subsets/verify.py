"""Whether a family covers another one, from the definition: no part of the covering code is used."""

from collections.abc import Sequence

import numpy as np

from ..arrays import Bools, Ints, SmallInts, Words
from ..families import VertexSet
from .family import Family

BLOCK = 2**20  # unions looked at together


def uncovered(family: Family, members: Sequence[VertexSet]) -> Bools:
    """(sets,) which sets of the family are neither a member nor the union of two members."""
    rows = _words(family.sizes, family.members, len(family.elements))
    sizes = np.array([len(member) for member in members], dtype=np.int64)
    flat = np.array([element for member in members for element in member], dtype=np.int64)
    chosen = _words(sizes, flat, len(family.elements))
    missing = ~_among(rows, chosen)
    step = max(1, BLOCK // max(1, len(chosen)))
    for first in range(0, len(chosen), step):
        if not missing.any():
            break
        unions = chosen[first : first + step, None] | chosen[None, first:]
        left = np.flatnonzero(missing)
        missing[left] = ~_among(rows[left], unions.reshape(-1, unions.shape[2]))
    return missing


def _words(sizes: Ints, members: Ints | SmallInts, elements: int) -> Words:
    """(sets, words) the sets as masks of 64 bits."""
    words = np.zeros((len(sizes), elements // 64 + 1), dtype=np.uint64)
    bits = np.uint64(1) << (members % 64).astype(np.uint64)
    np.bitwise_or.at(words, (np.repeat(np.arange(len(sizes)), sizes), members // 64), bits)
    return words


def _among(rows: Words, others: Words) -> Bools:
    """(rows,) whether each row occurs among the others; word by word, both sides numbered alike."""
    row_key, kept, other_key = (
        np.zeros(len(rows), dtype=np.int64),
        np.arange(len(others)),
        np.zeros(len(others), np.int64),
    )
    for word in range(rows.shape[1]):
        distinct, inverse = np.unique(rows[:, word], return_inverse=True)
        place = np.minimum(np.searchsorted(distinct, others[kept, word]), len(distinct) - 1)
        same = distinct[place] == others[kept, word] if len(distinct) else np.zeros(len(kept), dtype=bool)
        kept, place, other_key = kept[same], place[same], other_key[same]
        # Keys stay below (rows)^2: they are numbered anew after each word.
        _, numbers = np.unique(
            np.concatenate([row_key * len(distinct) + inverse, other_key * len(distinct) + place]), return_inverse=True
        )
        row_key, other_key = numbers[: len(rows)], numbers[len(rows) :]
    found: Bools = np.isin(row_key, other_key)
    return found
