"""Measure the bars: speed, quality, scale and leanness, each with both sides of its ratio.

A bar is printed beside its measurement, never asserted. CPU seconds count every thread of one warmed process
that computes on one thread; the two sides of a ratio are measured in turn in the same run.
``scripts/bench --json FILE`` writes the same numbers as one flat object; a number that could not be measured
is null and ``<its name>_reason`` says why.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, get_args

import numpy as np
import psutil
import pyro
import torch
from pyro.infer import SVI, TraceMeanField_ELBO
from torch import Tensor

from irtaudit.data.responses import ResponseMatrix
from irtaudit.data.splits import Splits, make_splits
from irtaudit.irt.engine import FitKey, initial_state, run_tile
from irtaudit.irt.fit import MAX_FITS_PER_TILE, fit, fit_all
from irtaudit.irt.layout import Layout
from irtaudit.irt.likelihood import Cells
from irtaudit.irt.presets import Preset, get_preset
from irtaudit.irt.prior import State
from irtaudit.irt.pyro_model import guide, model
from irtaudit.irt.spec import Family, ModelSpec, Priors

SCRIPTS = Path(__file__).resolve().parent
ROOT = SCRIPTS.parent
sys.path.insert(0, str(ROOT / "tests" / "irt"))

from panels import lsat7, sim81  # noqa: E402  # the tests' panels lie beside the tests

FLOOR_FITS = 10
LSAT7_MAXIMUM = -2658.805
"""R mirt 1.45.1, EM."""
LOG_LOSS_BARS = {"unidimensional": 0.4499, "exploratory3": 0.4400, "confirmatory3": 0.4295}


@dataclass(frozen=True)
class Settings:
    """How much is measured. The tests make it tiny."""

    preset: Preset = field(default_factory=partial(get_preset, "default"))
    plain: Preset = field(default_factory=partial(get_preset, "paper"))
    repeats: int = 9
    restarts: int = 20
    tiles: tuple[int, ...] = (MAX_FITS_PER_TILE, FLOOR_FITS)
    pyro_epochs: int = 40
    study_restarts: int = 10
    large_items: int = 500
    large_subjects: tuple[int, ...] = (625, 1250, 2500, 5000)
    grid_epochs: int = 25
    grid_splits: int = 5
    grid_workers: int = 2
    peers: Path = ROOT / ".venv-peers"
    install_peers: bool = True
    peer_rounds: int = 2
    peer_efforts: tuple[int, int] = (2000, 500)
    demo: tuple[str, ...] = ("audit", "--demo")
    starts: int = 5
    traces: int = 100
    trace_events: int = 10_000


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes
    ----------
    key : str
        Its name in the JSON object.
    value : float or None
        None where it could not be measured; `how` is then the reason.
    bar : str
        What is wanted; empty where nothing is.
    sides : mapping of str to float
        What the value was made from, also in the JSON object.
    how : str
    """

    key: str
    value: float | None
    bar: str = ""
    sides: Mapping[str, float] = field(default_factory=dict)
    how: str = ""


@dataclass(frozen=True)
class Panel:
    """The simulated 81 x 398 panel with its mask."""

    matrix: ResponseMatrix
    splits: Splits
    factor: list[str]

    @property
    def models(self) -> dict[str, ModelSpec]:
        """The three models that the bars are about."""
        return {
            "unidimensional": ModelSpec.unidimensional("2pl"),
            "exploratory3": ModelSpec.exploratory("2pl", 3),
            "confirmatory3": ModelSpec.confirmatory("2pl", self.factor),
        }

    def layout(self, spec: ModelSpec) -> Layout:
        """Where the numbers of a fit of this panel lie."""
        return Layout(spec, self.matrix.n_subjects, self.matrix.n_items)

    def training(self) -> tuple[Tensor, Tensor]:
        """(1, subject, item): passes among the training cells, and which cells these are."""
        train = torch.tensor(self.matrix.observed & ~self.splits.test[:1], dtype=torch.float32)
        return torch.tensor(np.nan_to_num(self.matrix.responses), dtype=torch.float32) * train, train

    def cells(self) -> Cells:
        """The training cells as a tile reads them."""
        passes, train = self.training()
        return Cells(passes, train)


