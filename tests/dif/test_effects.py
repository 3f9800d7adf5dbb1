import numpy as np
import pytest
from dif_panels import known_fit, panel
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from irtaudit.dif.contrast import make_contrast
from irtaudit.dif.effects import effect_functions, score_test
from irtaudit.dif.groups import Groups
from irtaudit.dif.null import no_dif
from irtaudit.dif.options import DifOptions
from irtaudit.dif.scopes import scopes_of
from irtaudit.irt.spec import ModelSpec
from irtaudit.stats.mantel_haenszel import mantel_haenszel

ALL = ("log_alpha", "gamma", "delta", "z")


def contrast_of(truth, spec=None):
    scope = scopes_of(known_fit(truth, spec), truth.matrix)[0]
    return make_contrast(truth.matrix, Groups("developer", "A", "B").sides(truth.matrix.subjects), scope)


def effects_of(contrast, responses, options=None):
    functions = effect_functions(contrast, options or DifOptions(), None, ALL)
    return {name: effect(responses) for name, effect in functions.items()}


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_swapping_the_groups_changes_every_sign_and_nothing_else(missing):
    truth = panel(1, missing=missing)
    contrast = contrast_of(truth)
    order = np.concatenate([np.arange(21, 32), np.arange(21), np.arange(32, 48)])
    swapped = contrast.take(order)
    swapped = type(contrast)(**{**vars_of(swapped), "side": np.repeat([0.5, -0.5, 0.0], [11, 21, 16])})
    ours = effects_of(contrast, contrast.responses[None])
    theirs = effects_of(swapped, swapped.responses[None])
    for name in ALL:
        assert ours[name] == pytest.approx(-theirs[name], abs=2e-3), name
        assert np.abs(ours[name]).max() > 0.5, name


def vars_of(contrast):
    return {name: getattr(contrast, name) for name in contrast.__dataclass_fields__}


def test_the_logistic_effects_are_those_of_scikit_learn():
    contrast = contrast_of(panel(2))
    found = effects_of(contrast, contrast.responses[None], DifOptions(penalty=2.0))
    theta, side = contrast.theta[:32] - contrast.theta[:32].mean(), contrast.side[:32]
    for name, x in (
        ("gamma", np.column_stack([theta, side])),
        ("delta", np.column_stack([theta, side, theta * side])),
    ):
        for item in range(0, 60, 6):
            y = contrast.responses[:32, item]
            if 0 < y.sum() < 32:
                oracle = LogisticRegression(C=0.5, solver="newton-cholesky", tol=1e-10).fit(x, y)
                assert found[name][0, item] == pytest.approx(oracle.coef_[0, -1], abs=2e-3)


def test_the_odds_ratio_is_that_of_mantel_and_haenszel_up_to_the_correction():
    truth = panel(3, sizes=(2000, 1500, 0), n_items=12)
    contrast = contrast_of(truth)
    found = effects_of(contrast, contrast.responses[None], DifOptions(bands=4))["log_alpha"][0]
    edges = np.quantile(contrast.theta, [0.25, 0.5, 0.75])
    band = np.searchsorted(edges, contrast.theta)
    inside = np.array([[(band == k) & (contrast.side == s) for k in range(4)] for s in (0.5, -0.5)], float)
    totals = np.broadcast_to(inside.sum(axis=-1)[..., None], (2, 4, 12))
    assert found == pytest.approx(
        np.log(mantel_haenszel(inside @ contrast.responses, totals).alpha), abs=0.01
    )


def test_the_score_test_approaches_the_likelihood_ratio_test():
    # of gamma, with the item's own slope and intercept free: for small effects z^2 is about the ratio
    truth = panel(4, sizes=(600, 400, 300), n_items=6)
    contrast = contrast_of(truth)
    z = effects_of(contrast, contrast.responses[None])["z"][0]
    x = np.column_stack([np.ones(1300), contrast.theta, contrast.side])

    def loss(b, y):
        eta = x[:, : len(b)] @ b
        return np.logaddexp(0, eta).sum() - y @ eta

    for item in range(6):
        y = contrast.responses[:, item]
        ratio = 2 * (minimize(loss, [0, 0], y).fun - minimize(loss, [0, 0, 0], y).fun)
        assert z[item] ** 2 == pytest.approx(ratio, abs=0.35)


