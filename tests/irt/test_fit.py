"""Fits against what cannot share our mistakes: marginal likelihoods, planted truth, peers' figures."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from panels import PAIRS, lsat7, random_matrix, sim81

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits, make_splits
from irtaudit.errors import ConvergenceWarning, FitError, PlanError
from irtaudit.irt import engine, likelihood
from irtaudit.irt import fit as fit_module
from irtaudit.irt.engine import Draw, FitKey, fit_noise, run_tile
from irtaudit.irt.fit import fit, fit_all
from irtaudit.irt.layout import Layout
from irtaudit.irt.presets import PRESETS, Preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec

TINY = Preset("tiny", 40, 0.1, "cosine", True)
UNI = ModelSpec.unidimensional("2pl")


@pytest.mark.parametrize(("priors", "within"), [("paper", 1.0), ("hierarchical", 1.5)])
def test_lsat7_is_near_the_maximum_of_the_marginal_likelihood(priors: Any, within: float) -> None:
    patterns, counts = lsat7()
    persons = ResponseMatrix.from_array(np.repeat(patterns, counts.astype(int), axis=0))
    result = fit(persons, ModelSpec.unidimensional("2pl", priors=priors), n_restarts=4, workers=1)
    found = result.item_parameters
    slope, intercept = found["slope_ability"].to_numpy(), found["intercept"].to_numpy()
    maximum = -2658.805  # R mirt 1.45.1, EM
    assert maximum - within <= _marginal_log_lik(slope, intercept, patterns, counts) <= maximum + 1e-3
    if priors == "paper":
        np.testing.assert_allclose(slope, [0.988, 1.081, 1.707, 0.765, 0.736], atol=0.30)
        np.testing.assert_allclose(intercept, [1.856, 0.808, 1.805, 0.486, 1.854], atol=0.30)


@pytest.mark.parametrize(
    ("make", "bar"),
    [
        (lambda labels: ModelSpec.unidimensional("2pl"), 0.4499),  # noqa: ARG005  # one signature for all
        (lambda labels: ModelSpec.exploratory("2pl", 3), 0.4400),  # noqa: ARG005
        (lambda labels: ModelSpec.confirmatory("2pl", labels), 0.4295),
    ],
    ids=["unidimensional", "exploratory", "confirmatory"],
)
def test_held_out_log_loss_on_the_simulated_panel_beats_the_best_peer(make: Any, bar: float) -> None:
    matrix, splits, labels = sim81()
    result = fit(matrix, make(labels), splits, workers=1)
    assert 0.4117 < result.heldout["log_loss"].item() <= bar  # .4117 is the oracle's
    assert result.heldout["brier"].item() < 0.15


def test_factor_correlations_of_the_simulated_panel() -> None:
    matrix, _, labels = sim81()
    found = fit(matrix, ModelSpec.confirmatory("2pl", labels), n_restarts=2, workers=1).factor_correlations
    assert found is not None
    pairs = found.to_numpy()[np.triu_indices(3, 1)]
    # The correlations of this panel's own 81 simulated abilities; the estimator's RMSE for them is .026.
    np.testing.assert_allclose(pairs, [0.815, 0.549, 0.717], atol=3 * 0.026)
    np.testing.assert_allclose(np.diag(found), 1.0)


def test_planted_parameters_are_recovered() -> None:
    rng = np.random.default_rng(3)
    theta, slope, intercept = rng.normal(size=(400, 1)), np.exp(rng.normal(0, 0.4, 60)), rng.normal(size=60)
    p = 1 / (1 + np.exp(-(theta * slope + intercept)))
    result = fit(ResponseMatrix.from_array((rng.random(p.shape) < p) * 1.0), UNI, n_restarts=2, workers=1)
    abilities, items = result.abilities, result.item_parameters
    z = (abilities["ability"] - theta[:, 0]) / abilities["ability_sd"]
    # The RMS of 400 standardised errors is 1 with a standard error of .035; mean-field SDs run small.
    assert 0.85 < np.sqrt((z**2).mean()) < 1.2
    # An intercept has a standard error of about 2 / sqrt(400) = .1 or more; 60 of them average out.
    assert np.sqrt(((items["intercept"] - intercept) ** 2).mean()) < 0.2
    assert np.corrcoef(np.log(items["slope_ability"]), np.log(slope))[0, 1] > 0.85


@pytest.mark.parametrize("family", ["2pl", "3pl"])
def test_more_parameters_never_predict_clearly_worse(family: Any) -> None:
    matrix, splits, _ = sim81()
    fits = fit_all(
        matrix,
        [ModelSpec.unidimensional("1pl"), ModelSpec.unidimensional(family)],
        splits,
        n_restarts=3,
        workers=1,
    )
    plain, rich = (f.heldout["log_loss"].item() for f in fits.values())
    assert rich < plain + 0.001


def test_neither_workers_nor_tiles_nor_company_change_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, splits = _small()
    specs = [UNI, ModelSpec.confirmatory("2pl", PAIRS)]
    alone = fit(matrix, UNI, splits, n_restarts=5, preset=TINY, workers=1)
    shared = fit_all(matrix, specs, splits, n_restarts=5, preset=TINY, workers=2)[UNI.name]
    monkeypatch.setattr(fit_module, "MAX_FITS_PER_TILE", 2)
    cut = fit(matrix, UNI, splits, n_restarts=5, preset=TINY, workers=1)
    for other in (shared, cut):
        np.testing.assert_allclose(other.means["theta"], alone.means["theta"], rtol=0, atol=1e-5)
        np.testing.assert_allclose(other.restarts["log_loss"], alone.restarts["log_loss"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", ["1pl", "2pl", "3pl"])
def test_the_order_of_items_within_the_labels_is_only_an_order(family: Any) -> None:
    matrix = random_matrix(40, 18, missing=0.1)
    labels = np.array(list("abc") * 6)
    mixed = fit(matrix, ModelSpec.confirmatory(family, labels), n_restarts=1, workers=1)
    order = np.argsort(labels, kind="stable")
    by_factor = matrix.select(items=matrix.items.index[order])
    lined_up = fit(by_factor, ModelSpec.confirmatory(family, labels[order]), n_restarts=1, workers=1)
    pd.testing.assert_frame_equal(
        mixed.item_parameters, lined_up.item_parameters.loc[mixed.item_parameters.index], check_exact=True
    )
    np.testing.assert_array_equal(mixed.means["theta"], lined_up.means["theta"])
    pattern = mixed.item_parameters[["slope_a", "slope_b", "slope_c"]].to_numpy() > 0
    np.testing.assert_array_equal(pattern, labels[:, None] == np.array(["a", "b", "c"]))


def test_an_interrupted_run_resumes_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, splits = _small()
    monkeypatch.setattr(fit_module, "MAX_FITS_PER_TILE", 2)
    whole = fit(matrix, UNI, splits, n_restarts=5, preset=TINY, workers=1)

    def interrupt(done: int, _total: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(matrix, UNI, splits, n_restarts=5, preset=TINY, workers=1, store=tmp_path, progress=interrupt)
    seen: list[int] = []
    resumed = fit(
        matrix, UNI, splits, n_restarts=5, preset=TINY, workers=1, store=tmp_path, progress=_note(seen)
    )
    assert seen[0] >= 4, "finished fits were found"
    _assert_same(resumed, whole)
    monkeypatch.setattr(fit_module, "_fit_tile", _forbidden)
    _assert_same(fit(matrix, UNI, splits, n_restarts=5, preset=TINY, workers=1, store=tmp_path), whole)


@pytest.mark.parametrize("change", ["seed", "preset", "data", "priors", "splits"])
def test_a_store_never_answers_for_other_work(change: str, tmp_path: Path) -> None:
    matrix, splits = _small()
    settings: dict[str, Any] = {"n_restarts": 1, "workers": 1, "store": tmp_path}
    fit(matrix, UNI, splits, preset=TINY, **settings)
    spec, preset, seed = UNI, TINY, 0
    if change == "seed":
        seed = 1
    if change == "preset":
        preset = replace(TINY, epochs=41)
    if change == "data":
        cells = matrix.responses.copy()
        cells[0, 0] = 1 - cells[0, 0]
        matrix = ResponseMatrix.from_array(cells)
    if change == "priors":
        spec = ModelSpec.unidimensional("2pl", priors="paper")
    if change == "splits":
        splits = make_splits(matrix, n_splits=2, seed=1)
    seen: list[int] = []
    fit(matrix, spec, splits, preset=preset, seed=seed, progress=_note(seen), **settings)
    assert seen[0] == 0


def test_a_diverged_fit_is_retried_once_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, splits = _small()
    _poison(monkeypatch, lambda key: key.restart == 1 and key.attempt == 0)
    restarts = fit(matrix, UNI, splits, n_restarts=3, preset=TINY, workers=1).restarts
    assert restarts["retries"].tolist() == [0, 1, 0] * 2
    assert restarts["epochs"].tolist() == [40, 3000, 40] * 2
    assert (restarts["stop_reason"] == "schedule ended").all()
    assert np.isfinite(restarts["log_loss"]).all()


def test_a_fit_that_fails_twice_is_a_value_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, splits = _small()
    monkeypatch.setattr(fit_module, "RETRY", TINY)
    _poison(monkeypatch, lambda key: key.restart == 1)
    with pytest.warns(ConvergenceWarning, match="2 of 6 restarts diverged"):
        result = fit(matrix, UNI, splits, n_restarts=3, preset=TINY, workers=1)
    failed = result.restarts["restart"] == 1
    assert (result.restarts.loc[failed, "stop_reason"] == "diverged").all()
    assert result.restarts.loc[failed, ["train_log_lik", "elbo", "log_loss", "brier"]].isna().all(axis=None)
    assert not result.restarts.loc[failed, "selected"].any()
    _poison(monkeypatch, lambda _key: True)
    with pytest.raises(FitError, match="Every restart of unidimensional_2pl diverged"):
        fit(matrix, UNI, splits, n_restarts=2, preset=TINY, workers=1)


def test_selection_looks_at_training_likelihood_alone() -> None:
    matrix, splits = _small()
    result = fit(matrix, ModelSpec.exploratory("2pl", 2), splits, n_restarts=6, preset=TINY, workers=1)
    for _, rows in result.restarts.groupby("split"):
        assert rows["selected"].sum() == rows["elbo_best"].sum() == 1
        assert rows.loc[rows["selected"], "train_log_lik"].item() == rows["train_log_lik"].max()
        assert rows.loc[rows["elbo_best"], "elbo"].item() == rows["elbo"].max()
    flipped = matrix.responses.copy()
    flipped[splits.test[0]] = 1 - flipped[splits.test[0]]
    other = fit(
        ResponseMatrix.from_array(flipped),
        ModelSpec.exploratory("2pl", 2),
        Splits.from_test_masks(splits.test[:1]),
        n_restarts=6,
        preset=TINY,
        workers=1,
    )
    np.testing.assert_array_equal(other.means["theta"][0], result.means["theta"][0])


def test_without_splits_every_observed_cell_is_fitted() -> None:
    matrix = random_matrix(12, 9, missing=0.2)
    result = fit(matrix, UNI, n_restarts=2, preset=TINY, workers=1)
    assert result.splits == ("all",)
    assert result.train_cells == (int(matrix.observed.sum()),)
    assert result.heldout.empty
    assert result.restarts["log_loss"].isna().all()
    p = result.probabilities()
    y = matrix.responses
    expected = np.nansum(np.where(y == 1, np.log(p), np.log(1 - p)) * np.where(np.isnan(y), 0, 1))
    assert result.restarts.loc[result.restarts["selected"], "train_log_lik"].item() == pytest.approx(expected)


def test_held_out_cells_are_as_unknown_as_missing_ones() -> None:
    matrix, splits = _small()
    held_out = fit(matrix, UNI, splits, n_restarts=2, preset=TINY, workers=1)
    cells = matrix.responses.copy()
    cells[splits.test[0]] = np.nan
    missing = fit(ResponseMatrix.from_array(cells), UNI, n_restarts=2, preset=TINY, workers=1)
    np.testing.assert_array_equal(missing.means["theta"][0], held_out.means["theta"][0])
    assert missing.train_cells[0] == held_out.train_cells[0]


def test_a_scale_near_its_boundary_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_module, "NEAR_BOUNDARY", 10.0)
    with pytest.warns(ConvergenceWarning, match="_scale is .* near its boundary"):
        result = fit(random_matrix(12, 9), UNI, n_restarts=1, preset=TINY, workers=1)
    assert [note.split()[2] for note in result.warnings] == ["slope_scale", "intercept_scale"]
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(random_matrix(12, 9), UNI, n_restarts=1, preset=TINY, workers=1)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"n_restarts": 0}, "n_restarts is 0"),
        ({"n_restarts": 10**8}, "n_restarts is 100000000; expected a whole number, 1 to 10,000"),
        ({"workers": 0}, "workers is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2.0}, r"seed is 2\.0; expected a whole number"),
        ({"n_restarts": 2.0}, r"n_restarts is 2\.0; expected a whole number"),
        ({"preset": "fast"}, "no preset 'fast'; choose one of paper, default, quick"),
        ({"device": "tpu9"}, "'tpu9'"),
        ({"device": "meta"}, "'meta' is not supported"),
        ({"device": "cuda:99"}, "cuda:99"),
    ],
)
def test_impossible_options_are_refused(change: dict[str, Any], found: str) -> None:
    with pytest.raises(PlanError, match=found):
        fit(random_matrix(12, 9), UNI, **change)


def test_a_model_is_a_value_of_fewer_dimensions_than_items() -> None:
    with pytest.raises(PlanError, match="a model is 'unidimensional_2pl'; expected a ModelSpec"):
        fit(random_matrix(12, 9), "unidimensional_2pl")  # type: ignore[arg-type]  # what a user may try
    with pytest.raises(PlanError, match="at most 8"):
        fit(random_matrix(12, 9), ModelSpec.exploratory("2pl", 9))


def test_models_and_splits_of_another_matrix_are_refused() -> None:
    matrix = random_matrix(12, 9)
    with pytest.raises(PlanError, match=r"12, 10.*12, 9"):
        fit(matrix, UNI, make_splits(random_matrix(12, 10)))
    with pytest.raises(PlanError, match="9 items, but the matrix has 10"):
        fit(random_matrix(12, 10), ModelSpec.confirmatory("2pl", PAIRS))
    with pytest.raises(PlanError, match="Two models are named"):
        fit_all(matrix, [UNI, UNI])
    with pytest.raises(PlanError, match="No model"):
        fit_all(matrix, [])


def test_labels_that_name_their_items_must_be_those_of_the_matrix() -> None:
    matrix = random_matrix(12, 9)
    labels = pd.Series(list(PAIRS), index=matrix.items.index, name="kind")
    fit(matrix, ModelSpec.confirmatory("2pl", labels), n_restarts=1, preset=TINY, workers=1)
    with pytest.raises(PlanError, match=r"in another order.*reindex"):
        fit(matrix, ModelSpec.confirmatory("2pl", labels[::-1]), n_restarts=1, preset=TINY)


def test_presets_are_the_stated_protocols() -> None:
    paper = PRESETS["paper"]
    assert (paper.epochs, paper.rate(0), paper.rate(1999)) == (2000, 0.01, 0.01)
    default = PRESETS["default"]
    assert default.epochs * 4 <= paper.epochs * 0.8
    assert default.rate(default.epochs // 2) == pytest.approx(default.learning_rate / 2)


def _marginal_log_lik(
    slope: NDArray[Any], intercept: NDArray[Any], patterns: NDArray[Any], counts: NDArray[Any]
) -> float:
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    p = 1 / (1 + np.exp(-(nodes[:, None] * slope + intercept)))
    given = np.exp(patterns @ np.log(p).T + (1 - patterns) @ np.log(1 - p).T)
    return float(counts @ np.log(given @ (weights / weights.sum())))


def _small() -> tuple[ResponseMatrix, Splits]:
    matrix = random_matrix(12, 9, missing=0.1)
    return matrix, make_splits(matrix, n_splits=2)


def _poison(monkeypatch: pytest.MonkeyPatch, which: Any) -> None:
    def noise(layout: Any, keys: Any, preset: Any, device: Any) -> Iterator[Draw]:
        for i, (draw, sign) in enumerate(fit_noise(layout, keys, preset, device)):
            if i == 5:
                draw = draw.clone()
                draw[[bool(which(key)) for key in keys]] = float("nan")
            yield draw, sign

    monkeypatch.setattr(engine, "fit_noise", noise)


def _note(seen: list[int]) -> Any:
    return lambda done, _total: seen.append(done)


def _forbidden(*_: object) -> None:
    raise AssertionError("a saved fit was run again")


def _assert_same(one: FitResult, other: FitResult) -> None:
    np.testing.assert_array_equal(one.means["theta"], other.means["theta"])
    assert one.restarts.equals(other.restarts)
    assert one.heldout.equals(other.heldout)


def test_tiles_are_sized_to_a_gpus_memory_and_dealt_to_every_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(UNI, 5000, 10_000)
    _pretend_gpus(monkeypatch, 3, 80 * 2**30)
    size = fit_module._tile_size(layout, "cuda:0")
    one_fit = 4 * 2 * 5000 * 10_000  # eta and its softplus in float32, by far the largest buffers of a fit
    assert 0.5 * 80 * 2**30 < size * one_fit < 0.6 * 80 * 2**30
    _pretend_gpus(monkeypatch, 3, 2**20)
    assert fit_module._tile_size(layout, "cuda:0") == 1, "what cannot fit is tried one at a time"
    assert fit_module._devices("cuda") == ["cuda:0", "cuda:1", "cuda:2"]
    assert fit_module._devices("cuda:1") == ["cuda:1"]
    _pretend_gpus(monkeypatch, 3, 80 * 2**30)
    matrix, splits = _small()
    digests = [[f"{s}{r}" for r in range(20)] for s in range(2)]
    tiles = fit_module._tiles(matrix, UNI, splits.test, digests, {}, TINY, 0, "cuda")
    assert [tile.device for tile in tiles] == ["cuda:0", "cuda:1", "cuda:2", "cuda:0"]
    assert sum(len(tile.keys) for tile in tiles) == 40
    assert fit_module._n_workers(None, tiles, "cuda") == 3


def test_memory_that_earlier_tiles_left_with_torch_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(UNI, 500, 1000)
    _pretend_gpus(monkeypatch, 1, 2**30)
    fresh = fit_module._tile_size(layout, "cuda:0")
    _pretend_gpus(monkeypatch, 1, 2**28)
    monkeypatch.setattr("torch.cuda.empty_cache", lambda: _pretend_gpus(monkeypatch, 1, 2**30))
    assert fit_module._tile_size(layout, "cuda:0") == fresh > 1


def test_several_gpus_give_the_numbers_of_one_machine_and_none_runs_two_tiles_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matrix, splits = _small()
    specs = [UNI, ModelSpec.confirmatory("2pl", PAIRS)]
    alone = fit_all(matrix, specs, splits, n_restarts=4, preset=TINY, device="cpu", workers=1)
    _pretend_gpus(monkeypatch, 3, 2**30)
    cells, run_one = fit_module._cells, fit_module._fit_tile
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    def watched(tile: Any) -> Any:
        running[tile.device] += 1
        most[tile.device] = max(most[tile.device], running[tile.device])
        time.sleep(0.1 * (tile.device == "cuda:0"))  # the others are idle while this one still works
        found = run_one(tile)
        running[tile.device] -= 1
        return found

    monkeypatch.setattr(fit_module, "_cells", lambda tile, order: cells(replace(tile, device="cpu"), order))
    monkeypatch.setattr(fit_module, "_fit_tile", watched)
    spread = fit_all(matrix, specs, splits, n_restarts=4, preset=TINY, device="cuda")
    assert most == {"cuda:0": 1, "cuda:1": 1, "cuda:2": 1}
    for name, found in spread.items():
        _assert_same(found, alone[name])


GPU_MODELS = {
    f"{name}-{family}": make(family)
    for family in ("1pl", "2pl", "3pl")
    for name, make in {
        "one": ModelSpec.unidimensional,
        "labels": lambda family: ModelSpec.confirmatory(family, list("aaaaabbbbbccccc") * 2),
        "free": lambda family: ModelSpec.exploratory(family, 4),
        "crossed": lambda family: ModelSpec.from_pattern(
            family, [[True] + [i % 4 == d for d in range(4)] for i in range(30)]
        ),
    }.items()
    if (name, family) != ("free", "1pl")
}


@pytest.mark.parametrize("name", GPU_MODELS)
@pytest.mark.parametrize("own_cells", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("n_subjects", [8, 90])
def test_the_memory_estimate_of_a_gpu_holds_what_a_tile_takes(
    name: str, own_cells: bool, n_subjects: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likelihood, "BLOCK_CELLS", 2**30)  # as on a GPU: all subjects at once,
    monkeypatch.setattr(likelihood, "powers_are_cheaper", lambda _device: False)  # and the sigmoid
    layout, n_fits = Layout(GPU_MODELS[name], n_subjects, 30), 4
    cells = np.ones((n_fits if own_cells else 1, n_subjects, 30), dtype=bool)
    keys = tuple(FitKey(0, 0, restart) for restart in range(n_fits))
    preset = replace(TINY, epochs=2, antithetic=False)
    tile = fit_module._Tile(layout, cells.astype(np.uint8), cells, ~cells, keys, ("",), preset, "cpu")
    order = layout.factor_order
    peak = _peak_bytes(
        lambda: run_tile(layout.reordered(order), fit_module._cells(tile, order), keys, preset)
    )
    shared, per_fit = fit_module.tile_bytes(layout, own_cells)
    assert peak <= shared + n_fits * per_fit <= 2 * peak


def _peak_bytes(work: Callable[[], object]) -> int:
    """The most that torch held at one time, temporary memory of its operations included."""
    with torch.profiler.profile(profile_memory=True, acc_events=True) as profile:
        work()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    assert events
    return int(np.cumsum([e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())]).max())


def _pretend_gpus(monkeypatch: pytest.MonkeyPatch, n: int, free: int) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: n)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda _device: (free, free))
