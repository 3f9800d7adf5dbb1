"""Saved fits come back whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from panels import PAIRS, random_matrix

from irtaudit.data.splits import make_splits
from irtaudit.errors import DataError, StorageError
from irtaudit.irt.fit import fit
from irtaudit.irt.presets import Preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.saved import load_fit, save_fit
from irtaudit.irt.spec import ModelSpec
from irtaudit.irt.store import Outcomes, find_outcomes, prepare_folder, read_header, save_outcomes

TINY = Preset("tiny", 30, 0.1, "cosine", True)


@pytest.fixture(scope="module")
def fitted() -> FitResult:
    matrix = random_matrix(12, 9, missing=0.1)
    spec = ModelSpec.confirmatory("3pl", PAIRS)
    return fit(matrix, spec, make_splits(matrix, n_splits=2), n_restarts=3, preset=TINY, workers=1)


def test_a_result_survives_the_disk(fitted: FitResult, tmp_path: Path) -> None:
    save_fit(fitted, tmp_path / "fit.safetensors")
    again = load_fit(tmp_path / "fit.safetensors")
    for field in (
        "spec",
        "preset",
        "subjects",
        "items",
        "splits",
        "train_cells",
        "test_cells",
        "seed",
        "warnings",
    ):
        assert getattr(again, field) == getattr(fitted, field)
    for frame in ("restarts", "heldout", "abilities", "item_parameters", "factor_correlations"):
        pd.testing.assert_frame_equal(getattr(again, frame), getattr(fitted, frame), check_exact=True)
    np.testing.assert_array_equal(again.probabilities(1, 2), fitted.probabilities(1, 2))


def test_damage_is_refused_wherever_it_is(fitted: FitResult, tmp_path: Path) -> None:
    path = tmp_path / "fit.safetensors"
    save_fit(fitted, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 60):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        with pytest.raises(DataError):
            load_fit(path)
    for length in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            load_fit(path)


def test_a_damaged_store_file_counts_as_absent(tmp_path: Path) -> None:
    path = save_outcomes(tmp_path, ["one", "two"], _outcomes(2))
    found = find_outcomes(tmp_path, ["two", "three"])
    assert list(found) == ["two"]
    np.testing.assert_array_equal(found["two"].loc, _outcomes(2).loc[1:])
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    (tmp_path / "foreign.safetensors").write_bytes(b"not a tensor in sight")
    assert find_outcomes(tmp_path, ["one", "two"]) == {}
    assert find_outcomes(tmp_path / "nowhere", ["one"]) == {}


def test_a_missing_file_and_a_folder_in_the_way_are_storage_errors(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nothing"):
        read_header(tmp_path / "nothing.safetensors")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="file"):
        prepare_folder(tmp_path / "file")
    with pytest.raises(StorageError, match="file"):
        save_outcomes(tmp_path / "file", ["one"], _outcomes(1))


def test_a_store_file_is_not_a_result(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a saved fit result"):
        load_fit(save_outcomes(tmp_path, ["one"], _outcomes(1)))


def test_a_save_leaves_nothing_but_its_file(tmp_path: Path) -> None:
    target = tmp_path / "fits" / "deeper"
    prepare_folder(target)
    save_outcomes(target, ["one"], _outcomes(1))
    assert [path.suffix for path in target.iterdir()] == [".safetensors"]


def _outcomes(n: int) -> Outcomes:
    values = np.arange(n * 4.0).reshape(n, 4)
    row = np.arange(float(n))
    whole = np.arange(n)
    packed = (values.astype(np.float32),) * 3
    return Outcomes(*packed, values, row, row, row, whole, whole, np.ones(n, dtype=bool))
