"""Which item response model is meant: one frozen value per model, no classes to add.

Every model is a case of one formula, for subject *i* with abilities ``theta_i`` in R^k and item *j*::

    P(y_ij = 1) = guess_j + (1 - guess_j) * sigmoid(sum_d slope_jd theta_id + intercept_j)

and differs only in which slopes are free, which of them may be negative, and whether ``guess`` is zero.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from irtaudit.data.covariates import columns_there
from irtaudit.errors import PlanError, check_kind, check_whole, shown_value

Family = Literal["1pl", "2pl", "3pl"]
Structure = Literal["unidimensional", "exploratory", "confirmatory"]
Priors = Literal["hierarchical", "paper"]

MIN_ITEMS_PER_FACTOR = 3
RESERVED = ("subject", "n_items")
"""Columns that stand beside those of the factors in tables of abilities."""
MAX_DIMS = 9999
"""Far beyond any panel: :func:`check_models` says what a matrix can carry."""
_NAME = re.compile(
    r"(?P<plain>unidimensional)_(?P<pf>[123]pl)"
    r"|exploratory_(?P<dims>[1-9]\d{0,3})d_(?P<ef>[123]pl)"
    r"|confirmatory_(?P<column>.+)_(?P<cf>[123]pl)"
)


@dataclass(frozen=True)
class ModelSpec:
    """An item response model, as a value.

    Use the constructors :meth:`unidimensional`, :meth:`exploratory`, :meth:`confirmatory` and
    :meth:`from_pattern`; two equal values mean the same model.

    Attributes
    ----------
    name : str
        ``unidimensional_2pl``, ``exploratory_3d_2pl``, ``confirmatory_<column>_2pl``, ...
    family : {"1pl", "2pl", "3pl"}
        1PL: one common slope per dimension; 2PL: a slope per loading; 3PL: 2PL and a guessing floor.
    structure : {"unidimensional", "exploratory", "confirmatory"}
        Exploratory slopes have either sign and abilities are uncorrelated; otherwise slopes are positive.
    factors : tuple of str
        Name of each dimension, in the order of the axis ``dim``.
    loadings : tuple of tuple of int, or None
        The dimensions that each item loads on, item by item. None: every item loads on every dimension.
    correlated : bool
        Whether the correlations of the abilities are learned (else the abilities are independent).
    priors : {"hierarchical", "paper"}
        See :mod:`irtaudit.irt.sites`.
    items : tuple of str, or None
        Names of the items that `loadings` is for, where they are known: fitting checks them.
    """

    name: str
    family: Family
    structure: Structure
    factors: tuple[str, ...]
    loadings: tuple[tuple[int, ...], ...] | None = field(default=None, repr=False)
    correlated: bool = False
    priors: Priors = "hierarchical"
    items: tuple[str, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_kind("name", self.name, str, "the model's name, as text")
        _check_choice("family", self.family, get_args(Family))
        _check_choice("structure", self.structure, get_args(Structure))
        _check_choice("priors", self.priors, get_args(Priors))
        _check_factors(self.name, self.factors)
        if self.loadings is not None:
            _check_loadings(self.name, self.loadings, len(self.factors))
        check_kind("correlated", self.correlated, bool, "True or False")
        if self.items is not None and (self.loadings is None or len(self.items) != len(self.loadings)):
            raise PlanError(f"Model {self.name!r} names {len(self.items)} items, not those of its loadings.")

    @property
    def dims(self) -> int:
        """Number of latent dimensions k."""
        return len(self.factors)

    @property
    def positive(self) -> bool:
        """Whether slopes are constrained to be positive."""
        return self.structure != "exploratory"

    @property
    def simple(self) -> bool:
        """Whether every item loads on one dimension at most."""
        return self.dims == 1 or (self.loadings is not None and all(len(dims) < 2 for dims in self.loadings))

    def pattern(self, n_items: int) -> NDArray[np.bool_]:
        """Loading pattern Q.

        Parameters
        ----------
        n_items : int
            Number of items J of the matrix that is fitted.

        Returns
        -------
        (item, dim) bool array
            True where the item loads on the dimension.

        Raises
        ------
        PlanError
            When the model was written for another number of items.
        """
        if self.loadings is None:
            return np.ones((n_items, self.dims), dtype=bool)
        if len(self.loadings) != n_items:
            raise PlanError(
                f"Model {self.name!r} names the factors of {len(self.loadings)} items, but the matrix has "
                f"{n_items}. Build the model from the item table of the screened matrix."
            )
        q = np.zeros((n_items, self.dims), dtype=bool)
        for item, dims in enumerate(self.loadings):
            q[item, list(dims)] = True
        return q

    @classmethod
    def unidimensional(cls, family: Family = "2pl", *, priors: Priors = "hierarchical") -> ModelSpec:
        """One ability: ``logit P = slope_j theta_i + intercept_j`` (and a floor in the 3PL).

        Parameters
        ----------
        family : {"1pl", "2pl", "3pl"}
        priors : {"hierarchical", "paper"}
        """
        return cls(f"unidimensional_{family}", family, "unidimensional", ("ability",), priors=priors)

    @classmethod
    def exploratory(
        cls, family: Family = "2pl", dims: int = 2, *, priors: Priors = "hierarchical"
    ) -> ModelSpec:
        """k uncorrelated abilities, every item loads on all of them with slopes of either sign.

        Parameters
        ----------
        family : {"2pl", "3pl"}
            A 1PL has no exploratory form: with common slopes its dimensions cannot be told apart.
        dims : int
            Number of dimensions k, at least 2.
        priors : {"hierarchical", "paper"}

        Raises
        ------
        PlanError
            For a 1PL, or where `dims` is not a whole number from 2 on.
        """
        if family == "1pl":
            raise PlanError("An exploratory 1PL is not defined: common slopes cannot tell dimensions apart.")
        dims = check_whole("dims of an exploratory model", dims, 2, MAX_DIMS)
        factors = tuple(f"dim{d + 1}" for d in range(dims))
        return cls(f"exploratory_{dims}d_{family}", family, "exploratory", factors, priors=priors)

    @classmethod
    def confirmatory(
        cls,
        family: Family,
        factor_labels: Sequence[Hashable] | pd.Series,
        *,
        name: str | None = None,
        priors: Priors = "hierarchical",
    ) -> ModelSpec:
        """Each item loads on the factor of its category; slopes positive, factor correlations learned.

        Parameters
        ----------
        family : {"1pl", "2pl", "3pl"}
        factor_labels : sequence of length n_items
            Category of each item, in the order of the matrix; blanks around a label do not count. A pandas
            Series gives the model its name, and if its index is text, the names of the items, which must be
            those of the matrix in its order.
        name : str, optional
            Middle part of the model's name; default the Series' name, else the number of factors.
        priors : {"hierarchical", "paper"}

        Raises
        ------
        PlanError
            When there are no labels, one is missing, a factor has fewer than three items, there is only one
            factor, or columns of two factors would have one name (`A` and `A_sd`).
        """
        labels = _texts("factor_labels", factor_labels, "the category of each item")
        _check_labels(labels)
        factors = tuple(sorted(set(labels)))
        index = {f: d for d, f in enumerate(factors)}
        column = name or str(getattr(factor_labels, "name", None) or f"{len(factors)}d")
        return cls(
            f"confirmatory_{column}_{family}",
            family,
            "confirmatory",
            factors,
            loadings=tuple((index[label],) for label in labels),
            correlated=True,
            priors=priors,
            items=_named_items(factor_labels),
        )

    @classmethod
    def from_pattern(
        cls,
        family: Family,
        pattern: ArrayLike,
        *,
        name: str = "pattern",
        factors: Sequence[str] | None = None,
        correlated: bool = True,
        priors: Priors = "hierarchical",
    ) -> ModelSpec:
        """Any 0/1 loading pattern, a bifactor model included (then pass ``correlated=False``).

        Parameters
        ----------
        family : {"1pl", "2pl", "3pl"}
        pattern : (item, dim) array of 0 and 1
            Which item loads on which dimension; slopes are positive where it is 1.
        name : str
            Middle part of the model's name.
        factors : sequence of str, optional
            Names of the dimensions, all different; default ``dim1``, ``dim2``, ... Numbers are taken as
            text, and blanks around a name do not count.
        correlated : bool
        priors : {"hierarchical", "paper"}

        Raises
        ------
        PlanError
            When the pattern is not 0/1, an item loads nowhere, a dimension has fewer than three items, or
            two factors have one name.
        """
        q = _as_pattern(pattern)
        names = tuple(
            [f"dim{d + 1}" for d in range(q.shape[1])]
            if factors is None
            else _texts("factors", factors, "a name for each dimension")
        )
        if len(names) != q.shape[1]:
            raise PlanError(f"{len(names)} factor names were given for {q.shape[1]} dimensions.")
        if not q.any(axis=1).all():
            raise PlanError(f"Item number {int(np.argmin(q.any(axis=1))) + 1} of the pattern loads nowhere.")
        _check_factors(f"confirmatory_{name}_{family}", names)
        _check_sizes({n: int(c) for n, c in zip(names, q.sum(axis=0), strict=True)})
        loadings = tuple(tuple(int(d) for d in np.flatnonzero(row)) for row in q)
        correlated = correlated and len(names) > 1
        return cls(
            f"confirmatory_{name}_{family}", family, "confirmatory", names, loadings, correlated, priors
        )


def spec_from_name(name: str, items: pd.DataFrame, *, priors: Priors = "hierarchical") -> ModelSpec:
    """Turn a model's name into the model.

    Parameters
    ----------
    name : str
        ``unidimensional_2pl``, ``exploratory_3d_2pl`` or ``confirmatory_<column>_2pl``.
    items : DataFrame
        Item table of the screened matrix; ``<column>`` must be one of its columns.
    priors : {"hierarchical", "paper"}

    Returns
    -------
    ModelSpec

    Raises
    ------
    PlanError
        When the name follows none of the three forms, or the column does not exist.
    """
    found = _NAME.fullmatch(name.strip())
    if found is None:
        raise PlanError(
            f"{name!r} is not a model name. Expected unidimensional_2pl, exploratory_3d_2pl or "
            "confirmatory_<item column>_2pl (1pl, 2pl, 3pl)."
        )
    if found["plain"]:
        return ModelSpec.unidimensional(cast("Family", found["pf"]), priors=priors)
    if found["dims"]:
        return ModelSpec.exploratory(cast("Family", found["ef"]), int(found["dims"]), priors=priors)
    column = found["column"]
    if column not in items.columns:
        there = columns_there(items, "item")
        raise PlanError(f"Model {name!r} needs the item column {column!r}; {there}.")
    return ModelSpec.confirmatory(cast("Family", found["cf"]), items[column], name=column, priors=priors)


def check_models(specs: Iterable[ModelSpec], n_subjects: int, n_items: int) -> None:
    """Refuse models of as many dimensions as a matrix has subjects or items, or more.

    Such a model has a dimension for every row or column, and nothing left to estimate it from.

    Parameters
    ----------
    specs : iterable of ModelSpec
    n_subjects, n_items : int
        Of the screened matrix.

    Raises
    ------
    PlanError
        It names the model.
    """
    for spec in too_large(specs, n_subjects, n_items):
        raise PlanError(
            f"{spec.name} has {spec.dims} dimensions; {n_subjects} subjects x {n_items} items carry at "
            f"most {min(n_subjects, n_items) - 1}. Leave it out, or ask for fewer dimensions."
        )


def too_large(specs: Iterable[ModelSpec], n_subjects: int, n_items: int) -> tuple[ModelSpec, ...]:
    """The models that :func:`check_models` refuses; one of one dimension never is."""
    most = max(min(n_subjects, n_items) - 1, 1)
    return tuple(spec for spec in specs if spec.dims > most)


def _named_items(labels: Sequence[Hashable] | pd.Series) -> tuple[str, ...] | None:
    """Item names that the labels carry: a Series' index, if it is text."""
    index = labels.index.tolist() if isinstance(labels, pd.Series) else []
    return tuple(index) if index and all(isinstance(name, str) for name in index) else None


