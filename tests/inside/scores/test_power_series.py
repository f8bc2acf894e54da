"""The series of log gamma at small priors."""

import numpy as np

from qubayes.scores.sums import SERIES, SMALL_PRIOR, power_series


def test_the_power_series_is_exact_to_double_precision():
    from scipy.special import gammaln

    series = power_series(1001)
    counts = np.arange(1, 1001)
    for prior in (SMALL_PRIOR, SMALL_PRIOR / 3, 1e-6, 1e-12):
        got = (series[1:] * prior ** np.arange(SERIES)).sum(axis=1)
        want = gammaln(counts + prior) - gammaln(1 + prior)
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)
