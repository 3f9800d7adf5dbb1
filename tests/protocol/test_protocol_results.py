"""Numbers: incidence, differences, gaps, calibration, recall; against printed values and identities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from protocol_builders import answer, run, saying
from scipy.stats import binomtest, fisher_exact

from irtaudit.errors import DataError
from irtaudit.protocol.audit import ProtocolAudit, TraceResult, audit_run
from irtaudit.protocol.calibration import calibrate, read_calls, read_labels
from irtaudit.protocol.candidates import find_candidates
from irtaudit.protocol.gap import Gap, gap_of
from irtaudit.protocol.interchange import findings_jsonl, scout_validation
from irtaudit.protocol.judges.case import Case, Judge, Reply
from irtaudit.protocol.judges.rules import rules_judge
from irtaudit.protocol.models import Comparison, Header, ScoreRecord, Spec
from irtaudit.protocol.output import write_results
from irtaudit.protocol.present import _asked_most, _most_frequent, present, verdict_of
from irtaudit.protocol.probe import is_found, plant, recall_probe
from irtaudit.protocol.results import (
    incidence_table,
    is_same_model,
    models_table,
    repairs_table,
    states_table,
    tables,
    traces_table,
)
from irtaudit.protocol.simulate import clean_run
from irtaudit.protocol.taxonomy import DETECTORS, EXPOSURE_NAMES
from irtaudit.protocol.validation import State

RULES = rules_judge()
SEES_ALL = Judge("everything", RULES.ask)


def trace(name: str, state: State = "no_candidate", **header: Any) -> TraceResult:
    """A result without findings."""
    told: dict[str, Any] = {
        "benchmark": "made-up",
        "task_id": name,
        "model": "model-a",
        "protocol_kind": "container",
        "cohort_sampling": "census",
        **header,
    }
    return TraceResult(Header(run_id=name, **told), "0" * 64, "", 1, 1.0, True, True, state, (), {}, Gap())


def audit_of(traces: Sequence[TraceResult], judge: Judge = SEES_ALL) -> ProtocolAudit:
    return ProtocolAudit(tuple(traces), (), judge, ())


def cohort(positive: int, runs: int, **header: Any) -> list[TraceResult]:
    """`runs` runs of different tasks, the first of them positive."""
    name = header.get("model", "model-a")
    return [
        trace(f"{name}-{n}", "positive" if n < positive else "negative", task_id=f"task-{n}", **header)
        for n in range(runs)
    ]


def overall(audit: ProtocolAudit, **how: Any) -> pd.Series:
    frame = incidence_table(audit, **how)
    return frame[(frame["kind"] == "any") & (frame["model"] == "all")].iloc[0]


@pytest.mark.parametrize(
    ("positive", "runs", "interval", "low", "high"),
    [
        (331, 494, "wilson", 0.6274, 0.7101),
        (24, 36, "wilson", 0.5033, 0.7979),
        (331, 494, "clopper-pearson", 0.6266, 0.7114),
    ],
)
def test_the_intervals_of_the_paper(positive: int, runs: int, interval: str, low: float, high: float) -> None:
    row = overall(audit_of(cohort(positive, runs)), interval=interval)
    assert (round(row["low"], 4), round(row["high"], 4)) == (low, high)
    assert row["rate"] == positive / runs


def test_states_stay_apart_and_bound_the_rate() -> None:
    states: list[State] = ["positive", "negative", "unsupported", "invalid", "abstained", "no_candidate"]
    audit = audit_of([trace(str(n), state) for n, state in enumerate(states)])
    assert states_table(audit)[list(states)].iloc[0].tolist() == [1] * 6
    row = overall(audit)
    assert (row["positive"], row["undecided"]) == (1, 4)
    assert (row["rate"], row["rate_if_all_positive"]) == (1 / 6, 5 / 6)


def test_repeated_runs_of_a_task_widen_the_interval() -> None:
    same = [
        trace(f"{task}-{n}", "positive" if task < 10 else "negative", task_id=f"t{task}")
        for task in range(20)
        for n in range(10)
    ]
    apart, together = overall(audit_of(cohort(100, 200))), overall(audit_of(same))
    assert apart["rate"] == together["rate"] == 0.5
    assert together["high"] - together["low"] > 3 * (apart["high"] - apart["low"])
    assert together["deff"] == pytest.approx(10 * 20 / 19)
    assert (apart["deff"], together["tasks"], together["runs"]) == (1.0, 20, 200)
    wide = overall(audit_of(same), interval="clopper-pearson")
    assert wide["method"] == together["method"] != "Clopper-Pearson"


def test_a_picked_cohort_is_no_prevalence() -> None:
    row = overall(audit_of(cohort(3, 4, cohort_sampling="suspicious_subset")))
    assert row["rate"] == 0.75
    assert np.isnan(row["low"])
    assert np.isnan(row["high"])
    assert row["note"]


def test_zero_positives_have_an_upper_bound() -> None:
    row = overall(audit_of(cohort(0, 73)))
    assert row["low"] == 0
    assert row["high"] == pytest.approx(1.959964**2 / (73 + 1.959964**2), abs=1e-6)


def test_models_are_compared_by_newcombe_fisher_and_mcnemar() -> None:
    a, b = cohort(8, 20, model="model-a"), cohort(14, 20, model="model-b")
    (row,) = models_table(audit_of([*a, *b])).itertuples()
    assert row.difference == pytest.approx(8 / 20 - 14 / 20)
    assert row.fisher_p == fisher_exact(np.array([[8, 12], [14, 6]]))[1] == row.fisher_p_holm
    assert (row.shared_tasks, row.only_a, row.only_b) == (20, 0, 6)
    assert row.mcnemar_p == binomtest(0, 6).pvalue
    assert row.low < row.difference < row.high
    swapped = models_table(audit_of([*b, *a]))
    assert swapped["fisher_p"].iloc[0] == row.fisher_p
    picked = [
        *cohort(1, 3, cohort_sampling="suspicious_subset"),
        *cohort(1, 3, model="b", cohort_sampling="suspicious_subset"),
    ]
    assert models_table(audit_of(picked)).empty


def test_newcombe_of_the_papers_two_models() -> None:
    """Passing runs of two models, 65.0 % and 69.7 %: the paper finds no difference, and neither do we."""
    a, b = cohort(169, 260, model="gpt"), cohort(163, 234, model="kimi")
    (row,) = models_table(audit_of([*a, *b])).itertuples()
    assert row.low < 0 < row.high
    assert row.fisher_p > 0.05


def test_repeated_tasks_have_no_mcnemar_and_a_note() -> None:
    a = [trace(f"a{n}", "positive", task_id="t", model="a") for n in range(3)]
    b = [trace(f"b{n}", "negative", task_id="t", model="b") for n in range(3)]
    (row,) = models_table(audit_of([*a, *b])).itertuples()
    assert row.shared_tasks == 0
    assert np.isnan(row.mcnemar_p)
    assert "repeated" in row.note


@pytest.mark.parametrize(
    ("judge", "model", "same"),
    [
        ("gpt-5", "openai/gpt-5-2025-08-07", True),
        ("openai/gpt-5", "gpt-5", True),
        ("Claude Opus 4.8", "claude-opus-4.8", True),
        ("gpt-5", "kimi-k2", False),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-5-2025-08-07", "openai/gpt-5-latest", True),
        ("", "gpt-5", False),
    ],
)
def test_judging_oneself_is_flagged(judge: str, model: str, same: bool) -> None:
    assert is_same_model(judge, model) is same
    audit = audit_of([trace("x", model=model)], Judge("j", RULES.ask, model=judge))
    assert traces_table(audit)["self_judged"].tolist() == [same]


def compared(s_intended: float, score: float = 1.0, *, direction: Any = "higher", **more: Any) -> Gap:
    told: dict[str, Any] = {"kind": "ablation", "same_task": True, "same_scorer": True, "same_scale": True}
    comparison = Comparison(s_intended=s_intended, provenance="x", **{**told, **more})
    nothing = 0.0 if direction == "higher" else 10.0
    bundle = run(
        score=ScoreRecord(score=score, max=2.0 if direction == "higher" else 0.0),
        spec=Spec(direction=direction, no_credit_score=nothing),
        comparison=comparison,
    )
    return gap_of(bundle, True)


def test_a_gap_is_the_score_less_the_intended_score() -> None:
    gap = compared(0.018, 0.639)
    assert gap.raw == pytest.approx(0.621)
    assert gap.share == pytest.approx(0.3105)
    assert (gap.low, gap.high, gap.reason) == (None, None, "")
    lower = compared(7.0, 4.0, direction="lower")
    assert (lower.raw, lower.share) == (3.0, 0.3)


def test_gaps_are_only_of_positive_runs_with_a_fair_comparison() -> None:
    assert gap_of(run(), True).reason == "no comparison was kept"
    assert (
        compared(0.4, same_task=False, same_scorer=False).reason
        == "the comparison has another task and scorer"
    )
    assert gap_of(run(), False).reason == "the run is not positive"


def test_binary_gaps_have_newcombes_interval() -> None:
    gap = compared(0.4, 0.9, outcome="binary", n=10, n_exploit=20)
    # by hand from Wilson [.699, .972] and [.168, .687]: .5 - hypot(.201, .287), .5 + hypot(.072, .232)
    assert (gap.low, gap.high) == pytest.approx((0.1496, 0.7429), abs=1e-3)
    assert "Newcombe" in gap.method
    assert compared(0.4, 0.9, outcome="binary").low is None


def test_paired_gaps_have_a_bootstrap_interval_that_holds_their_mean() -> None:
    rng = np.random.default_rng(1)
    without = rng.normal(0.4, 0.1, 40)
    pairs = tuple((float(w + d), float(w)) for w, d in zip(without, rng.normal(0.5, 0.2, 40), strict=True))
    means = np.mean(pairs, axis=0)
    gap = compared(float(means[1]), float(means[0]), pairs=pairs)
    differences = np.diff(np.asarray(pairs)[:, ::-1])[:, 0]
    half = 1.96 * differences.std() / np.sqrt(40)
    assert gap.low == pytest.approx(gap.raw - half, abs=0.02)
    assert gap.high == pytest.approx(gap.raw + half, abs=0.02)
    assert compared(0.1, 0.9, pairs=pairs).method.startswith("the pairs do not average")


def calls(tp: int, fp: int, fn: int, tn: int, ambiguous: int = 0) -> tuple[pd.DataFrame, dict[str, Any]]:
    states = ["positive"] * (tp + fp) + ["negative"] * (fn + tn) + ["positive"] * ambiguous
    truth = (
        ["positive"] * tp
        + ["negative"] * fp
        + ["positive"] * fn
        + ["negative"] * tn
        + ["ambiguous"] * ambiguous
    )
    names = [f"r{n}" for n in range(len(states))]
    frame = pd.DataFrame({"run_id": names, "state": states, "confidence": np.linspace(0, 1, len(names))})
    return frame, dict(zip(names, truth, strict=True))


def test_the_papers_calibration_does_not_beat_flagging_everything() -> None:
    found = calibrate(*calls(29, 2, 9, 10, ambiguous=3))
    assert found.counts == {
        "tp": 29,
        "fp": 2,
        "fn": 9,
        "tn": 10,
        "undecided": 0,
        "ambiguous": 3,
        "unlabelled": 0,
    }
    metrics = found.metrics.set_index("metric")
    printed = {"precision": 0.9355, "recall": 0.7632, "f1": 0.8406, "specificity": 0.8333}
    assert metrics.loc[list(printed), "estimate"].round(4).to_dict() == printed
    assert round(metrics.loc["f1", "constant"], 3) == 0.864
    assert metrics.loc["f1", "policy"] == "always positive"
    assert metrics.loc["f1", "above_low"] < 0
    assert metrics.loc["balanced_accuracy", "above_low"] > 0
    assert found.reliability["runs"].sum() == 50


def test_undecided_runs_are_read_three_ways() -> None:
    frame, labels = calls(6, 1, 2, 5)
    frame.loc[[7, 9], "state"] = ["abstained", "invalid"]  # a missed positive and a true negative
    found = calibrate(frame, labels)
    recall = found.metrics[found.metrics["metric"] == "recall"].set_index("undecided_as")["estimate"]
    assert recall.to_dict() == {"negative": 6 / 8, "positive": 7 / 8, "left out": 6 / 7}
    assert found.counts["undecided"] == 2


def test_labels_come_from_either_layout(tmp_path: Path) -> None:
    ours, scouts = tmp_path / "ours.csv", tmp_path / "scouts.csv"
    ours.write_text("run_id,label,note\na,Positive,x\nb,negative,y\nc,,z\n")
    scouts.write_text("id,target\na,true\nb,FALSE\n'=c,1\n")
    assert read_labels(ours) == {"a": "positive", "b": "negative", "c": "ambiguous"}
    assert read_labels(scouts) == {"a": "positive", "b": "negative", "=c": "positive"}
    for text, said in (
        ("x,y\n1,2\n", "expected run_id and label"),
        ("run_id,label\na,maybe\n", "'maybe'"),
        ("run_id,label\na,true\na,false\n", "two different labels"),
    ):
        ours.write_text(text)
        with pytest.raises(DataError, match=said):
            read_labels(ours)
    with pytest.raises(DataError, match="none of the 1 audited runs"):
        calibrate(calls(1, 0, 0, 0)[0], {"other": "positive"})


def test_findings_go_out_and_come_back_as_labels(tmp_path: Path) -> None:
    results = [audit_run(run(name="a"), RULES), audit_run(run(name="=b", artifact={"x": b"own"}), RULES)]
    audit = audit_of([*results, trace("c", "abstained")])
    write_results(audit, tmp_path)
    frame = scout_validation(audit)
    assert frame.to_dict("list") == {"id": ["a", "=b"], "target": ["true", "false"]}
    labels = read_labels(tmp_path / "scout_validation.csv")
    found = calibrate(read_calls(tmp_path), labels)
    assert found.counts == {
        "tp": 1,
        "fp": 0,
        "fn": 0,
        "tn": 1,
        "undecided": 0,
        "ambiguous": 0,
        "unlabelled": 1,
    }
    records = [json.loads(line) for line in findings_jsonl(audit).splitlines()]
    assert [record["state"] for record in records] == [one.state for one in audit.findings]
    with pytest.raises(DataError, match=r"expected traces\.csv"):
        read_calls(tmp_path / "scout_validation.csv")


def test_every_file_is_there_safe_for_spreadsheets_and_json(tmp_path: Path) -> None:
    rude = audit_run(run(name="=1+1", task_id="+x"), saying(answer(rationale="=cmd()\u202e")))
    write_results(audit_of([rude]), tmp_path, probe=pd.DataFrame({"a": [np.nan]}))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        *(f"{name}.csv" for name in tables(audit_of([rude]))),
        *("recall_probe.csv", "scout_validation.csv", "findings.jsonl", "answers.jsonl", "protocol.json"),
    }
    assert "'=1+1" in (tmp_path / "traces.csv").read_text()
    assert "'=cmd()" in (tmp_path / "findings.csv").read_text()
    summary = json.loads(
        (tmp_path / "protocol.json").read_text(), parse_constant=lambda name: pytest.fail(name)
    )
    assert summary["traces"][0]["run_id"] == "=1+1"
    assert summary["tables"]["recall_probe"] == [{"a": None}]


def test_repairs_and_detectors_follow_from_findings_and_kinds() -> None:
    audit = audit_of([audit_run(run(name="a"), RULES), trace("b", protocol_kind="live")])
    assert repairs_table(audit).iloc[0].tolist()[:3] == [
        "held_out_readable",
        "hidden state",
        "isolate_physically",
    ]
    kinds = tables(audit)["detectors"].set_index("protocol_kind")["detectors"]
    assert kinds["live"] == "; ".join(DETECTORS["live"])
    assert set(kinds.index) == {"container", "live"}


@pytest.mark.parametrize(
    ("traces", "judge", "word"),
    [
        (cohort(0, 200), SEES_ALL, "supported"),
        (cohort(0, 20), SEES_ALL, "inconclusive"),
        (cohort(0, 200), RULES, "inconclusive"),
        (cohort(30, 200), SEES_ALL, "not supported"),
        (cohort(1, 20), SEES_ALL, "inconclusive"),
        (cohort(1, 2, cohort_sampling="suspicious_subset"), SEES_ALL, "not supported"),
        (cohort(0, 200, cohort_sampling="suspicious_subset"), SEES_ALL, "inconclusive"),
        ([*cohort(0, 200), trace("open", "unsupported")], SEES_ALL, "inconclusive"),
    ],
)
def test_the_verdict_follows_the_interval(traces: list[TraceResult], judge: Judge, word: str) -> None:
    assert verdict_of(audit_of(traces, judge)).word == word


def picture(traces: list[TraceResult]) -> Any:
    """The first figure of the report on these runs."""
    return next(one for one in present(audit_of(traces)) if one.place == "picture").figures[0]


def test_an_interval_over_tasks_says_that_it_does_not_count_runs() -> None:
    twice = [trace(name, "negative", task_id="the task") for name in "ab"]
    said = verdict_of(audit_of(twice)).why
    assert "0.0%, 95 % interval, which counts 1 task instead of 2 runs, 0.0% to 79.3%" in said
    assert "counts tasks, not runs" in picture(twice).caption
    many = [
        trace(f"{task}-{n}", "positive" if (task + n) % 3 else "negative", task_id=f"t{task}")
        for task in range(20)
        for n in range(5)
    ]
    assert "interval, which allows for repeated runs of 20 tasks, " in verdict_of(audit_of(many)).why
    assert "95 % interval 0.0% to " in verdict_of(audit_of(cohort(0, 20))).why
    assert "tasks" not in picture(cohort(0, 20)).caption


def test_only_a_figure_with_intervals_says_so() -> None:
    picked = cohort(1, 2, cohort_sampling="suspicious_subset")
    drawn, other = picture(picked), picture(cohort(1, 2))
    assert "interval" not in drawn.svg.replace("picked runs, no interval", "")
    assert "carry no interval" in drawn.caption
    assert "with 95 % interval" in other.svg
    assert "Picked" not in other.caption
    both = picture([*picked, *cohort(1, 2, benchmark="another")])
    assert "with 95 % interval" in both.svg


def test_what_is_most_frequent_is_said_in_words() -> None:
    totals = pd.Series({"generator_regularity": 2, "harness_loophole": 2, "held_out_readable": 1})
    assert _most_frequent(totals) == (
        "The most frequent exposures are generator regularity, harness loophole (2 runs each)."
    )
    assert _most_frequent(totals[1:]).startswith("The most frequent exposure is harness loophole (2 runs): ")
    assert "held_out" not in verdict_of(audit_of(cohort(0, 200), RULES)).why
    repairs = pd.DataFrame({"asks_for": ["a", "b", "c"], "runs": [1, 1, 1]})
    assert _asked_most(repairs) == "3 repairs are asked for, each in 1 run."
    more = repairs.assign(runs=[2, 2, 1])
    assert _asked_most(more) == "3 repairs are asked for, 2 of them most often, each in 2 runs."
    assert _asked_most(repairs.assign(runs=[2, 1, 1])) == "The repair asked for most often is to a (2 runs)."


def test_nothing_to_measure_without_credit() -> None:
    uncredited = audit_run(run(score=ScoreRecord(score=0.0)), RULES)
    assert verdict_of(audit_of([uncredited])).word == "nothing to measure"


def clean_runs(n: int = 20) -> list[Any]:
    rng = np.random.default_rng(11)
    return [clean_run(rng, f"clean-{i}") for i in range(n)]


def test_planting_leaves_the_run_as_it_was_and_is_repeatable() -> None:
    bundle = clean_runs(1)[0]
    before = bundle.sha256
    one, other = (plant(bundle, "harness_loophole", np.random.default_rng(3)) for _ in range(2))
    assert bundle.sha256 == before
    assert one.bundle.sha256 == other.bundle.sha256 != before
    assert [event.i for event in one.bundle.events] == list(range(len(one.bundle.events)))


def test_the_candidate_stage_brings_back_planted_cases() -> None:
    """At least 95 % of 210 planted cases, where clean runs without benign look-alikes have no candidate."""
    runs = clean_runs()
    assert sum(len(find_candidates(bundle).found) for bundle in runs) == 0
    probe = recall_probe(runs, RULES, per_exposure=30, seed=2026).set_index("exposure")
    assert probe.loc["all", "planted"] == 210
    assert probe.loc["all", "candidate_recall"] >= 0.95
    assert (probe["candidate_recall"] >= 0.9).all()
    assert probe.loc["held_out_readable", "pipeline_recall"] >= 0.9
    unseen = [name for name in EXPOSURE_NAMES if name not in RULES.sees]
    assert (probe.loc[unseen, "positive"] == 0).all()


def test_the_probe_notices_a_rule_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    from irtaudit.protocol import candidates

    weak = tuple(rule for rule in candidates.RULES if rule.id != "seed_search")
    monkeypatch.setattr(candidates.find_candidates, "__defaults__", (weak, candidates.CAP))
    probe = recall_probe(clean_runs(5), RULES, per_exposure=40).set_index("exposure")
    assert probe.loc["generator_regularity", "candidate_recall"] < 0.8
    assert probe.loc["setting_exposure", "candidate_recall"] == 1.0


def test_a_planted_case_elsewhere_does_not_count() -> None:
    case = plant(clean_runs(1)[0], "generator_regularity", np.random.default_rng(1))
    assert is_found(case)
    from dataclasses import replace

    assert not is_found(replace(case, events=range(10_000, 10_001)))
    assert not is_found(replace(case, exposure="feedback_inference"))


def test_a_probe_keeps_its_answers(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(case: Case) -> Reply:
        asked.append(case.candidate.id)
        return RULES.ask(case)

    judge = Judge("dear", ask, remembered=True)
    clean = [clean_run(np.random.default_rng(1), "clean")]
    first = recall_probe(clean, judge, per_exposure=2, answers=tmp_path)
    count = len(asked)
    assert count > 7
    pd.testing.assert_frame_equal(recall_probe(clean, judge, per_exposure=2, answers=tmp_path), first)
    assert len(asked) == count
