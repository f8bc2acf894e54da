"""Whether continuous columns can be scored: none is a linear function of others."""

import numpy as np

from ..data.dataset import Dataset
from ..foundation.arrays import Floats
from ..foundation.errors import DataError, option, some

# A variable of which less than this part is left, given other variables, is a linear function of
# them: no set has all of them.
LEAST_RESIDUAL = 1e-12


def check_independent(dataset: Dataset) -> None:
    """Raise if a continuous column is a linear function of others, and not for want of rows."""
    if dataset.kind == "mixed":
        numbers = [v for v, states in enumerate(dataset.states) if not states]
        dataset = dataset.select(np.array(numbers))
    _, correlations = dataset.moments
    if dataset.rows <= dataset.n or _are_independent(correlations):
        return
    # the first columns are independent, with the next one they are not
    first, end = 1, dataset.n
    while end - first > 1:
        middle = (first + end) // 2
        if _are_independent(correlations[:middle, :middle]):
            first = middle
        else:
            end = middle
    weights = np.linalg.lstsq(correlations[:first, :first], correlations[:first, first], rcond=None)
    others = [dataset.names[v] for v in np.flatnonzero(np.abs(weights[0]) > 1e-6).tolist()]
    raise DataError(
        f"column {dataset.names[first]!r} is an exact linear function of {some(others)};"
        f" leave one of them out, as with {option('ignore', [dataset.names[first]])}"
    )


def _are_independent(correlations: Floats) -> bool:
    """Return whether something is left of each column, given those before it."""
    try:
        roots = np.diag(np.linalg.cholesky(correlations))
    except np.linalg.LinAlgError:
        return False
    return bool((roots * roots > LEAST_RESIDUAL).all())
