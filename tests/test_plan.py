from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

from irtaudit.errors import PlanError
from irtaudit.plan import Part, Plan, canonical_json, make_plan, plan_sha256, read_plan, toml_text


class Draws(Part):
    number: Annotated[int, Field(ge=1)] = 100
    share: float = 0.5


class TeaPlan(Plan):
    kind: Literal["tea"]
    schema_version: Literal[1]
    draws: Draws = Draws()
    cups: dict[str, Draws] = Field(default_factory=dict)
    best: Draws | None = None


BASE = {"kind": "tea", "schema_version": 1}


def write(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_plan_is_read_with_its_defaults(tmp_path: Path) -> None:
    path = write(tmp_path, 'kind = "tea"\nschema_version = 1\n[draws]\nnumber = 7\n')
    plan = read_plan(path, TeaPlan)
    assert (plan.draws.number, plan.draws.share, plan.seed) == (7, 0.5, 2026)
    with pytest.raises(ValueError, match="frozen"):
        plan.seed = 3


def test_the_hash_is_over_the_canonical_form() -> None:
    plan = make_plan(BASE, TeaPlan)
    text = canonical_json(plan)
    assert json.loads(text)["draws"] == {"number": 100, "share": 0.5}
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert plan_sha256(plan) == hashlib.sha256(text.encode()).hexdigest()


def test_the_same_audit_has_the_same_hash_however_it_is_written(tmp_path: Path) -> None:
    short = read_plan(write(tmp_path, 'schema_version = 1\nkind = "tea"\n'), TeaPlan)
    spelled = read_plan(
        write(tmp_path, 'kind = "tea"  # !\nschema_version = 1\n\n[draws]\nshare = 0.5\nnumber = 100\n'),
        TeaPlan,
    )
    other = make_plan(BASE | {"seed": 1}, TeaPlan)
    assert plan_sha256(short) == plan_sha256(spelled) != plan_sha256(other)


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ({"kind": "coffee", "schema_version": 1}, ["kind: found 'coffee', expected 'tea'"]),
        ({}, ["kind is missing", "schema_version is missing"]),
        (BASE | {"sed": 3}, ["sed is not a known key; did you mean 'seed'?"]),
        (BASE | {"seed": "x"}, ["seed: found 'x', expected a valid integer"]),
        (BASE | {"seed": True}, ["seed: found True, expected a valid integer"]),
        (BASE | {"draws": {"numbr": 1}}, ["draws.numbr is not a known key; did you mean 'number'?"]),
        (BASE | {"draws": {"zzz": 1}}, ["draws.zzz is not a known key; known here: number, share"]),
        (
            BASE | {"cups": {"x": {"number": 0, "q": 1}}},
            ["cups.x.number: found 0, expected greater than or equal to 1", "cups.x.q is not a known key"],
        ),
        (BASE | {"best": {"shar": 1}}, ["best.shar is not a known key; did you mean 'share'?"]),
        (BASE | {"reading": " "}, ["reading: found ' ', expected the reading under test in words"]),
        (BASE | {"draws": 3}, ["draws: found 3, expected a valid dictionary"]),
    ],
)
def test_every_fault_is_named_with_what_was_expected(values: dict[str, object], lines: list[str]) -> None:
    with pytest.raises(PlanError) as caught:
        make_plan(values, TeaPlan, where="my.toml")
    message = str(caught.value)
    assert message.startswith("my.toml is not a tea plan:")
    for line in lines:
        assert line in message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"kind = ", "is not TOML: "),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"x = " + b"[" * 5000 + b"]" * 5000, "nests lists or tables too deeply"),
        (b"x = " + b"{a = " * 5000 + b"1" + b"}" * 5000, "nests lists or tables too deeply"),
        (b"seed = " + b"9" * 5000, "is not TOML: Exceeds the limit"),
        (b'title = "a\\u0000b"', r"plan.toml: title holds a NUL character \(\\u0000\)"),
        (b'kind = "tea"\n[cups.x]\nnumber = "\\u0000"', "cups.x.number holds a NUL character"),
        (b'cups = [{a = "\\u0000"}]', "cups.0.a holds a NUL character"),
        (b"title = [" + b"{a" + b".a" * 5000 + b" = 1}]", "title: found a list of lists or tables, expected"),
        (b'title = ["' + b"a" * 5000 + b'"]', r"title: found \['a{198}\.\.\., expected a valid string"),
    ],
)
def test_files_that_are_no_plans(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_bytes(content)
    with pytest.raises(PlanError, match=said):
        read_plan(path, TeaPlan)


def test_a_path_that_no_file_has_is_refused() -> None:
    with pytest.raises(PlanError, match=r"'a\\x00b.toml' holds a NUL"):
        read_plan("a\0b.toml", TeaPlan)
    with pytest.raises(PlanError, match=r"my.toml is 3; expected a plan"):
        make_plan(3, TeaPlan, where="my.toml")  # type: ignore[arg-type]  # what a user may try


def test_a_plan_that_is_not_there_and_one_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no such plan; `irtaudit plan init` writes one"):
        read_plan(tmp_path / "none.toml", TeaPlan)
    with pytest.raises(PlanError, match="cannot be read"):
        read_plan(tmp_path, TeaPlan)


@pytest.mark.parametrize("none", ["", " "])
def test_a_plan_without_a_registration_is_pre_specified(none: str) -> None:
    plan = make_plan(BASE | {"registration": none}, TeaPlan)
    assert plan.status == plan.standing == make_plan(BASE, TeaPlan).status == "pre-specified"


@pytest.mark.parametrize(
    "place",
    [
        "https://osf.io/abcde",
        "http://aspredicted.org/blind.php?x=7",
        "HTTPS://OSF.IO/ABCDE",
        "10.17605/OSF.IO/ABCDE",
        "doi:10.1000/182",
        "https://doi.org/10.17605/OSF.IO/ABCDE",
    ],
)
def test_a_plan_that_names_a_registration_is_preregistered_and_that_nobody_checked(place: str) -> None:
    plan = make_plan(BASE | {"registration": place}, TeaPlan)
    assert plan.status == "preregistered"
    assert plan.standing == f"preregistered (the plan names the registration {place}; not checked)"


@pytest.mark.parametrize(
    "text",
    ["foo", "yes", "osf.io/abcde", "https://", "https://localhost/x", "https:// osf.io", "https://osf.io",
     "https://osf.io/", "https://osf.io//", "https://osf.io?x=1", "https://osf.io/?x=1", "https://osf.io/#x",
     "ftp://osf.io/x", "javascript:alert(1)", "10.17605", "10.1/x", "see https://osf.io/abcde",
     "https://osf.io/a b"],
)  # fmt: skip
def test_a_registration_is_an_address_or_a_doi(text: str) -> None:
    with pytest.raises(PlanError, match="registration: found ") as refused:
        make_plan(BASE | {"registration": text}, TeaPlan)
    assert "its address with a path (https://osf.io/...) or DOI" in str(refused.value)


@pytest.mark.parametrize("text", ["plain", 'quo"te', "back\\slash", "new\nline", "ümläut 漢", "\x7f", "\x01"])
def test_any_text_survives_toml(text: str) -> None:
    import tomllib

    assert tomllib.loads(f"x = {toml_text(text)}") == {"x": text}