def _as_pattern(pattern: ArrayLike) -> NDArray[Any]:
    """The (item, dim) array, of 0 and 1 alone."""
    try:
        q = np.asarray(pattern)
    except ValueError:
        raise PlanError(
            "The loading pattern has rows of different lengths; expected one row per item."
        ) from None
    if q.ndim != 2 or not np.isin(q, (0, 1)).all():
        raise PlanError(f"A loading pattern is an (item, dim) array of 0 and 1; got shape {q.shape}.")
    return q.astype(np.int64)


def _texts(what: str, given: object, expected: str) -> list[str]:
    """Labels as text without blanks around them; a missing one is empty."""
    listed = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set | pd.DataFrame)
    if not listed or getattr(given, "ndim", 1) != 1:
        raise PlanError(f"{what} is {shown_value(given)}; expected {expected}: a list, or one column.")
    labels = list(cast("Iterable[Any]", given))
    for label in labels:
        check_kind(f"one of {what}", label, Hashable, "a label, as text")
    return [
        "" if pd.api.types.is_scalar(label) and pd.isna(label) else str(label).strip() for label in labels
    ]


def _check_factors(model: str, factors: tuple[str, ...]) -> None:
    """Refuse names of factors with which two columns of a table would have one name."""
    check_kind(f"factors of model {model!r}", factors, tuple, "a tuple of names")
    if not factors:
        raise PlanError(f"Model {model!r} has no dimension; give at least one.")
    seen: set[str] = set()
    for factor in factors:
        check_kind(f"a factor of model {model!r}", factor, str, "its name, as text")
        if not factor.strip() or factor in RESERVED:
            raise PlanError(
                f"A factor of model {model!r} is named {factor!r}; expected a name, and not "
                f"{' or '.join(RESERVED)}, which name other columns of tables of abilities. Rename it."
            )
        if factor in seen:
            raise PlanError(f"Two factors of model {model!r} are named {factor!r}; give each its own name.")
        seen.add(factor)
    for factor in factors:
        if (taken := f"{factor}_sd") in seen:
            raise PlanError(
                f"Model {model!r} has the factors {factor!r} and {taken!r}, but in tables of abilities "
                f"{taken!r} is the posterior SD of {factor!r}. Rename the factor {taken!r}, to "
                f"{factor + ' sd'!r} for example."
            )


