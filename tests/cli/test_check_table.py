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
    assert run(tmp_path / "sound.csv")[0] == 0


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
