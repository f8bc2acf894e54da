"""What all tests start from."""

import signal

import pytest

from qubayes.data import text

# A shell starts what runs in its background with interrupts ignored, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", params=[5, text._BLOCK])
def blocks_of_any_size(request):
    """Read text tables in blocks of a few bytes, then in blocks of the usual size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_BLOCK", request.param)
        yield
