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


def test_item_columns_are_named_by_option_and_only_for_responses(table: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    items.write_text("item,kind,area\n" + "".join(f"i{j},{j % 2},{j // 3}\n" for j in range(6)))
    responses = tmp_path / "responses.csv"
    rows = [",".join(map(str, (f"m{i}", *((i * j) % 3 % 2 for j in range(6))))) for i in range(6)]
    responses.write_text("\n".join(["model,i0,i1,i2,i3,i4,i5", *rows]) + "\n")
    words = (responses, "--kind", "irt", "--items", items, "--out", "-")
    both, one = run(*words), run(*words, "--factors", "area")
    assert "confirmatory_kind_2pl" in both.stdout
    assert "confirmatory_area_2pl" in one.stdout
    assert "confirmatory_kind_2pl" not in one.stdout
    refused = run(table, "--kind", "panel", "--factors", "area", "--out", "-")
    assert (refused.exit_code, "--factors belongs to --kind irt" in refused.output) == (2, True)
    bare = run(responses, "--kind", "irt", "--factors", "area", "--out", "-")
    assert (bare.exit_code, "Name a table of them with --items" in bare.output) == (2, True)


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
