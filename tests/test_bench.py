"""The bench measures what it says: its floor is the products it names, and every bar has its key."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import bench
import bench_peers

BARS = {
    "floor_ratio_unidimensional",
    "floor_ratio_exploratory3",
    "floor_ratio_confirmatory3",
    "fits_per_pyirt_fit",
    "fits_per_mirt_fit",
    "sequential_pyro_ratio",
    "default_vs_2000_epochs_log_loss_gap",
    "cells_5000x500_cpu_s",
    "peak_memory_mb",
    "import_s",
}


@pytest.fixture
def tiny(tmp_path: Path) -> bench.Settings:
    """Everything once, hardly any work; no peers, and no demo but a word from the command line."""
    full = bench.Settings()
    return bench.Settings(
        preset=replace(full.preset, epochs=3),
        plain=replace(full.plain, epochs=6),
        repeats=1,
        restarts=2,
        pyro_epochs=2,
        study_restarts=1,
        large_items=30,
        large_subjects=(20, 40),
        grid_epochs=1,
        grid_splits=1,
        grid_workers=1,
        peers=tmp_path / "no-peers",
        install_peers=False,
        demo=("--version",),
        starts=1,
        traces=3,
        trace_events=200,
    )


def test_every_bar_has_its_key_and_a_number_or_a_reason(tiny: bench.Settings) -> None:
    found = bench.flat(bench.measure(bench.GROUPS, tiny))
    assert found.keys() >= BARS
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    missing = {name for name, value in found.items() if value is None}
    assert missing == {"fits_per_pyirt_fit", "fits_per_mirt_fit"}
    assert found["fits_per_mirt_fit_reason"] == "mirt 1.2.0 is not installed in no-peers"
    for name in BARS - missing - {"default_vs_2000_epochs_log_loss_gap"}:
        assert found[name] > 0, name  # type: ignore[operator]  # not a reason: those keys are not bars


def test_the_floor_is_one_product_one_sigmoid_and_two_products_back() -> None:
    floor = bench.make_floor(3, 5, 7, dims=2)
    floor.epoch()
    theta, slope = floor.theta.double(), floor.slope.double()
    p = torch.sigmoid(torch.einsum("fkn,fkj->fnj", theta, slope))
    torch.testing.assert_close(floor.cells.double(), p, atol=1e-6, rtol=0)
    torch.testing.assert_close(
        floor.by_theta.double(), torch.einsum("fnj,fkj->fkn", p, slope), atol=1e-5, rtol=0
    )
    torch.testing.assert_close(
        floor.by_slope.double(), torch.einsum("fnj,fkn->fkj", p, theta), atol=1e-5, rtol=0
    )
    assert floor.cells.dtype == torch.float32


def test_the_pyro_loop_of_the_same_model_learns() -> None:
    panel = bench.Panel(*bench.sim81())
    layout = panel.layout(panel.models["confirmatory3"])
    losses = bench.pyro_loop(panel, layout, 12)
    assert len(losses) == 12
    assert losses[-1] < 0.9 * losses[0]


def test_works_are_timed_in_turn_after_a_warm_up() -> None:
    calls: list[str] = []
    rows = bench.in_turn(lambda: calls.append("a"), lambda: calls.append("b"), repeats=2)
    assert calls == ["a", "b"] * 3
    assert np.shape(rows) == (2, 2)


def test_memory_of_a_command_counts_its_children() -> None:
    child = "x = bytearray(80_000_000); import time; time.sleep(.5)"
    call = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    parent = f"x = bytearray(80_000_000); {call}"
    ran = bench.run_watched([sys.executable, "-c", parent])
    assert ran.status == 0
    assert 160 < ran.peak_mb < 240


def test_a_command_that_fails_is_a_row_with_its_reason() -> None:
    ran = bench.run_watched([sys.executable, "-c", "raise SystemExit('no room')"])
    row = bench._watched("demo_wall_s", ran.wall_s, "<= 180", {}, "", ran)
    assert bench.flat([row]) == {"demo_wall_s": None, "demo_wall_s_reason": "exit status 1: no room"}


def test_the_marginal_likelihood_of_one_item_is_its_pass_rate() -> None:
    # A 2PL with slope zero: every ability passes with probability sigmoid(intercept).
    patterns, counts = np.array([[0.0], [1.0]]), np.array([3, 7])
    found = bench.marginal_log_lik(np.array([0.0]), np.array([math.log(7 / 3)]), patterns, counts)
    assert found == pytest.approx(3 * math.log(0.3) + 7 * math.log(0.7))


def test_the_paper_grid_is_the_paper_s() -> None:
    reference = Path(__file__).parent / "reference" / "harmful_refusal_by_model.csv"
    names = {line.split(",")[0] for line in reference.read_text(encoding="utf-8").splitlines()[1:]}
    found = bench.paper_models([f"factor{i % 3}" for i in range(21)])
    assert {spec.name.replace("confirmatory_factor_", "confirmatory_3d_") for spec in found} == names


def test_the_table_shows_both_sides_and_the_bar() -> None:
    text = bench.table([bench.Row("ratio", 2.5, "<= 3", {"ours_ms": 5.0, "theirs_ms": 2.0}, "median of 9")])
    assert text.splitlines()[1:] == [
        f"ratio{'2.5':>11}  <= 3",
        "    ours_ms 5, theirs_ms 2",
        "    median of 9",
    ]


def test_peers_are_scored_on_the_held_out_cells_alone() -> None:
    responses, p = np.array([[1, 0], [1, 1]]), np.array([[0.8, 0.1], [0.5, 0.0]])
    held_out = np.array([[True, False], [False, True]])
    assert bench_peers.log_loss(responses, p, held_out) == pytest.approx(
        -(math.log(0.8) + math.log(1e-8)) / 2
    )


def test_peer_numbers_are_put_in_the_order_of_the_panel() -> None:
    assert bench_peers.in_order([3.0, 1.0, 2.0], {0: "i10", 1: "i2", 2: "i9"}, "i").tolist() == [
        1.0,
        2.0,
        3.0,
    ]
