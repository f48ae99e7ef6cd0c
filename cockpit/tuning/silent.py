"""Values that a server takes for others without a word, worked out from the text of its file. Pure."""

from __future__ import annotations

from cockpit.model.knobs import Knob
from cockpit.tuning import directive
from cockpit.tuning.reading import BYTE_ORDER_MARK
from cockpit.tuning.syntax import ConfigError

# What Apache takes where the file does not say.
_DEFAULTS = {
    "MinSpareServers": 5,
    "MaxSpareServers": 10,
    "MinSpareThreads": 75,
    "MaxSpareThreads": 250,
    "ThreadsPerChild": 25,
}
_SERVERS = ("MinSpareServers", "MaxSpareServers")
_THREADS = ("MinSpareThreads", "MaxSpareThreads", "ThreadsPerChild")


def corrected(knob: Knob, text: bytes) -> str:
    """What Apache makes of the spare servers or threads of the knob's section, where it is not what stands there."""
    name = knob.directive.lower()
    if knob.kind != "apache":
        return ""
    if name in {one.lower() for one in _SERVERS}:
        low, high = (_number(knob, text, one) for one in _SERVERS)
        return _said("MaxSpareServers", high, low + 1, "MinSpareServers + 1")
    if name in {one.lower() for one in _THREADS}:
        low, high, each = (_number(knob, text, one) for one in _THREADS)
        return _said("MaxSpareThreads", high, low + each, "MinSpareThreads + ThreadsPerChild")
    return ""


def _said(name: str, value: int, least: int, rule: str) -> str:
    return f"Apache takes {name} {value} for {least} without a word: it must be at least {rule}" * (value < least)


def _number(knob: Knob, text: bytes, name: str) -> int:
    try:
        value = directive.read(text.removeprefix(BYTE_ORDER_MARK), name, knob.section).value
    except ConfigError:
        value = None
    return int(value) if value and value.isdecimal() and len(value) < 19 else _DEFAULTS[name]
