"""What all tests start from."""

import signal

import pytest

from qubayes.data import text

# A shell starts what runs in its background with interrupts ignored, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", params=["small", "large"])
def of_any_size(request):
    """Text tables are read as small ones are, and then as large ones are."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "large":
            patch.setattr(text, "SMALL", -1)
        yield
