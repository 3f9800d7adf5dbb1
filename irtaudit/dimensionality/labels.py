"""Names of models in words that need no statistics."""

from __future__ import annotations

import re

_WORDS = (
    (re.compile(r"item_means"), r"item means alone"),
    (re.compile(r"item_subject_logit"), r"item + model, added up"),
    (re.compile(r"unidimensional_(.pl)"), r"one dimension"),
    (re.compile(r"exploratory_(\d+)d_(.pl)"), r"\1 free dimensions"),
    (re.compile(r"confirmatory_(.+)_(.pl)"), r"one dimension per \1"),
)


def label(model: str) -> str:
    """The model in words: ``exploratory_3d_2pl`` is "3 free dimensions, 2PL".

    Parameters
    ----------
    model : str
        A name of `irtaudit.irt.spec`, or of a baseline; any other name is returned as it is.
    """
    for pattern, words in _WORDS:
        found = pattern.fullmatch(model)
        if found:
            family = found[found.lastindex].upper() if found.lastindex else ""
            return found.expand(words) + (f", {family}" if family else "")
    return model


def short_label(model: str) -> str:
    """The model in words without its family: "3 free dimensions"."""
    return re.sub(r", [123]PL$", "", label(model))
