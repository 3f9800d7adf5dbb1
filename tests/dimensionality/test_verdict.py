import numpy as np
import pandas as pd
import pytest
from comparison_panels import panel, restarts, rows

from irtaudit.dimensionality.compare import assemble
from irtaudit.dimensionality.verdict import MARGIN_SHARE, Rule, decisive, gains, judge, settling_factor
from irtaudit.errors import PlanError
from irtaudit.stats.resampling import Interval

# Gain .1, so the margin is .002; wobble .0005 gives half-widths of about .0015 to .002.
FAR, NEAR, NOTHING = 0.02, 0.002, -0.02
ABOVE_ZERO, ACROSS_ZERO = Interval(0.02, 0.01, 0.03), Interval(0.02, -0.01, 0.05)


def _state(verdict):
    return verdict.conditions.set_index("condition")["state"].tolist()


def test_margin_is_a_fiftieth_of_the_gain_over_item_means():
    verdict = judge(panel(0.1, {"confirmatory_kind_2pl": FAR}))
    assert verdict.best == "unidimensional_2pl"
    assert verdict.gain.estimate == pytest.approx(0.1)
    assert verdict.margin == pytest.approx(MARGIN_SHARE * 0.1) == pytest.approx(0.002)


def test_intervals_are_corrected_for_the_number_of_challengers():
    names = ["confirmatory_kind_2pl", "exploratory_2d_2pl", "exploratory_3d_2pl", "exploratory_4d_2pl"]
    verdict = judge(panel(0.1, dict.fromkeys(names, FAR), wobble=0.001))
    assert verdict.challengers == tuple(names)
    row = verdict.evidence.iloc[0]
    half = 4.3147 * 0.001 * np.sqrt(2.5 * 0.45)  # t(4, 1 - .05/8)
    assert row["low"] == pytest.approx(FAR - half, abs=1e-6)


def test_a_gain_within_noise_is_nothing_to_measure():
    verdict = judge(panel(0.001, {"confirmatory_kind_2pl": FAR}, gain_wobble=0.002))
    assert verdict.word == "nothing to measure"
    assert "item means" in verdict.because
    assert verdict.gain.low < 0 < verdict.gain.high


def test_a_gain_below_zero_is_nothing_to_measure():
    assert judge(panel(-0.01, {"confirmatory_kind_2pl": NOTHING})).word == "nothing to measure"


def test_the_gain_is_held_to_the_level_of_choosing_among_several_models():
    """Two candidates: t(4, 1 - .05/4) = 3.495, one: 2.776; this gain lies between the two half-widths."""
    half = np.sqrt(2.5 * 0.45) * 0.001
    comparison = panel(3.1 * half, {}, gain_wobble=0.001)
    assert judge(comparison).word == "nothing to measure"
    alone = comparison.by_split[comparison.by_split["model"] != "unidimensional_1pl"]
    assert judge(assemble(alone, restarts(alone), 0.25)).word == "inconclusive"


def test_above_the_margin_waits_for_the_clusters():
    comparison = panel(0.1, {"confirmatory_kind_2pl": FAR, "exploratory_2d_2pl": NOTHING})
    verdict = judge(comparison)
    assert verdict.word == "inconclusive"
    assert _state(verdict) == ["met", "met", "open", "not met", "not needed"]
    assert "clusters" in verdict.what_would_change
    assert "0.0200 nats" in verdict.because
    assert judge(comparison, power=0.99).word == "inconclusive"


def test_above_the_margin_and_over_clusters_is_not_supported():
    comparison = panel(0.1, {"confirmatory_kind_2pl": FAR, "exploratory_2d_2pl": NOTHING})
    verdict = judge(comparison, cluster_intervals={"confirmatory_kind_2pl": ABOVE_ZERO})
    assert verdict.word == "not supported"
    across = judge(comparison, cluster_intervals={"confirmatory_kind_2pl": ACROSS_ZERO})
    assert across.word == "inconclusive"
    assert _state(across)[2] == "not met"


