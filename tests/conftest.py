"""Settings and fixtures of all tests."""

import signal

import pytest
from hypothesis import HealthCheck, settings

# `pytest --hypothesis-profile thorough` searches longer. A test that needs more multiplies the
# examples of the profile.
# folders of tests are overwritten by each example
_FIXTURES = [HealthCheck.function_scoped_fixture]
settings.register_profile("usual", deadline=None, max_examples=60, suppress_health_check=_FIXTURES)
settings.register_profile("fast", settings.get_profile("usual"), max_examples=10)
settings.register_profile("thorough", settings.get_profile("usual"), max_examples=1000)
settings.load_profile("usual")

# Files that need a browser, other packages, a cluster, or many processes.
SLOW = (
    "bench",
    "cluster",
    "faults",
    "jit",
    "load",
    "machine_pages",
    "manual",
    "memory",
    "network_peers",
    "report_page",
    "same_anywhere",
    "security",
)


def pytest_collection_modifyitems(items):
    """Mark the tests of slow files."""
    for item in items:
        if item.path.stem.removeprefix("test_") in SLOW:
            item.add_marker(pytest.mark.slow)


# A shell ignores interrupts in background processes, and their children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", params=[5, None])
def blocks_of_any_size(request):
    """Read text tables in blocks of a few bytes, then in blocks of the usual size."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            patch.setattr("qubayes.data.text._BLOCK", request.param)
        yield


@pytest.fixture
def set_clock(monkeypatch):
    """Return a function that sets the clock: of the process, or the `time` of one module."""

    def set_clock(clock, module=None):
        target = "time.perf_counter" if module is None else f"{module}.time"
        monkeypatch.setattr(target, clock)

    return set_clock
