"""Bundles to disk, as a folder or a zip file: whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

from irtaudit.errors import StorageError
from irtaudit.protocol.bundle import RunBundle
from irtaudit.protocol.files import MANIFEST, checked_path

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bundle gives the same zip file


class ExistsError(StorageError):
    """What is to be written is there already."""


def write_bundle(bundle: RunBundle, target: str | Path) -> Path:
    """Write the bundle so that `target` holds all of it, or nothing.

    Parameters
    ----------
    bundle : RunBundle
    target : path
        A new folder, or a file ending in ``.zip``; folders above are made.

    Returns
    -------
    Path
        What was written.

    Raises
    ------
    ExistsError
        If the target exists already.
    StorageError
        If it cannot be written.
    """
    place = Path(target)
    if place.exists():
        raise ExistsError(f"{place} exists already; choose another name or remove it")
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        (_write_zip if place.suffix == ".zip" else _write_folder)(_files(bundle), draft)
        draft.replace(place)
    except OSError as error:
        raise StorageError(f"{place} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True) if draft.is_dir() else draft.unlink(missing_ok=True)
    return place


def _files(bundle: RunBundle) -> dict[str, bytes]:
    manifest = bundle.manifest.model_dump(mode="json")
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    return {MANIFEST: text.encode(), **{checked_path(path): data for path, data in bundle.contents.items()}}


def _write_folder(files: dict[str, bytes], folder: Path) -> None:
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _write_zip(files: dict[str, bytes], place: Path) -> None:
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, _EPOCH), content, zipfile.ZIP_DEFLATED)
