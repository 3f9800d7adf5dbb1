from pathlib import Path

import numpy as np
import pytest

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits, make_splits
from irtaudit.dimensionality.baselines import (
    additive_baselines,
    constant_items,
    item_means,
    item_subject_logit,
)
from irtaudit.stats.scoring import log_loss


def _rasch(rng, subjects=60, items=40):
    theta, easy = rng.normal(0, 1.2, (subjects, 1)), rng.normal(0.3, 1.0, items)
    p = 1 / (1 + np.exp(-(theta + easy)))
    return (rng.random(p.shape) < p).astype(float), p


def test_item_subject_logit_by_hand():
    y = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, np.nan]])
    train = ~np.isnan(y)[None]
    train[0, 1, 0] = False
    # items (1+.5)/(1+1), .5/3, 1.5/2; subjects 2.5/4, .5/2; all (2+.5)/(4+1)
    odds = lambda q: q / (1 - q)  # noqa: E731
    expected = odds(0.75) * odds(0.25) / odds(0.5)
    assert item_subject_logit(y, train)[0, 1, 0] == pytest.approx(expected / (1 + expected), abs=1e-12)


def test_held_out_cells_never_enter_a_prediction():
    y, _ = _rasch(np.random.default_rng(1))
    matrix = ResponseMatrix.from_array(y)
    splits = make_splits(matrix, n_splits=2)
    flipped = np.where(splits.test[0], 1 - y, y)
    for predict in (item_means, item_subject_logit):
        before = predict(y, splits.training(matrix))[0]
        assert np.array_equal(before, predict(flipped, splits.training(matrix))[0])


def test_additive_rule_beats_item_means_where_subjects_differ_and_approaches_the_truth():
    y, p = _rasch(np.random.default_rng(2), 200, 150)
    matrix = ResponseMatrix.from_array(y)
    splits = make_splits(matrix)
    mean = additive_baselines(matrix, splits).groupby("model")["log_loss"].mean()
    oracle = log_loss(y, p, splits.heldout(matrix)).mean()
    assert oracle < mean["item_subject_logit"] < mean["item_means"]
    assert mean["item_subject_logit"] < oracle + 0.25 * (mean["item_means"] - oracle)


def test_shuffled_within_items_the_subjects_add_nothing():
    rng = np.random.default_rng(3)
    y = rng.permuted(_rasch(rng)[0], axis=0)
    keep = (y.mean(axis=0) > 0) & (y.mean(axis=0) < 1)
    matrix = ResponseMatrix.from_array(y[:, keep])
    mean = additive_baselines(matrix, make_splits(matrix)).groupby("model")["log_loss"].mean()
    assert mean["item_means"] < mean["item_subject_logit"]


def test_an_item_constant_in_training_cells_is_predicted_and_reported():
    y = np.ones((6, 4))
    y[0] = 0
    y[1, :3] = 0
    matrix = ResponseMatrix.from_array(y)
    test = np.zeros((2, 6, 4), dtype=bool)
    test[0, 0, 3] = True  # the only fail of the last item
    test[1, 2, 2] = True
    splits = Splits.from_test_masks(test)
    assert constant_items(y, splits.training(matrix)).tolist() == [1, 0]
    rows = additive_baselines(matrix, splits)
    assert set(rows["note"]) == {"up to 1 item is constant in the training cells of a split"}
    assert np.isfinite(rows["log_loss"]).all()


def test_rows_of_the_frame():
    y, _ = _rasch(np.random.default_rng(4))
    y[0, :5] = np.nan
    matrix = ResponseMatrix.from_array(y)
    splits = make_splits(matrix, n_splits=3)
    rows = additive_baselines(matrix, splits)
    assert rows["split"].tolist() == ["2026", "2027", "2028"] * 2
    assert (rows["train_cells"] == matrix.observed.sum() - round(0.2 * matrix.observed.sum())).all()
    counts = rows.drop_duplicates("model").set_index("model")["fitted_quantities"]
    assert counts.to_dict() == {"item_means": 40, "item_subject_logit": 100}
    train = splits.training(matrix)[0]
    p = item_subject_logit(y, train[None])[0]
    by_hand = np.log(np.where(y == 1, p, 1 - p))[train].sum()
    row = rows[(rows["model"] == "item_subject_logit") & (rows["split"] == "2026")].iloc[0]
    assert row["train_log_lik"] == pytest.approx(by_hand, abs=1e-9)


def test_the_simulated_panel_reproduces_the_printed_numbers():
    """sim81 and its mask: .4581 and .5453 by the script that made the panel (half a pass and fail added)."""
    with np.load(Path(__file__).parents[1] / "reference" / "sim81x398.npz") as file:
        size = 81 * 398
        y = np.unpackbits(file["responses"])[:size].reshape(81, 398).astype(float)
        test = np.unpackbits(file["held_out"])[:size].reshape(1, 81, 398).astype(bool)
    matrix = ResponseMatrix.from_array(y)
    loss = additive_baselines(matrix, Splits.from_test_masks(test), ["one"]).set_index("model")["log_loss"]
    assert loss["item_subject_logit"] == pytest.approx(0.4581, abs=0.00005)
    assert loss["item_means"] == pytest.approx(0.5453, abs=0.001)
