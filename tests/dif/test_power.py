from dataclasses import replace

import numpy as np
import pytest
from dif_panels import known_fit, panel
from scipy.optimize import minimize
from scipy.special import expit, logit

from irtaudit.dif.contrast import make_contrast
from irtaudit.dif.effects import EFFECT_OF, effect_functions, effects_needed, score_effect
from irtaudit.dif.groups import Groups
from irtaudit.dif.null import from_probabilities, judge, no_dif, simulate
from irtaudit.dif.options import DifOptions
from irtaudit.dif.power import SHIFTS, power_curves, refitted, smallest_shift
from irtaudit.dif.scopes import scopes_of
from irtaudit.stats.logistic import ridge_logistic

SCREENS = ("mh", "mh_z", "score")


def ready(seed=1, sizes=(40, 40, 0), n_items=30):
    truth = panel(seed, sizes=sizes, n_items=n_items)
    (scope,) = scopes_of(known_fit(truth), truth.matrix)
    contrast = make_contrast(truth.matrix, Groups("developer", "A", "B").sides(truth.matrix.subjects), scope)
    effects = effect_functions(contrast, DifOptions(), None, effects_needed(SCREENS))
    stacks = simulate(contrast.responses, effects, no_dif(contrast), 400, np.random.default_rng(0))
    testable = np.ones(n_items, bool)
    judged = {screen: judge(stacks[EFFECT_OF[screen]], screen, testable) for screen in SCREENS}
    return contrast, effects, judged


def item_by_item(contrast, matrix):
    """The contrast with item parameters fitted to a matrix, by logistic regression on ability."""
    x = contrast.theta[:, None]
    fit = ridge_logistic(x, matrix.astype(float), np.array([0.5])).coefficients
    return replace(contrast, probability=expit(fit[0] + x * fit[1]))


def test_printed_power_is_the_rate_at_which_shifted_items_are_flagged():
    contrast, effects, judged = ready()
    power = power_curves(contrast, effects, judged, 400, np.random.default_rng(1))
    # 60 fresh matrices with one item in five shifted by 2.5 logits, screened as an audit would
    shift = np.where(np.arange(30) % 5 == 0, 2.5, 0.0)
    draw = from_probabilities(
        expit(logit(contrast.probability) + contrast.side[:, None] * shift), contrast.observed
    )
    null = no_dif(contrast)
    rng, n = np.random.default_rng(2), 60
    hits = dict.fromkeys(SCREENS, 0.0)
    for matrix in draw(rng, n):
        stacks = simulate(matrix, effects, null, 199, rng)
        for screen in SCREENS:
            flags = judge(stacks[EFFECT_OF[screen]], screen, np.ones(30, bool)).flag_family
            hits[screen] += flags[shift > 0].mean() / n
    row = SHIFTS.index(2.5)
    for screen in SCREENS:
        # standard error of 60 x 6 flags about .025, and the cut-offs of 199 matrices vary as well
        assert power[screen][row, shift > 0].mean() == pytest.approx(hits[screen], abs=0.1), screen
        assert 0.1 < hits[screen] < 0.95


def test_printed_power_of_the_score_test_allows_for_items_that_were_fitted_with_their_shift():
    shift = np.where(np.arange(30) % 5 == 0, 2.5, 0.0)
    printed, seen, n = [], [], 200
    for seed in (1, 5, 9):
        contrast, effects, judged = ready(seed)
        power = power_curves(contrast, effects, {"score": judged["score"]}, 400, np.random.default_rng(1))
        printed.append(power["score"][SHIFTS.index(2.5), shift > 0].mean())
        shifted = expit(logit(contrast.probability) + contrast.side[:, None] * shift)
        rng = np.random.default_rng(2)
        for matrix in from_probabilities(shifted, contrast.observed)(rng, n):
            own = item_by_item(contrast, matrix)
            stack = simulate(matrix, {"z": score_effect(own)}, no_dif(own), 199, rng)["z"]
            seen.append(judge(stack, "score", np.ones(30, bool)).flag_family[shift > 0].mean())
    # standard error of 600 x 6 flags about .01; at parameters without the shift .06 more would be printed
    assert np.mean(printed) == pytest.approx(np.mean(seen), abs=0.04)


