"""What leaves the package says the same as the fit: identities with the formulas of those who read it."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from panels import every_spec
from scipy.special import expit

from irtaudit.data.files import write_csv
from irtaudit.data.responses import ResponseMatrix
from irtaudit.dimensionality.tables import abilities_table, items_table
from irtaudit.errors import DataError, PlanError
from irtaudit.irt import export
from irtaudit.irt.layout import Layout
from irtaudit.irt.presets import get_preset
from irtaudit.irt.result import FitResult
from irtaudit.irt.saved import save_fit
from irtaudit.irt.spec import ModelSpec

N_SUBJECTS, N_ITEMS = 11, 9
SUBJECTS = ("=1+1", "a,b", *(f"model-{i}" for i in range(2, N_SUBJECTS)))
ITEMS = tuple(f"item-{j}" for j in range(N_ITEMS))
SPECS = every_spec("hierarchical")


def made_up(spec: ModelSpec, seed: int = 0) -> FitResult:
    """A fit with random posterior moments: what leaves it depends on nothing else."""
    rng, layout = np.random.default_rng(seed), Layout(spec, N_SUBJECTS, N_ITEMS)
    shapes = {name: (1, 1, size) for name, size in layout.sizes.items()}
    shapes["theta"] = (1, 1, N_SUBJECTS, spec.dims)
    ends = {"correlation": (spec.dims, spec.dims), "dim": (spec.dims,)}
    hypers = {one.name: ends.get(one.support, ends.get(str(one.plate), ())) for one in layout.hypers}
    scores = ("train_log_lik", "elbo", "log_loss", "brier", "epochs", "stop_reason", "retries", "elbo_best")
    restarts = pd.DataFrame(
        {"split": ["all"], "restart": [0], "selected": [True]} | dict.fromkeys(scores, 0.0)
    )
    return FitResult(
        spec=spec,
        subjects=SUBJECTS,
        items=ITEMS,
        splits=("all",),
        train_cells=(N_SUBJECTS * N_ITEMS,),
        means={name: rng.normal(0, 0.8, shape) for name, shape in shapes.items()},
        sds={name: rng.uniform(0.1, 0.4, shape) for name, shape in shapes.items()},
        hypers={name: rng.random((1, 1, *end)) for name, end in hypers.items()},
        restarts=restarts,
        heldout=pd.DataFrame(columns=["split", "log_loss", "log_loss_predictive", "brier"]),
        elbo_path=np.zeros((1, 1, 1)),
        seed=seed,
        preset=get_preset("quick"),
        data_sha256="none",
    )


def scale(family: str = "2pl") -> export.Scale:
    return export.scale_of(made_up(ModelSpec.unidimensional(family)))  # type: ignore[arg-type] # a Family


def assert_same_scale(found: export.Scale, expected: export.Scale) -> None:
    assert (found.model, found.family, set(found.factors)) == (
        expected.model,
        expected.family,
        set(expected.factors),
    )
    for mine, theirs in ((found.abilities, expected.abilities), (found.items, expected.items)):
        aligned = mine.loc[theirs.index, theirs.columns]
        assert len(mine) == len(theirs)
        np.testing.assert_allclose(aligned.to_numpy(float), theirs.to_numpy(float), rtol=1e-12)


# py-irt -----------------------------------------------------------------------------------------------


def py_irt_predicts(content: dict[str, Any]) -> np.ndarray:
    """Probabilities as the predict methods of py_irt 0.7.1 compute them (its models/*_param_logistic.py).

    Its multidim_2pl has no such method; its likelihood is sigmoid(sum_d disc_d (ability_d - diff_d)).
    """
    ability, diff = np.array(content["ability"]), np.array(content["diff"])
    if content["irt_model"] == "1pl":
        return 1 / (1 + np.exp(-(ability[:, None] - diff)))
    disc = np.array(content["disc"])
    if content["irt_model"] == "multidim_2pl":
        return 1 / (1 + np.exp(-(disc * (ability[:, None, :] - diff)).sum(axis=2)))
    lambdas = np.array(content.get("lambdas", 0.0))
    return lambdas + ((1 - lambdas) / (1 + np.exp(-disc * (ability[:, None] - diff))))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_py_irt_predicts_what_the_fit_predicts(spec: ModelSpec, tmp_path: Path) -> None:
    fit = made_up(spec)
    if spec.family == "3pl" and spec.dims > 1:
        with pytest.raises(PlanError, match="py-irt has no 3PL of several dimensions"):
            export.to_py_irt(export.scale_of(fit))
        return
    export.write_py_irt(export.scale_of(fit), tmp_path / "best_parameters.json")
    content = json.loads((tmp_path / "best_parameters.json").read_text())
    np.testing.assert_allclose(py_irt_predicts(content), fit.probabilities(), rtol=0, atol=1e-12)
    assert [content["item_ids"][str(j)] for j in range(N_ITEMS)] == list(ITEMS)
    assert [content["subject_ids"][str(i)] for i in range(N_SUBJECTS)] == list(SUBJECTS)


# The scale, from either source ------------------------------------------------------------------------


def audit_folder(folder: Path, *specs: ModelSpec) -> Path:
    """Tables as an audit writes them, of made-up fits."""
    fits = {spec.name: made_up(spec) for spec in specs}
    matrix = ResponseMatrix.from_array(np.eye(N_SUBJECTS, N_ITEMS), subjects=SUBJECTS, items=ITEMS)
    write_csv(abilities_table(fits), folder / "abilities.csv")
    write_csv(items_table(fits, matrix), folder / "items.csv")
    return folder


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_tables_of_an_audit_and_a_saved_fit_hold_the_same_scale(spec: ModelSpec, tmp_path: Path) -> None:
    expected = export.scale_of(made_up(spec))
    save_fit(made_up(spec), tmp_path / "fit.safetensors")
    assert_same_scale(export.read_scale(tmp_path / "fit.safetensors"), expected)
    assert_same_scale(export.read_scale(audit_folder(tmp_path, spec)), expected)


def test_a_model_of_several_is_named_or_the_first(tmp_path: Path) -> None:
    one, two = ModelSpec.unidimensional("3pl"), ModelSpec.confirmatory("2pl", list("abcabcabc"), name="x")
    audit_folder(tmp_path, one, two)
    assert export.read_scale(tmp_path).model == "unidimensional_3pl"
    assert export.read_scale(tmp_path, "confirmatory_x_2pl").factors == ("a", "b", "c")
    with pytest.raises(
        DataError, match="has no model 'y'; it has 'unidimensional_3pl', 'confirmatory_x_2pl'"
    ):
        export.read_scale(tmp_path, "y")
    save_fit(made_up(one), tmp_path / "fit")
    with pytest.raises(DataError, match="holds the model 'unidimensional_3pl', not 'y'"):
        export.read_scale(tmp_path / "fit", "y")


def test_a_folder_that_is_no_audit_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"abilities\.csv: there is no such file"):
        export.read_scale(tmp_path)
    audit_folder(tmp_path, ModelSpec.unidimensional("2pl"))
    (tmp_path / "items.csv").write_text("item,pass_rate\nx,1\n")
    with pytest.raises(DataError, match=r"items\.csv has no column 'factor'"):
        export.read_scale(tmp_path)
    (tmp_path / "items.csv").write_text("model,factor,item\nunidimensional_2pl,ability,x\n")
    with pytest.raises(DataError, match="lacking: 'intercept', 'intercept_sd', 'slope', 'slope_sd'"):
        export.read_scale(tmp_path)
    audit_folder(tmp_path, ModelSpec.unidimensional("2pl"))
    whole = (tmp_path / "items.csv").read_text()
    (tmp_path / "items.csv").write_text(whole.replace(",ability,item-3,", ",abilty,item-3,"))
    with pytest.raises(
        DataError, match=r"has the factors 'ability' in abilities\.csv and 'ability', 'abilty'"
    ):
        export.read_scale(tmp_path)
    (tmp_path / "items.csv").write_text(whole)
    abilities = pd.read_csv(tmp_path / "abilities.csv")
    abilities.astype({"theta": object}).assign(theta="much").to_csv(tmp_path / "abilities.csv", index=False)
    with pytest.raises(DataError, match=r"abilities\.csv: one of theta, theta_sd of .* is no finite number"):
        export.read_scale(tmp_path)
    audit_folder(tmp_path, ModelSpec.unidimensional("2pl"))
    (tmp_path / "items.csv").write_text(whole + whole.splitlines()[3] + "\n")
    with pytest.raises(DataError, match=r"items\.csv: 'item-2' has two rows for one factor; keep one"):
        export.read_scale(tmp_path)
    (tmp_path / "other").write_text("x")
    with pytest.raises(DataError, match="is not a saved fit"):
        export.read_scale(tmp_path / "other")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_give_themselves_back(tmp_path: Path, suffix: str) -> None:
    mine = scale("3pl")
    paths = export.write_tables(mine, tmp_path, suffix)
    assert [path.name for path in paths] == [f"abilities{suffix}", f"items{suffix}"]
    read = pd.read_csv if suffix == ".csv" else pd.read_parquet
    abilities, items = (read(path) for path in paths)
    np.testing.assert_allclose(abilities.drop(columns="subject"), mine.abilities, rtol=1e-12)
    np.testing.assert_allclose(items.drop(columns="item"), mine.items, rtol=1e-12)
    assert abilities["subject"].tolist()[0] == ("'=1+1" if suffix == ".csv" else "=1+1")


# Draws ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_draws_have_the_moments_of_the_posterior(spec: ModelSpec) -> None:
    mine, n = export.scale_of(made_up(spec)), 4_000
    draws = export.posterior_draws(mine, n, seed=1)
    slope_sd = mine.items[[f"slope_{factor}_sd" for factor in mine.factors]].to_numpy()
    expected = {
        "theta": tuple(
            mine.abilities[[f"{factor}{end}" for factor in mine.factors]].to_numpy() for end in ("", "_sd")
        ),
        "slope": (mine.slopes, slope_sd),
        "intercept": (mine.items["intercept"].to_numpy(), mine.items["intercept_sd"].to_numpy()),
    }
    for name, (mean, sd) in expected.items():
        # five standard errors: of a mean sd / sqrt(n); log-normal SDs have kurtosis below 5 at SD .4
        np.testing.assert_array_less(np.abs(draws[name].mean(axis=0) - mean), 5 * sd / np.sqrt(n) + 1e-12)
        np.testing.assert_allclose(draws[name].std(axis=0), sd, rtol=5 * np.sqrt(5 / 4 / n), atol=1e-12)
    assert (draws["slope"][:, mine.slopes == 0] == 0).all()
    if spec.family == "3pl":
        assert np.abs(np.median(draws["guess"], axis=0) - mine.items["guess"]).max() < 0.02
        assert ((draws["guess"] > 0) & (draws["guess"] < 1)).all()


def test_the_common_slope_of_a_1pl_is_one_draw() -> None:
    draws = export.posterior_draws(scale("1pl"), 50)["slope"][:, :, 0]
    assert (draws == draws[:, :1]).all()
    assert len(np.unique(draws)) == 50


def test_the_same_seed_gives_the_same_draws() -> None:
    first, again, other = (export.posterior_draws(scale(), 10, seed)["theta"] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("old", [True, False])
def test_arviz_gets_named_draws(monkeypatch: pytest.MonkeyPatch, old: bool) -> None:
    calls: list[Any] = []
    module = ModuleType("arviz")
    module.__dict__["from_dict"] = lambda *given, **named: calls.append((given, named))
    if old:  # before its version 1, arviz has InferenceData and takes groups as keywords
        module.__dict__["InferenceData"] = object
    monkeypatch.setitem(sys.modules, "arviz", module)
    export.to_arviz(scale("3pl"), 7)
    ((given, named),) = calls
    posterior = named["posterior"] if old else given[0]["posterior"]
    assert {name: values.shape for name, values in posterior.items()} == {
        "theta": (1, 7, N_SUBJECTS, 1),
        "slope": (1, 7, N_ITEMS, 1),
        "intercept": (1, 7, N_ITEMS),
        "guess": (1, 7, N_ITEMS),
    }
    assert named["coords"] == {"subject": list(SUBJECTS), "item": list(ITEMS), "factor": ["ability"]}


@pytest.mark.skipif(find_spec("arviz") is None, reason="arviz, an extra, is not installed here")
def test_arviz_reads_the_file_back(tmp_path: Path) -> None:
    import arviz

    export.write_arviz(scale(), tmp_path / "posterior.nc", 20, seed=2)
    posterior = arviz.from_netcdf(tmp_path / "posterior.nc").posterior
    expected = export.posterior_draws(scale(), 20, seed=2)["theta"][:, 0, 0]
    np.testing.assert_allclose(posterior["theta"].sel(subject="=1+1", factor="ability").values[0], expected)


def test_without_arviz_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(PlanError, match=r"pip install 'irtaudit\[arviz\]'"):
        export.to_arviz(scale())


# Short forms ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["1pl", "2pl", "3pl"])
def test_information_is_that_of_the_response_probability(family: str) -> None:
    mine, at, step = scale(family), np.array([-2.0, -0.3, 1.7]), 1e-5
    a, d, c = mine.slopes, mine.items["intercept"].to_numpy()[:, None], mine.guess[:, None]

    def p(theta: np.ndarray) -> np.ndarray:
        return c + (1 - c) * expit(a * theta + d)

    derivative = (p(at + step) - p(at - step)) / (2 * step)
    expected = derivative**2 / (p(at) * (1 - p(at)))  # Fisher information of a Bernoulli response
    np.testing.assert_allclose(export.item_information(mine, at), expected, rtol=1e-6)


def test_at_one_ability_the_form_is_the_smallest_there_is() -> None:
    mine = scale()
    information = export.item_information(mine, [0.4])[:, 0]
    for share in (0.1, 0.5, 0.8, 1.0):
        form = export.informative_items(mine, [0.4], share=share)
        enough = [
            size
            for size in range(1, N_ITEMS + 1)
            if np.sort(information)[::-1][:size].sum() >= share * information.sum() - 1e-9
        ]
        assert len(form) == min(enough)
        assert form["share_at_0.4"].iloc[-1] >= share - 1e-9


def test_at_several_abilities_it_reaches_the_share_and_is_near_the_smallest() -> None:
    at = [-1.5, 0.0, 1.5]
    for seed in range(8):
        mine = export.scale_of(made_up(ModelSpec.unidimensional("2pl"), seed))
        relative = export.item_information(mine, at)
        relative = relative / relative.sum(axis=0)
        form = export.informative_items(mine, at, share=0.6)
        assert (form[[f"share_at_{ability:g}" for ability in at]].iloc[-1] >= 0.6 - 1e-9).all()
        smallest = next(
            size
            for size in range(1, N_ITEMS + 1)
            if any(
                (relative[list(items)].sum(axis=0) >= 0.6).all()
                for items in combinations(range(N_ITEMS), size)
            )
        )
        assert len(form) <= smallest + 1


def test_a_form_of_so_many_items_and_of_one_factor() -> None:
    mine = export.scale_of(made_up(ModelSpec.confirmatory("2pl", list("abcabcabc"), name="x")))
    form = export.informative_items(mine, [0.0], count=2, factor="b")
    assert len(form) == 2
    assert set(form["item"]) < {"item-1", "item-4", "item-7"}
    assert form["rank"].tolist() == [1, 2]
    assert form["information_at_0"].is_monotonic_decreasing
    with pytest.raises(PlanError, match="has the factors 'a', 'b', 'c'; name one"):
        export.informative_items(mine)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": []}, "expected some abilities"),
        ({"at": [np.nan]}, "expected some abilities"),
        ({"share": 0}, "share is 0"),
        ({"share": 1.1}, "share is 1.1"),
        ({"count": 0}, "count is 0, expected 1 to 9"),
        ({"count": 10}, "count is 10, expected 1 to 9"),
    ],
)
def test_forms_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        export.informative_items(scale(), **options)
