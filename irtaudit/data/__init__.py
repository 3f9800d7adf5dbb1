"""Responses and what is known about subjects and items: read, screened, split, written."""

from irtaudit.data.bundled import load_swebench_verified
from irtaudit.data.covariates import read_covariates
from irtaudit.data.describe import describe
from irtaudit.data.masks import read_test_masks
from irtaudit.data.read import read_responses, with_covariates
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.screen import Screened, merge_small_factors, missingness_warnings, screen
from irtaudit.data.splits import Splits, make_splits
from irtaudit.data.write import write_responses

__all__ = [
    "ResponseMatrix",
    "Screened",
    "Splits",
    "describe",
    "load_swebench_verified",
    "make_splits",
    "merge_small_factors",
    "missingness_warnings",
    "read_covariates",
    "read_responses",
    "read_test_masks",
    "screen",
    "with_covariates",
    "write_responses",
]
