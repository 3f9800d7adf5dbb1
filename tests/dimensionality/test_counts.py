from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtaudit.dimensionality.counts import Counts, aic, bic, fitted_quantities
from irtaudit.irt.spec import ModelSpec

PUBLISHED = pd.read_csv(Path(__file__).parents[1] / "reference" / "harmful_refusal_by_model.csv")
N, J = 81, 398


def _spec(model, family, dims):
    if model.startswith("unidimensional"):
        return ModelSpec.unidimensional(family)
    if model.startswith("exploratory"):
        return ModelSpec.exploratory(family, dims)
    return ModelSpec.confirmatory(family, np.arange(J) % dims, name=f"{dims}d")


@pytest.mark.parametrize("row", list(PUBLISHED.itertuples()), ids=lambda row: row.model)
def test_counts_and_criteria_of_the_published_table(row):
    spec = _spec(row.model, row.family, row.dims)
    assert spec.name == row.model
    quantities = fitted_quantities(spec, N, J).paper
    assert quantities == row.fitted_quantities
    # The likelihood is printed to .001, so 2 log L is known to .001: one unit of the printed .01 at most.
    assert aic(quantities, row.train_log_lik) == pytest.approx(row.aic, abs=0.0105)
    assert bic(quantities, row.train_log_lik, 25_790) == pytest.approx(row.bic, abs=0.0105)


def test_the_papers_counts_by_name():
    assert fitted_quantities(ModelSpec.unidimensional("2pl"), N, J).paper == 877
    assert fitted_quantities(_spec("confirmatory", "2pl", 3), N, J).paper == 1039
    assert fitted_quantities(_spec("confirmatory", "2pl", 7), N, J).paper == 1363
    assert fitted_quantities(ModelSpec.exploratory("2pl", 2), N, J).paper == 1754
    assert fitted_quantities(ModelSpec.exploratory("2pl", 10), N, J).paper == 8770


def test_exact_counts_by_hand():
    # one dimension, 2PL: slope and intercept per item, a score per subject: the paper's count is exact
    assert fitted_quantities(ModelSpec.unidimensional("2pl"), N, J) == Counts(877, 877)
    # 1PL: one common slope that the paper's count leaves out
    assert fitted_quantities(ModelSpec.unidimensional("1pl"), N, J) == Counts(479, 1 + 398 + 81)
    # three factors: three correlations more
    assert fitted_quantities(_spec("confirmatory", "2pl", 3), N, J) == Counts(1039, 1039 + 3)
    # ten exploratory dimensions share one intercept per item
    assert fitted_quantities(ModelSpec.exploratory("2pl", 10), N, J).exact == 398 * 11 + 810
    # bifactor: a general and one of two specific slopes per item, no correlation learned
    pattern = np.zeros((J, 3), dtype=int)
    pattern[:, 0] = 1
    pattern[np.arange(J), 1 + np.arange(J) % 2] = 1
    bifactor = ModelSpec.from_pattern("2pl", pattern, correlated=False)
    assert fitted_quantities(bifactor, N, J).exact == 2 * 398 + 398 + 3 * 81
