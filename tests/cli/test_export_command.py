"""``irtaudit export``: a finished audit or a saved fit, for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from irtaudit.cli import export, main
from irtaudit.data.outputs import MARKER


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """The tables of an audit of three models and four items."""
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "abilities.csv").write_text(
        "model,factor,subject,theta,theta_sd,low,high,rank,rank_low,rank_high\n"
        "unidimensional_2pl,ability,a,1.0,0.1,0,0,1,1,1\n"
        "unidimensional_2pl,ability,b,0.0,0.1,0,0,2,1,1\n"
        "unidimensional_2pl,ability,c,-1.0,0.1,0,0,3,1,1\n"
    )
    (folder / "items.csv").write_text(
        "model,factor,item,difficulty,difficulty_sd,slope,slope_sd,intercept,intercept_sd,guess,guess_sd,pass_rate\n"
        + "".join(
            f"unidimensional_2pl,ability,q{j},0,0,{slope},0.1,0.0,0.1,,,0.5\n"
            for j, slope in enumerate((2.0, 1.0, 0.5, 3.0))
        )
    )
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["export", *(str(argument) for argument in arguments)])


def test_everything_at_once(audit: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    kinds = [word for kind in ("csv", "parquet", "py-irt", "items") for word in ("--as", kind)]
    result = run(audit, "--out", out, *kinds, "--at", "0", "--share", "0.9")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir() if path.name != MARKER) == [
        "abilities.csv",
        "abilities.parquet",
        "best_parameters.json",
        "items.csv",
        "items.parquet",
        "short_form.csv",
    ]
    assert json.loads((out / "best_parameters.json").read_text())["disc"] == [2.0, 1.0, 0.5, 3.0]
    # at the difficulty of all items their information goes with the squared slope: 9, 4, 1, .25 of 14.25
    assert pd.read_csv(out / "short_form.csv")["item"].tolist() == ["q3", "q0"]
    assert "2 of 4 items keep 91% or more of the information at 0" in result.output


def test_tables_by_default(audit: Path, tmp_path: Path) -> None:
    assert run(audit, "--out", tmp_path / "x").exit_code == 0
    assert pd.read_csv(tmp_path / "x" / "abilities.csv").columns.tolist() == [
        "subject",
        "ability",
        "ability_sd",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "y"], "has no model 'y'; it has 'unidimensional_2pl'"),
        (["--as", "items", "--at", "high"], "--at is 'high', expected numbers"),
        (["--as", "items", "--count", "5"], "count is 5, expected 1 to 4"),
        (["--as", "items", "--factor", "x"], "has the factors 'ability'"),
        (["--as", "xlsx"], "Invalid value for '--as'"),
        (["--share", "0"], "Invalid value for '--share'"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    audit: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = run(audit, "--out", tmp_path / "x", *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_a_source_that_is_none(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere", "--out", tmp_path / "x")
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "x").exists()


def test_the_formats_are_told() -> None:
    assert all(kind in run("--help").output for kind in export.FORMATS)
