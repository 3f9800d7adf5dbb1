"""What a comparison of groups gives: tidy tables, one layout for every screen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from irtaudit.dif.options import DifOptions
from irtaudit.words import counted

ITEMS = [
    "comparison",
    "scope",
    "screen",
    "item",
    "statistic",
    "effect",
    "se",
    "p",
    "p_method",
    "p_family",
    "p_bh",
    "flag_item",
    "flag_pooled",
    "flag_family",
    "p_family_cluster",
    "flag_family_cluster",
    "favours",
    "reading",
    "testable",
    "reason",
    "smallest_shift",
    "anchor",
    "pass_rate_reference",
    "pass_rate_focal",
    "chi2",
    "chi2_uncorrected",
    "p_chi2",
    "alpha",
    "delta",
    "ets_class",
    "std_p_dif",
]
"""Columns of ``dif.csv``."""
FLAGS = [
    "comparison",
    "scope",
    "screen",
    "n_reference",
    "n_focal",
    "n_items",
    "n_testable",
    "item_flags",
    "pooled_flags",
    "family_flags",
    "family_cluster_flags",
    "bh_flags",
    "median_abs_effect",
    "max_abs_effect",
    "pooled_cutoff",
    "family_cutoff",
    "family_cluster_cutoff",
    "smallest_shift",
    "control_item_flags",
    "control_item_flags_low",
    "control_item_flags_high",
    "control_family_rate",
]
"""Columns of ``dif_flags.csv``."""
GROUPS = [
    "comparison",
    "scope",
    "role",
    "level",
    "n_models",
    "mean",
    "sd",
    "min",
    "max",
    "theta_mean",
    "theta_sd",
]
BANDS = ["comparison", "scope", "item", "role", "band", "ability", "responses", "passes"]
CURVES = ["comparison", "scope", "item", "centre", "scale", "intercept", "slope", "group"]
POWER = ["comparison", "scope", "screen", "shift", "power"]
CONTROL = ["comparison", "scope", "screen", "draw", "item_flags", "family_flags"]
FAMILIES = ["comparison", "scope", "cluster", "sd", "n_families", "n_related", "within", "between"]


@dataclass(frozen=True, eq=False)
class DifResult:
    """Comparisons of groups on the items of one or several scopes.

    Attributes
    ----------
    items : DataFrame
        ``dif.csv``: one row per item x screen x comparison x scope, columns `ITEMS`. ``statistic`` is what
        the cut-offs apply to; ``effect`` its signed size in logits minus its mean under the null (above 0:
        favours the reference); ``se`` the standard error of the effect (mh: Robins-Breslow-Greenland; mh_z:
        SD under the null; logistic: inverse penalised information; score: inverse information). ``p`` by
        ``p_method``, ``p_family`` adjusted for the maximum over items, ``p_bh`` by Benjamini and Hochberg;
        ``flag_item, flag_pooled, flag_family`` at .05; ``p_family_cluster, flag_family_cluster`` under the
        cluster-aware null; ``favours`` the level favoured; ``reading`` what a family-wise flag means;
        ``testable, reason``; ``smallest_shift`` the shift, in logits, that is flagged with probability .8;
        ``anchor`` whether the item is part of the matching variable; pass rates of both groups. Classical
        statistics: ``chi2`` (mh: continuity corrected; logistic screens: likelihood ratio at penalty 0),
        ``chi2_uncorrected``, ``p_chi2``, and for mh ``alpha`` (odds ratio, above 1 favours the reference),
        ``delta`` (-2.35 log alpha), ``ets_class``, ``std_p_dif``.
    flags : DataFrame
        ``dif_flags.csv``: one row per screen x comparison x scope, columns `FLAGS`. ``smallest_shift``: the
        shift, in logits, that is flagged with probability .8 on average over items; ``control_*``: median
        and 95 % range of item flags in random groups, and the share of these with a family-wise flag.
    groups : DataFrame
        One row per group x scope, columns `GROUPS`: pass rates over models, in the scope, and abilities.
    bands : DataFrame
        One row per item x group x ability band, columns `BANDS`.
    curves : DataFrame
        One row per item, columns `CURVES`: logistic regression on the matching variable, see
        :func:`irtaudit.dif.observed.logistic_columns`.
    power : DataFrame
        Columns `POWER`: mean over items of the chance that a shift of one item, in logits, is flagged.
    control : DataFrame
        Columns `CONTROL`: flags in each random deal of the compared models.
    families : DataFrame
        Columns `FAMILIES`: estimated SD (logits) of family x item shifts.
    options : DifOptions
    verdict : str or None
        Word of the dimensionality test for the single score, where it was run.
    notes : tuple of str
        What a reader should know about how it was done.
    """

    items: pd.DataFrame
    flags: pd.DataFrame
    groups: pd.DataFrame
    bands: pd.DataFrame
    curves: pd.DataFrame
    power: pd.DataFrame
    control: pd.DataFrame
    families: pd.DataFrame
    options: DifOptions
    verdict: str | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        axes = ("comparison", "scope", "screen", "item")
        counts = ", ".join(counted(self.items[axis].nunique(), axis) for axis in axes)
        return f"DifResult({counts}, {counted(int(self.items['flag_family'].sum()), 'family-wise flag')})"

    @property
    def files(self) -> dict[str, pd.DataFrame]:
        """Tables to write, by the stem of their file name."""
        names = {"items": "dif", **{name: f"dif_{name}" for name in self.tables if name != "items"}}
        return {names[name]: table for name, table in self.tables.items() if len(table)}

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by name."""
        return {
            part.name: value
            for part in fields(self)
            if isinstance(value := getattr(self, part.name), pd.DataFrame)
        }


