"""How often do the DIF screens flag what is not there, and what is? Simulated panels, fitted like real ones.

Usage: ``python experiments/dif_calibration/run.py [--out FOLDER] [--only NAME;NAME] [--minutes N]``. Writes
``calibration.csv`` (a row per condition and screen) and ``provenance.json``. Every finished panel is kept in
``panels/``, so a run that was stopped, by itself after ``--minutes`` or otherwise, goes on where it was.
All data are *simulated*; the whole study takes about an hour on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import time
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.special import expit

import irtaudit
from irtaudit import ConvergenceWarning, DifOptions, DifResult, ModelSpec, ResponseMatrix

HERE = Path(__file__).parent
CONSERVATIVE = 0.028
"""A family-wise rate below this is called conservative."""


@dataclass(frozen=True)
class Condition:
    """One kind of simulated panel, and how it is audited.

    Attributes
    ----------
    name : str
    panels : int
    reference, focal, others : int
        Models per group, and models in neither.
    items : int
    difference : float
        Mean ability of the reference minus that of the focal group, in SDs.
    shifted : int
        Items with planted DIF.
    shift : float
        Its size in logits.
    one_sided : bool
        Every planted shift makes the item harder for the focal group by all of `shift`; else they alternate
        in direction, and the groups move apart in such proportion that the item stays as hard for both
        together.
    family_size : int
        Models per family; 0: no families.
    family_sd : float
        SD of family x item shifts, in logits.
    guess : float
        Probability that the weakest model passes.
    family : str
        Family of the fitted model: 2pl or 3pl.
    screens : tuple of str
    penalty : float
        Of the logistic screens.
    power : int
        The power that a report prints is computed in every so many-th panel; 0: in none.
    clustered : bool
        Whether the cluster-aware null is drawn as well, for families or else for the groups themselves.
    """

    name: str
    panels: int
    reference: int = 21
    focal: int = 11
    others: int = 49
    items: int = 398
    difference: float = 0.0
    shifted: int = 0
    shift: float = 2.5
    one_sided: bool = False
    family_size: int = 0
    family_sd: float = 0.0
    guess: float = 0.0
    family: str = "2pl"
    screens: tuple[str, ...] = ("mh", "logistic", "mh_z", "score", "logistic_nonuniform")
    penalty: float = 1.0
    power: int = 0
    clustered: bool = False


UNIFORM = ("mh", "logistic", "mh_z", "score")
"""The screens that look for shifts; the crossed one looks for another kind of DIF."""


def _grid() -> tuple[Condition, ...]:
    plain = Condition("no difference", 400)
    fewer = replace(plain, panels=60)
    planted = Condition("40 vs 40, 2.5 logits", 150, 40, 40, 0, shifted=8, power=3, screens=UNIFORM)
    small = replace(planted, panels=100, reference=21, focal=11, others=49)
    families = replace(plain, panels=200, focal=12, others=48, family_size=3, clustered=True)
    guessing = replace(fewer, difference=1.0, guess=0.2)
    logistic = ("logistic", "logistic_nonuniform")
    return (
        replace(plain, clustered=True),
        replace(plain, name="difference .5 SD", difference=0.5),
        replace(plain, name="difference 1 SD", difference=1.0),
        replace(families, name="families of three, SD 1.5", family_sd=1.5),
        planted,
        replace(small, name="21 vs 11, 2.5 logits"),
        replace(fewer, name="48 vs 33 of 81", panels=200, reference=48, focal=33, others=0, difference=0.9),
        replace(small, name="21 vs 11, 4 logits", panels=60, shift=4.0),
        replace(planted, name="40 vs 40, 2.5 logits, one-sided", panels=60, one_sided=True, power=0),
        replace(fewer, name="difference 1.5 SD", difference=1.5),
        replace(families, name="families of three, SD 0.5", panels=60, family_sd=0.5),
        replace(families, name="families of three, SD 1", panels=60, family_sd=1.0),
        replace(
            fewer, name="12 vs 8 of 40, 150 items", panels=100, reference=12, focal=8, others=20, items=150
        ),
        replace(fewer, name="60 vs 60 of 200", panels=100, reference=60, focal=60, others=80, difference=0.5),
        replace(guessing, name="guessing .2, fitted 2PL"),
        replace(guessing, name="guessing .2, fitted 3PL", family="3pl"),
        *(
            replace(c, name=f"{c.name}, penalty {penalty:g}", panels=40, penalty=penalty, screens=logistic)
            for penalty in (0.1, 0.3, 3.0, 10.0)
            for c in (plain, replace(planted, power=0))
        ),
    )


@dataclass(frozen=True)
class Config:
    """The whole study.

    Attributes
    ----------
    simulations : int
        Null matrices per panel (B).
    effects : int
        Matrices per shift in the power calculation.
    seed : int
    conditions : tuple of Condition
    """

    simulations: int = 300
    effects: int = 100
    seed: int = 2026
    conditions: tuple[Condition, ...] = field(default_factory=_grid)


def panel(c: Condition, rng: np.random.Generator) -> ResponseMatrix:
    """A simulated panel with groups A (reference) and B (focal); planted items are the first."""
    sizes = (c.reference, c.focal, c.others)
    group = np.repeat(["A", "B", "other"], sizes)
    theta = rng.normal(np.repeat([c.difference / 2, -c.difference / 2, 0.0], sizes), 1.0)
    slope = np.exp(rng.normal(0.2, 0.4, c.items))
    logits = theta[:, None] * slope + rng.normal(1.3, 1.5, c.items)
    shift = np.zeros(c.items)
    shift[: c.shifted] = c.shift * (1 if c.one_sided else np.where(np.arange(c.shifted) % 2, -1, 1))
    share = c.focal / (c.reference + c.focal)
    up, down = (0.0, 1.0) if c.one_sided else (share, 1 - share)
    logits += np.where(group == "A", up, np.where(group == "B", -down, 0.0))[:, None] * shift
    family = np.arange(len(group)) // max(c.family_size, 1)
    if c.family_size:
        logits += rng.normal(0.0, c.family_sd, (family.max() + 1, c.items))[family]
    cells = rng.random(logits.shape) < c.guess + (1 - c.guess) * expit(logits)
    names = [f"model_{i:03d}" for i in range(len(group))]
    subjects = pd.DataFrame(
        {"developer": group, "family": family.astype(str), "model": names}, index=pd.Index(names)
    )
    return ResponseMatrix.from_array(cells.astype(float), subjects=subjects)


def audited(c: Condition, config: Config, number: int) -> tuple[DifResult, set[str]]:
    """Screen, fit and audit one panel; returns the names of the planted items as well."""
    rng = np.random.default_rng([config.seed, *c.name.encode(), number])
    drawn = panel(c, rng)
    planted = set(drawn.items.index[: c.shifted])
    matrix = irtaudit.screen(drawn).matrix
    seed = int(rng.integers(2**31))
    fit = irtaudit.fit(matrix, ModelSpec.unidimensional(c.family), n_restarts=1, seed=seed, workers=1)
    options = DifOptions(
        screens=c.screens,
        penalty=c.penalty,
        n_simulations=config.simulations,
        n_control=0,
        n_power=config.effects if c.power and number % c.power == 0 else 0,
        seed=seed,
    )
    cluster = "family" if c.family_size else "developer" if c.clustered else "model"
    found = irtaudit.audit_dif(
        matrix, fit, group="developer", levels=("A", "B"), cluster=cluster, options=options
    )
    return found, planted


def rates(found: DifResult, planted: set[str], c: Condition) -> pd.DataFrame:
    """What one panel contributes, a row per screen."""
    items = found.items.assign(planted=found.items["item"].isin(planted))
    rows = []
    for screen, part in items.groupby("screen", sort=False):
        clean, shifted = part[~part["planted"]], part[part["planted"]]
        curve = found.power[found.power["screen"] == screen].set_index("shift")["power"]
        rows.append(
            {
                "screen": screen,
                "family": clean["flag_family"].any(),
                "family_cluster": float(clean["flag_family_cluster"].fillna(False).any())
                if c.clustered
                else np.nan,
                "item": clean["flag_item"].mean(),
                "power": shifted["flag_family"].mean() if c.shifted else np.nan,
                "power_item": shifted["flag_item"].mean() if c.shifted else np.nan,
                "power_printed": curve.get(c.shift, np.nan),
                "family_sd": found.families["sd"].iloc[0],
            }
        )
    return pd.DataFrame(rows)


def summary(c: Condition, panels: pd.DataFrame) -> pd.DataFrame:
    """One row per screen: means over panels, with Monte Carlo standard errors."""
    grouped = panels.groupby("screen", sort=False)
    n = grouped.size()
    table = grouped.mean().rename(columns={"family": "family_rate", "family_cluster": "family_rate_cluster"})
    table["family_rate_se"] = np.sqrt(table["family_rate"] * (1 - table["family_rate"]) / n)
    for column in ("power", "power_printed"):
        table[f"{column}_se"] = grouped[column].std() / np.sqrt(grouped[column].count())
    low = (table["family_rate"] < CONSERVATIVE) & (c.shifted == 0)
    table["note"] = np.where(low, "conservative", "")
    if not c.clustered:
        table["family_rate_cluster"] = np.nan
    described = {k: v for k, v in asdict(c).items() if k not in ("screens", "name", "power", "clustered")}
    return table.reset_index().assign(condition=c.name, **described)


COLUMNS = [
    *("condition", "screen", "family_rate", "family_rate_se", "family_rate_cluster", "item", "note"),
    *("power", "power_se", "power_printed", "power_printed_se", "power_item", "family_sd"),
    *("panels", "reference", "focal", "others", "items", "difference", "shifted", "shift", "one_sided"),
    *("family_size", "family_sd_true", "guess", "family", "penalty"),
]
SHOWN = ["screen", "family_rate", "family_rate_cluster", "item", "power", "power_printed"]


def contributions(c: Condition, config: Config, folder: Path, deadline: float) -> pd.DataFrame:
    """Rows of the condition's panels, those of earlier runs included; until the deadline."""
    path = folder / f"{re.sub(r'[^a-z0-9.]+', '_', c.name.casefold())}.csv"
    done = int(pd.read_csv(path)["panel"].max()) + 1 if path.exists() else 0
    for number in range(done, c.panels):
        if time.monotonic() > deadline:
            break
        rows = rates(*audited(c, config, number), c).assign(panel=number)
        with path.open("a") as file:  # one write: a panel is there as a whole or not at all
            file.write(rows.to_csv(index=False, header=number == 0))
    if not path.exists():
        return pd.DataFrame()
    rows = pd.read_csv(path)
    return rows[rows["panel"] < c.panels].drop(columns="panel")


