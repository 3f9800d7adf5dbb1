from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from comparison_panels import WOBBLE, panel, restarts, rows

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import make_splits
from irtaudit.dimensionality.baselines import additive_baselines
from irtaudit.dimensionality.compare import (
    BY_SPLIT,
    TABLE,
    assemble,
    compare,
    dominates,
    heldout_losses,
    sampling_covariance,
    split_rows,
    strongest_unidimensional,
)
from irtaudit.errors import PlanError
from irtaudit.irt.fit import fit_all
from irtaudit.irt.presets import get_preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.spec import ModelSpec
from irtaudit.stats.resampling import corrected_interval

CHALLENGERS = {"confirmatory_kind_2pl": 0.01, "exploratory_2d_2pl": -0.003}


def test_table_has_the_columns_that_other_programs_read():
    # spec: "What a run writes" - the names and their order are an interface
    expected = (
        "model family structure dims log_loss log_loss_sd log_loss_predictive brier brier_sd train_log_lik "
        "fitted_quantities aic bic fitted_quantities_exact aic_exact bic_exact restart_sd note"
    )
    assert panel().table.columns.tolist() == TABLE == expected.split()


def test_means_spreads_and_criteria_by_hand():
    table = panel(0.1, CHALLENGERS, wobble=0.002).table.set_index("model")
    row = table.loc["confirmatory_kind_2pl"]
    sd = np.sqrt(2.5)  # of WOBBLE
    assert row["log_loss"] == pytest.approx(0.39)
    assert row["log_loss_sd"] == pytest.approx(0.002 * sd)
    assert row["brier_sd"] == pytest.approx(0.002 * sd)
    assert row["aic"] == pytest.approx(2 * 300 + 2 * 900)
    assert row["bic_exact"] == pytest.approx(270 * np.log(800) + 1800)
    assert row["restart_sd"] == pytest.approx(0.0004)
    assert np.isnan(table.loc["item_means", "restart_sd"])


def test_paired_differences_by_hand():
    comparison = panel(0.1, CHALLENGERS, wobble=0.002)
    assert comparison.reference == "unidimensional_2pl"
    paired = comparison.paired.set_index("model")
    assert "unidimensional_2pl" not in paired.index
    row = paired.loc["confirmatory_kind_2pl"]
    assert row["difference"] == pytest.approx(0.01)
    assert (row["min"], row["max"]) == pytest.approx((0.006, 0.014))
    assert row["sd"] == pytest.approx(0.002 * np.sqrt(2.5))
    half = 2.7764451 * row["sd"] * np.sqrt(0.45)
    assert (row["low"], row["high"]) == pytest.approx((0.01 - half, 0.01 + half))
    assert (row["splits_won"], row["n_splits"]) == (5, 5)
    # -.003 -+ .002 * (-2 .. 2): better in the one split where the difference is +.001
    assert paired.loc["exploratory_2d_2pl", "splits_won"] == 1


def test_pairing_removes_what_all_models_share():
    shared = [
        rows(f"unidimensional_{f}", "unidimensional", 1, v, family=f, wobble=0.05)
        for f, v in (("1pl", 0.41), ("2pl", 0.40))
    ]
    comparison = assemble(pd.concat(shared), restarts(pd.concat(shared)), 0.25)
    (row,) = comparison.paired.to_dict("records")
    assert row["sd"] == pytest.approx(0, abs=1e-12)
    assert row["difference"] == pytest.approx(-0.01)


def test_restart_dominance():
    base = pd.DataFrame({"model": ["a", "a", "b", "b"] * 2, "split": ["1"] * 4 + ["2"] * 4})
    apart = base.assign(log_loss=[0.1, 0.2, 0.3, 0.4] * 2)
    assert dominates(apart, "a", "b") is True
    assert dominates(apart, "b", "a") is False
    touching = apart.assign(log_loss=[0.1, 0.2, 0.3, 0.4, 0.1, 0.31, 0.3, 0.4])
    assert dominates(touching, "a", "b") is False  # only the second split fails
    assert dominates(apart, "a", "item_means") is None
    failed = apart.assign(log_loss=[0.1, np.nan, 0.3, 0.4] * 2)
    assert dominates(failed, "a", "b") is True


def test_a_failed_fit_is_noted_and_never_the_reference():
    # the 2PL would be the best single dimension but for the 1PL that it contains
    broken = [
        rows("unidimensional_1pl", "unidimensional", 1, 0.40, family="1pl", train_log_lik=-900.0),
        rows("unidimensional_2pl", "unidimensional", 1, 0.47),
        rows("confirmatory_kind_2pl", "confirmatory", 3, 0.35),
    ]
    by_split = pd.concat(broken, ignore_index=True)
    comparison = assemble(by_split, restarts(by_split), 0.25)
    assert comparison.failed == ("unidimensional_2pl",)
    assert comparison.reference == "unidimensional_1pl"
    note = comparison.table.set_index("model").loc["unidimensional_2pl", "note"]
    assert note.startswith("failed fit: unidimensional_1pl")
    with pytest.raises(PlanError, match="failed"):
        assemble(by_split, restarts(by_split), 0.25, reference="unidimensional_2pl")


