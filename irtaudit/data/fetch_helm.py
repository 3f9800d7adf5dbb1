"""Download HELM runs of a release from CRFM's public bucket, or a copy of it."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from irtaudit._version import __version__
from irtaudit.data.download import Patience, download, downloads, is_address
from irtaudit.data.files import atomic_write, make_folder
from irtaudit.data.helm import RUN_FILES, is_of, run_task
from irtaudit.data.json_files import read_json_list, read_json_object
from irtaudit.data.responses import listed
from irtaudit.errors import DataError, PlanError, StorageError

BUCKET = "https://storage.googleapis.com/crfm-helm-public/gzip"
INDEX_FILES = ("run_specs.json", "runs_to_run_suites.json")
MANIFEST = "manifest.json"
MOST_FAILURES = 3
"""Runs that may fail before the others are given up: the network is down, not a file."""

_RELEASES, _RUNS = "benchmark_output/releases", "benchmark_output/runs"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Fetched:
    """What `fetch_helm` brought.

    Attributes
    ----------
    folder : Path
        ``OUT/<project>/<release>``: hand it to `read_helm`.
    runs : tuple of str
        Names of the runs that are there, sorted.
    missing : tuple of str
        Runs of the release whose files the server does not have.
    downloaded, n_bytes : int
        Files downloaded by this call, and bytes of all files.
    """

    folder: Path
    runs: tuple[str, ...]
    missing: tuple[str, ...]
    downloaded: int
    n_bytes: int


@dataclass(frozen=True)
class _Site:
    """Where files come from and go to; both sides use one relative path."""

    client: httpx.Client
    root: str
    folder: Path
    patience: Patience
    stop: threading.Event
    known: Mapping[str, str]

    def address(self, path: str) -> str:
        """Address of a file."""
        return f"{self.root}/{quote(path)}"

    def have(self, path: str) -> bool:
        """Is the file here, and as the manifest of an earlier call says, if it says anything?"""
        here = self.folder / path
        return here.is_file() and self.known.get(path) in (None, _sha256(here))

    def get(self, path: str) -> bytes | None:
        """The file's bytes from the server; None where it has none."""
        return download(self.client, self.address(path), self.patience, self.stop)

    def put(self, path: str, content: bytes) -> None:
        """Write a file, and the folders above it."""
        here = self.folder / path
        make_folder(here.parent)
        atomic_write(here, content)


def fetch_helm(
    out: str | Path,
    *,
    project: str,
    release: str,
    scenarios: Sequence[str],
    base_url: str = BUCKET,
    workers: int = 8,
    patience: Patience | None = None,
    max_total_bytes: int = 2**35,
    progress: Callable[[int, int], None] | None = None,
) -> Fetched:
    """Download the runs of some scenarios of a release; the same call again goes on where it stopped.

    A run's files appear together with its ``run_spec.json``, written last, so that readers never see half a
    run. Files that are there are kept if they are as the manifest says; a complete folder needs no network.

    Parameters
    ----------
    out : path
        Below it goes a folder per project and release.
    project, release : str
        As in the address of a HELM leaderboard: "safety", "v1.17.0".
    scenarios : sequence of str
        Scenarios, with arguments or without: "harm_bench", "mmlu:subject=anatomy".
    base_url : str
        The bucket, or a copy of it.
    workers : int
        Runs downloaded at once.
    patience : Patience, optional
    max_total_bytes : int
        Stop when the files take more.
    progress : callable, optional
        Called with the numbers of runs done and in all.

    Returns
    -------
    Fetched
        ``manifest.json`` in its folder lists every file with address, size and SHA-256.

    Raises
    ------
    PlanError
        If a name or the address cannot be one, or the release has no such scenario.
    StorageError
        If the network or the disk fails; what is complete stays.
    DataError
        If the server's lists are not what they should be.
    """
    for kind, name in (("project", project), ("release", release)):
        if not _PLAIN_NAME.fullmatch(name):
            raise PlanError(f"{kind} is {name!r}, expected letters, digits, dots, dashes, such as 'v1.17.0'")
    if not is_address(base_url):
        raise PlanError(f"{base_url!r} is no address; expected one such as {BUCKET!r}")
    if not scenarios:
        raise PlanError("no scenario is named; name some, such as harm_bench")
    patience, folder = patience or Patience(), Path(out) / project / release
    with downloads(patience, workers) as client:
        site = _Site(
            client=client,
            root=f"{base_url.rstrip('/')}/{project}",
            folder=folder,
            patience=patience,
            stop=threading.Event(),
            known=_known(folder / MANIFEST),
        )
        runs = _chosen(_index(site, release), scenarios, f"{project} {release}")
        return _fetched(site, runs, workers, max_total_bytes, progress)


# Which runs -------------------------------------------------------------------------------------------


def _index(site: _Site, release: str) -> dict[str, str]:
    """Folder of each run of the release."""
    for path in (f"{_RELEASES}/{release}/{name}" for name in INDEX_FILES):
        if site.have(path):
            continue
        content = site.get(path)
        if content is None:
            raise StorageError(f"{site.address(path)} does not exist; is there such a project and release?")
        site.put(path, content)
    specs, suites = (site.folder / _RELEASES / release / name for name in INDEX_FILES)
    names = [str(spec.get("name", "")) for spec in read_json_list(specs)]
    places = read_json_object(suites)
    for name in names:
        if not _is_folder_name(name) or not _is_folder_name(places.get(name, "-")):
            raise DataError(f"{specs}: run {name!r} in suite {places.get(name)!r} cannot be a folder")
    return {name: f"{_RUNS}/{places[name]}/{name}" for name in names if name in places}


