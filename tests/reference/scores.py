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
    seen = len({row[child] for row in rows})
    alpha_j, alpha_jk = prior_counts(name, ess, (declared, r), (len(configurations), seen))
    total = sum(log_rising(c, alpha_jk) for c in cells.values())
    return total - sum(log_rising(c, alpha_j) for c in configurations.values())


def prior_counts(name, ess, declared, observed):
    """Prior counts of a parents' state and of a cell, for numbers of (parents' states, child states)."""
    if name == "bdeu":
        return ess / declared[0], ess / (declared[0] * declared[1])
    if name == "bds":
        return ess / observed[0], ess / (observed[0] * observed[1])
    if name == "k2":
        return declared[1], 1.0
    assert name in ("bic", "aic", "loglik", "ml"), f"{name} has no definition here"
    return 0.0, 0.0


def defined(dataset, child, parents, name, ess=1.0):
    """The score of a family of a Dataset, whatever the kind of its columns."""
    import numpy as np

    if dataset.kind == "discrete":
        rows = [tuple(row) for row in dataset.codes.T.tolist()]
        return local_score(rows, dataset.arities.tolist(), child, parents, name, ess)
    if dataset.kind == "mixed":
        return mixed_score(dataset, child, parents, name)
    rows = np.array([dataset.numbers[each] for each in dataset.names]).T
    if name == "bge":
        return bge_score(rows, child, parents)
    penalty = {"bic": 0.5 * log(len(rows)), "aic": 1.0, "loglik": 0.0}[name]
    return gaussian_score(rows, child, parents, penalty)


def log_rising(count, prior):
    """log of prior (prior + 1) ... (prior + count - 1): exact where the difference of two log-gammas is not."""
    return fsum(log(prior + i) for i in range(count))


def gaussian_score(rows, child, parents, penalty):
    """Log-likelihood of a least-squares fit with the variance of its residuals, less the cost of its parameters."""
    import numpy as np

    count = len(rows)
    design = np.column_stack([np.ones(count), *(rows[:, p] for p in parents)])
    fitted = design @ np.linalg.lstsq(design, rows[:, child], rcond=None)[0]
    variance = float(((rows[:, child] - fitted) ** 2).mean())
    likelihood = -0.5 * count * (log(2 * np.pi * variance) + 1)
    return likelihood - penalty * (len(parents) + 2)


def bge_score(rows, child, parents):
    """Ratio of two multivariate gamma marginal likelihoods of the standardised columns."""
    from math import lgamma, pi

    import numpy as np

    count, n = rows.shape
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    weight, freedom = 1.0, n + 2.0
    t = weight * (freedom - n - 1) / (weight + 1)
    posterior = t * np.eye(n) + scaled.T @ scaled  # the means are 0, as in the prior

    def log_gamma(size, x):
        terms = fsum(lgamma(x + (1 - j) / 2) for j in range(1, size + 1))
        return size * (size - 1) / 4 * log(pi) + terms

    def marginal(members):
        size = len(members)
        if not size:
            return 0.0
        before = freedom - n + size
        after = before + count
        part = posterior[np.ix_(members, members)]
        return (
            size / 2 * log(weight / (weight + count))
            - size * count / 2 * log(pi)
            + log_gamma(size, after / 2)
            - log_gamma(size, before / 2)
            + before / 2 * size * log(t)
            - after / 2 * float(np.linalg.slogdet(part)[1])
        )

    return marginal([*parents, child]) - marginal(list(parents))


def mixed_score(dataset, child, parents, name):
    """A regression in each part of the rows, by a ridge estimate with one more row as a prior."""
    import numpy as np

    count = dataset.rows
    penalty = {"bic": 0.5 * log(count), "aic": 1.0, "loglik": 0.0}[name]
    discrete = [p for p in parents if dataset.states[p]]
    others = [p for p in parents if not dataset.states[p]]
    if dataset.states[child]:
        if others:
            return -np.inf
        rows = [tuple(row) for row in dataset.codes.T.tolist()]
        return local_score(rows, dataset.arities.tolist(), child, discrete, name)
    cells = np.array([dataset.numbers[dataset.names[v]] for v in (*others, child)])
    whole = np.cov(cells, bias=True).reshape(len(cells), -1)
    states = [tuple(row) for row in dataset.codes[discrete].T.tolist()]
    parts = [cells[:, [row == state for row in states]] for state in sorted(set(states))]
    centred = [part - part.mean(axis=1, keepdims=True) for part in parts]
    within = sum(part @ part.T for part in centred) / count
    prior = 0.9 * within + 0.1 * whole
    total = 0.0
    for part in centred:
        # weights and variance that are best for the rows of the part and one row of the prior
        joint = part @ part.T + prior
        weights = np.linalg.solve(joint[:-1, :-1], joint[:-1, -1])
        turned = np.append(-weights, 1.0)
        variance = turned @ joint @ turned / (part.shape[1] + 1)
        errors = turned @ part
        total -= 0.5 * part.shape[1] * log(2 * np.pi * variance)
        total -= errors @ errors / (2 * variance)
        # the divergence of this regression from that of the prior
        best = np.append(-np.linalg.solve(prior[:-1, :-1], prior[:-1, -1]), 1.0)
        least = best @ prior @ best
        total -= 0.5 * (log(variance / least) + turned @ prior @ turned / variance - 1.0)
    cost = prod(int(dataset.arities[p]) for p in discrete)
    return total - penalty * cost * (len(others) + 2)
