"""A *simulated* panel with the printed moments of the paper's: 81 models x 398 items, three factors.

No response in it was given by any model. Matched is what the paper prints about its matrix: per item type the
number of items, mean score, SD of item pass rates and SD of model means; the factor correlations; the names
of the 81 models, and mean score and size of each developer's group. Everything else is an assumption: normal
abilities, log-normal slopes, no dimension beyond the three.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import expit, ndtri

from irtaudit import ResponseMatrix
from irtaudit.data.known import harmbench_items

PRINTED = Path(__file__).parent / "printed"
LABEL = "simulated"
"""Begins every name, so that no table of this panel can be mistaken for data."""
SOURCE = "SIMULATED replica, no real responses"
TYPES = ("standard", "contextual", "copyright")
DEVELOPERS = {
    "allenai": "AllenAI", "anthropic": "Anthropic", "cohere": "Cohere", "databricks": "Databricks",
    "deepseek-ai": "DeepSeek", "google": "Google", "ibm": "IBM", "marin-community": "Marin", "meta": "Meta",
    "mistralai": "Mistral", "moonshotai": "Moonshotai", "openai": "OpenAI", "qwen": "Qwen",
    "writer": "Writer", "xai": "xAI", "zai-org": "ZAI",
}  # fmt: skip
"""Developers as the paper spells them, by the beginning of a model's name."""

Array = NDArray[Any]


@dataclass(frozen=True)
class Truth:
    """What the panel was simulated from.

    Attributes
    ----------
    theta : (subject, dim) array
        Abilities, columns in the order of `TYPES`; correlations exactly as printed.
    slope, intercept : (item,) array
    """

    theta: Array
    slope: Array
    intercept: Array


def simulate(seed: int = 2026, slope_sd: float = 0.35) -> tuple[ResponseMatrix, Truth]:
    """Simulate the panel.

    Parameters
    ----------
    seed : int
    slope_sd : float
        SD of log slopes within an item type; the paper prints nothing about it.

    Returns
    -------
    matrix : ResponseMatrix
        Items with ``functional`` and ``semantic`` categories, subjects with ``developer``.
    truth : Truth
    """
    rng = np.random.default_rng(seed)
    moments = pd.read_csv(PRINTED / "item_types.csv").set_index("simple3_factor").loc[list(TYPES)]
    models = (PRINTED / "models.txt").read_text(encoding="utf-8").split()
    theta = correlated_abilities(len(models), rng)
    parts = [_items(theta[:, k], moments.loc[kind], slope_sd, rng) for k, kind in enumerate(TYPES)]
    slope, intercept = (np.concatenate([part[i] for part in parts]) for i in range(2))
    factor = np.repeat(range(len(TYPES)), moments["n_items"])
    subjects = _subjects(models)
    expected = expit(slope * theta[:, factor] + intercept).mean(axis=1)
    theta = theta[_seating(expected, _wanted_scores(subjects["developer"]))]
    p = expit(slope * theta[:, factor] + intercept)
    cells, items = _varied_draws(p, rng), _item_table(moments["n_items"])
    rows, columns = np.argsort(subjects.index), np.argsort(items.index)
    matrix = ResponseMatrix(cells[rows][:, columns], items.iloc[columns], subjects.iloc[rows], SOURCE)
    return matrix, Truth(theta[rows], slope[columns], intercept[columns])


def correlated_abilities(n: int, rng: np.random.Generator) -> Array:
    """(n, dim) normal abilities: mean 0, SD 1 and the printed correlations, exactly so in this panel."""
    target = pd.read_csv(PRINTED / "factor_correlations.csv", index_col=0).loc[list(TYPES), list(TYPES)]
    draws = rng.standard_normal((n, len(TYPES)))
    draws -= draws.mean(axis=0)
    whitened = draws @ np.linalg.inv(np.linalg.cholesky(draws.T @ draws / n)).T
    return np.asarray(whitened @ np.linalg.cholesky(target.to_numpy()).T)


