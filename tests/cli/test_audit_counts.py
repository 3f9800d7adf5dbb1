"""``--trials counts``: a binomial audit of a long table with four simulated trials a cell."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from irtaudit import cli

QUICK = (
    "--models",
    "unidimensional_1pl,exploratory_2d_2pl",
    "--preset",
    "quick",
    "--restarts",
    "1",
    "--workers",
    "1",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    p = expit(rng.normal(0, 1.5, (30, 1)) + rng.normal(size=14))
    passed = rng.random((4, *p.shape)) < p
    trial, model, item = (axis.ravel() for axis in np.indices(passed.shape))
    frame = pd.DataFrame({"model": [f"m{i:02d}" for i in model], "item": [f"q{j:02d}" for j in item]})
    frame = frame.assign(trial=trial, score=passed.ravel().astype(int))
    path = tmp_path_factory.mktemp("trials") / "runs.csv"
    frame.to_csv(path, index=False)
    groups = {"model": sorted(set(frame["model"])), "developer": ["A", "B"] * 15}
    pd.DataFrame(groups).to_csv(path.with_name("models.csv"), index=False)
    return path


def ended(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        cli.main(["audit", *map(str, words)], prog_name="irtaudit")
    return int(end.value.code or 0)


def test_counts_are_audited_and_what_is_left_out_is_said(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report"
    assert ended(table, "--trials", "counts", "--out", out, *QUICK) == 0, capsys.readouterr().err
    told = json.loads((out / "audit.json").read_text(encoding="utf-8"))
    assert told["verdict"]["reading"] in ("supported", "not supported", "inconclusive", "nothing to measure")
    analysed = told["data"]["analysed"]
    assert analysed["n_responses"] == 4 * analysed["trials"]["cells"]
    assert (analysed["trials"]["fewest"], analysed["trials"]["most"]) == (4, 4)
    assert 0.7 < analysed["trials"]["dispersion"] < 1.2
    assert told["structure"] is None
    page = (out / "report.html").read_text(encoding="utf-8")
    words = " ".join(html.unescape(re.sub("<[^>]*>", "", page)).split())
    notes = [note for note in told["data"]["notes"] if "trials" in note]
    assert len(notes) == 3
    assert all(note[1:] in words for note in notes)
    assert "--trials majority" in words
    assert {"abilities.csv", "items.csv", "comparison.csv"} <= {path.name for path in out.iterdir()}
    assert not (out / "eigenvalues.csv").exists()
    items = pd.read_csv(out / "items.csv")
    assert set(items["responses"]) == {120}


@pytest.mark.parametrize("command", ["audit", "dif"])
def test_groups_are_refused_before_anything_is_fitted(
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("fitted")

    monkeypatch.setattr("irtaudit.irt.fit.fit_all", forbidden)
    monkeypatch.setattr("irtaudit.irt.fit.fit", forbidden)
    out = tmp_path / "report"
    words = (table, "--trials", "counts", "--subjects", table.with_name("models.csv"), "--out", out)
    with pytest.raises(SystemExit) as end:
        cli.main([command, *map(str, words), "--group", "developer:A,B"], prog_name="irtaudit")
    assert end.value.code
    said = capsys.readouterr().err
    assert "comparison of groups item by item takes one response a cell" in said
    assert "--trials majority" in said
    assert "Traceback" not in said
    assert not (out / "report.html").exists()
