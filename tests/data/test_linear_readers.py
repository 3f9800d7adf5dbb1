"""Time and memory of every reader grow in proportion to the data (more sizes: experiments/data_in_out)."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from irtaudit.data import ResponseMatrix, read_responses, write_responses
from irtaudit.data.read_logs import read_logs

N_ITEMS, TIMES = 100, 4


def matrix(n_subjects: int) -> ResponseMatrix:
    """Simulated responses, a tenth of them missing."""
    cells = np.random.default_rng(4).choice([0.0, 1.0, np.nan], p=[0.5, 0.4, 0.1], size=(n_subjects, N_ITEMS))
    return ResponseMatrix.from_array(cells)


def table(layout: str) -> Callable[[Path, int], None]:
    def write(path: Path, n: int) -> None:
        write_responses(matrix(n), path, layout)

    return write


def helm(path: Path, n: int) -> None:
    for m in range(n):
        run = path / f"t:model={m}"
        run.mkdir(parents=True)
        spec = {"name": run.name, "adapter_spec": {"model": f"m{m}"}}
        instances = [{"id": f"id{j}"} for j in range(N_ITEMS)]
        predictions = [{"instance_id": f"id{j}", "stats": {"score": 1.0}} for j in range(N_ITEMS)]
        contents = {"run_spec": spec, "instances": instances, "display_predictions": predictions}
        for name, content in contents.items():
            (run / f"{name}.json").write_text(json.dumps(content))


def lm_eval(path: Path, n: int) -> None:
    samples = [{"doc_id": j, "filtered_resps": ["1"], "metrics": ["acc"], "acc": 1.0} for j in range(N_ITEMS)]
    for m in range(n):
        (path / f"m{m}").mkdir(parents=True)
        (path / f"m{m}" / "samples_t.jsonl").write_text("\n".join(map(json.dumps, samples)))


def swebench(path: Path, n: int) -> None:
    path.mkdir()
    for m in range(n):
        report = {"resolved_ids": [f"t{j}" for j in range(N_ITEMS)], "unresolved_ids": []}
        (path / f"m{m}.run.json").write_text(json.dumps(report))


READERS: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "wide-csv": (table("wide-csv"), 1000),
    "long-csv": (table("long-csv"), 80),
    "wide-parquet": (table("wide-parquet"), 2000),
    "long-parquet": (table("long-parquet"), 1000),
    "py-irt": (table("py-irt"), 300),
    "helm": (helm, 15),
    "lm-eval": (lm_eval, 15),
    "swe-bench": (swebench, 40),
}
"""How each is written, and how many subjects the smaller data has."""


def seconds(read: Callable[[], object]) -> float:
    """Processor time of the quicker of two readings."""
    found = []
    for _ in range(2):
        began = time.process_time()
        read()
        found.append(time.process_time() - began)
    return min(found)


def peak(read: Callable[[], object]) -> int:
    """Most bytes that Python held at once (numpy's included, Arrow's not)."""
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_four_times_the_columns_of_a_parquet_table_take_four_times_as_long(tmp_path: Path) -> None:
    """A benchmark may have 100,000 items; Arrow makes the list of all names anew whenever it is asked."""
    for n in (1000, TIMES * 1000):
        cells = np.random.default_rng(4).choice([0.0, 1.0, np.nan], size=(8, n))
        write_responses(ResponseMatrix.from_array(cells), tmp_path / str(n), "wide-parquet")
    small, large = (seconds(partial(read_responses, tmp_path / str(n))) for n in (1000, TIMES * 1000))
    assert large < 2 * TIMES * small


@pytest.mark.parametrize("kind", READERS)
def test_four_times_the_data_takes_four_times_as_much(tmp_path: Path, kind: str) -> None:
    """What grew with the square would take sixteen times as much; less than four is a fixed cost."""
    write, n = READERS[kind]
    small, large = tmp_path / "small", tmp_path / "large"
    write(small, n)
    write(large, TIMES * n)
    read = read_logs if small.is_dir() else read_responses
    assert peak(lambda: read(large)) < 1.25 * TIMES * peak(lambda: read(small))
    assert seconds(lambda: read(large)) < 2 * TIMES * seconds(lambda: read(small))
