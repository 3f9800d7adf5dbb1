"""From arrays to the tables of a result: names, words and p-values that say their method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dif.contrast import Contrast
from irtaudit.dif.effects import MIN_INFORMATION, score_test
from irtaudit.dif.findings import Findings
from irtaudit.dif.groups import Groups
from irtaudit.dif.null import Judged
from irtaudit.dif.observed import TESTABLE, logistic_columns, mantel_haenszel_columns
from irtaudit.dif.options import LEVEL, DifOptions, ScreenName
from irtaudit.dif.power import SHIFTS, smallest_shift
from irtaudit.dif.result import BANDS, CONTROL, CURVES, FAMILIES, FLAGS, GROUPS, ITEMS, POWER, DifResult
from irtaudit.dif.scopes import SINGLE
from irtaudit.stats.multiplicity import adjusted

Array = NDArray[Any]

IS_DIF = "DIF"
OR_DIMENSIONS = "DIF or multidimensionality"
OR_FAMILIES = "not distinguishable from family resemblance"
"""What a family-wise flag means (column ``reading``)."""


def result_of(
    matrix: ResponseMatrix,
    groups: Groups,
    found: Findings,
    cluster: str,
    options: DifOptions,
    verdict: str | None,
) -> DifResult:
    """Tables of one contrast.

    Parameters
    ----------
    matrix : ResponseMatrix
    groups : Groups
    found : Findings
    cluster : str
        Column that names the families.
    options : DifOptions
    verdict : str or None
        Word of the dimensionality test for the single score.

    Returns
    -------
    DifResult
    """
    names = matrix.items.index[found.contrast.items]
    place = {"comparison": groups.name, "scope": found.contrast.name}
    rows = [_item_rows(screen, found, groups, options, verdict) for screen in options.screens]
    items = _placed(pd.concat([part.assign(item=names) for part in rows]), place, ITEMS)
    flags = [_flag_row(screen, part, found) for screen, part in zip(options.screens, rows, strict=True)]
    return DifResult(
        items=items,
        flags=_placed(pd.DataFrame(flags), place, FLAGS),
        groups=_placed(_group_rows(groups, found.contrast), place, GROUPS),
        bands=_placed(_band_rows(found, names), place, BANDS),
        curves=_placed(_curve_rows(found, options).assign(item=names), place, CURVES),
        power=_placed(_power_rows(found.power), place, POWER),
        control=_placed(found.control, place, CONTROL),
        families=_placed(_family_rows(found, cluster), place, FAMILIES),
        options=options,
        verdict=verdict,
        notes=found.notes,
    )


def _placed(frame: pd.DataFrame, place: Mapping[str, str], columns: list[str]) -> pd.DataFrame:
    return frame.assign(**place).reindex(columns=columns).reset_index(drop=True)


# Items -----------------------------------------------------------------------------------------------


def _item_rows(
    screen: ScreenName, found: Findings, groups: Groups, options: DifOptions, verdict: str | None
) -> pd.DataFrame:
    """Everything about each item by one screen, in the order of the contrast."""
    testable = found.reasons[screen] == TESTABLE
    classical = _classical(screen, found, options)
    judged, clustered = found.judged.get(screen), found.clustered.get(screen)
    rows = _tested(classical, testable) if judged is None else _simulated(judged, options)
    se = _standard_errors(screen, found, classical)
    if screen == "score":
        rows["effect"] *= se  # one step from z to logits
    totals, passes = found.counts.totals.sum(axis=1), found.counts.passes.sum(axis=1)
    rates = np.divide(passes, totals, out=np.full_like(passes, np.nan), where=totals > 0)
    rows = rows.assign(
        screen=screen,
        se=np.where(testable, se, np.nan),
        p_bh=adjusted(rows["p"], "benjamini-hochberg"),
        p_family_cluster=np.nan if clustered is None else clustered.p_family,
        flag_family_cluster=_nullable(None if clustered is None else clustered.flag_family, len(rows)),
        favours=_favours(rows["effect"].to_numpy(), groups),
        testable=testable,
        reason=found.reasons[screen],
        smallest_shift=smallest_shift(found.power[screen]) if found.power else np.nan,
        anchor=found.anchors,
        pass_rate_reference=rates[0],
        pass_rate_focal=rates[1],
        **{name: classical[name] for name in classical.columns.difference(["effect", "se"])},
    )
    return rows.assign(reading=_readings(rows, found.contrast.name, verdict))


def _classical(screen: ScreenName, found: Findings, options: DifOptions) -> pd.DataFrame:
    """Effects, standard errors and the classical test of the two textbook screens; no columns for ours."""
    if screen == "mh":
        return mantel_haenszel_columns(found.counts)
    if screen in ("mh_z", "score"):
        return pd.DataFrame(index=range(found.contrast.n_items))
    penalty = options.penalty if options.n_simulations else 0.0
    crossed = screen == "logistic_nonuniform"
    return logistic_columns(found.contrast, found.matchings, options, penalty, crossed=crossed).table


def _simulated(judged: Judged, options: DifOptions) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "statistic": judged.statistic,
            "effect": judged.effect,
            "p": judged.p,
            "p_method": f"simulated null, {options.n_simulations} matrices",
            "p_family": judged.p_family,
            "flag_item": judged.flag_item,
            "flag_pooled": _nullable(judged.flag_pooled, len(judged.p)),
            "flag_family": judged.flag_family,
        }
    )


def _tested(classical: pd.DataFrame, testable: Array) -> pd.DataFrame:
    """Flags by the classical test; family-wise by Holm's procedure. There is no pooled cut-off."""
    p, chi2, effect = (np.where(testable, classical[name], np.nan) for name in ("p_chi2", "chi2", "effect"))
    p_family = adjusted(p, "holm")
    return pd.DataFrame(
        {
            "statistic": chi2,
            "effect": effect,
            "p": p,
            "p_method": "chi-square test, 1 df; over items by Holm",
            "p_family": p_family,
            "flag_item": p <= LEVEL,
            "flag_pooled": _nullable(None, len(p)),
            "flag_family": p_family <= LEVEL,
        }
    )


