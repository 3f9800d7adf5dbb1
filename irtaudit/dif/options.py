"""How groups are compared: one frozen value, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Literal, get_args

from irtaudit.errors import PlanError, check_kind, check_whole, shown_value

ScreenName = Literal["mh", "logistic", "mh_z", "score", "logistic_nonuniform"]
Match = Literal["theta", "total"]
SCREENS: tuple[ScreenName, ...] = get_args(ScreenName)
HEADLINE: tuple[ScreenName, ...] = ("mh", "logistic")
"""The two screens of the source paper."""
LEVEL = 0.05
"""Level of every flag: item by item, pooled, and over all items together."""


@dataclass(frozen=True)
class DifOptions:
    """Options of a comparison of groups.

    Attributes
    ----------
    match : {"theta", "total"}
        What "equally able" means: the fitted ability of the scope, or the number of its items passed.
    bands : int or "score"
        Ability bands of the Mantel-Haenszel screens, equally many compared models in each; "score" makes
        every total score a stratum of its own.
    screens : tuple of str
        Any of `SCREENS`. ``mh``: size of the log odds ratio within bands; ``logistic``: size of the group
        coefficient in a ridge logistic regression on ability; ``logistic_nonuniform``: size of the ability x
        group coefficient; ``mh_z``: the log odds ratio standardised by its null; ``score``: score test for
        the group inside the fitted model.
    penalty : float
        Ridge penalty of the logistic screens on every coefficient but the intercept:
        ``penalty * coefficient^2 / 2`` is taken from the log-likelihood.
    purify : bool
        Match on anchor items alone: items that the Mantel-Haenszel test flags (level .05 each) leave the
        matching variable, until the flags repeat. An item under test always counts itself.
    rematch : bool
        Estimate abilities anew in every simulated matrix, as they were in the observed one.
    n_simulations : int
        Matrices per null; 0: classical tests alone, where they exist.
    n_control : int
        Random groups of the same sizes drawn for the negative control (scopes of 30 items and more).
    n_power : int
        Simulated matrices per size of effect in the power calculation.
    seed : int
    """

    match: Match = "theta"
    bands: int | Literal["score"] = 3
    screens: tuple[ScreenName, ...] = SCREENS
    penalty: float = 1.0
    purify: bool = False
    rematch: bool = False
    n_simulations: int = 5000
    n_control: int = 50
    n_power: int = 200
    seed: int = 2026

    def __post_init__(self) -> None:
        if self.match not in get_args(Match):
            raise PlanError(f"match is {self.match!r}; expected theta or total.")
        check_kind("screens", self.screens, (tuple, list), f"some of {', '.join(SCREENS)}, as a tuple")
        unknown = [name for name in self.screens if name not in SCREENS]
        if unknown or not self.screens:
            raise PlanError(
                f"There is no screen {', '.join(unknown) or 'named'}; choose from {', '.join(SCREENS)}."
            )
        if len(set(self.screens)) < len(self.screens):
            raise PlanError(f"A screen is named twice: {', '.join(self.screens)}.")
        self._check_bands()
        if not isinstance(self.penalty, Real) or not 0 <= self.penalty < float("inf"):
            raise PlanError(f"penalty is {shown_value(self.penalty)}; expected 0 or a positive number.")
        for name in ("purify", "rematch"):
            check_kind(name, getattr(self, name), bool, "True or False")
        for name in ("n_simulations", "n_control", "n_power", "seed"):
            object.__setattr__(self, name, check_whole(name, getattr(self, name)))
        if 0 < self.n_simulations < 1 / LEVEL - 1:
            raise PlanError(
                f"{self.n_simulations} simulations cannot give a p-value of {LEVEL}; use at least "
                f"{round(1 / LEVEL) - 1}, better 1000."
            )

    def _check_bands(self) -> None:
        if self.bands == "score":
            if self.match == "theta":
                raise PlanError(
                    "bands='score' needs match='total': hardly two fitted abilities are the same."
                )
        else:
            object.__setattr__(self, "bands", check_whole("bands", self.bands, 1))
