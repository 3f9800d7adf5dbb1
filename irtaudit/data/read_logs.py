"""Read evaluation logs, whichever tool wrote them: a file, a folder, or a glob."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from irtaudit.data.files import MAX_BYTES, as_path
from irtaudit.data.helm import find_runs, read_helm
from irtaudit.data.inspect_logs import is_inspect_log, read_inspect
from irtaudit.data.lm_eval import is_lm_eval_file, read_lm_eval
from irtaudit.data.logs import Logs
from irtaudit.data.responses import listed
from irtaudit.data.swebench import is_swebench_report, read_swebench
from irtaudit.errors import DataError, StorageError

LogKind = Literal["helm", "inspect", "lm-eval", "swe-bench"]
LOG_KINDS: tuple[LogKind, ...] = ("helm", "inspect", "lm-eval", "swe-bench")

_FILES: dict[LogKind, tuple[Callable[[Path], bool], Callable[[list[Path], str, int], Logs]]] = {
    "inspect": (is_inspect_log, read_inspect),
    "lm-eval": (is_lm_eval_file, read_lm_eval),
    "swe-bench": (is_swebench_report, read_swebench),
}


def read_logs(path: str | Path, kind: LogKind | None = None, *, max_bytes: int = MAX_BYTES) -> Logs:
    """The logs in a file, a folder (and all folders below it), or the files that a glob names.

    Parameters
    ----------
    path : path
        Such as ``logs/``, ``logs/*.eval`` or ``run.eval``.
    kind : {"helm", "inspect", "lm-eval", "swe-bench"}, optional
        Which tool wrote them; by default what the files say.
    max_bytes : int
        Refuse files that are longer once decompressed.

    Returns
    -------
    Logs

    Raises
    ------
    DataError
        If there are no logs, or logs of several tools, or they are damaged.
    PlanError
        If what reads them is not installed, or `path` is no path.
    StorageError
        If the operating system refuses to read them.
    """
    as_path("path", path)
    chosen = kind or log_kind(path)
    if chosen is None:
        raise DataError(
            f"{path}: no evaluation logs found; known are {', '.join(LOG_KINDS)}: a folder of HELM runs, "
            "Inspect's .eval or .json, lm-evaluation-harness's samples_*.jsonl, SWE-bench reports"
        )
    if chosen == "helm":
        return read_helm(path, max_bytes=max_bytes)
    files = files_at(path)
    taken = _of_kind(chosen, files)
    logs = _FILES[chosen][1](taken, str(path), max_bytes)
    return replace(logs, notes=(*logs.notes, *_left_out(set(files) - set(taken), taken, chosen)))


def _left_out(others: set[Path], taken: list[Path], kind: LogKind) -> list[str]:
    """Say which files look like logs by their suffix only: one of them may be what is left of a log."""
    similar = sorted(one.name for one in others if one.suffix in {log.suffix for log in taken})
    if not similar:
        return []
    suffixes = " or ".join(sorted({Path(name).suffix for name in similar}))
    return [
        f"{len(similar)} other {suffixes} file(s) that are no logs of {kind} were left out: {listed(similar)}"
    ]


def log_kind(path: str | Path) -> LogKind | None:
    """Which tool wrote the logs at `path`; None where there are none.

    Raises
    ------
    DataError
        If there are logs of several tools.
    """
    runs = set(find_runs(Path(path)) if Path(path).is_dir() else [])
    files = [file for file in files_at(path) if file.parent not in runs]
    kinds: list[LogKind] = ["helm"] if runs else []
    kinds += [kind for kind in _FILES if _of_kind(kind, files)]
    if len(kinds) > 1:
        raise DataError(
            f"{path} holds logs of several tools: {', '.join(kinds)}; name one folder, or say which "
            "(--from; in Python kind= of read_logs, layout= of read_responses)"
        )
    return kinds[0] if kinds else None


def files_at(path: str | Path) -> list[Path]:
    """The file, the files below a folder, or those that a glob names; sorted, hidden ones left out.

    Links to folders are not followed below a folder, and a file with several names is there once.
    """
    place = Path(path)
    if place.is_dir():
        inside = [one for one in place.rglob("*") if not _hidden(one.relative_to(place))]
    else:
        inside = [place] if place.exists() else _matching(place)
    files = _once(one for one in inside if one.is_file())
    if not files:
        empty = "is a folder without files" if place.is_dir() else "there is no such file or folder"
        raise DataError(f"{path}: {empty}")
    return files


def _matching(pattern: Path) -> list[Path]:
    """What a glob names; pathlib's own, because that of the module glob follows links in circles."""
    first = next((i for i, part in enumerate(pattern.parts) if set(part) & set("*?[")), None)
    if first is None:
        return []
    base = Path(*pattern.parts[:first])
    try:
        return [
            one for one in base.glob(str(Path(*pattern.parts[first:]))) if not _hidden(one.relative_to(base))
        ]
    except ValueError as error:
        raise DataError(f"{pattern} is no pattern: {error}") from None


def _once(files: Iterable[Path]) -> list[Path]:
    """The files, sorted; of several names of one file the one with the fewest links on its way."""
    names: dict[Path, Path] = {}
    for file in sorted(files, key=lambda one: (sum(map(Path.is_symlink, (one, *one.parents))), one)):
        names.setdefault(file.resolve(), file)
    return sorted(names.values())


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _of_kind(kind: LogKind, files: list[Path]) -> list[Path]:
    try:
        return [file for file in files if _FILES[kind][0](file)]
    except OSError as error:
        raise StorageError(f"{error.filename} cannot be read: {error.strerror or error}") from error
