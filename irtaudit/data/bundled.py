"""Data sets that ship inside the package."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files

from irtaudit.data.read import read_responses
from irtaudit.data.responses import ResponseMatrix


def load_swebench_verified() -> ResponseMatrix:
    """134 coding agents x 500 SWE-bench Verified tasks, complete: 1 resolved, 0 not.

    Compiled from public leaderboards (arXiv 2604.00594), MIT licence; `swebench_verified/README.md` says how.

    Returns
    -------
    ResponseMatrix
        `subjects`: developer, access (closed_api, open_weight or unknown), date (of submission, YYYY-MM-DD),
        scaffold. `items`: repo.
    """
    with as_file(files("irtaudit.data") / "swebench_verified") as folder:
        matrix = read_responses(
            folder / "responses.csv.gz", items=folder / "items.csv", subjects=folder / "subjects.csv"
        )
    return replace(
        matrix, source="SWE-bench Verified, 134 agents (bundled; public leaderboards, arXiv 2604.00594)"
    )