def _standard_errors(screen: ScreenName, found: Findings, classical: pd.DataFrame) -> Array:
    if screen == "mh_z":
        return found.judged[screen].null_sd
    if screen == "score":
        information = score_test(found.contrast).information
        return np.asarray(1 / np.sqrt(np.maximum(information, MIN_INFORMATION)))
    return classical["se"].to_numpy()


def _nullable(flags: Array | None, n: int) -> Any:
    """Booleans that can be unknown."""
    return pd.array([pd.NA] * n if flags is None else flags.tolist(), dtype="boolean")


def _favours(effect: Array, groups: Groups) -> Array:
    sides = np.where(effect > 0, groups.reference, np.where(effect < 0, groups.focal, ""))
    return sides.astype(object)


def _readings(rows: pd.DataFrame, scope: str, verdict: str | None) -> list[str]:
    """What each family-wise flag means; empty where there is none."""
    word = OR_DIMENSIONS if scope == SINGLE and verdict == "not supported" else IS_DIF
    alike = rows["flag_family_cluster"].eq(False).fillna(False)
    return [
        "" if not flagged else OR_FAMILIES if resembling else word
        for flagged, resembling in zip(rows["flag_family"], alike, strict=True)
    ]


# Screens ---------------------------------------------------------------------------------------------


def _flag_row(screen: ScreenName, rows: pd.DataFrame, found: Findings) -> dict[str, Any]:
    judged, clustered = found.judged.get(screen), found.clustered.get(screen)
    size = rows["effect"].abs()
    side = found.contrast.side
    return {
        "screen": screen,
        "n_reference": int((side > 0).sum()),
        "n_focal": int((side < 0).sum()),
        "n_items": len(rows),
        "n_testable": int(rows["testable"].sum()),
        "item_flags": int(rows["flag_item"].sum()),
        "pooled_flags": _count(rows["flag_pooled"]),
        "family_flags": int(rows["flag_family"].sum()),
        "family_cluster_flags": _count(rows["flag_family_cluster"]),
        "bh_flags": int((rows["p_bh"] <= LEVEL).sum()),
        "median_abs_effect": size.median() if size.notna().any() else np.nan,
        "max_abs_effect": size.max(),
        "pooled_cutoff": np.nan if judged is None else judged.pooled_cutoff,
        "family_cutoff": np.nan if judged is None else judged.family_cutoff,
        "family_cluster_cutoff": np.nan if clustered is None else clustered.family_cutoff,
        "smallest_shift": float(smallest_shift(_mean_power(found.power[screen]))) if found.power else np.nan,
        **_control_summary(screen, found.control),
    }


