"""Raw results: one JSON line for each trial, written as it ends. Tables and plots are made from them afterwards."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import FormatError, QubayesError
from .trial import Trial

Record = dict[str, Any]


class Store:
    """The records in a file; the last one of a trial counts. A line that was cut off is passed over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records: dict[str, Record] = {}
        if path.exists():
            for record in _lines(path):
                self._records[Trial(**record["trial"]).key] = record
        else:
            path.parent.mkdir(parents=True, exist_ok=True)

    def __contains__(self, trial: Trial) -> bool:
        return "result" in self._records.get(trial.key, {})

    def add(self, record: Record) -> None:
        """Write the record behind the others, on the disk when this returns."""
        self._records[Trial(**record["trial"]).key] = record
        try:
            self._append(json.dumps(record).encode() + b"\n")
        except OSError as error:
            raise QubayesError(
                f"cannot write {self._path}: {error.strerror}; make room and run again: it goes on from the last trial"
            ) from error

    def _append(self, line: bytes) -> None:
        with self._path.open("ab") as file:
            if file.tell() and not _ends_with_newline(self._path):
                line = b"\n" + line  # a line was cut off when a run was killed
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def results(self, **wanted: object) -> list[Record]:
        """The records with a result whose trial has these values, in the order of their trials."""
        found = [
            record
            for record in self._records.values()
            if "result" in record and all(record["trial"].get(key) == value for key, value in wanted.items())
        ]
        return sorted(found, key=lambda record: (record["trial"]["seed"], json.dumps(record["trial"])))

    def result(self, trial: Trial) -> dict[str, Any]:
        """What was measured in the trial."""
        found: dict[str, Any] = self._records[trial.key]["result"]
        return found

    def errors(self) -> list[Record]:
        """The records of trials that failed."""
        return [record for record in self._records.values() if "error" in record]


def _lines(path: Path) -> Iterator[Record]:
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            record = json.loads(line)
            Trial(**record["trial"])
        except (ValueError, TypeError, KeyError, RecursionError):
            if number == 1 and not line.startswith(b"{"):
                raise FormatError(f"{path}: no file of results; give another --results folder") from None
            continue
        yield record


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
