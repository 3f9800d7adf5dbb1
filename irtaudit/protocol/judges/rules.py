"""The judge that needs no model: mechanical chains, and an abstention wherever they do not reach.

It is triage. It labels copies of retrieved or withheld material that were credited, and credit without
merit; what works through seeds, order, caches, state or feedback leaves no mechanical chain and is left to
another judge or a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from irtaudit.protocol.bundle import SCORE, RunBundle, event_text
from irtaudit.protocol.judges.case import Case, Judge, Read, Reply, last_submits, read_file
from irtaudit.protocol.models import Event
from irtaudit.protocol.overlap import Overlap, artifact_lines, content_line, overlap_with
from irtaudit.protocol.pointers import MAX_SPAN, Pointer, event_pointer, json_pointer, line_pointer
from irtaudit.protocol.taxonomy import EXPOSURES, ExposureName
from irtaudit.protocol.validation import results_after

NO_TRACE = 12  # a common run of fewer tokens is no trace of copying
_LOOKS_UP = ("git_history", "public_provenance", "task_lookup")
_SEES: tuple[ExposureName, ...] = ("benchmark_overexposure", "held_out_readable", "invalid_scoring_path")


def rules_judge() -> Judge:
    """The judge "rules": offline, deterministic, no cost."""
    return Judge(name="rules", ask=_ask, sees=_SEES)


def _ask(case: Case) -> Reply:
    score, exposure = case.bundle.score, case.candidate.exposure
    if score.score is None and score.passed is None:
        return Reply(_abstain("no score was recorded, so credit cannot be told"))
    if not case.bundle.credited and exposure != "held_out_readable":
        return Reply(_nothing("No credit was given, so no score can mislead."))
    label = _LABELS.get(exposure)
    if label is None:
        return Reply(
            _abstain("seeds, order, cache, state and feedback leave no mechanical chain: triage only")
        )
    return label(case)


def _answer_source(case: Case) -> Reply:
    if not any(rule.startswith(_LOOKS_UP) for rule in case.candidate.rules):
        return Reply(
            _abstain("the submission repeats a tool result, but where that came from is not mechanical")
        )
    return _copied(case, "benchmark_overexposure", "remove_provenance", touched=None)


def _hidden_state(case: Case) -> Reply:
    touched = [p for p in case.candidate.pointers if _touches(case.bundle, p)]
    if touched:
        return _copied(case, "held_out_readable", "isolate_physically", touched=touched)
    if case.bundle.spec.withheld:
        return Reply(
            _nothing("The names look hidden, but the specification withholds nothing that was touched.")
        )
    return Reply(_abstain("the specification does not say what is withheld"))


def _scoring_path(case: Case) -> Reply:
    if not any(rule.startswith("credit_without_merit") for rule in case.candidate.rules):
        return Reply(_abstain("whether a write to scoring files changed the score is not mechanical"))
    bundle = case.bundle
    failed = bundle.score.validity_check is False
    record = json_pointer(SCORE, "/validity_check", "false") if failed else _credit(bundle)
    what = "failed its own validity check" if failed else "is empty"
    return Reply(
        _says(
            "invalid_scoring_path",
            "none",
            "yes",
            "scoring_gate" if failed else "artifact_validation",
            {"exposure": [record], "submission": [record] if failed else [], "credit": [_credit(bundle)]},
            f"The artifact {what} and still has a score above that of a submission without merit.",
            measured="a gap in the scoring gate",
            intended=_intended(bundle),
        )
    )


_LABELS: Mapping[str, Callable[[Case], Reply]] = {
    "benchmark_overexposure": _answer_source,
    "held_out_readable": _hidden_state,
    "invalid_scoring_path": _scoring_path,
}


def _copied(case: Case, exposure: ExposureName, repair: str, touched: Sequence[Pointer] | None) -> Reply:
    """Label by what of the shown material stands in the submission, and by credit."""
    bundle = case.bundle
    used = list(touched if touched is not None else (p for p in case.candidate.pointers if p.is_event))
    shown = _shown(bundle, used)
    secret = _secret(bundle, shown) if touched is not None else None
    shared = overlap_with("\n".join(event.text for event in shown), _fresh(bundle, used))
    copied = shared.is_long or secret is not None
    if not copied and shared.tokens >= NO_TRACE:
        return Reply(
            _abstain(f"{shared.tokens} tokens in common: too few to call it a copy, too many to rule it out")
        )
    if not copied or not bundle.credited:
        why = "nothing of it is in the submission" if not copied else "no credit was given"
        if touched is None:
            return Reply(_nothing(f"Something was looked up, but {why}."))
        evidence = {"exposure": used[:4], "use": used[:4]}
        return Reply(
            _says(exposure, "active", "no", None, evidence, f"Withheld material was read, but {why}.")
        )
    submission, reads = _submitted(bundle, shared, secret)
    seen = [event_pointer(e.i, e.i, _common_line(bundle, e)) for e in shown if _common_line(bundle, e)]
    inside = [p for p in seen if case.candidate.window and p.numbers[1] <= case.candidate.window[1]]
    evidence = {
        "exposure": [*inside[:2], *used[:2]],
        "use": used[:4],
        "submission": submission,
        "credit": [_credit(bundle)],
    }
    said = _says(
        exposure,
        "active",
        "yes",
        repair,
        evidence,
        f"The credited submission repeats {shared.lines} lines ({shared.tokens} tokens) of what was shown.",
        measured="finding and transcribing the answer",
        intended=_intended(bundle),
    )
    return Reply(said, reads=tuple(reads))


def _shown(bundle: RunBundle, used: Sequence[Pointer]) -> list[Event]:
    """Tool results that the used events brought up."""
    found: dict[int, Event] = {}
    for pointer in used:
        for i in range(pointer.numbers[0], pointer.numbers[1] + 1):
            event = bundle.events[i]
            for result in [event] if event.kind == "tool_result" else results_after(bundle, i):
                found[result.i] = result
    return [found[i] for i in sorted(found)]


def _fresh(bundle: RunBundle, used: Sequence[Pointer]) -> dict[str, list[tuple[int, str]]]:
    """Lines of the artifact that the agent had not written before it looked."""
    first = min((p.numbers[0] for p in used), default=0)
    written = {
        content_line(line)
        for event in bundle.events[:first]
        if event.actor == "agent"
        for line in event_text(event).splitlines()
    }
    return {
        path: [one for one in lines if one[1] not in written]
        for path, lines in artifact_lines(bundle).items()
    }


def _secret(bundle: RunBundle, shown: Sequence[Event]) -> tuple[str, str, int] | None:
    """A withheld string that was shown and submitted: the string, its path and line."""
    strings = [text for one in bundle.spec.withheld for text in one.strings if len(text) >= NO_TRACE]
    for text in strings:
        if any(text in event.text for event in shown):
            for path in bundle.artifact:
                for number, line in enumerate(bundle.lines(path) or (), 1):
                    if text in line:
                        return text, path, number
    return None


def _submitted(
    bundle: RunBundle, shared: Overlap, secret: tuple[str, str, int] | None
) -> tuple[list[Pointer], list[Read]]:
    """Pointers at the copied lines of the artifact, read as any judge would read them."""
    path, start, end = (
        (shared.path, shared.start, min(shared.end, shared.start + MAX_SPAN - 1))
        if shared.is_long or secret is None
        else (secret[1], secret[2], secret[2])
    )
    read = read_file(bundle, path, start, end)
    submits = [event_pointer(i, i, _first_line(bundle.events[i])) for i in last_submits(bundle)[-1:]]
    return [line_pointer(path, start, end, read.text), *submits], [read]


def _common_line(bundle: RunBundle, event: Event) -> str:
    submitted = {line for lines in artifact_lines(bundle).values() for _, line in lines}
    return next((line for line in event.text.splitlines() if content_line(line) in submitted - {""}), "")[
        :400
    ]


def _first_line(event: Event) -> str:
    return next((line for line in event_text(event).splitlines() if line.strip()), event.kind)[:400]


def _touches(bundle: RunBundle, pointer: Pointer) -> bool:
    """Whether the event touches what the specification withholds."""
    if not pointer.is_event:
        return False
    text = event_text(bundle.events[pointer.numbers[0]]).lower()
    return any(name in text for name in _withheld_names(bundle))


def _withheld_names(bundle: RunBundle) -> Iterator[str]:
    for one in bundle.spec.withheld:
        yield from (path.strip("/").lower() for path in one.paths if path.strip("/"))
        yield from (text.lower() for text in one.strings if len(text) >= NO_TRACE)


def _credit(bundle: RunBundle) -> Pointer:
    score = bundle.score.score
    return (
        json_pointer(SCORE, "/passed", "true") if score is None else json_pointer(SCORE, "/score", f"{score}")
    )


def _intended(bundle: RunBundle) -> str:
    return bundle.spec.intended_capability or "not stated"


def _abstain(reason: str) -> dict[str, Any]:
    return _says("none", "none", "no", None, {}, reason, confidence=0.0) | {
        "abstain": True,
        "abstain_reason": reason,
    }


def _nothing(why: str) -> dict[str, Any]:
    return _says("none", "none", "no", None, {}, why)


def _says(
    exposure: str,
    engagement: str,
    mislead: str,
    repair: str | None,
    evidence: Mapping[str, Sequence[Pointer]],
    rationale: str,
    *,
    intended: str = "",
    measured: str = "",
    confidence: float = 0.9,
) -> dict[str, Any]:
    assert repair is None or repair in EXPOSURES[exposure].repairs
    return {
        "exposure": exposure,
        "agent_engagement": engagement,
        "mislead": mislead,
        "confidence": confidence,
        "capability_drift": {"intended": intended, "measured": measured} if measured else None,
        "repair_target": repair,
        "evidence": {link: [p.model_dump() for p in pointers] for link, pointers in evidence.items()},
        "rationale": rationale,
    }
