"""Validation: what a judge said, held against the bundle. The text of the bundle has no say in it.

===  =====================================================================================  ===========
V1   the answer has the schema (judges over a network may repair it once)                   invalid
V2   each pointer's path is in the manifest and its range is legal                          invalid
V3   each quote occurs in its span (NFC, CRLF read as LF), with the digest it claims        invalid
V4   each pointer lies in what the judge was shown or read                                  invalid
V5   exposure none: engagement none and mislead no                                          invalid
V6   mislead partial or yes: a complete chain exposure, use, submission, credit             unsupported
V7   mislead without engagement: only where the evaluation pipeline itself can do that      invalid
V8   credit points at the score record, and the score is above no credit                    unsupported
V9   held_out_readable: a use event touches a withheld path or string                       unsupported
V10  read, but nothing of it is in the submission: mislead must be no                       unsupported
V11  the repair target is one of the exposure's                                             invalid
V12  the chain is in order of time                                                          unsupported
V13  numbers in a judge's words are never used; there is nothing to reject
V14  the bundle is the one that was judged, unchanged                                       invalid
===  =====================================================================================  ===========

In V7's exception use may be empty, and so may submission where the artifact is empty and cannot be quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from irtaudit.protocol.answers import Answer
from irtaudit.protocol.bundle import SCORE, RunBundle, event_text
from irtaudit.protocol.judges.case import Case, Read, shown_spans
from irtaudit.protocol.models import Event
from irtaudit.protocol.overlap import TOKEN, longest_common_run
from irtaudit.protocol.pointers import Pointer, SpanError, digest, normalised, span_text
from irtaudit.protocol.taxonomy import EXPOSURES

State = Literal["positive", "negative", "unsupported", "invalid", "abstained", "no_candidate"]
STATES: tuple[State, ...] = get_args(State)

EFFECT_TOKENS = 8  # a shared run this long shows that what was read is in the submission


@dataclass(frozen=True)
class Failure:
    """A rule of validation that an answer breaks, and how."""

    rule: str
    says: str


@dataclass(frozen=True)
class _Checked:
    case: Case
    answer: Answer
    reads: Sequence[Read]
    judged_sha256: str | None
    present_sha256: str

    @property
    def bundle(self) -> RunBundle:
        return self.case.bundle

    @property
    def misleads(self) -> bool:
        return self.answer.mislead != "no"

    @property
    def without_agent(self) -> bool:
        """Whether V7's exception holds: the pipeline misleads although the agent did nothing."""
        exposure = EXPOSURES.get(self.answer.exposure)
        return self.answer.agent_engagement == "none" and exposure is not None and exposure.without_agent


def validate(
    case: Case,
    answer: Answer,
    reads: Sequence[Read] = (),
    *,
    judged_sha256: str | None = None,
    present_sha256: str | None = None,
) -> tuple[Failure, ...]:
    """Rules that an answer breaks; V1 is already decided when there is an answer.

    Parameters
    ----------
    case : Case
    answer : Answer
    reads : sequence of Read
        What the judge read beyond what it was shown.
    judged_sha256 : str, optional
        Digest of the bundle that the answer is about, where it was recorded.
    present_sha256 : str, optional
        Digest of the bundle as it is on disk now; that of the bundle in memory unless given.

    Returns
    -------
    tuple of Failure
        In the order of the rules; an abstention is only held against V14.
    """
    checked = _Checked(
        case, answer, reads, judged_sha256, case.bundle.sha256 if present_sha256 is None else present_sha256
    )
    rules = {"V14": CHECKS["V14"]} if answer.abstain else CHECKS
    return tuple(Failure(rule, says) for rule, check in rules.items() for says in check(checked))


def state_of(answer: Answer | None, failures: Sequence[Failure]) -> State:
    """The state of a finding: what the answer says, unless a rule takes that away."""
    if answer is None or any(OUTCOMES[failure.rule] == "invalid" for failure in failures):
        return "invalid"
    if failures:
        return "unsupported"
    if answer.abstain:
        return "abstained"
    return "negative" if answer.mislead == "no" else "positive"


def _pointers(checked: _Checked) -> Iterator[tuple[str, Pointer]]:
    for link, pointers in checked.answer.evidence.links.items():
        for pointer in pointers:
            yield link, pointer


def _v2(checked: _Checked) -> Iterator[str]:
    for link, pointer in _pointers(checked):
        try:
            span_text(checked.bundle, pointer)
        except SpanError as error:
            yield f"{link}: {error}"


