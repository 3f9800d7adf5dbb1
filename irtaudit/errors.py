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

from numbers import Integral
from typing import Any

LONGEST = 60
"""Characters of a value that a message shows."""


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


def check_kind(
    what: str,
    value: object,
    kind: type | tuple[type, ...],
    expected: str,
    error: type[IrtAuditError] = PlanError,
) -> None:
    """Refuse a value of another type.

    Parameters
    ----------
    what : str
        The value's name in the call: ``matrix``.
    value : object
    kind : type or tuple of types
        What it may be.
    expected : str
        In words, with how to get one.
    error : type of IrtAuditError

    Raises
    ------
    IrtAuditError
        As `error`; it says what was found and what is expected.
    """
    if not isinstance(value, kind):
        raise error(f"{what} is {shown_value(value)}; expected {expected}.")


def check_whole(what: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """The value as a plain int, where it is a whole number of any type, numpy's too, and no bool.

    Raises
    ------
    PlanError
        When it is something else, below `least`, or above `most`.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"{least:,} to {most:,}"
        raise PlanError(f"{what} is {shown_value(value)}; expected a whole number, {bounds}.")
    return int(value)


def shown_value(value: object) -> str:
    """A value for a message: itself if it is short, else its type, with the shape where it has one."""
    shape, name = getattr(value, "shape", None), type(value).__name__
    kind = f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
    if isinstance(shape, tuple) and shape:
        return f"{kind} of shape {shape}"
    said = repr(value)
    return said if len(said) <= LONGEST and "\n" not in said else kind
