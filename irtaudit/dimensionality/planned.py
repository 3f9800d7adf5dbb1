"""A plan at work: options that override it, how the run departs from what was filed, the data it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irtaudit.data.masks import read_test_masks
from irtaudit.data.read import read_responses
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits
from irtaudit.dimensionality.plan import IrtPlan
from irtaudit.errors import PlanError
from irtaudit.plan import make_plan, plan_sha256

TABLES = ("items", "subjects", "models")
"""Keys of ``[data]`` that name files beside ``responses``."""


@dataclass(frozen=True)
class Deviation:
    """One way in which a run departs from its plan.

    Attributes
    ----------
    key : str
        Of the plan: ``fit.restarts``.
    planned, used
        JSON values.
    """

    key: str
    planned: Any
    used: Any


@dataclass(frozen=True)
class Planned:
    """The plan that a run was asked to follow.

    Attributes
    ----------
    plan : IrtPlan
        As filed.
    file : str
        Where it was read.
    deviations : tuple of Deviation
    """

    plan: IrtPlan
    file: str
    deviations: tuple[Deviation, ...] = ()

    @property
    def sha256(self) -> str:
        """Of the plan as filed, defaults filled in."""
        return plan_sha256(self.plan)


def override(plan: IrtPlan, changes: Mapping[str, Any]) -> IrtPlan:
    """The plan with other values.

    Parameters
    ----------
    plan : IrtPlan
    changes : mapping of str to value
        By key of the plan, with dots: ``fit.restarts``.

    Raises
    ------
    PlanError
        When a value is not what its key expects.
    """
    values = plan.model_dump(mode="json")
    for key, value in changes.items():
        *above, last = key.split(".")
        table = values
        for name in above:
            table = table[name]
        table[last] = value
    return make_plan(values, IrtPlan, where="what the options ask for")


def deviations(plan: IrtPlan, used: IrtPlan, data_sha256: str) -> tuple[Deviation, ...]:
    """How a run departs from the plan as filed.

    Parameters
    ----------
    plan : IrtPlan
        As filed.
    used : IrtPlan
        As run.
    data_sha256 : str
        Of the data that were analysed.
    """
    filed, run = dict(_leaves(plan.model_dump(mode="json"))), dict(_leaves(used.model_dump(mode="json")))
    if plan.data.sha256:
        run["data.sha256"] = data_sha256
    return tuple(Deviation(key, filed[key], value) for key, value in run.items() if filed[key] != value)


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield above + key, value


def read_planned(plan: IrtPlan, folder: Path) -> ResponseMatrix:
    """The responses that a plan names.

    Parameters
    ----------
    plan : IrtPlan
    folder : Path
        That paths in the plan are relative to.

    Raises
    ------
    PlanError
        When it names none.
    DataError, StorageError
        As `read_responses`.
    """
    if not plan.data.responses:
        raise PlanError("The plan names no responses: fill in data.responses, or give a file beside --plan.")
    options = plan.data.model_dump(exclude={"responses", "sha256", "sweep"}, exclude_none=True)
    files = {name: folder / options.pop(name) for name in TABLES if name in options}
    return read_responses(folder / plan.data.responses, **files, **options)


def planned_splits(plan: IrtPlan, folder: Path, matrix: ResponseMatrix) -> Splits | None:
    """The held-out cells that a plan gives; None where they are drawn at random."""
    mask = plan.splits.heldout
    return None if mask is None else read_test_masks(folder / mask, matrix)
