from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from irtaudit.cli import main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = ["model,developer,mmlu,safe,robust"]
    for i in range(14):
        mmlu, safe, robust = rng.uniform(0.2, 0.9, size=3)
        lines.append(f"m{i},lab {i % 4},{100 * mmlu:.1f},{safe:.2f},{robust:.2f}")
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def plan(table: Path) -> Path:
    path = table.with_name("plan.toml")
    assert run("plan", "init", table, "--kind", "panel", "--out", path).exit_code == 0
    text = path.read_text(encoding="utf-8")
    for key, number in {"bootstrap": 300, "permutations": 300, "horn": 200, "subsets": 300}.items():
        text = "\n".join(f"{key} = {number}" if line.startswith(key) else line for line in text.splitlines())
    path.write_text(text, encoding="utf-8")
    return path


def test_from_a_table_to_a_report(table: Path, plan: Path, tmp_path: Path) -> None:
    result = run("panel", table, "--plan", plan, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Each of these scores can stand for safety: ")
    assert "  - safe ranks models by its own measure; " in result.stdout
    assert result.stdout.rstrip().endswith(f"Report: {tmp_path / 'out' / 'report.html'}")
    content = json.loads((tmp_path / "out" / "panel.json").read_text(encoding="utf-8"))
    assert content["command"] == f"irtaudit panel {table} --plan {plan} --out {tmp_path / 'out'}"


def test_quiet_prints_the_word_and_json_the_summary(table: Path, plan: Path, tmp_path: Path) -> None:
    word = run("panel", table, "--plan", plan, "--out", tmp_path / "out", "--quiet").stdout.strip()
    content = json.loads(run("panel", table, "--plan", plan, "--out", tmp_path / "out", "--json").stdout)
    assert word == content["verdict"]["reading"]
    assert content["report"] == str(tmp_path / "out" / "report.html")


def test_a_second_panel(table: Path, plan: Path, tmp_path: Path) -> None:
    other = tmp_path / "more.csv"
    rows = table.read_text(encoding="utf-8").splitlines()
    extra = [f"n{i},lab {i % 4},{30 + 4 * i},{0.1 + 0.06 * i:.2f},{0.9 - 0.05 * i:.2f}" for i in range(12)]
    other.write_text("\n".join([*rows, *extra]) + "\n", encoding="utf-8")
    result = run("panel", table, "--plan", plan, "--against", other, "--out", tmp_path / "out", "--json")
    changes = json.loads(result.stdout)["tables"]["panel_changes"]
    assert {row["design"] for row in changes} == {"nested"}
    assert {(row["n_first"], row["n_second"]) for row in changes} == {(14, 26)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Give a table of scores, or --demo"),
        (["--demo", "x.csv"], "not both"),
        (["--demo", "--plan", "p.toml"], "--demo brings its own plan"),
        (["scores.csv"], "irtaudit plan init scores.csv --kind panel"),
        (["scores.csv", "--plan", "none.toml"], "none.toml: there is no such plan"),
    ],
)
def test_what_is_missing_is_said(arguments: list[str], said: str) -> None:
    result = run("panel", *arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


def test_data_and_plan_that_do_not_fit(plan: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("model,mmlu\nm1,3\n", encoding="utf-8")
    result = run("panel", other, "--plan", plan, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "has no column named" in result.output
    assert not (tmp_path / "out").exists()


def test_doubts_are_told(table: Path, plan: Path, tmp_path: Path) -> None:
    text = table.read_text(encoding="utf-8")
    first = text.splitlines()[1]
    table.write_text(text + first.replace("m0,", "twin,") + "\n", encoding="utf-8")
    result = run("panel", table, "--plan", plan, "--out", tmp_path / "out")
    assert "irtaudit: warning: 'm0', 'twin' have the same score in every column" in result.output
