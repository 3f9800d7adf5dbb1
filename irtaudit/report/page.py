"""One self-contained page from any audit's sections: no network, no external font, style or script."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from itertools import count
from pathlib import Path
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from irtaudit._version import __version__
from irtaudit.errors import StorageError, check_kind
from irtaudit.report.figures import prefix_ids
from irtaudit.report.glossary import GLOSSARY, explainer, term_id
from irtaudit.report.section import PLACES, Fold, Place, Section
from irtaudit.report.table import Cell, file_name, view
from irtaudit.report.text import printable, prose

#: Headings of the page by place, in reading order; the answer is the head of the page itself.
PARTS: Mapping[Place, str] = {
    "picture": "The picture",
    "evidence": "Why, piece by piece",
    "limit": "What this does not show",
    "explore": "Look for yourself",
    "method": "How it was done",
}

SHORT = 16
"""Characters that fit on one line of a cell everywhere."""
_FORBIDDEN = frozenset({"script", "style", "foreignObject", "iframe"})


def render_report(
    sections: Sequence[Section],
    *,
    title: str = "irtaudit report",
    command: str = "",
    glossary: Mapping[str, str] | None = None,
) -> str:
    """The page as text; the same input gives the same text.

    Parameters
    ----------
    sections : sequence of Section
        In any order; each goes to its place, where the given order is kept. The first section at "answer"
        heads the page.
    title : str
        Title of the document: "SWE-bench Verified, audited".
    command : str
        The command that reproduces the page.
    glossary : mapping of str to str, optional
        Further terms to explain, one line each; they take precedence over `GLOSSARY`.

    Returns
    -------
    str
        A complete HTML document.

    Raises
    ------
    PlanError
        When `sections` is something else.
    """
    check_kind("sections", sections, (list, tuple), "a list of Section")
    for section in sections:
        check_kind("a section", section, Section, "a Section, as the present functions make them")
    terms = {**GLOSSARY, **(glossary or {})}
    script = _static("report.js")
    page = _environment(terms).get_template("page.html")
    parts = {place: [section for section in sections if section.place == place] for place in PLACES}
    return page.render(
        title=title,
        answers=parts["answer"],
        parts={
            place: (heading, parts[place])
            for place, heading in PARTS.items()
            if parts[place] or (place == "method" and command)
        },
        command=command,
        version=__version__,
        style=Markup(_static("report.css")),
        script=Markup(script),
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def write_report(
    sections: Sequence[Section],
    target: str | os.PathLike[str],
    *,
    title: str = "irtaudit report",
    command: str = "",
    glossary: Mapping[str, str] | None = None,
) -> Path:
    """The page as a file; what stood there before stays until the new page is complete.

    Parameters
    ----------
    sections, title, command, glossary
        As in :func:`render_report`.
    target : path
        A file name ending in ``.html``, or a folder that receives ``report.html``; made when missing.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    StorageError
        When the file cannot be written.
    """
    place = Path(target)
    path = place if place.suffix == ".html" else place / "report.html"
    page = render_report(sections, title=title, command=command, glossary=glossary)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(page, encoding="utf-8", newline="\n")
        draft.replace(path)
    except OSError as error:
        raise StorageError(f"cannot write the report to {path}: {error}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return path


def _environment(terms: Mapping[str, str]) -> Environment:
    environment = Environment(
        loader=PackageLoader("irtaudit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "plain": printable,
        "prose": prose,
        "blocks": lambda text: [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()],
        "inline_svg": _inline_svg,
        "table_view": lambda section: view(section.table, section.columns, section.formats, section.extremes),
        "file_name": lambda section: file_name(section.file, section.title or section.claim),
        "sort_key": lambda cell: Markup(' data-v="{}"').format(cell.sort_key) if cell.sort_key else "",
        "in_cell": _in_cell,
        "term_id": term_id,
    }
    environment.globals |= {
        "number": count(1).__next__,
        "new_explainer": lambda: explainer(terms),
        "fold_links": _fold_links,
        "terms_in": lambda body: {
            term: terms[term] for term in sorted(terms, key=str.casefold) if f'="{term_id(term)}"' in body
        },
    }
    return environment


def _in_cell(cell: Cell) -> Markup:
    """The words of a cell; long ones in a box of their own, which keeps their column from closing in."""
    words = prose(cell.text)
    return words if len(cell.text) <= SHORT else Markup('<span class="long">{}</span>').format(words)


def _static(name: str) -> str:
    return (files("irtaudit.report") / "templates" / name).read_text(encoding="utf-8")


def _fold_links(folds: Sequence[Fold], leaves: int) -> dict[str, str]:
    """Identifier of the fold by title; of equal titles the first is meant."""
    links: dict[str, str] = {}
    for order, fold in enumerate(folds, start=1):
        links.setdefault(printable(fold.title), f"fold-{leaves}-{order}")
    return links


def _inline_svg(svg: str, number: int) -> Markup:
    """The drawing as part of the page: identifiers of its own, and nothing that runs or fetches."""
    try:
        elements = list(ElementTree.fromstring(svg).iter())
    except ElementTree.ParseError as error:
        raise ValueError(f"the SVG of a figure is not well formed: {error}") from error
    for element in elements:
        name = element.tag.rpartition("}")[2]
        active = [f"{key}={value}" for key, value in element.attrib.items() if _acts(key, value)]
        if name in _FORBIDDEN or active:
            raise ValueError(
                f"the SVG of a figure holds <{' '.join([name, *active])}>, which no drawing needs"
            )
    bare = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href=", "href=")
    return Markup(prefix_ids(bare, f"d{number}"))


def _acts(key: str, value: str) -> bool:
    """Whether an attribute of a drawing runs something, or fetches something from outside."""
    outside = key.endswith("href") and not value.startswith(("#", "data:image/png;"))
    return key.lower().startswith("on") or outside or bool(re.search(r"url\((?!#)", value))
