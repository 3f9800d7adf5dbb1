"""Does a published comparison table hold together? Its own numbers against each other, no data needed.

Two checks: the nested-model check of :mod:`irtaudit.dimensionality.nested`, and AIC and BIC recomputed from
the counts that the table gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from irtaudit.data.files import MAX_BYTES, read_content
from irtaudit.data.tables import parse_table
from irtaudit.dimensionality.counts import aic, bic
from irtaudit.dimensionality.nested import lower_alone, nested_findings
from irtaudit.errors import DataError
from irtaudit.irt.spec import MAX_DIMS
from irtaudit.words import counted

REQUIRED = ("model", "family", "structure", "dims", "log_loss", "train_log_lik")
COUNTS = "fitted_quantities"
RESPONSES = "train_cells"
"""Columns with the number of fitted quantities and of training responses, where a table gives them."""
ASSUMED_SD = 0.01
"""SD of log-loss over splits, in nats, where a table gives none (the source paper: .003 to .008)."""
STRUCTURES = ("unidimensional", "exploratory", "confirmatory", "baseline")
FAMILIES = ("1pl", "2pl", "3pl")
CRITERIA = ["model", "criterion", "printed", "recomputed"]
SYNONYMS = {"rasch": "1pl"}
AT_MOST_0 = {"train_log_lik": "was the minus sign lost, or is it minus the log-likelihood, or twice that?"}
AT_LEAST_0 = {"log_loss": "is it a log-likelihood?", "log_loss_sd": "an SD has no sign"}
"""What has one sign whatever the data, as no probability is above 1; and what may have happened to it."""
RANGES = {COUNTS: (0, 1e12), RESPONSES: (1, 1e15), "aic": (-1e15, 1e15), "bic": (-1e15, 1e15)}
"""What a table of real responses could hold; beyond it lies a slip of the pen, and numbers overflow."""
DIMS = {
    "unidimensional": (1, 1),
    "exploratory": (2, MAX_DIMS),
    "confirmatory": (1, MAX_DIMS),
    "baseline": (0, 0),
}
AS_PRINTED = {"\N{MINUS SIGN}": "-", r"(?<=\d),(?=\d{3}(?!\d))": ""}
"""How papers print numbers: a typographic minus, commas between thousands."""


@dataclass(frozen=True, eq=False)
class TableCheck:
    """What the check of a comparison table found.

    Attributes
    ----------
    table : DataFrame
        The table as checked, with ``aic_recomputed`` and ``bic_recomputed`` where counts are given.
    findings : DataFrame
        Failed fits and overfits, see `nested_findings`.
    lower : DataFrame
        Models with a lower training log-likelihood than one they contain that are neither, see
        `lower_likelihoods`: worth a note, and nothing is flagged.
    criteria : DataFrame
        One row per printed AIC or BIC that the counts do not reproduce within rounding: ``model``,
        ``criterion``, ``printed``, ``recomputed``.
    sd : float or None
        The SD of log-loss that was assumed where the table gives none; None: it gives all.
    responses : float or None
        Number of training responses that BIC was recomputed with (the median, where models have different
        numbers); None: not recomputed.
    responses_from : str
        Where that number comes from.
    """

    table: pd.DataFrame
    findings: pd.DataFrame
    lower: pd.DataFrame
    criteria: pd.DataFrame
    sd: float | None
    responses: float | None
    responses_from: str

    def __repr__(self) -> str:
        rows, findings = counted(len(self.table), "row"), counted(len(self.findings), "finding")
        notes = counted(len(self.lower), "note")
        return f"TableCheck({rows}, {findings}, {len(self.criteria)} criteria off, {notes})"

    @property
    def flagged(self) -> bool:
        """Whether anything is wrong with the table."""
        return bool(len(self.findings) or len(self.criteria))


def read_comparison(path: str | Path, max_bytes: int = MAX_BYTES) -> pd.DataFrame:
    """A comparison table as it stands in a file (CSV, TSV or Parquet), for :func:`check_table`.

    Raises
    ------
    DataError, StorageError
        If there is no such file, or it is no table.
    """
    table = parse_table(read_content(path, max_bytes), path, max_bytes)
    columns = [table.covariate(column) for column in range(len(table.names))]
    return pd.DataFrame(dict(enumerate(columns))).set_axis(table.names, axis=1)


def check_table(
    table: pd.DataFrame, *, sd: float | None = None, responses: float | None = None
) -> TableCheck:
    """Check a comparison of item response models by its own numbers.

    Parameters
    ----------
    table : DataFrame
        One row per model: ``model``; ``family`` (1pl, 2pl, 3pl); ``structure`` (unidimensional, exploratory,
        confirmatory, baseline; may be left out where names begin with it); ``dims``; ``log_loss`` of held-out
        cells; ``train_log_lik``. Optional: ``log_loss_sd`` over splits, ``fitted_quantities``,
        ``train_cells`` (training responses), ``aic``, ``bic``.
    sd : float, optional
        SD of log-loss over splits for models without ``log_loss_sd``; default `ASSUMED_SD`.
    responses : float, optional
        Number of training responses for a table without ``train_cells``; default the one that the printed
        BIC imply.

    Returns
    -------
    TableCheck

    Raises
    ------
    DataError
        When a column is missing or there twice, a name is blank or repeats, or a cell is not what its column
        holds: no number, or one that it cannot be.
    """
    checked = _checked(table)
    assumed, sds = None, checked.get("log_loss_sd", pd.Series(np.nan, checked.index))
    if sds.isna().any():
        assumed = ASSUMED_SD if sd is None else sd
        checked = checked.assign(log_loss_sd=sds.fillna(assumed))
    n, source = _responses(checked, responses)
    checked, criteria = _recomputed(checked, n)
    findings, lower = _nested(checked)
    median = None if n is None else float(n.median())
    return TableCheck(checked, findings, lower, criteria, assumed, median, source)


def _nested(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nested findings and lower likelihoods, by names that say which models differ in their family alone."""
    names = {_rule_name(row): row["model"] for _, row in table.iterrows()}
    renamed = table.assign(model=list(names))
    findings = nested_findings(renamed)
    found = (findings, lower_alone(renamed, findings))
    one, other = (part.assign(**{c: part[c].map(names) for c in ("model", "nested")}) for part in found)
    return one, other


