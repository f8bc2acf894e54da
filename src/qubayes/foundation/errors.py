"""User errors. A message says what was given, what is allowed and what to do."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

_as_flags = False  # whether messages name options as the command line does


class QubayesError(ValueError):
    """Bad input. The command line prints it as one line and exits with 1."""


class NoResultError(QubayesError):
    """Ctrl-C ended a search before there was a result. The command line exits with 130."""


class DataError(QubayesError):
    """The data cannot be used as they are: missing values, one column, names that repeat."""


class FormatError(QubayesError):
    """A file does not have the format of its ending, or a format cannot hold a value."""


class ConstraintError(QubayesError):
    """Forbidden edges, required edges and tiers contradict each other or name unknown variables."""


class SettingError(QubayesError):
    """A setting lies outside what is allowed."""


class TooLargeError(QubayesError):
    """A result does not fit into the memory of this machine."""


class MissingPackageError(QubayesError):
    """An optional package is not installed."""


class ServiceError(QubayesError):
    """A network service refused, failed, or gave an answer that its interface does not allow."""


def some(names: Iterable[str], most: int = 5) -> str:
    """Return the first few names for a message.

    >>> some("abc", most=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    return ", ".join(map(repr, names[:most])) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def option(name: str, value: object = None) -> str:
    """Return an option as the caller writes it: `bins=3` in Python, `--bins 3` on the command line.

    >>> option("bins", {"age": 3}), option("run_dir")
    ("bins={'age': 3}", 'run_dir')
    >>> with flags_in_messages():
    ...     option("bins", {"age": 3}), option("ignore", ["id"]), option("run_dir")
    ('--bins age=3', '--ignore id', '--run-dir')
    """
    if not _as_flags:
        return name if value is None else f"{name}={value!r}"
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, Mapping):
        value = ",".join(f"{key}={item}" for key, item in value.items())
    elif isinstance(value, list):
        value = ",".join(map(str, value))
    return flag if value is None else f"{flag} {value}"


@contextmanager
def flags_in_messages() -> Iterator[None]:
    """Let messages inside the block name options as flags of the command line."""
    global _as_flags
    before, _as_flags = _as_flags, True
    try:
        yield
    finally:
        _as_flags = before
