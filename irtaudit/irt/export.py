"""Take results elsewhere: one scale of a fit as tables, py-irt's parameters, posterior draws, a short form.

Numpy and pandas only; arviz is imported when asked for (extra ``irtaudit[arviz]``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.special import expit, logit

from irtaudit.data.files import MAX_BYTES, atomic_path, atomic_write, read_content, write_csv
from irtaudit.data.responses import listed
from irtaudit.data.tables import parse_table
from irtaudit.errors import DataError, PlanError
from irtaudit.irt.result import FitResult
from irtaudit.irt.saved import load_fit

Array = NDArray[np.float64]
INSTALL_ARVIZ = "pip install 'irtaudit[arviz]'"
DRAWS = 1_000
SHARE = 0.8

_FAMILY = re.compile(r".*_([123])pl")


@dataclass(frozen=True, eq=False)
class Scale:
    """One fitted scale: the posterior means and SDs of abilities and item parameters under one model.

    Attributes
    ----------
    model : str
        Name of the model, such as "unidimensional_2pl".
    family : str
        "1pl", "2pl" or "3pl".
    factors : tuple of str
        Name of each dimension.
    abilities : DataFrame indexed by subject
        Columns ``<factor>``, ``<factor>_sd`` as in `FitResult.abilities`.
    items : DataFrame indexed by item
        Columns ``slope_<factor>``, ``intercept``, in a 3PL ``guess``, each with ``_sd``, as in
        `FitResult.item_parameters`; a slope is 0 where the item does not load.
    """

    model: str
    family: str
    factors: tuple[str, ...]
    abilities: pd.DataFrame
    items: pd.DataFrame

    @property
    def slopes(self) -> Array:
        """(item, dim) posterior means of the slopes, logits per unit of theta."""
        return self.items[[f"slope_{factor}" for factor in self.factors]].to_numpy(dtype=np.float64)

    @property
    def guess(self) -> Array:
        """(item,) probability of passing by guessing; zeros unless the model is a 3PL."""
        return self.items["guess"].to_numpy(float) if "guess" in self.items else np.zeros(len(self.items))


def scale_of(fit: FitResult) -> Scale:
    """The scale of a fit: the selected restart of its first split."""
    return Scale(fit.spec.name, fit.spec.family, fit.spec.factors, fit.abilities, fit.item_parameters)


def read_scale(path: str | Path, model: str | None = None) -> Scale:
    """The scale in a saved fit, or in the folder of a finished audit.

    Parameters
    ----------
    path : path
        A file of `irtaudit.irt.saved.save_fit`, or a folder with ``abilities.csv`` and ``items.csv``.
    model : str, optional
        Which model of an audit; default the first in its tables, the best one-dimensional one.

    Raises
    ------
    DataError
        If it is neither, or has no such model.
    StorageError
        If it cannot be read.
    """
    path = Path(path)
    if not path.is_dir():
        scale = scale_of(load_fit(path))
        if model not in (None, scale.model):
            raise DataError(f"{path} holds the model {scale.model!r}, not {model!r}")
        return scale
    abilities, items = (_table(path / f"{name}.csv") for name in ("abilities", "items"))
    models = list(dict.fromkeys(items["model"]))
    if not models:
        raise DataError(f"{path / 'items.csv'} has no models: no fit to every response was made")
    if model is not None and model not in models:
        raise DataError(f"{path} has no model {model!r}; it has {listed(models, 20)}")
    return _from_tables(model or models[0], abilities, items, path)


_TEXTS = {"model", "factor", "subject", "item"}
_NEEDED = {
    "abilities": {"subject", "theta", "theta_sd"},
    "items": {"item", "slope", "slope_sd", "intercept", "intercept_sd"},
}


def _table(path: Path) -> pd.DataFrame:
    table = parse_table(read_content(path), path, MAX_BYTES)
    frame = pd.DataFrame({name: table.texts(column) for column, name in enumerate(table.names)})
    lacking = {"model", "factor"} - set(frame.columns)
    if lacking:
        raise DataError(
            f"{path} has no column {sorted(lacking)[0]!r}; is {path.parent} the folder of an audit?"
        )
    numbers = [name for name in frame.columns if name not in _TEXTS]
    return frame.assign(**{name: pd.to_numeric(frame[name], errors="coerce") for name in numbers})


def _from_tables(model: str, abilities: pd.DataFrame, items: pd.DataFrame, path: Path) -> Scale:
    """From an audit's tidy tables, one row per subject or item and factor, to a row per subject or item."""
    abilities, items = abilities[abilities["model"] == model], items[items["model"] == model]
    family = _FAMILY.fullmatch(model)
    lacking = _NEEDED["abilities"] - set(abilities) | _NEEDED["items"] - set(items)
    if lacking or family is None:
        raise DataError(f"{path} holds no scale of the model {model!r}; lacking: {listed(sorted(lacking))}")
    _refuse_damage(abilities, "abilities", path)
    _refuse_damage(items, "items", path)
    factors = tuple(dict.fromkeys(abilities["factor"]))
    if set(factors) != set(items["factor"]):
        raise DataError(
            f"{path}: {model!r} has the factors {listed(factors)} in abilities.csv and "
            f"{listed(dict.fromkeys(items['factor']))} in items.csv"
        )
    theta = abilities.pivot(index="subject", columns="factor", values=["theta", "theta_sd"])
    slope = items.pivot(index="item", columns="factor", values=["slope", "slope_sd"]).fillna(0.0)
    once = items.drop_duplicates("item").set_index("item").reindex(slope.index)
    by_subject, by_item = dict[str, pd.Series](), dict[str, pd.Series]()
    for factor in factors:
        for end in ("", "_sd"):
            by_subject[f"{factor}{end}"] = theta[f"theta{end}", factor]
            by_item[f"slope_{factor}{end}"] = slope[f"slope{end}", factor]
    more = ("intercept", "intercept_sd", *(("guess", "guess_sd") if family[1] == "3" else ()))
    return Scale(
        model,
        f"{family[1]}pl",
        factors,
        pd.DataFrame(by_subject),
        pd.DataFrame(by_item | {name: once[name] for name in more}),
    )


