"""The command line: what `qubayes` and `python -m qubayes` run."""

import os
import signal
from typing import NoReturn


def main() -> None:
    """Run the command line; Ctrl-C outside a command prints one line and exits with code 130."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    # a third of a second, in libraries that an exception may leave half loaded
    from .cli import main as run

    try:
        if signal.getsignal(signal.SIGINT) is _end:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        _end()
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)  # Python's own exit


def _end(*_: object) -> NoReturn:
    os.write(2, b"qubayes: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
