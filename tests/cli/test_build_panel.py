from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
from click.testing import CliRunner, Result

from irtaudit.cli import main
from irtaudit.panel.plan import PanelPlan
from irtaudit.panel.read import read_planned_panel
from irtaudit.plan import read_plan

FIXTURES = Path(__file__).parents[1] / "data" / "fixtures"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_from_logs_of_two_tools_to_a_table_that_a_plan_reads(tmp_path: Path) -> None:
    out, plan = tmp_path / "panel.csv", tmp_path / "plan.toml"
    result = run("build-panel", FIXTURES / "lm_eval", FIXTURES / "swebench", "--out", out)
    assert result.exit_code == 0, result.output
    assert f"{out}: 4 models x 3 scores" in result.output
    assert f"irtaudit plan init {out} --kind panel" in result.output
    table = pd.read_csv(out)
    assert {"model", "organization", "sums_mc", "sums_mc_n", "sums_mc_valid", "swe-bench"} <= set(table)
    assert run("plan", "init", out, "--kind", "panel", "--out", plan).exit_code == 0
    made = read_plan(plan, PanelPlan)
    assert made.columns["sums_mc"].items == "sums_mc_n"
    assert made.columns["sums_mc"].valid == "sums_mc_valid"
    assert read_planned_panel(out, made).n_models == 4


def test_logs_of_two_tools_in_one_folder_are_told_apart_by_the_option_that_the_message_names(
    tmp_path: Path,
) -> None:
    shutil.copytree(FIXTURES / "lm_eval", tmp_path / "logs" / "a")
    shutil.copytree(FIXTURES / "swebench", tmp_path / "logs" / "b")
    refused = run("build-panel", tmp_path / "logs", "--out", tmp_path / "panel.csv")
    assert refused.exit_code == 2
    assert "logs of several tools: lm-eval, swe-bench" in refused.output
    (option,) = set(re.findall(r"--\w+", refused.output))
    for name, told in ((option, "swe-bench"), ("--kind", "lm-eval")):
        out = tmp_path / f"{told}.csv"
        taken = run("build-panel", tmp_path / "logs", name, told, "--out", out)
        assert taken.exit_code == 0, taken.output
        assert ("swe-bench" in pd.read_csv(out)) == (told == "swe-bench")


def test_what_are_no_logs_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    result = run("build-panel", tmp_path, "--out", tmp_path / "panel.csv")
    assert result.exit_code == 2
    assert "no evaluation logs found" in result.output
    assert not (tmp_path / "panel.csv").exists()
