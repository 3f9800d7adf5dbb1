from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtaudit.dimensionality.published import ASSUMED_SD, check_table, read_comparison
from irtaudit.errors import DataError

PUBLISHED = Path(__file__).parents[1] / "reference" / "harmful_refusal_by_model.csv"
FAILED = {"unidimensional_2pl", *(f"exploratory_{k}d_2pl" for k in range(3, 11))}
TRAINING_RESPONSES = 25_790
"""Printed beside the table by the paper."""


@pytest.fixture
def printed():
    return read_comparison(PUBLISHED)


def test_the_published_table_is_flagged_for_its_failed_fits_and_for_nothing_else(printed):
    found = check_table(printed)
    assert set(found.findings["model"]) == FAILED
    assert set(found.findings["finding"]) == {"failed fit"}
    assert found.criteria.empty
    assert found.flagged


def test_a_lower_training_likelihood_alone_is_told_and_flags_nothing(printed):
    sound = printed[printed["family"] == "3pl"]
    found = check_table(sound)
    assert not found.flagged
    assert found.lower.empty
    both = check_table(printed[~printed["model"].isin(FAILED)])
    (row,) = both.lower.to_dict("records")
    assert (row["model"], row["nested"]) == ("confirmatory_3d_3pl", "confirmatory_3d_2pl")
    assert row["train_log_lik"] < row["nested_train_log_lik"]
    assert not both.flagged
    assert not set(check_table(printed).lower["model"]) & FAILED


def test_a_check_prints_in_one_line(printed):
    shown = repr(check_table(printed))
    assert shown == "TableCheck(19 rows, 9 findings, 0 criteria off, 1 note)"


def test_the_notes_name_models_as_the_table_does(printed):
    table = printed[printed["model"].str.startswith("confirmatory_3d")].assign(structure="confirmatory")
    found = check_table(table.assign(model=[f"C3 ({family.upper()})" for family in table["family"]]))
    assert found.lower[["model", "nested"]].to_numpy().tolist() == [["C3 (3PL)", "C3 (2PL)"]]


def test_the_printed_criteria_imply_the_number_of_training_responses(printed):
    found = check_table(printed)
    assert found.responses == TRAINING_RESPONSES
    assert found.table["bic_recomputed"].to_numpy() == pytest.approx(
        pd.to_numeric(printed["bic"]).to_numpy(), abs=0.0065
    )
    given = check_table(printed, responses=TRAINING_RESPONSES)
    assert (given.criteria.empty, given.responses_from) == (True, "given")


def test_a_criterion_off_by_more_than_rounding_is_flagged(printed):
    tampered = printed.copy()
    tampered.loc[1, "aic"] = "13707.35"
    tampered.loc[2, "bic"] = "26450.37"
    found = check_table(tampered)
    assert found.criteria[["model", "criterion"]].to_numpy().tolist() == [
        ["confirmatory_3d_2pl", "aic"],
        ["confirmatory_3d_3pl", "bic"],
    ]
    assert found.criteria["recomputed"].tolist() == pytest.approx([13707.334, 26448.37], abs=0.006)


def test_a_wrong_number_of_responses_shows_in_every_bic(printed):
    found = check_table(printed, responses=32_238)
    assert len(found.criteria) == len(printed)
    assert set(found.criteria["criterion"]) == {"bic"}


def test_without_sds_an_assumed_one_flags_the_same_fits(printed):
    bare = printed[["model", "family", "dims", "log_loss", "train_log_lik"]]
    found = check_table(bare)
    assert found.sd == ASSUMED_SD
    assert set(found.findings["model"]) == FAILED
    assert found.responses is None
    assert "aic_recomputed" not in found.table
    assert check_table(bare, sd=0.2).findings.empty


def test_names_do_not_matter_where_structure_family_and_dims_say_it(printed):
    structure = printed["model"].str.partition("_")[0].str.title()
    named = printed["structure"] = structure
    family = printed["family"].str.upper()
    renamed = printed.assign(
        model=[f"{s} {k}-D ({f})" for s, k, f in zip(named, printed["dims"], family, strict=True)],
        family=family,
    )
    found = check_table(renamed)
    assert len(found.findings) == len(FAILED)
    row = found.findings.set_index("model").loc["Unidimensional 1-D (2PL)"]
    assert row["nested"] == "Unidimensional 1-D (1PL)"


def test_a_sound_table_and_our_baselines_pass(printed):
    sound = printed[~printed["model"].isin(FAILED)].assign(structure="")
    sound["structure"] = sound["model"].str.partition("_")[0]
    baseline = dict(sound.iloc[0]) | {"model": "item_means", "family": "additive", "structure": "baseline"}
    baseline |= {"dims": "0", "aic": "", "bic": "", "log_loss": "9"}
    found = check_table(pd.concat([sound, pd.DataFrame([baseline])], ignore_index=True))
    assert not found.flagged


