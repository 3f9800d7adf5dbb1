"""How many epochs are enough? Presets compared on held-out log-loss, restart spread and CPU seconds.

Usage: ``python experiments/convergence/run.py [--out FOLDER]``. Writes ``convergence.csv`` and
``provenance.json``. Data: the *simulated* 81 x 398 panel of ``tests/reference`` (one mask) and the bundled
SWE-bench Verified panel (one 80/20 split).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import irtaudit
from irtaudit import ModelSpec, ResponseMatrix, Splits
from irtaudit.irt.presets import PRESETS, Preset
from irtaudit.present import versions

HERE = Path(__file__).parent
PANEL = HERE.parents[1] / "tests" / "reference" / "sim81x398.npz"


@dataclass(frozen=True)
class Config:
    """What is compared.

    Attributes
    ----------
    n_restarts : int
    seed : int
    presets : tuple of Preset
    """

    n_restarts: int = 10
    seed: int = 0
    presets: tuple[Preset, ...] = (
        PRESETS["paper"],
        Preset("2,000 epochs, settled", 2000, 0.05, "cosine", True),
        Preset("constant .1", 400, 0.1, "constant", False),
        Preset("cosine .1", 400, 0.1, "cosine", False),
        Preset("cosine .1, antithetic", 400, 0.1, "cosine", True),
        Preset("cosine .2", 400, 0.2, "cosine", False),
        PRESETS["default"],
        Preset("cosine .3, antithetic", 400, 0.3, "cosine", True),
        Preset("250 epochs", 250, 0.2, "cosine", True),
        PRESETS["quick"],
    )


def panels() -> Iterator[tuple[str, ResponseMatrix, Splits, list[str]]]:
    """The two panels: name, responses, split and the factor of each item."""
    with np.load(PANEL) as file:
        shape = tuple(file["shape"])
        cells, held_out = (
            np.unpackbits(file[n])[: shape[0] * shape[1]].reshape(shape) for n in ("responses", "held_out")
        )
        factor = [f"factor{f}" for f in file["factor"]]
    yield (
        "simulated 81 x 398",
        ResponseMatrix.from_array(cells),
        Splits.from_test_masks(held_out[None] == 1),
        factor,
    )
    matrix = irtaudit.screen(irtaudit.load_swebench_verified()).matrix
    large = matrix.items["repo"].map(matrix.items["repo"].value_counts() >= 20)
    labels = matrix.items["repo"].where(large, "other").tolist()
    yield "SWE-bench Verified", matrix, irtaudit.make_splits(matrix, n_splits=1), labels


def study(config: Config) -> pd.DataFrame:
    """Fit every model with every preset, one process, one thread.

    Returns
    -------
    DataFrame
        Columns ``panel, model, preset, epochs, log_loss`` (selected restart), ``log_loss_mean,
        log_loss_sd`` (over restarts), ``elbo`` (best restart, nats), ``cpu_ms_per_fit``.
    """
    rows = []
    for panel, matrix, splits, labels in panels():
        specs = (
            ModelSpec.unidimensional("2pl"),
            ModelSpec.unidimensional("3pl"),
            ModelSpec.exploratory("2pl", 3),
            ModelSpec.confirmatory("2pl", labels, name="label"),
        )
        for spec in specs:
            for preset in config.presets:
                start = time.process_time()
                fit = irtaudit.fit(
                    matrix,
                    spec,
                    splits,
                    n_restarts=config.n_restarts,
                    preset=preset,
                    seed=config.seed,
                    workers=1,
                )
                seconds = time.process_time() - start
                loss = fit.restarts["log_loss"]
                rows.append(
                    {
                        "panel": panel,
                        "model": spec.name,
                        "preset": preset.name,
                        "epochs": preset.epochs,
                        "log_loss": fit.heldout["log_loss"].item(),
                        "log_loss_mean": loss.mean(),
                        "log_loss_sd": loss.std(),
                        "elbo": fit.restarts["elbo"].max(),
                        "cpu_ms_per_fit": 1000 * seconds / config.n_restarts,
                    }
                )
                print(*rows[-1].values(), sep="  ", flush=True)
    return pd.DataFrame(rows)


def main() -> None:
    """Run the study and write its table with its provenance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    config = Config()
    study(config).round(6).to_csv(out / "convergence.csv", index=False)
    provenance = {
        "config": asdict(config),
        "versions": versions(),
        "command": "python experiments/convergence/run.py",
    }
    (out / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")


if __name__ == "__main__":
    main()
