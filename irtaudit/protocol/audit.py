"""The audit: every run filtered, judged, validated; runs come and go one at a time, findings stay."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from irtaudit.errors import DataError
from irtaudit.protocol.answers import Answer, parse_answer
from irtaudit.protocol.bundle import RunBundle, event_text
from irtaudit.protocol.candidates import CAP, Candidate, find_candidates
from irtaudit.protocol.cues import RULES
from irtaudit.protocol.cues.rule import Rule
from irtaudit.protocol.gap import Gap, gap_of
from irtaudit.protocol.judges.case import Case, Judge, NoAnswerError, Read, Reply, utf8
from irtaudit.protocol.judges.replay import Recorded
from irtaudit.protocol.load import load_bundle
from irtaudit.protocol.models import Header
from irtaudit.protocol.pointers import Pointer
from irtaudit.protocol.store import record_of, save_reply, saved_reply
from irtaudit.protocol.taxonomy import ExposureName
from irtaudit.protocol.validation import Failure, State, state_of, validate

_ORDER: Sequence[State] = ("positive", "unsupported", "invalid", "abstained", "negative")
_AROUND = 2  # events or lines before and after a quote that are kept for readers
_LINES = 24  # of a quote that are kept
_MOST = 900  # characters of the event or line in which the quote begins
_LESS = 200  # characters of those around it


@dataclass(frozen=True)
class Quoted:
    """One link of an answer's chain with what stands around it in the bundle."""

    link: str
    pointer: Pointer
    context: str


