"""Saved fits come back whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from panels import PAIRS, random_matrix

from irtaudit.data.splits import make_splits
from irtaudit.errors import DataError, StorageError
from irtaudit.irt.fit import fit, fit_all
from irtaudit.irt.presets import Preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.saved import load_fit, save_fit
from irtaudit.irt.spec import ModelSpec
from irtaudit.irt.store import (
    Outcomes,
    find_outcomes,
    prepare_folder,
    read_arrays,
    read_header,
    save_outcomes,
    write_arrays,
)

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


@pytest.mark.parametrize("priors", ["hierarchical", "paper"])
@pytest.mark.parametrize("family", ["1pl", "2pl", "3pl"])
def test_every_kind_of_model_survives_the_disk(family: Any, priors: Any, tmp_path: Path) -> None:
    matrix = random_matrix(12, 9)
    specs = [
        ModelSpec.unidimensional(family, priors=priors),
        ModelSpec.confirmatory(family, PAIRS, priors=priors),
        *([ModelSpec.exploratory(family, 2, priors=priors)] if family != "1pl" else []),
    ]
    for fitted in fit_all(matrix, specs, n_restarts=1, preset=TINY, workers=1).values():
        again = load_fit(save_fit(fitted, tmp_path / "fit.safetensors"))
        assert (again.spec, again.heldout.shape) == (fitted.spec, (0, 4))
        pd.testing.assert_frame_equal(again.item_parameters, fitted.item_parameters, check_exact=True)


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


def test_a_store_file_that_no_run_writes_counts_as_absent(tmp_path: Path) -> None:
    path = save_outcomes(tmp_path, ["one", "two"], _outcomes(2))
    arrays, header = read_arrays(path)
    for fits in (None, 3, [[1]], ["one"], ["one", "two", "three"], {"one": 1}):
        write_arrays(path, arrays, header | {"fits": fits})
        assert find_outcomes(tmp_path, ["one", "two", "three"]) == {}
    write_arrays(path, arrays, {"format": header["format"]})
    assert find_outcomes(tmp_path, ["one"]) == {}
    for name in arrays:
        for changed in ({name: arrays[name][:1]}, {name: np.array(1.0)}, {"foreign": arrays[name]}):
            write_arrays(path, arrays | changed, header)
            assert find_outcomes(tmp_path, ["two"]) == {}
    write_arrays(path, arrays, header)
    assert list(find_outcomes(tmp_path, ["two"])) == ["two"]


def test_a_header_nested_beyond_reason_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "deep.safetensors"
    deep = {"header": '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}"}
    path.write_bytes(safetensors.numpy.save({"a": np.zeros(1)}, metadata=deep))
    with pytest.raises(DataError, match="not a saved fit"):
        load_fit(path)


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


def test_a_file_with_a_valid_checksum_is_checked_for_what_a_fit_is(fitted: FitResult, tmp_path: Path) -> None:
    path = save_fit(fitted, tmp_path / "fit.safetensors")
    arrays, header = read_arrays(path)
    sites = ("theta", "log_slope", "intercept", "logit_guess")
    hypers = ("slope_mean", "slope_scale", "intercept_mean", "intercept_scale", "factor_correlation")
    tensors = [f"{group}/{site}" for group in ("means", "sds") for site in sites]
    assert {*tensors, *(f"hypers/{name}" for name in hypers), "elbo_path"} == set(arrays)
    for name in arrays:
        _refused(path, {key: value for key, value in arrays.items() if key != name}, header, "lack ")
        _refused(path, arrays | {name: arrays[name][:1]}, header, name)
        _refused(path, arrays | {name: arrays[name][:, :2]}, header, name)
        _refused(path, arrays | {name: arrays[name].astype(int)}, header, f"{name} is int64")
        if name != "elbo_path":
            _refused(path, arrays | {name: arrays[name][..., None]}, header, name)
            _refused(path, arrays | {f"{name}_2": arrays[name]}, header, "have .*_2, which no fit")
    _refused(path, arrays | {"foreign": np.zeros(3)}, header, "have foreign, which no fit")
    for name in ("means/theta", "sds/intercept"):
        _refused(path, arrays | {name: arrays[name][:, :, :-1]}, header, name)


def test_a_rewritten_header_is_refused_or_gives_a_fit_that_works(tmp_path: Path) -> None:
    matrix = random_matrix(12, 9)
    spec = ModelSpec.from_pattern("3pl", [[1, 0]] * 4 + [[1, 1]] + [[0, 1]] * 4)
    fitted = fit(matrix, spec, make_splits(matrix, n_splits=2), n_restarts=3, preset=TINY, workers=1)
    path = save_fit(fitted, tmp_path / "fit.safetensors")
    arrays, header = read_arrays(path)
    refused = 0
    for rewritten in _rewritten(header):
        path.unlink()  # to replace a file takes longer than to write one
        write_arrays(path, arrays, rewritten)
        try:
            found = load_fit(path)
        except DataError:
            refused += 1
            continue
        assert found.abilities.shape == (12, 4)
        assert found.item_parameters.shape == (9, 8)
        assert found.probabilities(1, 2).shape == (12, 9)
        assert found.factor_correlations is not None
        assert {type(found.seed), type(found.data_sha256), type(found.predictor)} == {int, str}
    assert refused > 300


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"foreign": 1}, "header have foreign, which no fit"),
        ({"seed": -1}, "seed is -1"),
        ({"subjects": ["a"]}, r"means/theta is float32 of shape \(2, 3, 12, 3\), expected \(2, 3, 1, 3\)"),
        ({"items": ["a"]}, "names the factors of 9 items, but the matrix has 1"),
        ({"items": list("aabcdefgh")}, "items is empty, or a name stands in it twice"),
        ({"train_cells": [1]}, "train_cells is not of 2 splits"),
        ({"warnings": "none"}, "warnings is no list of text"),
        ({"spec": {}}, "missing .* required"),
        ({"preset": {"name": "x"}}, "missing .* required"),
        (
            {"heldout": {"columns": ["split"], "data": []}},
            "heldout lack brier, log_loss, log_loss_predictive",
        ),
    ],
)
def test_a_header_that_no_fit_has_is_told(
    fitted: FitResult, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = save_fit(fitted, tmp_path / "fit.safetensors")
    arrays, header = read_arrays(path)
    _refused(path, arrays, header | change, said)
    restarts = header["restarts"]
    at = restarts["columns"].index("selected")
    none = [[*row[:at], False, *row[at + 1 :]] for row in restarts["data"]]
    _refused(path, arrays, header | {"restarts": restarts | {"data": none}}, "select one of each split")
    for data in (restarts["data"][:-1], restarts["data"][::-1], []):
        _refused(path, arrays, header | {"restarts": restarts | {"data": data}}, "no fit as this version")


def _rewritten(value: Any) -> Iterator[Any]:
    """The JSON value with one thing changed in it, at any depth, wherever that can be."""
    yield from (None, -1, 2.5, "x", [[1]], {"x": 1}, True)
    if isinstance(value, dict):
        for key, inside in value.items():
            yield {name: kept for name, kept in value.items() if name != key}
            yield from (value | {key: changed} for changed in _rewritten(inside))
    if isinstance(value, list) and value:
        yield value[:-1]
        yield [*value, value[0]]
        yield value[::-1]
        yield from ([changed, *value[1:]] for changed in _rewritten(value[0]))


def _refused(path: Path, arrays: Mapping[str, Any], header: Mapping[str, Any], said: str) -> None:
    write_arrays(path, arrays, header)
    with pytest.raises(DataError, match=said):
        load_fit(path)
