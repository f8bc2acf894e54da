"""Whether a family covers another one, from the definition: no part of the covering code is used."""

from collections.abc import Sequence

import numpy as np

from ...foundation.arrays import Bools
from ...foundation.families import VertexSet
from .family import Family


def uncovered(family: Family, members: Sequence[VertexSet]) -> Bools:
    """(sets,) which sets of the family are neither a member nor the union of two members."""
    rows, chosen = _masks(family.sets()), _masks(members)
    missing = set(rows).difference(chosen)
    for place, mask in enumerate(chosen):
        if not missing:
            break
        missing.difference_update(map(mask.__or__, chosen[place + 1 :]))
    return np.array([row in missing for row in rows], dtype=np.bool_)


def _masks(sets: Sequence[VertexSet]) -> list[int]:
    """Each set as a number whose bits are its elements."""
    masks = []
    for members in sets:
        mask = 0
        for element in members:
            mask |= 1 << element
        masks.append(mask)
    return masks