@dataclass(frozen=True)
class Finding:
    """One candidate and what became of it.

    Attributes
    ----------
    run_id : str
    candidate : Candidate
    state : str
        "positive", "negative", "unsupported", "invalid" or "abstained".
    answer : Answer or None
        None when there was none, or none in the schema.
    failures : tuple of Failure
        Rules of validation it breaks.
    quotes : tuple of Quoted
        The chain, in order, for readers.
    record : Recorded or None
        The answer as it was given; None when none was obtained.
    tokens_in, tokens_out, requests : int
    """

    run_id: str
    candidate: Candidate
    state: State
    answer: Answer | None
    failures: tuple[Failure, ...]
    quotes: tuple[Quoted, ...] = ()
    record: Recorded | None = None
    reads: tuple[Read, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    requests: int = 0

    @property
    def exposure(self) -> str:
        """The exposure of a valid answer; "none" of any other."""
        return self.answer.exposure if self.answer and self.state in ("positive", "negative") else "none"


@dataclass(frozen=True)
class TraceResult:
    """One run: its findings, its state (the strongest of theirs) and its gap.

    `scored` says whether a score, or at least a pass or fail, was recorded at all.
    """

    header: Header
    sha256: str
    source: str
    n_events: int
    score: float | None
    scored: bool
    credited: bool
    state: State
    findings: tuple[Finding, ...]
    dropped: Mapping[ExposureName, int]
    gap: Gap

    @property
    def exposures(self) -> tuple[str, ...]:
        """Exposures of the positive findings, each once."""
        return tuple(dict.fromkeys(one.exposure for one in self.findings if one.state == "positive"))


@dataclass(frozen=True)
class Refused:
    """A bundle that could not be read, and why."""

    source: str
    reason: str


@dataclass(frozen=True)
class ProtocolAudit:
    """What an audit found.

    Attributes
    ----------
    traces : tuple of TraceResult
        In the order the bundles were given.
    refused : tuple of Refused
    judge : Judge
    rules : tuple of str
        Candidate rules with versions.
    """

    traces: tuple[TraceResult, ...]
    refused: tuple[Refused, ...]
    judge: Judge
    rules: tuple[str, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings of all runs."""
        return tuple(finding for trace in self.traces for finding in trace.findings)


Progress = Callable[[int, TraceResult | Refused], None]


def audit_protocol(
    bundles: Iterable[str | Path | RunBundle],
    judge: Judge,
    *,
    rules: Sequence[Rule] = RULES,
    cap: int = CAP,
    workers: int = 1,
    answers: Path | None = None,
    progress: Progress | None = None,
) -> ProtocolAudit:
    """Audit runs; nothing is executed, changed or re-scored.

    Parameters
    ----------
    bundles : iterable of path or RunBundle
        Paths are loaded one at a time and let go again.
    judge : Judge
    rules, cap
        As in :func:`irtaudit.protocol.candidates.find_candidates`.
    workers : int
        Runs judged at the same time; results do not depend on it.
    answers : Path, optional
        Folder where answers that cost something are kept and found again.
    progress : callable, optional
        Called with the number of runs done and the latest.

    Returns
    -------
    ProtocolAudit

    Raises
    ------
    DataError
        If no bundle could be read, or two have the same run_id.
    StorageError
        If the judge's server refuses every request.
    """
    traces: list[TraceResult] = []
    refused: list[Refused] = []
    first: dict[str, str] = {}
    done = _in_order(lambda one: _trace_or_refusal(one, judge, rules, cap, answers), bundles, workers)
    for count, result in enumerate(done, 1):
        if isinstance(result, Refused):
            refused.append(result)
        else:
            run_id = result.header.run_id
            if run_id in first:
                raise DataError(
                    f"{first[run_id] or 'a bundle'} and {result.source or 'another'} have the same run_id "
                    f"{run_id!r}; a run counts once, so give one of them another"
                )
            first[run_id] = result.source
            traces.append(result)
        if progress is not None:
            progress(count, result)
    if not traces:
        reasons = "; ".join(one.reason for one in refused[:3]) or "no bundles were given"
        raise DataError(f"no bundle could be read: {reasons}")
    return ProtocolAudit(tuple(traces), tuple(refused), judge, tuple(rule.label for rule in rules))


def _in_order(
    work: Callable[[str | Path | RunBundle], TraceResult | Refused],
    bundles: Iterable[str | Path | RunBundle],
    workers: int,
) -> Iterator[TraceResult | Refused]:
    """Results in the order of the bundles, with only a few more bundles in memory than workers."""
    if workers <= 1:
        yield from map(work, bundles)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[TraceResult | Refused]] = deque()
        try:
            for one in bundles:
                waiting.append(pool.submit(work, one))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _trace_or_refusal(
    one: str | Path | RunBundle, judge: Judge, rules: Sequence[Rule], cap: int, answers: Path | None
) -> TraceResult | Refused:
    try:
        bundle = one if isinstance(one, RunBundle) else load_bundle(one)
        return audit_run(bundle, judge, rules=rules, cap=cap, answers=answers)
    except DataError as error:
        return Refused(utf8(str(one.source if isinstance(one, RunBundle) else one)), utf8(str(error)))


def audit_run(
    bundle: RunBundle,
    judge: Judge,
    *,
    rules: Sequence[Rule] = RULES,
    cap: int = CAP,
    answers: Path | None = None,
) -> TraceResult:
    """Audit one run; parameters as in :func:`audit_protocol`."""
    candidates = find_candidates(bundle, rules, cap)
    cases = [Case(bundle, candidate) for candidate in candidates.found]
    replies = [_ask(judge, case, answers) for case in cases]
    present = _present_sha256(bundle) if cases else bundle.sha256
    findings = tuple(
        _finding(judge, case, reply, present) for case, reply in zip(cases, replies, strict=True)
    )
    state = trace_state([finding.state for finding in findings])
    return TraceResult(
        header=Header(**bundle.manifest.model_dump(include=set(Header.model_fields))),
        sha256=bundle.sha256,
        source=bundle.source,
        n_events=len(bundle.events),
        score=bundle.score.score,
        scored=bundle.score.score is not None or bundle.score.passed is not None,
        credited=bundle.credited,
        state=state,
        findings=findings,
        dropped=candidates.dropped,
        gap=gap_of(bundle, state == "positive"),
    )


def _present_sha256(bundle: RunBundle) -> str:
    """Digest of the bundle as it is on disk after the judging; "" when it has become unreadable."""
    try:
        return load_bundle(bundle.source).sha256 if bundle.source else bundle.sha256
    except DataError:
        return ""


def trace_state(states: Sequence[State]) -> State:
    """The state of a run: positive if any finding is; undecided if any is; negative if all are."""
    return next((state for state in _ORDER if state in states), "no_candidate")


def _ask(judge: Judge, case: Case, answers: Path | None) -> Reply:
    keep = answers is not None and judge.remembered
    if keep and answers is not None:
        saved = saved_reply(answers, judge, case)
        if saved is not None:
            return saved
    try:
        reply = judge.ask(case)
    except NoAnswerError as error:
        return Reply(None, fault=str(error))
    if keep and answers is not None:
        save_reply(answers, judge, case, reply)
    return reply


def _finding(judge: Judge, case: Case, reply: Reply, present_sha256: str) -> Finding:
    answer, wrong = (None, reply.fault) if reply.said is None else parse_answer(reply.said)
    failures = (
        (Failure("V1", wrong),)
        if answer is None
        else validate(
            case,
            answer,
            reply.reads,
            judged_sha256=reply.bundle_sha256,
            present_sha256=present_sha256,
        )
    )
    return Finding(
        run_id=case.bundle.manifest.run_id,
        candidate=case.candidate,
        state=state_of(answer, failures),
        answer=answer,
        failures=failures,
        quotes=_quotes(case.bundle, answer, failures),
        record=None if reply.said is None else record_of(judge, case, reply),
        reads=reply.reads,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        requests=reply.requests,
    )


def _quotes(bundle: RunBundle, answer: Answer | None, failures: Sequence[Failure]) -> tuple[Quoted, ...]:
    """The chain with its surroundings; of an answer whose pointers point nowhere, nothing."""
    if answer is None or any(failure.rule in ("V2", "V3", "V14") for failure in failures):
        return ()
    return tuple(
        Quoted(link, pointer, context(bundle, pointer))
        for link, pointers in answer.evidence.links.items()
        for pointer in pointers
    )


def context(bundle: RunBundle, pointer: Pointer) -> str:
    """What stands around a quote: two events or lines on each side, numbered, and long ones cut around it."""
    begin = pointer.quote.strip().split("\n")[0]
    if pointer.is_event:
        first, last = pointer.numbers
        texts = {i: event_text(bundle.events[i]) for i in range(first, last + 1)}
        at = next((i for i, text in texts.items() if begin in text), first)
        shown = range(max(0, at - _AROUND), min(len(bundle.events), at + _AROUND + 1))
        return "\n".join(_event_line(bundle, i, begin, _MOST if i == at else _LESS) for i in shown)
    lines = bundle.lines(pointer.path) or ()
    at = _first_line(lines, pointer, begin)
    until = min(len(lines), at + min(pointer.quote.strip().count("\n"), _LINES) + _AROUND)
    numbers = range(max(1, at - _AROUND), until + 1)
    return "\n".join(f"{n}: {_cut(lines[n - 1], begin, _MOST if n == at else _LESS)}" for n in numbers)


def _first_line(lines: Sequence[str], pointer: Pointer, begin: str) -> int:
    """Number of the line in which the quote begins: of a JSON pointer the one with its last key."""
    if isinstance(pointer.start, str):
        key = f'"{pointer.start.rpartition("/")[2]}"'
        return next((n for n, line in enumerate(lines, 1) if key in line), 1)
    first, last = pointer.numbers
    return next((n for n in range(first, last + 1) if begin in lines[n - 1]), first)


def _event_line(bundle: RunBundle, i: int, begin: str, most: int) -> str:
    event = bundle.events[i]
    return f"[{i}] {event.actor} {event.kind}: {_cut(event_text(event), begin, most)}"


def _cut(text: str, begin: str, most: int) -> str:
    """The text, or the part of it in which `begin` stands."""
    if len(text) <= most:
        return text
    start = max(0, text.find(begin) - most // 3)
    stop = start + most
    return f"{'[…] ' if start else ''}{text[start:stop]}{' […]' if stop < len(text) else ''}"
