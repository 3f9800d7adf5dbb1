from __future__ import annotations

import numpy as np
import pytest
from panel_simulation import normal_columns, panel_of, plan_for

from irtaudit.panel.associations import associations
from irtaudit.panel.audit import PanelAudit, audit_panel
from irtaudit.panel.evidence import widened
from irtaudit.panel.metrics import metric_validity
from irtaudit.panel.plan import CAPABILITY
from irtaudit.panel.standings import models_to_settle, outer
from irtaudit.panel.verdict import Verdict, judge
from irtaudit.panel.words import rho_text

ROLES = {
    "mmlu": "anchor",
    "gpqa": "anchor",
    "a": {"role": "benchmark", "label": "Alpha", "measures": "how often they refuse"},
    "b": {"role": "benchmark", "label": "Beta"},
    "task": "criterion",
}
PLAN = plan_for(ROLES)


def verdict_of(correlation: dict[tuple[str, str], float], n: int, seed: int = 0, makers: int = 25) -> Verdict:
    """The verdict on normal scores with the given correlations (0 elsewhere)."""
    names = list(ROLES)
    matrix = np.eye(5)
    for (x, y), r in correlation.items():
        i, j = names.index(x), names.index(y)
        matrix[i, j] = matrix[j, i] = r
    columns = normal_columns(n, matrix, np.random.default_rng(seed))
    return judged(columns, [f"maker {i % makers}" for i in range(n)])


def judged(columns: np.ndarray, organizations: list[str]) -> Verdict:
    panel = panel_of(dict(zip(ROLES, columns.T, strict=True)), PLAN, organizations)
    table, lost = associations(panel, PLAN)
    return judge(panel, PLAN, table, metric_validity(panel, PLAN).against, lost)


ANCHORED = {("mmlu", "gpqa"): 0.9}


def test_scores_that_agree_and_are_not_capability_support_the_reading() -> None:
    found = verdict_of({**ANCHORED, ("a", "b"): 0.98}, n=200)
    assert found.word == "supported"
    assert found.because.startswith(
        "Even Alpha and Beta, the pair that agrees least, order the 200 models alike"
    )
    alpha = found.benchmarks.set_index("benchmark").loc["a"]
    assert alpha["interchangeable_with"] == "Beta"
    assert alpha["headline"].startswith("Alpha ranks models by how often they refuse; it may stand for Beta;")


def test_agreement_without_an_anchor_is_not_enough() -> None:
    plan = plan_for({"a": "benchmark", "b": "benchmark"})
    both = normal_columns(200, np.array([[1, 0.98], [0.98, 1]]), np.random.default_rng(0))
    panel = panel_of(dict(zip("ab", both.T, strict=True)), plan, [f"maker {i % 25}" for i in range(200)])
    found = audit_panel(panel, plan).verdict
    assert found.standings["standing_joint"].tolist() == ["above"]
    assert found.word == "inconclusive"
    assert found.because == (
        "Nothing speaks against it in the 1 comparison that can be made, but it needs others: capability "
        "and a (the panel has no capability anchor) and 1 more."
    )


def test_a_benchmark_that_says_nothing_keeps_the_reading_open() -> None:
    roles = {**ROLES, "flat": "benchmark"}
    plan = plan_for(roles)
    matrix = np.eye(5)
    matrix[0, 1] = matrix[1, 0] = 0.9
    matrix[2, 3] = matrix[3, 2] = 0.98
    columns = normal_columns(200, matrix, np.random.default_rng(0)).T
    scores = dict(zip(roles, [*columns, np.full(200, 0.5)], strict=True))
    found = audit_panel(panel_of(scores, plan, [f"maker {i % 25}" for i in range(200)]), plan).verdict
    assert found.word == "inconclusive"
    assert "Alpha and flat (a score in which models do not differ) and 2 more" in found.because