def test_the_strongest_unidimensional_model():
    table = pd.DataFrame(
        {
            "model": ["a", "b", "c", "d"],
            "structure": ["unidimensional"] * 3 + ["confirmatory"],
            "log_loss": [0.3, 0.2, np.nan, 0.1],
        }
    )
    assert strongest_unidimensional(table) == ("b", 2)
    assert strongest_unidimensional(table, ["b"]) == ("a", 1)
    assert strongest_unidimensional(table, ["a", "b"]) == (None, 0)


def test_without_a_sound_single_dimension_nothing_is_paired():
    by_split = rows("confirmatory_kind_2pl", "confirmatory", 3, 0.35)
    comparison = assemble(by_split, restarts(by_split), 0.25)
    assert comparison.reference is None
    assert comparison.paired.empty


@pytest.mark.parametrize("wanted", ["item_means", "unknown"])
def test_a_reference_is_a_fitted_model(wanted):
    by_split = panel().by_split
    with pytest.raises(PlanError, match="not a fitted model"):
        assemble(by_split, restarts(by_split), 0.25, reference=wanted)


def _fit(name="2pl", *, log_loss=(0.4, 0.5), splits=("2026", "2027"), sha="abc"):
    """A result without a posterior, which a comparison does not read."""
    spec = ModelSpec.unidimensional(name)
    n = len(splits)
    every = pd.DataFrame(
        {
            "split": np.repeat(splits, 2),
            "restart": [0, 1] * n,
            "train_log_lik": np.repeat([-50.0, -60.0], 2)[: 2 * n] + np.array([0, 1] * n),
            "log_loss": np.repeat(log_loss, 2)[: 2 * n] + np.array([0.002, 0.0] * n),
            "selected": [False, True] * n,
        }
    )
    chosen = every[every["selected"]]
    heldout = pd.DataFrame(
        {
            "split": splits,
            "log_loss": chosen["log_loss"].to_numpy(),
            "log_loss_predictive": 0.41,
            "brier": 0.1,
        }
    )
    return FitResult(
        spec=spec, subjects=tuple("abc"), items=tuple("wxyz"), splits=splits, train_cells=(9, 10)[:n],
        test_cells=(3, 2)[:n], data_sha256=sha, predictor="plug-in", restarts=every, heldout=heldout,
        warnings=("a slope scale sits at its boundary",), means={}, sds={}, hypers={},
        elbo_path=np.zeros((n, 2, 1)), seed=0, preset=get_preset("quick"),
    )  # fmt: skip


def test_rows_of_a_fit_are_those_of_its_selected_restarts():
    frame = split_rows(_fit())
    assert frame.columns.tolist() == BY_SPLIT
    assert frame["train_log_lik"].tolist() == [-49.0, -59.0]
    assert frame["log_loss"].tolist() == [0.4, 0.5]
    assert frame["train_cells"].tolist() == [9, 10]
    assert frame["restart_sd"].tolist() == pytest.approx([0.002 / np.sqrt(2)] * 2)
    assert frame["fitted_quantities"].unique().tolist() == [2 * 4 + 3]
    assert frame["note"].tolist() == ["a slope scale sits at its boundary"] * 2


def test_compare_takes_fits_by_name():
    fits = {"unidimensional_1pl": _fit("1pl", log_loss=(0.5, 0.6)), "unidimensional_2pl": _fit("2pl")}
    comparison = compare(fits, test_fraction=0.5)
    assert comparison.reference == "unidimensional_2pl"
    assert comparison.test_over_train == 1.0
    assert comparison.paired["difference"].tolist() == pytest.approx([-0.1])
    assert len(comparison.restarts) == 8
    assert comparison.table["note"].str.count("boundary").tolist() == [1, 1]


def test_the_share_held_out_is_that_of_the_splits():
    fits = {"unidimensional_1pl": _fit("1pl"), "unidimensional_2pl": _fit("2pl")}
    assert compare(fits).test_over_train == pytest.approx(5 / 19)
    fits = {name: replace(fit, test_cells=()) for name, fit in fits.items()}
    with pytest.raises(PlanError, match="test_fraction="):
        compare(fits)
    assert compare(fits, test_fraction=0.2).test_over_train == 0.25
    with pytest.raises(PlanError, match="share above 0 and below 1"):
        compare(fits, test_fraction=1.0)


