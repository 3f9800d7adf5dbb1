"""Panels that cannot answer: each gives a clear statement, and no table has a row without numbers."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from panel_simulation import panel_of, plan_for

from irtaudit.errors import DataError
from irtaudit.panel.audit import PanelAudit, audit_panel
from irtaudit.panel.present import present
from irtaudit.panel.write import tables
from irtaudit.report.page import render_report

ROLES = {"mmlu": "anchor", "a": "benchmark", "b": "benchmark", "task": "criterion"}
PLAN = plan_for(ROLES)
RNG = np.random.default_rng(0)
SCORES = {name: RNG.normal(size=14) for name in ROLES}
MAKERS = [f"maker {i % 4}" for i in range(14)]


def audit(scores: dict[str, object], organizations: object = MAKERS, **plan: object) -> PanelAudit:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = plan_for(ROLES, **plan)
        panel = panel_of(
            {name: np.asarray(scores[name], dtype=float) for name in ROLES}, chosen, organizations
        )
        return audit_panel(panel, chosen)


def check_tables(result: PanelAudit) -> None:
    """No row without a defined number where its table has numbers."""
    for name, table in tables(result).items():
        numbers = table.select_dtypes("number")
        if name in ("scores", "excluded", "controls") or numbers.empty:
            continue
        assert numbers.notna().any(axis=1).all(), name


@pytest.mark.parametrize("n", [1, 3, 14])
def test_the_page_of_a_panel_that_says_little_still_reads(n: int) -> None:
    scores = {name: np.full(n, np.nan) if name == "mmlu" else values[:n] for name, values in SCORES.items()}
    page = render_report(present(audit(scores, None)))
    body = re.sub(r"<(script|style)>.*?</\1>", " ", page, flags=re.DOTALL)
    words = re.sub(r"<[^>]*>", " ", body).lower().split()
    assert not {"nan", "inf"} & {word.strip(".,;:()") for word in words}


def test_three_models() -> None:
    result = audit({name: values[:3] for name, values in SCORES.items()}, MAKERS[:3])
    assert result.verdict.word == "nothing to measure"
    assert "needs 5, the fullest column has 3 models" in result.verdict.because
    assert result.associations.empty
    assert set(result.not_tested["reason"]) >= {"3 models have both scores, at least 5 are needed"}
    check_tables(result)


def test_one_model() -> None:
    result = audit({name: values[:1] for name, values in SCORES.items()}, MAKERS[:1])
    assert result.verdict.because == "No column has scores in which models differ."
    check_tables(result)


@pytest.mark.parametrize("constant", ["a", "mmlu", "task"])
def test_a_constant_column(constant: str) -> None:
    result = audit({**SCORES, constant: np.full(14, 0.5)})
    assert result.screened.excluded[["column", "reason"]].values.tolist() == [
        [constant, "the same score, 0.5, for all 14 models that have one"]
    ]
    assert constant not in result.panel.scores
    check_tables(result)


def test_a_constant_benchmark_still_gets_a_sentence() -> None:
    result = audit({**SCORES, "a": np.full(14, 0.5)})
    row = result.verdict.benchmarks.set_index("benchmark").loc["a"]
    assert "how much of it is capability cannot be said: its models do not differ" in row["headline"]
    assert "anything about its order, because its models do not differ" in row["not_testable"]


def test_all_ties() -> None:
    result = audit({name: np.ones(14) for name in ROLES})
    assert result.verdict.word == "nothing to measure"
    check_tables(result)


def test_missing_anchors() -> None:
    result = audit({**SCORES, "mmlu": np.full(14, np.nan)})
    assert (result.associations["given"] == "").all()
    assert "the panel has no capability anchor" in set(result.not_tested["reason"])
    assert any("capability, without an anchor" in text for text in result.verdict.benchmarks["not_testable"])
    check_tables(result)


def test_one_organization() -> None:
    result = audit(SCORES, ["W"] * 14)
    assert result.clusters.empty
    assert (result.left_out["left_out"] == "model").all()
    reasons = set(result.not_tested["reason"])
    assert "the models come from 1 organization(s), at least 3 are needed" in reasons
    assert "1 organization(s) have at least 3 models, two are needed" in reasons
    check_tables(result)


def test_no_organizations() -> None:
    result = audit(SCORES, None)
    assert "the plan names no column of organizations" in set(result.not_tested["reason"])
    assert result.verdict.standings["clusters_low"].isna().all()
    check_tables(result)


def test_every_model_its_own_organization() -> None:
    result = audit(SCORES, [f"maker {i}" for i in range(14)])
    assert result.within.empty
    assert result.groups.empty
    check_tables(result)


def test_the_same_model_under_two_names() -> None:
    scores = {name: np.append(values, values[0]) for name, values in SCORES.items()}
    result = audit(scores, [*MAKERS, "maker 0"])
    assert result.warnings[0].startswith("'model_00', 'model_14' have the same score in every column")
    check_tables(result)


def test_an_anchor_turned_round_is_doubted() -> None:
    roles = {**ROLES, "gpqa": "anchor"}
    plan = plan_for(roles)
    panel = panel_of({**SCORES, "gpqa": -SCORES["mmlu"] + 0.01 * RNG.normal(size=14)}, plan, MAKERS)
    result = audit_panel(panel, plan)
    assert any("order the models in opposite ways" in warning for warning in result.warnings)
    check_tables(result)


def test_a_benchmark_turned_round_is_doubted() -> None:
    result = audit({**SCORES, "a": 1 - SCORES["b"]})
    assert any(
        warning.startswith("a and b order the models in opposite ways (rho −1.00)") and "higher_is" in warning
        for warning in result.warnings
    )


@pytest.mark.parametrize("column", ["a", "mmlu"])
def test_one_model_differs_from_all_others(column: str) -> None:
    result = audit({**SCORES, column: np.eye(14)[3]})
    assert result.structure.loadings["left_out_models"].eq(13).all()
    assert result.structure.loadings["sign_kept"].le(13).all()
    check_tables(result)


@pytest.mark.parametrize("size", [1e300, 1e-300, 5e-324])
def test_numbers_too_large_or_small_to_square(size: float) -> None:
    with pytest.raises(DataError, match=r"model 'model_\d\d', column 'a': found .* rescale the column"):
        audit({**SCORES, "a": size * np.arange(14.0)})


def test_models_without_anything_in_common() -> None:
    half = np.arange(14) < 7
    scores = {**SCORES, "a": np.where(half, SCORES["a"], np.nan), "b": np.where(half, np.nan, SCORES["b"])}
    result = audit(scores)
    assert "0 models have both scores, at least 5 are needed" in set(result.not_tested["reason"])
    assert result.redundancy.n_pairs == 0
    assert result.verdict.word == "inconclusive"
    assert result.verdict.because.startswith("No two benchmarks share enough models")
    check_tables(result)


def test_a_score_that_is_capability_to_the_last_digit() -> None:
    result = audit({**SCORES, "a": 2 * SCORES["mmlu"]})
    assert result.verdict.word == "not supported"
    assert "one of the columns follows from the others" in set(result.not_tested["reason"])
    check_tables(result)


def test_scores_on_different_scales_give_the_same_audit() -> None:
    wide = {**SCORES, "a": 100 * SCORES["a"] + 7, "mmlu": SCORES["mmlu"] / 1000}
    one, other = (audit(s) for s in (SCORES, wide))
    pd.testing.assert_frame_equal(one.associations, other.associations, atol=1e-9)


def test_few_levels_and_heavy_ties() -> None:
    scores = {name: np.round(values) for name, values in SCORES.items()}
    result = audit(scores)
    assert result.associations["rho"].between(-1, 1).all()
    check_tables(result)
