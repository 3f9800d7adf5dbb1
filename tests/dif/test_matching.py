import numpy as np
import pytest
from dif_panels import known_fit, panel

from irtaudit.dif.contrast import make_contrast
from irtaudit.dif.groups import Groups
from irtaudit.dif.matching import abilities, match, totals
from irtaudit.dif.options import DifOptions
from irtaudit.dif.scopes import scopes_of
from irtaudit.errors import PlanError
from irtaudit.irt.score import ability_posterior

GROUPS = Groups("developer", "A", "B")


def contrast_of(truth):
    (scope,) = scopes_of(known_fit(truth), truth.matrix)
    return make_contrast(truth.matrix, GROUPS.sides(truth.matrix.subjects), scope)


def test_subjects_stand_in_the_order_reference_focal_others():
    truth = panel(1)
    contrast = contrast_of(truth)
    assert contrast.n_compared == 32
    assert contrast.side.tolist() == [0.5] * 21 + [-0.5] * 11 + [0.0] * 16
    assert (contrast.responses == truth.matrix.responses[contrast.rows]).all()
    assert contrast.theta == pytest.approx(truth.theta[contrast.rows])


def test_random_groups_have_the_same_sizes_and_the_same_models():
    contrast = contrast_of(panel(1))
    dealt = contrast.regrouped(np.random.default_rng(0))
    assert dealt.side.tolist() == contrast.side.tolist()
    assert sorted(dealt.rows[:32]) == sorted(contrast.rows[:32])
    assert dealt.rows[:32].tolist() != contrast.rows[:32].tolist()
    assert dealt.rows[32:].tolist() == contrast.rows[32:].tolist()
    assert (dealt.responses[0] == panel(1).matrix.responses[dealt.rows[0]]).all()


@pytest.mark.parametrize("bands", [1, 2, 3, 5, 10])
def test_bands_hold_equally_many_compared_models_by_theta(bands):
    contrast = contrast_of(panel(2))
    (matching,) = match(contrast, contrast.responses[None], DifOptions(bands=bands))
    members = matching.members[0]
    assert members.shape == (2 * bands, 32)
    assert (members.sum(axis=0) == 1).all()
    sizes = members.reshape(2, bands, 32).sum(axis=(0, 2))
    assert np.ptp(sizes) <= 1
    band = members.reshape(2, bands, 32).sum(axis=0).argmax(axis=0)
    assert (np.diff(band[np.argsort(contrast.theta[:32])]) >= 0).all()


def test_every_score_is_a_stratum_of_its_own():
    contrast = contrast_of(panel(3, n_items=8))
    (matching,) = match(contrast, contrast.responses[None], DifOptions(match="total", bands="score"))
    scores = contrast.responses[:32].sum(axis=1)
    assert matching.value[0].tolist() == scores.tolist()
    assert matching.n_strata == len(set(scores.tolist()))
    for stratum in matching.members[0].reshape(2, -1, 32).sum(axis=0):
        assert len(set(scores[stratum == 1].tolist())) == 1


def test_an_item_outside_the_anchors_is_matched_on_them_and_itself():
    contrast = contrast_of(panel(4, n_items=10))
    anchors = np.arange(10) > 1
    shared, first, second = match(contrast, contrast.responses[None], DifOptions(match="total"), anchors)
    y = contrast.responses[:32]
    assert shared.items.tolist() == list(range(2, 10))
    assert (first.items.tolist(), second.items.tolist()) == ([0], [1])
    assert shared.value[0].tolist() == y[:, 2:].sum(axis=1).tolist()
    assert first.value[0].tolist() == (y[:, 2:].sum(axis=1) + y[:, 0]).tolist()


def test_totals_with_missing_cells_are_pass_rates_in_items():
    responses = np.array([[[1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]]])
    seen = np.array([[True, True, True, True], [True, True, False, False]])
    assert totals(responses, seen, np.ones(4, bool)).tolist() == [[3.0, 2.0]]


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_abilities_equal_those_of_adaptive_quadrature(missing):
    truth = panel(5, missing=missing)
    contrast = contrast_of(truth)
    found = abilities(contrast.scope, contrast.responses[None], contrast.observed, np.ones(60, bool))
    expected, _ = ability_posterior(
        truth.matrix.responses[contrast.rows], truth.slope[:, None], truth.intercept
    )
    assert found[0] == pytest.approx(expected[:, 0], abs=2e-4)


def test_more_bands_than_models_is_refused():
    contrast = contrast_of(panel(6))
    with pytest.raises(PlanError, match="40 ability bands were asked for, but only 32 models"):
        match(contrast, contrast.responses[None], DifOptions(bands=40))
