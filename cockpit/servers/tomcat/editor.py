"""Edit attributes of the Connectors and Executors in Tomcat's server.xml. Pure; keeps comments and formatting.

A section is an element with its port or name: `Connector 8080`, `Executor tomcatThreadPool`. Texts with a DOCTYPE are
rejected, so that entities are never expanded.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.parsers import expat

from cockpit.servers.editing import (
    ConfigError,
    ConfigText,
    Grammar,
    Insertion,
    Location,
    Statement,
    TextSpan,
    encode_line,
    excerpt,
)

# Elements in a Service that have settings, and the attribute that identifies each.
_NAMED_BY = {"Connector": "port", "Executor": "name"}
_TAG_NAME = re.compile(rb"<[A-Za-z]+")
_ATTRIBUTE = re.compile(rb"""[ \t\r\n]+([^\s=<>"'/]+)[ \t\r\n]*=[ \t\r\n]*("[^"<]*"|'[^'<]*')""")
# Attributes that a Connector takes from its Executor, if it has one.
OF_EXECUTOR = frozenset({"maxThreads", "minSpareThreads"})
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})


class Element(NamedTuple):
    """A Connector or Executor: its section, the byte of its `<`, and its attributes."""

    section: str
    start: int
    attributes: dict[str, str]


class TomcatGrammar(Grammar):
    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        element = _element(elements(text), name, section)
        if element is None:
            return Location((), _no_section)
        if name in OF_EXECUTOR and "executor" in element.attributes:
            executor = excerpt(element.attributes["executor"], 80)
            raise ConfigError(f"{element.section} uses the threads of Executor {executor}; set {name} there")
        spans = _spans(text, element)
        if name in spans:
            whole, value = spans[name]
            statement = Statement(element.attributes[name], value, whole, text.line_number(value[0]))
            return Location((statement,), _no_section)
        return Location((), lambda: _insertion(text, name, element, spans))

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        return encode_line(encode_line(value).decode().translate(_ESCAPES))


def elements(text: ConfigText) -> list[Element]:
    """Return the Connectors and Executors of all Services. Raises ConfigError if the text is invalid XML, has a
    DOCTYPE, or is neither UTF-8 nor ASCII."""
    known: list[Element] = []
    path: list[str] = []
    parser = expat.ParserCreate("utf-8")

    def start(name: str, attributes: dict[str, str]) -> None:
        key = _NAMED_BY.get(name)
        if key and path == ["Server", "Service"]:
            known.append(Element(f"{name} {attributes.get(key, '')}", parser.CurrentByteIndex, attributes))
        path.append(name)

    def declared(version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() != "utf-8" and not text.isascii():
            raise ConfigError(f"the encoding is {excerpt(encoding, 40)}; only UTF-8 can be edited")

    def refuse(*_: object) -> None:
        raise ConfigError("the file has a DOCTYPE; change it by hand", parser.CurrentLineNumber)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: path.pop()
    parser.XmlDeclHandler = declared
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ConfigError(f"invalid XML: {expat.ErrorString(error.code)}", error.lineno) from None
    return known


def _element(every: list[Element], name: str, section: str | None) -> Element | None:
    """Return the element of a section; without a section the only element that has the attribute."""
    place = " ".join(section.split()) if section is not None else None
    matching = [
        element for element in every if (name in element.attributes if place is None else element.section == place)
    ]
    if len(matching) > 1:
        each = " and ".join(excerpt(element.section, 80) for element in matching)
        raise ConfigError(f"{name} is ambiguous: {each}; set the section of the knob")
    if not matching and place is not None:
        known = ", ".join(excerpt(element.section, 80) for element in every) or "none"
        raise ConfigError(f"no section {excerpt(place, 80)}; its sections: {known}")
    return matching[0] if matching else None


def _spans(text: ConfigText, element: Element) -> dict[str, tuple[TextSpan, TextSpan]]:
    """Return the attributes of a start tag in file order: the span including the preceding white space, and the span of
    the value."""
    tag = _TAG_NAME.match(text, element.start)
    at = tag.end() if tag else element.start
    spans: dict[str, tuple[TextSpan, TextSpan]] = {}
    while match := _ATTRIBUTE.match(text, at):
        at = match.end()
        spans[match[1].decode("utf-8", "replace")] = match.span(), (match.start(2) + 1, match.end(2) - 1)
    if spans.keys() != element.attributes.keys():
        raise text.error(f"{excerpt(element.section, 80)} cannot be edited", element.start)
    return spans


def _insertion(text: ConfigText, name: str, element: Element, spans: dict[str, tuple[TextSpan, TextSpan]]) -> Insertion:
    """Return the insertion after the last attribute, on a separate line if that attribute is."""
    (start, end), _ = list(spans.values())[-1]
    space = text[start : end - len(text[start:end].lstrip())]
    return Insertion(end, (space if b"\n" in space else b" ") + name.encode() + b'="', b'"')


def _no_section() -> Insertion:
    raise ConfigError("the attribute is not set; name a section in the knob to add it, e.g. section = 'Connector 8080'")
