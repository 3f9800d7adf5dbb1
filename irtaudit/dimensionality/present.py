"""Test 1 in the reader's words: a comparison and its verdict become sections of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.compare import Comparison
from irtaudit.dimensionality.followup import Followed
from irtaudit.dimensionality.gates import N_DRAWS, Power, unplaced
from irtaudit.dimensionality.labels import label, short_label
from irtaudit.dimensionality.nested import finding_sentence, lower_likelihoods
from irtaudit.dimensionality.pairwise import CLEAR, standings
from irtaudit.dimensionality.plan import CLAIM
from irtaudit.dimensionality.present_structure import TERMS as STRUCTURE_TERMS
from irtaudit.dimensionality.present_structure import structure_evidence, structure_limits, structure_tables
from irtaudit.dimensionality.structure import Structure
from irtaudit.dimensionality.tables import abilities_table, items_table
from irtaudit.dimensionality.verdict import (
    GAIN_OVER,
    MET,
    NOT_MET,
    OPEN,
    STATES,
    Verdict,
    decisive,
    gains,
    judge,
    one_dimension_gains,
    shown,
)
from irtaudit.irt.sites import GUESS_SD
from irtaudit.report.curves import small_curves
from irtaudit.report.dots import dot_interval_figure
from irtaudit.report.figures import GREEN, draw, signed
from irtaudit.report.section import Figure, Fold, Section
from irtaudit.report.section import Verdict as Answer
from irtaudit.stats.bootstrap import FEW_CLUSTERS
from irtaudit.stats.resampling import Interval
from irtaudit.words import by_number, counted, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

    from irtaudit.irt.result import FitResult

ADDITIVE = "item_subject_logit"
MAX_CURVES = 600
"""Items that get a response curve of their own on the page."""
BANDS = 5
"""Bands of ability whose observed pass rates stand beside a curve."""
MAX_PRINTED = 12
"""Dimensions up to which every correlation is printed into its cell."""
FEW_PRINTED = 6
"""Dimensions up to which the print is larger."""
DARK = 0.8
"""Opacity of green from which white print is the more legible one."""
ONE = 0.9995
"""Correlations from here on are printed as 1."""
SMALL_FACTOR = 10
GUESS_UNLEARNED = 0.8
"""Posterior over prior SD above which nothing is said about guessing."""

TERMS = {
    "1PL": "Item response model with a difficulty per item; all items separate models equally sharply.",
    "2PL": "Item response model with a difficulty and a discrimination per item.",
    "3PL": "A 2PL in which even the weakest model passes an item with some probability.",
    "nats": "Unit of log-loss; 0.01 less means about 1 % more probability given to what happened.",
    "dimension": "One scale along which models differ; one score assumes one dimension.",
    "free dimensions": "Dimensions found from the data: every item may depend on each of them.",
    "item means": "Every model passes an item at the item's own pass rate: what a score adds nothing to.",
    **STRUCTURE_TERMS,
}
"""Words of Test 1 for the glossary of the page."""
COLUMNS = {
    "model": "Name of the item response model: structure, dimensions, family.",
    "family": "1pl: one slope for all items; 2pl: a slope per item; 3pl: and a guessing floor.",
    "structure": "Baseline, one dimension, dimensions found from the data, or given by item category.",
    "dims": "Number of dimensions.",
    "log_loss": "Held-out log-loss in nats per response, mean over splits; lower is better.",
    "log_loss_sd": "Its standard deviation over splits.",
    "log_loss_predictive": "Held-out log-loss when predictions are averaged over the posterior.",
    "brier": "Held-out Brier score, mean over splits; lower is better.",
    "brier_sd": "Its standard deviation over splits.",
    "train_log_lik": "Log-likelihood of the training responses, mean over splits.",
    "fitted_quantities": "Item parameters and abilities, counted as the source paper does.",
    "aic": "Akaike's criterion by that count; it takes no part in the verdict.",
    "bic": "Bayesian criterion by that count; it takes no part in the verdict.",
    "fitted_quantities_exact": "The same with one intercept per item and learned correlations.",
    "restart_sd": "Standard deviation of the log-loss over restarts, mean over splits.",
    "note": "What to know before reading the row.",
    "sd": "Standard deviation.",
    "lowest": "Best restart minus the mean of its split.",
    "highest": "Worst restart minus the mean of its split.",
    "difference": "Log-loss of the best one-dimensional model minus this one's; above 0: this one is better.",
    "low": "Lower end of the 95 % interval.",
    "high": "Upper end of the 95 % interval.",
    "splits_won": "Splits in which this model predicts better.",
    "every_restart_better": "Whether its worst restart beats the other's best in every split.",
    "margin": "The smallest difference that counts.",
    "position": "Where the interval lies: above, below or across the margin.",
    "condition": "What the rule asks.",
    "state": "Met, not met, not needed, or open: not computed, or too uncertain to tell.",
    "subject": "Name of the model.",
    "theta": "Ability: posterior mean; 0 is the average of the pool, 1 is one standard deviation.",
    "theta_sd": "Posterior standard deviation of theta.",
    "rank": "Rank of theta; 1 is best.",
    "rank_low": "Best rank within the 95 % interval.",
    "rank_high": "Worst rank within the 95 % interval.",
    "over_next": "Probability that its ability is higher than that of the next model in the list.",
    "clearly_above": "Number of models it is better than with probability .95 or more.",
    "clearly_below": "Number of models that are better than it with probability .95 or more.",
    "level_with": "Number of models whose order with it is open.",
    "score": "Share of all items it answered that the model passes, those of the screen included.",
    "item": "Name of the item; a link opens its curve.",
    "difficulty": "Theta at which a model passes half of the time, guessing aside.",
    "difficulty_sd": "Its posterior standard deviation (delta method).",
    "slope": "Discrimination: logits per unit of theta.",
    "slope_sd": "Posterior standard deviation of the slope.",
    "guess": "Probability that the weakest model passes.",
    "pass_rate": "Share of the models that pass the item.",
    "responses": "Number of observed responses.",
    "factor_1": "One dimension of the pair.",
    "factor_2": "The other one.",
    "correlation": "Correlation of the two dimensions over the models of this pool.",
    "population_low": "Lower end of the 95 % interval for models like these, of which others might be here.",
    "population_high": "Its upper end; 1: the two may be the same dimension.",
    "panel_low": "Lower end of the 95 % interval for the very models of this pool: measurement error alone.",
    "panel_high": "Its upper end; 1: the two may be the same dimension.",
    "measurement_sd": "Typical measurement error on the scale of arcsin r (radians), the same at every r.",
}
ALONE = {
    "low": "Lower end of the 95 % interval of this comparison alone.",
    "high": "Upper end of the 95 % interval of this comparison alone.",
    "min": "Smallest difference of a split.",
    "max": "Largest difference of a split.",
    "reference": "The model that all are compared with.",
    "n_splits": "Number of splits.",
}
FORMATS = dict.fromkeys(
    (
        "log_loss",
        "log_loss_sd",
        "log_loss_predictive",
        "brier",
        "brier_sd",
        "difference",
        "low",
        "high",
        "margin",
    ),
    ".4f",
)
THETA_FORMATS = dict.fromkeys(
    ("theta", "theta_sd", "low", "high", "difficulty", "difficulty_sd", "slope"), ".2f"
)
CORRELATION_FORMATS = dict.fromkeys(
    ("correlation", "population_low", "population_high", "panel_low", "panel_high", "measurement_sd"), ".3f"
)
RATES = {"score": ".1%", "pass_rate": ".1%", "guess": ".2f", "slope_sd": ".2f"}


def present(
    comparison: Comparison,
    verdict: Verdict | None = None,
    *,
    claim: str = CLAIM,
    holds_for: Mapping[str, str] | None = None,
    full: Mapping[str, FitResult] | None = None,
    matrix: ResponseMatrix | None = None,
    family: str | None = None,
    power: Power | None = None,
    correlations: pd.DataFrame | None = None,
    structure: Structure | None = None,
    given: ResponseMatrix | None = None,
) -> list[Section]:
    """Sections of the report that show a comparison, its verdict and the full-data fits.

    Parameters
    ----------
    comparison : Comparison
    verdict : Verdict, optional
        Default: the rule's verdict on the comparison.
    claim : str
        The reading under test, in the user's words.
    holds_for : mapping of str to str, optional
        What the answer holds for: pool, data, version.
    full : mapping of str to FitResult, optional
        Fits to every observed cell: the best one-dimensional model and the confirmatory ones.
    matrix : ResponseMatrix, optional
        The matrix that was fitted, for tables of models and items.
    family : str, optional
        Subject column that named the families behind the verdict's cluster intervals.
    power : Power, optional
        How often the rule finds several dimensions in a panel like this.
    correlations : DataFrame, optional
        Factor correlations with intervals, see `irtaudit.dimensionality.tables.correlations_table`.
    structure : Structure, optional
        Eigenvalues, fit and reliability, see `irtaudit.dimensionality.structure.describe_structure`.
    given : ResponseMatrix, optional
        The matrix before the screen, whose items all count for a score; default `matrix`.

    Returns
    -------
    list of Section
    """
    found = verdict or judge(comparison)
    fits = dict(full or {})
    sections = [
        _answer(found, claim, holds_for or {}),
        _picture(comparison, found),
        *_paired(comparison, found),
        *_gain(comparison, found),
        *(structure_evidence(structure) if structure else []),
        *_all_correlations(fits, correlations),
        _restarts(comparison, found),
        _nested(comparison),
        *_families(found, family, matrix),
        *_power_card(power, found.rule.min_power),
        _conditions(found),
        *_limits(comparison, found, fits, matrix, family),
        *(structure_limits(structure) if structure else []),
    ]
    best = fits.get(found.best or "")
    if best is not None and matrix is not None:
        sections += [_models(best, matrix, given or matrix), _order(best, found.word), _items(best, matrix)]
    return [*sections, *(structure_tables(structure) if structure else [])]


def present_followup(followed: Followed) -> Section:
    """Section of the report that shows a follow-up on a subset of the items."""
    comparison, name = followed.comparison, followed.followup.name
    paired = comparison.paired[comparison.paired["model"].isin(_fitted(comparison))]
    losses = _losses(comparison.table)
    claim = f"{sentence(name)} ({counted(followed.n_items, 'item')}), "
    if comparison.reference is None or paired.empty:
        claim += "there are no two models to compare whose fits succeeded."
    else:
        best = paired.sort_values("difference").iloc[-1]
        gain = shown(Interval(best["difference"], best["low"], best["high"]))
        claim += (
            f"{label(best['model'])} reaches a held-out log-loss of {losses[best['model']]:.3f} against "
            f"{losses[comparison.reference]:.3f} of {label(comparison.reference)}: a gain of {gain}, better "
            f"in {best['splits_won']} of {counted(best['n_splits'], 'split')}."
        )
    return Section(
        place="evidence",
        title=f"Follow-up: {name}",
        claim=claim,
        how=f"The same held-out responses, without the items whose {followed.followup.column} is "
        f"{', '.join(followed.followup.leave_out)}; every model is fitted anew.",
        otherwise="A gain that vanishes here rests on the items left out.",
        table=comparison.table.drop(columns=["aic_exact", "bic_exact"]).sort_values(
            "log_loss", ignore_index=True
        ),
        columns=COLUMNS,
        formats=FORMATS,
        caption="Every model and baseline on these items, best first.",
        file="followup.csv",
    )


def _fitted(comparison: Comparison) -> list[str]:
    """Models, without baselines and failed fits."""
    table = comparison.table[comparison.table["structure"] != "baseline"]
    return [name for name in table["model"] if name not in comparison.failed]


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


# The answer and its picture ---------------------------------------------------------------------------


def _answer(verdict: Verdict, claim: str, holds_for: Mapping[str, str]) -> Section:
    return Section(
        place="answer",
        claim=verdict.because,
        text=f"What would change this answer? {verdict.what_would_change}",
        verdict=Answer(reading=claim, word=verdict.word, holds_for=holds_for),
    )


def _picture(comparison: Comparison, verdict: Verdict) -> Section:
    table = comparison.table
    lines = _loss_lines(table, verdict)
    losses = _losses(table)
    top = min(losses, key=lambda name: losses[name])
    claim = f"The lowest held-out log-loss is {losses[top]:.3f}, with {short_label(top)}"
    if verdict.best:
        claim += f"; the best single dimension reaches {losses[verdict.best]:.3f}"
    if GAIN_OVER in losses:
        claim += f", item means alone {losses[GAIN_OVER]:.3f}"
    figure = dot_interval_figure(
        [label(model) for model in table["model"]],
        table["log_loss"],
        table["log_loss"] - table["log_loss_sd"],
        table["log_loss"] + table["log_loss_sd"],
        groups=table["structure"].tolist(),
        lines=lines,
        emphasis=[label(name) for name in verdict.challengers],
        notes={label(name): "failed fit" for name in comparison.failed},
        xlabel="Held-out log-loss in nats per response, mean and SD over splits; lower is better",
        alt=claim + ".",
        caption="Each dot is a way to predict responses that were set aside, its line the spread from split "
        "to split. Bold: models with several dimensions that challenge the single score. To count, one must "
        "lie left of the margin's line by more than chance; the next figure shows that close up.",
    )
    return Section(
        place="picture",
        title="Held-out predictions",
        claim=claim + ".",
        figures=[figure],
        table=table.drop(columns=["aic_exact", "bic_exact"]).sort_values("log_loss", ignore_index=True),
        columns=COLUMNS,
        formats=FORMATS,
        caption="Every model and baseline, best first.",
        file="comparison.csv",
    )


def _losses(table: pd.DataFrame) -> dict[str, float]:
    return dict(zip(table["model"], table["log_loss"], strict=True))


def _loss_lines(table: pd.DataFrame, verdict: Verdict) -> dict[str, float]:
    if verdict.best is None:
        return {}
    best = _losses(table)[verdict.best]
    lines = {"best with one dimension": best}
    if verdict.margin > 0:
        lines["better by the margin"] = best - verdict.margin
    return lines


# Why, piece by piece -----------------------------------------------------------------------------------


def _paired(comparison: Comparison, verdict: Verdict) -> list[Section]:
    evidence = verdict.evidence
    if evidence.empty or verdict.best is None:
        return []
    names = [label(name) for name in evidence["challenger"]]
    n = comparison.by_split["split"].nunique()
    claim = _paired_claim(comparison, verdict)
    structures = comparison.table.set_index("model")["structure"]
    figure = dot_interval_figure(
        names,
        evidence["difference"],
        evidence["low"],
        evidence["high"],
        groups=[structures[name] for name in evidence["challenger"]],
        lines={"no difference": 0.0} | ({"margin": verdict.margin} if verdict.margin > 0 else {}),
        value_format=".4f",
        xlabel="Gain in held-out log-loss over one dimension, nats per response",
        alt=claim,
        caption="Right of zero: the model with several dimensions predicts better. Right of the margin: by "
        "enough to matter. The lines are 95 % intervals, widened for the number of models that could be "
        "above it.",
    )
    return [
        Section(
            place="evidence",
            title="Held-out comparison",
            claim=claim,
            figures=[_card(figure)],
            how=f"{counted(n, 'split')} of the responses; each model is fitted to the same training "
            f"responses and scored on the same held-out ones. Differences to {label(verdict.best)}; t "
            "intervals"
            + (
                ""
                if comparison.sampling is None
                else " from the spread between splits and between responses,"
            )
            + " corrected for overlapping splits (Nadeau and Bengio 2003) and for the number of challengers "
            "(Bonferroni; those that stay wholly below the margin settle first and are not counted again).",
            otherwise="Every interval below the margin would speak for one score, one above it against.",
            table=comparison.paired,
            columns=COLUMNS | ALONE,
            formats=FORMATS | {"sd": ".4f", "min": ".4f", "max": ".4f"},
            caption=f"Every model against {verdict.best}. Each interval is for its comparison alone, and so "
            "narrower than those of the figure and the sentences, which allow for the number of models.",
            file="paired.csv",
        )
    ]


def _paired_claim(comparison: Comparison, verdict: Verdict) -> str:
    evidence = verdict.evidence
    largest = evidence.sort_values("difference").iloc[-1]
    won = comparison.paired.set_index("model")["splits_won"].get(largest["challenger"], 0)
    name, splits = short_label(largest["challenger"]), comparison.by_split["split"].nunique()
    if largest["difference"] > 0:
        best = f"The largest gain is {largest['difference']:.4f}, with {name}"
    else:
        best = f"None gains anything; the least is lost, {-largest['difference']:.4f}, with {name}"
    return f"{_placed(evidence, verdict.margin)} {best} (better in {won} of {counted(splits, 'split')})."


def _placed(evidence: pd.DataFrame, margin: float) -> str:
    if not margin > 0:
        return "One dimension gains nothing, so there is no margin for more."
    least = f"the margin of {margin:.4f} nats"
    if len(evidence) == 1:
        told = {"above": "gains clearly more than", "below": "gains clearly less than"}
        return (
            f"The one richer model {told.get(evidence['position'].iloc[0], 'cannot be placed at')} {least}."
        )
    counts = evidence["position"].value_counts()
    above, below, across = (counts.get(position, 0) for position in ("above", "below", "across"))
    return (
        f"Of {len(evidence)} richer models {above or 'none'} {by_number(above, 'gains', 'gain')} clearly "
        f"more than {least}, {below or 'none'} clearly less, {across or 'none'} cannot be placed."
    )


def _card(figure: Figure) -> Figure:
    """The figure as it is laid out for a phone, which is how wide a card is."""
    return replace(figure, svg=figure.narrow_svg, narrow_svg="")


def _gain(comparison: Comparison, verdict: Verdict) -> list[Section]:
    if verdict.best is None:
        return []
    additive = (
        comparison.interval(verdict.best, ADDITIVE) if ADDITIVE in set(comparison.table["model"]) else None
    )
    state = verdict.conditions["state"].iloc[0]
    claim = {
        MET: f"Knowing which model answers improves predictions by {shown(verdict.gain)} over item means: "
        "the responses do measure something.",
        NOT_MET: "Knowing which model answers does not improve predictions beyond noise: "
        f"{one_dimension_gains(verdict.gain)}.",
        OPEN: "Whether knowing which model answers improves predictions cannot be told: "
        f"{one_dimension_gains(verdict.gain)}.",
    }[state]
    candidates = int((comparison.table["structure"] == "unidimensional").sum())
    return [
        Section(
            place="evidence",
            title="Is there something to measure?",
            claim=claim,
            text=f"Compared with {label(ADDITIVE)}, a rule for a spreadsheet, it {gains(additive)}."
            if additive
            else "",
            how="Log-loss of the items' own pass rates minus that of the best one-dimensional model, on the "
            "same held-out responses. The margin for more dimensions is "
            f"{verdict.rule.margin_share:.1%} of it." + _chosen_among(candidates),
            otherwise="On responses shuffled within items the interval would hold 0 or lie below it."
            if state == MET
            else "An interval above 0 would show that the responses tell models apart.",
        )
    ]


def _chosen_among(candidates: int) -> str:
    if candidates < 2:
        return ""
    return (
        f" As the best of {candidates} was chosen, its interval is that much wider (Bonferroni) than the one "
        "for a single comparison in the table of differences."
    )


def _all_correlations(fits: Mapping[str, FitResult], table: pd.DataFrame | None) -> list[Section]:
    if table is None:
        return []
    return [_correlations(fits[str(name)], rows) for name, rows in table.groupby("model", sort=False)]


def _correlations(fit: FitResult, table: pd.DataFrame) -> Section:
    claim = _correlation_claim(fit, table)
    correlations = fit.factor_correlations
    assert correlations is not None  # the caller checked
    return Section(
        place="evidence",
        title="Factor correlations",
        claim=claim,
        figures=[_heat_map(correlations, claim)] if len(table) > 1 else [],
        text=_sameness(table),
        how="Confirmatory fit to every observed response; correlation of the second moments of theta over "
        "the models of this pool, averaged over the posterior of the prior's correlations. Panel interval: "
        "what the correlation may be for the very models of this pool, by panels that are simulated from the "
        "fit and refitted; their error is taken on the scale of arcsin r. Population interval: what it may "
        "be for models like them; it holds the panel interval.",
        otherwise="Correlations near 1 mean that the categories order the models alike, lower ones do not.",
        table=table.drop(columns="model"),
        columns=COLUMNS,
        formats=CORRELATION_FORMATS,
        caption="Correlation of every pair of dimensions.",
        file="factor_correlations.csv",
    )


def _heat_map(correlations: pd.DataFrame, claim: str) -> Figure:
    return draw(
        lambda axes: _heat(axes, correlations),
        alt=claim,
        caption="Darker: the two dimensions order the models more alike. 1 would be the same dimension.",
        height=1.6 + 0.22 * len(correlations),
    )


def _correlation_claim(fit: FitResult, table: pd.DataFrame) -> str:
    lowest = table.sort_values("correlation").iloc[0]
    interval = (
        f"95 % interval for models like these {_coefficient(lowest['population_low'])} to "
        f"{_coefficient(lowest['population_high'])}"
    )
    model, least = f"With {short_label(fit.spec.name)}", _coefficient(lowest["correlation"])
    if len(table) == 1:
        return f"{model}, the two abilities correlate {least} ({interval})."
    pair = f"{lowest['factor_1']} with {lowest['factor_2']}"
    most, median = (_coefficient(table["correlation"].agg(what)) for what in ("max", "median"))
    if least == most:
        return f"{model}, all {fit.spec.dims} abilities correlate {least} (least {pair}; {interval})."
    return (
        f"{model}, the {fit.spec.dims} abilities correlate between {least} ({pair}; {interval}) and {most}; "
        f"the median is {median}."
    )


def _coefficient(r: float) -> str:
    """A correlation by two decimals, by three where two would say 1 and it is less."""
    return signed(r, ".3f" if 0.995 <= r < ONE else ".2f")


def _sameness(table: pd.DataFrame) -> str:
    """Whether dimensions may be the same, by the higher of both upper limits."""
    one = int((table[["population_high", "panel_high"]].max(axis=1) >= ONE).sum())
    if not one:
        return ""
    if len(table) == 1:
        return "The upper limit is 1: the two may be the same dimension."
    which = "every pair" if one == len(table) else f"{one} of {len(table)} pairs"
    return f"For {which} the upper limit is 1: the two dimensions of such a pair may be the same."


def _heat(axes: Axes, correlations: pd.DataFrame) -> None:
    values, n = correlations.to_numpy(), len(correlations)
    names = [f"{_short(str(factor))}  {i}" for i, factor in enumerate(correlations.index, 1)]
    for i in range(n):
        for j in range(i):
            strength = float(np.clip(values[i, j], 0, 1))
            axes.add_patch(_square(j, i, strength))
            if n <= MAX_PRINTED:
                ink = "white" if _shade(strength) > DARK else "black"
                text = f"{values[i, j]:.2f}".replace("0.", ".").replace("-", "\N{MINUS SIGN}")
                size = 6.5 if n > FEW_PRINTED else 9.0
                axes.text(j, i, text, ha="center", va="center", color=ink, fontsize=size)
    axes.set(xlim=(-0.5, n - 1.5), ylim=(n - 0.5, -0.5), xticks=range(n - 1), yticks=range(n))
    axes.set_xticklabels([str(i) for i in range(1, n)])
    axes.set_yticklabels(names)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _short(name: str, length: int = 22) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"


def _square(x: int, y: int, strength: float) -> Patch:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, color=GREEN, alpha=_shade(strength), lw=0)


def _shade(strength: float) -> float:
    """Opacity of a cell."""
    return 0.08 + 0.92 * strength**2


def _restarts(comparison: Comparison, verdict: Verdict) -> Section:
    spread = restart_spread(comparison)
    structures = comparison.table.set_index("model")["structure"]
    worst = spread.sort_values("sd").iloc[-1]
    side = "above" if worst["sd"] > verdict.margin else "below"
    against = f", {side} the margin of {verdict.margin:.4f}" if verdict.margin > 0 else ""
    n = int(comparison.restarts["restart"].nunique())
    claim = (
        f"The held-out log-loss of {n} restarts has an SD of {worst['sd']:.4f} nats in the least settled "
        f"item response model, which is {label(worst['model'])}{against}."
        if n > 1
        else "Every model was fitted from one start, so nothing tells how much the start matters."
    )
    figure = dot_interval_figure(
        [label(model) for model in spread["model"]],
        np.full(len(spread), np.nan),
        spread["lowest"],
        spread["highest"],
        groups=[structures[model] for model in spread["model"]],
        notes={label(m): f"SD {sd:.5f}" for m, sd in zip(spread["model"], spread["sd"], strict=True)},
        xlabel="Held-out log-loss of restarts minus the mean of their split",
        alt=claim,
        caption="From the best to the worst restart of a model. Short lines: no matter of luck.",
    )
    return Section(
        place="evidence",
        title="Restart agreement",
        claim=claim + _dominance(comparison, verdict),
        figures=[_card(figure)],
        how="Each model is fitted again from different random starts; the start with the highest training "
        "likelihood is kept, held-out responses never choose.",
        otherwise="Restarts that differ by more than the margin would make the comparison a matter of luck.",
        table=spread,
        columns=COLUMNS,
        caption="Spread of held-out log-loss over restarts.",
        file="restart_spread.csv",
    )


def restart_spread(comparison: Comparison) -> pd.DataFrame:
    """How far the restarts of each model lie apart.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    DataFrame
        ``model``; ``sd`` of held-out log-loss over the restarts of a split, mean over splits; ``lowest,
        highest``: best and worst restart minus the mean of its split, over all splits. Restarts that
        diverged are left out.
    """
    restarts = comparison.restarts.dropna(subset="log_loss")
    by_split = restarts.groupby(["model", "split"], sort=False)["log_loss"]
    deviation = (restarts["log_loss"] - by_split.transform("mean")).groupby(restarts["model"], sort=False)
    sd = by_split.std().groupby("model", sort=False).mean()
    table = pd.DataFrame({"sd": sd, "lowest": deviation.min(), "highest": deviation.max()})
    return table.rename_axis("model").reset_index()


def _dominance(comparison: Comparison, verdict: Verdict) -> str:
    paired = comparison.paired.set_index("model")
    challengers = [name for name in verdict.challengers if name in paired.index]
    better = [name for name in challengers if paired.loc[name, "every_restart_better"] is True]
    if not better or comparison.reference is None:
        return ""
    names = ", ".join(map(label, better))
    return f" Every restart of {names} predicts better than every one of {label(comparison.reference)}."


def _conditions(verdict: Verdict) -> Section:
    states = verdict.conditions["state"].value_counts().reindex(STATES).dropna().astype(int)
    counts = [f"{n} {'is' if n == 1 else 'are'} {state}" for state, n in states.items()]
    return Section(
        place="evidence",
        title="The rule and its conditions",
        claim=f"Of the rule's {len(verdict.conditions)} conditions, {', '.join(counts)}.",
        facts={
            sentence(row["condition"]): f"{row['state']}: {row['detail']}"
            for _, row in verdict.conditions.iterrows()
        },
        how=f"The margin is {verdict.rule.margin_share:.1%} of what one dimension gains over item means. "
        "First three conditions met: not supported. First and last two met: supported. First not met: "
        "nothing to measure. Else: inconclusive.",
        otherwise="Other states of these conditions; beside the answer at the top stands what it would take.",
    )


def _families(verdict: Verdict, family: str | None, matrix: ResponseMatrix | None) -> list[Section]:
    """Does the decisive gain hold over families of related models?"""
    evidence = verdict.evidence.dropna(subset="cluster_low")
    if evidence.empty:
        return []
    row = decisive(evidence)
    gain = gains(Interval(row["difference"], row["cluster_low"], row["cluster_high"]))
    holds = "the gain holds" if row["cluster_low"] > 0 else "a gain is not established"
    over = f"over whole families of models (column {family})" if family else "over single models"
    n = "" if family is None or matrix is None else f"{_family_counts(matrix.subjects[family])}. "
    return [
        Section(
            place="evidence",
            title="Family resemblance",
            claim=f"Resampled {over}, allowing {short_label(row['challenger'])} {gain}: {holds}.",
            how=f"{n}Bootstrap of whole families over all held-out responses, {N_DRAWS:,} draws; below "
            f"{FEW_CLUSTERS} families a t interval.",
            otherwise="A gain that a few related models bring would have an interval that includes 0.",
            table=evidence[["challenger", "difference", "cluster_low", "cluster_high"]],
            columns=COLUMNS,
            formats=FORMATS,
            caption="Gain of every richer model with its interval over families.",
            file="over_families.csv",
        )
    ]


def _family_counts(labels: pd.Series) -> str:
    """How many families there are, and how many models of none."""
    alone = unplaced(labels)
    known = counted(labels[~alone].nunique(), "family", "families")
    return known + (f" and {counted(int(alone.sum()), 'model')} of no known family" if alone.any() else "")


def _power_card(power: Power | None, needed: float) -> list[Section]:
    if power is None:
        return []
    return [
        Section(
            place="evidence",
            title="Power of the verdict",
            claim=f"In {round(power.power * power.n_panels)} of {counted(power.n_panels, 'simulated panel')} "
            f"of this size ({percent(power.power)}), the same comparison finds dimensions that correlate "
            f"{power.correlation:g}.",
            how=f"Simulated from this audit's item parameters ({power.factors}), refitted on its splits.",
            otherwise=f"Below {percent(needed)}, finding no further dimension says little.",
        )
    ]


def _nested(comparison: Comparison) -> Section:
    findings, lower = comparison.findings, lower_likelihoods(comparison.table)
    return Section(
        place="evidence",
        title="Did every fit succeed?",
        claim=_nested_claim(comparison, lower),
        how="A model that contains another can do whatever that one does. A fit with the lower training "
        "likelihood that also predicts worse, by more than two SDs over splits, is called failed and never "
        "serves as reference; one that only predicts worse is called overfit.",
        otherwise="A failed fit would make the richer model look worse than it is.",
        table=_nested_table(findings, lower),
        columns=COLUMNS,
        caption="Models that predict worse, or have a lower training likelihood, than a model they contain.",
        file="nested_findings.csv",
    )


def _nested_claim(comparison: Comparison, lower: pd.DataFrame) -> str:
    n = int((comparison.table["structure"] != "baseline").sum())
    failed, overfit = len(comparison.failed), len(comparison.findings) - len(comparison.failed)
    said = (
        f"{failed or 'None'} of {n} fits failed and {overfit or 'none'} overfit."
        if failed or overfit
        else f"None of {n} models predicts worse than a model it contains by more than the splits vary."
    )
    rest = lower[~lower["model"].isin(comparison.findings["model"])]
    if rest.empty:
        return said
    deficit = (rest["nested_train_log_lik"] - rest["train_log_lik"]).sort_values()
    worst = rest.loc[deficit.index[-1]]
    does = "does" if len(rest) == 1 else "do"
    return (
        f"{said} But {len(rest)} {does} not reach the training likelihood of a model contained, by up to "
        f"{deficit.iloc[-1]:,.1f} nats ({label(worst['model'])}, below {label(worst['nested'])})."
    )


def _nested_table(findings: pd.DataFrame, lower: pd.DataFrame) -> pd.DataFrame | None:
    rest = lower[~lower["model"].isin(findings["model"])].assign(finding="lower training likelihood")
    shown = [frame for frame in (findings, rest) if len(frame)]
    return pd.concat(shown, ignore_index=True) if shown else None


# What this does not show -------------------------------------------------------------------------------


def _limits(
    comparison: Comparison,
    verdict: Verdict,
    full: Mapping[str, FitResult],
    matrix: ResponseMatrix | None,
    family: str | None,
) -> list[Section]:
    limits = [
        (
            "The intervals of the held-out comparison cover the choice of responses, not of models.",
            "Models of one developer resemble each other, so the pool counts for fewer than its number. "
            + (
                f"The interval over families (column {family}) allows for that."
                if family and verdict.evidence["cluster_low"].notna().any()
                else f"No interval over families (column {family}) could be computed."
                if family
                else "No column names the families here: give one with --cluster, or the verdict takes "
                "models as unrelated."
            ),
        ),
        *_power_limit(verdict),
        *_restart_limits(comparison, verdict),
        *(
            (f"{sentence(label(row['model']))}: {row['finding']}.", sentence(finding_sentence(row)) + ".")
            for _, row in comparison.findings.iterrows()
        ),
        *_lower_limit(comparison),
        *_note_limits(comparison),
        *(_missing_limit(matrix) if matrix is not None else []),
        *(limit for fit in full.values() for limit in _fit_limits(fit)),
    ]
    return [Section(place="limit", claim=claim, text=text) for claim, text in limits]


def _lower_limit(comparison: Comparison) -> list[tuple[str, str]]:
    """Challengers that do not use what they have."""
    lower = lower_likelihoods(comparison.table)
    lower = lower[~lower["model"].isin(comparison.findings["model"])]
    if lower.empty:
        return []
    return [
        (
            "Some richer models fit the training responses less well than a model they contain.",
            f"{'; '.join(map(label, lower['model']))}: the panel is small for them, their priors hold them "
            "back, or the fit did not find what they could do. That they do not predict better says less.",
        )
    ]


def _power_limit(verdict: Verdict) -> list[tuple[str, str]]:
    if verdict.word != "inconclusive" or (verdict.evidence["position"] == "above").any():
        return []
    return [
        (
            "No evidence for more dimensions is not evidence for one.",
            "A pool of this size reveals dimensions that correlate .8 only so often (its power); below a "
            f"power of {percent(verdict.rule.min_power)} one dimension is never called supported.",
        )
    ]


def _restart_limits(comparison: Comparison, verdict: Verdict) -> list[tuple[str, str]]:
    spread = restart_spread(comparison)
    spread["range"] = spread["highest"] - spread["lowest"]
    wide = spread[spread["model"].isin(verdict.challengers) & (spread["range"] > verdict.margin)]
    if wide.empty:
        return []
    named = "; ".join(f"{short_label(row['model'])} ({row['range']:.4f})" for _, row in wide.iterrows())
    return [
        (
            "Some richer models depend on their random start.",
            f"Best and worst restart lie further apart than the margin of {verdict.margin:.4f}: {named}. The "
            "kept one has the highest training likelihood, which need not predict best.",
        )
    ]


def _note_limits(comparison: Comparison) -> list[tuple[str, str]]:
    """Notes of models and baselines: constant items, diverged restarts, scales at a boundary."""
    notes = comparison.by_split.loc[comparison.by_split["note"] != "", ["model", "note"]].drop_duplicates()
    limits = []
    for note, rows in notes.groupby("note", sort=False):
        models = list(dict.fromkeys(map(label, rows["model"])))
        limits.append((sentence(str(note)).rstrip(".") + ".", f"Concerns {'; '.join(models)}."))
    return limits


def _missing_limit(matrix: ResponseMatrix) -> list[tuple[str, str]]:
    share = 1 - matrix.observed.mean()
    if share == 0:
        return []
    return [
        (
            f"{share:.1%} of the responses are missing.",
            "Missing responses are left out, as if missing at random.",
        )
    ]


def _fit_limits(fit: FitResult) -> list[tuple[str, str]]:
    limits = []
    if fit.spec.structure == "confirmatory":
        sizes = pd.Series(fit.spec.pattern(len(fit.items)).sum(axis=0), list(fit.spec.factors))
        small = sizes[sizes < SMALL_FACTOR]
        if len(small):
            named = ", ".join(f"{factor} ({n})" for factor, n in small.items())
            limits.append(
                (
                    f"With {short_label(fit.spec.name)}, {len(small)} of {len(sizes)} "
                    f"{by_number(len(small), 'rests', 'rest')} on few items.",
                    f"Fewer than {SMALL_FACTOR} items: {named}. Their abilities are uncertain.",
                )
            )
    if fit.spec.family == "3pl":
        limits += _guess_limit(fit)
    return limits


def _guess_limit(fit: FitResult) -> list[tuple[str, str]]:
    ratio = np.asarray(fit.posterior()[1]["logit_guess"]) / GUESS_SD
    unlearned = int((ratio > GUESS_UNLEARNED).sum())
    if not unlearned:
        return []
    return [
        (
            f"Guessing is not identified for {unlearned} of {ratio.size} items.",
            f"The posterior of their guessing parameter is nearly as wide as its prior (SD ratio above "
            f"{GUESS_UNLEARNED}, median {np.median(ratio):.2f}); no claim is made about it.",
        )
    ]


# Look for yourself -------------------------------------------------------------------------------------


def _models(fit: FitResult, matrix: ResponseMatrix, given: ResponseMatrix) -> Section:
    table = abilities_table({fit.spec.name: fit}, fit.seed).set_index("subject")
    score = pd.DataFrame(given.responses, given.subjects.index).mean(axis=1).reindex(table.index)
    columns = ["theta", "low", "high", "rank", "rank_low", "rank_high"]
    places = (table["rank_high"] - table["rank_low"]).median()
    return Section(
        place="explore",
        title="Models",
        claim=f"{len(table)} models by ability; the 95 % interval of a rank spans "
        f"{counted(round(places), 'place')} or so.",
        table=_described(table[columns].assign(score=score)[["score", *columns]], matrix.subjects),
        columns=COLUMNS,
        formats=THETA_FORMATS | RATES,
        caption=f"Abilities under {label(fit.spec.name)}, fitted to every observed response.",
        file="abilities.csv",
    )


def _order(fit: FitResult, word: str) -> Section:
    """Is A better than B?"""
    table = standings(fit)
    pairs = len(table) * (len(table) - 1) // 2
    clear = int(table["clearly_above"].sum())
    first, second = table.index[:2]
    doubt = (
        "One score is not supported here: the order under each dimension stands in pairwise.csv."
        if word == "not supported"
        else ""
    )
    return Section(
        place="explore",
        title="Is A better than B?",
        claim=f"{clear / pairs:.0%} of the {counted(pairs, 'pair')} of models have a clear order, with "
        f"probability {CLEAR:g} or more; {first} is better than the next, {second}, with probability "
        f"{table['over_next'].iloc[0]:.2f}.",
        text=doubt,
        table=table,
        columns=COLUMNS,
        formats={"theta": ".2f", "over_next": ".2f"},
        caption=f"Standings under {label(fit.spec.name)}; every pair is in pairwise.csv. Probabilities from "
        "the posterior of theta, for these items and this pool.",
        file="standings.csv",
    )


def _items(fit: FitResult, matrix: ResponseMatrix) -> Section:
    table = items_table({fit.spec.name: fit}, matrix).sort_values("difficulty").set_index("item")
    columns = ["pass_rate", "difficulty", "difficulty_sd", "slope", "slope_sd", "guess", "responses"]
    chosen = table.iloc[np.unique(np.linspace(0, len(table) - 1, MAX_CURVES).round().astype(int))]
    every = "every item" if len(chosen) == len(table) else f"{len(chosen)} items, evenly over difficulty"
    return Section(
        place="explore",
        title="Items",
        claim=f"{len(table)} items from the easiest, {table.index[0]}, to the hardest, {table.index[-1]}.",
        table=_described(table[columns].dropna(axis=1, how="all"), matrix.items),
        columns=COLUMNS,
        formats=THETA_FORMATS | RATES,
        caption=f"Item parameters under {label(fit.spec.name)}, fitted to every observed response.",
        file="items.csv",
        folds_title=f"Item response curves of {every}",
        folds=[
            Fold(title=str(name), figures=[_curve(str(name), row, fit, matrix)])
            for name, row in chosen.iterrows()
        ],
    )


def _described(table: pd.DataFrame, covariates: pd.DataFrame) -> pd.DataFrame:
    """The table with the covariates of its rows beside it."""
    return table.join(covariates.drop(columns=table.columns, errors="ignore"))


def _curve(name: str, row: pd.Series, fit: FitResult, matrix: ResponseMatrix) -> Figure:
    grid = np.linspace(-3, 3, 31)
    floor = 0.0 if pd.isna(row["guess"]) else float(row["guess"])
    chance = floor + (1 - floor) * expit(row["slope"] * grid + row["intercept"])
    theta = fit.abilities.iloc[:, 0].to_numpy(float)
    centres, shares = band_shares(theta, matrix.responses[:, matrix.items.index.get_loc(name)])
    return small_curves(
        grid,
        {"fitted": chance},
        points={"fitted": (centres, shares)},
        xlabel="ability (theta)",
        ylabel="share that passes",
        alt=f"{name}: half of the models of ability {signed(row['difficulty'], '.1f')} pass; slope "
        f"{signed(row['slope'], '.1f')}.",
        caption="Line: fitted chance to pass. Dots: observed share in bands of equal numbers of models.",
    )


def band_shares(
    theta: NDArray[np.floating], responses: NDArray[np.floating], bands: int = BANDS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Observed pass rates in bands of ability that hold equally many subjects.

    Parameters
    ----------
    theta : (subject,) array
    responses : (subject,) array of 0, 1 or NaN
        Responses to one item.
    bands : int

    Returns
    -------
    centres, shares : (band,) array
        Mean theta and pass rate of the observed responses of each band; bands without any are left out.
    """
    seen = np.flatnonzero(~np.isnan(responses))
    parts = [
        part for part in np.array_split(seen[np.argsort(theta[seen], kind="stable")], bands) if part.size
    ]
    centres = np.array([theta[part].mean() for part in parts])
    return centres, np.array([responses[part].mean() for part in parts])
