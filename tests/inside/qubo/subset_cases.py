"""Covering problems for the tests of `qubayes.qubo.subsets`."""

import numpy as np

from qubayes.foundation.families import Families
from qubayes.qubo.subsets.instance import incidence_of, sets_to_cover
from qubayes.qubo.subsets.reductions import OPEN


def set_system(sets):
    """The set system of the given sets."""
    return sets_to_cover(Families.of([[*(tuple(sorted(members)) for members in sets), ()]]), 0)


def problem(sets):
    """Incidence, status of the columns and open rows before any reduction."""
    incidence = incidence_of(set_system(sets))
    return (
        incidence,
        np.full(incidence.columns, OPEN, dtype=np.int8),
        np.ones(incidence.rows, dtype=np.bool_),
    )
