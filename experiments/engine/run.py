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
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from irtaudit import ModelSpec
from irtaudit.irt import likelihood
from irtaudit.irt.engine import Adam
from irtaudit.irt.kernel import Kernel
from irtaudit.irt.layout import Layout
from irtaudit.irt.likelihood import Cells
from irtaudit.irt.prior import State
from irtaudit.present import versions

HERE = Path(__file__).parent
SEED = 0


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


def one_hot(config: Config) -> Iterator[Row]:
    """The linear predictor where every item loads on one of three dimensions."""
    f, n, j = config.n_fits, config.n_subjects, config.n_items - config.n_items % 16
    strips = [slice(0, j // 2), slice(j // 2, 3 * j // 4), slice(3 * j // 4, j)]
    theta, ones = torch.randn(f, 3, n), torch.ones(f, 3, n)
    slopes, cells = torch.randn(f, 2, j), torch.randn(f, n, j)
    pairs = [torch.stack([theta[:, d], ones[:, d]], 2) for d in range(3)]
    dense, weights = torch.randn(f, n, 4), torch.randn(f, 4, j)
    views = [
        (slopes[:, 1:, s], theta[:, d : d + 1].mT, slopes[:, :1, s], cells[:, :, s])
        for d, s in enumerate(strips)
    ]

    def by_product() -> None:
        for pair, s in zip(pairs, strips, strict=True):
            torch.bmm(pair, slopes[:, :, s], out=cells[:, :, s])

    def by_broadcast() -> None:
        for intercept, ability, slope, out in views:
            torch.addcmul(intercept, ability, slope, out=out)

    ways = {
        "one dense product": lambda: torch.bmm(dense, weights, out=cells),
        "one product per factor": by_product,
        "broadcasting, factor by factor": by_broadcast,
    }
    for way, work in ways.items():
        yield Row("one-hot pattern", way, cpu_ms(work, config) / f, "ms per fit")


def shapes(config: Config) -> Iterator[Row]:
    """Products by where they end, how many rows they have, and where rows of items begin."""
    f, n, j = config.n_fits, config.n_subjects, config.n_items
    residual, rows = torch.randn(f, n, j), torch.randn(f, 4, j)
    packed, own = torch.zeros(f, 4 * n + 160), torch.zeros(f, 4, n)
    within = packed[:, 96 : 96 + 4 * n].view(f, 4, n)
    for way, out in {"into memory of its own": own, "into a slice of packed rows": within}.items():
        work = partial(torch.bmm, rows, residual.mT, out=out)
        yield Row("four rows by e'", way, cpu_ms(work, config) / f, "ms per fit")
    for count, name in ((3, "three rows"), (4, "four rows")):
        work = partial(torch.bmm, rows[:, :count].contiguous(), residual.mT)
        yield Row("rows by e'", name, cpu_ms(work, config) / f, "ms per fit")
    theta = torch.randn(f, n, 2)
    for length, name in ((j, "as many as there are"), (j + -j % 16, "padded to a cache line")):
        work = partial(torch.bmm, theta, torch.randn(f, 2, length), out=torch.zeros(f, n, length))
        yield Row("items, linear predictor", name, cpu_ms(work, config) / f, "ms per fit")


def residuals(config: Config) -> Iterator[Row]:
    """From the linear predictor to minus the residual."""
    f, n, j = config.n_fits, config.n_subjects, config.n_items
    eta, out = torch.randn(f, n, j), torch.zeros(f, n, j)
    success, mask = torch.ones(1, n, j), torch.ones(1, n, j)

    def sigmoid() -> None:
        torch.addcmul(success, mask, torch.sigmoid(eta, out=out), out=out)

    def power() -> None:
        torch.addcdiv(success, mask, torch.exp2(eta, out=out).add_(1), out=out)

    for way, work in {"sigmoid and one product": sigmoid, "1 / (1 + 2^h)": power}.items():
        yield Row("residual", way, cpu_ms(work, config) / f, "ms per fit")


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
    """torch's Adam in its three implementations, and the fused step without the optimiser around it."""
    width = config.dims * (config.n_subjects + config.n_items) + config.n_items
    ways: dict[str, dict[str, Any]] = {"fused": {"fused": True}, "foreach": {"foreach": True}, "plain": {}}
    for way, options in ways.items():
        parameters = [torch.nn.Parameter(torch.randn(config.n_fits, width)) for _ in range(2)]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        step = torch.optim.Adam(parameters, lr=1e-6, **options).step
        yield Row("Adam", way, cpu_ms(step, config) / config.n_fits, "ms per fit")
    flat = torch.randn(20 * 2 * width)
    alone = partial(Adam(flat, torch.randn_like(flat)).step, 1e-6)
    yield Row("Adam", "fused, the step alone, 20 fits", cpu_ms(alone, config) / 20, "ms per fit")


def tiles(config: Config) -> Iterator[Row]:
    """The gradient of an epoch by the number of fits in a tile."""
    for spec in _models():
        for n_fits in (1, 5, 10, 20, 40):
            gradient, _ = _kernel(spec, config.n_subjects, config.n_items, n_fits)
            value = cpu_ms(gradient, config, 100) / n_fits
            yield Row(f"tile, {spec.name}", f"{n_fits} fits", value, "ms per fit and epoch")


def steps(config: Config) -> Iterator[Row]:
    """What the ELBO's value costs in gradients, and the calls of torch that a gradient makes."""
    for spec in _models():
        gradient, elbo = _kernel(spec, config.n_subjects, config.n_items, 20)
        ratio = cpu_ms(elbo, config, 50) / cpu_ms(gradient, config, 50)
        yield Row(f"value, {spec.name}", "20 fits", ratio, "gradients")
        with torch.profiler.profile() as profile:
            gradient()
        calls = sum(e.cpu_parent is None and e.name.startswith("aten::") for e in profile.events())
        yield Row(f"calls, {spec.name}", "one gradient", calls, "calls")


def blocks(config: Config) -> Iterator[Row]:
    """The gradient of one fit of a large panel by the size of its blocks of subjects."""
    before = likelihood.BLOCK_CELLS
    for power in (14, 16, 17, 18, 30):
        likelihood.BLOCK_CELLS = 2**power
        gradient, _ = _kernel(ModelSpec.unidimensional("2pl"), 5000, 500, 1)
        way = "whole" if power == 30 else f"2^{power} cells"
        yield Row("blocks, 5,000 x 500", way, 1e6 * cpu_ms(gradient, config, 10) / 2.5e6, "ns per cell")
    likelihood.BLOCK_CELLS = before


def _models() -> tuple[ModelSpec, ...]:
    labels = np.repeat(["a", "b", "c"], [200, 100, 98]).tolist()
    return (
        ModelSpec.unidimensional("2pl"),
        ModelSpec.exploratory("2pl", 3),
        ModelSpec.confirmatory("2pl", labels),
    )


def _kernel(
    spec: ModelSpec, n_subjects: int, n_items: int, n_fits: int
) -> tuple[Callable[[], object], Callable[[], object]]:
    """The gradient and the value of a tile's negative ELBO."""
    layout = Layout(spec, n_subjects, n_items)
    success = (torch.rand(1, n_subjects, n_items) < 0.5).float()
    cells = Cells(success, torch.ones_like(success))
    widths = (layout.width, layout.width, layout.hyper_width)
    kernel = Kernel(layout, cells, State(*(0.1 * torch.randn(n_fits, width) for width in widths)))
    draw = torch.randn(n_fits, layout.width)
    return partial(kernel.gradient, draw), partial(kernel.elbo, draw)


@torch.inference_mode()
def main() -> None:
    """Measure every way and write the table with its provenance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    config = Config()
    rows = []
    for part in (products, one_hot, shapes, residuals, noise, optimiser, tiles, steps, blocks):
        for row in part(config):
            rows.append(row)
            print(f"{row.question:32} {row.way:38} {row.value:9.4f} {row.unit}", flush=True)
    pd.DataFrame(rows).round(5).to_csv(out / "engine.csv", index=False)
    provenance = {
        "command": "OMP_NUM_THREADS=1 python experiments/engine/run.py",
        "seed": SEED,
        "config": asdict(config),
        "versions": versions(),
        "machine": platform.machine(),
    }
    (out / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")


if __name__ == "__main__":
    main()
