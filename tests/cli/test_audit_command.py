import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from irtaudit import cli
from irtaudit.dimensionality.plan import DEFAULT_MODELS, IrtPlan
from irtaudit.plan import plan_sha256, read_plan

sys.path.insert(0, str(Path(__file__).parents[1]))
from audit_panels import two_factor_panel

QUICK = ("--preset", "quick", "--restarts", "1", "--workers", "1")
ONE = ("--models", "unidimensional_1pl", *QUICK)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The simulated panel as wide and long CSV, its item table and a mask of held-out cells."""
    folder = tmp_path_factory.mktemp("panel")
    matrix = two_factor_panel(n_subjects=40)
    wide = pd.DataFrame(matrix.responses.astype(int), matrix.subjects.index, matrix.items.index)
    wide.to_csv(folder / "wide.csv")
    shuffled = wide.sample(frac=1, random_state=1).sample(frac=1, axis=1, random_state=1)
    shuffled.to_csv(folder / "shuffled.csv")
    matrix.items.to_csv(folder / "items.csv")
    held = [(split, s, i) for split in (1, 2) for s in wide.index[::3] for i in wide.columns[split::5]]
    pd.DataFrame(held, columns=["split", "subject", "item"]).to_csv(folder / "mask.csv", index=False)
    (wide * 0.5).to_csv(folder / "scores.csv")
    return folder


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run ``irtaudit audit`` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_audit_command(*words):
        with pytest.raises(SystemExit) as ended:
            cli.main(["audit", *map(str, words)], prog_name="irtaudit")
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return run_audit_command


def test_a_file_gives_a_verdict_three_lines_of_evidence_and_a_report(run, files, tmp_path):
    found = run(
        files / "wide.csv", "--items", files / "items.csv", "--factors", "kind", "--claim", "Score = skill",
        "--models", "unidimensional_2pl", *QUICK,
    )  # fmt: skip
    assert found.exit_code == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0] == "Score = skill: not supported"
    assert len([line for line in lines if line.startswith("  ")]) == 3
    assert lines[-1] == f"Report: {Path('irtaudit-report', 'report.html')}"
    assert (tmp_path / "irtaudit-report" / "report.html").stat().st_size > 10_000
    told = json.loads((tmp_path / "irtaudit-report" / "audit.json").read_text(encoding="utf-8"))
    assert set(told["settings"]["models"]) == {"unidimensional_2pl", "confirmatory_kind_2pl"}
    assert told["command"] == (
        f"irtaudit audit {files / 'wide.csv'} --items {files / 'items.csv'} --factors kind "
        "--models unidimensional_2pl --claim 'Score = skill' --preset quick --restarts 1 --workers 1"
    )


def test_quiet_prints_the_word_alone_and_nothing_to_stderr(run, files):
    found = run(files / "wide.csv", *ONE, "--quiet")
    assert (found.stdout, found.stderr) == ("inconclusive\n", "")


def test_one_dimension_alone_is_told_to_add_a_challenger(run, files):
    said = run(files / "wide.csv", *ONE).stdout
    assert "What would change it? A challenger with several dimensions, of which there was none: add " in said
    assert "exploratory_2d_2pl to the models (--models), or name a column of item kinds (--factors)." in said
    assert "fit succeeds" not in said


def test_no_progress_where_nobody_watches(run, files):
    assert run(files / "wide.csv", *ONE).stderr == ""


def test_json_prints_what_audit_json_holds(run, files, tmp_path):
    found = run(files / "wide.csv", *ONE, "--out", "there", "--json")
    told = json.loads(found.stdout)
    assert told.pop("report") == str(Path("there", "report.html"))
    assert told == json.loads((tmp_path / "there" / "audit.json").read_text(encoding="utf-8"))
    assert told["verdict"]["reading"] == "inconclusive"


def test_a_permuted_file_gives_the_same_audit(run, files):
    numbers = []
    for name in ("wide.csv", "shuffled.csv"):
        told = json.loads(run(files / name, *ONE, "--out", name, "--json").stdout)
        numbers.append({key: told[key] for key in ("comparison", "verdict", "settings", "seeds")})
    assert numbers[0] == numbers[1]


def test_own_held_out_cells(run, files):
    told = json.loads(run(files / "wide.csv", *ONE, "--heldout", files / "mask.csv", "--json").stdout)
    assert told["seeds"]["splits"] == [None, None]


PLAN = """
kind = "irt"
schema_version = 1
reading = "Score = skill"
[data]
responses = "wide.csv"
items = "items.csv"
{data}
[models]
names = ["unidimensional_1pl", "confirmatory_kind_2pl"]
[fit]
preset = "quick"
restarts = 1
[[followups]]
name = "without visual items"
column = "kind"
leave_out = ["visual"]
models = ["unidimensional_1pl", "unidimensional_2pl"]
"""


@pytest.fixture
def plan(files):
    """A plan beside the data, which names them by their place there."""
    path = files / "plan.toml"
    path.write_text(PLAN.format(data=""), encoding="utf-8")
    return path


def test_a_plan_says_what_is_asked(run, plan, files, tmp_path):
    found = run("--plan", plan, "--workers", "1", "--out", "planned")
    assert found.exit_code == 0, found.stderr
    assert (found.stderr, found.stdout.partition(":")[0]) == ("", "Score = skill")
    told = json.loads((tmp_path / "planned" / "audit.json").read_text(encoding="utf-8"))
    filed = read_plan(plan, IrtPlan)
    assert told["plan"]["sha256"] == plan_sha256(filed)
    assert (told["plan"]["status"], told["plan"]["deviations"]) == ("pre-specified", [])
    assert told["plan"]["content"]["fit"] == {"preset": "quick", "restarts": 1}
    assert set(told["settings"]["models"]) == {"unidimensional_1pl", "confirmatory_kind_2pl"}
    page = (tmp_path / "planned" / "report.html").read_text(encoding="utf-8")
    for text in (
        told["plan"]["sha256"],
        told["data"]["sha256"],
        "pre-specified",
        "The run follows its plan.",
    ):
        assert text in page
    assert "preregistered" not in page
    followed = pd.read_csv(tmp_path / "planned" / "followups.csv")
    assert set(followed["followup"]) == {"without visual items"}
    flags = run(files / "wide.csv", "--items", files / "items.csv", "--models", "unidimensional_1pl", *QUICK,
                "--factors", "kind", "--factors", "kind", "--out", "by_flags", "--json")  # fmt: skip
    by_flags = json.loads(flags.stdout)
    assert by_flags["comparison"] == told["comparison"]
    assert by_flags["plan"] is None


def test_a_registration_stands_in_page_and_summary_as_what_it_is(run, plan, tmp_path):
    plan.write_text('registration = "https://osf.io/abcde"\n' + PLAN.format(data=""), encoding="utf-8")
    assert run("--plan", plan, "--models", "unidimensional_1pl", *QUICK, "--out", "named").exit_code == 0
    told = json.loads((tmp_path / "named" / "audit.json").read_text(encoding="utf-8"))["plan"]
    says = "preregistered (the plan names the registration https://osf.io/abcde; not checked)"
    assert (told["status"], told["standing"]) == ("preregistered", says)
    page = (tmp_path / "named" / "report.html").read_text(encoding="utf-8")
    assert f"{says}, sha256" in page
    assert f"The plan is {says}." in page
    assert page.count("preregistered") == page.count("not checked")
    plan.write_text('registration = "foo"\n' + PLAN.format(data=""), encoding="utf-8")
    refused = run("--plan", plan, "--out", "refused")
    assert refused.exit_code == 2
    assert "registration: found 'foo', expected where a registry holds this plan" in refused.stderr


def test_every_flag_that_overrides_the_plan_is_a_deviation_in_the_outputs(run, plan, files, tmp_path):
    words = ("--plan", plan, "--workers", "1", "--out", "bent")
    found = run(files / "shuffled.csv", *words, "--seed", "7", "--restarts", "1", "--claim", "Score = luck")
    assert found.exit_code == 0, found.stderr
    told = json.loads((tmp_path / "bent" / "audit.json").read_text(encoding="utf-8"))["plan"]
    assert {one["key"]: (one["planned"], one["used"]) for one in told["deviations"]} == {
        "seed": (2026, 7),
        "reading": ("Score = skill", "Score = luck"),
        "data.responses": ("wide.csv", "shuffled.csv"),
    }
    assert told["sha256"] == plan_sha256(read_plan(plan, IrtPlan))
    page = (tmp_path / "bent" / "report.html").read_text(encoding="utf-8")
    assert "The run departs from its plan in 3 ways." in page
    assert "deviation from the plan: seed is 7, not 2026" in found.stderr


def test_other_data_than_the_plan_was_made_for_are_a_deviation(run, plan, tmp_path):
    plan.write_text(PLAN.format(data=f'sha256 = "{"0" * 64}"'), encoding="utf-8")
    assert run("--plan", plan, "--workers", "1", "--out", "other").exit_code == 0
    told = json.loads((tmp_path / "other" / "audit.json").read_text(encoding="utf-8"))
    (one,) = told["plan"]["deviations"]
    assert (one["key"], one["planned"], one["used"]) == ("data.sha256", "0" * 64, told["data"]["sha256"])


def test_a_plan_made_by_the_command_runs_without_deviation(run, files, tmp_path, capsys):
    words = ["plan", "init", files / "wide.csv", "--kind", "irt", "--items", files / "items.csv"]
    with pytest.raises(SystemExit) as ended:
        cli.main([*map(str, words)], prog_name="irtaudit")
    assert (ended.value.code or 0, "irtaudit audit --plan plan.toml" in capsys.readouterr().out) == (0, True)
    assert run("--plan", "plan.toml", *ONE, "--json", "--models", "unidimensional_1pl").exit_code == 0
    told = json.loads((tmp_path / "irtaudit-report" / "audit.json").read_text(encoding="utf-8"))
    assert {one["key"] for one in told["plan"]["deviations"]} == {
        "models.names",
        "fit.preset",
        "fit.restarts",
    }


def test_a_plan_without_responses_asks_for_them(run, plan, files):
    plan.write_text('kind = "irt"\nschema_version = 1\n', encoding="utf-8")
    refused = run("--plan", plan)
    assert (refused.exit_code, "names no responses" in refused.stderr) == (2, True)
    assert run(files / "wide.csv", "--plan", plan, *ONE, "--quiet").stdout == "inconclusive\n"


def test_scores_need_a_rule(run, files):
    refused = run(files / "scores.csv", *ONE)
    assert refused.exit_code == 2
    assert run(files / "scores.csv", *ONE, "--pass-at", "0.5").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--demo"),
        (("wide.csv", "--demo"), "not both"),
        (("--demo", "--plan", "plan.toml"), "not both"),
        (("--plan", "absent.toml"), "absent.toml: there is no such plan"),
        (("--plan", "wide.csv"), "wide.csv is not TOML"),
        (("--demo", "--items", "items.csv"), "brings its own data"),
        (("absent.csv",), "absent.csv: there is no such file"),
        (
            ("wide.csv", "--factors", "domain"),
            "needs the item column 'domain'; nothing describes the items here. Name a table of them with "
            "--items (",
        ),
        (("wide.csv", "--items", "items.csv", "--factors", "domain"), "'domain'; the item table has: 'kind'"),
        (
            ("wide.csv", "--group", "developer:A,B"),
            "no subject column 'developer'; nothing describes the subjects here. Name a table of them with "
            "--subjects (",
        ),
        (("wide.csv", "--cluster", "lab"), "'lab' to name families; nothing describes the subjects here."),
        (("wide.csv", "--models", "bidimensional"), "'bidimensional' is not a model name"),
        (
            ("wide.csv", "--models", "unidimensional_1pl,unidimensional_1pl"),
            "names unidimensional_1pl more than once",
        ),
        (("wide.csv", "--items", "mask.csv"), "mask.csv"),
        (("wide.csv", "--heldout", "items.csv"), "items.csv"),
        (("wide.csv", "--device", "abacus", *QUICK), "abacus"),
        (("wide.csv", "--restarts", "0"), "restarts"),
        (("wide.csv", "--pass-at", "2"), "pass_at"),
    ],
)
def test_bad_input_ends_with_code_2_and_no_traceback(run, files, monkeypatch, words, said):
    monkeypatch.chdir(files)
    found = run(*words, "--out", "bad")
    assert found.exit_code == 2
    assert said in found.stderr
    assert "Traceback" not in found.stderr
    assert found.stdout == ""


def test_a_folder_of_another_audit_ends_with_code_2(run, files):
    assert run(files / "wide.csv", *ONE).exit_code == 0
    refused = run(files / "wide.csv", *ONE, "--seed", "1")
    assert refused.exit_code == 2
    assert "--out" in refused.stderr
    assert run(files / "wide.csv", *ONE).exit_code == 0


def test_a_folder_that_cannot_be_made_ends_with_code_3(run, files, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    found = run(files / "wide.csv", *ONE, "--out", "file/report")
    assert (found.exit_code, "file" in found.stderr) == (3, True)


def test_an_interrupted_audit_goes_on_where_it_stopped(files, tmp_path):
    """A real process and a real signal: stopped after its first saved fits, finished by the same command."""
    words = [
        sys.executable,
        "-m",
        "irtaudit",
        "audit",
        str(files / "wide.csv"),
        "--workers",
        "1",
        "--out",
        "out",
    ]
    words += ["--models", "unidimensional_1pl,unidimensional_2pl", "--quiet"]
    fits = tmp_path / "out" / "fits"
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: any(fits.glob("*.safetensors")), process)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert f"Finished work is kept in {Path('out', 'fits')}: the same command again goes on" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out" / "audit.json").exists()
    saved = {path: path.stat().st_mtime_ns for path in fits.glob("*.safetensors")}
    assert 1 <= len(saved) < 10
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "inconclusive\n"), done.stderr
    assert all(path.stat().st_mtime_ns == written for path, written in saved.items())


def wait_for(condition, process, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the audit ended before it could be interrupted"
        assert time.monotonic() < end, "no fit was saved in time"
        time.sleep(0.01)


def test_help_needs_nothing_heavy():
    code = "import sys; from irtaudit import cli; cli.main(['audit', '--help'], standalone_mode=False)\n"
    code += "sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, "--factors" in done.stdout) == (0, True)


def test_only_models_that_nobody_named_may_be_left_out(run, monkeypatch, tmp_path, files):
    asked = []

    def stop(_matrix, **options):
        asked.append((options["models"], options["optional"]))
        raise KeyboardInterrupt

    monkeypatch.setattr("irtaudit.audit.run_audit", stop)
    data = (files / "wide.csv", "--items", files / "items.csv")
    plan = tmp_path / "plan.toml"
    head = 'kind = "irt"\nschema_version = 1\n'
    names = ", ".join(f'"{name}"' for name in DEFAULT_MODELS)
    for words, said in (
        ((), ""),
        (("--factors", "kind"), ""),
        (("--models", ",".join(DEFAULT_MODELS)), ""),
        (("--plan", plan), "[fit]\nrestarts = 3\n"),
        (("--plan", plan), f"[models]\nnames = [{names}]\n"),
    ):
        plan.write_text(head + said)
        assert run(*data, *words).exit_code == 130
    names = [models for models, _ in asked]
    assert names == [DEFAULT_MODELS, (*DEFAULT_MODELS, "confirmatory_kind_2pl"), *[DEFAULT_MODELS] * 3]
    assert [optional for _, optional in asked] == [DEFAULT_MODELS, DEFAULT_MODELS, (), DEFAULT_MODELS, ()]


def test_a_small_panel_is_audited_without_the_models_that_it_cannot_carry(run, tmp_path):
    (tmp_path / "x.csv").write_text("m,a,b,c\n1,1,0,1\n2,0,1,1\n3,1,1,0\n4,0,0,0\n")
    found = run("x.csv", *QUICK, "--out", "out")
    assert (found.exit_code, found.stdout.splitlines()[0].partition(": ")[2]) == (0, "inconclusive")
    assert (
        "note: 4 models x 3 items are too few for exploratory_3d_2pl, exploratory_4d_2pl: left out"
        in found.stderr
    )
    told = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert set(told["settings"]["models"]) == {*DEFAULT_MODELS} - {"exploratory_3d_2pl", "exploratory_4d_2pl"}
    assert any("exploratory_4d_2pl" in note for note in told["data"]["notes"])
    assert (
        "4 models x 3 items are too few for exploratory_3d_2pl" in (tmp_path / "out/report.html").read_text()
    )
    named = run("x.csv", *QUICK, "--models", ",".join(DEFAULT_MODELS), "--out", "named")
    assert named.exit_code == 2
    assert "exploratory_3d_2pl has 3 dimensions" in named.stderr
    assert not (tmp_path / "named").exists()


def test_the_demo_audits_the_bundled_panel(run, monkeypatch):
    seen = {}

    def stop(matrix, **options):
        seen.update(options, shape=matrix.responses.shape)
        raise KeyboardInterrupt

    monkeypatch.setattr("irtaudit.audit.run_audit", stop)
    found = run("--demo")
    assert found.exit_code == 130
    assert found.stderr == "irtaudit: error: interrupted, before anything was finished.\n"
    assert seen["shape"] == (134, 500)
    assert seen["models"] == (*DEFAULT_MODELS, "confirmatory_repo_2pl")
    assert seen["planned"] is None
    assert np.isclose(seen["n_restarts"], 20)