def test_numbers_as_papers_print_them(printed):
    typeset = printed.assign(
        train_log_lik=[f"{float(x):,.3f}".replace("-", "\N{MINUS SIGN}") for x in printed["train_log_lik"]],
        aic=[f"{float(x):,.2f}" for x in printed["aic"]],
    )
    found = check_table(typeset)
    assert set(found.findings["model"]) == FAILED
    assert found.criteria.empty
    assert np.allclose(found.table["train_log_lik"], pd.to_numeric(printed["train_log_lik"]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop(columns="train_log_lik"), "no column 'train_log_lik'"),
        (lambda t: t.assign(family="4pl"), "expected one of 1pl, 2pl, 3pl"),
        (lambda t: t.assign(model="m" + t["model"]), "column 'structure', model 'mconfirmatory_3d_1pl'"),
        (lambda t: t.assign(log_loss="about .3"), "'about .3' is not a number"),
        (lambda t: t.assign(log_loss=None), "is not a number"),
        (
            lambda t: t.assign(train_log_lik=t["train_log_lik"].where(t.index != 1, "5814.667")),
            "column 'train_log_lik', row 2, model 'confirmatory_3d_2pl': found 5,814.67, expected 0 or less",
        ),
        (
            lambda t: t.assign(log_loss="-0.3"),
            "row 1, model 'confirmatory_3d_1pl': found -0.3, expected 0 or",
        ),
        (lambda t: t.assign(log_loss_sd="-0.01"), "column 'log_loss_sd', row 1"),
        (lambda t: pd.concat([t, t.iloc[:1]], ignore_index=True), "same model twice: confirmatory_3d_1pl"),
    ],
)
def test_a_table_that_is_none_says_which_cell(printed, change, said):
    with pytest.raises(DataError, match=r"column|model") as refused:
        check_table(change(printed))
    assert said in str(refused.value)


def test_a_perfect_fit_is_possible(printed):
    table = printed.assign(train_log_lik="0", aic="", bic="")
    found = check_table(table)
    assert (found.table["train_log_lik"] == 0).all()
    assert found.responses is None  # no BIC to imply it


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("dims", -2, "found -2, expected a whole number, 2 to"),
        ("dims", 2.5, "whole number"),
        ("dims", 1, "in exploratory rows"),
        ("dims", 1e300, "whole number"),
        ("train_cells", -5, "found -5, expected 1 to"),
        ("fitted_quantities", -100, "found -100, expected 0 to"),
        ("fitted_quantities", 1e308, "expected 0 to"),
        ("bic", 1e300, "'bic', row 5"),
        ("model", " ", "row 5: no name"),
        ("model", None, "row 5: no name"),
    ],
)
def test_numbers_that_cannot_be_are_refused(printed, column, value, said):
    rows = printed.reset_index(drop=True).astype(object)
    assert rows.loc[4, "model"].startswith("exploratory")
    if column not in rows:
        rows[column] = 100
    rows.loc[4, column] = value
    with pytest.raises(DataError, match=said):
        check_table(rows)


def test_a_column_that_is_there_twice_is_refused(printed):
    with pytest.raises(DataError, match="'model' twice"):
        check_table(pd.concat([printed, printed["model"]], axis=1))


def test_sds_that_are_missing_are_assumed(printed):
    blank = printed.assign(log_loss_sd="")
    found = check_table(blank)
    assert found.sd == ASSUMED_SD
    assert set(found.findings["model"]) == FAILED
    one = printed.astype(object)
    one.loc[0, "log_loss_sd"] = ""
    assert check_table(one, sd=0.05).table["log_loss_sd"].tolist()[:2] == [
        0.05,
        float(printed["log_loss_sd"][1]),
    ]


def test_no_number_of_responses_is_implied_by_nonsense(printed):
    counted = printed.drop(columns="train_cells", errors="ignore").assign(fitted_quantities=0, bic=100.0)
    assert check_table(counted).responses is None


def test_each_model_has_its_own_number_of_training_responses(printed):
    rows = printed.assign(train_cells=TRAINING_RESPONSES)
    assert check_table(rows).criteria.empty
    rows.loc[0, "train_cells"] = 100
    found = check_table(rows)
    assert found.criteria["model"].tolist() == [rows.loc[0, "model"]]
    assert found.responses == TRAINING_RESPONSES
    assert "model by model" in found.responses_from


def test_a_file_with_a_column_twice_is_refused(tmp_path):
    file = tmp_path / "twice.csv"
    file.write_text(
        "model,family,structure,dims,log_loss,log_loss,train_log_lik\n"
        "u2,2pl,unidimensional,1,.54,.54,-1939\ne2,2pl,exploratory,2,.52,.70,-1777\n"
    )
    with pytest.raises(DataError, match="'log_loss' twice"):
        check_table(read_comparison(file))
