"""Words of the report in one line each, and the marking of their first use in a section."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from markupsafe import Markup

from irtaudit.report.text import prose, typeset

GLOSSARY: Mapping[str, str] = MappingProxyType(
    {
        "AIC": "Fit to the training cells plus a charge per fitted quantity (Akaike); lower is better.",
        "BIC": "Bayesian criterion: as AIC, with a charge that grows with the data; lower is better.",
        "baseline": "A prediction without any item response model, such as each item's mean.",
        "Brier score": "Mean squared distance of predicted probability from outcome; 0 is perfect.",
        "confirmatory": "A structure stated in advance: each item belongs to the factor of its category.",
        "DIF": "Differential item functioning: equally able models of two groups differ on an item.",
        "discrimination": "How sharply an item separates models above its difficulty from models below.",
        "difficulty": "The theta at which a model passes the item half of the time (guessing aside).",
        "eigenvalue": "How much of the items' variation one direction carries; large ones mark dimensions.",
        "exploratory": "A structure found from the data: every item may depend on every dimension.",
        "factor correlation": "How closely two dimensions go together: 1 is one scale, 0 is unrelated.",
        "family-wise": "Over all items: even one false flag is no likelier than the stated rate.",
        "guessing": "The chance that even the weakest model passes an item.",
        "held-out": "Set aside before fitting and predicted afterwards, so that memorising cannot help.",
        "item response model": "Predicts passing from the model's theta and the item's difficulty.",
        "log-loss": "Mean surprise of predictions at what happened; 0 is perfect, 0.693 a coin toss.",
        "Mantel-Haenszel": "Compares two groups' odds of passing an item within bands of equal ability.",
        "margin": "The smallest difference that counts, fixed before looking at the result.",
        "null": "What the same computation gives when there is nothing to find, by simulation.",
        "power": "The chance that this audit would find a difference of the stated size, were it there.",
        "restart": "The same model fitted again from another random start, to see whether the answer stays.",
        "Spearman": "Correlation of ranks: +1 same order, 0 unrelated, -1 opposite order.",
        "split": "One random choice of the cells held out; several show how much luck is in it.",
        "theta": "A model's ability on the scale of an item response model; 0 is the average of the pool.",
    }
)


def explainer(glossary: Mapping[str, str]) -> Callable[[str], Markup]:
    """Function that typesets text and marks the first use of each term among all the texts it is given.

    Terms with capitals (DIF, Spearman) match as written, others in either case; both take a plural s.

    Parameters
    ----------
    glossary : mapping of str to str
        One line by term.

    Returns
    -------
    callable
        From plain text to markup in which a term is a button that opens its line (:func:`term_id`).
    """
    terms = {term.casefold(): term for term in glossary}
    any_term = "|".join(map(_pattern, sorted(glossary, key=len, reverse=True))) or "(?!)"
    pattern = re.compile(rf"([(“‘]*)({any_term})((?:['’]s(?!\w))?[)”’.,;:!?]*)")
    seen: set[str] = set()

    def explain(text: str) -> Markup:
        parts, end = [], 0
        plain = typeset(text)
        for match in pattern.finditer(plain):
            found = match[2].casefold()
            term = terms.get(found) or terms[found.removesuffix("s")]
            if term not in seen:
                seen.add(term)
                parts += [prose(plain[end : match.start()]), _button(term, *match.groups())]
                end = match.end()
        return Markup("").join([*parts, prose(plain[end:])])

    return explain


def term_id(term: str) -> str:
    """Identifier of the line that explains a term."""
    return "term-" + re.sub(r"\W+", "-", term.casefold())


def _button(term: str, before: str, word: str, after: str) -> Markup:
    """The word as a button, kept on one line with the marks around it."""
    button = Markup('<button type="button" class="term" popovertarget="{}">{}</button>')
    marked = button.format(term_id(term), word)
    return (
        Markup('<span class="kept">{}{}{}</span>').format(before, marked, after) if before + after else marked
    )


def _pattern(term: str) -> str:
    either_case = "i" if term == term.casefold() else ""
    return rf"(?{either_case}:(?<![\w-]){re.escape(term)}s?(?![\w-]))"
