"""A knob's value in the text of its file, in the grammar of its kind. Pure.

All functions raise ConfigError, one line without the file's name.
"""

from __future__ import annotations

from cockpit.model.knobs import Knob
from cockpit.model.text import neutral
from cockpit.servers.editing import ConfigError, ConfigValue, Grammar
from cockpit.servers.registry import GRAMMARS


def read(knob: Knob, text: bytes) -> ConfigValue:
    return _grammar(knob).read(text, _name(knob), knob.section)


def includes(knob: Knob, text: bytes) -> list[tuple[str, int]]:
    """The paths and patterns that the knob's section includes, with their lines."""
    return _grammar(knob).includes(text, knob.section)


def change(knob: Knob, text: bytes, raw: bytes | None) -> bytes:
    """The text with the value's bytes replaced by `raw`; None: without the knob."""
    return _grammar(knob).change(text, _name(knob), raw, knob.section)


def place(knob: Knob, real: str) -> str:
    """Identifies the value by its file, section and key."""
    section = " ".join((knob.section or "").split())
    return "\t".join((real, section, knob.directive.lower() or knob.key.replace("/", ".")))


def spell(knob: Knob, text: bytes, value: str) -> bytes:
    """The bytes of a value; those of the present one if it is the same."""
    grammar = _grammar(knob)
    if why := knob.refuses(value) or ("" if knob.choices else grammar.refusal(_name(knob), value)):
        raise ConfigError(f"{knob.shown(value, 80)!r} {why}")
    if neutral(value) != value:
        raise ConfigError("a value is one line of text, at most 4096 characters, without control characters")
    now = read(knob, text)
    if now.raw is not None and now.value == value:
        return now.raw
    return grammar.spell_in(text, _name(knob), knob.section, value, now.raw)


def coerced(knob: Knob, text: bytes) -> str:
    """A note about values that the server silently replaces by others; "" without any."""
    return _grammar(knob).coerced(text, _name(knob), knob.section)


def has_name(knob: Knob) -> bool:
    """Whether its directive or key can be one."""
    return _grammar(knob).names.fullmatch(_name(knob)) is not None


def _grammar(knob: Knob) -> Grammar:
    # The line of a sysctl in its file is a key as well.
    return GRAMMARS.get(knob.kind, GRAMMARS["keyvalue"])


def _name(knob: Knob) -> str:
    return knob.directive or knob.key
