import json
from pathlib import Path

import pandas as pd
import pytest

from irtaudit import cli

PUBLISHED = Path(__file__).parents[1] / "reference" / "harmful_refusal_by_model.csv"


@pytest.fixture
def run(capsys):
    """Run ``irtaudit check-table``: its exit code, stdout and stderr."""

    def run_command(*words):
        with pytest.raises(SystemExit) as ended:
            cli.main(["check-table", *map(str, words)], prog_name="irtaudit")
        return int(ended.value.code or 0), *capsys.readouterr()

    return run_command


def test_the_published_table_ends_with_code_1_and_names_its_failed_fits(run):
    code, out, err = run(PUBLISHED)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[-2] == "19 models: 9 failed fits, 0 overfits, 0 criteria that differ from their counts."
    assert lines[-1].endswith("25,790 training responses: implied by the printed BIC (median over models).")
    shown = next(line for line in lines if line.startswith("unidimensional_2pl:"))
    assert "unidimensional_1pl, which it contains" in shown
    assert "-8,100 against -12,026" in shown


def test_a_sound_table_ends_with_code_0(run, tmp_path):
    table = pd.read_csv(PUBLISHED)
    table[table["family"] == "3pl"].to_csv(tmp_path / "sound.csv", index=False)
    code, out, _ = run(tmp_path / "sound.csv")
    assert code == 0
    assert "note" not in out


def test_a_lower_training_likelihood_alone_is_a_note_and_ends_with_code_0(run, tmp_path):
    table = pd.read_csv(PUBLISHED)
    table[table["model"].str.startswith("confirmatory")].to_csv(tmp_path / "noted.csv", index=False)
    code, out, _ = run(tmp_path / "noted.csv")
    assert code == 0
    assert out.startswith(
        "confirmatory_3d_3pl: note, not flagged: training log-likelihood below that of confirmatory_3d_2pl, "
    )
    told = json.loads(run(tmp_path / "noted.csv", "--json")[1])
    assert (told["flagged"], told["findings"]) == (False, [])
    assert [row["model"] for row in told["lower_likelihoods"]] == ["confirmatory_3d_3pl"]


def test_one_finding_is_counted_as_one(run, tmp_path):
    table = pd.read_csv(PUBLISHED)
    table[table["model"].isin(["unidimensional_1pl", "unidimensional_2pl"])].to_csv(
        tmp_path / "one.csv", index=False
    )
    assert "2 models: 1 failed fit, 0 overfits, 0 criteria that differ" in run(tmp_path / "one.csv")[1]


def test_help_says_the_rule_that_is_applied(run):
    said = " ".join(run("--help")[1].split())
    assert "and the held-out log-loss worse by more than twice the larger SD" in said
    assert "A lower training likelihood alone is noted and flags nothing" in said


def test_an_impossible_log_likelihood_is_refused_not_taken_for_wrong_criteria(run, tmp_path):
    table = pd.read_csv(PUBLISHED)
    table.assign(train_log_lik=-table["train_log_lik"]).to_csv(tmp_path / "turned.csv", index=False)
    code, out, err = run(tmp_path / "turned.csv")
    assert (code, out) == (2, "")
    assert "turned.csv: column 'train_log_lik', row 1, model 'confirmatory_3d_1pl': found " in err


def test_json_for_programs(run):
    code, out, _ = run(PUBLISHED, "--json")
    told = json.loads(out)
    assert (code, told["flagged"], len(told["findings"]), told["criteria"]) == (1, True, 9, [])
    assert told["training_responses"] == 25_790


def test_bad_input_ends_with_code_2_and_names_file_and_column(run, tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    code, out, err = run(tmp_path / "other.csv")
    assert (code, out) == (2, "")
    assert "other.csv: the table has no column 'model'" in err
    assert run(tmp_path / "absent.csv")[0] == 2
