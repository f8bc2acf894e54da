"""A client for the REST interface of the Digital Annealer: submit, poll, fetch, delete, cancel.

The key is read from an environment variable for each request and kept nowhere: no part of it of
four characters or more appears in a repr, log or error, not even if the service sends it back. Time
and size of an answer are bounded; redirects are not followed."""

import http.client
import ipaddress
import json
import os
import random
import re
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

import numpy as np

from ..foundation.arrays import Bools, Floats, Ints, frozen
from ..foundation.errors import FormatError, ServiceError, SettingError
from ..foundation.files import parse_json, shown
from .digital_annealer import AnnealerParameters, AnnealerProblem, digital_annealer_json

T = TypeVar("T")

KEY_VARIABLE = "QUBAYES_DA_API_KEY"
VERSIONS = ("v4", "v3c")

_BLOCK = 1 << 16
_PART = 4  # characters of the key that may not appear together
_LONGEST = 400  # characters of a message
_JOB = re.compile(r"[A-Za-z0-9_-]{1,128}")
_NO_JOB = "{!r} is not a job of the Digital Annealer"
_UNFINISHED = ("Waiting", "Running")
_FINISHED = ("Done", "Canceled", "Error", "Deleted")
_REFUSED = (429, 503)  # the service did not accept the request
_HINTS = {
    401: "check the key",
    403: "check the key",
    404: "no such job or address",
    429: "too many requests",
}
_PASSING = (429, 500, 502, 503, 504)  # may succeed later


@dataclass(frozen=True, slots=True)
class Patience:
    """Time-outs and retries of the client."""

    timeout: float = 60.0  # seconds without progress; an answer must be complete in this time
    attempts: int = 6
    # seconds; doubles with each attempt, and with each poll up to `longest_delay`
    first_delay: float = 0.5
    longest_delay: float = 30.0
    seed: int | None = None  # of the jitter; None: random

    def __post_init__(self) -> None:
        """Raise for values with which a request would never end or never begin."""
        if not (
            self.timeout > 0
            and self.attempts >= 1
            and 0 <= self.first_delay <= self.longest_delay < 1e6
        ):
            raise SettingError(
                "timeout > 0, attempts >= 1 and 0 <= first_delay <= longest_delay < 1e6 are "
                f"allowed; given: {self}"
            )


class AnnealerSolutions(NamedTuple):
    """Solutions of a job, best first."""

    states: Bools  # (solutions, n) bits in the order of the problem
    energies: Floats  # (solutions,) of the objective
    penalties: Floats  # (solutions,) of the penalty polynomial
    frequencies: Ints  # (solutions,)


class TransportError(Exception):
    """No answer, or an incomplete one. The message holds nothing that was sent."""


class NotSentError(TransportError):
    """No connection: the service received nothing."""


class Reply(NamedTuple):
    """An answer of the service."""

    status: int
    retry_after: float | None  # seconds
    body: bytes


class _Request(NamedTuple):
    """A request to the service."""

    method: str
    path: str
    body: IO[bytes] | dict[str, Any] | None = None
    repeatable: bool = True  # sending it twice has the effect of sending it once

    def content(self) -> tuple[bytes | IO[bytes] | None, dict[str, str]]:
        """Return the body as it is sent, a file at its beginning, and its headers."""
        if self.body is None:
            return None, {}
        body = json.dumps(self.body).encode() if isinstance(self.body, dict) else self.body
        size = len(body) if isinstance(body, bytes) else body.seek(0, os.SEEK_END)
        if not isinstance(body, bytes):
            body.seek(0)
        return body, {"Content-Type": "application/json", "Content-Length": str(size)}


