"""The integer program of Appendix C.1 without Assumption 2, on HiGHS.

minimise sum v_V, where for each open candidate set W
    sum of v_V over the V that cover W alone + sum of y_{W,{V,V'}} over the pairs that cover W together >= 1,
    sum of y_{W,{V,V'}} over V' <= v_V   for each V.
The paper writes rho for y and links it by 2 rho <= v + v' <= 1 + rho. Here W chooses one of its representations,
which has the same integer solutions (each union V u V' belongs to one W only) and a tighter relaxation.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from ...foundation.arrays import AnyArray, Bools, Floats
from ...foundation.highs import Highs, LinearModel
from .reductions import Core

NO_LIMIT = 2**31 - 1


class CoverProgram(NamedTuple):
    """minimise the sum of the first `choices` variables, matrix @ x >= lower, 0 <= x <= 1, those variables integer."""

    matrix: Any  # (constraints, variables) scipy.sparse.csr_array
    lower: Floats  # (constraints,)
    choices: int

    @property
    def costs(self) -> Floats:
        """(variables,) 1 for choices, 0 for the others."""
        return (np.arange(self.matrix.shape[1]) < self.choices).astype(np.float64)


class ProgramSolution(NamedTuple):
    """The best solution and bound that HiGHS found."""

    chosen: Bools  # (choices,) to be checked: HiGHS may have stopped without a solution
    bound: float  # lower bound on every integer solution


def program_of(core: Core) -> CoverProgram:
    """Return the integer program of a core."""
    rows, columns = len(core.fixed), len(core.columns)
    choices = columns
    patterns = np.stack([core.row_partners, np.diff(core.row_start), core.fixed, core.open], axis=1)
    kinds, label = np.unique(patterns, axis=0, return_inverse=True)
    label = label.reshape(-1)  # numpy 2.0 gives a column
    order = np.argsort(label, kind="stable")
    entries: list[tuple[AnyArray, AnyArray, float]] = []  # for many rows with the same pattern at once
    for kind, group in zip(kinds.tolist(), np.split(order, np.cumsum(np.bincount(label))[:-1]), strict=True):
        alone, pairs = row_representations(core.partners[kind[0] : kind[0] + kind[1]].tolist(), kind[2], kind[3])
        own, many = core.row_columns[core.row_start[group][:, None] + np.arange(kind[1])], np.arange(len(group))
        entries += [(group, own[:, p], 1.0) for p in alone]
        selectors = {pair: columns + index * len(group) + many for index, pair in enumerate(pairs)}
        columns += len(pairs) * len(group)
        entries += [(group, selector, 1.0) for selector in selectors.values()]
        for p in sorted({p for pair in pairs for p in pair}):
            entries.append((rows + many, own[:, p], 1.0))
            entries += [(rows + many, selector, -1.0) for pair, selector in selectors.items() if p in pair]
            rows += len(group)
    row, column = (np.concatenate([entry[field] for entry in entries]) for field in (0, 1))
    value = np.concatenate([np.full(len(entry[0]), entry[2]) for entry in entries])
    matrix = coo_array((value, (row, column)), shape=(rows, columns)).tocsr()
    return CoverProgram(matrix, (np.arange(rows) < len(core.fixed)).astype(np.float64), choices)


def row_representations(partners: list[int], fixed: int, opened: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the open positions that cover a row alone, and the pairs of other open positions that cover it."""
    places = [p for p in range(len(partners)) if opened >> p & 1]
    alone = [p for p in places if partners[p] & (fixed | 1 << p)]
    others = [p for p in places if p not in alone]
    return alone, [(p, q) for p in others for q in others if p < q and partners[p] >> q & 1]


def solve_program(
    program: CoverProgram, *, start: Bools, seconds: float = 60.0, nodes: int = NO_LIMIT, stop: Bools | None = None
) -> ProgramSolution:
    """Return what HiGHS finds within the limits from a known cover; `stop[0]` ends it early.

    Nodes stop it at the same place on every machine; seconds are a safety net.
    """
    integer = np.arange(program.matrix.shape[1]) < program.choices
    model = LinearModel(program.costs, program.matrix, row_lower=program.lower, upper=1.0, integer=integer)
    # The objective is a whole number: a gap below one is a proof.
    highs = Highs(mip_abs_gap=0.999, mip_rel_gap=0.0, mip_max_nodes=nodes).load(model)
    highs.start_from(np.arange(len(start)), start)
    solved = highs.solve(seconds, stop)
    return ProgramSolution(solved.values[: program.choices] > 0.5, max(solved.bound, 0.0))


def dual_bound(program: CoverProgram, duals: Floats, transposed: Any = None) -> float:
    """Return lower . y + sum min(0, cost - matrix' y) for y = max(duals, 0): a lower bound for any duals."""
    y = np.maximum(duals, 0.0)
    prices = (program.matrix.T if transposed is None else transposed) @ y
    # No product of two vectors: BLAS would take every core for it, and they have work.
    return float((program.lower * y).sum() + np.minimum(0.0, program.costs - prices).sum())
