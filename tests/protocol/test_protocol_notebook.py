"""The lesson runs from top to bottom and says what its text promises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "04_how_was_the_score_earned.ipynb"


def test_the_lesson_runs_and_keeps_its_promises(capsys: pytest.CaptureFixture[str]) -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {cell['id']}", "exec"), names)
    told = capsys.readouterr().out
    assert "Wilson [0.6274, 0.7101] exact [0.6266, 0.7114]" in told
    assert "('positive', [])" in told
    assert "('invalid', [\"V3: " in told
    assert "('unsupported', ['V6: " in told
    metrics = names["found"].metrics.set_index("metric")  # type: ignore[attr-defined]  # a Calibration
    assert round(metrics.loc["f1", "constant"], 3) == 0.864
    assert metrics.loc["f1", "above_low"] < 0 < metrics.loc["balanced_accuracy", "above_low"]