def _refuse_damage(frame: pd.DataFrame, name: str, path: Path) -> None:
    columns = sorted(_NEEDED[name] - _TEXTS)
    odd = np.flatnonzero(~np.isfinite(frame[columns].to_numpy(dtype=np.float64)).all(axis=1))
    who = frame[{"abilities": "subject", "items": "item"}[name]]
    if len(odd):
        raise DataError(
            f"{path / name}.csv: one of {', '.join(columns)} of {who.iloc[odd[0]]!r} is no finite number"
        )
    twice = pd.DataFrame({"who": who, "factor": frame["factor"]}).duplicated()
    if twice.any():
        raise DataError(f"{path / name}.csv: {who[twice].iloc[0]!r} has two rows for one factor; keep one")


# Tables -----------------------------------------------------------------------------------------------


def write_tables(scale: Scale, folder: Path, suffix: str = ".csv") -> list[Path]:
    """Write abilities and item parameters, a row each per subject and item.

    Parameters
    ----------
    scale : Scale
    folder : Path
    suffix : {".csv", ".parquet"}

    Returns
    -------
    list of Path
        ``abilities`` and ``items``, with the columns of `Scale.abilities` and `Scale.items`.
    """
    written = []
    for name, frame in (("abilities", scale.abilities), ("items", scale.items)):
        path = folder / f"{name}{suffix}"
        tidy = frame.reset_index()
        if suffix == ".csv":
            write_csv(tidy, path)
        else:
            with atomic_path(path) as temporary:
                pq.write_table(pa.Table.from_pandas(tidy, preserve_index=False), temporary)
        written.append(path)
    return written


# py-irt -----------------------------------------------------------------------------------------------


def to_py_irt(scale: Scale) -> dict[str, Any]:
    """The parameters as py-irt writes them to ``best_parameters.json``.

    py-irt's models are ``lambda + (1 - lambda) sigmoid(disc (ability - diff))``, summed over dimensions, and
    give the same probabilities as ours: a 1PL there has slope 1, so abilities are multiplied by the common
    slope; with several dimensions the difficulty lies along the slopes.

    Returns
    -------
    dict
        ``ability, diff`` (lists; of lists with several dimensions), ``disc`` (not in a 1PL), ``lambdas``
        (3PL), ``irt_model``, ``item_ids`` and ``subject_ids`` (number -> name).
    """
    slopes, intercepts = scale.slopes, scale.items["intercept"].to_numpy(dtype=np.float64)
    theta = scale.abilities[list(scale.factors)].to_numpy(dtype=np.float64)
    content: dict[str, Any] = {}
    if len(scale.factors) > 1:
        if scale.family == "3pl":
            raise PlanError(f"{scale.model}: py-irt has no 3PL of several dimensions")
        diff = -intercepts[:, None] * slopes / np.maximum((slopes**2).sum(axis=1, keepdims=True), 1e-300)
        content = {"ability": theta, "diff": diff, "disc": slopes, "irt_model": "multidim_2pl"}
    elif scale.family == "1pl":
        content = {"ability": theta[:, 0] * slopes[0, 0], "diff": -intercepts, "irt_model": "1pl"}
    else:
        diff = -intercepts / slopes[:, 0]
        content = {"ability": theta[:, 0], "diff": diff, "disc": slopes[:, 0], "irt_model": scale.family}
        content |= {"lambdas": scale.guess} if scale.family == "3pl" else {}
    plain = {
        key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in content.items()
    }
    return plain | {
        "item_ids": {str(number): name for number, name in enumerate(scale.items.index)},
        "subject_ids": {str(number): name for number, name in enumerate(scale.abilities.index)},
    }


