"""Missing cells given a network: by enumeration, by the joint normal distribution, by BFGS."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from missing_cases import CHAIN, NUMBERS, numbers_with_gaps
from qubayes.data import MissingCells
from qubayes.network import sample_dataset
from qubayes.network.filling import draw_numbers, draw_states, expected_numbers, fit_with_gaps
from reference.normals import joint


def test_draws_have_the_probabilities_given_the_other_cells():
    rows = 20_000
    codes = np.zeros((4, rows), np.uint8)
    codes[3] = 1  # a = n and d = y are observed, b and c are not
    mask = np.zeros((4, rows), np.bool_)
    mask[1:3] = True
    dataset = replace(sample_dataset(CHAIN, rows), codes=codes, missing=MissingCells(mask, "rows"))
    drawn = draw_states(CHAIN, dataset, 30, np.random.default_rng(0)).codes
    a, step = CHAIN.tables[0], CHAIN.tables[1]
    weights = a[0] * step[0][:, None] * step * step[:, 1]  # of b and c
    expected = weights / weights.sum()
    found = np.bincount(2 * drawn[1].astype(int) + drawn[2], minlength=4).reshape(2, 2) / rows
    assert found == pytest.approx(expected, abs=0.02)


def test_a_table_of_a_child_that_was_set_says_nothing():
    rows = 5000
    codes = np.ones((4, rows), np.uint8)
    mask = np.zeros((4, rows), np.bool_)
    mask[0] = True
    marks = np.zeros((4, rows), np.bool_)
    marks[1] = True  # so that b tells nothing of a
    dataset = replace(
        sample_dataset(CHAIN, rows),
        codes=codes,
        missing=MissingCells(mask, "rows"),
        interventions=marks,
    )
    drawn = draw_states(CHAIN, dataset, 1, np.random.default_rng(0)).codes
    assert drawn[0].mean() == pytest.approx(0.6, abs=0.03)


def test_expected_numbers_are_those_of_the_joint_normal_distribution():
    dataset = numbers_with_gaps(30)
    mask = dataset.missing.mask
    table = expected_numbers(NUMBERS, dataset)
    linears = NUMBERS.linears
    mean, covariance = joint(
        NUMBERS.parents,
        [its.intercept for its in linears],
        [its.weights for its in linears],
        [its.deviation for its in linears],
    )
    spread = np.zeros((3, 3))
    for row in range(30):
        known = np.flatnonzero(~mask[:, row])
        lacks = np.flatnonzero(mask[:, row])
        within = covariance[np.ix_(lacks, known)]
        inverse = np.linalg.inv(covariance[np.ix_(known, known)])
        cells = np.array([dataset.numbers[name][row] for name in dataset.names])
        expected = mean[lacks] + within @ inverse @ (cells - mean)[known]
        found = [table.numbers[dataset.names[v]][row] for v in lacks]
        assert found == pytest.approx(expected, rel=1e-9)
        left = covariance[np.ix_(lacks, lacks)] - within @ inverse @ within.T
        spread[np.ix_(lacks, lacks)] += left
    assert table.missing.spread == pytest.approx(spread, abs=1e-9)


def test_drawn_numbers_have_the_variance_that_expectations_lack():
    dataset = numbers_with_gaps(4000)
    drawn = draw_numbers(NUMBERS, dataset, np.random.default_rng(0))
    expected = expected_numbers(NUMBERS, dataset)
    for v, name in enumerate(dataset.names):
        rows = dataset.missing.mask[v]
        difference = drawn.numbers[name][rows] - expected.numbers[name][rows]
        variance = expected.missing.spread[v, v] / rows.sum()
        assert difference.mean() == pytest.approx(0.0, abs=0.08)
        assert difference.var() == pytest.approx(variance, rel=0.1)


def observed_log_likelihood(parameters, dataset):
    """Log density of the known cells of each row: the marginal of the joint normal distribution."""
    a, b, c, w, u, v, *logs = parameters
    mean, covariance = joint(NUMBERS.parents, [a, b, c], [(), (w,), (u, v)], np.exp(logs))
    total = 0.0
    cells = np.array([dataset.numbers[name] for name in dataset.names])
    for row in range(dataset.rows):
        known = np.flatnonzero(~dataset.missing.mask[:, row])
        own = covariance[np.ix_(known, known)]
        error = cells[known, row] - mean[known]
        total -= 0.5 * error @ np.linalg.solve(own, error)
        total -= 0.5 * np.linalg.slogdet(2 * np.pi * own)[1]
    return total


def test_em_finds_the_largest_likelihood_of_the_known_cells():
    dataset = numbers_with_gaps(40)
    network, _ = fit_with_gaps(NUMBERS, dataset, 2000)
    first, second, third = network.linears
    found = np.array(
        [
            *(its.intercept for its in network.linears),
            *second.weights,
            *third.weights,
            *(np.log(its.deviation) for its in network.linears),
        ]
    )
    best = minimize(lambda x: -observed_log_likelihood(x, dataset), found + 0.1, method="BFGS")
    assert observed_log_likelihood(found, dataset) == pytest.approx(-best.fun, abs=1e-5)
    assert found == pytest.approx(best.x, abs=2e-3)
    assert first.deviation > 0