def study(config: Config, out: Path, chosen: set[str], seconds: float = float("inf")) -> pd.DataFrame:
    """Go on with the chosen conditions in turn, and tabulate all that have panels."""
    deadline, parts = time.monotonic() + seconds, []
    folder = _begun(config, out)
    for c in config.conditions:
        start = time.process_time()
        panels = contributions(c, config, folder, deadline if c.name in chosen else -float("inf"))
        if panels.empty:
            continue
        n = len(panels) // panels["screen"].nunique()
        rows = summary(replace(c, family_sd=0.0, panels=n), panels).assign(family_sd_true=c.family_sd)
        rows["family_sd"] = panels.groupby("screen", sort=False)["family_sd"].mean().to_numpy()
        parts.append(rows.reindex(columns=COLUMNS))
        print(f"{c.name}: {n} of {c.panels} panels, {time.process_time() - start:.0f} CPU s", flush=True)
        print(rows[SHOWN].round(3).to_string(index=False), flush=True)
    table = pd.concat(parts) if parts else pd.DataFrame(columns=COLUMNS)
    table.round(4).to_csv(out / "calibration.csv", index=False)
    return table


def _begun(config: Config, out: Path) -> Path:
    """The folder of finished panels; one that was begun with other settings is refused."""
    (out / "panels").mkdir(parents=True, exist_ok=True)
    path, mine = out / "provenance.json", provenance(config)
    if path.exists():
        earlier = json.loads(path.read_text())
        for key in ("simulations", "effects", "seed"):
            if earlier["config"][key] != mine["config"][key]:
                raise SystemExit(f"{path} says {key} {earlier['config'][key]}; name another --out.")
    path.write_text(json.dumps(mine, indent=1) + "\n")
    return out / "panels"


def provenance(config: Config) -> dict[str, Any]:
    """Settings and versions behind the table."""
    return {
        "config": asdict(config),
        "data": "simulated",
        "versions": {
            "irtaudit": irtaudit.__version__,
            "numpy": np.__version__,
            "pandas": pd.__version__,
            "python": platform.python_version(),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--only", help="names of conditions, with semicolons between")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no panel after so long")
    arguments = parser.parse_args()
    config = Config()
    every = {c.name for c in config.conditions}
    chosen = set(arguments.only.split(";")) if arguments.only else every
    if unknown := chosen - every:
        parser.error(f"no condition {'; '.join(unknown)}; there are {'; '.join(sorted(every))}")
    warnings.simplefilter("ignore", ConvergenceWarning)
    study(config, arguments.out, chosen, 60 * arguments.minutes)


if __name__ == "__main__":
    main()
