"""Eigenvalues, the one-factor test, fit and reliability in the reader's words, as sections of the report."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.dimensionality.dependence import MIN_INFORMATION, FitChecks
from irtaudit.dimensionality.eigenvalues import LEVEL, EigenvalueNull, eigenvalue_table
from irtaudit.dimensionality.labels import label, short_label
from irtaudit.dimensionality.loadings import (
    AS_GOOD,
    EQUAL,
    SETTLED,
    agreement_table,
    as_good,
    congruence_table,
)
from irtaudit.dimensionality.structure import Structure
from irtaudit.report.dots import dot_interval_figure
from irtaudit.report.figures import BLUE, GREY, VERMILION, draw, signed
from irtaudit.report.section import Figure, Section
from irtaudit.words import by_number, counted, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]

RANKS = 10
"""Leading eigenvalues that are drawn and listed."""
HEIGHTS = (0, -10, 10, -14, 14, -20, 20, -28, 28, -36, 36)
"""Points above a spot at which a label is tried."""
LABEL_GAP = 6.0
"""Free space between a label and the middle of a dot or line, in pixels (100 to the inch)."""
LOG_TICKS = [digit * 10.0**power for power in range(-1, 5) for digit in (1, 2, 5)]
TERMS = {
    "reliability": "Share of the differences between abilities that is no measurement error: 0 to 1.",
    "residual": "What a model passes or fails beyond what its ability and the item make likely.",
    "standard error": "How far an estimate typically lies from the truth.",
    "local dependence": "Two items go together more than ability explains: copies, or a shared trick.",
    "congruence": "Tucker's coefficient: how alike two columns of loadings are; 1 is the same up to size.",
    "loading": "How strongly an item's responses go with a dimension, from -1 to 1.",
    "rotation": "Turning dimensions so that each item loads on few of them; predictions stay the same.",
    "test information": "How precisely the items measure at an ability: one over the squared standard error.",
}
"""Words of these sections for the glossary of the page."""
COLUMNS = {
    "null": "What the random panels have in common with the observed one.",
    "rank": "1 is the largest.",
    "eigenvalue": "Of the observed panel, in items: the variation that one direction carries.",
    "null_mean": "Mean over random panels.",
    "cutoff": "What random panels exceed in 5 % of draws.",
    "above": "Whether the observed value is above the cut-off.",
    "p": "Simulated p-value, (1 + number of panels at least as extreme) / (panels + 1).",
    "tested": "Whether the test of this null stands on this row.",
    "draws": "Number of random panels.",
    "seed": "Seed of the random panels.",
    "item_1": "One item of the pair.",
    "item_2": "The other one.",
    "q3": "Correlation of the two items' residuals over models (Yen's Q3).",
    "p_family": "The same, for the most extreme of all rows: small only if hardly any panel has such a row.",
    "flag": "Whether p over all rows is at most .05.",
    "item": "Name of the item.",
    "fit": "G2 over five bands of ability: how far passes and fails are from their expectation.",
    "infit": "Weighted mean square of residuals: about 1; more is noisier, less is more regular.",
    "outfit": "Plain mean square of residuals: about 1; large values come from a few surprises.",
    "subject": "Name of the model.",
    "lz": "Standardised log-likelihood of the model's responses; far below 0: an unlikely pattern.",
    "check": "What is compared.",
    "observed": "In the data.",
    "expected": "Mean over panels drawn from the fitted model.",
    "low": "Lower end of the 95 % interval.",
    "high": "Upper end of the 95 % interval.",
    "model": "Name of the item response model.",
    "factor": "Dimension.",
    "items": "Number of items.",
    "reliability": "Variance of the estimated abilities over that plus the mean error variance.",
    "mean_sd": "Typical posterior standard deviation of theta.",
    "most_informative": "Theta at which the items tell most.",
    "smallest_se": "Standard error of theta there, from the items alone.",
    "data": "Data set.",
    "models": "Number of models.",
    "responses": "Number of observed responses.",
    "pass_rate": "Mean over models of their pass rates.",
    "constant_items": "Share of items that every model passes, or every model fails.",
    "models_above": "Share of models that pass more than 90 % of the items.",
    "dims": "Number of dimensions.",
    "restarts": "Random starts, the selected one included.",
    "as_good": f"Those whose training log-likelihood is at most {percent(AS_GOOD)} worse than the best.",
    "agree": f"Of these, those whose every dimension has congruence {EQUAL:g} or more with the selected.",
    "settled": f"Whether at least {percent(SETTLED)} of those that fit as well agree, and one other does.",
    "lowest": "Lowest congruence of any other restart that fits as well, in any dimension.",
    "median": "Median congruence over other restarts that fit as well, and dimensions.",
    "reading": "Saturated: the interval lies at or above the threshold; open: below; borderline: across; "
    "undecided: one model has none.",
}
FORMATS = (
    dict.fromkeys(("eigenvalue", "null_mean", "cutoff", "fit", "lz", "infit", "outfit"), ".2f")
    | dict.fromkeys(("p", "p_family", "observed", "expected", "low", "high", "q3"), ".3f")
    | dict.fromkeys(("reliability", "mean_sd", "smallest_se"), ".2f")
    | {"most_informative": ".1f"}
    | dict.fromkeys(("lowest", "median"), ".3f")
)
CHECK_NAMES = {
    "score_sd": "spread of the models' pass rates (SD)",
    "log_odds_ratio_mean": "mean log odds ratio of two items",
    "log_odds_ratio_sd": "spread of the log odds ratios (SD)",
    "odds_ratios_off": "share of pairs of items far from expectation",
}


def structure_evidence(structure: Structure) -> list[Section]:
    """Cards of the report: eigenvalues, more than one dimension, fit, reliability, loadings.

    Parameters
    ----------
    structure : Structure

    Returns
    -------
    list of Section
    """
    cards = [_eigenvalues(structure)]
    if structure.checks is not None:
        cards += [
            _one_factor(structure.checks, structure.nulls),
            _fit(structure.checks),
            _predictive(structure.predictive, structure.checks.model),
        ]
    if len(structure.reliability):
        cards.append(_reliability(structure))
    if structure.rotated:
        cards.append(_loadings(structure))
    return cards


def structure_limits(structure: Structure) -> list[Section]:
    """What the eigenvalues and the checks do not show."""
    checks = structure.checks
    if checks is None or checks.residual.p <= LEVEL:
        return []
    return [
        Section(
            place="limit",
            claim="No trace of a second dimension in the residuals does not show that there is none.",
            text="On simulated panels of 81 models and 398 items the residual test finds three dimensions "
            "that correlate .9 in most panels, and three that correlate .95 in few.",
        )
    ]


def structure_tables(structure: Structure) -> list[Section]:
    """Tables to look for oneself: the fit of every item and every model, the loadings."""
    return [*_fit_tables(structure.checks), *_loadings_tables(structure)]


def _fit_tables(checks: FitChecks | None) -> list[Section]:
    if checks is None:
        return []
    how = f"Fit under {label(checks.model)}, against {checks.n_panels} refitted simulated panels."
    return [
        Section(
            place="explore",
            title="Fit of items",
            claim=_flagged(checks.items, "items", "follow the response curve"),
            table=checks.items,
            columns=COLUMNS,
            formats=FORMATS,
            caption=f"Worst first. {how}",
            file="item_fit.csv",
        ),
        Section(
            place="explore",
            title="Fit of models",
            claim=_flagged(checks.subjects, "models", "have a pattern of responses that ability explains"),
            table=checks.subjects,
            columns=COLUMNS,
            formats=FORMATS,
            caption=f"Most unlikely pattern first. {how}",
            file="person_fit.csv",
        ),
    ]


def present_saturation(table: pd.DataFrame) -> list[Section]:
    """Card of a saturation screen over data sets, see `irtaudit.dimensionality.saturation`.

    Parameters
    ----------
    table : DataFrame

    Returns
    -------
    list of Section
    """
    claim = saturation_claim(table)
    figure = dot_interval_figure(
        table["data"].tolist(),
        table["pass_rate"],
        table["low"],
        table["high"],
        lines={"every response passes": 1.0},
        value_format=".2f",
        xlabel="Mean pass rate of the models, with a 95 % interval over models",
        alt=claim,
        caption="The further left, the more room for models to differ.",
        from_zero=True,
    )
    return [
        Section(
            place="evidence",
            title="Saturation",
            claim=claim,
            figures=[replace(figure, svg=figure.narrow_svg, narrow_svg="")],
            how="Mean of the models' pass rates before anything is dropped; percentile interval over models.",
            otherwise="A mean pass rate clearly below the threshold leaves room for differences.",
            table=table,
            columns=COLUMNS,
            formats=dict.fromkeys(("pass_rate", "low", "high", "constant_items", "models_above"), ".1%"),
            caption="Every data set, in the order given.",
            file="saturation.csv",
        )
    ]


def saturation_claim(table: pd.DataFrame) -> str:
    """What a saturation screen found, in a sentence or two."""
    unknown = table["reading"] == "undecided"
    if unknown.any():
        alone = ", ".join(table.loc[unknown, "data"])
        whether = "the data set is saturated" if len(table) == 1 else f"these are saturated: {alone}"
        said = f"One model alone does not tell whether {whether}."
        return said if unknown.all() else f"{saturation_claim(table[~unknown])} {said}"
    saturated = table.loc[table["reading"] == "saturated", "data"].tolist()
    n = len(table)
    if not saturated:
        return "The data set is not saturated." if n == 1 else f"None of {n} data sets is saturated."
    which = (
        "The data set is saturated."
        if n == 1
        else f"{len(saturated)} of {n} data sets {'is' if len(saturated) == 1 else 'are'} saturated: "
        f"{', '.join(saturated)}."
    )
    return f"{which} Nearly every model passes, so little is left to tell models apart."


# Eigenvalues -------------------------------------------------------------------------------------------


def _eigenvalues(structure: Structure) -> Section:
    nulls = structure.nulls
    main, paper = nulls["permuted"], nulls["paper"]
    together = main.p <= LEVEL
    claim = (
        f"The largest eigenvalue of the item correlations is {main.observed[0]:.1f}; where items have "
        f"nothing in common, 5 % of random panels exceed {main.cutoffs[0]:.1f} (p = {main.p:.3f}): "
        + ("the items measure something together." if together else "nothing that items share stands out.")
    )
    return Section(
        place="evidence",
        title="Eigenvalues",
        claim=claim,
        text=f"{_null_words(nulls['redrawn'], 'Pass rates redrawn at random')} "
        f"{_null_words(nulls['margins'], 'Random panels that also keep the total score of every model')} "
        f"{_margins_words(nulls['margins'])}\n\n"
        f"As the source paper counts, rank by rank and with constant draws kept, {_leading_words(paper)}. "
        "That count is too high on small panels: items that come out constant are dropped from the data but "
        "not from the draws.",
        figures=[_scree(main, claim, "Eigenvalue, logarithmic scale", log=True)],
        how=f"Eigenvalues of the item correlations against {main.n_draws:,} random panels in which each "
        "item's passes fall on any models, missing cells treated alike; the test stands on the largest one. "
        f"Simulated p-values, seed {main.seed}.",
        otherwise="A largest eigenvalue below the dashed line would mean that the score measures nothing.",
        table=eigenvalue_table(list(nulls.values()), max_rank=RANKS),
        columns=COLUMNS,
        formats=FORMATS,
        caption="Leading eigenvalues against every null; residual: after one dimension is taken out.",
        file="eigenvalues.csv",
    )


def _null_words(null: EigenvalueNull, what: str) -> str:
    return f"{what} exceed {null.cutoffs[0]:.1f} in 5 % of draws (p = {null.p:.3f})."


def _margins_words(null: EigenvalueNull) -> str:
    if null.p <= LEVEL:
        return "So the items share more than the models' totals account for."
    return "So the models' totals account for a largest eigenvalue of this size."


def _leading(null: EigenvalueNull) -> int:
    """Leading eigenvalues above their own cut-off, counted until the first that is not."""
    return int(np.argmin(np.append(null.above, False)))


def _leading_words(null: EigenvalueNull) -> str:
    n = _leading(null)
    if not n:
        return "no eigenvalue lies above its cut-off"
    return (
        "the first eigenvalue lies above its cut-off" if n == 1 else f"the first {n} lie above their cut-offs"
    )


def _one_factor(checks: FitChecks, nulls: Any) -> Section:
    null, raw = checks.residual, nulls["one_factor"]
    more = null.p <= LEVEL
    claim = (
        f"With one dimension taken out, the largest eigenvalue of the residuals is {null.observed[0]:.1f}; "
        f"panels simulated with one dimension exceed {null.cutoffs[0]:.1f} in 5 % (p = {null.p:.3f}): "
        + ("one dimension is not all that the items share." if more else "no trace of a second dimension.")
    )
    return Section(
        place="evidence",
        title="More than one dimension?",
        claim=claim,
        text=f"For comparison, without refitting: the second eigenvalue of the raw correlations is "
        f"{raw.observed[1]:.1f}, and panels drawn from the fitted model exceed {raw.cutoffs[1]:.1f} in 5 %. "
        "This is descriptive and no test.",
        figures=[_scree(null, claim, "Eigenvalue of the residuals")],
        how=f"The model of {label(checks.model)} is fitted to the responses and to {null.n_draws} panels "
        f"simulated from that fit, all with preset {checks.preset}; standardised residuals of each panel "
        f"from its own fit. Simulated p-value, seed {checks.seed}.",
        otherwise="A first dot below the dashed line would leave no trace of a second dimension."
        if more
        else "A first dot above the dashed line would be the trace of a second dimension.",
    )


def _scree(null: EigenvalueNull, alt: str, ylabel: str, *, log: bool = False) -> Figure:
    return draw(
        partial(_paint_scree, null=null, ylabel=ylabel, log=log),
        alt=alt,
        caption="Dots: the observed panel, largest first. Dashed: what random panels exceed in 5 % of draws; "
        "the test stands on the first dot.",
        height=2.4,
    )


def _paint_scree(axes: Axes, null: EigenvalueNull, ylabel: str, log: bool) -> None:
    n = min(RANKS, len(null.observed))
    rank, observed, cutoffs = np.arange(1, n + 1), null.observed[:n], null.cutoffs[:n]
    above = null.above[:n]
    axes.plot(rank, cutoffs, color=GREY, linestyle="--")
    axes.plot(rank[above], observed[above], "o", color=VERMILION)
    axes.plot(rank[~above], observed[~above], "o", color=BLUE, fillstyle="none")
    if log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.set_yticks([tick for tick in LOG_TICKS if low <= tick <= high])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    else:
        axes.set_ylim(0, 1.08 * max(observed.max(), cutoffs.max()))
    axes.set(xlabel="rank", ylabel=ylabel, xticks=rank)
    along = np.linspace(1, n, 20 * n)  # close enough that no label fits between two of its points
    line, dots = np.column_stack([along, np.interp(along, rank, cutoffs)]), np.column_stack([rank, observed])
    crowd = np.vstack([line, dots])
    _label_clear(axes, "random panels, 95 %", np.column_stack([rank, cutoffs])[::-1], crowd, color=GREY)
    _label_clear(axes, "observed", dots, crowd)


def _label_clear(axes: Axes, text: str, spots: Array, crowd: Array, **style: Any) -> None:
    """Write a label at the first of the (spot, 2) spots at which it covers none of the (point, 2) crowd."""
    label = axes.annotate(text, tuple(spots[0]), (0, 0), textcoords="offset points", va="center", **style)
    canvas = axes.get_figure(root=True)
    assert canvas is not None  # axes always live on one
    canvas.draw_without_rendering()
    points, frame = axes.transData.transform(crowd), axes.get_window_extent()

    def covered(place: tuple[Array, str, float, float]) -> float:
        spot, side, *offset = place
        label.xy = (spot[0], spot[1])
        label.set(ha=side, position=offset)
        box = label.get_window_extent().padded(LABEL_GAP)
        inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 + 2 * LABEL_GAP and frame.y0 <= box.y0
        return box.count_contains(points) if inside else np.inf

    sides = (("left", 7), ("right", 0), ("left", 0))
    places = [(spot, side, x, y) for spot in spots for y in HEIGHTS for side, x in sides]
    covered(min(places, key=covered))


# Fit ---------------------------------------------------------------------------------------------------


def _fit(checks: FitChecks) -> Section:
    items, subjects = int(checks.items["flag"].sum()), int(checks.subjects["flag"].sum())
    every = len(checks.items) * (len(checks.items) - 1) // 2
    judged = f"{counted(checks.n_pairs, 'pair')} of items"
    if checks.n_pairs < every:
        judged += f" that the panel can judge (of {every:,})"
    claim = (
        f"Beyond one dimension, in {checks.n_dependent or 'none'} of {judged} the items depend on each "
        f"other; {items} of {len(checks.items)} items and {subjects} of {len(checks.subjects)} models do "
        "not fit."
    )
    largest = ""
    if len(checks.pairs):
        top = checks.pairs.iloc[0]
        largest = (
            f"The largest residual correlation (Q3) is {signed(top['q3'], '.2f')}, of {top['item_1']} with "
            f"{top['item_2']}; the largest of a simulated panel exceeds {signed(checks.q3_cutoff, '.2f')} in "
            "5 %."
        )
    return Section(
        place="evidence",
        title="Local dependence and fit",
        claim=claim,
        text=largest + (_SILENT_PAIRS if checks.n_pairs < every else ""),
        how="Residual correlations of pairs, G2 of items over five bands of ability, and lz of models, each "
        f"against {checks.n_panels} panels simulated from {label(checks.model)} and refitted; flags hold "
        "over all pairs, all items, all models at 5 % (simulated, family-wise).",
        otherwise="Pairs that depend on each other count twice in the score; none is flagged by chance in "
        "95 % of panels.",
        table=checks.pairs if len(checks.pairs) else None,
        columns=COLUMNS,
        formats=FORMATS,
        caption="The largest residual correlations.",
        file="local_dependence.csv",
    )


_SILENT_PAIRS = (
    "\n\nA pair can be judged where the models that answered both items leave enough to chance (variances of "
    f"the two responses, multiplied and summed over models, of {MIN_INFORMATION:g} or more). Where nearly "
    "all of them pass, or fail, or few answered both, one model that surprises in both would make any "
    "two items look dependent."
)


def _predictive(table: pd.DataFrame, model: str) -> Section:
    off = table[(table["observed"] < table["low"]) | (table["observed"] > table["high"])]
    names = [CHECK_NAMES[check] for check in off["check"]]
    claim = (
        f"Panels drawn from the fitted model differ from the observed one in {' and '.join(names)}."
        if names
        else "Panels drawn from the fitted model have scores and item pairs like the observed one."
    )
    draws = int(table["draws"].iloc[0])
    return Section(
        place="evidence",
        title="Would the fitted model produce such data?",
        claim=claim,
        how=f"{draws} panels drawn from the posterior of {label(model)}, with the same models, items and "
        f"missing cells; posterior predictive p-values, seed {table['seed'].iloc[0]}.",
        otherwise="These checks use the data twice: a value inside its interval is weak comfort.",
        table=table.assign(check=table["check"].map(CHECK_NAMES)).drop(columns=["draws", "seed"]),
        columns=COLUMNS | {"p": "Posterior predictive p-value: twice the smaller share of drawn panels."},
        formats=FORMATS,
        caption="Observed values and those of panels drawn from the fitted model.",
        file="predictive_checks.csv",
    )


def _flagged(table: pd.DataFrame, what: str, fit: str) -> str:
    n = int(table["flag"].sum())
    return f"{n} of {len(table)} {what} {by_number(n, 'does', 'do')} not {fit} (5 % over all of them)."


# Reliability -------------------------------------------------------------------------------------------


def _reliability(structure: Structure) -> Section:
    table = structure.reliability
    first = table.iloc[0]
    lowest = table.sort_values("reliability").iloc[0]
    claim = (
        f"The abilities of {label(first['model'])} have reliability {first['reliability']:.2f} in this pool; "
        f"the items tell most at theta {signed(first['most_informative'], '.1f')}, where the standard error "
        f"is {first['smallest_se']:.2f}."
    )
    if len(table) > 1:
        items = counted(lowest["items"], "item")
        claim += (
            f" Of all {len(table)} dimensions, {lowest['factor']} ({items}) is the least reliable: "
            f"{lowest['reliability']:.2f}."
        )
    curves = structure.information
    curve = curves[(curves["model"] == first["model"]) & (curves["factor"] == first["factor"])]
    figure = draw(
        partial(_paint_information, curve=curve),
        alt=claim,
        caption="Higher: models of that ability are told apart more precisely.",
        height=2.2,
    )
    return Section(
        place="evidence",
        title="Reliability",
        claim=claim,
        figures=[figure],
        how="Fits to every response. Reliability: variance of the posterior means of theta over that plus "
        "the mean posterior variance. Test information: Fisher information of the items at their estimates.",
        otherwise="Reliability near 0 would mean that the order of the models is noise.",
        table=table,
        columns=COLUMNS,
        formats=FORMATS,
        caption="Every dimension of every full-data fit.",
        file="reliability.csv",
    )


def _paint_information(axes: Axes, curve: pd.DataFrame) -> None:
    axes.plot(curve["theta"], curve["information"], color=BLUE)
    axes.set(xlabel="ability (theta)", ylabel="test information", xlim=(-4, 4))
    axes.set_ylim(0, None)


# Loadings ----------------------------------------------------------------------------------------------


def _loadings(structure: Structure) -> Section:
    agreement = agreement_table(structure.rotated)
    claim = " ".join(_agreement_words(row) for _, row in agreement.iterrows())
    found = as_good(congruence_table(structure.rotated))
    found = found[found["criterion"] == "varimax"]
    return Section(
        place="evidence",
        title="Loadings of exploratory models",
        claim=claim,
        figures=[_congruence_figure(found, claim)] if len(found) else [],
        how="Fits to every response. Loadings are standardised and rotated by varimax and by oblimin, signs "
        "and order fixed; every other restart is turned towards the selected one, and Tucker's congruence "
        f"taken dimension by dimension; from {EQUAL:g} on it is the same dimension. Judged are restarts "
        f"whose training log-likelihood is at most {percent(AS_GOOD)} worse than the selected one's, and at "
        f"least {percent(SETTLED)} of them must agree with it: what a start that fits less well misses "
        "does not count against a solution.",
        otherwise=f"A congruence below {EQUAL:g} means that another start finds another dimension that "
        "fits as well: such loadings are not to be interpreted, however well the model predicts.",
        table=agreement,
        columns=COLUMNS,
        formats=FORMATS,
        caption="Agreement of restarts on the dimensions of each exploratory model.",
        file="restarts_of_loadings.csv",
    )


def _agreement_words(row: pd.Series) -> str:
    name, n, good, agree = label(row["model"]), row["restarts"], row["as_good"], row["agree"]
    worse = _worse_words(n - good)
    if n < 2:
        return f"{name}: one restart, so nothing tells whether its loadings would be found again."
    if good < 2:
        return f"{name}: none of {n - 1} other restarts fits as well, so do not interpret its loadings."
    if not row["settled"]:
        found = f"only {agree} of {good} restarts find" if agree > 1 else f"no other of {good} restarts finds"
        return (
            f"{name}: {found} the {counted(row['dims'], 'dimension')} of the selected one: do not interpret "
            f"its loadings{worse}."
        )
    if agree < good:
        return (
            f"{name}: {agree} of {good} restarts agree; {good - agree} "
            f"{by_number(good - agree, 'finds', 'find')} other dimensions with a likelihood as high{worse}."
        )
    return f"{name}: {good} restarts agree (congruence at least {row['lowest']:.2f}){worse}."


def _worse_words(n: int) -> str:
    """What became of restarts that fit less well, after what is said about the others."""
    if not n:
        return ""
    return (
        f"; {n} more {by_number(n, 'ends', 'end')} at a clearly lower likelihood and "
        f"{by_number(n, 'does', 'do')} not count"
    )


def _congruence_figure(found: pd.DataFrame, alt: str) -> Figure:
    spread = found.groupby(["model", "dim"], sort=False)["congruence"].agg(["median", "min", "max"])
    figure = dot_interval_figure(
        [f"{short_label(str(model))}: {dim}" for model, dim in spread.index],
        spread["median"],
        spread["min"],
        spread["max"],
        lines={"the same dimension": EQUAL},
        value_format=".2f",
        xlabel="Congruence with the selected restart: median, lowest and highest",
        alt=alt,
        caption="Dots right of the line, with short bars: starts that fit as well find this dimension.",
        from_zero=True,
    )
    return replace(figure, svg=figure.narrow_svg, narrow_svg="")


def _loadings_tables(structure: Structure) -> list[Section]:
    """Oblique loadings of the first exploratory model, item by item."""
    one = next((one for one in structure.rotated if one.criterion == "oblimin"), None)
    if one is None:
        return []
    settled = agreement_table(structure.rotated)["settled"].iloc[0]
    dims, upper = [str(dim) for dim in one.loadings], np.triu_indices(len(one.correlation), 1)
    correlations = ", ".join(signed(value, ".2f") for value in one.correlation.to_numpy()[upper])
    return [
        Section(
            place="explore",
            title="Loadings",
            claim=f"Oblimin loadings of {label(one.model)}, the exploratory model that predicts best; its "
            f"dimensions correlate {correlations}."
            + ("" if settled else " Restarts do not settle on them: do not interpret them."),
            table=one.loadings.reset_index(),
            columns={"item": COLUMNS["item"]} | dict.fromkeys(dims, "Loading on this dimension."),
            formats=dict.fromkeys(dims, ".2f"),
            caption="loadings.csv has every exploratory model, rotated both ways.",
            file="loadings_oblimin.csv",
        )
    ]
