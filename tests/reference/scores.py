"""Scores by dictionary and by the factors of each product."""

from collections import Counter
from math import fsum, log, prod


def local_score(rows, arities, child, parents, name, ess=1.0):
    """log S_child(parents): rows are tuples of states, arities the declared numbers of states."""
    cells, configurations = Counter(), Counter()
    for row, times in Counter(rows).items():
        cells[tuple(row[p] for p in parents), row[child]] += times
        configurations[tuple(row[p] for p in parents)] += times
    declared = prod(arities[p] for p in parents)
    r = arities[child]
    if name in ("bic", "aic", "loglik"):
        price = {"bic": 0.5 * log(len(rows)), "aic": 1.0, "loglik": 0.0}[name]
        fit = sum(c * log(c / configurations[j]) for (j, _), c in cells.items())
        return fit - price * declared * (r - 1)
    if name == "bds":
        q, states = len(configurations), len({row[child] for row in rows})
        alpha_j, alpha_jk = ess / q, ess / (q * states)
    elif name == "bdeu":
        alpha_j, alpha_jk = ess / declared, ess / (declared * r)
    elif name == "k2":
        alpha_j, alpha_jk = r, 1.0
    total = sum(log_rising(c, alpha_jk) for c in cells.values())
    return total - sum(log_rising(c, alpha_j) for c in configurations.values())


def log_rising(count, prior):
    """log of prior (prior + 1) ... (prior + count - 1): exact where the difference of two log-gammas is not."""
    return fsum(log(prior + i) for i in range(count))
