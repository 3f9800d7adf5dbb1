"""Answers that cost something, each saved when it arrives, so that nothing is asked twice."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import ValidationError

from irtaudit.data.files import atomic_write, make_folder
from irtaudit.errors import StorageError
from irtaudit.protocol.judges.case import Case, Judge, Reply
from irtaudit.protocol.judges.replay import Recorded, RecordedRead, replied


def saved_reply(folder: Path, judge: Judge, case: Case) -> Reply | None:
    """The answer of this judge about this candidate of this bundle, if one is saved; else None."""
    path = folder / _name(judge, case)
    try:
        one = Recorded.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValidationError:
        return None  # a file that is not ours, or of another version: ask again and write it anew
    return replied(one, case) if _is_about(one, judge, case) else None


def _is_about(one: Recorded, judge: Judge, case: Case) -> bool:
    """Whether what a file holds is what its name promises: files can be copied and renamed."""
    asked = (judge.name, judge.model, judge.prompt_sha256, case.bundle.manifest.run_id, case.candidate.id)
    told = (one.judge, one.model, one.prompt_sha256, one.run_id, one.candidate_id)
    return told == asked and one.bundle_sha256 == case.bundle.sha256


def save_reply(folder: Path, judge: Judge, case: Case, reply: Reply) -> None:
    """Save an answer, whole or not at all.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    make_folder(folder)
    atomic_write(folder / _name(judge, case), record_of(judge, case, reply).model_dump_json() + "\n")


def record_of(judge: Judge, case: Case, reply: Reply) -> Recorded:
    """The answer as a line that the judge "replay" can repeat."""
    return Recorded(
        run_id=case.bundle.manifest.run_id,
        candidate_id=case.candidate.id,
        bundle_sha256=reply.bundle_sha256 or case.bundle.sha256,
        judge=judge.name,
        model=judge.model,
        prompt_sha256=judge.prompt_sha256,
        answer=reply.said,  # type: ignore[arg-type]  # a mapping of JSON values is one
        reads=tuple(
            RecordedRead(path=r.path, start=r.start, end=r.end, refused=r.refused) for r in reply.reads
        ),
    )


def _name(judge: Judge, case: Case) -> str:
    told = [judge.name, judge.model, judge.prompt_sha256, case.bundle.sha256, case.candidate.id]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:40] + ".json"
