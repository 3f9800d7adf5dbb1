from __future__ import annotations

import csv
import json
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from panel_simulation import FEW, panel_of, plan_for

from irtaudit.errors import StorageError
from irtaudit.panel.audit import PanelAudit, audit_panel
from irtaudit.panel.present import present, title
from irtaudit.panel.words import COLUMNS, TERMS, joined, p_text, percent, rho_text, span
from irtaudit.panel.write import summary, tables, write_panel
from irtaudit.plan import plan_sha256


@pytest.fixture(scope="module")
def folder(table1: PanelAudit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("audit") / "deep" / "er"
    write_panel(table1, target, command="irtaudit panel --demo")
    return target


def test_the_folder_holds_page_numbers_tables_and_figures(folder: Path, table1: PanelAudit) -> None:
    names = {path.name for path in folder.iterdir()}
    assert names == {"report.html", "panel.json", "figures", *(f"{name}.csv" for name in tables(table1))}
    figures = [path.name for path in (folder / "figures").iterdir()]
    assert all((folder / "figures" / name).read_text(encoding="utf-8").startswith("<svg") for name in figures)


def test_the_papers_figures_are_there(folder: Path) -> None:
    names = {path.stem for path in (folder / "figures").iterdir()}
    assert names >= {
        "against_a_policy_that_never_looks",  # score bars with the constant baseline
        "coverage_and_exclusions",
        "scores_against_capability",
        "agreement_of_scores",  # correlations with intervals
        "between_organizations",  # capability-adjusted scores by organization
        "what_a_small_panel_would_have_shown",  # subset histogram with null
        "one_factor_behind_the_scores",  # scree with both nulls
        "one_factor_behind_the_scores_2",  # loadings
    }


def test_json_is_complete_and_strict(folder: Path, table1: PanelAudit) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = (folder / "panel.json").read_text(encoding="utf-8")
    content = json.loads(text, parse_constant=refuse)
    assert (content["schema_version"], content["kind"]) == (1, "panel")
    assert content["verdict"]["reading"] == "not supported"
    assert content["plan"]["sha256"] == plan_sha256(table1.plan)
    assert content["data"]["sha256"] == table1.data.sha256
    assert set(content["tables"]) == set(tables(table1))
    assert content["redundancy"]["raw"] == pytest.approx(0.241201, abs=5e-7)
    assert len(content["tables"]["associations"]) == len(table1.associations)


def test_a_registration_is_named_and_not_called_checked(table1: PanelAudit) -> None:
    plan = table1.plan.model_copy(update={"registration": "10.17605/OSF.IO/ABCDE"})
    named = replace(table1, plan=plan)
    says = "preregistered (the plan names the registration 10.17605/OSF.IO/ABCDE; not checked)"
    assert summary(named)["plan"]["standing"] == says
    facts = [text for section in present(named) for text in section.facts.values()]
    assert f"{says}, sha256 {plan_sha256(plan)}" in facts
    (answer,) = [section.verdict for section in present(named) if section.verdict]
    assert answer.holds_for["Plan"].startswith(says)


def test_tables_come_back_from_their_files(folder: Path, table1: PanelAudit) -> None:
    for name, table in tables(table1).items():
        found = pd.read_csv(folder / f"{name}.csv", keep_default_na=False, na_values=[""])
        assert found.columns.tolist() == table.columns.tolist()
        for column in table.select_dtypes("number"):
            assert found[column].to_numpy(dtype=float) == pytest.approx(
                table[column].to_numpy(dtype=float), nan_ok=True, rel=1e-12
            )


def test_the_page_tells_the_verdict_and_the_sentences_to_quote(folder: Path, table1: PanelAudit) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    words = " ".join(re.sub(r"<[^>]*>", "", page).split())
    assert "Not supported" in words or "not supported" in words
    for headline in table1.verdict.benchmarks["headline"]:
        assert " ".join(headline.replace("'", "&#39;").split()) in words
    assert 'class="n most"' in page
    assert 'class="n least"' in page


def audited(table1: PanelAudit, seed: int) -> PanelAudit:
    fewer = table1.plan.resampling.model_copy(update=FEW | {"bootstrap": 2000})
    return audit_panel(table1.data, table1.plan.model_copy(update={"seed": seed, "resampling": fewer}))


def test_the_seed_decides_every_draw_and_no_estimate(table1: PanelAudit) -> None:
    one, again, other = (audited(table1, seed) for seed in (1, 1, 2))
    first, second = (summary(result) | {"seconds": 0} for result in (one, again))
    assert first == second
    assert other.associations["rho"].tolist() == one.associations["rho"].tolist()
    assert other.associations["low"].tolist() != one.associations["low"].tolist()
    # the Monte Carlo SD of a 2.5 % quantile of 2,000 draws is about .02 here
    low = other.associations["low"].to_numpy()
    assert low == pytest.approx(one.associations["low"].to_numpy(), abs=0.1)


def test_hostile_names_are_only_names(tmp_path: Path) -> None:
    plan = plan_for(
        {"a": {"role": "benchmark", "label": "<b>A</b>"}, "b": {"role": "benchmark", "label": "=B"}},
        reading="<script>alert(1)</script>",
    )
    rng = np.random.default_rng(0)
    names = ["=HYPERLINK(1)", "<script>alert(2)</script>", *(f"m{i}" for i in range(10))]
    panel = panel_of({"a": rng.normal(size=12), "b": rng.normal(size=12)}, plan, names=names)
    write_panel(audit_panel(panel, plan), tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<b>A</b>" not in page
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as stream:
        assert next(row for row in csv.DictReader(stream))["model"] == "'=HYPERLINK(1)"


def test_long_names_leave_figures_their_room(tmp_path: Path) -> None:
    long = " " + "x" * 3_000
    roles = {"mmlu": "anchor", "a": "benchmark", "b": "benchmark"}
    plan = plan_for({name: {"role": role, "label": name + long} for name, role in roles.items()})
    rng = np.random.default_rng(0)
    scores = {name: rng.random(12) for name in roles}
    makers, names = (
        [f"{what} {i % n}{long}" for i in range(12)] for what, n in (("maker", 2), ("model", 12))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_panel(audit_panel(panel_of(scores, plan, makers, names=names), plan), tmp_path)
    drawings = [path.read_text(encoding="utf-8") for path in (tmp_path / "figures").iterdir()]
    texts = [text for drawing in drawings for text in re.findall(r">([^<]+)</text>", drawing)]
    assert any(text.startswith("model 0 xxx") for text in texts)
    assert max(map(len, texts)) < 120


def test_a_folder_that_cannot_be_made(table1: PanelAudit, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(StorageError, match="cannot be made"):
        write_panel(table1, tmp_path / "file" / "out")


def test_titles(table1: PanelAudit) -> None:
    assert title(table1) == "Agent-safety benchmarks, audited"
    bare = replace(table1, plan=table1.plan.model_copy(update={"title": ""}))
    assert title(bare).endswith("(bundled), audited")


def test_numbers_in_words() -> None:
    assert rho_text(-0.241) == "\N{MINUS SIGN}0.24"
    assert span(-1, 0.5) == "\N{MINUS SIGN}1.00 to +0.50"
    assert percent(0.234) == "23\N{NO-BREAK SPACE}%"
    assert [p_text(p) for p in (0.0004, 0.042, 0.5)] == ["p < 0.001", "p = 0.042", "p = 0.5"]
    assert [joined(list(names), "or") for names in ("a", "ab", "abc")] == ["a", "a or b", "a, b or c"]


def test_every_explanation_is_one_line() -> None:
    assert max(len(line) for line in [*TERMS.values(), *COLUMNS.values()]) < 100
