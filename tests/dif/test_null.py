import numpy as np
import pytest
from dif_panels import known_fit, panel
from scipy.special import expit, logit
from scipy.stats import binom

from irtaudit.dif.contrast import make_contrast
from irtaudit.dif.effects import EFFECT_OF, effect_functions, effects_needed
from irtaudit.dif.families import conditional_logits, family_codes, family_effect
from irtaudit.dif.groups import Groups
from irtaudit.dif.null import family_effects, judge, no_dif, simulate
from irtaudit.dif.options import SCREENS, DifOptions
from irtaudit.dif.scopes import scopes_of


def contrast_of(truth):
    (scope,) = scopes_of(known_fit(truth), truth.matrix)
    return make_contrast(truth.matrix, Groups("developer", "A", "B").sides(truth.matrix.subjects), scope)


def highest_likely(n: int, rate: float) -> int:
    """Count that a binomial variable exceeds once in 10,000 times."""
    return int(binom.isf(1e-4, n, rate))


def family_flags(contrast, draw, number, options, n=99):
    """Which screens flag anything, under the null that `draw` makes."""
    effects = effect_functions(contrast, options, None, effects_needed(SCREENS))
    stacks = simulate(contrast.responses, effects, draw, n, np.random.default_rng([1, number]))
    whole = np.ones(contrast.n_items, bool)
    return {screen: judge(stacks[EFFECT_OF[screen]], screen, whole).flag_family.any() for screen in SCREENS}


@pytest.mark.parametrize("rematch", [False, True])
def test_no_screen_flags_anything_more_often_than_one_time_in_twenty(rematch):
    n = 30 if rematch else 150  # abilities and designs anew for each matrix cost ten times as much
    contrasts = [contrast_of(panel(1000 + i, n_items=15, difference=1.0)) for i in range(n)]
    options = DifOptions(rematch=rematch)
    found = [family_flags(c, no_dif(c), i, options) for i, c in enumerate(contrasts)]
    for screen in SCREENS:
        flagged = sum(row[screen] for row in found)
        assert flagged <= highest_likely(n, 0.05), screen
        assert flagged >= binom.isf(1 - 1e-4, n, 0.05), screen


def test_the_null_reproduces_pass_rates_and_missing_cells():
    contrast = contrast_of(panel(2, missing=0.2))
    drawn = no_dif(contrast)(np.random.default_rng(0), 4000)
    assert (drawn[:, ~contrast.observed] == 0).all()
    rates, p = drawn.mean(axis=0)[contrast.observed], contrast.probability[contrast.observed]
    error = (rates - p) / np.sqrt(p * (1 - p) / 4000)
    assert np.abs(error).max() < 6
    assert error.std() == pytest.approx(1, abs=0.05)


def test_family_shifts_keep_the_pass_rates_and_make_relatives_alike():
    contrast = contrast_of(panel(3))
    codes = np.arange(48) // 3
    draw = family_effects(contrast, conditional_logits(contrast.probability, 1.5), codes, 1.5)
    drawn = draw(np.random.default_rng(0), 3000)
    p = contrast.probability
    assert np.abs((drawn.mean(axis=0) - p) / np.sqrt(p * (1 - p) / 3000)).max() < 6
    residual = (drawn - p) / np.sqrt(p * (1 - p))
    product = (residual[:, :-1] * residual[:, 1:]).mean(axis=(0, 2))
    together = codes[:-1] == codes[1:]
    assert product[together].min() > 0.05
    assert product[together].mean() > 0.15
    assert np.abs(product[~together]).max() < 0.01


@pytest.mark.parametrize("sd", [0.3, 1.0, 2.5])
def test_conditional_logits_average_to_the_probabilities(sd):
    p = np.array([0.001, 0.05, 0.5, 0.9, 0.999])
    z = np.random.default_rng(0).normal(size=400_000)
    average = expit(conditional_logits(p, sd)[:, None] + sd * z).mean(axis=1)
    assert logit(average) == pytest.approx(logit(p), abs=0.02)


