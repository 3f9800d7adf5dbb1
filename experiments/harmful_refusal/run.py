"""The paper's audit, by one plan and one command, each number beside the printed one.

Usage: ``python experiments/harmful_refusal/run.py --data replica [--preset paper] [--out FOLDER]``. Runs
``plan.toml`` on a *simulated* panel (see ``replica.py``) and writes, into ``results/``; with ``--data helm
--helm helm/safety/v1.17.0`` on the paper's own responses, which ``irtaudit fetch helm --project safety
--release v1.17.0 --scenarios harm_bench --out helm`` downloads, and with ``_helm`` in the files' names:

``moments.csv``       printed moments of the paper's matrix beside those of the replica
``comparison.csv``    one row per printed model: printed and our log-loss and Brier score, and py-irt's own
                      where ``py_irt.csv`` is there; whether they agree, or why not
``findings.csv``      the paper's findings, as printed and as found here
``provenance.json``   plan hash, data hash, versions, seconds

The rows of py-irt come from ``fit_py_irt.py``, which needs the extra ``[py-irt]`` (in an environment of its
own, if you like): run it first.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor
from replica import PRINTED, TYPES, Truth, matched_moments, simulate

from irtaudit import ResponseMatrix, make_splits, read_responses
from irtaudit.audit import AuditResult, run_plan
from irtaudit.dimensionality.compare import dominates
from irtaudit.dimensionality.plan import IrtPlan
from irtaudit.dimensionality.planned import Planned, deviations, override
from irtaudit.plan import read_plan
from irtaudit.present import versions, write_audit

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "tests" / "reference" / "harmful_refusal_by_model.csv"
NAMES = {"confirmatory_3d": "confirmatory_functional", "confirmatory_7d": "confirmatory_semantic"}
"""How the paper's table calls the confirmatory models, and how ours does."""
FAILED = {"unidimensional_2pl", *(f"exploratory_{k}d_2pl" for k in range(3, 11))}
"""Printed fits that `irtaudit check-table` calls failed."""
BEST, STRONGEST = "confirmatory_functional_2pl", "unidimensional_3pl"
CLOSE = 0.02
"""Nats within which a simulated panel can be expected to give the log-loss of another one like it."""


@dataclass(frozen=True)
class Config:
    """What is run.

    Attributes
    ----------
    seed : int
        Of the simulated panel.
    preset : str
        How models are fitted.
    """

    seed: int = 2026
    preset: str = "default"


def helm_panel(folder: Path) -> ResponseMatrix:
    """The paper's matrix: HarmBench in HELM Safety, unanimous full marks, models that lack items dropped."""
    return read_responses(
        folder, task="harm_bench", metric="safety_score", pass_at=1.0, incomplete="drop", layout="helm"
    )


def audited(
    config: Config, matrix: ResponseMatrix, work: Path, workers: int | None
) -> tuple[AuditResult, IrtPlan]:
    """The audit by ``plan.toml``; a folder of fits is taken up again."""
    filed = read_plan(HERE / "plan.toml", IrtPlan)
    used = override(filed, {"fit.preset": config.preset})
    planned = Planned(filed, "plan.toml", deviations(filed, used, matrix.sha256))
    result = run_plan(used, matrix, folder=HERE, planned=planned, workers=workers, device="cpu", out=work)
    return result, filed


def side_by_side(result: AuditResult, py_irt: pd.DataFrame | None, *, simulated: bool = True) -> pd.DataFrame:
    """Printed and our numbers of every printed model.

    Returns
    -------
    DataFrame
        ``model, printed_log_loss, log_loss, log_loss_sd, printed_brier, brier, printed_train_log_lik,
        train_log_lik, py_irt_log_loss, log_loss_same_splits`` (ours on the splits that py-irt was given),
        ``agreement``.
    """
    printed = pd.read_csv(TABLE).set_index("model")
    ours = result.comparison.table.set_index("model")
    rows = []
    for name, row in printed.iterrows():
        stem, _, family = str(name).rpartition("_")
        mine = ours.loc[f"{NAMES.get(stem, stem)}_{family}"]
        theirs, same_splits = _py_irt_losses(py_irt, result, str(mine.name))
        rows.append(
            {
                "model": mine.name,
                "printed_log_loss": row["log_loss"],
                "log_loss": mine["log_loss"],
                "log_loss_sd": mine["log_loss_sd"],
                "printed_brier": row["brier"],
                "brier": mine["brier"],
                "printed_train_log_lik": row["train_log_lik"],
                "train_log_lik": mine["train_log_lik"],
                "py_irt_log_loss": theirs,
                "log_loss_same_splits": same_splits,
                "agreement": agreement(str(name), row["log_loss"], mine["log_loss"], theirs, simulated),
            }
        )
    return pd.DataFrame(rows)


