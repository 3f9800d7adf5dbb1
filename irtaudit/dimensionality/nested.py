"""Does a model fit at least as well as the models it contains? If not, and it predicts worse, its fit failed.

A model that contains another can do whatever that one does, so a lower training likelihood means that
the optimiser did not find it, or that its prior pulled it back: a posterior mean is not a maximum. Where it
predicts no worse, that does no harm to the comparison, and it is told (:func:`lower_likelihoods`) but not
called failed. Works on any comparison table, a published one included.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

_FAMILIES = ("1pl", "2pl", "3pl")
FINDINGS = [
    "model",
    "finding",
    "nested",
    "train_log_lik",
    "nested_train_log_lik",
    "log_loss",
    "nested_log_loss",
]
LOWER = ["model", "nested", "train_log_lik", "nested_train_log_lik"]
SD_FACTOR = 2.0
"""Held-out log-loss is worse when the difference exceeds this many of the larger split SD."""


def nested_findings(table: pd.DataFrame) -> pd.DataFrame:
    """Find failed fits and overfits.

    *Failed fit*: training log-likelihood below that of a nested model and held-out log-loss worse by more
    than twice the larger SD. *Overfit*: only the latter.

    Parameters
    ----------
    table : DataFrame
        One row per model with ``model, family, structure, dims, log_loss, log_loss_sd, train_log_lik``.
        Rows of structure "baseline" take no part; where an SD is missing nothing is found.

    Returns
    -------
    DataFrame
        One row per model with a finding: ``model``; ``finding`` ("failed fit" or "overfit"); ``nested``, the
        contained model it loses to by most; ``train_log_lik, nested_train_log_lik, log_loss,
        nested_log_loss`` of the two. Failed fits are judged by the nested models that show the failure.
    """
    models = table[table["structure"] != "baseline"]
    worst = [w for _, row in models.iterrows() if (w := _worst(row, models)) is not None]
    return pd.DataFrame(worst, columns=FINDINGS)


def failed_fits(findings: pd.DataFrame) -> list[str]:
    """Names of the models whose fit failed, from :func:`nested_findings`."""
    return findings.loc[findings["finding"] == "failed fit", "model"].tolist()


def lower_likelihoods(table: pd.DataFrame) -> pd.DataFrame:
    """Models with a lower training log-likelihood than one they contain, however they predict.

    Parameters
    ----------
    table : DataFrame
        As for :func:`nested_findings`; no SD is needed.

    Returns
    -------
    DataFrame
        One row per such model: ``model``; ``nested``, the contained model with the highest training
        log-likelihood; ``train_log_lik, nested_train_log_lik`` of the two.
    """
    models = table[table["structure"] != "baseline"]
    rows = []
    for _, row in models.iterrows():
        inside = _inside(row, models)
        inside = inside[inside["train_log_lik"] > row["train_log_lik"]]
        if len(inside):
            other = inside.loc[inside["train_log_lik"].idxmax()]
            rows.append((row["model"], other["model"], row["train_log_lik"], other["train_log_lik"]))
    return pd.DataFrame(rows, columns=LOWER)


def lower_alone(table: pd.DataFrame, findings: pd.DataFrame) -> pd.DataFrame:
    """The rows of :func:`lower_likelihoods` about models of which :func:`nested_findings` says nothing."""
    lower = lower_likelihoods(table)
    return lower[~lower["model"].isin(findings["model"])].reset_index(drop=True)


def lower_sentence(row: pd.Series) -> str:
    """One line about a row of :func:`lower_likelihoods`."""
    return (
        f"training log-likelihood below that of {row['nested']}, which it contains "
        f"({row['train_log_lik']:,.1f} against {row['nested_train_log_lik']:,.1f})"
    )


def finding_sentence(finding: pd.Series) -> str:
    """One line that says what was found and by which numbers."""
    loss = f"held-out log-loss {finding['log_loss']:.4f} against {finding['nested_log_loss']:.4f}"
    if finding["finding"] == "overfit":
        return f"overfit: {loss} of {finding['nested']}, which it contains"
    return (
        f"failed fit: {finding['nested']}, which it contains, has the higher training log-likelihood "
        f"({finding['nested_train_log_lik']:,.0f} against {finding['train_log_lik']:,.0f}); {loss}"
    )


def is_nested(inner: pd.Series, outer: pd.Series) -> bool:
    """Whether model `inner` is a special case of model `outer`.

    Parameters
    ----------
    inner, outer : Series
        Rows of a comparison table: ``model, family, structure, dims``.

    Notes
    -----
    1PL in 2PL in 3PL of one structure; one dimension in any; exploratory j-D in k-D for j < k; confirmatory
    k-D in exploratory k-D and above. Families nest along with structures.
    """
    if inner["model"] == outer["model"] or _rank(inner) > _rank(outer):
        return False
    if _stem(inner) == _stem(outer):
        return True
    if inner["structure"] == "unidimensional":
        return bool(outer["dims"] > 1)
    return outer["structure"] == "exploratory" and bool(inner["dims"] <= outer["dims"])


def _inside(row: pd.Series, models: pd.DataFrame) -> pd.DataFrame:
    """The models that a model contains."""
    return models[[is_nested(other, row) for _, other in models.iterrows()]]


def _worst(row: pd.Series, models: pd.DataFrame) -> dict[str, object] | None:
    inside = _inside(row, models)
    sd = np.maximum(inside["log_loss_sd"], row["log_loss_sd"])
    inside = inside[row["log_loss"] - inside["log_loss"] > SD_FACTOR * sd]
    better = inside[inside["train_log_lik"] > row["train_log_lik"]]
    shown = better if len(better) else inside
    if not len(shown):
        return None
    other = shown.loc[shown["log_loss"].idxmin()]
    return {
        "model": row["model"],
        "finding": "failed fit" if len(better) else "overfit",
        "nested": other["model"],
        "train_log_lik": row["train_log_lik"],
        "nested_train_log_lik": other["train_log_lik"],
        "log_loss": row["log_loss"],
        "nested_log_loss": other["log_loss"],
    }


def _rank(row: pd.Series) -> int:
    return _FAMILIES.index(str(row["family"]).lower())


def _stem(row: pd.Series) -> str:
    return str(row["model"]).removesuffix(f"_{row['family']}")
