"""Plans and labels that nobody should write: one sentence and exit code 2, before anything is fitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from irtaudit.cli import main

HEAD = 'kind = "irt"\nschema_version = 1\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    names, items = [f"m{i:02d}" for i in range(12)], [f"i{j}" for j in range(8)]
    pd.DataFrame(rng.integers(0, 2, (12, 8)), pd.Index(names, name="model"), items).to_csv(tmp_path / "r.csv")
    pd.DataFrame({"item": items, "kind": ["A", "A_sd"] * 4}).to_csv(tmp_path / "items.csv", index=False)
    return tmp_path


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = " + "[" * 5000 + "]" * 5000, "nests lists or tables too deeply"),
        ('data.responses = "a\\u0000b"', "data.responses holds a NUL character"),
        ('data.items = "a\\u0000b"', "data.items holds a NUL character"),
        ('data.models = "a\\u0000b"', "data.models holds a NUL character"),
        ('splits.heldout = "a\\u0000b"', "splits.heldout holds a NUL character"),
        ("splits.n_splits = 100000000", "splits.n_splits: found 100000000, expected less than or equal"),
        ("fit.restarts = 100000000", "fit.restarts: found 100000000, expected less than or equal"),
        (f"seed = {'9' * 5000}", "is not TOML"),
    ],
    ids=["deep", "responses", "items", "models", "heldout", "splits", "restarts", "digits"],
)
@pytest.mark.parametrize("command", ["audit", "panel"])
def test_a_hostile_plan_ends_in_a_sentence(folder: Path, command: str, text: str, said: str) -> None:
    (folder / "plan.toml").write_text(HEAD + text + "\n", encoding="utf-8")
    source = [folder / "r.csv"] if command == "panel" else []
    ended = _run(command, *source, "--plan", folder / "plan.toml", "--out", folder / "out")
    assert ended.exit_code == 2, ended.output
    assert "mistake in irtaudit" not in ended.output
    assert not (folder / "out").exists()
    if command == "audit":
        assert said in ended.output


def test_factors_whose_columns_would_be_one_end_the_audit_before_it_fits(folder: Path) -> None:
    asked = ("--items", folder / "items.csv", "--factors", "kind", "--out", folder / "out")
    ended = _run("audit", folder / "r.csv", *asked)
    assert ended.exit_code == 2, ended.output
    assert "Model 'confirmatory_kind_2pl' has the factors 'A' and 'A_sd'" in ended.output
    assert "Rename the factor 'A_sd'" in ended.output
    assert not (folder / "out").exists()
