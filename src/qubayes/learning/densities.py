"""Densities of numbers inside the intervals that they were cut into.

With them the likelihood of a network of intervals is a density of the numbers. Then two and ten
intervals can be compared, and intervals with a Gaussian network: a probability alone is largest for
a single interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.intervals import Intervals
from ..foundation.arrays import Floats


@dataclass(frozen=True, slots=True)
class Density:
    """Numbers are uniform in an inner interval, and exponential in the two outer ones."""

    bounds: Floats  # between the intervals, ascending
    below: float  # mean distance from the first bound
    above: float  # mean distance from the last bound

    def logarithms(self, numbers: Floats) -> Floats:
        """Return the logarithm of the density of each number inside its interval."""
        first, last = self.bounds[0], self.bounds[-1]
        found: Floats = np.empty(len(numbers))
        low = numbers < first
        high = numbers >= last
        inner = ~(low | high)
        found[low] = -(first - numbers[low]) / self.below - np.log(self.below)
        found[high] = -(numbers[high] - last) / self.above - np.log(self.above)
        place = np.searchsorted(self.bounds, numbers[inner], side="right")
        found[inner] = -np.log(np.diff(self.bounds)[place - 1])
        return found


def density_of(states: Sequence[str], numbers: Floats) -> Density:
    """Return the density that fits the numbers of a column, whose states are intervals."""
    bounds = np.array(Intervals(states).bounds)
    span = float(np.ptp([*numbers, *bounds])) or 1.0
    below = _mean_distance(bounds[0] - numbers[numbers < bounds[0]], span)
    above = _mean_distance(numbers[numbers >= bounds[-1]] - bounds[-1], span)
    return Density(bounds, below, above)


def _mean_distance(distances: Floats, span: float) -> float:
    """Return the mean, or the span of all numbers where there are none; never near 0."""
    mean = float(distances.mean()) if len(distances) else span
    return max(mean, 1e-9 * span)