def test_without_shifts_the_logits_are_those_of_the_probabilities():
    p = np.array([0.01, 0.4, 0.99])
    assert conditional_logits(p, 0.0) == pytest.approx(logit(p), abs=1e-4)


@pytest.mark.parametrize("sd", [0.0, 0.7, 1.5])
def test_the_spread_of_family_shifts_is_recovered(sd):
    rng = np.random.default_rng(4)
    codes, p = np.arange(60) // 3, rng.uniform(0.1, 0.9, (60, 400))
    logits = conditional_logits(p, sd) + sd * rng.normal(size=(20, 400))[codes]
    y = (rng.random(p.shape) < expit(logits)).astype(float)
    found = family_effect(y, np.ones_like(p, bool), p, codes)
    # the SD of a family's mean product over 400 items is about .012, so of sd^2 in 20 families about .05
    assert found.sd == pytest.approx(sd, abs=0.25 if sd == 0 else 0.15)
    assert (found.n_families, found.n_related) == (20, 60)


def test_unrelated_models_have_no_spread_to_estimate():
    contrast = contrast_of(panel(5))
    found = family_effect(contrast.responses, contrast.observed, contrast.probability, np.arange(48))
    assert np.isnan(found.sd)
    assert found.n_families == 0


def test_models_without_a_label_are_families_of_their_own():
    assert family_codes(np.array(["a", None, "b", "a", None], dtype=object)).tolist() == [0, 1, 2, 0, 3]


def test_the_cluster_aware_null_holds_its_level_where_the_ordinary_one_does_not():
    n, hits = 60, {"plain": 0, "families": 0}
    options = DifOptions(screens=("score",))
    for i in range(n):
        truth = panel(500 + i, sizes=(21, 12, 15), n_items=60, family_sd=1.5)
        contrast = contrast_of(truth)
        codes = family_codes(truth.matrix.subjects["family"].to_numpy(dtype=object)[contrast.rows])
        families = family_effects(contrast, conditional_logits(contrast.probability, 1.5), codes, 1.5)
        for name, draw in (("plain", no_dif(contrast)), ("families", families)):
            effects = effect_functions(contrast, options, None, ["z"])
            stacks = simulate(contrast.responses, effects, draw, 99, np.random.default_rng([2, i]))
            hits[name] += judge(stacks["z"], "score", np.ones(60, bool)).flag_family.any()
    assert hits["families"] <= highest_likely(n, 0.05)
    assert hits["plain"] > highest_likely(n, 0.05)


def test_items_that_are_not_testable_neither_count_nor_get_numbers():
    rng = np.random.default_rng(6)
    stack = rng.normal(size=(200, 5)).astype(np.float32)
    stack[:, 2] *= 100
    testable = np.array([True, True, False, True, True])
    found = judge(stack, "score", testable)
    alone = judge(stack[:, testable], "score", np.ones(4, bool))
    assert np.isnan(found.statistic[2])
    assert np.isnan(found.p_family[2])
    assert not found.flag_item[2]
    assert found.p_family[testable].tolist() == alone.p_family.tolist()
    assert found.family_cutoff == alone.family_cutoff < 10


def test_effects_are_read_from_their_mean_under_the_null():
    stack = np.array([[1.0, -1.0]] + [[0.4, 0.4], [0.6, 0.2]] * 50, dtype=np.float32)
    found = judge(stack, "mh", np.ones(2, bool))
    assert found.statistic == pytest.approx([1.0, 1.0])
    assert found.effect == pytest.approx(stack[0] - stack.mean(axis=0))
    assert judge(stack, "mh_z", np.ones(2, bool)).statistic == pytest.approx(
        np.abs(stack[0] - stack.mean(axis=0)) / stack.std(axis=0), rel=1e-5
    )


def test_no_testable_item_is_no_error():
    found = judge(np.zeros((30, 3), np.float32), "mh", np.zeros(3, bool))
    assert np.isnan(found.p).all()
    assert not found.flag_family.any()
