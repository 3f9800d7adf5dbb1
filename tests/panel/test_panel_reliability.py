from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from panel_simulation import panel_of, plan_for

from irtaudit.data.responses import ResponseMatrix
from irtaudit.panel.reliability import coder_agreement, reliability
from irtaudit.stats.agreement import krippendorff_alpha

RNG = np.random.default_rng(0)
SHARES = np.clip(RNG.normal(0.5, 0.2, size=20), 0.05, 0.95)


def test_worst_case_error_from_the_number_of_items() -> None:
    plan = plan_for(
        {
            "a": {"role": "benchmark", "items": 100, "scale": [0, 1]},
            "b": {"role": "benchmark", "items": "b_n", "scale": [0, 100]},
        }
    )
    panel = panel_of({"a": SHARES, "b": 100 * SHARES}, plan, details={"b_n": [400] * 20})
    table, lost = reliability(panel, plan)
    assert not lost
    values = table.set_index("column")["value"]
    assert values["a"] == pytest.approx(0.05 / SHARES.std(ddof=1))
    assert values["b"] == pytest.approx(0.025 / SHARES.std(ddof=1))


def test_halves_and_a_second_grader_from_columns() -> None:
    plan = plan_for({"a": {"role": "benchmark", "halves": ["h1", "h2"], "regrade": "a2"}, "b": "benchmark"})
    noise = RNG.normal(0, 0.03, size=(3, 20))
    details = {"h1": SHARES + noise[0], "h2": SHARES + noise[1], "a2": SHARES + noise[2]}
    table, (lost,) = reliability(panel_of({"a": SHARES, "b": SHARES[::-1]}, plan, details=details), plan)
    values = table.set_index("what")["value"]
    r = pd.Series(details["h1"]).rank().corr(pd.Series(details["h2"]).rank())
    assert values["halves"] == pytest.approx(2 * r / (1 + r))
    assert values["second grader"] == pytest.approx(
        pd.Series(SHARES).rank().corr(pd.Series(details["a2"]).rank())
    )
    assert lost.what == "b"


def test_item_responses_give_split_half_and_stability() -> None:
    responses = (RNG.random((20, 200)) < SHARES[:, None]).astype(float)
    plan = plan_for({"a": {"role": "benchmark", "responses": "items.csv"}})
    panel = panel_of({"a": responses.mean(axis=1)}, plan)
    table, _ = reliability(panel, plan, {"a": ResponseMatrix.from_array(responses)})
    values = table.set_index("what")["value"]
    truth = SHARES.var() / (SHARES.var() + (SHARES * (1 - SHARES)).mean() / 200)
    assert values["split-half"] == pytest.approx(truth, abs=4 * (1 - truth**2) / np.sqrt(20))
    assert values["rank stability"] > 0.9


def test_coders_agree_on_constructs() -> None:
    codes = pd.DataFrame(
        {
            "c1": ["harm", "risk", "injection"],
            "c2": ["harm", "risk", "risk"],
            "c3": ["harm", np.nan, "injection"],
        },
        index=["ah", "rj", "ia"],
    )
    plan = plan_for({"a": "benchmark"}, coding={"file": "coders.csv"})
    found = coder_agreement(codes, plan)
    numbers = np.array([[0, 0, 0], [1, 1, np.nan], [2, 1, 2]])
    assert found.alpha == pytest.approx(krippendorff_alpha(numbers))
    assert found.codes.to_dict("records") == [
        {"column": "ah", "most_common": "harm", "votes": 3, "coders": 3},
        {"column": "rj", "most_common": "risk", "votes": 2, "coders": 2},
        {"column": "ia", "most_common": "injection", "votes": 2, "coders": 3},
    ]


def test_ordered_codes_use_their_order() -> None:
    codes = pd.DataFrame({"c1": ["1", "2", "3"], "c2": ["1", "2", "2"]})
    plan = plan_for({"a": "benchmark"}, coding={"file": "c.csv", "level": "interval"})
    expected = krippendorff_alpha([[1, 1], [2, 2], [3, 2]], "interval")
    assert coder_agreement(codes, plan).alpha == pytest.approx(expected)
