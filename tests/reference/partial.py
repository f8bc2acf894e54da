"""Scores of tables with missing cells or experiments: a family's own rows, one after the other."""

from math import fsum, log

from reference.scores import gaussian_score, local_score


def has_values(dataset, row, family):
    """Whether no variable of the family is missing in the row."""
    return dataset.missing is None or not any(dataset.missing.mask[v, row] for v in family)


def cells(dataset, family, rows):
    """The cells of the family in these rows: numbers, or states."""
    names = [dataset.names[v] for v in family]
    columns = [
        dataset.numbers[name] if name in dataset.numbers else dataset.codes[v]
        for name, v in zip(names, family, strict=True)
    ]
    return [tuple(column[row].item() for column in columns) for row in rows]


def likelihood(dataset, family, rows, parents):
    """Maximised log-likelihood of the first variable of the family given these of the others."""
    import numpy as np

    table = cells(dataset, family, rows)
    if dataset.numbers:
        return gaussian_score(np.array(table), 0, parents, 0.0)
    arities = [len(dataset.states[v]) for v in family]
    return local_score(table, arities, 0, parents, "loglik")


def own_rows_score(dataset, child, parents, name):
    """The gain of the parents on the rows of the family, and the mean of the child alone."""
    family = [child, *parents]
    rows = [row for row in range(dataset.rows) if has_values(dataset, row, family)]
    alone = [row for row in range(dataset.rows) if has_values(dataset, row, [child])]
    if dataset.numbers:
        parameters = len(family) + 1
    else:
        parameters = len(dataset.states[child]) - 1
        for parent in parents:
            parameters *= len(dataset.states[parent])
    price = {"bic": 0.5 * log(dataset.rows), "aic": 1.0, "loglik": 0.0}[name]
    others = list(range(1, len(family)))
    with_parents = likelihood(dataset, family, rows, others)
    without = likelihood(dataset, family, rows, [])
    mean = likelihood(dataset, [child], alone, []) / len(alone)
    gain = (with_parents - without - price * parameters) / len(rows)
    return fsum([dataset.rows * gain, dataset.rows * mean])


def experiment_score(dataset, child, parents, name, ess):
    """The score of the rows in which the child was not set."""
    rows = [row for row in range(dataset.rows) if not dataset.interventions[child, row]]
    table = cells(dataset, range(dataset.n), rows)
    return local_score(table, [len(its) for its in dataset.states], child, parents, name, ess)
