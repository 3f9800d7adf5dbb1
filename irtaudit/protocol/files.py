"""Untrusted folders and zip files, read so that no path leaves the root and no link is followed."""

from __future__ import annotations

import lzma
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from irtaudit.errors import DataError

Read = Callable[[str, int], bytes]
"""Takes a checked path inside the root and the most bytes to accept; returns the content."""

MANIFEST = "manifest.json"
PARTS = ("B", "T", "A", "R", "C")
_CENTRAL_ENTRY = b"PK\x01\x02"

BROKEN_ZIP = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, NotImplementedError),
    *(ValueError, IndexError, OverflowError, RuntimeError, OSError),
)
"""What the zip module raises on a file that is damaged or made up: of an unknown version or method, with
names that are no text or numbers that lead outside."""


@dataclass(frozen=True)
class Limits:
    """What a bundle may at most hold; more is refused before it is read."""

    files: int = 2_000
    file_bytes: int = 64 * 2**20
    total_bytes: int = 256 * 2**20
    manifest_bytes: int = 4 * 2**20
    spec_bytes: int = 256 * 2**10
    events: int = 1_000_000
    zip_ratio: int = 1_000


LIMITS = Limits()


def checked_path(path: str, where: object = "") -> str:
    """The path, if it is a plain relative one into a part of the bundle; `where` is named in the message.

    Raises
    ------
    DataError
        If it is absolute, has ``..`` or an empty component, a backslash or control characters, or lies
        outside the parts B, T, A, R and C.
    """
    components = path.split("/")
    if (
        len(path) > 1_000
        or len(components) > 32
        or any(part in ("", ".", "..") for part in components)
        or any(ord(char) < 32 or char in "\\\x7f" for char in path)
        or (path != MANIFEST and (components[0] not in PARTS or len(components) < 2))
    ):
        place = f"{where}: " if where else ""
        raise DataError(
            f"{place}path {path[:80]!r} is not one a bundle may hold: expected B/, T/, A/, R/ or C/ and "
            "a plain relative path"
        )
    return path


@contextmanager
def opened(place: Path, limits: Limits = LIMITS) -> Iterator[Read]:
    """A function that reads files of the bundle at `place`, a folder or a zip file.

    Raises
    ------
    DataError
        If it is neither, is a link, or breaks a limit; from the function: if a file is missing, a link, not a
        regular file, or larger than asked for.
    """
    with ExitStack() as stack:
        if place.is_symlink():
            raise DataError(f"{place} is a link, and links are never followed; name what it leads to")
        if place.is_dir():
            yield stack.enter_context(_folder(place))
        elif zipfile.is_zipfile(place):
            yield stack.enter_context(_archive(place, limits))
        else:
            raise DataError(f"{place} is neither a folder nor a zip file; expected a bundle ({MANIFEST})")


@contextmanager
def _folder(root: Path) -> Iterator[Read]:
    try:
        base = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise DataError(f"{root} cannot be opened: {error.strerror or error}") from None

    def read(path: str, most: int) -> bytes:
        with ExitStack() as stack:
            folder = base
            *above, name = checked_path(path, root).split("/")
            try:
                for part in above:
                    folder = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                    stack.callback(os.close, folder)
                # O_NONBLOCK: opening a named pipe must not wait for a writer.
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            except FileNotFoundError:
                raise DataError(f"{root}: {path} is missing") from None
            except OSError as error:
                raise DataError(
                    f"{root}: {path} is not read ({error.strerror}); links are never followed"
                ) from None
            with os.fdopen(descriptor, "rb") as stream:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise DataError(f"{root}: {path} is not a regular file")
                return _bounded(stream.read(most + 1), most, f"{root}: {path}")

    try:
        yield read
    finally:
        os.close(base)


@contextmanager
def _archive(place: Path, limits: Limits) -> Iterator[Read]:
    with _unpacking(place, limits) as archive:
        members = _members(archive, place, limits)

        def read(path: str, most: int) -> bytes:
            info = members.get(checked_path(path, place))
            if info is None:
                raise DataError(f"{place}: {path} is missing")
            if info.file_size > most:
                raise DataError(f"{place}: {path} is larger than the {most:,} bytes allowed")
            try:
                with archive.open(info) as stream:
                    return _bounded(stream.read(most + 1), most, f"{place}: {path}")
            except BROKEN_ZIP as error:
                raise DataError(f"{place}: {path} cannot be unpacked: {error}") from None

        yield read


def _unpacking(place: Path, limits: Limits) -> zipfile.ZipFile:
    """The zip file, its directory read."""
    try:
        _refuse_crowd(place, limits)
        return zipfile.ZipFile(place)
    except BROKEN_ZIP as error:
        raise DataError(f"{place} is a broken zip file: {error}") from None


def _refuse_crowd(place: Path, limits: Limits) -> None:
    """Refuse what would fill the memory before its directory is read."""
    if place.stat().st_size > limits.total_bytes:
        raise DataError(f"{place} is larger than the {limits.total_bytes:,} bytes a bundle may have")
    entries = 0
    with place.open("rb") as stream:
        while chunk := stream.read(2**20):
            entries += chunk.count(_CENTRAL_ENTRY)
    if entries > 4 * limits.files:
        raise DataError(f"{place} lists more than the {limits.files:,} files a bundle may have")


def _members(archive: zipfile.ZipFile, place: Path, limits: Limits) -> dict[str, zipfile.ZipInfo]:
    infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
    if len(infos) > limits.files:
        raise DataError(f"{place} holds {len(infos):,} files, more than the {limits.files:,} allowed")
    if sum(info.file_size for info in infos) > limits.total_bytes:
        raise DataError(f"{place} unpacks to more than the {limits.total_bytes:,} bytes allowed")
    top = _top_folder([info.filename for info in infos])
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        path = checked_path(info.filename.removeprefix(top), place)
        if path in members:
            raise DataError(f"{place} holds {path} twice")
        _refuse_odd(info, place, limits)
        members[path] = info
    return members


def _refuse_odd(info: zipfile.ZipInfo, place: Path, limits: Limits) -> None:
    mode = info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise DataError(f"{place}: {info.filename} is a link or device; only plain files are read")
    if info.flag_bits & 0x1:
        raise DataError(f"{place}: {info.filename} is encrypted; unpack it into a folder first")
    if info.file_size > 2**20 and info.file_size > limits.zip_ratio * max(info.compress_size, 1):
        raise DataError(f"{place}: {info.filename} unpacks to {info.file_size:,} bytes: a zip bomb, refused")


def _top_folder(names: list[str]) -> str:
    """The one folder in which everything lies, when the manifest is not at the top itself."""
    if MANIFEST in names or not names:
        return ""
    top = names[0].split("/")[0] + "/"
    return top if all(name.startswith(top) for name in names) else ""


def _bounded(content: bytes, most: int, where: str) -> bytes:
    if len(content) > most:
        raise DataError(f"{where} is larger than the {most:,} bytes allowed")
    return content
