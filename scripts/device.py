"""The CUDA checks and the CUDA bench, made to fit ten minutes. Exit code 1: a check failed; 2: no CUDA.

``--device cpu`` rehearses it on a machine without a GPU, with a smaller large panel.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from irtaudit import ModelSpec, ResponseMatrix, Splits, fit
from irtaudit.irt.engine import Draw, FitKey, fit_noise, run_tile
from irtaudit.irt.fit import GPU_SHARE, tile_bytes
from irtaudit.irt.layout import Layout
from irtaudit.irt.likelihood import Cells
from irtaudit.irt.presets import PRESETS, Preset

PANEL = Path(__file__).resolve().parents[1] / "tests" / "reference" / "sim81x398.npz"
SHORT = Preset("fifty epochs", 50, 0.1, "cosine", True)
SAME_NOISE, CONVERGED = 1e-4, 1e-3


def panel() -> tuple[ResponseMatrix, Splits, list[str]]:
    """The simulated 81 x 398 panel, its mask, the factor of each item."""
    with np.load(PANEL) as file:
        shape = tuple(file["shape"])
        size = shape[0] * shape[1]
        cells = np.unpackbits(file["responses"])[:size].reshape(shape)
        held_out = np.unpackbits(file["held_out"])[:size].reshape(1, *shape) == 1
        factor = [f"factor{f}" for f in file["factor"]]
    return ResponseMatrix.from_array(cells), Splits.from_test_masks(held_out), factor


def cpu_noise(layout: Layout, keys: Sequence[FitKey], preset: Preset, _: torch.device) -> Iterator[Draw]:
    """The noise that a CPU would draw, wherever the fit runs."""
    return fit_noise(layout, keys, preset, torch.device("cpu"))


def same_noise_gap(spec: ModelSpec, matrix: ResponseMatrix, device: str) -> float:
    """Largest difference of a posterior mean after fifty epochs on the same noise, device against CPU."""
    layout = Layout(spec, matrix.n_subjects, matrix.n_items)
    order = layout.factor_order
    layout, responses = layout.reordered(order), matrix.responses[None, :, order]
    keys = [FitKey(0, 0, restart) for restart in range(5)]
    ends = []
    for where in ("cpu", device):
        success = torch.tensor(responses, dtype=torch.float32, device=where)
        cells = Cells(success, torch.ones_like(success))
        ends.append(run_tile(layout, cells, keys, SHORT, noise=cpu_noise).loc)
    return float(np.abs(ends[0] - ends[1]).max())


def timed_fits(spec: ModelSpec, matrix: ResponseMatrix, device: str, n_fits: int, epochs: int) -> float:
    """Wall seconds of one batch, the device warmed up."""
    preset = Preset("timing", epochs, 0.1, "cosine", True)
    fit(
        matrix,
        spec,
        n_restarts=n_fits,
        preset=Preset("warm", 5, 0.1, "cosine", True),
        device=device,
        workers=1,
    )
    start = time.perf_counter()
    fit(matrix, spec, n_restarts=n_fits, preset=preset, device=device, workers=1)
    return time.perf_counter() - start


def peak_bytes(spec: ModelSpec, matrix: ResponseMatrix, device: str) -> tuple[int, int]:
    """What one fit took of the device's memory at most, and what it was estimated to take."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    fit(matrix, spec, n_restarts=1, preset=replace(SHORT, epochs=5), device=device, workers=1)
    estimate = tile_bytes(Layout(spec, matrix.n_subjects, matrix.n_items))
    return torch.cuda.max_memory_allocated(device), sum(estimate)


def simulated(n_subjects: int, n_items: int) -> ResponseMatrix:
    """Responses of a unidimensional 2PL."""
    rng = np.random.default_rng(0)
    theta, slope = rng.normal(size=(n_subjects, 1)), np.exp(rng.normal(0, 0.4, n_items))
    p = 1 / (1 + np.exp(-(theta * slope + rng.normal(size=n_items))))
    return ResponseMatrix.from_array(rng.random(p.shape) < p)


def main() -> int:
    """Run every check and every timing, print them, and write them where ``--json`` says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--large", type=int, nargs=2, metavar=("SUBJECTS", "ITEMS"))
    options = parser.parse_args()
    device = options.device
    if device != "cpu" and not torch.cuda.is_available():
        print(
            "scripts/device: this machine has no usable CUDA device; --device cpu rehearses.", file=sys.stderr
        )
        return 2
    matrix, splits, labels = panel()
    specs = [
        ModelSpec.unidimensional("2pl"),
        ModelSpec.unidimensional("3pl"),
        ModelSpec.exploratory("2pl", 3),
        ModelSpec.confirmatory("2pl", labels, name="factor"),
    ]
    found: dict[str, float | str] = {"device": torch.cuda.get_device_name(0) if device != "cpu" else "cpu"}
    failed = []
    for spec in specs:
        gap = same_noise_gap(spec, matrix, device)
        losses = [
            fit(matrix, spec, splits, device=d, n_restarts=10).heldout["log_loss"].item()
            for d in ("cpu", device)
        ]
        found |= {f"{spec.name}_same_noise_gap": gap, f"{spec.name}_log_loss_gap": losses[1] - losses[0]}
        if not gap < SAME_NOISE:
            failed.append(
                f"{spec.name}: fifty epochs on the same noise differ by {gap:.2e}, more than {SAME_NOISE}"
            )
        if not abs(losses[1] - losses[0]) < CONVERGED:
            failed.append(f"{spec.name}: log-loss {losses[1]:.5f} against {losses[0]:.5f} on the CPU")
    epochs = PRESETS["default"].epochs
    found["confirmatory_100_fits_s"] = timed_fits(specs[3], matrix, device, 100, epochs)
    found["exploratory_100_fits_s"] = timed_fits(specs[2], matrix, device, 100, epochs)
    large = simulated(*(options.large or ((1000, 2000) if device == "cpu" else (5000, 10_000))))
    found["large_cells"] = large.responses.size
    found["large_one_fit_100_epochs_s"] = timed_fits(specs[0], large, device, 1, 100)
    if device != "cpu":
        peak, estimate = peak_bytes(specs[0], large, device)
        found |= {"large_peak_memory_mb": peak / 2**20, "large_estimated_memory_mb": estimate / 2**20}
        if not peak * GPU_SHARE < estimate:
            failed.append(f"one fit took {peak} bytes of the device, but {estimate} were estimated")
    for name, value in found.items():
        print(f"{name:45} {value if isinstance(value, str) else format(value, '.6g')}")
    for line in failed:
        print(f"FAILED {line}")
    if options.json:
        options.json.write_text(json.dumps(found | {"failed": failed}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
