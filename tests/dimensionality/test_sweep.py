"""The sweep over cut-offs: planted panels whose answer does, and does not, depend on the cut."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audit_panels import FAST
from click.testing import CliRunner

from irtaudit.audit import run_audit, run_plan
from irtaudit.cli.audit import command
from irtaudit.data.read import read_responses
from irtaudit.dimensionality.plan import default_plan
from irtaudit.dimensionality.planned import override, read_planned
from irtaudit.dimensionality.sweep import SWEEP, Cut, check_cut_offs, sweep_sentence, sweep_table
from irtaudit.errors import PlanError
from irtaudit.present import summary, tables

KINDS = np.repeat(["a", "b"], 24)
MODELS = ["unidimensional_2pl", "confirmatory_kind_2pl"]


def graded_panel(seed: int = 0) -> pd.DataFrame:
    """Simulated scores 0, .5, 1 of 90 subjects: full marks need two abilities, half marks one."""
    rng = np.random.default_rng(seed)
    one, two = rng.normal(size=(2, 90, 1))
    by_kind = np.where(KINDS == "a", one, two)
    noise = rng.logistic(size=(2, 90, 48)) * 0.5
    half = one + noise[0] > -0.3
    full = half & (by_kind * 1.5 + noise[1] > 0.2)
    names = [f"s{i:03}" for i in range(90)], [f"q{j:02}" for j in range(48)]
    return pd.DataFrame(0.5 * half + 0.5 * full, index=names[0], columns=names[1])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graded")
    panel = graded_panel()
    panel.rename_axis("model").to_csv(folder / "scores.csv")
    pd.DataFrame({"item": panel.columns, "kind": KINDS}).to_csv(folder / "items.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def swept(files: Path) -> object:
    plan = override(
        default_plan(),
        {
            "data.responses": "scores.csv",
            "data.items": "items.csv",
            "data.pass_at": 1.0,
            "data.sweep": [0.5, 1.0],
            "models.names": MODELS,
            "fit.preset": FAST["preset"],
            "fit.restarts": FAST["n_restarts"],
        },
    )
    return run_plan(plan, read_planned(plan, files), folder=files, workers=1, device="cpu")


def test_each_cut_is_the_audit_of_that_cut_alone(swept, files: Path) -> None:
    half, full = swept.sweep
    assert (half.pass_at, full.pass_at) == (0.5, 1.0)
    assert full.verdict is swept.verdict
    alone = run_audit(
        read_responses(files / "scores.csv", items=files / "items.csv", pass_at=0.5), models=MODELS, **FAST
    )
    pd.testing.assert_frame_equal(half.verdict.evidence, alone.verdict.evidence)
    assert half.verdict.word == alone.verdict.word
    assert half.n_items == alone.matrix.n_items
    assert half.pass_rate == np.nanmean(alone.matrix.responses)


def test_the_planted_dependence_is_found_and_said(swept) -> None:
    table = sweep_table(swept.sweep).set_index("pass_at")
    assert table.loc[1.0, "verdict"] == "not supported"
    assert table.loc[0.5, "verdict"] != "not supported"
    assert table.loc[1.0, "low"] > table.loc[1.0, "margin"]
    assert table.loc[0.5, "difference"] < table.loc[1.0, "difference"] / 5
    assert table.loc[0.5, "pass_rate"] > table.loc[1.0, "pass_rate"]
    assert sweep_sentence(swept.sweep).startswith("The verdict depends on the cut-off: it is '")
    content = summary(swept)
    assert [row["pass_at"] for row in content["sweep"]] == [0.5, 1.0]
    assert tables(swept)["sweep"].columns.tolist() == SWEEP


def test_the_command_writes_the_sweep_and_takes_it_up_again(files: Path, tmp_path: Path) -> None:
    arguments = [
        files / "scores.csv", "--items", files / "items.csv", "--pass-at", "1.0", "--sweep", ".5,1.0",
        "--models", "unidimensional_1pl", "--preset", "quick", "--restarts", "1", "--workers", "1",
        "--out", tmp_path / "out",
    ]  # fmt: skip
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    assert "The verdict " in result.output
    assert pd.read_csv(tmp_path / "out" / "sweep.csv")["pass_at"].tolist() == [0.5, 1.0]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Other cut-offs between pass and fail" in page
    assert json.loads((tmp_path / "out" / "audit.json").read_text())["sweep"][1]["pass_at"] == 1.0
    assert (tmp_path / "out" / "sweep" / "0.5" / "fits").is_dir()
    again = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert again.exit_code == 0, again.output


def word_at(pass_at: float, word: str | None, like) -> Cut:
    from dataclasses import replace

    return Cut(
        pass_at, 0.5, 10, None if word is None else replace(like, word=word), "" if word else "too few"
    )


def test_what_is_said_of_a_sweep(swept) -> None:
    def said(*words: tuple[float, str | None]) -> str:
        return sweep_sentence([word_at(at, word, swept.verdict) for at, word in words])

    assert said((0.5, "supported"), (0.75, "supported"), (1.0, "supported")) == (
        "The verdict does not depend on the cut-off: it is 'supported' at each of 0.5, 0.75 and 1."
    )
    assert said((0.5, "supported"), (0.75, "inconclusive"), (1.0, "supported")) == (
        "The verdict depends on the cut-off: it is 'supported' at 0.5 and 1; 'inconclusive' at 0.75."
    )
    assert said((0.5, "supported"), (0.9, None), (1.0, "supported")).endswith("At 0.9 there is no verdict.")
    assert said((0.5, None), (1.0, "supported")).startswith("There are verdicts at 1 of 2 cut-offs")
    assert sweep_table([word_at(0.5, None, None)])["reason"].tolist() == ["too few"]


def test_a_cut_that_leaves_nothing_to_audit_is_a_row_with_its_reason(tmp_path: Path) -> None:
    panel = graded_panel().clip(upper=0.75)
    panel.rename_axis("model").to_csv(tmp_path / "scores.csv")
    changes = {"data.responses": "scores.csv", "data.pass_at": 0.5, "data.sweep": [1.0]}
    changes |= {"models.names": ["unidimensional_1pl"], "fit.preset": "quick", "fit.restarts": 1}
    plan = override(default_plan(), changes)
    result = run_plan(plan, read_planned(plan, tmp_path), folder=tmp_path, workers=1, device="cpu")
    assert [cut.verdict is None for cut in result.sweep] == [False, True]
    assert "every item is empty or has the same response" in result.sweep[1].reason
    assert result.sweep[1].pass_rate == 0


@pytest.mark.parametrize(
    ("cut_offs", "pass_at", "message"),
    [
        ([0.5, 1.5], 1.0, "A sweep over 1.5"),
        ([0], 1.0, "A sweep over 0"),
        ([0.5], None, "say it with --pass-at"),
    ],
)
def test_sweeps_that_cannot_be(cut_offs: list[float], pass_at: float | None, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        check_cut_offs(cut_offs, pass_at)


def test_the_cut_off_of_the_audit_is_always_in_the_sweep() -> None:
    assert check_cut_offs([0.9, 0.5, 0.9], 1.0) == (0.5, 0.9, 1.0)


def test_a_list_that_is_none_is_a_usage_error(files: Path) -> None:
    result = CliRunner().invoke(command, [str(files / "scores.csv"), "--pass-at", "1", "--sweep", "all"])
    assert result.exit_code == 2
    assert "--sweep is 'all', expected scores" in result.output
