"""A client for the REST interface of the Digital Annealer: submit, poll, fetch, delete, cancel.

The key comes from an environment variable, is read anew for each request, and is kept nowhere: it appears in no repr,
no log and no error, not even when the service sends it back.
"""

import random
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints, frozen
from ..foundation.errors import FormatError, ServiceError, SettingError
from ..foundation.files import shown
from .digital_annealer import AnnealerParameters, AnnealerProblem, write_annealer_json
from .http_exchange import Address, Answer, NotSentError, TransportError, exchange, parse_address, read_key
from .terms import parsed_json

T = TypeVar("T")

KEY_VARIABLE = "QUBAYES_DA_API_KEY"
VERSIONS = ("v4", "v3c")

_JOB = re.compile(r"[A-Za-z0-9_-]{1,128}")
_UNFINISHED = ("Waiting", "Running")
_FINISHED = ("Done", "Canceled", "Error", "Deleted")
_REFUSED = (429, 503)  # the request was turned away, so nothing was begun
_PASSING = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the client waits and how often it tries again."""

    timeout: float = 60.0  # seconds without a sign of life; an answer must be complete in this time
    attempts: int = 6
    first_delay: float = 0.5  # seconds; doubles with each attempt, and with each poll up to `longest_delay`
    longest_delay: float = 30.0
    seed: int | None = None  # of the jitter; None: another one each time

    def __post_init__(self) -> None:
        """Refuse what would never end or never begin."""
        if not (self.timeout > 0 and self.attempts >= 1 and 0 <= self.first_delay <= self.longest_delay < 1e6):
            raise SettingError(f"{self}; timeout > 0, attempts >= 1 and 0 <= first_delay <= longest_delay are allowed")


class AnnealerSolutions(NamedTuple):
    """What the machine found, best first."""

    states: Bools  # (solutions, n) bits in the order of the problem
    energies: Floats  # (solutions,) of the objective
    penalties: Floats  # (solutions,) of the penalty polynomial
    frequencies: Ints  # (solutions,)


class _Request(NamedTuple):
    """What is asked of the service."""

    method: str
    path: str
    body: IO[bytes] | dict[str, Any] | None = None
    repeatable: bool = True  # doing it twice is as good as once


class DigitalAnnealer:
    """The service at an address such as `https://host/da`. HTTPS is required, except on this machine."""

    def __init__(
        self,
        base_url: str,
        *,
        version: str = "v4",
        key_variable: str = KEY_VARIABLE,
        patience: Patience | None = None,
        largest_answer: int = 1 << 28,  # bytes
    ) -> None:
        if version not in VERSIONS:
            raise SettingError(f"version {version!r}; one of {', '.join(VERSIONS)} is allowed")
        self._address: Address = parse_address(base_url)
        self._prefix = f"/{version}/async"
        self._key_variable = key_variable
        self._patience = patience or Patience()
        self._largest_answer = largest_answer
        self._random = random.Random(self._patience.seed)

    def __repr__(self) -> str:
        """The address and where the key comes from; never the key."""
        return f"DigitalAnnealer({self._address}, key from ${self._key_variable})"

    def submit(self, problem: AnnealerProblem, parameters: AnnealerParameters | None = None) -> str:
        """The identifier of a new job. The body goes through a temporary file, not through memory.

        Sent again only if the service surely did not take it: no connection, or turned away (429, 503).
        """
        read_key(self._key_variable)  # fail before a large body is made
        with tempfile.TemporaryFile() as body:
            write_annealer_json(problem, body, parameters)
            request = _Request("POST", "/qubo/solve", body, repeatable=False)
            return self._call(request, lambda answer: _checked_job(_text(answer, "job_id")))

    def poll(self, job: str) -> str:
        """The state of the job: Waiting, Running, Done, Canceled, Error or Deleted."""
        return self._call(_result_of("GET", job), _status)

    def fetch(self, job: str, bits: int) -> AnnealerSolutions:
        """The solutions of a finished job over so many bits."""
        found = self._call(_result_of("GET", job), lambda answer: _outcome(answer, bits))
        if isinstance(found, str):
            raise ServiceError(f"job {job} is {found.lower()}; fetch it when it is done")
        return found

    def wait(self, job: str, bits: int, time_limit: float) -> AnnealerSolutions:
        """The solutions of the job as soon as it is done; an error that names the job after `time_limit` seconds."""
        deadline = time.monotonic() + time_limit
        delay = self._patience.first_delay
        while True:
            found = self._call(_result_of("GET", job), lambda answer: _outcome(answer, bits))
            if not isinstance(found, str):
                return found
            if time.monotonic() + delay > deadline:
                raise ServiceError(f"job {job} is still {found.lower()} after {time_limit:g} s; fetch it later")
            time.sleep(delay)
            delay = min(max(2 * delay, 0.001), self._patience.longest_delay)

    def cancel(self, job: str) -> str:
        """The state of the job after the request to end it."""
        return self._call(_Request("POST", "/jobs/cancel", {"job_id": _checked_job(job)}), _status)

    def delete(self, job: str) -> None:
        """Remove the job and its result from the service. That it is gone already is no error on a second attempt."""
        self._call(_result_of("DELETE", job), lambda answer: None)

    def solve(
        self, problem: AnnealerProblem, parameters: AnnealerParameters | None = None, *, time_limit: float = 3600.0
    ) -> AnnealerSolutions:
        """Submit, wait, fetch, delete. When interrupted, the job is cancelled and deleted: it costs money.

        After an error the job stays, and the error names it, so that its result can still be fetched.
        """
        job = self.submit(problem, parameters)
        try:
            solutions = self.wait(job, problem.objective.bits, time_limit)
        except KeyboardInterrupt:
            with suppress(ServiceError):
                self.cancel(job)
            with suppress(ServiceError):
                self.delete(job)
            raise
        except ServiceError as error:
            raise error if job in str(error) else ServiceError(f"{error} (job {job})") from None
        with suppress(ServiceError):  # the solutions matter more than a job that could not be deleted
            self.delete(job)
        return solutions

    def _call(self, request: "_Request", understand: Callable[[dict[str, Any]], T]) -> T:
        """What the service answers, understood, after as many attempts as are safe and allowed."""
        for attempt in range(1, self._patience.attempts + 1):
            last = attempt == self._patience.attempts
            key = read_key(self._key_variable)
            try:
                answer = exchange(
                    self._address, request.method, self._prefix + request.path, key, request.body, self._bounds()
                )
            except TransportError as error:
                if last or not (request.repeatable or isinstance(error, NotSentError)):
                    raise ServiceError(_redacted(f"{self._address}: {error}", key)) from None
                self._pause(attempt, None)
                continue
            if answer.status in (_PASSING if request.repeatable else _REFUSED) and not last:
                self._pause(attempt, answer.retry_after)
                continue
            if request.method == "DELETE" and answer.status == 404 and attempt > 1:
                answer = Answer(200, None, b"{}")  # an earlier attempt did it, its answer was lost
            try:
                return understand(_document(answer, self._address))
            except ServiceError as error:
                told = _redacted(str(error), key)
            raise ServiceError(told)  # out here, so that it does not carry the other error, which may hold the key
        raise AssertionError("Patience has at least one attempt")

    def _bounds(self) -> tuple[float, int]:
        return self._patience.timeout, self._largest_answer

    def _pause(self, attempt: int, retry_after: float | None) -> None:
        """Twice as long each time, spread by up to a half so that clients do not come back together."""
        delay = min(self._patience.first_delay * 2.0 ** (attempt - 1), self._patience.longest_delay)
        delay *= 0.5 + 0.5 * self._random.random()
        if retry_after is not None:
            delay = max(delay, min(retry_after, self._patience.longest_delay))
        time.sleep(delay)


def _result_of(method: str, job: str) -> _Request:
    return _Request(method, f"/jobs/result/{_checked_job(job)}")


def _checked_job(job: str) -> str:
    """The identifier itself if it can stand in a path."""
    if not _JOB.fullmatch(job):
        raise ServiceError(f"{job[:40]!r} is no job of the Digital Annealer")
    return job


def _document(answer: Answer, address: Address) -> dict[str, Any]:
    """The JSON object of the answer; an error in one line for every other answer."""
    if 300 <= answer.status < 400:
        raise ServiceError(f"{address} redirects elsewhere, where the key is not sent; give the final address")
    try:
        document: Any = parsed_json(answer.body, "answer")
    except FormatError:
        document = None
    if answer.status >= 300:
        raise ServiceError(f"{address}: {_reason(answer.status, document)}")
    if not isinstance(document, dict):
        raise ServiceError(f"{address} answered something that is no JSON object; is the address right?")
    return document


def _reason(status: int, document: Any) -> str:
    """One line from an answer that says no."""
    hints = {401: "check the key", 403: "check the key", 404: "no such job or address", 429: "too many requests"}
    told = document.get("error", document) if isinstance(document, dict) else {}
    words = [_told(told[name]) for name in ("title", "message") if isinstance(told, dict) and told.get(name)]
    parts = [f"status {status}", *(["; ".join(words)] if words else []), *([hints[status]] if status in hints else [])]
    return ": ".join(parts)


def _redacted(text: str, key: str) -> str:
    """Printable, on one line, of bounded length, without the key."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line.replace(key, "***")[:400]


