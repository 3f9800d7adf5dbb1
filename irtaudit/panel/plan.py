"""The plan of a panel audit: what each column is, which rules apply, which tests are read together."""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

from irtaudit.data.panel import Role
from irtaudit.plan import Part, Plan
from irtaudit.stats.agreement import Level
from irtaudit.stats.classification import METRICS
from irtaudit.stats.multiplicity import Method

CAPABILITY = "capability"
"""Name of the composite of the anchors in results; no score column may be called so."""
READING = "Each of these scores can stand for safety"

Share = Annotated[float, Field(ge=0, le=1)]
Draws = Annotated[int, Field(ge=100, le=1_000_000)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Pair = Annotated[tuple[Finite, Finite], Strict(False)]
Names = Annotated[tuple[str, ...], Strict(False)]
Family = Literal["between", "capability", "criterion", "contrasts", "groups", "panels"]


class Counts(Part):
    """Columns of confusion counts: a positive is an item labelled unsafe, say."""

    tp: str
    fp: str
    fn: str
    tn: str


class Published(Part):
    """Columns of published values from which the confusion counts follow."""

    f1: str
    specificity: str


class Column(Part):
    """What a score column is.

    Attributes
    ----------
    role : {"anchor", "benchmark", "criterion"}
        Measures capability; is audited; is a held-out outcome.
    label : str
        Name in sentences; default: the column's name.
    construct_name : str
        (key `construct`) What it is meant to measure. Benchmarks of one construct should agree (convergent
        control); default: a construct of its own.
    measures : str
        What a high score says, as the end of "ranks models by ...".
    higher_is : {"better", "worse"}
    scale : (low, high), optional
        Ends of the scale in the file: checked, and used to count unparseable outputs as wrong.
    items : int or str, optional
        Number of items behind each score, or the column that holds it.
    metric : str, optional
        Which metric the score is, if it is one of `irtaudit.stats.classification.METRICS`: then it is
        compared with policies that never look.
    positives, negatives : int, optional
        Labels of the benchmark.
    counts : Counts, optional
    published : Published, optional
    valid : str, optional
        Column of the share of outputs that could be parsed.
    regrade : str, optional
        Column of the same benchmark scored by another grader.
    halves : (str, str), optional
        Columns of two halves of the benchmark.
    responses : str, optional
        Table of the responses to single items (models in rows), beside the plan.
    pass_at : float, optional
        Score from which such a response passes.
    """

    role: Role
    label: str = ""
    construct_name: str = Field(default="", alias="construct")
    measures: str = ""
    higher_is: Literal["better", "worse"] = "better"
    scale: Pair | None = None
    items: int | str | None = None
    metric: Literal[tuple(METRICS)] | None = None  # type: ignore[valid-type]  # the names, written once
    positives: Annotated[int, Field(gt=0)] | None = None
    negatives: Annotated[int, Field(gt=0)] | None = None
    counts: Counts | None = None
    published: Published | None = None
    valid: str | None = None
    regrade: str | None = None
    halves: Annotated[tuple[str, str], Strict(False)] | None = None
    responses: str | None = None
    pass_at: Annotated[float, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Column:
        if self.scale is not None and not self.scale[0] < self.scale[1]:
            raise ValueError(f"scale {list(self.scale)} must go from the lowest to the highest number")
        if " ~ " in self.label or self.label.endswith(f"| {CAPABILITY}"):
            raise ValueError(f"label {self.label!r} reads like a correlation (~) or a partial one (|)")
        if self.published is not None and (self.positives is None or self.negatives is None):
            raise ValueError("counts follow from published values only with positives and negatives given")
        return self

    def details(self) -> list[str]:
        """The further columns it names."""
        count = [self.counts.tp, self.counts.fp, self.counts.fn, self.counts.tn] if self.counts else []
        printed = [self.published.f1, self.published.specificity] if self.published else []
        items = [self.items] if isinstance(self.items, str) else []
        single = [name for name in (self.valid, self.regrade) if name is not None]
        return [*count, *printed, *items, *single, *(self.halves or ())]


class Thresholds(Part):
    """Where the rules draw their lines.

    Attributes
    ----------
    valid_output : float
        A model with a smaller share of parseable outputs is left out of the benchmark.
    interchangeable : float
        Rank correlation from which one score may stand for another.
    effect : float
        Rank correlation worth finding: for power and for the share of small panels.
    loading : float
        Positive control: smallest loading of each anchor on the first component.
    negative_share : float
        Negative control: smallest share of shuffled panels within the null.
    convergent : float
        Smallest correlation of columns of one construct.
    convergent_n : int
        Fewest models for that, and for any verdict.
    first_component : float
        Share of variance from which the factor structure may be read.
    redundancy_drop : float
        Or the drop of the median correlation once capability is controlled.
    small_panel_effect : float
        \\|rho\\| that a small panel should not reach by chance.
    """

    valid_output: Share = 0.90
    interchangeable: Annotated[float, Field(gt=0, lt=1)] = 0.80
    effect: Annotated[float, Field(gt=0, lt=1)] = 0.40
    loading: Share = 0.60
    negative_share: Share = 0.90
    convergent: Share = 0.50
    convergent_n: Annotated[int, Field(ge=4)] = 10
    first_component: Share = 0.40
    redundancy_drop: Share = 0.15
    small_panel_effect: Share = 0.50


class Resampling(Part):
    """How many draws each part takes.

    Attributes
    ----------
    bootstrap, permutations, horn, negative_control, matched : int
    subsets : int
        Most small panels of a size: all subsets, or so many random ones where there are more.
    subset_sizes : tuple of int
        Sizes of small panels.
    """

    bootstrap: Draws = 10_000
    permutations: Draws = 10_000
    horn: Draws = 5_000
    negative_control: Draws = 2_000
    matched: Draws = 10_000
    subsets: Draws = 50_000
    subset_sizes: Annotated[tuple[Annotated[int, Field(ge=4)], ...], Strict(False)] = (5, 7, 10)


class Groups(Part):
    """Fewest models an organization needs to be looked at.

    Attributes
    ----------
    within : int
        For a correlation inside it.
    between : int
        For the comparison of organizations.
    """

    within: Annotated[int, Field(ge=4)] = 4
    between: Annotated[int, Field(ge=2)] = 3


class Contrast(Part):
    """A difference of dependent correlations: of `of` with `second` minus with `first`.

    Attributes
    ----------
    of : str
        A column, or "capability".
    first, second : str
        Columns.
    given_capability : bool
        Compare partial correlations.
    """

    of: str
    first: str
    second: str
    given_capability: bool = False

    @model_validator(mode="after")
    def _different(self) -> Contrast:
        if len({self.of, self.first, self.second}) < 3:
            raise ValueError(
                f"of, first and second must be three scores, found {self.of}, {self.first}, {self.second}"
            )
        return self


class Coding(Part):
    """Codes that several coders gave to the columns.

    Attributes
    ----------
    file : str
        Table beside the plan: a row per column (first field its name), a field per coder.
    level : {"nominal", "ordinal", "interval"}
    """

    file: str
    level: Level = "nominal"


class Multiplicity(Part):
    """Which tests are corrected together, and how.

    Attributes
    ----------
    method : {"holm", "bonferroni", "benjamini-hochberg"}
    families : dict
        Name of a family: the kinds of tests in it; a kind that is in none is a family of its own.
    """

    method: Method = "holm"
    families: dict[str, Annotated[tuple[Family, ...], Strict(False)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _disjoint(self) -> Multiplicity:
        kinds = [kind for members in self.families.values() for kind in members]
        repeated = sorted({kind for kind in kinds if kinds.count(kind) > 1})
        if repeated:
            raise ValueError(f"{', '.join(repeated)} stand(s) in two families")
        return self

    def family(self, kind: Family) -> str:
        """Name of the family that a kind of test belongs to."""
        return next((name for name, members in self.families.items() if kind in members), kind)


class PanelPlan(Plan):
    """The plan of a panel audit.

    Attributes
    ----------
    model, organization : str
        Columns of the models' names and of their organizations ("" where there is none).
    columns : dict
        The score columns that take part, by name.
    structure : tuple of str
        Columns of the components; default: anchors and benchmarks that enough models have.
    contrasts : tuple of Contrast
        Default: every pair of criteria (without criteria: of benchmarks) against capability.
    coding : Coding, optional
    """

    kind: Literal["panel"]
    schema_version: Literal[1]
    reading: str = READING
    model: str | None = None
    organization: str | None = None
    columns: dict[str, Column]
    structure: Names = ()
    contrasts: Annotated[tuple[Contrast, ...], Strict(False)] | None = None
    thresholds: Thresholds = Thresholds()
    resampling: Resampling = Resampling()
    groups: Groups = Groups()
    multiplicity: Multiplicity = Multiplicity()
    coding: Coding | None = None

    @model_validator(mode="after")
    def _names_exist(self) -> PanelPlan:
        if CAPABILITY in self.columns:
            raise ValueError(f"columns: {CAPABILITY!r} names the composite of the anchors; rename the column")
        if not any(column.role == "benchmark" for column in self.columns.values()):
            raise ValueError("columns: none has the role 'benchmark'; there is nothing to audit")
        labels = [column.label or name for name, column in self.columns.items()] + [CAPABILITY]
        for what, names in (("columns: the label", labels), ("structure: the column", list(self.structure))):
            if repeated := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{what} {repeated[0]!r} is given twice; each needs its own")
        named = [*self.structure, *(name for c in self.contrasts or () for name in (c.of, c.first, c.second))]
        unknown = sorted(set(named) - {*self.columns, CAPABILITY})
        if unknown:
            raise ValueError(
                f"structure or contrasts name {', '.join(unknown)}, which columns does not describe"
            )
        return self

    def of(self, role: Role) -> list[str]:
        """Names of the columns that play a role."""
        return [name for name, column in self.columns.items() if column.role == role]

    def details(self) -> list[str]:
        """Every further column that the score columns name, once."""
        return list(dict.fromkeys(name for column in self.columns.values() for name in column.details()))

    def all_contrasts(self) -> tuple[Contrast, ...]:
        """The contrasts of the plan, or the default ones."""
        if self.contrasts is not None:
            return self.contrasts
        criteria, benchmarks = self.of("criterion"), self.of("benchmark")
        with_capability = [
            Contrast(of=CAPABILITY, first=a, second=b)
            for a, b in combinations(criteria if len(criteria) > 1 else benchmarks, 2)
            if self.of("anchor")
        ]
        with_benchmarks = [
            Contrast(of=benchmark, first=a, second=b, given_capability=bool(self.of("anchor")))
            for benchmark in benchmarks
            for a, b in combinations(criteria, 2)
        ]
        return (*with_capability, *with_benchmarks)