def test_where_no_families_are_known_the_answer_says_so():
    comparison = panel(0.1, {"confirmatory_kind_2pl": FAR})
    over = {"cluster_intervals": {"confirmatory_kind_2pl": ABOVE_ZERO}}
    named, unnamed = judge(comparison, **over), judge(comparison, **over, unplaced=40)
    assert named.word == unnamed.word == "not supported"
    assert "counts by itself" not in named.because + named.conditions["detail"][2]
    assert unnamed.because.endswith(
        "Here the family (developer, say) of 40 models is not known, and each counts by itself."
    )
    assert "40 models is not known" in unnamed.conditions["detail"][2]
    assert "developers' names" in unnamed.what_would_change


def test_a_challenger_clearly_below_the_margin_does_not_widen_the_others():
    names = ["confirmatory_kind_2pl", "exploratory_2d_2pl", "exploratory_3d_2pl", "exploratory_4d_2pl"]
    gains = dict(zip(names, [FAR, -FAR, -FAR, -FAR], strict=True))
    low = judge(panel(0.1, gains, wobble=0.001)).evidence["low"]
    half = 2.7764 * 0.001 * np.sqrt(2.5 * 0.45)  # t(4, .975): it alone is left
    assert low[0] == pytest.approx(FAR - half, abs=1e-6)
    assert low[1] == pytest.approx(-FAR - 4.3147 * 0.001 * np.sqrt(2.5 * 0.45), abs=1e-6)


def test_the_cluster_interval_of_another_challenger_does_not_count():
    comparison = panel(0.1, {"confirmatory_kind_2pl": FAR, "exploratory_2d_2pl": NOTHING})
    verdict = judge(comparison, cluster_intervals={"exploratory_2d_2pl": ABOVE_ZERO})
    assert verdict.word == "inconclusive"
    assert _state(verdict)[2] == "open"


def test_all_below_the_margin_waits_for_the_power():
    comparison = panel(0.1, {"confirmatory_kind_2pl": NOTHING, "exploratory_2d_2pl": NOTHING})
    verdict = judge(comparison)
    assert (verdict.word, _state(verdict)) == (
        "inconclusive",
        ["met", "not met", "not needed", "met", "open"],
    )
    assert "power" in verdict.what_would_change
    assert judge(comparison, power=0.80).word == "supported"
    assert judge(comparison, power=0.79).word == "inconclusive"


def test_an_interval_across_the_margin_is_inconclusive_whatever_the_power():
    comparison = panel(0.1, {"confirmatory_kind_2pl": NEAR, "exploratory_2d_2pl": NOTHING})
    verdict = judge(comparison, power=0.99)
    assert verdict.word == "inconclusive"
    assert verdict.evidence["position"].tolist() == ["across", "below"]
    assert "times as many responses" in judge(panel(0.1, {"confirmatory_kind_2pl": 0.003})).what_would_change


def test_a_failed_challenger_proves_nothing_and_blocks_supported():
    # confirmatory inside exploratory_3d: the bigger model fits the training cells worse and predicts worse
    extra = [rows("exploratory_3d_2pl", "exploratory", 3, 0.45, train_log_lik=-2000.0)]
    comparison = panel(0.1, {"confirmatory_kind_2pl": NOTHING}, extra=extra)
    assert comparison.failed == ("exploratory_3d_2pl",)
    verdict = judge(comparison, power=0.99)
    assert verdict.evidence["challenger"].tolist() == ["confirmatory_kind_2pl"]
    assert verdict.word == "inconclusive"
    assert judge(panel(0.1, {"confirmatory_kind_2pl": NOTHING}), power=0.99).word == "supported"


def test_default_challengers_are_confirmatory_and_small_exploratory_models():
    extra = [rows("exploratory_5d_2pl", "exploratory", 5, 0.3, train_log_lik=-800.0)]
    comparison = panel(0.1, {"confirmatory_kind_2pl": NEAR, "exploratory_4d_2pl": NEAR}, extra=extra)
    assert judge(comparison).challengers == ("confirmatory_kind_2pl", "exploratory_4d_2pl")
    assert judge(comparison, challengers=["exploratory_5d_2pl"]).challengers == ("exploratory_5d_2pl",)
    with pytest.raises(PlanError, match="exploratory_7d_2pl"):
        judge(comparison, challengers=["exploratory_7d_2pl"])


