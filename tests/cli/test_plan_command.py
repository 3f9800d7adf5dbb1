from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from irtaudit.cli import main
from irtaudit.cli.plan import KINDS
from irtaudit.panel.plan import PanelPlan
from irtaudit.plan import read_plan


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["plan", "init", *(str(argument) for argument in arguments)])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text("model,mmlu,safe,notes\nm1,50,0.2,x\nm2,60,0.3,y\n", encoding="utf-8")
    return path


def test_a_plan_is_written_and_the_next_command_told(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.toml"
    result = run(table, "--kind", "panel", "--out", out)
    assert result.exit_code == 0
    assert f"irtaudit panel {table} --plan {out} --out DIR" in result.stdout
    assert "left out 'notes'" in result.output
    assert set(read_plan(out, PanelPlan).columns) == {"mmlu", "safe"}


def test_a_plan_that_is_there_is_kept_unless_forced(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.toml"
    out.write_text("mine", encoding="utf-8")
    refused = run(table, "--kind", "panel", "--out", out)
    assert refused.exit_code == 2
    assert "exists; --force replaces it" in refused.output
    assert out.read_text(encoding="utf-8") == "mine"
    assert run(table, "--kind", "panel", "--out", out, "--force").exit_code == 0
    assert out.read_text(encoding="utf-8") != "mine"


def test_a_dash_prints_the_plan(table: Path) -> None:
    assert 'kind = "panel"' in run(table, "--kind", "panel", "--out", "-").stdout


def test_the_kind_must_be_one_there_is(table: Path) -> None:
    result = run(table, "--kind", "tea")
    assert result.exit_code == 2
    assert "'tea' is not" in result.output
    assert next(iter(KINDS)) in result.output


def test_no_table_no_plan(tmp_path: Path) -> None:
    result = run(tmp_path / "none.csv", "--kind", "panel", "--out", tmp_path / "plan.toml")
    assert result.exit_code == 2
    assert "there is no such file" in result.output
    assert not (tmp_path / "plan.toml").exists()
