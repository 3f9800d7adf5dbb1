"""Does a benchmark score support the reading people give it? A psychometric audit of AI-model scores.

The public names load when first used (PEP 562), so that ``import irtaudit`` imports neither torch nor pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from irtaudit._version import __version__ as __version__

if TYPE_CHECKING:
    from irtaudit.errors import ConvergenceWarning as ConvergenceWarning
    from irtaudit.errors import DataError as DataError
    from irtaudit.errors import FitError as FitError
    from irtaudit.errors import IrtAuditError as IrtAuditError
    from irtaudit.errors import PlanError as PlanError
    from irtaudit.errors import StorageError as StorageError

_HOMES = {
    "ConvergenceWarning": "irtaudit.errors",
    "DataError": "irtaudit.errors",
    "FitError": "irtaudit.errors",
    "IrtAuditError": "irtaudit.errors",
    "PlanError": "irtaudit.errors",
    "StorageError": "irtaudit.errors",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'irtaudit' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
