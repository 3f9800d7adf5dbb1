"""``irtaudit convert``: the same data in another layout, or one error and nothing written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner, Result

from irtaudit.cli import convert, reading
from irtaudit.data import load_swebench_verified, read_responses, write_responses
from irtaudit.data.read import Layout
from irtaudit.data.trials import Trials
from irtaudit.data.write import FORMATS
from irtaudit.errors import DataError, IrtAuditError, PlanError, StorageError


def run(*arguments: object) -> Result:
    return CliRunner().invoke(convert.command, [str(argument) for argument in arguments])


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text("who,what,points\nm1,q1,1.0\nm1,q2,0.5\nm2,q1,\n", encoding="utf-8")
    return path


def test_the_choices_are_those_of_the_library() -> None:
    assert convert.FORMATS == FORMATS
    assert get_args(Layout) == reading.LAYOUTS
    assert get_args(Trials) == reading.TRIALS


def test_a_tour_through_all_formats_ends_where_it_began(tmp_path: Path) -> None:
    matrix = load_swebench_verified()
    matrix = matrix.select(subjects=matrix.subjects.index[:20])
    write_responses(matrix, tmp_path / "0", "wide-csv")
    for step, format in enumerate(FORMATS):
        result = run(tmp_path / str(step), tmp_path / str(step + 1), "--to", format)
        assert result.exit_code == 0, result.output
        assert (
            f"{format}, 20 subjects x 500 items, 10000 responses, data sha256 {matrix.sha256}"
            in result.output
        )
    assert read_responses(tmp_path / str(len(FORMATS))).sha256 == matrix.sha256


def test_scores_and_columns_are_read_as_told(scores: Path, tmp_path: Path) -> None:
    columns = ["--subject-column", "who", "--item-column", "what", "--response-column", "points"]
    result = run(scores, tmp_path / "out.csv", *columns, "--pass-at", "1.0")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out.csv").read_text() == "subject,q1,q2\nm1,1,0\nm2,,\n"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["scores.csv", "out.csv"], DataError, "'m1' is given twice.*for a long table name its columns"),
        (
            ["scores.csv", "out.csv", "--from", "long"],
            DataError,
            "recognised as the subject.*--subject-column",
        ),
        (["scores.csv", "out.csv", "--pass-at", "0"], PlanError, "pass_at"),
        (["scores.csv", "out.csv", "--max-bytes", "10"], DataError, "more than 10 bytes"),
        (["nowhere.csv", "out.csv"], DataError, "no such file"),
        (["wide.csv", "out.xlsx"], PlanError, "does not tell the format"),
        (["wide.csv", "nowhere/out.csv"], StorageError, "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_error_and_leaves_nothing(
    scores: Path,
    arguments: list[str],
    error: type[IrtAuditError],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(scores.parent)
    Path("wide.csv").write_text("model,q1\nm1,1\n", encoding="utf-8")
    result = run(*arguments)
    assert isinstance(result.exception, error)
    assert re.search(message, str(result.exception))
    assert sorted(path.name for path in Path().iterdir()) == ["scores.csv", "wide.csv"]


def test_a_file_can_be_converted_onto_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("model,q1\nm1,TRUE\n", encoding="utf-8")
    assert run(path, path, "--force").exit_code == 0
    assert path.read_text() == "subject,q1\nm1,1\n"


def test_help_says_what_happens_to_formulas() -> None:
    assert "apostrophe" in run("--help").output
