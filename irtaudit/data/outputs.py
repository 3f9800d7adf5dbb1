"""Where results go: a folder or file that irtaudit may write without replacing anything of the user's.

A folder becomes irtaudit's when it is new or empty, and says so in a file of its own. What irtaudit wrote
there it may write again; anything else that its files could replace is refused before any work is done.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from irtaudit._version import __version__
from irtaudit.data.files import atomic_write, make_folder
from irtaudit.errors import PlanError, StorageError

MARKER = ".irtaudit.json"
WORK = frozenset({"fits", "answers", "sweep"})
"""Folders of finished work; their files are named by what they hold, so nothing there is replaced."""
_WRITTEN = frozenset({".csv", ".html", ".json", ".jsonl", ".nc", ".parquet", ".svg"})
_ADVICE = "Name a new or empty folder with --out"


def check_folder(folder: str | Path, kind: str, settings: Mapping[str, Any] | None = None) -> None:
    """Refuse a folder in which results could replace what is not irtaudit's, or other results.

    Parameters
    ----------
    folder : path
        It may be missing.
    kind : str
        What the results are: "audit", "dif", "panel", ...
    settings : mapping, optional
        JSON values that the results depend on; a folder that holds results of other ones is refused. None:
        whatever they depend on.

    Raises
    ------
    PlanError
        When the folder is not irtaudit's and holds anything; is irtaudit's and holds a link, or a file that
        irtaudit did not write and could; or holds results of another kind or other settings.
    StorageError
        When it cannot be read.
    """
    folder = Path(folder)
    try:
        if not (folder / MARKER).exists():
            there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
            _refuse_strangers(folder, [name for name in there if not name.startswith(".")])
            return
        claim = _read_claim(folder / MARKER)
        if claim["files"] is not None:
            _refuse_strangers(folder, _strangers(folder, claim["files"]))
        if _any_result(folder):
            _refuse_other_results(folder, claim, kind, None if settings is None else _plain(settings))
    except OSError as error:
        raise StorageError(f"{folder} cannot be read: {error.strerror or error}") from error


def claim_folder(folder: str | Path, kind: str, settings: Mapping[str, Any] | None = None) -> Path:
    """Make a folder irtaudit's, for results of one kind, and return it.

    Parameters
    ----------
    folder, kind, settings
        As in :func:`check_folder`. The folder is made when missing.

    Raises
    ------
    PlanError
        As :func:`check_folder`.
    StorageError
        When it cannot be made or written.
    """
    folder = Path(folder)
    check_folder(folder, kind, settings)
    make_folder(folder)
    files = _read_claim(folder / MARKER)["files"] if (folder / MARKER).exists() else []
    _write_claim(folder, kind, settings, files)
    return folder


@contextmanager
def filling(folder: str | Path, kind: str, settings: Mapping[str, Any] | None = None) -> Iterator[Path]:
    """Claim a folder for the files that the block writes there; afterwards they are known as irtaudit's.

    A block that breaks off leaves a folder in which every file counts as irtaudit's, so that the same command
    can write them again.

    Parameters
    ----------
    folder, kind, settings
        As in :func:`claim_folder`.
    """
    place = claim_folder(folder, kind, settings)
    _write_claim(place, kind, settings, None)
    yield place
    _write_claim(place, kind, settings, sorted(_files(place)))


def check_file(path: str | Path, *, force: bool = False) -> None:
    """Refuse a file that is there, unless replacing it is what the user asks for.

    Raises
    ------
    PlanError
        When it exists and `force` is not set.
    """
    if not force and os.path.lexists(path):
        raise PlanError(f"{path} exists; --force replaces it, another name keeps it.")


def keep_apart(out: str | Path, inputs: Iterable[str | Path | None]) -> None:
    """Refuse to write results where the data are.

    Parameters
    ----------
    out : path
        The file or folder to write.
    inputs : iterable of path or None
        Files, folders or globs that are read.

    Raises
    ------
    PlanError
        When one of them is `out`, or lies in it.
    """
    place = Path(out).resolve()
    for given in inputs:
        if given is not None and place in (Path(given).resolve(), *Path(given).resolve().parents):
            raise PlanError(
                f"{out} {'is' if Path(given).resolve() == place else 'holds'} {str(given)!r}, which is read: "
                "results could replace it. Name another place for them with --out"
            )


def _refuse_strangers(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        raise PlanError(
            f"{folder} holds {name!r}, which irtaudit did not write; results there could replace your files. "
            f"{_ADVICE}."
        )


def _refuse_other_results(folder: Path, claim: Mapping[str, Any], kind: str, settings: Any) -> None:
    if claim["kind"] != kind:
        raise PlanError(f"{folder} holds results of another kind ({claim['kind']}, not {kind}). {_ADVICE}.")
    other = claim["settings"]
    wanted = other if settings is None else settings
    differing = sorted(key for key in {*wanted, *other} if other.get(key) != wanted.get(key))
    if differing:
        raise PlanError(
            f"{folder} holds another {kind}: {', '.join(differing)} differ. {_ADVICE}, or remove that one."
        )


def _any_result(folder: Path) -> bool:
    """Whether anything was written after the folder was claimed: a claim alone binds nobody."""
    return any(not name.startswith(".") for _, _, files in os.walk(folder) for name in files)


def _strangers(folder: Path, known: Iterable[str]) -> list[str]:
    """Links, and files that irtaudit might write but did not."""
    ours = set(known)
    return sorted(
        name
        for name in _files(folder)
        if (folder / name).is_symlink() or (name not in ours and Path(name).suffix.lower() in _WRITTEN)
    )


def _files(folder: Path) -> Iterator[str]:
    """Files and links below a folder, relative to it, but for hidden ones and finished work."""
    for above, folders, files in os.walk(folder):
        place = Path(above)
        links = [name for name in folders if (place / name).is_symlink()]
        work = WORK if place == folder else ()
        folders[:] = [name for name in folders if not name.startswith(".") and name not in work]
        links = [name for name in links if name in folders]
        yield from (
            (place / name).relative_to(folder).as_posix()
            for name in (*files, *links)
            if not name.startswith(".")
        )


def _read_claim(marker: Path) -> dict[str, Any]:
    try:
        found = json.loads(marker.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    kinds = {"kind": str, "settings": dict, "files": list | None}
    if isinstance(found, dict) and all(isinstance(found.get(key, 0), kind) for key, kind in kinds.items()):
        return found
    raise PlanError(
        f"{marker} is damaged, so nobody knows what irtaudit wrote in {marker.parent}. {_ADVICE}, or remove "
        "that one."
    )


def _write_claim(
    folder: Path, kind: str, settings: Mapping[str, Any] | None, files: list[str] | None
) -> None:
    content = {"kind": kind, "irtaudit": __version__, "settings": _plain(settings), "files": files}
    atomic_write(folder / MARKER, json.dumps(content, indent=1, sort_keys=True) + "\n")


def _plain(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """As they come back from JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(settings or {})))
    return plain