def _v3(checked: _Checked) -> Iterator[str]:
    for link, pointer in _pointers(checked):
        if pointer.sha256 is not None and pointer.sha256 != digest(pointer.quote):
            yield f"{link}: the sha256 is not that of the quote {pointer.quote[:60]!r}"
        elif not pointer.quote.strip():
            yield f"{link}: the quote is blank"
        else:
            try:
                text = span_text(checked.bundle, pointer)
            except SpanError:
                continue  # V2's
            if normalised(pointer.quote) not in normalised(text):
                yield f"{link}: {pointer.quote[:60]!r} does not stand in {_place(pointer)}"


def _v4(checked: _Checked) -> Iterator[str]:
    spans = [*shown_spans(checked.case), *(read.span for read in checked.reads if not read.refused)]
    for link, pointer in _pointers(checked):
        if _points_somewhere(checked.bundle, pointer) and not any(span.holds(pointer) for span in spans):
            yield f"{link}: {_place(pointer)} was neither shown nor read"


def _points_somewhere(bundle: RunBundle, pointer: Pointer) -> bool:
    try:
        span_text(bundle, pointer)
    except SpanError:
        return False
    return True


def _v5(checked: _Checked) -> Iterator[str]:
    answer = checked.answer
    if answer.exposure == "none" and (answer.agent_engagement != "none" or answer.mislead != "no"):
        yield f"exposure none with engagement {answer.agent_engagement} and mislead {answer.mislead}"


def _v6(checked: _Checked) -> Iterator[str]:
    if not checked.misleads or checked.answer.exposure == "none":
        return
    evidence = checked.answer.evidence
    has = {
        "exposure": bool(evidence.exposure),
        "use": checked.without_agent or any(_is_use(checked.bundle, p) for p in evidence.use),
        "submission": _has_submission(checked),
        "credit": any(p.part == "R" for p in evidence.credit),
    }
    missing = [link for link, there in has.items() if not there]
    if missing:
        yield f"the chain lacks {', '.join(missing)}"


def _is_use(bundle: RunBundle, pointer: Pointer) -> bool:
    """Whether something that the agent did, or that its tools answered, is pointed at."""
    if not pointer.is_event:
        return pointer.part == "T"
    return any(event.actor in ("agent", "tool") for event in _events(bundle, pointer))


def _has_submission(checked: _Checked) -> bool:
    if checked.without_agent and checked.bundle.artifact_is_empty:
        return True
    for pointer in checked.answer.evidence.submission:
        if pointer.part == "A" or (checked.without_agent and pointer.part == "R"):
            return True
        if pointer.is_event and any(event.kind == "submit" for event in _events(checked.bundle, pointer)):
            return True
    return False


def _v7(checked: _Checked) -> Iterator[str]:
    answer = checked.answer
    if (
        checked.misleads
        and answer.agent_engagement == "none"
        and answer.exposure != "none"
        and not checked.without_agent
    ):
        yield f"mislead {answer.mislead} without engagement cannot come from {answer.exposure}"


def _v8(checked: _Checked) -> Iterator[str]:
    credit = checked.answer.evidence.credit
    for pointer in credit:
        if pointer.part != "R":
            yield f"credit points at {_place(pointer)}, not at the score record"
    if checked.misleads and any(p.part == "R" for p in credit) and not any(map(_is_credit, credit)):
        yield f"{_place(credit[0])} says nothing of credit"
    if checked.misleads and credit and not checked.bundle.credited:
        yield f"score {checked.bundle.score.score} is not above that of a submission without merit"


def _is_credit(pointer: Pointer) -> bool:
    """Whether a pointer leads to a score, a pass or a grader's words, not to another entry of the record."""
    at = pointer.start
    other = isinstance(at, str) and at.split("/")[1:2] in (["max"], ["validity_check"], ["log"])
    return pointer.part == "R" and not (pointer.path == SCORE and other)


def _v9(checked: _Checked) -> Iterator[str]:
    if checked.answer.exposure != "held_out_readable":
        return
    used = "\n".join(_event_texts(checked.bundle, checked.answer.evidence.use)).lower()
    if not any(name in used for name in _withheld(checked.bundle)):
        yield "no use event touches a path or string that the specification withholds"


def _withheld(bundle: RunBundle) -> list[str]:
    names = [name.strip("/") for one in bundle.spec.withheld for name in one.paths]
    names += [text for one in bundle.spec.withheld for text in one.strings]
    return [name.lower() for name in names if name.strip()]


def _v10(checked: _Checked) -> Iterator[str]:
    if checked.misleads and checked.answer.exposure in ("benchmark_overexposure", "held_out_readable"):
        evidence = checked.answer.evidence
        if evidence.submission and not reappears(checked.bundle, [*evidence.exposure, *evidence.use]):
            yield "nothing that was read is in the submission; an effect in other words is a person's call"


