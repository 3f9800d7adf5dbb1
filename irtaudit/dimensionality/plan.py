"""The plan of an item response audit: data, models, splits, fits, verdict and groups, before anyone looks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

import pandas as pd
from pydantic import Field, Strict, model_validator

from irtaudit.data.log_matrix import Unscored
from irtaudit.data.read import Incomplete, Layout
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.trials import Trials
from irtaudit.dimensionality.compare import check_one_dimension
from irtaudit.dimensionality.gates import POWER_CORRELATION
from irtaudit.dimensionality.verdict import MARGIN_SHARE, MIN_POWER, Rule
from irtaudit.errors import DataError, PlanError
from irtaudit.irt.presets import MOST_RESTARTS
from irtaudit.irt.spec import spec_from_name
from irtaudit.plan import Part, Plan
from irtaudit.words import panel_size

FEWEST_SUBJECTS, FEWEST_ITEMS = 4, 3
"""Fewer are refused."""
MOST_SPLITS = 1_000
"""More are taken for a slip of the pen."""
CLAIM = "One score says how able a model is"
FAMILIES = ("1pl", "2pl", "3pl")
DEFAULT_MODELS = (
    "unidimensional_1pl",
    "unidimensional_2pl",
    "unidimensional_3pl",
    "exploratory_2d_2pl",
    "exploratory_3d_2pl",
    "exploratory_4d_2pl",
)
_CONFIRMATORY = re.compile(r"confirmatory_.+_[123]pl")

Share = Annotated[float, Field(gt=0, lt=1)]
PassAt = Annotated[float, Field(gt=0, le=1)]
Names = Annotated[tuple[str, ...], Strict(False)]
Column = Annotated[str, Field(min_length=1)]


def paper_grid(columns: Sequence[str]) -> tuple[str, ...]:
    """Names of every model of the source paper's tables: 19 with two item columns.

    Parameters
    ----------
    columns : sequence of str
        Item columns; the first is the main one and comes in all three families.

    Returns
    -------
    tuple of str
        One dimension and the first column in 1PL, 2PL and 3PL, the other columns in 2PL, 2 to 10 exploratory
        dimensions in 2PL and 2 to 4 in 3PL.
    """
    main = [f"confirmatory_{column}_{family}" for column in columns[:1] for family in FAMILIES]
    return (
        *(f"unidimensional_{family}" for family in FAMILIES),
        *main,
        *(f"confirmatory_{column}_2pl" for column in columns[1:]),
        *(f"exploratory_{k}d_2pl" for k in range(2, 11)),
        *(f"exploratory_{k}d_3pl" for k in range(2, 5)),
    )


def check_panel(screened: ResponseMatrix) -> None:
    """Refuse what no comparison of dimensions can be made of.

    Raises
    ------
    DataError
        When the screen left too few models or items.
    """
    if screened.n_subjects < FEWEST_SUBJECTS or screened.n_items < FEWEST_ITEMS:
        raise DataError(
            f"{panel_size(screened.n_subjects, screened.n_items)} are left after "
            f"screening; an audit needs at least {FEWEST_SUBJECTS} models and {FEWEST_ITEMS} items, and many "
            "more to tell anything."
        )


class Data(Part):
    """Where the responses are and what counts as a pass.

    Attributes
    ----------
    responses : str
        File or folder, beside the plan. "": it is named when the audit is run.
    items, subjects, models : str, optional
        Tables that describe the items, the subjects, and AI models by name, beside the plan.
    layout, subject_column, item_column, response_column, trials, task, metric, target, unscored, incomplete
        As in :func:`irtaudit.data.read.read_responses`.
    pass_at : float, optional
        The pass rule for scores: from here on a response passes; 1.0: full marks only.
    sweep : tuple of float
        Other pass rules at which the comparison is repeated.
    sha256 : str
        Of the names and cells when the plan was made; other data are a deviation. "": not known then.
    """

    responses: str = ""
    items: str | None = None
    subjects: str | None = None
    models: str | None = None
    layout: Layout | None = None
    subject_column: str | None = None
    item_column: str | None = None
    response_column: str | None = None
    pass_at: PassAt | None = None
    sweep: Annotated[tuple[PassAt, ...], Strict(False)] = ()
    trials: Trials | None = None
    task: str | None = None
    metric: str | None = None
    target: str | None = None
    unscored: Unscored | None = None
    incomplete: Incomplete | None = None
    sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""


class Models(Part):
    """Which models are fitted and compared.

    Attributes
    ----------
    names : tuple of str
        As in :mod:`irtaudit.irt.spec`: ``unidimensional_2pl, exploratory_3d_2pl,
        confirmatory_<item column>_2pl``.
    challengers : tuple of str, optional
        Those that could show that one dimension is too few; default every confirmatory one and exploratory
        ones up to four dimensions.
    """

    names: Annotated[tuple[str, ...], Strict(False), Field(min_length=1)] = DEFAULT_MODELS
    challengers: Names | None = None

    @model_validator(mode="after")
    def _known(self) -> Models:
        _check_names(self.names)
        unknown = sorted(set(self.challengers or ()) - set(self.names))
        if unknown:
            raise ValueError(f"challengers has {', '.join(unknown)}, which names has not")
        return self


def _check_names(names: tuple[str, ...]) -> None:
    for name in names:
        _check_name(name)
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ValueError(f"names {', '.join(twice)} more than once; expected every model once")
    try:
        check_one_dimension(names)
    except PlanError as error:
        raise ValueError(str(error)) from None


def _check_name(name: str) -> None:
    """Refuse what is no model's name; whether a column exists shows when the data are read."""
    if _CONFIRMATORY.fullmatch(name):
        return
    try:
        spec_from_name(name, pd.DataFrame())
    except PlanError as error:
        raise ValueError(str(error)) from None


