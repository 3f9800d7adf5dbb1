"""Fit one peer to a panel and print one line of JSON: CPU seconds of the fit alone, held-out log-loss.

Run by ``scripts/bench.py`` in the peers' own virtual environment, one process per peer, one thread.
The panel is an npz file: ``responses`` (subject, item) of 0/1, ``held_out`` (subject, item) bool,
``factor`` (item,) number of the factor of each item.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np


def py_irt(responses: Any, held_out: Any, _factor: Any, effort: int) -> tuple[float, Any]:
    """Hierarchical 2PL of py-irt, `effort` epochs; held-out cells are left out of its JSON lines."""
    import torch
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    torch.set_num_threads(1)
    lines = [
        {"subject_id": f"s{i}", "responses": {f"i{j}": int(row[j]) for j in np.flatnonzero(~out)}}
        for i, (row, out) in enumerate(zip(responses, held_out, strict=True))
    ]
    config = IrtConfig(model_type="2pl", priors="hierarchical", epochs=effort, seed=0, deterministic=True)

    def trainer() -> Any:
        torch.manual_seed(0)
        data = Dataset.from_jsonlines(path)
        return IrtModelTrainer(data_path=path, config=config, dataset=data, verbose=False)

    with TemporaryDirectory() as folder:
        path = Path(folder, "panel.jsonlines")
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        trainer().train(epochs=min(20, effort))  # warms the process
        fitted = trainer()
        seconds = cpu_seconds(fitted.train)
    found = fitted.last_params
    ability = in_order(found["ability"], found["subject_ids"], "s")
    diff, disc = (in_order(found[name], found["item_ids"], "i") for name in ("diff", "disc"))
    return seconds, 1 / (1 + np.exp(-disc * (ability[:, None] - diff)))


def mirt(responses: Any, held_out: Any, factor: Any, effort: int) -> tuple[float, Any]:
    """Confirmatory 2PL of mirt by EM with 7 points, at most `effort` cycles; its EAP scores predict."""
    from mirt import fit_mirt, fscores

    factors = [f"F{f}" for f in range(factor.max() + 1)]
    items = [", ".join(str(j + 1) for j in np.flatnonzero(factor == f)) for f in range(len(factors))]
    syntax = [f"{name} = {list_}" for name, list_ in zip(factors, items, strict=True)]
    syntax.append(f"COV = {'*'.join(factors)}")
    train = np.where(held_out, -1, responses).astype(int)
    results = []

    def fit(cycles: int) -> None:
        spec = "\n".join(syntax)
        results.append(
            fit_mirt(train, spec=spec, n_quadpts=7, max_iter=cycles, compute_standard_errors=False)
        )

    fit(2)  # warms the process
    seconds = cpu_seconds(lambda: fit(effort))
    scores = fscores(results[-1], train, method="EAP")
    return seconds, results[-1].model.probability(np.asarray(scores.theta))


PEERS: dict[str, tuple[str, Callable[..., tuple[float, Any]]]] = {
    "py-irt": ("py-irt", py_irt),
    "mirt": ("mirt", mirt),
}


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this process, threads included, during `work`."""
    before = time.process_time()
    work()
    return time.process_time() - before


def log_loss(responses: Any, p: Any, cells: Any) -> float:
    """Mean negative log-likelihood of the cells, natural logarithm, probabilities clipped at 1e-8."""
    clipped = np.clip(p, 1e-8, 1 - 1e-8)
    return float(-np.log(np.where(responses == 1, clipped, 1 - clipped))[cells].mean())


def in_order(values: Any, names: dict[int, str], prefix: str) -> Any:
    """Sort values, which lie in the order in which their names were met, by the number in the name."""
    order = np.argsort([int(names[i].removeprefix(prefix)) for i in range(len(values))])
    return np.array(values)[order]


def main() -> None:
    """usage: bench_peers.py PEER PANEL.npz EFFORT"""
    peer, panel, effort = sys.argv[1:]
    package, fit = PEERS[peer]
    with np.load(panel) as file:
        responses, held_out, factor = file["responses"], file["held_out"], file["factor"]
    seconds, p = fit(responses, held_out, factor, int(effort))
    row = {"cpu_s": seconds, "log_loss": log_loss(responses, p, held_out), "version": version(package)}
    print(json.dumps(row))


if __name__ == "__main__":
    main()