@pytest.mark.parametrize("family", ["1pl", "2pl", "3pl"])
def test_items_are_refitted_to_the_expected_responses(family):
    contrast = ready(n_items=6)[0]
    guess = np.full(6, 0.15 if family == "3pl" else 0.0)
    scope = replace(contrast.scope, family=family, guess=guess)
    p = scope.probability[contrast.rows]
    contrast = replace(contrast, scope=scope, probability=p, observed=np.arange(480).reshape(80, 6) % 7 > 0)
    shifted = expit(logit(p) + 2 * contrast.side[:, None])
    found = refitted(contrast, shifted).probability
    free = 1 if family == "1pl" else 2
    prior = np.array([1 / scope.intercept.var(), 1 / scope.slope.var()])[:free]
    for item in range(6):
        seen = contrast.observed[:, item]

        def probability(b, item=item):
            eta = contrast.theta * (scope.slope[item] + (b[1] if free == 2 else 0))
            return guess[item] + (1 - guess[item]) * expit(eta + scope.intercept[item] + b[0])

        def loss(b, item=item, seen=seen):
            q, y = probability(b)[seen], shifted[seen, item]
            return prior @ b**2 / 2 - (y * np.log(q) + (1 - y) * np.log1p(-q)).sum()

        best = minimize(loss, np.zeros(free), tol=1e-10).x
        assert found[:, item] == pytest.approx(probability(best), abs=2e-3)
    assert np.abs(found - p).max() > 0.01


def test_a_fit_to_what_it_already_says_stays():
    contrast = ready(n_items=6)[0]
    assert refitted(contrast, contrast.probability).probability == pytest.approx(contrast.probability)


def test_power_grows_with_the_shift_from_the_level_to_one():
    contrast, effects, judged = ready(n_items=12)
    power = power_curves(contrast, effects, judged, 200, np.random.default_rng(1))
    for screen in SCREENS:
        mean = power[screen].mean(axis=1)
        assert mean[0] < 0.2
        assert mean[-1] > 0.8
        assert (np.diff(mean) > -0.03).all()


def test_items_that_are_not_testable_have_no_power():
    contrast, effects, _ = ready(n_items=12)
    stack = np.random.default_rng(0).normal(size=(100, 12)).astype(np.float32)
    partly = {"mh": judge(stack, "mh", np.arange(12) > 2)}
    power = power_curves(contrast, effects, partly, 20, np.random.default_rng(1))["mh"]
    assert np.isnan(power[:, :3]).all()
    assert not np.isnan(power[:, 3:]).any()


def test_the_smallest_shift_lies_between_the_computed_ones():
    rising = np.linspace(0, 0.9, len(SHIFTS))
    flat = np.full(len(SHIFTS), 0.7)
    early = np.full(len(SHIFTS), 0.9)
    dip = np.where(np.array(SHIFTS) == 4.0, 0.5, np.minimum(np.array(SHIFTS) / 2.5, 1))
    found = smallest_shift(np.column_stack([rising, flat, early, dip]))
    assert found[0] == pytest.approx(np.interp(0.8, rising, SHIFTS))
    assert np.isnan(found[1])
    assert found[2] == pytest.approx(0.5 * 0.8 / 0.9)
    assert found[3] == pytest.approx(2.0)


def test_larger_groups_see_smaller_shifts():
    small, large = (
        power_curves(c, e, {"score": j["score"]}, 100, np.random.default_rng(1))["score"].mean(axis=1)
        for c, e, j in (ready(3, (10, 10, 0), 12), ready(3, (80, 80, 0), 12))
    )
    assert smallest_shift(large[:, None])[0] < smallest_shift(small[:, None])[0] - 0.5
