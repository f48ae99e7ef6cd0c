"""Differences between two load plans, in words."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from cockpit.model.fold_load import load_words
from cockpit.model.load import LoadPlan
from cockpit.model.text import neutral

# The parts of a plan that determine the server's work. Its duration, its counting and its workers do not.
_COMPARED = {
    "url": "URL",
    "method": "method",
    "headers": "headers",
    "body": "body",
    "expect": "expected response",
    "mix": "requests",
    "paths": "paths",
    "replay": "log",
    "concurrency": "concurrency",
    "rate": "rate",
    "arrivals": "arrivals",
    "max_in_flight": "most in flight",
    "stages": "load levels",
    "keepalive": "keep-alive",
    "requests_per_connection": "requests per connection",
    "think_time": "think time",
    "cookies": "cookies",
    "sockets_per_user": "connections per user",
    "timeout": "timeout",
    "tls": "TLS",
    "connect_to": "connect to",
    "unix": "socket",
    "local_addresses": "local addresses",
}
_REPLACED_BY_MIX = {"url", "method", "headers", "body", "expect"}
_CLOSED = {"concurrency", "think_time"}
_OPEN = {"rate", "arrivals", "max_in_flight"}
_CUT = 60


def differences(one: LoadPlan, other: LoadPlan) -> tuple[str, ...]:
    """Return the differences, a few words each, e.g. `concurrency 20 → 40`; empty if the load is the same.

    Irrelevant parts are ignored: the concurrency of open load, the URL if requests are named. A segment of a load
    level is compared by that level. Secrets are not in the words.
    """
    left, right = _comparable(one), _comparable(other)
    skipped = _ignored(left, right)
    found = []
    if left.open != right.open and not (_has_all_levels(left) or _has_all_levels(right)):
        found.append(f"{load_words(left)} → {load_words(right)}")
    for name, words in _COMPARED.items():
        before, after = getattr(left, name), getattr(right, name)
        if name in skipped or before == after:
            continue
        plain = name != "body" and isinstance(before if before is not None else after, str | int | float)
        found.append(f"{words} {_value_words(before)} → {_value_words(after)}" if plain else f"other {words}")
    return tuple(found)


def _comparable(plan: LoadPlan) -> LoadPlan:
    """The plan without secrets, and without the duration that only a log that has been read has."""
    shown = plan.without_secrets()
    return shown if shown.replay is None else replace(shown, replay=replace(shown.replay, seconds=None))


def _ignored(one: LoadPlan, other: LoadPlan) -> set[str]:
    skipped = set(_REPLACED_BY_MIX) if one.mix and other.mix else set()
    if _has_all_levels(one) or _has_all_levels(other):
        return skipped | _CLOSED | {"rate"}
    skipped.add("stages")
    if one.open != other.open:
        return skipped | _CLOSED | _OPEN
    return skipped | (_CLOSED if one.open else _OPEN)


def _has_all_levels(plan: LoadPlan) -> bool:
    """Return whether it has all load levels; the plan of a segment has one and lasts as long."""
    return bool(plan.stages) and plan.duration is None


def _value_words(value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else neutral(str(value), _CUT)