def join(results: Sequence[DifResult]) -> DifResult:
    """Several comparisons or scopes as one result.

    Parameters
    ----------
    results : sequence of DifResult
        At least one, made with the same options.

    Returns
    -------
    DifResult
    """
    first = results[0]
    tables = {
        name: pd.concat([result.tables[name] for result in results], ignore_index=True)
        for name in first.tables
    }
    notes = tuple(dict.fromkeys(note for result in results for note in result.notes))
    verdict = next((result.verdict for result in results if result.verdict is not None), None)
    return DifResult(**tables, options=first.options, verdict=verdict, notes=notes)


def overlap(result: DifResult, first: str = "mh", second: str = "logistic") -> pd.DataFrame:
    """Family-wise flags that two screens share.

    Parameters
    ----------
    result : DifResult
    first, second : str
        Screens.

    Returns
    -------
    DataFrame
        ``comparison, scope, first, second, both, only_first, only_second``, one row per comparison and scope
        that has both screens.
    """
    flagged = result.items.pivot_table(
        index=["comparison", "scope", "item"],
        columns="screen",
        values="flag_family",
        aggfunc="any",
        sort=False,
    )
    if not {first, second} <= set(flagged.columns):
        return pd.DataFrame(
            columns=["comparison", "scope", "first", "second", "both", "only_first", "only_second"]
        )
    a, b = flagged[first].astype(bool), flagged[second].astype(bool)
    counts = pd.DataFrame({"both": a & b, "only_first": a & ~b, "only_second": b & ~a})
    table = counts.groupby(level=["comparison", "scope"], sort=False).sum().reset_index()
    table.insert(2, "first", first)
    table.insert(3, "second", second)
    return table


def flags_lost(result: DifResult, single: str) -> pd.DataFrame:
    """What becomes of single-score flags when models are matched within scopes.

    Parameters
    ----------
    result : DifResult
        With the single score and the factors of one or several confirmatory models.
    single : str
        Name of the single-score scope.

    Returns
    -------
    DataFrame
        ``comparison, screen, scopes, single_flags, kept, lost, gained``: family-wise flags under the single
        score, how many of these are flagged in their own scope as well, how many are not, and how many are
        flagged in their own scope alone. ``scopes`` is the item column that defines the scopes.
    """
    keys = ["comparison", "screen", "item"]
    flagged = result.items[[*keys, "scope", "flag_family"]].astype({"flag_family": bool})
    alone = flagged[flagged["scope"] == single].set_index(keys)["flag_family"]
    scoped = flagged[flagged["scope"] != single]
    scoped = scoped.assign(scopes=column_of(scoped["scope"]))
    rows = []
    for (comparison, screen, column), part in scoped.groupby(["comparison", "screen", "scopes"], sort=False):
        own = part.set_index(keys)["flag_family"]
        before = alone.reindex(own.index, fill_value=False)
        rows.append(
            {
                "comparison": comparison,
                "screen": screen,
                "scopes": column,
                "single_flags": int(before.sum()),
                "kept": int((before & own).sum()),
                "lost": int((before & ~own).sum()),
                "gained": int((~before & own).sum()),
            }
        )
    columns = ["comparison", "screen", "scopes", "single_flags", "kept", "lost", "gained"]
    return pd.DataFrame(rows, columns=columns)


def withdraw(folder: Path, written: Collection[str]) -> None:
    """Take away the tables that an earlier comparison wrote into a folder and this one did not.

    Parameters
    ----------
    folder : Path
        One of irtaudit's own.
    written : collection of str
        Stems of the files that stay, see :attr:`DifResult.files`.
    """
    for earlier in folder.glob("dif*.csv"):
        if earlier.stem not in written:
            earlier.unlink(missing_ok=True)


def column_of(names: pd.Series) -> pd.Series:
    """The column in names like ``column:factor``; the whole name where there is none."""
    return names.str.split(":", n=1).str[0]


def comparisons(result: DifResult) -> list[DifResult]:
    """Each comparison as a result of its own, in order."""
    return [_only(result, "comparison", name) for name in result.flags["comparison"].unique()]


def scopes(result: DifResult) -> list[DifResult]:
    """Each scope as a result of its own, in order."""
    return [_only(result, "scope", name) for name in result.flags["scope"].unique()]


def _only(result: DifResult, column: str, value: str) -> DifResult:
    return with_rows(result, lambda table: table[column] == value)


def with_rows(result: DifResult, chosen: Callable[[pd.DataFrame], pd.Series]) -> DifResult:
    """The result with some rows of every table.

    Parameters
    ----------
    result : DifResult
    chosen : function
        From a table to one boolean per row.
    """
    tables: dict[str, Any] = {name: table[chosen(table)] for name, table in result.tables.items()}
    return replace(result, **tables)
