import numpy as np
import pytest
from scipy.stats import norm

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.screen import screen
from irtaudit.dimensionality.pairwise import PAIRWISE, pairwise_table, standings
from irtaudit.irt.fit import fit
from irtaudit.irt.spec import ModelSpec

SUBJECTS = 60


def one_factor(seed, n_items):
    """Simulated 2PL responses on one factor, and the true abilities by name."""
    rng = np.random.default_rng(seed)
    theta, slope = rng.normal(size=SUBJECTS), np.exp(rng.normal(0.2, 0.4, n_items))
    logits = slope * theta[:, None] + rng.normal(0, 1.2, n_items)
    matrix = ResponseMatrix.from_array((rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float))
    return screen(matrix).matrix, dict(zip(matrix.subjects.index, theta, strict=True))


@pytest.fixture(scope="module")
def panels():
    found = []
    for seed, n_items in ((0, 25), (1, 60), (2, 25), (3, 60)):
        matrix, truth = one_factor(seed, n_items)
        fitted = fit(matrix, ModelSpec.unidimensional("2pl"), n_restarts=2, workers=1, seed=seed)
        found.append((fitted, truth))
    return found


def test_stated_probabilities_of_order_hold_among_the_true_abilities(panels):
    """Planted truth. Pairs share subjects, so a panel counts for its 60 subjects, not for its pairs."""
    tables = [
        pairwise_table({"single": fitted}).assign(
            right=lambda t, truth=truth: t["subject"].map(truth) > t["other"].map(truth)
        )
        for fitted, truth in panels
    ]
    stated, right = (np.concatenate([table[name] for table in tables]) for name in ("single", "right"))
    for low, high in ((0.5, 0.7), (0.7, 0.85), (0.85, 0.95), (0.95, 0.99)):
        band = (stated >= low) & (stated < high)
        p = stated[band].mean()
        tolerance = 3 * np.sqrt(p * (1 - p) / (len(panels) * SUBJECTS))
        assert right[band].mean() == pytest.approx(p, abs=tolerance)


def test_every_pair_stands_once_the_better_one_first(panels):
    fitted, _ = panels[0]
    table = pairwise_table({"single": fitted})
    assert table.columns.tolist() == [*PAIRWISE, "single"]
    pairs = {frozenset(pair) for pair in table[["subject", "other"]].to_numpy()}
    assert len(pairs) == len(table) == SUBJECTS * (SUBJECTS - 1) // 2
    assert (table["single"] >= 0.5).all()
    assert pairwise_table({}).columns.tolist() == PAIRWISE


def test_a_pair_has_one_row_whatever_the_number_of_models_and_factors(panels):
    fitted, _ = panels[0]
    matrix, _ = one_factor(0, 25)
    spec = ModelSpec.exploratory("2pl", 2)
    free = fit(matrix, spec, n_restarts=1, preset="quick", workers=1)
    table = pairwise_table({"single": fitted, "free": free})
    assert table.columns.tolist() == [*PAIRWISE, "single", "free dim1", "free dim2"]
    assert len(table) == SUBJECTS * (SUBJECTS - 1) // 2
    a, b = table.loc[100, PAIRWISE]
    m, s = free.abilities["dim2"], free.abilities["dim2_sd"]
    z = (m[a] - m[b]) / np.hypot(s[a], s[b])
    assert table.loc[100, "free dim2"] == pytest.approx(norm.cdf(z), abs=6e-5)


def test_standings_agree_with_the_pairs(panels):
    fitted, _ = panels[1]
    pairs, places = pairwise_table({"single": fitted}), standings(fitted)
    clear = pairs[pairs["single"] >= 0.95]
    rounded = (pairs["single"] == 0.95).sum()  # may have been a little less
    assert places["clearly_above"].sum() == places["clearly_below"].sum()
    assert 0 <= len(clear) - places["clearly_above"].sum() <= rounded
    top = places.index[0]
    assert places.loc[top, "clearly_above"] == (clear["subject"] == top).sum()
    assert places["clearly_below"].iloc[0] == 0
    neighbours = pairs[(pairs["subject"] == top) & (pairs["other"] == places.index[1])]
    assert places["over_next"].iloc[0] == pytest.approx(neighbours["single"].item(), abs=5e-5)
    assert np.isnan(places["over_next"].iloc[-1])
    total = places[["clearly_above", "clearly_below", "level_with"]].sum(axis=1)
    assert set(total) == {SUBJECTS - 1}