def _rule_name(row: pd.Series) -> str:
    """The model's name as `irtaudit.irt.spec` would have it, whatever the table calls it."""
    if row["structure"] == "unidimensional":
        return f"unidimensional_{row['family']}"
    stem = re.sub(rf"[\W_]*{row['family']}\W*$", "", row["model"], flags=re.IGNORECASE)
    return f"{row['structure']} {stem}_{row['family']}"


# Reading ----------------------------------------------------------------------------------------------


def _checked(table: pd.DataFrame) -> pd.DataFrame:
    """The table with numbers as numbers, families and structures in their own spelling."""
    given = table.rename(columns=lambda name: str(name).strip().lower())
    repeated = given.columns[given.columns.duplicated()]
    if len(repeated):
        raise DataError(f"the table has column {repeated[0]!r} twice; expected each once")
    lacking = [name for name in REQUIRED if name not in given and name != "structure"]
    if lacking:
        raise DataError(
            f"the table has no column {lacking[0]!r}; expected are {', '.join(REQUIRED)} "
            f"(found: {', '.join(map(str, table.columns))})"
        )
    text = {"model": given["model"].astype(str).str.strip()}
    blank = np.flatnonzero(given["model"].isna() | (text["model"] == ""))
    if len(blank):
        raise DataError(f"column 'model', row {blank[0] + 1}: no name; expected one in every row")
    text["family"] = given["family"].astype(str).str.strip().str.lower().replace(SYNONYMS)
    text["structure"] = _structures(given, text["model"])
    baseline = text["structure"] == "baseline"
    _require_known("structure", text["structure"], STRUCTURES, text["model"])
    _require_known("family", text["family"][~baseline], FAMILIES, text["model"])
    numeric = [*REQUIRED[3:], "log_loss_sd", COUNTS, RESPONSES, "aic", "bic"]
    numbers = {name: _numbers(given, name, text["model"]) for name in numeric if name in given}
    for name, values in numbers.items():
        _require_sign(name, values, text["model"])
        _require_range(name, values, *RANGES.get(name, (-np.inf, np.inf)), text["model"])
    for structure, (least, most) in DIMS.items():
        of_it = text["structure"] == structure
        _require_range(
            "dims",
            numbers["dims"].where(of_it),
            least,
            most,
            text["model"],
            whole=True,
            what=f" in {structure} rows",
        )
    checked = given.assign(**text, **numbers)
    names = pd.Series([_rule_name(row) for _, row in checked.iterrows()], dtype=object)
    if names.duplicated().any():
        twice = checked.loc[names.duplicated(keep=False).to_numpy(), "model"].unique()
        raise DataError(f"the table has the same model twice: {', '.join(twice)}; expected one row per model")
    return checked


def _structures(given: pd.DataFrame, models: pd.Series) -> pd.Series:
    if "structure" in given:
        return given["structure"].astype(str).str.strip().str.lower()
    return models.str.lower().str.extract(rf"^({'|'.join(STRUCTURES)})", expand=False)


