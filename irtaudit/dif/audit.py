"""The verb of this room: compare two groups of equally able models, item by item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.trials import refuse_counts
from irtaudit.dif.contrast import make_contrast
from irtaudit.dif.families import family_codes
from irtaudit.dif.findings import find
from irtaudit.dif.groups import Groups, level_texts
from irtaudit.dif.options import DifOptions, ScreenName
from irtaudit.dif.result import DifResult, join
from irtaudit.dif.scopes import Scope, scopes_of
from irtaudit.dif.tables import result_of
from irtaudit.errors import PlanError, check_kind
from irtaudit.irt.result import FitResult
from irtaudit.stats.threads import one_blas_thread

Array = NDArray[Any]

COMPARISON = "The comparison of groups item by item"
CLASSICAL: tuple[ScreenName, ...] = ("mh", "logistic", "logistic_nonuniform")
"""Screens that have a p-value without a simulated null."""
MIN_SCOPE = 3
"""Items that an ability needs to be matched on, the same as of a factor."""
NO_FAMILY = frozenset({"unknown", "other", ""})
"""Levels that name no family: each of their models stands alone."""


def audit_dif(
    matrix: ResponseMatrix,
    fit: FitResult | None = None,
    *,
    group: str,
    levels: tuple[str, str],
    cluster: str | None = None,
    options: DifOptions | None = None,
    verdict: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DifResult:
    """Screen every item for differential item functioning between two groups of models.

    Equally able models of both groups should pass an item equally often. Each screen's statistic is compared
    with its distribution in matrices simulated from the fitted model, in which they do.

    Parameters
    ----------
    matrix : ResponseMatrix
        Screened responses.
    fit : FitResult, optional
        Fit of a unidimensional model (scope: the single score) or a confirmatory one (a scope per factor) to
        every observed cell; gives abilities and the null. Without it only totals can be matched, and p-values
        are those of the classical tests.
    group : str
        Column of the subject table.
    levels : (str, str)
        Reference and focal level of that column.
    cluster : str, optional
        Column of the subject table that names families of related models, for the cluster-aware null; default
        `group` itself, as if each developer were one family.
    options : DifOptions, optional
    verdict : str, optional
        Word of the dimensionality test for the single score: where it is "not supported", flags under the
        single score are read as "DIF or multidimensionality".
    progress : callable, optional
        Called with the numbers of scopes done and in all.

    Returns
    -------
    DifResult

    Raises
    ------
    PlanError
        When groups, options and fit do not go together or are of the wrong type, or cells count several
        trials; the message says how.
    DataError
        When `matrix` is no response matrix.

    References
    ----------
    Holland and Thayer (1988) for Mantel-Haenszel, Swaminathan and Rogers (1990) for logistic regression,
    Westfall and Young (1993) for the maximum over items.
    """
    refuse_counts(matrix, COMPARISON)
    if fit is not None:
        check_kind("fit", fit, FitResult, "what irtaudit.fit returns")
    if options is not None:
        check_kind("options", options, DifOptions, "DifOptions(match=..., bands=..., ...)")
    check_kind("levels", levels, (tuple, list), "two values of the column, the reference first")
    if len(levels) != 2:
        raise PlanError(f"levels names {len(levels)} groups; expected two, the reference first.")
    groups = Groups(group, str(levels[0]), str(levels[1]))
    sides = groups.sides(matrix.subjects)
    options, notes = _usable(options or DifOptions(), fit is not None)
    codes = family_codes(_families(matrix, cluster or group))
    scopes = _scopes(fit, matrix)
    results: list[DifResult] = []
    with one_blas_thread():
        for scope in scopes:
            if progress is not None:
                progress(len(results), len(scopes))
            contrast = make_contrast(matrix, sides, scope)
            found = find(contrast, codes[contrast.rows], options)
            results.append(result_of(matrix, groups, found, cluster or group, options, verdict))
    if progress is not None:
        progress(len(results), len(scopes))
    whole = join(results)
    return replace(whole, notes=(*notes, *whole.notes))


def _scopes(fit: FitResult | None, matrix: ResponseMatrix) -> tuple[Scope | None, ...]:
    """Scopes with enough items to match on; None stands for every item without a model."""
    found: tuple[Scope | None, ...] = (None,) if fit is None else scopes_of(fit, matrix)
    enough = tuple(one for one in found if (matrix.n_items if one is None else len(one.items)) >= MIN_SCOPE)
    if not enough:
        raise PlanError(
            f"There are {matrix.n_items} items, and no scope has {MIN_SCOPE}: an item under test would be "
            "most of the ability that it is matched on. Compare groups on at least "
            f"{MIN_SCOPE} items, better 20."
        )
    return enough


def compare_groups(
    matrix: ResponseMatrix,
    fits: Sequence[FitResult],
    groups: Sequence[Groups],
    *,
    cluster: str | None = None,
    options: DifOptions | None = None,
    verdict: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> DifResult:
    """Several comparisons in the scopes of several fits, see :func:`audit_dif`.

    Parameters
    ----------
    matrix : ResponseMatrix
    fits : sequence of FitResult
        The single score's model and confirmatory ones; none: totals are matched.
    groups : sequence of Groups
        At least one.
    cluster, options, verdict
        As in :func:`audit_dif`.
    progress : callable, optional
        Called with the groups and the model, and the numbers of scopes done and in all.

    Returns
    -------
    DifResult
        Comparison by comparison, in each the scopes of the fits in turn.
    """
    models: Sequence[FitResult | None] = fits or [None]
    return join(
        [
            audit_dif(
                matrix,
                fit,
                group=pair.column,
                levels=(pair.reference, pair.focal),
                cluster=cluster,
                options=options,
                verdict=verdict,
                progress=None if progress is None else partial(progress, _stage(pair, fit)),
            )
            for pair in groups
            for fit in models
        ]
    )


def _stage(pair: Groups, fit: FitResult | None) -> str:
    return f"{pair.reference} vs {pair.focal}{'' if fit is None else f', {fit.spec.name}'}"


def _families(matrix: ResponseMatrix, column: str) -> Array:
    labels = level_texts(matrix.subjects, column)
    named = [None if label is None or label.casefold() in NO_FAMILY else label for label in labels]
    return np.array(named, dtype=object)


def _usable(options: DifOptions, fitted: bool) -> tuple[DifOptions, tuple[str, ...]]:
    """Options with what they cannot have taken out, and what to say about it."""
    if not fitted and options.match == "theta":
        raise PlanError(
            "Matching on theta needs a fitted model, for its abilities and for the null: pass fit, or match "
            "totals (DifOptions(match='total'))."
        )
    if fitted and options.n_simulations:
        return options, ()
    screens = tuple(name for name in options.screens if name in CLASSICAL)
    if not screens:
        raise PlanError(
            f"{', '.join(options.screens)} need a simulated null, so a fit and n_simulations above 0; "
            f"without one choose from {', '.join(CLASSICAL)}."
        )
    left_out = [name for name in options.screens if name not in CLASSICAL]
    notes = [
        "No null was simulated: p-values come from chi-square tests, which assume large, independent groups; "
        "there is no cluster-aware null, no power and no negative control."
    ]
    if left_out:
        notes.append(f"Left out, because they need a simulated null: {', '.join(left_out)}.")
    return replace(options, screens=screens, n_simulations=0, rematch=False), tuple(notes)
