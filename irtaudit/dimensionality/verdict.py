"""Does one score suffice? The rule, its evidence, and what would change the answer.

The yardstick is the gain of one dimension: log-loss of the item means minus log-loss of the best
unidimensional model. More dimensions matter when they add more than a fiftieth of that gain.

=========================  ==========================================================================
``nothing to measure``     the gain is not above noise, and not for want of responses: its corrected interval
                           does not lie above 0, and holds no gain that would matter (`NEGLIGIBLE`)
``not supported``          some challenger's lower limit is above the margin, and the interval of its
                           gain over clusters of subjects (developers) excludes 0
``supported``              every challenger's upper limit is below the margin, and the power to see
                           correlations of .8 is at least .80
``inconclusive``           anything else
=========================  ==========================================================================

Where the power or the cluster interval is not given, what it would decide is open, and an open gate reads
``inconclusive``.

Noise of the gain. All models of the comparison see the same training cells as the item means and shrink
their intercepts the same way, so on responses without information about subjects the expected gain is below
0: every slope or ability that is fitted to chance costs held-out log-loss. The gain of the best of several
unidimensional models is above noise when its interval, at the level corrected for that choice (Bonferroni),
lies above 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Literal, get_args

import numpy as np
import pandas as pd

from irtaudit.dimensionality.compare import Comparison, check_one_dimension, strongest_unidimensional
from irtaudit.dimensionality.labels import short_label
from irtaudit.errors import PlanError, check_kind
from irtaudit.stats.resampling import Interval, joint_intervals
from irtaudit.words import by_number, counted, percent

Word = Literal["supported", "not supported", "inconclusive", "nothing to measure"]
WORDS: tuple[Word, ...] = get_args(Word)
MARGIN_SHARE = 0.02
"""The margin, as a share of the gain of one dimension."""
NEGLIGIBLE = 0.02
"""A gain below this share of the log-loss of item means is nothing to measure; an interval that holds 0 and
more than this is merely wide."""
MIN_POWER = 0.80
OUT_OF_REACH = 100
"""Times as many responses that no one will collect."""
MAX_CHALLENGER_DIMS = 4
"""Exploratory models up to this many dimensions challenge by default."""
GAIN_OVER = "item_means"
EVIDENCE = ["challenger", "difference", "low", "high", "margin", "position", "cluster_low", "cluster_high"]
UNDEFINED = Interval(np.nan, np.nan, np.nan)

MEASURES = "one dimension predicts better than item means"
EXCEEDS = "a richer model gains more than the margin"
CLUSTERS = "that gain holds over clusters of related models"
WITHIN = "every richer model gains less than the margin"
POWERFUL = "the audit could have seen more dimensions"
STATES = MET, NOT_MET, OPEN, MOOT = "met", "not met", "open", "not needed"
"""Open: not computed, or an interval too wide to tell."""
_OPEN_CLUSTERS = (
    "An interval over clusters of related models (developers) that excludes 0 would make it 'not supported'; "
    "it was not computed, so the answer stays open."
)
_OPEN_POWER = (
    "A power of at least .80 to see correlations of .8 would make it 'supported'; it was not computed, so "
    "the answer stays open."
)
CONDITIONS = ["condition", "state", "detail"]


@dataclass(frozen=True)
class Rule:
    """Where the rule draws its lines.

    Attributes
    ----------
    margin_share : float
        The smallest gain that counts, as a share of what one dimension gains over item means.
    min_power : float
        Power that "supported" asks for.
    """

    margin_share: float = MARGIN_SHARE
    min_power: float = MIN_POWER

    def __post_init__(self) -> None:
        for name, share in (("margin_share", self.margin_share), ("min_power", self.min_power)):
            if not 0 <= share <= 1:
                raise PlanError(f"{name} is {share!r}; expected a share from 0 to 1.")


DEFAULT_RULE = Rule()


@dataclass(frozen=True, eq=False)
class Verdict:
    """The answer of Test 1.

    Attributes
    ----------
    word : str
        One of `WORDS`.
    because : str
        One sentence with the number and interval that decide.
    evidence : DataFrame
        One row per challenger whose fit did not fail: ``challenger``; ``difference, low, high`` (log-loss of
        the best unidimensional model minus that of the challenger, corrected interval, widened for the
        number of challengers that could be above, see :func:`irtaudit.stats.resampling.joint_intervals`);
        ``margin``; ``position`` of the interval ("above", "below" or "across" the margin, "undefined");
        ``cluster_low, cluster_high`` (NaN: not computed).
    conditions : DataFrame
        One row per condition of the rule: ``condition``, ``state`` ("met", "not met", "open" where it
        is not computed or the responses cannot tell, "not needed"), ``detail``.
    gain : Interval
        Log-loss of the item means minus that of the best unidimensional model, jointly 95 % over the
        unidimensional models it was chosen from.
    margin : float
        The smallest difference that matters, a share of the gain; NaN where one dimension gains nothing.
    best : str or None
        The best unidimensional model; None: every such fit failed.
    challengers : tuple of str
        Models that could show that one dimension is too few.
    what_would_change : str
        One sentence.
    rule : Rule
        By which it was judged.
    """

    word: Word
    because: str
    evidence: pd.DataFrame
    conditions: pd.DataFrame
    gain: Interval
    margin: float
    best: str | None
    challengers: tuple[str, ...]
    what_would_change: str
    rule: Rule = DEFAULT_RULE

    def __repr__(self) -> str:
        return f"Verdict({self.word!r}, best={self.best!r}, {counted(len(self.challengers), 'challenger')})"


def judge(
    comparison: Comparison,
    *,
    challengers: Sequence[str] | None = None,
    power: float | None = None,
    cluster_intervals: Mapping[str, Interval] | None = None,
    unplaced: int = 0,
    rule: Rule = DEFAULT_RULE,
) -> Verdict:
    """Apply the rule to a comparison.

    Without `power` and `cluster_intervals` the two gates stay open, and the answer is neither "supported" nor
    "not supported"; :func:`irtaudit.dimensionality.gates.judge_with_gates` computes both.

    Parameters
    ----------
    comparison : Comparison
        With the baseline row ``item_means``.
    challengers : sequence of str, optional
        Default: every confirmatory model, and exploratory ones up to `MAX_CHALLENGER_DIMS` dimensions.
    power : float, optional
        Power of the same rule on panels simulated with factor correlations of .8, from 0 to 1.
    cluster_intervals : mapping of str to Interval, optional
        Interval over clusters of subjects of each challenger's difference.
    unplaced : int
        Subjects whose family is not known, each a cluster of its own; the answer then says so.
    rule : Rule

    Returns
    -------
    Verdict

    Raises
    ------
    PlanError
        When the comparison has no ``item_means`` row or no model with one dimension, `challengers` are none
        (see :func:`check_challengers`), or the power is no share.
    """
    check_kind("comparison", comparison, Comparison, "what irtaudit.compare returns")
    check_kind("rule", rule, Rule, "irtaudit.dimensionality.verdict.Rule(margin_share, min_power)")
    if power is not None and not (isinstance(power, Real) and 0 <= power <= 1):
        raise PlanError(f"power is {power!r}; expected a share from 0 to 1.")
    if GAIN_OVER not in comparison.table["model"].to_numpy():
        raise PlanError(f"The verdict needs the baseline {GAIN_OVER!r}; compare with baselines=.")
    check_one_dimension(comparison.table.loc[comparison.table["structure"] != "baseline", "model"])
    named = _challengers(comparison.table, challengers)
    best, candidates = strongest_unidimensional(comparison.table, comparison.failed)
    gain = comparison.interval(best, GAIN_OVER, candidates) if best else UNDEFINED
    margin = rule.margin_share * gain.estimate if gain.estimate > 0 else np.nan
    means = float(comparison.table.set_index("model")["log_loss"][GAIN_OVER])
    usable = [name for name in named if name not in comparison.failed]
    evidence = _evidence(comparison, best, usable, margin, cluster_intervals or {})
    failed = [name for name in named if name not in usable]
    conditions = _conditions(gain, NEGLIGIBLE * means, evidence, failed, power, rule.min_power, unplaced)
    word = _word(conditions.set_index("condition")["state"])
    return Verdict(
        word=word,
        because=_because(word, best, gain, evidence, failed, unplaced),
        evidence=evidence,
        conditions=conditions,
        gain=gain,
        margin=margin,
        best=best,
        challengers=tuple(named),
        what_would_change=_what_would_change(word, gain, evidence, conditions, failed, unplaced),
        rule=rule,
    )


def _challengers(table: pd.DataFrame, wanted: Sequence[str] | None) -> list[str]:
    models = table[table["structure"] != "baseline"]
    if wanted is not None:
        check_challengers(wanted, dict(zip(models["model"], models["dims"], strict=True)))
        return list(wanted)
    small = (models["structure"] == "exploratory") & (models["dims"] <= MAX_CHALLENGER_DIMS)
    return models.loc[small | (models["structure"] == "confirmatory"), "model"].tolist()


def check_challengers(challengers: Sequence[str], dims: Mapping[str, int]) -> None:
    """Refuse what cannot show that one dimension is too few.

    Parameters
    ----------
    challengers : sequence of str
    dims : mapping of str to int
        Dimensions of every model that is fitted.

    Raises
    ------
    PlanError
        When a challenger is not fitted, has one dimension, or is named twice, or `challengers` is one string.
    """
    if isinstance(challengers, str):
        raise PlanError(f"challengers is {challengers!r}; expected a list of names.")
    unknown = sorted(set(challengers) - set(dims))
    if unknown:
        raise PlanError(f"Challengers that are not among the models: {', '.join(unknown)}.")
    flat = [name for name in challengers if dims[name] < 2]
    if flat:
        raise PlanError(
            f"{', '.join(flat)} cannot challenge one dimension, having one: name exploratory or confirmatory "
            "models."
        )
    twice = sorted({name for name in challengers if list(challengers).count(name) > 1})
    if twice:
        raise PlanError(f"Challengers that are named twice: {', '.join(twice)}.")


def _evidence(
    comparison: Comparison,
    best: str | None,
    challengers: Sequence[str],
    margin: float,
    clusters: Mapping[str, Interval],
) -> pd.DataFrame:
    intervals = [UNDEFINED] * len(challengers)
    if best:
        each = [partial(comparison.interval, name, best) for name in challengers]
        intervals = joint_intervals(each, margin)
    rows = []
    for name, interval in zip(challengers, intervals, strict=True):
        cluster = clusters.get(name, UNDEFINED)
        position = _position(interval, margin)
        rows.append([name, *interval, margin, position, cluster.low, cluster.high])
    return pd.DataFrame(rows, columns=EVIDENCE)


def _position(interval: Interval, margin: float) -> str:
    if not interval.defined:
        return "undefined"
    if interval.low > margin:
        return "above"
    return "below" if interval.high < margin else "across"


def _conditions(
    gain: Interval,
    negligible: float,
    evidence: pd.DataFrame,
    failed: Sequence[str],
    power: float | None,
    min_power: float,
    unplaced: int,
) -> pd.DataFrame:
    above = evidence[evidence["position"] == "above"]
    below = evidence["position"] == "below"
    rows = [
        (MEASURES, *_gain_state(gain, negligible)),
        (EXCEEDS, _state(len(above) > 0), _count(len(above), evidence, failed, "lower limit above it")),
        (CLUSTERS, *_cluster_state(above, unplaced)),
        (
            WITHIN,
            _state(len(evidence) > 0 and below.all() and not failed),
            _count(below.sum(), evidence, failed, "upper limit below it"),
        ),
        (POWERFUL, *_power_state(power, min_power)),
    ]
    if power is None and not rows[0][1] == rows[3][1] == MET:
        rows[4] = (POWERFUL, MOOT, "it would only matter if every richer model gained less than the margin")
    return pd.DataFrame(rows, columns=CONDITIONS)


def _state(holds: bool | np.bool_) -> str:
    return MET if holds else NOT_MET


def _gain_state(gain: Interval, negligible: float) -> tuple[str, str]:
    if not gain.defined:
        return OPEN, "an interval needs at least two splits and one sound fit"
    if gain.low > 0:
        return MET, f"gain {shown(gain)}"
    if gain.high < negligible:
        return NOT_MET, f"gain {shown(gain)}, not above noise"
    return OPEN, f"gain {shown(gain)}: too wide to tell noise from a gain of {negligible:.4f} or more"


def _count(n: int, evidence: pd.DataFrame, failed: Sequence[str], what: str) -> str:
    said = "there is no sound fit of one"
    if len(evidence):
        said = f"{n} of {len(evidence)} {by_number(n, 'has its', 'have their')} {what}"
    fits = by_number(len(failed), "failed fit", "failed fits")
    return said + (f"; {fits}: {', '.join(failed)}" if failed else "")


def _cluster_state(above: pd.DataFrame, unplaced: int) -> tuple[str, str]:
    """Does a challenger above the margin also stay above 0 over clusters of related subjects?"""
    if above.empty:
        return MOOT, "it would only matter if a richer model gained more than the margin"
    known = above.dropna(subset="cluster_low")
    if (known["cluster_low"] > 0).any():
        names = ", ".join(known.loc[known["cluster_low"] > 0, "challenger"])
        return MET, f"{names}: interval above 0" + _unrelated("; ", unplaced)
    if len(known) == len(above):
        return NOT_MET, "every interval over clusters includes 0"
    return OPEN, "the interval over clusters of related models (developers) is not computed"


def _power_state(power: float | None, needed: float) -> tuple[str, str]:
    if power is None:
        return OPEN, "the power of this audit to see several factors is not computed"
    return _state(power >= needed), f"power {percent(power)}, needed {percent(needed)}"


def _word(state: pd.Series) -> Word:
    if state[MEASURES] == OPEN:
        return "inconclusive"
    if state[MEASURES] == NOT_MET:
        return "nothing to measure"
    if state[EXCEEDS] == MET and state[CLUSTERS] == MET:
        return "not supported"
    if state[WITHIN] == MET and state[POWERFUL] == MET:
        return "supported"
    return "inconclusive"


def _because(
    word: Word,
    best: str | None,
    gain: Interval,
    evidence: pd.DataFrame,
    failed: Sequence[str],
    unplaced: int,
) -> str:
    if best is None:
        return "Every model with one dimension failed to fit, so there is no yardstick for more dimensions."
    if not gain.defined:
        return "With one split there is no spread to judge differences by; at least two splits are needed."
    if word == "nothing to measure":
        return (
            "Knowing which model answers does not improve the prediction of held-out responses beyond noise: "
            f"{one_dimension_gains(gain)}."
        )
    if not gain.low > 0:
        return (
            "These responses are too few to tell whether knowing which model answers improves predictions at "
            f"all: {one_dimension_gains(gain)}."
        )
    if evidence.empty:
        tried = (
            f"Every model with more than one dimension failed to fit ({', '.join(map(short_label, failed))})"
            if failed
            else "No model with more than one dimension was compared as a challenger"
        )
        return f"{tried}, so nothing could show that one is too few."
    unrelated = _unrelated(" Here ", unplaced, ".") if word == "not supported" else ""
    return _challenger_sentence(word, decisive(evidence)) + unrelated + _failed_sentence(word, failed)


def _unrelated(before: str, unplaced: int, after: str = "") -> str:
    if not unplaced:
        return ""
    models, each = counted(unplaced, "model"), by_number(unplaced, "it", "each")
    return f"{before}the family (developer, say) of {models} is not known, and {each} counts by itself{after}"


def one_dimension_gains(gain: Interval) -> str:
    """What the best one-dimensional model gains over item means, or loses."""
    if gain.estimate > 0:
        return f"the best one-dimensional model gains {shown(gain)} over item means alone"
    loss = Interval(-gain.estimate, -gain.high, -gain.low)
    return f"the best one-dimensional model predicts worse than item means alone, by {shown(loss)}"


def _failed_sentence(word: Word, failed: Sequence[str]) -> str:
    if not failed or word == "not supported":
        return ""
    which, it = ("fit", "it") if len(failed) == 1 else ("fits", "they")
    named = ", ".join(map(short_label, failed))
    return f" The {which} of {named} failed, so what {it} could gain is not known."


def _challenger_sentence(word: Word, row: pd.Series) -> str:
    by = Interval(row["difference"], row["low"], row["high"])
    gain = f"allowing {short_label(row['challenger'])} {gains(by)} in held-out predictions"
    margin = f"the margin of {row['margin']:.4f}"
    if row["position"] == "above":
        sure = word == "not supported"
        doubt = "" if sure else "; that this holds over clusters of related models is not established"
        return f"One dimension {'is' if sure else 'looks'} too few: {gain}, above {margin}{doubt}."
    if row["position"] == "below":
        sure = word == "supported"
        doubt = "" if sure else "; that this audit could have seen more is not established"
        return (
            f"One dimension {'is' if sure else 'looks'} enough: no richer model can gain as much as {margin} "
            f"({gain}){doubt}."
        )
    open_ = (
        f"{margin} lies within that interval"
        if row["difference"] >= 0
        else f"a gain above {margin} is not excluded"
    )
    return f"These responses do not tell whether one dimension is enough: {gain}, and {open_}."


def gains(difference: Interval) -> str:
    """That something gains, or loses, so much: the interval is turned round with the sign."""
    if round(difference.estimate, 4) >= 0:
        return f"gains {shown(difference)}"
    return f"loses {shown(Interval(-difference.estimate, -difference.high, -difference.low))}"


def decisive(evidence: pd.DataFrame) -> pd.Series:
    """The challenger that decides.

    The one with the highest lower limit where any is above the margin; where every one is below, the one with
    the highest upper limit; otherwise the largest difference among those across the margin.
    """
    for position, column in (("above", "low"), ("across", "difference"), ("below", "high")):
        rows = evidence[evidence["position"] == position]
        if len(rows):
            return rows.sort_values(column).iloc[-1]
    return evidence.iloc[0]


def shown(interval: Interval) -> str:
    """A difference of log-losses with its unit and interval, for a sentence."""
    text = (
        f"{interval.estimate:.4f} nats per response (95 % interval {interval.low:.4f} to {interval.high:.4f})"
    )
    return text.replace("-", "\N{MINUS SIGN}")


def settling_factor(evidence: pd.DataFrame) -> float:
    """How many times as many responses would put the intervals on one side of the margin.

    Half-widths shrink with the square root of the number of responses; the differences are taken as they
    stand. One challenger above suffices for one answer, all have to be below for the other.

    Returns
    -------
    float
        At least 1; infinite when a difference equals the margin.
    """
    half = (evidence["high"] - evidence["low"]) / 2
    distance = evidence["difference"] - evidence["margin"]
    with np.errstate(divide="ignore"):
        factor = (half / distance.abs()) ** 2
    above = factor[distance > 0]
    return float(max(above.min() if len(above) else factor.max(), 1.0))


def _what_would_change(
    word: Word,
    gain: Interval,
    evidence: pd.DataFrame,
    conditions: pd.DataFrame,
    failed: Sequence[str],
    unplaced: int,
) -> str:
    state = conditions.set_index("condition")["state"]
    if word == "nothing to measure":
        return "Responses in which models differ by more than chance, on more items or with more models."
    if word == "supported":
        return "A challenger whose interval reaches above the margin."
    if word == "not supported":
        over = "the developers' names, and an interval over them" if unplaced else "one over developers"
        return f"Intervals of every challenger below the margin, or {over} that includes 0."
    if not gain.defined:
        return "A comparison of at least two splits."
    if not gain.low > 0:
        return (
            "More models or more items: the interval is too wide for this question, let alone for the next."
        )
    if evidence.empty and not failed:
        return (
            "A challenger with several dimensions, of which there was none: add exploratory_2d_2pl to the "
            "models (--models), or name a column of item kinds (--factors)."
        )
    if evidence.empty:
        return "A model with several dimensions whose fit succeeds: more restarts, or fewer dimensions."
    if state[EXCEEDS] == MET:
        return (
            _OPEN_CLUSTERS
            if state[CLUSTERS] == OPEN
            else "More developers in whose models the gain shows, so that the interval excludes 0."
        )
    if state[WITHIN] == MET:
        return (
            _OPEN_POWER
            if state[POWERFUL] == OPEN
            else "A larger panel: this one could miss several dimensions."
        )
    if failed and (evidence["position"] == "below").all():
        return f"A fit of {', '.join(map(short_label, failed))} that succeeds: more restarts, say."
    factor = settling_factor(evidence)
    if not factor < OUT_OF_REACH:
        return (
            "No panel of realistic size: the gain lies so close to the margin that more responses would not "
            "place it."
        )
    times = f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}"
    return (
        f"About {times} times as many responses would show on which side of the margin it lies, if the "
        "difference stays as it is."
    )
