"""Models are values: equal values mean the same model, names parse back, impossible models are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from irtaudit.errors import PlanError
from irtaudit.irt.spec import ModelSpec, check_models, spec_from_name

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
        (lambda: ModelSpec.exploratory("2pl", 1), "at least 2"),
        (lambda: ModelSpec.exploratory("2pl", 2.0), "whole number of dimensions.*2.0"),
        (lambda: ModelSpec.exploratory("2pl", 10**12), "whole number of dimensions"),
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
        (lambda: spec_from_name("exploratory_2pl", ITEMS), "not a model name"),
        (lambda: spec_from_name("exploratory_0d_2pl", ITEMS), "not a model name"),
        (lambda: spec_from_name("confirmatory_topic_2pl", ITEMS), "'topic'.*domain, kind"),
    ],
)
def test_impossible_models_are_refused_by_what_is_wrong(make: object, found: str) -> None:
    with pytest.raises(PlanError, match=found):
        make()  # type: ignore[operator]  # parametrised callables


def test_blanks_around_labels_do_not_count() -> None:
    spec = ModelSpec.confirmatory("2pl", ["math", "math ", " math", "art", "art\t", "art"])
    assert (spec.factors, spec.loadings) == (("art", "math"), ((1,),) * 3 + ((0,),) * 3)


@pytest.mark.parametrize(("n_subjects", "n_items"), [(4, 9), (9, 4), (4, 4)])
def test_dimensions_are_fewer_than_subjects_and_items(n_subjects: int, n_items: int) -> None:
    check_models([ModelSpec.unidimensional(), ModelSpec.exploratory("2pl", 3)], n_subjects, n_items)
    with pytest.raises(PlanError, match=r"exploratory_4d_2pl has 4 dimensions; .* carry at most 3"):
        check_models([ModelSpec.exploratory("2pl", 4)], n_subjects, n_items)
    check_models([ModelSpec.unidimensional()], 1, n_items)
