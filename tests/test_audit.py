import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from audit_panels import FAST, shuffled_within_items, two_factor_panel

from irtaudit.audit import DEFAULT_MODELS, _family, _small, model_specs, run_audit
from irtaudit.data.outputs import check_folder
from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.screen import screen
from irtaudit.data.splits import Splits, make_splits
from irtaudit.dimensionality.compare import TABLE
from irtaudit.dimensionality.plan import Followup, Group
from irtaudit.dimensionality.present_files import holds
from irtaudit.errors import DataError, PlanError, StorageError
from irtaudit.irt.spec import ModelSpec
from irtaudit.present import sections, summary, write_audit

TOO_WIDE = ("exploratory_52d_2pl",)
MODELS = ("unidimensional_1pl", "unidimensional_2pl", "exploratory_2d_2pl")
FILES = {
    "audit.json",
    "comparison.csv",
    "comparison_by_split.csv",
    "restarts.csv",
    "factor_correlations.csv",
    "abilities.csv",
    "items.csv",
    "pairwise.csv",
    "dropped.csv",
    "eigenvalues.csv",
    "local_dependence.csv",
    "item_fit.csv",
    "person_fit.csv",
    "predictive_checks.csv",
    "reliability.csv",
    "information.csv",
    "loadings.csv",
    "congruence.csv",
    "rotated_correlations.csv",
    "report.html",
    "figures",
    "fits",
    ".irtaudit.json",
}


@pytest.fixture(scope="module")
def matrix():
    return two_factor_panel()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module")
def result(matrix, folder):
    return run_audit(matrix, models=MODELS, factors=["kind"], claim="Score = skill", out=folder, **FAST)


@pytest.fixture(scope="module")
def written(result, folder):
    write_audit(result, folder, command="irtaudit audit panel.csv")
    return folder


@pytest.fixture(scope="module")
def summarised(written):
    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    return json.loads((written / "audit.json").read_text(encoding="utf-8"), parse_constant=refuse)


def test_planted_factors_are_found(result):
    """Two independent factors: both challengers lie above the margin, and over families too."""
    verdict = result.verdict
    assert verdict.evidence["position"].tolist() == ["above", "above"]
    assert verdict.word == "not supported"
    assert verdict.conditions["state"].tolist()[:3] == ["met", "met", "met"]
    assert result.power is None, "power does not matter here"
    table = result.comparison.table.set_index("model")["log_loss"]
    assert table["confirmatory_kind_2pl"] < table["unidimensional_2pl"] < table["item_means"]


def test_one_planted_factor_is_supported_where_the_panel_could_have_shown_more():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(150, 1))
    p = 1 / (1 + np.exp(-theta * np.exp(rng.normal(0.3, 0.3, 90)) - rng.normal(size=90)))
    items = pd.DataFrame({"kind": np.repeat(["a", "b", "c"], 30)}, index=[f"item_{j:02}" for j in range(90)])
    planted = ResponseMatrix.from_array((rng.random(p.shape) < p) * 1.0, items=items)
    found = run_audit(planted, models=["unidimensional_2pl"], factors=["kind"], **(FAST | {"n_restarts": 1}))
    assert found.verdict.word == "supported"
    assert found.power.power >= 0.8
    assert (found.power.n_panels, found.power.factors) == (40, "confirmatory_kind_2pl")


def test_families_are_a_subject_column(matrix):
    with pytest.raises(PlanError, match="no subject column 'lab'"):
        run_audit(matrix, models=MODELS, cluster="lab", **FAST)


@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_blank_column_names_no_families(matrix, blank):
    subjects = matrix.subjects.assign(developer=blank)
    unnamed = ResponseMatrix(matrix.responses, matrix.items, subjects)
    assert _family(unnamed, None) is None
    with pytest.raises(PlanError, match="blank for every model"):
        run_audit(unnamed, models=MODELS, cluster="developer", **FAST)
    subjects.loc[subjects.index[0], "developer"] = "lab"
    assert _family(ResponseMatrix(matrix.responses, matrix.items, subjects), None) == "developer"