class CommandFailedError(Exception):
    """A command failed; the message says which and why."""


# Measuring -------------------------------------------------------------------------------------------


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this process, threads included, during `work`."""
    before = time.process_time()
    work()
    return time.process_time() - before


def in_turn(*works: Callable[[], object], repeats: int) -> list[tuple[float, ...]]:
    """CPU seconds of each work, once per repeat and in turn, after each has run once unmeasured."""
    for work in works:
        work()
    return [tuple(cpu_seconds(work) for work in works) for _ in range(repeats)]


def timed_fit(*args: Any, **options: Any) -> tuple[float, Any]:
    """CPU seconds and result of a fit in this process."""
    results: list[Any] = []
    seconds = cpu_seconds(lambda: results.append(fit(*args, workers=1, device="cpu", **options)))
    return seconds, results[0]


@dataclass(frozen=True)
class Ran:
    """A finished command: exit status, end of its errors, wall and CPU seconds, peak memory in MB."""

    status: int
    complaint: str
    wall_s: float
    cpu_s: float
    peak_mb: float


def run_watched(command: Sequence[str], **env: str) -> Ran:
    """Run a command and watch the memory of its processes, all of them together.

    Memory is what each process has to itself plus, once, the largest of what they map; sampled every .1 s.
    """
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = 0.0
    with tempfile.TemporaryFile("w+") as errors:
        child = psutil.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, cwd=ROOT, env={**os.environ, **env}
        )
        while child.poll() is None:
            peak = max(peak, _memory_mb(child))
            time.sleep(0.1)
        errors.seek(0)
        complaint = last_lines(errors.read())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(child.returncode, complaint, time.perf_counter() - start, cpu, peak)


def _memory_mb(process: psutil.Process) -> float:
    private, mapped = 0, 0
    for member in _family(process):
        try:
            info = member.memory_info()
        except psutil.Error:
            continue  # it ended between two looks
        shared = getattr(info, "shared", 0)
        private, mapped = private + info.rss - shared, max(mapped, shared)
    return (private + mapped) / 1e6


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def printed(command: Sequence[object], **env: str) -> str:
    """Standard output of a command.

    Raises
    ------
    CommandFailedError
    """
    words, everything = [str(word) for word in command], {**os.environ, **env}
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, env=everything
        )
    except subprocess.TimeoutExpired as error:
        raise CommandFailedError(f"{words[0]} was not done after {error.timeout:.0f} s") from error
    if done.returncode:
        raise CommandFailedError(f"{Path(words[0]).name} {words[-1]}: {last_lines(done.stderr)}")
    return done.stdout


def last_lines(errors: str) -> str:
    """The end of what a command complained about, in one line."""
    return " ".join(errors.strip().splitlines()[-3:]) or "no reason given"


# The floor -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Floor:
    """The bare tensor work of one epoch, float32, in its fastest orders. Fixed, so that runs compare.

    Attributes
    ----------
    theta : (fit, dim, subject) Tensor
    slope : (fit, dim, item) Tensor
    cells : (fit, subject, item) Tensor
    by_theta, by_slope : Tensor
        Shaped like theta and slope.
    """

    theta: Tensor
    slope: Tensor
    cells: Tensor
    by_theta: Tensor
    by_slope: Tensor

    def epoch(self) -> None:
        """One batched product, one sigmoid in place, two batched products back."""
        torch.bmm(self.theta.mT, self.slope, out=self.cells)
        self.cells.sigmoid_()
        torch.bmm(self.slope, self.cells.mT, out=self.by_theta)
        torch.bmm(self.theta, self.cells, out=self.by_slope)

    def epochs(self, n: int) -> None:
        """Repeat :meth:`epoch`."""
        for _ in range(n):
            self.epoch()


def make_floor(n_fits: int, n_subjects: int, n_items: int, dims: int) -> Floor:
    """Buffers of the floor, filled with standard normal numbers."""
    draws = torch.Generator().manual_seed(0)
    theta = torch.randn(n_fits, dims, n_subjects, generator=draws)
    slope = torch.randn(n_fits, dims, n_items, generator=draws)
    cells = torch.empty(n_fits, n_subjects, n_items)
    return Floor(theta, slope, cells, torch.empty_like(theta), torch.empty_like(slope))


def floor_rows(panel: Panel, settings: Settings) -> Iterator[Row]:
    """Cost of the engine per epoch and fit (noise, gradient, optimiser, ELBO checks) against the floor's."""
    epochs = settings.preset.epochs
    for name, spec in panel.models.items():
        layout = panel.layout(spec)
        cells = panel.cells()
        floor = make_floor(FLOOR_FITS, layout.n_subjects, layout.n_items, spec.dims)
        for size in settings.tiles:
            keys = [FitKey(0, 0, restart) for restart in range(size)]
            engine = partial(run_tile, layout, cells, keys, settings.preset)
            pairs = in_turn(partial(floor.epochs, epochs), engine, repeats=settings.repeats)
            ms = [(1e3 * a / FLOOR_FITS / epochs, 1e3 * b / size / epochs) for a, b in pairs]
            key = name if size == MAX_FITS_PER_TILE else f"{name}_tile{size}"
            sides = {
                f"engine_ms_{key}": median(b for _, b in ms),
                f"floor_ms_{key}": median(a for a, _ in ms),
            }
            how = f"per epoch and fit, {size} fits in a tile, median of {settings.repeats} ratios"
            yield Row(f"floor_ratio_{key}", median(b / a for a, b in ms), "<= 1.7", sides, how)


