"""Attributes of the Connectors and Executors in Tomcat's server.xml. Pure; comments and formatting are kept.

A section is an element by its port or name: `Connector 8080`, `Executor tomcatThreadPool`. A text with a DOCTYPE is
refused, so that no entity is ever expanded.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.parsers import expat

from cockpit.servers.editing import (
    ConfigError,
    Grammar,
    Insertion,
    Location,
    Span,
    Statement,
    check_text,
    checked,
    excerpt,
    line_number,
)

# The elements within a Service that have settings, with the attribute that names each.
_NAMED_BY = {"Connector": "port", "Executor": "name"}
_TAG_NAME = re.compile(rb"<[A-Za-z]+")
_ATTRIBUTE = re.compile(rb"""[ \t\r\n]+([^\s=<>"'/]+)[ \t\r\n]*=[ \t\r\n]*("[^"<]*"|'[^'<]*')""")
# A Connector with an executor has no threads of its own.
OF_EXECUTOR = frozenset({"maxThreads", "minSpareThreads"})
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})


class Element(NamedTuple):
    """A Connector or Executor: its section, the byte of its `<`, and its attributes."""

    section: str
    start: int
    attributes: dict[str, str]


class TomcatGrammar(Grammar):
    def locate(self, text: bytes, name: str, section: str | None) -> Location:
        element = _element(elements(text), name, section)
        if element is None:
            return Location((), _no_section)
        if name in OF_EXECUTOR and "executor" in element.attributes:
            executor = excerpt(element.attributes["executor"], 80)
            raise ConfigError(f"{element.section} uses the threads of Executor {executor}; set {name} there")
        spans = _spans(text, element)
        if name in spans:
            whole, value = spans[name]
            statement = Statement(element.attributes[name], value, whole, line_number(text, value[0]))
            return Location((statement,), _no_section)
        return Location((), lambda: _insertion(text, name, element, spans))

    def spell(self, value: str, like: bytes | None = None) -> bytes:
        return checked(checked(value).decode().translate(_ESCAPES))


def elements(text: bytes) -> list[Element]:
    """The Connectors and Executors of all Services. Raises ConfigError if the text is no plain XML."""
    check_text(text)
    found: list[Element] = []
    path: list[str] = []
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        key = _NAMED_BY.get(name)
        if key and path == ["Server", "Service"]:
            found.append(Element(f"{name} {attributes.get(key, '')}", parser.CurrentByteIndex, attributes))
        path.append(name)

    def declared(version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() != "utf-8":
            raise ConfigError(f"its encoding is {excerpt(encoding, 40)}; only UTF-8 can be edited")

    def refuse(*_: object) -> None:
        raise ConfigError("it has a DOCTYPE; change it by hand", parser.CurrentLineNumber)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: path.pop()
    parser.XmlDeclHandler = declared
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ConfigError(f"invalid XML: {expat.ErrorString(error.code)}", error.lineno) from None
    return found


def _element(found: list[Element], name: str, section: str | None) -> Element | None:
    """The element of a section; without a section the only one that has the attribute."""
    wanted = " ".join(section.split()) if section is not None else None
    able = [one for one in found if (name in one.attributes if wanted is None else one.section == wanted)]
    if len(able) > 1:
        each = " and ".join(excerpt(one.section, 80) for one in able)
        raise ConfigError(f"{name} is ambiguous: {each}; give the knob a section of its own")
    if not able and wanted is not None:
        known = ", ".join(excerpt(one.section, 80) for one in found) or "none"
        raise ConfigError(f"it has no section {excerpt(wanted, 80)}; its sections: {known}")
    return able[0] if able else None


def _spans(text: bytes, element: Element) -> dict[str, tuple[Span, Span]]:
    """The attributes of a start tag in their order: the spans with the white space before, and of the values."""
    tag = _TAG_NAME.match(text, element.start)
    at = tag.end() if tag else element.start
    spans: dict[str, tuple[Span, Span]] = {}
    while found := _ATTRIBUTE.match(text, at):
        at = found.end()
        spans[found[1].decode("utf-8", "replace")] = found.span(), (found.start(2) + 1, found.end(2) - 1)
    if spans.keys() != element.attributes.keys():
        raise ConfigError(f"{excerpt(element.section, 80)} cannot be edited", line_number(text, element.start))
    return spans


def _insertion(text: bytes, name: str, element: Element, spans: dict[str, tuple[Span, Span]]) -> Insertion:
    """Behind the last attribute, on a line of its own if that one is."""
    (start, end), _ = list(spans.values())[-1]
    space = text[start : end - len(text[start:end].lstrip())]
    return Insertion(end, (space if b"\n" in space else b" ") + name.encode() + b'="', b'"')


def _no_section() -> Insertion:
    raise ConfigError("it is not set; give the knob the section to add it to, as section = 'Connector 8080'")
