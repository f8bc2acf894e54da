"""What all tests start from."""

import signal

# A shell starts what runs in its background with interrupts ignored, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