def _told(value: Any) -> str:
    return value if isinstance(value, str) else shown(value, 300)


def _text(answer: dict[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise ServiceError(f"the answer of the Digital Annealer lacks {name}")
    return value


def _status(answer: dict[str, Any]) -> str:
    status = _text(answer, "status")
    if status not in (*_UNFINISHED, *_FINISHED):
        raise ServiceError(f"the Digital Annealer speaks of an unknown state {status[:40]!r}")
    return status


def _outcome(answer: dict[str, Any], bits: int) -> AnnealerSolutions | str:
    """The solutions in a final answer, checked; the state of the job in another answer."""
    status = _status(answer)
    if status in _UNFINISHED:
        return status
    found = answer.get("qubo_solution")
    if status != "Done" or not isinstance(found, dict):
        message = " ".join(_told(answer.get("message", "")).split())[:300]
        raise ServiceError(f"the job is {status.lower()} and has no solution{': ' if message else ''}{message}")
    solutions = found.get("solutions")
    if not isinstance(solutions, list):
        raise ServiceError("the answer of the Digital Annealer lacks a list of solutions")
    for solution in solutions:  # before there is room for them all: a short answer may list very many
        _check_bits(solution, bits)
    states = np.zeros((len(solutions), bits), np.bool_)
    for row, solution in zip(states, solutions, strict=True):
        _fill(row, solution["configuration"])
    energies = _column(solutions, "energy")
    order = np.argsort(energies, kind="stable")
    penalties, frequencies = _column(solutions, "penalty_energy"), _column(solutions, "frequency").astype(np.int64)
    return AnnealerSolutions(*(frozen(part[order]) for part in (states, energies, penalties, frequencies)))


def _check_bits(solution: Any, bits: int) -> None:
    configuration = solution.get("configuration") if isinstance(solution, dict) else None
    if not isinstance(configuration, dict) or len(configuration) != bits:
        raise ServiceError(f"a solution of the Digital Annealer does not hold {bits} bits")


def _fill(row: Bools, configuration: dict[str, Any]) -> None:
    """Set the bits from `configuration`; an error unless every bit is there exactly once."""
    for index, value in configuration.items():
        known = index.isascii() and index.isdigit() and len(index) <= 9 and int(index) < len(row)
        if not known or type(value) is not bool:
            raise ServiceError(f"a solution of the Digital Annealer sets {index[:20]!r} to {shown(value, 20)}")
        row[int(index)] = value
    if len({int(index) for index in configuration}) != len(row):
        raise ServiceError("a solution of the Digital Annealer sets a bit twice")


def _column(solutions: list[Any], name: str) -> Floats:
    values = [solution.get(name) for solution in solutions]
    if not all(type(value) in (int, float) and abs(value) < 2.0**63 for value in values):
        raise ServiceError(f"a solution of the Digital Annealer lacks the number {name}")
    return np.array(values, np.float64)