def test_full_data_fits_are_of_the_best_single_dimension_and_the_confirmatory_models(result):
    assert list(result.full) == [result.verdict.best, "confirmatory_kind_2pl"]
    assert all(fit.splits == ("all",) for fit in result.full.values())
    assert result.full["confirmatory_kind_2pl"].spec.factors == ("other", "verbal", "visual")


def test_screen_and_merges_are_told(result):
    assert result.dropped["name"].tolist() == ["item_52"]
    assert result.matrix.n_items == 52
    assert any("'rare' (2)" in note for note in result.notes)


def test_on_responses_shuffled_within_items_there_is_nothing_to_measure(matrix):
    found = run_audit(shuffled_within_items(matrix), models=MODELS, factors=["kind"], **FAST)
    assert found.verdict.word == "nothing to measure"
    comparison = found.comparison
    for model in found.fits:
        assert comparison.interval(model, "item_means", len(found.fits)).low < 0


def test_the_folder_holds_what_other_programs_read(written):
    assert {path.name for path in written.iterdir()} == FILES
    assert {path.name for path in (written / "figures").iterdir()} == {
        "held_out_predictions.svg",
        "held_out_comparison.svg",
        "factor_correlations.svg",
        "restart_agreement.svg",
        "eigenvalues.svg",
        "more_than_one_dimension.svg",
        "reliability.svg",
        "loadings_of_exploratory_models.svg",
    }
    comparison = pd.read_csv(written / "comparison.csv")
    assert comparison.columns.tolist() == TABLE
    assert set(comparison["structure"]) == {"baseline", "unidimensional", "exploratory", "confirmatory"}
    assert len(pd.read_csv(written / "restarts.csv")) == 4 * 5 * 2
    assert len(pd.read_csv(written / "comparison_by_split.csv")) == 6 * 5


def test_the_page_says_what_every_table_holds(written):
    page = (written / "report.html").read_text(encoding="utf-8")
    for path in written.glob("*.csv"):
        assert f"{path.name}</" in page, path.name
        assert holds(path.stem), path.name


def test_the_summary_has_the_keys_that_other_programs_read(summarised, matrix, result):
    assert summarised["schema_version"] == 1
    assert summarised["data"]["sha256"] == matrix.sha256
    assert (summarised["data"]["n_subjects"], summarised["data"]["n_items"]) == (90, 53)
    assert summarised["data"]["analysed"]["n_items"] == 52
    assert summarised["seeds"] == {"splits": [2026, 2027, 2028, 2029, 2030], "fits": 2026, "restarts": [0, 1]}
    assert {"irtaudit", "python", "torch", "numpy"} <= set(summarised["versions"])
    assert summarised["verdict"]["reading"] == result.verdict.word
    assert summarised["verdict"]["claim"] == "Score = skill"
    assert [row["challenger"] for row in summarised["verdict"]["evidence"]] == list(
        result.verdict.challengers
    )
    assert summarised["verdict"]["evidence"][0]["cluster_low"] > 0
    assert summarised["power"] is None
    assert summarised["factor_correlations"][0]["population_low"] < 1


def test_the_summary_and_the_tables_agree(summarised, written, result):
    exact = {"float_precision": "round_trip"}
    table = pd.read_csv(written / "comparison.csv", **exact).set_index("model")
    for row in summarised["comparison"]:
        assert row["log_loss"] == table.loc[row["model"], "log_loss"]
    correlation = pd.read_csv(written / "factor_correlations.csv", **exact)["correlation"]
    assert [row["correlation"] for row in summarised["factor_correlations"]] == correlation.tolist()
    gain = table.loc["item_means", "log_loss"] - table.loc[result.verdict.best, "log_loss"]
    assert summarised["verdict"]["gain"]["estimate"] == pytest.approx(gain)
    assert summarised["verdict"]["margin"] == pytest.approx(0.02 * gain)


