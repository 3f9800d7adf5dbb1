"""A small reader of HTML that says what is wrong with a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br", "wbr", "input", "hr"}


@dataclass
class Seen:
    tag: str
    attributes: dict[str, str | None]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """Everything a page holds: elements in order, and each opening or closing that does not fit."""

    source: str
    elements: list[Seen] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[Seen] = []
        self.feed(self.source)
        self.close()
        self.problems += [f"<{element.tag}> stays open" for element in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.problems.append(f"<{tag}> repeats an attribute: {names}")
        self.elements.append(Seen(tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(self.elements[-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Seen(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1].tag != tag:
            self.problems.append(f"</{tag}> closes {self._open[-1].tag if self._open else 'nothing'}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, *tags: str) -> list[Seen]:
        return [element for element in self.elements if element.tag in tags]

    def with_attribute(self, name: str) -> list[str]:
        return [
            value or ""
            for element in self.elements
            for key, value in element.attributes.items()
            if key == name
        ]
