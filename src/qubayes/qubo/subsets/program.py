"""The integer program of Appendix C.1 without Assumption 2, on HiGHS.

minimise sum v_V, where for each open candidate set W
    sum of v_V over the V that cover W alone + sum of y_{W,{V,V'}} over the pairs that cover W together >= 1,
    sum of y_{W,{V,V'}} over V' <= v_V   for each V.
The paper writes rho for y and links it by 2 rho <= v + v' <= 1 + rho. Here W chooses one of its representations,
which has the same integer solutions (each union V u V' belongs to one W only) and a tighter relaxation.
"""

from typing import Any, NamedTuple

import numpy as np

from ...foundation.arrays import AnyArray, Bools, Floats, Ints
from .presolve import Core

NO_LIMIT = 2**31 - 1


class Program(NamedTuple):
    """minimise the sum of the first `choices` variables, matrix @ x >= lower, 0 <= x <= 1, those variables integer."""

    matrix: Any  # (constraints, variables) scipy.sparse.csr_array
    lower: Floats  # (constraints,)
    choices: int


class Limits(NamedTuple):
    """When HiGHS stops. Iterations and nodes stop it at the same place everywhere; seconds are a safety net."""

    seconds: float = 60.0
    iterations: int = NO_LIMIT
    nodes: int = NO_LIMIT


class Outcome(NamedTuple):
    """What HiGHS found."""

    chosen: Bools  # (choices,) to be checked: HiGHS may have stopped without a solution
    bound: float  # no integer solution is below it


def program_of(core: Core) -> Program:
    """The integer program of a core."""
    from scipy.sparse import coo_array

    rows, columns = len(core.fixed), len(core.columns)
    entries = _Entries(rows, columns)
    patterns = np.stack([core.row_partners, np.diff(core.row_start), core.fixed, core.open], axis=1)
    kinds, label = np.unique(patterns, axis=0, return_inverse=True)
    label = label.reshape(-1)  # numpy 2.0 gives a column
    order = np.argsort(label, kind="stable")
    for kind, group in zip(kinds.tolist(), np.split(order, np.cumsum(np.bincount(label))[:-1]), strict=True):
        alone, pairs = ways(core.partners[kind[0] : kind[0] + kind[1]].tolist(), kind[2], kind[3])
        entries.add(group, core.row_columns[core.row_start[group][:, None] + np.arange(kind[1])], alone, pairs)
    row, column, value = (np.concatenate(parts) for parts in zip(*entries.parts, strict=True))
    matrix = coo_array((value, (row, column)), shape=(entries.rows, entries.columns)).tocsr()
    return Program(matrix, (np.arange(entries.rows) < rows).astype(np.float64), columns)


def ways(partners: list[int], fixed: int, opened: int) -> tuple[list[int], list[tuple[int, int]]]:
    """The open positions that cover a row alone, and the pairs of other open positions that cover it together."""
    places = [p for p in range(len(partners)) if opened >> p & 1]
    alone = [p for p in places if partners[p] & (fixed | 1 << p)]
    others = [p for p in places if p not in alone]
    return alone, [(p, q) for p in others for q in others if p < q and partners[p] >> q & 1]


class _Entries:
    """Coefficients as they are gathered, for many rows with the same pattern at once."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.parts: list[tuple[AnyArray, AnyArray, AnyArray]] = []

    def add(self, group: Ints, columns: AnyArray, alone: list[int], pairs: list[tuple[int, int]]) -> None:
        for p in alone:
            self._put(group, columns[:, p], 1.0)
        selectors = {
            pair: self.columns + index * len(group) + np.arange(len(group)) for index, pair in enumerate(pairs)
        }
        self.columns += len(pairs) * len(group)
        for selector in selectors.values():
            self._put(group, selector, 1.0)
        for p in sorted({p for pair in pairs for p in pair}):
            link = self.rows + np.arange(len(group))
            self.rows += len(group)
            self._put(link, columns[:, p], 1.0)
            for pair, selector in selectors.items():
                if p in pair:
                    self._put(link, selector, -1.0)

    def _put(self, rows: AnyArray, columns: AnyArray, value: float) -> None:
        self.parts.append((rows, columns, np.full(len(rows), value)))


def solve_program(program: Program, limits: Limits, *, start: Bools, stop: Bools | None = None) -> Outcome:
    """What HiGHS finds within the limits, on one thread, from a known cover; `stop[0]` ends it early."""
    highs = solver_of(program, limits, integer=True)
    highs.setSolution(len(start), np.arange(len(start), dtype=np.int32), start.astype(np.float64))
    if stop is not None:
        highs.cbMipInterrupt.subscribe(lambda event: event.interrupt() if stop[0] else None)
    highs.run()
    bound = highs.getInfo().mip_dual_bound
    values = np.array(highs.getSolution().col_value)[: program.choices]
    return Outcome(values > 0.5, bound if np.isfinite(bound) else 0.0)


def solver_of(program: Program, limits: Limits, *, integer: bool) -> Any:
    """A HiGHS solver that holds the program or its relaxation."""
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in _options(limits, integer).items():
        highs.setOptionValue(option, value)
    highs.passModel(_model(program, integer))
    return highs


def _options(limits: Limits, integer: bool) -> dict[str, Any]:
    options = {"output_flag": False, "threads": 1, "parallel": "off", "random_seed": 0, "time_limit": limits.seconds}
    if integer:
        # The objective is a whole number: a gap below one is a proof.
        return options | {"mip_abs_gap": 0.999, "mip_rel_gap": 0.0, "mip_max_nodes": limits.nodes}
    # Interior points are five times faster here than vertices, and cuts that they violate are better ones.
    return options | {"solver": "ipm", "run_crossover": "off", "ipm_iteration_limit": limits.iterations}


def _model(program: Program, integer: bool) -> Any:
    import highspy

    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = program.matrix.shape
    model.col_cost_ = (np.arange(model.num_col_) < program.choices).astype(np.float64)
    model.col_lower_, model.col_upper_ = np.zeros(model.num_col_), np.ones(model.num_col_)
    model.row_lower_, model.row_upper_ = program.lower, np.full(model.num_row_, highspy.kHighsInf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = program.matrix.indptr.astype(np.int32)
    model.a_matrix_.index_ = program.matrix.indices.astype(np.int32)
    model.a_matrix_.value_ = program.matrix.data
    if integer:
        kinds = [highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous]
        model.integrality_ = [kinds[j >= program.choices] for j in range(model.num_col_)]
    return model


def dual_bound(program: Program, duals: Floats, transposed: Any = None) -> float:
    """lower . y + sum min(0, cost - matrix' y) for y = max(duals, 0): below every solution, whatever the duals are."""
    y = np.maximum(duals, 0.0)
    cost = np.arange(program.matrix.shape[1]) < program.choices
    prices = (program.matrix.T if transposed is None else transposed) @ y
    # No product of two vectors: BLAS would take every core for it, and they have work.
    return float((program.lower * y).sum() + np.minimum(0.0, cost - prices).sum())
