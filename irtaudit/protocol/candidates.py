"""Filtering: events and records that may betray an exposure, with exact pointers and without a label."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from irtaudit.protocol.bundle import RunBundle, event_text
from irtaudit.protocol.cues import RULES
from irtaudit.protocol.cues.rule import Found, Hit, Names, Rule, names_of
from irtaudit.protocol.models import Kind
from irtaudit.protocol.pointers import Pointer, event_pointer
from irtaudit.protocol.taxonomy import EXPOSURE_NAMES, ExposureName

CONTEXT = 4  # events before and after a cue that go with it
MAX_WINDOW = 60  # events of one candidate
MAX_POINTERS = 16  # of one candidate
CAP = 20  # candidates of one exposure in one run
AROUND = 240  # characters before and after a needle that a rule is shown
MAX_OCCURRENCES = 16  # of one needle in one event


@dataclass(frozen=True)
class Candidate:
    """Something to be judged: where it is and which rules saw it.

    Attributes
    ----------
    id : str
        Sixteen hex digits, the same for the same finding in the same run.
    exposure : str
        The exposure that the rules look for; a family of cues, not a label.
    rules : tuple of str
        Names and versions: "git_history@1".
    pointers : tuple of Pointer
        What was seen, in order.
    window : (int, int) or None
        First and last event that belong to it, context included; None when it lies in no event.
    """

    id: str
    exposure: ExposureName
    rules: tuple[str, ...]
    pointers: tuple[Pointer, ...]
    window: tuple[int, int] | None


@dataclass(frozen=True)
class Candidates:
    """The candidates of one run, in order of exposure and place, and how many each cap dropped."""

    found: tuple[Candidate, ...]
    dropped: Mapping[ExposureName, int]


@dataclass(frozen=True)
class _Seen:
    """A hit of a rule; what an event rule saw becomes a pointer only if its candidate is kept."""

    rule: Rule
    hit: Hit
    quote: str = ""

    @property
    def pointers(self) -> tuple[Pointer, ...]:
        """Where it was seen."""
        seen = (event_pointer(self.hit.start, self.hit.end, self.quote),) if self.quote else ()
        return self.hit.pointers + seen

    @property
    def order(self) -> tuple[int, int, int, str]:
        return (EXPOSURE_NAMES.index(self.rule.exposure), self.hit.start, self.hit.end, self.rule.id)


def find_candidates(bundle: RunBundle, rules: Sequence[Rule] = RULES, cap: int = CAP) -> Candidates:
    """Filter a run with high recall; deterministic.

    Hits of one exposure whose contexts overlap are one candidate, up to a window of 60 events.

    Parameters
    ----------
    bundle : RunBundle
    rules : sequence of Rule
    cap : int
        Most candidates per exposure; the earliest are kept and the rest counted.

    Returns
    -------
    Candidates
    """
    seen = sorted([*_on_events(bundle, rules), *_on_run(bundle, rules)], key=lambda one: one.order)
    found: list[Candidate] = []
    dropped: dict[ExposureName, int] = {}
    for exposure, hits in groupby(seen, key=lambda one: one.rule.exposure):
        groups = _merged(hits)
        found += [_candidate(bundle, exposure, group) for group in groups[:cap]]
        if len(groups) > cap:
            dropped[exposure] = len(groups) - cap
    return Candidates(tuple(found), dropped)


def _on_events(bundle: RunBundle, rules: Sequence[Rule]) -> Iterator[_Seen]:
    names = names_of(bundle)
    by_kind = {kind: _by_needle(rules, kind) for rule in rules for kind in rule.kinds}
    if not (names.withheld_paths or names.withheld_strings):
        by_kind.pop("tool_result", None)  # only what is withheld is looked for in results
    for event in bundle.events:
        needles = by_kind.get(event.kind)
        if needles and event.actor != "user":
            text = event_text(event)
            for rule, quote in _matches(text, needles, names):
                yield _Seen(rule, Hit(event.i, event.i, ()), quote)


def _by_needle(rules: Sequence[Rule], kind: Kind) -> dict[str, list[Rule]]:
    """Rules by each of their needles; those without are under ""."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        for needle in (rule.needles or ("",)) if kind in rule.kinds else ():
            found.setdefault(needle, []).append(rule)
    return found


def _matches(text: str, needles: Mapping[str, Sequence[Rule]], names: Names) -> Iterator[tuple[Rule, str]]:
    """The first match of each rule, with the line it stands in."""
    lowered = text.lower()
    matched: set[str] = set()
    for needle in [needle for needle in needles if needle in lowered]:
        for rule in needles[needle]:
            if rule.on_event is None or rule.id in matched:
                continue
            for passage in _passages(text, lowered, needle):
                quote = _quote(passage, rule.on_event(passage, names))
                if quote:
                    matched.add(rule.id)
                    yield rule, quote
                    break


def _passages(text: str, lowered: str, needle: str) -> Iterator[str]:
    """The text around the first occurrences of a needle, each part once; all of it for the empty needle."""
    if not needle or len(lowered) != len(text):  # lower case of a few letters is longer than they are
        yield text
        return
    end = 0
    for _ in range(MAX_OCCURRENCES):
        at = lowered.find(needle, end)
        if at < 0:
            return
        end = at + len(needle) + AROUND
        yield text[max(0, at - AROUND) : end]


def _quote(passage: str, found: Found) -> str:
    """The matched words with the rest of their line."""
    if not found:
        return ""
    words = found if isinstance(found, str) else found.group()
    at = passage.find(words)
    start = passage.rfind("\n", 0, max(at, 0)) + 1
    stop = passage.find("\n", at + len(words))
    return passage[start : len(passage) if stop < 0 else stop].strip()[:400] or words.strip()[:400]


def _on_run(bundle: RunBundle, rules: Sequence[Rule]) -> Iterator[_Seen]:
    for rule in rules:
        if rule.on_run is not None:
            for hit in rule.on_run(bundle):
                yield _Seen(rule, hit)


def _merged(hits: Iterable[_Seen]) -> list[list[_Seen]]:
    """Groups of hits whose contexts overlap; what lies in no event stays alone."""
    groups: list[list[_Seen]] = []
    for one in hits:
        group = groups[-1] if groups else None
        if group and group[0].hit.start >= 0 and one.hit.start >= 0:
            first, last = group[0].hit.start, max(other.hit.end for other in group)
            if one.hit.start - last <= 2 * CONTEXT and one.hit.end - first < MAX_WINDOW - 2 * CONTEXT:
                group.append(one)
                continue
        groups.append([one])
    return groups


def _candidate(bundle: RunBundle, exposure: ExposureName, group: Sequence[_Seen]) -> Candidate:
    rules = tuple(dict.fromkeys(one.rule.label for one in group))
    pointers = tuple(dict.fromkeys(pointer for one in group for pointer in one.pointers))[:MAX_POINTERS]
    first, last = group[0].hit.start, max(one.hit.end for one in group)
    window = None if first < 0 else (max(0, first - CONTEXT), min(len(bundle.events) - 1, last + CONTEXT))
    told = [exposure, *rules, *(f"{p.path}:{p.start}:{p.end}:{p.sha256}" for p in pointers)]
    identity = hashlib.sha256("\n".join(told).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Candidate(identity, exposure, rules, pointers, window)