def write_py_irt(scale: Scale, path: Path) -> None:
    """Write `to_py_irt` as JSON, where py-irt expects ``best_parameters.json``."""
    atomic_write(path, json.dumps(to_py_irt(scale), allow_nan=False) + "\n")


# Draws ------------------------------------------------------------------------------------------------


def posterior_draws(scale: Scale, n_draws: int = DRAWS, seed: int = 0) -> dict[str, Array]:
    """Draws from the mean-field posterior.

    Abilities, intercepts and exploratory slopes are normal, positive slopes log-normal (one per dimension in
    a 1PL), guessing logit-normal.

    Parameters
    ----------
    scale : Scale
    n_draws : int
    seed : int

    Returns
    -------
    dict of arrays
        ``theta`` (draw, subject, dim), ``slope`` (draw, item, dim; 0 where the item does not load),
        ``intercept`` (draw, item) and in a 3PL ``guess`` (draw, item).
    """
    rng = np.random.default_rng(seed)
    items = scale.items.astype(np.float64)
    theta, theta_sd = (
        scale.abilities[[f"{factor}{end}" for factor in scale.factors]].to_numpy(np.float64)
        for end in ("", "_sd")
    )
    slope_sd = items[[f"slope_{factor}_sd" for factor in scale.factors]].to_numpy()
    draws = {
        "theta": rng.normal(theta, theta_sd, (n_draws, *theta.shape)),
        "slope": _slope_draws(scale, slope_sd, n_draws, rng),
        "intercept": rng.normal(items["intercept"], items["intercept_sd"], (n_draws, len(items))),
    }
    if scale.family == "3pl":
        guess = items["guess"].to_numpy()
        spread = items["guess_sd"].to_numpy() / (guess * (1 - guess))
        draws["guess"] = expit(rng.normal(logit(guess), spread, (n_draws, len(items))))
    return draws


def _slope_draws(scale: Scale, sd: Array, n_draws: int, rng: np.random.Generator) -> Array:
    mean = scale.slopes
    if scale.model.startswith("exploratory"):
        return rng.normal(mean, sd, (n_draws, *mean.shape))
    loads = mean > 0
    spread = np.sqrt(np.log1p(np.divide(sd, mean, out=np.zeros_like(mean), where=loads) ** 2))
    centre = np.log(np.where(loads, mean, 1.0)) - spread**2 / 2
    noise = rng.standard_normal((n_draws, 1 if scale.family == "1pl" else mean.shape[0], mean.shape[1]))
    return np.where(loads, np.exp(centre + spread * noise), 0.0)


_DIMS = {
    "theta": ("subject", "factor"),
    "slope": ("item", "factor"),
    "intercept": ("item",),
    "guess": ("item",),
}


def to_arviz(scale: Scale, n_draws: int = DRAWS, seed: int = 0) -> Any:
    """The draws as arviz holds them: InferenceData before its version 1, xarray's DataTree since.

    Raises
    ------
    PlanError
        If arviz is not installed.
    """
    try:
        arviz = import_module("arviz")
    except ImportError:
        raise PlanError(f"posterior draws need arviz: {INSTALL_ARVIZ}") from None
    draws = {name: values[None] for name, values in posterior_draws(scale, n_draws, seed).items()}
    dims = {
        "theta": ["subject", "factor"],
        "slope": ["item", "factor"],
        "intercept": ["item"],
        "guess": ["item"],
    }
    named: dict[str, Any] = {
        "dims": {name: dims[name] for name in draws},
        "coords": {
            "subject": scale.abilities.index.tolist(),
            "item": scale.items.index.tolist(),
            "factor": list(scale.factors),
        },
    }
    if hasattr(arviz, "InferenceData"):
        return arviz.from_dict(posterior=draws, **named)
    return arviz.from_dict({"posterior": draws}, **named)


