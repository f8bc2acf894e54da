"""One request and its answer over HTTP, with bounds on time and size; redirects are not followed."""

import http.client
import ipaddress
import json
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from ..foundation.errors import ServiceError, SettingError

_BLOCK = 1 << 16


class TransportError(Exception):
    """No answer, or not a whole one. The message holds nothing that was sent."""


class NotSentError(TransportError):
    """No connection, so the service saw nothing."""


class Address(NamedTuple):
    """Where the service is."""

    secure: bool
    host: str
    port: int
    path: str  # without a slash at its end

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.path}"


class Answer(NamedTuple):
    """What came back."""

    status: int
    retry_after: float | None  # seconds
    body: bytes


def parse_address(url: str) -> Address:
    """The address, if a key may be sent there: HTTPS, or HTTP to this machine."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise SettingError(f"{url[:200]!r} is no address such as https://host/da") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or any(c <= " " or c == "\x7f" for c in url):
        raise SettingError(f"{url[:200]!r} is no address such as https://host/da")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise SettingError("the address of the service may hold no name, password, query or fragment")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise SettingError(f"http://{parts.hostname} would send the key unencrypted; use https")
    return Address(parts.scheme == "https", parts.hostname, port or _default(parts.scheme), parts.path.rstrip("/"))


def read_key(variable: str) -> str:
    """The key in the environment variable; an error that does not show it if it cannot be one."""
    key = os.environ.get(variable, "")
    if not key:
        raise SettingError(f"the environment variable {variable} is not set; put the key of the service there")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingError(f"the environment variable {variable} holds white space or signs that no key has")
    return key


def exchange(
    address: Address,
    method: str,
    path: str,
    key: str,
    body: IO[bytes] | dict[str, Any] | None,
    bounds: tuple[float, int],
) -> Answer:
    """The answer to one request. A body that is a file is sent from its beginning, in blocks.

    `bounds` are the seconds that may pass without progress, and in which an answer must be complete, and the largest
    size of an answer in bytes.
    """
    timeout, largest = bounds
    headers = {"X-Api-Key": key, "Accept": "application/json", "User-Agent": "qubayes"}
    content: IO[bytes] | bytes | None = json.dumps(body).encode() if isinstance(body, dict) else body
    if content is not None:
        headers["Content-Type"] = "application/json"
        headers["Content-Length"] = str(_size(content))
    connection = _connected(address, timeout)
    late = threading.Event()
    try:
        # The service may answer and close before it has read everything: then its answer is what counts.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, address.path + path, content, headers)
        with _watched(connection, timeout, late):
            return _answer(connection.getresponse(), largest)
    except (OSError, http.client.HTTPException, TransportError) as error:
        # The text of these errors may quote what the other side sent; their kind is enough.
        failure = str(error) if isinstance(error, TransportError) else f"the connection failed ({type(error).__name__})"
        if late.is_set() or isinstance(error, TimeoutError):
            failure = f"no whole answer within {timeout:g} s"
    finally:
        connection.close()
    raise TransportError(failure)  # out here, so that it does not carry the other error with it


def _connected(address: Address, timeout: float) -> http.client.HTTPConnection:
    connection: http.client.HTTPConnection
    if address.secure:
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(
            address.host, address.port, timeout=timeout, context=context, blocksize=_BLOCK
        )
    else:
        connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout, blocksize=_BLOCK)
    try:
        connection.connect()
    except (OSError, UnicodeError) as error:
        connection.close()
        reason = getattr(error, "verify_message", None) or getattr(error, "strerror", None) or type(error).__name__
        raise NotSentError(f"no connection: {reason}") from None
    return connection


@contextmanager
def _watched(connection: http.client.HTTPConnection, timeout: float, late: threading.Event) -> Iterator[None]:
    """End the connection when the time is up: an answer that drips would keep a time-out per read from striking."""
    timer = threading.Timer(timeout, _shut, (connection.sock, late))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shut(sock: socket.socket | None, late: threading.Event) -> None:
    late.set()
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _answer(response: http.client.HTTPResponse, largest: int) -> Answer:
    """The whole answer; an error if it is longer than allowed or ends early."""
    parts: list[bytes] = []
    total = 0
    while block := response.read1(_BLOCK):
        parts.append(block)
        total += len(block)
        if total > largest:
            raise ServiceError(f"the answer of the service is longer than {largest:,} bytes; ask for fewer solutions")
    if response.length:
        raise TransportError("the answer ends early")
    return Answer(response.status, _seconds(response.getheader("Retry-After")), b"".join(parts))


def _seconds(text: str | None) -> float | None:
    """The seconds of a Retry-After header; None if it names a date or nothing."""
    return float(text[:9]) if text and text.isascii() and text.isdigit() else None


def _size(content: IO[bytes] | bytes) -> int:
    if isinstance(content, bytes):
        return len(content)
    size = content.seek(0, os.SEEK_END)
    content.seek(0)
    return size


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _default(scheme: str) -> int:
    return 443 if scheme == "https" else 80