class DigitalAnnealer:
    """The service at an address such as `https://host/da`.

    HTTPS is required, except on this machine."""

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
        self._address = parse_address(base_url)
        self._prefix = f"/{version}/async"
        self._key_variable = key_variable
        self._patience = patience or Patience()
        self._largest_answer = largest_answer
        self._random = random.Random(self._patience.seed)

    def __repr__(self) -> str:
        """Return the address and the variable of the key; never the key."""
        return f"DigitalAnnealer({self._address.geturl()}, key from ${self._key_variable})"

    def submit(self, problem: AnnealerProblem, parameters: AnnealerParameters | None = None) -> str:
        """Start a job and return its identifier.

        The body goes through a temporary file, not through memory.

        Sent again only if the service did not accept it: no connection, or status 429 or 503.
        """
        read_key(self._key_variable)  # fail before a large body is made
        with tempfile.TemporaryFile() as body:
            body.writelines(digital_annealer_json(problem, parameters))
            request = _Request("POST", "/qubo/solve", body, repeatable=False)
            return self._call(request, lambda answer: _checked_job(_text(answer, "job_id")))

    def poll(self, job: str) -> str:
        """Return the state of the job: Waiting, Running, Done, Canceled, Error or Deleted."""
        return self._call(self._result_of("GET", job), _status)

    def fetch(self, job: str, bits: int) -> AnnealerSolutions:
        """Return the solutions of a finished job of this many bits."""
        found = self._result(job, bits)
        if isinstance(found, str):
            raise self._error(f"job {job} is {found.lower()}; fetch it when it is done")
        return found

    def wait(self, job: str, bits: int, time_limit: float) -> AnnealerSolutions:
        """Return the solutions of the job once it is done.

        Raise after `time_limit` seconds, with its identifier."""
        deadline = time.monotonic() + time_limit
        delay = self._patience.first_delay
        while True:
            found = self._result(job, bits)
            if not isinstance(found, str):
                return found
            if time.monotonic() + delay > deadline:
                raise self._error(
                    f"job {job} is still {found.lower()} after {time_limit:g} s; fetch it later"
                )
            time.sleep(delay)
            delay = min(max(2 * delay, 0.001), self._patience.longest_delay)

    def cancel(self, job: str) -> str:
        """Cancel the job and return its state."""
        return self._call(_Request("POST", "/jobs/cancel", {"job_id": self._checked(job)}), _status)

    def delete(self, job: str) -> None:
        """Remove the job and its result from the service.

        On a second attempt it may be gone already."""
        self._call(self._result_of("DELETE", job), lambda answer: None)

    def solve(
        self,
        problem: AnnealerProblem,
        parameters: AnnealerParameters | None = None,
        *,
        time_limit: float = 3600.0,
    ) -> AnnealerSolutions:
        """Submit, wait, fetch, delete.

        An interrupt cancels and deletes the job, since it costs money.

        After an error the job stays, and the error names it: its result can still be fetched.
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
            raise error if job in str(error) else self._error(f"{error} (job {job})") from None
        # the solutions matter more than a job that could not be deleted
        with suppress(ServiceError):
            self.delete(job)
        return solutions

    def _call(self, request: "_Request", understand: Callable[[dict[str, Any]], T]) -> T:
        """Send the request and return `understand(answer)`.

        Retries only where a retry is safe, at most `attempts` times."""
        bounds = self._patience.timeout, self._largest_answer
        for attempt in range(1, self._patience.attempts + 1):
            last = attempt == self._patience.attempts
            key = read_key(self._key_variable)
            try:
                answer = exchange(
                    self._address, request._replace(path=self._prefix + request.path), key, bounds
                )
            except TransportError as error:
                if last or not (request.repeatable or isinstance(error, NotSentError)):
                    raise self._error(f"{self._address.geturl()}: {error}") from None
                self._pause(attempt, None)
                continue
            if answer.status in (_PASSING if request.repeatable else _REFUSED) and not last:
                self._pause(attempt, answer.retry_after)
                continue
            if request.method == "DELETE" and answer.status == 404 and attempt > 1:
                # an earlier attempt succeeded, its answer was lost
                answer = Reply(200, None, b"{}")
            try:
                return understand(_document(answer, self._address.geturl()))
            except ServiceError as error:
                redacted = self._error(str(error))
            raise redacted  # outside of `except`: the other error may hold the key
        raise AssertionError("Patience has at least one attempt")

    def _error(self, text: str) -> ServiceError:
        """Return the error to raise, without the key."""
        return ServiceError(_redacted(text, os.environ.get(self._key_variable, "")))

    def _result(self, job: str, bits: int) -> AnnealerSolutions | str:
        """Return the solutions of the job, or its state while it has none."""
        return self._call(self._result_of("GET", job), lambda answer: _outcome(answer, bits))

    def _result_of(self, method: str, job: str) -> _Request:
        return _Request(method, f"/jobs/result/{self._checked(job)}")

    def _checked(self, job: str) -> str:
        if not _JOB.fullmatch(job):
            raise self._error(_NO_JOB.format(job[:40]))
        return job

    def _pause(self, attempt: int, retry_after: float | None) -> None:
        """Sleep twice as long each time, with a jitter of up to a half."""
        delay = min(self._patience.first_delay * 2.0 ** (attempt - 1), self._patience.longest_delay)
        delay *= 0.5 + 0.5 * self._random.random()
        if retry_after is not None:
            delay = max(delay, min(retry_after, self._patience.longest_delay))
        time.sleep(delay)


def _checked_job(job: str) -> str:
    """Return the identifier; raise if it cannot be part of a path."""
    if not _JOB.fullmatch(job):
        raise ServiceError(_NO_JOB.format(job[:40]))
    return job


def _document(answer: Reply, address: str) -> dict[str, Any]:
    """Return the JSON object of the answer; raise an error of one line for any other answer."""
    if 300 <= answer.status < 400:
        raise ServiceError(
            f"{address} redirects elsewhere, where the key is not sent; give the final address"
        )
    try:
        document: Any = parse_json(answer.body)
    except FormatError:
        document = None
    if answer.status >= 300:
        error = document.get("error", document) if isinstance(document, dict) else {}
        found = []
        if isinstance(error, dict):
            found = [_text_of(error[name]) for name in ("title", "message") if error.get(name)]
        parts = f"status {answer.status}", "; ".join(found), _HINTS.get(answer.status, "")
        raise ServiceError(f"{address}: {': '.join(part for part in parts if part)}")
    if not isinstance(document, dict):
        raise ServiceError(f"{address} did not answer with a JSON object; check the address")
    return document


def _redacted(text: str, key: str) -> str:
    """Return the text on one line, printable, of bounded length, without any part of the key."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 10 * _LONGEST]).split())
    return _without(line, key)[:_LONGEST]