def _py_irt_losses(table: pd.DataFrame | None, result: AuditResult, model: str) -> tuple[float, float]:
    """Mean log-loss of py-irt's rows of a model, and of ours on the same splits; NaN where it has none."""
    rows = pd.DataFrame(columns=["split", "log_loss"]) if table is None else table[table["model"] == model]
    ours = result.comparison.by_split
    mine = ours.loc[ours["model"] == model, "log_loss"].to_numpy()[rows["split"].to_numpy(dtype=int)]
    return (float(rows["log_loss"].mean()), float(mine.mean())) if len(rows) else (np.nan, np.nan)


def agreement(printed_name: str, printed: float, ours: float, py_irt: float, simulated: bool) -> str:
    """Whether two log-losses are close, or why they are not: by the engine, where py-irt here is."""
    if printed_name in FAILED:
        return f"the printed fit failed (check-table): {ours - printed:+.3f} nats"
    if abs(printed - ours) <= CLOSE:
        return f"within {CLOSE} nats"
    if not simulated:
        return f"no: {ours - printed:+.3f} nats"
    if printed_name.startswith("confirmatory_7d"):
        return "no: the replica has no harm domains, only three item types"
    if abs(printed - py_irt) <= CLOSE:
        return f"no, by the engine: py-irt on the replica comes to {py_irt:.3f} ({ours - printed:+.3f} nats)"
    return f"no: the replica is not the paper's matrix ({ours - printed:+.3f} nats)"


def findings(result: AuditResult, truth: Truth | None) -> pd.DataFrame:
    """The paper's findings about dimensionality, as printed and as found here.

    Returns
    -------
    DataFrame
        ``finding, printed``, ``replica`` or ``helm``, ``agrees``.
    """
    by_split = result.comparison.by_split.pivot(index="split", columns="model", values="log_loss")
    unidimensional = [name for name in by_split if name.startswith("unidimensional")]
    exploratory = [name for name in by_split if name.startswith("exploratory")]
    gain = by_split[STRONGEST] - by_split[BEST]
    sds = result.comparison.table.set_index("model")["restart_sd"]
    brier = result.comparison.by_split.pivot(index="split", columns="model", values="brier")
    followed = result.followups[0].comparison
    copyright_free = followed.by_split.pivot(index="split", columns="model", values="log_loss")
    best_1d = str(followed.reference)
    won = int((copyright_free[best_1d] > copyright_free[BEST]).sum())
    ordered = (by_split[BEST] < by_split[exploratory].min(axis=1)) & (
        by_split[exploratory].max(axis=1) < by_split[unidimensional].min(axis=1)
    )
    dominating = all(dominates(result.comparison.restarts, BEST, name) for name in unidimensional)
    rows = [
        ("splits with 3D < every exploratory < every unidimensional", "5 of 5 (means)",
         f"{ordered.sum()} of 5", bool(ordered.all())),
        ("every 3D restart beats every 1D restart", "yes", "yes" if dominating else "no", dominating),
        (f"gain of 3D 2PL over {STRONGEST}, nats (min to max)", "0.064 (0.060 to 0.067)",
         f"{gain.mean():.3f} ({gain.min():.3f} to {gain.max():.3f})", bool(gain.min() > 0)),
        ("paired Brier reduction", "0.0176", f"{(brier[STRONGEST] - brier[BEST]).mean():.4f}",
         bool((brier[STRONGEST] > brier[BEST]).all())),
        ("SD over restarts, unidimensional 3PL", "0.00037", f"{sds[STRONGEST]:.5f}",
         bool(sds[STRONGEST] < 0.001)),
        ("SD over restarts, confirmatory 3D 2PL", "0.00035", f"{sds[BEST]:.5f}", bool(sds[BEST] < 0.001)),
        ("without copyright, splits that 2D wins over the best 1D", "5 of 5", f"{won} of 5", won == 5),
        ("without copyright, log-loss of 2D and of 1D", "0.278 and 0.293",
         f"{copyright_free[BEST].mean():.3f} and {copyright_free[best_1d].mean():.3f}", won == 5),
        *correlations(result, truth),
        ("one score", "not supported", result.verdict.word, result.verdict.word == "not supported"),
    ]  # fmt: skip
    return pd.DataFrame(
        rows, columns=["finding", "printed", "helm" if truth is None else "replica", "agrees"]
    )


