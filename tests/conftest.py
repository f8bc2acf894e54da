"""Settings and fixtures of all tests."""

import importlib
import os
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


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """The folder of compiled kernels, which is empty."""
    monkeypatch.setattr("qubayes.foundation.jit.config.CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def without_plug_ins(monkeypatch):
    """As if no other package registered a solver."""
    monkeypatch.setattr("qubayes.search.run.entry_points", lambda group: [])


@pytest.fixture
def set_memory(monkeypatch):
    """Return a function that sets how many bytes this process may take (`ulimit -v`)."""

    def set_memory(limit):
        monkeypatch.setattr("qubayes.foundation.environment.address_limit", lambda: limit)

    return set_memory


@pytest.fixture
def calls_of(monkeypatch):
    """Return a function that lists the calls of a function, which still does its work."""

    def calls_of(home, name):
        original, calls = getattr(home, name), []

        def watched(*arguments, **more):
            calls.append((arguments, more))
            return original(*arguments, **more)

        monkeypatch.setattr(home, name, watched)
        return calls

    return calls_of


@pytest.fixture
def press_at(monkeypatch):
    """Return a function that presses Ctrl-C when one call of "module.function" begins, or ends."""

    def press_at(target, call=1, *, times=1, after=False):
        module, _, name = target.rpartition(".")
        home = importlib.import_module(module)
        original, calls = getattr(home, name), []

        def press():
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)

        def pressed(*arguments, **more):
            calls.append(name)
            due = len(calls) == call
            if due and not after:
                press()
            found = original(*arguments, **more)
            if due and after:
                press()
            return found

        monkeypatch.setattr(home, name, pressed)

    return press_at
