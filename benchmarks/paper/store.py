"""Raw results: one JSON line for each trial, written as it ends. Tables and plots are made from them afterwards."""

import json
import math
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from qubayes import FormatError, QubayesError

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
            if "result" in record
            and all(record["trial"].get(key) == value for key, value in wanted.items())
        ]
        return sorted(
            found, key=lambda record: (record["trial"]["seed"], json.dumps(record["trial"]))
        )

    def result(self, trial: Trial) -> dict[str, Any]:
        """What was measured in the trial."""
        found: dict[str, Any] = self._records[trial.key]["result"]
        return found

    def optima(self) -> dict[str, float]:
        """Scores that were proved optimal, by the name of the sample."""
        proofs = [
            record
            for record in self.results(kind="solve", approach="exact")
            if record["result"].get("proved")
        ]
        return {Trial(**record["trial"]).sample: record["result"]["score"] for record in proofs}

    def preparation(self, step: str) -> dict[str, float]:
        """Seconds of `identifying` or `formulating`, by the name of the sample."""
        found = self.results(kind="preparation")
        return {Trial(**record["trial"]).sample: record["result"][step] for record in found}

    def errors(self) -> list[Record]:
        """The records of trials that failed."""
        return [record for record in self._records.values() if "error" in record]


def _lines(path: Path) -> Iterator[Record]:
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            record = json.loads(line)
            fine = _is_record(record, Trial(**record["trial"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            if number == 1 and not line.startswith(b"{"):
                raise FormatError(
                    f"{path}: no file of results; give another --results folder"
                ) from None
            continue
        if fine:
            yield record


def _is_record(record: Record, trial: Trial) -> bool:
    """Whether it holds what the tables need of such a trial; what does not is as good as not measured."""
    texts = (trial.kind, trial.instance, trial.approach, trial.score)
    counts = (trial.max_parents, trial.seed, trial.rows, trial.columns or 0, trial.threads or 0)
    if not (
        all(type(text) is str for text in texts) and all(type(count) is int for count in counts)
    ):
        return False
    result = record.get("result")
    if not _is_figure(trial.seconds) or "result" not in record or not isinstance(result, dict):
        return (
            _is_figure(trial.seconds)
            and "result" not in record
            and isinstance(record.get("error"), str)
        )
    if trial.kind == "solve":
        # Without a limit it was measured before solvers had the times that the paper gives them.
        figures = _are_figures(result, "score", "empty_score", "ahead", "limit")
        return figures and _is_trace(result) and _are_statistics(record)
    if trial.kind == "preparation":
        return _are_figures(result, "identifying", "formulating")
    if trial.kind == "candidates":
        return _are_figures(result, "total", "seconds", "peak_mb")
    steps = () if trial.approach == "ogorman" else ("prepare", "cover", "assemble")
    bits = result.get("bits")
    return isinstance(bits, dict) and _are_figures(bits, "total") and _are_figures(result, *steps)


def _are_statistics(record: Record) -> bool:
    """Whether the scores of an annealer's states, where there are any, are numbers or none."""
    statistics, added = (
        record["result"].get("statistics", {}),
        record.get("before_annealing", {"score": 0.0}),
    )
    if not (
        isinstance(statistics, dict) and isinstance(added, dict) and _is_figure(added.get("score"))
    ):
        return False
    scores = [statistics.get(name) for name in ("raw_score", "repaired_score", "before_annealing")]
    return all(score is None or _is_figure(score) for score in scores)


def _is_trace(result: Record) -> bool:
    """Whether the trace is a list of (seconds, score), and the bound a number, which may be infinite."""
    trace, bound = result.get("trace"), result.get("bound")
    if not isinstance(trace, list) or not all(
        isinstance(point, list) and len(point) == 2 for point in trace
    ):
        return False
    return all(map(_is_figure, chain(*trace))) and (bound == math.inf or _is_figure(bound))


def _are_figures(values: Record, *names: str) -> bool:
    return all(_is_figure(values.get(name)) for name in names)


def _is_figure(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < 1e15  # type: ignore[arg-type]


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