def _require_known(column: str, values: pd.Series, known: Iterable[str], models: pd.Series) -> None:
    bad = values[~values.isin(list(known))]
    if len(bad):
        raise DataError(
            f"column {column!r}, model {models[bad.index[0]]!r}: found {bad.iloc[0]!r}, expected one of "
            f"{', '.join(known)}"
        )


def _numbers(given: pd.DataFrame, column: str, models: pd.Series) -> pd.Series:
    cells = given[column]
    missing = cells.isna() | (cells.astype(str).str.strip() == "")
    numbers = pd.to_numeric(cells.astype(str).replace(AS_PRINTED, regex=True), errors="coerce")
    needed = column in REQUIRED
    bad = numbers.isna() & (~missing | needed) | np.isinf(numbers)
    if bad.any():
        row = int(np.argmax(bad.to_numpy()))
        raise DataError(f"column {column!r}, model {models.iloc[row]!r}: {cells.iloc[row]!r} is not a number")
    return numbers


def _require_sign(column: str, numbers: pd.Series, models: pd.Series) -> None:
    high, low = column in AT_MOST_0, column in AT_LEAST_0
    wrong = np.flatnonzero(((numbers > 0) & high) | ((numbers < 0) & low))
    if len(wrong):
        row = wrong[0]
        raise DataError(
            f"column {column!r}, row {row + 1}, model {models.iloc[row]!r}: found {numbers.iloc[row]:,g}, "
            f"expected 0 or {'less' if high else 'more'} for responses that are 0 or 1; "
            f"{(AT_MOST_0 | AT_LEAST_0)[column]}"
        )


def _require_range(
    column: str,
    numbers: pd.Series,
    least: float,
    most: float,
    models: pd.Series,
    *,
    whole: bool = False,
    what: str = "",
) -> None:
    wrong = np.flatnonzero(
        (numbers < least) | (numbers > most) | ((numbers % 1 != 0) & numbers.notna() & whole)
    )
    if len(wrong):
        row = wrong[0]
        span = f"{least:,g}" if least == most else f"{least:,g} to {most:,g}"
        raise DataError(
            f"column {column!r}, row {row + 1}, model {models.iloc[row]!r}: found {numbers.iloc[row]:,g}, "
            f"expected {'a whole number, ' if whole and least < most else ''}{span}{what}"
        )


# AIC and BIC ------------------------------------------------------------------------------------------


def _responses(table: pd.DataFrame, given: float | None) -> tuple[pd.Series | None, str]:
    """Number of training responses of each model, and where it comes from."""
    if given is not None:
        return pd.Series(given, table.index), "given"
    if RESPONSES in table:
        varied = table[RESPONSES].nunique() > 1
        return table[
            RESPONSES
        ], f"column {RESPONSES}{', model by model; this is the median' if varied else ''}"
    if COUNTS not in table or "bic" not in table or table["bic"].isna().all():
        return None, ""
    counts = table[COUNTS].where(table[COUNTS] > 0)
    with np.errstate(over="ignore"):
        implied = np.exp(((table["bic"] + 2 * table["train_log_lik"]) / counts).to_numpy(float))
    implied = implied[np.isfinite(implied) & (implied >= 1)]
    if not implied.size:
        return None, ""
    n = float(np.round(np.median(implied)))
    return pd.Series(n, table.index), "implied by the printed BIC (median over models)"


def _recomputed(table: pd.DataFrame, n: pd.Series | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table with both criteria recomputed, and those that differ from the printed ones."""
    if COUNTS not in table:
        return table, pd.DataFrame(columns=CRITERIA)
    k, log_lik = table[COUNTS], table["train_log_lik"]
    again = {"aic": aic(k, log_lik)} | ({"bic": bic(k, log_lik, n)} if n is not None else {})
    rows = []
    for name, values in again.items():
        if name not in table:
            continue
        off = np.abs(values - table[name]) > 2 * _rounding(log_lik) + _rounding(table[name]) + 1e-6
        rows += [
            (model, name, printed, value)
            for model, printed, value in zip(
                table.loc[off, "model"], table.loc[off, name], values[off], strict=True
            )
        ]
    complete = table.assign(**{f"{name}_recomputed": values for name, values in again.items()})
    return complete, pd.DataFrame(rows, columns=CRITERIA)


def _rounding(values: pd.Series) -> float:
    """Half a unit of the last decimal that is printed in a column."""
    decimals = max((len(f"{v!r}".partition(".")[2]) for v in values.dropna() if v % 1), default=0)
    return 0.5 * 10.0**-decimals
