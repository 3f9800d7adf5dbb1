"""How much of a submission stands, word for word, in something the agent was shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irtaudit.protocol.bundle import RunBundle

LONG_LINES = 8
LONG_TOKENS = 60

TOKEN = re.compile(r"\w+|[^\w\s]")
_DIFF_MARK = re.compile(r"^[+\-] ?(?![+\-]{2})")
_SHORT_LINE = 4  # a line of fewer characters ("}", "else") is no evidence of copying


@dataclass(frozen=True)
class Overlap:
    """The longest common run of a source and a submission.

    Attributes
    ----------
    lines, tokens : int
        Length of the longest run of lines, and of tokens, that both share.
    path, start, end
        Where the run of lines stands in the submission, lines from 1; "" when there is none.
    """

    lines: int = 0
    tokens: int = 0
    path: str = ""
    start: int = 0
    end: int = 0

    @property
    def is_long(self) -> bool:
        """Whether it is the copy of a passage rather than of a phrase: 8 lines or 60 tokens."""
        return self.lines >= LONG_LINES or self.tokens >= LONG_TOKENS


def content_line(line: str) -> str:
    """A line without indentation and without the mark of a diff; "" when too short to tell anything."""
    bare = _DIFF_MARK.sub("", line).strip()
    return bare if len(bare) >= _SHORT_LINE else ""


def artifact_lines(bundle: RunBundle) -> dict[str, list[tuple[int, str]]]:
    """Lines of the artifact that can tell something, with their numbers, by path."""
    found = {}
    for path in bundle.artifact:
        lines = bundle.lines(path) or ()
        found[path] = [(n, bare) for n, line in enumerate(lines, 1) if (bare := content_line(line))]
    return found


def overlap_with(source: str, submission: dict[str, list[tuple[int, str]]]) -> Overlap:
    """Longest run of content lines of `source` in the submission.

    Parameters
    ----------
    source : str
        What the agent was shown.
    submission : dict
        From :func:`artifact_lines`.

    Returns
    -------
    Overlap
        Tokens are those of the run of lines; where no whole line is shared, those of the longest run of
        tokens inside the lines.
    """
    shown = [bare for line in source.splitlines() if (bare := content_line(line))]
    places: dict[str, list[int]] = {}
    for index, line in enumerate(shown):
        places.setdefault(line, []).append(index)
    best = Overlap()
    for path, lines in submission.items():
        best = max(best, _longest_run(path, lines, places), key=lambda run: (run.lines, run.tokens))
    if best.tokens >= LONG_TOKENS:
        return best
    return _with_tokens(best, shown, submission)


def _longest_run(path: str, lines: Sequence[tuple[int, str]], places: dict[str, list[int]]) -> Overlap:
    best = Overlap()
    ending: dict[int, int] = {}
    for order, (_, line) in enumerate(lines):
        ending = {index: ending.get(index - 1, 0) + 1 for index in places.get(line, ())[:64]}
        longest = max(ending.values(), default=0)
        if longest > best.lines:
            run = lines[order - longest + 1 : order + 1]
            tokens = sum(len(TOKEN.findall(text)) for _, text in run)
            best = Overlap(longest, tokens, path, run[0][0], run[-1][0])
    return best


def _with_tokens(
    best: Overlap, shown: Iterable[str], submission: dict[str, list[tuple[int, str]]]
) -> Overlap:
    """The overlap with its longest run of tokens, found by growing windows of `LONG_TOKENS` or fewer."""
    source = TOKEN.findall("\n".join(shown))
    for path, lines in submission.items():
        words = [(token, number) for number, line in lines for token in TOKEN.findall(line)]
        length, end = longest_common_run(source, [token for token, _ in words])
        if length > best.tokens:
            numbers = [number for _, number in words[end - length : end]]
            best = Overlap(best.lines, length, path, numbers[0], numbers[-1])
    return best


def longest_common_run(source: Sequence[str], words: Sequence[str]) -> tuple[int, int]:
    """Length of the longest run of tokens in both, and where it ends in `words`.

    Runs are grown from equal pairs of neighbouring tokens; sources beyond 20,000 tokens are cut.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for index in range(min(len(source), 20_000) - 1):
        places.setdefault((source[index], source[index + 1]), []).append(index)
    length, end = 0, 0
    ending: dict[int, int] = {}
    for order in range(1, min(len(words), 20_000)):
        starts = places.get((words[order - 1], words[order]), ())[:64]
        ending = {index: ending.get(index - 1, 1) + 1 for index in starts}
        for run in ending.values():
            if run > length:
                length, end = run, order + 1
    return length, end
