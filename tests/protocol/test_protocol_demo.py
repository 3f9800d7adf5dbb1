"""The nine bundles of the demo come out as their authors expect, by both judges, every quote in place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irtaudit.protocol
from irtaudit.protocol.audit import ProtocolAudit, audit_protocol
from irtaudit.protocol.bundle import SCORE
from irtaudit.protocol.judges.replay import read_answers, replay_judge
from irtaudit.protocol.judges.rules import rules_judge
from irtaudit.protocol.load import find_bundles, load_bundle
from irtaudit.protocol.pointers import digest, normalised, span_text
from irtaudit.protocol.results import states_table, traces_table

DEMO = Path(irtaudit.protocol.__file__).parent / "demo"
TRIAGE = {
    "clean": "no_candidate",
    "empty-artifact": "positive",
    "read-but-unused": "negative",
    "readable-gold": "positive",
    "seed-brute-force": "abstained",
    "state-across-rounds": "abstained",
    "topological-order": "abstained",
    "upstream-history": "positive",
    "warm-up-cache": "abstained",
}
EXPOSURES = {
    "empty-artifact": "invalid_scoring_path",
    "readable-gold": "held_out_readable",
    "seed-brute-force": "generator_regularity",
    "state-across-rounds": "harness_loophole",
    "topological-order": "generator_regularity",
    "upstream-history": "benchmark_overexposure",
    "warm-up-cache": "harness_loophole",
}
GAPS = {"topological-order": 0.621, "seed-brute-force": 0.6, "empty-artifact": 1.0}


@pytest.fixture(scope="module")
def by_rules() -> ProtocolAudit:
    return audit_protocol(find_bundles([DEMO]), rules_judge())


@pytest.fixture(scope="module")
def by_replay() -> ProtocolAudit:
    return audit_protocol(find_bundles([DEMO]), replay_judge(read_answers(DEMO / "answers.jsonl")))


def test_rules_alone_label_five_and_abstain_on_four(by_rules: ProtocolAudit) -> None:
    assert {trace.header.run_id: trace.state for trace in by_rules.traces} == TRIAGE
    exposures = {trace.header.run_id: trace.exposures for trace in by_rules.traces if trace.exposures}
    assert exposures == {name: (EXPOSURES[name],) for name, state in TRIAGE.items() if state == "positive"}
    open_ones = [one for one in by_rules.findings if TRIAGE[one.run_id] == "abstained"]
    assert all(one.answer and "triage only" in (one.answer.abstain_reason or "") for one in open_ones)


def test_with_the_recorded_answers_all_nine_are_right(by_replay: ProtocolAudit) -> None:
    states = {trace.header.run_id: trace.state for trace in by_replay.traces}
    expected = dict.fromkeys(EXPOSURES, "positive") | {"clean": "no_candidate", "read-but-unused": "negative"}
    assert states == expected
    assert {t.header.run_id: t.exposures for t in by_replay.traces if t.exposures} == {
        name: (exposure,) for name, exposure in EXPOSURES.items()
    }


def test_engagement_is_none_only_where_the_pipeline_did_it(
    by_replay: ProtocolAudit, by_rules: ProtocolAudit
) -> None:
    for audit in (by_replay, by_rules):
        idle = [one for one in audit.findings if one.answer and one.state == "positive"]
        names = [one.run_id for one in idle if one.answer and one.answer.agent_engagement == "none"]
        assert names == ["empty-artifact"]


@pytest.mark.parametrize("judge", ["by_rules", "by_replay"])
def test_every_positive_has_a_whole_chain_whose_quotes_stand_there(
    judge: str, request: pytest.FixtureRequest
) -> None:
    audit: ProtocolAudit = request.getfixturevalue(judge)
    positive = [one for one in audit.findings if one.state == "positive"]
    assert len(positive) >= 3
    for one in positive:
        assert one.answer is not None
        links = one.answer.evidence.links
        assert links["exposure"]
        assert any(pointer.path == SCORE for pointer in links["credit"])
        assert bool(links["use"]) is (one.answer.agent_engagement != "none")
        bundle = load_bundle(DEMO / f"{one.run_id}.zip")
        for pointer in (pointer for link in links.values() for pointer in link):
            assert normalised(pointer.quote) in normalised(span_text(bundle, pointer))
            assert pointer.sha256 == digest(pointer.quote)


def test_gaps_are_where_a_fair_comparison_is_and_reasons_elsewhere(by_replay: ProtocolAudit) -> None:
    frame = traces_table(by_replay).set_index("run_id")
    assert frame["gap"].dropna().to_dict() == pytest.approx(GAPS)
    reasons = frame.loc[frame["gap"].isna(), "gap_note"]
    assert set(reasons) == {
        "no comparison was kept",
        "the comparison has another scale",
        "the run is not positive",
    }
    assert frame.loc["warm-up-cache", "gap_note"] == "the comparison has another scale"


def test_picked_runs_carry_no_interval(by_replay: ProtocolAudit) -> None:
    from irtaudit.protocol.results import incidence_table

    frame = incidence_table(by_replay)
    assert frame[["low", "high"]].isna().all(axis=None)
    assert set(frame["note"]) == {"picked runs: not prevalence"}
    assert np.isfinite(frame["rate"]).all()
    assert states_table(by_replay)["runs"].sum() == 9


def test_the_shipped_bundles_are_those_of_the_script(tmp_path: Path) -> None:
    """``experiments/protocol_demo/make_bundles.py`` writes them; run it after a rule changes."""
    import runpy

    script = Path(__file__).parents[2] / "experiments" / "protocol_demo" / "make_bundles.py"
    runpy.run_path(str(script))["write"](tmp_path / "demo")
    made = {place.name: load_bundle(place).sha256 for place in find_bundles([tmp_path / "demo"])}
    assert made == {place.name: load_bundle(place).sha256 for place in find_bundles([DEMO])}
    answers = "answers.jsonl"
    assert (tmp_path / "demo" / answers).read_text("utf-8") == (DEMO / answers).read_text("utf-8")
