"""Words of the panel audit: how numbers are written, and what terms and columns mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from irtaudit.panel.plan import CAPABILITY
from irtaudit.report.figures import signed

TERMS = {
    "rho": "Spearman correlation: +1 same order of the models, 0 unrelated, −1 opposite order.",
    CAPABILITY: "Mean of the standardized scores on the anchors: tests of knowledge and reasoning.",
    "anchor": "A test of capability, not of safety, measured in the same way for every model.",
    "partial rho": "Rank correlation of two scores once what capability predicts is taken out of both.",
    "construct": "What a benchmark is meant to measure: refusal, say, or resistance to injection.",
    "bootstrap": "The same computation on models drawn again with replacement, thousands of times.",
    "permutation": "The same computation after shuffling, to see what chance alone gives.",
    "first component": "The one direction along which the score columns vary most together.",
    "parallel analysis": "Compares eigenvalues with those of unrelated columns of the same size (Horn).",
    "policy that never looks": "One that gives the same answer to every item, without reading any.",
    "F1": "Mean of precision and recall; it gives no credit for harmless items called harmless.",
    "specificity": "Share of the harmless items that are called harmless.",
    "recall": "Share of the harmful items that are treated as harmful.",
    "balanced accuracy": "Mean of the shares right among harmful and among harmless items; 50 % is chance.",
    "cluster": "Models of one organization, which resemble each other and are drawn together.",
    "held-out": "Measured elsewhere: an outcome that no score of this table was made from.",
    "power": "Chance that a panel of this size shows a correlation of the stated size, were it there.",
    "interchangeable": "Ordering models so alike that one score may be quoted for the other.",
    "epsilon squared": "Share of the variation of ranks that lies between groups, chance taken off.",
}
"""For the glossary of the page."""

COLUMNS = {
    "kind": "What is correlated: scores with capability, with each other, with held-out outcomes.",
    "x": "First score, or capability.",
    "y": "Second score.",
    "given": "What is held constant.",
    "n": "Models (or items) behind the number.",
    "rho": "Spearman correlation, midranks.",
    "low": "Lower end of the 95 % interval.",
    "high": "Upper end of the 95 % interval.",
    "low_joint": "Lower end of the interval that holds for all rows of its kind together.",
    "high_joint": "Upper end of the interval that holds for all rows of its kind together.",
    "clusters_low": "Lower end of the 95 % interval when whole organizations are drawn.",
    "clusters_high": "Upper end of the 95 % interval when whole organizations are drawn.",
    "clusters_low_joint": "Lower end of the joint interval when whole organizations are drawn.",
    "clusters_high_joint": "Upper end of the joint interval when whole organizations are drawn.",
    "p": "Two-sided p-value.",
    "p_method": "How it was obtained.",
    "p_permutation": "p-value by shuffling.",
    "p_permutation_method": "How many shuffles.",
    "family": "Tests that are read together.",
    "p_adjusted": "p-value corrected for its family.",
    "power": "Chance that this panel finds the correlation the plan asks for.",
    "n_needed": "Models that would find it with 80 % power.",
    "rank_pearson": "Primary: Pearson correlation of what capability leaves of the ranks.",
    "rank_spearman": "Spearman correlation of the same residuals.",
    "value_pearson": "Pearson correlation of what capability leaves of the values.",
    "value_spearman": "Spearman correlation of those.",
    "control": "Positive, negative or convergent.",
    "state": "Whether the control passes.",
    "value": "The number that decides.",
    "threshold": "What the plan asks for.",
    "size": "Models per small panel.",
    "subsets": "Small panels looked at.",
    "complete": "Whether these are all there are.",
    "share": "Share of the panels that reach the threshold.",
    "null_share": "The same share when scores are unrelated.",
    "null_method": "How that was obtained.",
    "difference": "Second minus first, or model minus constant policy.",
    "degenerate": "Draws in which it could not be computed.",
    "estimand": "What is estimated.",
    "estimate": "Its value on all models.",
    "left_out": "What is left out, one at a time.",
    "units": "How many of them.",
    "lowest": "Smallest value.",
    "without_lowest": "What was left out there.",
    "highest": "Largest value.",
    "without_highest": "What was left out there.",
    "sign_flips": "How often the sign changes.",
    "flipped_by": "Without whom.",
    "undefined": "Units without which nothing can be computed.",
    "rule": "t: estimate ± t × SD of the draws, for fewer than 20 clusters; else percentiles.",
    "percentile_low": "Lower percentile limit, too narrow with few clusters.",
    "percentile_high": "Upper percentile limit, too narrow with few clusters.",
    "n_clusters": "Organizations.",
    "h": "Kruskal-Wallis statistic.",
    "epsilon_squared_df_adjusted": "(H − k + 1) / (n − k); can be below 0. Not the next column.",
    "epsilon_squared_unadjusted": "H / (n − 1).",
    "constant": "Score of the best policy that never looks.",
    "policy": "Which policy that is.",
    "prevalence": "Share of positives.",
    "beats": "Whether the model is shown to do better.",
    "standing": "Where the 95 % intervals lie: above, below or across the threshold.",
    "standing_joint": "The same for the joint intervals, which decide the answer.",
    "n_to_settle": "Models whose intervals would keep clear of the threshold.",
    "n_to_settle_joint": "The same for the joint intervals.",
    "change": "Second panel minus first.",
    "design": "Whether one panel is part of the other.",
    "part": "Part of the audit.",
    "what": "What was asked.",
    "reason": "Why it is left out, or cannot be said.",
    "w": "Kendall's W: 0 unrelated orders, 1 the same order.",
    "items": "Items behind each score.",
    "variant": "The other version of the panel.",
}
"""What the columns of the tables hold, for the page."""

_CORRELATIONS = (
    *("rho", "low", "high", "low_joint", "high_joint", "clusters_low", "clusters_high", "estimate"),
    *("clusters_low_joint", "clusters_high_joint"),
    *("rank_pearson", "rank_spearman", "value_pearson", "value_spearman", "rho_first", "rho_second"),
    *("percentile_low", "percentile_high", "difference", "change", "lowest", "highest", "rho_variant"),
    *("matched_median", "matched_q05", "matched_q95", "q05", "q25", "median", "q75", "q95"),
)
FORMATS = {
    **dict.fromkeys(_CORRELATIONS, "+.2f"),
    **dict.fromkeys(("p", "p_permutation", "p_adjusted"), ".3g"),
    **dict.fromkeys(("share", "null_share", "power"), ".1%"),
    **dict.fromkeys(("threshold", "h"), ".2f"),
    **dict.fromkeys(("epsilon_squared_df_adjusted", "epsilon_squared_unadjusted", "w", "value"), ".3f"),
}
"""Formats of number columns, for the page."""

METRIC_NAMES = {"f1": "F1", "mcc": "MCC", "balanced_accuracy": "balanced accuracy"}


def rho_text(value: float) -> str:
    """A correlation or difference of correlations with sign and two decimals."""
    return signed(value, "+.2f")


def span(low: float, high: float) -> str:
    """An interval of correlations."""
    return f"{rho_text(low)} to {rho_text(high)}"


def both_spans(row: Mapping[str, Any], suffix: str = "") -> str:
    """The intervals of a standing, over models and, where organizations are known, over these."""
    over_models = span(row[f"low{suffix}"], row[f"high{suffix}"])
    low, high = row[f"clusters_low{suffix}"], row[f"clusters_high{suffix}"]
    return f"{over_models} over models, {span(low, high)} over organizations" if low == low else over_models


def percent(share: float) -> str:
    """A share in whole percent."""
    return f"{share:.0%}".replace("%", "\N{NO-BREAK SPACE}%")


def p_text(p: float) -> str:
    """A p-value: ``p = 0.042``, ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def joined(names: Sequence[str], word: str = "and") -> str:
    """ "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def comparisons(n: int) -> str:
    """ "1 comparison", "6 comparisons"."""
    return f"{n} comparison{'' if n == 1 else 's'}"


def metric_name(metric: str) -> str:
    """What sentences call a metric."""
    return METRIC_NAMES.get(metric, metric)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table as dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def excluding_zero(table: pd.DataFrame) -> pd.DataFrame:
    """Rows whose interval ``low, high`` lies on one side of 0."""
    return table[(table["low"] > 0) | (table["high"] < 0)]
