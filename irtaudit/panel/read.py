"""The files a panel plan names: the panel itself, and what lies beside the plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from irtaudit.data.files import MAX_BYTES, read_content
from irtaudit.data.panel import ScorePanel, bundled_panel, read_panel
from irtaudit.data.read import read_responses
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.tables import parse_table
from irtaudit.errors import PlanError
from irtaudit.panel.plan import PanelPlan
from irtaudit.plan import read_plan

DEMO_SOURCE = "Table 1 of “Safety, or Just Capability?” (bundled)"


def read_planned_panel(path: str | Path, plan: PanelPlan) -> ScorePanel:
    """The columns of a table that a plan describes.

    Raises
    ------
    DataError
        As `irtaudit.data.panel.read_panel`.
    """
    return read_panel(
        path, plan.columns, model=plan.model, organization=plan.organization, details=plan.details()
    )


def read_item_responses(plan: PanelPlan, folder: Path) -> dict[str, ResponseMatrix]:
    """Responses to single items of the columns whose plan names a file, by column.

    Parameters
    ----------
    plan : PanelPlan
    folder : Path
        Relative names are looked up here: the folder of the plan.

    Raises
    ------
    DataError
        As `irtaudit.data.read.read_responses`.
    """
    return {
        name: read_responses(folder / column.responses, pass_at=column.pass_at)
        for name, column in plan.columns.items()
        if column.responses is not None
    }


def read_codes(plan: PanelPlan, folder: Path) -> pd.DataFrame | None:
    """Codes of the coders, one column each, by score column; None when the plan names no file.

    Raises
    ------
    DataError
        If the table cannot be read.
    PlanError
        If codes of an ordered level are no numbers.
    """
    if plan.coding is None:
        return None
    path = folder / plan.coding.file
    table = parse_table(read_content(path), path, MAX_BYTES)
    index = pd.Index(table.texts(0), dtype=object, name="column")
    codes = pd.DataFrame({name: table.covariate(j) for j, name in enumerate(table.names) if j}).set_axis(
        index
    )
    if plan.coding.level != "nominal":
        wrong = codes.notna() & codes.apply(pd.to_numeric, errors="coerce").isna()
        if wrong.to_numpy().any():
            column = codes.columns[wrong.any()][0]
            found = codes.loc[wrong[column], column].iloc[0]
            raise PlanError(
                f"{path}, coder {column!r}: found {found!r}; codes of level {plan.coding.level!r} must be "
                'numbers (level = "nominal" takes words)'
            )
    return codes


def demo() -> tuple[ScorePanel, PanelPlan]:
    """The bundled panel, 18 models on three agent-safety benchmarks and GPQA, and its plan."""
    with bundled_panel("plan.toml") as path:
        plan = read_plan(path, PanelPlan)
    with bundled_panel("panel.csv") as path:
        panel = read_planned_panel(path, plan)
    return replace(panel, source=DEMO_SOURCE), plan
