"""Errors that a user can mend. A message says what was given, what is allowed and what to do."""

from collections.abc import Iterable


class QubayesError(ValueError):
    """Bad input. The command line prints it as one line and exits with 1."""


class DataError(QubayesError):
    """The data cannot be used as they are: missing values, one column, names that repeat."""


class FormatError(QubayesError):
    """A file does not have the format of its ending, or a format cannot hold a value."""


class ConstraintError(QubayesError):
    """Forbidden edges, required edges and tiers that contradict each other or name unknown variables."""


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
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