def test_scores_that_disagree_do_not() -> None:
    found = verdict_of({**ANCHORED, ("a", "b"): 0.2}, n=80)
    assert found.word == "not supported"
    assert found.because.startswith("Alpha and Beta order the same 80 models differently (rho +0.")
    assert found.benchmarks["not_interchangeable_with"].tolist() == ["Beta", "Alpha"]


@pytest.mark.parametrize("sign", [1, -1])
def test_capability_in_disguise_is_called_so_either_way_round(sign: int) -> None:
    r = 0.97 * sign
    found = verdict_of({**ANCHORED, ("mmlu", "a"): r, ("gpqa", "a"): 0.9 * sign}, n=150)
    assert found.word == "not supported"
    assert found.because.startswith("Alpha orders the 150 models as capability does")
    alpha, beta = (found.benchmarks.set_index("benchmark").loc[name] for name in "ab")
    assert alpha["is_capability"] == "yes"
    assert "its order is capability's on this panel of n = 150" in alpha["headline"]
    assert beta["is_capability"] == "no"


def test_a_panel_that_is_too_small_is_inconclusive_and_says_what_would_do() -> None:
    found = verdict_of({**ANCHORED, ("a", "b"): 0.7}, n=9)
    assert found.word == "inconclusive"
    assert "on 9 models, too few for any verdict" in found.because
    assert found.standings["standing"].eq("open").all()
    assert "whether it may stand for another score is open" in found.benchmarks["headline"].iloc[0]


def test_few_organizations_keep_open_what_models_alone_would_settle() -> None:
    settled = verdict_of({**ANCHORED, ("a", "b"): 0.3}, n=60)
    assert settled.standings.iloc[0]["standing"] == "below"
    # the same scores, but all of the agreement is one maker's against two others'
    rng = np.random.default_rng(1)
    makers = np.repeat([0, 1, 2], 20)
    shift = np.array([[-3.0], [0.0], [3.0]])[makers]
    own = rng.normal(size=(60, 5))
    own[:, 2:4] += np.hstack([shift, np.where(makers == 1, 3.0, 0.0)[:, None]])
    row = judged(own, [f"maker {m}" for m in makers]).standings.iloc[0]
    assert row["high"] < 0.8 < row["clusters_high"]
    assert row["standing"] == "open"


def test_the_answer_uses_joint_intervals(table1: PanelAudit) -> None:
    standings = table1.verdict.standings
    assert (standings["high_joint"] >= standings["high"]).all()
    assert table1.verdict.word == "not supported"
    decisive = standings[standings["standing_joint"] == "below"]
    assert decisive[["x", "y"]].values.tolist() == [["injecagent_robustness", "agentharm_safety"]]


def test_one_pair_of_many_must_hold_against_all_of_them() -> None:
    """Six pairs correlated at .6: one lies below the threshold by its own interval, none jointly."""
    plan = plan_for(dict.fromkeys("abcd", "benchmark"))
    matrix = np.full((4, 4), 0.6)
    np.fill_diagonal(matrix, 1)
    columns = normal_columns(16, matrix, np.random.default_rng(14)).T
    panel = panel_of(dict(zip("abcd", columns, strict=True)), plan)
    table, lost = associations(panel, plan)
    found = judge(panel, plan, table, metric_validity(panel, plan).against, lost)
    assert (found.standings["standing"] == "below").any()
    assert not (found.standings["standing_joint"] == "below").any()
    assert found.word == "inconclusive"


def test_sentences_carry_the_numbers_of_the_tables(table1: PanelAudit) -> None:
    row = table1.verdict.benchmarks.set_index("benchmark").loc["rjudge_specificity"]
    own = table1.associations[table1.associations["x"] == CAPABILITY].set_index("y")
    rho = own.loc["rjudge_specificity", "rho"]
    assert row["capability_share"] == pytest.approx(rho**2)
    assert "capability explains 23\N{NO-BREAK SPACE}% of its order on this panel of n = 18" in row["headline"]
    assert row["n_needed"] == 48
    assert (
        "Not testable here: convergence, without a second score of its construct; prediction"
        in row["sentence"]
    )
    assert "none of 18 models are shown to do better" in row["sentence"]
    assert row["sentence"].endswith("80 % needs 48 models.")
    assert table1.verdict.details["rjudge_specificity"][0].startswith("Rank correlations with 95 % intervals")