def correlations(result: AuditResult, truth: Truth | None) -> list[tuple[str, str, str, bool]]:
    """Printed and estimated factor correlations; does the interval hold the planted, or printed, one?"""
    printed = pd.read_csv(PRINTED / "factor_correlations.csv", index_col=0)
    table = result.correlations[result.correlations["model"] == BEST].set_index(["factor_1", "factor_2"])
    wanted = printed.loc[TYPES, TYPES].to_numpy() if truth is None else np.corrcoef(truth.theta.T)
    rows = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        pair = tuple(sorted((TYPES[i], TYPES[j])))
        row = table.loc[pair]
        inside = bool(row["population_low"] <= wanted[i, j] <= row["population_high"])
        shown = f"{row['correlation']:.3f} ({row['population_low']:.3f} to {row['population_high']:.3f})"
        rows.append(
            (f"correlation {pair[0]}, {pair[1]}", f"{printed.loc[TYPES[i], TYPES[j]]:.3f}", shown, inside)
        )
    return rows


def main() -> None:
    """Run the audit and write its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", choices=["replica", "helm"], required=True)
    parser.add_argument("--helm", type=Path, metavar="DIR", help="of --data helm: what fetch helm downloaded")
    parser.add_argument("--preset", choices=["default", "paper", "quick"], default="default")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--work", type=Path, help="folder of the audit itself; default OUT/<preset>-audit")
    parser.add_argument("--only-panel", type=Path, metavar="NPZ", help="write the panel and its splits alone")
    given = parser.parse_args()
    config = Config(preset=given.preset)
    if (given.data == "helm") != (given.helm is not None):
        parser.error("--data helm and --helm DIR go together")
    matrix, truth = (helm_panel(given.helm), None) if given.helm else simulate(config.seed)
    if given.only_panel:
        np.savez(
            given.only_panel, responses=matrix.responses, held_out=make_splits(matrix, seed=config.seed).test
        )
        return
    ending = "" if given.data == "replica" else "_helm"
    work = given.work or given.out / f"{config.preset}{ending}-audit"
    given.out.mkdir(parents=True, exist_ok=True)
    continued = (work / "fits").exists()
    started = time.monotonic()
    result, plan = audited(config, matrix, work, given.workers)
    seconds = time.monotonic() - started
    get_reusable_executor().shutdown(wait=True)  # what its processes cost is known once they have ended
    place = f" --helm {given.helm}" if given.helm else ""
    command = f"python experiments/harmful_refusal/run.py --data {given.data}{place} --preset {config.preset}"
    write_audit(result, work, command=command)
    rows = given.out / "py_irt.csv"
    theirs = pd.read_csv(rows) if truth is not None and rows.exists() else None
    table = side_by_side(result, theirs, simulated=truth is not None)
    suffix = ending + ("" if config.preset == "default" else f"_{config.preset}")
    if truth is not None:
        matched_moments(matrix, truth).round(4).to_csv(given.out / "moments.csv", index=False)
    table.round(4).to_csv(given.out / f"comparison{suffix}.csv", index=False)
    found = findings(result, truth)
    found.to_csv(given.out / f"findings{suffix}.csv", index=False)
    cpu = sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    provenance = {
        "data": f"{matrix.source}, seed {config.seed}, sha256 {matrix.sha256}",
        "notes": list(matrix.notes),
        "plan_sha256": Planned(plan, "plan.toml").sha256,
        "deviations": [vars(one) for one in result.planned.deviations] if result.planned else [],
        "fits": len(result.comparison.restarts),
        "wall_seconds": round(seconds),
        "cpu_seconds": round(cpu),
        "seconds_are_of": "the last piece of an interrupted run" if continued else "the whole run",
        "versions": versions(),
        "command": command,
    }
    text = json.dumps(provenance, indent=1) + "\n"
    (given.out / f"provenance{suffix}.json").write_text(text, encoding="utf-8")
    print(table.to_string(), found.to_string(), f"{seconds:.0f} s, {cpu:.0f} CPU s", sep="\n\n")


if __name__ == "__main__":
    main()
