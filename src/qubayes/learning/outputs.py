"""Files of a run of `learn`: its folder, from which it can be resumed, and its results."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from .. import __version__
from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import check_places, ending, json_object, lock_folder, remove_strays, replacing
from ..foundation.progress import OnProgress, silent
from ..foundation.workers import Workers
from ..network import Network, check_network_path, write_network
from .learned import Learned

ENDINGS = {"report": (".html", ".htm"), "trace": (".csv",)}
RUN_FILES = ("run.json", "run.lock", "candidates.qbc", "solution.json")  # and blocks, bootstrap samples

Result = TypeVar("Result")


class RunFolder:
    """The folder of one run: the result of every finished stage, so that a stopped run can be resumed.

    It is made if it does not exist, and locked inside `with`; without a path nothing is kept. `run.json` holds for each
    file a checksum of the data, settings and version that it was made from; a file with another checksum is made again.
    Each file is whole or absent.
    """

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
        """Return the result in the file of that name if it was made from the same, else make and write it now."""
        place = self.file(name)
        if place is None:
            return make()
        key = key_of(depends_on)
        if self._keys().get(name) == key and place.exists():
            try:
                return read(place)
            except QubayesError:
                pass  # damaged: made again
        result = make()
        write(result, place)
        self._write({**self._keys(), name: key})
        return result

    def forget(self, name: str) -> None:
        """Mark the file of that name as unfinished: the next run makes it again."""
        if self.path:
            self._write({other: key for other, key in self._keys().items() if other != name})

    def note(self, name: str, depends_on: dict[str, Any]) -> None:
        """Remember under this name what the last run depended on."""
        if self.path and not self.noted(name, depends_on):
            self._write({**self._keys(), name: key_of(depends_on)})

    def noted(self, name: str, depends_on: dict[str, Any]) -> bool:
        """Return whether the last run depended on the same."""
        return self._keys().get(name) == key_of(depends_on)

    def _keys(self) -> dict[str, Any]:
        place = self.file("run.json")
        if place is None or not place.exists():
            return {}
        try:
            return json_object(place.read_bytes())
        except (QubayesError, OSError, ValueError):
            return {}

    def _write(self, keys: dict[str, Any]) -> None:
        place = self.file("run.json")
        assert place is not None
        with replacing(place) as file:
            json.dump(keys, file, indent=2)


def key_of(depends_on: dict[str, Any]) -> str:
    """Return a checksum of what a result was made from, and of this version."""
    text = json.dumps({"version": __version__, **depends_on}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Outputs:
    """Paths of the files to write; None for what is not wanted."""

    network: Path | None = None  # the ending chooses the format
    report: Path | None = None
    trace: Path | None = None  # score over time
    qubo: Path | None = None  # the ending chooses the format

    def check(self, inputs: Iterable[Path | None] = (), run_dir: Path | None = None) -> None:
        """Raise if a file cannot be written or would replace another one. To be asked before long work."""
        if run_dir is not None:
            RunFolder(run_dir)  # is made: outputs may go there
            inputs = [*inputs, *(run_dir / name for name in RUN_FILES)]
        check_places([getattr(self, each.name) for each in fields(self)], inputs)
        if self.network is not None:
            check_network_path(self.network)
        for name, allowed in ENDINGS.items():
            path = getattr(self, name)
            if path is not None and path.suffix.lower() not in allowed:
                raise FormatError(f"the {name} {path} has another ending; give it the ending {allowed[0]}")
        if self.qubo is not None:
            from ..machines import ENDINGS as MODELS  # the QUBO wing is loaded only where it is needed

            if ending(self.qubo) not in MODELS:
                raise FormatError(f"{self.qubo} does not have the ending of a model; give one of {', '.join(MODELS)}")

    @staticmethod
    def _write_network(network: Network, path: Path) -> None:
        """Write the network; if that fails, write its graph as JSON beside it, so that it is not lost, and raise."""
        try:
            write_network(network, path)
        except QubayesError as error:
            beside = path.with_name(f"{path.name}.json")
            try:
                write_network(replace(network, tables=None), beside)
            except QubayesError:
                raise error from None
            raise type(error)(f"{error}; its graph is in {beside}") from None

    def write(
        self, learned: Learned, workers: Workers | None = None, on_progress: OnProgress = silent
    ) -> tuple[list[Path], QubayesError | None]:
        """Write the files; return those written, and why the first one that could not be written was not.

        A file that cannot be written keeps none of the others from being written.
        """
        writers: dict[str, Callable[[Path], None]] = {
            "network": lambda path: self._write_network(learned.network, path),
            "report": learned.report,
            "trace": learned.solution.write_trace,
            "qubo": lambda path: learned.write_qubo(path, workers, on_progress),
        }
        written: list[Path] = []
        failure: QubayesError | None = None
        for name, write in writers.items():
            path = getattr(self, name)
            try:
                if path is not None:
                    write(path)
                    written.append(path)
            except QubayesError as error:
                failure = failure or error
        return written, failure
