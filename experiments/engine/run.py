"""What was tried to make an epoch cheap, and what it gave: CPU time of each way, one thread.

Usage: ``OMP_NUM_THREADS=1 python experiments/engine/run.py [--out FOLDER]``. Writes ``engine.csv`` and
``provenance.json``. Random numbers throughout: only time is measured.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

import irtaudit
from irtaudit import ModelSpec
from irtaudit.irt import likelihood
from irtaudit.irt.kernel import Kernel
from irtaudit.irt.layout import Layout
from irtaudit.irt.likelihood import Cells
from irtaudit.irt.prior import State

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Config:
    """Shapes and repeats.

    Attributes
    ----------
    n_subjects, n_items, dims, n_fits : int
        Of the small products: a panel of the paper's size, in a batch.
    repeats, rounds : int
        Calls per measurement, and measurements of which the fastest counts.
    """

    n_subjects: int = 81
    n_items: int = 398
    dims: int = 3
    n_fits: int = 10
    repeats: int = 200
    rounds: int = 5


class Row(NamedTuple):
    """One way of doing one thing."""

    question: str
    way: str
    value: float
    unit: str


def cpu_ms(work: Callable[[], object], config: Config, repeats: int | None = None) -> float:
    """CPU milliseconds of one call: the fastest of several rounds, after a warm-up."""
    n = repeats or config.repeats
    rounds = []
    for _ in range(config.rounds + 1):
        start = time.process_time()
        for _ in range(n):
            work()
        rounds.append(time.process_time() - start)
    return 1000 * min(rounds[1:]) / n


def products(config: Config) -> Iterator[Row]:
    """The batched products, in the orders that a transpose makes cheap or dear."""
    f, n, j, k = config.n_fits, config.n_subjects, config.n_items, config.dims
    theta, weights, cells = torch.randn(f, n, k), torch.randn(f, k, j), torch.randn(f, n, j)
    by_item, by_dim = weights.mT.contiguous(), theta.mT.contiguous()
    ways = {
        ("linear predictor", "theta W"): lambda: torch.bmm(theta, weights, out=cells),
        ("subject side", "e W', W stored by item"): lambda: torch.bmm(cells, by_item),
        ("subject side", "e W', W stored by dimension"): lambda: torch.bmm(cells, weights.mT),
        ("subject side", "W e'"): lambda: torch.bmm(weights, cells.mT),
        ("item side", "e' theta"): lambda: torch.bmm(cells.mT, theta),
        ("item side", "theta' e, theta stored by dimension"): lambda: torch.bmm(by_dim, cells),
        ("sigmoid", "in place"): lambda: cells.sigmoid_(),
        ("sigmoid", "into new memory"): lambda: torch.sigmoid(cells),
    }
    for (question, way), work in ways.items():
        yield Row(question, way, cpu_ms(work, config) / f, "ms per fit")
    thirds = [slice(0, j // 2), slice(j // 2, 3 * j // 4), slice(3 * j // 4, j)]
    pair, factors = torch.randn(f, n, 2), torch.randn(f, 2, j)

    def by_block() -> None:
        for columns in thirds:
            torch.bmm(pair, factors[:, :, columns], out=cells[:, :, columns])

    yield Row("one-hot pattern", "one product per factor", cpu_ms(by_block, config) / f, "ms per fit")


def noise(config: Config) -> Iterator[Row]:
    """A generator per fit: torch's against numpy's."""
    width = config.dims * (config.n_subjects + config.n_items) + config.n_items
    block = torch.empty(config.n_fits, 16, width - width % 32)
    torchs = [torch.Generator().manual_seed(i) for i in range(config.n_fits)]
    numpys = [np.random.Generator(np.random.SFC64(i)) for i in range(config.n_fits)]
    rows = block.numpy()
    ways = {
        "torch.Generator": lambda: [r.normal_(generator=g) for r, g in zip(block, torchs, strict=True)],
        "numpy SFC64": lambda: [
            g.standard_normal(dtype=np.float32, out=r) for r, g in zip(rows, numpys, strict=True)
        ],
    }
    for way, work in ways.items():
        yield Row("noise", way, cpu_ms(work, config, 20) / config.n_fits / 16, "ms per fit and draw")


def optimiser(config: Config) -> Iterator[Row]:
    """torch's Adam in its three implementations."""
    width = config.dims * (config.n_subjects + config.n_items) + config.n_items
    for way, options in {"fused": {"fused": True}, "foreach": {"foreach": True}, "plain": {}}.items():
        parameters = [torch.nn.Parameter(torch.randn(config.n_fits, width)) for _ in range(2)]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        step = torch.optim.Adam(parameters, lr=1e-6, **options).step
        yield Row("Adam", way, cpu_ms(step, config) / config.n_fits, "ms per fit")


def tiles(config: Config) -> Iterator[Row]:
    """The gradient of an epoch by the number of fits in a tile."""
    labels = np.repeat(["a", "b", "c"], [200, 100, 98]).tolist()
    for spec in (
        ModelSpec.unidimensional("2pl"),
        ModelSpec.exploratory("2pl", 3),
        ModelSpec.confirmatory("2pl", labels),
    ):
        for n_fits in (1, 5, 10, 20, 40):
            gradient = _gradient(spec, config.n_subjects, config.n_items, n_fits)
            value = cpu_ms(gradient, config, 100) / n_fits
            yield Row(f"tile, {spec.name}", f"{n_fits} fits", value, "ms per fit and epoch")


def blocks(config: Config) -> Iterator[Row]:
    """The gradient of one fit of a large panel by the size of its blocks of subjects."""
    before = likelihood.BLOCK_CELLS
    for power in (14, 16, 17, 18, 30):
        likelihood.BLOCK_CELLS = 2**power
        gradient = _gradient(ModelSpec.unidimensional("2pl"), 5000, 500, 1)
        way = "whole" if power == 30 else f"2^{power} cells"
        yield Row("blocks, 5,000 x 500", way, 1e6 * cpu_ms(gradient, config, 10) / 2.5e6, "ns per cell")
    likelihood.BLOCK_CELLS = before


def _gradient(spec: ModelSpec, n_subjects: int, n_items: int, n_fits: int) -> Callable[[], object]:
    layout = Layout(spec, n_subjects, n_items)
    success = (torch.rand(1, n_subjects, n_items) < 0.5).float()
    cells = Cells(success, torch.ones_like(success))
    widths = (layout.width, layout.width, layout.hyper_width)
    kernel = Kernel(layout, cells, State(*(0.1 * torch.randn(n_fits, width) for width in widths)))
    draw = torch.randn(n_fits, layout.width)
    return lambda: kernel.gradient(draw)


def main() -> None:
    """Measure every way and write the table with its provenance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = Config()
    rows = []
    for part in (products, noise, optimiser, tiles, blocks):
        for row in part(config):
            rows.append(row)
            print(f"{row.question:32} {row.way:38} {row.value:9.4f} {row.unit}", flush=True)
    pd.DataFrame(rows).round(5).to_csv(out / "engine.csv", index=False)
    versions = {"irtaudit": irtaudit.__version__, "torch": torch.__version__}
    provenance = {"config": asdict(config), "versions": versions, "machine": platform.machine()}
    (out / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")


if __name__ == "__main__":
    main()