def test_the_summary_has_the_weaker_finding_of_the_nested_model_check(result):
    table = result.comparison.table
    lower = table["train_log_lik"].where(table["model"] != "unidimensional_2pl", -1e6)
    bent = replace(result, comparison=replace(result.comparison, table=table.assign(train_log_lik=lower)))
    told = summary(bent)
    (row,) = [row for row in told["lower_likelihoods"] if row["model"] == "unidimensional_2pl"]
    assert (row["nested"], row["train_log_lik"]) == ("unidimensional_1pl", -1e6)
    assert told["failed_fits"] == told["nested_findings"] == []


def test_what_an_audit_returns_prints_in_a_line_each(result):
    assert repr(result) == "AuditResult('Score = skill': not supported, 90 subjects x 52 items, 4 models)"
    assert repr(result.comparison) == (
        "Comparison(4 models, 2 baselines, 5 splits, reference='unidimensional_1pl', 0 failed)"
    )
    assert repr(result.splits) == "Splits(5 splits of 90 subjects x 52 items, 936 cells held out each)"
    assert repr(result.verdict) == "Verdict('not supported', best='unidimensional_1pl', 2 challengers)"
    assert repr(screen(result.data)).startswith("Screened(ResponseMatrix(90 subjects x 52 items, ")
    for fits in (result.fits, result.full):
        assert "\n" not in repr(fits)
        assert len(repr(fits)) < 120 * len(fits)
    assert repr(result.structure).startswith("Structure(unidimensional_2pl, nulls: ")
    fit = result.fits["confirmatory_kind_2pl"]
    assert repr(fit) == "FitResult(confirmatory_kind_2pl, 90 subjects x 52 items, 5 splits x 2 restarts)"
    assert len(repr(fit.spec)) < 250
    assert fit.items[0] not in repr(fit.spec)


def test_the_structure_of_the_planted_panel_stands_in_summary_and_tables(summarised, written):
    tests = {row["null"]: row for row in summarised["structure"]["eigenvalue_tests"]}
    table = pd.read_csv(written / "eigenvalues.csv", float_precision="round_trip").set_index(["null", "rank"])
    assert set(tests) == {"permuted", "redrawn", "margins", "one_factor", "residual"}
    for null, row in tests.items():
        assert row["p"] == table.loc[(null, row["rank"]), "p"]
    assert tests["permuted"]["p"] == pytest.approx(1 / 1001)
    assert tests["residual"]["p"] == summarised["structure"]["one_factor"]["p"] == pytest.approx(1 / 201)
    assert summarised["structure"]["one_factor"]["panels"] == 200
    reliability = pd.read_csv(written / "reliability.csv").set_index("factor")["reliability"]
    assert reliability.between(0.3, 1).all()


def test_the_report_states_claim_word_data_and_command(written, matrix):
    page = (written / "report.html").read_text(encoding="utf-8")
    for text in (
        "Score = skill",
        "inconclusive",
        matrix.sha256,
        "irtaudit audit panel.csv",
        "52 of 53",
        "item_52",
    ):
        assert text in page


def test_the_same_audit_takes_up_finished_fits_and_gives_the_same_numbers(written, matrix, summarised):
    calls = []
    again = run_audit(
        matrix,
        models=MODELS,
        factors=["kind"],
        claim="Score = skill",
        out=written,
        progress=lambda *call: calls.append(call),
        **FAST,
    )
    assert calls[:2] == [("Held-out comparison", 40, 40), ("Fits to every response", 4, 4)]
    assert {stage for stage, _, _ in calls[2:]} == {"Loadings", "Simulated panels with one dimension"}
    told = summary(again, "irtaudit audit panel.csv")
    assert told | {"seconds": 0} == summarised | {"seconds": 0}


@pytest.mark.parametrize("change", [{"seed": 1}, {"n_restarts": 1}, {"models": ["unidimensional_1pl"]}])
def test_a_folder_of_another_audit_is_refused(written, matrix, change):
    before = sorted(path.stat().st_mtime_ns for path in written.rglob("*"))
    options = {"models": MODELS, "factors": ["kind"], **FAST, **change}
    with pytest.raises(PlanError, match="holds another audit"):
        run_audit(matrix, out=written, **options)
    assert sorted(path.stat().st_mtime_ns for path in written.rglob("*")) == before


