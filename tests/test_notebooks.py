"""The lessons run from top to bottom, each in under a minute of CPU, and come out as their text says."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"
LESSONS = sorted(FOLDER.glob("*.ipynb"))
LIMIT = 60.0
"""CPU seconds of a lesson, its kernel's start included."""
CPU = "import time as _time; print('cpu', _time.process_time())"
PROMISES = {
    "01_does_the_score_measure_one_thing": (
        r"confirmatory_kind_2pl over one dimension: .*: above it",
        r"one dimension over item means: -0\.\d+ nats \(-0\.\d+ to 0\.\d+\)",
        r"unidimensional_2pl - failed fit: unidimensional_1pl, which it contains",
        r"confirmatory_3d_3pl - a note: training log-likelihood below that of confirmatory_3d_2pl",
        r"key='fit\.restarts', planned=20, used=2",
    ),
    "02_same_ability_same_chance": (
        r"django__django-11848  logistic     OpenAI",
        r"shift 0 logits: flagged by no screen; other items flagged: 0",
        r"shift 6 logits: flagged by .*logistic",
        r"single score +score +60 +\d+ +[1-9]",
        r"kind:recite +score +30 +\d+ +0",
    ),
    "03_safety_or_capability": (
        r"167 of 301 unsafe traces found, 8 of 270 benign ones flagged",
        r"balanced accuracy 0\.763 \(never looking: 0\.500\)",
        r"31,824 panels of seven: 25\.3% are that strong",
        r"unrelated scores: 26\.7% \(exact",
        r"not supported - quiz orders the 60 models as capability does",
        r"safety: NOT SUPPORTED\s+InjecAgent and AgentHarm order the same 18 models differently",
    ),
}
"""What a lesson's output must hold for its text to be true."""


def executed(path: Path) -> tuple[str, float]:
    """What a lesson prints and shows, and its CPU seconds."""
    lesson = nbformat.read(path, as_version=4)
    lesson.cells.append(nbformat.v4.new_code_cell(CPU))
    NotebookClient(lesson, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    shown = "\n".join(_text(output) for cell in lesson.cells for output in cell.get("outputs", ()))
    # a stream may arrive in pieces, even within a line
    return shown, float(shown.rpartition("cpu")[2])


def _text(output: Any) -> str:
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_in_under_a_minute_and_keeps_its_promises(path: Path) -> None:
    shown, seconds = executed(path)
    assert seconds < LIMIT
    for promise in PROMISES.get(path.stem, ()):
        assert re.search(promise, shown), f"{promise!r} is nowhere in the output of {path.name}"


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_stored_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not [cell["id"] for cell in cells if cell.get("outputs") or cell.get("execution_count")]


def test_the_readme_names_every_lesson_by_its_title() -> None:
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    for path in LESSONS:
        heading = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"][0]
        assert f"[{heading.removeprefix('# ').strip()}](notebooks/{path.name})" in readme


def test_a_promise_that_is_not_kept_is_seen(tmp_path: Path) -> None:
    lesson = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print('found', 6 * 7)")])
    path = tmp_path / "small.ipynb"
    nbformat.write(lesson, path)
    started = time.monotonic()
    shown, seconds = executed(path)
    assert "found 42" in shown
    assert 0 < seconds <= 4 * (time.monotonic() - started)
