"""Does a benchmark score support the reading people give it? A psychometric audit of AI-model scores.

The public names load when first used (PEP 562), so that ``import irtaudit`` imports neither torch nor pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from irtaudit._version import __version__ as __version__

if TYPE_CHECKING:
    from irtaudit.audit import AuditResult as AuditResult
    from irtaudit.audit import run_audit as run_audit
    from irtaudit.data.bundled import load_swebench_verified as load_swebench_verified
    from irtaudit.data.helm import read_helm as read_helm
    from irtaudit.data.log_matrix import responses_from_logs as responses_from_logs
    from irtaudit.data.masks import read_test_masks as read_test_masks
    from irtaudit.data.read import read_responses as read_responses
    from irtaudit.data.read_logs import read_logs as read_logs
    from irtaudit.data.responses import ResponseMatrix as ResponseMatrix
    from irtaudit.data.screen import merge_small_factors as merge_small_factors
    from irtaudit.data.screen import screen as screen
    from irtaudit.data.splits import Splits as Splits
    from irtaudit.data.splits import make_splits as make_splits
    from irtaudit.data.write import write_responses as write_responses
    from irtaudit.dif.audit import audit_dif as audit_dif
    from irtaudit.dif.options import DifOptions as DifOptions
    from irtaudit.dif.result import DifResult as DifResult
    from irtaudit.dimensionality.baselines import additive_baselines as additive_baselines
    from irtaudit.dimensionality.compare import Comparison as Comparison
    from irtaudit.dimensionality.compare import compare as compare
    from irtaudit.dimensionality.gates import judge_with_gates as judge_with_gates
    from irtaudit.dimensionality.verdict import Verdict as Verdict
    from irtaudit.dimensionality.verdict import judge as judge
    from irtaudit.errors import ConvergenceWarning as ConvergenceWarning
    from irtaudit.errors import DataError as DataError
    from irtaudit.errors import FitError as FitError
    from irtaudit.errors import IrtAuditError as IrtAuditError
    from irtaudit.errors import PlanError as PlanError
    from irtaudit.errors import StorageError as StorageError
    from irtaudit.irt.fit import fit as fit
    from irtaudit.irt.fit import fit_all as fit_all
    from irtaudit.irt.result import FitResult as FitResult
    from irtaudit.irt.saved import load_fit as load_fit
    from irtaudit.irt.saved import save_fit as save_fit
    from irtaudit.irt.score import score as score
    from irtaudit.irt.spec import ModelSpec as ModelSpec
    from irtaudit.present import write_audit as write_audit
    from irtaudit.report.page import write_report as write_report
    from irtaudit.report.section import Section as Section

_HOMES = {
    "AuditResult": "irtaudit.audit",
    "Comparison": "irtaudit.dimensionality.compare",
    "ConvergenceWarning": "irtaudit.errors",
    "DataError": "irtaudit.errors",
    "DifOptions": "irtaudit.dif.options",
    "DifResult": "irtaudit.dif.result",
    "FitError": "irtaudit.errors",
    "FitResult": "irtaudit.irt.result",
    "IrtAuditError": "irtaudit.errors",
    "ModelSpec": "irtaudit.irt.spec",
    "PlanError": "irtaudit.errors",
    "ResponseMatrix": "irtaudit.data.responses",
    "Section": "irtaudit.report.section",
    "Splits": "irtaudit.data.splits",
    "StorageError": "irtaudit.errors",
    "Verdict": "irtaudit.dimensionality.verdict",
    "additive_baselines": "irtaudit.dimensionality.baselines",
    "audit_dif": "irtaudit.dif.audit",
    "compare": "irtaudit.dimensionality.compare",
    "fit": "irtaudit.irt.fit",
    "fit_all": "irtaudit.irt.fit",
    "judge": "irtaudit.dimensionality.verdict",
    "judge_with_gates": "irtaudit.dimensionality.gates",
    "load_swebench_verified": "irtaudit.data.bundled",
    "make_splits": "irtaudit.data.splits",
    "merge_small_factors": "irtaudit.data.screen",
    "read_helm": "irtaudit.data.helm",
    "read_logs": "irtaudit.data.read_logs",
    "read_responses": "irtaudit.data.read",
    "responses_from_logs": "irtaudit.data.log_matrix",
    "read_test_masks": "irtaudit.data.masks",
    "run_audit": "irtaudit.audit",
    "load_fit": "irtaudit.irt.saved",
    "save_fit": "irtaudit.irt.saved",
    "score": "irtaudit.irt.score",
    "screen": "irtaudit.data.screen",
    "write_audit": "irtaudit.present",
    "write_report": "irtaudit.report.page",
    "write_responses": "irtaudit.data.write",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'irtaudit' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