def test_a_folder_of_other_data_is_refused(written, matrix, result):
    with pytest.raises(PlanError, match="data"):
        run_audit(shuffled_within_items(matrix), models=MODELS, factors=["kind"], out=written, **FAST)
    with pytest.raises(PlanError, match="held_out"):
        write_audit(replace(result, settings=result.settings | {"held_out": "other"}), written)


def test_an_impossible_folder_is_a_storage_error(tmp_path, matrix):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StorageError, match="cannot be made"):
        run_audit(matrix, models=["unidimensional_1pl"], out=tmp_path / "file" / "out", **FAST)


@pytest.mark.parametrize(
    "impossible",
    [
        {"models": TOO_WIDE},
        {"models": ["tridimensional"]},
        {"models": ["exploratory_2d_2pl"]},
        {"challengers": ["exploratory_2d_2pl"]},
        {
            "followups": [
                Followup(
                    name="x",
                    column="kind",
                    leave_out=("rare",),
                    models=("unidimensional_1pl", "exploratory_60d_2pl"),
                )
            ]
        },
        {"groups": [Group(column="lab", reference="a", focal="b")]},
        {"cluster": "lab"},
        {"preset": "paperr"},
        {"claim": " "},
        {"n_restarts": 0},
        {"device": "tpu"},
    ],
    ids=lambda options: "-".join(options),
)
def test_what_is_impossible_is_refused_before_the_folder_is_taken(tmp_path, matrix, impossible):
    """So that the corrected command finds its folder free."""
    options = {"models": ["unidimensional_1pl"], **FAST, **impossible}
    with pytest.raises((PlanError, DataError)):
        run_audit(matrix, out=tmp_path / "out", **options)
    check_folder(tmp_path / "out", "audit", {"corrected": True})


def test_own_held_out_cells_follow_the_screen(matrix):
    mask = make_splits(matrix, n_splits=2, seed=9).test
    found = run_audit(matrix, models=["unidimensional_1pl"], splits=Splits.from_test_masks(mask), **FAST)
    assert found.splits.test.shape == (2, 90, 52)
    assert np.array_equal(found.splits.test, mask[:, :, :52])
    assert found.comparison.by_split["split"].unique().tolist() == ["split 1", "split 2"]
    fit = found.fits["unidimensional_1pl"]
    expected = tuple(int((~mask[s, :, :52]).sum()) for s in range(2))
    assert fit.train_cells == expected


def test_hostile_names_become_neither_formulas_nor_markup(tmp_path):
    plain = two_factor_panel(n_subjects=30)
    names = ["=cmd()", "<script>alert(1)</script>", *plain.items.index[2:]]
    items = plain.items.set_axis(pd.Index(names), axis=0)
    hostile = ResponseMatrix(plain.responses, items, plain.subjects, "<i>source</i>")
    found = run_audit(hostile, models=["unidimensional_1pl"], **FAST)
    page = write_audit(found, tmp_path).read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "<i>source" not in page
    assert "'=cmd()" in (tmp_path / "items.csv").read_text(encoding="utf-8")
    assert (
        json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))["data"]["source"] == "<i>source</i>"
    )


def test_default_models_and_factors_by_name():
    items = pd.DataFrame({"kind": list("aaabbb"), "two words": list("xyxyxy")}, index=list("123456"))
    specs, notes = model_specs(items, DEFAULT_MODELS, ["kind", "two words"])
    assert [spec.name for spec in specs] == [
        *DEFAULT_MODELS,
        "confirmatory_kind_2pl",
        "confirmatory_two words_2pl",
    ]
    assert notes == []
    again, _ = model_specs(items, ["confirmatory_kind_2pl", "confirmatory_kind_3pl"], ["kind"])
    assert [spec.name for spec in again] == ["confirmatory_kind_2pl", "confirmatory_kind_3pl"]


def test_a_model_given_as_a_value_is_used_as_it_is():
    spec = ModelSpec.from_pattern("2pl", np.ones((6, 1)), name="mine")
    assert model_specs(pd.DataFrame(index=list("123456")), [spec], [])[0] == [spec]