def _count(flags: pd.Series) -> float:
    """Number of flags; NaN where nothing is known."""
    return np.nan if flags.isna().all() else float(flags.sum())


def _mean_power(power: Array) -> Array:
    """(shift,) mean over testable items; 0 where there is none."""
    testable = ~np.isnan(power[0])
    return np.asarray(power[:, testable].mean(axis=1)) if testable.any() else np.zeros(len(power))


def _control_summary(screen: ScreenName, control: pd.DataFrame) -> dict[str, float]:
    if control.empty:
        return {}
    dealt = control[control["screen"] == screen]
    low, middle, high = np.quantile(dealt["item_flags"], [0.025, 0.5, 0.975])
    return {
        "control_item_flags": float(middle),
        "control_item_flags_low": float(low),
        "control_item_flags_high": float(high),
        "control_family_rate": float((dealt["family_flags"] > 0).mean()),
    }


# The rest --------------------------------------------------------------------------------------------


def _group_rows(groups: Groups, contrast: Contrast) -> pd.DataFrame:
    seen = contrast.observed.sum(axis=1)
    scores = np.divide(contrast.responses.sum(axis=1), seen, out=np.full(len(seen), np.nan), where=seen > 0)
    rows = []
    for role, level, side in (("reference", groups.reference, 0.5), ("focal", groups.focal, -0.5)):
        members = contrast.side == side
        score = pd.Series(scores[members])
        theta = None if contrast.theta is None else pd.Series(contrast.theta[members])
        rows.append(
            {
                "role": role,
                "level": level,
                "n_models": int(members.sum()),
                "mean": score.mean(),
                "sd": score.std(),
                "min": score.min(),
                "max": score.max(),
                "theta_mean": np.nan if theta is None else theta.mean(),
                "theta_sd": np.nan if theta is None else theta.std(),
            }
        )
    return pd.DataFrame(rows)


def _band_rows(found: Findings, names: pd.Index) -> pd.DataFrame:
    """Passes and responses by item, group and band, with the mean matching value of the group in the band."""
    parts = []
    for m in found.matchings:
        members = m.members[0].astype(float)
        n = members.sum(axis=1)
        ability = np.divide(members @ m.value[0], n, out=np.full(len(n), np.nan), where=n > 0)
        shape = (2, m.n_strata, len(m.items))
        group, band, item = (index.ravel() for index in np.indices(shape))
        cells = np.ix_(np.arange(2), np.arange(m.n_strata), m.items)
        parts.append(
            pd.DataFrame(
                {
                    "item": names[m.items[item]],
                    "role": np.where(group == 0, "reference", "focal"),
                    "band": band + 1,
                    "ability": ability.reshape(2, -1)[group, band],
                    "responses": found.counts.totals[cells].ravel().astype(int),
                    "passes": found.counts.passes[cells].ravel().astype(int),
                }
            )
        )
    rows = pd.concat(parts, ignore_index=True)
    return rows.sort_values(["item", "role", "band"], ascending=[True, False, True], ignore_index=True)


def _curve_rows(found: Findings, options: DifOptions) -> pd.DataFrame:
    penalty = options.penalty if options.n_simulations else 0.0
    return logistic_columns(found.contrast, found.matchings, options, penalty, crossed=False).curves


def _power_rows(power: Mapping[ScreenName, Array]) -> pd.DataFrame:
    rows = [
        {"screen": screen, "shift": shift, "power": value}
        for screen, curve in power.items()
        for shift, value in zip(SHIFTS, _mean_power(curve), strict=True)
    ]
    return pd.DataFrame(rows)


def _family_rows(found: Findings, cluster: str) -> pd.DataFrame:
    return pd.DataFrame([] if found.family is None else [{"cluster": cluster, **asdict(found.family)}])
