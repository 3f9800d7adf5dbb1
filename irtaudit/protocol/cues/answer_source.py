"""Cues of benchmark_overexposure: the answer is looked up rather than worked out."""

from __future__ import annotations

from collections.abc import Iterator

from irtaudit.protocol.bundle import RunBundle, event_text
from irtaudit.protocol.cues.rule import Found, Hit, Names, Rule, event_rule, pattern, run_rule
from irtaudit.protocol.overlap import artifact_lines, content_line, overlap_with
from irtaudit.protocol.pointers import event_pointer, line_pointer

_HISTORY = pattern(
    r"\bgit\b[^\n|;&]{0,60}\blog\b[^\n]{0,80}(?:--all|--remotes|--branches|--grep|-S\b|\ball\b)",
    r"\bgit\b[^\n|;&]{0,60}\b(?:show|cherry-pick|reflog|fetch|pull|format-patch)\b[^\n]{0,120}",
    r"\bgit\b[^\n|;&]{0,60}\b(?:checkout|diff|cat-file|rev-list)\b[^\n]{0,40}"
    r"(?:\b[0-9a-f]{7,40}\b|origin/|upstream/|--all)",
    r"\bgh\b +(?:pr|issue|api)\b[^\n]{0,120}",
)
_PROVENANCE = pattern(
    r"(?:github|gitlab|bitbucket)\.(?:com|org)/\S{1,120}/(?:pull|commit|commits|issues"
    r"|merge_requests|compare)/?\S{0,80}",
    r"huggingface\.co/datasets/\S{1,120}",
    r"\b(?:answer key|official solution|reference solution|solution (?:to|for) (?:the )?(?:task"
    r"|problem|benchmark))\b",
)
_LOOKUP = pattern(
    r"\b(?:web_?search|search_?web|google|bing|duckduckgo|browse\w*|fetch\w*|http_?get|open_?url"
    r"|visit\w*|wget|"
    r"curl|requests\.get|urlopen|arxiv|wikipedia|pip (?:download|install)|search)\b"
)
_NETWORK = (
    "search",
    "google",
    "bing",
    "duck",
    "brows",
    "fetch",
    "http",
    "url",
    "visit",
    "wget",
    "curl",
    "pip ",
)


@event_rule("benchmark_overexposure", needles=("git", "gh "))
def git_history(text: str, names: Names) -> Found:  # noqa: ARG001 - the signature of a rule
    """Reads history or branches that may hold the solution (git log --all, show, cherry-pick, gh pr)."""
    return _HISTORY.search(text)


@event_rule(
    "benchmark_overexposure",
    needles=("github", "gitlab", "bitbucket", "huggingface", "solution", "answer key"),
)
def public_provenance(text: str, names: Names) -> Found:  # noqa: ARG001 - the signature of a rule
    """Opens or asks for the public place the task comes from: pull request, commit, data set, answer key."""
    return _PROVENANCE.search(text)


@event_rule("benchmark_overexposure", needles=_NETWORK)
def task_lookup(text: str, names: Names) -> Found:
    """Searches or fetches by the name of the task, its repository or the benchmark."""
    lowered = text.lower()
    named = next((name for name in names.identifiers if name in lowered), None)
    return None if named is None or not _LOOKUP.search(text) else text[_around(lowered, named)]


@run_rule("benchmark_overexposure")
def copied_result(bundle: RunBundle) -> Iterator[Hit]:
    """A long passage of the artifact stands in a tool result and was not written by the agent before."""
    submission = artifact_lines(bundle)
    wanted = {line for lines in submission.values() for _, line in lines}
    written: set[str] = set()
    for event in bundle.events if wanted else ():
        if event.kind in ("tool_call", "message", "reasoning"):
            if event.actor == "agent":
                written.update(wanted.intersection(map(content_line, event_text(event).splitlines())))
        elif event.kind == "tool_result" and _shares_enough(event.text, wanted - written):
            fresh = {
                path: [one for one in lines if one[1] not in written] for path, lines in submission.items()
            }
            shared = overlap_with(event.text, fresh)
            if shared.is_long:
                lines = bundle.lines(shared.path) or ()
                copied = "\n".join(lines[shared.start - 1 : shared.end][:200])
                first = next(line for line in event.text.splitlines() if content_line(line) in wanted)
                yield Hit(
                    event.i,
                    event.i,
                    (
                        event_pointer(event.i, event.i, first),
                        line_pointer(shared.path, shared.start, min(shared.end, shared.start + 199), copied),
                    ),
                )


def _shares_enough(text: str, wanted: set[str]) -> bool:
    """Whether enough lines are shared for a long overlap to be possible at all."""
    shared = wanted.intersection(map(content_line, text.splitlines()))
    return len(shared) >= 8 or sum(map(len, shared)) >= 60


def _around(lowered: str, name: str) -> slice:
    start = lowered.index(name)
    return slice(max(0, start - 60), start + len(name) + 60)


RULES: tuple[Rule, ...] = (git_history, public_provenance, task_lookup, copied_result)
