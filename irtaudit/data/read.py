"""Read responses from whatever file they stand in."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import pandas as pd

from irtaudit.data import cells, columns
from irtaudit.data.covariates import read_covariates
from irtaudit.data.files import MAX_BYTES, as_path, decode_text, read_content
from irtaudit.data.known import describe_models, unknown_models
from irtaudit.data.log_matrix import Unscored, responses_from_logs
from irtaudit.data.long import read_long
from irtaudit.data.pyirt import read_pyirt
from irtaudit.data.read_logs import LOG_KINDS, LogKind, log_kind, read_logs
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.screen import drop_incomplete
from irtaudit.data.tables import Table, frame_table, parse_table
from irtaudit.data.trials import Trials, check_trials
from irtaudit.data.undecided import UndecidedError
from irtaudit.data.wide import could_be_wide, read_wide
from irtaudit.errors import DataError, PlanError

Incomplete = Literal["keep", "drop"]
TableLayout = Literal["wide", "long", "py-irt"]
Layout = Literal["wide", "long", "py-irt", "helm", "inspect", "lm-eval", "swe-bench"]


def read_responses(
    path: str | Path | pd.DataFrame,
    *,
    items: str | Path | None = None,
    subjects: str | Path | None = None,
    subject_column: str | None = None,
    item_column: str | None = None,
    response_column: str | None = None,
    pass_at: float | None = None,
    trials: Trials | None = None,
    task: str | None = None,
    metric: str | None = None,
    target: str | None = None,
    unscored: Unscored = "missing",
    incomplete: Incomplete = "keep",
    models: str | Path | None = None,
    layout: Layout | None = None,
    max_bytes: int = MAX_BYTES,
) -> ResponseMatrix:
    """Read a response matrix; what the file or folder is, its content says.

    Three layouts of files are read. *Wide*: a table (CSV, TSV, Parquet) with a row per subject and a column
    per item, subjects in the first column. *Long*: such a table with a row per response and columns for
    subject, item and response, or a row per cell and, for the response, columns ``passes, trials``. *py-irt*:
    JSON lines. Text may be gzip-compressed. So are the logs of HELM, Inspect AI, lm-evaluation-harness and
    SWE-bench: a file, a folder, or a glob.

    Subjects and items come back sorted by name (by code point), whatever their order in the file, so that a
    permuted file gives the same splits, fits and audit. Take rows by name; ``table.reindex(names)`` puts any
    table indexed by subject or item into an order of your own, ``matrix.select(subjects=names)`` the matrix.

    A response is 0 or 1, true or false, pass or fail (in any case); nothing, NA, NaN and null mean not
    observed.

    Parameters
    ----------
    path : path or DataFrame
        The file or folder; or a wide or long table as pandas holds it.
    items, subjects : path, optional
        Tables (CSV, TSV, Parquet) that describe items and subjects, one row each; see `read_covariates`.
    subject_column, item_column, response_column : str, optional
        Columns of a long table (the first also of a wide one) that are not recognised by their names, or to
        choose between several that are.
    pass_at : float, optional
        Needed for scores between 0 and 1: a response passes when its score is at least this. 1.0 counts
        full marks only.
    trials : {"first", "majority", "mean", "counts"}, optional
        What counts where a long table or logs have several trials of a cell: the first that has a score;
        whether more than half of them pass; whether their mean reaches `pass_at`; how many of how many pass,
        kept as `ResponseMatrix.trials` for binomial models. Default for a table that counts passes and trials
        itself: counts.
    task, metric, target : str, optional
        Which part of logs to read: a task, a score, the items with this target.
    unscored : {"missing", "fail"}
        For logs: what a sample is that ran without a score, or broke off.
    incomplete : {"keep", "drop"}
        Whether subjects that lack a response to some item are kept, or dropped and listed in the notes.
    models : path, optional
        Table of AI models whose columns describe the subjects, see `describe_models`; logs are described by
        the packaged one.
    layout : str, optional
        "wide", "long", "py-irt", "helm", "inspect", "lm-eval" or "swe-bench": settles what a file is that
        could be two things.
    max_bytes : int
        Refuse files that are longer once decompressed, and matrices that would take more memory.

    Returns
    -------
    ResponseMatrix
        `notes` says which names the item and subject tables lack or have too many, and what logs lack.

    Raises
    ------
    DataError
        If the file is not what it should be; the message names file, line or row, column and cell.
    PlanError
        If an option has no such value, or makes no sense for this kind of file.
    StorageError
        If the operating system refuses to read the file.
    """
    cells.check_pass_at(pass_at)
    check_trials(trials, pass_at)
    if layout is not None and layout not in get_args(Layout):
        raise PlanError(f"layout is {layout!r}, expected one of {', '.join(get_args(Layout))}")
    if incomplete not in get_args(Incomplete):
        raise PlanError(f"incomplete is {incomplete!r}, expected keep or drop")
    frame = path if isinstance(path, pd.DataFrame) else None
    path = "DataFrame" if isinstance(path, pd.DataFrame) else os.fspath(as_path("path", path))
    for what, table in (("items", items), ("subjects", subjects), ("models", models)):
        if table is not None:
            as_path(what, table)
    if frame is not None and layout not in (None, "wide", "long"):
        raise PlanError(f"a DataFrame holds no {layout} logs or lines; layout is wide or long")
    kind = log_kind_of(path, layout) if frame is None else None
    named = {"subject_column": subject_column, "item_column": item_column, "response_column": response_column}
    parts = {"task": task, "metric": metric, "target": target}
    if kind is not None:
        _refuse_options(named, f"{path} is read as {kind} logs, which have no columns")
        logs = read_logs(path, kind, max_bytes=max_bytes).select(task=task, target=target)
        matrix = responses_from_logs(
            logs,
            metric=metric,
            pass_at=pass_at,
            trials=trials,
            unscored=unscored,
            models=models,
            max_bytes=max_bytes,
        )
    else:
        _refuse_options(parts, f"{path} is read as a table, which has no tasks, metrics or targets")
        if unscored != "missing":
            raise PlanError(
                f"{path} is read as a table, which knows no samples without score; leave out unscored"
            )
        matrix = (
            _read_file(Path(path), layout, named, pass_at, trials, max_bytes)
            if frame is None
            else _read_table(frame_table(frame, max_bytes), layout, named, pass_at, trials, max_bytes)
        )
    if models is not None and kind is None:
        known = describe_models(matrix.subjects.index, models)
        matrix = replace(matrix, subjects=known, notes=(*matrix.notes, *unknown_models(known)))
    if incomplete == "drop":
        matrix = drop_incomplete(matrix)
    return with_covariates(matrix, items=items, subjects=subjects, max_bytes=max_bytes)


def log_kind_of(path: str | Path, layout: Layout | None) -> LogKind | None:
    """Which tool's logs are at `path`; None for a table, or a file that is not there."""
    named = next((kind for kind in LOG_KINDS if kind == layout), None)
    if layout is not None:
        return named
    here = Path(path)
    if here.is_file() or here.is_dir() or any(sign in str(path) for sign in "*?["):
        return log_kind(path) or (None if here.is_file() else _no_logs(path))
    return None