def _items(
    theta: Array, printed: pd.Series, slope_sd: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Slopes and intercepts whose expected moments over these abilities are the printed ones."""
    n = int(printed["n_items"])
    z = rng.standard_normal((2, n))
    z = (z - z.mean(axis=1, keepdims=True)) / z.std(axis=1, keepdims=True)
    wanted = printed[["mean_score", "item_pass_rate_sd", "model_mean_score_sd"]].to_numpy(float)

    def parameters(x: Array) -> tuple[Array, Array]:
        return np.exp(x[0] + slope_sd * z[0]), x[1] + np.exp(x[2]) * z[1]

    def gap(x: Array) -> Array:
        slope, intercept = parameters(x)
        return expected_moments(expit(slope * theta[:, None] + intercept)) - wanted

    found = least_squares(gap, x0=[0.5, 0.0, 0.0], bounds=([-2, -8, -4], [3, 8, 2]))
    return parameters(found.x)


def expected_moments(p: Array) -> Array:
    """Expected mean, SD of item pass rates and SD of model means of responses with these probabilities."""
    noise = p * (1 - p)
    item = p.mean(axis=0).var(ddof=1) + (noise.mean(axis=0) / len(p)).mean()
    model = p.mean(axis=1).var(ddof=1) + (noise.mean(axis=1) / p.shape[1]).mean()
    return np.array([p.mean(), np.sqrt(item), np.sqrt(model)])


def _subjects(models: list[str]) -> pd.DataFrame:
    developers = [DEVELOPERS[name.partition("_")[0]] for name in models]
    names = [f"{LABEL} {name}" for name in models]
    return pd.DataFrame({"developer": developers}, index=pd.Index(names, name="subject"))


def _wanted_scores(developers: pd.Series) -> Array:
    """A score for each model: those of a developer are spread normally around its printed mean, by its SD."""
    printed = pd.read_csv(PRINTED / "developers.csv").set_index("developer")
    wanted = pd.Series(0.0, index=developers.index)
    for name, members in developers.groupby(developers):
        row, n = printed.loc[name], len(members)
        z = ndtri((np.arange(1, n + 1) - 0.5) / n)
        spread = z / z.std(ddof=1) * row["sd"] if n > 1 else np.zeros(1)
        wanted[members.index] = np.clip(row["mean_harmbench_score"] + spread, 0, 1)
    return wanted.to_numpy()


def _seating(expected: Array, wanted: Array) -> Array:
    """For each model, the simulated abilities whose expected score has the rank its score should have."""
    seats = np.empty(len(wanted), dtype=np.intp)
    seats[np.argsort(wanted, kind="stable")] = np.argsort(expected, kind="stable")
    return seats


def _varied_draws(p: Array, rng: np.random.Generator) -> Array:
    """0/1 responses; an item on which all models agree is drawn again, as the paper has none."""
    cells = (rng.random(p.shape) < p).astype(float)
    while (constant := cells.std(axis=0) == 0).any():
        cells[:, constant] = rng.random((len(p), int(constant.sum()))) < p[:, constant]
    return cells


def _item_table(counts: pd.Series) -> pd.DataFrame:
    """HarmBench's own items and domains, as many of each type as the paper kept."""
    table = harmbench_items()
    kept = pd.concat([table[table["functional"] == kind].iloc[:n] for kind, n in counts.items()])
    kept = kept[["functional", "semantic"]]
    return kept.set_axis(pd.Index([f"{LABEL} {name}" for name in kept.index], name="item"))


def matched_moments(matrix: ResponseMatrix, truth: Truth) -> pd.DataFrame:
    """Printed moments beside those of the simulated panel.

    Returns
    -------
    DataFrame
        ``what, printed, replica, matched``: whether it was a target of the simulation.
    """
    rows: list[tuple[str, float, float, bool]] = []
    moments = pd.read_csv(PRINTED / "item_types.csv").set_index("simple3_factor")
    for kind in TYPES:
        cells = matrix.responses[:, (matrix.items["functional"] == kind).to_numpy()]
        found = _described(cells)
        for name, value in found.items():
            rows.append((f"{kind}: {name}", moments.loc[kind, name], value, name in _TARGETS))
    target = pd.read_csv(PRINTED / "factor_correlations.csv", index_col=0)
    r = np.corrcoef(truth.theta.T)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        rows.append((f"correlation {TYPES[i]}, {TYPES[j]}", target.loc[TYPES[i], TYPES[j]], r[i, j], True))
    score = pd.Series(matrix.responses.mean(axis=1)).groupby(matrix.subjects["developer"].to_numpy())
    printed = pd.read_csv(PRINTED / "developers.csv").set_index("developer")
    for name, row in printed.iterrows():
        rows.append((f"{name}: models", row["n_models"], score.size()[name], True))
        rows.append((f"{name}: mean score", row["mean_harmbench_score"], score.mean()[name], True))
    return pd.DataFrame(rows, columns=["what", "printed", "replica", "matched"])


_TARGETS = ("n_items", "mean_score", "item_pass_rate_sd", "model_mean_score_sd")


def _described(cells: Array) -> dict[str, float]:
    item, model = cells.mean(axis=0), cells.mean(axis=1)
    return {
        "n_items": cells.shape[1],
        "mean_score": cells.mean(),
        **{f"item_pass_rate_{name}": value for name, value in _spread(item).items()},
        **{f"model_mean_score_{name}": value for name, value in _spread(model).items()},
    }


def _spread(values: Array) -> dict[str, float]:
    return {
        "sd": values.std(ddof=1), "min": values.min(), "median": np.median(values), "max": values.max(),
    }  # fmt: skip
