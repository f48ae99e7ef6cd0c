"""Read and change a knob's value in the text of its file, with the grammar of its kind. Pure.

All functions raise ConfigError, with a message of one line without the file's name.
"""

from __future__ import annotations

from cockpit.model.knobs import Knob
from cockpit.model.text import sanitize
from cockpit.servers.editing import BYTE_ORDER_MARK, ConfigError, ConfigValue, Grammar
from cockpit.servers.registry import GRAMMARS


def read(knob: Knob, text: bytes) -> ConfigValue:
    return _grammar(knob).read(text, _name(knob), knob.section)


def includes(knob: Knob, text: bytes) -> list[tuple[str, int]]:
    """Return the paths and patterns that the knob's section includes, each with its line number."""
    return _grammar(knob).includes(text, knob.section)


def conditions_of(knob: Knob, text: bytes) -> tuple[str, ...]:
    """Return the headers of conditional sections that contain the value; () if the value cannot be found."""
    try:
        return _grammar(knob).conditions_of(text.removeprefix(BYTE_ORDER_MARK), _name(knob), knob.section)
    except ConfigError:
        return ()


def change(knob: Knob, text: bytes, raw: bytes | None) -> bytes:
    """Return the text with the value's bytes replaced by `raw`; None: removed."""
    return _grammar(knob).change(text, _name(knob), raw, knob.section)


def place(knob: Knob, real: str) -> str:
    """Return an identity of the value: its file, section and key."""
    section = " ".join((knob.section or "").split())
    return "\t".join((real, section, knob.directive.lower() or knob.key.replace("/", ".")))


def encode(knob: Knob, text: bytes, value: str) -> bytes:
    """Return the bytes of a value as written in the file; unchanged bytes if the file has this value already."""
    grammar = _grammar(knob)
    if why := knob.value_error(value) or ("" if knob.choices else grammar.refusal(_name(knob), value)):
        raise ConfigError(f"{knob.shown(value, 80)!r} {why}")
    if sanitize(value) != value:
        raise ConfigError("a value is one line of text, at most 4096 characters, without control characters")
    now = read(knob, text)
    if now.raw is not None and now.value == value:
        return now.raw
    return grammar.encode_in(text, _name(knob), knob.section, value, now.raw)


def coerced(knob: Knob, text: bytes) -> str:
    """Return a note about values that the server silently corrects; "" without any."""
    return _grammar(knob).coerced(text, _name(knob), knob.section)


def has_name(knob: Knob) -> bool:
    """Return whether the knob's directive or key is a valid name in the grammar."""
    grammar, name = _grammar(knob), _name(knob)
    return name in grammar.parameters or grammar.names.fullmatch(name) is not None


def _grammar(knob: Knob) -> Grammar:
    # A sysctl in a file has the grammar of key and value.
    return GRAMMARS.get(knob.kind, GRAMMARS["keyvalue"])


def _name(knob: Knob) -> str:
    return knob.directive or knob.key
