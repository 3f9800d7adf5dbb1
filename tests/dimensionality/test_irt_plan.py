import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtaudit.audit import run_audit
from irtaudit.data.read import read_responses
from irtaudit.dimensionality.plan import DEFAULT_MODELS, IrtPlan, paper_grid
from irtaudit.dimensionality.template import factor_columns, plan_template
from irtaudit.errors import DataError, PlanError
from irtaudit.plan import make_plan, plan_sha256, read_plan

PRINTED = Path(__file__).parents[1] / "reference" / "harmful_refusal_by_model.csv"
HEAD = {"kind": "irt", "schema_version": 1}


@pytest.fixture
def files(tmp_path):
    """A small table of responses with its item and subject tables, in a folder of their own."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    subjects, items = [f"s{i:02d}" for i in range(24)], [f"i{j:02d}" for j in range(12)]
    cells = pd.DataFrame(rng.integers(0, 2, (24, 12)), pd.Index(subjects, name="subject"), items)
    cells.to_csv(folder / "responses.csv")
    (cells * 0.5 + 0.5).to_csv(folder / "scores.csv")
    kinds = {"kind": ["a", "b"] * 6, "area": list("xxxyyyzzzwww"), "id": range(12), "same": "s"}
    pd.DataFrame(kinds, pd.Index(items, name="item")).to_csv(folder / "items.csv")
    developers = {"developer": ["Acme"] * 10 + ["Bolt"] * 9 + ["unknown"] * 5}
    pd.DataFrame(developers, pd.Index(subjects, name="subject")).to_csv(folder / "models.csv")
    return folder


def planned(**parts):
    return make_plan(HEAD | parts, IrtPlan)


def test_defaults_are_hashed_as_if_they_were_written():
    plain = planned()
    spelled = planned(
        models={"names": list(DEFAULT_MODELS)}, fit={"preset": "default", "restarts": 20}, seed=2026
    )
    assert plan_sha256(plain) == plan_sha256(spelled)
    assert plan_sha256(planned(seed=1)) != plan_sha256(plain)
    assert plan_sha256(planned(verdict={"margin_share": 0.03})) != plan_sha256(plain)


def test_the_paper_grid_is_that_of_the_printed_table():
    printed = pd.read_csv(PRINTED)["model"]
    columns = {"3d": "confirmatory_3d", "7d": "confirmatory_7d"}
    assert set(paper_grid(list(columns))) == set(printed)
    assert len(paper_grid(["kind"])) == 18
    assert all(not name.startswith("confirmatory") for name in paper_grid([]))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"splits": {"n_splits": 10**8}}, "n_splits: found 100000000, expected less than or equal to 1000"),
        ({"fit": {"restarts": 10**8}}, "restarts: found 100000000, expected less than or equal to 10000"),
        ({"models": {"names": ["bidimensional"]}}, "'bidimensional' is not a model name"),
        ({"models": {"names": ["exploratory_2d_1pl"]}}, "exploratory 1PL is not defined"),
        ({"models": {"names": []}}, "models.names"),
        (
            {"models": {"names": ["unidimensional_1pl", "unidimensional_2pl", "unidimensional_1pl"]}},
            "names unidimensional_1pl more than once",
        ),
        ({"models": {"challengers": ["exploratory_9d_2pl"]}}, "exploratory_9d_2pl, which names has not"),
        ({"model": {}}, "did you mean 'models'"),
        ({"fit": {"preset": "slow"}}, "fit.preset: found 'slow'"),
        ({"splits": {"n_splits": 1}}, "splits.n_splits"),
        ({"verdict": {"margin_share": 2.0}}, "verdict.margin_share"),
        ({"groups": [{"column": "d", "reference": "a", "focal": "a"}]}, "both groups are 'a'"),
        ({"groups": [{"column": "d", "reference": "a"}]}, "groups.0.focal is missing"),
        ({"followups": [{"name": "x", "column": "kind", "leave_out": []}]}, "followups.0.leave_out"),
        ({"data": {"pass_at": 2.0}}, "data.pass_at"),
        ({"data": {"sha256": "abc"}}, "data.sha256"),
        ({"kind": "panel"}, "kind"),
    ],
)
def test_a_wrong_key_is_named_with_what_was_expected(parts, said):
    with pytest.raises(PlanError, match="irt") as refused:
        make_plan(HEAD | parts, IrtPlan)
    assert said in str(refused.value)


def test_a_template_is_a_plan_with_the_columns_the_data_hash_and_the_largest_groups(files):
    text, notes = plan_template(
        files / "responses.csv", items=files / "items.csv", subjects=files / "models.csv", folder=files.parent
    )
    assert notes == ()
    plan = make_plan(tomllib.loads(text), IrtPlan)
    assert plan.data.responses == "data/responses.csv"
    assert plan.data.items == "data/items.csv"
    assert len(plan.data.sha256) == 64
    assert plan.models.names == (*DEFAULT_MODELS, "confirmatory_kind_2pl", "confirmatory_area_2pl")
    assert [(g.reference, g.focal) for g in plan.groups] == [("Acme", "Bolt")]
    assert plan.cluster == "developer"
    assert plan.status == "pre-specified"
    assert "# called preregistered; reports name the address and say that it was not checked." in text


def test_columns_that_are_named_become_the_factors_and_no_others(files):
    text, notes = plan_template(files / "responses.csv", items=files / "items.csv", factors=["area", "area"])
    plan = make_plan(tomllib.loads(text), IrtPlan)
    assert plan.models.names == (*DEFAULT_MODELS, "confirmatory_area_2pl")
    assert '# column = "area"' in text  # of the follow-up that is offered
    assert notes == ()
    paper, _ = plan_template(
        files / "responses.csv", items=files / "items.csv", factors=["area", "kind"], grid="paper"
    )
    wanted = paper_grid(["area", "kind"])
    assert make_plan(tomllib.loads(paper), IrtPlan).models.names == wanted
    assert "confirmatory_area_1pl" in wanted


def test_columns_that_cannot_be_factors_are_refused_by_name(files):
    for column, error, said in (
        ("domain", PlanError, "no item column 'domain'; the item table has: 'kind', 'area', 'id', 'same'"),
        ("same", DataError, "'same' cannot be the factors of a model"),
        ("id", DataError, "'id' cannot be the factors of a model"),
    ):
        with pytest.raises(error) as refused:
            plan_template(files / "responses.csv", items=files / "items.csv", factors=[column])
        assert said in str(refused.value)
    with pytest.raises(PlanError, match="Name a table of them with --items"):
        plan_template(files / "responses.csv", factors=["kind"])


def test_what_the_template_offers_in_comments_is_valid_when_uncommented(files):
    text, _ = plan_template(files / "responses.csv", items=files / "items.csv", subjects=files / "models.csv")
    offered = text.replace("# challengers", "challengers").replace("# pass_at", "pass_at")
    for line in ("[[followups]]", "name = ", "column = ", "leave_out = ", "heldout = "):
        offered = offered.replace(f"# {line}", line)
    plan = make_plan(tomllib.loads(offered), IrtPlan)
    assert plan.followups[0].column == "kind"
    assert plan.models.challengers == ("confirmatory_kind_2pl", "confirmatory_area_2pl")
    assert plan.splits.heldout == "mask.csv"


def test_scores_get_the_strict_pass_rule_as_a_guess(files):
    text, notes = plan_template(files / "scores.csv")
    plan = make_plan(tomllib.loads(text), IrtPlan)
    assert [note.partition(":")[0] for note in notes[:1]] == ["responses are scores"]
    assert "--items" in notes[1]
    assert plan.data.pass_at == 1.0
    assert plan.models.names == DEFAULT_MODELS
    assert plan.groups == ()


def test_the_paper_grid_in_a_template(files):
    text, _ = plan_template(files / "responses.csv", items=files / "items.csv", grid="paper")
    assert make_plan(tomllib.loads(text), IrtPlan).models.names == paper_grid(["kind", "area"])


def test_a_template_leaves_out_and_names_what_the_panel_cannot_carry(files):
    cells = pd.read_csv(files / "responses.csv", index_col=0)
    cells.iloc[:, 4:] = 1  # constant: the screen keeps four items
    cells.to_csv(files / "few.csv")
    for grid, most in (("default", 3), ("paper", 3)):
        text, _ = plan_template(files / "few.csv", items=files / "items.csv", grid=grid)
        plan = make_plan(tomllib.loads(text), IrtPlan)
        named = (*DEFAULT_MODELS, "confirmatory_kind_2pl", "confirmatory_area_2pl")
        wanted = paper_grid(["kind", "area"]) if grid == "paper" else named
        large = [
            name for name in wanted if "area" in name or int((*re.findall(r"_(\d+)d_", name), 0)[0]) > most
        ]
        assert large
        assert plan.models.names == tuple(name for name in wanted if name not in large)
        assert f"# Too large for what the screen keeps of this panel: {', '.join(large)}.\n" in text
        assert "confirmatory_area" not in text.partition("[models]")[2]


def test_columns_that_can_be_factors(files):
    items = pd.read_csv(files / "items.csv", index_col=0)
    assert factor_columns(items) == ["kind", "area"]
    assert factor_columns(items.assign(kind=["a", None] * 6)) == ["area"]
    assert factor_columns(items.assign(kind=["a"] * 10 + ["b"] * 2)) == ["area"]  # too few to merge


def test_a_model_list_needs_one_dimension():
    with pytest.raises(PlanError, match="No model with one dimension"):
        planned(models={"names": ["exploratory_2d_2pl"]})
    followup = {"name": "x", "column": "kind", "leave_out": ["a"], "models": ["exploratory_2d_2pl"]}
    with pytest.raises(PlanError, match="No model with one dimension"):
        planned(followups=[followup])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["x,1,0,1"], "screening leaves nothing of 1 subject"),
        (["x,1,0,1", "y,1,0,1", "z,1,0,1", "w,1,0,1"], "screening leaves nothing of 4 subjects x 3 items"),
        (["x,1,0,1", "y,0,0,1", "z,1,1,0"], "3 models x 3 items are left after screening; an audit needs"),
        (["x,1,0,1", "y,0,0,1", "z,1,1,1", "w,0,0,1"], "4 models x 2 items are left after screening"),
    ],
)
def test_a_plan_for_data_that_an_audit_refuses_says_so(tmp_path, rows, said):
    path = tmp_path / "small.csv"
    path.write_text("\n".join(["model,a,b,c", *rows, ""]), encoding="utf-8")
    text, notes = plan_template(path)
    (found,) = [note for note in notes if note.startswith("an audit refuses these data as they are: ")]
    assert said in found
    assert make_plan(tomllib.loads(text), IrtPlan).models.names == DEFAULT_MODELS
    with pytest.raises(DataError, match=said):
        run_audit(read_responses(path))


def test_a_column_whose_factors_cannot_stand_beside_each_other_is_not_proposed(files):
    items = pd.read_csv(files / "items.csv", index_col="item")
    assert factor_columns(items) == ["kind", "area"]
    assert factor_columns(items.assign(kind=["A", "A_sd"] * 6)) == ["area"]


def test_responses_that_are_none_are_refused(tmp_path):
    with pytest.raises(DataError, match="absent"):
        plan_template(tmp_path / "absent.csv")


def test_a_hostile_name_stays_a_text(files):
    odd = files / 'a"b\n[x].csv'
    odd.write_bytes((files / "responses.csv").read_bytes())
    text, _ = plan_template(odd, folder=files)
    assert make_plan(tomllib.loads(text), IrtPlan).data.responses == 'a"b\n[x].csv'


def test_a_plan_is_read_from_its_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('kind = "irt"\nschema_version = 1\nreading = "R"\n', encoding="utf-8")
    assert read_plan(path, IrtPlan).reading == "R"
