"""Differences between two load plans, as text."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from cockpit.analysis.words.timeline import load_words
from cockpit.model.load.plan import LoadPlan
from cockpit.model.text import sanitize

# Fields of a plan that do not affect the server's work, or are compared in another way; all others are compared.
_UNCOMPARED = {"requests", "duration", "warmup", "extend", "seed", "tick", "workers", "cpus", "on_loss"}
_UNCOMPARED |= {"ramp_to", "binary", "variants", "margin"}
# Names of fields that are not those of the plan.
_NAMES = {
    "url": "URL",
    "expect": "expected response",
    "mix": "requests",
    "replay": "log",
    "stages": "load levels",
    "http": "HTTP version",
    "streams": "streams per connection",
    "keepalive": "keep-alive",
    "tls": "TLS",
    "unix": "socket",
}
_COMPARED = {
    name: _NAMES.get(name, name.replace("_", " ")) for name in LoadPlan.__struct_fields__ if name not in _UNCOMPARED
}
_REPLACED_BY_MIX = {"url", "method", "headers", "body", "expect"}
_CLOSED = {"concurrency", "think_time"}
_OPEN = {"rate", "arrivals", "burst", "max_in_flight"}
_CUT = 60
# Seconds by which a complete ramp may be shorter than planned.
_TICKS = 1.0


def differences(first: LoadPlan, second: LoadPlan) -> tuple[str, ...]:
    """Return the differences as short texts, e.g. `concurrency 20 → 40`; empty if the loads are the same.

    Irrelevant fields are ignored: the concurrency of open load, the URL if requests are named. Segments with load steps
    are compared by their load level, ramps by their ends and duration. Secrets are left out.
    """
    left, right = _comparable(first), _comparable(second)
    skipped = _ignored(left, right)
    unlike = []
    if (left.ramp_to or right.ramp_to) and (*_ramp(left), left.duration) != (*_ramp(right), right.duration):
        unlike.append(f"{_ramp_words(left)} → {_ramp_words(right)}")
        skipped |= {"concurrency", "rate"}
    elif left.open != right.open and not (_has_all_levels(left) or _has_all_levels(right)):
        unlike.append(f"{load_words(left)} → {load_words(right)}")
    for name, words in _COMPARED.items():
        before, after = getattr(left, name), getattr(right, name)
        if name in skipped or before == after:
            continue
        plain = name != "body" and isinstance(before if before is not None else after, str | int | float)
        unlike.append(f"{words} {_value_words(before)} → {_value_words(after)}" if plain else f"different {words}")
    return tuple(unlike)


def _comparable(plan: LoadPlan) -> LoadPlan:
    """Return the plan without secrets, and without the duration of a replayed log, which is unknown until it was
    read."""
    shown = plan.without_secrets()
    return shown if shown.replay is None else replace(shown, replay=replace(shown.replay, seconds=None))


def _ignored(plan: LoadPlan, second: LoadPlan) -> set[str]:
    skipped = set(_REPLACED_BY_MIX) if plan.mix and second.mix else set()
    if _has_all_levels(plan) or _has_all_levels(second):
        return skipped | _CLOSED | {"rate"}
    skipped.add("stages")
    if plan.open != second.open:
        return skipped | _CLOSED | _OPEN
    return skipped | (_CLOSED if plan.open else _OPEN)


def _has_all_levels(plan: LoadPlan) -> bool:
    """Return whether this is the plan of a whole run with load steps; the plan of a segment has one level and a
    duration."""
    return bool(plan.stages) and plan.duration is None


def partial_ramp(plan: LoadPlan, seconds: float) -> str:
    """Return as text that `seconds` are less than the whole ramp, whose parts have different loads; "" if they are not,
    and without a ramp."""
    if plan.ramp_to is None or plan.duration is None or seconds > plan.duration - _TICKS:
        return ""
    return f"only {seconds:.0f} s of {_ramp_words(plan)}"


def _ramp(plan: LoadPlan) -> tuple[float | None, float | None]:
    return plan.rate if plan.open else plan.concurrency, plan.ramp_to


def _ramp_words(plan: LoadPlan) -> str:
    duration = "" if plan.ramp_to is None or plan.duration is None else f" in {plan.duration:g} s"
    return f"{load_words(plan)}{duration}"


def _value_words(value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else sanitize(str(value), _CUT)
