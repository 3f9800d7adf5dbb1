"""Hand-made comparison rows: five splits, chosen log-losses, nothing fitted."""

import numpy as np
import pandas as pd

from irtaudit.dimensionality.compare import BY_SPLIT, assemble

WOBBLE = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
"""Five values with mean 0 and SD 1.581."""


def rows(model, structure, dims, log_loss, *, family="2pl", train_log_lik=-1000.0, wobble=0.0):
    """Rows of one model; `wobble` scales the differences between splits."""
    return pd.DataFrame(
        {
            "model": model,
            "family": family,
            "structure": structure,
            "dims": dims,
            "split": ["2026", "2027", "2028", "2029", "2030"],
            "log_loss": log_loss + wobble * WOBBLE,
            "log_loss_predictive": log_loss + 0.001,
            "brier": log_loss / 4 + wobble * WOBBLE,
            "train_log_lik": train_log_lik + WOBBLE,
            "train_cells": 800,
            "restart_sd": np.nan if structure == "baseline" else 0.0004,
            "fitted_quantities": 100 * max(dims, 1),
            "fitted_quantities_exact": 90 * max(dims, 1),
            "note": "",
        }
    )[BY_SPLIT]


def panel(gain=0.1, differences=None, *, wobble=0.0005, gain_wobble=0.001, extra=()):
    """Comparison in which the 2PL gains `gain` over item means and challengers gain `differences` over it.

    Split differences of gain and challengers wobble independently of the models' own level.
    """
    best = 0.5 - gain
    parts = [
        rows("item_means", "baseline", 0, 0.5, family="additive", wobble=gain_wobble),
        rows("item_subject_logit", "baseline", 0, 0.45, family="additive"),
        rows("unidimensional_1pl", "unidimensional", 1, best + 0.004, family="1pl", train_log_lik=-1005.0),
        rows("unidimensional_2pl", "unidimensional", 1, best),
    ]
    for model, d in (differences or {}).items():
        structure = model.split("_")[0]
        dims = int(model.split("_")[1][0]) if structure == "exploratory" else 3
        parts.append(rows(model, structure, dims, best - d, wobble=wobble, train_log_lik=-900.0))
    by_split = pd.concat([*parts, *extra], ignore_index=True)
    return assemble(by_split, restarts(by_split), 0.25)


def restarts(by_split, spread=0.0002):
    """Three restarts per fitted model and split around its log-loss."""
    models = by_split[by_split["structure"] != "baseline"]
    return pd.concat(
        [
            models[["model", "split"]].assign(restart=r, log_loss=models["log_loss"] + (r - 1) * spread)
            for r in range(3)
        ],
        ignore_index=True,
    )
