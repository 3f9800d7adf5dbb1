"""The gap between the score that was credited and what the same task scores without the exposure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irtaudit.protocol.bundle import RunBundle
from irtaudit.stats.bootstrap import percentile_interval, unit_draws
from irtaudit.stats.proportions import newcombe

DRAWS = 10_000
SEED = 2026


@dataclass(frozen=True)
class Gap:
    """G = S_exploit - S_intended of one run, or why there is none.

    Attributes
    ----------
    raw, share : float or None
        In units of the score (positive: the credited score is the better one), and as a share of its range.
    low, high : float or None
        95 % interval of `raw`.
    method : str
        How the interval was obtained, or why there is none.
    reason : str
        Why the gap was not computed; "" when it was.
    """

    raw: float | None = None
    share: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    reason: str = ""


def gap_of(bundle: RunBundle, misleads: bool) -> Gap:
    """The gap of a run, computed from its records alone and never from what a judge says.

    Parameters
    ----------
    bundle : RunBundle
    misleads : bool
        Whether the run was found positive; a gap of any other run would mean nothing.

    Returns
    -------
    Gap
        Newcombe's interval where the scores are shares of several pass/fail runs, a paired bootstrap
        (10,000 draws, seed 2026, percentile) where pairs were kept, else none.
    """
    reason = _missing(bundle, misleads)
    compared, score = bundle.comparison, bundle.score.score
    if reason or compared is None or score is None:
        return Gap(reason=reason)
    sign = 1.0 if bundle.spec.direction == "higher" else -1.0
    raw = sign * (score - compared.s_intended)
    low, high, method = _interval(bundle, sign)
    most, nothing = bundle.score.max, bundle.no_credit_score
    span = None if most is None or nothing is None else abs(most - nothing)
    return Gap(raw, raw / span if span else None, low, high, method)


def _missing(bundle: RunBundle, misleads: bool) -> str:
    compared = bundle.comparison
    if not misleads:
        return "the run is not positive"
    if compared is None:
        return "no comparison was kept"
    differs = [
        name
        for name, same in (
            ("task", compared.same_task),
            ("scorer", compared.same_scorer),
            ("scale", compared.same_scale),
        )
        if not same
    ]
    if differs:
        return f"the comparison has another {' and '.join(differs)}"
    return "" if bundle.score.score is not None else "no score was recorded"


def _interval(bundle: RunBundle, sign: float) -> tuple[float | None, float | None, str]:
    compared, score = bundle.comparison, bundle.score.score
    assert compared is not None  # _missing has seen to both
    assert score is not None
    if compared.outcome == "binary" and min(compared.n, compared.n_exploit) > 1 and 0 <= score <= 1:
        n, m = compared.n_exploit, compared.n
        low, high = newcombe(score * n, n, compared.s_intended * m, m)
        ends = sorted((sign * float(low), sign * float(high)))
        return ends[0], ends[1], "Newcombe 1998, method 10"
    if len(compared.pairs) > 1:
        differences = sign * (np.asarray(compared.pairs)[:, 0] - np.asarray(compared.pairs)[:, 1])
        raw = sign * (score - compared.s_intended)
        if abs(differences.mean() - raw) > 1e-6 * max(1.0, abs(raw)):
            return None, None, "the pairs do not average to the gap: no interval"
        counts = unit_draws(len(differences), DRAWS, np.random.default_rng(SEED))
        interval = percentile_interval(raw, counts @ differences / len(differences))
        return interval.low, interval.high, f"paired bootstrap, {DRAWS:,} draws, seed {SEED}"
    return None, None, "no interval from one run on each side"
