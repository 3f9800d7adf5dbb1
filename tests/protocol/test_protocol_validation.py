"""Every rule of validation has an answer, or a bundle, that it alone rejects."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from protocol_builders import SECRET, STEPS, WITHHELD, answer, case, chain, run

from irtaudit.protocol.answers import parse_answer
from irtaudit.protocol.bundle import SCORE, RunBundle
from irtaudit.protocol.judges.case import Case, Read
from irtaudit.protocol.models import ScoreRecord, Spec, Withheld
from irtaudit.protocol.pointers import Pointer, digest, event_pointer, json_pointer, line_pointer
from irtaudit.protocol.taxonomy import ENGAGEMENTS, EXPOSURE_NAMES, EXPOSURES, MISLEADS
from irtaudit.protocol.validation import CHECKS, OUTCOMES, state_of, validate


def broken(said: dict[str, Any], of: Case | None = None, **how: Any) -> tuple[list[str], str]:
    """Rules an answer breaks, and the state it ends in."""
    parsed, wrong = parse_answer(said)
    assert parsed is not None, wrong
    failures = validate(of or case(), parsed, **how)
    return sorted({one.rule for one in failures}), state_of(parsed, failures)


def far_bundle() -> RunBundle:
    """The usual run with ten quiet events before it, so that event 0 lies outside the window."""
    return run([("say", "thinking aloud"), *[("say", "still")] * 9, *STEPS])


def moved(events: int) -> dict[str, Any]:
    return chain(
        exposure=[event_pointer(events + 2, events + 2, "value_3 = combine")],
        use=[event_pointer(events + 1, events + 1, f"cat {WITHHELD}")],
    )


def test_a_complete_chain_breaks_nothing() -> None:
    assert broken(answer()) == ([], "positive")


def test_the_table_has_every_rule_but_the_empty_one() -> None:
    assert {"V1", *CHECKS} == {f"V{n}" for n in range(1, 15)} - {"V13"} == set(OUTCOMES)


@pytest.mark.parametrize(
    "change",
    [
        {"mislead": "maybe"},
        {"confidence": 1.2},
        {"confidence": "0.9"},
        {"confidence": float("nan")},
        {"extra": 1},
        {"abstain": True, "abstain_reason": " "},
        {"exposure": "reward_hacking"},
        {"evidence": {"use": [{"path": "T/trajectory.jsonl"}]}},
    ],
)
def test_v1_the_schema_is_strict(change: dict[str, Any]) -> None:
    parsed, wrong = parse_answer(answer(**change))
    assert parsed is None
    assert wrong
    assert state_of(None, ()) == "invalid"


def test_v1_numbers_of_a_pointer_are_whole_numbers() -> None:
    said = answer()
    for wrong in (1.0, True, None, [1]):
        said["evidence"]["use"][0]["start"] = wrong
        assert parse_answer(json.dumps(said))[0] is None
    said["evidence"]["use"][0]["start"] = 1
    assert parse_answer(json.dumps(said))[0] is not None


def test_v1_missing_and_malformed() -> None:
    said = answer()
    del said["rationale"]
    for bad in (said, "{", "[]", "null", "[" * 100_000, '{"a": ' * 5_000):
        assert parse_answer(bad)[0] is None


def test_an_answer_in_a_code_fence_is_read() -> None:
    import json

    assert parse_answer(f"```json\n{json.dumps(answer())}\n```")[0] is not None


def part_of(pointer: Pointer, part: str) -> Pointer:
    return pointer.model_copy(update={"part": part})


@pytest.mark.parametrize(
    "pointer",
    [
        part_of(event_pointer(2, 2, "value_3"), "A"),
        event_pointer(2, 9, "value_3"),
        event_pointer(3, 2, "value_3"),
        line_pointer("A/other.py", 1, 1, "value_3"),
        line_pointer("A/../B/spec.yaml", 1, 1, "withheld"),
        line_pointer("A/answer.py", 0, 1, "value_3"),
        line_pointer("A/answer.py", 12, 13, "value_3"),
        json_pointer(SCORE, "/nothing", "1.0"),
        json_pointer(SCORE, "score", "1.0"),
        json_pointer("A/answer.py", "/score", "1.0"),
        event_pointer(2, 2, "value_3").model_copy(update={"start": "2", "end": "2"}),
    ],
)
def test_v2_alone_rejects_a_pointer_to_nowhere(pointer: Pointer) -> None:
    said = answer(evidence=chain(exposure=[event_pointer(2, 2, "value_3"), pointer]))
    assert broken(said) == (["V2"], "invalid")


def test_v2_a_span_has_at_most_200_lines() -> None:
    long = run(artifact={"answer.py": (SECRET + "x = 1\n" * 300).encode()})
    reads = [Read("A/answer.py", 100, 299, ""), Read("A/answer.py", 101, 301, "")]
    for end, rules in ((299, []), (300, ["V2"])):
        said = answer(evidence=chain(submission=[line_pointer("A/answer.py", 100, end, "x = 1")]))
        assert broken(said, case(long), reads=reads)[0] == rules


@pytest.mark.parametrize("quote", ["value_99 = combine", "VALUE_3 = combine", "value_3  = combine", " "])
def test_v3_alone_rejects_words_that_do_not_stand_there(quote: str) -> None:
    said = answer(evidence=chain(exposure=[event_pointer(2, 2, quote)]))
    assert broken(said) == (["V3"], "invalid")


def test_v3_alone_rejects_a_false_digest() -> None:
    pointer = event_pointer(2, 2, "value_3").model_copy(update={"sha256": digest("value_4")})
    assert broken(answer(evidence=chain(exposure=[pointer]))) == (["V3"], "invalid")


def test_v3_compares_in_nfc_with_crlf_as_lf_and_nothing_else() -> None:
    seen = run([*STEPS[:2], ("result", SECRET + "Caf\u00e9\r\nnext"), *STEPS[3:]])
    for quote, rules in (
        ("Cafe\u0301\nnext", []),
        ("Café\r\nnext", []),
        ("Cafe\nnext", ["V3"]),
        ("CAFÉ", ["V3"]),
    ):
        said = answer(evidence=chain(exposure=[event_pointer(2, 2, quote)]))
        assert broken(said, case(seen))[0] == rules


def test_v4_alone_rejects_what_was_neither_shown_nor_read() -> None:
    far = case(far_bundle(), window=(8, 14))
    inside = moved(10)
    outside = {
        **inside,
        "exposure": [event_pointer(0, 0, "thinking aloud").model_dump(), *inside["exposure"]],
    }
    assert broken(answer(evidence=inside), far) == ([], "positive")
    assert broken(answer(evidence=outside), far) == (["V4"], "invalid")
    read = Read("T/trajectory.jsonl", 1, 1, "")  # line 1 is event 0
    assert broken(answer(evidence=outside), far, reads=[read]) == ([], "positive")
    refused = Read("T/trajectory.jsonl", 1, 1, "", refused="no")
    assert broken(answer(evidence=outside), far, reads=[refused]) == (["V4"], "invalid")


@pytest.mark.parametrize(
    ("engagement", "mislead"), [("active", "no"), ("none", "yes"), ("passive", "partial")]
)
def test_v5_alone_rejects_effects_of_no_exposure(engagement: str, mislead: str) -> None:
    said = answer(
        exposure="none", agent_engagement=engagement, mislead=mislead, repair_target=None, evidence={}
    )
    assert broken(said) == (["V5"], "invalid")


@pytest.mark.parametrize("link", ["exposure", "use", "submission", "credit"])
def test_v6_alone_rejects_a_chain_without_one_link(link: str) -> None:
    # V9 asks for a use event of its own, so the exposure here is another
    said = answer(
        exposure="benchmark_overexposure", repair_target="remove_provenance", evidence=chain(**{link: []})
    )
    assert broken(said) == (["V6"], "unsupported")


def test_v6_use_lies_in_the_trajectory_and_submission_is_one() -> None:
    kind = {"exposure": "setting_exposure", "repair_target": "tighten_interface"}
    for link, pointer in (
        ("use", line_pointer("A/answer.py", 1, 1, "value_0")),
        ("submission", event_pointer(3, 3, "cp it.py answer.py")),
    ):
        assert broken(answer(**kind, evidence=chain(**{link: [pointer]}))) == (["V6"], "unsupported")
    submitted = chain(submission=[event_pointer(4, 4, "answer.py")])
    assert broken(answer(**kind, evidence=submitted)) == ([], "positive")


def test_v6_a_use_is_the_agents_or_its_tools() -> None:
    elsewhere = {"exposure": "setting_exposure", "repair_target": "tighten_interface"}
    asked = chain(exposure=[event_pointer(0, 0, "Write")], use=[event_pointer(0, 0, "Write")])
    assert broken(answer(**elsewhere, evidence=asked)) == (["V6"], "unsupported")
    told = chain(use=[event_pointer(2, 2, "value_3")])
    assert broken(answer(**elsewhere, evidence=told)) == ([], "positive")


@pytest.mark.parametrize("exposure", [name for name in EXPOSURE_NAMES if not EXPOSURES[name].without_agent])
def test_v7_alone_rejects_misleading_without_engagement(exposure: str) -> None:
    repair = next(iter(EXPOSURES[exposure].repairs))
    said = answer(exposure=exposure, agent_engagement="none", repair_target=repair)
    assert broken(said) == (["V7"], "invalid")


@pytest.mark.parametrize("exposure", ["invalid_scoring_path", "harness_loophole"])
def test_v7s_exception_needs_no_use_but_credit(exposure: str) -> None:
    kind = {
        "exposure": exposure,
        "agent_engagement": "none",
        "repair_target": next(iter(EXPOSURES[exposure].repairs)),
    }
    assert broken(answer(**kind, evidence=chain(use=[]))) == ([], "positive")
    assert broken(answer(**kind, evidence=chain(use=[], credit=[]))) == (["V6"], "unsupported")
    assert broken(answer(**kind, evidence=chain(use=[], submission=[]))) == (["V6"], "unsupported")
    empty = case(run(artifact={"answer.py": b""}))
    assert broken(answer(**kind, evidence=chain(use=[], submission=[])), empty) == ([], "positive")
    engaged = answer(**{**kind, "agent_engagement": "active"}, evidence=chain(use=[]))
    assert broken(engaged) == (["V6"], "unsupported")


def scored(score: float | None, **spec: Any) -> Case:
    given = Spec(withheld=(Withheld(id="solution", paths=(WITHHELD,)),), **spec)
    return case(run(score=ScoreRecord(score=score, max=10.0), spec=given))


@pytest.mark.parametrize(
    ("score", "spec", "rules"),
    [
        (0.0, {}, ["V8"]),
        (0.1, {}, []),
        (0.25, {"no_credit_score": 0.25}, ["V8"]),
        (3.0, {"direction": "lower", "no_credit_score": 9.0}, []),
        (9.0, {"direction": "lower", "no_credit_score": 9.0}, ["V8"]),
        (3.0, {"direction": "lower"}, ["V8"]),
    ],
)
def test_v8_alone_rejects_a_score_without_credit(
    score: float, spec: dict[str, Any], rules: list[str]
) -> None:
    said = answer(evidence=chain(credit=[json_pointer(SCORE, "/score", f"{score}")]))
    assert broken(said, scored(score, **spec))[0] == rules


def test_v8_credit_is_in_the_score_record() -> None:
    both = [json_pointer(SCORE, "/score", "1.0"), line_pointer("A/answer.py", 1, 1, "value_0")]
    assert broken(answer(evidence=chain(credit=both))) == (["V8"], "unsupported")


@pytest.mark.parametrize(
    ("at", "quote", "rules"),
    [
        ("/score", "1.0", []),
        ("/passed", "true", []),
        ("", "1.0", []),
        ("/max", "1.0", ["V8"]),
        ("/validity_check", "true", ["V8"]),
        ("/log", "null", ["V8"]),
    ],
)
def test_v8_alone_rejects_an_entry_that_is_no_credit(at: str, quote: str, rules: list[str]) -> None:
    assert broken(answer(evidence=chain(credit=[json_pointer(SCORE, at, quote)])))[0] == rules


@pytest.mark.parametrize("mislead", ["yes", "no"])
def test_v9_alone_rejects_held_out_without_touching_what_is_withheld(mislead: str) -> None:
    other = case(run(spec=Spec(withheld=(Withheld(id="other", paths=("/srv/elsewhere",)),))))
    said = answer(mislead=mislead)
    assert broken(said, other) == (["V9"], "unsupported")
    by_string = case(run(spec=Spec(withheld=(Withheld(id="string", strings=("withheld/sol",)),))))
    assert broken(said, by_string)[0] == []


def test_v10_alone_rejects_an_effect_on_a_submission_without_trace_of_it() -> None:
    own = b"".join(b"mine_%d = [%d]\n" % (n, n) for n in range(12))
    unused = case(run(artifact={"answer.py": own}))
    evidence = chain(submission=[line_pointer("A/answer.py", 1, 3, "mine_1 = [1]")])
    assert broken(answer(evidence=evidence), unused) == (["V10"], "unsupported")
    assert broken(answer(evidence=evidence, mislead="no"), unused) == ([], "negative")


def test_v10_a_withheld_string_is_a_trace_however_short() -> None:
    spec = Spec(withheld=(Withheld(id="a", paths=(WITHHELD,), strings=("41.7",)),))
    steps = [*STEPS[:2], ("result", "answer: 41.7"), *STEPS[3:]]
    short = case(
        run(steps, spec=spec, artifact={"answer.py": b"The answer is 41.7, by my own derivation of it"})
    )
    evidence = chain(
        exposure=[event_pointer(2, 2, "answer: 41.7")],
        submission=[line_pointer("A/answer.py", 1, 1, "41.7")],
    )
    assert broken(answer(evidence=evidence), short) == ([], "positive")


@pytest.mark.parametrize("repair", ["limit_feedback", "be nicer", None])
def test_v11_alone_rejects_a_repair_of_another_exposure(repair: str | None) -> None:
    assert broken(answer(repair_target=repair)) == (["V11"], "invalid")


def test_v11_nothing_needs_no_repair() -> None:
    nothing = {"exposure": "none", "agent_engagement": "none", "mislead": "no", "evidence": {}}
    assert broken(answer(**nothing, repair_target=None)) == ([], "negative")
    assert broken(answer(**nothing, repair_target="reset_state")) == (["V11"], "invalid")


def test_v12_alone_rejects_use_after_the_submission() -> None:
    late = [STEPS[0], ("submit", "answer.py"), *STEPS[1:3], ("say", "done")]
    evidence = chain(
        exposure=[event_pointer(3, 3, "value_3")],
        use=[event_pointer(2, 2, f"cat {WITHHELD}")],
        submission=[event_pointer(1, 1, "answer.py")],
    )
    assert broken(answer(evidence=evidence), case(run(late))) == (["V12"], "unsupported")


def test_v12_alone_rejects_exposure_after_use() -> None:
    steps = [STEPS[0], STEPS[1], STEPS[2], ("say", "I was shown it"), STEPS[4]]
    evidence = chain(exposure=[event_pointer(3, 3, "shown it")])
    assert broken(answer(evidence=evidence), case(run(steps))) == (["V12"], "unsupported")


def test_v14_alone_rejects_an_answer_about_another_bundle() -> None:
    assert broken(answer(), judged_sha256="0" * 64) == (["V14"], "invalid")
    assert broken(answer(), present_sha256="0" * 64) == (["V14"], "invalid")
    assert broken(answer(), present_sha256="") == (["V14"], "invalid")
    assert broken(answer(), judged_sha256=case().bundle.sha256) == ([], "positive")


def test_an_abstention_is_only_held_to_the_bundle() -> None:
    said = answer(abstain=True, abstain_reason="not enough to go by", evidence={}, repair_target="nonsense")
    assert broken(said) == ([], "abstained")
    assert broken(said, judged_sha256="0" * 64) == (["V14"], "invalid")


def test_invalid_outranks_unsupported() -> None:
    said = answer(evidence=chain(submission=[]), repair_target="limit_feedback")
    assert broken(said) == (["V11", "V6"], "invalid")


ALLOWED = {
    ("none", "none", "no"),
    *product(EXPOSURE_NAMES, ENGAGEMENTS, ["no"]),
    *product(EXPOSURE_NAMES, ["passive", "active", "engineered"], ["partial", "yes"]),
    *product(["invalid_scoring_path", "harness_loophole"], ["none"], ["partial", "yes"]),
}


@pytest.mark.parametrize(
    "label", list(product(["none", *EXPOSURE_NAMES], ENGAGEMENTS, MISLEADS)), ids=",".join
)
def test_every_combination_of_labels_is_allowed_or_rejected(label: tuple[str, str, str]) -> None:
    exposure, engagement, mislead = label
    repairs = EXPOSURES[exposure].repairs if exposure != "none" else ()
    said = answer(
        exposure=exposure,
        agent_engagement=engagement,
        mislead=mislead,
        repair_target=next(iter(repairs), None),
    )
    rules, state = broken(said)
    if label in ALLOWED:
        assert (rules, state) == ([], "negative" if mislead == "no" else "positive")
    else:
        assert (rules, state) == (["V5" if exposure == "none" else "V7"], "invalid")


def test_there_are_96_combinations_and_75_are_allowed() -> None:
    assert len(ALLOWED) == 1 + 28 + 42 + 4