def _no_logs(path: str | Path) -> LogKind:
    read_logs(path)
    raise AssertionError("unreachable: what has no kind is refused")


def _read_file(
    path: Path,
    layout: Layout | None,
    named: dict[str, str | None],
    pass_at: float | None,
    trials: Trials | None,
    max_bytes: int,
) -> ResponseMatrix:
    content = read_content(path, max_bytes)
    if layout == "py-irt" or (layout is None and is_json(content)):
        _refuse_options(named, f"{path} is read as JSON lines, which have no columns")
        return read_pyirt(decode_text(content, path), path, pass_at=pass_at, max_bytes=max_bytes)
    return _read_table(parse_table(content, path, max_bytes), layout, named, pass_at, trials, max_bytes)


def _read_table(
    table: Table,
    layout: Layout | None,
    named: dict[str, str | None],
    pass_at: float | None,
    trials: Trials | None,
    max_bytes: int,
) -> ResponseMatrix:
    if (layout or table_layout(table, **named)) == "long":
        return read_long(table, **named, pass_at=pass_at, trials=trials, max_bytes=max_bytes)
    return read_wide(table, subject_column=named["subject_column"], pass_at=pass_at)


def with_covariates(
    matrix: ResponseMatrix,
    *,
    items: str | Path | None = None,
    subjects: str | Path | None = None,
    max_bytes: int = MAX_BYTES,
) -> ResponseMatrix:
    """The same responses with the covariates in the given tables in place of those the matrix had.

    Raises
    ------
    DataError
        As `read_covariates` does.
    """
    item_table, subject_table, notes = matrix.items, matrix.subjects, matrix.notes
    if items is not None:
        item_table, found = read_covariates(items, matrix.items.index, "item", max_bytes)
        notes += found
    if subjects is not None:
        subject_table, found = read_covariates(subjects, matrix.subjects.index, "subject", max_bytes)
        notes += found
    return replace(matrix, items=item_table, subjects=subject_table, notes=notes)


def is_json(content: bytes) -> bool:
    """Do the bytes of a file begin like JSON?"""
    return content[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _refuse_options(options: dict[str, str | None], because: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise DataError(f"{because}; leave out {', '.join(given)}")


def table_layout(
    table: Table, subject_column: str | None, item_column: str | None, response_column: str | None
) -> TableLayout:
    """Long if item or response column are named, or all three roles are recognised; else wide.

    Passes and trials together play the role of the response.
    """
    if item_column is not None or response_column is not None:
        return "long"
    roles = [columns.recognised(table, role) for role in (columns.SUBJECT, columns.ITEM, columns.RESPONSE)]
    roles[2] = roles[2] or list(columns.counted(table) or ())
    if subject_column is not None:
        roles[0] = [columns.find(table, columns.SUBJECT, subject_column)]
    if not all(roles):
        return "wide"
    if could_be_wide(table, roles[0][0]):
        raise UndecidedError(
            f"{table.path} can be read as a wide table and, by its column names, as a long one; say which "
            "(layout=, --from)",
            "layout",
            "long",
        )
    return "long"
