"""Ends the process group at a chosen change of a file: on the path of modules for the kills that aim at writes.

AIM_FOLDER: whose files count. AIM_COUNT: a file that gets a byte at each change that is about to be
    made, by this process or its children. AIM_AT: the number of the change that the group does not
    survive. AIM_DELAY: seconds between the two, to end in the middle of it."""

import os
import signal
import sys
import threading
import time

_FOLDER, _COUNT = os.environ.get("AIM_FOLDER", ""), os.environ.get("AIM_COUNT", "")
_AT, _DELAY = int(os.environ.get("AIM_AT", "0")), float(os.environ.get("AIM_DELAY", "0"))
_OF_PATHS = {"open", "os.chmod", "os.rename", "os.remove", "tempfile.mkstemp"}


def _end() -> None:
    time.sleep(_DELAY)
    os.killpg(0, signal.SIGKILL)


def _look(event: str, arguments: tuple) -> None:
    if event not in _OF_PATHS and event != "fcntl.flock":
        return
    place = str(arguments[0])
    if event == "open" and not (
        isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    ):
        return
    if event in _OF_PATHS and not place.startswith(_FOLDER):
        return
    handle = os.open(_COUNT, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, b".")
    changes = os.fstat(handle).st_size
    os.close(handle)
    if changes == _AT:
        threading.Thread(target=_end).start() if _DELAY else _end()


if _FOLDER and _COUNT:
    sys.addaudithook(_look)
