"""The time limit of our dimod samplers does not count the loading of kernels."""

import time

import dimod
import pytest

from qubayes.qubo.samplers import (
    DigitalAnnealingSampler,
    SimulatedAnnealingSampler,
    dimod_bridge,
)


@pytest.mark.parametrize(
    ("sampler", "load"),
    [(SimulatedAnnealingSampler, "load_sweeps"), (DigitalAnnealingSampler, "load_trial")],
)
def test_kernels_are_loaded_before_the_clock_starts(sampler, load, monkeypatch):
    monkeypatch.setattr(dimod_bridge, load, lambda kind: time.sleep(2.0))
    result = sampler().sample(
        dimod.BinaryQuadraticModel({"a": 1.0}, {}, 0.0, "BINARY"), num_reads=1, time_limit=0.1
    )
    assert sum(result.info["timing"].values()) < 1.5e9