def test_impossible_models_are_refused_by_name():
    items = pd.DataFrame({"kind": list("aaabbb"), "only": "x"}, index=list("123456"))
    with pytest.raises(PlanError, match="'domain'"):
        model_specs(items, [], ["domain"])
    with pytest.raises(PlanError, match="at least two factors"):
        model_specs(items, [], ["only"])
    with pytest.raises(PlanError, match="not a model name"):
        model_specs(items, ["bidimensional"], [])
    with pytest.raises(DataError, match="no factor label"):
        model_specs(items.assign(kind=["a", None, "a", "b", "b", "b"]), [], ["kind"])


def test_a_folder_with_the_users_own_files_is_refused_before_anything_is_written(matrix, tmp_path):
    (tmp_path / "items.csv").write_text("mine")
    with pytest.raises(PlanError, match=r"holds 'items.csv', which irtaudit did not write"):
        run_audit(matrix, models=MODELS, out=tmp_path, **FAST)
    assert [path.name for path in tmp_path.iterdir()] == ["items.csv"]
    assert (tmp_path / "items.csv").read_text() == "mine"


def test_a_panel_without_enough_models_or_items_is_refused_and_a_small_one_warned_about(matrix):
    with pytest.raises(DataError, match="at least 4 models and 3 items"):
        run_audit(ResponseMatrix.from_array([[0, 1, 0], [1, 0, 1], [0, 0, 1]]), **FAST)
    with pytest.raises(DataError, match="x 2 items are left"):
        run_audit(ResponseMatrix.from_array([[0, 1], [1, 0], [1, 1], [0, 0]]), **FAST)
    small = matrix.select(subjects=np.arange(matrix.n_subjects) < 12)
    found = run_audit(small, models=["unidimensional_1pl"], structured=False, **FAST)
    assert any("small panel" in note for note in found.notes)
    assert not any("small panel" in note for note in _small(matrix))


@pytest.mark.parametrize(
    ("shape", "left_out"),
    [
        ((4, 9), ["exploratory_4d_2pl"]),
        ((9, 3), ["exploratory_3d_2pl", "exploratory_4d_2pl"]),
        ((5, 5), []),
    ],
)
def test_default_models_that_a_panel_cannot_carry_are_left_out_and_the_others_compared(shape, left_out):
    few = {**FAST, "n_restarts": 1}
    panel = ResponseMatrix.from_array(np.indices(shape).sum(axis=0) % 3 > 0)
    found = run_audit(panel, structured=False, **few)
    assert list(found.fits) == [name for name in DEFAULT_MODELS if name not in left_out]
    assert list(found.verdict.challengers) == [name for name in found.fits if name.startswith("exploratory")]
    told = [note for note in found.notes if "left out" in note]
    assert len(told) == bool(left_out)
    assert all(f"too few for {' and '.join(left_out)}, " in note for note in told)
    assert [note for note in summary(found)["data"]["notes"] if "left out" in note] == told
    limits = [part.claim for part in sections(found) if part.place == "limit"]
    assert sum("left out" in claim for claim in limits) == bool(left_out)
    assert list(found.left_out) == summary(found)["left_out_models"] == left_out
    assert found.verdict.word in ("inconclusive", "nothing to measure")


def test_models_that_the_user_names_are_not_left_out():
    panel = ResponseMatrix.from_array(np.indices((4, 9)).sum(axis=0) % 3 > 0)
    for named in ({"models": DEFAULT_MODELS}, {"challengers": ["exploratory_4d_2pl"]}):
        with pytest.raises(PlanError, match="exploratory_4d_2pl has 4 dimensions; 4 subjects x 9 items"):
            run_audit(panel, **named, **FAST)


def test_labels_that_are_all_too_small_are_refused_by_their_own_names():
    items = pd.DataFrame({"kind": list("aabbccdd")})
    with pytest.raises(
        DataError, match="The 4 categories of the item column 'kind' have one or two items each"
    ):
        model_specs(items, ["unidimensional_1pl"], ["kind"])
