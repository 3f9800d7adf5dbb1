from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from irtaudit.stats.multiplicity import adjusted

NAMES = {"holm": "holm", "bonferroni": "bonferroni", "benjamini-hochberg": "fdr_bh"}


@pytest.mark.parametrize("method", NAMES)
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_equals_statsmodels(method: str, p: list[float]) -> None:
    assert adjusted(p, method) == pytest.approx(multipletests(p, method=NAMES[method])[1], abs=1e-12)


def test_a_test_that_was_not_made_is_not_counted() -> None:
    found = adjusted([0.01, np.nan, 0.04])
    assert np.isnan(found[1])
    assert found[[0, 2]] == pytest.approx([0.02, 0.04])
    assert np.isnan(adjusted([np.nan])).all()
