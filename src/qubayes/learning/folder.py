"""A run folder: the result of every finished stage, so that a stopped run can be resumed.

`run.json` holds for each file a checksum of the data, settings and version that it was made from; a file with another
checksum is made again. Each file is whole or absent. A lock lets one run at a time use the folder.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from .. import __version__
from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import json_object, lock_folder, remove_strays, replacing

RUN_FILES = (
    "run.json",
    "run.lock",
    "candidates.qbc",
    "solution.json",
)  # and blocks, bootstrap samples

Result = TypeVar("Result")


class RunFolder:
    """The folder of one run; made if it does not exist, and locked inside `with`. Without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock: FileLock | None = None
        if path is None:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FormatError(f"cannot make the run folder {path}: {error.strerror}; choose another place") from error

    def __enter__(self) -> "RunFolder":
        if self.path is not None:
            self._lock = lock_folder(self.path)
            if self._lock is None:
                raise QubayesError(f"another run works in {self.path} now; wait for its end, or choose another folder")
            remove_strays(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def file(self, name: str) -> Path | None:
        """Return the path of the file of that name; None if nothing is kept."""
        return self.path / name if self.path else None

    def kept(
        self,
        name: str,
        depends_on: dict[str, Any],
        make: Callable[[], Result],
        read: Callable[[Path], Result],
        write: Callable[[Result, Path], None],
    ) -> Result:
        """The result in the file of that name if it was made from the same, else made now and written."""
        place = self.file(name)
        if place is None:
            return make()
        key = key_of(depends_on)
        if self._keys().get(name) == key and place.exists():
            try:
                return read(place)
            except QubayesError:
                pass  # damaged: as good as absent
        result = make()
        write(result, place)
        self._remember(name, key)
        return result

    def forget(self, name: str) -> None:
        """Mark the file of that name as unfinished: the next run makes it again."""
        if self.path:
            self._write({other: key for other, key in self._keys().items() if other != name})

    def note(self, name: str, depends_on: dict[str, Any]) -> None:
        """Remember under this name what the last run depended on."""
        if self.path and not self.noted(name, depends_on):
            self._remember(name, key_of(depends_on))

    def noted(self, name: str, depends_on: dict[str, Any]) -> bool:
        """Whether it was the same as now."""
        return self._keys().get(name) == key_of(depends_on)

    def _keys(self) -> dict[str, Any]:
        place = self.file("run.json")
        if place is None or not place.exists():
            return {}
        try:
            return json_object(place.read_bytes())
        except (QubayesError, OSError, ValueError):
            return {}

    def _remember(self, name: str, key: str) -> None:
        self._write({**self._keys(), name: key})

    def _write(self, keys: dict[str, Any]) -> None:
        place = self.file("run.json")
        assert place is not None
        with replacing(place) as file:
            json.dump(keys, file, indent=2)


def key_of(depends_on: dict[str, Any]) -> str:
    """A checksum of what a result was made from, and of this version."""
    text = json.dumps({"version": __version__, **depends_on}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
