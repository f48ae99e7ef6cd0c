"""A knob's value in the text of its file, whatever its kind: read, spelled, changed. Pure.

All functions raise ConfigError, one line without the file's name.
"""

from __future__ import annotations

from cockpit.model.knobs import Knob
from cockpit.tuning import directive, keyvalue, nginx, squid
from cockpit.tuning.reading import BYTE_ORDER_MARK, Reading
from cockpit.tuning.syntax import ConfigError


def read(knob: Knob, text: bytes) -> Reading:
    """The knob's value as it stands in its file."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    if knob.kind == "nginx":
        return nginx.read(text, knob.directive, knob.section)
    if knob.kind == "squid":
        return squid.read(text, knob.directive)
    if knob.kind == "apache":
        return directive.read(text, knob.directive, knob.section)
    return keyvalue.read(text, knob.key, knob.section)


def change(knob: Knob, text: bytes, raw: bytes | None) -> bytes:
    """The text with the value's bytes replaced by `raw`; None: without the knob."""
    plain = text.removeprefix(BYTE_ORDER_MARK)
    return text[: len(text) - len(plain)] + _changed(knob, plain, raw)


def _changed(knob: Knob, text: bytes, raw: bytes | None) -> bytes:
    if knob.kind == "nginx":
        return nginx.change(text, knob.directive, knob.section, raw)
    if knob.kind == "squid":
        return squid.change(text, knob.directive, raw)
    if knob.kind == "apache":
        return directive.change(text, knob.directive, knob.section, raw)
    return keyvalue.change(text, knob.key, raw, knob.section)


def place(knob: Knob, real: str) -> str:
    """Identifies the value by its file, section and key."""
    section = " ".join((knob.section or "").split())
    return "\t".join((real, section, knob.directive.lower() or knob.key.replace("/", ".")))


def spell(knob: Knob, text: bytes, value: str, like: bytes | None) -> bytes:
    """The bytes of a value; `like` are those that it replaces, and stay where they say the same."""
    allow(knob, value)
    if knob.kind == "apache":
        directive.allowed(knob.directive, value, knob.values, knob.shown(value, 80))
        spelled = directive.spell(value)
        if like is not None and directive.shown(like) == directive.shown(spelled):
            return like
        return directive.spell(value, like=like)
    if like is not None and read(knob, text).value == value:
        return like
    if knob.kind == "nginx":
        return nginx.spell(value)
    if knob.kind == "squid":
        return squid.spell(value)
    shell = keyvalue.is_shell(text.removeprefix(BYTE_ORDER_MARK), knob.key, knob.section)
    return keyvalue.spell(value, shell, like)


def allow(knob: Knob, value: str) -> None:
    """Raises ConfigError where the profile does not allow the value."""
    if why := knob.refuses(value):
        raise ConfigError(f"{knob.shown(value, 80)!r} {why}")