@pytest.mark.parametrize("family", ["1pl", "2pl", "3pl"])
def test_the_score_has_variance_one_and_ignores_what_the_item_itself_could_explain(family):
    truth = panel(5)
    contrast = contrast_of(truth)
    scope = type(contrast.scope)(**{**vars_of(contrast.scope), "family": family})
    if family == "3pl":
        scope = type(scope)(**{**vars_of(scope), "guess": np.full(60, 0.2)})
    contrast = type(contrast)(
        **{**vars_of(contrast), "scope": scope, "probability": scope.probability[contrast.rows]}
    )
    test, p = score_test(contrast), contrast.probability
    assert ((test.weights**2) * p * (1 - p)).sum(axis=0) == pytest.approx(np.ones(60))
    logistic = (p - scope.guess) / (1 - scope.guess)
    slope = (1 - scope.guess) * logistic * (1 - logistic)
    scores = {"intercept": slope, "slope": slope * contrast.theta[:, None], "guess": 1 - logistic}
    free = {"1pl": ["intercept"], "2pl": ["intercept", "slope"], "3pl": ["intercept", "slope", "guess"]}[
        family
    ]
    for name, derivative in scores.items():
        along = np.abs((test.weights * derivative).sum(axis=0))
        assert (along.max() < 1e-8) == (name in free)


def test_the_one_step_estimate_recovers_a_small_shift():
    truth = panel(6, sizes=(3000, 3000, 0), n_items=8, shifts={0: 0.4, 1: -0.4})
    contrast = contrast_of(truth)
    information = score_test(contrast).information
    found = effects_of(contrast, contrast.responses[None])["z"][0] / np.sqrt(information)
    assert found[:2] == pytest.approx([0.4, -0.4], abs=4 / np.sqrt(information[:2].min()))
    assert np.abs(found[2:]).max() < 4 / np.sqrt(information[2:].min())


def test_missing_cells_and_other_models_do_not_reach_the_classical_screens():
    truth = panel(7, missing=0.25)
    contrast = contrast_of(truth)
    changed = contrast.responses.copy()
    changed[32:] = 1 - changed[32:]
    ours, theirs = effects_of(contrast, contrast.responses[None]), effects_of(contrast, changed[None])
    for name in ("log_alpha", "gamma", "delta"):
        assert (ours[name] == theirs[name]).all()
    assert (ours["z"] != theirs["z"]).any()


def test_rematching_gives_each_simulation_bands_of_its_own():
    contrast = contrast_of(panel(8))
    simulated = no_dif(contrast)(np.random.default_rng(1), 5)
    together = effects_of(contrast, simulated, DifOptions(rematch=True))
    for number in range(5):
        alone = effects_of(contrast, simulated[[number]], DifOptions(rematch=True))
        for name in ALL:
            assert together[name][number] == pytest.approx(alone[name][0], abs=2e-3)
    fixed = effects_of(contrast, simulated)
    assert (np.abs(fixed["log_alpha"] - together["log_alpha"]) > 0.01).any()


def test_a_confirmatory_factor_uses_its_own_items():
    truth = panel(9)
    spec = ModelSpec.confirmatory("2pl", ["x", "y"] * 30, name="kind")
    scopes = scopes_of(known_fit(truth, spec), truth.matrix)
    assert [scope.name for scope in scopes] == ["kind:x", "kind:y"]
    assert scopes[1].items.tolist() == list(range(1, 60, 2))
    assert scopes[1].slope == pytest.approx(truth.slope[1::2])
    expected = expit(truth.theta[:, None] * truth.slope[1::2] + truth.intercept[1::2])
    assert scopes[1].probability == pytest.approx(expected, abs=1e-9)
