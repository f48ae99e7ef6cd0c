"""Parsers of durations, counts and rates: 10s 3m 1h 500ms, 10k 1m."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

_NUMBER = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_DURATION = re.compile(_NUMBER + r"\s*(us|µs|ms|s|m|min|h)?")
# E.g. 5m20s: each part has a unit.
_PARTS = re.compile(r"(?:[0-9]{1,9}(?:h|min|m|s))+")
_PART = re.compile(r"([0-9]{1,9})(h|min|m|s)")
_COUNT = re.compile(_NUMBER + r"\s*([kKmM]?)")
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
Amount = TypeVar("Amount", int, float)
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_duration(text: str) -> float:
    """Return seconds; a number without a unit is seconds. Raises ValueError with the allowed forms."""
    text = text.strip()
    if _PARTS.fullmatch(text):
        return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a duration; write it as 10s, 500ms, 3m, 5m20s or 1h")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def parse_count(text: str) -> int:
    """Return a whole number; k: thousand, m: million. Raises ValueError with the allowed forms."""
    match = _COUNT.fullmatch(text.strip())
    value = float(match[1]) * _FACTORS[match[2].lower()] if match else 0.5
    if not value.is_integer():
        raise ValueError(f"{text!r} is not a whole number; write it as 200, 10k or 1m")
    return int(value)


def parse_rate(text: str) -> float:
    """Return a rate (1/s); k and m as in counts. Raises ValueError with the allowed forms."""
    match = _COUNT.fullmatch(text.strip().removesuffix("/s"))
    if not match:
        raise ValueError(f"{text!r} is not a rate; write it as 500, 2.5 or 2k")
    return float(match[1]) * _FACTORS[match[2].lower()]


def parse_ramp(text: str, parse: Callable[[str], Amount]) -> tuple[Amount, float | None]:
    """Return both ends of a ramp `A:B`; the second is None for a constant load. Raises ValueError."""
    first, colon, last = text.strip().removesuffix("/s").partition(":")
    amounts = parse(first), float(parse(last)) if colon else None
    if 0 in amounts:
        raise ValueError(f"{text!r}: must be greater than 0")
    return amounts


def parse_share(text: str) -> float:
    """Return the share of `5%`, above 0 and below 100%. Raises ValueError."""
    match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,3})?) ?%", text)
    if match is None or not float(match[1]):
        raise ValueError(f"{text!r}; allowed: a percentage above 0 and below 100, such as 10%")
    return float(match[1]) / 100