# Quality and whole fits ------------------------------------------------------------------------------


def quality_rows(panel: Panel, settings: Settings) -> Iterator[Row]:
    """Held-out log-loss and CPU seconds of whole fits of the simulated panel."""
    n = settings.restarts
    for name, spec in panel.models.items():
        work = partial(timed_fit, panel.matrix, spec, panel.splits, n_restarts=n, preset=settings.preset)
        work()
        runs = [work() for _ in range(3)]
        result = runs[0][1]
        sides = {
            f"restart_sd_{name}": float(result.restarts["log_loss"].std()),
            f"predictive_log_loss_{name}": result.heldout["log_loss_predictive"].item(),
        }
        yield Row(
            f"log_loss_{name}",
            result.heldout["log_loss"].item(),
            f"<= {LOG_LOSS_BARS[name]:.4f}",
            sides,
            f"held-out cells of the simulated 81 x 398 panel, {n} restarts",
        )
        seconds = median(s for s, _ in runs)
        key = "confirmatory_20_restarts_cpu_s" if name == "confirmatory3" else f"{name}_20_restarts_cpu_s"
        per_epoch = 1e3 * seconds / n / settings.preset.epochs
        yield Row(
            key,
            seconds,
            "<= 6" if name == "confirmatory3" else "",
            {f"whole_fit_ms_per_epoch_{name}": per_epoch},
            f"{n} restarts, {settings.preset.epochs} epochs, scoring included, workers=1, median of 3",
        )


def lsat7_rows(_panel: Panel, settings: Settings) -> Iterator[Row]:
    """Marginal log-likelihood at our estimates of LSAT7, below its maximum."""
    patterns, counts = lsat7()
    persons = ResponseMatrix.from_array(np.repeat(patterns, counts.astype(int), axis=0))
    bars: dict[Priors, str] = {"paper": "<= 1.0", "hierarchical": "<= 1.5"}
    for priors, bar in bars.items():
        spec = ModelSpec.unidimensional("2pl", priors=priors)
        _, result = timed_fit(persons, spec, n_restarts=4, preset=settings.preset)
        found = result.item_parameters
        reached = marginal_log_lik(
            found["slope_ability"].to_numpy(), found["intercept"].to_numpy(), patterns, counts
        )
        sides = {f"lsat7_log_lik_{priors}": reached, "lsat7_log_lik_maximum": LSAT7_MAXIMUM}
        yield Row(f"lsat7_gap_{priors}", LSAT7_MAXIMUM - reached, bar, sides, "nats, by quadrature")


