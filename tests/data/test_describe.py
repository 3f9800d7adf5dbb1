"""describe says what is there, in numbers that a reader can recount, and a command that works."""

from __future__ import annotations

import gzip
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from irtaudit.cli import COMMANDS, reading
from irtaudit.cli import describe as describe_command
from irtaudit.data import ResponseMatrix, load_swebench_verified, read_responses, write_responses
from irtaudit.data.bundled import files
from irtaudit.data.describe import FLAGS, describe
from irtaudit.data.panel import bundled_panel
from irtaudit.errors import DataError

FIXTURES = Path(__file__).parent / "fixtures"
CELLS = [[1, 1, 0, np.nan], [1, 0, 0, np.nan], [1, 1, 1, np.nan], [1, np.nan, 0, np.nan]]


@pytest.fixture
def matrix() -> ResponseMatrix:
    return ResponseMatrix.from_array(CELLS, subjects=list("abcd"), items=["q1", "q2", "q3", "q4"])


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        ("wide-csv", "a wide table (text)"),
        ("wide-parquet", "a wide table (Parquet)"),
        ("long-tsv", "a long table (text)"),
        ("long-parquet", "a long table (Parquet)"),
        ("py-irt", "py-irt's JSON lines"),
    ],
)
def test_every_layout_is_counted_alike(
    tmp_path: Path, matrix: ResponseMatrix, format: str, kind: str
) -> None:
    write_responses(matrix, tmp_path / "data", format)
    found = describe(tmp_path / "data")
    assert found.kind == kind
    assert {
        key: found.facts[key] for key in ("subjects", "items", "responses", "pass rate", "saturation")
    } == {
        "subjects": 4,
        "items": 4,
        "responses": "11 of 16 cells, 5 missing",
        "pass rate": "63.6%, subjects 33.3% to 100.0%",  # 7 of 11; b passes 1 of 3, c 3 of 3
        "saturation": "1 of 4 subjects pass more than 90%",
    }
    assert found.facts["constant items"] == "1 ('q1')"
    assert found.facts["items without responses"] == "1 ('q4')"
    assert found.facts["subjects that lack items"] == "1 ('d')"  # q4, which nobody has, aside
    assert found.next == f"irtaudit audit {tmp_path / 'data'}"
    assert not found.undecided
    assert found.matrix is not None
    assert found.matrix.sha256 == matrix.sha256


def test_open_questions_are_listed_and_answered_by_an_example(tmp_path: Path) -> None:
    path = tmp_path / "my runs.csv"
    path.write_text("who,model,item,score\nx,a,q1,0.5\nx,a,q1,1\nx,b,q1,0\nx,b,q2,1\n", encoding="utf-8")
    found = describe(path)
    assert list(found.undecided) == ["pass_at", "trials"]
    assert "line 2, column 'score': found '0.5'" in found.undecided["pass_at"]
    assert "1 cell(s) are given more than once" in found.undecided["trials"]
    assert found.facts["subject column"] == "model"
    assert found.facts["repeated cells"] == "some, see below"
    options = shlex.split(found.next)
    assert options == ["irtaudit", "audit", str(path), "--pass-at", "1.0", "--trials", "first"]
    assert found.matrix is not None
    assert found.matrix.sha256 == read_responses(path, pass_at=1.0, trials="first").sha256
    decided = describe(path, pass_at=0.5, trials="majority")
    assert not decided.undecided
    assert decided.facts["repeated cells"] == "counted by the rule 'majority'"
    assert decided.next.endswith("--pass-at 0.5 --trials majority")


