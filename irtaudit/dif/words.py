"""A comparison of groups in plain words: names of screens and columns, sizes of effects, the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from irtaudit.dif.options import HEADLINE, DifOptions
from irtaudit.dif.result import DifResult, column_of, comparisons, flags_lost, overlap, scopes, with_rows
from irtaudit.dif.scopes import SINGLE
from irtaudit.dif.tables import IS_DIF, OR_DIMENSIONS, OR_FAMILIES

LARGE = 1.5 / 2.35
"""Shift in logits that the Educational Testing Service calls large (1.5 on its delta scale)."""

SCREEN_NAMES = {
    "mh": "Mantel-Haenszel",
    "logistic": "logistic regression",
    "mh_z": "standardised Mantel-Haenszel",
    "score": "score test",
    "logistic_nonuniform": "logistic regression, crossed",
}
TERMS = {
    "logit": "Unit of log odds: one logit multiplies the odds of passing by 2.7, two logits by 7.4.",
    "odds": "Probability of passing over probability of failing: 3 means three passes for each fail.",
    "reference group": "The first of the two groups; positive effects favour it.",
    "focal group": "The second of the two groups; negative effects favour it.",
    "score test": "Asks the fitted item response model whether adding the group would improve an item.",
    "logistic regression": "Predicts passing an item from ability and group; the group should not matter.",
    "cluster-aware": "Allows for relatives: models of a family share what is particular about an item.",
    "family resemblance": "Models of one family behave alike on an item for reasons that have no name.",
    "shift": "How far an item moves for one group at equal ability, in logits.",
    "scope": "The items that one ability is supposed to explain.",
    "ability": "What the item response model says a model can do, from all its responses together.",
    "ability band": "Models of about equal ability; the groups are compared within each band.",
}
"""Words of Test 2 for the glossary of the page."""

COLUMNS = {
    "comparison": "Subject column, reference level and focal level.",
    "scope": "The items that are matched on one ability.",
    "screen": "How the groups are compared.",
    "item": "Name of the item; a link opens its curve.",
    "statistic": "What the cut-offs apply to: size of the effect, or of the standardised effect.",
    "effect": "Difference between the groups at equal ability, in logits; above 0 favours the reference.",
    "se": "Standard error of the effect.",
    "p": "Chance of a value as large without DIF, for this item alone.",
    "p_method": "Where the p-value comes from.",
    "p_family": "Chance that any item reaches this value without DIF.",
    "p_bh": "Adjusted by Benjamini and Hochberg: rate of false flags among the flagged.",
    "flag_item": "Flagged for itself: one item in twenty is, without DIF.",
    "flag_pooled": "Above the cut-off that one item in twenty exceeds, all items pooled.",
    "flag_family": "Flagged over all items together: the headline.",
    "p_family_cluster": "As p family, where families of models share what is particular about an item.",
    "flag_family_cluster": "Flagged also under the cluster-aware null.",
    "favours": "Group that passes more often than equally able models of the other; crossed: whose lead "
    "grows with ability.",
    "reading": "What the flag means; empty: not flagged.",
    "testable": "Whether the responses say anything about the item.",
    "reason": "Why not.",
    "smallest_shift": "Shift that would be flagged with a probability of 80 %, in logits.",
    "anchor": "Whether the item counts in matching.",
    "pass_rate_reference": "Share of the reference group that passes.",
    "pass_rate_focal": "Share of the focal group that passes.",
    "chi2": "Classical test statistic on one degree of freedom.",
    "n_items": "Items in the scope.",
    "n_testable": "Items about which the responses say anything.",
    "item_flags": "Items flagged for themselves; about 5 % of them are by chance.",
    "pooled_flags": "Items above the pooled cut-off.",
    "family_flags": "Items flagged over all items together.",
    "family_cluster_flags": "The same under the cluster-aware null.",
    "bh_flags": "Items flagged by Benjamini and Hochberg.",
    "median_abs_effect": "Median size of effect, logits.",
    "max_abs_effect": "Largest size of effect, logits.",
    "control_item_flags": "Item flags in random groups of the same sizes, median.",
    "control_item_flags_low": "Lower end of their 95 % range.",
    "control_item_flags_high": "Upper end of their 95 % range.",
    "control_family_rate": "Share of random groups with any family-wise flag.",
    "role": "Reference or focal group.",
    "level": "Level of the column.",
    "n_models": "Number of models.",
    "mean": "Mean pass rate of the models.",
    "sd": "Standard deviation.",
    "min": "Lowest pass rate.",
    "max": "Highest pass rate.",
    "theta_mean": "Mean ability; 0 is the average of the pool.",
    "theta_sd": "Standard deviation of ability.",
    "shift": "Difference between the groups at equal ability, in logits.",
    "power": "Chance that it is flagged, mean over items.",
    "both": "Items that both screens flag.",
    "single_flags": "Items flagged under the single score.",
    "kept": "Of these, flagged in their own scope as well.",
    "lost": "Of these, not flagged in their own scope.",
    "gained": "Flagged in their own scope alone.",
}
FORMATS = {
    **dict.fromkeys(("effect", "se", "statistic", "smallest_shift"), ".2f"),
    **dict.fromkeys(("median_abs_effect", "max_abs_effect", "theta_mean", "theta_sd"), ".2f"),
    **dict.fromkeys(("p", "p_family", "p_bh", "p_family_cluster"), ".4f"),
    **dict.fromkeys(("pass_rate_reference", "pass_rate_focal"), ".0%"),
    **dict.fromkeys(("mean", "sd", "min", "max", "control_family_rate"), ".1%"),
    **dict.fromkeys(("power",), ".2f"),
}

Word = Literal["supported", "not supported", "inconclusive", "nothing to measure"]


@dataclass(frozen=True)
class DifAnswer:
    """Whether equally able models of the groups meet the same items.

    Attributes
    ----------
    word : str
        "not supported": the headline flags an item, and the cluster-aware null as well, under a score that
        Test 1 does not contradict. "supported": no flag, though shifts that are called large would have been
        seen. "nothing to measure": no item is testable. Else "inconclusive".
    because : str
        One sentence with its numbers.
    what_would_change : str
    """

    word: Word
    because: str
    what_would_change: str


def answer(result: DifResult) -> DifAnswer:
    """Answer over all comparisons and scopes of a result, by the two headline screens.

    Parameters
    ----------
    result : DifResult

    Returns
    -------
    DifAnswer
    """
    result = decisive(result)
    items = result.items[result.items["screen"].isin(headline(result.options))]
    testable = items[items["testable"]]
    if testable.empty:
        return DifAnswer(
            "nothing to measure",
            "No item says anything about these groups.",
            "Items that some of the compared models pass and others fail.",
        )
    flagged = testable[testable["flag_family"]]
    sure = flagged[flagged["reading"] == IS_DIF]
    n = int(testable.groupby(["comparison", "scope"])["item"].nunique().sum())
    if len(sure):
        return DifAnswer(
            "not supported",
            f"{_flag_sentence(result, sure, n)}.",
            "More models per group, among which the flagged items no longer stand out, or a column "
            "of families that explains them.",
        )
    if len(flagged):
        meaning = " or ".join(dict.fromkeys(_MEANINGS[reading] for reading in flagged["reading"]))
        return DifAnswer(
            "inconclusive",
            f"{_flag_sentence(result, flagged, n)}. That may be {meaning}.",
            "More models of more families, or scopes with an ability of their own.",
        )
    return _unflagged(result, n)


_MEANINGS = {
    OR_DIMENSIONS: "a second ability rather than DIF",
    OR_FAMILIES: "the resemblance of models of one family",
}


def _unflagged(result: DifResult, n: int) -> DifAnswer:
    change = "Larger groups: the power to see a shift grows with the number of models in the smaller one."
    if result.power.empty:
        return DifAnswer(
            "inconclusive",
            f"None of {n} items is flagged; which shifts would have been was not computed.",
            "The power, which simulated matrices tell.",
        )
    shift = best_shift(result)
    if shift <= LARGE:
        because = (
            f"None of {n} items is flagged, and a shift of {shift:.2f} logits would have been (power 80 %)."
        )
        return DifAnswer("supported", because, "A flagged item.")
    unseen = "hardly any shift" if np.isnan(shift) else f"only a shift of {shift:.1f} logits or more"
    return DifAnswer(
        "inconclusive",
        f"None of {n} items is flagged, but in groups this small {unseen} would have been (power 80 %).",
        change,
    )


def decisive(result: DifResult) -> DifResult:
    """What the answer rests on: the single score of every comparison, or every scope where there is none."""
    if SINGLE not in set(result.flags["scope"]):
        return result
    return with_rows(result, lambda table: table["scope"] == SINGLE)


def headline(options: DifOptions) -> list[str]:
    """The screens that the answer rests on: the source paper's two, or whichever were chosen."""
    return [name for name in options.screens if name in HEADLINE] or list(options.screens)