def marginal_log_lik(slope: Any, intercept: Any, patterns: Any, counts: Any) -> float:
    """Log-likelihood of response patterns under a 2PL, ability integrated out by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    p = 1 / (1 + np.exp(-(nodes[:, None] * slope + intercept)))
    given = np.exp(patterns @ np.log(p).T + (1 - patterns) @ np.log(1 - p).T)
    return float(counts @ np.log(given @ (weights / weights.sum())))


# A sequential loop in Pyro ---------------------------------------------------------------------------


def pyro_rows(panel: Panel, settings: Settings) -> Iterator[Row]:
    """One fit at a time through Pyro against a batch of ten, per epoch and fit."""
    epochs, ratios = settings.pyro_epochs, {}
    for name, spec in panel.models.items():
        layout = panel.layout(spec)
        keys = [FitKey(0, 0, restart) for restart in range(FLOOR_FITS)]
        ours = partial(run_tile, layout, panel.cells(), keys, settings.preset)
        theirs = partial(pyro_loop, panel, layout, epochs)
        pairs = in_turn(ours, theirs, repeats=3)
        ms = [(1e3 * a / FLOOR_FITS / settings.preset.epochs, 1e3 * b / epochs) for a, b in pairs]
        ratios[name] = median(b / a for a, b in ms)
        sides = {f"pyro_ms_{name}": median(b for _, b in ms), f"batch_ms_{name}": median(a for a, _ in ms)}
        how = f"per epoch and fit, Pyro timed over {epochs} epochs, median of 3 ratios"
        yield Row(f"sequential_pyro_ratio_{name}", ratios[name], ">= 20", sides, how)
    yield Row("sequential_pyro_ratio", min(ratios.values()), ">= 20", {}, "lowest of the three")


def pyro_loop(panel: Panel, layout: Layout, epochs: int) -> list[float]:
    """Plain SVI of one fit: the package's own definition, a mean-field guide, Adam; no validation.

    Returns
    -------
    list of float
        Loss per epoch.
    """
    passes, train = (t[:, None] for t in panel.training())
    start = initial_state(layout, panel.cells(), torch.randn(1, layout.width))

    def mean_field() -> None:
        names = ("loc", "log_scale", "hyper")
        pairs = zip(names, start.tensors(), strict=True)
        guide(layout, State(*(pyro.param(name, value) for name, value in pairs)), 1)

    with pyro.validation_enabled(False):
        pyro.clear_param_store()
        loss = TraceMeanField_ELBO(max_plate_nesting=4)
        svi = SVI(lambda: model(layout, passes, train, 1), mean_field, pyro.optim.Adam({"lr": 0.1}), loss)
        losses = [svi.step() for _ in range(epochs)]
        pyro.clear_param_store()
    return losses


# Peers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """Another package's fit, and what it is held against."""

    package: str
    version: str
    model: str
    bar: str
    what: str
    first: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its name in the JSON object."""
        return self.package.replace("-", "")


PEERS = (
    Peer("py-irt", "0.7.1", "unidimensional", ">= 200", "hierarchical 2PL, {} epochs", first=("torch",)),
    Peer("mirt", "1.2.0", "confirmatory3", ">= 100", "confirmatory 3-D by EM, 7 points, at most {} cycles"),
)


def peer_rows(panel: Panel, settings: Settings) -> Iterator[Row]:
    """How many of our fits the CPU time of one fit of a peer pays for."""
    for peer, effort in zip(PEERS, settings.peer_efforts, strict=True):
        try:
            yield _against(peer, effort, panel, settings)
        except CommandFailedError as reason:
            yield Row(f"fits_per_{peer.key}_fit", None, peer.bar, {}, str(reason))


def _against(peer: Peer, effort: int, panel: Panel, settings: Settings) -> Row:
    python = peer_python(peer, settings)
    spec, n, key = panel.models[peer.model], settings.restarts, peer.key
    ours = partial(timed_fit, panel.matrix, spec, panel.splits, n_restarts=n, preset=settings.preset)
    ours()
    rounds = [(ours(), run_peer(python, peer, panel, effort)) for _ in range(settings.peer_rounds)]
    mine, theirs = min(s for (s, _), _ in rounds) / n, min(row["cpu_s"] for _, row in rounds)
    sides = {
        f"{key}_cpu_s": theirs,
        f"our_cpu_s_per_fit_{key}": mine,
        f"{key}_log_loss": rounds[0][1]["log_loss"],
        f"our_log_loss_{key}": rounds[0][0][1].heldout["log_loss"].item(),
    }
    how = (
        f"{peer.package} {peer.version} {peer.what.format(effort)}; lowest of {len(rounds)} rounds, each side"
    )
    return Row(f"fits_per_{key}_fit", theirs / mine, peer.bar, sides, how)


def run_peer(python: Path, peer: Peer, panel: Panel, effort: int) -> dict[str, Any]:
    """Fit a peer in a process of its own, on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "panel.npz")
        factor = np.unique(panel.factor, return_inverse=True)[1]
        responses = panel.matrix.responses.astype(int)
        np.savez(file, responses=responses, held_out=panel.splits.test[0], factor=factor)
        command = [python, SCRIPTS / "bench_peers.py", peer.package, file, effort]
        lines = printed(command, OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1").splitlines()
    row: dict[str, Any] = json.loads(lines[-1])
    return row


def peer_python(peer: Peer, settings: Settings) -> Path:
    """Interpreter of the peers' virtual environment; it and the peer are installed when not there.

    Raises
    ------
    CommandFailedError
    """
    python = settings.peers / "bin" / "python"
    ask = f"from importlib.metadata import version; assert version({peer.package!r}) == {peer.version!r}"
    with suppress(CommandFailedError, FileNotFoundError):
        printed([python, "-c", ask])
        return python
    if not settings.install_peers:
        raise CommandFailedError(f"{peer.package} {peer.version} is not installed in {settings.peers.name}")
    say(f"installing {peer.package} into {settings.peers.name}")
    if not python.exists():
        printed([sys.executable, "-m", "venv", settings.peers])
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    # PyTorch alone and first: asked for by others with a looser range, pip could pull a larger build.
    for wanted in (*peer.first, f"{peer.package}=={peer.version}"):
        printed([*pip, "--constraint", ROOT / "constraints.txt", wanted])
    return python


# Fewer epochs ----------------------------------------------------------------------------------------


def epoch_rows(panel: Panel, settings: Settings) -> Iterator[Row]:
    """Held-out log-loss of the default preset against 2,000 plain epochs, and what each costs."""
    faster = replace(settings.plain, name="plain .05", learning_rate=0.05)
    gaps, faster_gaps, shares = [], [], []
    for name, spec in panel.models.items():
        seconds, losses = {}, {}
        for preset in (settings.preset, settings.plain, faster):
            seconds[preset.name], result = timed_fit(
                panel.matrix, spec, panel.splits, n_restarts=settings.study_restarts, preset=preset
            )
            losses[preset.name] = result.heldout["log_loss"].item()
        ours, plain, high = (p.name for p in (settings.preset, settings.plain, faster))
        gaps.append(losses[ours] - losses[plain])
        faster_gaps.append(losses[ours] - losses[high])
        shares.append(seconds[ours] / seconds[plain])
        sides = {
            f"default_log_loss_{name}": losses[ours],
            f"plain_log_loss_{name}": losses[plain],
            f"plain_lr05_log_loss_{name}": losses[high],
            f"default_cpu_s_{name}": seconds[ours],
            f"plain_cpu_s_{name}": seconds[plain],
        }
        epochs = f"{settings.preset.epochs} epochs against {settings.plain.epochs}"
        how = f"{epochs}, {settings.study_restarts} restarts"
        yield Row(f"default_vs_2000_epochs_log_loss_gap_{name}", gaps[-1], "<= .001", sides, how)
    rate = f"learning rate {settings.plain.learning_rate}"
    yield Row("default_vs_2000_epochs_log_loss_gap", max(gaps), "<= .001", {}, f"worst of three, {rate}")
    yield Row("default_vs_2000_epochs_lr05_log_loss_gap", max(faster_gaps), "", {}, "the same at rate .05")
    yield Row("default_work_share", max(shares), "<= .25", {}, "CPU seconds, default / plain, worst of three")


# Large panels ----------------------------------------------------------------------------------------


def large_rows(_panel: Panel, settings: Settings) -> Iterator[Row]:
    """CPU seconds of one fit of a simulated large panel, and their growth with the cells."""
    subjects, n_items = settings.large_subjects, settings.large_items
    matrix, labels = simulated(max(subjects), n_items)
    models = {"1d": ModelSpec.unidimensional("2pl"), "3d": ModelSpec.confirmatory("2pl", labels)}
    whole = {}
    for name, spec in models.items():
        per_million = []
        for n in (min(subjects), *subjects):  # the first one warms
            part = matrix.select(subjects=np.arange(matrix.n_subjects) < n)
            seconds, _ = timed_fit(part, spec, n_restarts=1, preset=settings.preset)
            per_million.append(1e6 * seconds / (n * n_items))
        curve = dict(zip(subjects, per_million[1:], strict=True))
        whole[name] = curve[max(subjects)] * max(subjects) * n_items / 1e6
        sides = {f"s_per_million_cells_{name}_{n}x{n_items}": value for n, value in curve.items()}
        how = f"CPU s per million cells, {max(subjects)} subjects / {min(subjects)}"
        yield Row(
            f"cost_growth_{name}", curve[max(subjects)] / curve[min(subjects)], "about 1: linear", sides, how
        )
    sides = {f"cells_5000x500_{name}_cpu_s": value for name, value in whole.items()}
    how = f"one fit of {max(subjects)} x {n_items} simulated cells, the dearer of 1D and confirmatory 3-D"
    yield Row("cells_5000x500_cpu_s", max(whole.values()), "minutes", sides, how)


def simulated(n_subjects: int, n_items: int) -> tuple[ResponseMatrix, list[str]]:
    """Simulated responses to items of three correlated factors, and the factor of each item."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(n_subjects, 1)) * 0.6**0.5 + rng.normal(size=(n_subjects, 3)) * 0.4**0.5
    factor = np.arange(n_items) * 3 // n_items
    slope, intercept = np.exp(rng.normal(0.2, 0.4, n_items)), rng.normal(size=n_items)
    p = 1 / (1 + np.exp(-(theta[:, factor] * slope + intercept)))
    cells = (rng.random(p.shape) < p).astype(float)
    return ResponseMatrix.from_array(cells), [f"factor{f}" for f in factor]


# Leanness --------------------------------------------------------------------------------------------


def memory_rows(_panel: Panel, settings: Settings) -> Iterator[Row]:
    """Peak memory of the paper's grid of models, all processes together."""
    sizes = (settings.grid_splits, settings.restarts, settings.grid_epochs, settings.grid_workers)
    grid = f"import bench; bench.paper_grid{sizes}"
    ran = run_watched([sys.executable, "-c", grid], PYTHONPATH=str(SCRIPTS))
    sides = {"paper_grid_cpu_s": ran.cpu_s, "paper_grid_wall_s": ran.wall_s}
    how = (
        f"19 models, {settings.grid_splits} splits, {settings.restarts} restarts of 81 x 398, "
        f"{settings.grid_workers} workers, all processes together; {settings.grid_epochs} epochs, "
        "which memory hardly depends on"
    )
    yield _watched("peak_memory_mb", ran.peak_mb, "<= 1500", sides, how, ran)


def paper_models(factor: Sequence[str]) -> list[ModelSpec]:
    """The grid of the harmful-refusal paper: 19 models."""
    blocks = [f"block{i * 7 // len(factor)}" for i in range(len(factor))]
    return [
        *(ModelSpec.unidimensional(f) for f in get_args(Family)),
        *(ModelSpec.confirmatory(f, factor) for f in get_args(Family)),
        replace(ModelSpec.confirmatory("2pl", blocks), name="confirmatory_7d_2pl"),
        *(ModelSpec.exploratory("2pl", dims) for dims in range(2, 11)),
        *(ModelSpec.exploratory("3pl", dims) for dims in range(2, 5)),
    ]


def paper_grid(n_splits: int, n_restarts: int, epochs: int, workers: int) -> None:
    """Fit the whole grid to the simulated panel."""
    matrix, _, factor = sim81()
    fit_all(
        matrix,
        paper_models(factor),
        make_splits(matrix, n_splits=n_splits),
        n_restarts=n_restarts,
        preset=replace(get_preset("paper"), name="grid", epochs=epochs),
        workers=workers,
        device="cpu",
    )


def demo_rows(_panel: Panel, settings: Settings) -> Iterator[Row]:
    """Wall seconds and peak memory of the demo audit, all processes together."""
    with tempfile.TemporaryDirectory() as folder:
        out = ["--out", str(Path(folder, "report"))] if "audit" in settings.demo else []
        ran = run_watched([sys.executable, "-m", "irtaudit", *settings.demo, *out])
    sides = {"demo_cpu_s": ran.cpu_s}
    how = f"irtaudit {' '.join(settings.demo)}, {psutil.cpu_count()} cores"
    yield _watched("demo_wall_s", ran.wall_s, "<= 180", sides, how, ran)
    yield _watched("demo_peak_memory_mb", ran.peak_mb, "<= 2000", {}, "all its processes together", ran)


def _watched(key: str, value: float, bar: str, sides: Mapping[str, float], how: str, ran: Ran) -> Row:
    if ran.status == 0:
        return Row(key, value, bar, sides, how)
    return Row(key, None, bar, {}, f"exit status {ran.status}: {ran.complaint}")


def protocol_rows(_panel: Panel, settings: Settings) -> Iterator[Row]:
    """Events a second of the protocol audit's candidate stage, and whether its memory stays flat."""
    script = ROOT / "experiments" / "protocol_throughput" / "measure.py"
    told = printed([sys.executable, script, "--events", settings.trace_events, "--traces", settings.traces])
    found = {name: float(value.replace(",", "")) for name, value in map(str.split, told.splitlines())}
    how = f"{settings.traces} simulated traces of {settings.trace_events:,} events, CPU time, one process"
    sides = {"protocol_events_per_s_with_loading": found["events_per_second_with_loading"]}
    yield Row("protocol_events_per_s", found["events_per_second"], ">= 50,000", sides, how)
    sides = {"protocol_peak_mib": found["peak_mib_at_end"]}
    yield Row("protocol_growth_mib", found["growth_mib"], "flat", sides, "after the first two traces")


def start_rows(_panel: Panel, settings: Settings) -> Iterator[Row]:
    """Time to import the package and to answer --help, each in fresh processes."""
    probe = (
        "import sys, time; cpu, wall = time.process_time(), time.perf_counter(); import irtaudit;"
        "print(time.process_time() - cpu, time.perf_counter() - wall, 'torch' in sys.modules)"
    )
    rows = [printed([sys.executable, "-c", probe]).split() for _ in range(settings.starts)]
    loaded = "was" if any(row[2] == "True" for row in rows) else "was not"
    how = f"CPU s, lowest of {settings.starts} fresh processes; torch {loaded} loaded"
    sides = {"import_wall_s": min(float(row[1]) for row in rows)}
    yield Row("import_s", min(float(row[0]) for row in rows), "<= .5", sides, how)
    walls = [wall_seconds([sys.executable, "-m", "irtaudit", "--help"]) for _ in range(settings.starts)]
    how = f"wall s, interpreter included, lowest of {settings.starts}"
    yield Row("help_s", min(walls), "well under 1", {}, how)


def wall_seconds(command: Sequence[object]) -> float:
    """Wall seconds of a command."""
    start = time.perf_counter()
    printed(command)
    return time.perf_counter() - start


def wheel_rows(_panel: Panel, _settings: Settings) -> Iterator[Row]:
    """Size of the built wheel."""
    with tempfile.TemporaryDirectory() as folder:
        ran = run_watched([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder])
        sizes = [path.stat().st_size for path in Path(folder).glob("*.whl")]
    yield _watched("wheel_mb", max(sizes, default=0) / 1e6, "<= 2", {}, "built by hatchling", ran)


# Telling ---------------------------------------------------------------------------------------------

GROUPS: dict[str, Callable[[Panel, Settings], Iterable[Row]]] = {
    "start": start_rows,
    "wheel": wheel_rows,
    "floor": floor_rows,
    "quality": quality_rows,
    "lsat7": lsat7_rows,
    "pyro": pyro_rows,
    "peers": peer_rows,
    "epochs": epoch_rows,
    "large": large_rows,
    "memory": memory_rows,
    "protocol": protocol_rows,
    "demo": demo_rows,
}


def measure(names: Iterable[str], settings: Settings) -> list[Row]:
    """Run the named groups one after the other."""
    panel, rows = Panel(*sim81()), []
    for name in names:
        say(f"{name}: {GROUPS[name].__doc__}")
        for row in GROUPS[name](panel, settings):
            say(f"  {row.key} {_number(row.value)}")
            rows.append(row)
    return rows


def flat(rows: Iterable[Row]) -> dict[str, float | str | None]:
    """One flat object: values, what they were made from, reasons for what is missing."""
    found: dict[str, float | str | None] = {}
    for row in rows:
        found[row.key] = row.value
        found |= row.sides
        if row.value is None:
            found[f"{row.key}_reason"] = row.how
    return found


def table(rows: Iterable[Row]) -> str:
    """One line per measurement, its sides and how it was obtained below it."""
    shown = list(rows)
    wide = max(len(row.key) for row in shown)
    lines = [f"{'measured':<{wide}}{'value':>11}  bar"]
    for row in shown:
        lines.append(f"{row.key:<{wide}}{_number(row.value):>11}  {row.bar}".rstrip())
        sides = ", ".join(f"{name} {_number(value)}" for name, value in row.sides.items())
        lines += [f"    {text}" for text in (sides, row.how) if text]
    return "\n".join(lines)


def machine() -> dict[str, str]:
    """Where and with what the numbers were measured."""
    load = " ".join(f"{x:.2f}" for x in os.getloadavg())
    packages = ("irtaudit", "torch", "pyro-ppl", "numpy", "joblib")
    return {
        "machine": f"{_processor()}, {psutil.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "load_average": load,
        "version_python": platform.python_version(),
        **{f"version_{name}": importlib.metadata.version(name) for name in packages},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.2f}"


def say(text: str) -> None:
    """A progress line."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of ``scripts/bench``."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers as one flat object")
    parser.add_argument("--only", metavar="NAME,...", help=f"some of: {', '.join(GROUPS)}")
    parser.add_argument(
        "--peers", type=Path, metavar="DIR", default=Settings.peers, help="the peers' virtual environment"
    )
    chosen = parser.parse_args(arguments)
    names = chosen.only.split(",") if chosen.only else list(GROUPS)
    if unknown := set(names) - set(GROUPS):
        parser.error(f"--only: no such group: {', '.join(sorted(unknown))}; there are: {', '.join(GROUPS)}")
    torch.set_num_threads(1)
    start, about = time.perf_counter(), machine()
    rows = measure(names, Settings(peers=chosen.peers.absolute()))
    rows.append(Row("bench_wall_s", time.perf_counter() - start, "<= 900"))
    print("\n".join(f"{name}: {value}" for name, value in about.items()))
    print(table(rows))
    if chosen.json:
        beside = chosen.json.with_name(f"{chosen.json.name}.part")
        beside.write_text(json.dumps(flat(rows) | about, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        beside.replace(chosen.json)


if __name__ == "__main__":
    main()