def _without(line: str, key: str) -> str:
    """Return the line with *** for each part of the key of four characters or more, in any case.

    Parts, not the whole key: what an answer says may be cut inside the key, by us or by the
    service."""
    if not key:
        return line
    size = min(_PART, len(key))
    escaped = key.replace("\\", "\\\\")
    forms = key, escaped, escaped.replace("'", "\\'"), escaped.replace('"', '\\"')  # by repr
    starts = {re.escape(form[i : i + size]) for form in forms for i in range(len(form) - size + 1)}
    pattern = rf"(?:(?={'|'.join(sorted(starts))}).)+.{{{size - 1}}}"
    return re.sub(pattern, "***", line, flags=re.ASCII | re.IGNORECASE)


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else shown(value, 300)


def _text(answer: dict[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise ServiceError(f"the answer of the Digital Annealer lacks {name}")
    return value


def _status(answer: dict[str, Any]) -> str:
    status = _text(answer, "status")
    if status not in (*_UNFINISHED, *_FINISHED):
        raise ServiceError(f"the Digital Annealer reports an unknown state {status[:40]!r}")
    return status


def _outcome(answer: dict[str, Any], bits: int) -> AnnealerSolutions | str:
    """Return the solutions in a final answer, or the state of the job in another answer."""
    status = _status(answer)
    if status in _UNFINISHED:
        return status
    found = answer.get("qubo_solution")
    if status != "Done" or not isinstance(found, dict):
        message = " ".join(_text_of(answer.get("message", "")).split())[:300]
        raise ServiceError(
            f"the job is {status.lower()} and has no solution{': ' if message else ''}{message}"
        )
    return _solutions(found.get("solutions"), bits)


def _solutions(solutions: object, bits: int) -> AnnealerSolutions:
    """Return the solutions of an answer, best first.

    Raise unless each solution sets every bit once and has its three numbers."""
    if not isinstance(solutions, list):
        raise ServiceError("the answer of the Digital Annealer lacks a list of solutions")
    for one in solutions:  # before the allocation: a short answer may list very many
        configuration = one.get("configuration") if isinstance(one, dict) else None
        if not isinstance(configuration, dict) or len(configuration) != bits:
            raise ServiceError(f"a solution of the Digital Annealer does not hold {bits} bits")
    states = np.zeros((len(solutions), bits), np.bool_)
    for state, one in zip(states, solutions, strict=True):
        _set_bits(state, one["configuration"])
    energies = _numbers(solutions, "energy")
    penalties = _numbers(solutions, "penalty_energy")
    frequencies = _numbers(solutions, "frequency").astype(np.int64)
    order = np.argsort(energies, kind="stable")
    return AnnealerSolutions(
        frozen(states[order]),
        frozen(energies[order]),
        frozen(penalties[order]),
        frozen(frequencies[order]),
    )


def _set_bits(state: Bools, configuration: dict[str, Any]) -> None:
    """Set the bits of a state from a mapping of as many indices to values."""
    for index, value in configuration.items():
        number = index.isascii() and index.isdigit() and len(index) <= 9
        if not number or int(index) >= len(state) or type(value) is not bool:
            raise ServiceError(
                f"a solution of the Digital Annealer sets {index[:20]!r} to {shown(value, 20)}"
            )
        state[int(index)] = value
    if len({int(index) for index in configuration}) != len(state):
        raise ServiceError("a solution of the Digital Annealer sets a bit twice")


def _numbers(solutions: Sequence[dict[str, Any]], name: str) -> Floats:
    """Return the number of this name in each solution."""
    values: list[Any] = [one.get(name) for one in solutions]
    if not all(type(value) in (int, float) and abs(value) < 2.0**63 for value in values):
        raise ServiceError(f"a solution of the Digital Annealer lacks the number {name}")
    return np.array(values, np.float64)


def parse_address(url: str) -> SplitResult:
    """Return the address; raise unless a key may be sent there.

    That is by HTTPS, or by HTTP to this machine."""
    try:
        parts = urlsplit(url.rstrip("/"))
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = None
    if not known or any(c <= " " or c == "\x7f" for c in url):
        raise SettingError(f"{url[:200]!r} ; an address such as https://host/da is needed")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise SettingError(
            "the address of the service may hold no name, password, query or fragment"
        )
    try:
        loopback = ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        loopback = parts.hostname == "localhost"
    if parts.scheme == "http" and not loopback:
        raise SettingError(f"http://{parts.hostname} would send the key unencrypted; use https")
    return parts


def read_key(variable: str) -> str:
    """Return the key in the environment variable.

    The error for a malformed one does not show it."""
    key = os.environ.get(variable, "")
    if not key:
        raise SettingError(
            f"the environment variable {variable} is not set; put the key of the service there"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingError(
            f"the environment variable {variable} holds white space or other characters that are "
            "not allowed"
        )
    return key


def exchange(address: SplitResult, request: _Request, key: str, bounds: tuple[float, int]) -> Reply:
    """Send one request and return the answer.

    A body that is a file is sent from its beginning, in blocks.

    `bounds` are the seconds without progress, in which an answer must also be complete, and its
    largest size in bytes."""
    timeout, largest = bounds
    body, headers = request.content()
    headers |= {"X-Api-Key": key, "Accept": "application/json", "User-Agent": "qubayes"}
    connection = _connected(address, timeout)
    sock, late = connection.sock, threading.Event()

    def shut() -> None:
        late.set()
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    # a slow answer may never reach the time-out of a single read
    watch = threading.Timer(timeout, shut)
    watch.daemon = True
    content = bytearray()
    try:
        # The service may answer and close the connection before it has read the body.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(request.method, address.path + request.path, body, headers)
        watch.start()
        response = connection.getresponse()
        while block := response.read1(_BLOCK):
            content += block
            if len(content) > largest:
                raise ServiceError(
                    f"the answer is longer than {largest:,} bytes; ask for fewer solutions"
                )
        if not response.length:
            delay = response.getheader("Retry-After") or ""  # seconds, or a date, which is ignored
            retry_after = float(delay[:9]) if delay.isascii() and delay.isdigit() else None
            return Reply(response.status, retry_after, bytes(content))
        failure = "the answer ends early"
    except (OSError, http.client.HTTPException) as error:
        # the text may quote what the other side sent
        failure = f"the connection failed ({type(error).__name__})"
        if isinstance(error, TimeoutError):
            late.set()
    finally:
        watch.cancel()
        connection.close()
    # Outside of `except`: without the other error as its context.
    raise TransportError(f"no complete answer within {timeout:g} s" if late.is_set() else failure)


def _connected(address: SplitResult, timeout: float) -> http.client.HTTPConnection:
    options: dict[str, Any] = {"timeout": timeout, "blocksize": _BLOCK}
    kind: type[http.client.HTTPConnection] = http.client.HTTPConnection
    if address.scheme == "https":
        kind, options["context"] = http.client.HTTPSConnection, ssl.create_default_context()
    connection = kind(address.hostname or "", address.port, **options)
    try:
        connection.connect()
    except (OSError, UnicodeError) as error:
        connection.close()
        reason = (
            getattr(error, "verify_message", None)
            or getattr(error, "strerror", None)
            or type(error).__name__
        )
        raise NotSentError(f"no connection: {reason}") from None
    return connection
