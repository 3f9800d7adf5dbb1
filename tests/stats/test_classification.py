from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sk

from irtaudit.stats.classification import (
    METRICS,
    best_constant,
    confusion,
    f1,
    f_beta,
    mcc,
    random_policy,
    recover_confusion,
)

REFERENCE = Path(__file__).parents[1] / "reference" / "agent_safety_panel_golden.json"
GOLDEN = json.loads(REFERENCE.read_text(encoding="utf-8"))
TRUTH = np.array([1] * 38 + [0] * 12)
CALLED = np.array([1] * 29 + [0] * 9 + [1] * 2 + [0] * 10)
COUNTS = confusion(tp=29, fp=2, fn=9, tn=10)

REFERENCES = {
    "recall": lambda t, c: sk.recall_score(t, c),
    "specificity": lambda t, c: sk.recall_score(t, c, pos_label=0),
    "precision": lambda t, c: sk.precision_score(t, c),
    "accuracy": lambda t, c: sk.accuracy_score(t, c),
    "balanced_accuracy": lambda t, c: sk.balanced_accuracy_score(t, c),
    "f1": lambda t, c: sk.f1_score(t, c),
    "mcc": lambda t, c: sk.matthews_corrcoef(t, c),
    "kappa": lambda t, c: sk.cohen_kappa_score(t, c),
}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_equals_scikit_learn(name: str) -> None:
    assert METRICS[name](COUNTS) == pytest.approx(REFERENCES[name](TRUTH, CALLED), abs=1e-12)


def test_f_beta_equals_scikit_learn() -> None:
    for beta in (0.5, 2.0):
        assert float(f_beta(COUNTS, beta)) == pytest.approx(sk.fbeta_score(TRUTH, CALLED, beta=beta))
    everything = confusion(tp=38, fp=12, fn=0, tn=0)  # precision pi, recall 1
    assert float(f_beta(everything, 2.0)) == pytest.approx(sk.fbeta_score(TRUTH, np.ones(50), beta=2))


def test_printed_values_of_the_protocol_paper() -> None:
    for name in ("precision", "recall", "f1"):
        assert float(METRICS[name](COUNTS)) == pytest.approx(GOLDEN["hackdetect"][name], abs=5e-11)
    assert float(best_constant("f1", 38 / 50)[0]) == pytest.approx(0.8636, abs=5e-5)


@pytest.mark.parametrize("pi", [0.05, 301 / 571, 0.9])
@pytest.mark.parametrize("q", [0.0, 0.3, 1.0])
def test_closed_forms_of_policies_that_never_look(pi: float, q: float) -> None:
    shares = random_policy(pi, q)
    assert float(f1(shares)) == pytest.approx(2 * pi * q / (pi + q) if q else 0.0, abs=1e-12)
    assert float(f_beta(random_policy(pi, 1.0), 2.0)) == pytest.approx(5 * pi / (4 * pi + 1), abs=1e-12)
    assert float(METRICS["balanced_accuracy"](shares)) == pytest.approx(0.5)
    assert np.isnan(mcc(shares)) == (q in (0.0, 1.0))


@pytest.mark.parametrize(("name", "pi"), [("pi_301_571", 301 / 571), ("pi_0.527", 0.527)])
def test_the_constant_policy_of_the_panel_paper(name: str, pi: float) -> None:
    assert float(f1(random_policy(pi, 1.0))) == pytest.approx(GOLDEN["f1_constant"][name], abs=5e-11)


def test_the_share_of_a_policy_is_what_it_scores_on_average() -> None:
    rng = np.random.default_rng(1)
    n, pi, q = 200_000, 0.3, 0.6
    truth, call = rng.random(n) < pi, rng.random(n) < q
    counts = confusion(*((a & b).sum() for b in (call, ~call) for a in (truth, ~truth)))
    # SD of a share at this n is at most .0011; F1 varies less than twice that
    assert float(f1(counts)) == pytest.approx(float(f1(random_policy(pi, q))), abs=5 * 0.0022)


@pytest.mark.parametrize(
    ("metric", "score", "policy"),
    [
        ("f1", 2 * 0.25 / 1.25, "always positive"),
        ("specificity", 1.0, "always negative"),
        ("recall", 1.0, "always positive"),
        ("accuracy", 0.75, "always negative"),
        ("balanced_accuracy", 0.5, "always positive"),
        ("mcc", 0.0, "always positive"),
    ],
)
def test_the_best_constant_policy(metric: str, score: float, policy: str) -> None:
    found, name = best_constant(metric, 0.25)
    assert (float(found), name) == (pytest.approx(score), policy)


def test_a_metric_without_a_denominator_is_undefined_not_zero() -> None:
    empty = confusion(tp=0, fp=0, fn=0, tn=4)
    assert np.isnan([METRICS[name](empty) for name in ("recall", "precision", "f1", "mcc", "kappa")]).all()
    assert float(METRICS["specificity"](empty)) == 1.0


def test_counts_behind_the_published_o3_mini_row() -> None:
    found = recover_confusion(0.702, 0.97, 301, 270, f1_decimals=3, specificity_decimals=2)
    assert found == [(167, 8)]
    tp, fp = found[0]
    counts = confusion(tp, fp, 301 - tp, 270 - fp)
    assert float(METRICS["balanced_accuracy"](counts)) == pytest.approx(0.7626, abs=5e-5)


def test_counts_are_not_recovered_when_several_or_none_fit() -> None:
    assert len(recover_confusion(0.70, 0.97, 301, 270, f1_decimals=2, specificity_decimals=2)) > 1
    assert recover_confusion(0.99, 0.10, 301, 270, f1_decimals=3, specificity_decimals=2) == []


@pytest.mark.parametrize("seed", range(20))
def test_the_true_counts_are_always_among_the_candidates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, n = rng.integers(5, 80, size=2)
    tp, fp = int(rng.integers(1, p + 1)), int(rng.integers(0, n + 1))
    counts = confusion(tp, fp, p - tp, n - fp)
    printed = round(float(f1(counts)), 3), round(float(METRICS["specificity"](counts)), 2)
    assert (tp, fp) in recover_confusion(*printed, int(p), int(n), f1_decimals=3, specificity_decimals=2)


def test_large_benchmarks_are_searched_without_a_table_of_all_counts() -> None:
    few = recover_confusion(0.7, 0.9, 300_000, 270_000, f1_decimals=1, specificity_decimals=1, most=50)
    assert len(few) == 50
    counts = confusion(167_123, 8_456, 300_000 - 167_123, 270_000 - 8_456)
    printed = float(f1(counts)), float(METRICS["specificity"](counts))
    exact = recover_confusion(*printed, 300_000, 270_000, f1_decimals=12, specificity_decimals=12)
    assert exact == [(167_123, 8_456)]


@pytest.mark.parametrize("seed", range(10))
def test_the_search_finds_what_a_table_of_all_counts_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, n = (int(v) for v in rng.integers(1, 40, size=2))
    printed_f1, printed_specificity = (round(float(v), 2) for v in rng.random(2))
    found = recover_confusion(printed_f1, printed_specificity, p, n, f1_decimals=2, specificity_decimals=1)
    every = [
        (tp, fp)
        for fp in range(n + 1)
        for tp in range(p + 1)
        if abs((n - fp) / n - printed_specificity) <= 0.05 + 1e-12
        and abs(2 * tp / (p + tp + fp) - printed_f1) <= 0.005 + 1e-12
    ]
    assert found == every
