import json
import sys
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from irtaudit import cli
from irtaudit.dif.result import FLAGS, ITEMS

sys.path.insert(0, str(Path(__file__).parents[1] / "dif"))
from dif_panels import panel

QUICK = ("--preset", "quick", "--restarts", "1", "--workers", "1", "--simulations", "99", "--control", "3")


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A simulated panel with planted DIF as CSV, and the tables of its models and items."""
    folder = tmp_path_factory.mktemp("panel")
    truth = panel(31, sizes=(40, 35, 10), n_items=24, shifts={2: 6.0})
    matrix = truth.matrix
    pd.DataFrame(matrix.responses, matrix.subjects.index, matrix.items.index).to_csv(folder / "wide.csv")
    matrix.subjects.assign(lone=["one", *["two"] * 84], empty="").to_csv(folder / "models.csv")
    pd.DataFrame({"kind": ["x", "y"] * 12}, index=matrix.items.index).to_csv(folder / "items.csv")
    return folder


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run ``irtaudit dif`` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_dif(*words):
        with pytest.raises(SystemExit) as ended:
            cli.main(["dif", *map(str, words)], prog_name="irtaudit")
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return run_dif


def tables(files):
    return (files / "wide.csv", "--subjects", files / "models.csv")


def test_a_run_writes_everything_and_names_the_planted_item(run, files):
    words = (
        "--group",
        "developer:A,B",
        "--items",
        files / "items.csv",
        "--scope",
        "kind",
        "--cluster",
        "family",
    )
    ended = run(*tables(files), *words, *QUICK, "--out", "out")
    assert ended.exit_code == 0, ended.stderr
    assert "not supported" in ended.stdout.splitlines()[0]
    assert "item_03" in ended.stdout.splitlines()[1]
    assert ended.stdout.splitlines()[-1] == "Report: out/report.html"
    items, flags = (pd.read_csv(Path("out") / f"{name}.csv") for name in ("dif", "dif_flags"))
    assert items.columns.tolist() == ITEMS
    assert flags.columns.tolist() == FLAGS
    assert items["scope"].unique().tolist() == ["single score", "kind:x", "kind:y"]
    content = json.loads(Path("out/dif.json").read_text())
    assert content["verdict"]["reading"] == "not supported"
    assert content["schema_version"] == 1
    assert content["options"]["seed"] == 2026
    assert content["command"].startswith("irtaudit dif ")
    assert list(Path("out/figures").glob("*.svg"))
    page = Path("out/report.html").read_text()
    assert "item_03" in page
    assert content["command"].split()[-2:] == ["--out", "out"]


def test_quiet_prints_the_word_and_json_the_summary(run, files):
    words = (*tables(files), "--group", "developer:A,B", "--screen", "mh", *QUICK, "--out", "out")
    assert run(*words, "--quiet").stdout == "not supported\n"
    assert json.loads(run(*words, "--json").stdout)["options"]["screens"] == ["mh"]


def test_totals_without_simulations_need_no_fit(run, files):
    ended = run(
        *tables(files),
        "--group",
        "developer:A,B",
        "--match",
        "total",
        "--bands",
        "score",
        "--simulations",
        "0",
    )
    assert ended.exit_code == 0, ended.stderr
    assert not Path("irtaudit-report-dif/fits").exists()
    assert pd.read_csv("irtaudit-report-dif/dif.csv")["p_method"].str.startswith("chi-square").all()
    assert "No null was simulated" in ended.stdout


def test_names_that_a_spreadsheet_would_run_are_text_in_every_table(run, files):
    wide = pd.read_csv(files / "wide.csv", index_col=0)
    hostile = ["=1+1", "+cmd|x", "@SUM(A1)", "-2+3", "\t=x", "<script>x</script>"]
    wide.columns = [*hostile, *wide.columns[len(hostile) :]]
    wide.to_csv("hostile.csv")
    models = pd.read_csv(files / "models.csv", index_col=0)
    models.assign(developer=models["developer"].replace({"A": "=A()"})).to_csv("models.csv")
    totals = ("--match", "total", "--simulations", "0", "--out", "out")
    ended = run("hostile.csv", "--subjects", "models.csv", "--group", "developer:=A(),B", *totals)
    assert ended.exit_code == 0, ended.stderr
    tables = [pd.read_csv(path, dtype=str) for path in Path("out").glob("*.csv")]
    names = set().union(*(set(table["item"]) for table in tables if "item" in table))
    assert {f"'{name}" for name in hostile[:5]} <= names
    cells = pd.concat([table.select_dtypes("object").stack() for table in tables])
    words = cells[pd.to_numeric(cells, errors="coerce").isna()]
    assert not words.str.match(r"[=+\-@\t]").any()
    assert "<script>x" not in Path("out/report.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--group", "maker:A,B"), "no subject column 'maker'"),
        (("--group", "developer:A,C"), "No model has developer 'C'"),
        (("--group", "developer:A,A"), "two different levels"),
        (("--group", "lone:one,two"), "'one' has 1 model"),
        (("--group", "empty:A,B"), "No model has empty 'A'"),
        (("--group", "developer"), "expected COLUMN:REFERENCE,FOCAL"),
        (("--group", "developer:A,B", "--bands", "many"), "--bands is 'many'"),
        (("--group", "developer:A,B", "--bands", "score"), "needs match='total'"),
        (
            ("--group", "developer:A,B", "--bands", "76", *QUICK),
            "76 ability bands were asked for, but only 75",
        ),
        (("--group", "developer:A,B", "--screen", "mh,wald"), "no screen wald"),
        (("--group", "developer:A,B", "--scope", "kind", *QUICK), "kind"),
        (("--group", "developer:A,B", "--cluster", "lab", *QUICK), "no subject column 'lab'"),
        (("--group", "developer:A,B", "--simulations", "5"), "5 simulations cannot give"),
        (("--group", "developer:A,B", "--simulations", "10"), "use at least 19"),
    ],
)
def test_what_cannot_be_compared_ends_with_one_clear_line(run, files, words, message):
    ended = run(*tables(files), *words)
    assert ended.exit_code == 2
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert "Traceback" not in ended.stderr


def test_responses_that_are_missing_in_one_group_are_a_limit(run, files):
    wide = pd.read_csv(files / "wide.csv", index_col=0)
    group = pd.read_csv(files / "models.csv", index_col=0)["developer"]
    wide.iloc[(group == "A").to_numpy(), ::2] = float("nan")
    wide.to_csv("missing.csv")
    totals = ("--match", "total", "--simulations", "0", "--out", "out")
    words = ("--subjects", files / "models.csv", "--group", "developer:A,B", *totals)
    whole, missing = run(files / "wide.csv", *words), run("missing.csv", *words)
    said = [line for line in missing.stdout.splitlines() if "'developer'" in line and "missing" in line]
    assert len(said) == 1
    assert said[0] not in whole.stdout
    assert "Kruskal-Wallis" in Path("out/report.html").read_text()


def test_a_group_is_asked_for(run, files):
    ended = run(*tables(files))
    assert ended.exit_code == 2
    assert "--group" in ended.stderr
