"""Time and memory that a long Parquet table of 50 million simulated responses takes to become a matrix.

python experiments/data_in_out/large_input.py            # 5,000 subjects x 10,000 items, two minutes; writes
                                                         # results/large_input.csv
python experiments/data_in_out/large_input.py --subjects 500
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import irtaudit

SEED = 2026
LARGE = (5_000, 10_000)
RESULTS = Path(__file__).parent / "results"
ROWS_PER_GROUP = 2**20


def write_simulated(path: Path, subjects: int, items: int) -> None:
    """Write one row per cell in random order: names as text, a pass of probability one half."""
    rng = np.random.default_rng(SEED)
    cells = rng.permutation(subjects * items)
    names = pa.array([f"model-{i:05d}" for i in range(subjects)])
    questions = pa.array([f"benchmark/question-{j:05d}" for j in range(items)])
    schema = pa.schema({"model": pa.string(), "item": pa.string(), "correct": pa.int8()})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, len(cells), ROWS_PER_GROUP):
            block = cells[start : start + ROWS_PER_GROUP]
            passes = pa.array(rng.integers(0, 2, len(block), dtype=np.int8))
            columns = [names.take(pa.array(block // items)), questions.take(pa.array(block % items)), passes]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def peak_mib() -> float:
    """The most memory that this program has held, in MiB (its parent's, which getrusage adds, left out)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(status.partition("VmHWM:")[2].split()[0]) / 2**10


def read(path: Path) -> None:
    """Read the table in this process and print what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    matrix = irtaudit.read_responses(path)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        json.dumps(
            {
                "simulated": True,
                "seed": SEED,
                "irtaudit": irtaudit.__version__,
                "python": platform.python_version(),
                "pyarrow": pa.__version__,
                "subjects": matrix.n_subjects,
                "items": matrix.n_items,
                "rows": int(matrix.observed.sum()),
                "file_gb": round(path.stat().st_size / 1e9, 3),
                "wall_s": round(wall, 1),
                "cpu_s": round(cpu, 1),
                "peak_gib": round(peak_mib() / 2**10, 2),
                "pass_rate": round(float(np.nanmean(matrix.responses)), 4),
            }
        )
    )


def main() -> None:
    """Write the table, and read it in a process of its own, so that the peak is the reader's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--subjects", type=int, default=LARGE[0])
    parser.add_argument("--items", type=int, default=LARGE[1])
    parser.add_argument("--read", type=Path, help="read this file instead of writing one")
    options = parser.parse_args()
    if options.read:
        read(options.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "simulated.parquet"
        write_simulated(path, options.subjects, options.items)
        command = [sys.executable, __file__, "--read", path]
        line = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(line, end="")
    if (options.subjects, options.items) == LARGE:
        pd.DataFrame([json.loads(line)]).to_csv(RESULTS / "large_input.csv", index=False)


if __name__ == "__main__":
    main()
