"""``irtaudit saturation`` as users meet it: several files, tasks of logs, a report, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from irtaudit.cli import main

HARNESS = Path(__file__).parents[1] / "data" / "fixtures" / "lm_eval"


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["saturation", *map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A saturated and an open data set of the same simulated models."""
    rng = np.random.default_rng(0)
    found = {}
    for name, rate in {"easy": 0.95, "hard": 0.5}.items():
        cells = (rng.random((40, 60)) < rate).astype(int)
        table = pd.DataFrame(cells, columns=[f"item {j}" for j in range(60)])
        table.insert(0, "model", [f"model {i}" for i in range(40)])
        found[name] = tmp_path / f"{name}.csv"
        table.to_csv(found[name], index=False)
    return found


def test_each_file_is_read_and_the_saturated_one_named(files: dict[str, Path]) -> None:
    result = _run(files["easy"], files["hard"])
    assert result.exit_code == 0, result.output
    easy, hard, claim = result.output.splitlines()
    assert easy.startswith("easy  saturated: 9")
    assert hard.startswith("hard  open: ")
    assert "of 40 models pass more than 90 %" in easy
    assert claim.startswith("1 of 2 data sets is saturated: easy.")


def test_programs_get_the_table(files: dict[str, Path]) -> None:
    content = json.loads(_run(files["easy"], files["hard"], "--json", "--threshold", 0.4).output)
    assert content["threshold"] == 0.4
    assert [row["reading"] for row in content["data"]] == ["saturated", "saturated"]
    shown = pd.read_csv(files["easy"]).drop(columns="model").to_numpy()
    assert content["data"][0]["pass_rate"] == pytest.approx(shown.mean())
    assert content["data"][0]["constant_items"] == pytest.approx(
        np.mean((shown.min(axis=0) == 1) | (shown.max(axis=0) == 0))
    )


def test_one_model_has_no_interval_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("model,a,b,c,d,e\nalpha,1,0,1,1,0\n", encoding="utf-8")
    said = _run(tmp_path / "one.csv").output
    assert "one  undecided: 60.0% pass (no interval: one model does not tell how models vary);" in said
    assert "0% of 1 model passes more than 90 %" in said
    assert "One model alone does not tell whether the data set is saturated." in said
    (row,) = json.loads(_run(tmp_path / "one.csv", "--json").output)["data"]
    assert (row["low"], row["high"], row["reading"]) == (None, None, "undecided")
    assert _run(tmp_path / "one.csv", "--out", tmp_path / "out").exit_code == 0
    assert pd.read_csv(tmp_path / "out" / "saturation.csv")[["low", "high"]].isna().all(axis=None)


def test_a_folder_gets_report_and_table_and_is_not_taken_from_anyone(
    files: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = _run(files["easy"], files["hard"], "--out", out)
    assert result.output.splitlines()[-1] == f"Report: {out / 'report.html'}"
    assert pd.read_csv(out / "saturation.csv")["data"].tolist() == ["easy", "hard"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "1 of 2 data sets is saturated: easy." in page
    assert "irtaudit saturation" in page
    refused = _run(files["easy"], "--out", tmp_path)
    assert refused.exit_code == 2
    assert "did not write" in refused.output


def test_files_of_one_name_go_by_their_paths(files: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "other" / "easy.csv"
    other.parent.mkdir()
    other.write_bytes(files["hard"].read_bytes())
    names = [row["data"] for row in json.loads(_run(files["easy"], other, "--json").output)["data"]]
    assert names == [str(files["easy"]), str(other)]


def test_tasks_of_logs_are_data_sets_of_their_own() -> None:
    metric = ("--metric", "acc_norm,none", "--json")
    content = json.loads(_run(HARNESS, "--each-task", "sums_mc", *metric).output)
    assert [(row["data"], row["models"], row["items"]) for row in content["data"]] == [("sums_mc", 2, 4)]
    both = _run(HARNESS, "--each-task", "sums_mc", "--each-task", "sums_gen")
    assert both.exit_code == 2
    assert "sums_gen has 2 metrics" in both.output or "sums_mc has 2 metrics" in both.output


def test_a_threshold_shows_on_the_report(files: dict[str, Path], tmp_path: Path) -> None:
    _run(files["hard"], "--threshold", 0.4, "--out", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "The data set is saturated." in page


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ((), "RESPONSES"),
        (("missing.csv",), "missing.csv"),
        (("x", "--task", "a", "--each-task", "b"), "--each-task"),
        (("x", "--threshold", "nan"), "'--threshold': nan is no finite number"),
        (("x", "--threshold", "inf"), "'--threshold': inf is not in the range 0<x<=1"),
        (("x", "--threshold", "-0.1"), "'--threshold': -0.1 is not in the range 0<x<=1"),
        (("x", "--threshold", "1.1"), "'--threshold': 1.1 is not in the range 0<x<=1"),
        (("x", "--threshold", "0"), "'--threshold': 0.0 is not in the range 0<x<=1"),
    ],
)
def test_bad_input_is_a_sentence(arguments: tuple[str, ...], found: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert found in result.output
    assert "Traceback" not in result.output