def test_models_with_several_dimensions_alone_are_refused():
    fit = replace(_fit("2pl"), spec=ModelSpec.exploratory("2pl", 2))
    with pytest.raises(PlanError, match="unidimensional_2pl, say"):
        compare({fit.spec.name: fit})
    assert compare({fit.spec.name: fit}, reference=fit.spec.name).reference == fit.spec.name


def test_a_training_likelihood_below_a_contained_models_is_noted():
    extra = [rows("exploratory_3d_2pl", "exploratory", 3, 0.39, train_log_lik=-2000.0)]
    notes = panel(0.1, CHALLENGERS, extra=extra).table.set_index("model")["note"]
    assert "training log-likelihood below that of confirmatory_kind_2pl" in notes["exploratory_3d_2pl"]
    assert notes.drop("exploratory_3d_2pl").str.contains("training").sum() == 0


def test_fits_of_other_data_or_splits_are_refused():
    with pytest.raises(PlanError, match="different data"):
        compare({"a": _fit("1pl"), "b": _fit("2pl", sha="xyz")})
    with pytest.raises(PlanError, match="different data"):
        compare({"a": _fit("1pl"), "b": _fit("2pl", splits=("2026", "9"))})
    with pytest.raises(PlanError, match="nothing to compare"):
        compare({})
    baselines = rows("item_means", "baseline", 0, 0.5)
    with pytest.raises(PlanError, match="different splits"):
        compare({"a": _fit("1pl")}, baselines=baselines)


def test_a_fit_without_held_out_cells_is_refused():
    full = replace(_fit(), heldout=_fit().heldout.iloc[:0])
    with pytest.raises(PlanError, match="every observed cell"):
        compare({"unidimensional_2pl": full})


def test_nothing_given_is_changed():
    comparison = panel(0.1, CHALLENGERS)
    before = comparison.by_split.copy(deep=True)
    assemble(comparison.by_split, comparison.restarts, 0.25)
    pd.testing.assert_frame_equal(before, comparison.by_split)
    assert comparison.difference("confirmatory_kind_2pl", "unidimensional_2pl").to_numpy() == pytest.approx(
        0.01 - 0.0005 * WOBBLE
    )


def test_with_single_responses_intervals_know_how_much_losses_vary():
    """Identity: a variance of a difference by covariances is that of the single differences."""
    rng = np.random.default_rng(3)
    losses = {"a": [rng.random(40), rng.random(30)], "b": [rng.random(40), rng.random(30)]}
    table = sampling_covariance(losses, ["one", "two"])
    for s, split in enumerate(["one", "two"]):
        c = table.loc[split]
        d = losses["a"][s] - losses["b"][s]
        expected = d.var(ddof=1) / d.size
        assert c.loc["a", "a"] + c.loc["b", "b"] - 2 * c.loc["a", "b"] == pytest.approx(expected)


def test_held_out_losses_average_to_the_tables_and_shape_the_intervals():
    matrix = random_matrix()
    splits = make_splits(matrix, n_splits=3)
    specs = [ModelSpec.unidimensional(family) for family in ("1pl", "2pl")]
    fits = fit_all(matrix, specs, splits, n_restarts=1, preset="quick", workers=1)
    baselines = additive_baselines(matrix, splits)
    plain = compare(fits, baselines=baselines)
    known = compare(fits, baselines=baselines, matrix=matrix, splits=splits)
    losses = heldout_losses(fits, matrix, splits)
    assert set(losses) == set(plain.table["model"])
    for name, loss in plain.table.set_index("model")["log_loss"].items():
        assert np.mean([cells.mean() for cells in losses[name]]) == pytest.approx(loss, abs=1e-9)
    pair = ("unidimensional_1pl", "unidimensional_2pl")
    assert plain.sampling is None
    assert known.interval(*pair).estimate == plain.interval(*pair).estimate
    assert known.interval(*pair).low != plain.interval(*pair).low
    gains = [b - a for a, b in zip(*(losses[name] for name in pair), strict=True)]
    sampling = [gain.var(ddof=1) / gain.size for gain in gains]
    means = [gain.mean() for gain in gains]
    by_hand = corrected_interval(means, known.test_over_train, n_comparisons=2, sampling=sampling)
    assert known.interval(*pair, 2) == pytest.approx(by_hand, abs=1e-12)
    row = known.paired.set_index("model").loc["item_means"]
    assert (row["low"], row["high"]) == known.interval("item_means", str(known.reference))[1:]


def random_matrix():
    rng = np.random.default_rng(4)
    theta = rng.normal(size=(40, 1))
    return ResponseMatrix.from_array((rng.random((40, 20)) < 1 / (1 + np.exp(-theta))).astype(float))
