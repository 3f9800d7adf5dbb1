"""Posterior predictive checks: do panels drawn from the fitted model look like the observed one?

Abilities and item parameters are drawn from the posterior and responses from them, for the same subjects,
items and missing cells; a statistic of the drawn panels stands beside that of the observed one (Rubin 1984;
for item response models Sinharay, Johnson and Stern 2006). The checks use the data twice, so they are
conservative: a value inside its interval is weak comfort, one outside is evidence against the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.trials import refuse_counts
from irtaudit.irt.predict import pass_probability
from irtaudit.stats.threads import one_blas_thread

if TYPE_CHECKING:
    from irtaudit.irt.result import FitResult

Array = NDArray[Any]

DRAWS = 200
MAX_ITEMS = 400
"""Items whose pairs are compared; of more, this many evenly over pass rates."""
HALF = 0.5
"""Added to each count of a two-by-two table, so that every odds ratio is finite (Haldane 1956)."""
Z95 = 1.959964
CHECKS = ["check", "observed", "expected", "low", "high", "p", "draws", "seed"]


@one_blas_thread()
def predictive_checks(
    fit: FitResult, matrix: ResponseMatrix, *, n_draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Total scores and pairs of items, observed and as the fitted model would have them.

    Parameters
    ----------
    fit : FitResult
        To every observed cell of `matrix`.
    matrix : ResponseMatrix
    n_draws : int
        Panels drawn from the posterior.
    seed : int

    Returns
    -------
    DataFrame
        One row per check: ``check``, ``observed``, ``expected`` (mean over drawn panels), ``low, high`` (95 %
        of drawn panels), ``p`` (posterior predictive: twice the smaller share of drawn panels on one side of
        the observed value, at most 1), ``draws, seed``. The checks: ``score_sd``, SD over subjects of the
        pass rate; ``log_odds_ratio_mean`` and ``log_odds_ratio_sd``, over pairs of items;
        ``odds_ratios_off``, share of the pairs whose log odds ratio is more than 1.96 SDs from its mean over
        drawn panels.

    Raises
    ------
    PlanError
        When cells count several trials.
    """
    refuse_counts(matrix, "The predictive check of items in pairs")
    shown = _pair_items(matrix)
    rng = np.random.default_rng([seed, *b"predictive"])
    observed = matrix.observed
    panels = [np.nan_to_num(matrix.responses), *_draws(fit, observed, n_draws, rng)]
    scores = np.array([_score_sd(cells, observed) for cells in panels])
    pairs = np.stack([_log_odds_ratios(cells[:, shown], observed[:, shown]) for cells in panels])
    centre, spread = pairs[1:].mean(axis=0), pairs[1:].std(axis=0)
    off = (np.abs(pairs - centre) > Z95 * np.maximum(spread, 1e-12)).mean(axis=1)
    values = {
        "score_sd": scores,
        "log_odds_ratio_mean": pairs.mean(axis=1),
        "log_odds_ratio_sd": pairs.std(axis=1),
        "odds_ratios_off": off,
    }
    return pd.DataFrame(
        [
            {"check": name, **_summary(stack), "draws": n_draws, "seed": seed}
            for name, stack in values.items()
        ],
        columns=CHECKS,
    )


def _draws(fit: FitResult, observed: Array, n: int, rng: np.random.Generator) -> Iterator[Array]:
    """Panels drawn from the posterior, 0 where not observed."""
    means, sds = fit.posterior()
    for _ in range(n):
        sites = {name: rng.normal(means[name], sds[name]) for name in means}
        p = pass_probability(fit.layout, sites)
        yield ((rng.random(p.shape) < p) & observed).astype(float)


def _score_sd(cells: Array, observed: Array) -> float:
    return float((cells.sum(axis=1) / np.maximum(observed.sum(axis=1), 1)).std())


def _log_odds_ratios(cells: Array, observed: Array) -> Array:
    """(pair,) log odds ratios over the subjects who answered both items."""
    passed, failed = cells, observed - cells
    both, neither, first = passed.T @ passed, failed.T @ failed, passed.T @ failed
    ratio = np.log(both + HALF) + np.log(neither + HALF) - np.log(first + HALF) - np.log(first.T + HALF)
    return np.asarray(ratio[np.triu_indices(len(ratio), 1)], dtype=np.float32)


def _pair_items(matrix: ResponseMatrix) -> Array:
    """Positions of the items whose pairs are compared."""
    if matrix.n_items <= MAX_ITEMS:
        return np.arange(matrix.n_items)
    order = np.argsort(np.nanmean(matrix.responses, axis=0), kind="stable")
    return np.sort(order[np.linspace(0, len(order) - 1, MAX_ITEMS).round().astype(int)])


def _summary(stack: Array) -> dict[str, float]:
    observed, drawn = float(stack[0]), stack[1:]
    low, high = np.quantile(drawn, [0.025, 0.975])
    smaller = min((drawn >= observed).mean(), (drawn <= observed).mean())
    return {
        "observed": observed,
        "expected": float(drawn.mean()),
        "low": float(low),
        "high": float(high),
        "p": float(min(1.0, 2 * smaller)),
    }