def test_without_challengers_the_answer_is_open_and_says_so():
    verdict = judge(panel(0.1), power=1.0)
    assert verdict.word == "inconclusive"
    assert "more than one dimension" in verdict.because


def test_one_split_is_inconclusive_and_says_why():
    full = panel(0.1, {"confirmatory_kind_2pl": FAR}).by_split
    one = full[full["split"] == "2026"]
    verdict = judge(assemble(one, restarts(one), 0.25))
    assert verdict.word == "inconclusive"
    assert "two splits" in verdict.because
    assert verdict.evidence["position"].tolist() == ["undefined"]


def test_without_item_means_there_is_no_verdict():
    rest = panel().by_split.query("model != 'item_means'")
    with pytest.raises(PlanError, match="item_means"):
        judge(assemble(rest, restarts(rest), 0.25))


def test_without_a_model_of_one_dimension_there_is_no_verdict():
    broken = pd.concat(
        [rows("item_means", "baseline", 0, 0.5), rows("confirmatory_kind_2pl", "confirmatory", 3, 0.3)],
        ignore_index=True,
    )
    with pytest.raises(PlanError, match="No model with one dimension is among confirmatory_kind_2pl"):
        judge(assemble(broken, restarts(broken), 0.25))


def test_a_wide_interval_is_inconclusive_not_nothing():
    """Gain .005, half-width 3.495 x .01 x sqrt(2.5 x .45) = .037: it holds 0, and gains that would matter."""
    comparison = panel(0.005, {"confirmatory_kind_2pl": FAR}, gain_wobble=0.01)
    verdict = judge(comparison, power=1.0, cluster_intervals={"confirmatory_kind_2pl": ABOVE_ZERO})
    assert verdict.word == "inconclusive"
    assert _state(verdict)[0] == "open"
    assert "too few to tell" in verdict.because
    assert "More models or more items" in verdict.what_would_change
    below = judge(panel(-0.005, {"confirmatory_kind_2pl": FAR}, gain_wobble=0.01))
    assert below.word == "inconclusive"
    assert "predicts worse than item means alone, by 0.0050 nats" in below.because


def test_nothing_to_measure_holds_no_gain_that_would_matter():
    """The line is a fiftieth of the log-loss of item means, .01 here."""
    half = 3.4954 * np.sqrt(2.5 * 0.45)
    for high, word in ((0.0099, "nothing to measure"), (0.0101, "inconclusive")):
        wobble = (high - 0.001) / half
        assert judge(panel(0.001, {}, gain_wobble=wobble)).word == word


def test_where_one_dimension_gains_nothing_there_is_no_margin():
    verdict = judge(panel(-0.01, {"confirmatory_kind_2pl": NOTHING}))
    assert np.isnan(verdict.margin)
    assert verdict.evidence["position"].tolist() == ["across"]


def test_failed_challengers_are_said_to_have_failed():
    # one dimension inside: the bigger model fits the training cells worse and predicts worse
    lost = rows("exploratory_3d_2pl", "exploratory", 3, 0.45, train_log_lik=-2000.0)
    alone = judge(panel(0.1, extra=[lost]), power=0.99)
    assert (alone.word, len(alone.evidence)) == ("inconclusive", 0)
    assert "Every model with more than one dimension failed to fit (3 free dimensions)" in alone.because
    assert "fit succeeds" in alone.what_would_change
    assert "failed fit: exploratory_3d_2pl" in alone.conditions["detail"].iloc[1]
    partly = judge(panel(0.1, {"confirmatory_kind_2pl": NOTHING}, extra=[lost]), power=0.99)
    assert "The fit of 3 free dimensions failed" in partly.because
    assert "A fit of 3 free dimensions that succeeds" in partly.what_would_change