def _is_folder_name(name: object) -> bool:
    return isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\\0")


def _chosen(places: Mapping[str, str], scenarios: Sequence[str], where: str) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for scenario in scenarios:
        found = {run: place for run, place in places.items() if is_of(run_task(run), scenario)}
        if not found:
            there = sorted({run.partition(":")[0] for run in places})
            raise PlanError(f"{where} has no scenario {scenario!r}; it has {listed(there, 40)}")
        chosen |= found
    return dict(sorted(chosen.items()))


# Their files ------------------------------------------------------------------------------------------


class _Got(NamedTuple):
    """A run that is there: how many of its files had to be downloaded, and the bytes of all."""

    downloaded: int
    n_bytes: int


_End = _Got | StorageError | None
"""How a run's download ends; None where the server lacks a file."""


def _fetched(
    site: _Site,
    runs: Mapping[str, str],
    workers: int,
    max_total_bytes: int,
    progress: Callable[[int, int], None] | None,
) -> Fetched:
    ended: dict[str, _End] = {}
    size = failed = 0
    with ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(_end, site, place): run for run, place in runs.items()}
        try:
            for future in as_completed(futures):
                end = ended[futures[future]] = future.result()
                size += end.n_bytes if isinstance(end, _Got) else 0
                failed += isinstance(end, StorageError)
                if progress is not None:
                    progress(len(ended), len(runs))
                if failed >= MOST_FAILURES or size > max_total_bytes:
                    break
        finally:
            site.stop.set()
            pool.shutdown(cancel_futures=True)
            _write_manifest(site, runs, ended)
    if size > max_total_bytes:
        raise StorageError(f"the runs take more than {max_total_bytes:,} bytes; if that is right, allow more")
    return _settled(site, runs, ended, size)


def _settled(site: _Site, runs: Mapping[str, str], ended: Mapping[str, _End], size: int) -> Fetched:
    got = {run: end for run, end in ended.items() if isinstance(end, _Got)}
    missing = [run for run, end in ended.items() if end is None]
    failures = [end for end in ended.values() if isinstance(end, StorageError)]
    if failures:
        raise StorageError(
            f"{len(runs) - len(got) - len(missing)} of {len(runs)} runs could not be fetched; the first: "
            f"{failures[0]}. What is complete stays; the same command goes on from there"
        )
    downloaded = sum(end.downloaded for end in got.values())
    return Fetched(site.folder, tuple(sorted(got)), tuple(sorted(missing)), downloaded, size)


def _end(site: _Site, place: str) -> _End:
    """Fetch the files of a run that are not there.

    All are here before any is written, and the first of `RUN_FILES`, which makes a run of a folder, is
    written last.
    """
    paths = [f"{place}/{name}" for name in RUN_FILES]
    lacking = [path for path in paths if not site.have(path)]
    contents: dict[str, bytes] = {}
    try:
        for path in lacking:
            content = site.get(path)
            if content is None:
                return None
            contents[path] = content
        for path in reversed(lacking):
            site.put(path, contents[path])
    except StorageError as error:
        return error
    return _Got(len(lacking), sum((site.folder / path).stat().st_size for path in paths))


# The manifest -----------------------------------------------------------------------------------------


def _known(manifest: Path) -> dict[str, str]:
    """SHA-256 of each file that an earlier call wrote."""
    if not manifest.exists():
        return {}
    content = read_json_object(manifest)
    files = content.get("files")
    ours = content.get("kind") == "helm" and "irtaudit" in content
    if not ours or not isinstance(files, list) or not all(isinstance(entry, dict) for entry in files):
        raise DataError(f"{manifest} is no manifest of this program; remove it, or name another folder")
    return {str(entry.get("path")): str(entry.get("sha256")) for entry in files}


def _write_manifest(site: _Site, runs: Mapping[str, str], ended: Mapping[str, _End]) -> None:
    """Say what is in the folder, by this call and earlier ones, and what this call lacks."""
    there = [run for run, end in ended.items() if isinstance(end, _Got)]
    missing = [run for run, end in ended.items() if end is None]
    release = site.folder.name
    paths = {f"{_RELEASES}/{release}/{name}" for name in INDEX_FILES}
    paths |= {f"{runs[run]}/{name}" for run in there for name in RUN_FILES}
    paths |= {path for path in site.known if (site.folder / path).is_file()}
    content = {
        "schema_version": 1,
        "kind": "helm",
        "project": site.folder.parent.name,
        "release": release,
        "source": site.root,
        "irtaudit": __version__,
        "missing_runs": sorted(missing),
        "unfinished_runs": sorted(set(runs) - set(there) - set(missing)),
        "files": [_entry(site, path) for path in sorted(paths)],
    }
    site.put(MANIFEST, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")


def _entry(site: _Site, path: str) -> dict[str, Any]:
    here = site.folder / path
    return {"path": path, "url": site.address(path), "bytes": here.stat().st_size, "sha256": _sha256(here)}


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