def test_a_table_that_could_be_two_things(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("model,item,score\n1,0,1\n0,1,1\n", encoding="utf-8")
    found = describe(path)
    assert list(found.undecided) == ["layout"]
    assert found.kind == "a long table (text)"
    assert found.next.endswith("--from long")


def test_repeated_cells_and_subjects_are_counted(tmp_path: Path) -> None:
    cells = [
        [1, 0, np.nan, 1],
        [1, 0, np.nan, 1],
        [1, 0, 0, 1],
        [1, 0, np.nan, 1],
        [np.nan] * 4,
        [np.nan] * 4,
    ]
    write_responses(ResponseMatrix.from_array(cells, subjects=list("abcdef")), tmp_path / "x", "long-csv")
    found = describe(tmp_path / "x")
    assert found.facts["repeated cells"] == "none"
    assert found.facts["subjects that answered as another did"] == "2 ('b', 'd')"
    other = ResponseMatrix.from_array([[1, 0], [0, 1]])
    write_responses(other, tmp_path / "y", "wide-csv")
    assert not {"subjects that answered as another did", "repeated cells"} & set(
        describe(tmp_path / "y").facts
    )


def test_logs_list_their_tasks_and_metrics() -> None:
    found = describe(FIXTURES / "lm_eval")
    assert found.kind == "logs of lm-evaluation-harness"
    assert found.facts["samples"] == "16 scored"
    assert "sums_gen (2 models, 4 items; 'exact_match,flexible-extract', 'exact_match,strict-match')" in str(
        found.facts["tasks"]
    )
    assert list(found.undecided) == ["task", "metric"]
    assert "--task sums_mc --metric acc,none" in found.next
    helm = describe(FIXTURES / "helm")
    assert helm.next.endswith("--metric exact_match")
    board = describe(FIXTURES / "swebench")
    assert board.facts["samples"] == "10 scored, 2 error, 2 cancelled"
    assert any("2 sample(s) broke off and count as not observed" in note for note in board.notes)


def test_the_finished_and_the_panel(tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text(
        json.dumps({"verdict": {"reading": "supported", "claim": "x = y"}, "command": "irtaudit audit x.csv"})
    )
    found = describe(tmp_path)
    assert found.kind == "the folder of a finished audit"
    assert dict(found.facts) == {"verdict": "supported", "claim": "x = y", "command": "irtaudit audit x.csv"}
    assert found.next == f"irtaudit export {tmp_path} --out exported"
    compared = describe(FIXTURES / "comparison.csv")
    assert compared.kind == "a table that compares item response models"
    assert compared.next == f"irtaudit check-table {FIXTURES / 'comparison.csv'}"
    with bundled_panel("panel.csv") as panel:
        scores = describe(panel)
    assert scores.kind == "a table of scores, as a panel audit takes it"
    assert scores.next.endswith("panel.csv --kind panel")


def test_real_data_is_recounted() -> None:
    path = Path(str(files("irtaudit.data"))) / "swebench_verified" / "responses.csv.gz"
    found, matrix = describe(path), load_swebench_verified()
    passed = int(matrix.responses.sum())
    constant = int(((matrix.responses.sum(axis=0) == 0) | (matrix.responses.sum(axis=0) == 134)).sum())
    assert str(found.facts["pass rate"]).startswith(f"{passed / matrix.responses.size:.1%},")
    assert str(found.facts["constant items"]).startswith(f"{constant} (")


def test_missing_cells_that_go_with_the_score_are_noted(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    ability = np.linspace(-2, 2, 60)
    cells = (rng.random((60, 40)) < 1 / (1 + np.exp(-ability[:, None]))).astype(float)
    cells[rng.random(cells.shape) < np.where(ability < 0, 0.5, 0.02)[:, None]] = np.nan
    write_responses(ResponseMatrix.from_array(cells), tmp_path / "x.csv")
    notes = describe(tmp_path / "x.csv").notes
    assert any("subjects with more missing responses have lower pass rates" in note for note in notes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"model,q1\n", "has a header"),
        (gzip.compress(b"model,q1\na,1\n", mtime=0)[:-8], "broken or cut-off gzip"),
        (b"\x80\x04pickle", "is a Python pickle"),
        (b"item,functional\na,x\nb,y\n", "its rows look like items"),
        (b"model,q1\na,b\nc,d\n", "hold something else than responses"),
        (
            b"model,q1,q2,developer\na,1,0,A\nb,0,,B\n",
            "column.s. 'developer' hold something else.*--subjects",
        ),
        (b"item,m1,m2\nq1,1,0\nq2,0,1\n", "its rows look like items"),
    ],
)
def test_what_is_broken_or_unknown_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataError, match=message):
        describe(tmp_path / "x")


def test_the_flags_are_those_of_the_commands() -> None:
    options = {
        next(iter(reading.given({parameter.name or "": 1}))): parameter.opts[0]
        for parameter in describe_command.command.params
        if parameter.name not in ("path", "as_json")
    }
    assert options == FLAGS
    assert {"describe", "fetch", "export", "convert"} <= set(COMMANDS)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(describe_command.command, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_prints_it_for_people_and_for_programs(tmp_path: Path, matrix: ResponseMatrix) -> None:
    path = tmp_path / "x.csv"
    write_responses(matrix, path)
    text = run(path)
    assert text.startswith(f"{path}: a wide table (text)\n")
    assert text.endswith(f"Next: irtaudit audit {path}\n")
    content = json.loads(run(path, "--json"))
    assert content["data_sha256"] == matrix.sha256
    assert content["facts"]["items"] == 4
    graded = tmp_path / "g.csv"
    graded.write_text("model,q1\na,0.5\n")
    assert "to decide (pass_at): " in run(graded)
    assert "The numbers above hold for the options in the next line" in run(graded)
