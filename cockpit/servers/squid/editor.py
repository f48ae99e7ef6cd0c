"""Locate and encode the directives of a squid configuration text. Pure.

A directive is a line: its name, then its arguments. A word that starts with `#` starts a comment. A backslash at the
end of a line joins the next line, skipping blank lines and comments; in a comment it has no effect. There are no
sections.
"""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.servers.editing import (
    SPACE,
    ConfigError,
    ConfigText,
    Grammar,
    Insertion,
    Location,
    LogicalLine,
    Statement,
    encode_line,
    last_line,
)

# Defaults for later stores: a cache_dir uses the values above it.
_STORE_DEFAULTS = ("cache_replacement_policy", "maximum_object_size", "minimum_object_size")


class SquidGrammar(Grammar):
    sections = False
    including = ("include",)

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        read = list(_lines(text))
        matches = [line for line in read if _name(line) == name.encode()]
        _check_conditions(name, read)
        store = next((line for line in read if _name(line) == b"cache_dir"), None) if name in _STORE_DEFAULTS else None

        def insert() -> Insertion:
            if store:
                return text.new_line(store.start, name.encode() + b" ")
            return last_line(text, read[-1] if read else None, name.encode() + b" ")

        return Location(tuple(_statement(text, line, name.encode()) for line in matches), insert)

    @staticmethod
    def paths(arguments: str) -> list[str]:
        return arguments.split()

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        if raw.endswith(b"\\"):
            raise ConfigError("a value must not end in a backslash: it would join the next line")
        if any(word.startswith(b"#") for word in raw.split()):
            raise ConfigError("a value must not contain a # that starts a comment")
        return raw


def _check_conditions(name: str, read: list[LogicalLine]) -> None:
    """Raise ConfigError if the directive depends on an `if`, whose condition is known to squid only."""
    depth = 0
    for line in read:
        depth += (_name(line) == b"if") - (_name(line) == b"endif")
        if depth and _name(line) == name.encode():
            raise ConfigError(f"{name} depends on an if; change it by hand", line.number)


def _name(line: LogicalLine) -> bytes:
    return next(iter(line.body.split(None, 1)), b"")


def _statement(text: ConfigText, line: LogicalLine, name: bytes) -> Statement:
    after = line.body.index(name) + len(name)
    end = len(_uncommented(line.body).rstrip(SPACE))
    start = len(line.body) - len(line.body[after:].lstrip(SPACE))
    return line.statement(text, start, end, line.body[start:end].decode("utf-8", "backslashreplace"))


def _lines(text: ConfigText) -> Iterator[LogicalLine]:
    """Yield the logical lines, joined as by squid. Their spans cover the text without gaps."""
    start = number = 0
    while start < len(text):
        at, first, body, continued = start, number + 1, b"", True
        pieces: list[tuple[int, int]] = []
        while continued and at < len(text):
            stop, end = text.line_stop(at), text.line_end(at)
            here = text[at:stop].removesuffix(b"\r") if end > stop else text[at:stop]
            idle = here.lstrip(SPACE)[:1] in (b"", b"#")
            if not pieces or not idle:
                pieces.append((len(body), at))
                body += here
                continued = end > stop and not idle and here.endswith(b"\\")
                body = body[:-1] if continued else body
            at, number = end, number + 1
        yield LogicalLine(first, start, at, body, tuple(pieces), continued)
        start = at


def _uncommented(body: bytes) -> bytes:
    """Return the line without the comment at its end."""
    for at, byte in enumerate(body):
        if byte == 0x23 and (at == 0 or body[at - 1] in SPACE):
            return body[:at]
    return body
