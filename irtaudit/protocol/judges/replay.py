"""The judge that repeats recorded answers: of another judge, or of people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, JsonValue, ValidationError

from irtaudit.data.files import decode_text, read_content
from irtaudit.errors import DataError
from irtaudit.protocol.judges.case import (
    MAX_CALLS,
    Case,
    Judge,
    NoAnswerError,
    Read,
    Reply,
    read_file,
)
from irtaudit.protocol.load import complaint
from irtaudit.protocol.models import Name, Record, Sha256


class RecordedRead(Record):
    """Which lines a judge read, or was refused."""

    path: str
    start: int
    end: int
    refused: str = ""


class Recorded(Record):
    """One line of a file of answers, as ``irtaudit protocol`` writes them."""

    run_id: Name
    candidate_id: Name
    bundle_sha256: Sha256
    judge: str = ""
    model: str = ""
    prompt_sha256: str = ""
    answer: JsonValue
    reads: tuple[RecordedRead, ...] = Field(default=(), max_length=MAX_CALLS)


def read_answers(path: str | Path) -> dict[tuple[str, str], Recorded]:
    """Recorded answers by run and candidate.

    Raises
    ------
    DataError
        If the file is missing or a line is malformed; names the line.
    """
    found: dict[tuple[str, str], Recorded] = {}
    for number, line in enumerate(decode_text(read_content(path), path).split("\n"), 1):
        if line.strip():
            try:
                one = Recorded.model_validate_json(line)
            except ValidationError as error:
                raise DataError(f"{path}, line {number}: {complaint(error)}") from None
            found[one.run_id, one.candidate_id] = one
    return found


def replied(one: Recorded, case: Case) -> Reply:
    """The reply that was recorded; its reads are done again, so that none is claimed that is not allowed."""
    reads: list[Read] = []
    for r in one.reads:
        again = read_file(case.bundle, r.path, r.start, r.end, len(reads))
        reads.append(Read(r.path, r.start, r.end, "", r.refused) if r.refused else again)
    said = one.answer if isinstance(one.answer, str | dict) else json.dumps(one.answer)
    return Reply(said, tuple(reads), bundle_sha256=one.bundle_sha256)


def replay_judge(answers: Mapping[tuple[str, str], Recorded]) -> Judge:
    """The judge "replay"; what was recorded is validated like any other answer.

    Parameters
    ----------
    answers : mapping
        From :func:`read_answers`.

    Returns
    -------
    Judge
        Its model and prompt are those of the first recorded answer.
    """
    first = next(iter(answers.values()), None)

    def ask(case: Case) -> Reply:
        key = (case.bundle.manifest.run_id, case.candidate.id)
        if key not in answers:
            raise NoAnswerError(f"no answer is recorded for candidate {case.candidate.id}")
        return replied(answers[key], case)

    return Judge(
        name="replay",
        ask=ask,
        model=first.model if first else "",
        prompt_sha256=first.prompt_sha256 if first else "",
    )
