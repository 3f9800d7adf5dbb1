from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from irtaudit.data.logs import CANCELLED, ERROR, UNSCORED, Answer, Collector, Logs
from irtaudit.data.panel_logs import panel_from_logs
from irtaudit.errors import DataError


def logs(*answers: Answer, source: str = "logs/") -> Logs:
    found = Collector(source)
    found.answers += answers
    return found.logs()


def judge(
    model: str, item: str, answer: str | None, target: str, *, trial: int = 0, **more: object
) -> Answer:
    score = float(answer == target)
    return Answer(model, "judge", item, trial, "acc", score, answer=answer, target=target)._replace(**more)


JUDGED = [
    judge("openai/gpt-4o", "1", "unsafe", "unsafe"),
    judge("openai/gpt-4o", "2", "safe", "unsafe"),
    judge("openai/gpt-4o", "3", "safe", "safe"),
    judge("openai/gpt-4o", "4", "unsafe", "safe"),
    judge("somebody/else", "1", "Unsafe", "unsafe", score=1.0),
    judge("somebody/else", "2", None, "unsafe", score=0.0, valid=False),
    judge("somebody/else", "3", None, "safe", score=np.nan, status=UNSCORED),
    judge("somebody/else", "4", "safe", "safe", score=np.nan, status=ERROR),
]


def test_a_row_per_model_with_what_is_behind_each_score() -> None:
    table, notes = panel_from_logs([logs(*JUDGED)])
    assert table.columns.tolist() == [
        *("model", "organization", "judge", "judge_n", "judge_valid"),
        *("judge_tp", "judge_fp", "judge_fn", "judge_tn"),
    ]
    one, other = table.to_dict("records")
    assert (one["model"], one["organization"]) == ("openai/gpt-4o", "OpenAI")
    assert (one["judge"], one["judge_n"], one["judge_valid"]) == (0.5, 4, 1.0)
    assert [one[f"judge_{part}"] for part in ("tp", "fp", "fn", "tn")] == [1, 1, 1, 1]
    assert other["organization"] == "unknown (somebody/else)"
    # of four samples one broke off, one had no score and one no answer that could be taken
    assert (other["judge"], other["judge_n"], other["judge_valid"]) == (1.0, 1, pytest.approx(1 / 3))
    assert notes == (
        "1 sample(s) ran without being scored and have no score",
        "1 sample(s) broke off and have no score",
    )


def test_trials_of_an_item_count_once() -> None:
    rows = [judge("m", "1", "safe", "safe", trial=t) for t in range(3)]
    rows += [judge("m", "1", "unsafe", "safe", trial=3), judge("m", "2", "safe", "safe")]
    table, _ = panel_from_logs([logs(*rows)])
    assert table.loc[0, ["judge", "judge_n"]].tolist() == [(0.75 + 1) / 2, 2]


def test_the_positive_label_decides_the_counts() -> None:
    table, _ = panel_from_logs([logs(*JUDGED)], positive=["SAFE"])
    assert table.loc[0, ["judge_tp", "judge_fp", "judge_fn", "judge_tn"]].tolist() == [1, 1, 1, 1]
    assert table.loc[1, ["judge_tp", "judge_fn"]].tolist() == [0, 0]
    without, _ = panel_from_logs([logs(*JUDGED)], positive=["dangerous"])
    assert "judge_tp" not in without


def test_free_answers_have_no_counts() -> None:
    rows = [judge("m", str(i), "A", letter) for i, letter in enumerate("ABC")]
    assert "judge_tp" not in panel_from_logs([logs(*rows)])[0]


def test_the_likeliest_of_several_metrics_is_told_and_another_can_be_named() -> None:
    rows = [
        row._replace(metric=metric, score=value)
        for row in JUDGED[:2]
        for metric, value in (("num_tokens", 37.0), ("exact_match", row.score))
    ]
    table, notes = panel_from_logs([logs(*rows)])
    assert table["judge"].tolist() == [0.5]
    assert notes[0] == "judge: the score is 'exact_match' of 2 metrics: 'exact_match', 'num_tokens'"
    assert panel_from_logs([logs(*rows)], metric="num_tokens")[0]["judge"].tolist() == [37.0]
    with pytest.raises(DataError, match="has no metric 'f1'"):
        panel_from_logs([logs(*rows)], metric="f1")


def test_several_logs_make_one_table() -> None:
    second = [row._replace(task="harm", metric="safety_score") for row in JUDGED[:4]]
    table, _ = panel_from_logs([logs(*JUDGED), logs(*second, source="more/")])
    assert table["harm_n"].isna().tolist() == [False, True]
    assert {"judge", "harm"} <= set(table)


def test_the_same_answers_twice_are_refused() -> None:
    with pytest.raises(DataError, match="openai/gpt-4o on judge stands in logs/ and in copy/; give one"):
        panel_from_logs([logs(*JUDGED), logs(*JUDGED[:2], source="copy/")])


def test_nothing_scored_is_said() -> None:
    rows = [judge("m", "1", None, "safe", metric="", score=np.nan, status=CANCELLED)]
    with pytest.raises(DataError, match="'logs/': no sample has a score"):
        panel_from_logs([logs(*rows)])


def test_models_that_answered_other_numbers_of_items_are_told() -> None:
    _, notes = panel_from_logs([logs(*JUDGED[:5])])
    assert "Models answered different numbers of items of 'judge'" in notes


def test_a_table_of_models_names_the_makers(tmp_path: pytest.TempPathFactory) -> None:
    path = tmp_path / "models.csv"
    pd.DataFrame({"model": ["some*"], "developer": ["Acme"], "access": ["open"]}).to_csv(path, index=False)
    table, _ = panel_from_logs([logs(*JUDGED)], models=path)
    assert table["organization"].tolist() == ["unknown (openai/gpt-4o)", "Acme"]
