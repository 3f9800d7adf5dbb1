"""The replica's rows by py-irt itself, the paper's engine, on the same responses and held-out cells.

Usage, with any Python that has the extra ``[py-irt]``::

    python experiments/harmful_refusal/run.py --data replica --only-panel replica.npz
    python experiments/harmful_refusal/fit_py_irt.py replica.npz py_irt.csv 5

The first writes the panel as arrays; the second, whose table goes into ``results/``, needs numpy and py-irt
alone; 5 is the number of splits. One start per model and split, py-irt's own settings but for the paper's
2,000 epochs and learning rate .01; predictions at posterior means. py-irt has no confirmatory models and no
prediction in several dimensions: these are its 1PL, 2PL and exploratory 2PL, predicted by its formulas.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

EPOCHS = 2000
RATE = 0.01
MODELS: dict[str, dict[str, Any]] = {
    "unidimensional_1pl": {"model_type": "1pl", "priors": "hierarchical"},
    "unidimensional_2pl": {"model_type": "2pl", "priors": "hierarchical"},
    "exploratory_2d_2pl": {"model_type": "multidim_2pl", "dims": 2},
    "exploratory_3d_2pl": {"model_type": "multidim_2pl", "dims": 3},
}
"""py-irt's settings for the models that it has."""


def fitted(responses: Any, train: Any, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """py-irt's parameters after training on the responses of the training cells."""
    import torch
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    config = IrtConfig(**settings, epochs=EPOCHS, lr=RATE, lr_decay=1.0, seed=seed, deterministic=True)
    with TemporaryDirectory() as folder:
        path = Path(folder, "panel.jsonlines")
        lines = [
            {"subject_id": f"s{i}", "responses": {f"i{j}": int(row[j]) for j in np.flatnonzero(cells)}}
            for i, (row, cells) in enumerate(zip(responses, train, strict=True))
        ]
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        data = Dataset.from_jsonlines(path)
        trainer = IrtModelTrainer(data_path=path, config=config, dataset=data, verbose=False)
        trainer.train(epochs=EPOCHS)
    return dict(trainer.last_params)


def probabilities(found: dict[str, Any], shape: tuple[int, int]) -> Any:
    """(subject, item) chances to pass by py-irt's formula: sigmoid of sum_d disc_jd (theta_id - diff_jd)."""
    ability = _in_order(found["ability"], found["subject_ids"])
    diff = _in_order(found["diff"], found["item_ids"])
    disc = _in_order(found["disc"], found["item_ids"]) if "disc" in found else np.ones_like(diff)
    ability, diff, disc = (x.reshape(len(x), -1) for x in (ability, diff, disc))
    logits = ability @ disc.T - (disc * diff).sum(axis=1)
    assert logits.shape == shape
    return 1 / (1 + np.exp(-logits))


def _in_order(values: Any, names: dict[int, str]) -> Any:
    """Values in the order of the numbers in the names, not of their first appearance."""
    return np.array(values)[np.argsort([int(names[i][1:]) for i in range(len(values))])]


def log_loss(responses: Any, p: Any, cells: Any) -> float:
    """Mean negative log-likelihood of the cells, probabilities clipped at 1e-8."""
    p = np.clip(p, 1e-8, 1 - 1e-8)
    return float(-np.log(np.where(responses == 1, p, 1 - p))[cells].mean())


def main() -> None:
    """Fit every model to every split and write a row for each."""
    panel, out, n_splits = sys.argv[1:]
    with np.load(panel) as file:
        responses, held_out = file["responses"], file["held_out"]
    rows = []
    for model, settings in MODELS.items():
        for split, cells in enumerate(held_out[: int(n_splits)]):
            before = time.process_time()
            p = probabilities(fitted(responses, ~cells, settings, seed=split), responses.shape)
            seconds = round(time.process_time() - before, 1)
            loss, train = log_loss(responses, p, cells), -log_loss(responses, p, ~cells) * (~cells).sum()
            rows.append([model, split, round(loss, 6), round(train, 2), seconds, version("py-irt")])
            print(*rows[-1], flush=True)
    with Path(out).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "split", "log_loss", "train_log_lik", "cpu_s", "py_irt"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
