"""Responses and what is known about subjects and items: read, screened, split."""

from irtaudit.data.bundled import load_swebench_verified
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.screen import Screened, merge_small_factors, missingness_warnings, screen
from irtaudit.data.splits import Splits, make_splits

__all__ = [
    "ResponseMatrix",
    "Screened",
    "Splits",
    "load_swebench_verified",
    "make_splits",
    "merge_small_factors",
    "missingness_warnings",
    "screen",
]