def best_shift(result: DifResult) -> float:
    """Smallest shift that a headline screen finds with power .8, where that is hardest; NaN: none."""
    flags = result.flags[result.flags["screen"].isin(headline(result.options))]
    return float(flags.groupby(["comparison", "scope"])["smallest_shift"].min().max(skipna=False))


def _flag_sentence(result: DifResult, flagged: pd.DataFrame, n: int) -> str:
    """How many items, and the clearest of them in words; without a full stop."""
    count = len(flagged[["comparison", "scope", "item"]].drop_duplicates())
    clearest = flagged.iloc[int(np.argmin(flagged["p_family"].to_numpy()))]
    return (
        f"Equally able models fare unequally on {count} of {n} items: "
        f"{'' if count == 1 else 'most clearly on '}{item_sentence(clearest, levels_of(result, clearest))}"
    )


def levels_of(result: DifResult, row: pd.Series) -> tuple[str, str]:
    """Reference and focal level of a row's comparison."""
    groups = result.groups[result.groups["comparison"] == row["comparison"]].set_index("role")["level"]
    reference, focal = (groups[groups.index == role].iloc[0] for role in ("reference", "focal"))
    return str(reference), str(focal)


def item_sentence(row: pd.Series, levels: tuple[str, str]) -> str:
    """An item's pass rates, and what equal ability makes of them.

    Parameters
    ----------
    row : Series
        Row of ``dif.csv``.
    levels : (str, str)
        Reference and focal level.

    Returns
    -------
    str
        Two sentences, without the last full stop.
    """
    reference, focal = levels
    other = focal if row["favours"] == reference else reference
    rates = (
        f"{row['item']}, passed by {row['pass_rate_reference']:.0%} of {reference} and "
        f"{row['pass_rate_focal']:.0%} of {focal} models. "
    )
    effect, se = abs(row["effect"]), row["se"]
    ratio = _plain(np.exp(effect))
    low, high = (_plain(np.exp(effect + side * 1.96 * se)) for side in (-1, 1))
    interval = "" if np.isnan(se) else f" (95 % interval {low} to {high})"
    if row["screen"] == "logistic_nonuniform":
        return rates + (
            f"The abler the models, the more {row['favours']} models gain on {other} models: with each SD of "
            f"ability the ratio of their odds grows {ratio} times{interval}"
        )
    return rates + (
        f"At equal ability {row['favours']} models have about {ratio} times the odds of {other} "
        f"models{interval}"
    )


