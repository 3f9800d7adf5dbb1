"""What stands beside a page: its figures as files of their own, its numbers as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtaudit.report.section import Section


def plain(value: Any) -> Any:
    """The value in JSON types: frames as lists of rows, what is not a finite number as None."""
    if isinstance(value, pd.DataFrame):
        return [plain(row) for row in value.to_dict("records")]
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(content: Mapping[str, Any]) -> str:
    """The content as an indented JSON document that ends in a line feed; see :func:`plain`."""
    return json.dumps(plain(content), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def figure_files(sections: Sequence[Section]) -> dict[str, str]:
    """Every figure of the sections as SVG, by file name: title of its section, numbered where it repeats."""
    found: dict[str, str] = {}
    for section in sections:
        stem = re.sub(r"\W+", "_", (section.title or section.claim).casefold()).strip("_")[:60]
        for figure in section.figures:
            name, number = f"{stem}.svg", 1
            while name in found:
                number += 1
                name = f"{stem}_{number}.svg"
            found[name] = figure.svg + "\n"
    return found
