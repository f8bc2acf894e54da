"""Errors that a user can mend. Each message says what was given, what is allowed and what to do."""


class QubayesError(ValueError):
    """Bad input. The command line prints it as one line and exits with 1."""


class DataError(QubayesError):
    """The data cannot be used as they are: missing values, one column, names that repeat."""


class FormatError(QubayesError):
    """A file is not what its ending promises, or a format cannot hold what it was asked to."""


class ConstraintError(QubayesError):
    """Forbidden edges, required edges and tiers that contradict each other or name unknown variables."""


class SettingError(QubayesError):
    """A setting lies outside what is allowed."""


class TooLargeError(QubayesError):
    """The memory of this machine cannot hold what was asked for."""


class MissingPackageError(QubayesError):
    """An optional package is not installed."""


class ServiceError(QubayesError):
    """A service in the network refused, failed, or answered something else than its interface says."""
