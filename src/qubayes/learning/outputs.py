"""Files that a run of `learn` leaves: the network, the report, the trace of the search, the QUBO."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import check_places, ending
from ..foundation.progress import OnProgress, silent
from ..foundation.workers import Workers
from ..network import check_network_path, write_network
from .folder import RUN_FILES, RunFolder
from .learned import Learned

ENDINGS = {"report": (".html", ".htm"), "trace": (".csv",)}


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

    def write(
        self, learned: Learned, workers: Workers | None = None, on_progress: OnProgress = silent
    ) -> tuple[list[Path], QubayesError | None]:
        """Write the files; return those written, and why the first one that could not be written was not.

        A file that cannot be written keeps none of the others from being written.
        """
        writers: dict[str, Callable[[Path], None]] = {
            "network": lambda path: write_network(learned.network, path),
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