class Splitting(Part):
    """Which responses are held out.

    Attributes
    ----------
    n_splits : int
    test_fraction : float
        Share of the observed responses that a split holds out.
    stratified : bool
        Hold out the same share of passes as of fails.
    heldout : str, optional
        Table of held-out cells beside the plan (split, subject, item) instead.
    """

    n_splits: Annotated[int, Field(ge=2, le=MOST_SPLITS)] = 5
    test_fraction: Share = 0.2
    stratified: bool = False
    heldout: str | None = None


class Fitting(Part):
    """How a model is fitted.

    Attributes
    ----------
    preset : {"default", "paper", "quick"}
    restarts : int
        Random starts per model and split.
    """

    preset: Literal["default", "paper", "quick"] = "default"
    restarts: Annotated[int, Field(ge=1, le=MOST_RESTARTS)] = 20


class Ruling(Part):
    """Where the verdict's rule draws its lines.

    Attributes
    ----------
    margin_share : float
        The smallest gain that counts, as a share of what one dimension gains over item means.
    min_power : float
        Power that "supported" asks for.
    power_correlation : float
        Correlation of the factors that the power is about.
    """

    margin_share: Share = MARGIN_SHARE
    min_power: Share = MIN_POWER
    power_correlation: Share = POWER_CORRELATION

    @property
    def rule(self) -> Rule:
        """What `irtaudit.dimensionality.verdict.judge` is told."""
        return Rule(self.margin_share, self.min_power)


class Followup(Part):
    """The comparison once more, on a subset of the items.

    Attributes
    ----------
    name : str
        In the reader's words: "without copyright".
    column : str
        Item column.
    leave_out : tuple of str
        Items with these values of it are left out.
    models : tuple of str, optional
        Default: one dimension in 1PL, 2PL and 3PL, and one dimension per remaining value of `column`, or two
        free dimensions where only one value remains.
    """

    name: Annotated[str, Field(min_length=1)]
    column: Column
    leave_out: Annotated[tuple[str, ...], Strict(False), Field(min_length=1)]
    models: Annotated[tuple[str, ...], Strict(False), Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _known(self) -> Followup:
        if self.models is not None:
            _check_names(self.models)
        return self


class Group(Part):
    """Two groups of models whose items are compared at equal ability.

    Attributes
    ----------
    column : str
        Subject column.
    reference, focal : str
        Two of its values; positive effects favour the reference.
    """

    column: Column
    reference: str
    focal: str

    @model_validator(mode="after")
    def _differ(self) -> Group:
        if self.reference == self.focal:
            raise ValueError(f"both groups are {self.reference!r}; name two values of {self.column!r}")
        return self


class IrtPlan(Plan):
    """The plan of an item response audit.

    Attributes
    ----------
    cluster : str, optional
        Subject column that names families of related models; default ``developer``, where there is one.
    data : Data
    models : Models
    splits : Splitting
    fit : Fitting
    verdict : Ruling
    followups : tuple of Followup
    groups : tuple of Group
        Comparisons of two groups of models (differential item functioning), under the single score and under
        each factor of the confirmatory models.
    """

    kind: Literal["irt"]
    schema_version: Literal[1]
    reading: str = CLAIM
    cluster: str | None = None
    data: Data = Data()
    models: Models = Models()
    splits: Splitting = Splitting()
    fit: Fitting = Fitting()
    verdict: Ruling = Ruling()
    followups: Annotated[tuple[Followup, ...], Strict(False)] = ()
    groups: Annotated[tuple[Group, ...], Strict(False)] = ()


def default_plan() -> IrtPlan:
    """The plan of a run that names none."""
    return IrtPlan(kind="irt", schema_version=1)