def write_arviz(scale: Scale, path: Path, n_draws: int = DRAWS, seed: int = 0) -> None:
    """Write `to_arviz` as NetCDF, which ``arviz.from_netcdf`` reads.

    Raises
    ------
    PlanError
        If arviz or h5netcdf is not installed.
    StorageError
        If the disk refuses.
    """
    draws = to_arviz(scale, n_draws, seed)
    try:
        with atomic_path(path) as temporary:
            draws.to_netcdf(str(temporary), engine="h5netcdf")
    except ImportError as error:
        raise PlanError(f"writing draws needs h5netcdf ({error}): {INSTALL_ARVIZ}") from None


# A short form -----------------------------------------------------------------------------------------


def item_information(scale: Scale, at: Sequence[float], factor: str | None = None) -> Array:
    """Fisher information that a response to each item holds about one ability.

    ``a^2 (1 - P) / P ((P - c) / (1 - c))^2`` (Lord 1980, Applications of Item Response Theory, eq. 5-9), with
    all other abilities at 0; ``a^2 P (1 - P)`` without guessing.

    Parameters
    ----------
    scale : Scale
    at : sequence of float
        Abilities, in SDs of the population.
    factor : str, optional
        Which ability; may be left out where there is one.

    Returns
    -------
    (item, ability) array

    Raises
    ------
    PlanError
        If there is no such factor, or several and none is named.
    """
    if factor is None and len(scale.factors) == 1:
        factor = scale.factors[0]
    if factor not in scale.factors:
        raise PlanError(
            f"{scale.model} has the factors {listed(scale.factors, 20)}; name one (factor=, --factor)"
        )
    slope = scale.items[f"slope_{factor}"].to_numpy(dtype=np.float64)[:, None]
    guess = scale.guess[:, None]
    passing = expit(
        slope * np.asarray(at, dtype=np.float64) + scale.items["intercept"].to_numpy(float)[:, None]
    )
    probability = guess + (1 - guess) * passing
    return cast("Array", slope**2 * (1 - probability) / probability * passing**2)


def informative_items(
    scale: Scale,
    at: Sequence[float] = (-1.0, 0.0, 1.0),
    *,
    share: float = SHARE,
    count: int | None = None,
    factor: str | None = None,
) -> pd.DataFrame:
    """A short form of the benchmark: few items that hold most of the information at chosen abilities.

    Items are taken greedily, each time the one that adds most to the information still lacking, summed over
    the abilities as a share of the goal; for covering problems a greedy choice is never worse than the best
    one by more than a logarithmic factor (Wolsey 1982, Combinatorica 2, 385-393).

    Parameters
    ----------
    scale : Scale
    at : sequence of float
        Abilities at which the form should measure.
    share : float
        Of the information of all items, at each of these abilities; reached with as few items as found.
    count : int, optional
        Take this many items instead, for the goal of everything.
    factor : str, optional
        As in `item_information`.

    Returns
    -------
    DataFrame
        One row per item, in the order taken: ``item, rank``, and for each ability
        ``information_at_<ability>`` (the item's) and ``share_at_<ability>`` (of all, by the items so far).

    Raises
    ------
    PlanError
        If an option is out of range.
    """
    if not at or not np.isfinite(at).all():
        raise PlanError(f"at is {list(at)}, expected some abilities, such as -1, 0, 1")
    if count is None and not 0 < share <= 1:
        raise PlanError(f"share is {share}, expected more than 0 and at most 1")
    if count is not None and not 1 <= count <= len(scale.items):
        raise PlanError(f"count is {count}, expected 1 to {len(scale.items)}, the number of items")
    information = item_information(scale, at, factor)
    relative = information / np.maximum(information.sum(axis=0), 1e-300)
    taken = _covering(relative, 1.0 if count is not None else share, count or len(relative))
    frame = pd.DataFrame({"item": scale.items.index[taken], "rank": np.arange(1, len(taken) + 1)})
    for position, ability in enumerate(at):
        frame[f"information_at_{ability:g}"] = information[taken, position]
        frame[f"share_at_{ability:g}"] = relative[taken, position].cumsum()
    return frame


def _covering(relative: Array, goal: float, most: int) -> list[int]:
    """Rows of a (item, ability) array that together reach `goal` in each column, or the best `most` rows."""
    goal = goal - 1e-12
    have, taken, left = np.zeros(relative.shape[1]), list[int](), np.ones(len(relative), dtype=bool)
    while len(taken) < most and (have < goal).any():
        gain = np.minimum(relative, np.maximum(goal - have, 0.0)).sum(axis=1)
        best = int(np.argmax(np.where(left, gain, -1.0)))
        taken.append(best)
        left[best] = False
        have = have + relative[best]
    return taken


def write_items(frame: pd.DataFrame, path: Path) -> None:
    """Write a short form as CSV."""
    write_csv(frame, path)
