"""Time and memory of every reader on data of one, two and four times the size: both grow in proportion.

    python experiments/data_in_out/linear.py [--inspect]    # simulated data, minutes: results/linear.csv

Each reading runs in a process of its own (Linux); its memory is the peak of that process above what it held
before. Inspect's logs are read by Inspect itself, so they are left out unless it is installed and asked for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from large_input import peak_mib

import irtaudit
from irtaudit.data.read_logs import read_logs

SEED = 2026
SIZES = (1, 2, 4)
CELLS = {"tables": 400_000, "logs": 40_000, "inspect": 10_000}
"""Cells of the smallest data: 200 items, the subjects vary. Inspect takes long to write its own logs."""
N_ITEMS = 200
RESULTS = Path(__file__).parent / "results"


def matrix_of(cells: int) -> irtaudit.ResponseMatrix:
    """Simulated responses, a tenth of them missing."""
    rng = np.random.default_rng(SEED)
    answers = rng.choice([0.0, 1.0, np.nan], p=[0.5, 0.4, 0.1], size=(cells // N_ITEMS, N_ITEMS))
    return irtaudit.ResponseMatrix.from_array(answers)


def write_layout(format: str) -> Callable[[Path, int], None]:
    """A writer of one of the layouts of `irtaudit convert`."""
    return lambda path, cells: print(irtaudit.write_responses(matrix_of(cells), path / "data", format))


def write_helm(folder: Path, cells: int) -> None:
    """One scenario, a run per model, scores in display_predictions.json."""
    matrix = matrix_of(cells)
    for model, answers in zip(matrix.subjects.index, matrix.responses, strict=True):
        run = folder / "runs" / "suite" / f"simulated:model={model}"
        run.mkdir(parents=True)
        spec = {"name": run.name, "adapter_spec": {"model": model, "method": "generation"}}
        instances = [{"id": item, "references": []} for item in matrix.items.index]
        predictions = [
            {
                "instance_id": item,
                "train_trial_index": 0,
                "predicted_text": "simulated text " * 20,
                "stats": {} if np.isnan(answer) else {"score": answer},
            }
            for item, answer in zip(matrix.items.index, answers, strict=True)
        ]
        for name, content in (
            ("run_spec", spec),
            ("instances", instances),
            ("display_predictions", predictions),
        ):
            (run / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def write_lm_eval(folder: Path, cells: int) -> None:
    """A folder per model with one file of samples."""
    matrix = matrix_of(cells)
    for model, answers in zip(matrix.subjects.index, matrix.responses, strict=True):
        path = folder / model / "samples_simulated_2026-01-01T00-00-00.0.jsonl"
        path.parent.mkdir()
        lines = [
            json.dumps(
                {
                    "doc_id": number,
                    "doc": {"question": "simulated text " * 20},
                    "target": "1",
                    "filtered_resps": ["1"],
                    "filter": "none",
                    "metrics": ["acc"],
                    "acc": None if np.isnan(answer) else answer,
                }
            )
            for number, answer in enumerate(answers)
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_swebench(folder: Path, cells: int) -> None:
    """A report of the harness per model."""
    matrix = matrix_of(cells)
    for model, answers in zip(matrix.subjects.index, matrix.responses, strict=True):
        lists = {
            "resolved_ids": matrix.items.index[answers == 1].tolist(),
            "unresolved_ids": matrix.items.index[answers == 0].tolist(),
            "submitted_ids": matrix.items.index.tolist(),
        }
        (folder / f"{model}.run.json").write_text(json.dumps(lists), encoding="utf-8")


def write_inspect(folder: Path, cells: int) -> None:
    """A log per model, written by Inspect's own writer."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.scorer import Score

    matrix = matrix_of(cells)
    for model, answers in zip(matrix.subjects.index, matrix.responses, strict=True):
        samples = [
            EvalSample(
                id=item,
                epoch=1,
                input="simulated text " * 20,
                target="1",
                scores={} if np.isnan(answer) else {"match": Score(value="C" if answer else "I")},
            )
            for item, answer in zip(matrix.items.index, answers, strict=True)
        ]
        spec = EvalSpec(
            created="2026-01-01T00:00:00+00:00",
            task="simulated",
            model=model,
            task_id=model,
            dataset=EvalDataset(name="simulated"),
            config=EvalConfig(),
        )
        write_eval_log(EvalLog(eval=spec, samples=samples, status="success"), folder / f"{model}.eval")


TABLES = {
    format: write_layout(format)
    for format in ("wide-csv", "long-csv", "wide-parquet", "long-parquet", "py-irt")
}
LOGS = {"helm": write_helm, "lm-eval": write_lm_eval, "swe-bench": write_swebench, "inspect": write_inspect}


def read(kind: str, folder: Path) -> None:
    """Read in this process, and print what it took."""
    path = folder if kind in LOGS else folder / "data"
    if kind == "inspect":
        import inspect_ai.log  # noqa: F401 - four seconds that have nothing to do with the size
    before, began = peak_mib(), time.process_time()
    observed = (
        int(irtaudit.read_responses(path).observed.sum())
        if kind in TABLES
        else int(read_logs(path).rows["score"].notna().sum())
    )
    seconds = time.process_time() - began
    print(json.dumps({"responses": observed, "cpu_s": seconds, "peak_mib": peak_mib() - before}))


def measured(kind: str, size: int) -> dict[str, object]:
    """One row of the table."""
    cells = size * CELLS.get(kind, CELLS["tables" if kind in TABLES else "logs"])
    with tempfile.TemporaryDirectory() as folder:
        (TABLES | LOGS)[kind](Path(folder), cells)
        command = [sys.executable, __file__, "--read", kind, folder]
        line = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    return {"reader": kind, "cells": cells, "simulated": True, **json.loads(line)}


def main() -> None:
    """Measure every reader and print seconds per million cells."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inspect", action="store_true", help="Inspect's logs too")
    parser.add_argument("--read", nargs=2, metavar=("KIND", "FOLDER"), help="read this, in this process")
    options = parser.parse_args()
    if options.read:
        read(options.read[0], Path(options.read[1]))
        return
    kinds = [*TABLES, *(kind for kind in LOGS if kind != "inspect" or options.inspect)]
    rows = pd.DataFrame([measured(kind, size) for kind in kinds for size in SIZES])
    rows["cpu_s_per_million"] = rows["cpu_s"] / rows["cells"] * 1e6
    rows["peak_mib_per_million"] = rows["peak_mib"] / rows["cells"] * 1e6
    rows.round(2).to_csv(RESULTS / "linear.csv", index=False)
    print(rows.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