def test_a_loss_is_not_called_a_gain():
    verdict = judge(panel(0.1, {"confirmatory_kind_2pl": -0.0089}), power=0.9)
    assert "one dimension per kind loses 0.0089 nats per response (95 % interval 0.007" in verdict.because
    assert gains(Interval(-0.01, -0.03, 0.01)) == (
        "loses 0.0100 nats per response (95 % interval \N{MINUS SIGN}0.0100 to 0.0300)"
    )


def test_across_the_margin_the_sentence_says_on_which_side_the_difference_lies():
    near = judge(panel(0.1, {"confirmatory_kind_2pl": 0.003}, wobble=0.002))
    assert "gains 0.0030" in near.because
    assert "the margin of 0.0020 lies within that interval" in near.because
    below = judge(panel(0.1, {"confirmatory_kind_2pl": -0.001}, wobble=0.002))
    assert "loses 0.0010" in below.because
    assert "a gain above the margin of 0.0020 is not excluded" in below.because


def test_no_number_of_responses_is_said_where_none_would_settle_it():
    verdict = judge(panel(0.1, {"confirmatory_kind_2pl": 0.002001}))
    assert verdict.what_would_change.startswith("No panel of realistic size")


def test_the_deciding_challenger():
    evidence = pd.DataFrame(
        {
            "low": [0.5, 0.9, 0.0],
            "high": [2.0, 1.0, 3.0],
            "difference": [1.2, 0.95, 1.5],
            "position": ["above", "above", "across"],
        }
    )
    assert decisive(evidence)["low"] == 0.9
    assert decisive(evidence.assign(position="below"))["high"] == 3.0
    assert decisive(evidence.assign(position=["across", "across", "below"]))["difference"] == 1.2


def test_settling_factor_is_the_square_of_half_width_over_distance():
    evidence = pd.DataFrame({"difference": [3.0], "low": [1.0], "high": [5.0], "margin": [2.0]})
    assert settling_factor(evidence) == pytest.approx(4.0)
    two = pd.DataFrame({"difference": [0.0, 1.0], "low": [-4, 0], "high": [4, 2], "margin": [2.0, 2.0]})
    assert settling_factor(two) == pytest.approx(4.0)  # all have to be below
    assert settling_factor(two.assign(difference=[0.0, 2.5])) == pytest.approx(4.0)  # one above suffices
    assert settling_factor(evidence.assign(difference=2.0)) == np.inf


@pytest.mark.parametrize(
    ("challengers", "message"),
    [
        ("exploratory_2d_2pl", "expected a list"),
        (["exploratory_9d_2pl"], "not among the models: exploratory_9d_2pl"),
        (["unidimensional_2pl"], "unidimensional_2pl cannot challenge one dimension"),
        (["confirmatory_kind_2pl"] * 2, "named twice: confirmatory_kind_2pl"),
    ],
)
def test_what_is_no_challenger_is_refused(challengers, message):
    with pytest.raises(PlanError, match=message):
        judge(panel(0.1, {"confirmatory_kind_2pl": FAR}), challengers=challengers)


@pytest.mark.parametrize("power", [5, -0.1, float("nan"), "x"])
def test_a_power_is_a_share(power):
    with pytest.raises(PlanError, match="power is"):
        judge(panel(0.1, {"confirmatory_kind_2pl": NOTHING}), power=power)


@pytest.mark.parametrize("shares", [(float("nan"), 0.8), (-1, 0.8), (0.02, 2.0)])
def test_lines_of_the_rule_are_shares(shares):
    with pytest.raises(PlanError, match="expected a share"):
        Rule(*shares)


def test_other_types_are_refused():
    with pytest.raises(PlanError, match="comparison is None"):
        judge(None)
    with pytest.raises(PlanError, match="rule is None"):
        judge(panel(0.1, {"confirmatory_kind_2pl": FAR}), rule=None)


def test_models_that_do_not_challenge_are_not_said_to_be_missing():
    verdict = judge(panel(0.1, {"exploratory_5d_2pl": FAR}))
    assert verdict.evidence.empty
    assert "was compared as a challenger" in verdict.because
