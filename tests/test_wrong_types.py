"""What a user hands over by mistake is answered with what was found and what is expected, at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import irtaudit as ia
from irtaudit.dimensionality.saturation import saturation

CELLS = np.array([[0, 1, 1, 0], [1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 0, 1], [0, 1, 0, 0]])
MATRIX = ia.ResponseMatrix.from_array(CELLS)
SPEC = ia.ModelSpec.unidimensional("2pl")
WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "fit: array": (lambda: ia.fit(CELLS, SPEC), ia.DataError, r"matrix is a ndarray of shape \(5, 4\)"),
    "fit: frame": (lambda: ia.fit(pd.DataFrame(CELLS), SPEC), ia.DataError, "matrix is a DataFrame of shape"),
    "fit: name": (lambda: ia.fit(MATRIX, "2pl"), ia.PlanError, "a model is '2pl'; expected a ModelSpec"),
    "fit: splits": (lambda: ia.fit(MATRIX, SPEC, splits="x"), ia.PlanError, "splits is 'x'; expected Splits"),
    "fit: mask": (lambda: ia.fit(MATRIX, SPEC, CELLS[None] == 1), ia.PlanError, "splits is a ndarray"),
    "fit: preset": (lambda: ia.fit(MATRIX, SPEC, preset=[]), ia.PlanError, r"preset is \[\]; expected paper"),
    "fit: device": (lambda: ia.fit(MATRIX, SPEC, device=None), ia.PlanError, "device is None; expected auto"),
    "fit: store": (lambda: ia.fit(MATRIX, SPEC, store=3), ia.PlanError, "store is 3; expected the path"),
    "fit: progress": (
        lambda: ia.fit(MATRIX, SPEC, progress=1),
        ia.PlanError,
        "progress is 1; expected a func",
    ),
    "fit_all: one": (lambda: ia.fit_all(MATRIX, SPEC), ia.PlanError, "specs is a ModelSpec; expected a list"),
    "screen: array": (lambda: ia.screen(CELLS), ia.DataError, "matrix is a ndarray"),
    "make_splits: array": (lambda: ia.make_splits(CELLS), ia.DataError, "matrix is a ndarray"),
    "splits of an array": (
        lambda: ia.make_splits(MATRIX).training(CELLS),
        ia.DataError,
        "matrix is a ndarray",
    ),
    "names for tables": (
        lambda: ia.ResponseMatrix(CELLS, ("a",), ("b",)),
        ia.DataError,
        r"items is \('a',\)",
    ),
    "no tables": (
        lambda: ia.ResponseMatrix(CELLS, None, None),
        ia.DataError,
        "items is None; expected a Data",
    ),
    "ragged": (lambda: ia.ResponseMatrix.from_array([[1], [1, 0]]), ia.DataError, "different lengths"),
    "one name": (
        lambda: ia.ResponseMatrix.from_array(CELLS, items="abcd"),
        ia.DataError,
        "items is 'abcd'; expected names",
    ),
    "a number of names": (
        lambda: ia.ResponseMatrix.from_array(CELLS, items=4),
        ia.DataError,
        "items is 4; expected names",
    ),
    "compare: list": (lambda: ia.compare([1]), ia.PlanError, r"fits is \[1\]; expected a dict of"),
    "compare: values": (lambda: ia.compare({"a": 1}), ia.PlanError, "fit 'a' is 1; expected a FitResult"),
    "baselines: no splits": (
        lambda: ia.additive_baselines(MATRIX, None),
        ia.PlanError,
        "splits is None; expected Splits",
    ),
    "baselines: array": (
        lambda: ia.additive_baselines(CELLS, ia.make_splits(MATRIX)),
        ia.DataError,
        "matrix is a ndarray",
    ),
    "merge: list": (lambda: ia.merge_small_factors(["a", "b"]), ia.DataError, r"labels is \['a', 'b'\]"),
    "load_fit": (lambda: ia.load_fit(None), ia.PlanError, "path is None; expected the path"),
    "load_fit: NUL": (lambda: ia.load_fit("a\0b"), ia.PlanError, r"path is 'a\\x00b', which holds a NUL"),
    "save_fit": (
        lambda: ia.save_fit(MATRIX, "x"),
        ia.PlanError,
        "fit is ResponseMatrix.*; expected what irtaudit.fit ret",
    ),
    "score": (
        lambda: ia.score(None, MATRIX),
        ia.PlanError,
        "fit is None; expected what irtaudit.fit returns",
    ),
    "read_responses": (lambda: ia.read_responses(None), ia.PlanError, "path is None; expected the path"),
    "read_responses: array": (lambda: ia.read_responses(CELLS), ia.PlanError, "path is a ndarray"),
    "read_responses: NUL": (lambda: ia.read_responses("a\0b"), ia.PlanError, "NUL character"),
    "read_responses: items": (
        lambda: ia.read_responses(pd.DataFrame({"model": ["x", "y"], "i": [0, 1], "j": [1, 0]}), items=3),
        ia.PlanError,
        "items is 3; expected the path",
    ),
    "read_test_masks": (lambda: ia.read_test_masks(None, MATRIX), ia.PlanError, "path is None"),
    "read_test_masks: array": (lambda: ia.read_test_masks(Path("x"), CELLS), ia.DataError, "matrix is a nd"),
    "read_helm": (lambda: ia.read_helm(None), ia.PlanError, "folder is None; expected the path"),
    "read_logs": (lambda: ia.read_logs(None), ia.PlanError, "path is None; expected the path"),
    "responses_from_logs": (lambda: ia.responses_from_logs("x"), ia.DataError, "logs is 'x'; expected Logs"),
    "write_responses": (lambda: ia.write_responses(CELLS, "x"), ia.DataError, "matrix is a ndarray"),
    "write_report": (lambda: ia.write_report(None, "x"), ia.PlanError, "sections is None; expected a list"),
    "write_audit": (
        lambda: ia.write_audit(None, "x"),
        ia.PlanError,
        "result is None; expected an AuditResult",
    ),
    "run_audit": (lambda: ia.run_audit(CELLS), ia.DataError, "matrix is a ndarray"),
    "run_audit: one model": (
        lambda: ia.run_audit(MATRIX, models="unidimensional_2pl"),
        ia.PlanError,
        "models is",
    ),
    "run_audit: factors": (
        lambda: ia.run_audit(MATRIX, factors="kind"),
        ia.PlanError,
        "factors is 'kind'; exp",
    ),
    "run_audit: claim": (
        lambda: ia.run_audit(MATRIX, claim=None),
        ia.PlanError,
        "claim is None; expected the r",
    ),
    "run_audit: splits": (
        lambda: ia.run_audit(MATRIX, splits=5),
        ia.PlanError,
        "splits is 5; expected Splits",
    ),
    "run_audit: seed": (
        lambda: ia.run_audit(MATRIX, seed=True),
        ia.PlanError,
        "seed is True; expected a whole",
    ),
    "run_audit: restarts": (lambda: ia.run_audit(MATRIX, n_restarts=0), ia.PlanError, "n_restarts is 0; exp"),
    "run_audit: preset": (
        lambda: ia.run_audit(MATRIX, preset=[]),
        ia.PlanError,
        r"preset is \[\]; expected pap",
    ),
    "run_audit: out": (lambda: ia.run_audit(MATRIX, out=3), ia.PlanError, "out is 3; expected the path"),
    "audit_dif: levels": (
        lambda: ia.audit_dif(MATRIX, group="kind", levels="ab"),
        ia.PlanError,
        "levels is 'ab'; expected two values",
    ),
    "audit_dif: fit": (
        lambda: ia.audit_dif(MATRIX, MATRIX, group="kind", levels=("a", "b")),
        ia.PlanError,
        "fit is ResponseMatrix.*; expected what irtaudit.fit returns",
    ),
    "audit_dif": (
        lambda: ia.audit_dif(CELLS, group="kind", levels=("a", "b")),
        ia.DataError,
        "matrix is a ndarray",
    ),
    "saturation: one": (lambda: saturation(MATRIX), ia.DataError, "matrices is .*; expected a dict"),
    "saturation: array": (lambda: saturation({"a": CELLS}), ia.DataError, "data set 'a' is a ndarray"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_type_is_named_with_what_is_expected(case: str) -> None:
    call, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        call()


WHOLE = ("n_restarts", "seed", "workers")


@pytest.mark.parametrize("option", WHOLE)
def test_whole_numbers_are_no_bools_and_may_be_numpys(option: str) -> None:
    plain = {"n_restarts": 2, "seed": 3, "workers": 1, "preset": "quick"}
    with pytest.raises(ia.PlanError, match=f"{option} is True; expected a whole number"):
        ia.fit(MATRIX, SPEC, **{option: True})
    given = ia.fit(MATRIX, SPEC, **plain | {option: np.int64(plain[option])})
    pd.testing.assert_frame_equal(given.restarts, ia.fit(MATRIX, SPEC, **plain).restarts)
    assert type(given.seed) is int