def _plain(ratio: float) -> str:
    """Two significant digits, without an exponent."""
    return "over 100,000" if ratio > 1e5 else f"{float(f'{ratio:.2g}'):,g}"


def flag_counts(
    flags: pd.DataFrame, screens: Sequence[str], column: str = "family_flags", verb: str = "flags "
) -> str:
    """Flags by screen in words: "Mantel-Haenszel flags 13 and logistic regression 17"."""
    counts = flags.groupby("screen", sort=False)[column].sum()
    parts = [
        f"{SCREEN_NAMES[name]} {verb if name == screens[0] else ''}{counts[name]:.0f}" for name in screens
    ]
    return " and ".join(parts)


def flag_lines(result: DifResult) -> list[str]:
    """A line for the single score and one for the scopes of each column, for the terminal.

    Parameters
    ----------
    result : DifResult
        Of one comparison.
    """
    screens, flags = headline(result.options), result.flags
    lines = []
    for column, part in flags.groupby(column_of(flags["scope"]), sort=False):
        n = part[part["screen"] == screens[0]]["n_testable"].sum()
        where = column if column == SINGLE else f"within {part['scope'].nunique()} scopes of {column}"
        lines.append(
            f"{' vs '.join(pair(result))}, {where}: of {n} testable items {flag_counts(part, screens)}"
        )
    return lines


def pair(result: DifResult) -> tuple[str, str]:
    """Reference and focal level of a result of one comparison."""
    return levels_of(result, result.flags.iloc[0])


def groups_in_words(result: DifResult) -> str:
    """Every comparison with its group sizes: "16 OpenAI against 30 Anthropic models (developer)"."""
    said = []
    for part in comparisons(result):
        reference, focal = (row for _, row in part.groups.head(2).iterrows())
        said.append(
            f"{reference['n_models']} {reference['level']} against {focal['n_models']} {focal['level']} "
            f"models ({part.flags['comparison'].iloc[0].partition(':')[0]})"
        )
    return "; ".join(said)


def heading(whole: DifResult, part: DifResult, words: str) -> str:
    """Title of a card; with several comparisons it names the groups."""
    several = len(comparisons(whole)) > 1
    return f"{words}: {' vs '.join(pair(part))}" if several else words


def single_scope(result: DifResult) -> DifResult | None:
    """The single-score scope of a result, if it has one."""
    return next((part for part in scopes(result) if part.flags["scope"].iloc[0] == SINGLE), None)


def summary(result: DifResult) -> dict[str, Any]:
    """The result for programs, in plain types and frames.

    Parameters
    ----------
    result : DifResult

    Returns
    -------
    dict
        ``verdict`` (``reading, because``), ``options, notes``, the tables ``flags, groups, power, families``,
        ``overlap`` of the two headline screens, ``flags_lost`` under scoped matching, and ``flagged``: the
        rows of ``dif.csv`` with a family-wise flag.
    """
    found = answer(result)
    return {
        "verdict": {
            "reading": found.word,
            "because": found.because,
            "what_would_change": found.what_would_change,
        },
        "options": asdict(result.options),
        "notes": list(result.notes),
        "flags": result.flags,
        "groups": result.groups,
        "families": result.families,
        "power": result.power,
        "overlap": overlap(result),
        "flags_lost": flags_lost(result, SINGLE),
        "flagged": result.items[result.items["flag_family"]],
    }
