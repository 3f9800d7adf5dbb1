"""What is estimated: rank correlations of columns, their differences, and their median.

An estimand is a value; :func:`evaluate` gives it in any number of resamples of the models at once, with the
capability composite standardized and ranked anew inside each.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from irtaudit.data.panel import ScorePanel
from irtaudit.panel.plan import CAPABILITY
from irtaudit.stats.bootstrap import Counts
from irtaudit.stats.correlation import rank_correlation, standardized

Array = NDArray[np.float64]
MIN_MODELS = 5
"""Fewest models for a rank correlation, one more for a partial one."""


@dataclass(frozen=True)
class Association:
    """Spearman correlation of two columns (or of capability with one), given capability or not."""

    x: str
    y: str
    given_capability: bool = False

    @property
    def least(self) -> int:
        """Fewest models it is estimated from."""
        return MIN_MODELS + self.given_capability


@dataclass(frozen=True)
class Difference:
    """Second minus first: two correlations that share models."""

    first: Association
    second: Association

    @property
    def least(self) -> int:
        """Fewest models it is estimated from."""
        return max(self.first.least, self.second.least)


@dataclass(frozen=True)
class MedianCorrelation:
    r"""Median \|rho\| over pairs of columns: how redundant the benchmarks are."""

    parts: tuple[Association, ...]

    @property
    def least(self) -> int:
        """Fewest models it is estimated from."""
        return max(part.least for part in self.parts)


Estimand: TypeAlias = Association | Difference | MedianCorrelation
E = TypeVar("E", Association, Difference, MedianCorrelation)


def stream(seed: int, *names: str) -> np.random.Generator:
    """Generator of one part of the audit: its draws do not depend on what else is computed."""
    return np.random.default_rng([seed, zlib.crc32("\0".join(names).encode())])


def associations_in(estimand: Estimand) -> list[Association]:
    """The correlations an estimand is made of."""
    if isinstance(estimand, Association):
        return [estimand]
    return [estimand.first, estimand.second] if isinstance(estimand, Difference) else list(estimand.parts)


def columns_in(panel: ScorePanel, estimand: Estimand) -> list[str]:
    """Score columns an estimand is computed from, the anchors among them where capability is."""
    parts = associations_in(estimand)
    named = [name for part in parts for name in (part.x, part.y) if name != CAPABILITY]
    capability = any(part.given_capability or CAPABILITY in (part.x, part.y) for part in parts)
    return list(dict.fromkeys([*named, *(panel.of("anchor") if capability else ())]))


def label(panel: ScorePanel, estimand: Estimand) -> str:
    """Name of an estimand in tables: ``A ~ B | capability``."""
    if isinstance(estimand, Association):
        given = f" | {CAPABILITY}" if estimand.given_capability else ""
        return f"{panel.label(estimand.x)} ~ {panel.label(estimand.y)}{given}"
    if isinstance(estimand, Difference):
        return f"({label(panel, estimand.second)}) - ({label(panel, estimand.first)})"
    given = f" | {CAPABILITY}" if estimand.parts[0].given_capability else ""
    return f"median |rho| between benchmarks{given}"


@dataclass(frozen=True, eq=False)
class Sample:
    """The models that have everything an estimand needs.

    Attributes
    ----------
    scores : DataFrame
        Complete scores of these models.
    anchors : tuple of str
        Columns of the capability composite.
    """

    scores: pd.DataFrame
    anchors: tuple[str, ...]

    @property
    def n(self) -> int:
        """Number of models."""
        return len(self.scores)

    def column(self, name: str, counts: Counts) -> Array:
        """Values of a column; of the composite, made anew in each draw where it has several anchors."""
        if name != CAPABILITY:
            return self.scores[name].to_numpy(dtype=float)
        if len(self.anchors) == 1:
            return self.scores[self.anchors[0]].to_numpy(dtype=float)
        z = [standardized(self.scores[anchor].to_numpy(dtype=float), counts) for anchor in self.anchors]
        return np.asarray(np.mean(z, axis=0))


def sample(panel: ScorePanel, estimand: Estimand) -> Sample:
    """Models with every score that the estimand needs."""
    return Sample(panel.scores[columns_in(panel, estimand)].dropna(), tuple(panel.of("anchor")))


def evaluate(given: Sample, estimand: Estimand, counts: Counts | None = None) -> Array:
    """The estimand in each resample.

    Parameters
    ----------
    given : Sample
    estimand : Estimand
    counts : (draw, model) array, optional
        How often each model is in each resample; default: the sample itself, one draw.

    Returns
    -------
    (draw,) array
        NaN where a resample leaves a column constant.
    """
    drawn = np.ones((1, given.n)) if counts is None else counts
    if isinstance(estimand, Association):
        names = [estimand.x, estimand.y, *([CAPABILITY] if estimand.given_capability else [])]
        return rank_correlation([given.column(name, drawn) for name in names], drawn)
    if isinstance(estimand, Difference):
        return evaluate(given, estimand.second, drawn) - evaluate(given, estimand.first, drawn)
    each = np.abs([evaluate(given, part, drawn) for part in estimand.parts])
    return np.asarray(np.median(each, axis=0))


def point(given: Sample, estimand: Estimand) -> float:
    """The estimand of the sample itself."""
    return float(evaluate(given, estimand)[0])


def capability(panel: ScorePanel) -> pd.Series:
    """The composite, mean of the standardized anchors, of the models that have them all."""
    anchors = panel.of("anchor")
    complete = panel.scores[anchors].dropna()
    if not anchors or complete.empty:
        return pd.Series(dtype=float, name=CAPABILITY)
    z = (complete - complete.mean()) / complete.std(ddof=0)
    return z.mean(axis=1).rename(CAPABILITY)


def untestable(panel: ScorePanel, estimand: Estimand) -> str:
    """Why an estimand cannot be computed, in a sentence; "" when it can."""
    parts = associations_in(estimand)
    if not parts:
        return "there is no pair of benchmarks of distinct constructs"
    needs_capability = any(part.given_capability or CAPABILITY in (part.x, part.y) for part in parts)
    if needs_capability and not panel.of("anchor"):
        return "the panel has no capability anchor"
    columns = columns_in(panel, estimand)
    given = sample(panel, estimand)
    if given.n < estimand.least:
        verb, what = "has" if given.n == 1 else "have", "both" if len(columns) == 2 else "all"
        return f"{models(given.n)} {verb} {what} scores, at least {estimand.least} are needed"
    constant = [panel.label(name) for name in columns if given.scores[name].nunique() == 1]
    if constant:
        verb = "is" if len(constant) == 1 else "are"
        return f"{', '.join(constant)} {verb} the same for all {given.n} models"
    if not np.isfinite(point(given, estimand)):
        return "one of the columns follows from the others"
    return ""


def models(n: int) -> str:
    """ "1 model", "18 models"."""
    return f"{n} model{'' if n == 1 else 's'}"


def benchmark_pairs(panel: ScorePanel, distinct: bool | None = None) -> list[tuple[str, str]]:
    """Pairs of audited benchmarks; of distinct constructs, of the same one, or (None) all."""
    construct = panel.columns["construct"]
    return [
        (a, b)
        for a, b in combinations(panel.of("benchmark"), 2)
        if distinct is None or (construct[a] != construct[b]) == distinct
    ]


class NotTested(NamedTuple):
    """Something the audit asks and this panel cannot answer, with the reason in words."""

    part: str
    what: str
    reason: str


def split_testable(panel: ScorePanel, part: str, estimands: Sequence[E]) -> tuple[list[E], list[NotTested]]:
    """The estimands that can be computed, and the reasons of the others."""
    reasons = [untestable(panel, estimand) for estimand in estimands]
    kept = [one for one, reason in zip(estimands, reasons, strict=True) if not reason]
    lost = [
        NotTested(part, label(panel, one), reason)
        for one, reason in zip(estimands, reasons, strict=True)
        if reason
    ]
    return kept, lost