def _check_loadings(model: str, loadings: object, dims: int) -> None:
    """Refuse what is no tuple of tuples of dimensions."""
    rows = loadings if isinstance(loadings, tuple) else (None,)
    for row in rows:
        if not isinstance(row, tuple) or not all(type(dim) is int and 0 <= dim < dims for dim in row):
            raise PlanError(
                f"Model {model!r} has the loadings {shown_value(loadings)}; expected, for each item, a tuple "
                f"of the dimensions it loads on, 0 to {dims - 1}."
            )


def _check_choice(what: str, value: str, allowed: Iterable[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise PlanError(f"{what} is {shown_value(value)}; expected one of {', '.join(allowed)}.")


def _check_labels(labels: Sequence[str]) -> None:
    missing = [j for j, label in enumerate(labels) if not label.strip()]
    if missing:
        raise PlanError(
            f"{len(missing)} of {len(labels)} items have no factor label (the first is item number "
            f"{missing[0] + 1}); label every item or leave those items out."
        )
    sizes = {f: labels.count(f) for f in sorted(set(labels))}
    if len(sizes) < 2:
        only = next(iter(sizes), "no label")
        raise PlanError(f"A confirmatory model needs at least two factors; every item is labelled {only!r}.")
    _check_sizes(sizes)


def _check_sizes(sizes: dict[str, int]) -> None:
    small = [f"{factor!r} ({n})" for factor, n in sizes.items() if n < MIN_ITEMS_PER_FACTOR]
    if small:
        raise PlanError(
            f"A factor needs at least {MIN_ITEMS_PER_FACTOR} items; too small: {', '.join(small)}. "
            "Merge them with others or leave their items out."
        )