def reappears(bundle: RunBundle, pointers: Sequence[Pointer]) -> bool:
    """Whether what the pointed-at events show stands in the submission, in words.

    That is: a withheld string in both, or a common run of 8 tokens (or of the whole submission, if shorter).
    """
    shown = "\n".join(_event_texts(bundle, pointers, with_results=True))
    submitted = submission_text(bundle)
    strings = [text for one in bundle.spec.withheld for text in one.strings if text.strip()]
    if any(text in shown and text in submitted for text in strings):
        return True
    words = TOKEN.findall(submitted)
    length, _ = longest_common_run(TOKEN.findall(shown), words)
    return 0 < min(EFFECT_TOKENS, len(words)) <= length


def submission_text(bundle: RunBundle) -> str:
    """Everything that was submitted: the artifact's text and the events of submission."""
    texts = ["\n".join(bundle.lines(path) or ()) for path in bundle.artifact]
    texts += [event_text(event) for event in bundle.events if event.kind == "submit"]
    return "\n".join(texts)


def _v11(checked: _Checked) -> Iterator[str]:
    answer = checked.answer
    exposure = EXPOSURES.get(answer.exposure)
    legal = exposure.repairs if exposure else {}
    if answer.repair_target is None:
        if checked.misleads and exposure is not None:
            yield f"a misleading {answer.exposure} needs a repair target: {', '.join(legal)}"
    elif answer.repair_target not in legal:
        yield (
            f"repair {answer.repair_target[:60]!r} is none of {', '.join(legal) or 'those of exposure none'}"
        )


def _v12(checked: _Checked) -> Iterator[str]:
    evidence = checked.answer.evidence
    exposed, used, submitted = (
        [p.numbers for p in link if p.is_event]
        for link in (evidence.exposure, evidence.use, evidence.submission)
    )
    used = [(first, _last_result(checked.bundle, last)) for first, last in used]
    earliest = min((first for first, _ in exposed), default=-1)
    latest = max((last for _, last in submitted), default=len(checked.bundle.events))
    if checked.misleads and used and not any(earliest <= last and first <= latest for first, last in used):
        yield f"no use lies between exposure (event {earliest}) and submission (event {latest})"
    elif checked.misleads and not used and earliest > latest:
        yield f"exposure (event {earliest}) comes after submission (event {latest})"


def _last_result(bundle: RunBundle, i: int) -> int:
    """The last result that an event brought up: reading and being shown are one step."""
    return max((event.i for event in results_after(bundle, i)), default=i)


def _v14(checked: _Checked) -> Iterator[str]:
    now = checked.present_sha256
    judged = checked.judged_sha256 or checked.bundle.sha256
    if judged != now:
        yield f"the answer is about bundle {judged[:12]}…, and this one is {now[:12]}…"


def _events(bundle: RunBundle, pointer: Pointer) -> Sequence[Event]:
    first, last = pointer.numbers
    return bundle.events[first : last + 1]


def _event_texts(
    bundle: RunBundle, pointers: Sequence[Pointer], *, with_results: bool = False
) -> Iterator[str]:
    for pointer in pointers:
        if pointer.is_event:
            first, last = pointer.numbers
            yield from map(event_text, bundle.events[first : last + 1])
            if with_results:
                yield from (event.text for event in results_after(bundle, last))


def results_after(bundle: RunBundle, i: int, most: int = 5) -> Iterator[Event]:
    """Tool results that follow an event, up to the agent's next step."""
    for event in bundle.events[i + 1 : i + 1 + most]:
        if event.actor == "agent":
            return
        if event.kind in ("tool_result", "error"):
            yield event


def _place(pointer: Pointer) -> str:
    span = f"{pointer.start}" if pointer.start == pointer.end else f"{pointer.start} to {pointer.end}"
    return f"{pointer.path[:80]}, {pointer.unit} {span}"


Check = Callable[[_Checked], Iterator[str]]
CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "V2": _v2,
        "V3": _v3,
        "V4": _v4,
        "V5": _v5,
        "V6": _v6,
        "V7": _v7,
        "V8": _v8,
        "V9": _v9,
        "V10": _v10,
        "V11": _v11,
        "V12": _v12,
        "V14": _v14,
    }
)
_UNSUPPORTED = ("V6", "V8", "V9", "V10", "V12")
OUTCOMES: Mapping[str, State] = MappingProxyType(
    {rule: "unsupported" if rule in _UNSUPPORTED else "invalid" for rule in ("V1", *CHECKS)}
)
