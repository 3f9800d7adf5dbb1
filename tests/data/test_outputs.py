"""Nothing of the user's is ever replaced: every kind of thing that can stand where results go."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtaudit.data.outputs import MARKER, check_file, check_folder, claim_folder, filling, keep_apart
from irtaudit.errors import PlanError, StorageError

SETTINGS = {"data": "1", "seed": 2026}


def fill(folder: Path, *names: str) -> None:
    """Results of an audit: files of these names."""
    with filling(folder, "audit", SETTINGS):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("result")


@pytest.mark.parametrize("name", ["items.csv", "notes.txt", "fits", "audit.json", "folder"])
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch], ids=["folder", "file"])
def test_a_folder_that_holds_anything_of_the_users_is_refused(
    name: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / name)
    with pytest.raises(PlanError, match=f"holds {name!r}, which irtaudit did not write"):
        claim_folder(tmp_path, "audit")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_so_is_one_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "items.csv").touch()
    (tmp_path / "link").symlink_to("mine")
    with pytest.raises(PlanError, match="did not write"):
        claim_folder(tmp_path / "link", "audit")


@pytest.mark.parametrize("prepare", [lambda _: None, Path.mkdir], ids=["new", "empty"])
def test_a_new_or_empty_folder_is_taken_and_taken_again(
    prepare: Callable[[Path], None], tmp_path: Path
) -> None:
    prepare(tmp_path / "out")
    for _ in range(2):
        assert claim_folder(tmp_path / "out", "audit", SETTINGS) == tmp_path / "out"
    fill(tmp_path / "out", "items.csv", "figures/a.svg")
    fill(tmp_path / "out", "items.csv", "report.html", "figures/a.svg", "figures/b.svg")


@pytest.mark.parametrize("name", ["items.csv", "figures/own.svg", "audit.JSON"])
@pytest.mark.parametrize("finished", [True, False])
def test_a_file_that_joined_later_is_refused_if_a_result_could_replace_it(
    name: str, finished: bool, tmp_path: Path
) -> None:
    claim_folder(tmp_path, "audit", SETTINGS)
    if finished:
        fill(tmp_path, "comparison.csv", "figures/a.svg")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(PlanError, match=f"holds {name!r}"):
        claim_folder(tmp_path, "audit", SETTINGS)


def test_notes_finished_work_and_hidden_files_do_not_matter(tmp_path: Path) -> None:
    fill(tmp_path, "items.csv")
    for name in ("notes.txt", "fits/1.safetensors", "answers/1.json", "sweep/0.5/items.csv", ".x/a.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    claim_folder(tmp_path, "audit", SETTINGS)


@pytest.mark.parametrize("name", ["items.csv", "figures"])
def test_a_link_in_place_of_a_result_is_refused(name: str, tmp_path: Path) -> None:
    fill(tmp_path / "out", "items.csv")
    (tmp_path / "mine").mkdir()
    (tmp_path / "out" / name).unlink(missing_ok=True)
    (tmp_path / "out" / name).symlink_to(tmp_path / "mine")
    with pytest.raises(PlanError, match=f"holds {name!r}"):
        claim_folder(tmp_path / "out", "audit", SETTINGS)


def test_results_of_another_kind_or_other_settings_stay(tmp_path: Path) -> None:
    fill(tmp_path, "items.csv")
    with pytest.raises(PlanError, match=r"another kind \(audit, not export\)"):
        claim_folder(tmp_path, "export")
    with pytest.raises(PlanError, match="holds another audit: seed differ"):
        claim_folder(tmp_path, "audit", SETTINGS | {"seed": 1})
    with pytest.raises(PlanError, match="holds another audit: cluster, new differ"):
        claim_folder(tmp_path, "audit", SETTINGS | {"cluster": "lab", "new": 1})


def test_a_claim_with_nothing_finished_binds_nobody(tmp_path: Path) -> None:
    claim_folder(tmp_path, "audit", SETTINGS)
    (tmp_path / "fits").mkdir()
    claim_folder(tmp_path, "audit", SETTINGS | {"seed": 1})
    (tmp_path / "fits" / "1.safetensors").touch()
    with pytest.raises(PlanError, match="seed differ"):
        claim_folder(tmp_path, "audit", SETTINGS)


def test_what_breaks_off_while_writing_can_be_written_again(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), filling(tmp_path, "audit", SETTINGS):
        (tmp_path / "items.csv").write_text("half of the results")
        raise KeyboardInterrupt
    fill(tmp_path, "items.csv", "report.html")
    (tmp_path / "pairwise.csv").touch()
    with pytest.raises(PlanError, match=r"'pairwise\.csv'"):
        claim_folder(tmp_path, "audit", SETTINGS)


JSON = st.recursive(st.none() | st.text(max_size=3) | st.integers(), st.lists, max_leaves=3)
WRONG = st.fixed_dictionaries({}, optional=dict.fromkeys(("kind", "settings", "files"), st.integers() | JSON))


@given(st.binary(max_size=40) | JSON.map(json.dumps) | WRONG.map(json.dumps))
def test_a_damaged_claim_says_so_and_removing_the_folder_helps(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | str
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    (folder / MARKER).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(PlanError, match=r"is damaged.*or remove that one"):
        claim_folder(folder, "audit", SETTINGS)
    (folder / MARKER).unlink()
    folder.rmdir()
    claim_folder(folder, "audit", SETTINGS)


def test_looking_changes_nothing(tmp_path: Path) -> None:
    check_folder(tmp_path / "new", "audit")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_file_in_the_way_is_a_storage_error(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match="cannot be made"):
        claim_folder(tmp_path / place, "audit")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("link", [False, True])
def test_a_file_is_replaced_by_force_only(link: bool, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    check_file(path)
    if link:
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.touch()
    with pytest.raises(PlanError, match="exists; --force replaces it"):
        check_file(path)
    check_file(path, force=True)


@pytest.mark.parametrize(
    "data", ["out/items.csv", "out/below/items.csv", "out/logs/*.json", "out", "out/../out/items.csv", "link"]
)
def test_results_do_not_go_where_the_data_are(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("link").symlink_to("out/items.csv")
    with pytest.raises(PlanError, match="which is read"):
        keep_apart("out", [None, "elsewhere.csv", data])
    keep_apart("out/report", [None, "out/items.csv", "out"])
