"""What the files of an audit hold, for the reader who opens the folder instead of the page."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from irtaudit.report.section import Section

HOLDS = {
    "abilities": "Theta of every model by the full-data fits, with intervals, and its rank with one.",
    "comparison": "Held-out log-loss and Brier score of every model, fit to training cells, AIC and BIC.",
    "comparison_by_split": "The same, split by split.",
    "congruence": "Every restart of the exploratory models: Tucker's congruence with the selected one, "
    "and by what share its training log-likelihood is worse.",
    "dif": "Groups compared: every item under every scope and screen.",
    "dropped": "What the screen dropped, and why.",
    "eigenvalues": "Eigenvalues of the item correlations, of residuals too, beside those of random panels.",
    "factor_correlations": "Correlations of the factors, for these models and for others like them.",
    "followups": "The comparison once more without some items.",
    "information": "Test information of every dimension over a grid of abilities.",
    "item_fit": "G2, infit and outfit of every item, with simulated p-values.",
    "items": "Slope, intercept, difficulty and guessing of every item by the full-data fits.",
    "loadings": "Loadings of the exploratory models, rotated by varimax and by oblimin.",
    "local_dependence": "Pairs of items whose residuals go together most (Q3), with simulated p-values.",
    "pairwise": "Probability that one model is abler than another, for every pair.",
    "person_fit": "lz of every model: is its pattern of responses a likely one?",
    "predictive_checks": "The observed panel among panels drawn from the fitted model.",
    "reliability": "Empirical reliability of every dimension, and where its items tell most.",
    "restarts": "Every restart of every fit: likelihood, ELBO, held-out scores, how it ended.",
    "rotated_correlations": "Correlations of the dimensions that oblimin finds.",
    "sweep": "The answer at other cut-offs between pass and fail.",
}
"""By the stem of the file's name."""
REST = {
    "audit.json": "Every number of this page for programs: hashes, versions, seeds, plan, verdict.",
    "figures/": "The figures of this page, as SVG.",
    "fits/": "Every finished fit; the same command again takes them up.",
}


def present_files(stems: Iterable[str]) -> Section:
    """The files beside the report and what they hold, as a section.

    Parameters
    ----------
    stems : iterable of str
        Names of the tables that are written, without ``.csv``.
    """
    rows = [(f"{stem}.csv", holds(stem)) for stem in sorted(stems)] + list(REST.items())
    return Section(
        place="method",
        title="Files beside this page",
        claim=f"{len(rows) - len(REST)} tables hold what the page shows, and more.",
        table=pd.DataFrame(rows, columns=["file", "holds"]),
        columns={"file": "Name in the folder of this page.", "holds": "What is in it."},
        caption="Columns are explained below each table of this page, where it is shown.",
    )


def holds(stem: str) -> str:
    """What the table of that name holds."""
    part = stem.removeprefix("dif_").replace("_", " ")
    return HOLDS.get(stem, f"Groups compared: {part}." if stem.startswith("dif_") else "")
