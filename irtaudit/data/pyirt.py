"""py-irt's JSON lines: one object per subject, `{"subject_id": ..., "responses": {item: response}}`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.data import cells
from irtaudit.data.long import kept_cells, pivot, refuse_too_large
from irtaudit.data.responses import ResponseMatrix
from irtaudit.errors import DataError

_LINE = '{"subject_id": name, "responses": {item: 0 or 1, ...}}'


def read_pyirt(text: str, path: Path, *, pass_at: float | None, max_bytes: int) -> ResponseMatrix:
    """The matrix in py-irt's JSON lines; an item that a line leaves out or gives as null is not observed.

    Raises
    ------
    DataError
        If a line is not such an object, a subject or item is given twice, a response is none, or the matrix
        would not fit in `max_bytes`.
    """
    lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    parsed = [(n, *_parse(line, f"{path}, line {n}")) for n, line in lines]
    subjects = np.array([subject for _, subject, _ in parsed], dtype=object)
    repeated = pd.Series(subjects, dtype=object).duplicated()
    if repeated.any():
        where = [parsed[i][0] for i in np.flatnonzero(subjects == subjects[repeated][0])[:2]]
        raise DataError(
            f"{path}: subject_id {subjects[repeated][0]!r} is given twice (lines {where[0]} and {where[1]}); "
            "put all responses of a subject on one line"
        )
    lengths = [len(responses) for _, _, responses in parsed]
    names = list(chain.from_iterable(responses for _, _, responses in parsed))
    cols, items = pd.factorize(np.array(names, dtype=object))
    refuse_too_large(len(subjects), len(items), max_bytes, str(path))
    values = list(chain.from_iterable(responses.values() for _, _, responses in parsed))
    rows = np.repeat(np.arange(len(subjects)), lengths)
    places = [n for n, _, _ in parsed]
    observed = cells.responses(
        np.array(values, dtype=object),
        pass_at,
        lambda i: f"{path}, line {places[rows[i]]}, item {names[i]!r}",
    )
    return pivot(rows, cols, observed, subjects, items, source=str(path))


def pyirt_lines(matrix: ResponseMatrix) -> Iterator[str]:
    """The JSON lines of a matrix, in ASCII.

    Only observed cells are written, except one null for each subject or item that has none: py-irt itself
    refuses null, so screen before handing the file to it.
    """
    kept = kept_cells(matrix)
    items = matrix.items.index.to_numpy(dtype=object)
    words = np.array([0, 1, None], dtype=object)
    for subject, row, keep in zip(matrix.subjects.index, matrix.responses, kept, strict=True):
        answers = words[np.where(np.isnan(row), 2, row).astype(np.intp)]
        responses = dict(zip(items[keep], answers[keep], strict=True))
        yield json.dumps({"subject_id": subject, "responses": responses}) + "\n"


def _parse(line: str, place: str) -> tuple[str, dict[str, Any]]:
    try:
        record = json.loads(line, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not JSON ({error}); expected one object a line: {_LINE}") from None
    if not isinstance(record, dict) or not isinstance(record.get("responses"), dict):
        raise DataError(f"{place}: expected an object {_LINE}, found {line.strip()[:60]!r}")
    subject, responses = record.get("subject_id"), record["responses"]
    if isinstance(subject, int) and not isinstance(subject, bool):
        subject = str(subject)
    if not isinstance(subject, str) or not subject.strip():
        raise DataError(f"{place}: subject_id is {subject!r}, expected a name")
    nested = [item for item, value in responses.items() if isinstance(value, dict | list)]
    if nested:
        raise DataError(f"{place}, item {nested[0]!r}: found {responses[nested[0]]!r}, {cells.EXPECTED}")
    return subject, responses


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = pd.Series([key for key, _ in pairs], dtype=object)
        raise ValueError(f"{keys[keys.duplicated()].iloc[0]!r} is given twice")
    return found
