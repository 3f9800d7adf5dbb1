"""Numbers in sentences: of one thing or of several."""

from __future__ import annotations


def counted(n: int, noun: str, plural: str = "") -> str:
    """A number of things: "1 run", "1,200 runs", "2 families".

    Parameters
    ----------
    n : int
    noun : str
        Name of one thing.
    plural : str
        Name of several; default: the noun with an s.
    """
    return f"{n:,} {by_number(n, noun, plural or noun + 's')}"


def by_number(n: int, one: str, several: str) -> str:
    """The form that goes with a number: ``by_number(n, "is", "are")``; none counts as several."""
    return one if n == 1 else several


def percent(share: float) -> str:
    """A share in per cent, by three significant digits: "97.5 %", "80 %"."""
    return f"{100 * share:.3g} %"


def panel_size(n_subjects: int, n_items: int, subject: str = "model") -> str:
    """Size of a matrix of responses: "81 models x 398 items", "1 model x 1 item"."""
    return f"{counted(n_subjects, subject)} x {counted(n_items, 'item')}"
