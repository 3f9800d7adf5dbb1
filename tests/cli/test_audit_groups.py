"""``irtaudit audit --group``: the items of one audit compared between groups of models."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from irtaudit import audit, cli
from irtaudit.dif.options import SCREENS, DifOptions
from irtaudit.dif.result import FLAGS, ITEMS
from irtaudit.dif.scopes import SINGLE

sys.path.insert(0, str(Path(__file__).parents[1]))
from audit_panels import two_factor_panel

PLANTED = "item_05"


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


def run(*words):
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended, redirect_stdout(out), redirect_stderr(err):
        cli.main(["audit", *map(str, words)], prog_name="irtaudit")
    return Ended(int(ended.value.code or 0), out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A simulated panel of two dimensions; one item is passed by every model of lab a and none of lab b."""
    folder = tmp_path_factory.mktemp("panel")
    matrix = two_factor_panel(n_subjects=44)
    models = pd.DataFrame({"lab": ["a", "b"] * 20 + ["c"] * 4}, index=matrix.subjects.index)
    models["base"] = [f"base {number // 4}" for number in range(44)]
    wide = pd.DataFrame(matrix.responses.astype(int), matrix.subjects.index, matrix.items.index)
    wide[PLANTED] = (models["lab"] == "a").astype(int)
    wide.to_csv(folder / "wide.csv")
    models.to_csv(folder / "models.csv")
    matrix.items.to_csv(folder / "items.csv")
    return (
        *(folder / "wide.csv", "--subjects", folder / "models.csv", "--items", folder / "items.csv"),
        *("--models", "unidimensional_2pl", "--factors", "kind", "--cluster", "base"),
        *("--preset", "quick", "--restarts", "1", "--workers", "1"),
    )


@pytest.fixture(scope="module", autouse=True)
def light():
    """Fewer simulations than the command uses, and no simulated panels of Test 1."""
    with pytest.MonkeyPatch.context() as patch:
        fewer = partial(DifOptions, n_simulations=199, n_control=2, n_power=10)
        patch.setattr(audit, "DifOptions", fewer)
        patch.setattr(audit, "describe_structure", lambda *_, **__: None)
        yield


@pytest.fixture(scope="module")
def audited(data, tmp_path_factory):
    """Folder of an audit with groups, and how it ended."""
    out = tmp_path_factory.mktemp("audit") / "out"
    return out, run(*data, "--group", "lab:a,b", "--out", out)


def written(out):
    """Content of every file but those that tell the time."""
    return {path.name: path.read_bytes() for path in out.glob("*.csv")}


def fits(out):
    return {path.name: path.stat().st_mtime_ns for path in (out / "fits").glob("*.safetensors")}


def test_an_audit_with_groups_writes_their_tables_summary_and_cards(audited):
    out, ended = audited
    assert ended.exit_code == 0, ended.stderr
    assert "a vs b, single score: of 52 testable items Mantel-Haenszel flags" in ended.stdout
    items, flags = pd.read_csv(out / "dif.csv"), pd.read_csv(out / "dif_flags.csv")
    assert items.columns.tolist() == ITEMS
    assert flags.columns.tolist() == FLAGS
    assert items["comparison"].unique().tolist() == ["lab:a_vs_b"]
    told = json.loads((out / "audit.json").read_text())
    assert told["dif"]["options"] == asdict(audit.DifOptions(seed=2026)) | {"screens": list(SCREENS)}
    assert len(told["dif"]["flags"]) == len(flags)
    assert {row["item"] for row in told["dif"]["flagged"]} == set(items[items["flag_family"]]["item"])
    page = (out / "report.html").read_text()
    at = [page.index(f">{title}<") for title in ("Held-out comparison", "Who is compared")]
    at += [page.index(f">{title}<") for title in ("DIF under the single score", "DIF under scoped scores")]
    assert at == sorted(at)
    assert f"The clearest: {PLANTED}" in page


def test_where_test_1_finds_several_dimensions_single_score_flags_may_be_one_of_them(audited):
    out, _ = audited
    assert json.loads((out / "audit.json").read_text())["verdict"]["reading"] == "not supported"
    items = pd.read_csv(out / "dif.csv")
    held = items[items["flag_family"] & items["flag_family_cluster"].fillna(False).astype(bool)]
    planted = held[held["item"] == PLANTED].groupby(held["scope"] == SINGLE)["reading"].unique()
    assert planted[True].tolist() == ["DIF or multidimensionality"]
    assert planted[False].tolist() == ["DIF"]
    assert "flags are read as DIF or multidimensionality" in (out / "report.html").read_text()


def test_the_same_command_finds_its_fits_and_gives_the_same_tables(audited, data):
    out, _ = audited
    tables, fitted = written(out), fits(out)
    assert run(*data, "--group", "lab:a,b", "--out", out).exit_code == 0
    assert written(out) == tables
    assert fits(out) == fitted
    assert fitted


def test_other_groups_or_none_are_compared_in_the_same_folder_without_new_fits(audited, data):
    out, _ = audited
    fitted = fits(out)
    assert run(*data, "--group", "lab:b,a", "--group", "lab:a,c", "--out", out).exit_code == 0
    assert pd.read_csv(out / "dif.csv")["comparison"].unique().tolist() == ["lab:b_vs_a", "lab:a_vs_c"]
    assert run(*data, "--out", out).exit_code == 0
    assert not list(out.glob("dif*.csv"))
    assert json.loads((out / "audit.json").read_text())["dif"] is None
    assert fits(out) == fitted


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("maker:a,b", "no subject column 'maker'"),
        ("lab:a,z", "No model has lab 'z'"),
        ("lab:a", "expected COLUMN:REFERENCE,FOCAL"),
        ("base:base 0,base 0", "two different levels"),
    ],
)
def test_groups_that_are_not_there_are_refused_before_anything_is_fitted(data, tmp_path, group, message):
    ended = run(*data, "--group", group, "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
