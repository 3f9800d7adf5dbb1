"""What a judge is shown of a candidate, what it may read beyond that, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irtaudit.protocol.bundle import SCORE, SPEC, TRAJECTORY, RunBundle
from irtaudit.protocol.candidates import Candidate
from irtaudit.protocol.pointers import MAX_SPAN, Pointer
from irtaudit.protocol.taxonomy import EXPOSURE_NAMES, ExposureName

MAX_READS = 12
MAX_CALLS = 64  # of read_file about one candidate, refused ones included
ARTIFACT_LINES = 120  # of the submission, shown without asking
LAST_SUBMITS = 3


@dataclass(frozen=True)
class Span:
    """Events (from 0) or lines (from 1) of one file, both ends included."""

    path: str
    unit: str
    start: int
    end: int

    def holds(self, pointer: Pointer) -> bool:
        """Whether the pointer lies inside."""
        if pointer.path != self.path:
            return False
        if pointer.unit == "jsonptr":
            return True
        first, last = pointer.numbers
        return pointer.unit == self.unit and self.start <= first and last <= self.end


@dataclass(frozen=True)
class Read:
    """One answered request of ``read_file``: what was asked for, and the text or the reason of refusal."""

    path: str
    start: int
    end: int
    text: str
    refused: str = ""

    @property
    def span(self) -> Span:
        """What was read; the lines of the trajectory are its events."""
        if self.path == TRAJECTORY:
            return Span(self.path, "event", self.start - 1, self.end - 1)
        return Span(self.path, "line", self.start, self.end)


@dataclass(frozen=True)
class Case:
    """One candidate with its bundle."""

    bundle: RunBundle
    candidate: Candidate


@dataclass(frozen=True)
class Reply:
    """What a judge handed back.

    Attributes
    ----------
    said : str or mapping or None
        The answer as given; None when none was obtained, `fault` then says whose failure that is.
    reads : tuple of Read
        Every read, in order.
    bundle_sha256 : str or None
        Digest of the bundle the answer is about, where it was recorded.
    tokens_in, tokens_out, requests : int
    """

    said: str | Mapping[str, Any] | None
    reads: tuple[Read, ...] = ()
    fault: str = ""
    bundle_sha256: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    requests: int = 0


@dataclass(frozen=True)
class Judge:
    """A way to label candidates.

    Attributes
    ----------
    name, model : str
        "rules", "replay", "openai", "inspect"; the model behind it, "" for none.
    ask : callable
        From a case to a reply.
    prompt_sha256 : str
        Digest of the fixed prompt, "" without one.
    sees : tuple of str
        Exposures it can label positive at all; of the others it abstains.
    remembered : bool
        Whether answers cost enough to be stored and used again.
    """

    name: str
    ask: Callable[[Case], Reply]
    model: str = ""
    prompt_sha256: str = ""
    sees: tuple[ExposureName, ...] = EXPOSURE_NAMES
    remembered: bool = False


class NoAnswerError(Exception):
    """A judge could not be asked or did not answer; says whose failure it is."""


def shown_spans(case: Case) -> tuple[Span, ...]:
    """What every judge is shown: specification, score record, the window, last submissions, the artifact."""
    bundle, window = case.bundle, case.candidate.window
    spans = [_whole(bundle, SPEC), _whole(bundle, SCORE)]
    if window is not None:
        spans.append(Span(TRAJECTORY, "event", *window))
    spans += [Span(TRAJECTORY, "event", i, i) for i in last_submits(bundle)]
    for path in bundle.artifact:
        spans.append(Span(path, "line", 1, min(len(bundle.lines(path) or ()), ARTIFACT_LINES)))
    return tuple(span for span in spans if span.end >= span.start)


def _whole(bundle: RunBundle, path: str) -> Span:
    return Span(path, "line", 1, len(bundle.lines(path) or ()))


def last_submits(bundle: RunBundle) -> Sequence[int]:
    """Numbers of the last events in which something was submitted."""
    return [event.i for event in bundle.events if event.kind == "submit"][-LAST_SUBMITS:]


def read_file(bundle: RunBundle, path: Any, start: Any, end: Any, already: int = 0) -> Read:
    """Lines of a file of the bundle; never a path outside its manifest.

    Files are those that were read and checked when the bundle was loaded: nothing is opened here.

    Parameters
    ----------
    bundle : RunBundle
    path, start, end
        As a judge asked for them, of any type: lines count from 1, the end is included.
    already : int
        Reads done before.

    Returns
    -------
    Read
        With a reason of refusal when the path is not in the manifest, the file is not text, the range is
        not one of 1 to 200 lines of it, or 12 reads are done.
    """
    asked = utf8(str(path)[:200])

    def refuse(reason: str) -> Read:
        return Read(asked, 0, 0, "", refused=reason)

    if already >= MAX_READS:
        return refuse(f"the {MAX_READS} reads of this candidate are used up")
    if not isinstance(path, str) or path not in bundle.manifest.files:
        return refuse("no such path in the manifest; paths are exact")
    if not _is_number(start) or not _is_number(end):
        return refuse("start and end are whole numbers")
    lines = bundle.lines(path)
    if lines is None:
        return refuse("not a text file")
    if not 1 <= start <= end <= len(lines) or end - start >= MAX_SPAN:
        return refuse(f"lines {start} to {end} are not 1 to {MAX_SPAN} lines of the {len(lines)} there are")
    return Read(path, start, end, "\n".join(lines[start - 1 : end]))


def utf8(text: str) -> str:
    """The text with lone surrogates, which no file can hold, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
