"""Bundles go out and come back; what is hostile is refused with one sentence, and never read."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_builders import run

from irtaudit.errors import DataError, StorageError
from irtaudit.protocol.bundle import RunBundle, file_record
from irtaudit.protocol.files import LIMITS, Limits, checked_path, opened
from irtaudit.protocol.load import find_bundles, load_bundle
from irtaudit.protocol.models import Comparison, Event, ScoreRecord, Spec
from irtaudit.protocol.pointers import event_pointer, json_pointer, span_text
from irtaudit.protocol.write import write_bundle

DEEP = b'{"i": 0, "actor": "agent", "kind": "message", "args": ' + b'{"a":' * 50_000


def full() -> RunBundle:
    return run(
        [("user", "Hällo\r\n世界 \u202e"), ("bash", "cat a"), ("result", ""), ("submit", "=1+1")],
        artifact={"deep/answer.py": b"x\n", "image.bin": b"\xff\x00\xfe"},
        spec=Spec(
            intended_task="a: b\n- c", success_threshold=0.5, notes={"E": "yes: no"}, allowed=("2026-01-01",)
        ),
        score=ScoreRecord(score=0.5, max=1.0, components={"a": [1, {"b": None}]}),
        comparison=Comparison(
            kind="ablation", s_intended=0.1, same_task=True, same_scorer=True, same_scale=True, provenance="x"
        ),
    )


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
def test_a_bundle_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    made = full()
    back = load_bundle(write_bundle(made, tmp_path / "into" / name))
    assert back.sha256 == made.sha256
    assert (back.manifest, back.spec, back.events) == (made.manifest, made.spec, made.events)
    assert (back.score, back.comparison, dict(back.contents)) == (made.score, made.comparison, made.contents)


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    key=st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
def test_any_text_survives_the_files(tmp_path_factory: pytest.TempPathFactory, text: str, key: str) -> None:
    made = run([("user", text), ("bash", text), ("submit", key)], spec=Spec(intended_task=text or None))
    back = load_bundle(write_bundle(made, tmp_path_factory.mktemp("any") / "b.zip"))
    assert back.events == made.events
    assert back.spec.intended_task == (text or None)


def test_nothing_is_overwritten_and_nothing_half_written_is_left(tmp_path: Path) -> None:
    place = write_bundle(full(), tmp_path / "b")
    with pytest.raises(StorageError, match="exists already"):
        write_bundle(full(), place)
    assert [child.name for child in tmp_path.iterdir()] == ["b"]


def test_a_changed_byte_changes_the_digest_and_is_refused(tmp_path: Path) -> None:
    place = write_bundle(full(), tmp_path / "b")
    (place / "A/deep/answer.py").write_bytes(b"y\n")
    with pytest.raises(DataError, match=r"A/deep/answer.py is not the file its manifest lists"):
        load_bundle(place)
    assert run(artifact={"a": b"x"}).sha256 != run(artifact={"a": b"y"}).sha256


@pytest.mark.parametrize(
    "path",
    [
        *("../B/x", "B/../../x", "/etc/passwd", "B//x", "B/./x", "B\\x", "C:/x", "B/x\x00", "B/\nx", "B", ""),
        *("X/y", "B/" + "a/" * 40 + "x", "A/" + "a" * 1_000, "manifest.json/x"),
    ],
)
def test_a_path_that_could_lead_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(DataError, match="not one a bundle may hold"):
        checked_path(path)


def edited(place: Path, change: Callable[[dict[str, object]], object]) -> Path:
    """The bundle with its manifest changed."""
    manifest = json.loads((place / "manifest.json").read_text())
    change(manifest)
    (place / "manifest.json").write_text(json.dumps(manifest))
    return place


def listed(place: Path, path: str, content: bytes) -> Path:
    """The bundle with a file listed in its manifest that may or may not be there."""
    record = file_record(path, content).model_dump(mode="json")
    return edited(place, lambda manifest: manifest["files"].update({path: record}))


def secret(tmp_path: Path) -> Path:
    place = tmp_path / "secret.txt"
    place.write_bytes(b"do not read")
    return place


def test_a_manifest_cannot_name_a_file_outside(tmp_path: Path) -> None:
    secret(tmp_path)
    for path in ("A/../../secret.txt", "../secret.txt", str(tmp_path / "secret.txt")):
        place = listed(write_bundle(full(), tmp_path / f"b{len(path)}"), path, b"do not read")
        with pytest.raises(DataError, match="not one a bundle may hold"):
            load_bundle(place)


@pytest.mark.parametrize(
    "where", ["A/link.txt", "A/folder/secret.txt", "T/trajectory.jsonl", "manifest.json"]
)
def test_no_link_is_followed(tmp_path: Path, where: str) -> None:
    target = secret(tmp_path)
    place = write_bundle(full(), tmp_path / "b")
    if where == "A/folder/secret.txt":
        (place / "A/folder").symlink_to(tmp_path)
    else:
        (place / where).unlink(missing_ok=True)
        (place / where).symlink_to(target)
    if where.startswith("A/"):
        listed(place, where, b"do not read")
    with pytest.raises(DataError, match="links are never followed"):
        load_bundle(place)


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    place = listed(write_bundle(full(), tmp_path / "b"), "A/pipe", b"")
    os.mkfifo(place / "A/pipe")
    with pytest.raises(DataError, match="not a regular file"):
        load_bundle(place)


def test_a_listed_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="A/gone is missing"):
        load_bundle(listed(write_bundle(full(), tmp_path / "b"), "A/gone", b"x"))


def test_what_the_manifest_does_not_list_is_never_read(tmp_path: Path) -> None:
    place = write_bundle(full(), tmp_path / "b")
    (place / "A/extra.bin").write_bytes(b"\0" * 10)
    assert "A/extra.bin" not in load_bundle(place).contents


@pytest.mark.parametrize("part", ["B/spec.yaml", "T/trajectory.jsonl", "R/score.json"])
def test_every_bundle_has_its_three_parts(tmp_path: Path, part: str) -> None:
    place = edited(write_bundle(full(), tmp_path / "b"), lambda manifest: manifest["files"].pop(part))
    with pytest.raises(DataError, match=f"does not list {part}"):
        load_bundle(place)


def with_part(tmp_path: Path, path: str, content: bytes) -> Path:
    """A bundle whose file is replaced, manifest and all."""
    place = write_bundle(full(), tmp_path / "b")
    (place / path).write_bytes(content)
    return listed(place, path, content)


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("T/trajectory.jsonl", b'{"i": 0, "actor": "agent", "kind": "message", "text": "\xff"}\n', "line 1"),
        ("T/trajectory.jsonl", b'{"i": 0, "actor": "agent", "kind": "message"}\n{"i": 2', "line 2"),
        ("T/trajectory.jsonl", b'{"i": 1, "actor": "agent", "kind": "message"}\n', "i is 1, expected 0"),
        ("T/trajectory.jsonl", b'{"i": 0, "actor": "robot", "kind": "message"}\n', "actor"),
        ("T/trajectory.jsonl", b'{"i": 0, "actor": "agent", "kind": "message", "txt": ""}\n', "txt"),
        ("T/trajectory.jsonl", DEEP, "line 1"),
        ("R/score.json", b'{"score": NaN}', "score"),
        ("R/score.json", b'{"score": 1e999}', "score"),
        ("R/score.json", b'{"score": 1.0, "log": "R/elsewhere.txt"}', "which the manifest does not list"),
        ("C/comparison.json", b"{}", "kind"),
        ("B/spec.yaml", b"allowed: [unclosed", "is not YAML"),
        ("B/spec.yaml", b"- a\n- b\n", "spec.yaml"),
        ("B/spec.yaml", b"a: &x [1]\nb: *x\n", "aliases"),
        ("B/spec.yaml", b"x: !!python/object/apply:os.system ['touch owned']", "is not YAML"),
        ("B/spec.yaml", b"[" * 60_000, "nested too deeply"),
        ("B/spec.yaml", b"intendet_task: typo\n", "intendet_task"),
        ("B/spec.yaml", b"x: " + b"a" * 300_000, "larger than"),
    ],
)  # fmt: skip
def test_a_malformed_part_is_named_with_its_place(
    tmp_path: Path, path: str, content: bytes, said: str
) -> None:
    with pytest.raises(DataError) as raised:
        load_bundle(with_part(tmp_path, path, content))
    assert said in str(raised.value)
    assert str(tmp_path) in str(raised.value)
    assert len(str(raised.value)) < 900


def test_limits_hold_for_folders(tmp_path: Path) -> None:
    place = write_bundle(full(), tmp_path / "b")
    for limits in (
        Limits(files=3),
        Limits(file_bytes=10),
        Limits(total_bytes=100),
        Limits(events=2),
        Limits(manifest_bytes=20),
        Limits(spec_bytes=5),
    ):
        with pytest.raises(DataError):
            load_bundle(place, limits)
    assert load_bundle(place, LIMITS).sha256 == full().sha256


def packed(tmp_path: Path, change: Callable[[zipfile.ZipFile], object]) -> Path:
    """The bundle as a zip file, with something added."""
    place = write_bundle(full(), tmp_path / "b.zip")
    with zipfile.ZipFile(place, "a") as archive:
        change(archive)
    return place


def link_entry(archive: zipfile.ZipFile) -> None:
    info = zipfile.ZipInfo("A/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive.writestr(info, "/etc/passwd")


def bomb(archive: zipfile.ZipFile) -> None:
    archive.writestr("A/bomb", b"\0" * 30_000_000, zipfile.ZIP_DEFLATED)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda archive: archive.writestr("../escape", "x"), "not one a bundle may hold"),
        (lambda archive: archive.writestr("/absolute", "x"), "not one a bundle may hold"),
        (lambda archive: archive.writestr("A/deep/answer.py", "other"), "twice"),
        (link_entry, "link or device"),
        (bomb, "zip bomb"),
        (lambda archive: [archive.writestr(f"A/{n}", "") for n in range(2_100)], "more than the 2,000"),
        (lambda archive: [archive.writestr(f"A/{n}", "") for n in range(9_000)], "lists more than"),
    ],
)  # fmt: skip
def test_a_hostile_zip_is_refused(
    tmp_path: Path, change: Callable[[zipfile.ZipFile], object], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        load_bundle(packed(tmp_path, change))


def test_a_zip_that_lies_about_its_sizes_is_refused(tmp_path: Path) -> None:
    place = packed(
        tmp_path, lambda archive: archive.writestr("A/liar", b"\0" * 5_000_000, zipfile.ZIP_DEFLATED)
    )
    content = place.read_bytes()
    assert content.count(struct.pack("<I", 5_000_000)) == 2  # in its own header and in the directory
    place.write_bytes(content.replace(struct.pack("<I", 5_000_000), struct.pack("<I", 100)))
    with opened(place) as read, pytest.raises(DataError, match=r"A/liar (cannot be unpacked|is larger)"):
        read("A/liar", 100)


def test_an_encrypted_or_broken_zip_is_refused(tmp_path: Path) -> None:
    place = write_bundle(full(), tmp_path / "b.zip")
    content = bytearray(place.read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 8] |= 1  # the flag of encryption
    place.write_bytes(content)
    with pytest.raises(DataError, match="encrypted"):
        load_bundle(place)
    place.write_bytes(content[: directory + 30])
    with pytest.raises(DataError, match="neither a folder nor a zip file"):
        load_bundle(place)


def test_a_zip_with_one_folder_in_it_is_a_bundle_too(tmp_path: Path) -> None:
    place = write_bundle(full(), tmp_path / "b")
    shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "b")
    assert load_bundle(tmp_path / "packed.zip").sha256 == load_bundle(place).sha256


def test_bundles_are_found_in_order(tmp_path: Path) -> None:
    for name in ("b.zip", "a", "c"):
        write_bundle(full(), tmp_path / "all" / name)
    (tmp_path / "all" / "notes.txt").write_text("not a bundle")
    names = [place.name for place in find_bundles([tmp_path / "all", tmp_path / "all" / "a"])]
    assert names == ["a", "b.zip", "c", "a"]
    with pytest.raises(DataError, match="no bundle here"):
        find_bundles([tmp_path / "nowhere"])


def test_a_hundred_thousand_events_load(tmp_path: Path) -> None:
    made = run([("say", f"word {n}") for n in range(100_000)])
    back = load_bundle(write_bundle(made, tmp_path / "b.zip"))
    assert len(back.events) == 100_000
    assert span_text(back, event_pointer(99_999, 99_999, "x")) == "word 99999"


def test_text_of_an_event_has_every_leaf_of_its_arguments() -> None:
    from irtaudit.protocol.bundle import event_text

    nested: dict[str, object] = {"a": [1, {"b": "two\nlines"}], "c": None, "d": {}, "e": "plain"}
    event = Event(
        i=0, actor="agent", kind="tool_call", tool="t", args=nested, path="p", exit_code=2, text="end"
    )  # type: ignore[arg-type]  # JSON values
    assert event_text(event) == (
        "tool: t\npath: p\na.0: 1\na.1.b: two\nlines\nc: null\nd: {}\ne: plain\nexit_code: 2\nend"
    )


def test_json_pointers_follow_the_standard() -> None:
    bundle = run(score=ScoreRecord(score=1.0, components={"a/b": {"m~n": [10, 20]}, "": 3}))
    for at, value in (("/components/a~1b/m~0n/1", "20"), ("/components/", "3"), ("/score", "1.0")):
        assert span_text(bundle, json_pointer("R/score.json", at, "x")) == value
    assert '"score": 1.0' in span_text(bundle, json_pointer("R/score.json", "", "x"))


def test_an_archive_in_memory_is_not_needed(tmp_path: Path) -> None:
    """The same bundle gives the same zip file, so that copies can be told to be copies."""
    one, other = (write_bundle(full(), tmp_path / name).read_bytes() for name in ("one.zip", "other.zip"))
    assert one == other
    assert zipfile.ZipFile(io.BytesIO(one)).testzip() is None
