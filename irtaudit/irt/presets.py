"""How long and how fast a fit learns.

``default`` was chosen by ``experiments/convergence``: a cosine schedule from a high rate reaches the
held-out log-loss of 2,000 plain epochs in 400, and antithetic draws (each noise vector is used with both
signs, in turn) quarter the spread between restarts at no cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, inf, pi
from numbers import Real
from typing import Literal

from irtaudit.errors import PlanError, check_kind, check_whole, shown_value


@dataclass(frozen=True)
class Preset:
    """Settings of stochastic variational inference by Adam.

    Attributes
    ----------
    name : str
    epochs : int
        Passes over all training responses.
    learning_rate : float
        Adam's step size at the start.
    schedule : {"constant", "cosine"}
        Step size over the epochs; the cosine ends at zero.
    antithetic : bool
        Whether each noise vector is used twice in turn, with either sign.
    """

    name: str
    epochs: int
    learning_rate: float
    schedule: Literal["constant", "cosine"]
    antithetic: bool

    def __post_init__(self) -> None:
        check_kind("name of a preset", self.name, str, "text")
        check_whole("epochs of a preset", self.epochs, 1)
        rate, schedules = self.learning_rate, ("constant", "cosine")
        if not isinstance(rate, Real) or isinstance(rate, bool) or not 0 < rate < inf:
            raise PlanError(f"learning_rate is {shown_value(rate)}; expected a number above 0.")
        if self.schedule not in schedules:
            raise PlanError(f"schedule is {shown_value(self.schedule)}; expected {' or '.join(schedules)}.")
        check_kind("antithetic", self.antithetic, bool, "True or False")

    def rate(self, epoch: int) -> float:
        """Step size in an epoch, counted from zero."""
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * 0.5 * (1 + cos(pi * epoch / self.epochs))


MOST_RESTARTS = 10_000
"""Random starts per split; more are taken for a slip of the pen."""

PRESETS = {
    "paper": Preset("paper", 2000, 0.01, "constant", False),
    "default": Preset("default", 400, 0.2, "cosine", True),
    "quick": Preset("quick", 150, 0.2, "cosine", True),
}

RETRY = Preset("retry", 3000, 0.005, "constant", False)
"""What a fit whose loss became NaN is given a second time (the paper's rule)."""


def get_preset(preset: str | Preset) -> Preset:
    """Look a preset up by name.

    Parameters
    ----------
    preset : str or Preset

    Returns
    -------
    Preset

    Raises
    ------
    PlanError
        When no preset has that name, or it is neither name nor Preset.
    """
    if isinstance(preset, Preset):
        return preset
    check_kind("preset", preset, str, f"{', '.join(PRESETS)}, or a Preset")
    if preset not in PRESETS:
        raise PlanError(f"There is no preset {preset!r}; choose one of {', '.join(PRESETS)}.")
    return PRESETS[preset]
