"""Data that can be read in several ways, so that somebody has to say which."""

from __future__ import annotations

from irtaudit.errors import DataError


class UndecidedError(DataError):
    """The data is sound, and an option must say how it is meant.

    Attributes
    ----------
    option : str
        The keyword of `read_responses` that decides.
    example : str or float
        A value that it may have.
    """

    def __init__(self, message: str, option: str, example: str | float) -> None:
        super().__init__(message)
        self.option, self.example = option, example
