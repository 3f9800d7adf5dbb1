"""Table 1 of the source paper, recomputed with scipy, and the values that the paper prints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtaudit.panel.audit import PanelAudit
from irtaudit.panel.plan import CAPABILITY
from irtaudit.stats.correlation import correlations

REFERENCE = Path(__file__).parents[1] / "reference" / "agent_safety_panel_golden.json"
GOLDEN = json.loads(REFERENCE.read_text(encoding="utf-8"))
SHORT = {
    "RJ": "rjudge_specificity",
    "IA": "injecagent_robustness",
    "AH": "agentharm_safety",
    "GPQA": CAPABILITY,
}


def row(table: pd.DataFrame, pair: str, given: str | None = None) -> pd.Series:
    """The row of a pair named as in the golden file."""
    names = {SHORT[part] for part in pair.split("_")}
    chosen = np.array([{x, y} == names for x, y in zip(table["x"], table["y"], strict=True)])
    found = table[chosen] if given is None else table[chosen & (table["given"] == given)]
    assert len(found) == 1
    return found.iloc[0]


@pytest.mark.parametrize("pair", GOLDEN["spearman"])
def test_spearman_and_its_p(table1: PanelAudit, pair: str) -> None:
    found = row(table1.associations, pair, "")
    assert (found["rho"], found["p"]) == pytest.approx(GOLDEN["spearman"][pair], abs=5e-7)
    assert found["p_method"] == "asymptotic t, 16 df"
    assert found["n"] == 18


@pytest.mark.parametrize("pair", GOLDEN["pearson"])
def test_pearson(table1: PanelAudit, pair: str) -> None:
    """The matrix whose components are taken."""
    names = ["gpqa_diamond" if part == "GPQA" else SHORT[part] for part in pair.split("_")]
    values = table1.panel.scores[names].to_numpy().T
    found = correlations(values[None], np.ones((1, 18)))[0, 0, 1]
    assert found == pytest.approx(GOLDEN["pearson"][pair], abs=5e-7)


@pytest.mark.parametrize("pair", GOLDEN["partial_spearman_gpqa_rank_residual"])
def test_partial_spearman_and_its_p(table1: PanelAudit, pair: str) -> None:
    expected = GOLDEN["partial_spearman_gpqa_rank_residual"][pair]
    found = row(table1.associations, pair, CAPABILITY)
    assert (found["rho"], found["p"]) == pytest.approx(expected, abs=5e-7)
    conventions = row(table1.conventions, pair)
    assert conventions["rank_pearson"] == pytest.approx(found["rho"], abs=1e-12)
    assert conventions["value_spearman"] == pytest.approx(
        GOLDEN["partial_value_residual_then_spearman"][pair], abs=5e-7
    )


def test_the_conventions_differ_in_sign_for_one_pair(table1: PanelAudit) -> None:
    found = row(table1.conventions, "RJ_AH")
    assert found["rank_pearson"] < 0 < found["rank_spearman"]


def test_headline(table1: PanelAudit) -> None:
    assert table1.redundancy.raw == pytest.approx(GOLDEN["median_abs_rho_3bench"], abs=5e-7)
    partial = [abs(v[0]) for v in GOLDEN["partial_spearman_gpqa_rank_residual"].values()]
    assert table1.redundancy.given_capability == pytest.approx(np.median(partial), abs=5e-7)
    assert table1.redundancy.n_pairs == 3


@pytest.mark.parametrize("pair", ["RJ_AH", "RJ_IA", "IA_AH"])
def test_size_seven_subsets(table1: PanelAudit, pair: str) -> None:
    golden = GOLDEN["size7_subsets"]
    found = row(table1.small.table[table1.small.table["size"] == 7], pair)
    share = golden["RJ_AH_share_abs_ge_0.5"] if pair == "RJ_AH" else golden[pair]
    assert found["share"] == pytest.approx(share, abs=5e-9)
    assert found["subsets"] == golden["n_subsets"]
    assert found["complete"]
    assert found["null_share"] == pytest.approx(golden["iid_null_no_ties"], abs=5e-9)


@pytest.mark.parametrize("matrix", ["Pearson", "Spearman"])
def test_shares_of_variance(table1: PanelAudit, matrix: str) -> None:
    table = table1.structure.eigenvalues
    shares = table.loc[table["matrix"] == matrix, "share"].to_numpy()
    assert np.round(shares, 4).tolist() == GOLDEN["pca"][f"{matrix.lower()}4_share"]


def test_concordance(table1: PanelAudit) -> None:
    found = table1.concordance.iloc[0]
    assert (found["w"], found["p"]) == pytest.approx(GOLDEN["kendall_W_3bench"], abs=5e-7)


def test_capability_and_agentharm_inside_openai(table1: PanelAudit) -> None:
    golden = GOLDEN["openai_GPQA_AH"]
    table = table1.within
    found = table[(table["y"] == "agentharm_safety") & (table["organization"] == "OpenAI")].iloc[0]
    assert (found["n"], found["rho"]) == (golden["n"], pytest.approx(golden["rho"]))
    assert found["p"] == pytest.approx(golden["exact_p"], abs=5e-10)
    assert found["p_method"] == "exact, all 720 permutations"


def test_constant_policy_and_recovered_counts(table1: PanelAudit) -> None:
    baselines = table1.metrics.baselines
    f1 = baselines[(baselines["metric"] == "f1") & (baselines["policy"] == "always positive")]
    assert f1["score"].tolist() == pytest.approx([GOLDEN["f1_constant"]["pi_301_571"]], abs=5e-10)
    counts = table1.metrics.counts.iloc[0]
    assert counts["model"] == "o3-mini"
    assert {name.upper(): counts[name] for name in ("tp", "fp", "fn", "tn")} == GOLDEN["o3mini_confusion"]
    balanced = table1.metrics.metrics.set_index("metric").loc["balanced_accuracy", "value"]
    assert round(float(balanced), 4) == 0.7626


def test_power(table1: PanelAudit) -> None:
    assert row(table1.associations, "RJ_AH", CAPABILITY)["power"] == pytest.approx(
        GOLDEN["power_fisher_r0.40_n18_k1"], abs=5e-5
    )


# What the paper prints ---------------------------------------------------------------------------------


def reachable(pair: tuple[str, str], table1: PanelAudit, n: int = 400) -> tuple[float, float]:
    """Range of rho over scores that print as Table 1 does: random points of the rounding cells."""
    rng = np.random.default_rng(0)
    scores = table1.panel.scores
    found = []
    for _ in range(n):
        x, y = (scores[c] + rng.uniform(-0.005, 0.005, len(scores)) for c in pair)
        found.append(x.rank().corr(y.rank()))
    return min(found), max(found)


def test_the_printed_correlation_lies_within_the_rounding_of_table_1(table1: PanelAudit) -> None:
    """Printed +.02 (p .95), computed from unrounded scores; the table gives +.0129."""
    low, high = reachable(("rjudge_specificity", "agentharm_safety"), table1)
    assert low - 0.005 <= 0.02 <= high + 0.005
    assert 0.945 <= row(table1.associations, "RJ_AH", "")["p"] < 0.965


def test_a_quarter_of_size_seven_panels(table1: PanelAudit) -> None:
    found = row(table1.small.table[table1.small.table["size"] == 7], "RJ_AH")
    assert round(found["share"], 2) == 0.25


def test_printed_power(table1: PanelAudit) -> None:
    """Printed: power about .35 for the partial correlations on the 18 models."""
    assert round(row(table1.associations, "IA_AH", CAPABILITY)["power"], 2) == 0.35
