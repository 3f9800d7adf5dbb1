"""Every format and every kind of damage: one line that names file and place, exit code 2, no output."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from irtaudit.cli import main
from irtaudit.data import ResponseMatrix, read_responses, write_responses

N_SUBJECTS, N_ITEMS = 40, 3


def matrix() -> ResponseMatrix:
    """Simulated responses, one missing."""
    cells = np.random.default_rng(37).integers(0, 2, (N_SUBJECTS, N_ITEMS)).astype(float)
    cells[0, 0] = np.nan
    return ResponseMatrix.from_array(cells)


def write_text(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return path


def table(layout: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / "logs" / "responses"
        path.parent.mkdir()
        write_responses(matrix(), path, layout)
        return path

    return write


def lm_eval(folder: Path) -> Path:
    """A folder per model of one file of samples."""
    for model in ("org__a", "org__b"):
        samples = [
            {
                "doc_id": n,
                "target": "",
                "filtered_resps": [""],
                "filter": "none",
                "metrics": ["acc"],
                "acc": 1.0,
            }
            for n in range(N_SUBJECTS)
        ]
        path = write_text(
            folder / "logs" / model / "samples_t.jsonl", "".join(json.dumps(one) + "\n" for one in samples)
        )
    return path


def helm(file: str) -> Callable[[Path], Path]:
    """A run of one model; `file` is the one to be damaged."""

    def write(folder: Path) -> Path:
        run = folder / "logs" / "t:model=a"
        items = [f"id{n}" for n in range(N_SUBJECTS)]
        contents: dict[str, Any] = {
            "run_spec": {"name": run.name, "adapter_spec": {"model": "a", "notes": [""] * N_SUBJECTS}},
            "instances": [{"id": item, "references": []} for item in items],
            "display_predictions": [{"instance_id": item, "stats": {"score": 1.0}} for item in items],
        }
        for name, content in contents.items():
            write_text(run / f"{name}.json", content)
        return run / f"{file}.json"

    return write


def swebench(folder: Path) -> Path:
    """Reports of two submissions."""
    for model in ("a", "b"):
        report = {"resolved_ids": [f"t{n}" for n in range(N_SUBJECTS)], "unresolved_ids": ["u"]}
        path = write_text(folder / "logs" / f"{model}.run.json", report)
    return path


@dataclass(frozen=True)
class Format:
    """How sound files are written (the last of them is damaged)."""

    write: Callable[[Path], Path]
    is_text: bool = True


FORMATS = {
    "wide CSV": Format(table("wide-csv")),
    "long TSV": Format(table("long-tsv")),
    "wide Parquet": Format(table("wide-parquet"), is_text=False),
    "long Parquet": Format(table("long-parquet"), is_text=False),
    "py-irt": Format(table("py-irt")),
    "lm-eval": Format(lm_eval),
    "HELM run_spec": Format(helm("run_spec")),
    "HELM instances": Format(helm("instances")),
    "HELM predictions": Format(helm("display_predictions")),
    "SWE-bench": Format(swebench),
}
TEXT = [name for name, one in FORMATS.items() if one.is_text]
JSON = [name for name in TEXT if name not in ("wide CSV", "long TSV")]


def convert(source: Path, out: Path) -> Result:
    return CliRunner().invoke(main, ["convert", str(source), str(out)])


def source_of(path: Path) -> Path:
    """What the user names: the folder of the logs, or the table in it."""
    folder = next(parent for parent in path.parents if parent.name == "logs")
    return path if path.name == "responses" else folder


def assert_refused(path: Path, message: str) -> None:
    """The command ends with one line, that names the file and says `message`, and writes nothing."""
    source = source_of(path)
    out = source.with_name("never.csv")
    result = convert(source, out)
    assert result.exit_code == 2, result.output
    lines = result.output.splitlines()
    assert len(lines) == 1, result.output
    assert lines[0].startswith("irtaudit: error: ")
    assert path.name in lines[0]
    assert re.search(message, lines[0]), lines[0]
    assert not out.exists()


@pytest.mark.parametrize("name", FORMATS)
def test_sound_files_are_read(tmp_path: Path, name: str) -> None:
    path = FORMATS[name].write(tmp_path)
    result = convert(source_of(path), tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    if path.name == "responses":
        assert read_responses(tmp_path / "out.csv").sha256 == matrix().sha256


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "SWE-bench"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    path = FORMATS[name].write(tmp_path)
    path.write_bytes(b"")
    assert_refused(path, "is empty; expected")


@pytest.mark.parametrize("content", [b"", b'{"submitted_ids": ["t1", '])
def test_what_is_left_of_a_report_is_no_report_and_that_is_said(tmp_path: Path, content: bytes) -> None:
    path = swebench(tmp_path)
    path.write_bytes(content)
    found = read_responses(source_of(path))
    assert found.subjects.index.tolist() == ["a"]
    assert "1 other .json file(s) that are no logs of swe-bench were left out: 'b.run.json'" in found.notes


@pytest.mark.parametrize(
    "name", [name for name in TEXT if name != "SWE-bench"]
)  # told by what it says, unpacked
def test_a_gzip_stream_without_its_end(tmp_path: Path, name: str) -> None:
    path = FORMATS[name].write(tmp_path)
    packed = gzip.compress(path.read_bytes(), mtime=0)
    path.write_bytes(packed)
    assert convert(source_of(path), tmp_path / "out.csv").exit_code == 0
    path.write_bytes(packed[:-9])
    assert_refused(path, "broken or cut-off gzip")


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_cut_off(tmp_path: Path, name: str) -> None:
    path = FORMATS[name].write(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-7])
    messages = {
        "wide CSV": "line 41: 1 fields where the header has 4",
        "long TSV": "line 120: 2 fields where the header has 3",
    }
    parquet = "broken or cut-off Parquet"
    assert_refused(path, messages.get(name, r"line \d+.*not JSON" if name in JSON else parquet))


@pytest.mark.parametrize("name", TEXT)
def test_a_byte_that_is_no_text(tmp_path: Path, name: str) -> None:
    path = FORMATS[name].write(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[36] = lines[36][:2] + b"\xe8" + lines[36][2:]
    path.write_bytes(b"\n".join(lines))
    assert_refused(path, "line 37: byte 0xe8 is not UTF-8")


@pytest.mark.parametrize("name", TEXT)
def test_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path, name: str) -> None:
    path = FORMATS[name].write(tmp_path)
    before = read_responses(source_of(path)).sha256
    content = b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(content)
    assert read_responses(source_of(path)).sha256 == before


@pytest.mark.parametrize("name", JSON)
def test_bad_json_on_line_37(tmp_path: Path, name: str) -> None:
    path = FORMATS[name].write(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[36] = lines[36] + b" nope"
    path.write_bytes(b"\n".join(lines))
    assert_refused(path, r"line 3[78].*not JSON")


def edit_lines(path: Path, edit: Callable[[list[str]], None]) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    edit(lines)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def edit_json(path: Path, edit: Callable[[Any], Any]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    edit(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def edit_parquet(path: Path, edit: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    edit(pd.read_parquet(path)).to_parquet(path)


def other(line: str) -> str:
    """The same response the other way round."""
    return line[:-1] + str(1 - int(line[-1]))


TWICE: dict[str, tuple[Callable[[Path], None], str]] = {
    "wide CSV": (
        lambda path: edit_lines(path, lambda lines: lines.insert(36, other(lines[5]))),
        "subject name 'subject_05' is given twice .line 6 and line 37",
    ),
    "long TSV": (
        lambda path: edit_lines(path, lambda lines: lines.insert(36, other(lines[5]))),
        r"'subject_02', item 'item_3' has conflicting responses: \d at line 6, \d at line 37",
    ),
    "wide Parquet": (
        lambda path: edit_parquet(path, lambda frame: pd.concat([frame, frame[4:5]])),
        "subject name 'subject_05' is given twice .row 5 and row 41",
    ),
    "long Parquet": (
        lambda path: edit_parquet(
            path, lambda frame: pd.concat([frame, frame[4:5].assign(response=1 - frame["response"])])
        ),
        r"'subject_02', item 'item_3' has conflicting responses: \d at row 5, \d at row 120",
    ),
    "py-irt": (
        lambda path: edit_lines(path, lambda lines: lines.insert(36, lines[5].replace("1", "0", 1))),
        "line 37|lines 6 and 37",
    ),
    "lm-eval": (
        lambda path: edit_lines(path, lambda lines: lines.insert(36, lines[5].replace("1.0", "0.0"))),
        "line 37: document 5 with filter 'none' is also on line 6",
    ),
    "HELM instances": (
        lambda path: edit_json(path, lambda content: content.insert(36, content[5])),
        "entry 37: instance 'id5' is also entry 6",
    ),
    "HELM predictions": (
        lambda path: edit_json(path, lambda content: content.insert(36, content[5])),
        "entry 37: instance 'id5', trial 0, is also .*entry 6",
    ),
    "SWE-bench": (
        lambda path: edit_json(path, lambda content: content["unresolved_ids"].append("t5")),
        "lists 't5' as resolved and as failed",
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_cell_given_twice_with_different_values(tmp_path: Path, name: str) -> None:
    path = FORMATS[name].write(tmp_path)
    damage, message = TWICE[name]
    damage(path)
    assert_refused(path, message)


MIXED: dict[str, tuple[Callable[[Path], None], str]] = {
    "wide CSV": (
        lambda path: edit_lines(path, lambda lines: lines.__setitem__(36, lines[36][:-1] + "good")),
        "line 37 .subject 'subject_36'., column 'item_3': found 'good', expected 0, 1",
    ),
    "long TSV": (
        lambda path: edit_lines(path, lambda lines: lines.__setitem__(36, lines[36][:-1] + "good")),
        "line 37, column 'response': found 'good'",
    ),
    "wide Parquet": (
        lambda path: edit_parquet(
            path, lambda frame: frame.assign(item_3=["good" if n == 36 else "1" for n in range(N_SUBJECTS)])
        ),
        "row 37 .subject 'subject_37'., column 'item_3': found 'good'",
    ),
    "long Parquet": (
        lambda path: edit_parquet(
            path, lambda frame: frame.assign(response=["good" if n == 36 else "1" for n in range(len(frame))])
        ),
        "row 37, column 'response': found 'good'",
    ),
    "py-irt": (
        lambda path: edit_lines(path, lambda lines: lines.__setitem__(36, lines[36][:-3] + '"good"}}')),
        "line 37, item 'item_3': found 'good'",
    ),
    "lm-eval": (
        lambda path: edit_lines(
            path, lambda lines: lines.__setitem__(36, lines[36].replace("1.0}", '"good"}'))
        ),
        "line 37: metric 'acc' is 'good', expected a number",
    ),
    "HELM run_spec": (
        lambda path: edit_json(path, lambda content: content["adapter_spec"].update(model=7)),
        "no adapter_spec.model",
    ),
    "HELM instances": (
        lambda path: edit_json(path, lambda content: content[36].update(id=7)),
        "entry 37: 'id' is 7, expected text",
    ),
    "HELM predictions": (
        lambda path: edit_json(path, lambda content: content[36]["stats"].update(score="good")),
        "entry 37: 'score' is 'good', expected a number",
    ),
    "SWE-bench": (
        lambda path: edit_json(path, lambda content: content["resolved_ids"].append(7)),
        "'resolved_ids' is not a list of task names",
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_mixed_types(tmp_path: Path, name: str) -> None:
    path = FORMATS[name].write(tmp_path)
    damage, message = MIXED[name]
    damage(path)
    assert_refused(path, message)


HEADERS = {
    "wide CSV": lambda n: b"subject," + b",".join(b"i%d" % i for i in range(n)) + b"\n",
    "long TSV": lambda n: b"subject\titem\tresponse\n",  # noqa: ARG005 - one width
}


@pytest.mark.parametrize("n", [3, 10**5])
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_alone(tmp_path: Path, name: str, n: int) -> None:
    path = FORMATS[name].write(tmp_path)
    path.write_bytes(HEADERS[name](n))
    assert_refused(path, r"has a header \(\d+ columns\) but no rows")


def test_a_hundred_thousand_columns_and_one_field_too_few(tmp_path: Path) -> None:
    path = FORMATS["wide CSV"].write(tmp_path)
    path.write_bytes(HEADERS["wide CSV"](10**5) + b"a" + b",1" * 10**5 + b"\nb" + b",0" * (10**5 - 1) + b"\n")
    assert_refused(path, "line 3: 100000 fields where the header has 100001")


@pytest.mark.parametrize("option", ["--items", "--subjects"])
def test_names_that_the_responses_do_not_have(tmp_path: Path, option: str) -> None:
    """A model or item nobody knows: some are noted, none at all is an error."""
    path = FORMATS["wide CSV"].write(tmp_path)
    about = write_text(tmp_path / "about.csv", "name,kind\nsubject_01,x\nitem_1,x\nnobody,y\n")
    options = {option[2:]: about}
    assert any(
        "have no responses and were ignored" in note and "'nobody'" in note
        for note in read_responses(path, **options).notes
    )
    write_text(about, "name,kind\nnobody,y\n")
    result = CliRunner().invoke(
        main, ["audit", str(path), option, str(about), "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 2, result.output
    assert re.search(r"about\.csv describes none of the \d+ (items|subjects)", result.output)
