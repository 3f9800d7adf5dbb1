from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtaudit.dimensionality.nested import (
    failed_fits,
    finding_sentence,
    is_nested,
    lower_likelihoods,
    nested_findings,
)

PUBLISHED = Path(__file__).parents[1] / "reference" / "harmful_refusal_by_model.csv"


@pytest.fixture
def published():
    table = pd.read_csv(PUBLISHED)
    return table.assign(structure=table["model"].str.split("_").str[0])


def test_the_published_table_has_exactly_the_known_failed_fits(published):
    findings = nested_findings(published)
    expected = {"unidimensional_2pl", *(f"exploratory_{k}d_2pl" for k in range(3, 11))}
    assert set(failed_fits(findings)) == expected
    assert len(findings) == len(expected)
    shown = findings.set_index("model")["nested"]
    assert shown["unidimensional_2pl"] == "unidimensional_1pl"
    assert shown["exploratory_3d_2pl"] == "confirmatory_3d_2pl"


def test_the_published_verdict_does_not_depend_on_the_order_of_rows(published):
    shuffled = published.sample(frac=1, random_state=3)
    assert set(failed_fits(nested_findings(shuffled))) == set(failed_fits(nested_findings(published)))


def _table(**changes):
    rows = {
        "unidimensional_1pl": ("1pl", "unidimensional", 1, 0.30, 0.01, -100.0),
        "unidimensional_2pl": ("2pl", "unidimensional", 1, 0.29, 0.01, -90.0),
    }
    columns = ["family", "structure", "dims", "log_loss", "log_loss_sd", "train_log_lik"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("model").reset_index()
    for column, value in changes.items():
        table.loc[1, column] = value
    return table


def test_worse_and_better_trained_is_an_overfit():
    (finding,) = nested_findings(_table(log_loss=0.33)).to_dict("records")
    assert (finding["finding"], finding["nested"]) == ("overfit", "unidimensional_1pl")
    assert failed_fits(nested_findings(_table(log_loss=0.33))) == []


def test_worse_and_worse_trained_is_a_failed_fit():
    findings = nested_findings(_table(log_loss=0.33, train_log_lik=-101.0))
    assert failed_fits(findings) == ["unidimensional_2pl"]
    assert "-100 against -101" in finding_sentence(findings.iloc[0])


def test_within_two_of_the_larger_sd_nothing_is_found():
    assert nested_findings(_table(log_loss=0.33, log_loss_sd=0.0151)).empty
    assert len(nested_findings(_table(log_loss=0.33, log_loss_sd=0.0149))) == 1


def test_only_less_training_likelihood_is_no_failed_fit_but_told():
    table = _table(train_log_lik=-500.0)
    assert nested_findings(table).empty
    (row,) = lower_likelihoods(table).to_dict("records")
    assert row == {
        "model": "unidimensional_2pl",
        "nested": "unidimensional_1pl",
        "train_log_lik": -500.0,
        "nested_train_log_lik": -100.0,
    }
    assert lower_likelihoods(_table()).empty
    assert len(lower_likelihoods(_table(train_log_lik=-100.01))) == 1


def test_every_published_failed_fit_has_the_lower_likelihood(published):
    lower = lower_likelihoods(published)
    assert set(failed_fits(nested_findings(published))) <= set(lower["model"])
    assert (lower["train_log_lik"] < lower["nested_train_log_lik"]).all()


def test_without_a_spread_nothing_is_found():
    assert nested_findings(_table(log_loss=0.9, train_log_lik=-500.0, log_loss_sd=np.nan)).empty


@pytest.mark.parametrize(
    ("inner", "outer", "nested"),
    [
        ("unidimensional_1pl", "unidimensional_3pl", True),
        ("unidimensional_3pl", "unidimensional_1pl", False),
        ("unidimensional_2pl", "confirmatory_7d_2pl", True),
        ("unidimensional_3pl", "exploratory_4d_2pl", False),
        ("exploratory_2d_2pl", "exploratory_3d_3pl", True),
        ("exploratory_3d_2pl", "exploratory_2d_2pl", False),
        ("confirmatory_3d_1pl", "confirmatory_3d_2pl", True),
        ("confirmatory_3d_2pl", "confirmatory_7d_2pl", False),
        ("confirmatory_3d_2pl", "exploratory_3d_2pl", True),
        ("confirmatory_7d_2pl", "exploratory_3d_2pl", False),
        ("exploratory_3d_2pl", "confirmatory_3d_2pl", False),
        ("unidimensional_2pl", "unidimensional_2pl", False),
    ],
)
def test_which_model_is_a_special_case_of_which(published, inner, outer, nested):
    rows = published.set_index("model", drop=False)
    assert is_nested(rows.loc[inner], rows.loc[outer]) is nested