def test_prediction_beyond_capability_is_said_when_it_survives_correction() -> None:
    found = verdict_of({**ANCHORED, ("a", "task"): 0.7, ("a", "b"): 0.1}, n=80)
    alpha, beta = (found.benchmarks.set_index("benchmark").loc[name, "sentence"] for name in "ab")
    assert "Beyond capability it goes with task (partial rho +0." in alpha
    assert "Beyond capability it is not shown to predict task" in beta


def test_models_that_would_settle() -> None:
    # the interval must shrink to half: four times the models
    assert models_to_settle(20, 0.4, [(-0.4, 1.2)], 0.8) == 80
    assert models_to_settle(20, 0.9, [(0.75, 1.0), (0.65, 1.0)], 0.8) == pytest.approx(20 * 2.5**2, abs=1)
    assert np.isnan(models_to_settle(20, 0.8, [(0.6, 1.0)], 0.8))
    assert np.isnan(models_to_settle(20, 0.7999, [(0.0, 1.0)], 0.8))


def test_models_that_would_settle_where_the_opposite_order_counts_as_well() -> None:
    for rho, interval in ((0.4, (-0.4, 1.2)), (-0.4, (-1.2, 0.4))):
        assert models_to_settle(20, rho, [interval], 0.8, either_sign=True) == 80
    # the far end decides: from 0.1 down to -.8 there is room for .9, and the interval takes 1.8
    assert models_to_settle(20, 0.1, [(-1.7, 0.3)], 0.8, either_sign=True) == 80
    assert models_to_settle(20, -0.9, [(-1.0, -0.7)], 0.8, either_sign=True) == pytest.approx(80, abs=1)


def test_what_would_settle_counts_what_an_interval_reaches_beyond_one(table1: PanelAudit) -> None:
    """A t interval over eight organizations may end beyond 1; cut off there it would promise too much."""
    rows = table1.verdict.standings
    row = rows[(rows["clusters_high"] == 1) & (rows["x"] == CAPABILITY)].iloc[0]
    reach = max(row["clusters_high"] - row["rho"], row["high"] - row["rho"]) / (row["threshold"] - row["rho"])
    assert row["n_to_settle"] > np.ceil(row["n"] * reach**2)
    assert row["n_to_settle_joint"] > row["n_to_settle"]


def test_sentences_and_lines_span_what_decides(table1: PanelAudit) -> None:
    row = table1.verdict.standings.iloc[0]
    assert row["high"] < row["threshold"] < row["clusters_high"]
    assert row["standing"] == "open"
    assert outer(row) == (row["clusters_low"], row["clusters_high"])
    said = table1.verdict.details["rjudge_specificity"][0]
    assert f"{rho_text(row['clusters_high'])} over organizations; n = 18), not settled" in said
    drawn = widened(table1, table1.associations.query("given == ''")).set_index(["x", "y"])
    assert drawn.loc[(row["x"], row["y"]), "high"] == pytest.approx(row["clusters_high"])


def test_the_verdict_is_right_about_planted_panels() -> None:
    """Truth .2 and .98 at n = 60: the wrong word should be rare."""
    words = {truth: [] for truth in (0.2, 0.98)}
    for seed in range(8):
        for truth, found in words.items():
            found.append(verdict_of({**ANCHORED, ("a", "b"): truth}, n=60, seed=seed).word)
    assert "supported" not in words[0.2]
    assert words[0.2].count("not supported") >= 6
    assert "not supported" not in words[0.98]
