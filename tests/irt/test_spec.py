"""Models are values: equal values mean the same model, names parse back, impossible models are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from irtaudit.errors import PlanError
from irtaudit.irt.spec import ModelSpec, check_models, spec_from_name

TWO = [[1, 0]] * 3 + [[0, 1]] * 3
ITEMS = pd.DataFrame({"domain": list("abc") * 3, "kind": list("xy") * 4 + ["x"]})


@pytest.mark.parametrize(
    "spec",
    [
        ModelSpec.unidimensional("1pl"),
        ModelSpec.exploratory("3pl", 10),
        ModelSpec.confirmatory("2pl", ITEMS["domain"]),
        ModelSpec.confirmatory("1pl", ITEMS["kind"], priors="paper"),
    ],
    ids=lambda s: s.name,
)
def test_a_name_gives_the_model_back(spec: ModelSpec) -> None:
    assert spec_from_name(spec.name, ITEMS, priors=spec.priors) == spec
    assert hash(spec_from_name(spec.name, ITEMS, priors=spec.priors)) == hash(spec)


def test_patterns() -> None:
    assert ModelSpec.unidimensional("2pl").pattern(4).tolist() == [[True]] * 4
    assert ModelSpec.exploratory("2pl", 3).pattern(2).all()
    by_domain = ModelSpec.confirmatory("2pl", ITEMS["domain"])
    assert by_domain.factors == ("a", "b", "c")
    np.testing.assert_array_equal(by_domain.pattern(9), np.tile(np.eye(3, dtype=bool), (3, 1)))
    bifactor = np.column_stack([np.ones(6, int), np.repeat([1, 0], 3), np.repeat([0, 1], 3)])
    spec = ModelSpec.from_pattern("2pl", bifactor, name="bifactor", correlated=False)
    np.testing.assert_array_equal(spec.pattern(6), bifactor.astype(bool))
    assert (spec.dims, spec.positive, spec.correlated) == (3, True, False)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: ModelSpec.exploratory("1pl", 2), "1PL"),
        (lambda: ModelSpec.exploratory("2pl", 1), "dims .* is 1; .* 2 to 9,999"),
        (lambda: ModelSpec.exploratory("2pl", 2.0), "dims .* is 2.0; expected a whole number"),
        (lambda: ModelSpec.exploratory("2pl", 10**12), "expected a whole number"),
        (lambda: spec_from_name(f"exploratory_{'9' * 5000}d_2pl", ITEMS), "not a model name"),
        (lambda: ModelSpec.confirmatory("2pl", None), "factor_labels is None"),
        (lambda: ModelSpec.confirmatory("2pl", "aaabbb"), "factor_labels is 'aaabbb'"),
        (lambda: ModelSpec.confirmatory("2pl", ["a", "a ", " a"]), "every item is labelled 'a'"),
        (lambda: ModelSpec.unidimensional("4pl"), "'4pl'"),
        (lambda: ModelSpec.unidimensional("2pl", priors="flat"), "'flat'"),
        (lambda: ModelSpec.confirmatory("2pl", ["a"] * 5), "two factors"),
        (lambda: ModelSpec.confirmatory("2pl", ["a"] * 5 + ["b"] * 2), r"'b' \(2\)"),
        (lambda: ModelSpec.confirmatory("2pl", ["a", None, "b"] * 3), "item number 2"),
        (lambda: ModelSpec.confirmatory("2pl", ["a", " ", "b"] * 3), "item number 2"),
        (lambda: ModelSpec.confirmatory("2pl", []), "no label"),
        (lambda: ModelSpec.confirmatory("2pl", ITEMS["domain"]).pattern(8), "9 items"),
        (lambda: ModelSpec.from_pattern("2pl", [[1, 2]] * 4), "0 and 1"),
        (lambda: ModelSpec.from_pattern("2pl", [[1, 1]] * 4 + [[0, 0]]), "item number 5|Item number 5"),
        (lambda: ModelSpec.from_pattern("2pl", [[1, 0]] * 4, factors=("a",)), "1 factor names"),
        (lambda: ModelSpec.from_pattern("2pl", TWO, factors=["a", "a"]), "Two factors .* named 'a'"),
        (lambda: ModelSpec.from_pattern("2pl", TWO, factors=["a", " a"]), "Two factors .* named 'a'"),
        (
            lambda: ModelSpec.from_pattern("2pl", TWO, factors="ab"),
            "factors is 'ab'; expected a name for each",
        ),
        (
            lambda: ModelSpec.from_pattern("2pl", TWO, factors={"a", "b"}),
            "factors is .*; expected a name for",
        ),
        (lambda: ModelSpec.from_pattern("2pl", TWO, factors=2), "factors is 2; expected a name for each"),
        (lambda: ModelSpec.from_pattern("2pl", TWO, factors=["a", None]), "named ''; expected a name"),
        (lambda: ModelSpec.from_pattern("2pl", TWO, factors=["a", []]), r"one of factors is \[\]"),
        (lambda: ModelSpec.from_pattern("2pl", [[1, 0], [1]]), "rows of different lengths"),
        (lambda: ModelSpec.from_pattern("2pl", None), r"array of 0 and 1; got shape \(\)"),
        (lambda: ModelSpec.confirmatory("2pl", ITEMS[["domain"]]), r"a DataFrame of shape \(9, 1\)"),
        (lambda: ModelSpec.confirmatory("2pl", np.array([["a"], ["b"]])), r"a ndarray of shape \(2, 1\)"),
        (lambda: ModelSpec.confirmatory("2pl", {"a": 1, "b": 2}), "expected the category of each item"),
        (lambda: ModelSpec.confirmatory(["2pl"], ITEMS["domain"]), r"family is \['2pl'\]"),
        (lambda: ModelSpec("plain", "2pl", "unidimensional", "ab"), "factors of model 'plain' is 'ab'"),
        (lambda: ModelSpec("plain", "2pl", "unidimensional", (1,)), "a factor of model 'plain' is 1"),
        (lambda: ModelSpec(None, "2pl", "unidimensional", ("a",)), "name is None"),
        (lambda: spec_from_name("exploratory_2pl", ITEMS), "not a model name"),
        (lambda: spec_from_name("exploratory_0d_2pl", ITEMS), "not a model name"),
        (lambda: spec_from_name("confirmatory_topic_2pl", ITEMS), "'topic'.*'domain', 'kind'"),
    ],
)
def test_impossible_models_are_refused_by_what_is_wrong(make: object, found: str) -> None:
    with pytest.raises(PlanError, match=found):
        make()  # type: ignore[operator]  # parametrised callables


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: ModelSpec.confirmatory("2pl", pd.Series([a, b] * 3, name="kind")),
        lambda a, b: ModelSpec.from_pattern("2pl", TWO, name="kind", factors=[a, b]),
        lambda a, b: spec_from_name("confirmatory_kind_2pl", pd.DataFrame({"kind": [a, b] * 3})),
    ],
    ids=["labels", "pattern", "column"],
)
def test_names_whose_columns_would_be_one_are_refused(make: Any) -> None:
    for first, second in (("A", "A_sd"), ("A_sd", "A"), ("A_sd", "A_sd_sd")):
        low, high = sorted((first, second))
        with pytest.raises(PlanError, match=f"'confirmatory_kind_2pl' has the factors '{low}' and '{high}'"):
            make(first, second)
    for word in ("subject", "n_items"):
        with pytest.raises(PlanError, match=f"is named '{word}'"):
            make("A", word)
    assert make("A_sd", "B").factors == ("A_sd", "B")
    assert make("A", "A_sd_sd").factors == ("A", "A_sd_sd")


def test_dimensions_are_whole_numbers_of_any_type() -> None:
    assert ModelSpec.exploratory("2pl", np.int64(3)) == ModelSpec.exploratory("2pl", 3)
    with pytest.raises(PlanError, match=r"dims .* is True"):
        ModelSpec.exploratory("2pl", True)


def test_numbers_are_labels_whichever_way_a_model_is_made() -> None:
    made = ModelSpec.confirmatory("2pl", [1, 2] * 3), ModelSpec.from_pattern("2pl", TWO, factors=[1, 2])
    assert [spec.factors for spec in made] == [("1", "2")] * 2


def test_blanks_around_labels_do_not_count() -> None:
    spec = ModelSpec.confirmatory("2pl", ["math", "math ", " math", "art", "art\t", "art"])
    assert (spec.factors, spec.loadings) == (("art", "math"), ((1,),) * 3 + ((0,),) * 3)


@pytest.mark.parametrize(("n_subjects", "n_items"), [(4, 9), (9, 4), (4, 4)])
def test_dimensions_are_fewer_than_subjects_and_items(n_subjects: int, n_items: int) -> None:
    check_models([ModelSpec.unidimensional(), ModelSpec.exploratory("2pl", 3)], n_subjects, n_items)
    with pytest.raises(PlanError, match=r"exploratory_4d_2pl has 4 dimensions; .* carry at most 3"):
        check_models([ModelSpec.exploratory("2pl", 4)], n_subjects, n_items)
    check_models([ModelSpec.unidimensional()], 1, n_items)
