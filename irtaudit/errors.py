"""What irtaudit raises, as one small tree.

::

    IrtAuditError            exit code 2 unless said otherwise
    ├── DataError            the input cannot be read as what it was given as
    ├── PlanError            the plan, an option or a model name asks for something impossible
    ├── FitError             no restart of a model could be fitted
    └── StorageError         a disk or network operation failed (exit code 3)

    ConvergenceWarning       the numbers exist, but read them with the stated caution

Every message says what was found, what was expected, where, and what to do.
"""

from __future__ import annotations


class IrtAuditError(Exception):
    """Base of everything irtaudit raises on purpose.

    Attributes
    ----------
    exit_code : int
        Exit status of the command line when this error ends it.
    """

    exit_code = 2


class DataError(IrtAuditError):
    """The input cannot be read as what it was given as; names the file, line or cell."""


class PlanError(IrtAuditError):
    """An option, plan entry or model name asks for something impossible."""


class FitError(IrtAuditError):
    """No restart of a model could be fitted, after the stated retries."""


class StorageError(IrtAuditError):
    """A disk or network operation failed; nothing half-written is left behind."""

    exit_code = 3


class ConvergenceWarning(UserWarning):
    """An estimate exists but sits at a boundary or did not settle; also stored in the result."""
