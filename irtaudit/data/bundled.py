"""Data sets that ship inside the package."""

from __future__ import annotations

from importlib.resources import as_file, files

import pandas as pd

from irtaudit.data.responses import ResponseMatrix


def load_swebench_verified() -> ResponseMatrix:
    """134 coding agents x 500 SWE-bench Verified tasks, complete: 1 resolved, 0 not.

    Compiled from public leaderboards (arXiv 2604.00594), MIT licence; `swebench_verified/README.md` says how.

    Returns
    -------
    ResponseMatrix
        `subjects`: developer, access (closed_api, open_weight or unknown), date (submitted, YYYY-MM-DD),
        scaffold. `items`: repo.
    """
    with as_file(files("irtaudit.data") / "swebench_verified") as folder:
        responses, items, subjects = (
            pd.read_csv(folder / name, index_col=0)
            for name in ("responses.csv.gz", "items.csv", "subjects.csv")
        )
    return ResponseMatrix(
        responses=responses.to_numpy(dtype=float),
        items=items.loc[responses.columns],
        subjects=subjects.loc[responses.index],
        source="SWE-bench Verified, 134 agents (bundled; public leaderboards, arXiv 2604.00594)",
    )
