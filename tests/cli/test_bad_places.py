"""Every command, and everything that may stand where it reads or writes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from irtaudit import cli

WIDE = "model,q1,q2,q3\nm1,1,0,1\nm2,0,1,0\nm3,1,1,0\n"
SUBJECTS = "model,lab\nm1,A\nm2,B\nm3,B\n"
SCORES = "model,mmlu,safe\nm1,50,0.2\nm2,60,0.3\n"

READING = {
    "audit": "audit {} --out out",
    "audit --items": "audit wide.csv --items {} --out out",
    "audit --subjects": "audit wide.csv --subjects {} --out out",
    "audit --heldout": "audit wide.csv --heldout {} --out out",
    "audit --model-table": "audit wide.csv --model-table {} --out out",
    "audit --plan": "audit --plan {} --out out",
    "dif": "dif {} --subjects subjects.csv --group lab:A,B --out out",
    "dif --subjects": "dif wide.csv --subjects {} --group lab:A,B --out out",
    "convert": "convert {} out.csv",
    "describe": "describe {}",
    "export": "export {} --out out",
    "panel": "panel {} --plan panel.toml --out out",
    "panel --plan": "panel scores.csv --plan {} --out out",
    "build-panel": "build-panel {} --out out.csv",
    "plan init irt": "plan init {} --kind irt --out out.toml",
    "plan init panel": "plan init {} --kind panel --out out.toml",
    "check-table": "check-table {}",
    "protocol": "protocol {} --out out",
    "protocol --answers": "protocol --demo --judge replay --answers {} --out out",
    "protocol --labels": "protocol --demo --labels {} --out out",
    "bundles convert": "bundles convert {} out",
    "judge calibrate": "judge calibrate {} wide.csv --out out",
}
"""Command lines that read what stands at the braces."""

WRITING = {
    "audit": "audit wide.csv --preset quick --restarts 1 --workers 1 --models unidimensional_1pl --out {}",
    "dif": "dif wide.csv --subjects subjects.csv --group lab:A,B --workers 1 --out {}",
    "panel": "panel --demo --out {}",
    "protocol": "protocol --demo --out {}",
    "export": "export report --out {}",
    "judge calibrate": "judge calibrate wide.csv wide.csv --out {}",
}
"""Command lines that write a folder."""

WRITING_FILES = {
    "convert": "convert wide.csv {}",
    "build-panel": "build-panel wide.csv --out {}",
    "plan init": "plan init wide.csv --kind irt --out {}",
}


class Ended(NamedTuple):
    """How a command ended, and what it printed to stderr."""

    code: int
    said: str


Run = Callable[[str, str], Ended]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in a folder with small valid data; a name goes where it has braces."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"wide.csv": WIDE, "subjects.csv": SUBJECTS, "scores.csv": SCORES}.items():
        Path(name).write_text(text, encoding="utf-8")
    Path("report").mkdir()

    def run_line(line: str, name: str) -> Ended:
        words = [name if word == "{}" else word for word in line.split()]
        with pytest.raises(SystemExit) as ended:
            cli.main(words, prog_name="irtaudit")
        return Ended(int(ended.value.code or 0), capsys.readouterr().err)

    return run_line


def plant(kind: str, path: Path) -> str:
    """Make something that is no valid input; returns its name."""
    if kind == "folder":
        path.mkdir()
    elif kind == "folder of nothing ours":
        path.mkdir()
        (path / "letter.txt").write_text("Dear reader", encoding="utf-8")
    elif kind != "missing":
        path.write_bytes({"empty": b"", "binary": bytes(range(256)) * 4, "cut zip": b"PK\x03\x04cut"}[kind])
    return path.name


def is_one_message(said: str) -> bool:
    return said.count("rror: ") == 1 and "Traceback" not in said and "mistake in irtaudit" not in said


@pytest.mark.parametrize("line", READING.values(), ids=READING)
@pytest.mark.parametrize(
    "kind", ["missing", "empty", "binary", "cut zip", "folder", "folder of nothing ours"]
)
@pytest.mark.parametrize("name", ["data", "line\nfeed \U0001f480.csv"], ids=["plain", "hard name"])
def test_what_cannot_be_read_is_one_message(line: str, kind: str, name: str, run: Run) -> None:
    before = set(Path().iterdir())
    ended = run(line, plant(kind, Path(name)))
    assert (ended.code, is_one_message(ended.said)) == (2, True), ended
    assert {path for path in Path().iterdir() if path.name != name} == before, "something was written"


@pytest.mark.parametrize("line", WRITING.values(), ids=WRITING)
@pytest.mark.parametrize("own", ["items.csv", "report.html", "fits/x", "letter.txt"])
@pytest.mark.parametrize("out", ["mine", "link", "../here/mine", "./mine/"])
def test_a_folder_with_files_of_the_users_is_not_written_to(line: str, own: str, out: str, run: Run) -> None:
    Path("mine", own).parent.mkdir(parents=True)
    Path("mine", own).write_text("mine", encoding="utf-8")
    Path("link").symlink_to("mine")
    ended = run(line, out.replace("here", Path.cwd().name))
    assert (ended.code, is_one_message(ended.said)) == (2, True), ended
    assert "irtaudit did not write" in ended.said
    assert [path for path in Path("mine").rglob("*") if path.is_file()] == [Path("mine", own)]
    assert Path("mine", own).read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("line", WRITING.values(), ids=WRITING)
@pytest.mark.parametrize("out", [".", ".."])
def test_nor_is_the_folder_that_holds_the_data(line: str, out: str, run: Run) -> None:
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    ended = run(line, out)
    assert (ended.code, is_one_message(ended.said)) == (2, True), ended
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("line", [*WRITING_FILES.values()], ids=WRITING_FILES)
@pytest.mark.parametrize("existing", ["wide.csv", "subjects.csv", "link.csv", "report"])
def test_a_file_that_is_there_is_not_replaced_unasked(line: str, existing: str, run: Run) -> None:
    Path("link.csv").symlink_to("subjects.csv")
    ended = run(line, existing)
    assert (ended.code, "exists; --force replaces it" in ended.said) == (2, True), ended
    assert (Path("wide.csv").read_text(), Path("subjects.csv").read_text()) == (WIDE, SUBJECTS)


@pytest.mark.parametrize("line", [*WRITING.values(), *WRITING_FILES.values()], ids=[*WRITING, *WRITING_FILES])
def test_a_file_in_the_way_is_kept(line: str, run: Run) -> None:
    ended = run(line, "scores.csv/out.csv")
    assert ended.code in (2, 3), ended
    assert is_one_message(ended.said)
    assert Path("scores.csv").read_text(encoding="utf-8") == SCORES


GROUPS = ["", "plan", "bundles", "judge", "fetch"]
BELOW_GROUPS = ["plan init", "bundles convert", "judge calibrate", "fetch helm"]
COMMANDS = [*(name for name in cli.COMMANDS if name not in GROUPS), *BELOW_GROUPS]


@pytest.mark.parametrize("words", [*GROUPS, *COMMANDS])
def test_without_arguments_it_says_what_it_needs(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words.split(), prog_name="irtaudit")
    out, err = capsys.readouterr()
    assert "Usage: " in out + err or "give BUNDLES" in err
    if words in GROUPS:  # releases of click differ on whether help that nobody asked for is an error
        assert ended.value.code in (None, 0, 2)
    else:
        assert (ended.value.code, is_one_message(err)) == (2, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
@pytest.mark.parametrize("line", WRITING.values(), ids=WRITING)
def test_a_full_disk(line: str, run: Run) -> None:
    disk = Path("disk").absolute()
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this container may not mount a small disk")
    try:
        ended = run(line, str(disk / "out"))
    finally:
        subprocess.run(["umount", disk], check=True)
    assert ended.code in (2, 3)
    assert is_one_message(ended.said)
