"""R difR on GMAT, from contingency counts alone; see tests/reference/gmat_difr.md."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtaudit.data.responses import ResponseMatrix
from irtaudit.dif.contrast import make_contrast
from irtaudit.dif.matching import Matching
from irtaudit.dif.observed import Gathered, logistic_columns, mantel_haenszel_columns
from irtaudit.dif.options import DifOptions

REFERENCE = Path(__file__).parents[1] / "reference"
COUNTS = pd.read_csv(REFERENCE / "gmat_counts.csv")
DIFR = pd.read_csv(REFERENCE / "gmat_difr.csv")
CRITICAL = 3.841458820694124


def counts(matching_round: int) -> Gathered:
    rows = COUNTS[COUNTS["round"] == matching_round]
    columns = pd.MultiIndex.from_product([["reference", "focal"], range(21)])
    table = rows.pivot_table(index="item", columns=["group", "score"], values=["passes", "responses"])
    shape = (len(DIFR), 2, 21)
    parts = (table[v].reindex(index=DIFR["item"], columns=columns) for v in ("passes", "responses"))
    passes, totals = (part.fillna(0).to_numpy().reshape(shape).transpose(1, 2, 0) for part in parts)
    return Gathered(passes, totals)


def test_mantel_haenszel_equals_difr():
    found = mantel_haenszel_columns(counts(1))
    assert found["chi2"].to_numpy() == pytest.approx(DIFR["MH_chisq_corrected"], abs=1e-6)
    assert found["alpha"].to_numpy() == pytest.approx(DIFR["alphaMH"], abs=1e-6)
    assert found["delta"].to_numpy() == pytest.approx(DIFR["deltaMH"], abs=1e-6)
    assert found["se"].to_numpy() ** 2 == pytest.approx(DIFR["varLambda"], abs=1e-6)
    assert found["std_p_dif"].to_numpy() == pytest.approx(DIFR["stdPDIF"], abs=1e-6)
    assert found["p_chi2"].to_numpy() == pytest.approx(DIFR["p"], abs=1e-9)


def test_purification_takes_the_same_steps_and_ends_with_the_same_flags():
    flagged = [set(DIFR["item"][mantel_haenszel_columns(counts(r))["p_chi2"] <= 0.05]) for r in (1, 2, 3)]
    assert flagged == [{"Item1", "Item2", "Item7"}, *[{"Item1", "Item2", "Item20"}] * 2]
    assert flagged[-1] == set(DIFR["item"][DIFR["MH_chisq_purified"] > CRITICAL])
    found = mantel_haenszel_columns(counts(3))
    assert found["chi2"].to_numpy() == pytest.approx(DIFR["MH_chisq_purified"], abs=1e-6)
    assert found["alpha"].to_numpy() == pytest.approx(DIFR["alphaMH_purified"], abs=1e-6)


@pytest.mark.parametrize(("crossed", "column"), [(False, "LRT_udif"), (True, "LRT_nudif")])
def test_likelihood_ratios_of_logistic_regression_equal_difr(crossed, column):
    passes, totals = counts(1)
    cells = totals[:, :, 0].astype(int)
    group, score = (np.repeat(index.ravel(), cells.ravel()) for index in np.indices(cells.shape))
    order = np.concatenate([np.arange(n) for n in cells.ravel()])
    responses = (order[:, None] < passes[group, score]).astype(float)  # in each cell, passes first
    contrast = make_contrast(ResponseMatrix.from_array(responses), np.where(group == 0, 0.5, -0.5), None)
    matching = Matching(np.arange(20), score[None].astype(float), np.ones((1, 2, len(score)), np.float32))
    options = DifOptions(match="total", bands="score")
    found = logistic_columns(contrast, (matching,), options, 0.0, crossed=crossed).table
    assert found["chi2"].to_numpy() == pytest.approx(DIFR[column], abs=1e-4)
